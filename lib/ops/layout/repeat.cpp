// Entries repeated, rotated and reversed. In: tensors of any dtype. Out: the same elements in other places.
#include <algorithm>
#include <numeric>

#include "core/format.h"
#include "kernels/layout/copy.h"
#include "kernels/layout/gather_scatter.h"
#include "kernels/layout/reverse_sequence.h"
#include "ops/axes.h"
#include "ops/layout/positions.h"
#include "ops/layout/sharing.h"
#include "ops/layout/take.h"
#include "ops/reduce/groups.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

// Axes count from the end, so that further ones in front pass through.
struct RepeatAttrs {
  int axis;
  std::int64_t count;
  std::vector<std::int64_t> counts;   // counts: one for each entry, else count for all
};
struct RollAttrs {
  int axis;
  std::int64_t by;   // 0 <= by < extent
};
struct SequenceAttrs {
  int sequence, batch;
};

Spec infer_repeat(const Call& c) {
  const auto& [from_end, count, counts] = c.attrs<RepeatAttrs>();
  require_axes(c, -from_end);
  const int axis = c.x[0].ndim() + from_end;
  Shape shape = c.x[0].shape();
  std::int64_t extent = 0;
  if (counts.empty()) {
    if (count < 0) throw_error<ShapeError>("repeat: a negative count: {}", count);
    if (__builtin_mul_overflow(shape[axis], count, &extent))
      throw_error<ShapeError>("repeat: too many elements: count is {}, x is {}", count, c.x[0].spec());
  } else {
    if (static_cast<std::int64_t>(counts.size()) != shape[axis])
      throw_error<ShapeError>("repeat: {} counts for axis {} of x, {}", counts.size(), axis, c.x[0].spec());
    for (const std::int64_t n : counts) {
      if (n < 0) throw_error<ShapeError>("repeat: a negative count: {}", n);
      if (__builtin_add_overflow(extent, n, &extent))
        throw_error<ShapeError>("repeat: too many elements: x is {}", c.x[0].spec());
    }
  }
  shape.set(axis, extent);
  return {c.x[0].dtype(), shape};
}

// Of which entry each one of the result is a copy.
Tensor originals(const RepeatAttrs& a) {
  std::vector<std::int64_t> from;
  for (std::size_t i = 0; i < a.counts.size(); ++i)
    from.insert(from.end(), static_cast<std::size_t>(a.counts[i]), static_cast<std::int64_t>(i));
  return tensor(from);
}

void run_repeat(const Call& c, std::span<Tensor> y) {
  const RepeatAttrs& a = c.attrs<RepeatAttrs>();
  const kernels::AroundAxis around(c.x[0].shape(), c.x[0].ndim() + a.axis);
  if (a.counts.empty()) {
    kernels::Places places;
    places.append(kernels::times(around.before, around.extent), around.after);
    places.append(a.count, 0);
    places.append(around.after, 1);
    take(c.x[0], places, y[0]);
  } else {
    allocate_for(y[0]);
    kernels::gather(c.x[0], originals(a), around, y[0]);
  }
}

Tensor sum_of_copies(const Call& c, const Tensor& dy) {
  const RepeatAttrs& a = c.attrs<RepeatAttrs>();
  const std::int64_t extent = c.x[0].shape()[c.x[0].ndim() + a.axis];
  if (!a.counts.empty()) return sum_of_ordered_groups(dy, originals(a), extent, a.axis);
  const kernels::AroundAxis around(dy.shape(), dy.ndim() + a.axis);
  return reshape(sum(reshape(dy, {kernels::times(around.before, extent), a.count, around.after}), 1),
                 behind_extra(dy, c.x[0].ndim(), c.x[0].shape()));
}

Spec infer_sequence(const Call& c) {
  const Tensor &x = c.x[0], &lengths = c.x[1];
  const auto& [sequence, batch] = c.attrs<SequenceAttrs>();
  require_indices(c, 1);
  require_axes(c, -std::min(sequence, batch));
  if (sequence == batch)
    throw_error<ShapeError>("reverse_sequence: axis {} is both for the sequence and for the batch",
                            x.ndim() + batch);
  if (lengths.ndim() != 1 || lengths.shape()[0] != x.shape()[x.ndim() + batch])
    throw_shape_error(c, fmt::format("there must be a length for each entry of axis {}", x.ndim() + batch));
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
  kernels::reverse_first(x, lengths, sequence, batch, y[0]);
}

