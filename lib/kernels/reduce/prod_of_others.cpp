// For each element of a row, the product of all others, without division: the product of the elements before
// it times the product of those after it. A row is distributed over the lanes of several vectors, so "before"
// and "after" are within a lane, and the second factor includes the other lanes. Threads split the rows.
#include "kernels/reduce/prod_of_others.h"

#include <algorithm>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/reduce/fold.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kProdOfOthersCut = {1 << 14, 1 << 16};   // of elements
constexpr int kVectors = 4;                            // independent products in flight
template <class T> constexpr std::int64_t kLanes = kVectors* kWidth<T>;

template <class T> void in_order(const T* x, std::int64_t n, T* y) {
  T before = 1, after = 1;
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = before;
    before *= x[i];
  }
  for (std::int64_t i = n; i-- > 0;) {
    y[i] *= after;
    after *= x[i];
  }
}

// Replaces each lane's product by the product of all other lanes.
template <class T> void to_others(Batch<T>* lanes) {
  const Batch<T> left = lanes[0] * lanes[1], right = lanes[2] * lanes[3];
  alignas(64) T columns[kWidth<T>], others[kWidth<T>];
  (left * right).store_aligned(columns);
  in_order(columns, kWidth<T>, others);
  const Batch<T> other_lanes = Batch<T>::load_aligned(others);
  const Batch<T> of_left = right * other_lanes, of_right = left * other_lanes, first = lanes[0],
                 third = lanes[2];
  lanes[0] = lanes[1] * of_left;
  lanes[1] = first * of_left;
  lanes[2] = lanes[3] * of_right;
  lanes[3] = third * of_right;
}

template <class T> void row(const T* x, std::int64_t n, T* y) {
  constexpr std::int64_t w = kWidth<T>;
  if (n < kLanes<T>) return in_order(x, n, y);
  alignas(64) T last_x[kLanes<T>], last_y[kLanes<T>];   // the rest of the row, padded with ones
  const std::int64_t whole = n / kLanes<T> * kLanes<T>;
  std::fill(std::copy(x + whole, x + n, last_x), last_x + kLanes<T>, T(1));
  Batch<T> product[kVectors];
  std::fill_n(product, kVectors, Batch<T>(T(1)));
  const auto before = [&product](const T* in, T* out) {
    for (int k = 0; k < kVectors; ++k) {
      product[k].store_unaligned(out + k * w);
      product[k] *= Batch<T>::load_unaligned(in + k * w);
    }
  };
  const auto after = [&product](const T* in, T* out) {
    for (int k = 0; k < kVectors; ++k) {
      (Batch<T>::load_unaligned(out + k * w) * product[k]).store_unaligned(out + k * w);
      product[k] *= Batch<T>::load_unaligned(in + k * w);
    }
  };
  for (std::int64_t i = 0; i < whole; i += kLanes<T>)
    before(x + i, y + i);
  before(last_x, last_y);
  to_others<T>(product);
  after(last_x, last_y);
  for (std::int64_t i = whole; (i -= kLanes<T>) >= 0;)
    after(x + i, y + i);
  std::copy_n(last_y, n - whole, y + whole);
}

// Complex numbers, one at a time.
template <class T> void row(const std::complex<T>* x, std::int64_t n, std::complex<T>* y) {
  std::complex<T> product = 1;
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = product, product *= x[i];
  product = 1;
  for (std::int64_t i = n; i-- > 0;)
    y[i] *= product, product *= x[i];
}

}   // namespace

void prod_of_others(const Tensor& x, Tensor& y) {
  if (x.size() == 0) return;
  const std::int64_t n = x.shape()[x.ndim() - 1];
  visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    const T* in = elements<T>(x);
    T* out = elements<T>(y);
    parallel_for(x.size() / n, cut_of(kProdOfOthersCut, n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        row(in + r * n, n, out + r * n);
    });
  });
}

}   // namespace tapedeck::kernels
