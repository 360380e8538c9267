// The losses of nn/losses.h: values compared with torch 1.13, derivatives compared with differences, and the
// behaviour at the ends of their domains.
#include "tapedeck/nn/losses.h"

#include <catch2/catch.hpp>
#include <functional>

#include "closeness.h"
#include "message_of.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/tapedeck.h"
#include "values.h"

namespace losses_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

// The names that the oracles use. y, q: real numbers; c: counts, m: their means; z: binary labels, p:
// probabilities; x: logits, l: classes, k: their weights; d: distributions, w: scores above 0; s: signs; v:
// variances.
const Tensor y = matrix({{1.5, -2, 0.5}, {3, 0.25, -4}}), q = matrix({{1, -1.5, 2.5}, {-30, 0.75, -4.25}});
const Tensor c = matrix({{2, 0, 1}, {5, 3, 0.5}}), m = matrix({{1.5, 0.25, 1}, {4, 3.5, 2}});
const Tensor z = matrix({{0, 1, 1}, {1, 0, 0.25}}), p = matrix({{0.1, 0.8, 0.6}, {0.9, 0.3, 0.5}});
const Tensor x = matrix({{-3, 2, 0.5}, {4, -1, 0.25}}), l = tensor({2, 1}), k = f64({0.5, 2, 1.5});
const Tensor d = matrix({{0.2, 0.5, 0.3}, {0, 1, 0}}), w = matrix({{0.2, 0.4, 0.6}, {0.5, 1.5, 0.5}});
const Tensor s = matrix({{1, -1, 1}, {-1, -1, 1}}), v = matrix({{0.5, 2, 1}, {3, 0.25, 1.5}});

using Inputs = std::vector<Tensor>;

struct LossCase {
  std::string_view name;
  TensorFunction f;
  Inputs inputs;
  Values expected;
  std::string_view oracle;   // of torch.nn.functional, F, and torch.Tensor
  bool labels_vary = true;   // false: the loss is not smooth at these labels
};

template <class... Options>
TensorFunction loss(Tensor (*f)(const Tensor&, const Tensor&, Options...), std::decay_t<Options>... options) {
  return [=](const Inputs& in) { return f(in[0], in[1], options...); };
}

