// The text of an error.
#pragma once
#include <functional>
#include <string>

#include "tapedeck/error.h"

namespace tapedeck::test {

/// The text of the E that f throws; for another error, with a note that it is not an E.
template <class E = Error> std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return (dynamic_cast<const E*>(&e) ? "" : "of another kind: ") + std::string(e.what());
  }
  return "no error";
}

}   // namespace tapedeck::test
