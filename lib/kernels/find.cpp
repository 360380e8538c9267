// Where elements appear. In: a tensor. Out: positions, or numbers of equal elements.
#include "kernels/find.h"

#include <bit>

#include "base/visit.h"
#include "kernels/order_key.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {

// Numbers lie in a table of twice as many places, at the place that the key says or behind it.
Appearances appearances(const Tensor& x) {
  const auto n = static_cast<std::size_t>(x.size());
  Appearances result{std::vector<std::int64_t>(n), {}};
  const auto size = std::bit_ceil(2 * n + 2);
  const int shift = 64 - std::countr_zero(size);
  visit(x.dtype(), [&]<class T>(T) {
    std::vector<std::int64_t> table(size, -1);
    const T* element = elements<T>(x);
    for (std::size_t i = 0; i < n; ++i) {
      const auto key = order_key(element[i]);
      std::size_t at = static_cast<std::size_t>(std::uint64_t{key} * 0x9e3779b97f4a7c15u >> shift);   // 2^64 by the golden ratio
      const auto is_other = [&](std::int64_t number) { return order_key(element[result.first[static_cast<std::size_t>(number)]]) != key; };
      while (table[at] >= 0 && is_other(table[at])) at = (at + 1) & (size - 1);
      if (table[at] < 0) {
        table[at] = static_cast<std::int64_t>(result.first.size());
        result.first.push_back(static_cast<std::int64_t>(i));
      }
      result.number[i] = table[at];
    }
  });
  return result;
}

std::int64_t count_nonzero(const Tensor& x) {
  std::int64_t count = 0;
  visit(x.dtype(), [&]<class T>(T) {
    const T* element = elements<T>(x);
    for (std::int64_t i = 0; i < x.size(); ++i) count += element[i] != T(0);
  });
  return count;
}

void nonzero(const Tensor& x, Tensor& y) {
  const int ndim = x.ndim();
  std::int64_t* position = elements<std::int64_t>(y);
  visit(x.dtype(), [&]<class T>(T) {
    const T* element = elements<T>(x);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      if (element[i] == T(0)) continue;
      for (std::int64_t d = ndim, rest = i; d-- > 0; rest /= x.shape()[static_cast<int>(d)]) position[d] = rest % x.shape()[static_cast<int>(d)];
      position += ndim;
    }
  });
}

}  // namespace tapedeck::kernels
