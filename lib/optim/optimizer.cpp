// The optimizer: pairs of gradients and variables come in; all is checked, then all memory is found, then variables change.
#include "tapedeck/optimizer.h"

#include <algorithm>
#include <cstring>

#include "autodiff/variable.h"
#include "base/format.h"
#include "kernels/update.h"
#include "optim/update_rule.h"
#include "tensor/storage.h"

namespace tapedeck {
namespace {

struct VariableSlots {
  std::uint64_t variable;   // its id
  Slots values;
};

// A variable's part of a step, ready to run.
struct Update {
  const Gradient* gradient;
  detail::VariableCell* cell;
  Slots* slots;
  IndexedSlices summed;   // if the rule wants each row once
  Tensor fresh;           // memory for the new value, where others hold the old one
};

void list(std::string& names, std::string_view name) {
  if (!names.empty()) names += ", ";
  names += name;
}

const UpdateRule& find_rule(std::string_view name) {
  std::string names;
  for (const UpdateRule& rule : update_rules()) {
    if (rule.name == name) return rule;
    list(names, rule.name);
  }
  throw_error<ArgumentError>("optimizer: there is no update rule \"{}\"; use one of {}", name, names);
}

std::size_t find_hyperparameter(const UpdateRule& rule, std::string_view name) {
  std::string names;
  for (std::size_t i = 0; i < kMaxHyperparameters; ++i) {
    const HyperparameterSpec& spec = rule.hyperparameters[i];
    if (!spec.domain.contains) break;
    if (spec.name == name) return i;
    list(names, spec.name);
  }
  throw_error<ArgumentError>("{}: there is no hyperparameter \"{}\"; use one of {}", rule.name, name, names);
}

void check_value(const UpdateRule& rule, std::size_t i, double value) {
  const HyperparameterSpec& spec = rule.hyperparameters[i];
  if (!spec.domain.contains(value)) throw_error<ArgumentError>("{}: {} is out of range: {}; use {}", rule.name, spec.name, value, spec.domain.text);
}

template <class E> [[noreturn]] void throw_misfit(const Variable& v, const Spec& gradient) {
  throw_error<E>("apply_gradients: the gradient does not fit variable \"{}\": gradient is {}, variable is {}", v.name(), gradient, Spec{v.dtype(), v.shape()});
}

void check_spec(const Spec& gradient, const Variable& v) {
  if (gradient.dtype != v.dtype()) throw_misfit<DTypeError>(v, gradient);
  if (gradient.shape != v.shape()) throw_misfit<ShapeError>(v, gradient);
}

void check_slices(const IndexedSlices& g, const Variable& v) {
  check_spec({g.values.dtype(), g.dense_shape}, v);
  if (g.indices.dtype() != DType::i32 && g.indices.dtype() != DType::i64)
    throw_error<DTypeError>("apply_gradients: the indices for variable \"{}\" are not i32 or i64: indices is {}", v.name(), g.indices.spec());
  Shape values = v.shape();
  if (g.indices.ndim() == 1 && values.ndim() > 0) values.set(0, g.indices.size());
  if (g.indices.ndim() != 1 || values.ndim() == 0 || g.values.shape() != values)
    throw_error<ShapeError>("apply_gradients: the slices do not fit variable \"{}\": values is {}, indices is {}, variable is {}", v.name(),
                            g.values.spec(), g.indices.spec(), Spec{v.dtype(), v.shape()});
  for (std::int64_t k = 0; k < g.indices.size(); ++k)
    if (const std::int64_t row = kernels::row_at(g.indices, k); row < 0 || row >= v.shape()[0])
      throw_error<ShapeError>("apply_gradients: index {} is out of range for variable \"{}\": variable is {}", row, v.name(), Spec{v.dtype(), v.shape()});
}

void check(const Gradient& g, const Variable& v) {
  if (!is_trainable(v.dtype())) throw_error<DTypeError>("apply_gradients: variable \"{}\" is {}; use f32 or f64", v.name(), Spec{v.dtype(), v.shape()});
  if (const IndexedSlices* slices = g.slices()) return check_slices(*slices, v);
  check_spec(g.tensor().spec(), v);
}

void copy(const Tensor& from, Tensor& to) {
  if (from.size()) std::memcpy(to.raw(), from.raw(), static_cast<std::size_t>(from.nbytes()));
}

// Memory that nobody else sees, under a new id.
void make_own(Tensor& x) {
  if (x.unique()) return renew(x);
  Tensor own = allocate(x.spec());
  copy(x, own);
  x = std::move(own);
}

}  // namespace

struct Optimizer::State {
  const UpdateRule& rule;
  Hyperparameters hyperparameters = {};
  std::int64_t iterations = 0;
  std::vector<VariableSlots> slots = {};   // ascending by variable
  std::vector<Update> step = {};           // kept between steps for its memory

