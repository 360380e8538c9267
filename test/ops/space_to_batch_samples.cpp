// Samples of the ops in lib/ops/layout/space_to_batch.cpp.
#include "ops/layout/space_to_batch.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples space_to_batch_table[] = {
    {.op = "space_to_batch_nd",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 6, 5}, -1, 1)},
                .attrs = Attrs(BlockAttrs{4, {2, 3}, {1, 0}, {0, 3}})},
               {.inputs = {uniform({1, 2, 4, 2}, -1, 1)},
                .attrs = Attrs(BlockAttrs{4, {2, 2, 1}, {0, 0, 1}, {0, 2, 0}})},
               {.inputs = {uniform({37, 4}, -1, 1)}, .attrs = Attrs(BlockAttrs{2, {2}, {0}, {0}})},
               {.inputs = {uniform({2, 0, 3}, -1, 1)}, .attrs = Attrs(BlockAttrs{3, {2}, {0}, {0}})},
               {.inputs = {f64({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})},
                .attrs = Attrs(BlockAttrs{3, {2, 3}, {0, 1}, {0, 0}}),
                .expected = {tensor(std::vector<double>{0, 0, 1, 5, 2, 6, 0, 0, 3, 7, 4, 8}, {12, 1, 1})},
                .oracle = "np.pad(x, ((0, 0), (0, 0), (1, 0))).reshape(2, 1, 2, 1, 3).transpose(2, 4, 0, 1, "
                          "3).reshape(12, 1, 1)"}};
         }},

    {.op = "batch_to_space_nd",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({12, 2, 3, 5}, -1, 1)},
                .attrs = Attrs(BlockAttrs{4, {2, 3}, {1, 0}, {0, 3}})},
               {.inputs = {uniform({4, 2, 2, 3}, -1, 1)},
                .attrs = Attrs(BlockAttrs{4, {2, 2, 1}, {0, 0, 1}, {0, 2, 0}})},
               {.inputs = {uniform({74, 2}, -1, 1)}, .attrs = Attrs(BlockAttrs{2, {2}, {0}, {0}})},
               {.inputs = {f64({{{1, 2}}, {{3, 4}}, {{5, 6}}, {{7, 8}}})},
                .attrs = Attrs(BlockAttrs{3, {2, 2}, {0, 1}, {0, 0}}),
                .expected = {tensor(std::vector<double>{3, 2, 4, 7, 6, 8}, {1, 2, 3})},
                .oracle = "x.reshape(2, 2, 1, 1, 2).transpose(2, 3, 0, 4, 1).reshape(1, 2, 4)[:, :, 1:]"}};
         }},

    {.op = "space_to_depth",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4, 6, 5}, -1, 1)}, .attrs = Attrs(DepthAttrs{2})},
               {.inputs = {uniform({3, 9, 1}, -1, 1)}, .attrs = Attrs(DepthAttrs{3})},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1)}, .attrs = Attrs(DepthAttrs{2})},
               {.inputs = {uniform({1, 4, 4, 2}, -1, 1)},
                .attrs = Attrs(DepthAttrs{2}),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102,   0.4721359549995796,   -0.2917960675006306,
                                        0.9442719099991592,    -0.8753882025018918,  0.36067977499789805,
                                        -0.40325224750231214,  0.8328157299974777,   0.18033988749894903,
                                        -0.5835921350012612,   0.6524758424985286,   -0.11145618000168156,
                                        0.06888370749726747,   -0.6950483150029427,  0.5410196624968471,
                                        -0.22291236000336312,  -0.9868443825035733,  0.2492235949962165,
                                        -0.5147084275039937,   0.7213595499957961,   0.9016994374947451,
                                        0.13776741499453493,   -0.6261646075056753,  0.6099033699941145,
                                        -0.042572472504414094, -0.8065044950046243,  0.4295634824951655,
                                        -0.3343685400050447,   -0.15402865250609565, -0.9179606750063058,
                                        0.31810730249348396,   -0.44582472000672624},
                    {1, 2, 2, 8})},
                .oracle = "x.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 2, 8)"}};
         }},

    {.op = "depth_to_space",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 2, 3, 20}, -1, 1)}, .attrs = Attrs(DepthAttrs{2})},
               {.inputs = {uniform({1, 3, 9}, -1, 1)}, .attrs = Attrs(DepthAttrs{3})},
               {.inputs = {uniform({1, 2, 2, 8}, -1, 1)},
                .attrs = Attrs(DepthAttrs{2}),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102,   0.4721359549995796,   -0.2917960675006306,
                                        0.9442719099991592,    -0.8753882025018918,  0.36067977499789805,
                                        -0.40325224750231214,  0.8328157299974777,   0.18033988749894903,
                                        -0.5835921350012612,   0.6524758424985286,   -0.11145618000168156,
                                        0.06888370749726747,   -0.6950483150029427,  0.5410196624968471,
                                        -0.22291236000336312,  -0.9868443825035733,  0.2492235949962165,
                                        -0.5147084275039937,   0.7213595499957961,   0.9016994374947451,
                                        0.13776741499453493,   -0.6261646075056753,  0.6099033699941145,
                                        -0.042572472504414094, -0.8065044950046243,  0.4295634824951655,
                                        -0.3343685400050447,   -0.15402865250609565, -0.9179606750063058,
                                        0.31810730249348396,   -0.44582472000672624},
                    {1, 4, 4, 2})},
                .oracle = "x.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 4, 4, 2)"}};
         }},
};

}   // namespace

std::span<const OpSamples> space_to_batch_samples() { return space_to_batch_table; }

}   // namespace tapedeck::test
