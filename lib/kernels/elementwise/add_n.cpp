// Sums tensors of one spec, in blocks that stay in the L1 cache while all terms are added.
#include "kernels/elementwise/add_n.h"

#include <algorithm>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/elementwise/limits.h"
#include "kernels/simd/simd.h"

namespace tapedeck::kernels {
namespace {

template <class T>
void add_block(const std::vector<const T*>& x, T* y, std::int64_t begin, std::int64_t end) {
  if (x.size() == 1) std::copy(x[0] + begin, x[0] + end, y + begin);
  for (std::size_t k = 1; k < x.size(); ++k) {
    const T* a = k == 1 ? x[0] : y;
    const T* b = x[k];
    for (std::int64_t i = begin; i < end; i += kStep<T>)   // storage is padded: no tail
      (Vector<T>::load_unaligned(a + i) + Vector<T>::load_unaligned(b + i)).store_unaligned(y + i);
  }
}

// Writes y after all terms have been read.
template <class T>
void add_block_buffered(const std::vector<const T*>& x, T* y, std::int64_t begin, std::int64_t end) {
  alignas(64) T sum[kAddNBlock + kStep<T>];
  std::vector<const T*> terms = x;
  for (const T*& term : terms)
    term += begin;
  add_block(terms, sum, 0, end - begin);
  std::copy(sum, sum + (end - begin), y + begin);
}

}   // namespace

void add_n(Refs x, Tensor& y) {
  visit_any(y.dtype(), [&](auto t) {
    using T = decltype(t);
    if constexpr (!std::is_same_v<T, bool>) {
      std::vector<const T*> terms;
      for (int i = 0; i < x.size(); ++i)
        terms.push_back(elements<T>(x[i]));
      T* out = elements<T>(y);
      // If y shares memory with a term after the first two, the term must be read before it is overwritten.
      // The order of the terms, and thus the bits of the sum, must not depend on which memory y shares.
      const auto own = std::find(terms.begin(), terms.end(), out);
      const bool buffered = own != terms.end() && own - terms.begin() > 1;
      parallel_for(y.size(), kAddNCut, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t begin = first; begin < last; begin += kAddNBlock) {
          const std::int64_t end = std::min(begin + kAddNBlock, last);
          if (buffered)
            add_block_buffered(terms, out, begin, end);
          else
            add_block(terms, out, begin, end);
        }
      });
    }
  });
}

}   // namespace tapedeck::kernels
