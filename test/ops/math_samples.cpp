// Samples of the ops in lib/ops/elementwise/math.cpp.
#include "ops/elementwise/math.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

Tensor matrix() { return f64({{-1.5, 0.5, 2}, {0.25, 3, -2}}); }
Tensor row() { return f64({2, -0.5, 4}); }
// For choices, whose derivatives are not to be asked for where both are equal.
std::vector<Sample> of_two_apart(Tensor y, std::string_view oracle) {
  return {{.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, -2, 2, 1)}},
          {.inputs = {matrix(), f64({1, -0.75, 4})}, .expected = {std::move(y)}, .oracle = oracle}};
}
std::vector<Sample> of_two(Tensor y, std::string_view oracle) {
  return {{.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, 0.5, 2, 1)}},
          {.inputs = {matrix(), row()}, .expected = {std::move(y)}, .oracle = oracle}};
}

constexpr OpSamples math_table[] = {
    {.op = "add",
     .takes_complex = true,
     .oracle = "a + b",
     .samples =
         [] {
           return of_two(f64({{0.5, 0, 6}, {2.25, 2.5, 2}}), "a + b");
         }},

    {.op = "sub",
     .takes_complex = true,
     .oracle = "a - b",
     .samples =
         [] {
           return of_two(f64({{-3.5, 1, -2}, {-1.75, 3.5, -6}}), "a - b");
         }},

    {.op = "mul",
     .takes_complex = true,
     .oracle = "a * b",
     .samples =
         [] {
           return of_two(f64({{-3, -0.25, 8}, {0.5, -1.5, -8}}), "a * b");
         }},

    {.op = "div",
     .takes_complex = true,
     .oracle = "a / b",
     .samples =
         [] {
           return of_two(f64({{-0.75, -1, 0.5}, {0.125, -6, -0.5}}), "a / b");
         }},

    {.op = "neg",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({1.5, 0.25, -0.5, -2}), "-x");
         }},

    {.op = "abs",
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({1.5, 0.25, 0.5, 2}), "np.abs(x)");
         }},

    {.op = "sign",
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({-1, -1, 1, 1}), "np.sign(x)");
         }},

    {.op = "square",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({2.25, 0.0625, 0.25, 4}), "np.square(x)");
         }},

    {.op = "squared_difference",
     .oracle = "np.square(a - b)",
     .samples =
         [] {
           return of_two(f64({{12.25, 1, 4}, {3.0625, 12.25, 36}}), "np.square(a - b)");
         }},

    {.op = "reciprocal",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(0.5, 4, signs(), f64({-0.6666666666666666, -4, 2, 0.5}), "np.reciprocal(x)");
         }},

    {.op = "maximum",
     .oracle = "np.maximum(a, b)",
     .samples =
         [] {
           return of_two_apart(f64({{1, 0.5, 4}, {1, 3, 4}}), "np.maximum(a, b)");
         }},

    {.op = "minimum",
     .oracle = "np.minimum(a, b)",
     .samples =
         [] {
           return of_two_apart(f64({{-1.5, -0.75, 2}, {0.25, -0.75, -2}}), "np.minimum(a, b)");
         }},

    {.op = "clip",
     .oracle = "np.clip(x, low, high)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -3, 3), uniform({2, 3}, -2, -1, 1), uniform({2, 3}, 1, 2, 2)}},
               {.inputs = {matrix(), f64(-1), f64({1, 2, 0.25})},
                .expected = {f64({{-1, 0.5, 0.25}, {0.25, 2, -1}})}}};
         }},

    {.op = "where",
     .takes_complex = true,
     .oracle = "np.where(condition, a, b)",
     .samples =
         [] {
           const Tensor c = tensor({{1, 0, 1}, {0, 0, 1}}, DType::boolean);
           return std::vector<Sample>{
               {.inputs = {c, uniform({3}, -2, 2), uniform({2, 1}, -2, 2, 1)}},
               {.inputs = {c, matrix(), row()}, .expected = {f64({{-1.5, -0.5, 2}, {2, -0.5, -2}})}}};
         }},

    {.op = "astype",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -2, 2)}, .attrs = Attrs(AsTypeAttrs{DType::f64}), .oracle = "x"},
               {.inputs = {f64({-1.75, 0, 2.5})},
                .attrs = Attrs(AsTypeAttrs{DType::i32}),
                .expected = {tensor({-1, 0, 2})},
                .oracle = "x.astype(np.int32)"}};
         }},

    {.op = "add_n",
     .takes_complex = true,
     .oracle = "np.sum(x, axis=0)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, -2, 2, 1), uniform({2, 3}, -2, 2, 2)}},
               {.inputs = {signs(), positive(), signs()}, .expected = {f64({-2.75, 0.5, 3.5, 13})}}};
         }},
};

}   // namespace

std::span<const OpSamples> math_samples() { return math_table; }

}   // namespace tapedeck::test
