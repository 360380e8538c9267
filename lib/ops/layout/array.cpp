// Ops on the shape and the order of elements. In: tensors of any dtype. Out: the same elements with another
// shape, in another order, or repeated.
#include "tapedeck/ops/array.h"

#include <fmt/format.h>
#include <array>
#include <bit>

#include "core/format.h"
#include "kernels/layout/index_lists.h"
#include "op/piecewise_constant.h"
#include "op/recorder.h"
#include "op/rules.h"
#include "ops/axes.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/array.h"
#include "ops/layout/identity_op.h"
#include "ops/layout/slice_or_share.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_reshape(const Call& c) {
  const auto& [axes, shape] = c.attrs<ReshapeAttrs>();
  require_axes(c, axes);
  const Tensor& x = c.x[0];
  const Shape result = behind_extra(x, axes, shape);
  if (result.size() != x.size())
    throw_error<ShapeError>("{}: element counts differ: x is {}, shape is {}", c.op.name, x.spec(), shape);
  return {x.dtype(), result};
}

Spec infer_expand_dims(const Call& c) {
  const Tensor& x = c.x[0];
  const unsigned mask = c.attrs<MaskAttrs>().mask;
  const int ndim = x.ndim() + std::popcount(mask);
  if (ndim > Shape::kMaxRank) c.throw_shape_error("more than 8 axes");
  if (mask >> ndim) c.throw_shape_error("an axis is out of range");
  Shape shape;
  for (int d = 0, next = 0; d < ndim; ++d)
    shape.push_back(mask >> (ndim - 1 - d) & 1 ? 1 : x.shape()[next++]);
  return {x.dtype(), shape};
}

Spec infer_squeeze(const Call& c) {
  const Tensor& x = c.x[0];
  const unsigned mask = c.attrs<MaskAttrs>().mask;
  require_axes(c, static_cast<int>(std::bit_width(mask)));
  for (int d = 0; d < x.ndim(); ++d)
    if ((mask >> (x.ndim() - 1 - d) & 1) && x.shape()[d] != 1)
      throw_error<ShapeError>("squeeze: the extent of axis {} of x, {}, is not 1", d, x.spec());
  return {x.dtype(), without(x.shape(), mask, false)};
}

// The permutation extended to all axes of x; additional leading axes stay first.
TransposeAttrs in_full(const TransposeAttrs& a, const Tensor& x) {
  TransposeAttrs full{x.ndim(), {}};
  const int front = x.ndim() - a.axes;
  for (int d = 0; d < x.ndim(); ++d)
    full.perm[static_cast<std::size_t>(d)] =
        static_cast<std::int8_t>(d < front ? d : front + a.perm[static_cast<std::size_t>(d - front)]);
  return full;
}

Spec infer_transpose(const Call& c) {
  const Tensor& x = c.x[0];
  require_axes(c, c.attrs<TransposeAttrs>().axes);
  const TransposeAttrs full = in_full(c.attrs<TransposeAttrs>(), x);
  Shape shape;
  for (const int axis : full.all())
    shape.push_back(x.shape()[axis]);
  return {x.dtype(), shape};
}

void run_transpose(const Call& c, std::span<Tensor> y) {
  take(c.x[0], kernels::permuted(c.x[0].shape(), in_full(c.attrs<TransposeAttrs>(), c.x[0]).all()), y[0]);
}

TransposeAttrs inverse(const TransposeAttrs& a) {
  TransposeAttrs result{a.axes, {}};
  for (int d = 0; d < a.axes; ++d)
    result.perm[static_cast<std::size_t>(a.perm[static_cast<std::size_t>(d)])] = static_cast<std::int8_t>(d);
  return result;
}

void run_reverse(const Call& c, std::span<Tensor> y) {
  const Shape& x = c.x[0].shape();
  Shape begin, stride;
  for (int d = 0; d < x.ndim(); ++d) {
    const bool is_reversed = c.attrs<MaskAttrs>().mask >> (x.ndim() - 1 - d) & 1;
    begin.push_back(is_reversed ? x[d] - 1 : 0);
    stride.push_back(is_reversed ? -1 : 1);
  }
  take(c.x[0], kernels::sliced(x, begin, x, stride), y[0]);
}

