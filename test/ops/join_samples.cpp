// Samples of the ops in lib/ops/layout/join.cpp.
#include "ops/layout/join.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples join_table[] = {
    {.op = "concat",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -1, 1), uniform({2, 37}, -1, 1, 1), uniform({2, 0}, -1, 1)},
                .attrs = Attrs(AxisAttrs{-1})},
               {.inputs = {uniform({3, 2, 2}, -1, 1), uniform({3, 1, 2}, -1, 1, 1)},
                .attrs = Attrs(AxisAttrs{-2})},
               {.inputs = {uniform({1}, -1, 1), uniform({2}, -1, 1, 1), uniform({1}, -1, 1, 2),
                           uniform({3}, -1, 1, 3), uniform({1}, -1, 1, 4)},
                .attrs = Attrs(AxisAttrs{-1})},
               {.inputs = {f64({{1, 2}, {3, 4}}), f64({{5, 6}, {7, 8}})},
                .attrs = Attrs(AxisAttrs{-1}),
                .expected = {f64({{1, 2, 5, 6}, {3, 4, 7, 8}})},
                .oracle = "np.concatenate((a, b), axis=-1)"}};
         }},

    {.op = "stack",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 37}, -1, 1), uniform({2, 37}, -1, 1, 1), uniform({2, 37}, -1, 1, 2)},
                .attrs = Attrs(AxisAttrs{-2})},
               {.inputs = {uniform({}, -1, 1), uniform({}, -1, 1, 1), uniform({}, -1, 1, 2),
                           uniform({}, -1, 1, 3), uniform({}, -1, 1, 4)},
                .attrs = Attrs(AxisAttrs{-1})},
               {.inputs = {uniform({0, 3}, -1, 1), uniform({0, 3}, -1, 1)}, .attrs = Attrs(AxisAttrs{-3})},
               {.inputs = {f64({{1, 2}, {3, 4}}), f64({{5, 6}, {7, 8}})},
                .attrs = Attrs(AxisAttrs{-1}),
                .expected = {f64({{{1, 5}, {2, 6}}, {{3, 7}, {4, 8}}})},
                .oracle = "np.stack((a, b), axis=-1)"}};
         }},

    {.op = "split",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -1, 1)}, .attrs = Attrs(SplitAttrs{-1, {20, 0, 17}})},
               {.inputs = {uniform({2, 6, 5}, -1, 1)}, .attrs = Attrs(SplitAttrs{-2, {2, 2, 2}})},
               {.inputs = {uniform({5}, -1, 1)}, .attrs = Attrs(SplitAttrs{-1, {5}})},
               {.inputs = {uniform({0, 4}, -1, 1)}, .attrs = Attrs(SplitAttrs{-1, {1, 3}})},
               {.inputs = {f64({{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}})},
                .attrs = Attrs(SplitAttrs{-1, {2, 3}}),
                .expected = {f64({{1, 2}, {6, 7}}), f64({{3, 4, 5}, {8, 9, 10}})},
                .oracle = "np.split(x, [2], axis=-1)"}};
         }},

    {.op = "unstack",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({3, 37}, -1, 1)}, .attrs = Attrs(AxisAttrs{-2})},
                                      {.inputs = {uniform({2, 3, 5}, -1, 1)}, .attrs = Attrs(AxisAttrs{-2})},
                                      {.inputs = {uniform({7}, -1, 1)}, .attrs = Attrs(AxisAttrs{-1})},
                                      {.inputs = {uniform({0, 4}, -1, 1)}, .attrs = Attrs(AxisAttrs{-1})},
                                      {.inputs = {f64({{1, 2}, {3, 4}})},
                                       .attrs = Attrs(AxisAttrs{-1}),
                                       .expected = {f64({1, 3}), f64({2, 4})},
                                       .oracle = "[x[:, 0], x[:, 1]]"}};
         }},
};

}   // namespace

std::span<const OpSamples> join_samples() { return join_table; }

}   // namespace tapedeck::test
