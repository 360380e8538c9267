// Every layer, for tests that apply to all of them. every_layer_test.cpp checks that each layer of the
// headers is included.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tapedeck/nn.h"

namespace tapedeck::test {

/// A layer with its defaults, and its input.
struct LayerSample {
  std::string name;   // the name of its type
  std::function<nn::Layer(random::Key)> make;
  Shape example;   // shape of one row of its input
  enum class Takes { numbers, ids } takes = Takes::numbers;
  /// Whether in training the result of a row depends on the other rows, or on how many there are.
  bool mixes_rows = false;
};
const std::vector<LayerSample>& every_layer();

constexpr std::int64_t kIds = 10;   // ids are from 0 to 9

/// A layer, followed by a dense layer that maps its output to classes.
class Classifier {
 public:
  Classifier(const LayerSample& sample, std::int64_t classes);

  /// The logits, [batch, classes].
  Tensor operator()(const Tensor& x, nn::Run run) const;
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("layer", layer_), visit("head", head_);
  }

 private:
  nn::Layer layer_;
  nn::Dense head_;
};

}   // namespace tapedeck::test
