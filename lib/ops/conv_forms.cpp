// Other forms of convolution, composed of ops: in one and three dimensions, by channel, and morphological dilation.
#include <algorithm>
#include <limits>

#include "base/format.h"
#include "ops/window.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

// A name and arguments, for messages.
constexpr Op named(std::string_view name) { return {.name = name, .doc = "", .args = {"x", "filters"}, .infer = same_as_first, .forward = {}, .rule = none()}; }
constexpr Op kDepthwise = named("depthwise_conv2d"), kDilation = named("dilation2d");

HeightWidth plane_of(DepthHeightWidth v) { return {v.height, v.width}; }
// Of planes that are each seen as one row of pixels.
Padding across_planes(const Padding3d& p) { return p.plane.mode == Padding::given ? Padding(p.front, p.back, 0, 0) : p.plane; }

void require_volumes(std::string_view name, const Tensor& x, const Tensor& filters, int channels_at) {
  if (x.ndim() < 4) throw_error<ShapeError>("{}: x needs the axes depth, height, width and channels: x is {}", name, x.spec());
  if (filters.ndim() != 5 || filters.shape()[channels_at] != channels_of(x) || std::min({filters.shape()[0], filters.shape()[1], filters.shape()[2]}) < 1)
    throw_error<ShapeError>("{}: filters are not [planes, rows, columns, {}]: x is {}, filters is {}", name,
                            channels_at == 3 ? fmt::format("{}, out", channels_of(x)) : fmt::format("out, {}", channels_of(x)), x.spec(), filters.spec());
}

// Volumes [front…, depth, height, width, channels] under another depth, image and channels.
Shape volumes(const Shape& x, std::initializer_list<std::int64_t> last) {
  Shape y(x.dims().first(static_cast<std::size_t>(x.ndim() - 4)));
  for (const std::int64_t d : last) y.push_back(d);
  return y;
}

// The planes of filters [planes, rows, columns, a, b] as a times as many channels.
Tensor flattened(const Tensor& filters) {
  const Shape& f = filters.shape();
  return reshape(transpose(filters, {1, 2, 0, 3, 4}), {f[1], f[2], f[0] * f[3], f[4]});
}

// The part of x that each cell of a window reads, with what is put around x.
class Cells {
 public:
  Cells(const Tensor& x, const Window2d& w, double around) : w_(w) {
    Shape before, after;
    for (int d = 0; d < x.ndim(); ++d) {
      const kernels::WindowAxis* axis = d == x.ndim() - 3 ? &w.rows : d == x.ndim() - 2 ? &w.columns : nullptr;
      before.push_back(axis ? axis->before : 0);
      after.push_back(axis ? std::max<std::int64_t>(axis->position(axis->outputs - 1, axis->size - 1) + 1 - axis->extent, 0) : 0);
    }
    const auto none = [](const Shape& n) { return std::all_of(n.begin(), n.end(), [](std::int64_t k) { return k == 0; }); };
    padded_ = x;
    if (none(before) && none(after)) return;
    padded_ = pad(x, before, after);
    if (around != 0) padded_ = where(astype(pad(ones_like(stop_gradient(x)), before, after), DType::boolean), padded_, around);
  }
  Tensor operator()(std::int64_t row, std::int64_t column) const {
    return strided_slice(padded_, {Slice::ellipsis, along(w_.rows, row), along(w_.columns, column), Slice()});
  }

 private:
  static Slice along(const kernels::WindowAxis& a, std::int64_t cell) {
    const std::int64_t begin = cell * a.dilation;
    return {begin, begin + (a.outputs - 1) * a.stride + 1, a.stride};
  }

  Window2d w_;
  Tensor padded_;
};

// What both depthwise_conv2d and dilation2d ask of their arguments.
Window2d checked(const Op& op, const Tensor& x, const Tensor& filters, const Conv2dOptions& o, int filter_rank) {
  const Tensor* inputs[] = {&x, &filters};
  const Call c{.op = op, .x = {inputs, 2}};
  check_numbers(op, "strides are", o.strides);
  check_numbers(op, "dilation is", o.dilation);
  check_padding(op, o.padding, kMostCells);
  require_one_dtype(c);
  require_rank(c, 0);
  const Shape& f = filters.shape();
  if (f.ndim() != filter_rank || f[2] != channels_of(x) || std::min(f[0], f[1]) < 1)
    throw_shape_error(c, fmt::format("filters are not [rows, columns, {}{}]", channels_of(x), filter_rank == 4 ? ", multiplier" : ""));
  return checked_window(c, "the filters are", {f[0], f[1]}, o.strides, o.dilation, o.padding);
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& filters, const Conv1dOptions& o) {
  if (x.ndim() < 2) throw_error<ShapeError>("conv1d: x needs the axes width and channels: x is {}", x.spec());
  if (filters.ndim() != 3) throw_error<ShapeError>("conv1d: filters need the axes columns, in and out: filters is {}", filters.spec());
  const Tensor y = conv2d(expand_dims(x, -3), expand_dims(filters, 0), {.strides = {1, o.stride}, .dilation = {1, o.dilation}, .padding = o.padding});
  return squeeze(y, -3);
}