Tensor turned(const Tensor& x, const Tensor& lengths, const SequenceAttrs& axes);
Tensor rolled(const Tensor& x, const RollAttrs& a);

OwnedAttrs times(std::int64_t count, int axis) { return Attrs(RepeatAttrs{axis, count, {}}); }
OwnedAttrs times(std::vector<std::int64_t> counts, int axis) {
  return Attrs(RepeatAttrs{axis, 0, std::move(counts)});
}
Tensor i64(std::initializer_list<std::int64_t> v) { return tensor(v); }

Spec infer_roll(const Call& c) {
  const auto& [axis, by] = c.attrs<RollAttrs>();
  require_axes(c, -axis);
  if (by < 0 || by >= c.x[0].shape()[c.x[0].ndim() + axis])
    throw_shape_error(c, fmt::format("the axis has no entry {}", by));
  return c.x[0].spec();
}

void run_roll(const Call& c, std::span<Tensor> y) {
  const auto& [axis, by] = c.attrs<RollAttrs>();
  const kernels::AroundAxis around(c.x[0].shape(), c.x[0].ndim() + axis);
  const std::int64_t row = around.extent * around.after, end = by * around.after, begin = row - end;
  kernels::copy_runs(c.x[0], {0, row}, y[0], {end, row}, around.before, begin);
  kernels::copy_runs(c.x[0], {begin, row}, y[0], {0, row}, around.before, end);
}

constexpr Op table[] = {
    {.name = "roll",
     .doc = "Entries moved on along an axis, those that leave its end to its beginning: y[…, (i + by) mod n, "
            "…] = x[…, i, …].",
     .tensorflow = "Roll",
     .args = {"x"},
     .infer = infer_roll,
     .forward = run_roll,
     .rule = linear([](const Call& c, const Tensor& dy) {
       const auto& [axis, by] = c.attrs<RollAttrs>();
       return rolled(dy, {axis, c.x[0].shape()[c.x[0].ndim() + axis] - by});
     }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -1, 1)}, .attrs = Attrs(RollAttrs{-1, 5})},
               {.inputs = {uniform({2, 3, 2}, -1, 1)}, .attrs = Attrs(RollAttrs{-2, 1})},
               {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = Attrs(RollAttrs{-1, 2})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = Attrs(RollAttrs{-1, 1}),
                .expected = {f64({{3, 1, 2}, {6, 4, 5}})},
                .oracle = "np.roll(x, 1, axis=-1)"},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}})},
                .attrs = Attrs(RollAttrs{-2, 2}),
                .expected = {f64({{3, 4}, {5, 6}, {1, 2}})},
                .oracle = "np.roll(x, 2, axis=-2)"}};
         }},

    {.name = "repeat",
     .doc = "Each entry of x along an axis several times, one copy after the other.",
     .args = {"x"},
     .infer = infer_repeat,
     .forward = {run_repeat, Outputs::own},
     .rule = linear([](const Call& c, const Tensor& dy) { return sum_of_copies(c, dy); }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({3, 37}, -1, 1)}, .attrs = times(2, -2)},
                                      {.inputs = {uniform({2, 3, 2}, -1, 1)}, .attrs = times(3, -1)},
                                      {.inputs = {uniform({2, 3, 2}, -1, 1)}, .attrs = times({2, 0, 1}, -2)},
                                      {.inputs = {uniform({3, 2}, -1, 1)}, .attrs = times(0, -1)},
                                      {.inputs = {uniform({0, 2}, -1, 1)}, .attrs = times(4, -2)},
                                      {.inputs = {f64({{1, 2}, {3, 4}})},
                                       .attrs = times(2, -1),
                                       .expected = {f64({{1, 1, 2, 2}, {3, 3, 4, 4}})},
                                       .oracle = "np.repeat(x, 2, axis=-1)"},
                                      {.inputs = {f64({{1, 2}, {3, 4}})},
                                       .attrs = times({1, 2}, -2),
                                       .expected = {f64({{1, 2}, {3, 4}, {3, 4}})},
                                       .oracle = "np.repeat(x, [1, 2], axis=0)"}};
         }},

    {.name = "reverse_sequence",
     .doc =
         "For each entry b along one axis the first lengths[b] entries along another in the opposite order.",
     .tensorflow = "ReverseSequence",
     .args = {"x", "lengths"},
     .infer = infer_sequence,
     .forward = run_sequence,
     .rule =
         linear([](const Call& c, const Tensor& dy) { return turned(dy, c.x[1], c.attrs<SequenceAttrs>()); },
                {.x = 0b10}),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -1, 1), i64({37, 0, 5})}, .attrs = Attrs(SequenceAttrs{-1, -2})},
               {.inputs = {uniform({5, 2, 3}, -1, 1), tensor<std::int32_t>({4, 1, 5})},
                .attrs = Attrs(SequenceAttrs{-3, -1})},
               {.inputs = {uniform({2, 2, 4, 3}, -1, 1), i64({3, 4})}, .attrs = Attrs(SequenceAttrs{-2, -4})},
               {.inputs = {uniform({3, 0}, -1, 1), zeros({3}, DType::i64)},
                .attrs = Attrs(SequenceAttrs{-1, -2})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), i64({2, 3})},
                .attrs = Attrs(SequenceAttrs{-1, -2}),
                .expected = {f64({{2, 1, 3}, {6, 5, 4}})},
                .oracle = "np.stack([np.r_[x[0, :2][::-1], x[0, 2:]], x[1, ::-1]])"},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}}), i64({2, 3})},
                .attrs = Attrs(SequenceAttrs{-2, -1}),
                .expected = {f64({{3, 6}, {1, 4}, {5, 2}})},
                .oracle = "np.stack([np.r_[x[:2, 0][::-1], x[2:, 0]], x[::-1, 1]], axis=1)"}};
         }},

};

