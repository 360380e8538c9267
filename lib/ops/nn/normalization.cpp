// Normalisation. In: activations. Out: activations of a given mean and variance.
#include "tapedeck/ops/normalization.h"

#include <algorithm>

#include "core/format.h"
#include "core/storage.h"
#include "kernels/nn/normalization.h"
#include "ops/axes.h"
#include "ops/nn/normalization.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

double epsilon_of(const Call& c) { return c.attrs<NormAttrs>().epsilon; }

// Throws unless all inputs from `first` on are vectors as long as the last axis of x, which is input i.
void require_rows(const Call& c, int i, int first) {
  const Tensor& x = c.x[i];
  require_floating(c, i);
  if (x.ndim() == 0) c.throw_shape_error(fmt::format("{} needs rank 1 or more", c.op.args[i]));
  require_one_dtype(c);
  for (int k = first; k < c.x.size(); ++k)
    if (c.x[k].shape() != Shape{x.shape()[x.ndim() - 1]})
      c.throw_shape_error(
          fmt::format("{} must be a vector as long as the last axis of {}", c.op.args[k], c.op.args[i]));
}

Spec infer_layer_norm(const Call& c) {
  require_rows(c, 0, 1);
  return c.x[0].spec();
}
std::vector<Spec> infer_gradient(const Call& c) {
  require_rows(c, 1, 2);
  if (c.x[0].shape() != c.x[1].shape()) c.throw_shape_error("dy and x differ in shape");
  return {c.x[1].spec(), c.x[2].spec(), c.x[2].spec()};
}
std::vector<Spec> infer_batch_norm_gradient(const Call& c) {
  std::vector<Spec> specs = infer_gradient(c);
  if (c.x[1].size() == 0) c.throw_shape_error("no elements to take the mean of");
  return specs;
}
std::vector<Spec> infer_batch_norm(const Call& c) {
  require_rows(c, 0, 1);
  if (c.x[0].size() == 0) c.throw_shape_error("no elements to take the mean of");
  return {c.x[0].spec(), c.x[1].spec(), c.x[1].spec(), c.x[1].spec(), c.x[1].spec()};
}

// All axes of x but the last, counted from the end.
Axes all_but_last(const Tensor& x) {
  std::vector<int> axes;
  for (int d = 2; d <= x.ndim(); ++d)
    axes.push_back(-d);
  return axes;
}

/// x̂ = (x - mean) · r with mean 0 and variance 1 along some axes, built from ops, and the derivative of x̂
/// with respect to x. The Jacobian is symmetric, so one function is both the vjp and the jvp. Axes are
/// counted from the end, so that leading axes of stacked derivatives do not shift them.
class Normalised {
 public:
  Normalised(const Tensor& x, Axes axes, double epsilon) : axes_(std::move(axes)) {
    centred_ = x - of_row(x);
    r_ = rsqrt(of_row(square(centred_)) + epsilon);
    x_ = centred_ * r_;
  }
  const Tensor& x() const { return x_; }
  const Tensor& centred() const { return centred_; }
  const Tensor& r() const { return r_; }
  Tensor of_row(const Tensor& g) const { return mean(g, axes_, {.keepdims = true}); }
  Tensor derivative(const Tensor& g) const { return r_ * (g - of_row(g) - x_ * of_row(g * x_)); }

 private:
  Axes axes_;
  Tensor centred_, r_, x_;
};
Normalised rows_of(const Tensor& x, double epsilon) { return {x, -1, epsilon}; }
Normalised channels_of(const Tensor& x, double epsilon) { return {x, all_but_last(x), epsilon}; }

Tensor plus_if(const Tensor& a, const Tensor& b) { return a.defined() ? a + b : b; }

// y = x̂ · scale + offset.
Tensor tangent(const Normalised& n, const Tensor& scale, Refs dx) {
  Tensor dy;
  if (dx[0].defined()) dy = n.derivative(dx[0]) * scale;
  if (dx[1].defined()) dy = plus_if(dy, n.x() * dx[1]);
  if (dx[2].defined()) dy = plus_if(dy, broadcast_to(dx[2], n.x().shape()));
  return dy;
}

std::vector<Tensor> layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& scale,
                                        double epsilon);

