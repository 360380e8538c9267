// Attention of several heads, which stores scores for one block of queries at a time. f32 or f64. Queries are
// [batch, queries, heads · depth], keys [batch, keys, heads · depth], values [batch, keys, heads · outputs].
// Results do not depend on the number of threads.
#pragma once
#include <array>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

struct Attention {
  std::int64_t batch, heads, queries, keys, depth, outputs;
  bool causal;
  double scale;
  const bool* mask;                         // null: none
  std::array<std::int64_t, 4> mask_steps;   // strides along batch, heads, queries, keys; 0 if broadcast
};

/// Sets the mask, bool of rank 4 or less, which broadcasts to [batch, heads, queries, keys].
void set_mask(Attention& a, const Tensor& mask);

/// y is [batch, queries, heads · outputs].
void attention(const Attention& a, const Tensor& q, const Tensor& k, const Tensor& v, Tensor& y);

/// The gradients with respect to q, k and v, for the cotangent dy.
void attention_gradient(const Attention& a, const Tensor& dy, const Tensor& q, const Tensor& k,
                        const Tensor& v, Tensor& dq, Tensor& dk, Tensor& dv);

}   // namespace tapedeck::kernels
