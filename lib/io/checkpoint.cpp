// Checkpoints: saves named variables, tensors and optimizer state to a safetensors file, and restores them.
// Restoring is all or nothing.
#include "tapedeck/checkpoint.h"

#include <bit>
#include <utility>

#include "core/format.h"
#include "io/tensor_file.h"
#include "tape/variable.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {
namespace {

struct Value {
  std::function<Tensor()> read;
  std::function<void(const Tensor&)> write;
  std::optional<Variable> variable = {};
};

// What restoring expects under a name. Entries that are not required may be missing in the file.
struct Expected {
  std::optional<Spec> spec;
  bool is_required;
  std::string described = {};   // for messages, if the name alone is unclear
};

// A value restored before its variable exists.
struct PendingValue {
  Tensor tensor;
  std::string path;
};

template <class T> using ByName = std::map<std::string, T, std::less<>>;

// Names of an optimizer's scalars and slots are prefixed by its own.
std::string number_name(const std::string& optimizer, std::string_view number) {
  return fmt::format("{}/{}", optimizer, number);
}
std::string slot_name(const std::string& optimizer, std::string_view variable, std::string_view slot) {
  return fmt::format("{}/{}/{}", optimizer, variable, slot);
}

std::string listed(std::string_view what, const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMost; ++i)
    text += fmt::format("{}{}", i ? ", " : fmt::format("; {}: ", what), names[i]);
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

}   // namespace

struct Checkpoint::State {
  ByName<Value> values;
  ByName<Optimizer*> optimizers;
  std::map<std::uint64_t, std::string> variables;   // id -> name
  ByName<PendingValue> waiting;

  void check_free(const std::string& name) const;
  void add(const std::string& name, Value value);
  void add(const std::string& name, Optimizer& optimizer);
  NamedTensors tensors() const;
  ByName<Expected> expected() const;
  RestoreReport compare(const FileName& file, const ByName<Spec>& there, const ByName<Expected>& here) const;
  OptimizerState merged(const std::string& name, const Optimizer& optimizer, const NamedTensors& tensors,
                        bool all_slots) const;
  void assign(const NamedTensors& tensors, bool all_slots);
  void resolve_pending(const ByName<Expected>& here);
};

namespace {

void expect(ByName<Expected>& here, const std::string& name, const Value& value) {
  const Tensor present = value.read();
  here.try_emplace(name, Expected{present.defined() ? std::optional(present.spec()) : std::nullopt, true});
}
void expect_slots(ByName<Expected>& here, const std::string& name, const Optimizer& optimizer,
                  const std::string& variable_name, const Value& value) {
  if (!value.variable) return;
  for (const std::string& slot : optimizer.slot_names())
    here.try_emplace(slot_name(name, variable_name, slot),
                     Expected{value.variable->cell().value.spec(), false,
                              fmt::format("slot \"{}\" of \"{}\"", slot, variable_name)});
}
void expect(ByName<Expected>& here, const std::string& name, const Optimizer& optimizer,
            const ByName<Value>& values) {
  for (const OptimizerScalar& n : optimizer.state().scalars)
    here.try_emplace(number_name(name, n.name), Expected{Spec{DType::f64, {}}, true});
  for (const auto& [variable_name, value] : values)
    expect_slots(here, name, optimizer, variable_name, value);
}

}   // namespace

ByName<Expected> Checkpoint::State::expected() const {
  ByName<Expected> here;
  for (const auto& [name, value] : values)
    expect(here, name, value);
  for (const auto& [name, optimizer] : optimizers)
    expect(here, name, *optimizer, values);
  return here;
}

// Compares the entries of a file with the expected ones.
RestoreReport Checkpoint::State::compare(const FileName& file, const ByName<Spec>& there,
                                         const ByName<Expected>& here) const {
  RestoreReport report;
  const std::string file_name = file.path.substr(file.path.rfind('/') + 1);
  for (const auto& [name, entry] : here) {
    const auto stored = there.find(name);
    if (stored != there.end() && entry.spec && *entry.spec != stored->second)
      report.different.push_back(fmt::format(
          "{} is {} in {}, {} here", entry.described.empty() ? fmt::format("\"{}\"", name) : entry.described,
          stored->second, file_name, *entry.spec));
    else if (stored != there.end())
      report.restored.push_back(name);
    else if (entry.is_required)
      report.missing.push_back(name);
  }
  for (const auto& [name, spec] : there)
    if (!here.contains(name)) report.extra.push_back(name);
  return report;
}

