// Compares derivatives with central differences. In: a function and a point. Out: two numbers that should
// agree.
#include "tapedeck/gradcheck.h"

#include <fmt/format.h>
#include <algorithm>
#include <complex>
#include <ostream>
#include <random>

#include "core/format.h"
#include "tape/distinct_arguments.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/complex.h"
#include "tapedeck/ops/join.h"
#include "tapedeck/ops/reduce.h"

namespace tapedeck {
namespace {

using Tensors = std::vector<Tensor>;

bool varies(const Tensor& x) { return is_trainable(x.dtype()); }
bool varies(const Tensors& x, std::size_t i, const GradcheckOptions& options) {
  return varies(x[i]) && (i >= 64 || !(options.held >> i & 1));
}

// The real numbers in a tensor: a complex element is two numbers, its real and imaginary part.
std::vector<double> numbers_of(const Tensor& x) {
  if (!is_complex(x.dtype())) return x.to_vector();
  std::vector<double> numbers;
  for (const std::complex<double>& z : x.to_vector<std::complex<double>>())
    numbers.push_back(z.real()), numbers.push_back(z.imag());
  return numbers;
}
Tensor tensor_of(const std::vector<double>& numbers, const Spec& spec) {
  if (!is_complex(spec.dtype)) {
    const Tensor x = tensor(numbers, spec.shape);
    return spec.dtype == DType::f64 ? x : astype(x, spec.dtype);
  }
  std::vector<std::complex<double>> z;
  for (std::size_t i = 0; i < numbers.size(); i += 2)
    z.emplace_back(numbers[i], numbers[i + 1]);
  const Tensor x = tensor(z, spec.shape);
  return spec.dtype == DType::c128 ? x : astype(x, spec.dtype);
}

/// The point, the directions and the settings of one check.
class Check {
 public:
  Check(std::string_view what, const TensorFunction& f, const Tensors& x, const GradcheckOptions& options)
      : what_(what), f_(f), x_(x), options_(options), engine_(options.seed) {
    if (std::none_of(x.begin(), x.end(), [](const Tensor& t) { return varies(t); }))
      throw_error<DTypeError>("gradcheck: no input is f32, f64, c64 or c128");
    const Tensor y = f(x);
    if (!varies(y))
      throw_error<DTypeError>("gradcheck: the function returns {}; it must be f32, f64, c64 or c128",
                              y.spec());
    dy_ = random_like(y);
    for (std::size_t i = 0; i < x.size(); ++i)
      v_.push_back(varies(x, i, options) ? random_like(x[i]) : x[i]);
    const auto is_single = [](const Tensor& t) { return real_of(t.dtype()) == DType::f32; };
    const bool single = is_single(y) || std::any_of(x.begin(), x.end(), is_single);
    step_ = options.step > 0 ? options.step : single ? 1e-2 : 1e-5;
    tolerance_ = options.tolerance > 0 ? options.tolerance : single ? 1e-3 : 1e-6;
  }

  const Tensor& dy() const { return dy_; }
  const Tensor& v(std::size_t i) const { return v_[i]; }
  Tensor random_like(const Tensor& x) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::vector<double> values(static_cast<std::size_t>(is_complex(x.dtype()) ? 2 * x.size() : x.size()));
    for (double& e : values)
      e = uniform(engine_);
    return tensor_of(values, x.spec());
  }
  /// Computed without ops, since these may be under test.
  double dot(const Tensor& derivative, const Tensor& direction) const {
    if (derivative.shape() != direction.shape())
      throw_error<ShapeError>("gradcheck: a derivative of the {} is {}, but its tensor is {}", what_,
                              derivative.spec(), direction.spec());
    const std::vector<double> a = numbers_of(derivative), b = numbers_of(direction);
    double total = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      total += a[i] * b[i];
    return total;
  }
  /// analytic(v) returns ⟨dy, f'(x) v⟩; undefined tensors in v stand for zeros.
  template <class F> Agreement against_differences(const F& analytic) const {
    const Tensors all = part(0, count());
    Agreement a{what_, analytic(all), numeric(all), tolerance_};
    if (!a) a.element = element_at(place_of_fault(analytic), analytic);
    return a;
  }