const LossCase cases[] = {
    {"mean_absolute_error",
     loss(nn::mean_absolute_error),
     {y, q},
     {1, 11.25},
     "F.l1_loss(q, y, reduction='none').mean(-1)"},
    {"mean_absolute_percentage_error",
     loss(nn::mean_absolute_percentage_error),
     {y, q},
     {152.777777777778, 435.416666666667},
     "100 * ((y - q) / y).abs().mean(-1)"},
    {"mean_squared_logarithmic_error",
     loss(nn::mean_squared_logarithmic_error),
     {c, m},
     {0.0276780648549629, 0.175855669159469},
     "((1 + c).log() - (1 + m).log()).square().mean(-1)",
     false},
    {"log_cosh",
     loss(nn::log_cosh),
     {y, q},
     {0.521743920424806, 10.8192990433395},
     "(q - y).cosh().log().mean(-1)"},
    {"smooth_l1_loss",
     loss(nn::smooth_l1_loss, 0.75),
     {y, q},
     {0.652777777777778, 10.9444444444444},
     "F.smooth_l1_loss(q, y, beta=0.75, reduction='none').mean(-1)"},
    {"smooth_l1_loss, beta 0",
     loss(nn::smooth_l1_loss, 0),
     {y, q},
     {1, 11.25},
     "F.smooth_l1_loss(q, y, beta=0, reduction='none').mean(-1)"},
    {"binary_cross_entropy",
     loss(nn::binary_cross_entropy, {}),
     {z, p},
     {0.279776563579342, 0.385060880052168},
     "F.binary_cross_entropy(p, z, reduction='none').mean(-1)"},
    {"binary_cross_entropy, smooth",
     loss(nn::binary_cross_entropy, {.label_smoothing = 0.2}),
     {z, p},
     {0.412742698464818, 0.486544961309615},
     "F.binary_cross_entropy(p, 0.8 * z + 0.1, reduction='none').mean(-1)"},
    {"categorical_cross_entropy",
     loss(nn::categorical_cross_entropy, {}),
     {d, w},
     {1.11560219234765, 0.510825623765991},
     "F.cross_entropy(w.log(), d, reduction='none')"},
    {"categorical_cross_entropy, smooth",
     loss(nn::categorical_cross_entropy, {.label_smoothing = 0.25}),
     {d, w},
     {1.13532822246541, 0.693927671877342},
     "F.cross_entropy(w.log(), d, reduction='none', label_smoothing=0.25)"},
    {"sparse_categorical_cross_entropy",
     loss(nn::sparse_categorical_cross_entropy, {}),
     {l, w},
     {0.693147180559945, 0.510825623765991},
     "F.cross_entropy(w.log(), l, reduction='none')"},
    {"nll_loss",
     loss(nn::nll_loss, {}),
     {l, log_softmax(x)},
     {1.70690693367341, 5.02980701692411},
     "F.cross_entropy(x, l, reduction='none')"},
    {"nll_loss, weights",
     loss(nn::nll_loss, {.ignore_index = 1, .class_weights = k}),
     {l, log_softmax(x)},
     {2.56036040051012, 0},
     "F.cross_entropy(x, l, weight=k, ignore_index=1, reduction='none')"},
    {"binary_focal_cross_entropy",
     loss(nn::binary_focal_cross_entropy, {}),
     {z, p},
     {0.0305704823372351, 0.0688137150836835},
     "(F.binary_cross_entropy(p, z, reduction='none') * (1 - z * p - (1 - z) * (1 - p)) ** 2).mean(-1)"},
    {"binary_focal_cross_entropy of logits",
     loss(nn::binary_focal_cross_entropy, {.gamma = 1.5, .alpha = 0.25, .logits = true}),
     {z, x},
     {0.00972536659138703, 0.0724842862934289},
     "(F.binary_cross_entropy_with_logits(x, z, reduction='none') * (1 - z * x.sigmoid() - (1 - z) * (1 - "
     "x.sigmoid())) ** 1.5 * (0.25 * z + 0.75 * (1 - z))).mean(-1)"},
    {"categorical_focal_cross_entropy",
     loss(nn::categorical_focal_cross_entropy, {}),
     {d, w},
     {0.544977584527695, 0.0817320998025585},
     "-(d * (1 - n) ** 2 * n.log()).sum(-1) of n = w / w.sum(-1)"},
    {"categorical_focal_cross_entropy of logits",
     loss(nn::categorical_focal_cross_entropy, {.gamma = 1.5, .alpha = 0.25, .logits = true}),
     {d, x},
     {0.35510947274975, 1.24513620683329},
     "-0.25 * (d * (1 - x.softmax(-1)) ** 1.5 * x.log_softmax(-1)).sum(-1)"},
    {"kl_divergence",
     loss(nn::kl_divergence),
     {d, p},
     {-0.304316532678862, 1.20397280432594},
     "F.kl_div(p.log(), d, reduction='none').sum(-1)",
     false},
    {"poisson",
     loss(nn::poisson),
     {c, m},
     {0.646356516816782, -0.512111512359938},
     "F.poisson_nll_loss(m, c, log_input=False, eps=1e-7, reduction='none').mean(-1)"},
    {"gaussian_nll_loss",
     [](const Inputs& in) { return nn::gaussian_nll_loss(in[0], in[1], in[2]); },
     {y, q, v},
     {0.770833333333333, 60.6932416170538},
     "F.gaussian_nll_loss(q, y, v, reduction='none').mean(-1)"},
    {"gaussian_nll_loss, full",
     [](const Inputs& in) { return nn::gaussian_nll_loss(in[0], in[1], in[2], {.full = true}); },
     {y, q, v},
     {1.68977186653801, 61.6121801502585},
     "F.gaussian_nll_loss(q, y, v, full=True, reduction='none').mean(-1)"},
    {"cosine_similarity",
     loss(nn::cosine_similarity),
     {y, q},
     {-0.731727477422145, 0.479871124287594},
     "-F.cosine_similarity(y, q)"},
    {"hinge",
     loss(nn::hinge),
     {s, y},
     {0.166666666666667, 3.41666666666667},
     "(1 - s * y).clamp(min=0).mean(-1)"},
    {"squared_hinge",
     loss(nn::squared_hinge),
     {s, y},
     {0.0833333333333333, 14.1875},
     "(1 - s * y).clamp(min=0).square().mean(-1)"},
    {"categorical_hinge",
     loss(nn::categorical_hinge),
     {d, x},
     {1.45, 6},
     "(1 + ((1 - d) * x).amax(-1) - (d * x).sum(-1)).clamp(min=0)",
     false},
    {"triplet_margin_loss",
     [](const Inputs& in) { return nn::triplet_margin_loss(in[0], in[1], in[2], 40); },
     {x, y, q},
     {40.3418893007759, 10.2003556745274},
     "F.triplet_margin_loss(x, y, q, margin=40, reduction='none')"},
};

}   // namespace

