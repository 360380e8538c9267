// The network: 64 pixels, 128 hidden units, a score for each of the 10 digits.
#pragma once
#include <cmath>

#include "tapedeck/tapedeck.h"

class Mlp {
 public:
  explicit Mlp(tapedeck::random::Key key) {
    for (const auto& [inputs, outputs] : {std::pair{64, 128}, std::pair{128, 10}}) {
      // Weights of variance 2 / inputs keep the size of what relu passes on (He et al. 2015).
      weights_.emplace_back(tapedeck::random::normal({inputs, outputs}, key.split(weights_.size())) * std::sqrt(2.0 / inputs));
      weights_.emplace_back(tapedeck::zeros({outputs}));
    }
  }

  tapedeck::Tensor operator()(const tapedeck::Tensor& pixels) const {
    const tapedeck::Tensor hidden = tapedeck::relu(tapedeck::matmul(pixels, weights_[0]) + weights_[1]);
    return tapedeck::matmul(hidden, weights_[2]) + weights_[3];
  }
  const std::vector<tapedeck::Variable>& weights() const { return weights_; }

 private:
  std::vector<tapedeck::Variable> weights_;
};