 private:
  std::size_t numbers_in(std::size_t i) const {
    return varies(x_, i, options_)
               ? static_cast<std::size_t>(x_[i].size()) * (is_complex(x_[i].dtype()) ? 2 : 1)
               : 0;
  }
  std::size_t count() const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < x_.size(); ++i)
      n += numbers_in(i);
    return n;
  }

  // The direction, restricted to the numbers [begin, end) of all inputs, counted consecutively.
  Tensors part(std::size_t begin, std::size_t end) const {
    Tensors v(x_.size());
    std::size_t first = 0;
    for (std::size_t i = 0; i < x_.size(); first += numbers_in(i++)) {
      const std::size_t n = numbers_in(i);
      if (n == 0 || first + n <= begin || end <= first) continue;
      std::vector<double> numbers = numbers_of(v_[i]);
      for (std::size_t k = 0; k < n; ++k)
        if (first + k < begin || first + k >= end) numbers[k] = 0;
      v[i] = tensor_of(numbers, x_[i].spec());
    }
    return v;
  }

  // Bisects: if the sum of two differences is not small, at least one of them is not small.
  template <class F> std::size_t place_of_fault(const F& analytic) const {
    const auto fault = [&](std::size_t begin, std::size_t end) {
      const Tensors v = part(begin, end);
      const double difference = std::abs(analytic(v) - numeric(v));
      return std::isnan(difference) ? HUGE_VAL : difference;
    };
    std::size_t begin = 0, end = count();
    while (end - begin > 1) {
      const std::size_t middle = begin + (end - begin) / 2;
      (fault(begin, middle) >= fault(middle, end) ? end : begin) = middle;
    }
    return begin;
  }

  template <class F> ElementDerivative element_at(std::size_t place, const F& analytic) const {
    std::size_t i = 0;
    while (place >= numbers_in(i))
      place -= numbers_in(i++);
    std::vector<double> numbers(numbers_in(i));
    numbers[place] = 1;
    Tensors v(x_.size());
    v[i] = tensor_of(numbers, x_[i].spec());
    const bool pairs = is_complex(x_[i].dtype());
    ElementDerivative e{
        static_cast<int>(i), std::vector<std::int64_t>(static_cast<std::size_t>(x_[i].ndim())),
        pairs && place % 2,  x_[i].spec(),
        analytic(v),         numeric(v)};
    auto rest = static_cast<std::int64_t>(pairs ? place / 2 : place);
    for (std::size_t d = e.index.size(); d-- > 0;) {
      const std::int64_t extent = e.spec.shape[static_cast<int>(d)];
      e.index[d] = rest % extent;
      rest /= extent;
    }
    return e;
  }

  double numeric(const Tensors& v) const {
    return (dot(f_(moved(v, step_)), dy_) - dot(f_(moved(v, -step_)), dy_)) / (2 * step_);
  }

  Tensors moved(const Tensors& direction, double step) const {
    Tensors result = x_;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      if (!direction[i].defined()) continue;
      std::vector<double> values = numbers_of(x_[i]);
      const std::vector<double> v = numbers_of(direction[i]);
      for (std::size_t k = 0; k < v.size(); ++k)
        values[k] += step * v[k];
      result[i] = tensor_of(values, x_[i].spec());
    }
    return result;
  }

  std::string_view what_;
  const TensorFunction& f_;
  const Tensors& x_;
  const GradcheckOptions& options_;
  std::mt19937_64 engine_;
  Tensor dy_;
  Tensors v_;
  double step_ = 0, tolerance_ = 0;
};

/// The gradient of each input that varies, zeros if it is none; undefined for the others.
Tensors vjp(const TensorFunction& f, Tensors x, const Tensor& dy, const GradcheckOptions& options) {
  make_distinct(x);
  GradientTape tape;
  Tensors sources;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (varies(x, i, options)) tape.watch(x[i]), sources.push_back(x[i]);
  const Tensor y = f(x);
  std::vector<Gradient> g = tape.gradient(
      Targets(y), Sources(sources), {.output_gradients = {dy}, .unconnected = UnconnectedGradients::zero});
  Tensors dx;
  auto next = g.begin();
  for (std::size_t i = 0; i < x.size(); ++i)
    dx.push_back(varies(x, i, options) ? std::move(*next++).dense() : Tensor());
  return dx;
}

