// Attention: Vaswani et al. 2017, section 3.2.
#pragma once
#include "tapedeck/nn/dense.h"
#include "tapedeck/nn/run.h"

namespace tapedeck::nn {

/// Which keys a query may attend to, and how scores are scaled.
struct AttentionOptions {
  /// Broadcasts to [..., queries, keys]. bool: true where a query may attend; f32 or f64: added to the
  /// scores, -∞ where it may not.
  Tensor mask = {};
  /// Query i may not attend to what comes after it. The last query stands beside the last key.
  bool causal = false;
  std::optional<double> scale = {};   // 1 / √depth
  double dropout = 0;                 // of the weights, in training
  Run run = {};
};
/// softmax(query · keyᵀ · scale) · value over the keys, for query [..., queries, depth], key [..., keys,
/// depth] and value [..., keys, outputs]; leading axes broadcast. A query that may attend to nothing gets the
/// mean of all values. f32, f64, f16 and bf16. Throws ShapeError for other shapes, and DTypeError for a mask
/// of integers.
TAPEDECK_EXPORT Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                 const AttentionOptions& options = {});

/// Keys and values of what came before, [batch, length, width], for a decoder that is fed piece by
/// piece. Undefined at first.
struct AttentionCache {
  Tensor key = {}, value = {};

  /// How many keys there are.
  std::int64_t length() const { return key.defined() ? key.shape()[1] : 0; }
};

/// What a call of MultiHeadAttention may be given beside the queries.
struct AttentionCall {
  Tensor memory = {};   // what keys and values are made from, [batch, keys, memory_width]; else the queries
  Tensor mask = {};     // as of AttentionOptions; [batch, 1, queries, keys] for one of each example
  AttentionCache* cache = nullptr;   // keys and values are added to it, and all of them are attended to
  Run run = {};
};

/// Options of MultiHeadAttention.
struct MultiHeadOptions {
  bool causal = false;             // as of AttentionOptions
  double dropout = 0;              // of the weights, in training
  std::int64_t memory_width = 0;   // of what keys and values are made from; 0: width
  // As of LayerOptions, for each projection; kernels are Glorot uniform and biases zero with all defaults.
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};
  DType dtype = default_dtype();
};
/// Attention of several heads, each over its part of projected queries, keys and values, whose results are
/// projected once more.
struct TAPEDECK_EXPORT MultiHeadAttention {
  std::int64_t width, heads;   // of queries and results
  bool causal;
  double dropout;
  Dense query, key, value, output;

  /// Throws ArgumentError unless heads divides width.
  MultiHeadAttention(std::int64_t width_, std::int64_t heads_, random::Key random_key,
                     const MultiHeadOptions& options = {});

  /// x is [batch, queries, width], and so is the result. Throws what attention() does.
  Tensor operator()(const Tensor& x, const AttentionCall& call = {}) const;
  Tensor operator()(const Tensor& x, Run run) const { return (*this)(x, AttentionCall{.run = run}); }
  /// Visits the layers: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("query", query), visit("key", key), visit("value", value), visit("output", output);
  }
};

}   // namespace tapedeck::nn
