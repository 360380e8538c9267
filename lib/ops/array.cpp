// Shapes and arrangement. In: tensors of any dtype. Out: the same elements under another shape, at other places, or repeated.
#include "tapedeck/ops/array.h"

#include <array>

#include "autodiff/rules.h"
#include "base/format.h"
#include "base/visit.h"
#include "kernels/copy.h"
#include "ops/axes.h"
#include "ops/samples.h"
#include "tapedeck/ops/math.h"
#include "tensor/storage.h"

namespace tapedeck {
namespace {

using namespace samples;

// Attributes speak of the last axes of x only: further axes in front, which stacked cotangents have, stay as they are.
struct ReshapeAttrs { int axes; Shape shape; };                      // the last `axes` axes become `shape`
struct TransposeAttrs {
  int axes;
  std::array<std::int8_t, Shape::kMaxRank> perm;
  std::span<const std::int8_t> all() const { return {perm.data(), static_cast<std::size_t>(axes)}; }
};
struct SliceAttrs { Shape begin, size; };
struct PadAttrs { Shape before, after; };
struct ConcatAttrs { int axis; };                                    // from the end
struct OneHotAttrs { std::int64_t depth; DType dtype; };

// `last` as it is for the last axes of a tensor of rank ndim, and `front` for those before.
Shape filled_in_front(const Shape& last, int ndim, std::int64_t front) {
  Shape result;
  for (int d = last.ndim(); d < ndim; ++d) result.push_back(front);
  for (const std::int64_t d : last) result.push_back(d);
  return result;
}

Tensor allocate_output(const Call& c) { return allocate(c.op.infer.one(c)); }

Spec infer_reshape(const Call& c) {
  const auto& [axes, shape] = c.attrs<ReshapeAttrs>();
  const Tensor& x = c.x[0];
  const Shape result = behind_extra(x, axes, shape);
  if (result.size() != x.size()) throw_error<ShapeError>("{}: element counts differ: x is {}, shape is {}", c.op.name, x.spec(), shape);
  return {x.dtype(), result};
}

// The same for all axes of x.
TransposeAttrs in_full(const TransposeAttrs& a, const Tensor& x) {
  TransposeAttrs full{x.ndim(), {}};
  const int front = x.ndim() - a.axes;
  for (int d = 0; d < x.ndim(); ++d)
    full.perm[static_cast<std::size_t>(d)] = static_cast<std::int8_t>(d < front ? d : front + a.perm[static_cast<std::size_t>(d - front)]);
  return full;
}

Spec infer_transpose(const Call& c) {
  const Tensor& x = c.x[0];
  const TransposeAttrs full = in_full(c.attrs<TransposeAttrs>(), x);
  Shape shape;
  for (const int axis : full.all()) shape.push_back(x.shape()[axis]);
  return {x.dtype(), shape};
}

void run_transpose(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  const TransposeAttrs full = in_full(c.attrs<TransposeAttrs>(), x);
  int last = -1;
  bool in_order = true;   // of the axes with several entries
  for (const int axis : full.all()) {
    if (x.shape()[axis] == 1) continue;
    in_order &= axis > last;
    last = axis;
  }
  if (in_order) {
    y[0] = share(x, c.op.infer.one(c).shape);
  } else {
    y[0] = allocate_output(c);
    kernels::transpose(x, full.all(), y[0]);
  }
}

TransposeAttrs inverse(const TransposeAttrs& a) {
  TransposeAttrs result{a.axes, {}};
  for (int d = 0; d < a.axes; ++d) result.perm[static_cast<std::size_t>(a.perm[static_cast<std::size_t>(d)])] = static_cast<std::int8_t>(d);
  return result;
}

Spec infer_broadcast_to(const Call& c) {
  const Shape &x = c.x[0].shape(), &shape = c.attrs<Shape>();
  bool fits = x.ndim() <= shape.ndim();
  for (int d = 1; fits && d <= x.ndim(); ++d) fits = x[x.ndim() - d] == 1 || x[x.ndim() - d] == shape[shape.ndim() - d];
  if (!fits) throw_error<ShapeError>("broadcast_to: x does not broadcast to shape: x is {}, shape is {}", c.x[0].spec(), shape);
  return {c.x[0].dtype(), shape};
}

void run_broadcast_to(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  const Shape& shape = c.attrs<Shape>();
  if (x.size() == shape.size()) {
    y[0] = share(x, shape);
  } else {
    y[0] = allocate_output(c);
    kernels::broadcast(x, y[0]);
  }
}

Spec infer_concat(const Call& c) {
  const Tensor& first = c.x[0];
  const int axis = first.ndim() + c.attrs<ConcatAttrs>().axis;
  Shape shape = first.shape();
  for (int i = 1; i < c.x.size(); ++i) {
    const Tensor& x = c.x[i];
    if (x.dtype() != first.dtype()) throw_dtype_error(c, "dtypes differ");
    Shape like_first = x.shape();
    if (x.ndim() == first.ndim()) like_first.set(axis, first.shape()[axis]);
    if (like_first != first.shape()) throw_shape_error(c, fmt::format("shapes differ beside axis {}", axis));
    shape.set(axis, shape[axis] + x.shape()[axis]);
  }
  return {first.dtype(), shape};
}

void run_concat(const Call& c, std::span<Tensor> y) {
  const int axis = y[0].ndim() + c.attrs<ConcatAttrs>().axis;
  Shape begin = filled_in_front({}, y[0].ndim(), 0);
  for (int i = 0; i < c.x.size(); ++i) {
    kernels::copy_into(c.x[i], y[0], begin);
    begin.set(axis, begin[axis] + c.x[i].shape()[axis]);
  }
}

void concat_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
void concat_jvp(const Call& c, Refs dx, std::span<Tensor> dy);

Spec infer_slice(const Call& c) {
  const auto& [begin, size] = c.attrs<SliceAttrs>();
  const Shape& x = c.x[0].shape();
  Shape part = x;
  for (int d = 0; d < begin.ndim(); ++d) {
    const int axis = x.ndim() - begin.ndim() + d;
    const std::int64_t rest = begin[d] < 0 ? -1 : x[axis] - begin[d];
    if (rest < 0 || size[d] < -1 || size[d] > rest)
      throw_error<ShapeError>("slice: the part reaches outside: begin is {}, size is {}, x is {}", begin, size, c.x[0].spec());
    part.set(axis, size[d] < 0 ? rest : size[d]);
  }
  return {c.x[0].dtype(), part};
}

// Whether the elements of a part follow each other in x: behind the first axis with several of them, all is taken.
bool contiguous(const Shape& part, const Shape& x) {
  int d = 0;
  while (d < x.ndim() && part[d] == 1) ++d;
  for (++d; d < x.ndim(); ++d) if (part[d] != x[d]) return false;
  return true;
}

void run_slice(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  const Shape part = c.op.infer.one(c).shape, begin = filled_in_front(c.attrs<SliceAttrs>().begin, x.ndim(), 0);
  if (!contiguous(part, x.shape())) {
    y[0] = allocate_output(c);
    return kernels::copy_part(x, begin, y[0]);
  }
  std::int64_t first = 0;
  for (int d = 0; d < x.ndim(); ++d) first = first * x.shape()[d] + begin[d];
  y[0] = share(x, part, first);
}

Spec infer_pad(const Call& c) {
  const auto& [before, after] = c.attrs<PadAttrs>();
  Shape shape = c.x[0].shape();
  for (int d = 0; d < before.ndim(); ++d) {
    const int axis = shape.ndim() - before.ndim() + d;
    if (before[d] < 0 || after[d] < 0) throw_error<ShapeError>("pad: a negative count: before is {}, after is {}", before, after);
    std::int64_t extent = shape[axis];
    if (__builtin_add_overflow(extent, before[d], &extent) || __builtin_add_overflow(extent, after[d], &extent))
      throw_error<ShapeError>("pad: too many elements: before is {}, after is {}, x is {}", before, after, c.x[0].spec());
    shape.set(axis, extent);
  }
  return {c.x[0].dtype(), shape};
}

void run_pad(const Call& c, std::span<Tensor> y) {
  std::fill_n(y[0].raw(), y[0].nbytes(), std::byte{0});
  kernels::copy_into(c.x[0], y[0], filled_in_front(c.attrs<PadAttrs>().before, y[0].ndim(), 0));
}

// What slice takes away around the part, as pad puts it back.
PadAttrs around(const SliceAttrs& part, const Shape& x, const Shape& y) {
  PadAttrs result{part.begin, {}};
  for (int d = part.begin.ndim(); d > 0; --d) result.after.push_back(x[x.ndim() - d] - y[y.ndim() - d] - part.begin[part.begin.ndim() - d]);
  return result;
}

// The part of y that x is, as slice takes it out.
SliceAttrs inside(const PadAttrs& padding, const Shape& x) {
  return {padding.before, Shape(x.dims().last(static_cast<std::size_t>(padding.before.ndim())))};
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
  const std::int64_t depth = c.attrs<OneHotAttrs>().depth;
  std::fill_n(y[0].raw(), y[0].nbytes(), std::byte{0});
  visit(y[0].dtype(), [&](auto t) {
    using T = decltype(t);
    T* row = elements<T>(y[0]);
    const auto mark = [&](const auto indices) {
      for (const auto i : indices) {
        if (i >= 0 && i < depth) row[i] = T(1);
        row += depth;
      }
    };
    if (c.x[0].dtype() == DType::i32) mark(c.x[0].data<std::int32_t>());
    else mark(c.x[0].data<std::int64_t>());
  });
}

constexpr Kernel kShare = {[](const Call& c, std::span<Tensor> y) { y[0] = share(c.x[0], c.x[0].shape()); }, Outputs::own};

constexpr Rule kIdentityRule = [] {
  Rule rule = custom({}, [](const Call&, std::span<Gradient> dy, std::span<Gradient> dx) { dx[0] = std::move(dy[0]); },
                     [](const Call&, Refs dx, std::span<Tensor> dy) { dy[0] = dx[0]; });
  rule.passes_slices = true;
  return rule;
}();

Tensor reshape_last(const Tensor& x, int axes, const Shape& shape);
Tensor padded(const Tensor& x, const PadAttrs& padding);
Tensor part_of(const Tensor& x, const SliceAttrs& part);
Tensor transposed(const Tensor& x, const TransposeAttrs& attrs);

constexpr Op table[] = {
    {.name = "reshape",
     .doc = "The elements of x in row-major order under another shape, without a copy.",
     .args = {"x"},
     .infer = infer_reshape,
     .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = share(c.x[0], c.op.infer.one(c).shape); }, Outputs::own},
     .rule = linear([](const Call& c, const Tensor& dy) { return reshape_last(dy, c.y[0].ndim(), c.x[0].shape()); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({2, 6}, -1, 1)}, .attrs = Attrs(ReshapeAttrs{2, {3, 4}})},
           {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(ReshapeAttrs{0, {1, 1}})},
           {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = Attrs(ReshapeAttrs{2, {3, 0, 2}})},
           {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
            .attrs = Attrs(ReshapeAttrs{2, {3, 2}}),
            .expected = {f64({{1, 2}, {3, 4}, {5, 6}})},
            .oracle = "np.reshape(x, (3, 2))"}};
     }},

    {.name = "transpose",
     .doc = "Axes in another order: axis i of the result is axis perm[i] of x.",
     .args = {"x"},
     .infer = infer_transpose,
     .forward = {run_transpose, Outputs::own},
     .rule = linear([](const Call& c, const Tensor& dy) { return transposed(dy, inverse(c.attrs<TransposeAttrs>())); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({37, 5}, -1, 1)}, .attrs = Attrs(TransposeAttrs{2, {1, 0}})},
           {.inputs = {uniform({2, 3, 4}, -1, 1)}, .attrs = Attrs(TransposeAttrs{3, {2, 0, 1}})},
           {.inputs = {uniform({2, 3, 2, 2}, -1, 1)}, .attrs = Attrs(TransposeAttrs{4, {0, 2, 1, 3}})},
           {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(TransposeAttrs{0, {}})},
           {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
            .attrs = Attrs(TransposeAttrs{2, {1, 0}}),
            .expected = {f64({{1, 4}, {2, 5}, {3, 6}})},
            .oracle = "np.transpose(x, (1, 0))"}};
     }},

    {.name = "broadcast_to",
     .doc = "x repeated to a shape that it broadcasts to.",
     .args = {"x"},
     .infer = infer_broadcast_to,
     .forward = {run_broadcast_to, Outputs::own},
     .rule = linear([](const Call& c, const Tensor& dy) { return unbroadcast(c, dy, 0); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({3, 1}, -1, 1)}, .attrs = Attrs(Shape{2, 3, 37})},
           {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(Shape{2, 3})},
           {.inputs = {uniform({1, 3}, -1, 1)}, .attrs = Attrs(Shape{0, 3})},
           {.inputs = {f64({1, 2, 3})}, .attrs = Attrs(Shape{2, 3}), .expected = {f64({{1, 2, 3}, {1, 2, 3}})}, .oracle = "np.broadcast_to(x, (2, 3))"}};
     }},

    {.name = "concat",
     .doc = "Tensors joined along an axis.",
     .args = {"a", "b"},
     .infer = infer_concat,
     .forward = run_concat,
     .rule = custom({}, concat_vjp, concat_jvp),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({2, 3}, -1, 1), uniform({2, 37}, -1, 1, 1), uniform({2, 0}, -1, 1)}, .attrs = Attrs(ConcatAttrs{-1})},
           {.inputs = {uniform({3, 2, 2}, -1, 1), uniform({3, 1, 2}, -1, 1, 1)}, .attrs = Attrs(ConcatAttrs{-2})},
           {.inputs = {uniform({1}, -1, 1), uniform({2}, -1, 1, 1), uniform({1}, -1, 1, 2), uniform({3}, -1, 1, 3), uniform({1}, -1, 1, 4)},
            .attrs = Attrs(ConcatAttrs{-1})},
           {.inputs = {f64({{1, 2}, {3, 4}}), f64({{5, 6}, {7, 8}})},
            .attrs = Attrs(ConcatAttrs{-1}),
            .expected = {f64({{1, 2, 5, 6}, {3, 4, 7, 8}})},
            .oracle = "np.concatenate((a, b), axis=-1)"}};
     }},

    {.name = "slice",
     .doc = "The part of x that starts at begin and has extents size.",
     .args = {"x"},
     .infer = infer_slice,
     .forward = {run_slice, Outputs::own},
     .rule = linear([](const Call& c, const Tensor& dy) { return padded(dy, around(c.attrs<SliceAttrs>(), c.x[0].shape(), c.y[0].shape())); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({5, 37}, -1, 1)}, .attrs = Attrs(SliceAttrs{{1, 0}, {3, -1}})},
           {.inputs = {uniform({2, 4, 3}, -1, 1)}, .attrs = Attrs(SliceAttrs{{0, 1, 2}, {2, 2, 1}})},
           {.inputs = {uniform({3, 2}, -1, 1)}, .attrs = Attrs(SliceAttrs{{3, 0}, {0, 2}})},
           {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(SliceAttrs{})},
           {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
            .attrs = Attrs(SliceAttrs{{0, 1}, {2, 2}}),
            .expected = {f64({{2, 3}, {5, 6}})},
            .oracle = "x[0:2, 1:3]"}};
     }},

    {.name = "pad",
     .doc = "x with zeros around it; the adjoint of slice.",
     .args = {"x"},
     .infer = infer_pad,
     .forward = run_pad,
     .rule = linear([](const Call& c, const Tensor& dy) { return part_of(dy, inside(c.attrs<PadAttrs>(), c.x[0].shape())); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({3, 5}, -1, 1)}, .attrs = Attrs(PadAttrs{{1, 0}, {0, 32}})},
           {.inputs = {uniform({0, 2}, -1, 1)}, .attrs = Attrs(PadAttrs{{1, 1}, {2, 0}})},
           {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(PadAttrs{})},
           {.inputs = {f64({{1, 2}, {3, 4}})},
            .attrs = Attrs(PadAttrs{{1, 0}, {0, 2}}),
            .expected = {f64({{0, 0, 0, 0}, {1, 2, 0, 0}, {3, 4, 0, 0}})},
            .oracle = "np.pad(x, ((1, 0), (0, 2)))"}};
     }},

    {.name = "one_hot",
     .doc = "1 at position indices[…] along a new last axis, 0 elsewhere.",
     .args = {"indices"},
     .infer = infer_one_hot,
     .forward = run_one_hot,
     .rule = none(),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {tensor<std::int32_t>({{0, 1}, {2, 2}})}, .attrs = Attrs(OneHotAttrs{3, DType::f32})},
           {.inputs = {tensor<std::int64_t>({2, 0, 3})},
            .attrs = Attrs(OneHotAttrs{4, DType::f64}),
            .expected = {f64({{0, 0, 1, 0}, {1, 0, 0, 0}, {0, 0, 0, 1}})},
            .oracle = "np.eye(4)[indices]"}};
     }},

    {.name = "identity",
     .doc = "The same values as a new tensor, which shares their memory.",
     .args = {"x"},
     .infer = same_as_first,
     .forward = kShare,
     .rule = kIdentityRule,
     .samples = [] {
       return std::vector<Sample>{{.inputs = {uniform({37}, -1, 1)}}, {.inputs = {uniform({}, -1, 1)}}, {.inputs = {f64({1, 2})}, .expected = {f64({1, 2})}, .oracle = "x"}};
     }},

    {.name = "zeros_like",
     .doc = "Zeros of x's shape and dtype.",
     .args = {"x"},
     .infer = same_as_first,
     .forward = [](const Call&, std::span<Tensor> y) { std::fill_n(y[0].raw(), y[0].nbytes(), std::byte{0}); },
     .rule = none(),
     .samples = [] { return std::vector<Sample>{{.inputs = {f64({1, 2})}, .expected = {f64({0, 0})}, .oracle = "np.zeros_like(x)"}}; }},

    {.name = "ones_like",
     .doc = "Ones of x's shape and dtype.",
     .args = {"x"},
     .infer = same_as_first,
     .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = full(c.x[0].shape(), 1, c.x[0].dtype()); }, Outputs::own},
     .rule = none(),
     .samples = [] { return std::vector<Sample>{{.inputs = {f64({1, 2})}, .expected = {f64({1, 1})}, .oracle = "np.ones_like(x)"}}; }},

    {.name = "stop_gradient",
     .doc = "The same values as a new tensor that no tape and no accumulator follows.",
     .args = {"x"},
     .infer = same_as_first,
     .forward = kShare,
     .rule = none(),
     .samples = [] { return std::vector<Sample>{{.inputs = {f64({1, 2})}, .expected = {f64({1, 2})}, .oracle = "x"}}; }},
};

