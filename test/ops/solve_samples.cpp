// Samples of the ops in lib/ops/linalg/solve.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples solve_table[] = {
    {.op = "cholesky",
     .takes_complex = true,
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {spd({1, 1})}},
                                      {.inputs = {spd({0, 0})}},
                                      {.inputs = {spd({2, 3, 3})}},
                                      {.inputs = {spd({7, 7}, 1)}},
                                      {.inputs = {spd({37, 37}, 2)}},
                                      {.inputs = {regular({3, 3})}},
                                      {.inputs = {f64({{4, 2, -2}, {2, 10, 2}, {-2, 2, 6}})},
                                       .expected = {f64({{2, 0, 0}, {1, 3, 0}, {-1, 1, 2}})},
                                       .oracle = "np.linalg.cholesky(x)"},
                                      {.inputs = {reshape(c128({{4, 0}, {2, -2}, {2, 2}, {11, 0}}), {2, 2})},
                                       .expected = {reshape(c128({{2, 0}, {0, 0}, {1, 1}, {3, 0}}), {2, 2})},
                                       .oracle = "np.linalg.cholesky(x)"}};
         }},

    {.op = "triangular_solve",
     .takes_complex = true,
     .samples =
         [] {
           const auto kind = [](bool lower, bool is_transposed) {
             return OwnedAttrs(Attrs(TriangularSolveOptions{lower, is_transposed}));
           };
           return std::vector<Sample>{
               {.inputs = {regular({3, 3}), uniform({3, 2}, -1, 1)}, .attrs = kind(true, false)},
               {.inputs = {regular({3, 3}), uniform({3, 2}, -1, 1)}, .attrs = kind(true, true)},
               {.inputs = {regular({3, 3}), uniform({3, 2}, -1, 1)}, .attrs = kind(false, false)},
               {.inputs = {regular({3, 3}), uniform({3, 2}, -1, 1)}, .attrs = kind(false, true)},
               {.inputs = {regular({37, 37}), uniform({37, 5}, -1, 1)}, .attrs = kind(true, false)},
               {.inputs = {regular({2, 1, 3, 3}), uniform({4, 3, 2}, -1, 1)}, .attrs = kind(false, false)},
               {.inputs = {regular({3, 3}), uniform({2, 3, 1}, -1, 1)}, .attrs = kind(true, true)},
               {.inputs = {regular({2, 1, 1}), uniform({1, 3}, -1, 1)}, .attrs = kind(true, false)},
               {.inputs = {regular({0, 0}), uniform({0, 3}, -1, 1)}, .attrs = kind(true, false)},
               {.inputs = {regular({2, 2}), uniform({2, 0}, -1, 1)}, .attrs = kind(true, false)},
               {.inputs = {f64({{2, 9, 9}, {1, 4, 9}, {-1, 3, 5}}), f64({{2, 4}, {5, -2}, {7, 1}})},
                .attrs = kind(true, false),
                .expected = {f64({{1, 2}, {1, -1}, {1, 1.2}})},
                .oracle = "np.linalg.solve(np.tril(a), b)"},
               {.inputs = {f64({{2, 9, 9}, {1, 4, 9}, {-1, 3, 5}}), f64({{2, 4}, {5, -2}, {7, 1}})},
                .attrs = kind(false, true),
                .expected = {f64({{1, 2}, {-1, -5}, {1.4, 5.6}})},
                .oracle = "np.linalg.solve(np.triu(a).T, b)"}};
         }},

    {.op = "solve",
     .takes_complex = true,
     .floor = 1e-14,
     .samples =
         [] {
           const OwnedAttrs as_it_is = Attrs(SolveOptions{false}), is_transposed = Attrs(SolveOptions{true});
           return std::vector<Sample>{
               {.inputs = {regular({3, 3}), uniform({3, 2}, -1, 1)}, .attrs = as_it_is},
               {.inputs = {regular({3, 3}), uniform({3, 2}, -1, 1)}, .attrs = is_transposed},
               {.inputs = {uniform({6, 6}, -1, 1), uniform({6, 3}, -1, 1)}, .attrs = as_it_is},
               {.inputs = {uniform({6, 6}, -1, 1), uniform({6, 3}, -1, 1)}, .attrs = is_transposed},
               {.inputs = {regular({37, 37}), uniform({37, 5}, -1, 1)}, .attrs = as_it_is},
               {.inputs = {regular({2, 1, 3, 3}), uniform({4, 3, 2}, -1, 1)}, .attrs = is_transposed},
               {.inputs = {regular({3, 3}), uniform({2, 3, 1}, -1, 1)}, .attrs = as_it_is},
               {.inputs = {regular({2, 1, 1}), uniform({1, 3}, -1, 1)}, .attrs = as_it_is},
               {.inputs = {regular({0, 0}), uniform({0, 3}, -1, 1)}, .attrs = as_it_is},
               {.inputs = {regular({2, 2}), uniform({2, 0}, -1, 1)}, .attrs = as_it_is},
               {.inputs = {f64({{0, 2, 1}, {1, 1, 0}, {3, 0, 2}}), f64({{4, 1}, {3, 2}, {7, -1}})},
                .attrs = as_it_is,
                .expected = {f64({{1.5714285714285714, 0.7142857142857142},
                                  {1.4285714285714286, 1.2857142857142856},
                                  {1.1428571428571428, -1.5714285714285714}})},
                .oracle = "np.linalg.solve(a, b)"},
               {.inputs = {f64({{0, 2, 1}, {1, 1, 0}, {3, 0, 2}}),
                           tensor(std::vector<double>{4, 3, 7}, {3, 1})},
                .attrs = is_transposed,
                .expected = {tensor(
                    std::vector<double>{2.7142857142857144, -2.4285714285714284, 2.142857142857143}, {3, 1})},
                .oracle = "np.linalg.solve(a.T, b)"}};
         }},

    {.op = "inv",
     .takes_complex = true,
     .oracle = "np.linalg.inv(x)",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {regular({1, 1})}},
               {.inputs = {regular({0, 0})}},
               {.inputs = {regular({2, 3, 3})}},
               {.inputs = {uniform({6, 6}, -1, 1)}},
               {.inputs = {regular({37, 37})}},
               {.inputs = {f64({{0, 2, 1}, {1, 1, 0}, {3, 0, 2}})},
                .expected = {f64({{-0.2857142857142857, 0.5714285714285714, 0.14285714285714285},
                                  {0.2857142857142857, 0.42857142857142855, -0.14285714285714285},
                                  {0.42857142857142855, -0.8571428571428571, 0.2857142857142857}})}}};
         }},

    {.op = "det",
     .takes_complex = true,
     .oracle = "np.linalg.det(x)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {regular({1, 1})}},
               {.inputs = {regular({2, 0, 0})}},
               {.inputs = {regular({2, 3, 3})}},
               {.inputs = {uniform({6, 6}, -1, 1)}},
               {.inputs = {f64({{{0, 2, 1}, {1, 1, 0}, {3, 0, 2}}, {{1, 2, 3}, {4, 5, 6}, {7, 8, 10}}})},
                .expected = {f64({-7, -3})}}};
         }},

    {.op = "cofactors",
     .takes_complex = true,
     .held = 0b10,
     .no_differences = "y must stay the determinant of x",
     .oracle = "y[:, None, None] * np.linalg.inv(x).transpose(0, 2, 1)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {regular({2, 0, 0}), f64({1, 1})}},
               {.inputs = {f64({{1, 2}, {2, 4}}), f64(0)},
                .expected = {f64({{4, -2}, {-2, 1}})},
                .oracle = "np.array([[x[1, 1], -x[1, 0]], [-x[0, 1], x[0, 0]]])"},
               {.inputs = {f64({{{0, 2, 1}, {1, 1, 0}, {3, 0, 2}}, {{1, 2, 3}, {4, 5, 6}, {7, 8, 10}}}),
                           f64({-7, -3})},
                .expected = {
                    f64({{{2, -2, -3}, {-4, -3, 6}, {-1, 1, -2}}, {{2, 2, -3}, {4, -11, 6}, {-3, 6, -3}}})}}};
         }},

    {.op = "slogdet",
     .takes_complex = true,
     .oracle = "np.linalg.slogdet(x)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {regular({1, 1})}},
               {.inputs = {regular({2, 0, 0})}},
               {.inputs = {regular({2, 3, 3})}},
               {.inputs = {uniform({6, 6}, -1, 1)}},
               {.inputs = {regular({37, 37})}},
               {.inputs = {f64({{{0, 2, 1}, {1, 1, 0}, {3, 0, 2}}, {{1, 2, 3}, {4, 5, 6}, {7, 8, 11}}})},
                .expected = {f64({-1, -1}), f64({1.9459101490553132, 1.791759469228055})}},
               {.inputs = {reshape(c128({{1, 1}, {0, 2}, {3, 0}, {1, -1}}), {2, 2})},
                .expected = {reshape(c128({{0.31622776601683794, -0.9486832980505138}}), {}),
                             f64(1.8444397270569681)}}};
         }},

    {.op = "lu",
     .takes_complex = true,
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 5, 3}, -1, 1)}},
               {.inputs = {uniform({0, 3}, -1, 1)}},
               {.inputs = {regular({37, 37})}},
               {.inputs = {f64({{1, 2, 4}, {4, 8, 4}, {2, 8, 6}})},
                .expected = {f64({{4, 8, 4}, {0.5, 4, 4}, {0.25, 0, 3}}), tensor({1, 2, 0}, DType::i64)},
                .oracle = "(torch.linalg.lu_factor(torch.tensor(x))[0], [1, 2, 0])"},
               {.inputs = {reshape(c128({{0, 1}, {2, 0}, {2, 0}, {0, 0}}), {2, 2})},
                .expected = {reshape(c128({{2, 0}, {0, 0}, {0, 0.5}, {2, 0}}), {2, 2}),
                             tensor({1, 0}, DType::i64)},
                .oracle = "(torch.linalg.lu_factor(torch.tensor(x))[0], [1, 0])"}};
         }},
};

}   // namespace

std::span<const OpSamples> solve_samples() { return solve_table; }

}   // namespace tapedeck::test
