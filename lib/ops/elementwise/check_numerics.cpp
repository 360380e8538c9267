// Checks and printing. In: a tensor. Out: the same tensor, unless a check fails.
#include "tapedeck/ops/check_numerics.h"

#include <iostream>

#include "core/format.h"
#include "core/host_view.h"
#include "core/storage.h"
#include "kernels/elementwise/finite.h"
#include "ops/elementwise/check_numerics.h"
#include "ops/infer.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/identity_op.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_floating(const Call& c) {
  require_floating(c, 0);
  return c.x[0].spec();
}

void run_check(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  (void)look_at(x, {}, c.op.name);   // so that a recording keeps the op, although y shares memory with x
  if (const auto f = kernels::first_not_finite(x))
    throw_error<ArgumentError>("check_numerics: {}: element {} of {} is {}", c.attrs<NumericsAttrs>().name,
                               f->position, x.spec(), f->number);
  share_with(y[0], x);
}

Spec infer_shape(const Call& c) {
  const Shape &x = c.x[0].shape(), &shape = c.attrs<Shape>();
  bool fits = x.ndim() == shape.ndim();
  for (int d = 0; fits && d < shape.ndim(); ++d)
    fits = shape[d] == -1 || shape[d] == x[d];
  if (!fits)
    throw_error<ShapeError>("ensure_shape: x is not of that shape: x is {}, shape is {}", c.x[0].spec(),
                            shape);
  return c.x[0].spec();
}

void run_print(const Call& c, std::span<Tensor> y) {
  const auto& [text, out] = c.attrs<PrintAttrs>();
  *out << text << c.x[0] << '\n';
  share_with(y[0], c.x[0]);
}

Spec infer_condition(const Call& c) {
  if (c.x[0].dtype() != DType::boolean) c.throw_dtype_error("takes bool, compare first");
  return c.x[0].spec();
}

void run_assert(const Call& c, std::span<Tensor> y) {
  if (all(c.x[0]).item() == 0) throw_error<ArgumentError>("assert_that: {}", c.attrs<AssertAttrs>().text);
  share_with(y[0], c.x[0]);
}

Tensor checked(const Tensor& x, const NumericsAttrs& attrs);

constexpr Op kPreventGradient = {
    .name = "prevent_gradient",
    .doc = "A new tensor with the same values. Differentiating through it throws an error.",
    .tensorflow = "PreventGradient",
    .args = {"x"},
    .infer = same_as_first,
    .forward = kShare,
    .rule = Rule::undefined(),
};

constexpr Op kEnsureShape = {
    .name = "ensure_shape",
    .doc =
        "A new tensor with the same values. Throws an error unless x has the given shape, in which -1 "
        "matches any extent.",
    .tensorflow = "EnsureShape",
    .args = {"x"},
    .infer = infer_shape,
    .forward = kShare,
    .rule = kIdentityRule,
};

constexpr Op kPrint = {
    .name = "print",
    .doc = "A new tensor with the same values, which are written to a stream after a text.",
    .tensorflow = "Print",
    .args = {"x"},
    .infer = same_as_first,
    .forward = moves({run_print, Outputs::by_kernel}),
    .rule = kIdentityRule,
    .meaning = Meaning::check,
};

constexpr Op kAssertThat = {
    .name = "assert_that",
    .doc = "The condition itself. Throws an error with the given text unless all elements are true.",
    .tensorflow = "Assert",
    .args = {"condition"},
    .infer = infer_condition,
    .forward = {run_assert, Outputs::by_kernel},
    .rule = kIdentityRule,
    .meaning = Meaning::check,
};

constexpr Op kCheckNumerics = {
    .name = "check_numerics",
    .doc =
        "A new tensor with the same values. Throws an error for NaN or infinity in x or in a gradient "
        "through it.",
    .tensorflow = "CheckNumerics CheckNumericsV2",
    .args = {"x"},
    .infer = infer_floating,
    .forward = {run_check, Outputs::by_kernel},
    .rule = Rule::linear([](const Call& c, const Tensor& dy) {
      const std::string& name = c.attrs<NumericsAttrs>().name;
      return checked(dy, {name.starts_with("gradient of ") ? name : "gradient of " + name});
    }),
    .meaning = Meaning::check,
};

constexpr const Op* check_numerics_table[] = {&kPreventGradient, &kEnsureShape, &kPrint, &kAssertThat,
                                              &kCheckNumerics};

Tensor checked(const Tensor& x, const NumericsAttrs& attrs) { return kCheckNumerics(x, attrs); }

}   // namespace

Tensor prevent_gradient(const Tensor& x) { return kPreventGradient(x); }
Tensor check_numerics(const Tensor& x, std::string_view name) { return checked(x, {std::string(name)}); }

Tensor ensure_shape(const Tensor& x, const Shape& shape) { return kEnsureShape(x, shape); }
Tensor print(const Tensor& x, std::string_view text, std::ostream& out) {
  return kPrint(x, PrintAttrs{std::string(text), &out});
}
Tensor print(const Tensor& x, std::string_view text) { return print(x, text, std::cerr); }
void assert_that(const Tensor& condition, std::string_view text) {
  kAssertThat(condition, AssertAttrs{std::string(text)});
}

std::span<const Op* const> check_numerics_ops() { return check_numerics_table; }

}   // namespace tapedeck
