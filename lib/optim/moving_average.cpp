// Moving averages: values come in, variables that follow them slowly go out.
#include "tapedeck/moving_average.h"

#include <algorithm>

#include "core/format.h"
#include "op/recorder.h"
#include "tape/variable.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

double checked(double decay) {
  if (!(decay >= 0 && decay <= 1))
    throw_error<ArgumentError>("moving_average: decay is {}; use a number from 0 to 1", decay);
  return decay;
}

Tensor moved(const Tensor& average, const Tensor& value, double decay) {
  return average - (1 - decay) * (average - value);
}

}   // namespace

MovingAverage::MovingAverage(Variable variable, bool zero_debias) : variable_(std::move(variable)) {
  if (zero_debias) biased_ = zeros(variable_.shape(), variable_.dtype());
}

void MovingAverage::update(const Tensor& value, double decay) {
  checked(decay);
  detail::check_value(variable_.cell(), "moving_average", value);
  const RecordingScope unrecorded(nullptr);
  if (!biased_.defined()) return variable_.assign(moved(variable_.value(), value, decay));
  Tensor biased = moved(biased_, value, decay);
  const double left = left_ * decay;
  variable_.assign(left < 1 ? biased / (1 - left) : zeros(variable_.shape(), variable_.dtype()));
  biased_ = std::move(biased);
  left_ = left;
}

WeightedMovingAverage::WeightedMovingAverage(double decay) : decay_(checked(decay)) {}

Tensor WeightedMovingAverage::update(const Tensor& value, const Tensor& weight) {
  const RecordingScope unrecorded(nullptr);
  const Tensor product = value * weight;
  const auto after = [&](const Tensor& average, const Tensor& next) {
    return moved(average.defined() ? average : zeros(next.shape(), next.dtype()), next, decay_);
  };
  Tensor numerator = after(numerator_, product), denominator = after(denominator_, weight);
  Tensor mean = numerator / denominator;
  numerator_ = std::move(numerator);
  denominator_ = std::move(denominator);
  return mean;
}

ExponentialMovingAverage::ExponentialMovingAverage(double decay, MovingAverageOptions options)
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

void ExponentialMovingAverage::apply(std::span<const Variable> variables,
                                     std::optional<std::int64_t> num_updates) {
  const double decay = decay_at(num_updates);
  const RecordingScope unrecorded(nullptr);
  for (const Variable& v : variables)
    if (!is_floating(v.dtype()))
      throw_error<DTypeError>("moving_average: variable \"{}\" is {}; use f32 or f64", v.name(),
                              Spec{v.dtype(), v.shape()});
  for (const Variable& v : variables) {
    const auto make = [&] {
      return MovingAverage(Variable(v.value(), {.name = average_name(v), .trainable = false}), false);
    };
    auto at = of_variables_.find(v.id());
    if (at == of_variables_.end()) at = of_variables_.emplace(v.id(), make()).first;
    at->second.update(v.value(), decay);
  }
}

void ExponentialMovingAverage::apply(const std::string& name, const Tensor& value,
                                     std::optional<std::int64_t> num_updates) {
  const double decay = decay_at(num_updates);
  if (!is_floating(value.dtype()))
    throw_error<DTypeError>("moving_average: the value of \"{}\" is {}; use f32 or f64", name, value.spec());
  const auto make = [&] {
    return MovingAverage(Variable(zeros(value.shape(), value.dtype()),
                                  {.name = name + "/" + options_.name, .trainable = false}),
                         options_.zero_debias);
  };
  auto at = of_tensors_.find(name);
  if (at == of_tensors_.end()) at = of_tensors_.emplace(name, make()).first;
  at->second.update(value, decay);
}

std::optional<Variable> ExponentialMovingAverage::average(const Variable& v) const {
  const auto at = of_variables_.find(v.id());
  return at == of_variables_.end() ? std::nullopt : std::optional(at->second.variable());
}
std::optional<Variable> ExponentialMovingAverage::average(std::string_view name) const {
  const auto at = of_tensors_.find(name);
  return at == of_tensors_.end() ? std::nullopt : std::optional(at->second.variable());
}

std::string ExponentialMovingAverage::average_name(const Variable& v) const {
  return v.name() + "/" + options_.name;
}

std::map<std::string, Variable> ExponentialMovingAverage::variables_to_restore(
    std::span<const Variable> variables) const {
  std::map<std::string, Variable> result;
  for (const Variable& v : variables)
    result.emplace(of_variables_.contains(v.id()) ? average_name(v) : v.name(), v);
  return result;
}

}   // namespace tapedeck
