// Numbers distinct elements, counts and finds nonzeros, and selects by masks.
#include "kernels/sort/unique.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/layout/copy.h"
#include "kernels/simd/short_copy.h"
#include "kernels/sort/order_key.h"

namespace tapedeck::kernels {

// An open-addressing hash table with at least twice as many slots as elements.
UniqueElements unique_elements(const Tensor& x) {
  const auto n = static_cast<std::size_t>(x.size());
  UniqueElements result{std::vector<std::int64_t>(n), {}};
  const auto size = std::bit_ceil(2 * n + 2);
  const int shift = 64 - std::countr_zero(size);
  visit(x.dtype(), [&]<class T>(T) {
    std::vector<std::int64_t> table(size, -1);
    const T* element = elements<T>(x);
    for (std::size_t i = 0; i < n; ++i) {
      const auto key = order_key(element[i]);
      // Fibonacci hashing, by 2^64 divided by the golden ratio.
      std::size_t at = static_cast<std::size_t>(std::uint64_t{key} * 0x9e3779b97f4a7c15u >> shift);
      const auto is_other = [&](std::int64_t number) {
        return order_key(element[result.first[static_cast<std::size_t>(number)]]) != key;
      };
      while (table[at] >= 0 && is_other(table[at]))
        at = (at + 1) & (size - 1);
      if (table[at] < 0) {
        table[at] = static_cast<std::int64_t>(result.first.size());
        result.first.push_back(static_cast<std::int64_t>(i));
      }
      result.number[i] = table[at];
    }
  });
  return result;
}

namespace {

constexpr Cut kUniqueCut = {1 << 16, 1 << 18};   // of elements

// Counts in blocks, whose counts fit into narrow integers.
template <class T> std::int64_t nonzeros(const T* x, std::int64_t n) {
  constexpr std::int64_t block = sizeof(T) == 1 ? 128 : 4096;
  using Count = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::int32_t>;
  std::int64_t count = 0;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    Count some = 0;
    for (std::int64_t i = begin; i < std::min(begin + block, n); ++i)
      some = static_cast<Count>(some + (x[i] != T(0)));
    count += some;
  }
  return count;
}

}   // namespace

std::int64_t count_nonzero(const Tensor& x) {
  std::atomic<std::int64_t> count = 0;
  visit(x.dtype(), [&]<class T>(T) {
    parallel_for(x.size(), kUniqueCut, [&](std::int64_t begin, std::int64_t end) {
      count += nonzeros(elements<T>(x) + begin, end - begin);
    });
  });
  return count;
}

namespace {

// Adjacent axes that are all kept or all counted, from the outside in.
struct KindRun {
  std::int64_t n;
  bool kept;
  std::int64_t x, y;   // strides in x and in y
};
using Kinds = std::vector<KindRun>;

Kinds runs_of(const Shape& x, unsigned axes) {
  Kinds runs;
  for (int d = 0; d < x.ndim(); ++d) {
    const bool kept = !(axes >> (x.ndim() - 1 - d) & 1);
    if (x[d] == 1) continue;
    if (!runs.empty() && runs.back().kept == kept)
      runs.back().n *= x[d];
    else
      runs.push_back({x[d], kept, 1, 1});
  }
  std::int64_t step = 1, kept_step = 1;
  for (auto r = runs.rbegin(); r != runs.rend(); ++r) {
    r->x = step, r->y = r->kept ? kept_step : 0;
    step *= r->n;
    if (r->kept) kept_step *= r->n;
  }
  return runs;
}

template <class T> void add_counts(const T* x, const KindRun* run, std::size_t left, std::int64_t* y) {
  if (left > 1) {
    for (std::int64_t i = 0; i < run->n; ++i)
      add_counts(x + i * run->x, run + 1, left - 1, y + i * run->y);
  } else if (run->kept) {
    for (std::int64_t i = 0; i < run->n; ++i)
      y[i] += x[i] != T(0);
  } else {
    *y += nonzeros(x, run->n);
  }
}

}   // namespace

