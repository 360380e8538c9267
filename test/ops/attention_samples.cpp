// Samples of the ops in lib/ops/nn/attention.cpp.
#include "ops/nn/attention.h"

#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

Tensor none() { return zeros({0}, DType::boolean); }
Tensor bools(const std::vector<double>& v, const Shape& shape) {
  return astype(tensor(v, shape), DType::boolean);
}
// Query, key and value, behind dy for the gradient, and a mask.
std::vector<Tensor> inputs(bool gradient, std::int64_t batch, std::int64_t queries, std::int64_t keys,
                           std::int64_t depth, std::int64_t outputs, Tensor mask) {
  std::vector<Tensor> x = {uniform({batch, queries, depth}, -1, 1, 1),
                           uniform({batch, keys, depth}, -1, 1, 2), uniform({batch, keys, outputs}, -1, 1, 3),
                           std::move(mask)};
  if (gradient) x.insert(x.begin(), uniform({batch, queries, outputs}, -1, 1));
  return x;
}
std::vector<Sample> samples_of(bool gradient) {
  return {
      {.inputs = inputs(gradient, 2, 3, 3, 4, 2, none()), .attrs = Attrs(AttentionAttrs{2, true, 0.5})},
      {.inputs = inputs(gradient, 1, 4, 2, 3, 5, none()), .attrs = Attrs(AttentionAttrs{1, true, 0.7})},
      {.inputs = inputs(gradient, 2, 2, 3, 4, 4, bools({1, 0, 1, 0, 0, 0}, {2, 1, 1, 3})),
       .attrs = Attrs(AttentionAttrs{2, false, 1})},
      {.inputs = inputs(gradient, 1, 3, 4, 4, 2, bools({1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 1}, {3, 4})),
       .attrs = Attrs(AttentionAttrs{2, true, -0.5})},
      {.inputs = inputs(gradient, 0, 2, 3, 4, 2, none()), .attrs = Attrs(AttentionAttrs{1, false, 1})},
      {.inputs = inputs(gradient, 1, 0, 2, 2, 2, none()), .attrs = Attrs(AttentionAttrs{1, false, 1})},
      {.inputs = inputs(gradient, 1, 2, 2, 0, 2, none()), .attrs = Attrs(AttentionAttrs{1, false, 1})},
  };
}

constexpr OpSamples attention_table[] = {
    {.op = "dot_product_attention", .samples = [] { return samples_of(false); }},
    {.op = "dot_product_attention_gradient", .samples = [] { return samples_of(true); }},
};

}   // namespace

std::span<const OpSamples> attention_samples() { return attention_table; }

}   // namespace tapedeck::test