Spec infer_broadcast_to(const Call& c) {
  const Shape& shape = c.attrs<Shape>();
  if (!broadcasts_to(c.x[0].shape(), shape))
    throw_error<ShapeError>("broadcast_to: x does not broadcast to shape: x is {}, shape is {}",
                            c.x[0].spec(), shape);
  return {c.x[0].dtype(), shape};
}

Spec infer_tile(const Call& c) {
  const Tensor& x = c.x[0];
  const Shape& reps = c.attrs<TileAttrs>().reps;
  require_axes(c, reps.ndim());
  Shape shape = x.shape();
  for (int d = 0; d < reps.ndim(); ++d) {
    const int axis = x.ndim() - reps.ndim() + d;
    std::int64_t extent;
    if (reps[d] < 0) throw_error<ShapeError>("tile: a negative count: reps is {}", reps);
    if (__builtin_mul_overflow(x.shape()[axis], reps[d], &extent))
      throw_error<ShapeError>("tile: too many elements: x is {}, reps is {}", x.spec(), reps);
    shape.set(axis, extent);
  }
  return {x.dtype(), shape};
}

// Sums the copies that tile made, one axis at a time, with dy reshaped to [before, reps, after].
Tensor sum_of_copies(const Call& c, const Tensor& dy) {
  const Shape &x = c.x[0].shape(), &reps = c.attrs<TileAttrs>().reps;
  Shape shape = behind_extra(dy, c.y[0].ndim(), c.y[0].shape());
  if (c.x[0].size() == 0 || dy.size() == 0) return zeros(behind_extra(dy, c.y[0].ndim(), x), dy.dtype());
  Tensor sums = dy;
  for (int d = 0; d < reps.ndim(); ++d) {
    if (reps[d] == 1) continue;
    const int axis = shape.ndim() - reps.ndim() + d;
    const std::int64_t extent = x[x.ndim() - reps.ndim() + d];
    const kernels::AxisView view(shape, axis);
    sums = sum(reshape(sums, {view.before, reps[d], extent * view.after}), 1);
    shape.set(axis, extent);
  }
  return reshape(sums, shape);
}

Spec infer_one_hot(const Call& c) {
  require_indices(c, 0);
  const auto& [depth, dtype] = c.attrs<OneHotAttrs>();
  if (depth < 0) throw_error<ShapeError>("one_hot: a negative depth: {}", depth);
  Shape shape = c.x[0].shape();
  shape.push_back(depth);
  return {dtype, shape};
}

void run_one_hot(const Call& c, std::span<Tensor> y) {
  kernels::one_hot(c.x[0], c.attrs<OneHotAttrs>().depth, y[0]);
}

Tensor reshape_last(const Tensor& x, int axes, const Shape& shape);
Tensor expanded(const Tensor& x, const MaskAttrs& axes);
Tensor squeezed(const Tensor& x, const MaskAttrs& axes);
Tensor transposed(const Tensor& x, const TransposeAttrs& attrs);
Tensor reversed(const Tensor& x, const MaskAttrs& axes);

Spec infer_fill(const Call& c) {
  if (c.x[0].ndim() != 0) c.throw_shape_error("the value must be of rank 0");
  return {c.x[0].dtype(), c.attrs<Shape>()};
}

Tensor sum_of_places(const Call& c, const Tensor& dy) {
  std::vector<int> axes;
  for (int d = 1; d <= c.y[0].ndim(); ++d)
    axes.push_back(-d);
  return axes.empty() ? dy : sum(dy, Axes(std::move(axes)));
}

std::vector<Spec> infer_all(const Call& c) {
  std::vector<Spec> specs;
  for (int i = 0; i < c.x.size(); ++i)
    specs.push_back(c.x[i].spec());
  return specs;
}

constexpr Rule kEachItself = kIdentityRule.accepting_none();

// Zeros, recorded as a function of x.
Tensor no_change(const Tensor& x, const Shape& shape) { return piecewise_in(zeros(shape, x.dtype()), x); }

