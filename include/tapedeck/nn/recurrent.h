// Recurrent layers over sequences [batch, time, inputs].
#pragma once
#include "tapedeck/nn/new_variables.h"
#include "tapedeck/ops/rnn.h"

namespace tapedeck::nn {

/// The result of an Lstm. Converts to the outputs.
struct LstmSequence {
  Tensor outputs;    // [batch, time, outputs]: h after each step
  LstmState state;   // after the last step

  /// The outputs.
  operator Tensor() const { return outputs; }
};
/// The result of a Gru. Converts to the outputs.
struct GruSequence {
  Tensor outputs;   // [batch, time, outputs]
  Tensor state;     // after the last step, [batch, outputs]

  /// The outputs.
  operator Tensor() const { return outputs; }
};

/// Applies block_lstm to each sequence.
struct TAPEDECK_EXPORT Lstm {
  std::int64_t inputs, outputs;
  double forget_bias;   // added to the bias of the forget gate: 1, as in Keras, or 0 with PyTorch's defaults
  /// kernel is [inputs + outputs, 4 outputs], whose upper rows are for the inputs and whose lower rows, the
  /// recurrent ones, for h; bias is [4 outputs]. The gates are in the order of block_lstm.
  Variable kernel, bias;

  /// Throws ArgumentError for sizes below 1, and without a bias.
  Lstm(std::int64_t inputs_, std::int64_t outputs_, random::Key key, const LayerOptions& options = {});

  /// The initial state is zero, or `state`. `lengths`, i32 or i64 [batch], are the numbers of steps of the
  /// sequences: later outputs are zero, and the final state is the state after the last step of the sequence.
  /// Later inputs do not contribute to gradients, even if they are NaN. Throws ShapeError for other shapes
  /// and for lengths outside 0 to time, and DTypeError for lengths that are not integers.
  LstmSequence operator()(const Tensor& x, const Tensor& lengths = {}, const LstmState& state = {}) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("kernel", kernel), visit("bias", bias);
  }
};

/// A GRU (Cho et al. 2014) over each sequence, in the form of Keras and PyTorch: the reset gate acts after
/// the product with the state. With the gates r, u and n of the products x · kernel + bias and h · recurrent
/// + recurrent_bias, which are stored in this order: r = σ(xᵣ + hᵣ), u = σ(xᵤ + hᵤ), n = tanh(xₙ + r · hₙ),
/// and the new state is u · h + (1 - u) · n.
struct TAPEDECK_EXPORT Gru {
  std::int64_t inputs, outputs;
  Variable kernel, recurrent;      // [inputs, 3 outputs] and [outputs, 3 outputs]
  Variable bias, recurrent_bias;   // [3 outputs]

  /// Throws as Lstm does.
  Gru(std::int64_t inputs_, std::int64_t outputs_, random::Key key, const LayerOptions& options = {});

  /// As in Lstm; `state` is [batch, outputs].
  GruSequence operator()(const Tensor& x, const Tensor& lengths = {}, const Tensor& state = {}) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("kernel", kernel), visit("recurrent", recurrent);
    visit("bias", bias), visit("recurrent_bias", recurrent_bias);
  }
};

}   // namespace tapedeck::nn
