// Elements along an axis. In: a tensor and an index for each element. Out: the elements, or sums of them.
#include "kernels/along.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/parallel.h"
#include "base/visit.h"
#include "kernels/copy.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kCut = {1 << 14, 1 << 16};   // of elements
constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();

/// The smallest of numbers that several threads find.
class First {
 public:
  void found(std::int64_t at) {
    for (std::int64_t old = at_; at < old && !at_.compare_exchange_weak(old, at);) {}
  }
  std::int64_t result() const { return at_ == kNowhere ? -1 : at_.load(); }

 private:
  std::atomic<std::int64_t> at_ = kNowhere;
};

bool outside(std::int64_t index, std::int64_t extent) { return static_cast<std::uint64_t>(index) >= static_cast<std::uint64_t>(extent); }

}  // namespace

std::int64_t take_along(const Tensor& x, const Tensor& indices, const AroundAxis& around, std::int64_t count, Tensor& y) {
  First first;
  if (y.size() == 0) return -1;
  const std::int64_t after = around.after, slab = around.extent * after, slabs = indices.size() / (count * after);
  visit_indices(indices, [&](const auto list) {
    visit_size(x.dtype(), [&]<class T>(T) {
      parallel_for(around.before * count, cut_of(kCut, after), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin, n; row < end; row += n) {   // those of one slab
          const std::int64_t b = row / count, k = row % count;
          n = std::min(count - k, end - row);
          const std::int64_t at = (b % slabs * count + k) * after;
          const auto* index = list.data() + at;
          const T* from = elements<T>(x) + b * slab;
          T* to = elements<T>(y) + row * after;
          for (std::int64_t i = 0; i < n * after; i += after)
            for (std::int64_t a = 0; a < after; ++a) {
              if (outside(index[i + a], around.extent)) return first.found(at + i + a);
              to[i + a] = from[index[i + a] * after + a];
            }
        }
      });
    });
  });
  return first.result();
}

// Cut where no two threads meet, so that sums are in the order of k: between slabs, or, where these are few, between columns.
std::int64_t add_along(const Tensor& x, const Tensor& indices, const AroundAxis& around, std::int64_t count, Tensor& y) {
  constexpr std::int64_t few = 32, narrow = 64;
  First first;
  clear(y);
  if (x.size() == 0) return -1;
  const std::int64_t after = around.after, slab = around.extent * after, slabs = indices.size() / (count * after);
  const std::int64_t strips = around.before < few ? std::clamp<std::int64_t>(after / narrow, 1, few) : 1, width = (after + strips - 1) / strips;
  visit_indices(indices, [&](const auto list) {
    visit_any(x.dtype(), [&]<class T>(T) {
      if constexpr (!std::is_same_v<T, bool>) {
        using U = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;   // which wraps around
        parallel_for(around.before * strips, cut_of(kCut, count * width), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t piece = begin; piece < end; ++piece) {
            const std::int64_t b = piece / strips, left = piece % strips * width, right = std::min(left + width, after), at = b % slabs * count * after;
            const auto* index = list.data() + at;
            const U* from = elements<U>(x) + b * count * after;
            U* to = elements<U>(y) + b * slab;
            for (std::int64_t i = 0; i < count * after; i += after)
              for (std::int64_t a = left; a < right; ++a) {
                if (outside(index[i + a], around.extent)) return first.found(at + i + a);
                U& sum = to[index[i + a] * after + a];
                sum = static_cast<U>(sum + from[i + a]);
              }
          }
        });
      }
    });
  });
  return first.result();
}

}  // namespace tapedeck::kernels
