// Variables. A read is reported to the thread's recorders; an update never changes tensors that they have
// saved.
#include "tape/variable.h"

#include <algorithm>
#include <atomic>

#include "core/format.h"
#include "core/storage.h"
#include "core/trace.h"
#include "op/observer.h"
#include "op/primitives.h"
#include "op/recorder.h"

namespace tapedeck {

class VariableNotes {
 public:
  VariableNotes() : outer_(std::exchange(thread_state.notes, this)) {}
  ~VariableNotes() {
    VariableNotes** at = &thread_state.notes;
    while (*at && *at != this)
      at = &(*at)->outer_;
    if (*at) *at = outer_;
  }
  VariableNotes(const VariableNotes&) = delete;

  void note(const Variable& v) {
    for (VariableNotes* n = this; n; n = n->outer_)
      if (std::find(n->seen_.begin(), n->seen_.end(), v) == n->seen_.end()) n->seen_.push_back(v);
  }
  const std::vector<Variable>& seen() const { return seen_; }

 private:
  VariableNotes* outer_;
  std::vector<Variable> seen_;
};

namespace {

std::atomic<std::uint64_t> variables{0};

// Replaces the value by op(value, by). If check_value throws, the old value is intact: an op reuses the
// memory of an operand only if the spec stays the same.
const Variable& combine(const Variable& v, std::string_view what, const Operand& by,
                        Tensor (*op)(Operand, Operand)) {
  detail::VariableCell& cell = v.cell();
  detail::check_not_shared(cell, what);
  detail::note_access(cell);
  if (thread_state.trace) thread_state.trace->on_read(cell, cell.value);
  const RecordingScope unrecorded(nullptr);
  Tensor value = detail::updated(cell.value, by, op);
  detail::check_value(cell, what, value);
  std::swap(cell.value, value);
  if (thread_state.trace) thread_state.trace->on_assign(cell, value);
  return v;
}

void replace(detail::VariableCell& cell, std::string_view what, const Tensor& value) {
  detail::check_value(cell, what, value);
  detail::check_not_shared(cell, what);
  detail::note_access(cell);
  const Tensor before = std::exchange(cell.value, share(value));
  if (thread_state.trace) thread_state.trace->on_assign(cell, before);
}

}   // namespace

std::string detail::label(std::string_view name, std::uint64_t id) {
  return name == kUnnamed ? fmt::format("variable #{}", id) : fmt::format("variable \"{}\"", name);
}
std::string detail::label(const VariableCell& cell) { return label(cell.name, cell.id); }
std::string detail::described(const VariableCell& cell) {
  return cell.name == kUnnamed ? fmt::format("{} {}", label(cell), cell.value.spec()) : label(cell);
}

void detail::check_value(const VariableCell& cell, std::string_view what, const Tensor& value) {
  if (!value.defined())
    throw_error<ArgumentError>("{}: the value for {} is undefined", what, detail::described(cell));
  if (value.dtype() != cell.value.dtype())
    throw_error<DTypeError>("{}: {} is {}, the value is {}; use astype", what, detail::label(cell),
                            cell.value.spec(), value.spec());
  if (value.shape() != cell.value.shape())
    throw_error<ShapeError>("{}: {} is {}, the value is {}", what, detail::label(cell), cell.value.spec(),
                            value.spec());
}

void detail::check_not_shared(const VariableCell& cell, std::string_view what) {
  if (thread_state.replica != 0 && cell.replica != thread_state.replica) [[unlikely]]
    throw_error<GradientError>(
        "{}: {} is shared by replicas, and this is the thread of one of them; change it in a step, or, where "
        "no other replica uses it, in the function with SkipAggregation",
        what, detail::described(cell));
}

void detail::check_distinct(std::span<const Variable> variables, std::string_view caller) {
  std::vector<const VariableCell*> cells;
  for (const Variable& v : variables)
    cells.push_back(&v.cell());
  std::sort(cells.begin(), cells.end());
  if (const auto twice = std::adjacent_find(cells.begin(), cells.end()); twice != cells.end())
    throw_error<ArgumentError>("{}: {} is listed twice; a step would change it twice", caller,
                               described(**twice));
}

void detail::note_access(VariableCell& cell) {
  if (thread_state.notes && cell.trainable) [[unlikely]]
    thread_state.notes->note(Variable(cell.shared_from_this()));
}

Variable::Variable(const Tensor& initial, VariableOptions options)
    : cell_(std::make_shared<detail::VariableCell>()) {
  if (!initial.defined()) throw ArgumentError("variable: the initial value is undefined");
  cell_->name = options.name.empty() ? std::string(detail::kUnnamed) : std::move(options.name);
  cell_->trainable = options.trainable && is_trainable(initial.dtype());
  cell_->id = variables.fetch_add(1, std::memory_order_relaxed);
  cell_->replica = thread_state.replica;
  cell_->value = share(initial);
  cell_->handle = shape_only(initial.spec());
  cell_->handle.handle()->saved = false;
  cell_->constraint = std::move(options.constraint);
  if (thread_state.trace) thread_state.trace->on_variable(*cell_);
}

const std::string& Variable::name() const { return cell_->name; }
bool Variable::trainable() const { return cell_->trainable; }
const Constraint& Variable::constraint() const { return cell_->constraint; }
DType Variable::dtype() const { return cell_->value.dtype(); }
const Shape& Variable::shape() const { return cell_->value.shape(); }
std::uint64_t Variable::id() const { return cell_->id; }

Tensor Variable::value() const {
  detail::note_access(*cell_);
  Tensor read = share(cell_->value);
  for (Recorder* r = thread_state.innermost; r; r = r->outer())
    r->read(*cell_, read);
  if (thread_state.observer) [[unlikely]] {   // a trace always has an observer
    observe_read(*cell_, read);
    if (thread_state.trace) thread_state.trace->on_read(*cell_, read);
  }
  return read;
}

void Variable::assign(const Tensor& value) const { replace(*cell_, "assign", value); }
void Variable::update(const std::function<Tensor(const Tensor&)>& f) const {
  if (!f) throw_error<ArgumentError>("update: the function for {} is empty", detail::label(*cell_));
  const RecordingScope unrecorded(nullptr);
  replace(*cell_, "update", f(value()));
}
void Variable::assign_add(const Tensor& value) const {
  detail::check_value(*cell_, "assign_add", value);
  combine(*this, "assign_add", value, add);
}
void Variable::assign_sub(const Tensor& value) const {
  detail::check_value(*cell_, "assign_sub", value);
  combine(*this, "assign_sub", value, sub);
}
const Variable& Variable::operator+=(Operand y) const { return combine(*this, "+=", y, add); }
const Variable& Variable::operator-=(Operand y) const { return combine(*this, "-=", y, sub); }
const Variable& Variable::operator*=(Operand y) const { return combine(*this, "*=", y, mul); }
const Variable& Variable::operator/=(Operand y) const { return combine(*this, "/=", y, div); }

VariableWatcher::VariableWatcher() : notes_(std::make_unique<VariableNotes>()) {}
VariableWatcher::~VariableWatcher() = default;

std::vector<Variable> VariableWatcher::watched_variables() const {
  std::vector<Variable> sorted = notes_->seen();
  std::sort(sorted.begin(), sorted.end(),
            [](const Variable& a, const Variable& b) { return a.id() < b.id(); });
  return sorted;
}

// If nothing records, the value is read in place: no handle of it outlives the op, so no new tensor is
// needed.
Operand::Operand(const Variable& v, Tensor&& read) {
  const Tensor* value = &read;
  if (thread_state.innermost || thread_state.observer) {
    read = v.value();
  } else {
    detail::note_access(v.cell());
    value = &v.cell().value;
  }
  bits_ = reinterpret_cast<std::uintptr_t>(value);
}

}   // namespace tapedeck
