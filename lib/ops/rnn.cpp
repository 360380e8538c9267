// Recurrent networks. In: sequences and states. Out: sequences and states.
#include "tapedeck/ops/rnn.h"

#include "tapedeck/op.h"

namespace tapedeck {

std::span<const Op> rnn_ops() { return {}; }

}  // namespace tapedeck
