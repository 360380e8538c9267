// Gathers and scatter-adds single elements along an axis, and reports the first index out of range. Threads
// split the rows to gather; in sums, each destination element belongs to one thread.
#include "kernels/layout/take_along_axis.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/layout/copy.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kTakeAlongAxisCut = {1 << 14, 1 << 16};   // of elements
constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();

/// The minimum of values that several threads report.
class AtomicMin {
 public:
  void update(std::int64_t at) {
    for (std::int64_t old = at_; at < old && !at_.compare_exchange_weak(old, at);) {}
  }
  std::int64_t result() const { return at_ == kNowhere ? -1 : at_.load(); }

 private:
  std::atomic<std::int64_t> at_ = kNowhere;
};

bool outside(std::int64_t index, std::int64_t extent) {
  return static_cast<std::uint64_t>(index) >= static_cast<std::uint64_t>(extent);
}

// Calls f(i, offset in the slab) for the indices in columns [left, right) of n rows of `after` indices. Stops
// before the first index out of range and returns its position, else -1.
template <class Index, class F> std::int64_t each_index(const Index* index, std::int64_t n,
                                                        std::int64_t after, std::int64_t left,
                                                        std::int64_t right, std::int64_t extent, const F& f) {
  if (after == 1) {   // avoids the overhead of an inner loop of length 1
    for (std::int64_t i = 0; i < n; ++i) {
      if (outside(index[i], extent)) return i;
      f(i, index[i]);
    }
    return -1;
  }
  for (std::int64_t row = 0; row < n * after; row += after)
    for (std::int64_t a = left; a < right; ++a) {
      const std::int64_t i = row + a;
      if (outside(index[i], extent)) return i;
      f(i, index[i] * after + a);
    }
  return -1;
}

}   // namespace

std::int64_t take_along_axis(const Tensor& x, const Tensor& indices, const AxisView& view, std::int64_t count,
                             Tensor& y) {
  AtomicMin first;
  if (y.size() == 0) return -1;
  const std::int64_t after = view.after, slab = view.extent * after, slabs = indices.size() / (count * after);
  visit_indices(indices, [&](const auto list) {
    visit_size(x.dtype(), [&]<class T>(T) {
      parallel_for(view.before * count, cut_of(kTakeAlongAxisCut, after),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin, n; row < end; row += n) {   // the rows of one slab
                       const std::int64_t b = row / count, k = row % count;
                       n = std::min(count - k, end - row);
                       const std::int64_t at = (b % slabs * count + k) * after;
                       const auto* index = list.data() + at;
                       const T* from = elements<T>(x) + b * slab;
                       T* to = elements<T>(y) + row * after;
                       const std::int64_t bad =
                           each_index(index, n, after, 0, after, view.extent,
                                      [=](std::int64_t i, std::int64_t offset) { to[i] = from[offset]; });
                       if (bad >= 0) return first.update(at + bad);
                     }
                   });
    });
  });
  return first.result();
}

// Tasks write to disjoint elements, so that sums are in the order of k. A task is a slab or, if slabs are
// few, a strip of adjacent columns of a slab.
std::int64_t add_along_axis(const Tensor& x, const Tensor& indices, const AxisView& view, std::int64_t count,
                            Tensor& y) {
  constexpr std::int64_t few = 32, narrow = 64;
  AtomicMin first;
  if (x.size() == 0) return clear(y), -1;
  const std::int64_t after = view.after, slab = view.extent * after, slabs = indices.size() / (count * after);
  const std::int64_t strips = view.before < few ? std::clamp<std::int64_t>(after / narrow, 1, few) : 1,
                     width = (after + strips - 1) / strips;
  if (strips > 1) clear(y);
  visit_indices(indices, [&](const auto list) {
    visit_any(x.dtype(), [&]<class T>(T) {
      if constexpr (!std::is_same_v<T, bool>) {
        using U = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                              std::type_identity<T>>::type;   // unsigned overflow wraps
        parallel_for(
            view.before * strips, cut_of(kTakeAlongAxisCut, count * width),
            [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t piece = begin; piece < end; ++piece) {
                const std::int64_t b = piece / strips, left = piece % strips * width,
                                   right = std::min(left + width, after), at = b % slabs * count * after;
                const auto* index = list.data() + at;
                const U* from = elements<U>(x) + b * count * after;
                U* to = elements<U>(y) + b * slab;
                if (strips == 1) std::fill_n(to, slab, U(0));   // stays in the cache for the sums
                const std::int64_t bad = each_index(index, count, after, left, right, view.extent,
                                                    [=](std::int64_t i, std::int64_t offset) {
                                                      to[offset] = static_cast<U>(to[offset] + from[i]);
                                                    });
                if (bad >= 0) return first.update(at + bad);
              }
            });
      }
    });
  });
  return first.result();
}

}   // namespace tapedeck::kernels
