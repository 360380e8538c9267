// Moving averages. In: values. Out: variables that follow them slowly.
#include "tapedeck/moving_average.h"

#include <algorithm>
#include <array>

#include "core/format.h"
#include "core/storage.h"
#include "op/recorder.h"
#include "optim/master.h"
#include "optim/recorded.h"
#include "optim/saved_state.h"
#include "tape/variable.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

constexpr std::string_view kName = "moving_average", kWeighted = "weighted_moving_average",
                           kExponential = "exponential_moving_average", kSlot = "average";
constexpr std::array<std::string_view, 3> kParts = {"biased", "left", "value"};

double checked(double decay) {
  if (!(decay >= 0 && decay <= 1))
    throw_error<ArgumentError>("moving_average: decay is {}; use a number from 0 to 1", decay);
  return decay;
}

// Converts to the type that ops compute in, since a half would lose small changes.
Tensor to_average(const Tensor& value) { return astype(value, computed_in(value.dtype())); }

Tensor moved(const Tensor& average, const Tensor& value, double decay) {
  return average - (1 - decay) * (average - value);
}

// The states of averages, from tensors "NAME/part".
std::map<std::string, SavedState> by_name(const NamedTensors& tensors) {
  std::map<std::string, SavedState> all;
  for (const auto& [name, x] : tensors) {
    const std::size_t slash = name.rfind('/');
    if (slash == std::string::npos)
      throw_error<ArgumentError>("restore: {} has no tensor \"{}\"", kName, name);
    SavedState& s = all[name.substr(0, slash)];
    std::string part = name.substr(slash + 1);
    if (part == "left" && x.defined() && x.size() == 1)
      s.scalars.push_back({std::move(part), x.item()});
    else
      s.tensors.emplace(std::move(part), x);
  }
  return all;
}

}   // namespace

MovingAverage::MovingAverage(Variable variable, MovingAverageOptions options)
    : variable_(std::move(variable)) {
  const DType t = variable_.dtype();
  if (!is_trainable(t))
    throw_error<DTypeError>("{}: {} is {}; use a floating-point or complex dtype", kName,
                            detail::label(variable_.cell()), variable_.cell().value.spec());
  if (options.zero_debias)
    biased_ = zeros(variable_.shape(), computed_in(t));
  else if (is_half(t))
    master_ = to_average(variable_.cell().value);
}

void MovingAverage::update(const Tensor& value, double decay) {
  checked(decay);
  detail::check_value(variable_.cell(), "moving_average", value);
  if (thread_state.trace)
    return act({kName, lifetime_.watch()}, std::vector{value},
               [this, decay](std::span<const Tensor> x) { update(x[0], decay); });
  const RecordingScope unrecorded(nullptr);
  const auto assign = [&](const Tensor& average) { variable_.assign(astype(average, variable_.dtype())); };
  const Tensor next = to_average(value);
  if (master_.defined()) {
    Tensor before = copy_of(master_);
    follow(before, variable_.cell().value);
    Tensor master = moved(before, next, decay);
    assign(master);
    master_ = std::move(master);
    return;
  }
  if (!biased_.defined()) return assign(moved(variable_.value(), next, decay));
  Tensor biased = moved(biased_, next, decay);
  const double left = left_ * decay;
  assign(left < 1 ? biased / (1 - left) : zeros(biased.shape(), biased.dtype()));
  biased_ = std::move(biased);
  left_ = left;
}

SavedState MovingAverage::state() const {
  refuse_in_recording(kName, "its state");
  SavedState s = {.tensors = {{"value", variable_.cell().value}}, .kind = std::string(kName)};
  if (master_.defined()) s.tensors.emplace("master", master_);
  if (!biased_.defined()) return s;
  s.scalars.push_back({"left", left_});
  s.tensors.emplace("biased", biased_);
  return s;
}

