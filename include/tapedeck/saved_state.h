// SavedState: what an object, such as an optimizer, keeps between steps, in the form in which it is saved.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tapedeck/named_tensors.h"
#include "tapedeck/variable.h"

namespace tapedeck {

/// A number of an object's own, such as an optimizer's "iterations" or Adam's "beta1_power".
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

/// All that an object keeps between steps, without what it was made with, such as hyperparameters. Tensors
/// are shared, not copied.
struct SavedState {
  std::vector<SavedScalar> scalars = {};   // of always the same names
  std::vector<SlotValue> slots = {};
  NamedTensors tensors = {};
  /// Of what it is: "adam", an optimizer's rule; "loss_scale"; the name of a metric. An object refuses the
  /// state of another kind; empty: it is not said.
  std::string kind = {};
};

namespace detail {
/// A member of an object to which compiled functions refer: tells them when it is gone, from where it was.
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

/// Puts a new state in the place of an object's old one. Throws nothing. To be called once, while the object
/// lives.
using Commit = std::function<void()>;

}   // namespace tapedeck