Tensor reshape_last(const Tensor& x, int axes, const Shape& shape) { return find(table, "reshape").with(ReshapeAttrs{axes, shape}, x); }
Tensor transposed(const Tensor& x, const TransposeAttrs& attrs) { return find(table, "transpose").with(attrs, x); }
Tensor part_of(const Tensor& x, const SliceAttrs& part) { return find(table, "slice").with(part, x); }
Tensor padded(const Tensor& x, const PadAttrs& padding) { return find(table, "pad").with(padding, x); }

void concat_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  const Tensor dy = std::move(dys[0]).dense();
  const int axis = c.attrs<ConcatAttrs>().axis;
  SliceAttrs part;
  for (int d = axis; d < 0; ++d) part.begin.push_back(0), part.size.push_back(-1);
  for (int i = 0; i < c.x.size(); ++i) {
    const Shape& x = c.x[i].shape();
    part.size.set(0, x[x.ndim() + axis]);
    if (c.needs(i)) dx[static_cast<std::size_t>(i)] = part_of(dy, part);
    part.begin.set(0, part.begin[0] + part.size[0]);
  }
}

void concat_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  std::vector<Tensor> parts;
  for (int i = 0; i < dx.size(); ++i) parts.push_back(dx[i].defined() ? dx[i] : zeros_like(c.x[i]));
  dy[0] = c.op.run(parts, c.raw_attrs).front();
}

