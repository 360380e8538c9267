// Slices. In: tensors of any dtype. Out: a part of the elements, or a larger tensor that contains them.
#include "ops/layout/slice.h"

#include <algorithm>

#include "core/format.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/entries_along_axis.h"
#include "ops/layout/slice_or_share.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/index.h"
#include "tapedeck/ops/partition.h"
#include "tapedeck/ops/slice.h"
#include "tapedeck/variable.h"

namespace tapedeck {
namespace {

Spec infer_slice(const Call& c) {
  const auto& [begin, size] = c.attrs<SliceAttrs>();
  const Shape& x = c.x[0].shape();
  require_axes(c, begin.ndim());
  Shape part = x;
  for (int d = 0; d < begin.ndim(); ++d) {
    const int axis = x.ndim() - begin.ndim() + d;
    const std::int64_t rest = begin[d] < 0 ? -1 : x[axis] - begin[d];
    if (rest < 0 || size[d] < -1 || size[d] > rest)
      throw_error<ShapeError>("slice: the slice is out of range: begin is {}, size is {}, x is {}", begin,
                              size, c.x[0].spec());
    part.set(axis, size[d] < 0 ? rest : size[d]);
  }
  return {c.x[0].dtype(), part};
}

void run_slice(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  take(x, kernels::sliced(x.shape(), filled_in_front(c.attrs<SliceAttrs>().begin, x.ndim(), 0), y[0].shape()),
       y[0]);
}

// The entries that slice removes around the part, as the attributes of pad, its adjoint.
PadAttrs around(const SliceAttrs& part, const Shape& x, const Shape& y) {
  PadAttrs result{part.begin, {}};
  for (int d = part.begin.ndim(); d > 0; --d)
    result.after.push_back(x[x.ndim() - d] - y[y.ndim() - d] - part.begin[part.begin.ndim() - d]);
  return result;
}

// The strided view of the part in `whole`, including all of the leading axes.
kernels::StridedView places_of(const StridedAttrs& a, const Tensor& whole) {
  const int ndim = whole.ndim();
  return kernels::sliced(whole.shape(), filled_in_front(a.begin, ndim, 0),
                         behind_extra(whole, a.size.ndim(), a.size), filled_in_front(a.stride, ndim, 1));
}

void run_strided_pad(const Call& c, std::span<Tensor> y) {
  const kernels::StridedView at = places_of(c.attrs<StridedAttrs>(), y[0]);
  kernels::clear_around(y[0], at, c.x[0].size());
  kernels::copy_to(c.x[0], y[0], at);
}

Spec infer_strided_update(const Call& c) {
  const Spec updates = replaced_last(c, c.attrs<StridedAttrs>().whole, c.attrs<StridedAttrs>().shape);
  require_one_dtype(c);
  if (c.x[1].shape() != updates.shape) c.throw_shape_error(fmt::format("updates must be {}", updates.shape));
  return c.x[0].spec();
}

void run_strided_update(const Call& c, std::span<Tensor> y) {
  if (y[0].size() == 0) return;
  kernels::copy_runs(c.x[0], {0, 0}, y[0], {0, 0}, 1, y[0].size());
  kernels::copy_to(c.x[1], y[0], places_of(c.attrs<StridedAttrs>(), y[0]));
}

Spec infer_strided_add(const Call& c) {
  if (c.x[0].dtype() == DType::boolean) c.throw_dtype_error("takes numbers");
  return infer_strided_update(c);
}

void run_strided_add(const Call& c, std::span<Tensor> y) {
  if (y[0].size() == 0) return;
  if (y[0].address() != c.x[0].address()) kernels::copy_runs(c.x[0], {0, 0}, y[0], {0, 0}, 1, y[0].size());
  kernels::add_to(c.x[1], y[0], places_of(c.attrs<StridedAttrs>(), y[0]));
}

Tensor strided_padded(const Tensor& x, const StridedAttrs& part);
Tensor strided_sum(const Tensor& x, const StridedAttrs& part, const Tensor& updates);

// The part that slice selects, as StridedAttrs of the last axes.
StridedAttrs strided(const SliceAttrs& part, const Shape& x, const Shape& y) {
  const auto axes = static_cast<std::size_t>(part.begin.ndim());
  const Shape size(y.dims().last(axes));
  Shape ones;
  for (std::size_t d = 0; d < axes; ++d)
    ones.push_back(1);
  return {Shape(x.dims().last(axes)), part.begin, size, ones, size};
}

// The rule of an op that selects a part of x. If other parts have contributed to the gradient already, dy is
// added to it in place. Padding dy with zeros and adding the result would process all of x for every part.
template <class Adjoint, class Part> constexpr Rule of_part(Adjoint adjoint, Part) {
  Rule rule = Rule::linear(adjoint);
  rule.adds = 1;
  rule.vjp = [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
    const Tensor dy = std::move(dys[0]).dense();
    dx[0] = dx[0].defined() ? strided_sum(std::move(dx[0]).dense(), Part{}(c), dy) : Adjoint{}(c, dy);
  };
  return rule;
}

constexpr Op kSlice = {
    .name = "slice",
    .doc = "The part of x that starts at begin and has extents size.",
    .tensorflow = "Slice",
    .args = {"x"},
    .infer = infer_slice,
    .forward = moves({run_slice, Outputs::by_kernel}),
    .rule = of_part(
        [](const Call& c, const Tensor& dy) {
          return padded(dy, around(c.attrs<SliceAttrs>(), c.x[0].shape(), c.y[0].shape()));
        },
        [](const Call& c) { return strided(c.attrs<SliceAttrs>(), c.x[0].shape(), c.y[0].shape()); }),
};

constexpr Op kStridedSlice = {
    .name = "strided_slice",
    .doc = "The elements of x that slices select: begin:end:stride, or an index, along each axis.",
    .tensorflow = "StridedSlice",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          return replaced_last(c, c.attrs<StridedAttrs>().whole, c.attrs<StridedAttrs>().shape);
        },
    .forward = moves({[](const Call& c, std::span<Tensor> y) {
                        take(c.x[0], places_of(c.attrs<StridedAttrs>(), c.x[0]), y[0]);
                      },
                      Outputs::by_kernel}),
    .rule =
        of_part([](const Call& c, const Tensor& dy) { return strided_padded(dy, c.attrs<StridedAttrs>()); },
                [](const Call& c) { return c.attrs<StridedAttrs>(); }),
};

constexpr Op kStridedPad = {
    .name = "strided_pad",
    .doc = "Zeros with x at the positions that slices select; the adjoint of strided_slice.",
    .tensorflow = "StridedSliceGrad",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          return replaced_last(c, c.attrs<StridedAttrs>().shape, c.attrs<StridedAttrs>().whole);
        },
    .forward = moves(run_strided_pad),
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) { return strided_part_of(dy, c.attrs<StridedAttrs>()); }),
    .meaning = Meaning::rearrange,
};

