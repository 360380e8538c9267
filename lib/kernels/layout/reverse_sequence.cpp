// Reverses the first entries of each sequence. Loops over the sequence and batch axes; the axes after both
// are copied as one block. Threads split the axes before the inner one of the two.
#include "kernels/layout/reverse_sequence.h"

#include <algorithm>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/layout/strided_view.h"
#include "kernels/simd/short_copy.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kReverseSequenceCut = {1 << 15, 1 << 17};   // of elements

// Calls f(copy), where copy(from, to) copies n elements.
template <class T, class F> void with_copy(std::int64_t n, const F& f) {
  if (n == 1) return f([](const T* from, T* to) { *to = *from; });
  with_copy_of(n * static_cast<std::int64_t>(sizeof(T)), [&](auto copy) {
    f([copy](const T* from, T* to) {
      copy(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to));
    });
  });
}

}   // namespace

void reverse_sequence(const Tensor& x, std::span<const std::int64_t> lengths, int sequence_axis,
                      int batch_axis, Tensor& y) {
  if (y.size() == 0) return;
  const AxisView outer(x.shape(), std::min(sequence_axis, batch_axis)),
      inner(x.shape(), std::max(sequence_axis, batch_axis));
  const std::int64_t between = inner.before / outer.before / outer.extent, n = inner.extent,
                     size = inner.after;
  const auto length = [&](std::int64_t b) { return lengths[static_cast<std::size_t>(b)]; };
  visit_size(x.dtype(), [&]<class T>(T) {
    with_copy<T>(size, [&](auto copy) {
      parallel_for(inner.before, cut_of(kReverseSequenceCut, n * size),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin; row < end; ++row) {
                       const std::int64_t at =
                           row / between % outer.extent;   // the index along the outer of the two axes
                       const T* from = elements<T>(x) + row * n * size;
                       T* to = elements<T>(y) + row * n * size;
                       if (batch_axis < sequence_axis) {
                         const std::int64_t reversed = length(at);
                         for (std::int64_t i = 0; i < reversed; ++i)
                           copy(from + (reversed - 1 - i) * size, to + i * size);
                         std::copy(from + reversed * size, from + n * size, to + reversed * size);
                       } else {
                         for (std::int64_t b = 0; b < n; ++b) {
                           const std::int64_t away = at < length(b) ? length(b) - 1 - 2 * at : 0;
                           copy(from + (away * between * n + b) * size, to + b * size);
                         }
                       }
                     }
                   });
    });
  });
}

}   // namespace tapedeck::kernels
