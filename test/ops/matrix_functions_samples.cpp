// Samples of the ops in lib/ops/linalg/matrix_functions.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples matrix_functions_table[] = {
    {.op = "matrix_exponential",
     .takes_complex = true,
     .oracle = "torch.linalg.matrix_exp(torch.tensor(x))",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({1, 1}, -1, 1)}},
               {.inputs = {uniform({0, 0}, -1, 1)}},
               {.inputs = {uniform({2, 3, 3}, -1, 1)}},
               {.inputs = {uniform({5, 5}, -3, 3)}},
               {.inputs = {f64({{1, 2}, {-1, 0.5}})},
                .expected = {f64(
                    {{0.7507801364106583, 2.993272682296582}, {-1.496636341148291, 0.0024619658365117748}})}},
               {.inputs = {reshape(c128({{0.5, 1}, {2, 0}, {0, -1}, {0.25, -0.5}}), {2, 2})},
                .expected = {reshape(c128({{1.3845974159657766, 0.06858943204682286},
                                           {2.700324826970935, -0.1656588824243354},
                                           {-0.0828294412121677, -1.3501624134854675},
                                           {0.9228126507761581, -1.9359468278783365}}),
                                     {2, 2})}}};
         }},

    {.op = "matrix_square_root",
     .takes_complex = true,
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({1, 1}, 1, 2)}},
               {.inputs = {regular({0, 0})}},
               {.inputs = {regular({2, 3, 3})}},
               {.inputs = {regular({7, 7})}},
               {.inputs = {f64({{6, 6}, {12, 18}})},
                .expected = {f64({{2, 1}, {2, 4}})},
                .oracle = "(lambda w, v: v * np.sqrt(w) @ np.linalg.inv(v))(*np.linalg.eig(x))"},
               {.inputs = {reshape(c128({{-2, 0.5}, {1, 0}, {0, 0.5}, {1, 1}}), {2, 2})},
                .expected = {reshape(c128({{0.18485494072283587, 1.4558718131592596},
                                           {0.23519505435449134, -0.363066253567062},
                                           {0.181533126783531, 0.11759752717724567},
                                           {1.0719732305698408, 0.48427057963531916}}),
                                     {2, 2})},
                .oracle = "(lambda w, v: v * np.sqrt(w) @ np.linalg.inv(v))(*np.linalg.eig(x))"}};
         }},

    {.op = "sylvester",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {regular({3, 3}), uniform({3, 3}, -1, 1)}},
               {.inputs = {regular({2, 2, 2}), uniform({2, 2}, -1, 1)}},
               {.inputs = {regular({4, 4}), uniform({3, 4, 4}, -1, 1)}},
               {.inputs = {regular({1, 1}), uniform({1, 1}, -1, 1)}},
               {.inputs = {regular({0, 0}), uniform({0, 0}, -1, 1)}},
               {.inputs = {f64({{2, 1}, {0, 3}}), f64({{4, 5}, {5, 13}})},
                .expected = {f64({{0.75, 0.45}, {1, 2}})},
                .oracle = "np.linalg.solve(np.kron(x, np.eye(2)) + np.kron(np.eye(2), "
                          "x.T), b.ravel()).reshape(2, 2)"},
               {.inputs = {reshape(c128({{2, 1}, {1, 0}, {0, 0}, {3, -1}}), {2, 2}),
                           reshape(c128({{4, 0}, {5, 1}, {0, 5}, {13, 0}}), {2, 2})},
                .expected = {reshape(c128({{0.7, -0.6}, {0.46, 0.22}, {0, 1}, {2, 0.5}}), {2, 2})},
                .oracle = "np.linalg.solve(np.kron(x, np.eye(2)) + np.kron(np.eye(2), "
                          "x.T), b.ravel()).reshape(2, 2)"}};
         }},
};

}   // namespace

std::span<const OpSamples> matrix_functions_samples() { return matrix_functions_table; }

}   // namespace tapedeck::test
