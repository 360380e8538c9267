// Samples of the ops in lib/ops/image/color_space.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples color_space_table[] = {
    {.op = "rgb_to_hsv",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 37, 3}, 0, 1)}},
               {.inputs = {uniform({3}, -1, 1)}},
               {.inputs = {uniform({0, 3}, 0, 1)}},
               {.inputs = {f64(
                    {{0.2, 0.5, 0.3}, {0.9, 0.1, 0.4}, {0.3, 0.35, 0.8}, {0.8, 0.75, 0.1}, {0.9, 0.2, 0.7}})},
                .expected = {f64({{0.38888888888888884, 0.6, 0.5},
                                  {0.9375, 0.888888888888889, 0.9},
                                  {0.65, 0.625, 0.8},
                                  {0.15476190476190474, 0.875, 0.8},
                                  {0.880952380952381, 0.7777777777777778, 0.9}})},
                .oracle = "np.array([__import__('colorsys').rgb_to_hsv(*c) for c in x])"}};
         }},

    {.op = "rgb_to_hsv_gradient",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 37, 3}, 0, 1), uniform({2, 37, 3}, -1, 1, 1)}},
               {.inputs = {uniform({0, 3}, 0, 1), uniform({0, 3}, -1, 1)}},
               {.inputs = {f64({0.25, 0.75, 0.5}), f64({3, 9, 1})}, .expected = {f64({-12.5, 4.5, 1})}}};
         }},

    {.op = "hsv_to_rgb",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 37, 3}, 0, 1)}},
               {.inputs = {uniform({0, 3}, 0, 1)}},
               {.inputs = {f64(
                    {{0.4, 0.6, 0.5}, {0.9375, 0.9, 0.9}, {0.65, 0.625, 0.8}, {0.15, 0.875, 0.8}})},
                .expected = {tensor(
                    std::vector<double>{0.2, 0.5, 0.3200000000000001, 0.9, 0.08999999999999998, 0.39375,
                                        0.30000000000000004, 0.34999999999999987, 0.8, 0.8, 0.73, 0.1},
                    {4, 3})},
                .oracle = "np.array([__import__('colorsys').hsv_to_rgb(*c) for c in x])"}};
         }},
};

}   // namespace

std::span<const OpSamples> color_space_samples() { return color_space_table; }

}   // namespace tapedeck::test
