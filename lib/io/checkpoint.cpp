// Checkpoints: saves named variables, tensors and the state of objects to a safetensors file, and restores
// them. Restoring is all or nothing.
#include "tapedeck/checkpoint.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/format.h"
#include "core/storage.h"
#include "io/tensor_file.h"
#include "optim/slots.h"
#include "tape/variable.h"

namespace tapedeck {
namespace {

// A value is restored either by what `prepare` returns or by `write`, which is a user's function.
struct Value {
  std::function<Tensor()> read;
  std::function<Commit(const Tensor&)> prepare = {};
  std::function<void(const Tensor&)> write = {};
  std::optional<Variable> variable = {};
};

// The entry expected under a name. Entries that are not required may be missing in the file.
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

// Names of an object's scalars, tensors and slots are prefixed by its own.
std::string part_name(const std::string& object, std::string_view part) {
  return fmt::format("{}/{}", object, part);
}
std::string slot_name(const std::string& object, std::string_view variable, std::string_view slot) {
  return fmt::format("{}/{}/{}", object, variable, slot);
}
Value value_of(const Variable& variable) {
  const auto prepare = [variable](const Tensor& x) -> Commit {
    detail::check_value(variable.cell(), "restore", x);
    detail::check_not_shared(variable.cell(), "restore");
    detail::note_access(variable.cell());
    return [variable, value = share(x)]() mutable { variable.cell().value = std::move(value); };
  };
  return {.read = [variable] { return variable.cell().value; }, .prepare = prepare, .variable = variable};
}

std::string last_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

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
  using Object = Checkpoint::Object;

  /// The slots that an object may have for a variable: an optimizer has masters for f16 and bf16 only.
  static std::vector<std::string> slots_of(const Object& object, const Variable& v);

  ByName<Value> values;
  ByName<Object> objects;
  std::map<std::uint64_t, std::string> variables;   // id -> name
  ByName<PendingValue> waiting;
  Metadata waiting_kinds;   // of objects whose parts may be pending

