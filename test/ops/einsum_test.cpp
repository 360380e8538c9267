// einsum compared with its definition, summed element by element; gradients compared with differences;
// errors.
#include <catch2/catch.hpp>
#include <map>

#include "case.h"
#include "closeness.h"
#include "ops/sample_inputs.h"
#include "tapedeck/gradcheck.h"

namespace einsum_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

// Σ of products over all labels that the output does not name, for equations of letters alone.
Tensor by_definition(const std::string& equation, const std::vector<Tensor>& x) {
  const std::size_t arrow = equation.find("->");
  const std::string output = equation.substr(arrow + 2);
  std::vector<std::string> of(1);
  for (const char l : equation.substr(0, arrow)) {
    if (l == ',')
      of.emplace_back();
    else
      of.back().push_back(l);
  }
  std::map<char, std::int64_t> extent, at;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t d = 0; d < of[i].size(); ++d)
      extent[of[i][d]] = x[i].shape()[static_cast<int>(d)];
  std::int64_t all = 1;
  for (const auto& [l, n] : extent)
    all *= n;
  Shape shape;
  for (const char l : output)
    shape.push_back(extent[l]);
  std::vector<double> y(static_cast<std::size_t>(shape.size()));
  std::vector<std::vector<double>> values;
  for (const Tensor& t : x)
    values.push_back(t.to_vector());
  const auto offset = [&](const std::string& labels) {
    std::int64_t k = 0;
    for (const char l : labels)
      k = k * extent[l] + at[l];
    return static_cast<std::size_t>(k);
  };
  for (std::int64_t i = 0; i < all; ++i) {
    std::int64_t rest = i;
    for (const auto& [l, n] : extent)
      at[l] = rest % n, rest /= n;
    double p = 1;
    for (std::size_t k = 0; k < x.size(); ++k)
      p *= values[k][offset(of[k])];
    y[offset(output)] += p;
  }
  return tensor(y, shape);
}

// Every letter has a different extent.
Tensor operand(const std::string& labels, int which) {
  Shape shape;
  for (const char l : labels)
    shape.push_back(2 + (l - 'a') % 4);
  return samples::uniform(shape, -1, 1, which);
}
std::vector<Tensor> operands(const std::string& equation) {
  std::vector<Tensor> x;
  std::string labels;
  for (const char l : equation.substr(0, equation.find("->")) + ",") {
    if (l == ',')
      x.push_back(operand(std::exchange(labels, ""), static_cast<int>(x.size())));
    else
      labels.push_back(l);
  }
  return x;
}

}   // namespace

TEST_CASE("einsum and its derivatives agree with their definition", "[einsum]") {
  for (const char* equation : {"ab,bc->ac",
                               "ab,bc->ca",
                               "ba,bc->ac",
                               "ab,cb->ca",
                               "ab,ab->",
                               "ab,ab->a",
                               "ab,ab->b",
                               "ab,ab->ab",
                               "ab,ab->ba",
                               "a,b->ab",
                               "a,b->ba",
                               "a,b->",
                               "ab,b->a",
                               "a,ab->b",
                               "a->a",
                               "ab->ba",
                               "ab->",
                               "ab->a",
                               "ab->b",
                               "abc->cb",
                               "aa->a",
                               "aa->",
                               "aab->ab",
                               "aba->ab",
                               "baa->b",
                               "aaa->a",
                               "aabb->ab",
                               "abab->ba",
                               "abab->",
                               ",->",
                               ",a->a",
                               "a,->a",
                               "bij,bjk->bik",
                               "bij,bjk->bki",
                               "bij,bjk->ikb",
                               "ibj,bjk->bik",
                               "bqhd,bkhd->bhqk",
                               "bhqk,bkhd->bqhd",
                               "abcd,cdef->abef",
                               "abcd,dcef->abef",
                               "abcd,dcef->feba",
                               "abc,ade->bcde",
                               "abcd,ecfb->defa",
                               "aab,bc->ac",
                               "aab,bcc->ac",
                               "abc,abc->",
                               "abc,bad->cd",
                               "abc,d->abc",
                               "abcd,abcd->dc",
                               "ijk,jl->ilk",
                               "abc,c->ab",
                               "bi,bj->bij",
                               "bn,anm,bm->ba",
                               "ab,bc,cd->ad",
                               "ab,bc,cd,de->ae",
                               "a,a,a->a",
                               "ab,ab,ab->",
                               "ab,cb,c->a",
                               "a,b,c->cab"}) {
    INFO(equation);
    const std::vector<Tensor> x = operands(equation);
    const TensorFunction f = [&](const std::vector<Tensor>& in) { return einsum(equation, in); };
    CHECK(worst(f(x), by_definition(equation, x)) < 1e-13);
    CHECK(check_gradients(f, x));
  }
}