Tensor turned(const Tensor& x, const Tensor& lengths, const SequenceAttrs& axes) {
  return find(table, "reverse_sequence").with(axes, x, lengths);
}

Tensor rolled(const Tensor& x, const RollAttrs& a) { return a.by ? find(table, "roll").with(a, x) : x; }

}   // namespace

Tensor roll(const Tensor& x, std::int64_t shift, const Axes& axes) {
  const unsigned mask = mask_of("roll", "x", axes, x.ndim());
  Tensor y = x;
  for (int axis = -x.ndim(); axis < 0; ++axis) {
    const std::int64_t n = x.shape()[x.ndim() + axis];
    if (n && mask >> (-1 - axis) & 1) y = rolled(y, {axis, (shift % n + n) % n});
  }
  return y;
}

Tensor repeat(const Tensor& x, std::int64_t count, int axis) {
  const Op& op = find(table, "repeat");
  return op.with(RepeatAttrs{checked_axis(op, axis, x.ndim()) - x.ndim(), count, {}}, x);
}

Tensor repeat(const Tensor& x, const std::vector<std::int64_t>& counts, int axis) {
  const Op& op = find(table, "repeat");
  const int at = checked_axis(op, axis, x.ndim());
  if (counts.empty() && x.shape()[at])
    throw_error<ShapeError>("repeat: 0 counts for axis {} of x, {}", at, x.spec());
  return op.with(RepeatAttrs{at - x.ndim(), 0, counts}, x);
}

Tensor reverse_sequence(const Tensor& x, const Tensor& lengths, int sequence_axis, int batch_axis) {
  const Op& op = find(table, "reverse_sequence");
  return turned(x, lengths,
                {checked_axis(op, sequence_axis, x.ndim()) - x.ndim(),
                 checked_axis(op, batch_axis, x.ndim()) - x.ndim()});
}

std::span<const Op> repeat_ops() { return table; }

}   // namespace tapedeck
