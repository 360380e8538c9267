// The public functions of optimizers: rules and hyperparameters by name, and the path of gradients and
// variables to a step.
#include "tapedeck/optimizer.h"

#include <algorithm>

#include "core/format.h"
#include "op/recorder.h"
#include "optim/communicator.h"
#include "optim/recorded.h"
#include "optim/step.h"

namespace tapedeck {
namespace {

void check_rule(const UpdateRule& rule) {
  if (rule.name.empty()) throw ArgumentError("optimizer: the rule has no name");
  const bool by_tensors = rule.dense || rule.sparse;
  if (rule.by_rows() == by_tensors)
    throw_error<ArgumentError>("{}: the rule changes variables {}; use exactly one of these ways", rule.name,
                               by_tensors ? "by rows and by tensors" : "neither by rows nor by tensors");
  if (static_cast<bool>(rule.measure) != (rule.scale != nullptr))
    throw_error<ArgumentError>("{}: the rule has only one of measure and scale; use both or neither",
                               rule.name);
  if (rule.measure && ((rule.rows.f32 && !rule.measure.f32) || (rule.rows.f64 && !rule.measure.f64)))
    throw_error<ArgumentError>("{}: the rule's measure does not take all dtypes that its rows take",
                               rule.name);
  for (const HyperparameterSpec& spec : named(rule.hyperparameters))
    if (!spec.domain.contains)
      throw_error<ArgumentError>("{}: hyperparameter {} has no domain", rule.name, spec.name);
}

std::size_t find_hyperparameter(const UpdateRule& rule, std::string_view name) {
  const std::span<const HyperparameterSpec> specs = named(rule.hyperparameters);
  const std::size_t i = index_of(specs, name);
  if (i == specs.size())
    throw_error<ArgumentError>("{}: there is no hyperparameter \"{}\"; use one of {}", rule.name, name,
                               listed(specs));
  return i;
}

double checked(const UpdateRule& rule, std::size_t i, double value) {
  const HyperparameterSpec& spec = rule.hyperparameters[i];
  if (std::isnan(value))
    throw_error<ArgumentError>("{}: {} is missing, or not a number; use {}", rule.name, spec.name,
                               spec.domain.text);
  if (!spec.domain.contains(value))
    throw_error<ArgumentError>("{}: {} is out of range: {}; use {}", rule.name, spec.name, value,
                               spec.domain.text);
  return value;
}

void check_schedule(const UpdateRule& rule, std::size_t i, const Scheduled& value) {
  const HyperparameterSpec& spec = rule.hyperparameters[i];
  if (value.varies() && spec.change != Change::by_schedule)
    throw_error<ArgumentError>("{}: {} takes no schedule; use {}", rule.name, spec.name, spec.domain.text);
}

void check_count(std::size_t count) {
  if (count == 0) throw ArgumentError("apply_gradients: no variables given");
}

// pair(i) is the i-th pair of references. Pairs without a gradient are left out.
template <class Pair>
std::vector<Update> updates_of(std::vector<Update> updates, std::size_t count, const Pair& pair) {
  check_count(count);
  updates.clear();
  for (std::size_t i = 0; i < count; ++i)
    if (const auto [gradient, variable] = pair(i); gradient.defined())
      updates.push_back({&gradient, &variable});
  if (updates.empty()) {
    std::string names;
    for (std::size_t i = 0; i < count; ++i)
      names.append(names.empty() ? "" : ", ").append(detail::described(pair(i).second.cell()));
    throw_error<ArgumentError>(
        "apply_gradients: no gradient reaches {}; compute the loss from their values by ops, while the tape "
        "records",
        names);
  }
  return updates;
}

auto in_pairs(std::span<const GradientAndVariable> pairs) {
  return [pairs](std::size_t i) {
    return std::pair<const Gradient&, const Variable&>(pairs[i].gradient, pairs[i].variable);
  };
}

std::vector<GradientAndVariable> transformed(std::span<const Update> updates,
                                             const std::deque<GradientTransform>& transforms,
                                             std::int64_t step) {
  std::vector<GradientAndVariable> pairs;
  for (const Update& u : updates)
    pairs.push_back({*u.gradient, *u.variable});
  const RecordingScope unrecorded(nullptr);
  for (std::size_t i = 0, n = transforms.size(); i < n; ++i)
    transforms[i](pairs, step);
  return pairs;
}

std::vector<Hyperparameter> hyperparameters_of(const RuleEntry& entry, const void* options) {
  std::vector<Hyperparameter> all;
  for (std::size_t i = 0; const HyperparameterSpec& spec : named(entry.rule.hyperparameters))
    all.push_back({spec.name, entry.get[i++](options)});
  return all;
}

}   // namespace

Optimizer::State::State(const UpdateRule& r, std::span<const Hyperparameter> given) : rule(r) {
  check_rule(rule);
  const std::span<const HyperparameterSpec> specs = named(rule.hyperparameters);
  for (const HyperparameterSpec& spec : specs)
    hyperparameters.emplace_back(spec.initial);
  for (const Hyperparameter& h : given) {
    const std::size_t i = find_hyperparameter(rule, h.name);
    check_schedule(rule, i, h.value);
    hyperparameters[i] = h.value;
  }
  Hyperparameters h = {};
  for (std::size_t i = 0; i < specs.size(); ++i)
    h[i] = checked(rule, i, hyperparameters[i].at(0));
  present = present_slots(rule, h);
  const std::span<const ScalarSpec> numbers = named(rule.scalars);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i].initial) scalars[i] = numbers[i].initial(h);
}

