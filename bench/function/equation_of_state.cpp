// The equation of state of seawater, compared with a fused loop by hand, in f64: the density for absolute
// salinity, conservative temperature and pressure, as a quotient of two polynomials with 48 coefficients (IOC
// et al. 2010, Manuals and Guides 56, appendix K).
#include <array>

#include "ocean.h"

namespace bench {
namespace {

/// c0 + t (c1 + t (c2 + …)).
template <class V, std::size_t n> V polynomial(const V& t, const std::array<double, n>& c) {
  V y = c[n - 2] + t * c[n - 1];
  for (std::size_t i = n - 2; i-- > 0;)
    y = c[i] + t * y;
  return y;
}
template <std::size_t n> using Numbers = std::array<double, n>;

/// V is a tensor or a vector.
template <class V> V density(const V& s, const V& t, const V& p, const V& root_of_s) {
  const V mass =
      polynomial(t, Numbers<4>{9.998420897506056e2, 2.839940833161907, -3.147759265588511e-2,
                               1.181805545074306e-3}) +
      s * (polynomial(t, Numbers<3>{-6.698001071123802, -2.986498947203215e-2, 2.327859407479162e-4}) +
           root_of_s * polynomial(t, Numbers<4>{-3.988822378968490e-2, 5.095422573880500e-4,
                                                -1.426984671633621e-5, 1.645039373682922e-7})) +
      p * (polynomial(t, Numbers<3>{-2.233269627352527e-2, -3.436090079851880e-4, 3.726050720345733e-6}) +
           s * polynomial(t, Numbers<2>{-1.806789763745328e-4, 6.876837219536232e-7}) +
           p * (polynomial(t,
                           Numbers<3>{-3.087032500374211e-7, -1.988366587925593e-8, -1.061519070296458e-11}) +
                s * 1.550932729220080e-10));
  const V volume =
      polynomial(t, Numbers<5>{1.0, 2.775927747785646e-3, -2.349607444135925e-5, 1.119513357486743e-6,
                               6.743689325042773e-10}) +
      s * (polynomial(t, Numbers<5>{-7.521448093615448e-3, -2.764306979894411e-5, 1.262937315098546e-7,
                                    9.527875081696435e-10, -1.811147201949891e-11}) +
           s * 5.419326551148740e-6 +
           root_of_s *
               polynomial(t, Numbers<5>{-3.303308871386421e-5, 3.801564588876298e-7, -7.672876869259043e-9,
                                        -4.634182341116144e-11, 2.681097235569143e-12})) +
      p * (polynomial(t, Numbers<4>{-2.742185394906099e-5, -3.212746477974189e-7, 3.191413910561627e-9,
                                    -1.931012931541776e-12}) +
           s * polynomial(t, Numbers<2>{-1.105097577149576e-7, 6.211426728363857e-10}) +
           p * (-1.119011592875110e-10 +
                t * (polynomial(t, Numbers<2>{-1.941660213148725e-11, -1.864826425365600e-14}) +
                     s * 1.119522344879478e-14) +
                p * polynomial(t, Numbers<2>{-1.200507748551599e-15, 6.057902487546866e-17})));
  return mass / volume;
}

void run(const std::string& name, std::int64_t n) {
  const td::Tensor s = numbers({n}, 1, 30, 38, td::DType::f64), t = numbers({n}, 2, 0, 25, td::DType::f64),
                   p = numbers({n}, 3, 0, 4000, td::DType::f64);
  const auto by_hand = [&](std::span<double* const> results) {
    const double *a = s.data<double>().data(), *b = t.data<double>().data(), *c = p.data<double>().data();
    for (std::int64_t i = 0; i < n; i += kWidth) {
      const Vector v = Vector::load_unaligned(a + i);
      density(v, Vector::load_unaligned(b + i), Vector::load_unaligned(c + i), xsimd::sqrt(v))
          .store_unaligned(results[0] + i);
    }
  };
  race({name,
        0.6,
        {s, t, p},
        [](const Tensors& x) { return Tensors{density(x[0], x[1], x[2], td::sqrt(x[0]))}; },
        by_hand});
}

}   // namespace

void run_equation_of_state() { at_all_sizes("equation of state", run); }

}   // namespace bench
