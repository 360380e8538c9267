// Mixed-radix FFT for lengths with small prime factors, by Cooley and Tukey's decimation in time, on one
// thread: the transforms of every p-th element are computed one after the other, then combined in vectors of
// neighbouring elements.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace tapedeck::kernels {

template <class T> using Numbers = std::vector<std::complex<T>>;

/// exp(-2πi k / n) for 0 <= k < n; conjugated if inverse.
template <class T> std::complex<T> root_of_unity(std::int64_t k, std::int64_t n, bool inverse) {
  // Multiples of a quarter turn are exact, so that the transform of real numbers ends in a real number.
  if (4 * k % n == 0) {
    constexpr T cosines[] = {1, 0, -1, 0}, sines[] = {0, 1, 0, -1};
    const std::int64_t quarter = 4 * k / n % 4;
    return {cosines[quarter], inverse ? sines[quarter] : -sines[quarter]};
  }
  const double angle =
      (inverse ? 6.283185307179586 : -6.283185307179586) * static_cast<double>(k) / static_cast<double>(n);
  return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
}

/// A SIMD vector of n complex numbers.
template <class T, int n> struct ComplexLanes {
  static constexpr std::size_t kParts = std::size_t{2} * n;
  using V [[gnu::vector_size(kParts * sizeof(T))]] = T;

  static V load(const std::complex<T>* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(std::complex<T>* p, const V& v) { std::memcpy(static_cast<void*>(p), &v, sizeof v); }
  static V alternating(T even, T odd) {
    V v{};
    for (int i = 0; i < 2 * n; ++i)
      v[i] = i % 2 ? odd : even;
    return v;
  }
  static V swapped(const V& v) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return __builtin_shufflevector(v, v, (i ^ 1)...);
    }
    (std::make_index_sequence<kParts>());
  }
  static V real(const V& v) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return __builtin_shufflevector(v, v, (i / 2 * 2)...);
    }
    (std::make_index_sequence<kParts>());
  }
  static V imag(const V& v) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return __builtin_shufflevector(v, v, (i | 1)...);
    }
    (std::make_index_sequence<kParts>());
  }
  static V product(const V& a, const V& b) { return a * real(b) + swapped(a) * imag(b) * alternating(-1, 1); }
};

