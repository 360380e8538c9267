// Gradient as a tensor: converted, printed, as an operand and as a target.
#include <catch2/catch.hpp>
#include <iomanip>
#include <sstream>

#include "message_of.h"
#include "tapedeck/control.h"
#include "tapedeck/gradients.h"
#include "tapedeck/map.h"
#include "values.h"

namespace gradient_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

template <class T> std::string printed(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

Values of(const Tensor& x) { return x.to_vector<double>(); }
Gradient none() {
  const Tensor x = f64({1, 2});
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(tensor(1.0), x);
}
Gradient sparse() {
  return IndexedSlices{.values = matrix({{1, 2}}), .indices = tensor({1}), .dense_shape = Shape{2, 2}};
}

}   // namespace

TEST_CASE("a gradient prints like its content", "[gradient]") {
  CHECK(printed(Gradient(f64({1, 2}))) == printed(f64({1, 2})));
  CHECK(printed(sparse()) == printed(*sparse().slices()));
  CHECK(printed(std::vector<Gradient>{Gradient(f64({1, 2})), Gradient(f64({3}))}) ==
        "[1.0 2.0] f64\n[3.0] f64");
  CHECK(printed(std::array<Gradient, 1>{Gradient(f64({1, 2}))}) == "[1.0 2.0] f64");
  CHECK(printed(Gradient()) == "none: no path leads from the target to the source");
  CHECK_THAT(printed(none()), Catch::StartsWith("none: the tape does not track the target"));
}

TEST_CASE("a gradient has a shape like a tensor's", "[gradient]") {
  const auto extents = [](const Gradient& g) {
    std::vector<std::int64_t> all;
    for (const std::int64_t d :
         g.shape().dims())   // of the gradient's own shape, not of a copy that has ended
      all.push_back(d);
    return all;
  };
  const Gradient dense(zeros({3, 4, 5}));
  CHECK(extents(dense) == std::vector<std::int64_t>{3, 4, 5});
  CHECK(extents(sparse()) == std::vector<std::int64_t>{2, 2});
  CHECK(&dense.shape() == &dense.tensor().shape());
  STATIC_REQUIRE(std::is_same_v<decltype(std::declval<const Gradient&>().shape()), const Shape&>);
  const Shape& of_temporary = Gradient(zeros({2, 3})).shape();
  CHECK(of_temporary == Shape{2, 3});
  CHECK(dense.ndim() == 3);
  CHECK(sparse().size() == 4);
  CHECK_THROWS_AS(none().shape(), GradientError);
  CHECK_THROWS_AS(Gradient(IndexedSlices{matrix({{1, 2}}), tensor({1})}).shape(), ArgumentError);
}

TEST_CASE("a gradient prints as the stream says", "[gradient]") {
  std::ostringstream out;
  out << std::setprecision(2) << std::fixed << Gradient(f64({1, 2.125}));
  CHECK(out.str() == "[1.00 2.12] f64");
}

TEST_CASE("a variable, which converts to both, is printed as a tensor", "[gradient]") {
  const Variable w(f64({1, 2}));
  CHECK(printed(w) == printed(w.value()));
  CHECK(to_string(w) == to_string(w.value()));
}

TEST_CASE("a pullback accepts a gradient", "[gradient]") {
  const Tensor x = f64({1, 2});
  auto [y, pullback] = vjp([](const Tensor& t) { return t * t; }, x);
  const Gradient g(f64({1, 10}));
  CHECK(of(pullback(g)[0]) == Values{2, 40});
  CHECK(of(pullback({g})[0]) == Values{2, 40});
  CHECK(message_of<GradientError>([&p = pullback] { p(none()); }).find("is none") != std::string::npos);
}

