// The table of update rules: what an optimizer keeps, what can be set, and how a step changes a variable.
#include <cmath>
#include <limits>

#include "optim/update_rule.h"

namespace tapedeck {
namespace {

constexpr double kRequired = std::numeric_limits<double>::quiet_NaN();

constexpr Domain kFinite = {"a finite number", [](double h) { return std::isfinite(h); }};
constexpr Domain kNotNegative = {"a finite number of 0 or more", [](double h) { return h >= 0 && std::isfinite(h); }};
constexpr Domain kDecay = {"a number from 0 up to but without 1", [](double h) { return h >= 0 && h < 1; }};
constexpr Domain kSwitch = {"0 or 1", [](double h) { return h == 0 || h == 1; }};

constexpr UpdateRule table[] = {
    {.name = "gradient_descent",
     .doc = "x -= learning_rate · g.",
     .hyperparameters = {{"learning_rate", kRequired, kFinite}},
     .coefficients = [](const Hyperparameters& h, double) { return Coefficients{h[0]}; },
     .update = [](Tensor& x, Slots&, const kernels::StepGradient& g, const Coefficients& c) { kernels::gradient_descent(x, g, c[0]); }},

    {.name = "momentum",
     .doc = "a = momentum · a + g; x -= learning_rate · a, or with use_nesterov x -= learning_rate · (g + momentum · a). Sparse gradients "
            "touch no rows but theirs. Sutskever et al. 2013, equations 1 to 4, in the gradient's scale.",
     .slots = {{"momentum"}},
     .hyperparameters = {{"learning_rate", kRequired, kFinite}, {"momentum", kRequired, kFinite}, {"use_nesterov", 0, kSwitch}},
     .coefficients = [](const Hyperparameters& h, double) { return Coefficients{h[1], h[0], h[2]}; },
     .update = [](Tensor& x, Slots& s, const kernels::StepGradient& g, const Coefficients& c) { kernels::momentum(x, s[0], g, {c[0], c[1], c[2] != 0}); }},

    {.name = "adam",
     .doc = "m and v are running means of g and g²; x -= learning_rate·√(1-beta2ᵗ)/(1-beta1ᵗ) · m / (√v + epsilon), with g zero in "
            "rows that sparse gradients leave out, or, if lazy, without these rows. Kingma and Ba 2015, the form before section 2.1.",
     .slots = {{"m"}, {"v"}},
     .hyperparameters = {{"learning_rate", 1e-3, kFinite}, {"beta1", 0.9, kDecay}, {"beta2", 0.999, kDecay}, {"epsilon", 1e-8, kNotNegative}, {"lazy", 0, kSwitch}},
     .coefficients =
         [](const Hyperparameters& h, double step) {
           const double rate = h[0] * std::sqrt(1 - std::pow(h[2], step)) / (1 - std::pow(h[1], step));
           return Coefficients{1 - h[1], 1 - h[2], rate, h[3], h[4]};
         },
     .update = [](Tensor& x, Slots& s, const kernels::StepGradient& g, const Coefficients& c) { kernels::adam(x, s[0], s[1], g, {c[0], c[1], c[2], c[3], c[4] != 0}); }},
};

}  // namespace

std::span<const UpdateRule> update_rules() { return table; }

}  // namespace tapedeck
