// The library's update rules: what an optimizer keeps, what can be set, and how a step changes the elements
// of a variable x and of its slots s by their gradient g. Coefficients, c, are computed once a step.
#include "optim/rules.h"

#include "core/format.h"
#include "kernels/elementwise/update.h"
#include "kernels/simd/sleef.h"

namespace tapedeck {
namespace {

using namespace domains;
using kernels::rows, kernels::rows_or_zeros, kernels::measured;

using H = const Hyperparameters&;
using InitialSlot = Tensor (*)(const Tensor& value, H h);

constexpr HyperparameterSpec kRate = {"learning_rate", kRequired, finite},
                             kSmallRate = {"learning_rate", 1e-3, finite};
constexpr HyperparameterSpec kBeta1 = {"beta1", 0.9, decay}, kBeta2 = {"beta2", 0.999, decay};
constexpr HyperparameterSpec kAccumulator = {"initial_accumulator_value", 0.1, positive, Change::never};
constexpr HyperparameterSpec kL1 = {"l1", 0, not_negative}, kL2 = {"l2", 0, not_negative};
constexpr HyperparameterSpec kLazy = {"lazy", 0, flag}, kWeightDecay = {"weight_decay", 0, not_negative};
constexpr HyperparameterSpec epsilon(double initial) { return {"epsilon", initial, not_negative}; }
constexpr HyperparameterSpec option(std::string_view name) { return {name, 0, flag, Change::never}; }

// Slots that begin as the i-th hyperparameter, and such as there are where that is not 0.
template <std::size_t i>
constexpr InitialSlot kFrom = [](const Tensor& value, H h) { return full_like(value, h[i]); };
template <std::size_t i> constexpr bool (*kIf)(H h) = [](H h) { return h[i] != 0; };

// What several rules share.

constexpr auto descend = [](auto& x, auto&, const auto& g, const auto* c) { x = xsimd::fnma(c[0], g, x); };

// a = c0·a + c1·g; x -= c2·a + c3·g.
constexpr auto move_with_momentum = [](auto& x, auto& s, const auto& g, const auto* c) {
  s[0] = xsimd::fma(c[0], s[0], c[1] * g);
  x = xsimd::fnma(c[3], g, xsimd::fnma(c[2], s[0], x));
};

constexpr auto divide_by_root_of_sum = [](auto& x, auto& s, const auto& g, const auto* c) {
  s[0] = xsimd::fma(g, g, s[0]);
  x = x - c[0] * g / (xsimd::sqrt(s[0]) + c[1]);
};

// m and v, running means of g and g², by what c0 and c1 leave of them.
constexpr auto take_means = [](auto& s, const auto& g, const auto* c) {
  s[0] = xsimd::fma(c[0], g - s[0], s[0]);
  s[1] = xsimd::fma(c[1], g * g - s[1], s[1]);
};
constexpr auto move_adam = [](auto& x, auto& s, const auto& g, const auto* c) {
  take_means(s, g, c);
  x = x - c[2] * s[0] / (xsimd::sqrt(s[1]) + c[3]);
};
constexpr auto move_amsgrad = [](auto& x, auto& s, const auto& g, const auto* c) {
  take_means(s, g, c);
  s[2] = maximum(s[2], s[1]);
  x = x - c[2] * s[0] / (xsimd::sqrt(s[2]) + c[3]);
};
constexpr auto move_adamw = [](auto& x, auto& s, const auto& g, const auto* c) {
  take_means(s, g, c);
  x = c[5] * x - c[2] * s[0] / xsimd::fma(xsimd::sqrt(s[1]), c[4], c[3]);
};

// c0 moves the means; c1: momentum, c2: rate, c3: epsilon.
template <bool centered> constexpr auto root_mean_square = [](auto& s, const auto& g, const auto* c) {
  s[0] = xsimd::fma(c[0], g * g - s[0], s[0]);
  if constexpr (!centered)
    return s[0];
  else {
    s[2] = xsimd::fma(c[0], g - s[2], s[2]);
    return xsimd::fnma(s[2], s[2], s[0]);
  }
};
template <bool centered> constexpr auto move_rms = [](auto& x, auto& s, const auto& g, const auto* c) {
  x = x - c[2] * g / (xsimd::sqrt(root_mean_square<centered>(s, g, c)) + c[3]);
};
template <bool centered>
constexpr auto move_rms_with_momentum = [](auto& x, auto& s, const auto& g, const auto* c) {
  s[1] = xsimd::fma(c[1], s[1], c[2] * g / xsimd::sqrt(root_mean_square<centered>(s, g, c) + c[3]));
  x = x - s[1];
};

// Lamb's: c2 and c3 correct m and √v, c4 is epsilon, c5 the decay of weights.
constexpr auto direction = [](const auto& x, const auto& s, const auto* c) {
  return xsimd::fma(c[5], x, c[2] * s[0] / xsimd::fma(xsimd::sqrt(s[1]), c[3], c[4]));
};
constexpr auto move_along_direction = [](auto& x, auto& s, const auto&, const auto* c) {
  x = xsimd::fnma(c[6], direction(x, s, c), x);
};

// What is left of p when l1 has drawn it to 0, over what l2 makes of 1.
template <class B> B shrunk(const B& p, const B& l1, const B& l2) {
  return sign(p) * maximum(xsimd::abs(p) - l1, B(0)) / l2;
}

// c0: rate, c1: l1, c2: 2·l2 with beta's part, c3: 1 / rate, c4: 2·shrinkage. power(a) is
// a^-learning_rate_power.
template <class Power> constexpr auto follow_leader(Power) {
  return [](auto& x, auto& s, const auto& g, const auto* c) {
    const Power power;
    const auto sum = xsimd::fma(g, g, s[0]), root = power(sum, c);
    s[1] = s[1] + xsimd::fma(c[4], x, g) - (root - power(s[0], c)) * c[3] * x;
    s[0] = sum;
    x = where(xsimd::abs(s[1]) > c[1], (sign(s[1]) * c[1] - s[1]) / xsimd::fma(root, c[3], c[2]), 0 * c[1]);
  };
}
constexpr auto by_root = follow_leader([](const auto& a, const auto*) { return xsimd::sqrt(a); });
constexpr auto by_power = follow_leader([](const auto& a, const auto* c) { return pow(a, c[5]); });

constexpr ScalarSpec kPower1 = {"beta1_power", [](H h) { return h[1]; }},
                     kPower2 = {"beta2_power", [](H h) { return h[2]; }};
constexpr auto finish_powers = [](Step& s) noexcept { s.scalars[0] *= s.h[1], s.scalars[1] *= s.h[2]; };

constexpr UpdateRule table[] = {
    {.name = "gradient_descent",
     .doc = "x -= learning_rate · g.",
     .hyperparameters = {kRate},
     .prepare = [](Step& s) { s.c = {s.h[0]}; },
     .rows = rows<0>(descend)},

    {.name = "momentum",
     .doc = "a = momentum · a + g; x -= learning_rate · a, or with use_nesterov x -= learning_rate · (g + "
            "momentum · a). Sparse gradients "
            "touch no rows but theirs. Sutskever et al. 2013, equations 1 to 4, in the gradient's scale.",
     .slots = {{"momentum"}},
     .hyperparameters = {kRate, {"momentum", kRequired, finite}, {"use_nesterov", 0, flag}},
     .prepare =
         [](Step& s) {
           if (s.h[2] != 0)
             s.c = {s.h[1], 1, s.h[0] * s.h[1], s.h[0]};
           else
             s.c = {s.h[1], 1, s.h[0], 0};
         },
     .rows = rows<1>(move_with_momentum)},

    {.name = "keras_sgd",
     .doc = "a = momentum · a - learning_rate · g; x += a, or with nesterov x += momentum · a - "
            "learning_rate · g. Without momentum x -= learning_rate · g, "
            "and there is no slot. Sparse gradients touch no rows but theirs. Sutskever et al. 2013, "
            "equations 1 to 4.",
     .slots = {{"momentum", nullptr, kIf<1>}},
     .hyperparameters = {{"learning_rate", 0.01, finite},
                         {"momentum", 0, part, Change::never},
                         {"nesterov", 0, flag}},
     .prepare =
         [](Step& s) {
           if (s.h[1] == 0)
             s.c = {s.h[0]}, s.rows = rows<0>(descend);
           else if (s.h[2] != 0)
             s.c = {s.h[1], -s.h[0], -s.h[1], s.h[0]};
           else
             s.c = {s.h[1], -s.h[0], -1, 0};
         },
     .rows = rows<1>(move_with_momentum)},

    {.name = "adagrad",
     .doc = "a += g²; x -= learning_rate · g / √a. Sparse gradients touch no rows but theirs. Duchi et al. "
            "2011, figure 1 with diagonal matrices.",
     .slots = {{"accumulator", kFrom<1>}},
     .hyperparameters = {kRate, kAccumulator},
     .prepare =
         [](Step& s) {
           s.c = {s.h[0], 0};
         },
     .rows = rows<1>(divide_by_root_of_sum)},

    {.name = "keras_adagrad",
     .doc = "a += g²; x -= learning_rate · g / (√a + epsilon). Sparse gradients touch no rows but theirs. "
            "Duchi et al. 2011.",
     .slots = {{"accumulator", kFrom<1>}},
     .hyperparameters = {kSmallRate,
                         {"initial_accumulator_value", 0.1, not_negative, Change::never},
                         epsilon(1e-7)},
     .prepare =
         [](Step& s) {
           s.c = {s.h[0], s.h[2]};
         },
     .rows = rows<1>(divide_by_root_of_sum)},

    {.name = "adagrad_da",
     .doc = "G += g; A += g²; x = -learning_rate · sign(G) · max(|G| - l1·t, 0) / (l2·t·learning_rate + √A) "
            "in step t, from 1 on. Sparse gradients touch "
            "no rows but theirs. Duchi et al. 2011, dual averaging with diagonal matrices.",
     .slots = {{"gradient_accumulator"}, {"gradient_squared_accumulator", kFrom<1>}},
     .hyperparameters =
         {kRate, {"initial_gradient_squared_accumulator_value", 0.1, positive, Change::never}, kL1, kL2},
     .prepare =
         [](Step& s) {
           const double t = static_cast<double>(s.count);
           s.c = {s.h[0], s.h[2] * t, s.h[3] * t * s.h[0]};
         },
     .rows = rows<3>([](auto& x, auto& s, const auto& g, const auto* c) {
       s[0] = s[0] + g;
       s[1] = xsimd::fma(g, g, s[1]);
       x = -c[0] * shrunk(s[0], c[1], c[2] + xsimd::sqrt(s[1]));
     })},

    {.name = "adadelta",
     .doc = "a and u are running means of g² and d²; d = √(u + epsilon) / √(a + epsilon) · g, with u as it "
            "was; x -= learning_rate · d. Sparse gradients "
            "touch no rows but theirs. Zeiler 2012, algorithm 1.",
     .slots = {{"accum"}, {"accum_update"}},
     .hyperparameters = {kSmallRate, {"rho", 0.95, part}, epsilon(1e-8)},
     .prepare =
         [](Step& s) {
           s.c = {s.h[0], 1 - s.h[1], s.h[2]};
         },
     .rows = rows<3>([](auto& x, auto& s, const auto& g, const auto* c) {
       s[0] = xsimd::fma(c[1], g * g - s[0], s[0]);
       const auto d = xsimd::sqrt((s[1] + c[2]) / (s[0] + c[2])) * g;
       s[1] = xsimd::fma(c[1], d * d - s[1], s[1]);
       x = xsimd::fnma(c[0], d, x);
     })},

    {.name = "adam",
     .doc = "m and v are running means of g and g²; x -= learning_rate·√(1-beta2ᵗ)/(1-beta1ᵗ) · m / (√v + "
            "epsilon), with g zero in "
            "rows that sparse gradients leave out, or, if lazy, without these rows. Kingma and Ba 2015, the "
            "form before section 2.1. With amsgrad the "
            "largest v so far, vhat, in the place of v: Reddi et al. 2018.",
     .slots = {{"m"}, {"v"}, {"vhat", nullptr, kIf<5>}},
     .hyperparameters = {kSmallRate, kBeta1, kBeta2, epsilon(1e-8), kLazy, option("amsgrad")},
     .scalars = {kPower1, kPower2},
     .prepare =
         [](Step& s) {
           s.c = {1 - s.h[1], 1 - s.h[2], s.h[0] * std::sqrt(1 - s.scalars[1]) / (1 - s.scalars[0]), s.h[3]};
           if (s.h[5] != 0) s.rows = s.others = rows_or_zeros<7>(move_amsgrad);
           if (s.h[4] != 0) s.others = {};
         },
     .rows = rows_or_zeros<3>(move_adam),
     .others = rows_or_zeros<3>(move_adam),
     .finish = finish_powers},

    {.name = "adamw",
     .doc = "x -= learning_rate · weight_decay · x; m and v as in adam; x -= learning_rate · m/(1-beta1ᵗ) / "
            "(√(v/(1-beta2ᵗ)) + epsilon). Sparse gradients as in "
            "adam. Loshchilov and Hutter 2019, algorithm 2.",
     .slots = {{"m"}, {"v"}},
     .hyperparameters =
         {kSmallRate, kBeta1, kBeta2, epsilon(1e-8), {"weight_decay", 1e-2, not_negative}, kLazy},
     .scalars = {kPower1, kPower2},
     .prepare =
         [](Step& s) {
           s.c = {1 - s.h[1],
                  1 - s.h[2],
                  s.h[0] / (1 - s.scalars[0]),
                  s.h[3],
                  1 / std::sqrt(1 - s.scalars[1]),
                  1 - s.h[0] * s.h[4]};
           if (s.h[5] != 0) s.others = {};
         },
     .rows = rows_or_zeros<3>(move_adamw),
     .others = rows_or_zeros<3>(move_adamw),
     .finish = finish_powers},

    {.name = "adamax",
     .doc = "m is a running mean of g; v = max(beta2 · v, |g|); x -= learning_rate/(1-beta1ᵗ) · m / (v + "
            "epsilon). Sparse gradients touch no rows but "
            "theirs. Kingma and Ba 2015, algorithm 2.",
     .slots = {{"m"}, {"v"}},
     .hyperparameters = {kSmallRate, kBeta1, kBeta2, epsilon(1e-7)},
     .scalars = {kPower1},
     .prepare =
         [](Step& s) {
           s.c = {1 - s.h[1], s.h[2], s.h[0] / (1 - s.scalars[0]), s.h[3]};
         },
     .rows = rows<3>([](auto& x, auto& s, const auto& g, const auto* c) {
       s[0] = xsimd::fma(c[0], g - s[0], s[0]);
       s[1] = maximum(c[1] * s[1], xsimd::abs(g));
       x = x - c[2] * s[0] / (s[1] + c[3]);
     }),
     .finish = [](Step& s) noexcept { s.scalars[0] *= s.h[1]; }},

    {.name = "nadam",
     .doc = "mu(t) = beta1 · (1 - 0.96^(0.004·t)/2), p(t) = mu(1)·…·mu(t); m and v are running means of g "
            "and g²; x -= learning_rate · ((1 - mu(t)) · g/(1 - p(t)) + "
            "mu(t+1) · m/(1 - p(t+1))) / (√(v/(1-beta2ᵗ)) + epsilon). Sparse gradients: m and v decay in all "
            "rows, x moves in theirs. Dozat 2016.",
     .slots = {{"m"}, {"v"}},
     .hyperparameters = {{"learning_rate", 1e-3, finite, Change::by_hand}, kBeta1, kBeta2, epsilon(1e-7)},
     .scalars = {{"momentum_cache", [](H) { return 1.0; }}, kPower2},
     .prepare =
         [](Step& s) {
           const auto mu = [&](std::int64_t t) {
             return s.h[1] * (1 - 0.5 * std::pow(0.96, 0.004 * static_cast<double>(t)));
           };
           const double mu1 = mu(s.count), mu2 = mu(s.count + 1), p1 = s.scalars[0] * mu1, p2 = p1 * mu2;
           s.c = {1 - s.h[1],
                  1 - s.h[2],
                  s.h[0] * (1 - mu1) / (1 - p1),
                  s.h[0] * mu2 / (1 - p2),
                  1 / std::sqrt(1 - s.scalars[1]),
                  s.h[3]};
         },
     .rows = rows<3>([](auto& x, auto& s, const auto& g, const auto* c) {
       take_means(s, g, c);
       x = x - xsimd::fma(c[3], s[0], c[2] * g) / xsimd::fma(xsimd::sqrt(s[1]), c[4], c[5]);
     }),
     .others = rows_or_zeros<3>([](auto&, auto& s, const auto& g, const auto* c) { take_means(s, g, c); }),
     .finish =
         [](Step& s) noexcept {
           s.scalars[0] *= s.h[1] * (1 - 0.5 * std::pow(0.96, 0.004 * static_cast<double>(s.count)));
           s.scalars[1] *= s.h[2];
         }},

    {.name = "rmsprop",
     .doc = "s is a running mean of g², from 1 on; a = momentum · a + learning_rate · g / √(s + epsilon); x "
            "-= a. If centered, the square of mg, a running mean "
            "of g, is taken from s. Sparse gradients touch no rows but theirs. Tieleman and Hinton 2012, "
            "lecture 6.5; Graves 2013, equations 38 to 45.",
     .slots = {{"rms", [](const Tensor& value, H) { return full_like(value, 1); }},
               {"momentum"},
               {"mg", nullptr, kIf<4>}},
     .hyperparameters =
         {kRate, {"decay", 0.9, part}, {"momentum", 0, finite}, epsilon(1e-10), option("centered")},
     .prepare =
         [](Step& s) {
           s.c = {1 - s.h[1], s.h[2], s.h[0], s.h[3]};
           if (s.h[4] != 0) s.rows = rows<7>(move_rms_with_momentum<true>);
         },
     .rows = rows<3>(move_rms_with_momentum<false>)},

    {.name = "keras_rmsprop",
     .doc = "s is a running mean of g², from 0 on; x -= learning_rate · g / (√s + epsilon), or with momentum "
            "as in rmsprop. If centered, the square of mg, a "
            "running mean of g, is taken from s. Sparse gradients touch no rows but theirs. Tieleman and "
            "Hinton 2012, lecture 6.5.",
     .slots = {{"rms"}, {"momentum", nullptr, kIf<2>}, {"mg", nullptr, kIf<4>}},
     .hyperparameters = {kSmallRate,
                         {"rho", 0.9, part},
                         {"momentum", 0, part, Change::never},
                         epsilon(1e-7),
                         option("centered")},
     .prepare =
         [](Step& s) {
           s.c = {1 - s.h[1], s.h[2], s.h[0], s.h[3]};
           if (s.h[2] != 0)
             s.rows =
                 s.h[4] != 0 ? rows<7>(move_rms_with_momentum<true>) : rows<3>(move_rms_with_momentum<false>);
           else if (s.h[4] != 0)
             s.rows = rows<5>(move_rms<true>);
         },
     .rows = rows<1>(move_rms<false>)},

    {.name = "ftrl",
     .doc = "n = accum + g², q = n^-learning_rate_power; linear += g + 2·l2_shrinkage·x - (q - "
            "accum^-learning_rate_power)/learning_rate · x; accum = n; x is "
            "(sign(linear)·l1 - linear) / (q/learning_rate + 2·l2 + beta/learning_rate) where |linear| > l1, "
            "else 0. Sparse gradients touch no rows but theirs. "
            "McMahan et al. 2013, algorithm 1.",
     .slots = {{"accum", kFrom<2>}, {"linear"}},
     .hyperparameters = {{"learning_rate", kRequired, positive},
                         {"learning_rate_power", -0.5, not_positive},
                         {"initial_accumulator_value", 0.1, not_negative, Change::never},
                         kL1,
                         kL2,
                         {"l2_shrinkage", 0, not_negative},
                         {"beta", 0, not_negative}},
     .prepare =
         [](Step& s) {
           s.c = {s.h[0], s.h[3], 2 * s.h[4] + s.h[6] / s.h[0], 1 / s.h[0], 2 * s.h[5], -s.h[1]};
           if (s.h[1] != -0.5) s.rows = rows<3>(by_power);
         },
     .rows = rows<3>(by_root)},

    {.name = "proximal_gradient_descent",
     .doc = "p = x - learning_rate · g; x = sign(p) · max(|p| - learning_rate·l1, 0) / (1 + "
            "learning_rate·l2). Sparse gradients touch no rows but theirs. "
            "Duchi and Singer 2009.",
     .hyperparameters = {kRate, kL1, kL2},
     .prepare =
         [](Step& s) {
           s.c = {s.h[0], s.h[0] * s.h[1], 1 + s.h[0] * s.h[2]};
         },
     .rows = rows<0>([](auto& x, auto&, const auto& g, const auto* c) {
       x = shrunk(xsimd::fnma(c[0], g, x), c[1], c[2]);
     })},

    {.name = "proximal_adagrad",
     .doc = "a += g²; x as in proximal_gradient_descent, with learning_rate / √a for learning_rate. Sparse "
            "gradients touch no rows but theirs. Duchi et al. 2011.",
     .slots = {{"accumulator", kFrom<1>}},
     .hyperparameters = {kRate, kAccumulator, kL1, kL2},
     .prepare =
         [](Step& s) {
           s.c = {s.h[0], s.h[2], s.h[3]};
         },
     .rows = rows<1>([](auto& x, auto& s, const auto& g, const auto* c) {
       s[0] = xsimd::fma(g, g, s[0]);
       const auto rate = c[0] / xsimd::sqrt(s[0]);
       x = shrunk(xsimd::fnma(rate, g, x), rate * c[1], xsimd::fma(rate, c[2], 0 * rate + 1));
     })},

    {.name = "lamb",
     .doc = "m and v as in adam, r = m/(1-beta1ᵗ) / (√(v/(1-beta2ᵗ)) + epsilon) + weight_decay · x; x -= "
            "learning_rate · |x|/|r| · r, where a norm of 0 makes the "
            "ratio 1. Sparse gradients stand for zeros in other rows. You et al. 2020, algorithm 2.",
     .slots = {{"m"}, {"v"}},
     .hyperparameters = {kSmallRate, kBeta1, kBeta2, {"epsilon", 1e-6, positive}, kWeightDecay},
     .scalars = {kPower1, kPower2},
     .prepare =
         [](Step& s) {
           s.c = {1 - s.h[1], 1 - s.h[2], 1 / (1 - s.scalars[0]), 1 / std::sqrt(1 - s.scalars[1]),
                  s.h[3],     s.h[4]};
         },
     .rows = rows_or_zeros<3>(move_along_direction),
     .others = rows_or_zeros<3>(move_along_direction),
     .measure = measured<3>([](auto& x, auto& s, const auto& g, const auto* c, auto& sums) {
       take_means(s, g, c);
       const auto r = direction(x, s, c);
       sums[0] = xsimd::fma(x, x, sums[0]);
       sums[1] = xsimd::fma(r, r, sums[1]);
     }),
     .scale =
         [](Step& s, const RowSums& sums) noexcept {
           s.c[6] = s.h[0] * (sums[0] > 0 && sums[1] > 0 ? std::sqrt(sums[0] / sums[1]) : 1);
         },
     .finish = finish_powers},

    {.name = "lion",
     .doc = "x -= learning_rate · (sign(beta1 · m + (1-beta1) · g) + weight_decay · x); then m is a running "
            "mean of g, by beta2. Sparse gradients touch no rows "
            "but theirs. Chen et al. 2023, algorithm 2.",
     .slots = {{"m"}},
     .hyperparameters = {{"learning_rate", 1e-4, finite}, kBeta1, {"beta2", 0.99, decay}, kWeightDecay},
     .prepare =
         [](Step& s) {
           s.c = {1 - s.h[1], 1 - s.h[2], s.h[0], 1 - s.h[0] * s.h[3]};
         },
     .rows = rows<1>([](auto& x, auto& s, const auto& g, const auto* c) {
       const auto d = g - s[0];
       x = xsimd::fnma(c[2], sign(xsimd::fma(c[0], d, s[0])), c[3] * x);
       s[0] = xsimd::fma(c[1], d, s[0]);
     })},
};

}   // namespace

std::span<const UpdateRule> update_rules() { return table; }

const UpdateRule& find_rule(std::string_view name) {
  for (const UpdateRule& rule : table)
    if (rule.name == name) return rule;
  throw_error<ArgumentError>("optimizer: there is no update rule \"{}\"; use one of {}", name, listed(table));
}

}   // namespace tapedeck
