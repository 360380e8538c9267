// Orthogonal factorisations: the equations that the factors must satisfy, on any number of threads;
// degenerate and infinite inputs; least squares; exact error texts. The op table test covers values and
// derivatives.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "case.h"
#include "closeness.h"
#include "ops/sample_inputs.h"
#include "tapedeck/gradcheck.h"

namespace decompositions_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

Tensor unit(std::int64_t n) { return eye(n, DType::f64); }
Tensor gram(const Tensor& x) { return matmul(x, x, {.transpose_a = true}); }
Tensor random_matrix(std::int64_t m, std::int64_t n) { return random::normal({m, n}, {11}, DType::f64); }
Tensor random_complex(std::int64_t m, std::int64_t n) {
  return complex(random_matrix(m, n), random::normal({m, n}, {12}, DType::f64));
}
Tensor complex_gram(const Tensor& x) { return matmul(conj(x), x, {.transpose_a = true}); }
/// The largest absolute difference.
double farthest(const Tensor& x, const Tensor& y) { return x.size() == 0 ? 0 : max(abs(x - y)).item(); }
Tensor as_row_of(const Tensor& x) { return expand_dims(x, 0); }
bool all_nan(const Tensor& x) {
  const std::vector<double> v = x.to_vector();
  return std::all_of(v.begin(), v.end(), [](double e) { return std::isnan(e); });
}

}   // namespace

TEST_CASE("factors of matrices of any form", "[decompositions]") {
  for (const auto& [m, n] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 5}, {40, 17}, {17, 40}, {1, 6}, {6, 1}}) {
    INFO(m << " x " << n);
    const Tensor x = random_matrix(m, n);
    for (const bool full : {false, true}) {
      const Qr f = qr(x, {.full = full});
      CHECK(f.q.shape() == Shape{m, full ? m : std::min(m, n)});
      CHECK(worst(matmul(f.q, f.r), x) < 1e-13);
      CHECK(worst(gram(f.q), unit(f.q.shape()[1])) < 1e-13);
      for (std::int64_t i = 0; i < f.r.shape()[0]; ++i)
        for (std::int64_t j = 0; j < std::min(i, n); ++j)
          CHECK(f.r.at({i, j}) == 0);

      const Svd d = svd(x, {.full = full});
      CHECK(d.u.shape() == Shape{m, full ? m : std::min(m, n)});
      CHECK(d.vh.shape() == Shape{full ? n : std::min(m, n), n});
      CHECK(worst(gram(d.u), unit(d.u.shape()[1])) < 1e-13);
      CHECK(worst(matmul(d.vh, d.vh, {.transpose_b = true}), unit(d.vh.shape()[0])) < 1e-13);
      const std::int64_t k = std::min(m, n);
      CHECK(worst(matmul(slice(d.u, {0, 0}, {m, k}) * expand_dims(d.s, 0), slice(d.vh, {0, 0}, {k, n})), x) <
            1e-13);
      for (std::int64_t i = 0; i + 1 < k; ++i)
        CHECK(d.s.at({i}) >= d.s.at({i + 1}));
    }
    const Tensor p = pinv(x);   // the conditions of Penrose 1955
    CHECK(worst(matmul(matmul(x, p), x), x) < 1e-12);
    CHECK(worst(matmul(matmul(p, x), p), p) < 1e-12);
    CHECK(worst(matmul(x, p), transpose(matmul(x, p))) < 1e-12);
    CHECK(worst(matmul(p, x), transpose(matmul(p, x))) < 1e-12);
  }
  const Tensor x = random_matrix(40, 40);
  const Eigh e = eigh(x);
  const std::vector<double> v = x.to_vector();
  std::vector<double> symmetric(v.size());
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t j = 0; j < 40; ++j)
      symmetric[i * 40 + j] = v[std::max(i, j) * 40 + std::min(i, j)];
  CHECK(worst(matmul(e.vectors * expand_dims(e.values, 0), e.vectors, {.transpose_b = true}),
              tensor(symmetric, {40, 40})) < 1e-13);
  CHECK(worst(gram(e.vectors), unit(40)) < 1e-13);
}

