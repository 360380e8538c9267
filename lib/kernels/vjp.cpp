// What surrounds the fused backward loops: types, shapes, rows, tails, and sums over broadcast axes in a fixed order.
#include "kernels/vjp.h"

#include <cstring>

#include "base/parallel.h"
#include "kernels/row.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {
namespace {

// The groups up to n, then what is left of the row through buffers.
template <class T> void vjp_row(VjpLoop<T> loop, VjpRow<T>& pass, Row<T>& row, int inputs, std::int64_t n) {
  const auto go = [&](std::int64_t count) {
    std::copy(row.x, row.x + inputs + 1, pass.x);
    pass.n = count;
    loop(pass);
  };
  const std::int64_t main = whole<T>(n), left = n - main;
  go(main);
  if (left == 0) return;
  VjpRow<T> before = pass;
  alignas(64) T dy[kGroup<T>], dx[kMaxInputs][kGroup<T>];
  copy_first(pass.dy + main, left, dy);
  pass.dy = dy;
  for (int i = 0; i < inputs; ++i) {
    if (pass.put[i] == Put::nothing) continue;
    pass.dx[i] = dx[i];
    pass.put[i] = Put::store;
  }
  row.cut(main, n);
  go(kGroup<T>);
  for (int i = 0; i < inputs; ++i) {
    if (before.put[i] == Put::store) std::copy(dx[i], dx[i] + left, before.dx[i] + main);
    if (before.put[i] == Put::add) for (std::int64_t j = 0; j < left; ++j) before.dx[i][main + j] += dx[i][j];
    if (before.put[i] == Put::sum) for (std::int64_t j = 0; j < left; ++j) *before.dx[i] += dx[i][j];
  }
  pass = before;
}

// The part of a flat pass that starts at `begin`.
template <class T> void advance(VjpRow<T>& pass, Row<T>& row, int inputs, std::int64_t begin) {
  pass.dy += begin;
  for (Stream<T>& s : row.x) if (s.p) s.p += begin & s.mask;
  for (int i = 0; i < inputs; ++i) if (pass.put[i] == Put::store) pass.dx[i] += begin;
}

template <class T> void run_flat(VjpLoop<T> loop, const VjpRow<T>& all, const Row<T>& row, int inputs, std::int64_t n) {
  parallel_for(n, 4 * kPiece, [&](std::int64_t begin, std::int64_t end) {
    VjpRow<T> pass = all;
    Row<T> part = row;
    advance(pass, part, inputs, begin);
    vjp_row(loop, pass, part, inputs, end - begin);
  });
}

template <class T> T sum_pairwise(const T* x, std::int64_t n) {
  if (n <= 8) {
    T s = 0;
    for (std::int64_t i = 0; i < n; ++i) s += x[i];
    return s;
  }
  return sum_pairwise(x, n / 2) + sum_pairwise(x + n / 2, n - n / 2);
}

// Gradients of single elements: one sum for each short piece, then these in a tree, so that errors grow with log n.
template <class T> void sum_flat(VjpLoop<T> loop, const VjpRow<T>& all, const Row<T>& row, int inputs, std::int64_t n) {
  constexpr std::int64_t piece = 4096;
  const std::int64_t pieces = (n + piece - 1) / piece;
  std::vector<T> sums(static_cast<std::size_t>(pieces * inputs));
  parallel_for(pieces, 4 * kPiece / piece, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k < last; ++k) {
      VjpRow<T> pass = all;
      Row<T> part = row;
      advance(pass, part, inputs, k * piece);
      for (int i = 0; i < inputs; ++i) if (pass.put[i] == Put::sum) pass.dx[i] = &sums[static_cast<std::size_t>(i * pieces + k)];
      vjp_row(loop, pass, part, inputs, std::min(piece, n - k * piece));
    }
  });
  for (int i = 0; i < inputs; ++i) if (all.put[i] == Put::sum) *all.dx[i] = sum_pairwise(&sums[static_cast<std::size_t>(i * pieces)], pieces);
}

// What a pass reads only for gradients that nobody wants need not be there.
template <class T> alignas(64) constexpr T kNothing[kGroup<T>] = {};

template <class T> void run(VjpLoop<T> loop, const VjpKernel& k, const Tensor& dy, const Tensor* const* x, const Tensor* y, const Tensor* dx) {
  const int inputs = k.inputs;
  unsigned read = 0;
  const std::int64_t n = dy.size();
  VjpRow<T> pass{};
  Row<T> row;
  bool flat = true, sums = false;
  for (int i = 0; i < inputs; ++i) {
    const bool all = x[i]->size() == n;
    flat &= all || x[i]->size() == 1;
    if (!dx[i].defined()) continue;
    read |= k.reads[i];
    pass.dx[i] = reinterpret_cast<T*>(dx[i].raw());
    pass.put[i] = all ? Put::store : Put::sum;
    if (all) continue;
    sums = true;
    std::memset(dx[i].raw(), 0, static_cast<std::size_t>(dx[i].nbytes()));
  }
  if (n == 0) return;
  const bool reads_y = read >> inputs & 1;
  for (int i = 0; i <= inputs; ++i) row.x[i] = {kNothing<T>, 0};
  pass.dy = elements<T>(dy);
  if (flat) {
    for (int i = 0; i < inputs; ++i) if (read >> i & 1) row.set(i, elements<T>(*x[i]), x[i]->size() == n);
    if (reads_y) row.set(inputs, elements<T>(*y), true);
    return sums ? sum_flat(loop, pass, row, inputs, n) : run_flat(loop, pass, row, inputs, padded<T>(n));
  }
  const Shape* shapes[kMaxInputs];
  for (int i = 0; i < inputs; ++i) shapes[i] = &x[i]->shape();
  const Rows rows = rows_of(dy.shape(), {shapes, static_cast<std::size_t>(inputs)});
  for (int i = 0; i < inputs; ++i) if (pass.put[i] == Put::sum && rows.moves[static_cast<std::size_t>(i)]) pass.put[i] = Put::add;
  rows.each([&](std::int64_t r, const Offsets& offset) {
    for (int i = 0; i < inputs; ++i) {
      if (read >> i & 1) row.set(i, elements<T>(*x[i]) + offset[static_cast<std::size_t>(i)], rows.moves[static_cast<std::size_t>(i)]);
      if (dx[i].defined()) pass.dx[i] = reinterpret_cast<T*>(dx[i].raw()) + offset[static_cast<std::size_t>(i)];
    }
    if (reads_y) row.set(inputs, elements<T>(*y) + r * rows.inner, true);
    pass.dy = elements<T>(dy) + r * rows.inner;
    vjp_row(loop, pass, row, inputs, rows.inner);
  });
}

}  // namespace

void run_vjp(const VjpKernel& k, const Tensor& dy, const Tensor* const* x, const Tensor* y, const Tensor* dx) {
  if (dy.dtype() == DType::f32) run(k.f32, k, dy, x, y, dx);
  else run(k.f64, k, dy, x, y, dx);
}

}  // namespace tapedeck::kernels
