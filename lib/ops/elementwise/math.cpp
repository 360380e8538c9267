// Elementwise arithmetic and selection. In: tensors that broadcast. Out: a tensor of the broadcast shape.
#include "ops/elementwise/math.h"

#include <array>

#include "core/cast.h"
#include "core/storage.h"
#include "kernels/elementwise/add_n.h"
#include "kernels/elementwise/compare.h"
#include "kernels/elementwise/decision.h"
#include "op/elementwise.h"
#include "op/piecewise_constant.h"
#include "ops/elementwise/complex_abs.h"
#include "ops/infer.h"
#include "ops/recorded_vjp.h"
#include "tapedeck/ops/complex.h"
#include "tapedeck/ops/math.h"
#include "tapedeck/ops/rounding.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck {
namespace {

Spec infer_where(const Call& c) {
  if (c.x[0].dtype() != DType::boolean) c.throw_dtype_error("the condition must be bool");
  if (c.x[1].dtype() != c.x[2].dtype()) c.throw_dtype_error("dtypes differ");
  return {c.x[1].dtype(), broadcast_of(c)};
}

Spec infer_add_n(const Call& c) {
  all_alike(c);
  return numeric(c);
}

// The rule of a sum: the cotangent of every term is the cotangent of the sum.
constexpr Rule kEachRule = [] {
  Rule rule = Rule::custom(
      {},
      [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
        for (int i = 0; i < c.x.size(); ++i)
          if (c.needs_gradient(i)) dx[static_cast<std::size_t>(i)] = dy[0];
      },
      [](const Call& c, Refs dx, std::span<Tensor> dy) {
        std::vector<Tensor> terms;
        for (int i = 0; i < c.x.size(); ++i)
          if (dx[i].defined()) terms.push_back(dx[i]);
        if (!terms.empty()) dy[0] = terms.size() == 1 ? terms[0] : add_n(std::move(terms));
      });
  rule.passes_slices = true;
  return rule.stacking_jvp();
}();

constexpr Op kAdd = {
    .name = "add",
    .doc = "a + b.",
    .tensorflow = "Add AddV2",
    .args = {"a", "b"},
    .infer = numeric,
    .forward = map_numbers([](auto a, auto b) { return a + b; }),
    .rule = partials(partial::of_add_in_a, partial::of_add_in_b),
    .meaning = Meaning::add,
};

constexpr Op kSub = {
    .name = "sub",
    .doc = "a - b.",
    .tensorflow = "Sub",
    .args = {"a", "b"},
    .infer = numeric,
    .forward = map_numbers([](auto a, auto b) { return a - b; }),
    .rule = partials(partial::of_sub_in_a, partial::of_sub_in_b),
    .meaning = Meaning::subtract,
};

constexpr Op kMul = {
    .name = "mul",
    .doc = "a · b.",
    .tensorflow = "Mul",
    .args = {"a", "b"},
    .infer = numeric,
    .forward = map_numbers([](auto a, auto b) { return a * b; }),
    .rule = partials_in_a_pass(partial::of_mul_in_a, partial::of_mul_in_b),
};

constexpr Op kDiv = {
    .name = "div",
    .doc = "a / b.",
    .tensorflow = "Div RealDiv",
    .args = {"a", "b"},
    .infer = complex_elementwise,
    .forward = map_short_complex([](auto a, auto b) { return a / b; }),
    .rule = partials(partial::of_div_in_a, partial::of_div_in_b),
};

constexpr Op kNeg = {
    .name = "neg",
    .doc = "-x.",
    .tensorflow = "Neg",
    .args = {"x"},
    .infer = numeric,
    .forward = map_numbers([](auto x) { return -x; }),
    .rule = partials(partial::of_neg),
};

constexpr Op kAbs = {
    .name = "abs",
    .doc = "|x|; the derivative at 0 is 0.",
    .tensorflow = "Abs",
    .args = {"x"},
    .infer = arithmetic,
    .forward = map_arithmetic([](auto x) { return abs(x); }),
    .rule = partials(partial::of_abs),
};

constexpr Op kSign = {
    .name = "sign",
    .doc = "-1, 0 or 1 for negative, zero or positive x; the derivative is 0.",
    .tensorflow = "Sign",
    .args = {"x"},
    .infer = arithmetic,
    .forward = map_arithmetic([](auto x) { return sign(x); }),
    .rule = with_zeros_in(1, partials([](auto x) { return zero_in(x); })),
};

constexpr Op kSquare = {
    .name = "square",
    .doc = "x².",
    .tensorflow = "Square",
    .args = {"x"},
    .infer = numeric,
    .forward = map_numbers([](auto x) { return x * x; }),
    .rule = partials_in_a_pass(partial::of_square),
};

constexpr Op kSquaredDifference = {
    .name = "squared_difference",
    .doc = "(a - b)².",
    .tensorflow = "SquaredDifference",
    .args = {"a", "b"},
    .infer = arithmetic,
    .forward = map_arithmetic([](auto a, auto b) { return (a - b) * (a - b); }),
    .rule = partials([](auto a, auto b) { return 2 * (a - b); }, [](auto a, auto b) { return 2 * (b - a); }),
};

constexpr Op kReciprocal = {
    .name = "reciprocal",
    .doc = "1 / x.",
    .tensorflow = "Reciprocal Inv",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_short_complex([](auto x) { return 1 / x; }),
    .rule = partials([](auto, auto y) { return -y * y; }),
};

constexpr Op kMaximum = {
    .name = "maximum",
    .doc = "The larger of a and b; where they are equal, the gradient goes to a.",
    .tensorflow = "Maximum",
    .args = {"a", "b"},
    .infer = arithmetic,
    .forward = map_arithmetic([](auto a, auto b) { return maximum(a, b); }),
    .rule = partials([](auto a, auto b) { return piecewise(where(a >= b, 1, 0), a, b); },
                     [](auto a, auto b) { return piecewise(where(a >= b, 0, 1), a, b); }),
};

constexpr Op kMinimum = {
    .name = "minimum",
    .doc = "The smaller of a and b; where they are equal, the gradient goes to a.",
    .tensorflow = "Minimum",
    .args = {"a", "b"},
    .infer = arithmetic,
    .forward = map_arithmetic([](auto a, auto b) { return minimum(a, b); }),
    .rule = partials([](auto a, auto b) { return piecewise(where(a <= b, 1, 0), a, b); },
                     [](auto a, auto b) { return piecewise(where(a <= b, 0, 1), a, b); }),
};

constexpr Op kClip = {
    .name = "clip",
    .doc = "x clamped to [low, high]. The gradient goes to the selected operand; at a bound, to x.",
    .tensorflow = "ClipByValue",
    .args = {"x", "low", "high"},
    .infer = arithmetic,
    .forward = map_arithmetic([](auto x, auto low, auto high) { return minimum(maximum(x, low), high); }),
    .rule = partials(
        [](auto x, auto l, auto h) { return piecewise(where(x >= l, where(x <= h, 1, 0), 0), x, l, h); },
        [](auto x, auto l, auto h) { return piecewise(where(x < l, where(l <= h, 1, 0), 0), x, l, h); },
        [](auto x, auto l, auto h) { return piecewise(where(maximum(x, l) > h, 1, 0), x, l, h); }),
};

struct Choose {
  template <class V> V operator()(const V& condition, const V& a, const V& b) const {
    return xsimd::select(condition == V(0), b, a);
  }
};
constexpr kernels::Decision kChoice = {.numbers = kernels::map_kernel<Choose, 3>};

constexpr Op kWhere = {
    .name = "where",
    .doc = "a where condition is true, else b.",
    .tensorflow = "Select SelectV2",
    .args = {"condition", "a", "b"},
    .infer = infer_where,
    .forward = {[](const Call& c, std::span<Tensor> y) { kernels::choose(c.x[0], c.x[1], c.x[2], y[0]); },
                Outputs::fresh, KernelDtypes::all, nullptr, &kChoice},
    .rule = Rule::custom(
        {.x = 0b001},
        [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
          const Tensor dy = std::move(dys[0]).dense(), zero = zeros({}, dy.dtype());
          if (c.needs_gradient(1)) dx[1] = unbroadcast(c, where(c.x[0], dy, zero), 1);
          if (c.needs_gradient(2)) dx[2] = unbroadcast(c, where(c.x[0], zero, dy), 2);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          const Tensor zero = zeros({}, c.y[0].dtype());
          dy[0] = broadcast_to(where(c.x[0], dx[1].defined() ? dx[1] : zero, dx[2].defined() ? dx[2] : zero),
                               c.y[0].shape());
        }),
};

constexpr Op kAstype = {
    .name = "astype",
    .doc =
        "x converted to another dtype. Floating point to integer truncates and saturates; integers wrap "
        "around; f16 and bf16 round to nearest; bool is x ≠ 0.",
    .tensorflow = "Cast",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          return Spec{c.attrs<AsTypeAttrs>().dtype, c.x[0].shape()};
        },
    .forward = {[](const Call& c, std::span<Tensor> y) { cast(c.x[0], y[0]); }, Outputs::fresh,
                KernelDtypes::all},
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return astype(dy, c.x[0].dtype()); }),
    .meaning = Meaning::cast,
};

