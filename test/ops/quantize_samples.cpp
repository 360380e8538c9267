// Samples of the ops in lib/ops/elementwise/quantize.cpp.
#include "ops/elementwise/quantize.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs fake(const FakeQuantOptions& o, double min = 0, double max = 0) {
  return Attrs(FakeQuantAttrs{o, min, max});
}
OwnedAttrs quantized(const QuantizeAndDequantizeOptions& o, bool range_of_x = false) {
  return Attrs(QuantizeAttrs{o, range_of_x});
}

constexpr OpSamples quantize_table[] = {
    {.op = "fake_quant_with_min_max_args",
     .no_differences = "differences would see the steps of rounding; quantize_test compares the derivative",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -3, 3)}, .attrs = fake({.bits = 3}, -1, 2)},
               {.inputs = {uniform({0, 2}, -1, 1)}, .attrs = fake({}, -1, 2)},
               {.inputs = {uniform({2, 9}, -1.5, 2.5)},
                .attrs = fake({.bits = 4, .narrow_range = true}, -0.875, 0.875),
                .expected = {tensor(
                    std::vector<double>{-0.875, 0.875, -0.125, 0.875, 0.875, -0.625, 0.875, 0.25, -0.875,
                                        0.875, -0.25, 0.875, 0.625, -0.875, 0.875, 0, -0.875, 0.875},
                    {2, 9})},
                .oracle = "torch.fake_quantize_per_tensor_affine(torch.tensor(x), 0.125, 8, 1, 15).numpy()"}};
         }},

    {.op = "fake_quant_with_min_max_vars",
     .no_differences = "differences would see the steps of rounding; quantize_test compares the derivative",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -3, 3), f64(-1), f64(2)}, .attrs = fake({.bits = 3})},
               {.inputs = {uniform({}, -1, 1), f64(-1), f64(2)}, .attrs = fake({.bits = 3})},
               {.inputs = {uniform({2, 9}, -1.5, 2.5), f64(-1.27), f64(2.48)},
                .attrs = fake({.bits = 4}),
                .expected = {tensor(std::vector<double>{-1, 1.5, 0, 2.5, 0.75, -0.75, 1.75, 0.25, -1.25, 1.25,
                                                        -0.25, 2.25, 0.75, -1, 1.5, 0, -1.25, 1},
                                    {2, 9})},
                .oracle = "torch.fake_quantize_per_tensor_affine(torch.tensor(x), 0.25, 5, 0, 15).numpy()"}};
         }},

    {.op = "fake_quant_with_min_max_vars_per_channel",
     .no_differences = "differences would see the steps of rounding; quantize_test compares the derivative",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -3, 3), uniform({37}, -2, -1, 1), uniform({37}, 1, 2, 2)},
                .attrs = fake({.bits = 3})},
               {.inputs = {uniform({2}, -3, 3), f64({-1, 0}), f64({2, 1})}, .attrs = fake({.bits = 3})},
               {.inputs = {uniform({4, 2}, -1.5, 2.5), f64({-1.27, 0}), f64({2.48, 1.875})},
                .attrs = fake({.bits = 4}),
                .expected = {tensor(std::vector<double>{-1, 1.5, 0, 1.875, 0.75, 0, 1.75, 0.25}, {4, 2})},
                .oracle = "np.stack([torch.fake_quantize_per_tensor_affine(torch.tensor(c), step, zero, 0, "
                          "15).numpy() for c, step, zero in zip(x.T, (0.25, 0.125), (5, 0))], 1)"}};
         }},

    {.op = "quantize_and_dequantize",
     .no_differences = "differences would see the steps of rounding; quantize_test compares the derivative",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -3, 3), f64(-2), f64(1)}, .attrs = quantized({.bits = 3})},
               {.inputs = {uniform({3, 0}, -3, 3), f64(-2), f64(1)}, .attrs = quantized({.bits = 3})},
               {.inputs = {uniform({2, 3}, -3, 3), f64(0), f64(0)}, .attrs = quantized({.bits = 3})},
               {.inputs = {f64({-3, -1.25, -0.75, 0.25, 0.3, 1.5, 2}), f64(-2), f64(1)},
                .attrs = quantized({.bits = 3}),
                .expected = {f64({-2, -1, -1, 0, 0.5, 1.5, 1.5})},
                .oracle = "np.clip(np.round(x * 2), -4, 3) / 2"},
               {.inputs = {f64({-3, -1.25, -0.75, 0.25, 0.3, 1.5, 3}), f64(-0.5), f64(1.5)},
                .attrs = quantized(
                    {.bits = 4, .narrow_range = true, .round = QuantizeAndDequantizeOptions::Round::half_up}),
                .expected = {tensor(std::vector<double>{-1.5, -1.2857142857142856, -0.6428571428571428,
                                                        0.21428571428571427, 0.21428571428571427, 1.5, 1.5},
                                    {7})},
                .oracle = "np.floor(np.clip(x, -1.5, 1.5) * (7 / 1.5) + 0.5) / (7 / 1.5)"},
               {.inputs = {uniform({2, 3, 5}, -3, 3), f64({-2, 0, -1}), f64({1, 0, 3})},
                .attrs = quantized({.bits = 3, .axis = -2})},
               {.inputs = {f64({{-3, -1.25, 0.3, 1.5}, {-3, -1.25, 0.3, 1.5}}), f64({-2, -4}), f64({1, 3})},
                .attrs = quantized({.bits = 3, .axis = -2}),
                .expected = {f64({{-2, -1, 0.5, 1.5}, {-3, -1, 0, 2}})},
                .oracle = "(lambda s: np.clip(np.round(x * s), -4, 3) / s)(np.array([[2], [1]]))"}};
         }},
};

}   // namespace

std::span<const OpSamples> quantize_samples() { return quantize_table; }

}   // namespace tapedeck::test
