// Reads the saved state of an object, by name.
#include "optim/saved_state.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"

namespace tapedeck {

void check_kind(std::string_view kind, const SavedState& state) {
  if (!state.kind.empty() && state.kind != kind)
    throw_error<ArgumentError>("restore: this is the state of {}, not of {}", state.kind, kind);
}

std::int64_t whole_number(std::string_view object, std::string_view name, double n, std::int64_t least) {
  if (!(n >= static_cast<double>(least) && n < 0x1p53 && n == std::floor(n)))
    throw_error<ArgumentError>("restore: {} of {} is {}; use a whole number of {} or more", name, object, n,
                               least);
  return static_cast<std::int64_t>(n);
}

double StateReader::scalar(std::string_view name) {
  const auto at = std::find_if(state_.scalars.begin(), state_.scalars.end(),
                               [&](const SavedScalar& s) { return s.name == name; });
  if (at == state_.scalars.end())
    throw_error<ArgumentError>("restore: number \"{}\" of {} is missing", name, object_);
  ++scalars_;
  return at->value;
}

std::int64_t StateReader::count(std::string_view name, std::int64_t least) {
  return whole_number(object_, name, scalar(name), least);
}

const Tensor& StateReader::tensor(std::string_view name) {
  const auto at = state_.tensors.find(name);
  if (at == state_.tensors.end() || !at->second.defined())
    throw_error<ArgumentError>("restore: tensor \"{}\" of {} is missing", name, object_);
  ++tensors_;
  return at->second;
}

void StateReader::end_scalars() const {
  if (scalars_ < state_.scalars.size())
    throw_error<ArgumentError>("restore: {} has {} numbers, not {}", object_, scalars_,
                               state_.scalars.size());
}

void StateReader::end() const {
  end_scalars();
  if (tensors_ < state_.tensors.size())
    throw_error<ArgumentError>("restore: {} has {} tensors, not {}", object_, tensors_,
                               state_.tensors.size());
  if (!state_.slots.empty())
    throw_error<ArgumentError>("restore: {} has no slot \"{}\"", object_, state_.slots[0].slot);
}

}   // namespace tapedeck
