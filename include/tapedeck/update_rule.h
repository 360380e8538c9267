// Definition of optimizers: one entry lists the name, slots and hyperparameters of an update rule, and how a
// step changes a variable. The library's own rules and user-defined rules both use this header;
// docs/guide/optimizers.md explains an example.
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

/// Values of hyperparameters, in the order of the rule's list; an option that is on or off is 1 or 0.
using Hyperparameters = std::array<double, kMaxHyperparameters>;
/// Numbers that belong to the optimizer and not to a variable, in the order of the rule's list.
using Scalars = std::array<double, kMaxScalars>;

/// Copies the first values to a struct of doubles, whose members name them in the order of the rule's list:
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

/// n adjacent elements of a variable, with the corresponding elements of its slots and its gradient. A call
/// for this row must not access other elements.
template <class T> struct UpdateRow {
  std::int64_t n;
  T* x;
  T* slots[kMaxSlots];   // null: a slot that the optimizer does not have
  const T* g;            // null: zeros, in rows that a sparse gradient omits
  const T* c;            // the step's coefficients
  const Step* step;      // the whole step, with the coefficients in f64
};
/// Updates x and slots. Called on several threads at once; must not throw. Null for a dtype that the rule
/// does not accept.
struct RowUpdate {
  void (*f32)(const UpdateRow<float>& row) = nullptr;
  void (*f64)(const UpdateRow<double>& row) = nullptr;
  /// Whether there is a function for at least one dtype.
  explicit operator bool() const { return f32 || f64; }
};
/// Two sums over the whole variable, to which a RowMeasure adds while it updates slots.
using RowSums = std::array<double, 2>;
struct RowMeasure {
  void (*f32)(const UpdateRow<float>& row, RowSums& sums) = nullptr;
  void (*f64)(const UpdateRow<double>& row, RowSums& sums) = nullptr;
  /// Whether there is a function for at least one dtype.
  explicit operator bool() const { return f32 || f64; }
};

/// Data of one step that all variables share.
struct Step {
  Hyperparameters h;
  std::int64_t count;                            // number of this step, counting from 1
  Scalars scalars;                               // values before the step; finish changes them
  std::array<double, kMaxCoefficients> c = {};   // coefficients; rows see them in the variable's dtype
  RowUpdate rows, others;                        // the functions of the rule, unless prepare sets others
};

/// A tensor that the optimizer stores for each variable.
struct SlotSpec {
  std::string_view name;
  /// Returns the value before the first step; null: zeros. Must have the variable's dtype and shape for rules
  /// that update rows; any for rules that update tensors. For a variable of f16 or bf16, `value` is its
  /// master copy in f32.
  Tensor (*initial)(const Tensor& value, const Hyperparameters& h) = nullptr;
  bool (*exists)(const Hyperparameters& h) = nullptr;   // null: always
};

/// A number that the optimizer stores once.
struct ScalarSpec {
  std::string_view name;
  double (*initial)(const Hyperparameters& h) = nullptr;   // null: 0
};

/// The permitted values of a hyperparameter, and their description in messages.
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

/// How a hyperparameter may change after the optimizer is constructed.
enum class Change : std::uint8_t { by_schedule, by_hand, never };

/// The initial value of a hyperparameter that must be given; it is outside every domain.
inline constexpr double kRequired = std::numeric_limits<double>::quiet_NaN();

/// A hyperparameter: its name, default, permitted values, and how it may change.
struct HyperparameterSpec {
  std::string_view name;
  double initial = 0;
  Domain domain = {};
  Change change = Change::by_schedule;
};

/// An update rule. It changes variables by rows, in place and on several threads, or by tensors. If by
/// tensors, `dense`, and `sparse` for slices if the rule accepts them, replace x and slots by the results of
/// ops; they may throw, since nothing has changed by then.
struct UpdateRule {
  std::string_view name, doc = {};
  SlotSpec slots[kMaxSlots] = {};   // like every list, ends at the first entry without a name
  HyperparameterSpec hyperparameters[kMaxHyperparameters] = {};
  ScalarSpec scalars[kMaxScalars] = {};
  /// Whether a rule by tensors accepts a dtype. A rule by rows accepts the dtypes of its row functions, and
  /// f16 and bf16 if it accepts f32.
  bool (*takes)(DType) = [](DType t) { return is_floating(t); };

  /// Called once per step, before anything changes: sets the coefficients, and may choose other row
  /// functions. May throw.
  void (*prepare)(Step& step) = nullptr;

  RowUpdate rows = {};     // for dense gradients and the rows of sparse ones, where repeated rows have been
                           // added up
  RowUpdate others = {};   // for rows that a sparse gradient omits; null: they are unchanged
  /// For rules that need something about the whole variable, such as norms: `measure` runs first, on the same
  /// rows as the update, and `scale` computes coefficients from the sums. The order of the additions does not
  /// depend on the number of threads.
  RowMeasure measure = {};
  void (*scale)(Step& step, const RowSums& sums) noexcept = nullptr;

  /// A step by tensors; a sparse gradient contains each row at most once.
  void (*dense)(const Step& step, Tensor& x, std::span<Tensor> slots, const Tensor& g) = nullptr;
  void (*sparse)(const Step& step, Tensor& x, std::span<Tensor> slots, const IndexedSlices& g) = nullptr;

  /// Called once per step, after all variables have changed: computes the scalars of the next step.
  void (*finish)(Step& step) noexcept = nullptr;

  /// Whether the rule has `rows`; otherwise it changes variables by tensors.
  bool by_rows() const { return static_cast<bool>(rows); }
};

}   // namespace tapedeck