template <class T> class MixedRadix {
 public:
  static constexpr int kLargestFactor = 23;   // a prime factor p costs about p / 2 operations per element

  /// Whether all prime factors of n are at most kLargestFactor.
  static bool takes(std::int64_t n) {
    for (int p = 2; p <= kLargestFactor; ++p)
      while (n % p == 0)
        n /= p;
    return n == 1;
  }

  MixedRadix(std::int64_t n, bool inverse) : inverse_(inverse) {
    std::int64_t m = n, stride = 1;
    for (const int p : radices(n)) {
      m /= p;
      Level level{p, m, {}, {}, {}};
      for (int q = 1; q < p && m > 1; ++q)
        for (std::int64_t k = 0; k < m; ++k)
          level.twiddles.push_back(root_of_unity<T>(q * k, p * m, inverse));
      for (int q = 0; q < p; ++q)
        level.cosines.push_back(root_of_unity<T>(q, p, true).real()),
            level.sines.push_back(root_of_unity<T>(q, p, true).imag());
      levels_.push_back(std::move(level));
      if (m == 1) break;
      std::vector<std::int64_t> starts;
      for (const std::int64_t s : starts_)
        for (int q = 0; q < p; ++q)
          starts.push_back(s + q * stride);
      starts_ = std::move(starts);
      stride *= p;
    }
    stride_ = stride;
  }

  /// Transforms n elements. y must not be x.
  void run(const std::complex<T>* x, std::complex<T>* y) const {
    if (levels_.empty())
      *y = *x;
    else
      run(0, 0, x, y);
  }

 private:
  struct Level {
    int radix;
    std::int64_t m;        // length of the transforms that are combined
    Numbers<T> twiddles;   // twiddle factors of all inputs but the first
    std::vector<T> cosines, sines;

    std::int64_t size() const { return radix * m; }
  };

  // The radices, from the last combination to the first. The last one gets the longest rows.
  static std::vector<int> radices(std::int64_t n) {
    std::vector<int> p;
    for (int odd = 3; odd <= kLargestFactor; odd += 2)
      for (; n % odd == 0; n /= odd)
        p.push_back(odd);
    std::reverse(p.begin(), p.end());
    int twos = 0;
    for (; n % 2 == 0; n /= 2)
      ++twos;
    if (twos % 2) p.push_back(2);
    p.insert(p.end(), static_cast<std::size_t>(twos / 2), 4);
    return p;
  }

  // Computes the transforms of levels from `depth` on, at y + first. A transform that does not fit into the
  // cache is combined from transforms that are computed one after the other.
  void run(std::size_t depth, std::int64_t first, const std::complex<T>* x, std::complex<T>* y) const {
    constexpr std::int64_t kCached = 1 << 11;
    const Level& level = levels_[depth];
    if (level.size() > kCached && level.m > 1) {
      for (int q = 0; q < level.radix; ++q)
        run(depth + 1, first + q * level.m, x, y);
      combine(level, y + first, level.size());
      return;
    }
    combine_first(first, first + level.size(), x, y);
    for (std::size_t d = levels_.size() - 1; d-- > depth;)
      combine(levels_[d], y + first, level.size());
  }

  // Calls f<p>(), with p = 0 for radices without a specialization.
  template <class F> static void by_radix(int radix, const F& f) {
    switch (radix) {
      case 2:
        return f.template operator()<2>();
      case 3:
        return f.template operator()<3>();
      case 4:
        return f.template operator()<4>();
      case 5:
        return f.template operator()<5>();
      case 7:
        return f.template operator()<7>();
      default:
        return f.template operator()<0>();
    }
  }

  // Computes the innermost transforms, of single elements that are stride_ apart.
  void combine_first(std::int64_t begin, std::int64_t end, const std::complex<T>* x,
                     std::complex<T>* y) const {
    using N = ComplexLanes<T, 1>;
    const Level& level = levels_.back();
    by_radix(level.radix, [&]<int p>() {
      for (std::int64_t at = begin; at < end; at += level.radix) {
        const std::complex<T>* from = x + starts_[static_cast<std::size_t>(at / level.radix)];
        typename N::V t[p ? p : kLargestFactor];
        for (int q = 0; q < (p ? p : level.radix); ++q)
          t[q] = N::load(from + q * stride_);
        transform<p, N>(level, t);
        for (int q = 0; q < (p ? p : level.radix); ++q)
          N::store(y + at + q, t[q]);
      }
    });
  }

  void combine(const Level& level, std::complex<T>* y, std::int64_t size) const {
#if defined(__AVX512F__)
    constexpr int kBytes = 64;
#elif defined(__AVX__)
    constexpr int kBytes = 32;
#else
    constexpr int kBytes = 16;
#endif
    by_radix(level.radix, [&]<int p>() {
      for (std::int64_t at = 0; at < size; at += level.size())
        combine_from<p, kBytes / static_cast<int>(2 * sizeof(T))>(level, 0, y + at);
    });
  }
  template <int p, int n> void combine_from(const Level& level, std::int64_t k, std::complex<T>* y) const {
    using N = ComplexLanes<T, n>;
    const int radix = p ? p : level.radix;
    const std::int64_t m = level.m;
    for (; k + n <= m; k += n) {
      typename N::V t[p ? p : kLargestFactor];
      t[0] = N::load(y + k);
      for (int q = 1; q < radix; ++q)
        t[q] = N::product(N::load(y + q * m + k), N::load(level.twiddles.data() + (q - 1) * m + k));
      transform<p, N>(level, t);
      for (int q = 0; q < radix; ++q)
        N::store(y + q * m + k, t[q]);
    }
    if constexpr (n > 1)
      if (k < m) combine_from<p, n / 2>(level, k, y);
  }

  // The transform of t[0], t[1], …, in each lane.
  template <int p, class N> void transform(const Level& level, typename N::V* t) const {
    using V = typename N::V;
    const V sign = inverse_ ? N::alternating(-1, 1) : N::alternating(1, -1);
    const auto rotated = [&](const V& v) { return N::swapped(v) * sign; };   // by a right angle
    if constexpr (p == 2) {
      const V a = t[0], b = t[1];
      t[0] = a + b, t[1] = a - b;
    } else if constexpr (p == 4) {
      const V a = t[0] + t[2], b = t[0] - t[2], c = t[1] + t[3], d = rotated(t[1] - t[3]);
      t[0] = a + c, t[1] = b + d, t[2] = a - c, t[3] = b - d;
    } else {
      // Elements q and p - q rotate by opposite angles.
      const int radix = p ? p : level.radix, half = radix / 2;
      V even[(p ? p : kLargestFactor) / 2], odd[(p ? p : kLargestFactor) / 2];
      const V first = t[0];
      for (int q = 1; q <= half; ++q) {
        even[q - 1] = t[q] + t[radix - q], odd[q - 1] = rotated(t[q] - t[radix - q]);
        t[0] += even[q - 1];
      }
      for (int j = 1; j <= half; ++j) {
        V a = first, b{};
        for (int q = 1; q <= half; ++q) {
          const auto angle = static_cast<std::size_t>(q * j % radix);
          a += even[q - 1] * level.cosines[angle], b += odd[q - 1] * level.sines[angle];
        }
        t[j] = a + b, t[radix - j] = a - b;
      }
    }
  }

  bool inverse_;
  std::vector<Level> levels_;
  // The positions at which the innermost transforms read x, in the order of their results in y.
  std::vector<std::int64_t> starts_{0};
  std::int64_t stride_ = 1;
};

}   // namespace tapedeck::kernels
