// Exponentials and roots of matrices, and band matrices compared with dense ones; degenerate and infinite
// inputs, several threads, exact error texts. The op table test covers values and derivatives.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "closeness.h"
#include "ops/sample_inputs.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/tapedeck.h"

namespace matrix_functions_test {

using namespace tapedeck;

namespace {

Tensor unit(std::int64_t n) { return eye(n, DType::f64); }

// The matrix whose diagonal `ahead` above the main one is d, indexed by row; diagonals below the main one are
// indexed by row, too.
Tensor dense(const std::vector<std::vector<double>>& diagonals, const std::vector<std::int64_t>& ahead) {
  const auto n = static_cast<std::int64_t>(diagonals[0].size());
  std::vector<double> v(static_cast<std::size_t>(n * n));
  for (std::size_t d = 0; d < diagonals.size(); ++d)
    for (std::int64_t j = 0; j < n; ++j)
      if (j + ahead[d] >= 0 && j + ahead[d] < n)
        v[static_cast<std::size_t>(j * n + j + ahead[d])] = diagonals[d][static_cast<std::size_t>(j)];
  return tensor(v, {n, n});
}
std::vector<std::vector<double>> rows(const Tensor& x) {
  std::vector<std::vector<double>> r;
  for (const Tensor& t : unstack(x))
    r.push_back(t.to_vector());
  return r;
}

}   // namespace

TEST_CASE("exponentials of matrices of any size", "[matrix_functions]") {
  const Tensor d = samples::f64({-30, -1, 0, 2, 30});
  const Tensor of_diagonal = matrix_exponential(d * unit(5));
  CHECK(worst(diagonal(of_diagonal) / exp(d), ones({5}, DType::f64)) < 1e-13);
  const double t = 20;   // a rotation by 20 radians
  CHECK(worst(matrix_exponential(samples::f64({{0, -t}, {t, 0}})),
              samples::f64({{std::cos(t), -std::sin(t)}, {std::sin(t), std::cos(t)}})) < 1e-13);
  CHECK(worst(matrix_exponential(samples::f64({{0, 1, 2}, {0, 0, 3}, {0, 0, 0}})),
              samples::f64({{1, 1, 3.5}, {0, 1, 3}, {0, 0, 1}})) < 1e-15);
  const Tensor x = samples::uniform({40, 40}, -0.3, 0.3);
  CHECK(worst(matmul(matrix_exponential(x), matrix_exponential(-x)), unit(40)) < 1e-12);
  CHECK(worst(matrix_exponential(stack({x, 9 * x})),
              stack({matrix_exponential(x), matrix_exponential(9 * x)})) == 0);
  // d/dx exp(x) = exp(x) for 1×1 matrices, with a large cotangent
  const Tensor one = tensor(std::vector<double>{0.5}, {1, 1});
  GradientTape tape;
  tape.watch(one);
  const Tensor y = matrix_exponential(one) * 1e12;
  CHECK(std::abs(tape.gradient(y, one).dense().item() / (1e12 * std::exp(0.5)) - 1) < 1e-14);
}

TEST_CASE("roots of matrices", "[matrix_functions]") {
  for (const Tensor& x : {samples::regular({2, 6, 6}), samples::spd({40, 40}),
                          samples::f64({{0, -1}, {1, 0}}), 1e-8 * samples::regular({3, 3})}) {
    const Tensor y = matrix_square_root(x);
    CHECK(worst(matmul(y, y), x) < 1e-12 * max(abs(x)).item());
  }
  CHECK(worst(matrix_square_root(samples::f64({{0, -1}, {1, 0}})),
              std::sqrt(0.5) * samples::f64({{1, -1}, {1, 1}})) < 1e-15);
  const Tensor x = samples::f64({{1, 2}, {2, 1}});   // eigenvalues 3 and -1
  CHECK_THROWS_WITH(matrix_square_root(x),
                    "matrix_square_root: matrix 0 has an eigenvalue that is 0 or negative, so it has no "
                    "principal root: x is f64[2,2]");
  CHECK_THROWS_AS(matrix_square_root(-unit(2)), ArgumentError);
  CHECK_THROWS_AS(matrix_square_root(stack({unit(2), zeros({2, 2}, DType::f64)})), ArgumentError);
}

TEST_CASE("band matrices agree with dense ones", "[matrix_functions]") {
  const Tensor bands = samples::uniform({3, 6}, 1, 2), three = samples::uniform({3, 6}, -1, 1),
               b = samples::uniform({6, 2}, -1, 1);
  const Tensor lower = dense(rows(bands), {0, -1, -2}), upper = dense(rows(bands), {2, 1, 0});
  for (const bool transposed : {false, true}) {
    CHECK(worst(banded_triangular_solve(bands, b, {true, transposed}),
                solve(lower, b, {.transpose_a = transposed})) < 1e-12);
    CHECK(worst(banded_triangular_solve(bands, b, {false, transposed}),
                solve(upper, b, {.transpose_a = transposed})) < 1e-12);
  }
  const Tensor a = dense(rows(three), {1, 0, -1});
  CHECK(worst(tridiagonal_matmul(three, b), matmul(a, b)) < 1e-15);
  CHECK(worst(tridiagonal_solve(three, b), solve(a, b)) < 1e-12);
}

TEST_CASE("entries outside the band are not read", "[matrix_functions]") {
  const double nan = std::nan("");
  const Tensor three = samples::f64({{1, 1, nan}, {4, 4, 4}, {nan, 1, 1}}), b = ones({3, 1}, DType::f64);
  GradientTape tape({.persistent = true});
  tape.watch(b);
  for (const Tensor& y : {tridiagonal_matmul(three, b), tridiagonal_solve(three, b),
                          banded_triangular_solve(samples::f64({{4, 4, 4}, {nan, 1, 1}}), b)}) {
    for (const double e : y.to_vector())
      CHECK(std::isfinite(e));
    for (const double e : tape.gradient(y, b).dense().to_vector())
      CHECK(std::isfinite(e));
  }
}

TEST_CASE("functions of many matrices give the same bits on any number of threads",
          "[matrix_functions][threads]") {
  const Tensor x = samples::regular({12, 12}), many = broadcast_to(x, {70, 12, 12}),
               bands = samples::uniform({3, 12}, 1, 2), b = broadcast_to(x, {700, 12, 12});
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    for (const Tensor& e : unstack(matrix_exponential(many)))
      CHECK(same_bits(e, matrix_exponential(x)));
    for (const Tensor& e : unstack(matrix_square_root(many)))
      CHECK(same_bits(e, matrix_square_root(x)));
    for (const Tensor& e : unstack(tridiagonal_matmul(bands, b)))
      CHECK(same_bits(e, tridiagonal_matmul(bands, x)));
    for (const Tensor& e : unstack(tridiagonal_solve(bands, b)))
      CHECK(same_bits(e, tridiagonal_solve(bands, x)));
    for (const Tensor& e : unstack(banded_triangular_solve(bands, b)))
      CHECK(same_bits(e, banded_triangular_solve(bands, x)));
  }
  set_num_threads(1);
}

