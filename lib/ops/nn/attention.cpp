// Attention: one op computes the value, another its gradient. The gradient op is differentiated through the
// same function built from ops.
#include "tapedeck/ops/attention.h"

#include <cmath>
#include <limits>

#include "core/format.h"
#include "kernels/nn/attention.h"
#include "ops/infer.h"
#include "ops/nn/attention.h"
#include "ops/pull_back_by_ops.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using Tensors = std::vector<Tensor>;

// The inputs of both ops end with query, key, value and mask; an empty mask means no mask.
struct Inputs {
  const Tensor &query, &key, &value, &mask;

  std::int64_t batch() const { return query.shape()[0]; }
  std::int64_t queries() const { return query.shape()[1]; }
  std::int64_t keys() const { return key.shape()[1]; }
  bool has_mask() const { return mask.shape() != Shape{0}; }
};
Inputs inputs_of(const Call& c, int first) {
  return {c.x[first], c.x[first + 1], c.x[first + 2], c.x[first + 3]};
}

void require_attention(const Call& c, int first) {
  const Inputs in = inputs_of(c, first);
  const std::int64_t heads = c.attrs<AttentionAttrs>().heads;
  for (int i = 0; i < first + 3; ++i)
    require_floating(c, i);
  const DType t = in.query.dtype();
  if (in.key.dtype() != t || in.value.dtype() != t || c.x[0].dtype() != t)
    throw_error<DTypeError>("{}: query, key and value are {}, {} and {}; convert them to one dtype",
                            c.op.name, in.query.spec(), in.key.spec(), in.value.spec());
  const Shape &q = in.query.shape(), &k = in.key.shape(), &v = in.value.shape();
  if (q.ndim() != 3 || k.ndim() != 3 || v.ndim() != 3 || k[0] != q[0] || v[0] != q[0] || k[2] != q[2] ||
      v[1] != k[1])
    throw_error<ShapeError>(
        "{}: query, key and value are not [batch, queries, n], [batch, keys, n] and [batch, keys, m]: they "
        "are {}, {} "
        "and {}",
        c.op.name, in.query.spec(), in.key.spec(), in.value.spec());
  if (heads < 1 || q[2] % heads != 0 || v[2] % heads != 0)
    throw_error<ArgumentError>("{}: heads is {}, which does not divide the depths {} and {}", c.op.name,
                               heads, q[2], v[2]);
  if (in.keys() == 0 && in.queries() != 0 && in.batch() != 0 && v[2] != 0)
    throw_error<ShapeError>("{}: key is {}, which contains no key to attend to", c.op.name, in.key.spec());
  if (in.mask.dtype() != DType::boolean)
    throw_error<DTypeError>("{}: mask is {}; it must be bool", c.op.name, in.mask.spec());
  const Shape scores{in.batch(), heads, in.queries(), in.keys()};
  if (in.has_mask() && (in.mask.ndim() > 4 || !broadcasts_to(in.mask.shape(), scores)))
    throw_error<ShapeError>("{}: mask is {}, which does not broadcast to {}", c.op.name, in.mask.spec(),
                            scores);
}

kernels::Attention kernel_of(const Call& c, int first) {
  const Inputs in = inputs_of(c, first);
  const auto& a = c.attrs<AttentionAttrs>();
  kernels::Attention k{.batch = in.batch(),
                       .heads = a.heads,
                       .queries = in.queries(),
                       .keys = in.keys(),
                       .depth = in.query.shape()[2] / a.heads,
                       .outputs = in.value.shape()[2] / a.heads,
                       .causal = a.causal,
                       .scale = a.scale,
                       .mask = nullptr,
                       .mask_steps = {}};
  if (in.has_mask()) kernels::set_mask(k, in.mask);
  return k;
}

