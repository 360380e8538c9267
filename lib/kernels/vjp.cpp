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
  parallel_for(n, kElementwise, [&](std::int64_t begin, std::int64_t end) {
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
  parallel_for(pieces, cut_of(kElementwise, piece), [&](std::int64_t first, std::int64_t last) {
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

// How the pass over rows is cut, by sizes alone: into bands of whole steps along the outermost axes, and rows into parts. Where
// several bands or parts add to the same elements of a gradient, each has a copy of it; these are added up in order.
class Grid {
 public:
  template <class T> Grid(const Rows& rows, const VjpRow<T>& pass, int inputs, const Tensor* dx) : part_(rows.inner) {
    constexpr std::int64_t band = 1 << 14, few = 8, most = 32;   // elements, bands
    const std::int64_t n = rows.count * rows.inner;
    std::int64_t steps = 1;
    int axis = rows.outer;   // innermost of those that are cut
    while (axis > 0 && steps < few) steps *= rows.dims[--axis];
    rows_of_step_ = rows.count / steps;
    if (rows.inner > 2 * band) part_ = band;
    parts_ = (rows.inner + part_ - 1) / part_;
    std::int64_t bands = std::min({n / band, steps, most});
    for (int i = 0; i < inputs; ++i) {
      const bool sums = pass.put[i] == Put::sum, adds = pass.put[i] == Put::add;
      for (int d = axis; d < rows.outer; ++d) across_bands_[i] |= (sums || adds) && rows.strides[d][static_cast<std::size_t>(i)] == 0;
      across_parts_[i] = sums;
      if (across_bands_[i]) bands = std::min(bands, n / 4 / dx[i].size());   // copies take little beside what is read
    }
    steps_of_band_ = bands > 1 ? (steps + bands - 1) / bands : steps;
    bands_ = (steps + steps_of_band_ - 1) / steps_of_band_;
  }

  std::int64_t pieces() const { return bands_ * parts_; }
  std::int64_t copies(int i) const { return (across_bands_[i] ? bands_ : 1) * (across_parts_[i] ? parts_ : 1); }
  std::int64_t copy_of(int i, std::int64_t piece) const {
    const std::int64_t band = across_bands_[i] ? piece / parts_ : 0, part = across_parts_[i] ? piece % parts_ : 0;
    return across_parts_[i] ? band * parts_ + part : band;
  }
  std::int64_t first_row(std::int64_t band) const { return band * steps_of_band_ * rows_of_step_; }
  // Calls f(row, offsets, begin, end) for the rows of a piece.
  template <class F> void each(const Rows& rows, std::int64_t piece, const F& f) const {
    const std::int64_t band = piece / parts_, begin = piece % parts_ * part_, end = std::min(begin + part_, rows.inner);
    rows.each(first_row(band), std::min(first_row(band + 1), rows.count), [&](std::int64_t r, const Offsets& offset) { f(r, offset, begin, end); });
  }

 private:
  std::int64_t part_, parts_, bands_, steps_of_band_, rows_of_step_;
  bool across_bands_[kMaxInputs] = {}, across_parts_[kMaxInputs] = {};
};

template <class T> void add_up(const T* copies, std::int64_t count, T* y, std::int64_t n) {
  parallel_for(n, cut_of(kElementwise, count), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t j = begin; j < end; ++j) y[j] += copies[c * n + j];
  });
}

template <class T>
void run_rows(VjpLoop<T> loop, VjpRow<T> all, unsigned read, int inputs, const Tensor& dy, const Tensor* const* x, const Tensor* y, const Tensor* dx) {
  const Shape* shapes[kMaxInputs];
  for (int i = 0; i < inputs; ++i) shapes[i] = &x[i]->shape();
  const Rows rows = rows_of(dy.shape(), {shapes, static_cast<std::size_t>(inputs)});
  for (int i = 0; i < inputs; ++i) if (all.put[i] == Put::sum && rows.moves[static_cast<std::size_t>(i)]) all.put[i] = Put::add;
  const Grid grid(rows, all, inputs, dx);
  std::vector<T> copies[kMaxInputs];
  for (int i = 0; i < inputs; ++i)
    if (grid.copies(i) > 1) copies[i].resize(static_cast<std::size_t>(grid.copies(i) * dx[i].size()));
  const auto run_piece = [&](std::int64_t piece) {
    VjpRow<T> pass = all;
    Row<T> row;
    T* first[kMaxInputs];
    for (int i = 0; i < inputs; ++i)
      first[i] = copies[i].empty() ? all.dx[i] : copies[i].data() + grid.copy_of(i, piece) * dx[i].size();
    for (int i = 0; i <= inputs; ++i) row.x[i] = {kNothing<T>, 0};
    grid.each(rows, piece, [&](std::int64_t r, const Offsets& offset, std::int64_t begin, std::int64_t end) {
      for (int i = 0; i < inputs; ++i) {
        const bool moves = rows.moves[static_cast<std::size_t>(i)];
        const std::int64_t at = offset[static_cast<std::size_t>(i)] + (moves ? begin : 0);
        if (read >> i & 1) row.set(i, elements<T>(*x[i]) + at, moves);
        if (first[i]) pass.dx[i] = first[i] + at;
      }
      if (read >> inputs & 1) row.set(inputs, elements<T>(*y) + r * rows.inner + begin, true);
      pass.dy = elements<T>(dy) + r * rows.inner + begin;
      vjp_row(loop, pass, row, inputs, end - begin);
    });
  };
  parallel_for(grid.pieces(), rows.count * rows.inner < kElementwise.least ? grid.pieces() : 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) run_piece(piece);
  });
  for (int i = 0; i < inputs; ++i)
    if (!copies[i].empty()) add_up(copies[i].data(), grid.copies(i), all.dx[i], dx[i].size());
}

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
  run_rows(loop, pass, read, inputs, dy, x, y, dx);
}

}  // namespace

void run_vjp(const VjpKernel& k, const Tensor& dy, const Tensor* const* x, const Tensor* y, const Tensor* dx) {
  if (dy.dtype() == DType::f32) run(k.f32, k, dy, x, y, dx);
  else run(k.f64, k, dy, x, y, dx);
}

}  // namespace tapedeck::kernels
