// Elementwise rounding, and quotients that are rounded or are 0 for a divisor of 0. In: tensors that
// broadcast. Out: a tensor of the broadcast shape.
#include "core/format.h"
#include "kernels/elementwise/division.h"
#include "kernels/elementwise/next_half.h"
#include "op/elementwise.h"
#include "op/piecewise_constant.h"
#include "op/rules.h"
#include "ops/infer.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

/// Like map_arithmetic, for an f that divides by b. Throws ArgumentError if an integer divisor is 0.
template <class F> constexpr Kernel map_division(F) {
  return {[](const Call& c, std::span<Tensor> y) {
            if (!is_floating(y[0].dtype()) && y[0].size() > 0)
              if (const std::int64_t at = kernels::find_zero(c.x[1]); at >= 0)
                throw_error<ArgumentError>("{}: division by zero: element {} of b is 0", c.op.name, at);
            map_arithmetic(F{}).run(c, y);
          },
          Outputs::may_overwrite};
}

constexpr Kernel kNextOfFloats = map([](auto a, auto b) { return nextafter(a, b); });
constexpr Kernel kNextAfter = {[](const Call& c, std::span<Tensor> y) {
                                 if (is_half(y[0].dtype()))
                                   kernels::next_half(c.x[0], c.x[1], y[0]);
                                 else
                                   kNextOfFloats.run(c, y);
                               },
                               Outputs::fresh, KernelDtypes::native_and_halves};

// Without SSE 4.1 xsimd rounds by conversion to integers, which loses the sign of zero; bitofsign(x) restores
// it.
constexpr Op kFloor = {
    .name = "floor",
    .doc = "The largest integer not greater than x.",
    .tensorflow = "Floor",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return floor(x) | bitofsign(x); }),
    .rule = Rule::none(),
};

constexpr Op kCeil = {
    .name = "ceil",
    .doc = "The smallest integer not less than x.",
    .tensorflow = "Ceil",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return ceil(x) | bitofsign(x); }),
    .rule = Rule::none(),
};

constexpr Op kTrunc = {
    .name = "trunc",
    .doc = "x rounded towards 0 to an integer.",
    .tensorflow = "",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return trunc(x) | bitofsign(x); }),
    .rule = Rule::none(),
};

constexpr Op kRound = {
    .name = "round",
    .doc = "The integer nearest to x; ties go to the even one.",
    .tensorflow = "Round",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return nearbyint(x) | bitofsign(x); }),
    .rule = Rule::none(),
};

constexpr Op kRint = {
    .name = "rint",
    .doc = "Another name for round.",
    .tensorflow = "Rint",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return nearbyint(x) | bitofsign(x); }),
    .rule = Rule::none(),
};

constexpr Op kFloorDiv = {
    .name = "floor_div",
    .doc = "The largest integer not greater than a / b.",
    .tensorflow = "FloorDiv",
    .args = {"a", "b"},
    .infer = arithmetic,
    .forward = map_division([](auto a, auto b) { return floor_div(a, b); }),
    .rule = Rule::none(),
};

constexpr Op kTruncateDiv = {
    .name = "truncate_div",
    .doc = "a / b, rounded towards 0.",
    .tensorflow = "TruncateDiv",
    .args = {"a", "b"},
    .infer = arithmetic,
    .forward = map_division([](auto a, auto b) { return truncate_div(a, b); }),
    .rule = Rule::none(),
};

constexpr Op kFloorMod = {
    .name = "floor_mod",
    .doc = "a - b·floor(a / b), which has the sign of b; the partials are 1 and -floor(a / b).",
    .tensorflow = "FloorMod Mod",
    .args = {"a", "b"},
    .infer = arithmetic,
    .forward = map_division([](auto a, auto b) { return floor_mod(a, b); }),
    .rule =
        partials([](auto, auto) { return 1; }, [](auto a, auto b) { return piecewise(-floor(a / b), a, b); }),
};

constexpr Op kMulNoNan = {
    .name = "mul_no_nan",
    .doc = "a·b, but 0 where b is 0, whatever a is.",
    .tensorflow = "MulNoNan",
    .args = {"a", "b"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto a, auto b) { return mul_no_nan(a, b); }),
    .rule = Rule::bilinear(
        [](const Call& c, const Tensor& dy) { return unbroadcast(c, mul_no_nan(dy, c.x[1]), 0); },
        [](const Call& c, const Tensor& dy) { return unbroadcast(c, mul_no_nan(c.x[0], dy), 1); }),
};

constexpr Op kDivNoNan = {
    .name = "div_no_nan",
    .doc = "a / b, but 0 with gradients of 0 where b is 0.",
    .tensorflow = "DivNoNan",
    .args = {"a", "b"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto a, auto b) { return div_no_nan(a, b); }),
    .rule = partials([](auto, auto b) { return div_no_nan(1, b); },
                     [](auto, auto b, auto y) { return div_no_nan(-y, b); }),
};

constexpr Op kNextafter = {
    .name = "nextafter",
    .doc = "The next representable number from a towards b; the partials are 1 and 0.",
    .tensorflow = "NextAfter",
    .args = {"a", "b"},
    .infer = elementwise,
    .forward = kNextAfter,
    .rule = partials([](auto, auto) { return 1; }, [](auto, auto) { return 0; }),
};

constexpr const Op* rounding_table[] = {&kFloor,    &kCeil,     &kTrunc,       &kRound,
                                        &kRint,     &kFloorDiv, &kTruncateDiv, &kFloorMod,
                                        &kMulNoNan, &kDivNoNan, &kNextafter};

}   // namespace

Tensor floor(Operand x) { return kFloor(x); }
Tensor ceil(Operand x) { return kCeil(x); }
Tensor trunc(Operand x) { return kTrunc(x); }
Tensor round(Operand x) { return kRound(x); }
Tensor rint(Operand x) { return kRint(x); }
Tensor floor_div(Operand a, Operand b) { return kFloorDiv(a, b); }
Tensor truncate_div(Operand a, Operand b) { return kTruncateDiv(a, b); }
Tensor floor_mod(Operand a, Operand b) { return kFloorMod(a, b); }
Tensor mul_no_nan(Operand a, Operand b) { return kMulNoNan(a, b); }
Tensor div_no_nan(Operand a, Operand b) { return kDivNoNan(a, b); }
Tensor nextafter(Operand a, Operand b) { return kNextafter(a, b); }

std::span<const Op* const> rounding_ops() { return rounding_table; }

}   // namespace tapedeck
