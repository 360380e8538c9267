// Discrete Fourier transforms. Lengths with small prime factors go to MixedRadix; others become a convolution
// whose length has small factors (Bluestein, "A linear filtering approach to the computation of the discrete
// Fourier transform", 1970). Threads split the lines: the sequences of n elements that are transformed.
#include "kernels/linalg/fft.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/linalg/mixed_radix.h"
#include "kernels/simd/complexes.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kFftCut = {1 << 11, 1 << 13};      // of elements
constexpr std::int64_t kFftBlock = 8;            // strided lines that are copied at once
constexpr std::int64_t kLargestKept = 1 << 18;   // longer plans are not cached

/// The smallest 2ᵏ or 3 · 2ᵏ that is at least n.
std::int64_t smooth_length(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n)
    power *= 2;
  return power >= 4 && power / 4 * 3 >= n ? power / 4 * 3 : power;
}

/// The precomputed tables of a transform of one length and direction.
template <class T> class Plan {
 public:
  /// with_twiddles: also makes exp(-πi k / n) for k from 0 to n (conjugated if inverse), which the transforms
  /// of 2 n real numbers need.
  Plan(std::int64_t n, bool inverse, bool with_twiddles)
      : n_(n),
        inverse_(inverse),
        direct_(MixedRadix<T>::takes(n)),
        forth_(direct_ ? n : smooth_length(2 * n - 1), direct_ && inverse),
        back_(direct_ ? 1 : smooth_length(2 * n - 1), true) {
    if (with_twiddles)
      for (std::int64_t k = 0; k <= n; ++k)
        twiddles_.push_back(root_of_unity<T>(k, 2 * n, inverse));
    if (direct_) return;
    // jk = (j² + k² - (k - j)²) / 2, and exp(-πi j² / n) repeats with j² modulo 2 n.
    const std::int64_t m = smooth_length(2 * n - 1);
    Numbers<T> filter(size(m));
    chirp_.resize(size(n));
    std::int64_t square = 0;
    for (std::int64_t j = 0; j < n; square = (square + 2 * j + 1) % (2 * n), ++j) {
      chirp_[size(j)] = root_of_unity<T>(square, 2 * n, inverse);
      filter[size(j)] = filter[size((m - j) % m)] = std::conj(chirp_[size(j)]) / static_cast<T>(m);
    }
    spectrum_.resize(size(m));
    forth_.run(filter.data(), spectrum_.data());
  }

  std::int64_t scratch() const { return direct_ ? 0 : 2 * static_cast<std::int64_t>(spectrum_.size()); }

  /// y must not be x. `scratch` has scratch() elements.
  void run(const std::complex<T>* x, std::complex<T>* y, std::complex<T>* scratch) const {
    if (direct_) return forth_.run(x, y);
    const std::size_t n = size(n_), m = spectrum_.size();
    std::complex<T>*a = scratch, *b = scratch + m;
    for (std::size_t j = 0; j < n; ++j)
      a[j] = product(x[j], chirp_[j]);
    std::fill(a + n, a + m, std::complex<T>());
    forth_.run(a, b);
    for (std::size_t j = 0; j < m; ++j)
      b[j] = product(b[j], spectrum_[j]);
    back_.run(b, a);
    for (std::size_t k = 0; k < n; ++k)
      y[k] = product(a[k], chirp_[k]);
  }

  bool is(std::int64_t n, bool inverse, bool with_twiddles) const {
    return n_ == n && inverse_ == inverse && twiddles_.empty() == !with_twiddles;
  }
  std::int64_t n() const { return n_; }
  const Numbers<T>& twiddles() const { return twiddles_; }

 private:
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

  std::int64_t n_;
  bool inverse_, direct_;
  MixedRadix<T> forth_, back_;
  Numbers<T> twiddles_, chirp_, spectrum_;
};