TEST_CASE("einsum without an arrow, with spaces, with dots", "[einsum]") {
  const auto x = [](const Shape& shape, int which = 0) { return samples::uniform(shape, -1, 1, which); };
  const Tensor a = x({2, 3}), b = x({3, 4}, 1);
  CHECK(same_bits(einsum("ij,jk", {a, b}), matmul(a, b)));
  CHECK(same_bits(einsum("kj,ji", {a, b}), transpose(matmul(a, b))));
  CHECK(same_bits(einsum("ba", {a}), transpose(a)));
  CHECK(same_bits(einsum(" i j , j k -> i k ", {a, b}), matmul(a, b)));
  CHECK(einsum("ii", {samples::f64({{1, 2}, {3, 4}})}).item() == 5);
  CHECK(einsum("Ba,aC->CB", {a, b}).shape() == Shape{4, 2});
  const Tensor c = x({5, 2, 3}), d = x({5, 3, 4}, 1), e = x({6, 1, 2, 3});
  CHECK(worst(einsum("...ij,...jk->...ik", {c, d}), matmul(c, d)) < 1e-15);
  CHECK(worst(einsum("...ij,jk->...ik", {c, b}), matmul(c, b)) < 1e-15);
  CHECK(worst(einsum("...ij,...jk->...ik", {e, d}), matmul(e, d)) < 1e-15);
  CHECK(worst(einsum("...ij,...jk", {e, d}), matmul(e, d)) < 1e-15);
  CHECK(worst(einsum("i...j,j...->...i", {x({2, 5, 3}), x({3, 1}, 1)}),
              by_definition("ibj,j->bi", {x({2, 5, 3}), x({3}, 1)})) < 1e-15);
  CHECK(same_bits(einsum("...,...->...", {c, a}), c * a));
  CHECK(same_bits(einsum("...i->i...", {c}), transpose(c, {2, 0, 1})));
  CHECK(same_bits(einsum("...i->...", {c}), sum(c, -1)));
  CHECK(worst(einsum("...i->i", {c}), sum(c, {0, 1})) < 1e-14);
  CHECK(same_bits(einsum("...ii->...i", {x({4, 3, 3})}), diagonal(x({4, 3, 3}))));
  CHECK(check_gradients([](const std::vector<Tensor>& in) { return einsum("...ij,...jk->...ik", in); },
                        {e, d}));
  CHECK(check_gradients([](const std::vector<Tensor>& in) { return einsum("...i,...i->...", in); },
                        {x({4, 1, 3}), x({2, 3}, 1)}));
}

TEST_CASE("einsum of empty tensors, of integers, and of two dtypes", "[einsum]") {
  CHECK(einsum("ij,jk->ik", {zeros({2, 0}), zeros({0, 3})}).to_vector() == std::vector<double>(6));
  CHECK(einsum("bij,bjk->bki", {zeros({0, 2, 3}), zeros({0, 3, 4})}).shape() == Shape{0, 4, 2});
  const Tensor a = tensor({{1, 2}, {3, 4}}, DType::i64), b = tensor({{5, 6}, {7, 8}}, DType::i64);
  CHECK(einsum("ij,jk->ik", {a, b}).spec() == Spec{DType::i64, {2, 2}});
  CHECK(einsum("ij,jk->ik", {a, b}).to_vector() == std::vector<double>{19, 22, 43, 50});
  CHECK(einsum("ij,jk->ik", {ones({2, 3}), ones({3, 2}, DType::f64)}).dtype() == DType::f64);
}

