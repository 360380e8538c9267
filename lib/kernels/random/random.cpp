// Random numbers from Philox, a counter-based generator: each counter yields a block of four 32-bit words.
// Words are turned into uniform, normal and other samples, or a permutation.
#include "kernels/random/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include <Random123/philox.h>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/random/quantile.h"
#include "kernels/simd/simd.h"

namespace tapedeck::kernels {
namespace {

using random::Key;
using Words = r123::Philox4x32::ctr_type;

constexpr std::int64_t kPiece = 1 << 12;   // elements whose words are generated at once
constexpr Cut kRandomCut = {kPiece, 4 * kPiece};
constexpr std::int64_t kQuantiles = 1 << 8;   // quantiles whose words are generated at once
constexpr Cut kQuantileCut = {kQuantiles, 2 * kQuantiles};
// Keeps the keys of split() distinct from the keys that samples are drawn with.
constexpr std::uint64_t kSplitting = 0x9e3779b97f4a7c15;

std::uint32_t low_word(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
std::uint32_t high_word(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
std::uint64_t joined(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; }

Words block(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  return r123::Philox4x32()({{low_word(counter), high_word(counter), low_word(stream), high_word(stream)}},
                            {{low_word(seed), high_word(seed)}});
}
Words block(const Key& key, std::uint64_t counter) {
  return block(random::KeyAccess::seed(key), random::KeyAccess::stream(key), counter);
}

// Blocks that are computed together, word by word, so that the compiler vectorizes.
constexpr std::size_t kBlocks = 16;
constexpr std::size_t kBatch = 4 * kBlocks;   // words

// Words from block `first` on, in whole batches.
void fill_words(const Key& key, std::uint64_t first, std::size_t count, std::uint32_t* words) {
  for (std::size_t i = 0; i < count; i += kBatch, first += kBlocks) {
    std::uint32_t lanes[4][kBlocks];
    for (std::size_t b = 0; b < kBlocks; ++b) {
      const Words w = block(key, first + b);
      for (std::size_t k = 0; k < 4; ++k)
        lanes[k][b] = w.v[k];
    }
    for (std::size_t b = 0; b < kBlocks; ++b)
      for (std::size_t k = 0; k < 4; ++k)
        words[i + 4 * b + k] = lanes[k][b];
  }
}

// Element i uses word i for f32, and words 2 i and 2 i + 1 for f64: as many of their leading bits as the
// mantissa of T holds, as an integer, which times kUnit is in [0, 1).
template <class T> constexpr std::size_t kWords = sizeof(T) / 4;
template <class T> constexpr T kUnit = static_cast<T>(sizeof(T) == 4 ? 0x1p-24 : 0x1p-53);
template <class T> auto leading_bits(const std::uint32_t* words, std::int64_t i) {
  if constexpr (sizeof(T) == 4)
    return static_cast<std::int32_t>(words[i] >> 8);
  else
    return static_cast<std::int64_t>(joined(words[2 * i], words[2 * i + 1]) >> 11);
}

// Calls fill(words, out, n) for pieces of y. Words are complete to the end of the last batch.
template <class T, class Fill> void fill_pieces(const Key& key, Tensor& y, Fill fill) {
  T* out = elements<T>(y);
  parallel_for(y.size(), kRandomCut, [&](std::int64_t first, std::int64_t last) {
    alignas(64) std::array<std::uint32_t, static_cast<std::size_t>(kPiece) * kWords<T>> words;
    for (std::int64_t begin = first; begin < last; begin += kPiece) {
      const std::int64_t n = std::min(kPiece, last - begin);
      fill_words(key, static_cast<std::uint64_t>(begin) * kWords<T> / 4,
                 static_cast<std::size_t>(n) * kWords<T>, words.data());
      fill(words.data(), out + begin, n);
    }
  });
}

// Box–Muller, for two groups of 64 bytes of elements: with a from the words of the first group and b from the
// words of the second, the first becomes sqrt(-2 log a) cos(2 pi b), the second sqrt(-2 log a) sin(2 pi b). a
// is in (0, 1], so that its logarithm is finite.
template <class T> void box_muller(const std::uint32_t* words, T* out) {
  constexpr std::int64_t n = kGroup<T>;
  alignas(64) T a[n], angle[n];
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = static_cast<T>(leading_bits<T>(words, i) + 1) * kUnit<T>;
    angle[i] = static_cast<T>(leading_bits<T>(words, n + i)) * (kUnit<T> * static_cast<T>(6.283185307179586));
  }
  for (std::int64_t i = 0; i < n; i += kWidth<T>) {
    const Batch<T> radius = sqrt(T(-2) * log(Batch<T>::load_aligned(a + i)));
    const auto [sine, cosine] = sincos(Batch<T>::load_aligned(angle + i));
    (radius * cosine).store_aligned(out + i);
    (radius * sine).store_aligned(out + n + i);
  }
}

// The quantile at (1 + t) / 2 of the normal distribution truncated to [-2, 2], for t in [-1, 1): t times a
// function of log(1 - erf(√2)² t²), of which this is a minimax fit.
template <class T> Batch<T> quantile_within_two(const Batch<T>& t) {
  const Batch<T> x = T(-0x1.35bf60ac9bf61p+0) - log(1 - T(0x1.d277bbd8cbdd3p-1) * t * t);
  Batch<T> factor;
  if constexpr (sizeof(T) == 4)
    factor = detail::polynomial(x, 0x1.979ebbd6057d7p+0, 0x1.589bd467a4ef9p-2, 0x1.ec8eed04608a4p-9,
                                -0x1.92bf19d86f3fcp-9, 0x1.839408819f285p-13, 0x1.6ee7d7ec27368p-15,
                                -0x1.a040ea3d14d59p-18, -0x1.0cbbc59b535b3p-21);
  else
    factor = detail::polynomial(
        x, 0x1.979ebbee25c30p+0, 0x1.589bd3da5c48ep-2, 0x1.ec8abd665f460p-9, -0x1.92bd9981bf35cp-9,
        0x1.847c114cf6434p-13, 0x1.6e65a81e28c25p-15, -0x1.c093bafdeea33p-18, -0x1.0032daa2351afp-21,
        0x1.72868d14efd85p-23, -0x1.9810769afa600p-33, -0x1.03de4f927a8d2p-28, 0x1.f7f711c211fa7p-33,
        0x1.38190a28c7b24p-34, -0x1.45039b2486f04p-37, -0x1.1cb800546fc28p-40, 0x1.05fc7e6be2171p-42);
  return maximum(minimum(t * factor, T(2)), T(-2));
}

// Calls f(i, probability) for n elements. Element i uses words 2 i and 2 i + 1, for f32 as well, since tails
// need the precision: their 52 leading bits plus one half, so that p is as far from 0 as from 1.
template <class F> void for_probabilities(const Key& key, std::int64_t n, const F& f) {
  parallel_for(n, kQuantileCut, [&](std::int64_t first, std::int64_t last) {
    std::array<std::uint32_t, 2 * kQuantiles> words;
    for (std::int64_t begin = first; begin < last; begin += kQuantiles) {
      const std::int64_t end = std::min(begin + kQuantiles, last);
      fill_words(key, static_cast<std::uint64_t>(begin) / 2, static_cast<std::size_t>(2 * (end - begin)),
                 words.data());
      for (std::int64_t i = begin; i < end; ++i) {
        const double p =
            (static_cast<double>(leading_bits<double>(words.data(), i - begin) >> 1) + 0.5) * 0x1p-52;
        f(i, Probability{p, 1 - p});
      }
    }
  });
}

// A parameter's elements as double; a single element broadcasts.
template <class T> class Parameter {
 public:
  explicit Parameter(const Tensor& x) : data_(elements<T>(x)), step_(x.size() > 1) {}
  double operator[](std::int64_t i) const { return static_cast<double>(data_[i * step_]); }

 private:
  const T* data_;
  std::int64_t step_;
};

// y = quantile(parameters…, probability), element by element.
template <class Quantile, class... X> void draw(const Key& key, Tensor& y, Quantile quantile, const X&... x) {
  visit_floating(y.dtype(), [&]<class T>(T) {
    T* out = elements<T>(y);
    for_probabilities(key, y.size(),
                      [out, quantile, ... parameter = Parameter<T>(x)](std::int64_t i, Probability u) {
                        out[i] = static_cast<T>(quantile(parameter[i]..., u));
                      });
  });
}

}   // namespace

Key split(const Key& key, std::uint64_t i) {
  const Words w = block(random::KeyAccess::seed(key) ^ kSplitting, random::KeyAccess::stream(key), i);
  return {joined(w[0], w[1]), joined(w[2], w[3])};
}

void uniform(const Key& key, double low, double high, Tensor& y) {
  visit_floating(y.dtype(), [&](auto t) {
    using T = decltype(t);
    const T below_high = std::nextafter(static_cast<T>(high), static_cast<T>(low));
    fill_pieces<T>(key, y, [&](const std::uint32_t* words, T* out, std::int64_t n) {
      // Rounded once. The sum may round up to high.
      for (std::int64_t i = 0; i < n; ++i)
        out[i] = std::min(static_cast<T>(std::fma(static_cast<double>(leading_bits<T>(words, i)),
                                                  double{kUnit<T>} * (high - low), low)),
                          below_high);
    });
  });
}

void normal(const Key& key, Tensor& y) {
  visit_floating(y.dtype(), [&](auto t) {
    using T = decltype(t);
    fill_pieces<T>(key, y, [](const std::uint32_t* words, T* out, std::int64_t n) {
      alignas(64) std::array<T, kPiece> numbers;
      for (std::int64_t i = 0; i < n; i += 2 * kGroup<T>)
        box_muller(words + static_cast<std::size_t>(i) * kWords<T>, numbers.data() + i);
      std::copy_n(numbers.data(), n, out);
    });
  });
}

void truncated_normal(const Key& key, Tensor& y) {
  visit_floating(y.dtype(), [&](auto one) {
    using T = decltype(one);
    fill_pieces<T>(key, y, [](const std::uint32_t* words, T* out, std::int64_t n) {
      alignas(64) std::array<T, kPiece> numbers;
      for (std::int64_t i = 0; i < n; i += kGroup<T>)
        for (std::int64_t k = i; k < i + kGroup<T>; ++k)
          numbers[static_cast<std::size_t>(k)] = static_cast<T>(leading_bits<T>(words, k)) * (2 * kUnit<T>)-1;
      for (std::int64_t i = 0; i < n; i += kWidth<T>)
        quantile_within_two(Batch<T>::load_aligned(numbers.data() + i)).store_aligned(numbers.data() + i);
      std::copy_n(numbers.data(), n, out);
    });
  });
}

void drop(const Tensor& x, const Tensor& dropped, double scale, Tensor& y) {
  visit_floating(y.dtype(), [&](auto one) {
    using T = decltype(one);
    const T *in = elements<T>(x), factor = static_cast<T>(scale);
    const auto* none = elements<std::uint8_t>(dropped);
    T* out = elements<T>(y);
    const std::int64_t n = dropped.size();
    for (std::int64_t front = 0; front < y.size(); front += n)
      parallel_for(n, Cut{1 << 14, 1 << 17}, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          out[front + i] = none[i] ? T(0) : in[front + i] * factor;
      });
  });
}

void probabilities(const Key& key, Tensor& p, Tensor& q) {
  visit_floating(p.dtype(), [&]<class T>(T) {
    for_probabilities(key, p.size(),
                      [out = elements<T>(p), other = elements<T>(q)](std::int64_t i, Probability u) {
                        out[i] = static_cast<T>(u.p), other[i] = static_cast<T>(u.q);
                      });
  });
}

void gamma(const Key& key, const Tensor& alpha, Tensor& y) { draw(key, y, gamma_quantile, alpha); }
void poisson(const Key& key, const Tensor& rate, Tensor& y) { draw(key, y, poisson_quantile, rate); }
void binomial(const Key& key, const Tensor& counts, const Tensor& probs, Tensor& y) {
  draw(key, y, binomial_quantile, counts, probs);
}

void parameterized_truncated_normal(const Key& key, const Tensor& mean, const Tensor& stddev,
                                    const Tensor& low, const Tensor& high, Tensor& y) {
  const auto quantile = [](double m, double s, double from, double to, Probability u) {
    if (!(s > 0)) return std::numeric_limits<double>::quiet_NaN();
    const double z = m + s * truncated_normal_quantile((from - m) / s, (to - m) / s, u);
    return z < from ? from : z > to ? to : z;
  };
  draw(key, y, quantile, mean, stddev, low, high);
}

// Sequential, so that a weight of 0 leaves the sum unchanged.
std::optional<std::int64_t> running_sums(const Tensor& weights, Tensor& y) {
  const std::int64_t k = weights.shape()[1];
  visit_floating(weights.dtype(), [&]<class T>(T) {
    parallel_for(
        weights.shape()[0], cut_of(kRandomCut, k),
        [from = elements<T>(weights), to = elements<double>(y), k](std::int64_t begin, std::int64_t end) {
          for (std::int64_t r = begin; r < end; ++r)
            std::partial_sum(from + r * k, from + (r + 1) * k, to + r * k,
                             [](double sum, double weight) { return sum + weight; });
        });
  });
  for (std::int64_t r = 0; r < weights.shape()[0]; ++r)
    if (!(elements<double>(y)[(r + 1) * k - 1] > 0)) return r;
  return {};
}

void categorical(const Key& key, const Tensor& sums, Tensor& y) {
  const std::int64_t k = sums.shape()[1], n = y.size() / sums.shape()[0];
  const double* rows = elements<double>(sums);
  for_probabilities(
      key, y.size(), [rows, out = elements<std::int64_t>(y), k, n](std::int64_t i, Probability u) {
        const double *row = rows + i / n * k, total = row[k - 1];
        // A category of weight 0 is never the first whose sum exceeds a number. The product may round up to
        // the total.
        out[i] = std::upper_bound(row, row + k, std::min(u.p * total, std::nextafter(total, 0.0))) - row;
      });
}

// Fisher–Yates shuffle. The target is 64 random bits times the number of positions, over 2^64: a bias of at
// most n / 2^64.
void permutation(const Key& key, Tensor& y) {
  __extension__ using Wide = unsigned __int128;
  auto* out = elements<std::int64_t>(y);
  std::iota(out, out + y.size(), std::int64_t{0});
  std::array<std::uint32_t, 2 * kPiece> words;
  for (std::int64_t begin = 0; begin < y.size(); begin += kPiece) {
    const std::int64_t n = std::min(kPiece, y.size() - begin);
    fill_words(key, static_cast<std::uint64_t>(begin) / 2, static_cast<std::size_t>(2 * n), words.data());
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t bits =
          joined(words[static_cast<std::size_t>(2 * i)], words[static_cast<std::size_t>(2 * i + 1)]);
      std::swap(out[begin + i],
                out[static_cast<std::int64_t>(Wide{bits} * static_cast<std::uint64_t>(begin + i + 1) >> 64)]);
    }
  }
}

}   // namespace tapedeck::kernels
