// The attributes of the derivatives of igamma.
#pragma once

namespace tapedeck {

struct OrderAttrs {
  int order;
};

}   // namespace tapedeck
