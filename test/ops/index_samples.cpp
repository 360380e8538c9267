// Samples of the ops in lib/ops/layout/index.cpp.
#include "ops/layout/index.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples index_table[] = {
    {.op = "gather",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({5, 3}, -1, 1), i64({4, 0, 4, 2})}, .attrs = Attrs(GatherAttrs{-2})},
               {.inputs = {uniform({7}, -1, 1), tensor<std::int32_t>({{1, 6}, {1, 0}, {3, 3}})},
                .attrs = Attrs(GatherAttrs{-1})},
               {.inputs = {uniform({2, 4, 3}, -1, 1), tensor(std::int64_t{3})},
                .attrs = Attrs(GatherAttrs{-2})},
               {.inputs = {uniform({37, 2}, -1, 1), tensor(std::vector<std::int64_t>{}, {0})},
                .attrs = Attrs(GatherAttrs{-2})},
               {.inputs = {uniform({2, 3, 4, 2}, -1, 1), tensor<std::int64_t>({{3, 0, 3}, {1, 1, 2}})},
                .attrs = Attrs(GatherAttrs{-2, 1, 4})},
               {.inputs = {uniform({2, 2, 5}, -1, 1), zeros({2, 2, 37}, DType::i32)},
                .attrs = Attrs(GatherAttrs{-1, 2, 3})},
               {.inputs = {uniform({0, 2, 3}, -1, 1), zeros({0, 4}, DType::i64)},
                .attrs = Attrs(GatherAttrs{-1, 1, 3})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), tensor<std::int64_t>({{2, 0, 2}, {0, 1, 1}})},
                .attrs = Attrs(GatherAttrs{-1, 1, 2}),
                .expected = {f64({{3, 1, 3}, {4, 5, 5}})},
                .oracle = "np.take_along_axis(x, indices, axis=-1)"},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), i64({2, 0, 2, 1})},
                .attrs = Attrs(GatherAttrs{-1}),
                .expected = {f64({{3, 1, 3, 2}, {6, 4, 6, 5}})},
                .oracle = "np.take(x, indices, axis=-1)"}};
         }},

    {.op = "scatter_add",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({4, 3}, -1, 1), i64({4, 0, 4, 2})},
                .attrs = Attrs(ScatterAttrs{{5, 3}, -2})},
               {.inputs = {uniform({2, 3, 2}, -1, 1), tensor<std::int32_t>({{1, 6, 1}, {0, 3, 3}})},
                .attrs = Attrs(ScatterAttrs{{7, 2}, -2})},
               {.inputs = {uniform({2, 3}, -1, 1), tensor(std::int64_t{1})},
                .attrs = Attrs(ScatterAttrs{{2, 37, 3}, -2})},
               {.inputs = {uniform({2, 3, 3, 2}, -1, 1), tensor<std::int64_t>({{3, 0, 3}, {1, 1, 2}})},
                .attrs = Attrs(ScatterAttrs{{2, 3, 4, 2}, -2, 1})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), tensor<std::int64_t>({{3, 0, 3}, {1, 1, 2}})},
                .attrs = Attrs(ScatterAttrs{{2, 4}, -1, 1}),
                .expected = {f64({{2, 0, 0, 4}, {0, 9, 6, 0}})},
                .oracle = "torch.zeros(2, 4, dtype=torch.float64).scatter_add(1, torch.tensor(indices), "
                          "torch.tensor(x)).numpy()"},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), i64({3, 0, 3})},
                .attrs = Attrs(ScatterAttrs{{2, 4}, -1}),
                .expected = {f64({{2, 0, 0, 4}, {5, 0, 0, 10}})},
                .oracle = "torch.zeros(2, 4, dtype=torch.float64).index_add(1, torch.tensor(indices), "
                          "torch.tensor(x)).numpy()"}};
         }},

    {.op = "gather_nd",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 4, 5}, -1, 1), tensor<std::int64_t>({{2, 0}, {1, 3}, {2, 0}})},
                .attrs = Attrs(GatherNdAttrs{3})},
               {.inputs = {uniform({3, 37}, -1, 1), tensor<std::int32_t>({{2}, {0}, {2}})},
                .attrs = Attrs(GatherNdAttrs{2})},
               {.inputs = {uniform({2, 3}, -1, 1),
                           tensor<std::int64_t>({{{0, 2}, {1, 1}}, {{0, 2}, {0, 0}}})},
                .attrs = Attrs(GatherNdAttrs{2})},
               {.inputs = {uniform({2, 3}, -1, 1), i64({1, 2})}, .attrs = Attrs(GatherNdAttrs{2})},
               {.inputs = {uniform({2, 3}, -1, 1), zeros({4, 0}, DType::i64)},
                .attrs = Attrs(GatherNdAttrs{2})},
               {.inputs = {uniform({2, 3}, -1, 1), zeros({0, 2}, DType::i64)},
                .attrs = Attrs(GatherNdAttrs{2})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), tensor<std::int64_t>({{0, 1}, {1, 2}, {0, 1}})},
                .attrs = Attrs(GatherNdAttrs{2}),
                .expected = {f64({2, 6, 2})},
                .oracle = "x[tuple(indices.T)]"}};
         }},

    {.op = "scatter_nd",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 5}, -1, 1), tensor<std::int64_t>({{2, 0}, {1, 3}, {2, 0}})},
                .attrs = Attrs(ScatterNdAttrs{{3, 4, 5}})},
               {.inputs = {uniform({2, 3}, -1, 1), tensor<std::int32_t>({{{4}, {36}, {4}}, {{0}, {1}, {2}}})},
                .attrs = Attrs(ScatterNdAttrs{{37}})},
               {.inputs = {uniform({}, -1, 1), i64({1, 2})}, .attrs = Attrs(ScatterNdAttrs{{2, 3}})},
               {.inputs = {uniform({4, 2}, -1, 1), zeros({4, 0}, DType::i64)},
                .attrs = Attrs(ScatterNdAttrs{{2}})},
               {.inputs = {uniform({0, 3}, -1, 1), zeros({0, 1}, DType::i64)},
                .attrs = Attrs(ScatterNdAttrs{{2, 3}})},
               {.inputs = {f64({1, 10, 100}), tensor<std::int64_t>({{0, 1}, {1, 1}, {0, 1}})},
                .attrs = Attrs(ScatterNdAttrs{{2, 2}}),
                .expected = {f64({{0, 101}, {0, 10}})},
                .oracle = "torch.zeros(2, 2, dtype=torch.float64).index_put(tuple(torch.tensor(indices).T), "
                          "torch.tensor(updates), accumulate=True).numpy()"}};
         }},
};

}   // namespace

std::span<const OpSamples> index_samples() { return index_table; }

}   // namespace tapedeck::test