void MovingAverage::restore(const SavedState& state) { prepare_restore(state)(); }
Commit MovingAverage::prepare_restore(const SavedState& state) {
  refuse_in_recording(kName, "a state that is restored");
  const bool is_debiased = biased_.defined();
  StateReader reader(kName, state);
  const Tensor value = reader.tensor("value");
  Tensor biased = is_debiased ? reader.tensor("biased") : Tensor(),
         master = master_.defined() ? reader.tensor("master") : Tensor();
  const double left = is_debiased ? reader.scalar("left") : 1;
  reader.end();
  detail::VariableCell& cell = variable_.cell();
  detail::check_value(cell, "restore", value);
  detail::check_not_shared(cell, "restore");
  const Spec wide = {computed_in(cell.value.dtype()), cell.value.shape()};
  for (const Tensor* t : {&biased, &master}) {
    if (!t->defined() || t->spec() == wide) continue;
    const std::string text = fmt::format("restore: the average of {}, {}, is kept as {}, not as {}",
                                         detail::label(cell), cell.value.spec(), wide, t->spec());
    if (t->dtype() != wide.dtype) throw DTypeError(text);
    throw ShapeError(text);
  }
  if (!(left >= 0 && left <= 1))
    throw_error<ArgumentError>("restore: left of {} is {}; use a number from 0 to 1", kName, left);
  detail::note_access(cell);
  return [this, v = variable_, shared = share(value), biased = std::move(biased), master = std::move(master),
          left]() mutable {
    v.cell().value = std::move(shared);
    biased_ = std::move(biased);
    master_ = std::move(master);
    left_ = left;
  };
}

WeightedMovingAverage::WeightedMovingAverage(double decay) : decay_(checked(decay)) {}

Tensor WeightedMovingAverage::update(const Tensor& value, const Tensor& weight) {
  if (thread_state.trace) {
    const Spec spec = value.spec();
    const auto now = [this](std::span<const Tensor> x) { return std::vector<Tensor>{update(x[0], x[1])}; };
    return results_of({kWeighted, lifetime_.watch()}, {value, weight}, std::span(&spec, 1), now)[0];
  }
  const RecordingScope unrecorded(nullptr);
  const Tensor wide = to_average(weight), product = to_average(value) * wide;
  if (product.shape() != value.shape())
    throw_error<ShapeError>("{}: the weight, {}, does not broadcast to the value, {}", kWeighted,
                            weight.spec(), value.spec());
  if (numerator_.defined() && product.shape() != numerator_.shape())
    throw_error<ShapeError>("{}: the value is {}, but earlier ones had the shape {}", kWeighted, value.spec(),
                            numerator_.shape());
  const auto after = [&](const Tensor& average, const Tensor& next) {
    return moved(average.defined() ? average : zeros(next.shape(), next.dtype()), next, decay_);
  };
  Tensor numerator = after(numerator_, product), denominator = after(denominator_, wide);
  Tensor mean = astype(numerator / denominator, value.dtype());
  numerator_ = std::move(numerator);
  denominator_ = std::move(denominator);
  return mean;
}

SavedState WeightedMovingAverage::state() const {
  refuse_in_recording(kWeighted, "its state");
  SavedState s = {.kind = std::string(kWeighted)};
  if (numerator_.defined()) s.tensors = {{"numerator", numerator_}, {"denominator", denominator_}};
  return s;
}

void WeightedMovingAverage::restore(const SavedState& state) { prepare_restore(state)(); }
Commit WeightedMovingAverage::prepare_restore(const SavedState& state) {
  refuse_in_recording(kWeighted, "a state that is restored");
  StateReader reader(kWeighted, state);
  Tensor numerator, denominator;
  if (!state.tensors.empty())
    numerator = reader.tensor("numerator"), denominator = reader.tensor("denominator");
  reader.end();
  return [this, numerator, denominator]() mutable {
    numerator_ = std::move(numerator);
    denominator_ = std::move(denominator);
  };
}

bool WeightedMovingAverage::may_have(std::string_view tensor) const {
  return tensor == "numerator" || tensor == "denominator";
}

