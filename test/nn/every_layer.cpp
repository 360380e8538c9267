#include "nn/every_layer.h"

#include "tapedeck/tapedeck.h"

namespace tapedeck::test {

namespace {

using random::Key;
constexpr auto kOfIds = LayerSample::Takes::ids;

Shape batch_of(std::int64_t rows, const Shape& example) {
  std::vector<std::int64_t> extents = {rows};
  extents.insert(extents.end(), example.begin(), example.end());
  return Shape(extents);
}

Tensor flat(const Tensor& x) { return reshape(x, {x.shape()[0], -1}); }

std::int64_t outputs_of(const nn::Layer& layer, const LayerSample& s) {
  const DType t = s.takes == kOfIds ? DType::i32 : DType::f32;
  return flat(layer(zeros(batch_of(2, s.example), t))).shape()[1];
}

}   // namespace

const std::vector<LayerSample>& every_layer() {
  static const std::vector<LayerSample> all = {
      {"Dense", [](Key k) { return nn::Dense(6, 8, k); }, {6}},
      {"Embedding", [](Key k) { return nn::Embedding(kIds, 4, k); }, {5}, kOfIds},
      {"Conv1d", [](Key k) { return nn::Conv1d(3, 4, 3, k); }, {8, 3}},
      {"Conv1dTranspose", [](Key k) { return nn::Conv1dTranspose(3, 4, 3, k); }, {5, 3}},
      {"Conv2d", [](Key k) { return nn::Conv2d(2, 4, 3, k); }, {6, 6, 2}},
      {"Conv2dTranspose", [](Key k) { return nn::Conv2dTranspose(2, 4, 3, k); }, {4, 4, 2}},
      {"Conv3d", [](Key k) { return nn::Conv3d(2, 3, 2, k); }, {4, 4, 4, 2}},
      {"Conv3dTranspose", [](Key k) { return nn::Conv3dTranspose(2, 3, 2, k); }, {3, 3, 3, 2}},
      {"LayerNorm", [](Key) { return nn::LayerNorm(6); }, {6}},
      {"RMSNorm", [](Key) { return nn::RMSNorm(6); }, {6}},
      {"GroupNorm", [](Key) { return nn::GroupNorm(2, 6); }, {4, 6}},
      {.name = "BatchNorm", .make = [](Key) { return nn::BatchNorm(6); }, .example = {6}, .mixes_rows = true},
      {.name = "Dropout", .make = [](Key) { return nn::Dropout(); }, .example = {24}, .mixes_rows = true},
      {"Lstm", [](Key k) { return nn::Lstm(3, 6, k); }, {5, 3}},
      {"Gru", [](Key k) { return nn::Gru(3, 6, k); }, {5, 3}},
      {"MultiHeadAttention", [](Key k) { return nn::MultiHeadAttention(8, 2, k); }, {4, 8}},
      {"Layer", [](Key k) { return nn::Layer(nn::Dense(6, 6, k)); }, {6}},
      {"Sequential",
       [](Key k) {
         return nn::Sequential{nn::Dense(6, 8, k.split(0)), relu, nn::Dense(8, 8, k.split(1))};
       },
       {6}},
      {"Residual", [](Key k) { return nn::Residual{nn::Dense(6, 6, k)}; }, {6}},
  };
  return all;
}

Classifier::Classifier(const LayerSample& s, std::int64_t classes)
    : layer_(s.make({.seed = 11})), head_(outputs_of(layer_, s), classes, {.seed = 12}) {}

Tensor Classifier::operator()(const Tensor& x, nn::Run run) const { return head_(flat(layer_(x, run))); }

}   // namespace tapedeck::test