constexpr Op kStridedSliceUpdate = {
    .name = "strided_slice_update",
    .doc = "x with the elements that slices select replaced by updates.",
    .tensorflow = "TensorStridedSliceUpdate",
    .args = {"x", "updates"},
    .infer = infer_strided_update,
    .forward = moves(run_strided_update),
    .rule = Rule::custom(
        {},
        [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
          const Tensor dy = std::move(dys[0]).dense();
          const StridedAttrs& part = c.attrs<StridedAttrs>();
          if (c.needs_gradient(0))
            dx[0] = c.op(dy, zeros(behind_extra(dy, part.whole.ndim(), part.shape), dy.dtype()), part);
          if (c.needs_gradient(1)) dx[1] = strided_part_of(dy, part);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          const auto tangent = [&](int i) {
            return dx[i].defined() ? dx[i] : zeros(c.x[i].shape(), c.x[i].dtype());
          };
          dy[0] = c.op(tangent(0), tangent(1), c.attrs<StridedAttrs>());
        }),
    .meaning = Meaning::rearrange,
};

constexpr Op kStridedSliceAdd = {
    .name = "strided_slice_add",
    .doc =
        "x with updates added to the elements that slices select. Used to sum the gradients of several "
        "slices in one tensor.",
    .args = {"x", "updates"},
    .infer = infer_strided_add,
    .forward = {run_strided_add, Outputs::may_overwrite},
    .rule = Rule::custom(
                {},
                [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
                  const Tensor dy = std::move(dys[0]).dense();
                  if (c.needs_gradient(0)) dx[0] = dy;
                  if (c.needs_gradient(1)) dx[1] = strided_part_of(dy, c.attrs<StridedAttrs>());
                },
                [](const Call& c, Refs dx, std::span<Tensor> dy) {
                  const StridedAttrs& part = c.attrs<StridedAttrs>();
                  if (!dx[1].defined())
                    dy[0] = dx[0];
                  else
                    dy[0] = dx[0].defined() ? c.op(dx[0], dx[1], part) : strided_padded(dx[1], part);
                })
                .stacking_jvp(),
    .meaning = Meaning::add_part,
};

constexpr const Op* slice_table[] = {&kSlice, &kStridedSlice, &kStridedPad, &kStridedSliceUpdate,
                                     &kStridedSliceAdd};

Tensor strided_padded(const Tensor& x, const StridedAttrs& part) { return kStridedPad(x, part); }
Tensor strided_sum(const Tensor& x, const StridedAttrs& part, const Tensor& updates) {
  const Tensor* refs[] = {&x, &updates};
  return kStridedSliceAdd({refs, 2}, Attrs(part), 1);
}

// Converts slices to the part that they select, axis by axis.
class Slicing {
 public:
  Slicing(std::string_view name, const Tensor& x) : name_(name), x_(x) {}

  void append(const Slice& s) {
    switch (s.kind) {
      case Slice::Kind::new_axis:
        return part_.shape.push_back(1);
      case Slice::Kind::index:
        return append_index(*s.begin);
      default:
        append_range(s);
    }
  }
  void append_whole(int axes) {
    for (int i = 0; i < axes; ++i)
      append_range({});
  }

