// Samples of the ops in lib/ops/linalg/banded.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

// Three diagonals of which the middle one is the largest.
Tensor tridiagonal(const Shape& shape) {
  std::vector<double> v = uniform(shape, -1, 1).to_vector();
  const std::int64_t n = shape[shape.ndim() - 1];
  for (std::size_t i = 0; i < v.size(); ++i)
    if (static_cast<std::int64_t>(i) / n % 3 == 1) v[i] += 3;
  return tensor(v, shape);
}

Tensor complex_tridiagonal() {
  return reshape(c128({{1, 0}, {1, 1}, {9, 9}, {4, 1}, {4, 0}, {3, -1}, {9, 9}, {0, 1}, {2, 0}}), {3, 3});
}

constexpr OpSamples banded_table[] = {
    {.op = "banded_triangular_solve",
     .takes_complex = true,
     .samples =
         [] {
           const auto kind = [](bool lower, bool is_transposed) {
             return OwnedAttrs(Attrs(TriangularSolveOptions{lower, is_transposed}));
           };
           return std::vector<Sample>{
               {.inputs = {uniform({3, 5}, 1, 2), uniform({5, 2}, -1, 1)}, .attrs = kind(true, false)},
               {.inputs = {uniform({3, 5}, 1, 2), uniform({5, 2}, -1, 1)}, .attrs = kind(true, true)},
               {.inputs = {uniform({3, 5}, 1, 2), uniform({5, 2}, -1, 1)}, .attrs = kind(false, false)},
               {.inputs = {uniform({3, 5}, 1, 2), uniform({5, 2}, -1, 1)}, .attrs = kind(false, true)},
               {.inputs = {uniform({2, 1, 4}, 1, 2), uniform({4, 3}, -1, 1)}, .attrs = kind(true, false)},
               {.inputs = {uniform({4, 2}, 1, 2), uniform({3, 2, 1}, -1, 1)}, .attrs = kind(false, false)},
               {.inputs = {uniform({2, 0}, 1, 2), uniform({0, 3}, -1, 1)}, .attrs = kind(true, false)},
               {.inputs = {uniform({2, 37}, 1, 2), uniform({37, 1}, -1, 1)}, .attrs = kind(true, false)},
               {.inputs = {f64({{2, 4, 5}, {9, 1, 3}}), f64({{2, 4}, {5, -2}, {8, 1}})},
                .attrs = kind(true, false),
                .expected = {f64({{1, 2}, {1, -1}, {1, 0.8}})},
                .oracle = "np.linalg.solve([[2, 0, 0], [1, 4, 0], [0, 3, 5]], b)"},
               {.inputs = {f64({{1, 3, 9}, {2, 4, 5}}), f64({{3, 5}, {7, -2}, {5, 10}})},
                .attrs = kind(false, false),
                .expected = {f64({{1, 3.5}, {1, -2}, {1, 2}})},
                .oracle = "np.linalg.solve([[2, 1, 0], [0, 4, 3], [0, 0, 5]], b)"},
               {.inputs = {reshape(c128({{4, 1}, {4, 0}, {3, -1}, {9, 9}, {0, 1}, {2, 0}}), {2, 3}),
                           reshape(c128({{1, 0}, {0, 1}, {2, 1}}), {3, 1})},
                .attrs = kind(true, false),
                .expected = {reshape(c128({{0.23529411764705882, -0.058823529411764705},
                                           {-0.014705882352941176, 0.19117647058823528},
                                           {0.5470588235294118, 0.38823529411764707}}),
                                     {3, 1})},
                .oracle = "np.linalg.solve([[4 + 1j, 0, 0], [1j, 4, 0], [0, 2, 3 - 1j]], b)"}};
         }},

    {.op = "tridiagonal_matmul",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {tridiagonal({3, 5}), uniform({5, 2}, -1, 1)}},
               {.inputs = {tridiagonal({2, 3, 4}), uniform({4, 3}, -1, 1)}},
               {.inputs = {tridiagonal({3, 2}), uniform({3, 2, 1}, -1, 1)}},
               {.inputs = {tridiagonal({3, 1}), uniform({1, 1}, -1, 1)}},
               {.inputs = {tridiagonal({3, 0}), uniform({0, 2}, -1, 1)}},
               {.inputs = {tridiagonal({3, 37}), uniform({37, 3}, -1, 1)}},
               {.inputs = {f64({{1, 2, 9}, {3, 4, 5}, {9, 6, 7}}), f64({{1, 0}, {2, 1}, {-1, 3}})},
                .expected = {f64({{5, 1}, {12, 10}, {9, 22}})},
                .oracle = "np.array([[3, 1, 0], [6, 4, 2], [0, 7, 5]]) @ x"},
               {.inputs = {complex_tridiagonal(), reshape(c128({{1, 0}, {0, 1}, {2, 1}}), {3, 1})},
                .expected = {reshape(c128({{4, 2}, {1, 8}, {7, 3}}), {3, 1})},
                .oracle = "np.array([[4 + 1j, 1, 0], [1j, 4, 1 + 1j], [0, 2, 3 - 1j]]) @ x"}};
         }},

    {.op = "tridiagonal_solve",
     .takes_complex = true,
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {tridiagonal({3, 5}), uniform({5, 2}, -1, 1)}},
               {.inputs = {tridiagonal({2, 3, 4}), uniform({4, 3}, -1, 1)}},
               {.inputs = {tridiagonal({3, 2}), uniform({3, 2, 1}, -1, 1)}},
               {.inputs = {tridiagonal({3, 1}), uniform({1, 1}, -1, 1)}},
               {.inputs = {tridiagonal({3, 0}), uniform({0, 2}, -1, 1)}},
               {.inputs = {tridiagonal({3, 37}), uniform({37, 3}, -1, 1)}},
               {.inputs = {f64({{1, 2, 9}, {0, 1, 5}, {9, 6, 7}}), f64({{1, 0}, {2, 1}, {-1, 3}})},
                .expected = {f64({{0.7, -0.03333333333333333}, {1, 0}, {-1.6, 0.6}})},
                .oracle = "np.linalg.solve([[0, 1, 0], [6, 1, 2], [0, 7, 5]], b)"},
               {.inputs = {complex_tridiagonal(), reshape(c128({{1, 0}, {0, 1}, {2, 1}}), {3, 1})},
                .expected = {reshape(c128({{0.23854796888504753, -0.043215211754537596},
                                           {0.0025929127052722557, -0.06568712186689715},
                                           {0.4853068280034572, 0.5388936905790839}}),
                                     {3, 1})},
                .oracle = "np.linalg.solve([[4 + 1j, 1, 0], [1j, 4, 1 + 1j], [0, 2, 3 - 1j]], b)"}};
         }},
};

}   // namespace

std::span<const OpSamples> banded_samples() { return banded_table; }

}   // namespace tapedeck::test
