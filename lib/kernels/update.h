// Update rules as one pass over memory: gradients come in, variables and slots are changed in place. f32 and f64.
#pragma once
#include "tapedeck/indexed_slices.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {

/// indices[k], of i32 or i64.
inline std::int64_t row_at(const Tensor& indices, std::int64_t k) {
  return indices.dtype() == DType::i32 ? elements<std::int32_t>(indices)[k] : elements<std::int64_t>(indices)[k];
}

/// x -= rate · g. Rows of slices may repeat.
void gradient_descent(Tensor& x, const Tensor& g, double rate);
void gradient_descent(Tensor& x, const IndexedSlices& g, double rate);

struct AdamStep { double keep_out_m, keep_out_v, rate, epsilon; };   // 1 - β1, 1 - β2, the corrected rate, ε
/// m and v move towards g and g², then x -= rate · m / (√v + ε). With slices, as from summed_rows, g is zero in all other rows.
void adam(Tensor& x, Tensor& m, Tensor& v, const Tensor& g, const AdamStep& step);
void adam(Tensor& x, Tensor& m, Tensor& v, const IndexedSlices& g, const AdamStep& step);

/// The same gradient with each row once, in ascending order, under i64 indices.
IndexedSlices summed_rows(const IndexedSlices& g);

}  // namespace tapedeck::kernels
