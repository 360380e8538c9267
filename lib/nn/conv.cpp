// Convolutional layers.
#include "tapedeck/nn/conv.h"

#include "core/format.h"
#include "nn/in_layer.h"
#include "nn/variables_of.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck::nn {
namespace {

// The extents of a kernel: those of the window, then the channels of a group and `last`.
Shape kernel_shape(std::string_view layer, std::initializer_list<std::int64_t> window, std::int64_t divided,
                   std::int64_t last, std::int64_t groups) {
  if (groups < 1 || divided % groups != 0 || last % groups != 0)
    throw_error<ArgumentError>("{}: groups is {}, which does not divide {} and {} channels", layer, groups,
                               divided, last);
  Shape shape(window);
  shape.push_back(divided / groups);
  shape.push_back(last);
  return shape;
}

template <class L> Tensor with_bias(const L& layer, std::string_view type, Tensor y) {
  if (layer.bias) {
    Tensor bias = layer.bias->value();
    if (layer.window.layout == Layout::nchw) {   // the spatial axes follow the channels
      Shape shape{layer.outputs};
      for (int axis = 2; axis < layer.kernel.shape().ndim(); ++axis)
        shape.push_back(1);
      bias = reshape(bias, shape);
    }
    y = std::move(y) + bias;
  }
  return detail::noted(&layer, type, std::move(y));
}

// f(), the output of a convolution, plus the bias.
template <class L, class F>
Tensor convolved(const L& layer, std::string_view type, const Tensor& x, const F& f) {
  constexpr std::string_view last[] = {"...,width,#", "...,height,width,#", "...,depth,height,width,#"},
                             first[] = {"...,#,width", "...,#,height,width", "...,#,depth,height,width"};
  const int spatial = layer.kernel.shape().ndim() - 3;   // less one
  return in_layer({&layer, type, layer.kernel, (layer.window.layout == Layout::nchw ? first : last)[spatial],
                   layer.inputs},
                  x, [&] { return with_bias(layer, type, f()); });
}

// The options of the op, which stand among those of the layer.
template <class Window, class Options> Window window_of(const Options& o) {
  Window w{.dilation = o.dilation, .padding = o.padding, .groups = o.groups, .layout = o.layout};
  if constexpr (requires { w.stride; })
    w.stride = o.stride;
  else
    w.strides = o.strides;
  if constexpr (requires { w.size; }) w.size = o.size;
  return w;
}

// A sequence as an image of one row.
HeightWidth in_a_row(std::int64_t n) { return {1, n}; }
Conv2dTransposeOptions in_a_row(const Conv1dTransposeOptions& o) {
  const bool is_given = o.padding.mode == Padding::given;
  return {.strides = in_a_row(o.stride),
          .dilation = in_a_row(o.dilation),
          .padding = is_given ? Padding(0, 0, o.padding.left, o.padding.right) : o.padding,
          .size = o.size == 0 ? HeightWidth(0) : in_a_row(o.size),
          .groups = o.groups,
          .layout = o.layout};
}

}   // namespace

Conv1d::Conv1d(std::int64_t inputs_, std::int64_t outputs_, std::int64_t size, random::Key key,
               const Conv1dLayerOptions& options)
    : inputs(inputs_),
      outputs(outputs_),
      window(window_of<Conv1dOptions>(options)),
      kernel(detail::new_kernel("conv1d", kernel_shape("conv1d", {size}, inputs, outputs, window.groups),
                                key.split(0), variables_of(options))),
      bias(detail::new_bias(outputs, kernel.shape(), key.split(1), variables_of(options))) {}
Tensor Conv1d::operator()(const Tensor& x) const {
  return convolved(*this, "Conv1d", x, [&] { return conv1d(x, kernel, window); });
}

