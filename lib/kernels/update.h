// Update rules as one pass over memory: gradients come in, variables and slots are changed in place. f32 and f64.
#pragma once
#include "kernels/order_rows.h"

namespace tapedeck::kernels {

/// A gradient of a variable. Dense: values is of its shape. Sparse: `order` says which rows of values belong to which row.
struct StepGradient {
  const Tensor& values;
  const RowOrder* order = nullptr;
};

/// x -= rate · g.
void gradient_descent(Tensor& x, const StepGradient& g, double rate);

struct MomentumStep { double momentum, rate; bool nesterov; };
/// a = momentum · a + g, then x -= rate · a or, Nesterov's way, rate · (g + momentum · a). Sparse: in the rows of g only.
void momentum(Tensor& x, Tensor& a, const StepGradient& g, const MomentumStep& step);

struct AdamStep { double keep_out_m, keep_out_v, rate, epsilon; bool lazy; };   // 1 - β1, 1 - β2, the corrected rate, ε
/// m and v move towards g and g², then x -= rate · m / (√v + ε). Sparse: g is zero in other rows; lazy leaves these alone.
void adam(Tensor& x, Tensor& m, Tensor& v, const StepGradient& g, const AdamStep& step);

}  // namespace tapedeck::kernels
