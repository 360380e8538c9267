// The attributes of the ops that check values.
#pragma once
#include <iosfwd>
#include <string>

namespace tapedeck {

struct NumericsAttrs {
  std::string name;
};
struct PrintAttrs {
  std::string text;
  std::ostream* out;
};
struct AssertAttrs {
  std::string text;
};

}   // namespace tapedeck
