// Linear equations: composites and edge cases of tapedeck/ops/solve.h, NaN and infinity, several threads,
// exact error texts. The op table test covers values and derivatives.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <thread>

#include "closeness.h"
#include "ops/sample_inputs.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/tapedeck.h"
#include "warnings.h"

namespace solve_test {

using namespace tapedeck;

TEST_CASE("cholesky_solve solves with the factor", "[solve]") {
  const Tensor a = samples::spd({2, 5, 5}), b = samples::uniform({2, 5, 3}, -1, 1);
  CHECK(worst(cholesky_solve(cholesky(a), b), solve(a, b)) < 1e-14);
  CHECK(check_gradients([](const std::vector<Tensor>& x) { return cholesky_solve(cholesky(x[0]), x[1]); },
                        {a, b}));
}

// np.trace, np.diagonal
TEST_CASE("diagonal and trace of matrices of any form", "[solve]") {
  const Tensor x = samples::f64({{1, 2, 3}, {4, 5, 6}});
  CHECK(diagonal(x).to_vector() == std::vector<double>{1, 5});
  CHECK(trace(x).item() == 6);
  CHECK(diagonal(transpose(x)).to_vector() == std::vector<double>{1, 5});
  CHECK(diagonal(tensor({{1}, {2}, {3}, {4}}, DType::i64)).to_vector() == std::vector<double>{1});
  CHECK(diagonal(zeros({4, 0, 3})).shape() == Shape{4, 0});
  CHECK(trace(zeros({4, 0, 0})).to_vector() == std::vector<double>(4));
  CHECK(trace(samples::f64({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})).to_vector() == std::vector<double>{5, 13});
  CHECK(check_gradients([](const std::vector<Tensor>& in) { return trace(square(in[0])); },
                        {samples::uniform({2, 5, 3}, -1, 1)}));
}

TEST_CASE("cholesky takes the symmetric part", "[solve]") {
  const Tensor x = samples::regular({4, 4});
  CHECK(same_bits(cholesky(x), cholesky(0.5 * (x + transpose(x)))));
}

TEST_CASE("large systems agree with small ones, on any number of threads", "[solve][threads]") {
  const Tensor a = samples::regular({70, 70}), b = samples::uniform({70, 11}, -1, 1),
               s = samples::spd({70, 70});
  const auto many = [](const Tensor& x) { return broadcast_to(x, {50, x.shape()[0], x.shape()[1]}); };
  const std::vector<Tensor> one = {solve(a, b),
                                   solve(a, b, {.transpose_a = true}),
                                   triangular_solve(a, b),
                                   inv(a),
                                   cholesky(s),
                                   det(s * 0.02),
                                   slogdet(s).log_abs,
                                   lu(a).packed};
  CHECK(worst(matmul(a, one[0]), b) < 1e-13);
  CHECK(worst(matmul(a, one[1], {.transpose_a = true}), b) < 1e-13);
  CHECK(worst(matmul(a, one[3]), eye(70, DType::f64)) < 1e-13);
  CHECK(worst(matmul(one[4], one[4], {.transpose_b = true}), s) < 1e-12);
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    const std::vector<Tensor> all = {solve(many(a), many(b)),
                                     solve(a, many(b), {.transpose_a = true}),
                                     triangular_solve(many(a), b),
                                     inv(many(a)),
                                     cholesky(many(s)),
                                     det(many(s * 0.02)),
                                     slogdet(many(s)).log_abs,
                                     lu(many(a)).packed};
    for (std::size_t i = 0; i < one.size(); ++i)
      for (const Tensor& each : unstack(all[i]))
        CHECK(same_bits(each, one[i]));
  }
  set_num_threads(1);
}

TEST_CASE("a matrix that is not finite gives NaN, without affecting others", "[solve]") {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    std::vector<double> v = samples::spd({3, 4, 4}).to_vector();
    v[16 + 5] = bad;
    const Tensor x = tensor(v, {3, 4, 4}), b = samples::uniform({4, 2}, -1, 1);
    const SignAndLog s = slogdet(x);
    for (const Tensor& y : {cholesky(x), solve(x, b), solve(x, b, {.transpose_a = true}), inv(x), det(x),
                            s.sign, s.log_abs, lu(x).packed}) {
      const std::vector<double> values = y.to_vector();
      const std::size_t n = values.size() / 3;
      for (std::size_t i = 0; i < values.size(); ++i)
        CHECK(std::isnan(values[i]) == (i / n == 1));
    }
  }
}

TEST_CASE("singular matrices", "[solve]") {
  const Tensor x = samples::f64({{1, 2}, {2, 4}});
  CHECK(det(x).item() == 0);
  CHECK(slogdet(x).sign.item() == 0);
  CHECK(slogdet(x).log_abs.item() == -std::numeric_limits<double>::infinity());
  CHECK(lu(x).packed.to_vector() == std::vector<double>{2, 4, 0.5, 0});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = slogdet(x).log_abs;
  CHECK_THROWS_WITH(tape.gradient(y, x), "inv: matrix 0 is singular: pivot 1 is 0: x is f64[2,2]");
}

