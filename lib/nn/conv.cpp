// Convolutional layers.
#include "tapedeck/nn/conv.h"

#include <fmt/format.h>

#include "core/format.h"
#include "nn/in_layer.h"
#include "nn/variables_of.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck::nn {
namespace {

constexpr const char *kConv[] = {"conv1d", "conv2d", "conv3d"},
                     *kTranspose[] = {"conv1d_transpose", "conv2d_transpose", "conv3d_transpose"};

template <int N> Shape numbers_of(const ExtentsOf<N>& v) {
  if constexpr (N == 1)
    return {v};
  else if constexpr (N == 2)
    return {v.height, v.width};
  else
    return {v.depth, v.height, v.width};
}

void check_positive(const char* layer, std::string_view name, const Shape& numbers) {
  for (const std::int64_t n : numbers)
    if (n < 1) throw_error<ArgumentError>("{}: {} {}; use 1 or more", layer, name, fmt::join(numbers, "×"));
}

// A kernel [window extents, channels of a group, last].
template <int N, class Options> Variable conv_kernel(const char* layer, ExtentsOf<N> size,
                                                     std::int64_t divided, std::int64_t last, random::Key key,
                                                     const Options& o) {
  if (o.groups < 1 || divided % o.groups != 0 || last % o.groups != 0)
    throw_error<ArgumentError>("{}: groups is {}, which does not divide {} and {} channels", layer, o.groups,
                               divided, last);
  check_positive(layer, "strides are", numbers_of<N>(o.strides));
  check_positive(layer, "dilation is", numbers_of<N>(o.dilation));
  Shape shape = numbers_of<N>(size);
  shape.push_back(divided / o.groups);
  shape.push_back(last);
  return detail::new_kernel(layer, shape, key, variables_of(o));
}

// Treats a sequence as an image of one row.
HeightWidth in_a_row(std::int64_t n) { return {1, n}; }
Conv2dTransposeOptions in_a_row(const ConvTransposeOptions<1>& o) {
  const bool is_given = o.padding.mode == Padding::given;
  return {.strides = in_a_row(o.strides),
          .dilation = in_a_row(o.dilation),
          .padding = is_given ? Padding(0, 0, o.padding.left, o.padding.right) : o.padding,
          .size = o.size == 0 ? HeightWidth(0) : in_a_row(o.size),
          .groups = o.groups,
          .layout = o.layout};
}

Tensor output_of(const Tensor& x, const Tensor& kernel, const Conv1dOptions& o) {
  return conv1d(x, kernel, o);
}
Tensor output_of(const Tensor& x, const Tensor& kernel, const Conv2dOptions& o) {
  return conv2d(x, kernel, o);
}
Tensor output_of(const Tensor& x, const Tensor& kernel, const Conv3dOptions& o) {
  return conv3d(x, kernel, o);
}
Tensor output_of(const Tensor& x, const Tensor& kernel, const ConvTransposeOptions<1>& o) {
  const int row = o.layout == Layout::nchw ? -2 : -3;   // the position of the axis of rows
  return squeeze(conv2d_transpose(expand_dims(x, row), expand_dims(kernel, 0), in_a_row(o)), {row});
}
Tensor output_of(const Tensor& x, const Tensor& kernel, const Conv2dTransposeOptions& o) {
  return conv2d_transpose(x, kernel, o);
}
Tensor output_of(const Tensor& x, const Tensor& kernel, const Conv3dTransposeOptions& o) {
  return conv3d_transpose(x, kernel, o);
}

template <class L> Tensor with_bias(const L& layer, Tensor y) {
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
  return detail::noted(&layer, detail::type_name<L>(), std::move(y));
}

// The output of the op, plus the bias.
template <int N, class L> Tensor convolved(const L& layer, const Tensor& x) {
  constexpr std::string_view last[] = {"...,width,#", "...,height,width,#", "...,depth,height,width,#"},
                             first[] = {"...,#,width", "...,#,height,width", "...,#,depth,height,width"};
  return in_layer({&layer, detail::type_name<L>(), layer.kernel,
                   (layer.window.layout == Layout::nchw ? first : last)[N - 1], layer.inputs},
                  x, [&] { return with_bias(layer, output_of(x, layer.kernel, layer.window)); });
}

}   // namespace

template <int N> Conv<N>::Conv(std::int64_t inputs_, std::int64_t outputs_, ExtentsOf<N> size,
                               random::Key key, const ConvLayerOptions<N>& o)
    : inputs(inputs_),
      outputs(outputs_),
      window{.strides = o.strides,
             .dilation = o.dilation,
             .padding = o.padding,
             .groups = o.groups,
             .layout = o.layout},
      kernel(conv_kernel<N>(kConv[N - 1], size, inputs, outputs, key.split(0), o)),
      bias(detail::new_bias(outputs, kernel.shape(), key.split(1), variables_of(o))) {}
template <int N> Tensor Conv<N>::operator()(const Tensor& x) const { return convolved<N>(*this, x); }

template <int N>
ConvTranspose<N>::ConvTranspose(std::int64_t inputs_, std::int64_t outputs_, ExtentsOf<N> size,
                                random::Key key, const ConvTransposeLayerOptions<N>& o)
    : inputs(inputs_),
      outputs(outputs_),
      window{.strides = o.strides,
             .dilation = o.dilation,
             .padding = o.padding,
             .size = o.size,
             .groups = o.groups,
             .layout = o.layout},
      kernel(conv_kernel<N>(kTranspose[N - 1], size, outputs, inputs, key.split(0), o)),
      bias(detail::new_bias(outputs, kernel.shape(), key.split(1), variables_of(o))) {}
template <int N> Tensor ConvTranspose<N>::operator()(const Tensor& x) const { return convolved<N>(*this, x); }

template struct Conv<1>;
template struct Conv<2>;
template struct Conv<3>;
template struct ConvTranspose<1>;
template struct ConvTranspose<2>;
template struct ConvTranspose<3>;

}   // namespace tapedeck::nn
