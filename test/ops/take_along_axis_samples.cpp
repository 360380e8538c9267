// Samples of the ops in lib/ops/layout/take_along_axis.cpp.
#include "ops/layout/take_along_axis.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples take_along_axis_table[] = {
    {.op = "take_along_axis",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -1, 1), i64({{36, 0, 0}, {1, 2, 1}, {5, 5, 5}})},
                .attrs = Attrs(TakeAttrs{-1, 2})},
               {.inputs = {uniform({2, 4, 3}, -1, 1), tensor<std::int32_t>({{{3, 0, 3}}, {{1, 1, 2}}})},
                .attrs = Attrs(TakeAttrs{-2, 3})},
               {.inputs = {uniform({2, 2, 5}, -1, 1), zeros({2, 2, 37}, DType::i32)},
                .attrs = Attrs(TakeAttrs{-1, 3})},
               {.inputs = {uniform({0, 3}, -1, 1), zeros({0, 4}, DType::i64)},
                .attrs = Attrs(TakeAttrs{-1, 2})},
               {.inputs = {uniform({3, 2}, -1, 1), zeros({0, 2}, DType::i64)},
                .attrs = Attrs(TakeAttrs{-2, 2})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), i64({{2, 0, 2, 1}, {0, 1, 1, 0}})},
                .attrs = Attrs(TakeAttrs{-1, 2}),
                .expected = {f64({{3, 1, 3, 2}, {4, 5, 5, 4}})},
                .oracle = "np.take_along_axis(x, indices, axis=-1)"},
               {.inputs = {i64({{1, 2, 3}, {4, 5, 6}}), i64({{1, 0, 1}})},
                .attrs = Attrs(TakeAttrs{-2, 2}),
                .expected = {i64({{4, 2, 6}})},
                .oracle = "np.take_along_axis(x, indices, axis=0)"}};
         }},

    {.op = "add_along_axis",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 3}, -1, 1), i64({{36, 0, 0}, {1, 2, 1}, {5, 5, 5}})},
                .attrs = Attrs(AddAttrs{{3, 37}, -1})},
               {.inputs = {uniform({2, 1, 3}, -1, 1), tensor<std::int32_t>({{{3, 0, 3}}, {{1, 1, 2}}})},
                .attrs = Attrs(AddAttrs{{2, 4, 3}, -2})},
               {.inputs = {uniform({2, 0}, -1, 1), zeros({2, 0}, DType::i64)},
                .attrs = Attrs(AddAttrs{{2, 3}, -1})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), i64({{3, 0, 3}, {1, 1, 2}})},
                .attrs = Attrs(AddAttrs{{2, 4}, -1}),
                .expected = {f64({{2, 0, 0, 4}, {0, 9, 6, 0}})},
                .oracle = "torch.zeros(2, 4, dtype=torch.float64).scatter_add(1, torch.tensor(indices), "
                          "torch.tensor(x)).numpy()"},
               {.inputs = {i64({{1, 2}, {4, 5}, {6, 7}}), i64({{1, 0}, {1, 1}, {0, 1}})},
                .attrs = Attrs(AddAttrs{{2, 2}, -2}),
                .expected = {i64({{6, 2}, {5, 12}})},
                .oracle = "torch.zeros(2, 2, dtype=torch.int64).scatter_add(0, torch.tensor(indices), "
                          "torch.tensor(x)).numpy()"}};
         }},
};

}   // namespace

std::span<const OpSamples> take_along_axis_samples() { return take_along_axis_table; }

}   // namespace tapedeck::test