// The optimizer's state, updated from a file. all_slots: slots that the file lacks start anew.
OptimizerState Checkpoint::State::merged(const std::string& name, const Optimizer& optimizer,
                                         const NamedTensors& tensors, bool all_slots) const {
  OptimizerState state = optimizer.state();
  for (OptimizerScalar& n : state.scalars)
    if (const auto at = tensors.find(number_name(name, n.name)); at != tensors.end())
      n.value = at->second.item();
  ByName<SlotValue> slots;
  for (SlotValue& v : std::exchange(state.slots, {})) {
    const auto variable = variables.find(v.variable.id());
    if (variable == variables.end())
      state.slots.push_back(std::move(v));
    else if (!all_slots)
      slots.emplace(slot_name(name, variable->second, v.slot), std::move(v));
  }
  for (const auto& [variable_name, value] : values)
    for (const std::string& slot : value.variable ? optimizer.slot_names() : std::vector<std::string>())
      if (const auto at = tensors.find(slot_name(name, variable_name, slot)); at != tensors.end())
        slots.insert_or_assign(at->first, SlotValue{*value.variable, slot, at->second});
  for (auto& [slot, value] : slots)
    state.slots.push_back(std::move(value));
  return state;
}

// All or nothing: on an exception everything is set back.
void Checkpoint::State::assign(const NamedTensors& tensors, bool all_slots) {
  std::vector<std::pair<const Value*, Tensor>> values_before;
  std::vector<std::pair<Optimizer*, OptimizerState>> optimizers_before;
  values_before.reserve(values.size()), optimizers_before.reserve(optimizers.size());
  try {
    for (const auto& [name, optimizer] : optimizers) {
      const auto first = tensors.lower_bound(name + "/");
      if (!all_slots && (first == tensors.end() || !first->first.starts_with(name + "/"))) continue;
      OptimizerState before = optimizer->state();
      optimizer->restore(merged(name, *optimizer, tensors, all_slots));
      optimizers_before.emplace_back(optimizer, std::move(before));
    }
    for (const auto& [name, tensor] : tensors) {
      const auto at = values.find(name);
      if (at == values.end()) continue;
      values_before.emplace_back(&at->second, at->second.read());
      at->second.write(tensor);
    }
  } catch (...) {
    for (const auto& [value, tensor] : values_before)
      value->write(tensor);
    for (const auto& [optimizer, state] : optimizers_before)
      optimizer->restore(state);
    throw;
  }
}

// Assigns pending values whose variables have been added.
void Checkpoint::State::resolve_pending(const ByName<Expected>& here) {
  NamedTensors found;
  for (const auto& [name, entry] : here) {
    const auto waits = waiting.find(name);
    if (waits == waiting.end()) continue;
    const FileName file{"restore", waits->second.path};
    const RestoreReport report = compare(file, {{name, waits->second.tensor.spec()}}, {{name, entry}});
    if (!report.different.empty()) file.fail(report.different[0]);
    found.emplace(name, waits->second.tensor);
  }
  if (found.empty()) return;
  assign(found, false);
  for (const auto& [name, tensor] : found)
    waiting.erase(waiting.find(name));
}

void Checkpoint::State::check_free(const std::string& name) const {
  if (values.contains(name) || optimizers.contains(name))
    throw_error<ArgumentError>("checkpoint: there are two of the name \"{}\"", name);
}

void Checkpoint::State::add(const std::string& name, Value value) {
  check_free(name);
  if (value.variable)
    if (const auto [at, is_first] = variables.try_emplace(value.variable->id(), name); !is_first)
      throw_error<ArgumentError>("checkpoint: variable \"{}\" was added before, as \"{}\"", name, at->second);
  const auto at = values.emplace(name, std::move(value)).first;
  if (waiting.empty()) return;
  try {
    ByName<Expected> here;
    expect(here, name, at->second);
    for (const auto& [optimizer_name, optimizer] : optimizers)
      expect_slots(here, optimizer_name, *optimizer, name, at->second);
    resolve_pending(here);
  } catch (...) {
    if (at->second.variable) variables.erase(at->second.variable->id());
    values.erase(at);
    throw;
  }
}

void Checkpoint::State::add(const std::string& name, Optimizer& optimizer) {
  check_free(name);
  const auto at = optimizers.emplace(name, &optimizer).first;
  try {
    ByName<Expected> here;
    expect(here, name, optimizer, values);
    resolve_pending(here);
  } catch (...) {
    optimizers.erase(at);
    throw;
  }
}

