// Multi-head attention as one op, for floating-point dtypes.
#pragma once
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Options of dot_product_attention.
struct DotProductOptions {
  std::int64_t heads = 1;             // must divide the depths
  bool causal = false;                // query i attends to keys up to i + keys - queries
  std::optional<double> scale = {};   // of the products; default: 1 / √(depth of a head)
};

/// softmax(query · keyᵀ · scale) · value over the keys, for each head (Vaswani et al. 2017, section 3.2).
/// query is [batch, queries, heads · depth], key [batch, keys, heads · depth], value [batch, keys, heads ·
/// outputs], the result [batch, queries, heads · outputs]. mask is undefined, or bools that broadcast to
/// [batch, heads, queries, keys], true where a query may attend. A query that may attend to no key gets the
/// mean of all values. The products are never stored as a whole; the gradient recomputes them in blocks.
/// Throws ShapeError if shapes do not match or there are no keys, ArgumentError unless heads divides the
/// depths, and DTypeError if dtypes differ or mask is not bool.
TAPEDECK_EXPORT Tensor dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                             const Tensor& mask = {}, const DotProductOptions& options = {});

}   // namespace tapedeck
