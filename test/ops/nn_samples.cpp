// Samples of the ops in lib/ops/nn/nn.cpp.
#include "ops/nn/nn.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples nn_table[] = {
    {.op = "dropout",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -1, 1), uniform({3, 37}, -1, 1, 1) < -0.3},
                .attrs = Attrs(DropoutAttrs{0.35})},
               {.inputs = {uniform({}, -1, 1), tensor(0, DType::boolean)}, .attrs = Attrs(DropoutAttrs{0})},
               {.inputs = {uniform({0, 3}, -1, 1), zeros({0, 3}, DType::boolean)},
                .attrs = Attrs(DropoutAttrs{0.3})},
               {.inputs = {f64({1, 2, 3, 4}), tensor({0, 1, 0, 0}, DType::boolean)},
                .attrs = Attrs(DropoutAttrs{0.2}),
                .expected = {f64({1.25, 0, 3.75, 5})},
                .oracle = "np.where(dropped, 0, x / 0.8)"}};
         }},
};

}   // namespace

std::span<const OpSamples> nn_samples() { return nn_table; }

}   // namespace tapedeck::test
