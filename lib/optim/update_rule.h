// UpdateRule: an optimizer's rule, as an entry of the table in rules.cpp.
#pragma once
#include <array>
#include <span>
#include <string_view>

#include "kernels/update.h"

namespace tapedeck {

inline constexpr std::size_t kMaxSlots = 2, kMaxHyperparameters = 5;

/// A tensor kept for each variable, of its shape and dtype.
struct SlotSpec {
  std::string_view name;
  double initial = 0;
};

/// Which values a hyperparameter may have.
struct Domain {
  std::string_view text;
  bool (*contains)(double) = nullptr;
};

struct HyperparameterSpec {
  std::string_view name;
  double initial = 0;   // NaN, which is in no domain: must be given
  Domain domain;
};

/// Values by their place in the rule's list.
using Hyperparameters = std::array<double, kMaxHyperparameters>;
/// What kernels multiply by, computed in double once a step, and options, which are 0 or 1.
using Coefficients = std::array<double, 5>;
/// A variable's slots, by their place in the rule's list.
using Slots = std::array<Tensor, kMaxSlots>;

struct UpdateRule {
  std::string_view name, doc;
  SlotSpec slots[kMaxSlots] = {};                             // unused ones have no name
  HyperparameterSpec hyperparameters[kMaxHyperparameters] = {};
  Coefficients (*coefficients)(const Hyperparameters& h, double step) = nullptr;   // steps count from 1
  /// Writes to x and s, whose memory nobody else holds, and allocates nothing.
  void (*update)(Tensor& x, Slots& s, const kernels::StepGradient& g, const Coefficients& c) = nullptr;

  bool has_slots() const { return !slots[0].name.empty(); }
};

std::span<const UpdateRule> update_rules();

}  // namespace tapedeck