TEST_CASE("factors of complex matrices of any form", "[decompositions][complex]") {
  const auto unit_of = [](std::int64_t n) { return eye(n, DType::c128); };
  const auto largest_is_positive = [](const Tensor& columns) {
    const Tensor largest = max(abs(columns), {0}),
                 at = one_hot(argmax(abs(columns), 0), columns.shape()[0], DType::f64);
    return farthest(sum(columns * astype(transpose(at), DType::c128), {0}), astype(largest, DType::c128)) ==
           0;
  };
  for (const auto& [m, n] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 5}, {40, 17}, {17, 40}, {1, 6}, {6, 1}}) {
    INFO(m << " x " << n);
    const Tensor x = random_complex(m, n);
    const std::int64_t k = std::min(m, n);
    for (const bool full : {false, true}) {
      const Qr f = qr(x, {.full = full});
      CHECK(farthest(matmul(f.q, f.r), x) < 1e-13);
      CHECK(farthest(complex_gram(f.q), unit_of(f.q.shape()[1])) < 1e-13);
      CHECK(farthest(f.r, triu(f.r)) == 0);
      CHECK(farthest(imag(diagonal(f.r)), zeros({k}, DType::f64)) == 0);

      const Svd d = svd(x, {.full = full});
      CHECK(d.s.dtype() == DType::f64);
      CHECK(farthest(complex_gram(d.u), unit_of(d.u.shape()[1])) < 1e-13);
      CHECK(farthest(matmul(d.vh, conjugate_transpose(d.vh)), unit_of(d.vh.shape()[0])) < 1e-13);
      CHECK(farthest(matmul(slice(d.u, {0, 0}, {m, k}) * astype(expand_dims(d.s, 0), DType::c128),
                            slice(d.vh, {0, 0}, {k, n})),
                     x) < 1e-13);
      CHECK(largest_is_positive(d.u));
    }
    const Tensor p = pinv(x);
    CHECK(farthest(matmul(matmul(x, p), x), x) < 1e-12);
    CHECK(farthest(matmul(matmul(p, x), p), p) < 1e-12);
    CHECK(farthest(matmul(x, p), conjugate_transpose(matmul(x, p))) < 1e-12);
    CHECK(farthest(matmul(p, x), conjugate_transpose(matmul(p, x))) < 1e-12);
  }
  const Tensor x = random_complex(40, 40), hermitian = x + conjugate_transpose(x);
  const Eigh e = eigh(tril(hermitian));
  CHECK(e.values.dtype() == DType::f64);
  CHECK(farthest(
            matmul(e.vectors * astype(expand_dims(e.values, 0), DType::c128), conjugate_transpose(e.vectors)),
            hermitian) < 1e-12);
  CHECK(farthest(complex_gram(e.vectors), unit_of(40)) < 1e-13);
  CHECK(largest_is_positive(e.vectors));
  const Tensor positive = matmul(x, conjugate_transpose(x)) + unit_of(40), l = cholesky(positive),
               b = random_complex(40, 3);
  CHECK(farthest(matmul(l, conjugate_transpose(l)), positive) < 1e-12);
  CHECK(farthest(matmul(positive, cholesky_solve(l, b)), b) < 1e-11);
  const SignAndLog s = slogdet(x);
  CHECK(farthest(s.sign * astype(exp(s.log_abs), DType::c128) / det(x), ones({}, DType::c128)) < 1e-12);
}

