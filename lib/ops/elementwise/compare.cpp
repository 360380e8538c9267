// Comparisons and logic. In: tensors that broadcast. Out: bool of the broadcast shape.
#include <array>

#include "kernels/elementwise/compare.h"
#include "kernels/elementwise/decision.h"
#include "ops/infer.h"
#include "tapedeck/ops/compare.h"

namespace tapedeck {
namespace {

// Of elements, or of vectors of numbers.
struct Less {
  template <class T> auto operator()(const T& a, const T& b) const { return a < b; }
};
struct LessEqual {
  template <class T> auto operator()(const T& a, const T& b) const { return a <= b; }
};
struct Equal {
  template <class T> auto operator()(const T& a, const T& b) const { return a == b; }
};
template <class F> struct Swapped {
  template <class T> auto operator()(const T& a, const T& b) const { return F()(b, a); }
};
struct And {
  bool operator()(bool a, bool b) const { return a && b; }
  template <class V> V operator()(const V& a, const V& b) const { return a * b; }
};
struct Or {
  bool operator()(bool a, bool b) const { return a || b; }
  template <class V> V operator()(const V& a, const V& b) const { return xsimd::max(a, b); }
};
struct Not {
  bool operator()(bool a, bool) const { return !a; }
  template <class V> V operator()(const V& a) const { return V(1) - a; }
};

// F(a, b) as a number, or the opposite.
template <class F, bool is_opposite = false> struct AsNumber {
  template <class V> V operator()(const V& a, const V& b) const {
    return xsimd::select(F()(a, b), V(is_opposite ? 0 : 1), V(is_opposite ? 1 : 0));
  }
};
template <class F, bool is_opposite> struct AsBool {
  template <class T> bool operator()(const T& a, const T& b) const { return F()(a, b) != is_opposite; }
};
// On few elements, without the set-up of the kernels.
template <class T, class F>
void decide_few(const std::byte* a, const std::byte* b, bool* y, std::int64_t n, unsigned singles) {
  const T *p = reinterpret_cast<const T*>(a), *q = reinterpret_cast<const T*>(b);
  if (n == 1) {   // skips the set-up of the vectorized loop
    *y = F()(*p, *q);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = F()(p[singles & 1 ? 0 : i], q[singles & 2 ? 0 : i]);
}

template <class F, bool is_opposite = false>
constexpr kernels::Decision kComparison = {.numbers = kernels::map_kernel<AsNumber<F, is_opposite>, 2>,
                                           .f32 = decide_few<float, AsBool<F, is_opposite>>,
                                           .f64 = decide_few<double, AsBool<F, is_opposite>>,
                                           .i64 = decide_few<std::int64_t, AsBool<F, is_opposite>>};
template <class F, int operands> constexpr kernels::Decision kLogic = {
    .numbers = kernels::map_kernel<F, operands>, .boolean = decide_few<bool, F>};

struct EqualOrNot {
  bool wanted;   // a run-time value, so that equal and not_equal share the compiled loops
  template <class T> bool operator()(const T& a, const T& b) const { return (a == b) == wanted; }
};

constexpr Kernel with_decision(Kernel::Run run, const kernels::Decision& decision) {
  return {run, Outputs::fresh, KernelDtypes::native, nullptr, &decision};
}
/// The kernel of F(a, b), or of F(b, a) if swapped.
template <class F, bool swapped = false> constexpr Kernel comparing() {
  return with_decision(
      [](const Call& c, std::span<Tensor> y) { kernels::compare(c.x[swapped], c.x[!swapped], y[0], F()); },
      kComparison<std::conditional_t<swapped, Swapped<F>, F>>);
}
template <bool wanted> constexpr Kernel equating() {
  return with_decision(
      [](const Call& c, std::span<Tensor> y) {
        kernels::compare_any(c.x[0], c.x[1], y[0], EqualOrNot{wanted});
      },
      kComparison<Equal, !wanted>);
}

Spec order(const Call& c) {
  require_real(c);
  return comparison(c);
}

// Accepts only bool: numbers other than 0 and 1 would not count as true everywhere.
Spec logic(const Call& c) {
  for (int i = 0; i < c.x.size(); ++i)
    if (c.x[i].dtype() != DType::boolean) c.throw_dtype_error("takes bool, compare with 0 first");
  return comparison(c);
}
template <class F, int operands = 2> constexpr Kernel logical() {
  return with_decision(
      [](const Call& c, std::span<Tensor> y) {
        kernels::compare_as<bool>(c.x[0], c.x[c.x.size() - 1], y[0], F());
      },
      kLogic<F, operands>);
}

constexpr Op kEqual = {
    .name = "equal",
    .doc = "a = b; NaN equals nothing.",
    .tensorflow = "Equal",
    .args = {"a", "b"},
    .infer = comparison,
    .forward = equating<true>(),
    .rule = Rule::none(),
};

constexpr Op kNotEqual = {
    .name = "not_equal",
    .doc = "a ≠ b; NaN differs from everything.",
    .tensorflow = "NotEqual",
    .args = {"a", "b"},
    .infer = comparison,
    .forward = equating<false>(),
    .rule = Rule::none(),
};

constexpr Op kLess = {
    .name = "less",
    .doc = "a < b.",
    .tensorflow = "Less",
    .args = {"a", "b"},
    .infer = order,
    .forward = comparing<Less>(),
    .rule = Rule::none(),
};

constexpr Op kLessEqual = {
    .name = "less_equal",
    .doc = "a ≤ b.",
    .tensorflow = "LessEqual",
    .args = {"a", "b"},
    .infer = order,
    .forward = comparing<LessEqual>(),
    .rule = Rule::none(),
};

constexpr Op kGreater = {
    .name = "greater",
    .doc = "a > b.",
    .tensorflow = "Greater",
    .args = {"a", "b"},
    .infer = order,
    .forward = comparing<Less, true>(),
    .rule = Rule::none(),
};

constexpr Op kGreaterEqual = {
    .name = "greater_equal",
    .doc = "a ≥ b.",
    .tensorflow = "GreaterEqual",
    .args = {"a", "b"},
    .infer = order,
    .forward = comparing<LessEqual, true>(),
    .rule = Rule::none(),
};

constexpr Op kLogicalAnd = {
    .name = "logical_and",
    .doc = "True where both a and b are true.",
    .tensorflow = "LogicalAnd",
    .args = {"a", "b"},
    .infer = logic,
    .forward = logical<And>(),
    .rule = Rule::none(),
};

constexpr Op kLogicalOr = {
    .name = "logical_or",
    .doc = "True where a or b or both are true.",
    .tensorflow = "LogicalOr",
    .args = {"a", "b"},
    .infer = logic,
    .forward = logical<Or>(),
    .rule = Rule::none(),
};

constexpr Op kLogicalNot = {
    .name = "logical_not",
    .doc = "True where x is false.",
    .tensorflow = "LogicalNot",
    .args = {"x"},
    .infer = logic,
    .forward = logical<Not, 1>(),
    .rule = Rule::none(),
};

constexpr const Op* compare_table[] = {&kEqual,        &kNotEqual,   &kLess,      &kLessEqual, &kGreater,
                                       &kGreaterEqual, &kLogicalAnd, &kLogicalOr, &kLogicalNot};

// Converts numbers to bool, whatever the dtype of the other operand.
Tensor decide(const Op& op, Operand a, Operand b) {
  const auto as_tensor = [](const Operand& o) {
    return o.tensor() ? *o.tensor() : full({}, o.number(), DType::boolean);
  };
  const Tensor x[] = {as_tensor(a), as_tensor(b)};
  return op({std::array{&x[0], &x[1]}.data(), 2});
}

}   // namespace

Tensor equal(Operand a, Operand b) { return kEqual(a, b); }
Tensor not_equal(Operand a, Operand b) { return kNotEqual(a, b); }
Tensor less(Operand a, Operand b) { return kLess(a, b); }
Tensor less_equal(Operand a, Operand b) { return kLessEqual(a, b); }
Tensor greater(Operand a, Operand b) { return kGreater(a, b); }
Tensor greater_equal(Operand a, Operand b) { return kGreaterEqual(a, b); }
Tensor logical_and(Operand a, Operand b) { return decide(kLogicalAnd, a, b); }
Tensor logical_or(Operand a, Operand b) { return decide(kLogicalOr, a, b); }
Tensor logical_not(const Tensor& x) { return kLogicalNot(Operand(x)); }

std::span<const Op* const> compare_ops() { return compare_table; }

}   // namespace tapedeck
