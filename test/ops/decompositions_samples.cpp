// Samples of the ops in lib/ops/linalg/decompositions.cpp.
#include "ops/linalg/decompositions.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples decompositions_table[] = {
    {.op = "lstsq",
     .takes_complex = true,
     .floor = 1e-14,
     .samples =
         [] {
           const OwnedAttrs exact = Attrs(Ridge{0}), weighted = Attrs(Ridge{0.5});
           return std::vector<Sample>{
               {.inputs = {uniform({1, 1}, 1, 2), uniform({1, 1}, -1, 1, 1)}, .attrs = exact},
               {.inputs = {uniform({9, 4}, -1, 1), uniform({9, 2}, -1, 1, 1)}, .attrs = exact},
               {.inputs = {uniform({3, 7}, -1, 1), uniform({3, 2}, -1, 1, 1)}, .attrs = exact},
               {.inputs = {uniform({9, 4}, -1, 1), uniform({9, 2}, -1, 1, 1)}, .attrs = weighted},
               {.inputs = {uniform({3, 7}, -1, 1), uniform({3, 2}, -1, 1, 1)}, .attrs = weighted},
               {.inputs = {regular({2, 3, 3}), uniform({3, 37}, -1, 1, 1)}, .attrs = exact},
               {.inputs = {uniform({3, 5}, -1, 1), uniform({2, 3, 2}, -1, 1, 1)}, .attrs = weighted},
               {.inputs = {uniform({3, 0}, -1, 1), uniform({3, 2}, -1, 1, 1)}, .attrs = exact},
               {.inputs = {f64({{1, 0}, {1, 1}, {1, 2}}), reshape(f64({6, 0, 0}), {3, 1})},
                .attrs = exact,
                .expected = {reshape(f64({5, -3}), {2, 1})},
                .oracle = "np.linalg.lstsq(a, b, rcond=None)[0]"},
               {.inputs = {reshape(f64({1, 2, 2}), {1, 3}), reshape(f64({9}), {1, 1})},
                .attrs = exact,
                .expected = {reshape(f64({1, 2, 2}), {3, 1})},
                .oracle = "np.linalg.lstsq(a, b, rcond=None)[0]"},
               {.inputs = {f64({{1, 0}, {0, 2}}), reshape(f64({3, 4}), {2, 1})},
                .attrs = weighted,
                .expected = {reshape(f64({2, 1.7777777777777777}), {2, 1})},
                .oracle = "np.linalg.solve(a.T @ a + np.eye(2) / 2, a.T @ b)"},
               {.inputs = {reshape(c128({{1, 0}, {0, 0}, {0, 1}, {1, 0}, {0, 0}, {1, 0}}), {3, 2}),
                           reshape(c128({{1, 0}, {0, 0}, {0, 1}}), {3, 1})},
                .attrs = exact,
                .expected = {reshape(c128({{0.3333333333333333, 0}, {0, 0.3333333333333333}}), {2, 1})},
                .oracle = "np.linalg.lstsq(a, b, rcond=None)[0]"}};
         }},

    {.op = "qr",
     .takes_complex = true,
     .oracle = "np.linalg.qr(x)",
     .floor = 1e-14,
     .samples =
         [] {
           const OwnedAttrs thin = Attrs(Full{false}), full = Attrs(Full{true});
           return std::vector<Sample>{
               {.inputs = {uniform({1, 1}, 1, 2)}, .attrs = thin},
               {.inputs = {regular({2, 3, 3})}, .attrs = thin},
               {.inputs = {uniform({4, 3}, -1, 1)}, .attrs = thin},
               {.inputs = {uniform({9, 4}, -1, 1)}, .attrs = thin},
               {.inputs = {uniform({2, 3, 7}, -1, 1)}, .attrs = thin},
               {.inputs = {uniform({3, 7}, -1, 1)}, .attrs = full},
               {.inputs = {regular({4, 4})}, .attrs = full},
               {.inputs = {uniform({0, 0}, -1, 1)}, .attrs = thin},
               {.inputs = {uniform({3, 0}, -1, 1)}, .attrs = thin},
               {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = full},
               {.inputs = {regular({37, 37})}, .attrs = thin},
               {.inputs = {f64({{3, 1}, {0, 2}, {4, 3}})},
                .attrs = thin,
                .expected = {f64({{-0.6, 0.35777087639996635},
                                  {0, -0.8944271909999159},
                                  {-0.8, -0.26832815729997478}}),
                             f64({{-5, -3}, {0, -2.23606797749979}})}},
               {.inputs = {reshape(c128({{3, 0}, {0, 1}, {0, 4}, {2, 0}}), {2, 2})},
                .attrs = thin,
                .expected = {reshape(c128({{-0.6, 0}, {0, 0.8}, {0, -0.8}, {0.6, 0}}), {2, 2}),
                             reshape(c128({{-5, 0}, {0, 1}, {0, 0}, {2, 0}}), {2, 2})}}};
         }},

    {.op = "eigh",
     .takes_complex = true,
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spd({1, 1})}},
               {.inputs = {spd({0, 0})}},
               {.inputs = {spd({2, 3, 3})}},
               {.inputs = {regular({5, 5})}},
               {.inputs = {spd({7, 7})}},
               {.inputs = {f64({{1, 9}, {2, 4}})},
                .expected = {f64({0, 5}), f64({{0.8944271909999159, 0.4472135954999579},
                                               {-0.4472135954999579, 0.8944271909999159}})},
                .oracle = "(lambda w, v: (w, v * np.sign(v[np.abs(v).argmax(0), "
                          "np.arange(2)])))(*np.linalg.eigh(x))"},
               {.inputs = {reshape(c128({{2, 0}, {9, 0}, {1, 1}, {3, 0}}), {2, 2})},
                .expected = {f64({1, 4}), reshape(c128({{0.816496580927726, 0},
                                                        {0.408248290463863, -0.408248290463863},
                                                        {-0.408248290463863, -0.408248290463863},
                                                        {0.816496580927726, 0}}),
                                                  {2, 2})},
                .oracle = "(lambda w, v: (w, v / (lambda z: z / np.abs(z))(v[np.abs(v).argmax(0), "
                          "np.arange(2)])))(*np.linalg.eigh(x))"}};
         }},

    {.op = "svd",
     .takes_complex = true,
     .floor = 1e-14,
     .samples =
         [] {
           const OwnedAttrs thin = Attrs(Full{false}), full = Attrs(Full{true});
           return std::vector<Sample>{
               {.inputs = {uniform({1, 1}, 1, 2)}, .attrs = thin},
               {.inputs = {uniform({3, 3}, -1, 1)}, .attrs = thin},
               {.inputs = {uniform({2, 4, 3}, -1, 1)}, .attrs = thin},
               {.inputs = {uniform({9, 4}, -1, 1)}, .attrs = thin},
               {.inputs = {uniform({3, 7}, -1, 1)}, .attrs = thin},
               {.inputs = {uniform({4, 4}, -1, 1, 1)}, .attrs = full},
               {.inputs = {uniform({3, 0}, -1, 1)}, .attrs = thin},
               {.inputs = {uniform({0, 0}, -1, 1)}, .attrs = full},
               {.inputs = {f64({{0, 2}, {3, 0}, {0, 0}})},
                .attrs = thin,
                .expected = {f64({{0, 1}, {1, 0}, {0, 0}}), f64({3, 2}), f64({{1, 0}, {0, 1}})},
                .oracle = "(lambda u, s, v: (u * u.sum(0), s, v * u.sum(0)[:, None]))(*np.linalg.svd(x, "
                          "full_matrices=False))"},
               {.inputs = {reshape(c128({{0, 0}, {0, 2}, {3, 0}, {0, 0}, {0, 0}, {0, 0}}), {3, 2})},
                .attrs = thin,
                .expected = {reshape(c128({{0, 0}, {1, 0}, {1, 0}, {0, 0}, {0, 0}, {0, 0}}), {3, 2}),
                             f64({3, 2}), reshape(c128({{1, 0}, {0, 0}, {0, 0}, {0, 1}}), {2, 2})},
                .oracle = "(lambda u, s, v: (u / u.sum(0), s, v * u.sum(0)[:, None]))(*np.linalg.svd(x, "
                          "full_matrices=False))"}};
         }},

    {.op = "pinv",
     .takes_complex = true,
     .oracle = "np.linalg.pinv(x)",
     .floor = 1e-14,
     .samples =
         [] {
           const OwnedAttrs rcond = Attrs(Cutoff{1e-6});
           return std::vector<Sample>{
               {.inputs = {uniform({1, 1}, 1, 2)}, .attrs = rcond},
               {.inputs = {regular({2, 3, 3})}, .attrs = rcond},
               {.inputs = {uniform({9, 4}, -1, 1)}, .attrs = rcond},
               {.inputs = {uniform({3, 7}, -1, 1)}, .attrs = rcond},
               {.inputs = {uniform({3, 0}, -1, 1)}, .attrs = rcond},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = rcond,
                .expected = {f64({{-0.9444444444444444, 0.4444444444444444},
                                  {-0.1111111111111111, 0.1111111111111111},
                                  {0.7222222222222222, -0.2222222222222222}})}},
               {.inputs = {reshape(c128({{1, 0}, {0, 1}, {0, 0}, {0, 0}, {2, 0}, {0, 1}}), {2, 3})},
                .attrs = rcond,
                .expected = {reshape(c128({{0.8333333333333334, 0},
                                           {0, -0.3333333333333333},
                                           {0, -0.16666666666666666},
                                           {0.3333333333333333, 0},
                                           {0.3333333333333333, 0},
                                           {0, -0.3333333333333333}}),
                                     {3, 2})}}};
         }},
};

}   // namespace

std::span<const OpSamples> decompositions_samples() { return decompositions_table; }

}   // namespace tapedeck::test