// Reshape [batch, length, heads · n] to [batch, heads, length, n], and back.
Tensor split_heads(const Tensor& x, std::int64_t heads) {
  const Shape& s = x.shape();
  return transpose(reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}
Tensor join_heads(const Tensor& x) {
  const Shape& s = x.shape();
  return reshape(transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

// True where a query may attend to a key, by the mask and the causal order; undefined without restrictions.
Tensor allowed(const AttentionAttrs& a, const Inputs& in) {
  if (!a.causal) return in.has_mask() ? in.mask : Tensor();
  const Tensor last = reshape(arange(in.queries()) + (in.keys() - in.queries()), {-1, 1});
  const Tensor before = less_equal(arange(in.keys()), last);
  return in.has_mask() ? logical_and(in.mask, before) : before;
}

// Computes the results of attention_gradient from ops.
Tensors gradient_by_ops(const AttentionAttrs& a, const Tensors& x) {
  const Inputs in{x[1], x[2], x[3], x[4]};
  const Tensor q = split_heads(in.query, a.heads), k = split_heads(in.key, a.heads),
               v = split_heads(in.value, a.heads), dy = split_heads(x[0], a.heads), at = allowed(a, in);
  const DType t = q.dtype();
  const double lowest = t == DType::f64 ? std::numeric_limits<double>::lowest()
                                        : static_cast<double>(std::numeric_limits<float>::lowest());
  Tensor scores = matmul(q * a.scale, k, {.transpose_b = true});
  if (at.defined()) scores = where(at, scores, lowest);
  const Tensor weights = softmax(scores), dweights = matmul(dy, v, {.transpose_b = true});
  Tensor dscores = weights * (dweights - sum(dweights * weights, {-1}, {.keepdims = true}));
  if (at.defined()) dscores = where(at, dscores, 0.0);
  dscores = dscores * a.scale;
  return {join_heads(matmul(dscores, k)), join_heads(matmul(dscores, q, {.transpose_a = true})),
          join_heads(matmul(weights, dy, {.transpose_a = true}))};
}

Tensors attention_gradient(const AttentionAttrs& a, const Tensors& x);

constexpr Op kDotProductAttention = {
    .name = "dot_product_attention",
    .doc = "For each head, softmax(query keyᵀ scale) value over the keys (Vaswani et al. 2017, equation 1).",
    .args = {"query", "key", "value", "mask"},
    .infer = [](const Call& c) -> Spec {
      require_attention(c, 0);
      const Inputs in = inputs_of(c, 0);
      return {in.query.dtype(), {in.batch(), in.queries(), in.value.shape()[2]}};
    },
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::attention(kernel_of(c, 0), c.x[0], c.x[1], c.x[2], y[0]); },
    .rule = unstacked(Rule::custom({.x = 0b1111},
                                   [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                                     const Tensors g = attention_gradient(
                                         c.attrs<AttentionAttrs>(),
                                         {std::move(dy[0]).dense(), c.x[0], c.x[1], c.x[2], c.x[3]});
                                     for (std::size_t i = 0; i < 3; ++i)
                                       if (c.needs_gradient(static_cast<int>(i))) dx[i] = g[i];
                                   })),
};

constexpr Op kDotProductAttentionGradient = {
    .name = "dot_product_attention_gradient",
    .doc =
        "The adjoint of dot_product_attention: maps a cotangent of its result to cotangents of query, key "
        "and value.",
    .args = {"dy", "query", "key", "value"},
    .infer = [](const Call& c) -> std::vector<Spec> {
      require_attention(c, 1);
      const Inputs in = inputs_of(c, 1);
      if (c.x[0].shape() != Shape{in.batch(), in.queries(), in.value.shape()[2]})
        c.throw_shape_error("dy, query and value do not match");
      return {in.query.spec(), in.key.spec(), in.value.spec()};
    },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::attention_gradient(kernel_of(c, 1), c.x[0], c.x[1], c.x[2], c.x[3], y[0], y[1], y[2]);
        },
    .rule = unstacked(Rule::custom({.x = 0b11111},
                                   [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                                     pull_back_by_ops(c, dy, dx,
                                                      [a = c.attrs<AttentionAttrs>()](const Tensors& x) {
                                                        return gradient_by_ops(a, x);
                                                      });
                                   })),
};

constexpr const Op* attention_table[] = {&kDotProductAttention, &kDotProductAttentionGradient};

Tensors attention_gradient(const AttentionAttrs& a, const Tensors& x) {
  return kDotProductAttentionGradient.run(x, Attrs(a));
}

}   // namespace

Tensor dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                             const DotProductOptions& options) {
  const std::int64_t heads = std::max<std::int64_t>(options.heads, 1);
  const std::int64_t depth = query.ndim() == 3 ? query.shape()[2] / heads : 1;
  const double scale =
      options.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(depth, 1))));
  return kDotProductAttention(query, key, value, mask.defined() ? mask : zeros({0}, DType::boolean),
                              AttentionAttrs{options.heads, options.causal, scale});
}

std::span<const Op* const> attention_ops() { return attention_table; }

}   // namespace tapedeck
