// To write an optimizer: one entry says its name, slots, hyperparameters, and how a step changes a variable.
// The library's table and a user's own rules use this same header; docs/guide/optimizers.md walks through
// one.
#pragma once
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

#include "tapedeck/indexed_slices.h"

namespace tapedeck {

inline constexpr std::size_t kMaxSlots = 4, kMaxHyperparameters = 8, kMaxScalars = 2, kMaxCoefficients = 12;

/// Values by their place in the rule's list; an option that is on or off is 1 or 0.
using Hyperparameters = std::array<double, kMaxHyperparameters>;
/// Numbers that belong to the optimizer and not to a variable, by their place in the rule's list.
using Scalars = std::array<double, kMaxScalars>;

/// The first of these values as a struct of doubles, whose members name them in the order of the rule's list:
///   struct Momentum { double learning_rate, momentum; };
///   const auto [learning_rate, momentum] = with_names<Momentum>(step.h);
template <class Names, std::size_t n> Names with_names(const std::array<double, n>& values) {
  static_assert(std::is_trivially_copyable_v<Names> && sizeof(Names) % sizeof(double) == 0 &&
                sizeof(Names) <= sizeof values);
  Names names;
  std::memcpy(&names, values.data(), sizeof names);
  return names;
}

struct Step;

/// n elements of a variable that lie side by side, with those of its slots and of its gradient: a step reads
/// and writes these and no others.
template <class T> struct UpdateRow {
  std::int64_t n;
  T* x;
  T* slots[kMaxSlots];   // null: the optimizer does not have it
  const T* g;            // null: zeros, in rows that a sparse gradient leaves out
  const T* c;            // the step's coefficients
  const Step* step;      // these and all else about the step, in f64
};
/// A change of x and slots, made on several threads at once, which throws nothing. Null for a dtype that the
/// rule does not take.
struct RowUpdate {
  void (*f32)(const UpdateRow<float>& row) = nullptr;
  void (*f64)(const UpdateRow<double>& row) = nullptr;
  /// Whether there is one.
  explicit operator bool() const { return f32 || f64; }
};
/// A change of slots that also adds to two sums over the whole variable.
using RowSums = std::array<double, 2>;
struct RowMeasure {
  void (*f32)(const UpdateRow<float>& row, RowSums& sums) = nullptr;
  void (*f64)(const UpdateRow<double>& row, RowSums& sums) = nullptr;
  /// Whether there is one.
  explicit operator bool() const { return f32 || f64; }
};

/// One step, the same for all variables.
struct Step {
  Hyperparameters h;
  std::int64_t count;                            // of this step, from 1 on
  Scalars scalars;                               // as they were before; finish changes them
  std::array<double, kMaxCoefficients> c = {};   // for the rows, in the variable's dtype
  RowUpdate rows, others;                        // the rule's, unless prepare chooses others
};

/// A tensor kept for each variable.
struct SlotSpec {
  std::string_view name;
  /// Before the first step; null: zeros. Of the variable's dtype and shape for rules of rows, of any for
  /// rules of tensors. A variable of f16 or bf16 is here its master, in f32.
  Tensor (*initial)(const Tensor& value, const Hyperparameters& h) = nullptr;
  bool (*exists)(const Hyperparameters& h) = nullptr;   // null: always
};

/// A number kept for the optimizer.
struct ScalarSpec {
  std::string_view name;
  double (*initial)(const Hyperparameters& h) = nullptr;   // null: 0
};

/// Which values a hyperparameter may have.
struct Domain {
  std::string_view text;
  bool (*contains)(double) = nullptr;
};
namespace domains {
inline constexpr Domain finite = {"a finite number", [](double h) { return std::isfinite(h); }};
inline constexpr Domain not_negative = {"a finite number of 0 or more",
                                        [](double h) { return h >= 0 && std::isfinite(h); }};
inline constexpr Domain not_positive = {"a finite number of 0 or less",
                                        [](double h) { return h <= 0 && std::isfinite(h); }};
inline constexpr Domain positive = {"a finite number above 0",
                                    [](double h) { return h > 0 && std::isfinite(h); }};
inline constexpr Domain decay = {"a number from 0 up to but without 1",
                                 [](double h) { return h >= 0 && h < 1; }};
inline constexpr Domain part = {"a number from 0 to 1", [](double h) { return h >= 0 && h <= 1; }};
inline constexpr Domain flag = {"0 or 1", [](double h) { return h == 0 || h == 1; }};
}   // namespace domains

/// How a hyperparameter may change after its optimizer is made.
enum class Change : std::uint8_t { by_schedule, by_hand, never };

/// The initial value of a hyperparameter that must be given: in no domain.
inline constexpr double kRequired = std::numeric_limits<double>::quiet_NaN();

/// A hyperparameter: its name, value if not given, allowed values, and when it may change.
struct HyperparameterSpec {
  std::string_view name;
  double initial = 0;
  Domain domain = {};
  Change change = Change::by_schedule;
};

/// A rule. It changes variables by rows, in place and on several threads, or by tensors: then dense, and
/// sparse if it takes slices, put other tensors in the place of x and slots, by ops, and may throw, since
/// nothing has changed by then.
struct UpdateRule {
  std::string_view name, doc = {};
  SlotSpec slots[kMaxSlots] = {};   // as all lists, as long as there are names
  HyperparameterSpec hyperparameters[kMaxHyperparameters] = {};
  ScalarSpec scalars[kMaxScalars] = {};
  /// For rules of tensors; those of rows take what these take.
  bool (*takes)(DType) = [](DType t) { return is_floating(t); };

  /// Once a step, before anything changes: coefficients, and which rows to run. May throw.
  void (*prepare)(Step& step) = nullptr;

  RowUpdate rows = {};     // dense gradients, and rows that a sparse one has; those that it has several times
                           // are added up before
  RowUpdate others = {};   // rows that it leaves out; null: these stay as they are
  /// For rules that need something about the whole variable, such as norms: measure runs first, on the same
  /// rows as the update, and scale makes coefficients of the sums. They are made in one order on any number
  /// of threads.
  RowMeasure measure = {};
  void (*scale)(Step& step, const RowSums& sums) noexcept = nullptr;

  /// A step by tensors; each row of a sparse gradient is there once.
  void (*dense)(const Step& step, Tensor& x, std::span<Tensor> slots, const Tensor& g) = nullptr;
  void (*sparse)(const Step& step, Tensor& x, std::span<Tensor> slots, const IndexedSlices& g) = nullptr;

  /// Once a step, after all variables have changed: the scalars of the next one.
  void (*finish)(Step& step) noexcept = nullptr;

  /// Whether it has `rows`; else it changes variables by tensors.
  bool by_rows() const { return static_cast<bool>(rows); }
};

}   // namespace tapedeck