TEST_CASE("the gradient of a determinant is the matrix of cofactors, also of a singular matrix", "[solve]") {
  const Tensor x = samples::f64({{1, 2, 3}, {4, 5, 6}, {5, 7, 9}}),
               y = samples::f64({{1, 2, 3}, {2, 4, 6}, {3, 6, 9}});
  const auto gradient = [](const Tensor& at) {
    GradientTape tape;
    tape.watch(at);
    return tape.gradient(det(at), at).dense();
  };
  CHECK(worst(gradient(x), samples::f64({{3, -6, 3}, {3, -6, 3}, {-3, 6, -3}})) < 1e-12);
  CHECK(worst(gradient(y), zeros({3, 3}, DType::f64)) < 1e-12);
  CHECK(worst(gradient(stack({samples::regular({3, 3}), x})),
              stack({gradient(samples::regular({3, 3})), gradient(x)})) < 1e-12);
  CHECK(check_gradients([](const std::vector<Tensor>& in) { return det(in[0]); },
                        {samples::f64({{1, 2, 0}, {4, 5, 0}, {0, 0, 0}})}));
}

// ∂² det / ∂xᵢⱼ ∂xₖₗ = εᵢₖₘ εⱼₗₙ xₘₙ for 3×3 matrices.
TEST_CASE("second derivatives of determinants, also of singular and nearly singular matrices", "[solve]") {
  const auto sign = [](int i, int j, int k) { return (j - i) * (k - i) * (k - j) / 2; };
  const auto by_definition = [&](const std::vector<double>& x) {
    std::vector<double> h;
    for (int ij = 0; ij < 9; ++ij)
      for (int kl = 0; kl < 9; ++kl) {
        double e = 0;
        for (int mn = 0; mn < 9; ++mn)
          e += sign(ij / 3, kl / 3, mn / 3) * sign(ij % 3, kl % 3, mn % 3) * x[static_cast<std::size_t>(mn)];
        h.push_back(e);
      }
    return tensor(h, {3, 3, 3, 3});
  };
  const Tensor close = samples::f64({{1, 2, 3}, {4, 5, 6}, {5, 7, 9.0000001}});
  for (const Tensor& x :
       {samples::f64({{1, 0, 0}, {0, 0, 0}, {0, 0, 0}}), samples::f64({{1, 2, 3}, {2, 4, 6}, {3, 6, 9}}),
        samples::f64({{1, 2, 3}, {4, 5, 6}, {5, 7, 9}}),
        samples::f64({{1, 0, 0}, {0, 1e-9, 0}, {0, 0, 1e-9}}), zeros({3, 3}, DType::f64), close,
        close * 1e-90, samples::regular({3, 3})}) {
    CHECK(worst(hessian([](const Tensor& at) { return det(at); }, x), by_definition(x.to_vector())) <=
          1e-13 * max(abs(x)).item());
  }
}

// On a thread of its own, since a thread is warned once.
TEST_CASE("derivatives of a determinant do not warn of the rule's own tape", "[solve]") {
  const test::Warnings warnings;
  std::thread([] {
    (void)hessian([](const Tensor& at) { return det(at); }, samples::f64({{1, 2}, {2, 4}}));
  }).join();
  CHECK(warnings.texts == std::vector<std::string>{});
}

TEST_CASE("determinants of matrices of any rank have derivatives of any order", "[solve]") {
  const TensorFunction gradient = [](const std::vector<Tensor>& in) {
    GradientTape tape;
    tape.watch(in[0]);
    return tape.gradient(det(in[0]), in[0]).dense();
  };
  const Tensor two_zeros = diag(samples::f64({2, 0.5, 0, 0})),
               mixed = stack({samples::f64({{1, 2}, {3, 4}}), samples::f64({{1, 2}, {2, 4}}),
                              zeros({2, 2}, DType::f64)});
  for (const Tensor& x : {zeros({1, 1}, DType::f64), zeros({2, 2}, DType::f64), zeros({5, 5}, DType::f64),
                          samples::f64({{1, 1}, {1, 1 + 1e-9}}), two_zeros, mixed})
    for (const Tensor& at : {x, complex(x, 0.5 * x)}) {
      CHECK(check_gradients([](const std::vector<Tensor>& in) { return det(in[0]); }, {at}));
      CHECK(check_vjp(gradient, {at}));
      CHECK(check_jvp(gradient, {at}));
    }
  CHECK(check_gradients(gradient, {zeros({3, 3}, DType::f64)}));
  CHECK(worst(gradient({1e-100 * two_zeros + 1e-100}), 1e-300 * gradient({two_zeros + 1})) < 1e-312);
}

