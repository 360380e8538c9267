// Random numbers. In: a key. Out: Philox blocks, one for each counter, as uniform or normal numbers or an order.
#include "kernels/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <Random123/philox.h>

#include "base/parallel.h"
#include "base/visit.h"
#include "kernels/simd.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {
namespace {

using random::Key;
using Words = r123::Philox4x32::ctr_type;

constexpr std::int64_t kPiece = 1 << 12;   // elements made at a time; a multiple of a block's
// Sets the keys of split() apart from those that numbers are drawn with.
constexpr std::uint64_t kSplitting = 0x9e3779b97f4a7c15;

std::uint32_t low_word(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
std::uint32_t high_word(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
std::uint64_t joined(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; }

Words block(const Key& key, std::uint64_t counter) {
  return r123::Philox4x32()({{low_word(counter), high_word(counter), low_word(key.stream), high_word(key.stream)}}, {{low_word(key.seed), high_word(key.seed)}});
}

// Random bits of one element: 32 for f32, of which each block has four; 64 for f64.
template <class T> using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T> constexpr std::int64_t kPerBlock = 16 / sizeof(T);
template <class T> constexpr std::int64_t kPair = 2 * kGroup<T>;   // elements that normal numbers are made for at once

// The bits of elements first, first + 1, …; whole blocks of them.
template <class T> void fill_bits(const Key& key, std::int64_t first, std::int64_t count, Bits<T>* bits) {
  for (std::int64_t i = 0; i < count; i += kPerBlock<T>) {
    const Words w = block(key, static_cast<std::uint64_t>((first + i) / kPerBlock<T>));
    if constexpr (sizeof(T) == 4) std::copy_n(w.v, 4, bits + i);
    else bits[i] = joined(w[0], w[1]), bits[i + 1] = joined(w[2], w[3]);
  }
}

// As many leading bits as T holds exactly, as a number in [0, 1).
template <class T> constexpr int kUnused = sizeof(T) == 4 ? 8 : 11;
template <class T> constexpr T kUnit = static_cast<T>(sizeof(T) == 4 ? 0x1p-24 : 0x1p-53);

// Calls fill(bits, out, n) for pieces of y; the bits go on to the end of the last pair of groups.
template <class T, class Fill> void fill_pieces(const Key& key, Tensor& y, Fill fill) {
  T* out = elements<T>(y);
  parallel_for(y.size(), kPiece, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) std::array<Bits<T>, kPiece> bits;
    fill_bits<T>(key, begin, (end - begin + kPair<T> - 1) / kPair<T> * kPair<T>, bits.data());
    fill(bits.data(), out + begin, end - begin);
  });
}

// Box and Muller: a and b, from the bits of one group and of the next, give sqrt(-2 log a) cos(2 pi b) for the one and
// sqrt(-2 log a) sin(2 pi b) for the other. a is in (0, 1], so that its logarithm is finite.
template <class T> void box_muller(const Bits<T>* bits, T* out) {
  constexpr std::int64_t n = kGroup<T>;
  alignas(64) T a[n], angle[n];
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = static_cast<T>((bits[i] >> kUnused<T>) + 1) * kUnit<T>;
    angle[i] = static_cast<T>(bits[n + i] >> kUnused<T>) * (kUnit<T> * static_cast<T>(6.283185307179586));
  }
  for (std::int64_t i = 0; i < n; i += kWidth<T>) {
    const Batch<T> radius = sqrt(T(-2) * log(Batch<T>::load_aligned(a + i)));
    const auto [sine, cosine] = sincos(Batch<T>::load_aligned(angle + i));
    (radius * cosine).store_aligned(out + i);
    (radius * sine).store_aligned(out + n + i);
  }
}

}  // namespace

Key split(const Key& key, std::uint64_t i) {
  const Words w = block({key.seed ^ kSplitting, key.stream}, i);
  return {joined(w[0], w[1]), joined(w[2], w[3])};
}

void uniform(const Key& key, double low, double high, Tensor& y) {
  visit_floating(y.dtype(), [&](auto t) {
    using T = decltype(t);
    const T below_high = std::nextafter(static_cast<T>(high), static_cast<T>(low));
    fill_pieces<T>(key, y, [&](const Bits<T>* bits, T* out, std::int64_t n) {
      // fma by name, since the compiler may or may not contract; the sum may round up to high.
      for (std::int64_t i = 0; i < n; ++i)
        out[i] = std::min(static_cast<T>(std::fma(static_cast<double>(static_cast<T>(bits[i] >> kUnused<T>) * kUnit<T>), high - low, low)), below_high);
    });
  });
}

void normal(const Key& key, Tensor& y) {
  visit_floating(y.dtype(), [&](auto t) {
    using T = decltype(t);
    fill_pieces<T>(key, y, [](const Bits<T>* bits, T* out, std::int64_t n) {
      alignas(64) std::array<T, kPiece> numbers;
      for (std::int64_t i = 0; i < n; i += kPair<T>) box_muller(bits + i, numbers.data() + i);
      std::copy_n(numbers.data(), n, out);
    });
  });
}

// Fisher and Yates, from the end. The remainder of 64 bits favours no position by more than n / 2^64.
void permutation(const Key& key, Tensor& y) {
  auto* out = elements<std::int64_t>(y);
  std::iota(out, out + y.size(), std::int64_t{0});
  for (std::int64_t i = y.size(); i-- > 1;) {
    const Words w = block(key, static_cast<std::uint64_t>(i));
    std::swap(out[i], out[joined(w[0], w[1]) % static_cast<std::uint64_t>(i + 1)]);
  }
}

}  // namespace tapedeck::kernels