/// Returns a plan, from the thread's cache of recent plans if possible.
template <class T>
std::shared_ptr<const Plan<T>> plan_of(std::int64_t n, bool inverse, bool with_twiddles = false) {
  static thread_local std::array<std::shared_ptr<const Plan<T>>, 8> kept;
  const auto found = std::find_if(kept.begin(), kept.end(),
                                  [=](const auto& p) { return p && p->is(n, inverse, with_twiddles); });
  if (found != kept.end()) {
    std::rotate(kept.begin(), found, found + 1);
    return kept[0];
  }
  auto plan = std::make_shared<const Plan<T>>(n, inverse, with_twiddles);
  if (n <= kLargestKept) {
    std::rotate(kept.begin(), kept.end() - 1, kept.end());
    kept[0] = plan;
  }
  return plan;
}

/// Calls f(plan, scratch, begin, end) in parallel for ranges of `count` lines. Scratch has `extra` elements,
/// followed by plan.scratch() elements.
template <class T, class F>
void for_lines(const Plan<T>& plan, std::int64_t count, std::int64_t extra, const F& f) {
  parallel_for(count, cut_of(kFftCut, plan.n()), [&](std::int64_t begin, std::int64_t end) {
    Numbers<T> scratch(static_cast<std::size_t>(extra + plan.scratch()));
    f(plan, scratch.data(), begin, end);
  });
}

}   // namespace

template <class T>
void fft(const std::complex<T>* x, const FftLines& lines, bool inverse, T scale, std::complex<T>* y) {
  const auto [outer, n, inner] = lines;
  if (outer * n * inner == 0) return;
  const std::int64_t length = n, stride = inner, blocks = (inner + kFftBlock - 1) / kFftBlock;
  const auto shared_plan = plan_of<T>(n, inverse);
  if (stride == 1 && x != y) {
    for_lines(*shared_plan, outer, 0,
              [=](const Plan<T>& plan, std::complex<T>* scratch, std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i)
                  plan.run(x + i * length, y + i * length, scratch);
                if (scale != 1)
                  std::for_each(y + begin * length, y + end * length,
                                [=](std::complex<T>& e) { e *= scale; });
              });
    return;
  }
  for_lines(*shared_plan, outer * blocks, (kFftBlock + 1) * n,
            [=](const Plan<T>& plan, std::complex<T>* scratch, std::int64_t begin, std::int64_t end) {
              std::complex<T>*line = scratch + kFftBlock * length, *further = line + length;
              for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t first = i % blocks * kFftBlock,
                                   width = std::min(kFftBlock, stride - first),
                                   at = i / blocks * length * stride + first;
                for (std::int64_t j = 0; j < length; ++j)
                  for (std::int64_t w = 0; w < width; ++w)
                    scratch[w * length + j] = x[at + j * stride + w];
                for (std::int64_t w = 0; w < width; ++w) {
                  plan.run(scratch + w * length, line, further);
                  for (std::int64_t j = 0; j < length; ++j)
                    scratch[w * length + j] = line[j] * scale;
                }
                for (std::int64_t j = 0; j < length; ++j)
                  for (std::int64_t w = 0; w < width; ++w)
                    y[at + j * stride + w] = scratch[w * length + j];
              }
            });
}

// Even n: pack the real numbers as the real and imaginary parts of m = n / 2 complex numbers z. With Z =
// fft(z), the result is (Z[k] + conj Z[m - k]) / 2 - i exp(-2πi k / n) (Z[k] - conj Z[m - k]) / 2.
template <class T> void rfft(const T* x, std::int64_t rows, std::int64_t n, std::complex<T>* y) {
  if (rows * n == 0) return;
  const bool even = n % 2 == 0;
  const std::int64_t m = even ? n / 2 : n, outputs = n / 2 + 1;
  const auto shared_plan = plan_of<T>(m, false, even);
  for_lines(*shared_plan, rows, 2 * m,
            [=, twiddles = shared_plan->twiddles().data()](const Plan<T>& plan, std::complex<T>* scratch,
                                                           std::int64_t begin, std::int64_t end) {
              std::complex<T>*z = scratch, *transform = scratch + m, *further = transform + m;
              for (std::int64_t r = begin; r < end; ++r) {
                const T* row = x + r * n;
                std::complex<T>* out = y + r * outputs;
                for (std::int64_t j = 0; j < m; ++j)
                  z[j] = even ? std::complex<T>(row[2 * j], row[2 * j + 1]) : std::complex<T>(row[j], 0);
                plan.run(z, transform, further);
                if (!even)
                  std::copy_n(transform, outputs, out);
                else
                  for (std::int64_t k = 0; k <= m; ++k) {
                    const std::complex<T> a = transform[k % m], b = std::conj(transform[(m - k) % m]),
                                          odd = product(twiddles[k], a - b);
                    out[k] = {(a.real() + b.real() + odd.imag()) / 2, (a.imag() + b.imag() - odd.real()) / 2};
                  }
              }
            });
}