TEST_CASE("a function may return a list of gradients", "[gradient]") {
  const Tensor x = f64({1, 2});
  const auto both = [](const Tensor& a, const Tensor& b) {
    GradientTape tape;
    tape.watch(a, b);
    const Tensor y = sum(a * a * b);
    return tape.gradient(Targets{y}, Sources{a, b});
  };
  const auto [value, gradients] = value_and_grad(both, {x, x});
  CHECK(of(value[0]) == Values{2, 8});                       // 2 a b
  CHECK(of(gradients[0]) == Values{4, 8});                   // of 2 a b + a² by a
  CHECK(of(jvp(both, {x, x}, {x, x})[1]) == Values{2, 8});   // 2 a · a
  const Gradient chosen = cond(
      false, {x}, [](const Tensor& t) -> Gradient { return t; }, [](const Tensor&) { return none(); });
  CHECK(printed(chosen) == printed(none()));
}

TEST_CASE("a gradient converts to a tensor", "[gradient]") {
  const Tensor x = f64({1, 2});
  const Gradient g = grad([](const Tensor& t) { return sum(t * t * t); }, x);   // 3 x²
  const Tensor converted = g;
  CHECK(of(converted) == Values{3, 12});
  CHECK(of(2.0 * g) == Values{6, 24});
  CHECK(of(x - g) == Values{-2, -10});
  CHECK(of(g / g) == Values{1, 1});
  CHECK(of(-g) == Values{-3, -12});
  CHECK(of(astype(g > 5, DType::f64)) == Values{0, 1});
  CHECK(of(minimum(g, 4.0)) == Values{3, 4});
  CHECK(of(map([](auto a, auto b) { return a * b; }, g, x)) == Values{3, 24});
  CHECK(of(concat({g, x}, 0)) == Values{3, 12, 1, 2});
  CHECK(sum(g).item() == 15);
  CHECK(of(g * sparse()) == Values{0, 0, 3, 24});
  CHECK(of(sum(sparse(), {0})) == Values{1, 2});

  Tensor y = x;
  y -= 0.5 * g;
  y += g;
  CHECK(of(y) == Values{2.5, 8});
  const Variable w(x);
  w -= g;
  CHECK(of(w) == Values{-2, -10});
  CHECK(of(g.dense()) == Values{3, 12});   // none of these has written to it
}

TEST_CASE("a moved gradient passes its memory on to the tensor", "[gradient]") {
  Gradient g(f64({1, 2}));
  const void* memory = g.tensor().data<double>().data();
  const Tensor taken = std::move(g);
  CHECK(taken.data<double>().data() == memory);
  CHECK(of(taken + Gradient(f64({1, 2}))) == Values{2, 4});
}

TEST_CASE("a gradient is a target of another tape", "[gradient]") {
  const Tensor x = f64({1, 2});
  GradientTape outer;
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  const Gradient first = inner.gradient(sum(x * x * x), x);
  CHECK(of(outer.gradient(first, x)) == Values{6, 12});
}

TEST_CASE("a gradient that is none is not treated as zeros", "[gradient]") {
  const std::string text =
      "the gradient of the f64[2] is none: the tape does not track the target, which was computed while it "
      "did not record, from numbers, or by an op without a derivative; ask defined() first, or pass "
      ".unconnected = UnconnectedGradients::zero for zeros; explain() tells where the path ends";
  CHECK(message_of<GradientError>([] { const Tensor converted = none(); }) == text);
  CHECK(message_of<GradientError>([] { 2.0 * none(); }) == text);
  CHECK(message_of<GradientError>([] { sum(none()); }) == text);
  Tensor y = f64({1, 2});
  CHECK(message_of<GradientError>([&] { y += none(); }) == text);
  CHECK(of(y) == Values{1, 2});
  GradientTape tape;
  CHECK(message_of<GradientError>([&] { (void)tape.gradient(none(), y); }) == text);
  CHECK(message_of<GradientError>([] {
          Gradient() + 1.0;
        }).starts_with("this gradient is none: no path leads"));
}

}   // namespace gradient_test