Tensor conv3d(const Tensor& x, const Tensor& filters, const Conv3dOptions& o) {
  require_volumes("conv3d", x, filters, 3);
  const int n = x.ndim();
  const std::int64_t depth = x.shape()[n - 4], height = x.shape()[n - 3], width = x.shape()[n - 2], planes = filters.shape()[0];
  const Tensor stacks = extract_image_patches(reshape(x, volumes(x.shape(), {depth, height * width, channels_of(x)})),
                                              {.window = {planes, 1}, .strides = {o.strides.depth, 1}, .dilation = {o.dilation.depth, 1}, .padding = across_planes(o.padding)});
  const std::int64_t outputs = stacks.shape()[stacks.ndim() - 3];
  return conv2d(reshape(stacks, volumes(x.shape(), {outputs, height, width, planes * channels_of(x)})), flattened(filters),
                {.strides = plane_of(o.strides), .dilation = plane_of(o.dilation), .padding = o.padding.plane});
}

Tensor conv3d_transpose(const Tensor& x, const Tensor& filters, const Conv3dTransposeOptions& o) {
  constexpr std::string_view name = "conv3d_transpose";
  require_volumes(name, x, filters, 4);
  const std::int64_t depth = x.shape()[x.ndim() - 4], planes = filters.shape()[0], out = filters.shape()[3], stride = o.strides.depth;
  if (stride < 1 || o.dilation.depth < 1) throw_error<ArgumentError>("{}: strides and dilation in depth are {} and {}; use 1 or more", name, stride, o.dilation.depth);
  if (o.padding.front < 0 || o.padding.back < 0) throw_error<ArgumentError>("{}: padding is {} and {} in front and behind; use 0 or more", name, o.padding.front, o.padding.back);
  const bool given = o.size != DepthHeightWidth(0);
  const std::int64_t least = o.padding.plane.mode == Padding::same ? depth * stride : (depth - 1) * stride + (planes - 1) * o.dilation.depth + 1 - o.padding.front - o.padding.back;
  const std::int64_t size = given ? o.size.depth : std::max<std::int64_t>(least, 0);
  const Tensor stacks = conv2d_transpose(x, flattened(filters), {.strides = plane_of(o.strides), .dilation = plane_of(o.dilation), .padding = o.padding.plane,
                                                                 .size = given ? plane_of(o.size) : HeightWidth(0)});
  const std::int64_t height = stacks.shape()[stacks.ndim() - 3], width = stacks.shape()[stacks.ndim() - 2];
  const Window2d w = window_of({size, height * width}, {planes, 1}, {stride, 1}, {o.dilation.depth, 1}, across_planes(o.padding));
  if (size < 0 || w.rows.outputs != depth) throw_error<ShapeError>("{}: conv3d makes {} planes of {}: x is {}", name, w.rows.outputs, size, x.spec());
  return reshape(image_patches_gradient(w, reshape(stacks, volumes(x.shape(), {depth, height * width, planes * out}))), volumes(x.shape(), {size, height, width, out}));
}

Tensor depthwise_conv2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& o) {
  if (o.layout == Layout::nchw) throw ArgumentError("depthwise_conv2d: takes the layout nhwc; transpose the images");
  const Window2d w = checked(kDepthwise, x, filters, o, 4);
  const Cells cells(x, w, 0);
  const std::int64_t multiplier = filters.shape()[3];
  std::vector<Tensor> terms;
  for (std::int64_t r = 0; r < w.rows.size; ++r)
    for (std::int64_t k = 0; k < w.columns.size; ++k) terms.push_back(expand_dims(cells(r, k), -1) * strided_slice(filters, {r, k}));
  const Tensor y = add_n(std::move(terms));
  return reshape(y, behind(front_of(x), output_of(w), channels_of(x) * multiplier));
}

Tensor dilation2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& o) {
  const Window2d w = checked(kDilation, x, filters, o, 3);
  const Cells cells(x, w, -std::numeric_limits<double>::infinity());
  Tensor y;
  for (std::int64_t r = 0; r < w.rows.size; ++r)
    for (std::int64_t k = 0; k < w.columns.size; ++k) {
      const Tensor sum = cells(r, k) + strided_slice(filters, {r, k});
      y = y.defined() ? maximum(y, sum) : sum;
    }
  return y;
}

}  // namespace tapedeck
