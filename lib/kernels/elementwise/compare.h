// Elementwise comparisons and selection: kernels whose operands and results differ in dtype.
#pragma once
#include <algorithm>

#include "core/bytes.h"
#include "core/visit.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/limits.h"

namespace tapedeck::kernels {

/// out[i] = f(a[i], b[i]) for a row of n elements. An operand that is broadcast along the row is a single
/// element. Written so that the compiler vectorizes each loop.
template <class Out, class T, class F>
void row_of_two(Out* out, const T* a, bool a_moves, const T* b, bool b_moves, std::int64_t n, F f) {
  if (a_moves && b_moves)
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = f(a[i], b[i]);
  else if (a_moves)
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = f(a[i], *b);
  else if (b_moves)
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = f(*a, b[i]);
  else
    std::fill_n(out, n, f(*a, *b));
}

/// y = f(a, b), where a and b have dtype T and y is bool.
template <class T, class F> void compare_as(const Tensor& a, const Tensor& b, Tensor& y, F f) {
  if (y.size() == 0) return;
  const Shape* shapes[] = {&a.shape(), &b.shape()};
  const Rows rows = rows_of(y.shape(), shapes);
  each_part(rows, kCompareCut,
            [&](std::int64_t r, const Offsets& offset, std::int64_t begin, std::int64_t end) {
              const bool am = rows.moves[0], bm = rows.moves[1];
              const T *p = elements<T>(a) + offset[0] + (am ? begin : 0),
                      *q = elements<T>(b) + offset[1] + (bm ? begin : 0);
              row_of_two(elements<bool>(y) + r * rows.inner + begin, p, am, q, bm, end - begin, f);
            });
}

/// y = f(a, b), dispatched on the dtype: `compare` for ordered dtypes, `compare_any` for every dtype.
template <class F> void compare(const Tensor& a, const Tensor& b, Tensor& y, F f) {
  visit(a.dtype(), [&](auto t) { compare_as<decltype(t)>(a, b, y, f); });
}
template <class F> void compare_any(const Tensor& a, const Tensor& b, Tensor& y, F f) {
  visit_any(a.dtype(), [&](auto t) { compare_as<decltype(t)>(a, b, y, f); });
}

/// y = condition ? a : b, element by element.
inline void choose(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& y) {
  if (y.size() == 0) return;
  const Shape* shapes[] = {&condition.shape(), &a.shape(), &b.shape()};
  const Rows rows = rows_of(y.shape(), shapes);
  visit_size(y.dtype(), [&](auto t) {
    using T = decltype(t);
    each_part(rows, kCompareCut,
              [&](std::int64_t r, const Offsets& offset, std::int64_t begin, std::int64_t end) {
                const auto at = [&](std::size_t i) { return offset[i] + (rows.moves[i] ? begin : 0); };
                const bool* c = elements<bool>(condition) + at(0);
                const T* p = elements<T>(a) + at(1);
                const T* q = elements<T>(b) + at(2);
                T* out = elements<T>(y) + r * rows.inner + begin;
                const std::int64_t n = end - begin;
                if (!rows.moves[0]) {
                  const bool chosen = *c;
                  const T* from = chosen ? p : q;
                  if (rows.moves[chosen ? 1 : 2])
                    std::copy_n(from, n, out);
                  else
                    std::fill_n(out, n, *from);
                } else if (rows.moves[1] && rows.moves[2]) {
                  for (std::int64_t i = 0; i < n; ++i)
                    out[i] = c[i] ? p[i] : q[i];
                } else {
                  const std::int64_t pm = rows.moves[1] ? -1 : 0, qm = rows.moves[2] ? -1 : 0;
                  for (std::int64_t i = 0; i < n; ++i)
                    out[i] = c[i] ? p[i & pm] : q[i & qm];
                }
              });
  });
}

}   // namespace tapedeck::kernels
