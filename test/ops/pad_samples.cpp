// Samples of the ops in lib/ops/layout/pad.cpp.
#include "ops/layout/slice.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples pad_table[] = {
    {.op = "pad",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 5}, -1, 1)}, .attrs = Attrs(PadAttrs{{1, 0}, {0, 32}})},
               {.inputs = {uniform({0, 2}, -1, 1)}, .attrs = Attrs(PadAttrs{{1, 1}, {2, 0}})},
               {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(PadAttrs{})},
               {.inputs = {f64({{1, 2}})},
                .attrs = Attrs(PadAttrs{{1, 1}, {0, 2}, 9}),
                .expected = {f64({{9, 9, 9, 9, 9}, {9, 1, 2, 9, 9}})},
                .oracle = "np.pad(x, ((1, 0), (1, 2)), constant_values=9)"},
               {.inputs = {f64({{1, 2}, {3, 4}})},
                .attrs = Attrs(PadAttrs{{1, 0}, {0, 2}}),
                .expected = {f64({{0, 0, 0, 0}, {1, 2, 0, 0}, {3, 4, 0, 0}})},
                .oracle = "np.pad(x, ((1, 0), (0, 2)))"}};
         }},
};

}   // namespace

std::span<const OpSamples> pad_samples() { return pad_table; }

}   // namespace tapedeck::test
