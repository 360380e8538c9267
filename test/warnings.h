// Collects warnings.
#pragma once
#include <string>
#include <vector>

#include "tapedeck/error.h"

namespace tapedeck::test {

/// The warnings of all threads during its lifetime.
struct Warnings {
  Warnings() {
    set_warning_handler([this](std::string_view text) { texts.emplace_back(text); });
  }
  ~Warnings() { set_warning_handler({}); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  std::vector<std::string> texts;
};

}   // namespace tapedeck::test
