// Samples of the ops in lib/ops/random/distributions.cpp.
#include "ops/random/distributions.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples distributions_table[] = {
    {.op = "gamma",
     .no_oracle = "the random bits of other keys than the default one are this library's",
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

    {.op = "gamma_grad",
     .oracle = "np.vectorize(lambda a, y: float(-mpmath.diff(lambda t: mpmath.gammainc(t, 0, y, "
               "regularized=True), a) / (y**(a - 1) * mpmath.exp(-y) / mpmath.gamma(a))))(alpha, y)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 4), uniform({2, 3}, 0.5, 4, 1)}},
                                      {.inputs = {f64({0.5, 1, 2.5, 9}), f64({0.25, 3, 2, 10})},
                                       .expected = {f64({0.9080144917641113, 1.937911693824961,
                                                         0.9534627029186165, 1.0733233183375006})}}};
         }},

    {.op = "poisson",
     .no_oracle = "the random bits of other keys than the default one are this library's",
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
                          "12]) + 0.5) * 2.0**-52)], float)"}};
         }},

    {.op = "binomial",
     .no_oracle = "the random bits of other keys than the default one are this library's",
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
                          ">> 12]) + 0.5) * 2.0**-52)], float)"}};
         }},

    {.op = "categorical",
     .throws_on_nan = true,
     .no_oracle = "the random bits of other keys than the default one are this library's",
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

    {.op = "probabilities",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {},
                .attrs = Attrs(ProbabilitiesAttrs{{}, {DType::f64, {2}}}),
                .expected = {f64({0.8805201978886142, 0.6054818538799213}),
                             f64({0.11947980211138579, 0.3945181461200787})},
                .oracle = "(lambda p: (p, 1 - p))((np.array([0xe169c58d6627e8d5 >> 12, 0x9b00dbd8bc57ac4c >> "
                          "12]) + 0.5) * 2.0**-52)"}};
         }},

    {.op = "parameterized_truncated_normal",
     .no_oracle = "the random bits of other keys than the default one are this library's",
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

std::span<const OpSamples> distributions_samples() { return distributions_table; }

}   // namespace tapedeck::test