// Threads split the outermost run of kept axes.
void count_nonzero(const Tensor& x, unsigned axes, Tensor& y) {
  if (y.size() == 1 && x.size()) return void(*elements<std::int64_t>(y) = kernels::count_nonzero(x));
  clear(y);
  if (x.size() == 0) return;
  const Kinds runs = runs_of(x.shape(), axes);
  const std::size_t outer = runs[0].kept ? 0 : 1;   // split only where each piece owns its part of y
  visit(x.dtype(), [&]<class T>(T) {
    parallel_for(runs[outer].n, cut_of(kUniqueCut, x.size() / runs[outer].n),
                 [&](std::int64_t begin, std::int64_t end) {
                   Kinds piece = runs;
                   piece[outer].n = end - begin;
                   add_counts(elements<T>(x) + begin * runs[outer].x, piece.data(), piece.size(),
                              elements<std::int64_t>(y) + begin * runs[outer].y);
                 });
  });
}

void boolean_mask(const Tensor& x, const Tensor& mask, const AxisView& view, Tensor& y) {
  if (y.size() == 0) return;
  const std::int64_t count = y.size() / view.before / view.after, after = view.after;
  const auto* held = elements<std::uint8_t>(mask);   // 0 or 1
  visit_size(x.dtype(), [&]<class T>(T) {
    with_copy_of(after * static_cast<std::int64_t>(sizeof(T)), [&](auto copy) {
      parallel_for(
          view.before, cut_of(kUniqueCut, view.extent * after), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t b = begin; b < end; ++b) {
              const T* from = elements<T>(x) + b * view.extent * after;
              T* to = elements<T>(y) + b * count * after;
              if (after == 1) {   // branch-free: every element is written, and overwritten unless kept
                for (std::int64_t k = 0, kept = 0; kept < count; ++k) {
                  to[kept] = from[k];
                  kept += held[k];
                }
              } else {
                for (std::int64_t k = 0; k < view.extent; ++k) {
                  if (!held[k]) continue;
                  copy(reinterpret_cast<const std::byte*>(from + k * after),
                       reinterpret_cast<std::byte*>(to));
                  to += after;
                }
              }
            }
          });
    });
  });
}

void boolean_mask_adjoint(const Tensor& x, const Tensor& mask, const AxisView& view, Tensor& y) {
  if (x.size() == 0) return clear(y);
  const std::int64_t count = x.size() / view.before / view.after, after = view.after;
  const auto* held = elements<std::uint8_t>(mask);
  visit_size(x.dtype(), [&]<class T>(T) {
    with_copy_of(after * static_cast<std::int64_t>(sizeof(T)), [&](auto copy) {
      parallel_for(view.before, cut_of(kUniqueCut, view.extent * after),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t b = begin; b < end; ++b) {
                       const T* from = elements<T>(x) + b * count * after;
                       T* to = elements<T>(y) + b * view.extent * after;
                       if (after == 1) {
                         for (std::int64_t k = 0, put = 0; k < view.extent; ++k) {
                           const T next = from[std::min(put, count - 1)];
                           to[k] = static_cast<T>(next & -T(held[k]));
                           put += held[k];
                         }
                       } else {
                         for (std::int64_t k = 0; k < view.extent; ++k, to += after) {
                           if (!held[k]) {
                             std::fill_n(to, after, T(0));
                             continue;
                           }
                           copy(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to));
                           from += after;
                         }
                       }
                     }
                   });
    });
  });
}

void nonzero(const Tensor& x, Tensor& y) {
  const int ndim = x.ndim();
  std::int64_t* position = elements<std::int64_t>(y);
  visit(x.dtype(), [&]<class T>(T) {
    const T* element = elements<T>(x);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      if (element[i] == T(0)) continue;
      for (std::int64_t d = ndim, rest = i; d-- > 0; rest /= x.shape()[static_cast<int>(d)])
        position[d] = rest % x.shape()[static_cast<int>(d)];
      position += ndim;
    }
  });
}

}   // namespace tapedeck::kernels