// For functions that are made of others and have no entry of their own.
int checked_position(std::string_view name, int axis, int ndim, const Tensor& x) {
  if (axis < -ndim || axis >= ndim) throw_error<ShapeError>("{}: axis {} is out of range for x, {}; use {}..{}", name, axis, x.spec(), -ndim, ndim - 1);
  return axis < 0 ? axis + ndim : axis;
}

void require_rank(std::string_view name, const Tensor& x, const Shape& a, const Shape& b) {
  if (a.ndim() != x.ndim() || b.ndim() != x.ndim()) throw_error<ShapeError>("{}: {} and {} are not of the rank of x, {}", name, a, b, x.spec());
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  Shape known;
  int open = -1;
  for (int d = 0; d < shape.ndim(); ++d) {
    if (shape[d] == -1 && open >= 0) throw_error<ShapeError>("reshape: more than one extent is -1: shape is {}", shape);
    if (shape[d] == -1) open = d;
    else known.push_back(shape[d]);
  }
  if (open < 0) return reshape_last(x, x.ndim(), shape);
  const std::int64_t size = known.size();
  if (size == 0 || x.size() % size) throw_error<ShapeError>("reshape: no extent fits in the place of -1: x is {}, shape is {}", x.spec(), shape);
  Shape full = shape;
  full.set(open, x.size() / size);
  return reshape_last(x, x.ndim(), full);
}