ExponentialMovingAverage::ExponentialMovingAverage(double decay, ExponentialMovingAverageOptions options)
    : decay_(checked(decay)), options_(std::move(options)) {
  if (options_.name.empty()) throw ArgumentError("moving_average: the name is empty");
}

double ExponentialMovingAverage::decay_at(std::optional<std::int64_t> num_updates) const {
  if (!num_updates) return decay_;
  if (*num_updates < 0)
    throw_error<ArgumentError>("moving_average: num_updates is {}; use 0 or more", *num_updates);
  const double n = static_cast<double>(*num_updates);
  return std::min(decay_, (1 + n) / (10 + n));
}

MovingAverage ExponentialMovingAverage::make(const Variable& v, const Tensor& initial) const {
  return MovingAverage(Variable(initial, {.name = average_name(v), .trainable = false}),
                       {.zero_debias = false});
}
MovingAverage ExponentialMovingAverage::make(const std::string& name, const Spec& spec) const {
  return MovingAverage(
      Variable(zeros(spec.shape, spec.dtype), {.name = name + "/" + options_.name, .trainable = false}),
      {.zero_debias = options_.zero_debias});
}

void ExponentialMovingAverage::apply(std::span<const Variable> variables,
                                     std::optional<std::int64_t> num_updates) {
  if (thread_state.trace) {
    const std::vector<Variable> all(variables.begin(), variables.end());
    return act({kExponential, lifetime_.watch()}, std::vector<Tensor>(),
               [this, all, num_updates](std::span<const Tensor>) { apply(all, num_updates); });
  }
  const double decay = decay_at(num_updates);
  const RecordingScope unrecorded(nullptr);
  std::erase_if(of_variables_, [](const auto& one) { return one.second.variable.expired(); });
  for (const Variable& v : variables)
    if (!is_floating(v.dtype()))
      throw_error<DTypeError>("{}: {} is {}; use f32, f64, f16 or bf16", kExponential,
                              detail::label(v.cell()), Spec{v.dtype(), v.shape()});
  for (const Variable& v : variables) {
    auto at = of_variables_.find(v.id());
    if (at == of_variables_.end())
      at =
          of_variables_.emplace(v.id(), OfVariable{v.cell().weak_from_this(), make(v, to_average(v.value()))})
              .first;
    at->second.average.update(to_average(v.value()), decay);
  }
}

void ExponentialMovingAverage::apply(const std::string& name, const Tensor& value,
                                     std::optional<std::int64_t> num_updates) {
  if (thread_state.trace)
    return act({kExponential, lifetime_.watch()}, std::vector{value},
               [this, name, num_updates](std::span<const Tensor> x) { apply(name, x[0], num_updates); });
  const double decay = decay_at(num_updates);
  if (!is_floating(value.dtype()))
    throw_error<DTypeError>("{}: the value of \"{}\" is {}; use f32, f64, f16 or bf16", kExponential, name,
                            value.spec());
  const RecordingScope unrecorded(nullptr);
  const Tensor next = to_average(value);
  auto at = of_tensors_.find(name);
  if (at == of_tensors_.end()) at = of_tensors_.emplace(name, make(name, next.spec())).first;
  at->second.update(next, decay);
}

namespace {
[[noreturn]] void throw_no_average(std::string_view of) {
  throw_error<ArgumentError>("{}: {} has no average yet; call apply with it first", kExponential, of);
}
}   // namespace

Variable ExponentialMovingAverage::average(const Variable& v) const {
  const auto at = of_variables_.find(v.id());
  if (at == of_variables_.end()) throw_no_average(detail::described(v.cell()));
  return at->second.average.variable();
}
Variable ExponentialMovingAverage::average(std::string_view name) const {
  const auto at = of_tensors_.find(name);
  if (at == of_tensors_.end()) throw_no_average(fmt::format("\"{}\"", name));
  return at->second.variable();
}

std::string ExponentialMovingAverage::average_name(const Variable& v) const {
  return v.name() + "/" + options_.name;
}

