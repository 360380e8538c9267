// Attention as one op, or, with dropout or numbers added to the scores, as products and a softmax.
#include "tapedeck/nn/attention.h"

#include <cmath>
#include <limits>

#include "core/format.h"
#include "nn/in_layer.h"
#include "nn/variables_of.h"
#include "optim/master.h"
#include "tapedeck/nn/new_variables.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck::nn {
namespace {

// Below all scores, and finite, so that a row of only this value has a softmax.
double lowest(DType t) {
  return t == DType::f64 ? std::numeric_limits<double>::lowest()
                         : static_cast<double>(std::numeric_limits<float>::lowest());
}

Tensor masked(const Tensor& scores, const Tensor& mask) {
  if (mask.dtype() == DType::boolean) return where(mask, scores, lowest(scores.dtype()));
  if (!is_floating(mask.dtype()))
    throw_error<DTypeError>("attention: the mask is {}; use bools, or numbers to be added", mask.spec());
  const Tensor sum = scores + mask;
  return maximum(sum, lowest(sum.dtype()));
}

Tensor causally_masked(const Tensor& scores) {
  const int rank = scores.ndim();
  const std::int64_t queries = scores.shape()[rank - 2], keys = scores.shape()[rank - 1];
  const Tensor last = reshape(arange(queries) + (keys - queries), {-1, 1});
  return masked(scores, less_equal(arange(keys), last));
}

// Reshapes [batch, length, heads · depth] to [batch, heads, length, depth], and back.
Tensor split_heads(const Tensor& x, std::int64_t heads) {
  const Shape& s = x.shape();
  return transpose(reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}
Tensor join_heads(const Tensor& x) {
  const Shape& s = x.shape();
  return reshape(transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

// Whether all operands have the dtype and the leading axes of the query, so that these axes are a batch.
bool have_one_lead(const Tensor& query, const Tensor& key, const Tensor& value) {
  const int rank = query.ndim();
  if (key.ndim() != rank || value.ndim() != rank || key.dtype() != query.dtype() ||
      value.dtype() != query.dtype())
    return false;
  for (int axis = 0; axis < rank - 2; ++axis)
    if (key.shape()[axis] != query.shape()[axis] || value.shape()[axis] != query.shape()[axis]) return false;
  return true;
}
Tensor as_batch(const Tensor& x) {
  const Shape& s = x.shape();
  std::int64_t batch = 1;   // not -1, which is ambiguous for an empty tensor
  for (int axis = 0; axis < x.ndim() - 2; ++axis)
    batch *= s[axis];
  return reshape(x, {batch, s[x.ndim() - 2], s[x.ndim() - 1]});
}

Tensor appended(const Tensor& cached, const Tensor& x) {
  return cached.defined() ? concat({cached, x}, -2) : x;
}

}   // namespace

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionOptions& options) {
  if (query.ndim() < 2 || key.ndim() < 2 || value.ndim() < 2)
    throw_error<ShapeError>("attention: query is {}, key {} and value {}; they must have rank 2 or more",
                            query.spec(), key.spec(), value.spec());
  if (const bool drops = options.run.training && options.dropout != 0;
      !drops && !options.mask.defined() && have_one_lead(query, key, value)) {
    const Tensor y = dot_product_attention(as_batch(query), as_batch(key), as_batch(value), {},
                                           {.causal = options.causal, .scale = options.scale});
    Shape shape = query.shape();
    shape.set(query.ndim() - 1, value.shape()[value.ndim() - 1]);
    return reshape(y, shape);
  }
  // Scores in a half are too imprecise for a softmax. Halves mixed with other dtypes are promoted below.
  if (is_half(query.dtype()) && key.dtype() == query.dtype() && value.dtype() == query.dtype())
    return astype(attention(in_f32(query), in_f32(key), in_f32(value), options), query.dtype());
  const double depth = static_cast<double>(query.shape()[query.ndim() - 1]);
  const double scale = options.scale.value_or(1 / std::sqrt(std::max(depth, 1.0)));
  Tensor scores = matmul(query * scale, key, {.transpose_b = true});
  if (options.causal) scores = causally_masked(scores);
  if (options.mask.defined()) scores = masked(scores, options.mask);
  Tensor weights = softmax(scores);
  if (options.run.training && options.dropout != 0)
    weights = dropout(weights, options.dropout, detail::key_of(options.run, "attention"));
  return matmul(weights, value);
}

namespace {

// Creates a projection: a dense layer, by default with a Glorot-uniform kernel and a bias of zeros.
Dense projection(std::int64_t inputs, std::int64_t outputs, std::int64_t heads, random::Key key,
                 const LayerOptions& options) {
  if (heads < 1 || outputs % heads != 0)
    throw_error<ArgumentError>("multi_head_attention: heads is {}, which does not divide width {}", heads,
                               outputs);
  LayerOptions with_defaults = options;
  if (!options.kernel) with_defaults.kernel = initializers::glorot_uniform();
  if (!options.bias) with_defaults.bias = initializers::zeros();
  return Dense(inputs, outputs, key, with_defaults);
}

}   // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t width_, std::int64_t heads_, random::Key random_key,
                                       const MultiHeadOptions& o)
    : width(width_),
      heads(heads_),
      causal(o.causal),
      dropout(o.dropout),
      query(projection(width, width, heads, random_key.split(0), variables_of(o))),
      key(projection(o.memory_width == 0 ? width : o.memory_width, width, heads, random_key.split(1),
                     variables_of(o))),
      value(projection(key.inputs, width, heads, random_key.split(2), variables_of(o))),
      output(projection(width, width, heads, random_key.split(3), variables_of(o))) {}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionCall& call) const {
  return in_layer({this, "MultiHeadAttention", query.kernel, "batch,queries,#", width}, x, [&] {
    return detail::in_network(*this, [&] {
      if (x.ndim() != 3)
        throw_error<ShapeError>("multi_head_attention: x is {}; it must be [batch, queries, {}]", x.spec(),
                                width);
      const Tensor& memory = call.memory.defined() ? call.memory : x;
      Tensor keys = key(memory), values = value(memory);
      if (call.cache) keys = appended(call.cache->key, keys), values = appended(call.cache->value, values);
      const Tensor queries = query(x);
      const bool drops = call.run.training && dropout != 0,
                 adds = call.mask.defined() && call.mask.dtype() != DType::boolean;
      const Tensor heard =
          drops || adds
              ? join_heads(attention(
                    split_heads(queries, heads), split_heads(keys, heads), split_heads(values, heads),
                    {.mask = call.mask, .causal = causal, .dropout = dropout, .run = call.run}))
              : dot_product_attention(queries, keys, values, call.mask, {.heads = heads, .causal = causal});
      Tensor result = output(heard);
      if (call.cache) *call.cache = {keys, values};   // last, since the code above may throw
      return detail::noted(this, "MultiHeadAttention", std::move(result));
    });
  });
}

}   // namespace tapedeck::nn
