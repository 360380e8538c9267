// Padding, with a constant or with mirrored entries.
#include "core/cast.h"
#include "core/format.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/entries_along_axis.h"
#include "ops/layout/slice.h"
#include "ops/layout/slice_or_share.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

// The shape of x with entries added to its last axes.
Shape padded_shape(std::string_view op, const Tensor& x, const Shape& before, const Shape& after) {
  Shape shape = x.shape();
  for (int d = 0; d < before.ndim(); ++d) {
    const int axis = shape.ndim() - before.ndim() + d;
    if (before[d] < 0 || after[d] < 0)
      throw_error<ShapeError>("{}: a negative count: before is {}, after is {}", op, before, after);
    std::int64_t extent = shape[axis];
    if (__builtin_add_overflow(extent, before[d], &extent) ||
        __builtin_add_overflow(extent, after[d], &extent))
      throw_error<ShapeError>("{}: too many elements: before is {}, after is {}, x is {}", op, before, after,
                              x.spec());
    shape.set(axis, extent);
  }
  return shape;
}

Spec infer_pad(const Call& c) {
  const auto& [before, after, value] = c.attrs<PadAttrs>();
  require_axes(c, before.ndim());
  return {c.x[0].dtype(), padded_shape("pad", c.x[0], before, after)};
}

void run_pad(const Call& c, std::span<Tensor> y) {
  const double value = c.attrs<PadAttrs>().value;
  const kernels::StridedView at = kernels::sliced(
      y[0].shape(), filled_in_front(c.attrs<PadAttrs>().before, y[0].ndim(), 0), c.x[0].shape());
  if (value == 0)
    kernels::clear_around(y[0], at, c.x[0].size());
  else
    fill(y[0], value);
  kernels::copy_to(c.x[0], y[0], at);
}

// The part of y that holds x, as the attributes of slice.
SliceAttrs inside(const PadAttrs& padding, const Shape& x) {
  return {padding.before, Shape(x.dims().last(static_cast<std::size_t>(padding.before.ndim())))};
}

constexpr Op kPad = {
    .name = "pad",
    .doc = "x padded with zeros or another number; with zeros, the adjoint of slice.",
    .tensorflow = "Pad PadV2",
    .args = {"x"},
    .infer = infer_pad,
    .forward = moves(run_pad),
    .rule = Rule::custom(
                {},
                [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                  dx[0] = part_of(std::move(dy[0]).dense(), inside(c.attrs<PadAttrs>(), c.x[0].shape()));
                },
                [](const Call& c, Refs dx, std::span<Tensor> dy) {
                  dy[0] = padded(dx[0], {c.attrs<PadAttrs>().before, c.attrs<PadAttrs>().after});
                })
                .stacking_jvp(),
};

constexpr const Op* pad_table[] = {&kPad};

}   // namespace

Tensor padded(const Tensor& x, const PadAttrs& padding) { return kPad(x, padding); }

Tensor pad(const Tensor& x, Ints before, Ints after, double value) {
  const PadAttrs padding = {Shape(before.span()), Shape(after.span()), value};
  require_same_rank("pad", x, padding.before, padding.after);
  return padded(x, padding);
}

// Pads one axis at a time, by selecting entries of that axis.
Tensor mirror_pad(const Tensor& x, Ints before_each, Ints after_each, Mirror mirror) {
  const Shape before(before_each.span()), after(after_each.span());
  require_same_rank("mirror_pad", x, before, after);
  const std::int64_t edge = mirror == Mirror::reflect ? 1 : 0;   // entries at the edge that are not repeated
  for (int d = 0; d < x.ndim(); ++d)
    if (const std::int64_t most = std::max<std::int64_t>(x.shape()[d] - edge, 0);
        before[d] < 0 || after[d] < 0 || before[d] > most || after[d] > most)
      throw_error<ShapeError>(
          "mirror_pad: axis {} can be padded by 0 to {} entries: before is {}, after is {}, x is {}", d, most,
          before, after, x.spec());
  if (x.size() == 0) return reshape(x, padded_shape("mirror_pad", x, before, after));
  Tensor y = x;
  for (int d = 0; d < x.ndim(); ++d) {
    if (!before[d] && !after[d]) continue;
    const std::int64_t n = x.shape()[d];
    std::vector<std::int64_t> from;
    for (std::int64_t i = before[d]; i > 0; --i)
      from.push_back(i - 1 + edge);
    for (std::int64_t i = 0; i < n; ++i)
      from.push_back(i);
    for (std::int64_t i = 0; i < after[d]; ++i)
      from.push_back(n - 1 - edge - i);
    y = entries(y, from, d);
  }
  return y;
}

std::span<const Op* const> pad_ops() { return pad_table; }

}   // namespace tapedeck