  const StridedAttrs& part() const { return part_; }

 private:
  int axis() const { return part_.whole.ndim(); }

  void append(std::int64_t begin, std::int64_t size, std::int64_t stride) {
    part_.whole.push_back(x_.shape()[axis()]);
    part_.begin.push_back(begin);
    part_.size.push_back(size);
    part_.stride.push_back(stride);
  }

  void append_index(std::int64_t index) {
    const std::int64_t n = x_.shape()[axis()];
    if (index < -n || index >= n)
      throw_error<ShapeError>("{}: index {} is out of range for axis {} of x, {}", name_, index, axis(),
                              x_.spec());
    append(index < 0 ? index + n : index, 1, 1);
  }

  void append_range(const Slice& s) {
    if (s.stride == 0) throw_error<ArgumentError>("{}: the stride along axis {} is 0", name_, axis());
    const std::int64_t n = x_.shape()[axis()], low = s.stride > 0 ? 0 : -1,
                       high = s.stride > 0 ? n : n - 1;   // bounds of begin and end
    const auto inside = [&](std::optional<std::int64_t> at, std::int64_t otherwise) {
      return at ? std::clamp(*at < 0 ? *at + n : *at, low, high) : otherwise;
    };
    const std::int64_t begin = inside(s.begin, s.stride > 0 ? low : high),
                       end = inside(s.end, s.stride > 0 ? high : low);
    const std::int64_t way = end - begin, size = (way > 0) == (s.stride > 0) && way != 0
                                                     ? (way - (way > 0 ? 1 : -1)) / s.stride + 1
                                                     : 0;
    append(size ? begin : 0, size, size > 1 ? s.stride : 1);
    part_.shape.push_back(size);
  }

  std::string_view name_;
  const Tensor& x_;
  StridedAttrs part_;
};

StridedAttrs part_for(std::string_view name, const Tensor& x, std::span<const Slice> slices) {
  int axes = 0, ellipses = 0;
  for (const Slice& s : slices) {
    ellipses += s.kind == Slice::Kind::ellipsis;
    axes += s.kind == Slice::Kind::range || s.kind == Slice::Kind::index;
  }
  if (ellipses > 1) throw_error<ArgumentError>("{}: more than one ellipsis", name);
  if (axes > x.ndim()) throw_error<ShapeError>("{}: {} slices for x of rank {}", name, axes, x.ndim());
  Slicing slicing(name, x);
  for (const Slice& s : slices) {
    if (s.kind == Slice::Kind::ellipsis)
      slicing.append_whole(x.ndim() - axes);
    else
      slicing.append(s);
  }
  if (!ellipses) slicing.append_whole(x.ndim() - axes);
  return slicing.part();
}

Tensor bracketed(const Tensor& x, std::span<const Slice> at) {
  return strided_part_of(x, part_for("operator[]", x, at));
}
Tensor bracketed(const Tensor& x, const Tensor& at) {
  return at.dtype() == DType::boolean ? boolean_mask(x, at) : gather(x, at);
}

}   // namespace

Tensor part_of(const Tensor& x, const SliceAttrs& part) { return kSlice(x, part); }
Tensor strided_part_of(const Tensor& x, const StridedAttrs& part) { return kStridedSlice(x, part); }

void require_same_rank(std::string_view name, const Tensor& x, const Shape& a, const Shape& b) {
  if (a.ndim() != x.ndim() || b.ndim() != x.ndim())
    throw_error<ShapeError>("{}: {} and {} need one entry for each axis of x, {}", name, a, b, x.spec());
}

Tensor slice(const Tensor& x, Ints begin, Ints size) {
  const SliceAttrs part = {Shape(begin.span()), Shape(size.span())};
  require_same_rank("slice", x, part.begin, part.size);
  return part_of(x, part);
}

Tensor strided_slice(const Tensor& x, std::span<const Slice> slices) {
  return strided_part_of(x, part_for("strided_slice", x, slices));
}

Tensor Tensor::operator[](std::initializer_list<Slice> at) const {
  return bracketed(*this, {at.begin(), at.size()});
}
Tensor Tensor::operator[](const Slice& at) const { return bracketed(*this, {&at, 1}); }
Tensor Tensor::operator[](const Tensor& at) const { return bracketed(*this, at); }
Tensor Variable::operator[](std::initializer_list<Slice> at) const {
  return bracketed(value(), {at.begin(), at.size()});
}
Tensor Variable::operator[](const Slice& at) const { return bracketed(value(), {&at, 1}); }
Tensor Variable::operator[](const Tensor& at) const { return bracketed(value(), at); }

Tensor strided_slice_update(const Tensor& x, std::span<const Slice> slices, const Tensor& updates) {
  return kStridedSliceUpdate(x, updates, part_for("strided_slice_update", x, slices));
}

std::span<const Op* const> slice_ops() { return slice_table; }

}   // namespace tapedeck
