// Comparisons and logic. In: tensors that broadcast. Out: bool of the broadcast shape.
#include <array>

#include "kernels/elementwise/compare.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "tapedeck/ops/compare.h"

namespace tapedeck {
namespace {

using namespace samples;

struct Less {
  template <class T> bool operator()(T a, T b) const { return a < b; }
};
struct LessEqual {
  template <class T> bool operator()(T a, T b) const { return a <= b; }
};
struct Equal {
  bool wanted;   // in the loops a variable, so that these are compiled once for equal and not_equal
  template <class T> bool operator()(const T& a, const T& b) const { return (a == b) == wanted; }
};

/// F of a and b, or of b and a.
template <class F, bool swapped = false> constexpr Kernel comparing() {
  return [](const Call& c, std::span<Tensor> y) { kernels::compare(c.x[swapped], c.x[!swapped], y[0], F{}); };
}

Spec order(const Call& c) {
  require_real(c);
  return comparison(c);
}

// Any other value would pass for true in one place and not in another.
Spec logic(const Call& c) {
  for (int i = 0; i < c.x.size(); ++i)
    if (c.x[i].dtype() != DType::boolean) throw_dtype_error(c, "takes bool, compare with 0 first");
  return comparison(c);
}
template <class F> constexpr Kernel deciding(F) {
  return [](const Call& c, std::span<Tensor> y) {
    kernels::compare_as<bool>(c.x[0], c.x[c.x.size() - 1], y[0], F{});
  };
}

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

constexpr Op table[] = {
    {.name = "equal",
     .doc = "a = b; NaN equals nothing.",
     .tensorflow = "Equal",
     .args = {"a", "b"},
     .infer = comparison,
     .forward = [](const Call& c,
                   std::span<Tensor> y) { kernels::compare_any(c.x[0], c.x[1], y[0], Equal{true}); },
     .rule = none(),
     .samples =
         [] {
           return of_two({{0, 1, 0}, {0, 1, 0}}, "a == b");
         }},

    {.name = "not_equal",
     .doc = "a ≠ b; NaN differs from everything.",
     .tensorflow = "NotEqual",
     .args = {"a", "b"},
     .infer = comparison,
     .forward = [](const Call& c,
                   std::span<Tensor> y) { kernels::compare_any(c.x[0], c.x[1], y[0], Equal{false}); },
     .rule = none(),
     .samples =
         [] {
           return of_two({{1, 0, 1}, {1, 0, 1}}, "a != b");
         }},

    {.name = "less",
     .doc = "a < b.",
     .tensorflow = "Less",
     .args = {"a", "b"},
     .infer = order,
     .forward = comparing<Less>(),
     .rule = none(),
     .samples =
         [] {
           return of_two({{1, 0, 0}, {0, 0, 1}}, "a < b");
         }},

    {.name = "less_equal",
     .doc = "a ≤ b.",
     .tensorflow = "LessEqual",
     .args = {"a", "b"},
     .infer = order,
     .forward = comparing<LessEqual>(),
     .rule = none(),
     .samples =
         [] {
           return of_two({{1, 1, 0}, {0, 1, 1}}, "a <= b");
         }},

    {.name = "greater",
     .doc = "a > b.",
     .tensorflow = "Greater",
     .args = {"a", "b"},
     .infer = order,
     .forward = comparing<Less, true>(),
     .rule = none(),
     .samples =
         [] {
           return of_two({{0, 0, 1}, {1, 0, 0}}, "a > b");
         }},

    {.name = "greater_equal",
     .doc = "a ≥ b.",
     .tensorflow = "GreaterEqual",
     .args = {"a", "b"},
     .infer = order,
     .forward = comparing<LessEqual, true>(),
     .rule = none(),
     .samples =
         [] {
           return of_two({{0, 1, 1}, {1, 1, 0}}, "a >= b");
         }},

    {.name = "logical_and",
     .doc = "Whether a and b hold.",
     .tensorflow = "LogicalAnd",
     .args = {"a", "b"},
     .infer = logic,
     .forward = deciding([](bool a, bool b) { return a && b; }),
     .rule = none(),
     .samples =
         [] {
           return of_two_bools({{1, 0, 0}, {0, 0, 0}}, "np.logical_and(a, b)");
         }},

    {.name = "logical_or",
     .doc = "Whether a or b or both hold.",
     .tensorflow = "LogicalOr",
     .args = {"a", "b"},
     .infer = logic,
     .forward = deciding([](bool a, bool b) { return a || b; }),
     .rule = none(),
     .samples =
         [] {
           return of_two_bools({{1, 1, 0}, {1, 0, 1}}, "np.logical_or(a, b)");
         }},

    {.name = "logical_not",
     .doc = "Whether x does not hold.",
     .tensorflow = "LogicalNot",
     .args = {"x"},
     .infer = logic,
     .forward = deciding([](bool x, bool) { return !x; }),
     .rule = none(),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {tensor({{1, 0, 0}, {0, 1, 1}}, DType::boolean)},
                                       .expected = {tensor({{0, 1, 1}, {1, 0, 0}}, DType::boolean)},
                                       .oracle = "np.logical_not(x)"}};
         }},
};

// Numbers are bool here, whatever stands beside them.
Tensor decide(const Op& op, Operand a, Operand b) {
  const auto as_tensor = [](const Operand& o) {
    return o.tensor() ? *o.tensor() : full({}, o.number(), DType::boolean);
  };
  const Tensor x[] = {as_tensor(a), as_tensor(b)};
  return op.execute({std::array{&x[0], &x[1]}.data(), 2});
}

}   // namespace

Tensor equal(Operand a, Operand b) { return find(table, "equal")(a, b); }
Tensor not_equal(Operand a, Operand b) { return find(table, "not_equal")(a, b); }
Tensor less(Operand a, Operand b) { return find(table, "less")(a, b); }
Tensor less_equal(Operand a, Operand b) { return find(table, "less_equal")(a, b); }
Tensor greater(Operand a, Operand b) { return find(table, "greater")(a, b); }
Tensor greater_equal(Operand a, Operand b) { return find(table, "greater_equal")(a, b); }
Tensor logical_and(Operand a, Operand b) { return decide(find(table, "logical_and"), a, b); }
Tensor logical_or(Operand a, Operand b) { return decide(find(table, "logical_or"), a, b); }
Tensor logical_not(const Tensor& x) { return find(table, "logical_not")(Operand(x)); }

std::span<const Op> compare_ops() { return table; }

}   // namespace tapedeck
