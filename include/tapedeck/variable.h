// Variable: a named, mutable cell that holds a Tensor, such as a weight that training changes.
#pragma once
#include <memory>
#include <string>

#include "tapedeck/operand.h"

namespace tapedeck {

namespace detail {
struct VariableCell;
}

/// From a value to one that is allowed, such as its part of 0 and more. It gives the value's dtype and shape.
using Constraint = std::function<Tensor(const Tensor&)>;

struct VariableOptions {
  std::string name = {};        // "" becomes "variable"
  bool trainable = true;        // trainable variables are watched by tapes when they are read
  Constraint constraint = {};   // optimizers put their new values through it; assignments do not
};

/// A handle: copies share the cell. Reading it gives its present value, which later updates never change.
/// Threads may read one variable at once; an update must be ordered by the caller against reads and other
/// updates.
class TAPEDECK_EXPORT Variable {
 public:
  explicit Variable(Tensor initial, VariableOptions options = {});

  const std::string& name() const;
  bool trainable() const;
  const Constraint& constraint() const;
  DType dtype() const;
  const Shape& shape() const;
  /// Order of creation in the process.
  std::uint64_t id() const;

  /// The present value. Every read gives a tensor of its own, which shares the memory: the tapes and
  /// accumulators that record at the moment of the read follow this tensor, and no other read.
  Tensor value() const;
  operator Tensor() const { return value(); }

  /// Replace, add, subtract. value has the variable's dtype and shape, else DTypeError or ShapeError and no
  /// change. Not differentiated. The update is made in place where nobody else holds the memory.
  void assign(const Tensor& value) const;
  void assign_add(const Tensor& value) const;
  void assign_sub(const Tensor& value) const;

  friend bool operator==(const Variable& a, const Variable& b) { return a.cell_ == b.cell_; }

  // For the library.
  explicit Variable(std::shared_ptr<detail::VariableCell> cell) noexcept : cell_(std::move(cell)) {}
  detail::VariableCell& cell() const { return *cell_; }

 private:
  std::shared_ptr<detail::VariableCell> cell_;
};

class VariableNotes;

/// Notes the trainable variables that are read or updated on this thread while it lives. Watchers nest: an
/// outer one notes what an inner one does.
class TAPEDECK_EXPORT VariableWatcher {
 public:
  [[nodiscard]] VariableWatcher();
  ~VariableWatcher();
  VariableWatcher(const VariableWatcher&) = delete;
  VariableWatcher& operator=(const VariableWatcher&) = delete;

  /// Each once, in order of creation.
  std::vector<Variable> watched_variables() const;

 private:
  std::unique_ptr<VariableNotes> notes_;
};

}   // namespace tapedeck