// The gradient for stacked cotangents is built from ops.
void layer_norm_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  const Tensor &x = c.x[0], &scale = c.x[1], dy = std::move(dys[0]).dense();
  if (dy.ndim() == x.ndim()) {
    std::vector<Tensor> all = layer_norm_gradient(dy, x, scale, epsilon_of(c));
    for (std::size_t i = 0; i < 3; ++i)
      dx[i] = std::move(all[i]);
    return;
  }
  const Normalised n = rows_of(x, epsilon_of(c));
  const Axes others = all_but_last(x);
  dx[0] = n.derivative(dy * scale);
  dx[1] = sum(dy * n.x(), others);
  dx[2] = sum(dy, others);
}

// u, v and w are the cotangents of dx, dscale and doffset. With N the derivative of x̂, g = dy · scale, and m
// the mean over the normalised axes, the derivative of <u, N g> with respect to x is
// -r (x̂ m(u · N g) + m(g x̂) N u + m(u x̂) N g).
template <Normalised (*normalised)(const Tensor& x, double epsilon)>
void gradient_vjp(const Call& c, std::span<Gradient> cotangents, std::span<Gradient> dx) {
  const Tensor &dy = c.x[0], &x = c.x[1], &scale = c.x[2];
  const Tensor u = std::move(cotangents[0]).dense(), v = std::move(cotangents[1]).dense(),
               w = std::move(cotangents[2]).dense();
  const Normalised n = normalised(x, epsilon_of(c));
  const Tensor nu = n.derivative(u);
  if (c.needs_gradient(0)) dx[0] = scale * nu + n.x() * v + w;
  if (c.needs_gradient(1)) {
    const Tensor g = dy * scale, ng = n.derivative(g);
    dx[1] = n.derivative(dy * v) -
            n.r() * (n.x() * n.of_row(u * ng) + n.of_row(g * n.x()) * nu + n.of_row(u * n.x()) * ng);
  }
  if (c.needs_gradient(2)) dx[2] = sum(dy * nu, all_but_last(x));
}
template <Normalised (*normalised)(const Tensor& x, double epsilon)> constexpr Rule gradient_rule() {
  Rule rule = Rule::custom({.x = 0b111}, gradient_vjp<normalised>);
  rule.stacks = false;
  return rule;
}

double count_of(const Tensor& x) {
  const std::int64_t channels = x.shape()[x.ndim() - 1], count = x.size() / channels;
  return static_cast<double>(count);
}
// Bessel's correction n / (n - 1), for the variance of a sample.
double bessel(const Tensor& x) { return count_of(x) / std::max(count_of(x) - 1, 1.0); }

void run_batch_norm(const Call& c, std::span<Tensor> y) {
  for (const std::size_t k : {0u, 1u, 4u})
    allocate_for(y[k]);
  kernels::batch_norm(c.x[0], c.x[1], c.x[2], epsilon_of(c), y[0], y[1], y[4]);
  y[2] = y[4] * bessel(c.x[0]);
  share_with(y[3], y[1]);
}

std::vector<Tensor> batch_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& scale,
                                        double epsilon);

// Reshapes the gradient of a vector of channels so that it broadcasts with x.
Tensor beside_x(const Tensor& x, Gradient&& of_channels) {
  const Tensor dense = std::move(of_channels).dense();
  Shape shape;
  for (int d = 0; d < x.ndim(); ++d)
    shape.push_back(d == x.ndim() - 1 ? x.shape()[d] : 1);
  return reshape(dense, behind_extra(dense, 1, shape));
}
void batch_norm_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const Tensor &x = c.x[0], &scale = c.x[1];
  const auto none = [](const Gradient& g) { return !g.defined(); };
  if (dy[0].defined() && std::all_of(dy.begin() + 1, dy.end(), none)) {
    const Tensor d = std::move(dy[0]).dense();
    if (d.ndim() == x.ndim()) {
      std::vector<Tensor> all = batch_norm_gradient(d, x, scale, epsilon_of(c));
      for (std::size_t i = 0; i < 3; ++i)
        dx[i] = std::move(all[i]);
      return;
    }
    dy[0] = d;
  }
  const Normalised n = channels_of(x, epsilon_of(c));
  const Axes rows = all_but_last(x);
  Tensor of_x;
  if (dy[0].defined()) {
    const Tensor d = std::move(dy[0]).dense();
    if (c.needs_gradient(0)) of_x = n.derivative(d * scale);
    if (c.needs_gradient(1)) dx[1] = sum(d * n.x(), rows);
    if (c.needs_gradient(2)) dx[2] = sum(d, rows);
  }
  if (!c.needs_gradient(0)) return;
  const double count = count_of(x);
  for (const std::size_t k : {1u, 3u})
    if (dy[k].defined()) of_x = plus_if(of_x, beside_x(x, std::move(dy[k])) * (1 / count) + zeros_like(x));
  if (dy[2].defined())
    of_x = plus_if(of_x, beside_x(x, std::move(dy[2])) * (2 * bessel(x) / count) * n.centred());
  if (dy[4].defined()) of_x = plus_if(of_x, beside_x(x, std::move(dy[4])) * (2 / count) * n.centred());
  if (of_x.defined()) dx[0] = of_x;
}

