// The attributes of the LSTM and of the CTC loss.
#pragma once
#include <cstdint>

namespace tapedeck {

struct LstmAttrs {
  double forget_bias;
};

struct CtcAttrs {
  std::int64_t blank;
};

}   // namespace tapedeck
