// Samples of the ops in lib/ops/linalg/matrix_functions.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples table[] = {
    {.op = "matrix_exponential",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({1, 1}, -1, 1)}},
                                      {.inputs = {uniform({0, 0}, -1, 1)}},
                                      {.inputs = {uniform({2, 3, 3}, -1, 1)}},
                                      {.inputs = {uniform({5, 5}, -3, 3)}},
                                      {.inputs = {f64({{1, 2}, {-1, 0.5}})},
                                       .expected = {f64({{0.7507801364106583, 2.993272682296582},
                                                         {-1.496636341148291, 0.0024619658365117748}})},
                                       .oracle = "torch.linalg.matrix_exp(torch.tensor(x))"}};
         }},

    {.op = "matrix_square_root",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({1, 1}, 1, 2)}},
               {.inputs = {regular({0, 0})}},
               {.inputs = {regular({2, 3, 3})}},
               {.inputs = {regular({7, 7})}},
               {.inputs = {f64({{6, 6}, {12, 18}})},
                .expected = {f64({{2, 1}, {2, 4}})},
                .oracle = "(lambda w, v: v * np.sqrt(w) @ np.linalg.inv(v))(*np.linalg.eig(x))"}};
         }},

    {.op = "sylvester",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {regular({3, 3}), uniform({3, 3}, -1, 1)}},
                                      {.inputs = {regular({2, 2, 2}), uniform({2, 2}, -1, 1)}},
                                      {.inputs = {regular({4, 4}), uniform({3, 4, 4}, -1, 1)}},
                                      {.inputs = {regular({1, 1}), uniform({1, 1}, -1, 1)}},
                                      {.inputs = {regular({0, 0}), uniform({0, 0}, -1, 1)}},
                                      {.inputs = {f64({{2, 1}, {0, 3}}), f64({{4, 5}, {5, 13}})},
                                       .expected = {f64({{0.75, 0.45}, {1, 2}})},
                                       .oracle = "np.linalg.solve(np.kron(x, np.eye(2)) + np.kron(np.eye(2), "
                                                 "x.T), b.ravel()).reshape(2, 2)"}};
         }},
};

}   // namespace

std::span<const OpSamples> matrix_functions_samples() { return table; }

}   // namespace tapedeck::test
