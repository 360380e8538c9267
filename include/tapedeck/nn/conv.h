// Convolutional layers over sequences, images and volumes. Variables are made as those of Dense.
#pragma once
#include "tapedeck/nn/new_variables.h"
#include "tapedeck/ops/conv.h"

namespace tapedeck::nn {

/// Which windows nn::Conv1dTranspose reads: conv2d_transpose's for one spatial axis.
struct Conv1dTransposeOptions {
  std::int64_t stride = 1, dilation = 1;
  Padding padding = Padding::valid;   // explicit padding: at left and right
  std::int64_t size = 0;              // extent of the result; 0: the smallest
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
};

/// Options of nn::Conv1d: those of conv1d, then those of its variables.
struct Conv1dLayerOptions {
  std::int64_t stride = 1, dilation = 1;
  Padding padding = Padding::valid;
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
  // As of LayerOptions.
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};
  DType dtype = DType::f32;
};
/// conv1d of sequences [..., width, inputs], plus a bias. Throws what conv1d does.
struct TAPEDECK_EXPORT Conv1d {
  std::int64_t inputs, outputs;
  Conv1dOptions window;
  Variable kernel;                // [window extents, inputs / groups, outputs]
  std::optional<Variable> bias;   // [outputs]

  /// Throws ArgumentError for sizes below 1, and for groups that do not divide inputs and outputs.
  Conv1d(std::int64_t inputs_, std::int64_t outputs_, std::int64_t kernel_size, random::Key key,
         const Conv1dLayerOptions& options = {});

  /// The result for x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("kernel", kernel), visit("bias", bias);
  }
};
/// Options of nn::Conv1dTranspose: those of conv2d_transpose for one spatial axis, then those of its
/// variables.
struct Conv1dTransposeLayerOptions {
  std::int64_t stride = 1, dilation = 1;
  Padding padding = Padding::valid;
  std::int64_t size = 0;   // of the result; 0: the smallest
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
  // As of LayerOptions.
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};
  DType dtype = DType::f32;
};
/// conv2d_transpose of sequences [..., width, inputs], as images of one row, plus a bias. Throws what
/// conv2d_transpose does.
struct TAPEDECK_EXPORT Conv1dTranspose {
  std::int64_t inputs, outputs;
  Conv1dTransposeOptions window;
  Variable kernel;                // [window extents, outputs / groups, inputs]
  std::optional<Variable> bias;   // [outputs]

  /// Throws as Conv1d does.
  Conv1dTranspose(std::int64_t inputs_, std::int64_t outputs_, std::int64_t kernel_size, random::Key key,
                  const Conv1dTransposeLayerOptions& options = {});

  /// The result for x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("kernel", kernel), visit("bias", bias);
  }
};

/// Options of nn::Conv2d: those of conv2d, then those of its variables.
struct Conv2dLayerOptions {
  HeightWidth strides = 1, dilation = 1;
  Padding padding = Padding::valid;
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
  // As of LayerOptions.
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};
  DType dtype = DType::f32;
};
/// conv2d of images [..., height, width, inputs], plus a bias. Throws what conv2d does.
struct TAPEDECK_EXPORT Conv2d {
  std::int64_t inputs, outputs;
  Conv2dOptions window;
  Variable kernel;                // [window extents, inputs / groups, outputs]
  std::optional<Variable> bias;   // [outputs]

  /// Throws ArgumentError for sizes below 1, and for groups that do not divide inputs and outputs.
  Conv2d(std::int64_t inputs_, std::int64_t outputs_, HeightWidth kernel_size, random::Key key,
         const Conv2dLayerOptions& options = {});

  /// The result for x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("kernel", kernel), visit("bias", bias);
  }
};
/// Options of nn::Conv2dTranspose: those of conv2d_transpose, then those of its variables.
struct Conv2dTransposeLayerOptions {
  HeightWidth strides = 1, dilation = 1;
  Padding padding = Padding::valid;
  HeightWidth size = 0;   // of the result; 0: the smallest
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
  // As of LayerOptions.
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};
  DType dtype = DType::f32;
};
/// conv2d_transpose of images [..., height, width, inputs], plus a bias. Throws what conv2d_transpose
/// does.
struct TAPEDECK_EXPORT Conv2dTranspose {
  std::int64_t inputs, outputs;
  Conv2dTransposeOptions window;
  Variable kernel;                // [window extents, outputs / groups, inputs]
  std::optional<Variable> bias;   // [outputs]

  /// Throws as Conv2d does.
  Conv2dTranspose(std::int64_t inputs_, std::int64_t outputs_, HeightWidth kernel_size, random::Key key,
                  const Conv2dTransposeLayerOptions& options = {});

  /// The result for x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("kernel", kernel), visit("bias", bias);
  }
};

/// Options of nn::Conv3d: those of conv3d, then those of its variables.
struct Conv3dLayerOptions {
  DepthHeightWidth strides = 1, dilation = 1;
  Padding3d padding = Padding::valid;
  std::int64_t groups = 1;
  Layout layout = Layout::ndhwc;
  // As of LayerOptions.
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};
  DType dtype = DType::f32;
};
/// conv3d of volumes [..., depth, height, width, inputs], plus a bias. Throws what conv3d does.
struct TAPEDECK_EXPORT Conv3d {
  std::int64_t inputs, outputs;
  Conv3dOptions window;
  Variable kernel;                // [window extents, inputs / groups, outputs]
  std::optional<Variable> bias;   // [outputs]

  /// Throws ArgumentError for sizes below 1, and for groups that do not divide inputs and outputs.
  Conv3d(std::int64_t inputs_, std::int64_t outputs_, DepthHeightWidth kernel_size, random::Key key,
         const Conv3dLayerOptions& options = {});

  /// The result for x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("kernel", kernel), visit("bias", bias);
  }
};
/// Options of nn::Conv3dTranspose: those of conv3d_transpose, then those of its variables.
struct Conv3dTransposeLayerOptions {
  DepthHeightWidth strides = 1, dilation = 1;
  Padding3d padding = Padding::valid;
  DepthHeightWidth size = 0;   // of the result; 0: the smallest
  std::int64_t groups = 1;
  Layout layout = Layout::ndhwc;
  // As of LayerOptions.
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};
  DType dtype = DType::f32;
};
/// conv3d_transpose of volumes [..., depth, height, width, inputs], plus a bias. Throws what conv3d_transpose
/// does.
struct TAPEDECK_EXPORT Conv3dTranspose {
  std::int64_t inputs, outputs;
  Conv3dTransposeOptions window;
  Variable kernel;                // [window extents, outputs / groups, inputs]
  std::optional<Variable> bias;   // [outputs]

  /// Throws as Conv3d does.
  Conv3dTranspose(std::int64_t inputs_, std::int64_t outputs_, DepthHeightWidth kernel_size, random::Key key,
                  const Conv3dTransposeLayerOptions& options = {});

  /// The result for x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("kernel", kernel), visit("bias", bias);
  }
};

}   // namespace tapedeck::nn
