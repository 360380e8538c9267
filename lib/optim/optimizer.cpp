// The public face of optimizers: names of rules, hyperparameters and slots, and pairs of gradients and variables on their
// way to a step.
#include "tapedeck/optimizer.h"

#include <algorithm>

#include "base/format.h"
#include "optim/step.h"

namespace tapedeck {
namespace {

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

// pair(i) is the i-th pair of references. Pairs without a gradient are left out.
template <class Pair> std::vector<Update> updates_of(std::vector<Update> updates, std::size_t count, const Pair& pair) {
  if (count == 0) throw ArgumentError("apply_gradients: no variables given");
  updates.clear();
  for (std::size_t i = 0; i < count; ++i)
    if (const auto [gradient, variable] = pair(i); gradient.defined()) updates.push_back({&gradient, &variable});
  if (updates.empty()) {
    std::string names;
    for (std::size_t i = 0; i < count; ++i) list(names, pair(i).second.name());
    throw_error<ArgumentError>("apply_gradients: no gradient reaches any variable: {}", names);
  }
  return updates;
}

}  // namespace

Optimizer::Optimizer(std::string_view name, std::span<const Hyperparameter> hyperparameters) : state_(new State{find_rule(name)}) {
  const UpdateRule& rule = state_->rule;
  for (std::size_t i = 0; i < kMaxHyperparameters; ++i) state_->hyperparameters[i] = rule.hyperparameters[i].initial;
  for (const Hyperparameter& h : hyperparameters) state_->hyperparameters[find_hyperparameter(rule, h.name)] = h.value;
  for (std::size_t i = 0; i < kMaxHyperparameters && rule.hyperparameters[i].domain.contains; ++i) check_value(rule, i, state_->hyperparameters[i]);
}
Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

void Optimizer::apply_gradients(std::span<const GradientAndVariable> pairs, const std::optional<Variable>& global_step) {
  std::vector<Update> updates = updates_of(std::exchange(state_->updates, {}), pairs.size(), [pairs](std::size_t i) {
    return std::pair<const Gradient&, const Variable&>(pairs[i].gradient, pairs[i].variable);
  });
  state_->step(updates, global_step);
  updates.clear();
  state_->updates = std::move(updates);
}

void Optimizer::apply_gradients(std::span<const Gradient> gradients, std::span<const Variable> variables, const std::optional<Variable>& global_step) {
  if (gradients.size() != variables.size())
    throw_error<ArgumentError>("apply_gradients: the lists differ in length: {} gradients, {} variables", gradients.size(), variables.size());
  std::vector<Update> updates = updates_of(std::exchange(state_->updates, {}), gradients.size(), [=](std::size_t i) {
    return std::pair<const Gradient&, const Variable&>(gradients[i], variables[i]);
  });
  state_->step(updates, global_step);
  updates.clear();
  state_->updates = std::move(updates);
}

std::vector<std::string_view> Optimizer::rules() {
  std::vector<std::string_view> names;
  for (const UpdateRule& rule : update_rules()) names.push_back(rule.name);
  return names;
}

std::int64_t Optimizer::iterations() const { return state_->iterations; }

Tensor Optimizer::slot(const Variable& v, std::string_view name) const {
  const Slots* slots = state_->slots.find(v.id());
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

Momentum::Momentum(MomentumOptions o)
    : Optimizer("momentum", {{"learning_rate", o.learning_rate}, {"momentum", o.momentum}, {"use_nesterov", double(o.use_nesterov)}}) {}

Adam::Adam(AdamOptions o)
    : Optimizer("adam", {{"learning_rate", o.learning_rate}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"epsilon", o.epsilon}, {"lazy", double(o.lazy)}}) {}

}  // namespace tapedeck