std::map<std::string, Variable> ExponentialMovingAverage::variables_to_restore(
    std::span<const Variable> variables) const {
  std::map<std::string, Variable> result;
  for (const Variable& v : variables)
    if (const auto [at, is_free] =
            result.emplace(of_variables_.contains(v.id()) ? average_name(v) : v.name(), v);
        !is_free && at->second != v)
      throw_error<ArgumentError>(
          "variables_to_restore: two variables have the name \"{}\"; give them different names, or add the "
          "average to a Checkpoint, which has paths",
          at->first);
  return result;
}

SavedState ExponentialMovingAverage::state() const {
  refuse_in_recording(kExponential, "its state");
  SavedState all = {.kind = std::string(kExponential)};
  for (const auto& [id, of] : of_variables_)
    if (const std::shared_ptr<detail::VariableCell> cell = of.variable.lock())
      all.slots.push_back({Variable(cell), std::string(kSlot), of.average.variable().cell().value});
  for (const auto& [name, average] : of_tensors_) {
    const SavedState own = average.state();
    for (const auto& [part, x] : own.tensors)
      all.tensors.emplace(fmt::format("{}/{}", name, part), x);
    for (const SavedScalar& n : own.scalars)
      all.tensors.emplace(fmt::format("{}/{}", name, n.name), tensor(n.value, DType::f64));
  }
  return all;
}

std::vector<std::string> ExponentialMovingAverage::slot_names() const { return {std::string(kSlot)}; }

void ExponentialMovingAverage::restore(const SavedState& state) { prepare_restore(state)(); }
Commit ExponentialMovingAverage::prepare_restore(const SavedState& state) {
  refuse_in_recording(kExponential, "a state that is restored");
  struct Next {
    decltype(of_variables_) of_variables;
    decltype(of_tensors_) of_tensors;
    std::vector<Commit> commits;
  };
  StateReader(kExponential, state).end_scalars();
  const auto next = std::make_shared<Next>();
  for (const SlotValue& s : state.slots) {
    if (s.slot != kSlot) throw_error<ArgumentError>("restore: {} has no slot \"{}\"", kExponential, s.slot);
    const Variable& v = s.variable;
    const auto own = of_variables_.find(v.id());
    const auto [at, is_new] = next->of_variables.try_emplace(
        v.id(), own != of_variables_.end()
                    ? OfVariable{own->second.variable,
                                 MovingAverage(own->second.average.variable(), {.zero_debias = false})}
                    : OfVariable{v.cell().weak_from_this(), make(v, to_average(v.cell().value))});
    next->commits.push_back(at->second.average.prepare_restore({.tensors = {{"value", s.value}}}));
  }
  for (const auto& [name, part] : by_name(state.tensors)) {
    const auto own = of_tensors_.find(name);
    const auto value = part.tensors.find("value");
    if (value == part.tensors.end() || !is_floating(value->second.dtype()) || is_half(value->second.dtype()))
      throw_error<ArgumentError>("restore: \"{}/value\" of {} is missing, or neither f32 nor f64", name,
                                 kExponential);
    const auto at =
        next->of_tensors
            .emplace(name, own != of_tensors_.end()
                               ? MovingAverage(own->second.variable(), {.zero_debias = options_.zero_debias})
                               : make(name, value->second.spec()))
            .first;
    next->commits.push_back(at->second.prepare_restore(part));
  }
  return [this, next] {
    for (const Commit& commit : next->commits)
      commit();
    of_variables_.swap(next->of_variables);
    of_tensors_.swap(next->of_tensors);
  };
}

std::optional<Spec> ExponentialMovingAverage::slot_spec(const Variable& v, std::string_view) const {
  const Tensor& value = v.cell().value;
  return Spec{computed_in(value.dtype()), value.shape()};
}

bool ExponentialMovingAverage::may_have(std::string_view tensor) const {
  const auto parts = std::span(kParts).subspan(options_.zero_debias ? 0 : kParts.size() - 1);
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return tensor.ends_with(part) && tensor.size() > part.size() &&
           tensor[tensor.size() - part.size() - 1] == '/';
  });
}

}   // namespace tapedeck
