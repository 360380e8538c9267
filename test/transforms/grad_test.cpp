// Derivatives of functions as functions. Expected values are closed forms.
#include "tapedeck/grad.h"

#include <catch2/catch.hpp>
#include <thread>

#include "message_of.h"
#include "tapedeck/compile.h"
#include "tapedeck/ops.h"
#include "tensors_of.h"

namespace grad_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

using Values = std::vector<double>;

Tensor cube(const Tensor& x) { return sum(x * x * x); }

const Tensor kX = tensor({1.0, 2.0}, DType::f64), kY = tensor({3.0, 5.0}, DType::f64);

}   // namespace

TEST_CASE("grad of a function is a function", "[grad]") {
  const auto first = grad(cube);
  CHECK(first(kX).to_vector() == Values{3, 12});
  CHECK(first(kY).to_vector() == Values{27, 75});
  CHECK(kX.to_vector() == Values{1, 2});
  CHECK(grad(cube)(Variable(kX)).to_vector() == Values{3, 12});
  CHECK(grad(abs)(-kX).to_vector() == Values{-1, -1});
  const auto [value, gradient] = value_and_grad(cube)(kX);
  CHECK(value.item() == 9);
  CHECK(gradient.to_vector() == Values{3, 12});
}

TEST_CASE("repeated derivatives become zeros", "[grad]") {
  const auto second = grad(grad(cube));
  CHECK(second(kX).to_vector() == Values{6, 12});
  CHECK(grad(second)(kX).to_vector() == Values{6, 6});
  CHECK(grad(grad(second))(kX).to_vector() == Values{0, 0});
  CHECK(grad(grad(grad(second)))(kX).to_vector() == Values{0, 0});
}

TEST_CASE("arguments are chosen by their numbers", "[grad]") {
  const auto f = [](const Tensor& x, int factor, const Tensor& y) { return sum(x * x * factor * y); };
  CHECK(grad(f)(kX, 2, kY).to_vector() == Values{12, 40});
  CHECK(grad<2>(f)(kX, 3, kY).to_vector() == Values{3, 12});
  const auto [dx, dy] = grad<0, 2>(f)(kX, 1, kY);
  CHECK(dx.to_vector() == Values{6, 20});
  CHECK(dy.to_vector() == Values{1, 4});
  // Mixed derivatives: d/dy of df/dx summed.
  CHECK(grad<2>(grad(f))(kX, 1, kY).to_vector() == Values{2, 4});
  CHECK(grad<2>([](const Tensor& x, const std::string& name, const Tensor& y) {
          return x * y * static_cast<double>(name.size());
        })(kX, std::string("three"), kY)
            .to_vector() == Values{5, 10});
}

TEST_CASE("a differentiated argument is read once", "[grad]") {
  struct Counted {
    int& reads;
    operator Source() const { return ++reads, Source(kX); }
  };
  int reads = 0;
  const Counted x{reads};
  CHECK(grad(cube)(x).to_vector() == Values{3, 12});
  CHECK(std::exchange(reads, 0) == 1);
  CHECK(vjp(cube)(x).second()[0].to_vector() == Values{3, 12});
  CHECK(std::exchange(reads, 0) == 1);
  CHECK(jacobian(cube)(x).to_vector() == Values{3, 12});
  CHECK(std::exchange(reads, 0) == 1);
}

TEST_CASE("a list of tensors is one argument", "[grad]") {
  const auto f = [](const std::vector<Tensor>& w, const Tensor& x) { return sum(w[0] * x + w[1] * w[1]); };
  const std::vector<Gradient> g = grad(f)(std::vector{kX, kY}, kY);
  REQUIRE(g.size() == 2);
  CHECK(g[0].to_vector() == Values{3, 5});
  CHECK(g[1].to_vector() == Values{6, 10});
  CHECK(grad(f)(std::vector{Variable(kX), Variable(kY)}, kY)[1].to_vector() == Values{6, 10});
  CHECK(grad([](const std::vector<Tensor>& none, const Tensor& x) {
          return x * static_cast<double>(none.size());
        })(std::vector<Tensor>(), kX)
            .empty());
  const auto [of_list, of_x] = grad<0, 1>(f)(std::vector{kX, kY}, kY);
  CHECK(of_list[1].to_vector() == Values{6, 10});
  CHECK(of_x.to_vector() == Values{1, 2});
}

