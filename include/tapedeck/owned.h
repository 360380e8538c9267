// Owned: a pointer to the state of a movable object.
#pragma once
#include <memory>

#include "tapedeck/error.h"

namespace tapedeck::detail {

[[noreturn]] TAPEDECK_EXPORT void throw_moved_from();

/// A std::unique_ptr that throws ArgumentError if it is used after the object was moved from.
template <class T> class Owned : public std::unique_ptr<T> {
 public:
  using std::unique_ptr<T>::unique_ptr;
  using std::unique_ptr<T>::operator=;
  Owned(std::unique_ptr<T> state) noexcept : std::unique_ptr<T>(std::move(state)) {}

  T* operator->() const {
    if (!*this) [[unlikely]]
      throw_moved_from();
    return this->get();
  }
  T& operator*() const { return *operator->(); }
};

}   // namespace tapedeck::detail