TEST_CASE("losses have the values of torch, in f64 and f32", "[losses]") {
  for (const LossCase& of : cases) {
    INFO(of.name << ": " << of.oracle);
    CHECK_THAT(of.f(of.inputs).to_vector(), Catch::Matchers::Approx(of.expected).epsilon(1e-13));
    Inputs narrow;
    for (const Tensor& t : of.inputs)
      narrow.push_back(is_floating(t.dtype()) ? astype(t, DType::f32) : t);
    const Tensor loss = of.f(narrow);
    CHECK(loss.dtype() == DType::f32);
    CHECK_THAT(loss.to_vector(), Catch::Matchers::Approx(of.expected).epsilon(1e-5));
  }
}

TEST_CASE("losses have derivatives of first and second order", "[losses]") {
  for (const LossCase& of : cases) {
    INFO(of.name);
    CHECK(check_gradients(of.f, of.inputs, {.held = of.labels_vary ? 0u : 1u}));
  }
  CHECK(check_gradients(loss(nn::kl_divergence), {p, w}));
  CHECK(check_gradients(loss(nn::mean_squared_logarithmic_error), {w, m}));
  CHECK(check_gradients(loss(nn::categorical_hinge), {w, x}));
  const auto of_weights = [](const Inputs& in) { return nn::nll_loss(l, in[0], {.class_weights = in[1]}); };
  CHECK(check_gradients(of_weights, {log_softmax(x), k}));
}

