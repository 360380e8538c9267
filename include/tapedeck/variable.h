// Variable: a named, mutable cell that holds a Tensor, such as a weight updated by training.
#pragma once
#include <memory>
#include <string>

#include "tapedeck/operand.h"

namespace tapedeck {

namespace detail {
struct VariableCell;
}

/// Maps a value to a permitted one, for example by clipping it at zero. Returns a tensor of the same dtype
/// and shape.
using Constraint = std::function<Tensor(const Tensor&)>;

/// Options of a Variable.
struct VariableOptions {
  std::string name = {};        // "" becomes "variable"
  bool trainable = true;        // trainable variables are watched by tapes when they are read
  Constraint constraint = {};   // optimizers apply it to new values; assignments do not
};

/// A handle: copies share the cell, and w = v makes w a handle of v's cell, whereas w.assign(x) and w += y
/// change the value that all handles see, including const handles. Reading returns the current value as a
/// Tensor, which later updates do not change. Several threads may read one variable concurrently; the caller
/// must order updates against reads and other updates.
class TAPEDECK_EXPORT Variable {
 public:
  /// Throws ArgumentError for an undefined value. Variables of integers or bools are never trainable.
  explicit Variable(const Tensor& initial, VariableOptions options = {});
  template <class Number>
  requires std::is_arithmetic_v<Number>
  explicit Variable(Number, const VariableOptions& = {}) {
    static_assert(sizeof(Number) == 0, "a Variable is constructed from a tensor: Variable(tensor(1.0))");
  }

  /// The properties set at construction. Names need not be unique.
  const std::string& name() const;
  bool trainable() const;
  const Constraint& constraint() const;
  DType dtype() const;
  const Shape& shape() const;
  /// Position in the order of creation in the process.
  std::uint64_t id() const;

  /// The current value. Every read returns a new tensor that shares the memory. The tapes and accumulators
  /// that record at the time of the read track that tensor.
  Tensor value() const;
  operator Tensor() const { return value(); }
  /// Parts of the current value, as for a Tensor.
  Tensor operator[](const Slice& at) const;
  Tensor operator[](std::initializer_list<Slice> at) const;
  Tensor operator[](const Tensor& at) const;

  /// Replace the value, add to it, or subtract from it. Throw DTypeError or ShapeError, without changing the
  /// variable, unless `value` has the variable's dtype and shape. Updates are not differentiated. The update
  /// is in place if no other tensor shares the memory.
  void assign(const Tensor& value) const;
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  void assign(Number) const = delete;   // a tensor of its dtype and shape: w.assign(full_like(w, 1.0))
  void assign_add(const Tensor& value) const;
  void assign_sub(const Tensor& value) const;
  /// Assigns f(value()), without recording f on tapes. Throws as assign does.
  void update(const std::function<Tensor(const Tensor&)>& f) const;
  /// w += y assigns w + y; the others are analogous. y may also be a number or broadcast to w. Otherwise like
  /// assign_add.
  const Variable& operator+=(Operand y) const;
  const Variable& operator-=(Operand y) const;
  const Variable& operator*=(Operand y) const;
  const Variable& operator/=(Operand y) const;
  template <class Value, class = std::enable_if_t<!std::derived_from<Value, Variable>>>
  void operator=(const Value&) const = delete;   // w.assign(x) changes the value

  friend bool operator==(const Variable& a, const Variable& b) { return a.cell_ == b.cell_; }

  // Internal.
  explicit Variable(std::shared_ptr<detail::VariableCell> cell) noexcept : cell_(std::move(cell)) {}
  detail::VariableCell& cell() const { return *cell_; }

 private:
  std::shared_ptr<detail::VariableCell> cell_;
};

class VariableNotes;

/// Collects the trainable variables that are read or updated on this thread while it exists. Watchers nest:
/// an outer watcher also collects the variables of an inner one.
class TAPEDECK_EXPORT VariableWatcher {
 public:
  [[nodiscard]] VariableWatcher();
  ~VariableWatcher();
  VariableWatcher(const VariableWatcher&) = delete;
  VariableWatcher& operator=(const VariableWatcher&) = delete;

  /// Each variable once, in order of creation.
  std::vector<Variable> watched_variables() const;

 private:
  std::unique_ptr<VariableNotes> notes_;
};

}   // namespace tapedeck