TEST_CASE("captured tensors are constant, even if they are also arguments", "[grad]") {
  const auto f = [](const Tensor& x) { return sum(x * x * kX); };   // not x³
  const std::vector<double> expected = {2, 8};
  CHECK(grad(f)(kX).to_vector() == expected);
  CHECK(grad(f, kX).to_vector() == expected);
  CHECK(vjp(f, kX).second()[0].to_vector() == expected);
  CHECK(jvp(f, kX, ones_like(kX)).item() == 10);
  for (const JacobianMode mode : {JacobianMode::reverse, JacobianMode::forward}) {
    CHECK(jacobian(f, kX, {.mode = mode}).to_vector() == expected);
    CHECK(hessian(f, kX, {.mode = mode}).to_vector() == Values{2, 0, 0, 4});
    CHECK(hessian_vector_product(f, kX, ones_like(kX), mode).to_vector() == Values{2, 4});
    const auto rows = [](const Tensor& x) { return x * x * reshape(kX, {2, 1}); };
    CHECK(batch_jacobian(rows, reshape(kX, {2, 1}), {.mode = mode}).to_vector() == Values{2, 8});
  }
  // Around it all of it counts.
  GradientTape tape;
  tape.watch(kX);
  CHECK(tape.gradient(grad(f)(kX), kX).to_vector() == Values{4, 8});   // of 2 x²
}

TEST_CASE("auxiliary results are passed through", "[grad]") {
  int calls = 0;
  const auto f = [&](const Tensor& x, double rate) {
    ++calls;
    return std::pair(sum(x * x) * rate, std::string("rate ") + std::to_string(static_cast<int>(rate)));
  };
  const auto [value, gradient, text] = value_and_grad(f, has_aux)(kX, 2.0);
  CHECK(value.item() == 10);
  CHECK(gradient.to_vector() == Values{4, 8});
  CHECK(text == "rate 2");
  CHECK(calls == 1);
  const auto [same, other] = grad(f, has_aux)(kX, 3.0);
  CHECK(same.to_vector() == Values{6, 12});
  CHECK(other == "rate 3");
}

TEST_CASE("vjp, jvp, jacobian and hessian of a function are functions", "[grad]") {
  const auto f = [](const Tensor& x, const Tensor& y) { return x * x * y; };
  const auto [value, pullback] = vjp(f)(kX, kY);
  CHECK(value.to_vector() == Values{3, 20});
  CHECK(pullback(kX)[0].to_vector() == Values{6, 40});
  CHECK(pullback(kX)[1].to_vector() == Values{1, 8});
  CHECK(vjp<1>(f)(kX, kY).second()[0].to_vector() == Values{1, 4});
  CHECK(jvp(f)(kX, kY, tensor({1.0, 0.0}, DType::f64), tensor({0.0, 1.0}, DType::f64)).to_vector() ==
        Values{6, 4});
  CHECK(jacobian(f)(kX, kY).to_vector() == Values{6, 0, 0, 20});
  CHECK(jacobian<1>(f, {.mode = JacobianMode::forward})(kX, kY).to_vector() == Values{1, 0, 0, 4});
  const auto [by_x, by_y] = jacobian<0, 1>(f)(kX, kY);
  CHECK(by_y.to_vector() == Values{1, 0, 0, 4});
  CHECK(hessian(cube)(kX).to_vector() == Values{6, 0, 0, 12});
  CHECK(hessian<1>([](int n, const Tensor& x) { return sum(pow(x, n)); })(2, kX).to_vector() ==
        Values{2, 0, 0, 2});
}

TEST_CASE("a pullback takes a variable, a gradient or a list", "[grad]") {
  const auto f = [](const Tensor& x) { return x * x; };
  const auto dx = [&](const auto& dy) { return vjp(f)(kX).second(dy)[0].to_vector(); };
  const Variable v(kY);
  CHECK(dx(v) == Values{6, 20});
  CHECK(dx(Gradient(kY)) == Values{6, 20});
  CHECK(dx(std::vector{kY}) == Values{6, 20});
  CHECK(vjp(f)(kX).second({kY})[0].to_vector() == Values{6, 20});
  const auto pair = [](const Tensor& x) { return std::pair(x * x, 3 * x); };
  CHECK(vjp(pair)(kX).second({v, {}})[0].to_vector() == Values{9, 23});
  CHECK(vjp(pair)(kX).second({kY, {}})[0].to_vector() == Values{9, 23});
  CHECK(vjp(pair)(kX).second({v, kX})[0].to_vector() == Values{9, 26});
}

TEST_CASE("derivatives are compiled, and compiled functions differentiated", "[grad][compile]") {
  const auto f = [](const Tensor& x) { return sum(tanh(x) * x); };
  const auto df = compile(grad(f));
  const auto of_compiled = grad(compile(f));
  for (const Tensor& x : {kX, kY, -kX}) {
    const Values expected = grad(f)(x).to_vector();
    CHECK(df(x).to_vector() == expected);
    CHECK(of_compiled(x).to_vector() == expected);
  }
  CHECK(df.programs().size() == 1);
  CHECK(df.programs()[0].calls == 2);
}