TEST_CASE("functions of matrices that are not finite are NaN", "[matrix_functions]") {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const Tensor x = samples::f64({{2, bad}, {1, 3}});
    for (const double e : matrix_exponential(x).to_vector())
      CHECK(std::isnan(e));
    for (const double e : matrix_square_root(x).to_vector())
      CHECK(std::isnan(e));
  }
}

TEST_CASE("band matrices of another dtype than the columns", "[matrix_functions]") {
  const Tensor bands = samples::f64({{4, 5, 6}, {1, 1, 1}}), b = tensor({{1.0, 0.0}, {2.0, 1.0}, {3.0, 5.0}});
  const Tensor y = banded_triangular_solve(bands, b);
  CHECK(same_bits(y, banded_triangular_solve(bands, astype(b, DType::f64))));
  CHECK(same_bits(banded_triangular_solve(astype(bands, DType::c64), b),
                  banded_triangular_solve(astype(bands, DType::c64), astype(b, DType::c64))));
  GradientTape tape;
  tape.watch(b);
  CHECK(tape.gradient(sum(banded_triangular_solve(bands, b)), b).dense().dtype() == DType::f32);
  CHECK_THROWS_AS(banded_triangular_solve(bands, astype(b, DType::i32)), DTypeError);
}

TEST_CASE("functions of matrices and band matrices reject invalid arguments", "[matrix_functions][errors]") {
  const Tensor b = ones({3, 1});
  CHECK_THROWS_WITH(matrix_exponential(ones({2, 3})),
                    "matrix_exponential: takes square matrices: x is f32[2,3]");
  CHECK_THROWS_WITH(matrix_square_root(ones({2, 2}, DType::i32)),
                    "matrix_square_root: takes f32, f64, f16, bf16, c64 or c128, use astype: x is i32[2,2]");
  CHECK_THROWS_WITH(banded_triangular_solve(zeros({0, 3}), b),
                    "banded_triangular_solve: takes one diagonal or more: bands is f32[0,3], b is f32[3,1]");
  CHECK_THROWS_WITH(banded_triangular_solve(ones({2, 4}), b),
                    "banded_triangular_solve: the diagonals and the matrix differ in length: bands is "
                    "f32[2,4], b is f32[3,1]");
  CHECK_THROWS_WITH(banded_triangular_solve(zeros({2, 3}), b),
                    "banded_triangular_solve: matrix 0 is singular: pivot 0 is 0: bands is f32[2,3]");
  CHECK_THROWS_WITH(tridiagonal_matmul(ones({2, 3}), b),
                    "tridiagonal_matmul: takes three diagonals: diagonals is f32[2,3], x is f32[3,1]");
  CHECK_THROWS_WITH(tridiagonal_solve(ones({3}), b),
                    "tridiagonal_solve: takes tensors of rank 2 or more: diagonals is f32[3], b is f32[3,1]");
  CHECK_THROWS_WITH(tridiagonal_solve(zeros({3, 3}), b),
                    "tridiagonal_solve: matrix 0 is singular: pivot 0 is 0: diagonals is f32[3,3]");
  CHECK_THROWS_AS(tridiagonal_matmul(ones({3, 3}), ones({3, 1}, DType::i32)), DTypeError);
  CHECK_THROWS_AS(tridiagonal_solve(ones({3, 3}, DType::i32), b), DTypeError);
  CHECK(tridiagonal_matmul(ones({3, 3}), ones({3, 1}, DType::f64)).dtype() == DType::f64);
}

}   // namespace matrix_functions_test