Hyperparameters Optimizer::State::values() const {
  Hyperparameters h = {};
  for (std::size_t i = 0; i < hyperparameters.size(); ++i) {
    if (!hyperparameters[i].varies()) {
      h[i] = hyperparameters[i].at(iterations);
      continue;
    }
    const Scheduled schedule = hyperparameters[i];   // which may set the hyperparameter
    h[i] = checked(rule, i, schedule.at(iterations));
  }
  return h;
}

Optimizer::Optimizer(std::string_view rule, std::span<const Hyperparameter> hyperparameters)
    : Optimizer(find_rule(rule), hyperparameters) {}
Optimizer::Optimizer(const UpdateRule& rule, std::span<const Hyperparameter> hyperparameters)
    : state_(new State(rule, hyperparameters)) {}
Optimizer::Optimizer(std::string_view rule, std::initializer_list<Hyperparameter> hyperparameters)
    : Optimizer(rule, std::span(hyperparameters)) {}
Optimizer::Optimizer(const UpdateRule& rule, std::initializer_list<Hyperparameter> hyperparameters)
    : Optimizer(rule, std::span(hyperparameters)) {}
Optimizer::Optimizer(const std::type_info& type, const void* options)
    : Optimizer(find_entry(type, options), options) {}
Optimizer::Optimizer(const RuleEntry& entry, const void* options)
    : Optimizer(entry.rule, hyperparameters_of(entry, options)) {}
Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

void Optimizer::apply_gradients(std::span<const GradientAndVariable> pairs,
                                const std::optional<Variable>& global_step) {
  if (thread_state.communicator) [[unlikely]]
    return state_->apply_together(pairs, global_step);
  if (thread_state.trace) [[unlikely]]
    return act(
        {name(), lifetime_.watch()}, pairs,
        [this] { return !state_->rule.by_rows() || !state_->transforms.empty(); },
        [this, global_step](std::span<const GradientAndVariable> now) {
          state_->apply(updates_of(std::exchange(state_->updates, {}), now.size(), in_pairs(now)),
                        global_step);
        });
  state_->apply(updates_of(std::exchange(state_->updates, {}), pairs.size(), in_pairs(pairs)), global_step);
}

void Optimizer::apply_gradients(std::initializer_list<GradientAndVariable> pairs,
                                const std::optional<Variable>& global_step) {
  apply_gradients(std::span(pairs), global_step);
}
void Optimizer::apply_gradients(std::span<const Gradient> gradients, std::span<const Variable> variables,
                                const std::optional<Variable>& global_step) {
  if (gradients.size() != variables.size())
    throw_error<ArgumentError>("apply_gradients: the lists differ in length: {} gradients, {} variables",
                               gradients.size(), variables.size());
  if (thread_state.communicator || thread_state.trace) [[unlikely]] {
    std::vector<GradientAndVariable> pairs;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      pairs.push_back({gradients[i], variables[i]});
    return apply_gradients(pairs, global_step);
  }
  const auto pair = [=](std::size_t i) {
    return std::pair<const Gradient&, const Variable&>(gradients[i], variables[i]);
  };
  state_->apply(updates_of(std::exchange(state_->updates, {}), gradients.size(), pair), global_step);
}

void Optimizer::State::apply(std::vector<Update> all, const std::optional<Variable>& global_step) {
  std::vector<GradientAndVariable> pairs;   // the updates refer to these if there are transformations
  if (!transforms.empty()) {
    for (const Update& u : all)
      check(rule, *u.gradient, *u.variable);
    pairs = transformed(all, transforms, iterations);
    all = updates_of(std::move(all), pairs.size(), in_pairs(pairs));
  }
  step(all, global_step);
  all.clear();
  updates = std::move(all);
}

void Optimizer::State::apply_together(std::span<const GradientAndVariable> pairs,
                                      const std::optional<Variable>& global_step) {
  check_count(pairs.size());
  thread_state.communicator->step({this, pairs, global_step,
                                   [&](const GradientAndVariable& p, std::string_view caller) {
                                     check(rule, p.gradient, p.variable, caller);
                                   },
                                   [&](std::span<const GradientAndVariable> sums) {
                                     apply(updates_of({}, sums.size(), in_pairs(sums)), global_step);
                                   }});
}

void Optimizer::add_transform(GradientTransform transform) {
  if (!transform) throw ArgumentError("add_transform: the transformation is an empty function");
  state_->transforms.push_back(std::move(transform));
}

std::vector<std::string_view> Optimizer::rules() {
  std::vector<std::string_view> names;
  for (const RuleEntry& entry : rule_entries())
    names.push_back(entry.rule.name);
  return names;
}

std::string_view Optimizer::doc(std::string_view rule) { return find_rule(rule).doc; }

std::string_view Optimizer::name() const { return state_->rule.name; }

std::int64_t Optimizer::iterations() const {
  refuse_in_recording(name(), "the number of steps");
  return state_->iterations;
}

double Optimizer::hyperparameter(std::string_view name) const {
  refuse_in_recording(state_->rule.name, "a hyperparameter");
  return state_->hyperparameters[find_hyperparameter(state_->rule, name)].at(state_->iterations);
}

void Optimizer::set_hyperparameter(std::string_view name, Scheduled value) {
  refuse_in_recording(state_->rule.name, "a change of a hyperparameter");
  const UpdateRule& rule = state_->rule;
  const std::size_t i = find_hyperparameter(rule, name);
  if (rule.hyperparameters[i].change == Change::never)
    throw_error<ArgumentError>("{}: {} is fixed when the optimizer is created", rule.name, name);
  check_schedule(rule, i, value);
  if (!value.varies()) checked(rule, i, value.at(0));
  state_->hyperparameters[i] = std::move(value);
}

}   // namespace tapedeck