// Results that do not depend on the phases of the vectors have the gradients of matrix functions.
TEST_CASE("gradients through complex vectors whose phases do not count", "[decompositions][complex]") {
  const Tensor x = random_complex(4, 4), weight = random_complex(4, 4);
  const auto gradient_of = [&](const auto& f, const Tensor& at) {
    GradientTape tape;
    tape.watch(at);
    return tape.gradient(real(sum(f(at) * weight)), at).dense();
  };
  const auto as_complex = [](const Tensor& t) { return astype(t, DType::c128); };
  const Tensor hermitian = x + conjugate_transpose(x);
  const auto by_vectors = [&](const Tensor& t) {
    const Eigh e = eigh(t);
    return matmul(e.vectors * as_complex(as_row_of(exp(0.3 * e.values))), conjugate_transpose(e.vectors));
  };
  CHECK(farthest(by_vectors(hermitian), by_vectors(tril(hermitian))) == 0);
  // exp(0.3 h) from its series, where the lower triangle defines the Hermitian matrix h
  const auto by_series = [&](const Tensor& t) {
    const Tensor below = tril(t, -1),
                 h = below + conjugate_transpose(below) + matrix_diag(as_complex(real(diagonal(t))));
    Tensor term = eye(4, DType::c128), total = term;
    for (int i = 1; i < 60; ++i)
      term = matmul(term, h) * (0.3 / i), total = total + term;
    return total;
  };
  CHECK(farthest(by_vectors(hermitian), by_series(hermitian)) < 1e-12);
  CHECK(farthest(gradient_of(by_vectors, hermitian), gradient_of(by_series, hermitian)) < 1e-11);

  const auto inverse = [](const Tensor& t) { return inv(t); };
  const auto by_values = [&](const Tensor& t) {
    const Svd d = svd(t);
    return matmul(conjugate_transpose(d.vh) / as_complex(as_row_of(d.s)), conjugate_transpose(d.u));
  };
  CHECK(farthest(gradient_of(by_values, x), gradient_of(inverse, x)) < 1e-11);
  const auto by_qr = [](const Tensor& t) {
    const Qr f = qr(t);
    return triangular_solve(f.r, conjugate_transpose(f.q), {.lower = false});
  };
  CHECK(farthest(gradient_of(by_qr, x), gradient_of(inverse, x)) < 1e-11);
  CHECK(farthest(gradient_of([](const Tensor& t) { return pinv(t); }, x), gradient_of(inverse, x)) < 1e-11);
}

TEST_CASE("gradients of the determinant of a singular complex matrix", "[decompositions][complex]") {
  const Tensor x =
      reshape(samples::c128({{1, 1}, {2, 0}, {0, 2}, {2, 2}}), {2, 2});   // det = (1 + i)(2 + 2 i) - 4 i = 0
  GradientTape outer;
  outer.watch(x);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = det(x);
  const Tensor g = tape.gradient(y, x).dense();   // for the real part: the conjugates of the cofactors
  CHECK(farthest(g, reshape(samples::c128({{2, -2}, {0, 2}, {-2, 0}, {1, -1}}), {2, 2})) < 1e-14);
  CHECK(farthest(outer.gradient(g, x).dense(),
                 reshape(samples::c128({{1, 0}, {-1, 0}, {-1, 0}, {1, 0}}), {2, 2})) < 1e-14);
}

TEST_CASE("factorisations of many matrices give the same bits on any number of threads",
          "[decompositions][threads]") {
  const Tensor x = random_matrix(20, 20), many = broadcast_to(x, {60, 20, 20});
  const auto all = [](const Tensor& t) {
    const Qr f = qr(t);
    const Eigh e = eigh(t);
    const Svd d = svd(t);
    return std::vector<Tensor>{f.q, f.r, e.values, e.vectors, d.u, d.s, d.vh, pinv(t)};
  };
  const std::vector<Tensor> one = all(x);
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    const std::vector<Tensor> batch = all(many);
    for (std::size_t i = 0; i < one.size(); ++i)
      for (const Tensor& each : unstack(batch[i]))
        CHECK(same_bits(each, one[i]));
  }
  set_num_threads(1);
}

TEST_CASE("factors of matrices that are not finite are NaN", "[decompositions]") {
  for (const auto& [bad, is_complex] : {std::pair(std::nan(""), false),
                                        {std::numeric_limits<double>::infinity(), false},
                                        {std::nan(""), true}}) {
    std::vector<double> v = samples::spd({2, 4, 4}).to_vector();
    v[16 + 4] = bad;   // below the diagonal
    const Tensor x =
        is_complex ? complex(samples::spd({2, 4, 4}), tensor(v, {2, 4, 4})) : tensor(v, {2, 4, 4});
    const Qr f = qr(x);
    const Eigh e = eigh(x);
    const Svd d = svd(x, {.full = true});
    for (const Tensor& y : {f.q, f.r, e.values, e.vectors, d.u, d.s, d.vh, pinv(x)}) {
      const std::vector<Tensor> each = unstack(y);
      for (const double element : abs(each[0]).to_vector())
        CHECK(std::isfinite(element));
      CHECK((all_nan(abs(each[1])) || y.id() == f.r.id()));   // r is zero below its diagonal
    }
  }
}