TEST_CASE("linear equations reject invalid arguments", "[solve][errors]") {
  const Tensor good = samples::spd({2, 2}), b = ones({2, 1}, DType::f64),
               pair = stack({good, zeros({2, 2}, DType::f64)});
  CHECK_THROWS_WITH(cholesky(samples::f64({{1, 2}, {2, 1}})),
                    "cholesky: matrix 0 is not positive definite: its leading minor of order 2 is not "
                    "positive: x is f64[2,2]");
  CHECK_THROWS_WITH(cholesky(pair),
                    "cholesky: matrix 1 is not positive definite: its leading minor of order 1 is not "
                    "positive: x is f64[2,2,2]");
  CHECK_THROWS_WITH(inv(pair), "inv: matrix 1 is singular: pivot 0 is 0: x is f64[2,2,2]");
  CHECK_THROWS_WITH(solve(pair, b), "solve: matrix 1 is singular: pivot 0 is 0: a is f64[2,2,2]");
  CHECK_THROWS_WITH(triangular_solve(samples::f64({{1, 2}, {2, 0}}), b),
                    "triangular_solve: matrix 0 is singular: pivot 1 is 0: a is f64[2,2]");
  CHECK_THROWS_AS(inv(pair), ArgumentError);
  CHECK_THROWS_WITH(inv(ones({2, 3})), "inv: takes square matrices: x is f32[2,3]");
  CHECK_THROWS_WITH(det(ones({2})), "det: takes tensors of rank 2 or more: x is f32[2]");
  CHECK_THROWS_WITH(cholesky(ones({2, 2}, DType::i32)),
                    "cholesky: takes f32, f64, f16, bf16, c64 or c128, use astype: x is i32[2,2]");
  CHECK_THROWS_WITH(slogdet(ones({1, 2, 3})), "slogdet: takes square matrices: x is f32[1,2,3]");
  CHECK_THROWS_WITH(lu(ones({})), "lu: takes tensors of rank 2 or more: x is f32[]");
  CHECK_THROWS_WITH(trace(ones({3})), "trace: takes tensors of rank 2 or more: x is f32[3]");
  CHECK_THROWS_WITH(trace(ones({2, 2}, DType::u8)),
                    "trace: i8, u8 and bool cannot be summed, use astype: x is u8[2,2]");
  CHECK_THROWS_WITH(solve(good, ones({3, 1}, DType::f64)),
                    "solve: a and b have different numbers of rows: a is f64[2,2], b is f64[3,1]");
  CHECK_THROWS_WITH(
      solve(good, ones({2, 1}, DType::i32)),
      "solve: takes f32, f64, f16, bf16, c64 or c128, use astype: a is f64[2,2], b is i32[2,1]");
  CHECK_THROWS_WITH(solve(good, ones({2}, DType::f64)),
                    "solve: takes b of rank 2 or more; expand_dims(b, -1) makes a vector a column: a is "
                    "f64[2,2], b is f64[2]");
  CHECK_THROWS_WITH(triangular_solve(ones({2, 3, 3}), ones({4, 3, 1})),
                    "triangular_solve: batch axes do not broadcast: a is f32[2,3,3], b is f32[4,3,1]");
  CHECK_THROWS_AS(inv(zeros({std::int64_t{1} << 31, 0})), ShapeError);
}

TEST_CASE("systems of mixed dtypes are solved in the promoted dtype", "[solve]") {
  const Tensor a = samples::f64({{4, 1}, {1, 3}}), b = tensor({{1.0}, {2.0}}), wide = astype(b, DType::f64);
  CHECK(same_bits(solve(a, b), solve(a, wide)));
  CHECK(same_bits(triangular_solve(a, b), triangular_solve(a, wide)));
  CHECK(same_bits(cholesky_solve(cholesky(a), b), cholesky_solve(cholesky(a), wide)));
  CHECK_THROWS_WITH(solve(a, Tensor()),
                    "solve: input 1 is undefined; it was default-constructed or moved from");
}

TEST_CASE("errors of cholesky_solve name it and its arguments", "[solve][errors]") {
  const Tensor factor = eye(2, DType::f64);
  CHECK_THROWS_WITH(cholesky_solve(factor, ones({3, 1}, DType::f64)),
                    "cholesky_solve: factor and b have different numbers of rows: factor is f64[2,2], b is "
                    "f64[3,1]");
  CHECK_THROWS_WITH(cholesky_solve(factor, ones({2}, DType::f64)),
                    "cholesky_solve: takes b of rank 2 or more; expand_dims(b, -1) makes a vector a column: "
                    "factor is f64[2,2], b is f64[2]");
  CHECK_THROWS_WITH(cholesky_solve(factor, ones({2, 1}, DType::i32)),
                    "cholesky_solve: takes f32, f64, f16, bf16, c64 or c128, use astype: factor is f64[2,2], "
                    "b is i32[2,1]");
  CHECK_THROWS_WITH(cholesky_solve(ones({2, 3}), ones({2, 1})),
                    "cholesky_solve: takes square matrices: factor is f32[2,3], b is f32[2,1]");
  CHECK_THROWS_WITH(cholesky_solve(factor, Tensor()), "cholesky_solve: b is undefined");
}

}   // namespace solve_test
