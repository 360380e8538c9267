// Attention: Vaswani et al. 2017, section 3.2.
#pragma once
#include "tapedeck/nn/dense.h"
#include "tapedeck/nn/run.h"

namespace tapedeck::nn {

/// Options of attention(): the keys that a query may attend to, and the scale of the scores.
struct AttentionOptions {
  /// Broadcasts to [..., queries, keys]. A bool mask is true where a query may attend; an f32 or f64 mask is
  /// added to the scores, with -∞ where it may not.
  Tensor mask = {};
  /// Whether queries may not attend to later positions. The last query is aligned with the last key.
  bool causal = false;
  std::optional<double> scale = {};   // 1 / √depth
  double dropout = 0;                 // rate of dropout of the weights, in training
  Run run = {};
};
/// softmax(query · keyᵀ · scale) · value over the keys, for query [..., queries, depth], key [..., keys,
/// depth] and value [..., keys, outputs]; leading axes broadcast. For a query that may not attend to any key,
/// the result is the mean of all values. Accepts f32, f64, f16 and bf16. Throws ShapeError for other shapes,
/// and DTypeError for a mask of integers.
TAPEDECK_EXPORT Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                 const AttentionOptions& options = {});

/// Keys and values of earlier positions, [batch, length, width], for a decoder that processes a sequence
/// piece by piece. Undefined at first.
struct AttentionCache {
  Tensor key = {}, value = {};

  /// The number of cached keys.
  std::int64_t length() const { return key.defined() ? key.shape()[1] : 0; }
};

/// Optional arguments of a call of MultiHeadAttention.
struct AttentionCall {
  Tensor memory = {};   // source of keys and values, [batch, keys, memory_width]; default: queries
  Tensor mask = {};     // as in AttentionOptions; [batch, 1, queries, keys] for a mask per example
  AttentionCache* cache = nullptr;   // keys and values are appended to it; queries attend to all of it
  Run run = {};
};

/// Options of MultiHeadAttention.
struct MultiHeadOptions {
  bool causal = false;             // as in AttentionOptions
  double dropout = 0;              // rate of dropout of the weights, in training
  std::int64_t memory_width = 0;   // width of the source of keys and values; 0: width
  // As in LayerOptions, for each projection; kernels are Glorot uniform and biases zero with all defaults.
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};
  DType dtype = default_dtype();
};
/// Attention with several heads, each of which uses its part of the projected queries, keys and values. The
/// joined results are projected once more.
struct TAPEDECK_EXPORT MultiHeadAttention {
  std::int64_t width, heads;   // width of queries and results
  bool causal;
  double dropout;
  Dense query, key, value, output;

  /// Throws ArgumentError unless heads divides width.
  MultiHeadAttention(std::int64_t width_, std::int64_t heads_, random::Key random_key,
                     const MultiHeadOptions& options = {});

  /// x and the result are [batch, queries, width]. Throws what attention() does.
  Tensor operator()(const Tensor& x, const AttentionCall& call = {}) const;
  Tensor operator()(const Tensor& x, Run run) const { return (*this)(x, AttentionCall{.run = run}); }
  /// Visits the layers: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("query", query), visit("key", key), visit("value", value), visit("output", output);
  }
};

}   // namespace tapedeck::nn
