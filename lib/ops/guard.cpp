// Values that pass through. In: a tensor. Out: the same, unless something is wrong with it.
#include "tapedeck/ops/guard.h"

#include <cmath>
#include <iostream>

#include "base/format.h"
#include "base/visit.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"
#include "tensor/storage.h"

namespace tapedeck {
namespace {

using namespace samples;

struct NumericsAttrs { std::string name; };

Spec infer_floating(const Call& c) {
  require_floating(c, 0);
  return c.x[0].spec();
}

constexpr Kernel kShare = {[](const Call& c, std::span<Tensor> y) { share_with(y[0], c.x[0]); }, Outputs::own};

void run_check(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  visit_floating(x.dtype(), [&]<class T>(T) {
    const T* element = elements<T>(x);
    bool finite = true;
    for (std::int64_t i = 0; i < x.size(); ++i) finite &= element[i] - element[i] == T(0);
    if (finite) return;
    std::int64_t i = 0;
    while (std::isfinite(element[i])) ++i;
    throw_error<ArgumentError>("check_numerics: {}: element {} of {} is {}", c.attrs<NumericsAttrs>().name, i, x.spec(), element[i]);
  });
  share_with(y[0], x);
}

Tensor checked(const Tensor& x, const NumericsAttrs& attrs);

constexpr Op table[] = {
    {.name = "prevent_gradient",
     .doc = "The same values as a new tensor that must not be differentiated.",
     .tensorflow = "PreventGradient",
     .args = {"x"},
     .infer = same_as_first,
     .forward = kShare,
     .rule = undefined(),
     .samples = [] { return std::vector<Sample>{{.inputs = {f64({1, 2})}, .expected = {f64({1, 2})}, .oracle = "x"}}; }},

    {.name = "check_numerics",
     .doc = "The same values as a new tensor; NaN and infinities, also in gradients, are errors.",
     .tensorflow = "CheckNumerics CheckNumericsV2",
     .args = {"x"},
     .infer = infer_floating,
     .forward = {run_check, Outputs::own},
     .rule = linear([](const Call& c, const Tensor& dy) {
       const std::string& name = c.attrs<NumericsAttrs>().name;
       return checked(dy, {name.starts_with("gradient of ") ? name : "gradient of " + name});
     }),
     .samples = [] {
       return std::vector<Sample>{{.inputs = {uniform({37}, -1, 1)}, .attrs = Attrs(NumericsAttrs{"x"})},
                                  {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(NumericsAttrs{"x"})},
                                  {.inputs = {f64({1, 2})}, .attrs = Attrs(NumericsAttrs{"x"}), .expected = {f64({1, 2})}, .oracle = "x"}};
     }},
};

Tensor checked(const Tensor& x, const NumericsAttrs& attrs) { return find(table, "check_numerics").with(attrs, x); }

}  // namespace

Tensor prevent_gradient(const Tensor& x) { return find(table, "prevent_gradient").execute({&x, 1}); }
Tensor check_numerics(const Tensor& x, std::string_view name) { return checked(x, {std::string(name)}); }

Tensor ensure_shape(const Tensor& x, const Shape& shape) {
  bool fits = x.ndim() == shape.ndim();
  for (int d = 0; fits && d < shape.ndim(); ++d) fits = shape[d] == -1 || shape[d] == x.shape()[d];
  if (!fits) throw_error<ShapeError>("ensure_shape: x is not of that shape: x is {}, shape is {}", x.spec(), shape);
  return identity(x);
}

Tensor print(const Tensor& x, std::string_view text, std::ostream& out) {
  out << text << x << '\n';
  return identity(x);
}
Tensor print(const Tensor& x, std::string_view text) { return print(x, text, std::cerr); }

void assert_that(const Tensor& condition, std::string_view text) {
  if (condition.dtype() != DType::boolean) throw_error<DTypeError>("assert_that: takes bool, compare first: condition is {}", condition.spec());
  if (all(condition).item() == 0) throw_error<ArgumentError>("assert_that: {}", text);
}

std::span<const Op> guard_ops() { return table; }

}  // namespace tapedeck