TEST_CASE("equal eigenvalues do not contribute to the gradient of the vectors", "[decompositions]") {
  const Tensor x = samples::f64({{2, 0, 0}, {0, 2, 0}, {0, 0, 5}});
  GradientTape tape;
  tape.watch(x);
  const Eigh e = eigh(x);
  // v diag(w²) vᵀ = x²; between the equal values, at [1, 0], the gradient would be 24.
  const Tensor y =
      sum(matmul(e.vectors * expand_dims(square(e.values), 0), e.vectors, {.transpose_b = true}) *
          samples::f64({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}));
  CHECK(worst(tape.gradient(y, x).dense(), samples::f64({{4, 0, 0}, {0, 20, 0}, {70, 98, 90}})) < 1e-12);
}

TEST_CASE("singular values of a matrix without full rank", "[decompositions]") {
  const Tensor x = samples::f64({{1, 2}, {2, 4}, {3, 6}});
  CHECK(worst(svdvals(x), samples::f64({std::sqrt(70.0), 0})) < 1e-14);
  CHECK(worst(pinv(x), transpose(x) / 70) < 1e-15);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = sum(square(svdvals(x)));
  CHECK(worst(tape.gradient(y, x).dense(), 2 * x) < 1e-13);
}

// np.linalg.lstsq, and the normal equations with l2 solved by np.linalg.solve
TEST_CASE("least squares of any form and rank", "[decompositions]") {
  const Tensor tall = samples::f64({{1, 2}, {3, 4}, {5, 7}}),
               b3 = tensor(std::vector<double>{1, 0, 2}, {3, 1}),
               b2 = tensor(std::vector<double>{1, 2}, {2, 1});
  const Tensor best = tensor(std::vector<double>{-1.7857142857142858, 1.5}, {2, 1});
  const Tensor shortest =
      tensor(std::vector<double>{0.05555555555555556, 0.14444444444444443, 0.12222222222222222}, {3, 1});
  const Tensor wide = samples::f64({{1, 4, 3}, {5, 6, 7}});
  for (const bool fast : {true, false}) {
    const LstsqOptions options{.fast = fast}, damped{.l2 = 0.5, .fast = fast};
    CHECK(worst(lstsq(tall, b3, options), best) < 1e-12);
    CHECK(worst(lstsq(wide, b2, options), shortest) < 1e-12);
    for (const auto& [a, b] : {std::pair(tall, b3), std::pair(wide, b2)})
      CHECK(worst(lstsq(a, b, damped),
                  solve(gram(a) + 0.5 * unit(a.shape()[1]), matmul(a, b, {.transpose_a = true}))) < 1e-12);
    for (const Tensor& a : {samples::uniform({2, 9, 4}, -1, 1), samples::uniform({3, 7}, -1, 1)})
      for (const LstsqOptions& o : {options, damped})
        CHECK(check_gradients([&](const std::vector<Tensor>& x) { return lstsq(x[0], x[1], o); },
                              {a, samples::uniform({a.shape()[a.ndim() - 2], 2}, -1, 1)}));
  }
  const Tensor dependent = samples::f64({{1, 2}, {2, 4}, {3, 6}});
  CHECK(worst(lstsq(dependent, b3, {.fast = false}), tensor(std::vector<double>{0.1, 0.2}, {2, 1})) < 1e-14);
}

