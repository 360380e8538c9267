// The library's update rules. A formula gets batches of a variable x, of its slots and of the gradient g, and
// h: the hyperparameters by name, followed by constants that the rule's prepare computes once a step.
#include <fmt/format.h>

#include "core/format.h"
#include "kernels/simd/sleef.h"
#include "optim/rule_entry.h"
#include "tape/variable.h"
#include "tapedeck/keras.h"

namespace tapedeck {
namespace update_rules {   // since names of hyperparameters and of optimizers collide
namespace {

using namespace domains;

// Arithmetic for the formulas.

template <class T, class... Rest> struct BatchAmong : std::type_identity<T> {};
template <class... Rest> struct BatchAmong<Number, Rest...> : BatchAmong<Rest...> {};

// a·b + c and c - a·b, rounded once if the machine has a fused instruction.
template <class A, class B, class C> auto fused_add(const A& a, const B& b, const C& c) {
  using V = typename BatchAmong<A, B, C>::type;
  return detail::fma(V(a), V(b), V(c));
}
template <class A, class B, class C> auto fused_sub(const A& a, const B& b, const C& c) {
  using V = typename BatchAmong<A, B, C>::type;
  return detail::fma(-V(a), V(b), V(c));
}

// decay · mean + (1 - decay) · value
template <class V> V running_mean(const V& mean, const V& value, Number decay) {
  return fused_add(1 - decay, value - mean, mean);
}

// p, moved towards 0 by l1, then divided by l2.
template <class V>
V proximal(const V& p, const std::type_identity_t<V>& l1, const std::type_identity_t<V>& l2) {
  return sign(p) * maximum(xsimd::abs(p) - l1, V(0)) / l2;
}

// For rules whose formula uses the hyperparameters unchanged.
constexpr auto as_given = [](auto&, Step&) {};

// All hyperparameters: name, domain, member of the option structs.
constexpr auto kRate = known("learning_rate", not_negative, [](auto& o) { return o.learning_rate; });
constexpr auto kMomentum = known("momentum", finite, [](auto& o) { return o.momentum; });
constexpr auto kAccumulator = known("initial_accumulator_value", positive, [](auto& o) {
                                return o.initial_accumulator_value;
                              }).changes(Change::never);
constexpr auto kL1 = known("l1", not_negative, [](auto& o) { return o.l1; });
constexpr auto kL2 = known("l2", not_negative, [](auto& o) { return o.l2; });
constexpr auto kBeta1 = known("beta1", decay, [](auto& o) { return o.beta1; });
constexpr auto kBeta2 = known("beta2", decay, [](auto& o) { return o.beta2; });
constexpr auto kEpsilon = known("epsilon", not_negative, [](auto& o) { return o.epsilon; });
constexpr auto kWeightDecay = known("weight_decay", not_negative, [](auto& o) { return o.weight_decay; });
constexpr auto kLazy = known("lazy", flag, [](auto& o) { return o.lazy; });
constexpr auto kCentered = known("centered", flag, [](auto& o) { return o.centered; }).changes(Change::never);
constexpr auto kMeanSquare = known("initial_mean_square", not_negative, [](auto& o) {
                               return o.initial_mean_square;
                             }).changes(Change::never);
constexpr auto kUseNesterov = known("use_nesterov", flag, [](auto& o) { return o.use_nesterov; });
constexpr auto kNesterov = known("nesterov", flag, [](auto& o) { return o.use_nesterov; });
constexpr auto kSquaresAccumulator =
    known("initial_gradient_squared_accumulator_value", positive, [](auto& o) {
      return o.initial_gradient_squared_accumulator_value;
    }).changes(Change::never);
constexpr auto kRho = known("rho", part, [](auto& o) { return o.rho; });
constexpr auto kAmsgrad = known("amsgrad", flag, [](auto& o) { return o.amsgrad; }).changes(Change::never);
constexpr auto kDecay = known("decay", part, [](auto& o) { return o.decay; });
constexpr auto kRhoOfKeras = known("rho", part, [](auto& o) { return o.decay; });
constexpr auto kPower =
    known("learning_rate_power", not_positive, [](auto& o) { return o.learning_rate_power; });
constexpr auto kL2Shrinkage = known("l2_shrinkage", not_negative, [](auto& o) { return o.l2_shrinkage; });
constexpr auto kBeta = known("beta", not_negative, [](auto& o) { return o.beta; });
// The number of steps before this one, or -1 for the optimizer's own count.
constexpr Domain count_or_none = {"a whole number of 0 or more, or -1 for the optimizer's own count",
                                  [](double h) { return h >= -1 && h < 0x1p53 && h == std::floor(h); }};
constexpr auto kGlobalStep = known("global_step", count_or_none, [](auto& o) -> Scheduled {
  if (!o.global_step) return -1;
  return [v = *o.global_step] { return v.cell().value.item(); };
});

// begins_as<i>: the initial value of the slot is hyperparameter i. is_set<i>: the slot exists if
// hyperparameter i is not 0.
template <std::size_t i> constexpr auto begins_as = [](const Tensor& value, const Hyperparameters& h) {
  return full_like(value, h[i]);
};
template <std::size_t i> constexpr auto is_set = [](const Hyperparameters& h) { return h[i] != 0; };

// Names of hyperparameters, in the order in which a rule lists them, then of the constants of a step.

template <class T> struct Rate { T rate; };
constexpr auto descend = [](auto& x, auto g, auto& h) { x = fused_sub(h.rate, g, x); };

template <class T> struct Momentum { T rate, momentum, nesterov, gain, along_a, along_g; };
constexpr auto move_with_momentum = [](auto& x, auto& a, auto g, auto& h) {
  a = fused_add(h.momentum, a, h.gain * g);
  x = fused_sub(h.along_g, g, fused_sub(h.along_a, a, x));
};

template <class T> struct Adagrad { T rate, initial_accumulator_value, epsilon; };
constexpr auto divide_by_root_of_sum = [](auto& x, auto& a, auto g, auto& h) {
  a = fused_add(g, g, a);
  x = x - h.rate * g / (xsimd::sqrt(a) + h.epsilon);
};

// Adam and its relatives.

constexpr SlotSpec kM = {"m"}, kV = {"v"};
constexpr std::initializer_list<SlotSpec> kMoments = {kM, kV};

template <class T> struct Adam { T rate, beta1, beta2, epsilon; };
template <class O> constexpr auto kAdam = fields<Adam, O>(kRate, kBeta1, kBeta2, kEpsilon);

template <class T> struct AmsGrad : Adam<T> { T lazy, amsgrad; };
template <class T> struct AdamW : Adam<T> { T weight_decay, lazy, keep, over_root_of_v; };
template <class T> struct Nadam : Adam<T> { T rate_of_g, rate_of_m, over_root_of_v; };
template <class T> struct Lamb : Adam<T> { T weight_decay, over_m, over_root_of_v, trust; };

// beta1ᵗ and beta2ᵗ in step t. Rules without beta2 do not keep its power.
double power1(const Step& s) { return s.scalars[0]; }
double power2(const Step& s) { return s.scalars[1]; }
constexpr auto next_powers = [](Step& s) noexcept {
  const auto h = with_names<Adam<double>>(s.h);
  s.scalars[0] *= h.beta1;
  s.scalars[1] *= h.beta2;
};
constexpr ScalarSpec kPower1 = {"beta1_power", [](auto&h) { return with_names<Adam<double>>(h).beta1; }},
                     kPower2 = {"beta2_power", [](auto&h) { return with_names<Adam<double>>(h).beta2; }};
constexpr KeptScalars kPowers = {{kPower1, kPower2}, next_powers};

// Divides m by 1 - beta1ᵗ, as a factor of the learning rate.
constexpr auto correct_rate = [](auto& h, Step& s) { h.rate /= 1 - power1(s); };

constexpr auto adam = [](auto& x, auto& m, auto& v, auto g, auto& h) {
  m = running_mean(m, g, h.beta1);
  v = running_mean(v, g * g, h.beta2);
  x = x - h.rate * m / (xsimd::sqrt(v) + h.epsilon);
};
constexpr auto amsgrad = [](auto& x, auto& m, auto& v, auto& vhat, auto g, auto& h) {
  m = running_mean(m, g, h.beta1);
  v = running_mean(v, g * g, h.beta2);
  vhat = maximum(vhat, v);
  x = x - h.rate * m / (xsimd::sqrt(vhat) + h.epsilon);
};
constexpr auto adamw = [](auto& x, auto& m, auto& v, auto g, auto& h) {
  m = running_mean(m, g, h.beta1);
  v = running_mean(v, g * g, h.beta2);
  x = h.keep * x - h.rate * m / fused_add(xsimd::sqrt(v), h.over_root_of_v, h.epsilon);
};

double nadam_momentum(double beta1, std::int64_t t) {
  return beta1 * (1 - 0.5 * std::pow(0.96, 0.004 * static_cast<double>(t)));
}

constexpr auto lamb_direction = [](auto& x, auto& m, auto& v, auto& h) {
  return fused_add(h.weight_decay, x, h.over_m * m / fused_add(xsimd::sqrt(v), h.over_root_of_v, h.epsilon));
};
constexpr auto lamb = [](auto& x, auto& m, auto& v, auto, auto& h) {
  x = fused_sub(h.trust, lamb_direction(x, m, v, h), x);
};

// RMSProp.

template <class T> struct RmsProp { T rate, rho, momentum, epsilon, centered, initial_mean_square; };

constexpr auto rms = [](auto& x, auto& s, auto g, auto& h) {
  s = running_mean(s, g * g, h.rho);
  x = x - h.rate * g / (xsimd::sqrt(s) + h.epsilon);
};
// The variance s - mg², which rounding may bring below 0.
constexpr auto variance = [](const auto& s, const auto& mg) {
  const auto v = fused_sub(mg, mg, s);
  return xsimd::select(v < 0, decltype(v + v)(0), v);
};
constexpr auto centered_rms = [](auto& x, auto& s, auto& mg, auto g, auto& h) {
  s = running_mean(s, g * g, h.rho);
  mg = running_mean(mg, g, h.rho);
  x = x - h.rate * g / (xsimd::sqrt(variance(s, mg)) + h.epsilon);
};
constexpr auto rms_with_momentum = [](auto& x, auto& s, auto& a, auto g, auto& h) {
  s = running_mean(s, g * g, h.rho);
  a = fused_add(h.momentum, a, h.rate * g / xsimd::sqrt(s + h.epsilon));
  x = x - a;
};
constexpr auto centered_rms_with_momentum = [](auto& x, auto& s, auto& a, auto& mg, auto g, auto& h) {
  s = running_mean(s, g * g, h.rho);
  mg = running_mean(mg, g, h.rho);
  a = fused_add(h.momentum, a, h.rate * g / xsimd::sqrt(variance(s, mg) + h.epsilon));
  x = x - a;
};

// Ftrl; power(n) is n^-learning_rate_power.

template <class T> struct Ftrl {
  T rate, learning_rate_power, initial_accumulator_value, l1, l2, l2_shrinkage, beta, over_rate, strength;
};
template <class Power> constexpr auto follow_leader(Power) {
  return [](auto& x, auto& accum, auto& linear, auto g, auto& h) {
    const auto sum = fused_add(g, g, accum), q = Power()(sum, h);
    linear = linear + fused_add(2 * h.l2_shrinkage, x, g) - (q - Power()(accum, h)) * h.over_rate * x;
    accum = sum;
    x = where(xsimd::abs(linear) > h.l1,
              (sign(linear) * h.l1 - linear) / fused_add(q, h.over_rate, h.strength), Number{0});
  };
}
constexpr auto ftrl_by_root = follow_leader([](const auto& n, auto&) { return xsimd::sqrt(n); });
constexpr auto ftrl_by_power =
    follow_leader([]<class V>(const V& n, auto& h) { return pow(n, V(-h.learning_rate_power)); });

template <class T> struct AdagradDA {
  T rate, initial_gradient_squared_accumulator_value, l1, l2, global_step;
};
template <class T> struct Adadelta { T rate, rho, epsilon; };
template <class T> struct ProximalDescent { T rate, l1, l2; };
template <class T> struct ProximalAdagrad { T rate, initial_accumulator_value, l1, l2; };
template <class T> struct Lion { T rate, beta1, beta2, weight_decay; };

void add_descents(RuleTable& t) {
  t.add("gradient_descent", {}, fields<Rate, GradientDescentOptions>(kRate), {}, "x -= learning_rate · g.",
        as_given, rows<Rate>(descend));

  t.add(
      "momentum", {{"momentum"}}, fields<Momentum, MomentumOptions>(kRate, kMomentum, kUseNesterov), {},
      "a = momentum · a + g; x -= learning_rate · a, or with use_nesterov x -= learning_rate · (g + momentum "
      "· a). Sutskever et al. 2013, equations 1 to 4, in the gradient's scale.",
      [](auto& h, Step&) {
        h.gain = 1;
        h.along_a = h.nesterov != 0 ? h.rate * h.momentum : h.rate;
        h.along_g = h.nesterov != 0 ? h.rate : 0;
      },
      rows<Momentum, 0>(move_with_momentum));

  t.add(
      "keras_sgd", {{"momentum", nullptr, is_set<1>}},
      fields<Momentum, MomentumOptions>(kRate, kMomentum.in(part).changes(Change::never), kNesterov)
          .when([](auto& o) { return o.accumulate_steps; }, [] { return keras::sgd(); }),
      {},
      "a = momentum · a - learning_rate · g; x += a, or with nesterov x += momentum · a - learning_rate · g. "
      "Without momentum x -= learning_rate · g, and there is no slot. Sutskever et al. 2013, equations 1 to "
      "4.",
      [](auto& h, Step& s) {
        h.gain = -h.rate;
        h.along_a = h.nesterov != 0 ? -h.momentum : -1;
        h.along_g = h.nesterov != 0 ? h.rate : 0;
        if (h.momentum == 0) s.rows = rows<Momentum>(descend);
      },
      rows<Momentum, 0>(move_with_momentum));
}

void add_adagrads(RuleTable& t) {
  t.add("adagrad", {{"accumulator", begins_as<1>}}, fields<Adagrad, AdagradOptions>(kRate, kAccumulator), {},
        "a += g²; x -= learning_rate · g / √a. Duchi et al. 2011, figure 1 with diagonal matrices.", as_given,
        rows<Adagrad, 0>(divide_by_root_of_sum));

  t.add("keras_adagrad", {{"accumulator", begins_as<1>}},
        fields<Adagrad, AdagradOptions>(kRate, kAccumulator.in(not_negative), kEpsilon)
            .when([](auto& o) { return o.epsilon.varies() || o.epsilon.at(0) != 0; },
                  [] { return keras::adagrad(); }),
        {}, "a += g²; x -= learning_rate · g / (√a + epsilon). Duchi et al. 2011.", as_given,
        rows<Adagrad, 0>(divide_by_root_of_sum));

  t.add(
      "adagrad_da", {{"gradient_accumulator"}, {"gradient_squared_accumulator", begins_as<1>}},
      fields<AdagradDA, AdagradDAOptions>(kRate, kSquaresAccumulator, kL1, kL2, kGlobalStep), {},
      "G += g; A += g²; x = -learning_rate · sign(G) · max(|G| - l1·t, 0) / (l2·t·learning_rate + √A) in "
      "step t, from 1 on, or global_step + 1. Duchi et al. 2011, dual averaging with diagonal matrices.",
      [](auto& h, Step& s) {
        const double t = h.global_step < 0 ? static_cast<double>(s.count) : h.global_step + 1;
        h.l1 = h.l1 * t;
        h.l2 = h.l2 * t * h.rate;
      },
      rows<AdagradDA, 0, 1>([](auto& x, auto& sum, auto& squares, auto g, auto& h) {
        sum = sum + g;
        squares = fused_add(g, g, squares);
        x = -h.rate * proximal(sum, h.l1, h.l2 + xsimd::sqrt(squares));
      }));

  t.add("adadelta", {{"accum"}, {"accum_update"}}, fields<Adadelta, AdadeltaOptions>(kRate, kRho, kEpsilon),
        {},
        "a and u are running means of g² and d²; d = √(u + epsilon) / √(a + epsilon) · g, with u as it was; "
        "x -= learning_rate · d. Zeiler 2012, algorithm 1.",
        as_given, rows<Adadelta, 0, 1>([](auto& x, auto& a, auto& u, auto g, auto& h) {
          a = running_mean(a, g * g, h.rho);
          const auto d = xsimd::sqrt((u + h.epsilon) / (a + h.epsilon)) * g;
          u = running_mean(u, d * d, h.rho);
          x = fused_sub(h.rate, d, x);
        }));
}

void add_adams(RuleTable& t) {
  t.add("adam", {{"m"}, {"v"}, {"vhat", nullptr, is_set<5>}},
        fields<AmsGrad, AdamOptions>(kRate, kBeta1, kBeta2, kEpsilon, kLazy, kAmsgrad), kPowers,
        "m and v are running means of g and g²; x -= learning_rate·√(1-beta2ᵗ)/(1-beta1ᵗ) · m / (√v + "
        "epsilon), with g zero in rows that sparse gradients leave out, or, if lazy, without these rows. "
        "Kingma and Ba 2015, the form before section 2.1. With amsgrad the largest v so far, vhat, in the "
        "place of v: Reddi et al. 2018.",
        [](auto& h, Step& s) {
          h.rate = h.rate * std::sqrt(1 - power2(s)) / (1 - power1(s));
          if (h.amsgrad != 0) s.rows = s.others = rows_or_zeros<AmsGrad, 0, 1, 2>(amsgrad);
          if (h.lazy != 0) s.others = {};
        },
        rows_or_zeros<AmsGrad, 0, 1>(adam), {.others = rows_or_zeros<AmsGrad, 0, 1>(adam)});

  t.add("adamw", kMoments, fields<AdamW, AdamWOptions>(kRate, kBeta1, kBeta2, kEpsilon, kWeightDecay, kLazy),
        kPowers,
        "x -= learning_rate · weight_decay · x; m and v as in adam; x -= learning_rate · m/(1-beta1ᵗ) / "
        "(√(v/(1-beta2ᵗ)) + epsilon). Sparse gradients as in adam. Loshchilov and Hutter 2019, algorithm 2.",
        [](auto& h, Step& s) {
          h.keep = 1 - h.rate * h.weight_decay;
          correct_rate(h, s);
          h.over_root_of_v = 1 / std::sqrt(1 - power2(s));
          if (h.lazy != 0) s.others = {};
        },
        rows_or_zeros<AdamW, 0, 1>(adamw), {.others = rows_or_zeros<AdamW, 0, 1>(adamw)});
}

void add_variants_of_adam(RuleTable& t) {
  t.add("adamax", kMoments, kAdam<AdamaxOptions>, {{kPower1}, next_powers},
        "m as in adam; v = max(beta2 · v, |g|); x -= learning_rate/(1-beta1ᵗ) · m / (v + epsilon). Kingma "
        "and Ba 2015, algorithm 2.",
        correct_rate, rows<Adam, 0, 1>([](auto& x, auto& m, auto& v, auto g, auto& h) {
          m = running_mean(m, g, h.beta1);
          v = maximum(h.beta2 * v, xsimd::abs(g));
          x = x - h.rate * m / (v + h.epsilon);
        }));

  t.add("nadam", kMoments,
        fields<Nadam, NadamOptions>(kRate.changes(Change::by_hand), kBeta1, kBeta2, kEpsilon),
        {{{"momentum_cache", [](auto&) { return 1.0; }}, kPower2},
         [](Step& s) noexcept {
           const auto h = with_names<Adam<double>>(s.h);
           s.scalars[0] *= nadam_momentum(h.beta1, s.count);
           s.scalars[1] *= h.beta2;
         }},
        "mu(t) = beta1 · (1 - 0.96^(0.004·t)/2), p(t) = mu(1)·…·mu(t); m and v are running means of g and "
        "g²; x -= learning_rate · ((1 - mu(t)) · g/(1 - p(t)) + mu(t+1) · m/(1 - p(t+1))) / (√(v/(1-beta2ᵗ)) "
        "+ epsilon). Sparse gradients: m and v decay in all rows, x moves in theirs. Dozat 2016.",
        [](auto& h, Step& s) {
          const double mu1 = nadam_momentum(h.beta1, s.count), mu2 = nadam_momentum(h.beta1, s.count + 1),
                       p1 = s.scalars[0] * mu1, p2 = p1 * mu2;
          h.rate_of_g = h.rate * (1 - mu1) / (1 - p1);
          h.rate_of_m = h.rate * mu2 / (1 - p2);
          h.over_root_of_v = 1 / std::sqrt(1 - power2(s));
        },
        rows<Nadam, 0, 1>([](auto& x, auto& m, auto& v, auto g, auto& h) {
          m = running_mean(m, g, h.beta1);
          v = running_mean(v, g * g, h.beta2);
          x = x - fused_add(h.rate_of_m, m, h.rate_of_g * g) /
                      fused_add(xsimd::sqrt(v), h.over_root_of_v, h.epsilon);
        }),
        {.others = rows_or_zeros<Nadam, 0, 1>([](auto&, auto& m, auto& v, auto g, auto& h) {
           m = running_mean(m, g, h.beta1);
           v = running_mean(v, g * g, h.beta2);
         })});
}

void add_rmsprops(RuleTable& t) {
  t.add(
      "rmsprop", {{"rms", begins_as<5>}, {"momentum"}, {"mg", nullptr, is_set<4>}},
      fields<RmsProp, RMSPropOptions>(kRate, kDecay, kMomentum, kEpsilon, kCentered, kMeanSquare), {},
      "s is a running mean of g² that begins as initial_mean_square, 1; a = momentum · a + learning_rate · "
      "g / √(s + epsilon); x -= a. If centered, the square of mg, a running mean of g, is taken from s. "
      "Tieleman and Hinton 2012, lecture 6.5; Graves 2013, equations 38 to 45.",
      [](auto& h, Step& s) {
        if (h.centered != 0) s.rows = rows<RmsProp, 0, 1, 2>(centered_rms_with_momentum);
      },
      rows<RmsProp, 0, 1>(rms_with_momentum));

  t.add(
      "keras_rmsprop", {{"rms", begins_as<5>}, {"momentum", nullptr, is_set<2>}, {"mg", nullptr, is_set<4>}},
      fields<RmsProp, RMSPropOptions>(kRate, kRhoOfKeras, kMomentum.in(part).changes(Change::never), kEpsilon,
                                      kCentered, kMeanSquare)
          .when([](auto& o) { return o.epsilon_outside; }, [] { return keras::rmsprop(); }),
      {},
      "s is a running mean of g² that begins as initial_mean_square, 0; x -= learning_rate · g / (√s + "
      "epsilon), or with momentum as in rmsprop. If centered, the square of mg, a running mean of g, is "
      "taken from s. Tieleman and Hinton 2012, lecture 6.5.",
      [](auto& h, Step& s) {
        if (h.momentum != 0 && h.centered != 0)
          s.rows = rows<RmsProp, 0, 1, 2>(centered_rms_with_momentum);
        else if (h.momentum != 0)
          s.rows = rows<RmsProp, 0, 1>(rms_with_momentum);
        else if (h.centered != 0)
          s.rows = rows<RmsProp, 0, 2>(centered_rms);
      },
      rows<RmsProp, 0>(rms));
}

void add_proximal(RuleTable& t) {
  t.add(
      "ftrl", {{"accum", begins_as<2>}, {"linear"}},
      fields<Ftrl, FtrlOptions>(kRate, kPower, kAccumulator.in(not_negative), kL1, kL2, kL2Shrinkage, kBeta),
      {},
      "n = accum + g², q = n^-learning_rate_power; linear += g + 2·l2_shrinkage·x - (q - "
      "accum^-learning_rate_power)/learning_rate · x; accum = n; x is (sign(linear)·l1 - linear) / "
      "(q/learning_rate + 2·l2 + beta/learning_rate) where |linear| > l1, else 0. With a learning_rate of 0 "
      "nothing changes. McMahan et al. 2013, algorithm 1.",
      [](auto& h, Step& s) {
        h.over_rate = 1 / h.rate;
        h.strength = 2 * h.l2 + h.beta / h.rate;
        if (h.learning_rate_power != -0.5) s.rows = rows<Ftrl, 0, 1>(ftrl_by_power);
        if (h.rate == 0) s.rows = rows<Ftrl, 0, 1>([](auto&, auto&, auto&, auto, auto&) {});
      },
      rows<Ftrl, 0, 1>(ftrl_by_root));

  t.add("proximal_gradient_descent", {},
        fields<ProximalDescent, ProximalGradientDescentOptions>(kRate, kL1, kL2), {},
        "p = x - learning_rate · g; x = sign(p) · max(|p| - learning_rate·l1, 0) / (1 + learning_rate·l2). "
        "Duchi and Singer 2009.",
        as_given, rows<ProximalDescent>([](auto& x, auto g, auto& h) {
          x = proximal(fused_sub(h.rate, g, x), h.rate * h.l1, 1 + h.rate * h.l2);
        }));

  t.add("proximal_adagrad", {{"accumulator", begins_as<1>}},
        fields<ProximalAdagrad, ProximalAdagradOptions>(kRate, kAccumulator, kL1, kL2), {},
        "a += g²; x as in proximal_gradient_descent, with learning_rate / √a for learning_rate. Duchi et al. "
        "2011.",
        as_given, rows<ProximalAdagrad, 0>([](auto& x, auto& a, auto g, auto& h) {
          a = fused_add(g, g, a);
          const auto rate = h.rate / xsimd::sqrt(a);
          x = proximal(fused_sub(rate, g, x), rate * h.l1, fused_add(rate, h.l2, Number{1}));
        }));
}

void add_lamb_and_lion(RuleTable& t) {
  t.add("lamb", kMoments,
        fields<Lamb, LambOptions>(kRate, kBeta1, kBeta2, kEpsilon.in(positive), kWeightDecay), kPowers,
        "m and v as in adam, r = m/(1-beta1ᵗ) / (√(v/(1-beta2ᵗ)) + epsilon) + weight_decay · x; x -= "
        "learning_rate · |x|/|r| · r, where a norm of 0 makes the ratio 1. Sparse gradients stand for zeros "
        "in other rows. You et al. 2020, algorithm 2.",
        [](auto& h, Step& s) {
          h.over_m = 1 / (1 - power1(s));
          h.over_root_of_v = 1 / std::sqrt(1 - power2(s));
        },
        rows_or_zeros<Lamb, 0, 1>(lamb),
        {.others = rows_or_zeros<Lamb, 0, 1>(lamb),
         .measure = measured<Lamb, 0, 1>([](auto& x, auto& m, auto& v, auto g, auto& h, auto& sums) {
           m = running_mean(m, g, h.beta1);
           v = running_mean(v, g * g, h.beta2);
           const auto r = lamb_direction(x, m, v, h);
           sums[0] = fused_add(x, x, sums[0]);
           sums[1] = fused_add(r, r, sums[1]);
         }),
         .scale = [](Step& s, const RowSums& sums) noexcept {
           auto h = with_names<Lamb<double>>(s.c);
           h.trust = h.rate * (sums[0] > 0 && sums[1] > 0 ? std::sqrt(sums[0] / sums[1]) : 1);
           set_coefficients(s, h);
         }});

  t.add("lion", {{"m"}}, fields<Lion, LionOptions>(kRate, kBeta1, kBeta2, kWeightDecay), {},
        "x -= learning_rate · (sign(beta1 · m + (1-beta1) · g) + weight_decay · x); then m is a running mean "
        "of g, by beta2. Chen et al. 2023, algorithm 2.",
        as_given, rows<Lion, 0>([](auto& x, auto& m, auto g, auto& h) {
          x = fused_sub(h.rate, sign(running_mean(m, g, h.beta1)), (1 - h.rate * h.weight_decay) * x);
          m = running_mean(m, g, h.beta2);
        }));
}

// In the order of Optimizer::rules. Not destroyed, since optimizers refer to it.
std::span<const RuleEntry> table() {
  static const RuleTable& rules = []() -> RuleTable& {
    RuleTable& all = *new RuleTable;
    for (const auto add : {add_descents, add_adagrads, add_adams, add_variants_of_adam, add_rmsprops,
                           add_proximal, add_lamb_and_lion})
      add(all);
    return all;
  }();
  return rules.entries();
}

}   // namespace
}   // namespace update_rules

std::span<const RuleEntry> rule_entries() { return update_rules::table(); }

const UpdateRule& find_rule(std::string_view name) {
  std::vector<std::string_view> names;
  for (const RuleEntry& entry : rule_entries()) {
    if (entry.rule.name == name) return entry.rule;
    names.push_back(entry.rule.name);
  }
  throw_error<ArgumentError>("optimizer: there is no update rule \"{}\"; use one of {}", name,
                             fmt::join(names, ", "));
}

const RuleEntry& find_entry(const std::type_info& type, const void* options) {
  const std::span<const RuleEntry> entries = rule_entries();
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    if (*entry->options == type && (!entry->is_for || entry->is_for(options))) return *entry;
  throw_error<InternalError>("optimizer: no update rule has the options {}", type.name());
}

}   // namespace tapedeck
