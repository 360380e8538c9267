// The attributes of attention.
#pragma once
#include <cstdint>

namespace tapedeck {

struct AttentionAttrs {
  std::int64_t heads;
  bool causal;
  double scale;
};

}   // namespace tapedeck
