// Recurrent cells and sequence losses. Floating-point dtypes; others throw DTypeError. Weights apply to the
// concatenation of input and state: [in + units, …].
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The state of an LSTM: its output h and its cell state c, both [batch, units].
struct LstmState {
  Tensor h, c;
};
/// One step of an LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 1999). x is
/// [batch, in], weights [in + units, 4 units], bias [4 units], with the gates in TensorFlow's order: input
/// i, candidate g, forget f, output o. The new state is c' = σ(f + forget_bias) c + σ(i) tanh(g) and h' =
/// σ(o) tanh(c'). Throws ShapeError if the shapes do not match.
TAPEDECK_EXPORT LstmState lstm_cell(const Tensor& x, const LstmState& state, const Tensor& weights,
                                    const Tensor& bias, double forget_bias = 1);
/// The states after every step of a sequence x [time, batch, in], starting from `state`; h and c are both
/// [time, batch, units]. The contribution of x is computed by one matrix product for all steps. Throws
/// ShapeError if the shapes do not match.
TAPEDECK_EXPORT LstmState block_lstm(const Tensor& x, const LstmState& state, const Tensor& weights,
                                     const Tensor& bias, double forget_bias = 1);

/// The weights of gru_cell.
struct GruWeights {
  Tensor gates;            // [in + units, 2 units]: reset, update
  Tensor gates_bias;       // [2 units]
  Tensor candidate;        // [in + units, units]
  Tensor candidate_bias;   // [units]
};
/// One step of a GRU (Cho et al. 2014): u · h + (1 - u) · tanh(candidate), where u is the update gate and the
/// candidate is computed from x and r · h, with the reset gate r. x is [batch, in], h and the result [batch,
/// units]. Throws ShapeError if the shapes do not match.
TAPEDECK_EXPORT Tensor gru_cell(const Tensor& x, const Tensor& h, const GruWeights& weights);

/// Connectionist temporal classification (Graves et al. 2006): for each sequence, the negative
/// log-probability of its labels over all alignments with time. logits are [time, batch, classes], before
/// softmax; labels [batch, max_label_length] and both lengths [batch] are integers. `blank` is the blank
/// class. If the labels need more time steps than a sequence has, the loss is infinite and its gradient 0.
/// Throws ShapeError if a label is `blank`, a label or length is out of range or shapes do not match, and
/// ArgumentError if blank is out of range.
TAPEDECK_EXPORT Tensor ctc_loss(const Tensor& labels, const Tensor& logits, const Tensor& label_lengths,
                                const Tensor& logit_lengths, std::int64_t blank = 0);

}   // namespace tapedeck