NamedTensors Checkpoint::State::tensors() const {
  NamedTensors all;
  const auto put = [&](std::string name, const Tensor& tensor) {
    if (!tensor.defined()) throw_error<ArgumentError>("save: \"{}\" is undefined", name);
    if (const auto [at, is_free] = all.try_emplace(std::move(name), tensor); !is_free)
      throw_error<ArgumentError>("save: there are two of the name \"{}\"", at->first);
  };
  for (const auto& [name, value] : values)
    put(name, value.read());
  for (const auto& [name, optimizer] : optimizers) {
    OptimizerState state = optimizer->state();
    for (const OptimizerScalar& n : state.scalars)
      put(number_name(name, n.name), tensor(n.value, DType::f64));
    for (SlotValue& v : state.slots) {
      const auto variable = variables.find(v.variable.id());
      if (variable == variables.end())
        throw_error<ArgumentError>(
            "save: optimizer \"{}\" has slots of variable \"{}\", which is not in the checkpoint; add it",
            name, v.variable.name());
      put(slot_name(name, variable->second, v.slot), std::move(v.value));
    }
  }
  return all;
}

Checkpoint::Checkpoint() : state_(std::make_unique<State>()) {}
Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;

void Checkpoint::add(const std::string& name, const Variable& variable) {
  state_->add(name, {[variable] { return variable.cell().value; },
                     [variable](const Tensor& x) { variable.assign(x); }, variable});
}
void Checkpoint::add(const std::string& name, Tensor& tensor) {
  state_->add(name, {[&tensor] { return tensor; }, [&tensor](const Tensor& x) { tensor = x; }});
}
void Checkpoint::add(const std::string& name, random::Key& key) {
  const auto read = [&key] {
    return tapedeck::tensor({std::bit_cast<std::int64_t>(key.seed), std::bit_cast<std::int64_t>(key.stream)});
  };
  const auto write = [&key](const Tensor& x) {
    const auto parts = x.data<std::int64_t>();
    key = {std::bit_cast<std::uint64_t>(parts[0]), std::bit_cast<std::uint64_t>(parts[1])};
  };
  state_->add(name, {read, write});
}
void Checkpoint::add(const std::string& name, double& number) {
  state_->add(name, {[&number] { return tapedeck::tensor(number, DType::f64); },
                     [&number](const Tensor& x) { number = x.item(); }});
}
void Checkpoint::add(const std::string& name, std::int64_t& number) {
  state_->add(name, {[&number] { return tapedeck::tensor(number); },
                     [&number](const Tensor& x) { number = x.item<std::int64_t>(); }});
}
void Checkpoint::add(const std::string& name, std::function<Tensor()> read,
                     std::function<void(const Tensor&)> write) {
  if (!read || !write)
    throw_error<ArgumentError>("checkpoint: \"{}\" has no function to {} it", name, read ? "write" : "read");
  state_->add(name, {std::move(read), std::move(write)});
}

void Checkpoint::add(const std::string& name, Optimizer& optimizer) { state_->add(name, optimizer); }

void Checkpoint::save(const std::string& path, const Metadata& metadata) const {
  write_tensors({"save", path}, state_->tensors(), metadata);
}

RestoreReport Checkpoint::restore(const std::string& path, RestoreMode mode) {
  const TensorReader reader({"restore", path});
  ByName<Spec> there;
  for (const StoredTensor& t : reader.tensors())
    there.emplace(t.name, t.spec);
  const ByName<Expected> here = state_->expected();
  RestoreReport report = state_->compare(reader.name(), there, here);
  const bool is_strict = mode == RestoreMode::strict;
  if (is_strict && !(report.missing.empty() && report.extra.empty() && report.different.empty()))
    reader.name().fail("does not match" + listed("missing", report.missing) + listed("extra", report.extra) +
                       listed("different", report.different));

  NamedTensors wanted;
  ByName<PendingValue> waiting = state_->waiting;
  for (const std::string& name : report.restored)
    waiting.erase(name), wanted.emplace(name, Tensor());
  for (const StoredTensor& t : reader.tensors()) {
    if (const auto at = wanted.find(t.name); at != wanted.end())
      at->second = reader.read(t);
    else if (mode == RestoreMode::deferred && !here.contains(t.name))
      waiting.insert_or_assign(t.name, PendingValue{reader.read(t), path});
  }
  report.metadata = reader.metadata();
  state_->assign(wanted, is_strict);
  state_->waiting = std::move(waiting);
  return report;
}

std::vector<std::string> Checkpoint::waiting() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : state_->waiting)
    names.push_back(name);
  return names;
}
void Checkpoint::drop_waiting() { state_->waiting.clear(); }

}   // namespace tapedeck
