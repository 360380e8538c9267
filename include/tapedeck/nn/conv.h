// Convolutional layers over N spatial axes: sequences, images and volumes. Variables are initialized like
// those of Dense. The library provides the layers for N from 1 to 3.
#pragma once
#include <array>

#include "tapedeck/nn/fields.h"
#include "tapedeck/nn/new_variables.h"
#include "tapedeck/ops/conv.h"

namespace tapedeck::nn {

/// Options of nn::Conv: the options of its op, then the options of its variables, as in LayerOptions.
template <int N> struct ConvLayerOptions {
  ExtentsOf<N> strides = 1, dilation = 1;
  PaddingOf<N> padding = Padding::valid;
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};
  DType dtype = default_dtype();
};
/// conv1d, conv2d or conv3d of x [..., spatial extents, inputs], plus a bias. Throws what the op throws.
template <int N> struct TAPEDECK_EXPORT Conv {
  static_assert(N >= 1 && N <= 3, "Conv<N>: N is 1, 2 or 3");
  std::int64_t inputs, outputs;
  ConvOptions<N> window;
  Variable kernel;                // [window extents, inputs / groups, outputs]
  std::optional<Variable> bias;   // [outputs]

  /// Throws ArgumentError for sizes, strides and dilations below 1, and for groups that do not divide inputs
  /// and outputs.
  Conv(std::int64_t inputs_, std::int64_t outputs_, ExtentsOf<N> kernel_size, random::Key key,
       const ConvLayerOptions<N>& options = {});

  /// Applies the layer to x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class V> void for_each_member(const V& visit) { visit("kernel", kernel), visit("bias", bias); }
};

/// Options of nn::ConvTranspose, in the order of ConvLayerOptions.
template <int N> struct ConvTransposeLayerOptions {
  ExtentsOf<N> strides = 1, dilation = 1;
  PaddingOf<N> padding = Padding::valid;
  ExtentsOf<N> size = 0;   // extents of the result; 0: the smallest
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};
  DType dtype = default_dtype();
};
/// conv2d_transpose or conv3d_transpose of x [..., spatial extents, inputs], plus a bias. For a sequence,
/// conv2d_transpose of an image with one row. Throws what the op throws.
template <int N> struct TAPEDECK_EXPORT ConvTranspose {
  std::int64_t inputs, outputs;
  ConvTransposeOptions<N> window;
  Variable kernel;                // [window extents, outputs / groups, inputs]
  std::optional<Variable> bias;   // [outputs]

  /// Throws as Conv does.
  ConvTranspose(std::int64_t inputs_, std::int64_t outputs_, ExtentsOf<N> kernel_size, random::Key key,
                const ConvTransposeLayerOptions<N>& options = {});

  /// Applies the layer to x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class V> void for_each_member(const V& visit) { visit("kernel", kernel), visit("bias", bias); }
};

/// The layers for sequences, images and volumes, and their options.
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;
using Conv1dTranspose = ConvTranspose<1>;
using Conv2dTranspose = ConvTranspose<2>;
using Conv3dTranspose = ConvTranspose<3>;
using Conv1dLayerOptions = ConvLayerOptions<1>;
using Conv2dLayerOptions = ConvLayerOptions<2>;
using Conv3dLayerOptions = ConvLayerOptions<3>;
using Conv1dTransposeOptions = ConvTransposeOptions<1>;
using Conv1dTransposeLayerOptions = ConvTransposeLayerOptions<1>;
using Conv2dTransposeLayerOptions = ConvTransposeLayerOptions<2>;
using Conv3dTransposeLayerOptions = ConvTransposeLayerOptions<3>;

namespace detail {
template <int N> inline constexpr std::string_view given_name<Conv<N>> =
    std::array{"Conv1d", "Conv2d", "Conv3d"}[N - 1];
template <int N> inline constexpr std::string_view given_name<ConvTranspose<N>> =
    std::array{"Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose"}[N - 1];
}   // namespace detail

}   // namespace tapedeck::nn
