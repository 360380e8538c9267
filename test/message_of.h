// The text of an error.
#pragma once
#include <functional>
#include <string>

#include "tapedeck/error.h"

namespace tapedeck::test {

inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace tapedeck::test
