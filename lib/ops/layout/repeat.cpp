// Repeating, rolling and reversing entries. In: tensors of any dtype. Out: the same elements in other
// positions.
#include "ops/layout/repeat.h"

#include <algorithm>
#include <numeric>

#include "core/format.h"
#include "kernels/layout/copy.h"
#include "kernels/layout/gather_scatter.h"
#include "kernels/layout/reverse_sequence.h"
#include "ops/axes.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/identity_op.h"
#include "ops/layout/positions.h"
#include "ops/layout/slice_or_share.h"
#include "ops/reduce/segments.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_repeat(const Call& c) {
  const auto& [from_end, count, counts] = c.attrs<RepeatAttrs>();
  require_axes(c, -from_end);
  const int axis = c.x[0].ndim() + from_end;
  Shape shape = c.x[0].shape();
  std::int64_t extent = 0;
  if (counts.empty()) {
    if (count < 0) throw_error<ShapeError>("repeat: the count is {}; use 0 or more", count);
    if (__builtin_mul_overflow(shape[axis], count, &extent))
      throw_error<ShapeError>("repeat: too many elements: count is {}, x is {}", count, c.x[0].spec());
  } else {
    if (static_cast<std::int64_t>(counts.size()) != shape[axis])
      throw_error<ShapeError>(
          "repeat: the list of counts has length {}, but axis {} of x, {}, has {} entries; use repeat(x, n) "
          "for n copies of each",
          counts.size(), axis, c.x[0].spec(), shape[axis]);
    for (const std::int64_t n : counts) {
      if (n < 0) throw_error<ShapeError>("repeat: a count is {}; use 0 or more", n);
      if (__builtin_add_overflow(extent, n, &extent))
        throw_error<ShapeError>("repeat: too many elements: x is {}", c.x[0].spec());
    }
  }
  shape.set(axis, extent);
  return {c.x[0].dtype(), shape};
}

// For each entry of the result, the index of the entry that it copies.
Tensor originals(const RepeatAttrs& a) {
  std::vector<std::int64_t> from;
  for (std::size_t i = 0; i < a.counts.size(); ++i)
    from.insert(from.end(), static_cast<std::size_t>(a.counts[i]), static_cast<std::int64_t>(i));
  return tensor(from);
}

void run_repeat(const Call& c, std::span<Tensor> y) {
  const RepeatAttrs& a = c.attrs<RepeatAttrs>();
  const kernels::AxisView view(c.x[0].shape(), c.x[0].ndim() + a.axis);
  if (a.counts.empty()) {
    kernels::StridedView places;
    places.append(kernels::wrapping_mul(view.before, view.extent), view.after);
    places.append(a.count, 0);
    places.append(view.after, 1);
    take(c.x[0], places, y[0]);
  } else {
    allocate_for(y[0]);
    if (y[0].size() == 0) return;
    kernels::gather(c.x[0], originals(a), view, y[0]);
  }
}

Tensor sum_of_repeats(const Call& c, const Tensor& dy) {
  const RepeatAttrs& a = c.attrs<RepeatAttrs>();
  if (c.x[0].size() == 0) return reshape(dy, behind_extra(dy, c.x[0].ndim(), c.x[0].shape()));
  const std::int64_t extent = c.x[0].shape()[c.x[0].ndim() + a.axis];
  if (!a.counts.empty()) return sum_of_ordered_groups(dy, originals(a), extent, a.axis);
  const kernels::AxisView view(dy.shape(), dy.ndim() + a.axis);
  return reshape(sum(reshape(dy, {kernels::wrapping_mul(view.before, extent), a.count, view.after}), 1),
                 behind_extra(dy, c.x[0].ndim(), c.x[0].shape()));
}

Spec infer_sequence(const Call& c) {
  const Tensor &x = c.x[0], &lengths = c.x[1];
  const auto& [sequence, batch] = c.attrs<SequenceAttrs>();
  require_indices(c, 1);
  require_axes(c, -std::min(sequence, batch));
  if (sequence == batch)
    throw_error<ShapeError>("reverse_sequence: axis {} is both the sequence axis and the batch axis",
                            x.ndim() + batch);
  if (lengths.ndim() != 1 || lengths.shape()[0] != x.shape()[x.ndim() + batch])
    c.throw_shape_error(fmt::format("there must be a length for each entry of axis {}", x.ndim() + batch));
  return x.spec();
}

void run_sequence(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  const int sequence = x.ndim() + c.attrs<SequenceAttrs>().sequence,
            batch = x.ndim() + c.attrs<SequenceAttrs>().batch;
  const std::vector<std::int64_t> lengths = c.x[1].to_vector<std::int64_t>();
  for (const std::int64_t n : lengths)
    if (n < 0 || n > x.shape()[sequence])
      throw_error<ShapeError>("reverse_sequence: length {} is out of range for axis {} of x, {}", n, sequence,
                              x.spec());
  kernels::reverse_sequence(x, lengths, sequence, batch, y[0]);
}

Tensor reverse_by_length(const Tensor& x, const Tensor& lengths, const SequenceAttrs& axes);
Tensor rolled(const Tensor& x, const RollAttrs& a);