Agreement vjp_against_differences(std::string_view what, const TensorFunction& f, const Tensors& x,
                                  const GradcheckOptions& options) {
  const Check check(what, f, x, options);
  const Tensors dx = vjp(f, x, check.dy(), options);
  return check.against_differences([&](const Tensors& v) {
    double analytic = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (v[i].defined()) analytic += check.dot(dx[i], v[i]);
    return analytic;
  });
}

Agreement jvp_against_differences(std::string_view what, const TensorFunction& f, Tensors x,
                                  const GradcheckOptions& options) {
  make_distinct(x);
  const Check check(what, f, x, options);
  return check.against_differences([&](const Tensors& v) {
    double analytic = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!v[i].defined()) continue;
      const ForwardAccumulator forward(x[i], v[i]);
      const Tensor tangent = forward.jvp(f(x)).tensor();
      if (tangent.defined()) analytic += check.dot(tangent, check.dy());
    }
    return analytic;
  });
}

}   // namespace

std::ostream& operator<<(std::ostream& out, const Agreement& a) {
  out << fmt::format("{} {}: analytic {:.12g}, numeric {:.12g}, tolerance {:g}", a.what,
                     a ? "agrees" : "disagrees", a.analytic, a.numeric, a.tolerance);
  if (const auto& e = a.element)
    out << fmt::format("; by {}input {}, {}, at [{}]: analytic {:.12g}, numeric {:.12g}",
                       e->imaginary ? "the imaginary part of " : "", e->input, e->spec,
                       fmt::join(e->index, ","), e->analytic, e->numeric);
  return out;
}

Agreement check_vjp(const TensorFunction& f, const Tensors& x, const GradcheckOptions& options) {
  return vjp_against_differences("vjp", f, x, options);
}
Agreement check_jvp(const TensorFunction& f, const Tensors& x, const GradcheckOptions& options) {
  return jvp_against_differences("jvp", f, x, options);
}

TensorFunction as_function(const Op& op, const OwnedAttrs& attrs) {
  return [&op, attrs](const Tensors& x) {
    const Tensors y = op.run(x, attrs.view());
    if (y.size() == 1) return y[0];
    const bool any_complex =
        std::any_of(y.begin(), y.end(), [](const Tensor& t) { return is_complex(t.dtype()); });
    Tensors flat;
    for (const Tensor& t : y)
      if (varies(t)) flat.push_back(reshape(any_complex ? astype(t, complex_of(t.dtype())) : t, {-1}));
    return concat(flat, 0);
  };
}

Agreement check_gradients(const TensorFunction& f, const Tensors& x, const GradcheckOptions& options) {
  GradcheckOptions others = options;
  ++others.seed;
  Check point("vjp", f, x, others);
  // The weighted sum of all gradients, with separate weights for each.
  const TensorFunction vjp_of_f = [&](const Tensors& in) {
    const Tensors dx = vjp(f, Tensors(in.begin(), in.end() - 1), in.back(), options);
    Tensor all;
    for (std::size_t i = 0; i < dx.size(); ++i) {
      if (!dx[i].defined()) continue;
      const Tensor part = real(sum(dx[i] * conj(point.v(i))));
      all = all.defined() ? all + part : part;
    }
    return all;
  };
  Tensors x_and_dy = x;
  x_and_dy.push_back(point.dy());

  Agreement a = check_vjp(f, x, options);
  if (a) a = check_jvp(f, x, options);
  if (a) a = vjp_against_differences("vjp of vjp", vjp_of_f, x_and_dy, options);
  if (a) a = jvp_against_differences("jvp of vjp", vjp_of_f, x_and_dy, options);
  return a;
}

}   // namespace tapedeck