// The sum of x over the channels up to `radius` away.
Tensor sum_near(const Tensor& x, std::int64_t radius) {
  const int last = x.ndim() - 1;
  const std::int64_t n = x.shape()[last], reach = std::min(radius, std::max<std::int64_t>(n - 1, 0));
  Shape around, begin, size = x.shape();
  for (int d = 0; d <= last; ++d)
    around.push_back(d == last ? reach : 0), begin.push_back(0);
  const Tensor padded = pad(x, around, around);
  std::vector<Tensor> terms;
  for (std::int64_t k = 0; k <= 2 * reach; ++k) {
    begin.set(last, k);
    terms.push_back(slice(padded, begin, size));
  }
  return add_n(std::move(terms));
}
// s = bias + alpha · (the sum of x² over the nearby channels).
Tensor normaliser(const Tensor& x, const LocalResponseNormalizationOptions& o) {
  return o.bias + o.alpha * sum_near(square(x), o.radius);
}
// The derivative of x · s^-beta applied to v, or its transpose.
Tensor local_derivative(const Call& c, const Tensor& v, bool transposed) {
  const Tensor& x = c.x[0];
  const auto& o = c.attrs<LocalResponseNormalizationOptions>();
  const Tensor s = normaliser(x, o), power = pow(s, -o.beta), weight = x * (power / s);
  const Tensor across = transposed ? x * sum_near(weight * v, o.radius) : weight * sum_near(x * v, o.radius);
  return v * power - (2 * o.alpha * o.beta) * across;
}

constexpr Op kLayerNorm = {
    .name = "layer_norm",
    .doc =
        "(x - mean) / √(variance + epsilon) · scale + offset, with the mean and variance along the last "
        "axis (Ba, Kiros and Hinton 2016).",
    .args = {"x", "scale", "offset"},
    .infer = infer_layer_norm,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::layer_norm(c.x[0], c.x[1], c.x[2], epsilon_of(c), y[0]); },
    .rule = Rule::custom({.x = 0b11}, layer_norm_vjp,
                         [](const Call& c, Refs dx, std::span<Tensor> dy) {
                           dy[0] = tangent(rows_of(c.x[0], epsilon_of(c)), c.x[1], dx);
                         }),
};

constexpr Op kLayerNormGradient = {
    .name = "layer_norm_gradient",
    .doc = "The gradients of layer_norm with respect to its inputs, in one pass.",
    .args = {"dy", "x", "scale"},
    .infer = infer_gradient,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::layer_norm_gradient(c.x[0], c.x[1], c.x[2], epsilon_of(c), y[0], y[1], y[2]);
        },
    .rule = gradient_rule<rows_of>(),
};

constexpr Op kBatchNorm = {
    .name = "batch_norm",
    .doc =
        "(x - mean) / √(variance + epsilon) · scale + offset, with the mean and variance over all axes "
        "but the last (Ioffe and Szegedy 2015). The other outputs are the mean, variance · n / (n - 1), "
        "the mean and the variance.",
    .tensorflow = "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3",
    .args = {"x", "scale", "offset"},
    .infer = infer_batch_norm,
    .forward = {run_batch_norm, Outputs::by_kernel},
    .rule = Rule::custom({.x = 0b11}, batch_norm_vjp).accepting_none(),
};

constexpr Op kBatchNormGradient = {
    .name = "batch_norm_gradient",
    .doc =
        "The gradients of batch_norm with respect to its inputs, given the gradient of its first output, in "
        "two passes.",
    .args = {"dy", "x", "scale"},
    .infer = infer_batch_norm_gradient,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::batch_norm_gradient(c.x[0], c.x[1], c.x[2], epsilon_of(c), y[0], y[1], y[2]);
        },
    .rule = gradient_rule<channels_of>(),
};

