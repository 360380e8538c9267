// Samples of the ops in lib/ops/elementwise/check_numerics.cpp.
#include "ops/elementwise/check_numerics.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

std::ostream* nowhere() {
  static std::ostream out(nullptr);
  return &out;
}

constexpr OpSamples check_numerics_table[] = {
    {.op = "prevent_gradient",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {f64({1, 2})}, .expected = {f64({1, 2})}, .oracle = "x"}};
         }},

    {.op = "ensure_shape",
     .takes_complex = true,
     .oracle = "x",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 37}, -1, 1)}, .attrs = Attrs(Shape{2, -1})},
               {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(Shape{})},
               {.inputs = {uniform({0, 2}, -1, 1)}, .attrs = Attrs(Shape{-1, 2})},
               {.inputs = {f64({1, 2})}, .attrs = Attrs(Shape{-1}), .expected = {f64({1, 2})}}};
         }},

    {.op = "print",
     .takes_complex = true,
     .oracle = "x",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, -1, 1)}, .attrs = Attrs(PrintAttrs{"x = ", nowhere()})},
               {.inputs = {f64({1, 2})},
                .attrs = Attrs(PrintAttrs{"", nowhere()}),
                .expected = {f64({1, 2})}}};
         }},

    {.op = "assert_that",
     .oracle = "condition",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {zeros({0}, DType::boolean)}, .attrs = Attrs(AssertAttrs{"text"})},
               {.inputs = {ones({2, 3}, DType::boolean)},
                .attrs = Attrs(AssertAttrs{"text"}),
                .expected = {ones({2, 3}, DType::boolean)}}};
         }},

    {.op = "check_numerics",
     .throws_on_nan = true,
     .oracle = "x",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, -1, 1)}, .attrs = Attrs(NumericsAttrs{"x"})},
               {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(NumericsAttrs{"x"})},
               {.inputs = {f64({1, 2})}, .attrs = Attrs(NumericsAttrs{"x"}), .expected = {f64({1, 2})}}};
         }},
};

}   // namespace

std::span<const OpSamples> check_numerics_samples() { return check_numerics_table; }

}   // namespace tapedeck::test