  void check_free(const std::string& name) const;
  void add(std::vector<std::pair<std::string, Value>> list);
  void add(const std::string& name, Object object);
  struct Contents {
    NamedTensors tensors;
    Metadata kinds;   // of objects, by name
  };
  Contents contents() const;
  static void expect(ByName<Expected>& here, const std::string& name, const Value& value);
  static void expect_slots(ByName<Expected>& here, const std::string& name, const Object& object,
                           const std::string& variable_name, const Value& value);
  template <class Entries> void expect(ByName<Expected>& here, const std::string& name, const Object& object,
                                       const Entries& there) const;
  ByName<Expected> expected(const ByName<Spec>& there) const;
  Metadata other_kinds(const FileName& file, const Metadata& kinds) const;
  std::string_view owner_of(std::string_view name) const;
  template <class Entries, class F>
  void each_part(const Entries& entries, const std::string& object, const F& f) const;
  RestoreReport compare(const FileName& file, const ByName<Spec>& there, const ByName<Expected>& here,
                        const Metadata& others) const;
  SavedState merged(const std::string& name, const Object& object, const NamedTensors& tensors,
                    bool is_strict) const;
  static Commit prepared(const FileName& file, const std::string& name, const Object& object,
                         const SavedState& state);
  void assign(const FileName& file, const NamedTensors& tensors, bool is_strict);
  void resolve_pending(const ByName<Expected>& here);
};

std::vector<std::string> Checkpoint::State::slots_of(const Object& object, const Variable& v) {
  std::vector<std::string> names = object.slot_names;
  if (!is_half(v.dtype())) return names;
  try {
    if (object.slot_spec(v, kMasterName) == Spec{DType::f32, v.shape()}) names.emplace_back(kMasterName);
  } catch (const ArgumentError&) {}   // it has none
  return names;
}

void Checkpoint::State::expect(ByName<Expected>& here, const std::string& name, const Value& value) {
  const Tensor present = value.read();
  here.try_emplace(name, Expected{present.defined() ? std::optional(present.spec()) : std::nullopt, true});
}
void Checkpoint::State::expect_slots(ByName<Expected>& here, const std::string& name, const Object& object,
                                     const std::string& variable_name, const Value& value) {
  if (!value.variable) return;
  for (const std::string& slot : slots_of(object, *value.variable))
    here.try_emplace(slot_name(name, variable_name, slot),
                     Expected{object.slot_spec(*value.variable, slot), false,
                              fmt::format("slot \"{}\" of \"{}\"", slot, variable_name)});
}
// there: entries of a file, or pending ones.
template <class Entries> void Checkpoint::State::expect(ByName<Expected>& here, const std::string& name,
                                                        const Object& object, const Entries& there) const {
  const SavedState state = object.state();
  for (const SavedScalar& n : state.scalars)
    here.try_emplace(part_name(name, n.name), Expected{Spec{DType::f64, {}}, true});
  for (const auto& [part, x] : state.tensors)
    if (!object.may_have(part)) here.try_emplace(part_name(name, part), Expected{x.spec(), true});
  for (const auto& [variable_name, value] : values)
    expect_slots(here, name, object, variable_name, value);
  each_part(there, name, [&](const auto& entry, std::string_view part) {
    if (object.may_have(part)) here.try_emplace(entry.first, Expected{std::nullopt, false});
  });
}

ByName<Expected> Checkpoint::State::expected(const ByName<Spec>& there) const {
  ByName<Expected> here;
  for (const auto& [name, value] : values)
    expect(here, name, value);
  for (const auto& [name, object] : objects)
    expect(here, name, object, there);
  return here;
}

// Describes, by name, the objects whose kind in a file differs from the kind here.
Metadata Checkpoint::State::other_kinds(const FileName& file, const Metadata& kinds) const {
  Metadata others;
  for (const auto& [name, kind] : kinds) {
    const auto object = objects.find(name);
    const std::string here = object == objects.end() ? "" : object->second.state().kind;
    if (!here.empty() && here != kind)
      others.emplace(name, fmt::format("\"{}\" is the state of {} in {}, of {} here", name, kind,
                                       last_of(file.path), here));
  }
  return others;
}

// The object, here or in a file that was restored, to which the part of this name belongs: for "a/b/c", "a/b"
// if there is one, else "a". Empty if there is none, or if the name is that of a value.
std::string_view Checkpoint::State::owner_of(std::string_view name) const {
  if (values.contains(name)) return {};
  for (std::size_t end = name.rfind('/'); end != 0 && end != name.npos; end = name.rfind('/', end - 1)) {
    const std::string_view object = name.substr(0, end);
    if (objects.contains(object) || waiting_kinds.contains(object)) return object;
  }
  return {};
}
// Calls f(entry, part) for all entries that are parts of an object.
template <class Entries, class F>
void Checkpoint::State::each_part(const Entries& entries, const std::string& object, const F& f) const {
  const std::string prefix = object + "/";
  for (auto at = entries.lower_bound(prefix); at != entries.end() && at->first.starts_with(prefix); ++at)
    if (owner_of(at->first) == object) f(*at, std::string_view(at->first).substr(prefix.size()));
}

// Compares the entries of a file with the expected ones. Objects of different kinds are not restored.
RestoreReport Checkpoint::State::compare(const FileName& file, const ByName<Spec>& there,
                                         const ByName<Expected>& here, const Metadata& others) const {
  RestoreReport report;
  for (const auto& [name, text] : others)
    report.different.push_back(text);
  const std::string file_name = last_of(file.path);
  for (const auto& [name, entry] : here) {
    if (others.contains(owner_of(name))) continue;
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
    if (!here.contains(name) && !others.contains(owner_of(name))) report.extra.push_back(name);
  return report;
}

// The object's state, updated from a file. is_strict: optional tensors and slots that the file lacks are
// removed.
SavedState Checkpoint::State::merged(const std::string& name, const Object& object,
                                     const NamedTensors& tensors, bool is_strict) const {
  SavedState state = object.state();
  for (SavedScalar& n : state.scalars)
    if (const auto at = tensors.find(part_name(name, n.name)); at != tensors.end())
      n.value = at->second.item();
  if (is_strict) std::erase_if(state.tensors, [&](const auto& t) { return object.may_have(t.first); });
  each_part(tensors, name, [&](const auto& entry, std::string_view part) {
    if (object.may_have(part) || state.tensors.contains(part))
      state.tensors.insert_or_assign(std::string(part), entry.second);
  });
  ByName<SlotValue> slots;
  for (SlotValue& v : std::exchange(state.slots, {})) {
    const auto variable = variables.find(v.variable.id());
    if (variable == variables.end())
      state.slots.push_back(std::move(v));
    else if (!is_strict)
      slots.emplace(slot_name(name, variable->second, v.slot), std::move(v));
  }
  for (const auto& [variable_name, value] : values) {
    if (!value.variable) continue;
    for (const std::string& slot : slots_of(object, *value.variable))
      if (const auto at = tensors.find(slot_name(name, variable_name, slot)); at != tensors.end())
        slots.insert_or_assign(at->first, SlotValue{*value.variable, slot, at->second});
  }
  for (auto& [slot, value] : slots)
    state.slots.push_back(std::move(value));
  return state;
}

// If an object cannot restore a state, the error names the file, which the object does not know. Errors that
// do not begin with "restore: ", such as errors of fit, are passed on unchanged.
Commit Checkpoint::State::prepared(const FileName& file, const std::string& name, const Object& object,
                                   const SavedState& state) try {
  return object.prepare_restore(state);
} catch (const Error& e) {
  constexpr std::string_view prefix = "restore: ";
  const std::string_view text = e.what();
  if (!text.starts_with(prefix)) throw;
  file.fail(fmt::format("\"{}\": {}", name, text.substr(prefix.size())));
}

// All or nothing. First everything that may throw: the preparations, which change nothing, then the users'
// functions, which are called again with the old values if one of them throws.
void Checkpoint::State::assign(const FileName& file, const NamedTensors& tensors, bool is_strict) {
  std::vector<Commit> commits;
  struct Written {
    const Value* value;
    Tensor before, after;
  };
  std::vector<Written> by_users;
  for (const auto& [name, object] : objects) {
    bool has_part = false;
    each_part(tensors, name, [&](const auto&, std::string_view) { has_part = true; });
    if (is_strict || has_part)
      commits.push_back(prepared(file, name, object, merged(name, object, tensors, is_strict)));
  }
  for (const auto& [name, tensor] : tensors) {
    const auto at = values.find(name);
    if (at == values.end()) continue;
    if (const Value& value = at->second; value.prepare)
      commits.push_back(value.prepare(tensor));
    else
      by_users.push_back({&value, value.read(), tensor});
  }
  std::size_t begun = 0;
  try {
    while (begun < by_users.size()) {
      const Written& w = by_users[begun++];
      w.value->write(w.after);
    }
  } catch (...) {
    for (std::size_t i = 0; i < begun; ++i)
      try {
        by_users[i].value->write(by_users[i].before);
      } catch (...) {}   // the first error is thrown, and the others still get theirs back
    throw;
  }
  for (const Commit& commit : commits)
    commit();
}

// Assigns pending values whose variables have been added.
void Checkpoint::State::resolve_pending(const ByName<Expected>& here) {
  NamedTensors found;
  Metadata others;
  for (const auto& [name, entry] : here) {
    const auto waits = waiting.find(name);
    if (waits == waiting.end()) continue;
    const FileName file{"restore", waits->second.path};
    if (found.empty()) others = other_kinds(file, waiting_kinds);
    if (const auto other = others.find(owner_of(name)); other != others.end()) file.fail(other->second);
    const RestoreReport report = compare(file, {{name, waits->second.tensor.spec()}}, {{name, entry}}, {});
    if (!report.different.empty()) file.fail(report.different[0]);
    found.emplace(name, waits->second.tensor);
  }
  if (found.empty()) return;
  assign({"restore", waiting.find(found.begin()->first)->second.path}, found, false);
  for (const auto& [name, tensor] : found)
    waiting.erase(waiting.find(name));
}

void Checkpoint::State::check_free(const std::string& name) const {
  if (values.contains(name) || objects.contains(name))
    throw_error<ArgumentError>("checkpoint: the name \"{}\" is used twice", name);
}

void Checkpoint::State::add(std::vector<std::pair<std::string, Value>> list) {
  std::vector<ByName<Value>::iterator> added;
  added.reserve(list.size());
  try {
    for (auto& [name, value] : list) {
      check_free(name);
      if (value.variable)
        if (const auto at = variables.find(value.variable->id()); at != variables.end())
          throw_error<ArgumentError>("checkpoint: variable \"{}\" was added before, as \"{}\"", name,
                                     at->second);
      added.push_back(values.emplace(name, std::move(value)).first);
      if (const auto& variable = added.back()->second.variable) variables.emplace(variable->id(), name);
    }
    if (waiting.empty()) return;
    ByName<Expected> here;
    for (const auto& at : added) {
      expect(here, at->first, at->second);
      for (const auto& [object_name, object] : objects)
        expect_slots(here, object_name, object, at->first, at->second);
    }
    resolve_pending(here);
  } catch (...) {
    for (const auto& at : added) {
      if (at->second.variable) variables.erase(at->second.variable->id());
      values.erase(at);
    }
    throw;
  }
}

void Checkpoint::State::add(const std::string& name, Object object) {
  check_free(name);
  const auto at = objects.emplace(name, std::move(object)).first;
  if (waiting.empty()) return;
  try {
    ByName<Expected> here;
    expect(here, name, at->second, waiting);
    resolve_pending(here);
  } catch (...) {
    objects.erase(at);
    throw;
  }
}

Checkpoint::State::Contents Checkpoint::State::contents() const {
  NamedTensors all;
  Metadata kinds;
  const auto put = [&](std::string name, const Tensor& tensor) {
    if (!tensor.defined()) throw_error<ArgumentError>("save: \"{}\" is undefined", name);
    if (const auto [at, is_free] = all.try_emplace(std::move(name), tensor); !is_free)
      throw_error<ArgumentError>("save: the name \"{}\" is used twice", at->first);
  };
  for (const auto& [name, value] : values)
    put(name, value.read());
  for (const auto& [name, object] : objects) {
    const SavedState state = object.state();
    if (!state.kind.empty()) kinds.emplace(name, state.kind);
    for (const SavedScalar& n : state.scalars)
      put(part_name(name, n.name), tensor(n.value, DType::f64));
    for (const auto& [part, x] : state.tensors)
      put(part_name(name, part), x);
    for (const SlotValue& v : state.slots) {
      const auto variable = variables.find(v.variable.id());
      if (variable == variables.end())
        throw_error<ArgumentError>("save: \"{}\" has slots of {}, which is not in the checkpoint; add it",
                                   name, detail::described(v.variable.cell()));
      put(slot_name(name, variable->second, v.slot), v.value);
    }
  }
  return {std::move(all), std::move(kinds)};
}

Checkpoint::Checkpoint() : state_(std::make_unique<State>()) {}
Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;

void Checkpoint::add(const std::string& name, const Variable& variable) {
  state_->add({{name, value_of(variable)}});
}
void Checkpoint::add(const std::string& name, std::span<const NamedVariable> variables) {
  std::vector<std::pair<std::string, Value>> list;
  for (const NamedVariable& v : variables)
    list.emplace_back(part_name(name, v.name), value_of(v.variable));
  state_->add(std::move(list));
}
void Checkpoint::add(const std::string& name, Tensor& tensor) {
  state_->add({{name,
                {[&tensor] { return tensor; },
                 [&tensor](const Tensor& x) { return [&tensor, x] { tensor = x; }; }}}});
}
void Checkpoint::add(const std::string& name, random::Key& key) {
  const auto read = [&key] {
    return tapedeck::tensor({static_cast<std::int64_t>(std::uint64_t{key.seed}),
                             static_cast<std::int64_t>(std::uint64_t{key.stream})});
  };
  const auto prepare = [&key](const Tensor& x) {
    const auto parts = x.data<std::int64_t>();
    return [&key, restored = random::Key{std::bit_cast<std::uint64_t>(parts[0]),
                                         std::bit_cast<std::uint64_t>(parts[1])}] { key = restored; };
  };
  state_->add({{name, {read, prepare}}});
}
void Checkpoint::add(const std::string& name, double& number) {
  state_->add({{name,
                {[&number] { return tapedeck::tensor(number, DType::f64); },
                 [&number](const Tensor& x) { return [&number, value = x.item()] { number = value; }; }}}});
}
void Checkpoint::add(const std::string& name, std::int64_t& number) {
  const auto prepare = [&number](const Tensor& x) {
    return [&number, value = x.item<std::int64_t>()] { number = value; };
  };
  state_->add({{name, {[&number] { return tapedeck::tensor(number); }, prepare}}});
}
void Checkpoint::add(const std::string& name, std::function<Tensor()> read,
                     std::function<void(const Tensor&)> write) {
  if (!read || !write)
    throw_error<ArgumentError>("checkpoint: \"{}\" has no function to {} it", name, read ? "write" : "read");
  state_->add({{name, {.read = std::move(read), .write = std::move(write)}}});
}
void Checkpoint::add_object(const std::string& name, Object object) {
  if (!object.slot_spec) object.slot_spec = [](const Variable&, std::string_view) { return std::nullopt; };
  if (!object.may_have) object.may_have = [](std::string_view) { return false; };
  state_->add(name, std::move(object));
}

void Checkpoint::save(const std::string& path, const Metadata& metadata) const {
  const State::Contents contents = state_->contents();
  write_tensors({"save", path}, contents.tensors, metadata, contents.kinds);
}

RestoreReport Checkpoint::restore(const std::string& path, RestoreMode mode) {
  const TensorReader reader({"restore", path});
  ByName<Spec> there;
  for (const StoredTensor& t : reader.tensors())
    there.emplace(t.name, t.spec);
  const ByName<Expected> here = state_->expected(there);
  const Metadata others = state_->other_kinds(reader.name(), reader.kinds());
  RestoreReport report = state_->compare(reader.name(), there, here, others);
  const bool is_strict = mode == RestoreMode::strict;
  if (is_strict && !(report.missing.empty() && report.extra.empty() && report.different.empty()))
    reader.name().fail("does not match" + listed("missing", report.missing) + listed("extra", report.extra) +
                       listed("different", report.different));

  NamedTensors wanted;
  ByName<PendingValue> waiting = state_->waiting;
  for (const std::string& name : report.restored)
    waiting.erase(name), wanted.emplace(name, Tensor());
  Metadata waiting_kinds = state_->waiting_kinds;
  if (mode == RestoreMode::deferred)
    for (const auto& [name, kind] : reader.kinds())
      waiting_kinds.insert_or_assign(name, kind);
  for (const StoredTensor& t : reader.tensors()) {
    if (const auto at = wanted.find(t.name); at != wanted.end())
      at->second = reader.read(t);
    else if (mode == RestoreMode::deferred && !here.contains(t.name) &&
             !others.contains(state_->owner_of(t.name)))
      waiting.insert_or_assign(t.name, PendingValue{reader.read(t), path});
  }
  report.metadata = reader.metadata();
  state_->assign(reader.name(), wanted, is_strict);
  state_->waiting = std::move(waiting);
  state_->waiting_kinds = std::move(waiting_kinds);
  return report;
}

std::vector<std::string> Checkpoint::waiting() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : state_->waiting)
    names.push_back(name);
  return names;
}
void Checkpoint::drop_waiting() {
  state_->waiting.clear();
  state_->waiting_kinds.clear();
}

}   // namespace tapedeck
