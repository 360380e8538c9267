// The code around the loops of elementwise forward passes: dtypes, shapes, rows, tails, threads.
#include "kernels/elementwise/map.h"

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/trace.h"
#include "core/visit.h"
#include "kernels/elementwise/half_row.h"
#include "kernels/elementwise/short_rows.h"

namespace tapedeck::kernels {
namespace {

// Every operand has all elements, or a single one. Storage is padded to whole groups, so there is no tail.
template <class T, class Loop> void run_flat(Loop loop, int operands, Refs x, Tensor& y) {
  const std::int64_t n = y.size();
  Row<T> row;
  for (int i = 0; i < operands; ++i)
    row.set(i, elements<T>(x[i]), x[i].size() == n);
  T* out = elements<T>(y);
  if (is_few(n)) return loop(out, row.x, padded<T>(n));
  parallel_for(n, kElementwise, [&](std::int64_t begin, std::int64_t end) {
    Stream<T> part[kMaxOperands];
    for (int i = 0; i < operands; ++i)
      part[i] = {row.x[i].p + (begin & row.x[i].mask), row.x[i].mask};
    loop(out + begin, part, padded<T>(end - begin));
  });
}

template <class T, class Loop> void run_rows(Loop loop, int operands, Refs x, Tensor& y) {
  const Shape* shapes[kMaxOperands];
  for (int i = 0; i < operands; ++i)
    shapes[i] = &x[i].shape();
  const Rows rows = rows_of(y.shape(), {shapes, static_cast<std::size_t>(operands)});
  // The tail of a row is computed as a whole group that ends with the row, so that some elements are computed
  // twice. If y shares memory with an operand, or the row is short, the group instead begins with the tail
  // and reads beyond the row, where there are more rows or padding. The tail is copied first if the elements
  // are in the tensor's handle, or if another thread may be overwriting the next row of the operand.
  const bool alone = is_few(y.size());
  bool readable = true, apart = true;
  for (int i = 0; i < operands; ++i) {
    const bool other = elements<T>(x[i]) != elements<T>(y);
    apart &= other;
    readable &= (x[i].handle()->buffer || x[i].size() <= rows.inner) && (alone || other);
  }
  const auto run_row = [&](Row<T>& row, std::int64_t first, std::int64_t n) {
    T* const out = elements<T>(y) + first;
    const std::int64_t main = whole<T>(n);
    loop(out, row.x, main);
    if (main == n) return;
    if (apart && main) {
      const std::int64_t last = n - kGroup<T>;
      for (int i = 0; i < operands; ++i)
        row.x[i].p += last & row.x[i].mask;
      return loop(out + last, row.x, kGroup<T>);
    }
    if (!readable)
      row.cut(main, n);
    else
      for (int i = 0; i < operands; ++i)
        row.x[i].p += main & row.x[i].mask;
    alignas(64) T last[kGroup<T>];
    loop(last, row.x, kGroup<T>);
    std::copy(last, last + (n - main), out + main);
  };
  const auto operand = [&](int i) { return elements<T>(x[i]); };
  if (are_short(rows)) return ShortRows<T, kMaxOperands>(rows).each(operand, run_row);
  each_part(rows, kElementwise,
            [&](std::int64_t r, const Offsets& offset, std::int64_t begin, std::int64_t end) {
              Row<T> row;
              for (int i = 0; i < std::min(operands, kMaxOperands); ++i) {   // unknown to compilers
                const bool moves = rows.moves[static_cast<std::size_t>(i)];
                row.set(i, operand(i) + offset[static_cast<std::size_t>(i)] + (moves ? begin : 0), moves);
              }
              run_row(row, r * rows.inner + begin, end - begin);
            });
}

template <class T, class Loop> void run_loop(Loop loop, int operands, Refs x, Tensor& y) {
  const std::int64_t n = y.size();
  if (n == 0) return;
  bool flat = true;
  for (int i = 0; i < operands; ++i)
    flat &= x[i].size() == n || x[i].size() == 1;
  if (flat)
    run_flat<T>(loop, operands, x, y);
  else
    run_rows<T>(loop, operands, x, y);
}

template <class T> void run(MapLoop<T> loop, int operands, Refs x, Tensor& y) {
  run_loop<T>(loop, operands, x, y);
}
// Calls f with the loop over halves: the kernel's own, or its f32 loop on converted blocks.
template <class F> void with_half_loop(const MapKernel& k, DType dtype, const F& f) {
  if (const MapLoop<Half> loop = dtype == DType::f16 ? k.f16 : k.bf16)
    f(loop);
  else
    f(HalfMapLoop{dtype, k.f32, k.operands});
}

template <class T, class Loop> void run_few(Loop loop, int operands, Refs x, Tensor& y) {
  Stream<T> streams[kMaxOperands];
  for (int i = 0; i < operands; ++i)
    streams[i] = {elements<T>(x[i]), -1};
  loop(elements<T>(y), streams, padded_few<T>(y.size()));
}

}   // namespace

void run_few(const MapKernel& k, Refs x, Tensor& y) {
  const DType dtype = y.handle()->dtype;
  if (dtype == DType::f32)
    run_few<float>(k.f32, k.operands, x, y);
  else if (dtype == DType::f64)
    run_few<double>(k.f64, k.operands, x, y);
  else
    with_half_loop(k, dtype, [&](auto loop) { run_few<Half>(loop, k.operands, x, y); });
}

void run_map(const MapKernel& k, Refs x, Tensor& y) {
  if (thread_state.trace) [[unlikely]]
    thread_state.trace->on_map(k, x, y);
  switch (y.dtype()) {
    case DType::f32:
      return run(k.f32, k.operands, x, y);
    case DType::f64:
      return run(k.f64, k.operands, x, y);
    case DType::i8:
      return run(k.i8, k.operands, x, y);
    case DType::i32:
      return run(k.i32, k.operands, x, y);
    case DType::i64:
      return run(k.i64, k.operands, x, y);
    case DType::c64:
      return run(k.c64, k.operands, x, y);
    case DType::c128:
      return run(k.c128, k.operands, x, y);
    case DType::f16:
    case DType::bf16:
      return with_half_loop(k, y.dtype(), [&](auto loop) { run_loop<Half>(loop, k.operands, x, y); });
    default:
      return run(k.u8, k.operands, x, y);
  }
}

}   // namespace tapedeck::kernels
