// Checkpoints. In: what belongs to a training run, by name, and a file. Out: the file, or everything as the file has it, or an
// error and nothing changed.
#include "tapedeck/checkpoint.h"

#include <bit>

#include "autodiff/variable.h"
#include "base/format.h"
#include "io/tensor_file.h"

namespace tapedeck {
namespace {

struct Value {
  std::function<Tensor()> read;
  std::function<void(const Tensor&)> write;
  std::optional<Variable> variable = {};
};
using Values = std::map<std::string, Value, std::less<>>;

// A value of a deferred restore.
struct Waiting {
  Tensor tensor;
  std::string path;
};

std::string listed(std::string_view what, const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMost; ++i) text += fmt::format("{}{}", i ? ", " : fmt::format("; {}: ", what), names[i]);
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

}  // namespace

struct Checkpoint::State {
  Values values;
  std::map<std::string, Waiting, std::less<>> waiting;

  void add(const std::string& name, Value value);
  NamedTensors tensors(std::string_view op) const;
  RestoreReport compare(const FileName& file, const std::map<std::string, Spec, std::less<>>& there) const;
  void assign(const NamedTensors& tensors);
};

// Sorts out what of a file fits what is here.
RestoreReport Checkpoint::State::compare(const FileName& file, const std::map<std::string, Spec, std::less<>>& there) const {
  RestoreReport report;
  for (const auto& [name, value] : values) {
    const auto stored = there.find(name);
    const Tensor present = value.read();
    if (stored == there.end()) report.missing.push_back(name);
    else if (present.defined() && present.spec() != stored->second) report.different.push_back(fmt::format("\"{}\" is {} in {}, {} here", name, stored->second, file.path, present.spec()));
    else report.restored.push_back(name);
  }
  for (const auto& [name, spec] : there)
    if (!values.contains(name)) report.extra.push_back(name);
  return report;
}

// All or nothing.
void Checkpoint::State::assign(const NamedTensors& tensors) {
  std::vector<std::pair<const Value*, Tensor>> before;
  before.reserve(tensors.size());
  try {
    for (const auto& [name, tensor] : tensors) {
      const Value& value = values.find(name)->second;
      before.emplace_back(&value, value.read());
      value.write(tensor);
    }
  } catch (...) {
    for (const auto& [value, tensor] : before) value->write(tensor);
    throw;
  }
}

void Checkpoint::State::add(const std::string& name, Value value) {
  if (value.variable)
    for (const auto& [other, v] : values)
      if (v.variable == value.variable) throw_error<ArgumentError>("checkpoint: variable \"{}\" was added before, as \"{}\"", name, other);
  const auto [at, is_free] = values.emplace(name, std::move(value));
  if (!is_free) throw_error<ArgumentError>("checkpoint: there are two of the name \"{}\"", name);
  const auto waits = waiting.find(name);
  if (waits == waiting.end()) return;
  try {
    const FileName file{"restore", waits->second.path};
    const RestoreReport report = compare(file, {{name, waits->second.tensor.spec()}});
    if (!report.different.empty()) file.fail(report.different[0]);
    assign({{name, waits->second.tensor}});
  } catch (...) {
    values.erase(at);
    throw;
  }
  waiting.erase(waits);
}

NamedTensors Checkpoint::State::tensors(std::string_view op) const {
  NamedTensors all;
  for (const auto& [name, value] : values) {
    Tensor tensor = value.read();
    if (!tensor.defined()) throw_error<ArgumentError>("{}: \"{}\" is undefined", op, name);
    all.emplace(name, std::move(tensor));
  }
  return all;
}

Checkpoint::Checkpoint() : state_(std::make_unique<State>()) {}
Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;

void Checkpoint::add(const std::string& name, const Variable& variable) {
  state_->add(name, {[variable] { return variable.cell().value; }, [variable](const Tensor& x) { variable.assign(x); }, variable});
}
void Checkpoint::add(const std::string& name, Tensor& tensor) {
  state_->add(name, {[&tensor] { return tensor; }, [&tensor](const Tensor& x) { tensor = x; }});
}
void Checkpoint::add(const std::string& name, random::Key& key) {
  const auto read = [&key] { return tapedeck::tensor({std::bit_cast<std::int64_t>(key.seed), std::bit_cast<std::int64_t>(key.stream)}); };
  const auto write = [&key](const Tensor& x) {
    const auto parts = x.data<std::int64_t>();
    key = {std::bit_cast<std::uint64_t>(parts[0]), std::bit_cast<std::uint64_t>(parts[1])};
  };
  state_->add(name, {read, write});
}
void Checkpoint::add(const std::string& name, double& number) {
  state_->add(name, {[&number] { return tapedeck::tensor(number, DType::f64); }, [&number](const Tensor& x) { number = x.item(); }});
}
void Checkpoint::add(const std::string& name, std::int64_t& number) {
  state_->add(name, {[&number] { return tapedeck::tensor(number); }, [&number](const Tensor& x) { number = x.item<std::int64_t>(); }});
}
void Checkpoint::add(const std::string& name, std::function<Tensor()> read, std::function<void(const Tensor&)> write) {
  if (!read || !write) throw_error<ArgumentError>("checkpoint: \"{}\" has no function to {} it", name, read ? "write" : "read");
  state_->add(name, {std::move(read), std::move(write)});
}

void Checkpoint::save(const std::string& path, const Metadata& metadata) const { write_tensors({"save", path}, state_->tensors("save"), metadata); }

RestoreReport Checkpoint::restore(const std::string& path, RestoreMode mode) {
  const TensorReader reader({"restore", path});
  std::map<std::string, Spec, std::less<>> there;
  for (const StoredTensor& t : reader.tensors()) there.emplace(t.name, t.spec);
  RestoreReport report = state_->compare(reader.name(), there);
  if (mode == RestoreMode::strict && !(report.missing.empty() && report.extra.empty() && report.different.empty()))
    reader.name().fail("does not match" + listed("missing", report.missing) + listed("extra", report.extra) + listed("different", report.different));

  NamedTensors wanted;
  std::map<std::string, Waiting, std::less<>> waiting = state_->waiting;
  for (const std::string& name : report.restored) waiting.erase(name), wanted.emplace(name, Tensor());
  for (const StoredTensor& t : reader.tensors()) {
    if (const auto at = wanted.find(t.name); at != wanted.end()) at->second = reader.read(t);
    else if (mode == RestoreMode::deferred && !state_->values.contains(t.name)) waiting[t.name] = {reader.read(t), path};
  }
  report.metadata = reader.metadata();
  state_->assign(wanted);
  state_->waiting = std::move(waiting);
  return report;
}

std::vector<std::string> Checkpoint::waiting() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : state_->waiting) names.push_back(name);
  return names;
}
void Checkpoint::drop_waiting() { state_->waiting.clear(); }

}  // namespace tapedeck
