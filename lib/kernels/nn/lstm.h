// The recurrent part of an LSTM over time, and its adjoint. f32 or f64. Gates are [time, batch, 4 units]:
// input, candidate, forget, output. Results do not depend on the number of threads.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

struct Lstm {
  std::int64_t time, batch, units;
  double forget_bias;
};

/// gates holds the input's part of the pre-activations on entry, and the activated gates on return; h and c
/// are the states after every step, from h0 and c0. The last `units` rows of weights, [units, 4 units], are
/// the weights of the state.
void lstm(const Lstm& l, const Tensor& h0, const Tensor& c0, const Tensor& weights, Tensor& gates, Tensor& h,
          Tensor& c);

/// The adjoint, from the last step to the first: dz for the gates' pre-activations, dh0 and dc0 for the
/// initial state. dh, dc and dgates may be empty, which stands for zeros.
void lstm_gradient(const Lstm& l, const Tensor& dh, const Tensor& dc, const Tensor& dgates,
                   const Tensor& gates, const Tensor& c, const Tensor& c0, const Tensor& weights, Tensor& dz,
                   Tensor& dh0, Tensor& dc0);

}   // namespace tapedeck::kernels