Spec infer_roll(const Call& c) {
  const auto& [axis, by] = c.attrs<RollAttrs>();
  require_axes(c, -axis);
  if (by < 0 || by >= c.x[0].shape()[c.x[0].ndim() + axis])
    c.throw_shape_error(fmt::format("the axis has no entry {}", by));
  return c.x[0].spec();
}

void run_roll(const Call& c, std::span<Tensor> y) {
  if (y[0].size() == 0) return;
  const auto& [axis, by] = c.attrs<RollAttrs>();
  const kernels::AxisView view(c.x[0].shape(), c.x[0].ndim() + axis);
  const std::int64_t row = view.extent * view.after, end = by * view.after, begin = row - end;
  kernels::copy_runs(c.x[0], {0, row}, y[0], {end, row}, view.before, begin);
  kernels::copy_runs(c.x[0], {begin, row}, y[0], {0, row}, view.before, end);
}

constexpr Op kRoll = {
    .name = "roll",
    .doc =
        "Entries of x rotated along an axis, so that those shifted past the end reappear at the start: "
        "y[…, (i + by) mod n, …] = x[…, i, …].",
    .tensorflow = "Roll",
    .args = {"x"},
    .infer = infer_roll,
    .forward = moves(run_roll),
    .rule = Rule::linear([](const Call& c, const Tensor& dy) {
      const auto& [axis, by] = c.attrs<RollAttrs>();
      return rolled(dy, {axis, c.x[0].shape()[c.x[0].ndim() + axis] - by});
    }),
};

constexpr Op kRepeat = {
    .name = "repeat",
    .doc = "Each entry of x along an axis repeated several times in succession.",
    .args = {"x"},
    .infer = infer_repeat,
    .forward = moves({run_repeat, Outputs::by_kernel}),
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return sum_of_repeats(c, dy); }),
};

constexpr Op kReverseSequence = {
    .name = "reverse_sequence",
    .doc =
        "For each entry b along one axis, the first lengths[b] entries along another axis in reverse "
        "order.",
    .tensorflow = "ReverseSequence",
    .args = {"x", "lengths"},
    .infer = infer_sequence,
    .forward = moves(run_sequence),
    .rule =
        Rule::linear([](const Call& c,
                        const Tensor& dy) { return reverse_by_length(dy, c.x[1], c.attrs<SequenceAttrs>()); },
                     {.x = 0b10}),
};

constexpr const Op* repeat_table[] = {&kRoll, &kRepeat, &kReverseSequence};

Tensor reverse_by_length(const Tensor& x, const Tensor& lengths, const SequenceAttrs& axes) {
  return kReverseSequence(x, lengths, axes);
}

Tensor rolled(const Tensor& x, const RollAttrs& a) { return kRoll(x, a); }

// The given axes, counted from 0.
std::vector<int> axes_to_roll(const Tensor& x, const Axes& axes) {
  std::vector<int> list(axes.all ? static_cast<std::size_t>(x.ndim()) : 0);
  std::iota(list.begin(), list.end(), 0);
  for (const int axis : axes.list)
    list.push_back(checked_axis(kRoll, axis, x.ndim()));
  return list;
}

}   // namespace

Tensor roll(const Tensor& x, std::int64_t shift, const Axes& axes) {
  return roll(x, std::vector<std::int64_t>(axes_to_roll(x, axes).size(), shift), axes);
}

Tensor roll(const Tensor& x, Ints shifts, const Axes& axes) {
  const std::vector<int> list = axes_to_roll(x, axes);
  if (shifts.size() != list.size())
    throw_error<ShapeError>("roll: {} shifts for {} axes of x, {}", shifts.size(), list.size(), x.spec());
  std::int64_t by[Shape::kMaxRank] = {};
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const std::int64_t n = x.shape()[list[i]]) {
      const std::int64_t shift = shifts[i] % n + (shifts[i] % n < 0 ? n : 0), room = n - by[list[i]];
      by[list[i]] = shift < room ? by[list[i]] + shift : shift - room;
    }
  Tensor y;
  for (int axis = 0; axis < x.ndim(); ++axis)
    if (by[axis]) y = rolled(y.defined() ? y : x, {axis - x.ndim(), by[axis]});
  return y.defined() ? y : identity(x);
}

Tensor repeat(const Tensor& x, std::int64_t count, int axis) {
  return kRepeat(x, RepeatAttrs{checked_axis(kRepeat, axis, x.ndim()) - x.ndim(), count, {}});
}

Tensor repeat(const Tensor& x, Ints counts, int axis) {
  const int at = checked_axis(kRepeat, axis, x.ndim());
  if (counts.empty() && x.shape()[at])
    throw_error<ShapeError>("repeat: the list of counts is empty, but axis {} of x, {}, is not", at,
                            x.spec());
  return kRepeat(x, RepeatAttrs{at - x.ndim(), 0, {counts.begin(), counts.end()}});
}

Tensor reverse_sequence(const Tensor& x, const Tensor& lengths, int sequence_axis, int batch_axis) {
  return reverse_by_length(x, lengths,
                           {checked_axis(kReverseSequence, sequence_axis, x.ndim()) - x.ndim(),
                            checked_axis(kReverseSequence, batch_axis, x.ndim()) - x.ndim()});
}

std::span<const Op* const> repeat_ops() { return repeat_table; }

}   // namespace tapedeck