Tensor expand_dims(const Tensor& x, int axis) {
  const int at = checked_position("expand_dims", axis, x.ndim() + 1, x);
  Shape shape(x.shape().dims().first(static_cast<std::size_t>(at)));
  shape.push_back(1);
  for (int d = at; d < x.ndim(); ++d) shape.push_back(x.shape()[d]);
  return reshape(x, shape);
}

Tensor squeeze(const Tensor& x, const std::vector<int>& axes) {
  std::array<bool, Shape::kMaxRank> named{};
  for (const int axis : axes) {
    const int d = checked_position("squeeze", axis, x.ndim(), x);
    if (x.shape()[d] != 1) throw_error<ShapeError>("squeeze: axis {} of x, {}, has more or less than one entry", axis, x.spec());
    named[static_cast<std::size_t>(d)] = true;
  }
  Shape shape;
  for (int d = 0; d < x.ndim(); ++d)
    if (!(axes.empty() ? x.shape()[d] == 1 : named[static_cast<std::size_t>(d)])) shape.push_back(x.shape()[d]);
  return reshape(x, shape);
}

Tensor transpose(const Tensor& x, const std::vector<int>& perm) {
  TransposeAttrs attrs{x.ndim(), {}};
  const auto count = static_cast<std::size_t>(x.ndim());
  std::array<bool, Shape::kMaxRank> seen{};
  for (std::size_t d = 0; d < count; ++d) {
    const int axis = perm.empty() ? static_cast<int>(count - 1 - d) : d < perm.size() ? perm[d] + (perm[d] < 0 ? x.ndim() : 0) : -1;
    if (axis < 0 || axis >= x.ndim() || perm.size() > count || std::exchange(seen[static_cast<std::size_t>(axis)], true))
      throw_error<ShapeError>("transpose: perm does not name every axis of x once: perm is [{}], x is {}", fmt::join(perm, ","), x.spec());
    attrs.perm[d] = static_cast<std::int8_t>(axis);
  }
  return transposed(x, attrs);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) { return find(table, "broadcast_to").with(shape, x); }

