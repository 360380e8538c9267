// Gradient: as a tensor, as an operand, and as text.
#include "tapedeck/gradient.h"

#include "core/format.h"
#include "tapedeck/operand.h"
#include "tapedeck/variable.h"

namespace tapedeck {
namespace {

constexpr const char* kNoPath = "no path leads from the target to the source";

}   // namespace

Gradient::Gradient(const Variable& v) : dense_(v.value()) {}
Gradient::Gradient(IndexedSlices slices)
    : other_(std::make_shared<const Other>(Other{.slices = std::move(slices), .source = {}})) {}
Gradient Gradient::none(const char* reason, std::string source) {
  Gradient g;
  g.other_ =
      std::make_shared<const Other>(Other{.slices = {}, .reason = reason, .source = std::move(source)});
  return g;
}

Tensor Gradient::dense() const& {
  if (slices()) return to_dense(*slices());
  if (!dense_.defined())
    throw_error<GradientError>(
        "{} is none: {}; ask defined() first, or pass .unconnected = UnconnectedGradients::zero "
        "for "
        "zeros; explain() tells where the path ends",
        other_ && !other_->source.empty() ? "the gradient of " + other_->source : "this gradient",
        other_ ? other_->reason : kNoPath);
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

std::string detail::text_of(const Gradient& g) {
  if (g.defined()) return g.slices() ? to_string(*g.slices()) : to_string(g.tensor());
  return fmt::format("none: {}", g.other_ ? g.other_->reason : kNoPath);
}
std::ostream& detail::print(std::ostream& out, const Gradient* list, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (i) out << '\n';
    if (list[i].is_dense())   // as the stream's precision and notation say
      out << list[i].tensor();
    else if (list[i].slices())
      out << *list[i].slices();
    else
      out << text_of(list[i]);
  }
  return out;
}
std::ostream& operator<<(std::ostream& out, const std::vector<Gradient>& list) {
  return detail::print(out, list.data(), list.size());
}

}   // namespace tapedeck
