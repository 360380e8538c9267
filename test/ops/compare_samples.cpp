// Samples of the ops in lib/ops/elementwise/compare.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

std::vector<Sample> of_two_bools(std::initializer_list<detail::List1<int>> expected,
                                 std::string_view oracle) {
  return {{.inputs = {tensor({{1, 1, 0}, {0, 0, 1}}, DType::boolean), tensor({1, 0, 0}, DType::boolean)},
           .expected = {tensor(expected, DType::boolean)},
           .oracle = oracle}};
}

std::vector<Sample> of_two(std::initializer_list<detail::List1<int>> expected, std::string_view oracle) {
  return {{.inputs = {uniform({2, 3}, -1, 1), uniform({2, 3}, -1, 1, 1)}},
          {.inputs = {f64({{1, 2, 3}, {3, 2, 1}}), f64({2, 2, 2})},
           .expected = {tensor(expected, DType::boolean)},
           .oracle = oracle}};
}

constexpr OpSamples compare_table[] = {
    {.op = "equal",
     .takes_complex = true,
     .oracle = "a == b",
     .samples =
         [] {
           return of_two({{0, 1, 0}, {0, 1, 0}}, "a == b");
         }},

    {.op = "not_equal",
     .takes_complex = true,
     .oracle = "a != b",
     .samples =
         [] {
           return of_two({{1, 0, 1}, {1, 0, 1}}, "a != b");
         }},

    {.op = "less",
     .oracle = "a < b",
     .samples =
         [] {
           return of_two({{1, 0, 0}, {0, 0, 1}}, "a < b");
         }},

    {.op = "less_equal",
     .oracle = "a <= b",
     .samples =
         [] {
           return of_two({{1, 1, 0}, {0, 1, 1}}, "a <= b");
         }},

    {.op = "greater",
     .oracle = "a > b",
     .samples =
         [] {
           return of_two({{0, 0, 1}, {1, 0, 0}}, "a > b");
         }},

    {.op = "greater_equal",
     .oracle = "a >= b",
     .samples =
         [] {
           return of_two({{0, 1, 1}, {1, 1, 0}}, "a >= b");
         }},

    {.op = "logical_and",
     .samples =
         [] {
           return of_two_bools({{1, 0, 0}, {0, 0, 0}}, "np.logical_and(a, b)");
         }},

    {.op = "logical_or",
     .samples =
         [] {
           return of_two_bools({{1, 1, 0}, {1, 0, 1}}, "np.logical_or(a, b)");
         }},

    {.op = "logical_not",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {tensor({{1, 0, 0}, {0, 1, 1}}, DType::boolean)},
                                       .expected = {tensor({{0, 1, 1}, {1, 0, 0}}, DType::boolean)},
                                       .oracle = "np.logical_not(x)"}};
         }},
};

}   // namespace

std::span<const OpSamples> compare_samples() { return compare_table; }

}   // namespace tapedeck::test