constexpr Rule kPiecewiseRule =
    Rule::custom(
        {.x = 0b10},
        [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
          const Tensor &x = c.x[1], dy = std::move(dys[0]).dense();
          if (c.needs_gradient(1)) dx[1] = no_change(x, behind_extra(dy, c.y[0].ndim(), x.shape()));
          if (c.needs_gradient(0)) dx[0] = dy;
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          dy[0] =
              dx[0].defined() ? dx[0] : no_change(c.x[1], behind_extra(dx[1], c.x[1].ndim(), c.y[0].shape()));
        })
        .stacking_jvp();

constexpr Op kReshape = {
    .name = "reshape",
    .doc = "The elements of x in row-major order with another shape, without a copy.",
    .tensorflow = "Reshape",
    .args = {"x"},
    .infer = infer_reshape,
    .forward = kShare,
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) { return reshape_last(dy, c.y[0].ndim(), c.x[0].shape()); }),
};

constexpr Op kExpandDims = {
    .name = "expand_dims",
    .doc = "x with axes of extent 1 inserted, without a copy.",
    .tensorflow = "ExpandDims",
    .args = {"x"},
    .infer = infer_expand_dims,
    .forward = kShare,
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return squeezed(dy, c.attrs<MaskAttrs>()); }),
};

constexpr Op kSqueeze = {
    .name = "squeeze",
    .doc = "x with axes of extent 1 removed, without a copy.",
    .tensorflow = "Squeeze",
    .args = {"x"},
    .infer = infer_squeeze,
    .forward = kShare,
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return expanded(dy, c.attrs<MaskAttrs>()); }),
};

constexpr Op kTranspose = {
    .name = "transpose",
    .doc = "x with its axes permuted: axis i of the result is axis perm[i] of x.",
    .tensorflow = "Transpose",
    .args = {"x"},
    .infer = infer_transpose,
    .forward = moves({run_transpose, Outputs::by_kernel}),
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) { return transposed(dy, inverse(c.attrs<TransposeAttrs>())); }),
};

constexpr Op kReverse = {
    .name = "reverse",
    .doc = "The elements of x in reverse order along axes: y[i] = x[n - 1 - i].",
    .tensorflow = "ReverseV2",
    .args = {"x"},
    .infer = same_as_first,
    .forward = moves({run_reverse, Outputs::by_kernel}),
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return reversed(dy, c.attrs<MaskAttrs>()); }),
};

constexpr Op kBroadcastTo = {
    .name = "broadcast_to",
    .doc = "x broadcast to a given shape.",
    .tensorflow = "BroadcastTo",
    .args = {"x"},
    .infer = infer_broadcast_to,
    .forward = moves({[](const Call& c, std::span<Tensor> y) {
                        take(c.x[0], kernels::broadcast(c.x[0].shape(), y[0].shape()), y[0]);
                      },
                      Outputs::by_kernel}),
    .rule = broadcasting(Rule::linear([](const Call& c, const Tensor& dy) { return unbroadcast(c, dy, 0); })),
};

constexpr Op kTile = {
    .name = "tile",
    .doc = "x repeated reps[i] times along axis i.",
    .tensorflow = "Tile",
    .args = {"x"},
    .infer = infer_tile,
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  take(c.x[0],
                       kernels::tiled(c.x[0].shape(),
                                      filled_in_front(c.attrs<TileAttrs>().reps, c.x[0].ndim(), 1)),
                       y[0]);
                },
                Outputs::by_kernel},
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return sum_of_copies(c, dy); }),
};

constexpr Op kOneHot = {
    .name = "one_hot",
    .doc = "1 at position indices[…] along a new last axis, 0 elsewhere.",
    .tensorflow = "OneHot",
    .args = {"indices"},
    .infer = infer_one_hot,
    .forward = run_one_hot,
    .rule = Rule::none(),
};

constexpr Op kIdentity = {
    .name = "identity",
    .doc = "A new tensor with the same values, which shares x's memory.",
    .tensorflow = "Identity",
    .args = {"x"},
    .infer = same_as_first,
    .forward = kShare,
    .rule = kIdentityRule,
};

