// Samples of the ops in lib/ops/elementwise/rounding.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples rounding_table[] = {
    {.op = "floor",
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({-2, -1, 0, 2}), "np.floor(x)");
         }},

    {.op = "ceil",
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({-1, 0, 1, 2}), "np.ceil(x)");
         }},

    {.op = "trunc",
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({-1, 0, 0, 2}), "np.trunc(x)");
         }},

    {.op = "round",
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({-2, 0, 0, 2}), "np.round(x)");
         }},

    {.op = "rint",
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({-2, 0, 0, 2}), "np.rint(x)");
         }},

    {.op = "floor_div",
     .oracle = "np.floor(a / b)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, -4, 4), uniform({2, 3}, 0.5, 2, 1)}},
                                      {.inputs = {f64({-7, 7, -7, 7.5, 6}), f64({2, -2, -2, 2, 3})},
                                       .expected = {f64({-4, -4, 3, 3, 2})}}};
         }},

    {.op = "truncate_div",
     .oracle = "np.trunc(a / b)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, -4, 4), uniform({2, 3}, 0.5, 2, 1)}},
                                      {.inputs = {f64({-7, 7, -7, 7.5, 6}), f64({2, -2, -2, 2, 3})},
                                       .expected = {f64({-3, -3, 3, 3, 2})}}};
         }},

    {.op = "floor_mod",
     .oracle = "np.mod(a, b)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 4.1, 4.9), uniform({2, 3}, 2.1, 3.9, 1)}},
                                      {.inputs = {f64({-7.25, 7.25, -7.5, 7.5, 6.5}), f64({2, -2, -2, 2, 3})},
                                       .expected = {f64({0.75, -0.75, -1.5, 1.5, 0.5})}}};
         }},

    {.op = "mul_no_nan",
     .takes_complex = true,
     .oracle = "np.where(b == 0, 0, a * b)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, 0.5, 2, 1)}},
                                      {.inputs = {f64({-7, 0, -7, 7.5, 6}), f64({0, -2, -2, 0, 3})},
                                       .expected = {f64({0, 0, 14, 0, 18})}},
                                      {.inputs = {c128({{1, 2}, {-1, 0.5}}), c128({{0.5, -1}, {0, 0}})},
                                       .expected = {c128({{2.5, 0}, {0, 0}})}}};
         }},

    {.op = "div_no_nan",
     .takes_complex = true,
     .oracle = "a / b",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, 0.5, 2, 1)}},
               {.inputs = {f64({-7, 0.5, -7, 7.5, 6}), f64({0.5, -2, -2, 1.5, 3})},
                .expected = {f64({-14, -0.25, 3.5, 5, 2})}},
               {.inputs = {c128({{1, 2}, {-1, 0.5}}), c128({{0.5, -1}, {-2, 0.25}})},
                .expected = {c128({{-1.2, 1.6}, {0.5230769230769231, -0.18461538461538463}})}}};
         }},

    {.op = "nextafter",
     .oracle = "np.nextafter(a, b)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -2, -1), uniform({2, 3}, 1, 2, 1)}},
               {.inputs = {f64({1, 1, 0.5, -2}), f64({2, 0, 0.5, -3})},
                .expected = {f64({1.0000000000000002, 0.9999999999999999, 0.5, -2.0000000000000004})}}};
         }},
};

}   // namespace

std::span<const OpSamples> rounding_samples() { return rounding_table; }

}   // namespace tapedeck::test