template <class T> void irfft(const std::complex<T>* x, std::int64_t rows, std::int64_t n, T* y) {
  if (rows * n == 0) return;
  const bool even = n % 2 == 0;
  const std::int64_t m = even ? n / 2 : n, inputs = n / 2 + 1;
  const auto shared_plan = plan_of<T>(m, true, even);
  for_lines(*shared_plan, rows, 2 * m,
            [=, twiddles = shared_plan->twiddles().data()](const Plan<T>& plan, std::complex<T>* scratch,
                                                           std::int64_t begin, std::int64_t end) {
              std::complex<T>*z = scratch, *transform = scratch + m, *further = transform + m;
              const T scale = 1 / static_cast<T>(n);
              for (std::int64_t r = begin; r < end; ++r) {
                const std::complex<T>* row = x + r * inputs;
                T* out = y + r * n;
                const auto entry = [&](std::int64_t k) {
                  return k == 0 || 2 * k == n ? std::complex<T>(row[k].real(), 0) : row[k];
                };
                if (even)
                  for (std::int64_t k = 0; k < m; ++k) {
                    const std::complex<T> a = entry(k), b = std::conj(entry(m - k)),
                                          odd = product(twiddles[k], a - b);
                    z[k] = {a.real() + b.real() - odd.imag(), a.imag() + b.imag() + odd.real()};
                  }
                else
                  for (std::int64_t k = 0; k < n; ++k)
                    z[k] = k < inputs ? entry(k) : std::conj(row[n - k]);
                plan.run(z, transform, further);
                for (std::int64_t j = 0; j < m; ++j) {
                  if (even)
                    out[2 * j] = transform[j].real() * scale, out[2 * j + 1] = transform[j].imag() * scale;
                  else
                    out[j] = transform[j].real() * scale;
                }
              }
            });
}

template void fft(const std::complex<float>*, const FftLines&, bool, float, std::complex<float>*);
template void fft(const std::complex<double>*, const FftLines&, bool, double, std::complex<double>*);
template void rfft(const float*, std::int64_t, std::int64_t, std::complex<float>*);
template void rfft(const double*, std::int64_t, std::int64_t, std::complex<double>*);
template void irfft(const std::complex<float>*, std::int64_t, std::int64_t, float*);
template void irfft(const std::complex<double>*, std::int64_t, std::int64_t, double*);

void fft_along(const Tensor& x, int first, int end, bool inverse, double scale, Tensor& y) {
  if (x.size() == 0) return;
  visit_complex(x.dtype(), [&]<class C>(C) {
    using T = typename C::value_type;
    const C* from = elements<C>(x);
    C* to = elements<C>(y);
    std::int64_t inner = 1;
    for (int k = 0; k < first; ++k)
      inner *= x.shape()[x.ndim() - 1 - k];
    for (int k = first; k < end; ++k, from = to) {
      const std::int64_t n = x.shape()[x.ndim() - 1 - k];
      fft<T>(from, {x.size() / (n * inner), n, inner}, inverse, static_cast<T>(k + 1 == end ? scale : 1), to);
      inner *= n;
    }
  });
}
void rfft_rows(const Tensor& x, Tensor& y) {
  const std::int64_t n = x.shape()[x.ndim() - 1];
  visit_floating(x.dtype(),
                 [&]<class T>(T) { rfft<T>(elements<T>(x), x.size() / n, n, elements<std::complex<T>>(y)); });
}
void irfft_rows(const Tensor& x, Tensor& y) {
  const std::int64_t n = y.shape()[y.ndim() - 1];
  visit_floating(y.dtype(), [&]<class T>(T) {
    irfft<T>(elements<std::complex<T>>(x), y.size() / n, n, elements<T>(y));
  });
}

}   // namespace tapedeck::kernels