constexpr Op kPiecewise = {
    .name = "piecewise",
    .doc =
        "p, whose derivatives in x, of any order, are zeros. Used by the gradients of maxima and of "
        "branches.",
    .args = {"p", "x"},
    .infer = same_as_first,
    .forward = kShare,
    .rule = with_zeros_in(0b10, kPiecewiseRule),
};

constexpr Op kZerosLike = {
    .name = "zeros_like",
    .doc = "Zeros with x's shape and dtype.",
    .tensorflow = "ZerosLike",
    .args = {"x"},
    .infer = same_as_first,
    .forward = moves([](const Call&, std::span<Tensor> y) { kernels::clear(y[0]); }),
    .rule = Rule::none(),
};

constexpr Op kOnesLike = {
    .name = "ones_like",
    .doc = "Ones with x's shape and dtype.",
    .tensorflow = "OnesLike",
    .args = {"x"},
    .infer = same_as_first,
    .forward =
        moves({[](const Call& c, std::span<Tensor> y) { y[0] = full(c.x[0].shape(), 1, c.x[0].dtype()); },
               Outputs::by_kernel}),
    .rule = Rule::none(),
};

constexpr Op kStopGradient = {
    .name = "stop_gradient",
    .doc = "A new tensor with the same values that no tape or accumulator tracks.",
    .tensorflow = "StopGradient",
    .args = {"x"},
    .infer = same_as_first,
    .forward = kShare,
    .rule = Rule::none(),
};

constexpr Op kFill = {
    .name = "fill",
    .doc = "A tensor of a given shape in which every element is value.",
    .tensorflow = "Fill",
    .args = {"value"},
    .infer = infer_fill,
    .forward = moves(
        {[](const Call& c, std::span<Tensor> y) { take(c.x[0], kernels::broadcast({}, y[0].shape()), y[0]); },
         Outputs::by_kernel}),
    .rule = broadcasting(Rule::linear([](const Call& c, const Tensor& dy) { return sum_of_places(c, dy); })),
};

constexpr Op kIdentityN = {
    .name = "identity_n",
    .doc = "New tensors with the same values, which share the inputs' memory.",
    .tensorflow = "IdentityN",
    .args = {"x"},
    .infer = infer_all,
    .forward = moves({[](const Call& c, std::span<Tensor> y) {
                        for (int i = 0; i < c.x.size(); ++i)
                          share_with(y[static_cast<std::size_t>(i)], c.x[i]);
                      },
                      Outputs::by_kernel}),
    .rule = kEachItself,
};

constexpr const Op* array_table[] = {&kReshape,     &kExpandDims, &kSqueeze,      &kTranspose, &kReverse,
                                     &kBroadcastTo, &kTile,       &kOneHot,       &kIdentity,  &kPiecewise,
                                     &kZerosLike,   &kOnesLike,   &kStopGradient, &kFill,      &kIdentityN};

Tensor reshape_last(const Tensor& x, int axes, const Shape& shape) {
  return kReshape(x, ReshapeAttrs{axes, shape});
}
Tensor expanded(const Tensor& x, const MaskAttrs& axes) { return kExpandDims(x, axes); }
Tensor squeezed(const Tensor& x, const MaskAttrs& axes) { return kSqueeze(x, axes); }
Tensor transposed(const Tensor& x, const TransposeAttrs& attrs) { return kTranspose(x, attrs); }
Tensor reversed(const Tensor& x, const MaskAttrs& axes) { return kReverse(x, axes); }

}   // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  Shape known;
  int open = -1;
  for (int d = 0; d < shape.ndim(); ++d) {
    if (shape[d] == -1 && open >= 0)
      throw_error<ShapeError>("reshape: more than one extent is -1: shape is {}", shape);
    if (shape[d] == -1)
      open = d;
    else
      known.push_back(shape[d]);
  }
  if (open < 0) return reshape_last(x, x.ndim(), shape);
  const std::int64_t size = known.size();
  if (size == 0 || x.size() % size)
    throw_error<ShapeError>("reshape: no extent fits in the place of -1: x is {}, shape is {}", x.spec(),
                            shape);
  Shape full = shape;
  full.set(open, x.size() / size);
  return reshape_last(x, x.ndim(), full);
}

