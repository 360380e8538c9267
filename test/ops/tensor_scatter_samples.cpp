// Samples of the ops in lib/ops/layout/tensor_scatter.cpp.
#include "ops/layout/tensor_scatter.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

Tensor positions(std::initializer_list<std::initializer_list<std::int64_t>> v) { return tensor(v); }

constexpr OpSamples tensor_scatter_table[] = {
    {.op = "tensor_scatter_update",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 4, 5}, -1, 1), positions({{2, 0}, {1, 3}, {0, 0}}),
                           uniform({3, 5}, -1, 1, 1)},
                .attrs = Attrs(IntoAttrs{3})},
               {.inputs = {uniform({37}, -1, 1), tensor<std::int32_t>({{{4}, {36}}, {{0}, {2}}}),
                           uniform({2, 2}, -1, 1, 1)},
                .attrs = Attrs(IntoAttrs{1})},
               {.inputs = {uniform({3, 2}, -1, 1), positions({{2}, {0}, {2}}), uniform({3, 2}, -1, 1, 1)},
                .attrs = Attrs(IntoAttrs{2})},
               {.inputs = {uniform({3, 2}, -1, 1), tensor<std::int64_t>({{{2, 1}, {0, 0}}, {{2, 1}, {2, 1}}}),
                           uniform({2, 2}, -1, 1, 1)},
                .attrs = Attrs(IntoAttrs{2})},
               {.inputs = {uniform({3}, -1, 1), zeros({2, 0}, DType::i64), uniform({2, 3}, -1, 1, 1)},
                .attrs = Attrs(IntoAttrs{1})},
               {.inputs = {uniform({2, 3}, -1, 1), zeros({0, 2}, DType::i64), zeros({0}, DType::f64)},
                .attrs = Attrs(IntoAttrs{2})},
               {.inputs = {uniform({0, 3}, -1, 1), zeros({0, 1}, DType::i64), zeros({0, 3}, DType::f64)},
                .attrs = Attrs(IntoAttrs{2})},
               {.inputs = {tensor({1, 2, 3, 4}, DType::i32), positions({{1}, {3}, {1}}),
                           tensor({9, 8, 7}, DType::i32)},
                .attrs = Attrs(IntoAttrs{1}),
                .expected = {tensor({1, 7, 3, 8}, DType::i32)}},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}}), positions({{2}, {0}}), f64({{-1, -2}, {-3, -4}})},
                .attrs = Attrs(IntoAttrs{2}),
                .expected = {f64({{-3, -4}, {3, 4}, {-1, -2}})},
                .oracle =
                    "torch.tensor(x).index_put((torch.tensor(indices[:, 0]),), torch.tensor(updates))"}};
         }},

    {.op = "kept_updates",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 4, 5}, -1, 1), positions({{2, 0}, {1, 3}, {2, 0}})},
                .attrs = Attrs(IntoAttrs{3})},
               {.inputs = {uniform({37}, -1, 1), tensor<std::int32_t>({{{4}, {36}}, {{4}, {2}}})},
                .attrs = Attrs(IntoAttrs{1})},
               {.inputs = {uniform({3, 2}, -1, 1),
                           tensor<std::int64_t>({{{2, 1}, {0, 0}}, {{2, 1}, {2, 1}}})},
                .attrs = Attrs(IntoAttrs{2})},
               {.inputs = {uniform({3}, -1, 1), zeros({2, 0}, DType::i64)}, .attrs = Attrs(IntoAttrs{1})},
               {.inputs = {uniform({0, 3}, -1, 1), zeros({0, 1}, DType::i64)}, .attrs = Attrs(IntoAttrs{2})},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}}), positions({{2}, {0}, {2}})},
                .attrs = Attrs(IntoAttrs{2}),
                .expected = {f64({{0, 0}, {1, 2}, {5, 6}})},
                .oracle = "np.stack([0 * x[2], x[0], x[2]])"}};
         }},

    {.op = "tensor_scatter_add",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 4, 5}, -1, 1), positions({{2, 0}, {1, 3}, {2, 0}}),
                           uniform({3, 5}, -1, 1, 1)},
                .attrs = Attrs(IntoAttrs{3})},
               {.inputs = {uniform({37}, -1, 1), tensor<std::int32_t>({{{4}, {36}}, {{4}, {2}}}),
                           uniform({2, 2}, -1, 1, 1)},
                .attrs = Attrs(IntoAttrs{1})},
               {.inputs = {uniform({2, 3}, -1, 1), zeros({0, 2}, DType::i64), zeros({0}, DType::f64)},
                .attrs = Attrs(IntoAttrs{2})},
               {.inputs = {tensor({1, 2, 3, 4}, DType::i32), positions({{1}, {3}, {1}}),
                           tensor({9, 8, 7}, DType::i32)},
                .attrs = Attrs(IntoAttrs{1}),
                .expected = {tensor({1, 18, 3, 12}, DType::i32)}},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}}), positions({{2}, {2}}), f64({{-1, -2}, {-3, -5}})},
                .attrs = Attrs(IntoAttrs{2}),
                .expected = {f64({{1, 2}, {3, 4}, {1, -1}})},
                .oracle = "torch.tensor(x).index_put((torch.tensor(indices[:, 0]),), torch.tensor(updates), "
                          "accumulate=True)"}};
         }},

    {.op = "tensor_scatter_sub",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 4, 5}, -1, 1), positions({{2, 0}, {1, 3}, {2, 0}}),
                           uniform({3, 5}, -1, 1, 1)},
                .attrs = Attrs(IntoAttrs{3})},
               {.inputs = {uniform({37}, -1, 1), positions({{4}, {36}, {4}}), uniform({3}, -1, 1, 1)},
                .attrs = Attrs(IntoAttrs{1})},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}}), positions({{2}, {2}}), f64({{-1, -2}, {-3, -5}})},
                .attrs = Attrs(IntoAttrs{2}),
                .expected = {f64({{1, 2}, {3, 4}, {9, 13}})},
                .oracle = "torch.tensor(x).index_put((torch.tensor(indices[:, 0]),), torch.tensor(-updates), "
                          "accumulate=True)"}};
         }},

    {.op = "tensor_scatter_max",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({3, 4, 5}), positions({{2, 0}, {1, 3}, {2, 0}}),
                           uniform({3, 5}, -2, 3, 1)},
                .attrs = Attrs(IntoAttrs{3})},
               {.inputs = {distinct({37}), positions({{4}, {36}, {4}}), uniform({3}, -3, 3, 1)},
                .attrs = Attrs(IntoAttrs{1})},
               {.inputs = {f64({1, 2, 3, 4}), positions({{1}, {3}, {1}}), f64({9, -8, 7})},
                .attrs = Attrs(IntoAttrs{1}),
                .expected = {f64({1, 9, 3, 4})},
                .oracle = "torch.tensor(x).scatter_reduce(0, torch.tensor(indices[:, 0]), "
                          "torch.tensor(updates), 'amax')"}};
         }},

    {.op = "tensor_scatter_min",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({3, 4, 5}), positions({{2, 0}, {1, 3}, {2, 0}}),
                           uniform({3, 5}, -2, 3, 1)},
                .attrs = Attrs(IntoAttrs{3})},
               {.inputs = {f64({1, 2, 3, 4}), positions({{1}, {3}, {1}}), f64({9, -8, 1})},
                .attrs = Attrs(IntoAttrs{1}),
                .expected = {f64({1, 1, 3, -8})},
                .oracle = "torch.tensor(x).scatter_reduce(0, torch.tensor(indices[:, 0]), "
                          "torch.tensor(updates), 'amin')"}};
         }},
};

}   // namespace

std::span<const OpSamples> tensor_scatter_samples() { return tensor_scatter_table; }

}   // namespace tapedeck::test
