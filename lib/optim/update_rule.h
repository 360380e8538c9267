// UpdateRule: an optimizer's rule, as an entry of the table in rules.cpp.
#pragma once
#include <array>
#include <span>
#include <string_view>

#include "tapedeck/indexed_slices.h"

namespace tapedeck {

inline constexpr std::size_t kMaxSlots = 2, kMaxHyperparameters = 4;

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
/// What kernels multiply by, computed in double once a step.
using Coefficients = std::array<double, 4>;
/// A variable's slots, by their place in the rule's list.
using Slots = std::array<Tensor, kMaxSlots>;

/// All memory is there and nobody else holds it: an update writes to x and s, and allocates nothing.
struct UpdateRule {
  std::string_view name, doc;
  SlotSpec slots[kMaxSlots] = {};                             // unused ones have no name
  HyperparameterSpec hyperparameters[kMaxHyperparameters] = {};
  Coefficients (*coefficients)(const Hyperparameters& h, double step) = nullptr;   // steps count from 1
  void (*dense)(Tensor& x, Slots& s, const Tensor& g, const Coefficients& c) = nullptr;
  void (*sparse)(Tensor& x, Slots& s, const IndexedSlices& g, const Coefficients& c) = nullptr;
  bool repeated_rows = false;   // sparse takes slices as they are; else each row once, in ascending order, under i64 indices
};

std::span<const UpdateRule> update_rules();

}  // namespace tapedeck
