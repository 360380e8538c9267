// Recurrent cells and losses of sequences. f32 and f64. Weights multiply the inputs and the state side by
// side: [in + units, …].
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// What an LSTM hands on: its output h and its memory c, both [batch, units].
struct LstmState {
  Tensor h, c;
};
/// One step of an LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 1999). x is
/// [batch, in], weights [in + units, 4 units] and bias [4 units], for the gates in TensorFlow's order: input,
/// candidate, forget, output; forget_bias is added to the forget gate. Throws ShapeError where these do not
/// fit.
TAPEDECK_EXPORT LstmState lstm_cell(const Tensor& x, const LstmState& state, const Tensor& weights,
                                    const Tensor& bias, double forget_bias = 1);
/// The states after every step of a sequence x [time, batch, in], from `state` on; both are [time, batch,
/// units]. What x contributes is one product for all steps.
TAPEDECK_EXPORT LstmState block_lstm(const Tensor& x, const LstmState& state, const Tensor& weights,
                                     const Tensor& bias, double forget_bias = 1);

struct GruWeights {
  Tensor gates;            // [in + units, 2 units]: reset, update
  Tensor gates_bias;       // [2 units]
  Tensor candidate;        // [in + units, units]
  Tensor candidate_bias;   // [units]
};
/// One step of a GRU (Cho et al. 2014): u · h + (1 - u) · tanh of the candidate. x is [batch, in], h and the
/// result [batch, units]. Throws ShapeError where these do not fit.
TAPEDECK_EXPORT Tensor gru_cell(const Tensor& x, const Tensor& h, const GruWeights& weights);

/// Connectionist temporal classification (Graves et al. 2006): for each sequence, minus the log-probability
/// of its labels over all ways to spread them over time. logits are [time, batch, classes], before softmax;
/// labels [batch, most] and both lengths [batch] are i32 or i64. blank is the class that stands for no label.
/// Infinite where the labels do not fit into the time; the gradient is then 0. Throws ShapeError for labels
/// and lengths that are out of range.
TAPEDECK_EXPORT Tensor ctc_loss(const Tensor& labels, const Tensor& logits, const Tensor& label_lengths,
                                const Tensor& logit_lengths, std::int64_t blank = 0);

}   // namespace tapedeck
