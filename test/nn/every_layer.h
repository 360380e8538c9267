// Every layer, for tests that hold of all of them. every_layer_test.cpp asks that each layer of the headers
// is here.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tapedeck/nn.h"

namespace tapedeck::test {

/// A layer with its defaults, and what it is given.
struct LayerSample {
  std::string name;   // of its type
  std::function<nn::Layer(random::Key)> make;
  Shape example;   // shape of one row of its input
  enum class Takes { numbers, ids } takes = Takes::numbers;
  /// Whether in training the result of a row depends on the other rows, or on how many there are.
  bool mixes_rows = false;
};
const std::vector<LayerSample>& every_layer();

constexpr std::int64_t kIds = 10;   // ids are from 0 to 9

/// A layer, and classes from all that it gives.
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
