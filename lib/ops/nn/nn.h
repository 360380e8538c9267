// The attributes of dropout.
#pragma once

namespace tapedeck {

struct DropoutAttrs {
  double rate;
};

}   // namespace tapedeck
