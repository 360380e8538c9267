// Checks gradients, and slots from elsewhere, against their variables.
#include <fmt/format.h>

#include "core/format.h"
#include "optim/step.h"
#include "tape/variable.h"

namespace tapedeck {
namespace {

template <class E>
[[noreturn]] void throw_misfit(const Variable& v, const Spec& gradient, std::string_view caller) {
  throw_error<E>("{}: the gradient does not fit {}: gradient is {}, variable is {}", caller,
                 detail::label(v.cell()), gradient, Spec{v.dtype(), v.shape()});
}

void check_spec(DType dtype, const Shape& shape, const Variable& v, std::string_view caller) {
  const Tensor& x = v.cell().value;
  if (dtype != x.dtype() && dtype != computed_in(x.dtype()))
    throw_misfit<DTypeError>(v, {dtype, shape}, caller);
  if (shape != x.shape()) throw_misfit<ShapeError>(v, {dtype, shape}, caller);
}

[[noreturn]] void throw_not_taken(const UpdateRule& rule, const Variable& v, std::string_view caller) {
  std::vector<std::string_view> names;
  for (int t = 0; t < kDTypes; ++t)
    if (is_computed(static_cast<DType>(t)) && takes(rule, static_cast<DType>(t)))
      names.push_back(name_of(static_cast<DType>(t)));
  throw_error<DTypeError>("{}: {} is {}; use {}", caller, detail::label(v.cell()), v.cell().value.spec(),
                          fmt::join(names, " or "));
}

}   // namespace

void check(const UpdateRule& rule, const Gradient& g, const Variable& v, std::string_view caller) {
  const Tensor& x = v.cell().value;
  if (!takes(rule, x.dtype())) throw_not_taken(rule, v, caller);
  const IndexedSlices* slices = g.slices();
  if (!slices) {
    if (!rule.by_rows() && !rule.dense)
      throw_error<ArgumentError>("{}: {} takes sparse gradients only, but the gradient of {} is dense",
                                 caller, rule.name, detail::described(v.cell()));
    return check_spec(g.tensor().dtype(), g.tensor().shape(), v, caller);
  }
  const Shape& shape = slices->dense_shape ? *slices->dense_shape : x.shape();
  validate({slices->values, slices->indices, shape}, caller, v.name());
  check_spec(slices->values.dtype(), shape, v, caller);
  if (v.constraint())
    throw_error<ArgumentError>("{}: {} has a constraint, but its gradient is sparse; make it dense", caller,
                               detail::described(v.cell()));
  if (!rule.by_rows() && !rule.sparse)
    throw_error<ArgumentError>(
        "{}: {} takes no sparse gradients, but the gradient of {} is sparse; make it dense", caller,
        rule.name, detail::described(v.cell()));
}

void check_rows(const UpdateRule& rule, const Step& s, const Variable& v) {
  const DType t = computed_in(v.dtype());
  const auto take = [t](const RowUpdate& rows) {
    return t == DType::f32 ? rows.f32 != nullptr : rows.f64 != nullptr;
  };
  if (!take(s.rows) || (s.others && !take(s.others)))
    throw_error<ArgumentError>("{}: the rule's prepare chose rows without a function of {}, for {}",
                               rule.name, name_of(t), detail::described(v.cell()));
}

void check_slot(const UpdateRule& rule, std::size_t i, const detail::VariableCell& cell,
                const Tensor& value) {
  const std::string_view name = name_of_slot(rule, i);
  if (!value.defined())
    throw_error<ArgumentError>("restore: slot \"{}\" of \"{}\" is undefined", name, cell.name);
  if (!rule.by_rows() && i != kMaster) return;
  constexpr const char* form = "restore: slot \"{}\" of \"{}\" is {}, the variable is {}";
  if (value.dtype() != computed_in(cell.value.dtype()))
    throw_error<DTypeError>(form, name, cell.name, value.spec(), cell.value.spec());
  if (value.shape() != cell.value.shape())
    throw_error<ShapeError>(form, name, cell.name, value.spec(), cell.value.spec());
}

}   // namespace tapedeck