Tensor concat(std::span<const Tensor> x, int axis) {
  const Op& op = find(table, "concat");
  if (x.empty()) throw ArgumentError("concat: no tensors");
  DType dtype = x.front().dtype();
  for (const Tensor& t : x) dtype = promote(dtype, t.dtype());
  std::vector<Tensor> parts;
  for (const Tensor& t : x) parts.push_back(t.dtype() == dtype ? t : astype(t, dtype));
  const int ndim = x.front().ndim();
  return op.run(parts, ConcatAttrs{checked_axis(op, axis, ndim) - ndim}).front();
}

Tensor slice(const Tensor& x, const Shape& begin, const Shape& size) {
  require_rank("slice", x, begin, size);
  return part_of(x, {begin, size});
}

Tensor pad(const Tensor& x, const Shape& before, const Shape& after) {
  require_rank("pad", x, before, after);
  return padded(x, {before, after});
}

Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype) { return find(table, "one_hot").with(OneHotAttrs{depth, dtype}, indices); }
Tensor identity(const Tensor& x) { return find(table, "identity").execute({std::array{&x}.data(), 1}); }
Tensor stop_gradient(const Tensor& x) { return find(table, "stop_gradient").execute({std::array{&x}.data(), 1}); }
Tensor zeros_like(const Tensor& x) { return find(table, "zeros_like").execute({std::array{&x}.data(), 1}); }
Tensor ones_like(const Tensor& x) { return find(table, "ones_like").execute({std::array{&x}.data(), 1}); }

std::span<const Op> array_ops() { return table; }

}  // namespace tapedeck
