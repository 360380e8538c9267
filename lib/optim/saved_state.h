// StateReader: reads a SavedState, and checks it against the names that an object expects.
#pragma once
#include <string_view>

#include "tapedeck/saved_state.h"

namespace tapedeck {

/// Throws unless the state is of this kind, or of no stated kind.
void check_kind(std::string_view kind, const SavedState& state);

/// A saved number as an integer. Throws unless it is a whole number of `least` or more, below 2^53.
std::int64_t whole_number(std::string_view object, std::string_view name, double n, std::int64_t least = 0);

/// Each function throws ArgumentError, which names the object, if an entry is missing, unknown or not such a
/// number; the constructor throws it for the state of another kind of object.
class StateReader {
 public:
  StateReader(std::string_view object, const SavedState& state) : object_(object), state_(state) {
    check_kind(object, state);
  }

  double scalar(std::string_view name);
  /// A whole number of `least` or more.
  std::int64_t count(std::string_view name, std::int64_t least = 0);
  const Tensor& tensor(std::string_view name);
  /// Throws if the state has scalars, or scalars or tensors, that were not read: these are unknown.
  void end_scalars() const;
  void end() const;

 private:
  std::string_view object_;
  const SavedState& state_;
  std::size_t scalars_ = 0, tensors_ = 0;   // the numbers of entries read
};

}   // namespace tapedeck
