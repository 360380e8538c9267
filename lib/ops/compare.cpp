// Comparisons. In: two tensors that broadcast. Out: bool of the broadcast shape.
#include "kernels/compare.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "tapedeck/ops/compare.h"

namespace tapedeck {
namespace {

using namespace samples;

template <class F> constexpr Kernel comparing(F) {
  return [](const Call& c, std::span<Tensor> y) { kernels::compare(c.x[0], c.x[1], y[0], F{}); };
}

std::vector<Sample> of_two(std::initializer_list<detail::List1<int>> expected, std::string_view oracle) {
  return {{.inputs = {uniform({2, 3}, -1, 1), uniform({2, 3}, -1, 1, 1)}},
          {.inputs = {f64({{1, 2, 3}, {3, 2, 1}}), f64({2, 2, 2})}, .expected = {tensor(expected, DType::boolean)}, .oracle = oracle}};
}

constexpr Op table[] = {
    {.name = "equal",
     .doc = "a = b; NaN equals nothing.",
     .args = {"a", "b"},
     .infer = comparison,
     .forward = comparing([](auto a, auto b) { return a == b; }),
     .rule = none(),
     .samples = [] { return of_two({{0, 1, 0}, {0, 1, 0}}, "a == b"); }},

    {.name = "not_equal",
     .doc = "a ≠ b; NaN differs from everything.",
     .args = {"a", "b"},
     .infer = comparison,
     .forward = comparing([](auto a, auto b) { return a != b; }),
     .rule = none(),
     .samples = [] { return of_two({{1, 0, 1}, {1, 0, 1}}, "a != b"); }},

    {.name = "less",
     .doc = "a < b.",
     .args = {"a", "b"},
     .infer = comparison,
     .forward = comparing([](auto a, auto b) { return a < b; }),
     .rule = none(),
     .samples = [] { return of_two({{1, 0, 0}, {0, 0, 1}}, "a < b"); }},

    {.name = "less_equal",
     .doc = "a ≤ b.",
     .args = {"a", "b"},
     .infer = comparison,
     .forward = comparing([](auto a, auto b) { return a <= b; }),
     .rule = none(),
     .samples = [] { return of_two({{1, 1, 0}, {0, 1, 1}}, "a <= b"); }},

    {.name = "greater",
     .doc = "a > b.",
     .args = {"a", "b"},
     .infer = comparison,
     .forward = comparing([](auto a, auto b) { return a > b; }),
     .rule = none(),
     .samples = [] { return of_two({{0, 0, 1}, {1, 0, 0}}, "a > b"); }},

    {.name = "greater_equal",
     .doc = "a ≥ b.",
     .args = {"a", "b"},
     .infer = comparison,
     .forward = comparing([](auto a, auto b) { return a >= b; }),
     .rule = none(),
     .samples = [] { return of_two({{0, 1, 1}, {1, 1, 0}}, "a >= b"); }},
};

}  // namespace

Tensor equal(Operand a, Operand b) { return find(table, "equal")(a, b); }
Tensor not_equal(Operand a, Operand b) { return find(table, "not_equal")(a, b); }
Tensor less(Operand a, Operand b) { return find(table, "less")(a, b); }
Tensor less_equal(Operand a, Operand b) { return find(table, "less_equal")(a, b); }
Tensor greater(Operand a, Operand b) { return find(table, "greater")(a, b); }
Tensor greater_equal(Operand a, Operand b) { return find(table, "greater_equal")(a, b); }

std::span<const Op> compare_ops() { return table; }

}  // namespace tapedeck
