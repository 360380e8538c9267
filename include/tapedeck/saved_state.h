// SavedState: the state of an object, such as an optimizer, between steps, in the form in which it is saved.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tapedeck/named_tensors.h"
#include "tapedeck/variable.h"

namespace tapedeck {

/// A number that belongs to the object, such as an optimizer's "iterations" or Adam's "beta1_power".
struct SavedScalar {
  std::string name;
  double value;
};
/// A tensor that belongs to a variable, such as an optimizer's slot.
struct SlotValue {
  Variable variable;
  std::string slot;
  Tensor value;
};

/// The complete state of an object between steps, without its constructor arguments, such as hyperparameters.
/// Tensors are shared, not copied.
struct SavedState {
  std::vector<SavedScalar> scalars = {};   // the names are always the same
  std::vector<SlotValue> slots = {};
  NamedTensors tensors = {};
  /// The kind of the object: "adam" for an optimizer with this rule, "loss_scale", or the name of a metric.
  /// An object rejects a state of another kind; an empty kind is not checked.
  std::string kind = {};
};

namespace detail {
/// A member of objects to which compiled functions refer: its token expires when the object is destroyed or
/// moved from.
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) {}
  Lifetime(Lifetime&& from) noexcept { from.token_.reset(); }
  Lifetime& operator=(const Lifetime&) { return *this; }
  Lifetime& operator=(Lifetime&& from) noexcept {
    if (this != &from) from.token_.reset();
    return *this;
  }
  std::weak_ptr<const void> watch() const {
    if (!token_) token_ = std::make_shared<const char>();
    return token_;
  }

 private:
  mutable std::shared_ptr<const void> token_;
};
}   // namespace detail

/// Replaces an object's state by a new one. Does not throw. Must be called at most once, while the object
/// exists.
using Commit = std::function<void()>;

}   // namespace tapedeck