TEST_CASE("factorisations reject invalid arguments", "[decompositions][errors]") {
  CHECK_THROWS_WITH(qr(ones({3})), "qr: takes tensors of rank 2 or more: x is f32[3]");
  CHECK_THROWS_WITH(svd(ones({3, 3}, DType::i64)),
                    "svd: takes f32, f64, f16, bf16, c64 or c128, use astype: x is i64[3,3]");
  CHECK_THROWS_WITH(eigh(ones({2, 3})), "eigh: takes square matrices: x is f32[2,3]");
  CHECK_THROWS_WITH(pinv(ones({})), "pinv: takes tensors of rank 2 or more: x is f32[]");
  const Tensor x = samples::uniform({4, 3}, -1, 1);
  {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const Qr f = qr(x, {.full = true});
    const Svd d = svd(x, {.full = true});
    CHECK_THROWS_WITH(tape.gradient(f.r, x),
                      "qr: the gradient of full factors is not defined for more rows than columns: x is "
                      "f64[4,3]; use full = false");
    CHECK_THROWS_WITH(tape.gradient(d.u, x),
                      "svd: the gradient of full factors is defined for square matrices only: x is f64[4,3]; "
                      "use full = false");
    CHECK(tape.gradient(d.s, x).defined());
    CHECK(tape.gradient(d.vh, x).defined());
  }
  const Tensor dependent = samples::f64({{1, 2}, {2, 4}, {3, 6}}), b = ones({3, 1}, DType::f64);
  CHECK_THROWS_WITH(
      lstsq(dependent, b),
      "lstsq: a matrix does not have full rank, or its condition number is too large for the normal "
      "equations: a is f64[3,2]; use fast = false or a positive l2");
  CHECK_THROWS_WITH(lstsq(x, b),
                    "lstsq: a and b have different numbers of rows: a is f64[4,3], b is f64[3,1]");
  CHECK_THROWS_WITH(
      lstsq(dependent, ones({3, 1})),
      "lstsq: takes f32, f64, f16, bf16, c64 or c128, the same for a and b: a is f64[3,2], b is f32[3,1]");
  CHECK_THROWS_WITH(lstsq(dependent, b, {.l2 = -1}), "lstsq: l2 is -1; use 0 or more");
  CHECK_THROWS_WITH(lstsq(ones({3}), b),
                    "lstsq: takes tensors of rank 2 or more: a is f32[3], b is f64[3,1]");
}

TEST_CASE("cases: eigenvalues", "[cases][decompositions]") {
  check_case("op-self-adjoint-eig-values", DType::f64, [&](Case& c) {
    const Tensor a = c.input("A");
    GradientTape tape;
    tape.watch(a);
    const Tensor y = sum(eigvalsh(a) * samples::f64({1, 2, 3}));
    const Tensor g = tape.gradient(y, a).dense();
    c.check("grads", {g});
    c.check("symmetrized", 0.5 * (g + transpose(g)));
  });
}

// Against differences, which need no rule. Where singular values other than 0 are treated as 0, what a
// formula for a constant rank leaves out is as large as their squares.
TEST_CASE("derivatives of pseudoinverses that treat singular values as zero", "[decompositions][complex]") {
  const auto with_values = [](const Tensor& x, const std::vector<double>& s) {
    const Svd d = svd(x);
    return matmul(d.u * astype(as_row_of(tensor(s)), x.dtype()), d.vh);
  };
  const auto f = [](const std::vector<Tensor>& in) { return pinv(in[0], 0.25); };
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{4, 4}, {6, 4}, {4, 6}})
    for (const std::vector<double>& s :
         {std::vector{3.0, 2.0, 1.0, 0.8}, {3.0, 2.0, 0.7, 0.3}, {3.0, 3.0, 0.5, 0.0}, {2.0, 0.0, 0.0, 0.0}})
      for (const bool is_complex : {false, true}) {
        INFO(m << " x " << n << ", " << tensor(s) << ", complex: " << is_complex);
        const Tensor x = with_values(is_complex ? random_complex(m, n) : random_matrix(m, n), s);
        CHECK(check_gradients(f, {x}));
      }
  const Tensor both = stack({with_values(random_matrix(5, 3), {2.0, 1.0, 0.3}), random_matrix(5, 3)});
  CHECK(check_gradients(f, {both}));
}

TEST_CASE("decompositions reject matrices that are too large for LAPACK", "[decompositions][errors]") {
  CHECK_THROWS_WITH(qr(zeros({std::int64_t{1} << 31, 0})),
                    "qr: extents of 2^31 and more are too large: x is f32[2147483648,0]");
  CHECK_THROWS_WITH(svd(zeros({0, std::int64_t{1} << 31})),
                    "svd: extents of 2^31 and more are too large: x is f32[0,2147483648]");
}

}   // namespace decompositions_test