TEST_CASE("losses are finite at the ends, with finite gradients", "[losses]") {
  const auto is_finite = [](const Tensor& x) { return sum(x * 0.0).item() == 0; };
  const auto finite = [&](const TensorFunction& f, const Inputs& at) {
    const auto of_predictions = [&](const Tensor& p) { return f({at[0], p}); };
    return is_finite(f(at)) && is_finite(grad(of_predictions, at[1]).dense());
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto at = [&](std::initializer_list<double> v) { return tensor(v, dtype); };
    const Tensor one = at({0, 1e30, 0, -1e30}), bits = at({0, 1, 0, 1}), certain = at({0, 0, 1, 1}),
                 far = at({-1e30, -1e30, 1e30, 1e30});
    for (const double gamma : {0.0, 0.5, 2.0}) {
      CHECK(finite(loss(nn::binary_focal_cross_entropy, {.gamma = gamma}), {bits, certain}));
      CHECK(finite(loss(nn::binary_focal_cross_entropy, {.gamma = gamma, .logits = true}), {bits, far}));
      CHECK(finite(loss(nn::categorical_focal_cross_entropy, {.gamma = gamma}), {bits, certain}));
      CHECK(finite(loss(nn::categorical_focal_cross_entropy, {.gamma = gamma, .logits = true}), {bits, one}));
    }
    CHECK(finite(loss(nn::binary_cross_entropy, {}), {bits, certain}));
    CHECK(finite(loss(nn::categorical_cross_entropy, {}), {bits, certain}));
    CHECK(finite(loss(nn::sparse_categorical_cross_entropy, {}), {tensor(0), certain}));
    CHECK(finite(loss(nn::kl_divergence), {bits, certain}));
    CHECK(finite(loss(nn::poisson), {bits, certain}));
    CHECK(finite(loss(nn::log_cosh), {bits, far}));
    CHECK(finite(loss(nn::mean_squared_logarithmic_error), {bits, far}));
    CHECK(finite(loss(nn::mean_absolute_percentage_error), {bits, certain}));
    CHECK(finite(loss(nn::cosine_similarity), {bits, zeros({4}, dtype)}));
    CHECK(finite(loss(nn::cosine_similarity), {bits, far}));
    CHECK(
        finite([](const Inputs& in) { return nn::triplet_margin_loss(in[0], in[0], in[1]); }, {bits, bits}));
  }
}

TEST_CASE("losses stay accurate for large and small numbers", "[losses]") {
  // log cosh e is e² / 2 - e⁴ / 12 + …; of large errors |e| - log 2.
  CHECK(nn::log_cosh(f64({0}), f64({1e-6})).item() == Approx(5e-13).epsilon(1e-11));
  CHECK(nn::log_cosh(f64({0}), f64({-1e5})).item() == Approx(1e5 - std::log(2)).epsilon(1e-15));
  const auto slope = [](double e) {
    return grad([](const Tensor& p) { return nn::log_cosh(f64({0}), p); }, f64({e})).dense().item();
  };
  for (const double e : {1e-9, -0.5, 19.9, 20.0, 20.1, -1e5})
    CHECK(slope(e) == Approx(std::tanh(e)).epsilon(1e-14));

  for (const double scale : {1e-160, 1.0, 1e160})
    CHECK(nn::cosine_similarity(f64({3, 4}), f64({4 * scale, 3 * scale})).item() ==
          Approx(-0.96).epsilon(1e-14));
  CHECK(nn::cosine_similarity(f64({3, 4}), f64({0, 0})).item() == 0);

  CHECK(nn::binary_cross_entropy(f64({1}), f64({0})).item() == Approx(7 * std::log(10)));
  CHECK(nn::binary_cross_entropy(f64({1}), f64({0}), {.epsilon = 1e-30}).item() == Approx(30 * std::log(10)));
  CHECK(nn::kl_divergence(f64({0, 1}), f64({0, 1})).item() == 0);
}

TEST_CASE("labels are converted to the dtype of predictions", "[losses]") {
  const Tensor bits = tensor({{1, 0}, {1, 1}}), predictions = tensor({{0.75, 0.25}, {0.5, 0.125}});
  const Tensor expected = nn::binary_cross_entropy(tensor({{1.0, 0.0}, {1.0, 1.0}}), predictions);
  for (const DType dtype : {DType::boolean, DType::u8, DType::i64, DType::f64})
    CHECK(same_bits(nn::binary_cross_entropy(astype(bits, dtype), predictions), expected));
}

