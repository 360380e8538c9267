// Samples of the ops in lib/ops/nn/softmax.cpp.
#include "ops/nn/softmax.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs along(int axis) { return Attrs(SoftmaxAttrs{axis}); }

constexpr OpSamples softmax_table[] = {
    {.op = "softmax",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 3, 5}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 1}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({0, 3}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 3, 37}, -2, 2)}, .attrs = along(-2)},
               {.inputs = {uniform({5, 130}, -2, 2)}, .attrs = along(-2)},
               {.inputs = {f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .attrs = along(-2),
                .expected = {f64({{0.8807970779778823, 0.8807970779778823, 0.9241418199787566},
                                  {0.11920292202211755, 0.11920292202211755, 0.07585818002124356}})},
                .oracle = "np.exp(x) / np.exp(x).sum(-2, keepdims=True)"},
               {.inputs = {f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .attrs = along(-1),
                .expected = {f64({{0.09003057317038043, 0.24472847105479767, 0.6652409557748218},
                                  {0.12195165230972886, 0.33149896042409155, 0.5465493872661796}})},
                .oracle = "np.exp(x) / np.exp(x).sum(-1, keepdims=True)"}};
         }},

    {.op = "log_softmax",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 3, 5}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({0, 3}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 3, 37}, -2, 2)}, .attrs = along(-2)},
               {.inputs = {uniform({5, 130}, -2, 2)}, .attrs = along(-2)},
               {.inputs = {f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .attrs = along(-2),
                .expected = {f64({{-0.1269280110429726, -0.1269280110429726, -0.07888973429254956},
                                  {-2.1269280110429727, -2.1269280110429727, -2.5788897342925496}})},
                .oracle = "x - np.log(np.exp(x).sum(-2, keepdims=True))"},
               {.inputs = {f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .attrs = along(-1),
                .expected = {f64({{-2.4076059644443806, -1.4076059644443801, -0.40760596444438046},
                                  {-2.1041306053367284, -1.1041306053367281, -0.6041306053367282}})},
                .oracle = "x - np.log(np.exp(x).sum(-1, keepdims=True))"}};
         }},

    {.op = "softmax_derivative",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 5}, 0, 1), uniform({2, 3, 5}, -2, 2, 1)}, .attrs = along(-1)},
               {.inputs = {uniform({37}, 0, 1), uniform({2, 37}, -2, 2, 1)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 300, 3}, 0, 0.01), uniform({2, 300, 3}, -2, 2, 1)},
                .attrs = along(-2)},
               {.inputs = {uniform({5, 130}, 0, 1), uniform({3, 5, 130}, -2, 2, 1)}, .attrs = along(-2)},
               {.inputs = {uniform({0, 3}, 0, 1), uniform({0, 3}, -2, 2, 1)}, .attrs = along(-1)},
               {.inputs = {f64({{0.5, 0.5}, {0.25, 0.75}}), f64({{1, 2}, {-3, 4}})},
                .attrs = along(-1),
                .expected = {f64({{-0.25, 0.25}, {-1.3125, 1.3125}})},
                .oracle = "(v - (p * v).sum(-1, keepdims=True)) * p"},
               {.inputs = {f64({{0.5, 0.25}, {0.5, 0.75}}), f64({{1, -3}, {2, 4}})},
                .attrs = along(-2),
                .expected = {f64({{-0.25, -1.3125}, {0.25, 1.3125}})},
                .oracle = "(v - (p * v).sum(-2, keepdims=True)) * p"}};
         }},

    {.op = "less_share",
     .oracle = "v - np.exp(log_share) * total",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -2, 2), uniform({3, 1}, -2, 2, 1), uniform({3, 37}, -2, 0, 2)}},
               {.inputs = {f64({{1, 2}, {4, 5}}), tensor(std::vector<double>{3, -2}, {2, 1}),
                           f64({{-1, -0.5}, {0, -2}})},
                .expected = {f64({{-0.103638323514327, 0.18040802086209973}, {6, 5.270670566473226}})}}};
         }},
};

}   // namespace

std::span<const OpSamples> softmax_samples() { return softmax_table; }

}   // namespace tapedeck::test
