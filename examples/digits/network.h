// The networks: they map images of 64 pixels to scores for the 10 digits.
#pragma once
#include <cmath>
#include <string>

#include "tapedeck/tapedeck.h"

class Network {
 public:
  virtual ~Network() = default;
  /// f32[n,64] to f32[n,10].
  virtual tapedeck::Tensor operator()(const tapedeck::Tensor& pixels) const = 0;

  const std::string& name() const { return name_; }
  const std::vector<tapedeck::Variable>& weights() const { return weights_; }

 protected:
  Network(std::string name, tapedeck::random::Key key) : name_(std::move(name)), key_(key) {}

  /// Adds the weights and the bias of a layer. Weights of variance 2 / inputs preserve the variance of
  /// activations under relu (He et al. 2015).
  void add_layer(const std::string& name, const tapedeck::Shape& kernel) {
    const std::int64_t outputs = kernel[kernel.ndim() - 1];
    const double inputs = static_cast<double>(kernel.size() / outputs);
    weights_.emplace_back(
        tapedeck::random::normal(kernel, key_.split(weights_.size())) * std::sqrt(2 / inputs),
        tapedeck::VariableOptions{.name = name + " kernel"});
    weights_.emplace_back(tapedeck::zeros({outputs}), tapedeck::VariableOptions{.name = name + " bias"});
  }
  const tapedeck::Variable& kernel(std::size_t layer) const { return weights_[2 * layer]; }
  const tapedeck::Variable& bias(std::size_t layer) const { return weights_[2 * layer + 1]; }

 private:
  std::string name_;
  tapedeck::random::Key key_;
  std::vector<tapedeck::Variable> weights_;
};

/// A hidden layer of 128 units connected to all pixels.
class Mlp final : public Network {
 public:
  explicit Mlp(tapedeck::random::Key key) : Network("mlp", key) {
    add_layer("hidden", {64, 128});
    add_layer("scores", {128, 10});
  }

  tapedeck::Tensor operator()(const tapedeck::Tensor& pixels) const override {
    const tapedeck::Tensor hidden = tapedeck::relu(tapedeck::matmul(pixels, kernel(0)) + bias(0));
    return tapedeck::matmul(hidden, kernel(1)) + bias(1);
  }
};

/// Two convolutions, then 2×2 max pooling.
class Cnn final : public Network {
 public:
  explicit Cnn(tapedeck::random::Key key) : Network("cnn", key) {
    add_layer("strokes", {3, 3, 1, 16});
    add_layer("shapes", {3, 3, 16, 32});
    add_layer("scores", {4 * 4 * 32, 10});
  }

  tapedeck::Tensor operator()(const tapedeck::Tensor& pixels) const override {
    const tapedeck::Conv2dOptions same{.padding = tapedeck::Padding::same};
    const tapedeck::Tensor image = tapedeck::reshape(pixels, {-1, 8, 8, 1});
    const tapedeck::Tensor strokes = tapedeck::relu(tapedeck::conv2d(image, kernel(0), same) + bias(0));
    const tapedeck::Tensor shapes = tapedeck::relu(tapedeck::conv2d(strokes, kernel(1), same) + bias(1));
    const tapedeck::Tensor largest = tapedeck::max_pool2d(shapes, {.window = 2});
    return tapedeck::matmul(tapedeck::reshape(largest, {-1, 4 * 4 * 32}), kernel(2)) + bias(2);
  }
};
