// Arrangements made of other ops. In: tensors of any dtype. Out: their elements moved, repeated or laid out on a grid.
#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "ops/entries.h"
#include "tapedeck/ops.h"
#include "tensor/storage.h"

namespace tapedeck {
namespace {

// x seen as the elements before, along and after an axis, with that axis `count` times as long behind them.
Tensor repeated(const Tensor& x, std::int64_t count, int at) {
  Shape shape = x.shape();
  std::int64_t before = 1, after = 1, extent;
  for (int d = 0; d <= at; ++d) before *= x.shape()[d];
  for (int d = at + 1; d < x.ndim(); ++d) after *= x.shape()[d];
  if (__builtin_mul_overflow(x.shape()[at], count, &extent)) throw_error<ShapeError>("repeat: too many elements: count is {}, x is {}", count, x.spec());
  shape.set(at, extent);
  return reshape(broadcast_to(reshape(x, {before, 1, after}), {before, count, after}), shape);
}

Tensor moved(const Tensor& x, std::int64_t shift, int at) {
  const std::int64_t n = x.shape()[at], by = n ? (shift % n + n) % n : 0;
  if (by == 0) return x;
  const std::vector<Tensor> parts = split(x, {n - by, by}, at);
  return concat({parts[1], parts[0]}, at);
}

}  // namespace

std::vector<Tensor> identity_n(std::span<const Tensor> x) {
  std::vector<Tensor> y;
  for (const Tensor& t : x) y.push_back(identity(t));
  return y;
}

Tensor fill(const Shape& shape, const Tensor& value) {
  if (value.ndim() != 0) throw_error<ShapeError>("fill: the value must be of rank 0: value is {}", value.spec());
  return broadcast_to(value, shape);
}

Tensor roll(const Tensor& x, std::int64_t shift, const Axes& axes) {
  const unsigned mask = mask_of("roll", "x", axes, x.ndim());
  Tensor y = x;
  for (int d = 0; d < x.ndim(); ++d) if (mask >> (x.ndim() - 1 - d) & 1) y = moved(y, shift, d);
  return y;
}

Tensor repeat(const Tensor& x, std::int64_t count, int axis) {
  const int at = checked_axis("repeat", "x", axis, x.ndim());
  if (count < 0) throw_error<ShapeError>("repeat: a negative count: {}", count);
  return repeated(x, count, at);
}

Tensor repeat(const Tensor& x, const std::vector<std::int64_t>& counts, int axis) {
  const int at = checked_axis("repeat", "x", axis, x.ndim());
  if (static_cast<std::int64_t>(counts.size()) != x.shape()[at]) throw_error<ShapeError>("repeat: {} counts for axis {} of x, {}", counts.size(), at, x.spec());
  std::vector<std::int64_t> from;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0) throw_error<ShapeError>("repeat: a negative count: {}", counts[i]);
    from.insert(from.end(), static_cast<std::size_t>(counts[i]), static_cast<std::int64_t>(i));
  }
  return entries(x, from, at);
}

// Each entry along the batch axis, brought to the front, picks from its own sequence.
Tensor reverse_sequence(const Tensor& x, const Tensor& lengths, int sequence_axis, int batch_axis) {
  const int sequence = checked_axis("reverse_sequence", "x", sequence_axis, x.ndim()), batch = checked_axis("reverse_sequence", "x", batch_axis, x.ndim());
  if (lengths.dtype() != DType::i32 && lengths.dtype() != DType::i64) throw_error<DTypeError>("reverse_sequence: lengths must be i32 or i64, use astype: lengths is {}", lengths.spec());
  if (sequence == batch) throw_error<ShapeError>("reverse_sequence: axis {} is both for the sequence and for the batch", batch);
  if (lengths.ndim() != 1 || lengths.shape()[0] != x.shape()[batch])
    throw_error<ShapeError>("reverse_sequence: there must be a length for each entry of axis {}: x is {}, lengths is {}", batch, x.spec(), lengths.spec());
  const std::int64_t steps = x.shape()[sequence];
  std::vector<std::int64_t> from;
  for (const std::int64_t n : lengths.to_vector<std::int64_t>()) {
    if (n < 0 || n > steps) throw_error<ShapeError>("reverse_sequence: length {} is out of range for axis {} of x, {}", n, sequence, x.spec());
    for (std::int64_t i = 0; i < steps; ++i) from.push_back(i < n ? n - 1 - i : i);
  }
  const Tensor indices = tensor(from, {x.shape()[batch], steps});
  if (batch == 0) return gather(x, indices, sequence, 1);
  std::vector<int> perm{batch}, back(static_cast<std::size_t>(x.ndim()));
  for (int d = 0; d < x.ndim(); ++d) if (d != batch) perm.push_back(d);
  for (std::size_t i = 0; i < perm.size(); ++i) back[static_cast<std::size_t>(perm[i])] = static_cast<int>(i);
  return transpose(gather(transpose(x, perm), indices, back[static_cast<std::size_t>(sequence)], 1), back);
}

Tensor conjugate_transpose(const Tensor& x) {
  if (x.ndim() < 2) throw_error<ShapeError>("conjugate_transpose: takes matrices: x is {}", x.spec());
  std::vector<int> perm(static_cast<std::size_t>(x.ndim()));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 2], perm.back());
  return transpose(x, perm);
}

std::vector<Tensor> meshgrid(std::span<const Tensor> x, Indexing indexing) {
  const int ndim = static_cast<int>(x.size());
  if (ndim > Shape::kMaxRank) throw_error<ShapeError>("meshgrid: {} tensors; 8 at most", ndim);
  const auto axis_of = [&](int i) { return indexing == Indexing::xy && ndim > 1 && i < 2 ? 1 - i : i; };
  Shape grid, one;
  for (int i = 0; i < ndim; ++i) grid.push_back(1), one.push_back(1);
  for (int i = 0; i < ndim; ++i) {
    const Tensor& t = x[static_cast<std::size_t>(i)];
    if (t.ndim() != 1) throw_error<ShapeError>("meshgrid: takes tensors of rank 1: input {} is {}", i, t.spec());
    grid.set(axis_of(i), t.shape()[0]);
  }
  std::vector<Tensor> y;
  for (int i = 0; i < ndim; ++i) {
    Shape along = one;
    along.set(axis_of(i), grid[axis_of(i)]);
    y.push_back(broadcast_to(reshape(x[static_cast<std::size_t>(i)], along), grid));
  }
  return y;
}

}  // namespace tapedeck
