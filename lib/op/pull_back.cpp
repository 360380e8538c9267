// In: a call, its cotangents. Out: gradients by the rule's vjp, which sees complex values conjugated.
#include "op/pull_back.h"

#include "op/primitives.h"

namespace tapedeck {
namespace {

// Values that were not saved are undefined or shape-only.
bool has_complex_values(const Tensor& x) { return x.defined() && is_complex(x.dtype()) && x.raw(); }
bool any_complex_values(Refs x) {
  for (int i = 0; i < x.size(); ++i)
    if (has_complex_values(x[i])) return true;
  return false;
}

// A list of tensors with the conjugates of those that are complex.
class Conjugated {
 public:
  explicit Conjugated(Refs x) {
    tensors_.reserve(static_cast<std::size_t>(x.size()));
    for (int i = 0; i < x.size(); ++i)
      pointers_.push_back(has_complex_values(x[i]) ? &tensors_.emplace_back(conj(x[i])) : &x[i]);
  }
  Refs refs() const { return {pointers_.data(), static_cast<int>(pointers_.size())}; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> pointers_;
};

// Out of line, so that real rules do not pay for the lists.
[[gnu::noinline]] void run_conjugated(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const Conjugated x(c.x), y(c.y);
  c.op.rule.vjp({.op = c.op, .raw_attrs = c.raw_attrs, .x = x.refs(), .y = y.refs(), .wanted = c.wanted}, dy,
                dx);
}

}   // namespace

void pull_back(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  if (any_complex_values(c.x) || any_complex_values(c.y)) [[unlikely]]
    run_conjugated(c, dy, dx);
  else
    c.op.rule.vjp(c, dy, dx);
}

}   // namespace tapedeck
