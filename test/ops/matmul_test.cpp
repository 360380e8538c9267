// Matrix products: all transpositions and batches against a plain loop, edge cases, exact error texts, BLAS's
// thread count, and the same bits for any number of threads. The op table test covers derivatives.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "closeness.h"
#include "ops/sample_inputs.h"
#include "tapedeck/tapedeck.h"

extern "C" {
int openblas_get_num_threads(void);
void openblas_set_num_threads(int);
}

namespace matmul_test {

using namespace tapedeck;

namespace {

Tensor with_last_two_swapped(const Tensor& x) {
  std::vector<int> perm;
  for (int d = 0; d < x.ndim(); ++d)
    perm.push_back(d);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(x, perm);
}

// Σₖ a[…, i, k] b[…, k, j] by broadcasting, without BLAS.
Tensor by_definition(const Tensor& a, const Tensor& b, MatmulOptions t) {
  const Tensor left = expand_dims(t.transpose_a ? with_last_two_swapped(a) : a, -1);    // […, m, k, 1]
  const Tensor right = expand_dims(t.transpose_b ? with_last_two_swapped(b) : b, -3);   // […, 1, k, n]
  return sum(left * right, -2);
}

Shape joined(const Shape& batch, std::int64_t rows, std::int64_t columns) {
  Shape s = batch;
  s.push_back(rows);
  s.push_back(columns);
  return s;
}

constexpr MatmulOptions kAllFlags[] = {{false, false}, {false, true}, {true, false}, {true, true}};

}   // namespace

TEST_CASE("matrix products of all sizes and transpositions", "[matmul]") {
  const std::int64_t sizes[][3] = {{1, 1, 1},       {2, 3, 4},    {4, 4, 4},    {6, 6, 6},     {6, 7, 6},
                                   {3, 2, 7},       {1, 37, 5},   {8, 16, 4},   {8, 3, 16},    {17, 37, 5},
                                   {37, 1, 37},     {64, 64, 64}, {3, 70, 130}, {300, 40, 20}, {130, 270, 61},
                                   {1, 1030, 1100}, {700, 7, 300}};   // the last run on oneDNN in f32
  for (const auto& [m, n, k] : sizes)
    for (const MatmulOptions t : kAllFlags) {
      INFO(m << " × " << n << " × " << k << ", transposed " << t.transpose_a << t.transpose_b);
      const Tensor a = samples::uniform(t.transpose_a ? Shape{k, m} : Shape{m, k}, -1, 1),
                   b = samples::uniform(t.transpose_b ? Shape{n, k} : Shape{k, n}, -1, 1, 1);
      const Tensor y = by_definition(a, b, t);
      CHECK(worst(matmul(a, b, t), y) < 1e-15 * static_cast<double>(k + 100));
      CHECK(worst(matmul(astype(a, DType::f32), astype(b, DType::f32), t), y) <
            1e-6 * static_cast<double>(k + 100));
    }
}

TEST_CASE("batches of matrices broadcast", "[matmul]") {
  const Shape batches[] = {{}, {1}, {4}, {3, 1}, {3, 4}, {1, 4}, {2, 3, 4}, {0}};
  for (const Shape& p : batches)
    for (const Shape& q : batches) {
      try {
        (void)broadcast_shapes(p, q);
      } catch (const ShapeError&) {
        continue;
      }
      for (const MatmulOptions t : kAllFlags) {
        INFO(to_string(p) << " and " << to_string(q) << ", transposed " << t.transpose_a << t.transpose_b);
        const Tensor a = samples::uniform(joined(p, t.transpose_a ? 5 : 3, t.transpose_a ? 3 : 5), -1, 1),
                     b = samples::uniform(joined(q, t.transpose_b ? 2 : 5, t.transpose_b ? 5 : 2), -1, 1, 1);
        CHECK(worst(matmul(a, b, t), by_definition(a, b, t)) < 1e-14);
      }
    }
}

TEST_CASE("products of empty matrices", "[matmul]") {
  CHECK(matmul(zeros({3, 0}), zeros({0, 2})).to_vector() == std::vector<double>(6, 0));
  CHECK(matmul(zeros({2, 3, 0}), zeros({0, 2})).to_vector() == std::vector<double>(12, 0));
  CHECK(matmul(zeros({0, 3}), zeros({3, 2})).shape() == Shape{0, 2});
  CHECK(matmul(zeros({3, 2}), zeros({0, 2}), {.transpose_b = true}).shape() == Shape{3, 0});
  CHECK(matmul(zeros({0, 2, 3}), zeros({3, 4})).shape() == Shape{0, 2, 4});
}

TEST_CASE("matmul keeps NaN and promotes f32 with f64", "[matmul]") {
  const Tensor nan = full({2, 2}, std::numeric_limits<double>::quiet_NaN());
  for (const double v : matmul(nan, zeros({2, 2})).to_vector())
    CHECK(std::isnan(v));
  const Tensor large = matmul(full({110, 110}, std::numeric_limits<double>::quiet_NaN()), zeros({110, 110}));
  CHECK(count_nonzero(not_equal(large, large)).item<std::int64_t>() == 110 * 110);
  CHECK(matmul(ones({2, 3}), ones({3, 2}, DType::f64)).spec() == Spec{DType::f64, {2, 2}});
}

TEST_CASE("matmul does not depend on the number of threads, and keeps BLAS's number", "[matmul]") {
  const int before = num_threads(), blas = openblas_get_num_threads();
  openblas_set_num_threads(2);
  const int set = openblas_get_num_threads();   // 1 where the machine has one core
  const Shape shapes[][2] = {{{600, 300}, {300, 500}},     {{128, 784}, {784, 512}},
                             {{256, 256}, {256, 256}},     {{40, 64, 64}, {64, 64}},
                             {{40, 64, 64}, {40, 64, 64}}, {{2, 300, 300}, {300, 300}}};
  for (const auto& [p, q] : shapes) {
    const Tensor a = astype(samples::uniform(p, -1, 1), DType::f32),
                 b = astype(samples::uniform(q, -1, 1, 1), DType::f32);
    set_num_threads(1);
    const Tensor one = matmul(a, b);
    set_num_threads(2);
    CHECK(same_bits(matmul(a, b), one));
    CHECK(openblas_get_num_threads() == set);
    CHECK(worst(one, matmul(astype(a, DType::f64), astype(b, DType::f64))) < 1e-3);
  }
  openblas_set_num_threads(blas);
  set_num_threads(before);
}

TEST_CASE("matmul rejects invalid arguments", "[matmul][errors]") {
  CHECK_THROWS_WITH(matmul(zeros({2, 3}), zeros({4, 5})),
                    "matmul: inner dimensions differ: a is f32[2,3], b is f32[4,5]");
  CHECK_THROWS_WITH(matmul(zeros({3, 2}), zeros({2, 5}), {.transpose_a = true}),
                    "matmul: inner dimensions differ: a is f32[3,2], b is f32[2,5]");
  CHECK_THROWS_WITH(matmul(zeros({3}), zeros({3, 5})),
                    "matmul: takes tensors of rank 2 or more; tensordot(a, b, 1) takes vectors, too: a is "
                    "f32[3], b is f32[3,5]");
  CHECK_THROWS_WITH(matmul(zeros({2, 3, 4}), zeros({5, 4, 2})),
                    "matmul: batch axes do not broadcast: a is f32[2,3,4], b is f32[5,4,2]");
  CHECK_THROWS_WITH(
      matmul(zeros({2, 2}, DType::i32), zeros({2, 2})),
      "matmul: takes f32, f64, f16, bf16, c64 or c128, use astype: a is i32[2,2], b is f32[2,2]");
  CHECK_THROWS_WITH(matmul(zeros({std::int64_t{1} << 31, 0}), zeros({0, 1})),
                    "matmul: extents of 2^31 and more are too large: a is f32[2147483648,0], b is f32[0,1]");
  CHECK_THROWS_AS(matmul(zeros({2, 3}), zeros({4, 5})), ShapeError);
  CHECK_THROWS_AS(matmul(zeros({2, 2}, DType::i32), zeros({2, 2})), DTypeError);
}

// The rows of all matrices together are more than an int64 counts, yet there are none of them.
TEST_CASE("matmul of no elements has gradients at any extents", "[matmul][gradient]") {
  const std::int64_t huge = std::int64_t{1} << 62;
  const Tensor a = zeros({huge, 0, huge, 4, 2}, DType::f64), b = ones({2, 3}, DType::f64);
  GradientTape tape;
  tape.watch(a), tape.watch(b);
  const auto gradients = tape.gradient(matmul(a, b), a, b);
  CHECK(gradients[0].tensor().shape() == a.shape());
  CHECK(same_bits(gradients[1].tensor(), zeros({2, 3}, DType::f64)));
}

}   // namespace matmul_test