TEST_CASE("examples of the ignored label have no loss and no gradient", "[losses]") {
  const nn::ClassLabelOptions options = {.ignore_index = -100};
  const Tensor labels = tensor({1, -100, 0}), scores = log_softmax(matrix({{1, 2}, {3, -INFINITY}, {0, 0}}));
  const auto f = [&](const Tensor& x) { return nn::nll_loss(labels, x, options); };
  CHECK_THAT(f(scores).to_vector(), Catch::Matchers::Approx(Values{0.313261687518223, 0, 0.693147180559945}));
  CHECK(grad(f, scores).dense().to_vector() == Values{0, -1, 0, 0, -1, 0});
  const Tensor probabilities = matrix({{1, 3}, {0, 0}, {1, 1}});
  CHECK_THAT(nn::sparse_categorical_cross_entropy(labels, probabilities, options).to_vector(),
             Catch::Matchers::Approx(Values{std::log(4. / 3), 0, std::log(2)}));
  const auto g = [&](const Tensor& x) { return nn::sparse_categorical_cross_entropy(labels, x, options); };
  CHECK_THAT(grad(g, probabilities).dense().to_vector(),
             Catch::Matchers::Approx(Values{0.25, -1. / 12, 0, 0, -0.5, 0.5}));
  const auto of_weights = [&](const Tensor& w) {
    return nn::nll_loss(labels, scores, {.ignore_index = -100, .class_weights = w});
  };
  CHECK_THAT(grad(of_weights, f64({1, 2})).dense().to_vector(),
             Catch::Matchers::Approx(Values{0.693147180559945, 0.313261687518223}));
}

TEST_CASE("smooth labels are for losses of logits", "[losses]") {
  CHECK_THAT(nn::smooth_labels(f64({0, 1, 0, 0}), 0.2, 4).to_vector(),
             Catch::Matchers::Approx(Values{0.05, 0.85, 0.05, 0.05}));
  CHECK(worst(softmax_cross_entropy(nn::smooth_labels(d, 0.25, 3), log(w)),
              nn::categorical_cross_entropy(d, w, {.label_smoothing = 0.25})) < 1e-15);
  CHECK(worst(mean(sigmoid_cross_entropy(nn::smooth_labels(z, 0.2, 2), x), -1),
              nn::binary_cross_entropy(z, sigmoid(x), {.label_smoothing = 0.2})) < 1e-15);
}

TEST_CASE("losses of no examples are empty", "[losses]") {
  const Tensor none = zeros({0, 3});
  CHECK(nn::hinge(none, none).shape() == Shape{0});
  CHECK(nn::categorical_hinge(none, none).shape() == Shape{0});
  CHECK(nn::cosine_similarity(none, none).shape() == Shape{0});
  CHECK(nn::nll_loss(zeros({0}, DType::i32), none).shape() == Shape{0});

  const Tensor empty = zeros({2, 0});
  CHECK(nn::cosine_similarity(empty, empty).to_vector() == Values{0, 0});
  CHECK(grad([&](const Tensor& x) { return nn::cosine_similarity(x, empty); }, empty).dense().shape() ==
        Shape{2, 0});
  CHECK(message_of<ShapeError>([&] { nn::categorical_hinge(empty, empty); }) ==
        "categorical_hinge: predictions is f32[2,0]; use at least one class");
}

