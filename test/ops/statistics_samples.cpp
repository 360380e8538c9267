// Samples of the ops in lib/ops/reduce/statistics.cpp.
#include "ops/reduce/statistics.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples statistics_table[] = {
    {.op = "count_nonzero",
     .samples =
         [] {
           const Tensor x = f64({{{1, 0, 2}, {0, 0, 3}}, {{4, 5, 0}, {0, -0.0, 6}}});
           return std::vector<Sample>{
               {.inputs = {uniform({37, 300}, -1, 1)}, .attrs = Attrs(CountAttrs{0b01, false})},
               {.inputs = {uniform({}, 1, 2)}, .attrs = Attrs(CountAttrs{0, false})},
               {.inputs = {zeros({0, 3}, DType::f64)}, .attrs = Attrs(CountAttrs{0b10, false})},
               {.inputs = {x},
                .attrs = Attrs(CountAttrs{0b111, false}),
                .expected = {tensor(6, DType::i64)},
                .oracle = "np.count_nonzero(x)"},
               {.inputs = {x},
                .attrs = Attrs(CountAttrs{0b100, false}),
                .expected = {tensor({{2, 1, 1}, {0, 0, 2}}, DType::i64)},
                .oracle = "np.count_nonzero(x, axis=0)"},
               {.inputs = {x},
                .attrs = Attrs(CountAttrs{0b010, true}),
                .expected = {tensor({{{1, 0, 2}}, {{1, 1, 1}}}, DType::i64)},
                .oracle = "np.count_nonzero(x, axis=1, keepdims=True)"},
               {.inputs = {x},
                .attrs = Attrs(CountAttrs{0b101, false}),
                .expected = {tensor({4, 2}, DType::i64)},
                .oracle = "np.count_nonzero(x, axis=(0, 2))"},
               {.inputs = {tensor({1, 0, 1}, DType::boolean)},
                .attrs = Attrs(CountAttrs{0b1, false}),
                .expected = {tensor(2, DType::i64)},
                .oracle = "np.count_nonzero(x)"},
               {.inputs = {ones({37, 300}, DType::u8)},
                .attrs = Attrs(CountAttrs{0b11, false}),
                .expected = {tensor(11100, DType::i64)},
                .oracle = "np.count_nonzero(x)"}};
         }},
};

}   // namespace

std::span<const OpSamples> statistics_samples() { return statistics_table; }

}   // namespace tapedeck::test
