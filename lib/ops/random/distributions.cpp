// Random numbers of distributions that have parameters. In: a key and parameters. Out: for each element the
// quantile of its distribution at a uniform number, so that derivatives in the parameters are those of the
// quantile.
#include <array>

#include "core/format.h"
#include "core/storage.h"
#include "kernels/random/quantile.h"
#include "kernels/random/random.h"
#include "kernels/special/special.h"
#include "op/rules.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "ops/special/of_numbers.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;
using random::Key;

struct DrawAttrs {
  Key key;
  Shape shape;
};
struct CategoricalAttrs {
  Key key;
  std::int64_t n;
};

Spec drawn(const Call& c) {
  const DType dtype = elementwise(c).dtype;
  const Shape& shape = c.attrs<DrawAttrs>().shape;
  for (int i = 0; i < c.x.size(); ++i)
    if (!broadcasts_to(c.x[i].shape(), shape))
      throw_error<ShapeError>("{}: {} does not broadcast to shape: {} is {}, shape is {}", c.op.name,
                              c.op.args[i], c.op.args[i], c.x[i].spec(), shape);
  return {dtype, shape};
}

/// Parameter i as kernels take it: repeated to the shape of y, or one number.
Tensor parameter(const Call& c, int i, const Tensor& y) {
  return c.x[i].size() == 1 ? c.x[i] : broadcast_to(c.x[i], y.shape());
}

/// The second derivative of igamma in a, over the density at y.
Tensor second_over_density(const Tensor& a, const Tensor& y) {
  return igamma_grad_a(a, y, 2) * exp(lgamma(a) + y - (a - 1) * log(y));
}

namespace fn {

constexpr OfNumbers<kernels::gamma_grad, random::gamma_grad> gamma_grad;
constexpr OfNumbers<kernels::second_igamma_grad_over_density, second_over_density> second_over_density;
constexpr OfNumbers<kernels::digamma, tapedeck::digamma> digamma;

}   // namespace fn

/// dy times the partials for each parameter that has a tangent.
void jvp_by(const std::array<Tensor, kMaxInputs>& partials, Refs dx, std::span<Tensor> dy) {
  for (int i = 0; i < dx.size(); ++i) {
    if (!dx[i].defined()) continue;
    const Tensor term = dx[i] * partials[static_cast<std::size_t>(i)];
    dy[0] = dy[0].defined() ? dy[0] + term : term;
  }
}

/// Where y lies at the part p of a normal distribution between low and high, of which p stays: with z, a and
/// b for y, low and high in standard deviations from the mean, φ(z) dz = (1 - p) φ(a) da + p φ(b) db. Bounds
/// of more than 10¹⁸ have no weight, as infinite ones.
std::array<Tensor, kMaxInputs> truncated_normal_partials(const Call& c) {
  const Tensor &mean = c.x[0], &stddev = c.x[1], &y = c.y[0], low = clip(c.x[2], -1e18, 1e18),
               high = clip(c.x[3], -1e18, 1e18);
  Tensor p = allocate(y.spec()), q = allocate(y.spec());
  kernels::probabilities(c.attrs<DrawAttrs>().key, p, q);
  const Tensor z = (y - mean) / stddev, a = (low - mean) / stddev, b = (high - mean) / stddev;
  const Tensor by_low = q * exp((y - low) / stddev * (z + a) * 0.5);
  const Tensor by_high = p * exp((y - high) / stddev * (z + b) * 0.5);
  return {1 - by_low - by_high, z - a * by_low - b * by_high, by_low, by_high};
}

/// The weights of indices, in rows of the last axis, as running sums.
Tensor sums_of(const Call& c) {
  const Tensor& logits = c.x[0];
  const std::int64_t k = logits.shape()[logits.ndim() - 1];
  const Tensor weights = exp(logits - max(logits, {-1}, true));
  Tensor sums = allocate({DType::f64, {logits.size() / k, k}});
  kernels::running_sums(reshape(weights, sums.shape()), sums);
  const double* last = elements<double>(sums) + k - 1;
  for (std::int64_t r = 0; r < sums.shape()[0]; ++r)
    if (!(last[r * k] > 0))
      throw_error<ArgumentError>(
          "categorical: row {} of logits has NaN, infinity or nothing above -infinity: logits is {}", r,
          logits.spec());
  return sums;
}

Spec infer_categorical(const Call& c) {
  const Spec logits = infer_rows(c);
  const std::int64_t n = c.attrs<CategoricalAttrs>().n, k = logits.shape[logits.shape.ndim() - 1];
  if (n < 0) throw_error<ArgumentError>("categorical: n is {}, must not be negative", n);
  Shape shape = logits.shape;
  shape.set(shape.ndim() - 1, n);
  if (k == 0 && shape.size() > 0) throw_shape_error(c, "nothing to choose from");
  return {DType::i64, shape};
}

Tensor drawn_by(const Op& op, const Shape& shape, Key key, std::initializer_list<Operand> parameters) {
  Tensor converted[kMaxInputs];
  const Tensor* x[kMaxInputs];
  promote(parameters, converted, x);
  return op.execute({x, static_cast<int>(parameters.size())}, Attrs(DrawAttrs{key, shape}));
}