TEST_CASE("errors of losses name the loss", "[losses]") {
  const Tensor row = tensor({1.0, 2.0}), column = tensor({{1.0}, {2.0}}), labels = tensor({0, 3});
  using S = ShapeError;
  using D = DTypeError;
  using A = ArgumentError;
  CHECK(message_of<S>([&] { nn::poisson(row, column); }) ==
        "poisson: labels and predictions do not have one shape of rank 1 or more: labels is f32[2], "
        "predictions is f32[2,1]; use squeeze(predictions, 1)");
  CHECK(message_of<S>([&] { nn::hinge(tensor(1.0), tensor(1.0)); }) ==
        "hinge: labels and predictions do not have one shape of rank 1 or more: labels is f32[], predictions "
        "is "
        "f32[]; reshape one of them");
  CHECK(message_of<D>([&] { nn::log_cosh(labels, labels); }) ==
        "log_cosh: predictions is i32[2]; use a floating-point dtype");
  CHECK(message_of<D>([&] { nn::hinge(astype(row, DType::c64), row); }) ==
        "hinge: labels is c64[2]; use real numbers");
  CHECK(message_of<A>([&] { nn::smooth_l1_loss(row, row, -1); }) ==
        "smooth_l1_loss: beta is -1; use 0 or more");
  CHECK(message_of<A>([&] { nn::binary_cross_entropy(row, row, {.label_smoothing = 2}); }) ==
        "binary_cross_entropy: label_smoothing is 2; use a number from 0 to 1");
  CHECK(message_of<A>([&] { nn::categorical_cross_entropy(row, row, {.epsilon = 0}); }) ==
        "categorical_cross_entropy: epsilon is 0; use a number between 0 and 0.5");
  CHECK(message_of<D>([&] { nn::smooth_labels(labels, 0.1, 2); }) ==
        "smooth_labels: labels is i32[2]; use a floating-point dtype");
  CHECK(message_of<A>([&] { nn::smooth_labels(row, 0.1, 0); }) ==
        "smooth_labels: classes is 0; use 1 or more");
  CHECK(message_of<A>([&] { nn::binary_focal_cross_entropy(row, row, {.gamma = -1}); }) ==
        "binary_focal_cross_entropy: gamma is -1; use 0 or more");
  CHECK(message_of<A>([&] { nn::categorical_focal_cross_entropy(row, row, {.alpha = 1.5}); }) ==
        "categorical_focal_cross_entropy: alpha is 1.5; use a number from 0 to 1");
  CHECK(message_of<A>([&] { nn::gaussian_nll_loss(row, row, row, {.epsilon = 0}); }) ==
        "gaussian_nll_loss: epsilon is 0; use a positive number");
  CHECK(message_of<S>([&] { nn::gaussian_nll_loss(row, row, column); }) ==
        "gaussian_nll_loss: means and variances differ: means is f32[2], variances is f32[2,1]; use "
        "squeeze(variances, 1)");
  CHECK(message_of<S>([&] { nn::triplet_margin_loss(row, row, column); }) ==
        "triplet_margin_loss: the three do not have one dtype and one shape of rank 1 or more: anchor is "
        "f32[2], "
        "positive is f32[2], negative is f32[2,1]; use squeeze(negative, 1)");

  const Tensor scores = zeros({2, 3});
  CHECK(message_of<D>([&] { nn::nll_loss(row, scores); }) ==
        "nll_loss: labels is f32[2]; use indices of classes, i32 or i64");
  CHECK(message_of<S>([&] { nn::nll_loss(labels, row); }) ==
        "nll_loss: labels do not have the shape of predictions without its last axis: labels is i32[2], "
        "predictions is f32[2]; reshape one of them");
  CHECK(message_of<S>([&] { nn::nll_loss(labels, scores); }) ==
        "nll_loss: labels are from 0 to 3, out of range for 3 classes");
  const Tensor one = ones({2}), wide = ones({2}, DType::f64);
  CHECK(message_of<DTypeError>([&] { nn::gaussian_nll_loss(one, one, wide); }) ==
        "gaussian_nll_loss: means is f32[2], variances is f64[2]; use astype");
  CHECK(message_of<DTypeError>([&] { nn::triplet_margin_loss(one, one, wide); }) ==
        "triplet_margin_loss: anchor is f32[2], positive is f32[2], negative is f64[2]; use astype");
  CHECK(message_of<S>([&] { nn::sparse_categorical_cross_entropy(labels, scores, {.ignore_index = 0}); }) ==
        "sparse_categorical_cross_entropy: labels are from 0 to 3, out of range for 3 classes");
  CHECK(message_of<S>([&] {
          nn::nll_loss(tensor({0, 1}), scores, {.class_weights = row});
        }) == "nll_loss: class_weights is f32[2] for 3 classes");
}

}   // namespace losses_test