  template <class At> void apply(std::size_t count, At at);
  void add_slots(const detail::VariableCell& cell);
  std::vector<VariableSlots>::iterator place_of(std::uint64_t variable);
  Slots* find_slots(std::uint64_t variable);   // null: there are none
  void prepare(const Gradient& g, detail::VariableCell& cell);
  void run(Update& u, const Coefficients& c);
};

std::vector<VariableSlots>::iterator Optimizer::State::place_of(std::uint64_t variable) {
  return std::lower_bound(slots.begin(), slots.end(), variable, [](const VariableSlots& s, std::uint64_t id) { return s.variable < id; });
}

Slots* Optimizer::State::find_slots(std::uint64_t variable) {
  const auto at = place_of(variable);
  return at != slots.end() && at->variable == variable ? &at->values : nullptr;
}

void Optimizer::State::add_slots(const detail::VariableCell& cell) {
  if (rule.slots[0].name.empty() || find_slots(cell.id)) return;
  VariableSlots added{cell.id, {}};
  for (std::size_t i = 0; i < kMaxSlots && !rule.slots[i].name.empty(); ++i) added.values[i] = full_like(cell.value, rule.slots[i].initial);
  slots.insert(place_of(cell.id), std::move(added));
}

void Optimizer::State::prepare(const Gradient& g, detail::VariableCell& cell) {
  Update& u = step.emplace_back(Update{&g, &cell, find_slots(cell.id), {}, {}});
  if (u.slots) for (Tensor& slot : *u.slots) if (slot.defined()) make_own(slot);
  if (g.slices() && !rule.repeated_rows) u.summed = kernels::summed_rows(*g.slices());
  if (!cell.value.unique()) u.fresh = allocate(cell.value.spec());
}

void Optimizer::State::run(Update& u, const Coefficients& c) {
  Tensor& x = u.cell->value;
  if (u.fresh.defined()) {
    copy(x, u.fresh);
    x = std::move(u.fresh);
  } else {
    renew(x);
  }
  Slots none;
  Slots& s = u.slots ? *u.slots : none;
  if (const IndexedSlices* slices = u.gradient->slices()) rule.sparse(x, s, rule.repeated_rows ? *slices : u.summed, c);
  else rule.dense(x, s, u.gradient->tensor(), c);
}

// at(i) is the i-th pair of references.
template <class At> void Optimizer::State::apply(std::size_t count, At at) {
  if (count == 0) throw ArgumentError("apply_gradients: no variables given");
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) {
    const auto [gradient, variable] = at(i);
    if (!gradient.defined()) continue;
    check(gradient, variable);
    any = true;
  }
  if (!any) {
    std::string names;
    for (std::size_t i = 0; i < count; ++i) list(names, at(i).second.name());
    throw_error<ArgumentError>("apply_gradients: no gradient reaches any variable: {}", names);
  }
  const Coefficients c = rule.coefficients(hyperparameters, static_cast<double>(iterations + 1));

  step.clear();
  // Slots move while some are added, so all are there before one is looked up.
  for (std::size_t i = 0; i < count; ++i) if (at(i).first.defined()) add_slots(at(i).second.cell());
  for (std::size_t i = 0; i < count; ++i) if (at(i).first.defined()) prepare(at(i).first, at(i).second.cell());
  for (Update& u : step) {
    detail::note_access(*u.cell);
    run(u, c);
  }
  step.clear();
  ++iterations;
}

Optimizer::Optimizer(std::string_view name, std::initializer_list<Hyperparameter> hyperparameters) : state_(new State{find_rule(name)}) {
  const UpdateRule& rule = state_->rule;
  for (std::size_t i = 0; i < kMaxHyperparameters; ++i) state_->hyperparameters[i] = rule.hyperparameters[i].initial;
  for (const Hyperparameter& h : hyperparameters) state_->hyperparameters[find_hyperparameter(rule, h.name)] = h.value;
  for (std::size_t i = 0; i < kMaxHyperparameters && rule.hyperparameters[i].domain.contains; ++i) check_value(rule, i, state_->hyperparameters[i]);
}
Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

void Optimizer::apply_gradients(std::span<const GradientAndVariable> pairs) {
  state_->apply(pairs.size(), [pairs](std::size_t i) { return std::pair<const Gradient&, const Variable&>(pairs[i].gradient, pairs[i].variable); });
}

void Optimizer::apply_gradients(std::span<const Gradient> gradients, std::span<const Variable> variables) {
  if (gradients.size() != variables.size())
    throw_error<ArgumentError>("apply_gradients: the lists differ in length: {} gradients, {} variables", gradients.size(), variables.size());
  state_->apply(gradients.size(), [=](std::size_t i) { return std::pair<const Gradient&, const Variable&>(gradients[i], variables[i]); });
}

std::int64_t Optimizer::iterations() const { return state_->iterations; }

Tensor Optimizer::slot(const Variable& v, std::string_view name) const {
  const Slots* slots = state_->find_slots(v.id());
  for (std::size_t i = 0; slots && i < kMaxSlots; ++i)
    if (state_->rule.slots[i].name == name) return (*slots)[i];
  return {};
}

std::vector<std::string> Optimizer::slot_names() const {
  std::vector<std::string> names;
  for (const SlotSpec& slot : state_->rule.slots) if (!slot.name.empty()) names.emplace_back(slot.name);
  std::sort(names.begin(), names.end());
  return names;
}

double Optimizer::hyperparameter(std::string_view name) const { return state_->hyperparameters[find_hyperparameter(state_->rule, name)]; }

void Optimizer::set_hyperparameter(std::string_view name, double value) {
  const std::size_t i = find_hyperparameter(state_->rule, name);
  check_value(state_->rule, i, value);
  state_->hyperparameters[i] = value;
}

GradientDescent::GradientDescent(GradientDescentOptions o) : Optimizer("gradient_descent", {{"learning_rate", o.learning_rate}}) {}

Adam::Adam(AdamOptions o) : Optimizer("adam", {{"learning_rate", o.learning_rate}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"epsilon", o.epsilon}}) {}

}  // namespace tapedeck