Conv1dTranspose::Conv1dTranspose(std::int64_t inputs_, std::int64_t outputs_, std::int64_t size,
                                 random::Key key, const Conv1dTransposeLayerOptions& options)
    : inputs(inputs_),
      outputs(outputs_),
      window(window_of<Conv1dTransposeOptions>(options)),
      kernel(detail::new_kernel("conv1d_transpose",
                                kernel_shape("conv1d_transpose", {size}, outputs, inputs, window.groups),
                                key.split(0), variables_of(options))),
      bias(detail::new_bias(outputs, kernel.shape(), key.split(1), variables_of(options))) {}
Tensor Conv1dTranspose::operator()(const Tensor& x) const {
  const int row = window.layout == Layout::nchw ? -2 : -3;   // where the axis of rows is put
  return convolved(*this, "Conv1dTranspose", x, [&] {
    return squeeze(conv2d_transpose(expand_dims(x, row), expand_dims(kernel, 0), in_a_row(window)), {row});
  });
}

Conv2d::Conv2d(std::int64_t inputs_, std::int64_t outputs_, HeightWidth size, random::Key key,
               const Conv2dLayerOptions& options)
    : inputs(inputs_),
      outputs(outputs_),
      window(window_of<Conv2dOptions>(options)),
      kernel(detail::new_kernel(
          "conv2d", kernel_shape("conv2d", {size.height, size.width}, inputs, outputs, window.groups),
          key.split(0), variables_of(options))),
      bias(detail::new_bias(outputs, kernel.shape(), key.split(1), variables_of(options))) {}
Tensor Conv2d::operator()(const Tensor& x) const {
  return convolved(*this, "Conv2d", x, [&] { return conv2d(x, kernel, window); });
}

Conv2dTranspose::Conv2dTranspose(std::int64_t inputs_, std::int64_t outputs_, HeightWidth size,
                                 random::Key key, const Conv2dTransposeLayerOptions& options)
    : inputs(inputs_),
      outputs(outputs_),
      window(window_of<Conv2dTransposeOptions>(options)),
      kernel(detail::new_kernel(
          "conv2d_transpose",
          kernel_shape("conv2d_transpose", {size.height, size.width}, outputs, inputs, window.groups),
          key.split(0), variables_of(options))),
      bias(detail::new_bias(outputs, kernel.shape(), key.split(1), variables_of(options))) {}
Tensor Conv2dTranspose::operator()(const Tensor& x) const {
  return convolved(*this, "Conv2dTranspose", x, [&] { return conv2d_transpose(x, kernel, window); });
}

Conv3d::Conv3d(std::int64_t inputs_, std::int64_t outputs_, DepthHeightWidth size, random::Key key,
               const Conv3dLayerOptions& options)
    : inputs(inputs_),
      outputs(outputs_),
      window(window_of<Conv3dOptions>(options)),
      kernel(detail::new_kernel(
          "conv3d",
          kernel_shape("conv3d", {size.depth, size.height, size.width}, inputs, outputs, window.groups),
          key.split(0), variables_of(options))),
      bias(detail::new_bias(outputs, kernel.shape(), key.split(1), variables_of(options))) {}
Tensor Conv3d::operator()(const Tensor& x) const {
  return convolved(*this, "Conv3d", x, [&] { return conv3d(x, kernel, window); });
}

Conv3dTranspose::Conv3dTranspose(std::int64_t inputs_, std::int64_t outputs_, DepthHeightWidth size,
                                 random::Key key, const Conv3dTransposeLayerOptions& options)
    : inputs(inputs_),
      outputs(outputs_),
      window(window_of<Conv3dTransposeOptions>(options)),
      kernel(detail::new_kernel("conv3d_transpose",
                                kernel_shape("conv3d_transpose", {size.depth, size.height, size.width},
                                             outputs, inputs, window.groups),
                                key.split(0), variables_of(options))),
      bias(detail::new_bias(outputs, kernel.shape(), key.split(1), variables_of(options))) {}
Tensor Conv3dTranspose::operator()(const Tensor& x) const {
  return convolved(*this, "Conv3dTranspose", x, [&] { return conv3d_transpose(x, kernel, window); });
}

}   // namespace tapedeck::nn