TEST_CASE("arguments without influence have gradients of zeros, integers none", "[grad]") {
  const auto f = [](const Tensor& x, const Tensor& unused) { return x * 2 + stop_gradient(unused); };
  CHECK(grad<1>(f)(kX, kY).to_vector() == Values{0, 0});
  CHECK(grad(f, {kX, kY})[1].to_vector() == Values{0, 0});
  CHECK(vjp(f, {kX, kY}).second()[1].to_vector() == Values{0, 0});
  CHECK(jacobian(f, {kX, kY})[1].to_vector() == Values{0, 0, 0, 0});
  const Tensor at = tensor({1, 0});
  const auto picks = [&](const Tensor& x, const Tensor& i) { return gather(x, i); };
  const std::vector<Gradient> g = grad(picks, {kX, at});
  CHECK(g[0].to_vector() == Values{1, 1});
  CHECK_FALSE(g[1].defined());
  // A function without arguments is asked for what it reads.
  const Variable w(kX), other(kY);
  const auto reads = [&] { return sum(w * w); };
  CHECK(grad(reads, {w, other})[0].to_vector() == Values{2, 4});
  CHECK_FALSE(grad(reads, {w, other})[1].defined());
}

TEST_CASE("functions without arguments have Hessians", "[grad][hessian]") {
  const auto f = [] { return sum(kX * kX * kX); };
  for (const JacobianMode mode : {JacobianMode::reverse, JacobianMode::forward}) {
    CHECK(hessian(f, kX, {.mode = mode}).to_vector() == Values{6, 0, 0, 12});
    CHECK(hessian_vector_product(f, kX, ones_like(kX), mode).to_vector() == Values{6, 12});
    CHECK(jacobian(f, kX, {.mode = mode}).to_vector() == Values{3, 12});
  }
  CHECK(jvp(f, kX, ones_like(kX)).item() == 15);
}

TEST_CASE("derivatives reject arguments that cannot be differentiated", "[grad][errors]") {
  const auto of_list = [](const std::vector<Tensor>& w) { return sum(w[0] * w[1]); };
  const auto second = hessian(of_list);
  CHECK_FALSE(std::invocable<decltype(second), const std::vector<Tensor>&>);
  const auto power = [](const Tensor& x, int n) { return pow(x, n); };
  CHECK_FALSE(std::invocable<decltype(grad<1>(power)), const Tensor&, const int&>);
  CHECK_FALSE(std::invocable<decltype(grad(power)), const Tensor&>);
  CHECK(vjp(power)(kX, 3).second()[0].to_vector() == Values{3, 12});
  const auto picks = [](const Tensor& at, const Tensor& x) { return gather(x, at); };
  CHECK(
      message_of<DTypeError>([&] {
        grad(picks)(tensor({1, 0}), kX);
      }) ==
      "grad: argument 0 is i32[2], which has no derivative; use astype, or choose others, as in grad<1>(f)");
  CHECK(grad<1>(picks)(tensor({1, 1}), kX).to_vector() == Values{0, 2});
  CHECK(vjp(picks)(tensor({1, 0}), kX).second()[1].to_vector() == Values{1, 1});
  const std::function<Tensor(const Tensor&)> empty;
  for (const std::string& message : {message_of<ArgumentError>([&] { grad(empty)(kX); }),
                                     message_of<ArgumentError>([&] { grad(empty, kX); })})
    CHECK(message == "grad: the function is empty");
  CHECK(message_of<ArgumentError>([&] { vjp(empty)(kX); }) == "vjp: the function is empty");
  CHECK(message_of<ArgumentError>([&] { jacobian(empty)(kX); }) == "jacobian: the function is empty");
  CHECK(message_of<ArgumentError>([&] { hessian(empty)(kX); }) == "hessian: the function is empty");
}

TEST_CASE("a value without any path to the arguments is warned of once", "[grad]") {
  std::vector<std::string> warnings;
  set_warning_handler([&](std::string_view text) { warnings.emplace_back(text); });
  std::thread([&] {
    const auto on_the_host = [](const Tensor& x) { return tensor(x.at({0})) * 2.0; };
    CHECK(grad(on_the_host)(kX).to_vector() == Values{0, 0});
    CHECK(grad(on_the_host)(kX).to_vector() == Values{0, 0});
    CHECK(grad(cube)(kX).to_vector() == Values{3, 12});
  }).join();
  set_warning_handler({});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].starts_with("grad: no path leads from the function's value to an argument"));
}

TEST_CASE("exceptions of a function pass through its derivative", "[grad][errors]") {
  const auto fails = [](const Tensor& x) -> Tensor { return reshape(x, {3}); };
  CHECK_THROWS_AS(grad(fails)(kX), ShapeError);
  CHECK(message_of<ArgumentError>([] {
          grad([](const Tensor&) { return Tensor(); })(kX);
        }).find("undefined tensor") != std::string::npos);
}

}   // namespace grad_test