constexpr Op kAddN = {
    .name = "add_n",
    .doc = "Sum of tensors of the same shape and dtype.",
    .tensorflow = "AddN",
    .args = {"x"},
    .infer = infer_add_n,
    .forward = {[](const Call& c, std::span<Tensor> y) { kernels::add_n(c.x, y[0]); },
                Outputs::may_overwrite},
    .rule = kEachRule,
    .meaning = Meaning::add_n,
};

constexpr const Op* math_table[] = {
    &kAdd,        &kSub,     &kMul,     &kDiv,  &kNeg,   &kAbs,    &kSign, &kSquare, &kSquaredDifference,
    &kReciprocal, &kMaximum, &kMinimum, &kClip, &kWhere, &kAstype, &kAddN};

Tensor add_n(std::span<const Tensor> x, unsigned temporaries) {
  if (x.empty()) throw ArgumentError("add_n: no tensors given");
  std::vector<const Tensor*> refs;
  for (const Tensor& t : x)
    refs.push_back(&t);
  return kAddN({refs.data(), static_cast<int>(refs.size())}, {}, temporaries);
}

bool holds_complex(const Operand& x) {
  return x.tensor() && x.tensor()->defined() && is_complex(x.tensor()->dtype());
}

}   // namespace

Tensor add(Operand a, Operand b) { return kAdd(a, b); }
Tensor sub(Operand a, Operand b) { return kSub(a, b); }
Tensor mul(Operand a, Operand b) { return kMul(a, b); }
Tensor div(Operand a, Operand b) { return kDiv(a, b); }
Tensor neg(Operand x) { return kNeg(x); }
Tensor abs(Operand x) { return holds_complex(x) ? complex_abs(*x.tensor()) : kAbs(x); }
Tensor sign(Operand x) {
  if (!holds_complex(x)) return kSign(x);
  return div_no_nan(*x.tensor(), astype(complex_abs(*x.tensor()), x.tensor()->dtype()));
}
Tensor square(Operand x) { return kSquare(x); }
Tensor squared_difference(Operand a, Operand b) {
  if (!holds_complex(a) && !holds_complex(b)) return kSquaredDifference(a, b);
  const Tensor difference = sub(a, b);
  return mul(difference, conj(difference));
}
Tensor reciprocal(Operand x) { return kReciprocal(x); }
Tensor maximum(Operand a, Operand b) { return kMaximum(a, b); }
Tensor minimum(Operand a, Operand b) { return kMinimum(a, b); }
Tensor clip(Operand x, Operand low, Operand high) { return kClip(x, low, high); }

Tensor where(Operand condition, Operand a, Operand b) {
  Tensor converted[2];
  const Tensor* ab[2];
  ops::promote({a, b}, converted, ab);
  const Tensor c = condition.tensor() ? *condition.tensor() : full({}, condition.number(), DType::boolean);
  return kWhere({std::array{&c, ab[0], ab[1]}.data(), 3});
}

Tensor astype(const Tensor& x, DType dtype) {
  return dtype == x.dtype() ? identity(x) : kAstype(x, AsTypeAttrs{dtype});
}

Tensor add_n(std::span<const Tensor> x) { return add_n(x, 0); }
Tensor add_n(std::vector<Tensor>&& x) { return add_n(x, ~0u); }

std::span<const Op* const> math_ops() { return math_table; }

}   // namespace tapedeck