constexpr Op table[] = {
    {.name = "gamma",
     .doc = "Numbers of density yᵅ⁻¹ e⁻ʸ / Γ(α), by the inverse of their distribution; the gradient in α is "
            "that of the inverse (Figurnov, Mohamed & Mnih 2018, equation 5).",
     .tensorflow = "RandomGamma StatelessRandomGammaV2 StatelessRandomGammaV3",
     .args = {"alpha"},
     .infer = drawn,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::gamma(c.attrs<DrawAttrs>().key, parameter(c, 0, y[0]), y[0]);
         },
     .rule = custom(
         {.x = 0b1, .y = true},
         [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
           dx[0] = unbroadcast(c, std::move(dy[0]).dense() * random::gamma_grad(c.x[0], c.y[0]), 0);
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) {
           dy[0] = dx[0] * random::gamma_grad(c.x[0], c.y[0]);
         }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3}, 0.2, 9)}, .attrs = Attrs(DrawAttrs{{5}, {37, 3}})},
               {.inputs = {f64(2.5)}, .attrs = Attrs(DrawAttrs{{6}, {}})},
               {.inputs = {ones({2, 1}, DType::f64)}, .attrs = Attrs(DrawAttrs{{}, {2, 0}})},
               {.inputs = {tensor(std::vector<double>{0.5, 3}, {1, 2})},
                .attrs = Attrs(DrawAttrs{{}, {1, 2}}),
                .expected = {tensor(std::vector<double>{1.21206340426864, 3.130867756614801}, {1, 2})},
                .oracle = "np.vectorize(lambda a, p: float(mpmath.findroot(lambda y: mpmath.gammainc(a, 0, "
                          "y, regularized=True) - p, a)))"
                          "(alpha, (np.array([0xe169c58d6627e8d5 >> 12, 0x9b00dbd8bc57ac4c >> 12]) + 0.5) * "
                          "2.0**-52)"}};
         }},

    {.name = "gamma_grad",
     .doc = "The derivative in α of a number y of gamma(α): -∂igamma(α, y)/∂α over the density at y.",
     .tensorflow = "RandomGammaGrad",
     .args = {"alpha", "y"},
     .infer = elementwise,
     .forward = map(fn::gamma_grad),
     // With the density's logarithmic derivatives log y - ψ(α) and (α - 1)/y - 1, and P for igamma.
     .rule = partials([](auto a, auto y,
                         auto g) { return -fn::second_over_density(a, y) - g * (log(y) - fn::digamma(a)); },
                      [](auto a, auto y, auto g) { return fn::digamma(a) - log(y) - g * ((a - 1) / y - 1); }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, 0.5, 4), uniform({2, 3}, 0.5, 4, 1)}},
               {.inputs = {f64({0.5, 1, 2.5, 9}), f64({0.25, 3, 2, 10})},
                .expected = {f64(
                    {0.9080144917641113, 1.937911693824961, 0.9534627029186165, 1.0733233183375006})},
                .oracle = "np.vectorize(lambda a, y: float(-mpmath.diff(lambda t: mpmath.gammainc(t, 0, y, "
                          "regularized=True), a)"
                          " / (y**(a - 1) * mpmath.exp(-y) / mpmath.gamma(a))))(alpha, y)"}};
         }},

    {.name = "poisson",
     .doc = "Counts of probability rᵏ e⁻ʳ / k!, by the inverse of their distribution.",
     .tensorflow = "RandomPoisson RandomPoissonV2 StatelessRandomPoisson",
     .args = {"rate"},
     .infer = drawn,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::poisson(c.attrs<DrawAttrs>().key, parameter(c, 0, y[0]), y[0]);
         },
     .rule = none(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3}, 0.2, 30)}, .attrs = Attrs(DrawAttrs{{5}, {37, 3}})},
               {.inputs = {f64({0.5, 40})},
                .attrs = Attrs(DrawAttrs{{}, {2}}),
                .expected = {f64({1, 42})},
                .oracle = "np.array([np.searchsorted(np.cumsum([float(mpmath.exp(-r) * mpmath.mpf(r)**k / "
                          "mpmath.factorial(k)) for k in range(200)]), u)"
                          " for r, u in zip(rate, (np.array([0xe169c58d6627e8d5 >> 12, 0x9b00dbd8bc57ac4c >> "
                          "12]) + 0.5) * 2.0**-52)])"}};
         }},

    {.name = "binomial",
     .doc = "Successes in n trials of probability p, (n over k) pᵏ (1 - p)ⁿ⁻ᵏ, by the inverse of their "
            "distribution.",
     .tensorflow = "StatelessRandomBinomial",
     .args = {"n", "p"},
     .infer = drawn,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::binomial(c.attrs<DrawAttrs>().key, parameter(c, 0, y[0]), parameter(c, 1, y[0]), y[0]);
         },
     .rule = none(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {tensor(std::vector<double>{9, 100}, {2, 1}), uniform({3}, 0.1, 0.9)},
                .attrs = Attrs(DrawAttrs{{5}, {37, 2, 3}})},
               {.inputs = {f64({7, 100}), f64({0.875, 0.25})},
                .attrs = Attrs(DrawAttrs{{}, {2}}),
                .expected = {f64({7, 26})},
                .oracle = "np.array([np.searchsorted(np.cumsum([float(mpmath.binomial(m, k) * "
                          "mpmath.mpf(s)**k * (1 - mpmath.mpf(s))**(m - k)) for k in range(int(m) + 1)]), u)"
                          " for m, s, u in zip(n, p, (np.array([0xe169c58d6627e8d5 >> 12, 0x9b00dbd8bc57ac4c "
                          ">> 12]) + 0.5) * 2.0**-52)])"}};
         }},

    {.name = "categorical",
     .doc = "n indices for each row of logits, of probability softmax(logits).",
     .tensorflow = "Multinomial StatelessMultinomial",
     .args = {"logits"},
     .infer = infer_categorical,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           if (y[0].size() > 0) kernels::categorical(c.attrs<CategoricalAttrs>().key, sums_of(c), y[0]);
         },
     .rule = none(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({5, 37}, -2, 2)}, .attrs = Attrs(CategoricalAttrs{{5}, 3})},
               {.inputs = {f64({{0, 2, 1}, {-1, -2, 1}})},
                .attrs = Attrs(CategoricalAttrs{{}, 1}),
                .expected = {tensor(std::vector<std::int64_t>{2, 2}, {2, 1})},
                .oracle = "np.array([[np.searchsorted(np.cumsum(np.exp(row)) / np.sum(np.exp(row)), u)]"
                          " for row, u in zip(logits, (np.array([0xe169c58d6627e8d5 >> 12, "
                          "0x9b00dbd8bc57ac4c >> 12]) + 0.5) * 2.0**-52)])"}};
         }},

    {.name = "parameterized_truncated_normal",
     .doc = "Normal numbers of those between low and high, by the inverse of their distribution; the "
            "gradients are those of the inverse.",
     .tensorflow = "ParameterizedTruncatedNormal StatelessParameterizedTruncatedNormal",
     .args = {"mean", "stddev", "low", "high"},
     .infer = drawn,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::parameterized_truncated_normal(c.attrs<DrawAttrs>().key, parameter(c, 0, y[0]),
                                                   parameter(c, 1, y[0]), parameter(c, 2, y[0]),
                                                   parameter(c, 3, y[0]), y[0]);
         },
     .rule = custom(
         {.x = 0b1111, .y = true},
         [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
           const Tensor dy = std::move(dys[0]).dense();
           const auto partials = truncated_normal_partials(c);
           for (int i = 0; i < 4; ++i)
             if (c.needs(i))
               dx[static_cast<std::size_t>(i)] =
                   unbroadcast(c, dy * partials[static_cast<std::size_t>(i)], i);
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) { jvp_by(truncated_normal_partials(c), dx, dy); }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3}, -1, 1), uniform({37, 1}, 0.5, 2), f64(-2), uniform({3}, 1, 3)},
                .attrs = Attrs(DrawAttrs{{5}, {37, 3}})},
               {.inputs = {f64({0, 0}), f64({1, 2}), f64({6, 11}), f64({7, 20})},
                .attrs = Attrs(DrawAttrs{{5}, {2, 2}})},
               {.inputs = {f64({1, 0}), f64({2, 1}), f64({-1, 0.5}), f64({6, 8})},
                .attrs = Attrs(DrawAttrs{{}, {2}}),
                .expected = {f64({3.496263138042001, 1.1664134686928447})},
                .oracle = "np.array([m + s * float(mpmath.sqrt(2) * mpmath.erfinv(2 * (mpmath.ncdf((a - m) / "
                          "s) * (1 - u) + mpmath.ncdf((b - m) / s) * u) - 1))"
                          " for m, s, a, b, u in zip(mean, stddev, low, high, (np.array([0xe169c58d6627e8d5 "
                          ">> 12, 0x9b00dbd8bc57ac4c >> 12]) + 0.5) * 2.0**-52)])"}};
         }},
};

}   // namespace

namespace random {

Tensor gamma(const Shape& shape, Operand alpha, Key key) {
  return drawn_by(find(table, "gamma"), shape, key, {alpha});
}
Tensor gamma_grad(Operand alpha, Operand y) { return find(table, "gamma_grad")(alpha, y); }
Tensor poisson(const Shape& shape, Operand rate, Key key) {
  return drawn_by(find(table, "poisson"), shape, key, {rate});
}
Tensor binomial(const Shape& shape, Operand n, Operand p, Key key) {
  return drawn_by(find(table, "binomial"), shape, key, {n, p});
}
Tensor parameterized_truncated_normal(const Shape& shape, Operand mean, Operand stddev, Operand low,
                                      Operand high, Key key) {
  return drawn_by(find(table, "parameterized_truncated_normal"), shape, key, {mean, stddev, low, high});
}
Tensor categorical(const Tensor& logits, std::int64_t n, Key key) {
  return find(table, "categorical").with(CategoricalAttrs{key, n}, logits);
}

}   // namespace random

std::span<const Op> distributions_ops() { return table; }

}   // namespace tapedeck
