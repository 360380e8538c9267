// Gradient: conversions to a tensor, an operand, and text.
#include "tapedeck/gradient.h"

#include <sstream>

#include "core/format.h"
#include "tape/variable.h"
#include "tapedeck/operand.h"
#include "tapedeck/variable.h"

namespace tapedeck {

Gradient::Gradient(const Variable& v) : dense_(v.value()) {}
Gradient::Gradient(IndexedSlices slices)
    : other_(std::make_shared<const Other>(Other{.slices = std::move(slices)})) {}
Gradient Gradient::none(const char* what, const char* reason, const Spec& source, const Variable* variable) {
  Other other{.what = what, .reason = reason, .source = source};
  if (variable) other.variable = variable->name(), other.id = variable->id();
  Gradient g;
  g.other_ = std::make_shared<const Other>(std::move(other));
  return g;
}

const char* Gradient::reason() const {
  return other_ ? other_->reason : "no path leads from the target to the source";
}
bool Gradient::is_tangent() const { return other_ && std::string_view(other_->what) == "tangent"; }
// Formatted on demand, since a network may have many variables without a gradient.
std::string Gradient::source() const {
  if (!other_) return "this gradient";
  if (other_->variable.empty()) return fmt::format("the {} of the {}", other_->what, other_->source);
  return fmt::format("the {} of {} {}", other_->what, detail::label(other_->variable, other_->id),
                     other_->source);
}

Spec Gradient::spec() const {
  if (slices() && slices()->dense_shape) return {slices()->values.dtype(), *slices()->dense_shape};
  return dense().spec();
}
const Shape& Gradient::shape() const& {
  if (slices() && slices()->dense_shape) return *slices()->dense_shape;
  if (!is_dense()) (void)dense();   // throws
  return dense_.shape();
}
Tensor Gradient::dense() const& {
  if (slices()) return to_dense(*slices());
  if (!dense_.defined())
    throw_error<GradientError>(
        "{} is none: {}; ask defined() first, or pass {}", source(), reason(),
        is_tangent() ? "UnconnectedGradients::zero for zeros"
                     : ".unconnected = UnconnectedGradients::zero for zeros; explain() tells where the path "
                       "ends");
  return dense_;
}
Tensor Gradient::dense() && {
  return dense_.defined() ? std::move(dense_) : static_cast<const Gradient&>(*this).dense();
}

Operand::Operand(const Gradient& g, Tensor&& read) {
  const Tensor* value = &g.tensor();
  if (!g.is_dense()) {
    read = g.dense();
    value = &read;
  }
  bits_ = reinterpret_cast<std::uintptr_t>(value);
}

std::ostream& detail::print(std::ostream& out, const Gradient* list, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (i) out << '\n';
    if (list[i].is_dense())
      out << list[i].tensor();
    else if (list[i].slices())
      out << *list[i].slices();
    else
      out << "none: " << list[i].reason();
  }
  return out;
}
std::string detail::text_of(const Gradient& g) {
  std::ostringstream out;
  print(out, &g, 1);
  return out.str();
}
std::ostream& operator<<(std::ostream& out, const std::vector<Gradient>& list) {
  return detail::print(out, list.data(), list.size());
}

}   // namespace tapedeck