Tensor expand_dims(const Tensor& x, int axis) {
  const int ndim = x.ndim() + 1;
  return expanded(x, {1u << (ndim - 1 - checked_position("expand_dims", axis, ndim, x))});
}

Tensor squeeze(const Tensor& x, const Axes& axes) {
  if (!axes.all) return squeezed(x, {mask_of(kSqueeze, axes, x.ndim())});
  unsigned mask = 0;
  for (int d = 0; d < x.ndim(); ++d)
    mask = mask << 1 | (x.shape()[d] == 1);
  return squeezed(x, {mask});
}

Tensor transpose(const Tensor& x, const Axes& perm) {
  TransposeAttrs attrs{x.ndim(), {}};
  const auto count = static_cast<std::size_t>(x.ndim());
  std::array<bool, Shape::kMaxRank> seen{};
  for (std::size_t d = 0; d < std::max(count, perm.list.size()); ++d) {
    const int axis = perm.all               ? static_cast<int>(count - 1 - d)
                     : d < perm.list.size() ? perm.list[d] + (perm.list[d] < 0 ? x.ndim() : 0)
                                            : -1;
    if (axis < 0 || axis >= x.ndim() || std::exchange(seen[static_cast<std::size_t>(axis)], true))
      throw_error<ShapeError>("transpose: perm does not name every axis of x once: perm is [{}], x is {}",
                              fmt::join(perm.list, ","), x.spec());
    attrs.perm[d] = static_cast<std::int8_t>(axis);
  }
  return transposed(x, attrs);
}

Tensor reverse(const Tensor& x, const Axes& axes) { return reversed(x, {mask_of(kReverse, axes, x.ndim())}); }
Tensor broadcast_to(const Tensor& x, const Shape& shape) { return kBroadcastTo(x, shape); }

Tensor tile(const Tensor& x, Ints counts) {
  const Shape reps(counts.span());
  if (reps.ndim() <= x.ndim()) return kTile(x, TileAttrs{reps});
  return kTile(reshape(x, filled_in_front(x.shape(), reps.ndim(), 1)), TileAttrs{reps});
}

Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype) {
  return kOneHot(indices, OneHotAttrs{depth, dtype});
}
Tensor piecewise_in(const Tensor& p, const Tensor& x) {
  return tracked(x) ? kPiecewise({std::array{&p, &x}.data(), 2}) : p;
}
Tensor zero_in(const Tensor& x) { return piecewise_in(zeros(x.shape(), x.dtype()), x); }
Tensor identity(const Tensor& x) { return kIdentity(x); }
Tensor stop_gradient(const Tensor& x) { return kStopGradient(x); }
Tensor zeros_like(const Tensor& x) { return kZerosLike(x); }
Tensor ones_like(const Tensor& x) { return kOnesLike(x); }

std::vector<Tensor> identity_n(std::span<const Tensor> x) {
  if (x.empty()) return {};
  return kIdentityN.run(x);
}

Tensor fill(const Shape& shape, const Tensor& value) { return kFill(value, shape); }

std::vector<Tensor> meshgrid(std::span<const Tensor> x, Indexing indexing) {
  const int ndim = static_cast<int>(x.size());
  if (ndim > Shape::kMaxRank) throw_error<ShapeError>("meshgrid: {} tensors; use at most 8", ndim);
  const auto axis_of = [&](int i) { return indexing == Indexing::xy && ndim > 1 && i < 2 ? 1 - i : i; };
  Shape grid, one;
  for (int i = 0; i < ndim; ++i)
    grid.push_back(1), one.push_back(1);
  for (int i = 0; i < ndim; ++i) {
    const Tensor& t = x[static_cast<std::size_t>(i)];
    if (t.ndim() != 1)
      throw_error<ShapeError>("meshgrid: takes tensors of rank 1: input {} is {}", i, t.spec());
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

std::span<const Op* const> array_ops() { return array_table; }

}   // namespace tapedeck
