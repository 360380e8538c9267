// Slices along one axis. In: a tensor and checked indices. Out: rows copied, or rows added up.
#include "kernels/gather_scatter.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "base/visit.h"
#include "kernels/copy.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {
namespace {

constexpr std::int64_t kGrain = 1 << 16;   // elements that are worth a thread

template <class F> void visit_indices(const Tensor& indices, F f) {
  if (indices.dtype() == DType::i32) f(elements<std::int32_t>(indices));
  else f(elements<std::int64_t>(indices));
}

std::int64_t grain_for(std::int64_t elements) { return std::max(std::int64_t{1}, kGrain / std::max(std::int64_t{1}, elements)); }

}  // namespace

void gather(const Tensor& x, const Tensor& indices, const AroundAxis& around, Tensor& y) {
  if (y.size() == 0) return;
  const std::int64_t count = indices.size(), extent = around.extent, after = around.after;
  visit_indices(indices, [&](const auto* index) {
    visit_size(x.dtype(), [&](auto t) {
      using T = decltype(t);
      const T* in = elements<T>(x);
      T* out = elements<T>(y);
      parallel_for(around.before * count, grain_for(after), [&](std::int64_t begin, std::int64_t end) {
        std::int64_t slab = begin / count * extent, k = begin % count;
        for (std::int64_t row = begin; row < end; ++row) {
          const T* from = in + (slab + index[k]) * after;
          if (after == 1) out[row] = *from;
          else std::memcpy(out + row * after, from, static_cast<std::size_t>(after) * sizeof(T));
          if (++k == count) k = 0, slab += extent;
        }
      });
    });
  });
}

void scatter_add(const Tensor& x, const Tensor& indices, const AroundAxis& around, Tensor& y) {
  clear(y);
  if (x.size() == 0) return;
  const std::int64_t count = indices.size(), after = around.after, slab = around.extent * after;
  visit_indices(indices, [&](const auto* index) {
    visit(x.dtype(), [&](auto t) {
      using T = decltype(t);
      if constexpr (!std::is_same_v<T, bool>) {
        const T* in = elements<T>(x);
        T* out = elements<T>(y);
        // Cut where no two threads meet, so that equal indices are added in their order.
        parallel_for(around.before, grain_for(count * after), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t b = begin; b < end; ++b) {
            for (std::int64_t k = 0; k < count; ++k) {
              const T* from = in + (b * count + k) * after;
              T* to = out + b * slab + index[k] * after;
              for (std::int64_t a = 0; a < after; ++a) to[a] = static_cast<T>(to[a] + from[a]);
            }
          }
        });
      }
    });
  });
}

}  // namespace tapedeck::kernels