TEST_CASE("tensordot and outer", "[einsum]") {
  const Tensor a = samples::uniform({2, 3, 4}, -1, 1), b = samples::uniform({4, 3, 5}, -1, 1, 1),
               c = samples::uniform({3, 4, 5}, -1, 1, 2);
  CHECK(worst(tensordot(a, b, {1, 2}, {1, 0}), by_definition("ijk,kjl->il", {a, b})) < 1e-14);
  CHECK(worst(tensordot(a, b, {-1}, {0}), by_definition("ijk,klm->ijlm", {a, b})) < 1e-14);
  CHECK(worst(tensordot(a, c), by_definition("ijk,jkl->il", {a, c})) < 1e-14);
  CHECK(tensordot(a, b, 0).shape() == Shape{2, 3, 4, 4, 3, 5});
  CHECK(outer(samples::f64({1, 2}), samples::f64({3, 4, 5})).to_vector() ==
        std::vector<double>{3, 4, 5, 6, 8, 10});
  CHECK(check_gradients(
      [](const std::vector<Tensor>& x) {
        return tensordot(x[0], x[1], {1, 2}, {1, 0}) + sum(outer(x[0], x[1]));
      },
      {a, b}));
}

TEST_CASE("einsum rejects invalid arguments", "[einsum][errors]") {
  const Tensor a = zeros({2, 3}), b = zeros({4, 5});
  CHECK_THROWS_WITH(
      einsum("ij,jk->ik", {a, b}),
      "einsum: label j of \"ij,jk->ik\" is 3 in operand 0, f32[2,3], and 4 in operand 1, f32[4,5]");
  CHECK_THROWS_WITH(einsum("ii->i", {a}),
                    "einsum: label i of \"ii->i\" is 2 in operand 0, f32[2,3], and 3 in operand 0, f32[2,3]");
  CHECK_THROWS_WITH(
      einsum("...,...", {a, b}),
      "einsum: an ellipsis axis of \"...,...\" is 2 in operand 0, f32[2,3], and 4 in operand 1, f32[4,5]");
  CHECK_THROWS_WITH(einsum("ij,jk->ik", {a}), "einsum: \"ij,jk->ik\" has 2 operands, 1 are given");
  CHECK_THROWS_WITH(einsum("ijk->ik", {a}), "einsum: operand 0 of \"ijk->ik\" has 3 labels, but is f32[2,3]");
  CHECK_THROWS_WITH(einsum("i...jk->ik", {a}),
                    "einsum: operand 0 of \"i...jk->ik\" has 3 labels besides the ellipsis, but is f32[2,3]");
  CHECK_THROWS_WITH(einsum("ij->iz", {a}), "einsum: label z of the output of \"ij->iz\" is in no operand");
  CHECK_THROWS_WITH(einsum("ij->ii", {a}), "einsum: label i occurs twice in the output of \"ij->ii\"");
  CHECK_THROWS_WITH(einsum("i1->i", {a}),
                    "einsum: \"i1->i\" is not an equation at '1': write labels as letters, one \"...\" in an "
                    "operand, commas between operands and \"->\" before the output");
  for (const char* bad : {"ij->i->j", "i..j->", "......", "ij-", "ij>i", "ij->i,j"})
    CHECK_THROWS_AS(einsum(bad, {a}), ArgumentError);
  CHECK_THROWS_AS(einsum("", std::span<const Tensor>()), ArgumentError);
  CHECK_THROWS_WITH(tensordot(a, b),
                    "tensordot: axis 0 of a and axis 0 of b differ: a is f32[2,3], b is f32[4,5]");
  CHECK_THROWS_WITH(tensordot(a, b, 3), "tensordot: 3 axes: a is f32[2,3], b is f32[4,5]");
  CHECK_THROWS_WITH(tensordot(a, a, {0, 0}, {0, 1}),
                    "tensordot: an axis is named twice: a is f32[2,3], b is f32[2,3]");
  CHECK_THROWS_WITH(tensordot(a, a, {2}, {0}),
                    "tensordot: axis 2 is out of range for x, f32[2,3]; use -2..1");
  CHECK_THROWS_WITH(tensordot(a, a, {0, 1}, {0}), "tensordot: 2 axes of a, 1 of b");
}

TEST_CASE("cases: einsum", "[cases][einsum]") {
  check_case("op-einsum", [&](Case& c) {
    const Tensor a = c.input("A"), b = c.input("B");
    GradientTape tape;
    tape.watch(a), tape.watch(b);
    const Tensor y = einsum("ij,jk->ik", {a, b});
    c.check("grads", tape.gradient(Targets(y), Sources({a, b}),
                                   {.output_gradients = {tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}})}}));
  });
}

}   // namespace einsum_test