constexpr Op kLocalResponseNormalization = {
    .name = "local_response_normalization",
    .doc =
        "x / (bias + alpha · s)^beta, where s is the sum of x² over the channels at a distance of at "
        "most `radius`.",
    .tensorflow = "LRN",
    .args = {"x"},
    .infer = infer_rows,
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  const auto& o = c.attrs<LocalResponseNormalizationOptions>();
                  y[0] = c.x[0] * pow(normaliser(c.x[0], o), -o.beta);
                },
                Outputs::by_kernel},
    .rule = Rule::custom(
        {.x = 1},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = local_derivative(c, std::move(dy[0]).dense(), true);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = local_derivative(c, dx[0], false); }),
};

constexpr const Op* normalization_table[] = {&kLayerNorm, &kLayerNormGradient, &kBatchNorm,
                                             &kBatchNormGradient, &kLocalResponseNormalization};

std::vector<Tensor> layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& scale,
                                        double epsilon) {
  const Tensor inputs[] = {dy, x, scale};
  return kLayerNormGradient.run(inputs, NormAttrs{epsilon});
}

std::vector<Tensor> batch_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& scale,
                                        double epsilon) {
  const Tensor inputs[] = {dy, x, scale};
  return kBatchNormGradient.run(inputs, NormAttrs{epsilon});
}

void check_epsilon(std::string_view name, double epsilon) {
  if (!(epsilon >= 0)) throw_error<ArgumentError>("{}: epsilon is {}; use 0 or more", name, epsilon);
}

}   // namespace

Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset, double epsilon) {
  check_epsilon("layer_norm", epsilon);
  return kLayerNorm(x, scale, offset, NormAttrs{epsilon});
}

BatchNorm batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset, double epsilon) {
  check_epsilon("batch_norm", epsilon);
  const Tensor inputs[] = {x, scale, offset};
  std::vector<Tensor> y = kBatchNorm.run(inputs, NormAttrs{epsilon});
  return {std::move(y[0]), std::move(y[1]), std::move(y[2]), std::move(y[3]), std::move(y[4])};
}

Tensor batch_norm_inference(const Tensor& x, const Tensor& scale, const Tensor& offset, const Tensor& mean,
                            const Tensor& variance, double epsilon) {
  check_epsilon("batch_norm_inference", epsilon);
  for (const Tensor* t : {&scale, &offset, &mean, &variance})
    if (x.ndim() == 0 || t->shape() != Shape{x.shape()[x.ndim() - 1]})
      throw_error<ShapeError>(
          "batch_norm_inference: scale, offset, mean and variance must be vectors as long as the last "
          "axis of x: x is {}, they are {}, {}, {} and {}",
          x.spec(), scale.spec(), offset.spec(), mean.spec(), variance.spec());
  const DType t = x.dtype();
  if (!is_floating(t))
    throw_error<DTypeError>("batch_norm_inference: takes f32, f64, f16 or bf16, use astype: x is {}",
                            x.spec());
  for (const Tensor* p : {&scale, &offset, &mean, &variance})
    if (!is_floating(p->dtype()) || computed_in(p->dtype()) != computed_in(t))
      throw_error<DTypeError>(
          "batch_norm_inference: x is {}, scale, offset, mean and variance are {}, {}, {} and {}; use one "
          "dtype, or mix only f32, f16 and bf16",
          x.spec(), scale.spec(), offset.spec(), mean.spec(), variance.spec());
  const auto wide = [](const Tensor& p) { return is_half(p.dtype()) ? astype(p, DType::f32) : p; };
  const Tensor slope = wide(scale) * rsqrt(wide(variance) + epsilon);
  const Tensor y = wide(x) * slope + (wide(offset) - wide(mean) * slope);
  return y.dtype() == t ? y : astype(y, t);
}

Tensor local_response_normalization(const Tensor& x, const LocalResponseNormalizationOptions& options) {
  if (options.radius < 0)
    throw_error<ArgumentError>("local_response_normalization: radius is {}; use 0 or more", options.radius);
  return kLocalResponseNormalization(x, options);
}

std::span<const Op* const> normalization_ops() { return normalization_table; }

}   // namespace tapedeck
