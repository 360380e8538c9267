// map_scan: a recurrence of elements as one op, compared with the same step by scan and ops, and with closed
// forms.
#include "tapedeck/map_scan.h"

#include <catch2/catch.hpp>

#include "closeness.h"
#include "message_of.h"
#include "ops/sample_inputs.h"
#include "tapedeck/compile.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/tapedeck.h"

namespace map_scan_test {

using namespace tapedeck;
using samples::uniform;
using test::message_of;
using Tensors = std::vector<Tensor>;

namespace {

// Two carries, two xs, three parameters and two outputs, with a choice and a carry that only passes through.
constexpr auto step = [](const auto& c, const auto& x, const auto& p) {
  const auto gate = sigmoid(c[0] * p[0] + x[0]);
  const auto next = gate * tanh(c[1] + p[1] * x[1]) + where(c[0] > p[2], c[0], 0.5 * c[0]);
  return std::pair(std::array{next, c[0]}, std::array{next * p[2], exp(-x[1] * x[1])});
};

Tensors flat(const auto& results) {
  Tensors all(results.first.begin(), results.first.end());
  all.insert(all.end(), results.second.begin(), results.second.end());
  return all;
}
Tensors fused(const Tensors& x, const MapScanOptions& options = {}) {
  return flat(
      map_scan(step, std::array{x[0], x[1]}, std::array{x[2], x[3]}, std::array{x[4], x[5], x[6]}, options));
}
// The same by scan.
Tensors by_ops(const Tensors& x, bool reverse = false) {
  const auto f = [&](const Tensor& a, const Tensor& b, const Tensor& u, const Tensor& v) {
    return flat(step(std::array{a, b}, std::array{u, v}, std::array{x[4], x[5], x[6]}));
  };
  return scan(f, {x[0], x[1]}, {x[2], x[3]}, {.reverse = reverse});
}
Tensors inputs(std::int64_t steps, std::int64_t lanes, DType dtype = DType::f64) {
  Tensors x;
  for (int i = 0; i < 7; ++i) {
    const Shape shape = i == 2 || i == 3 ? Shape{steps, lanes} : Shape{lanes};
    x.push_back(astype(uniform(shape, -0.9, 0.8, i), dtype));
  }
  return x;
}
// A number that depends on all results.
Tensor weighted(const Tensors& y) {
  Tensor total;
  for (std::size_t k = 0; k < y.size(); ++k) {
    const Tensor part =
        sum(y[k] * astype(uniform(y[k].shape(), 0.5, 1.5, static_cast<int>(k)), y[k].dtype()));
    total = total.defined() ? total + part : part;
  }
  return total;
}
template <class F> Tensors gradients(const F& f, const Tensors& x) {
  GradientTape tape;
  for (const Tensor& t : x)
    tape.watch(t);
  const Tensor y = weighted(f(x));
  Tensors all;
  for (Gradient& g : tape.gradient(y, Sources(x), {.unconnected = UnconnectedGradients::zero}))
    all.push_back(std::move(g).dense());
  return all;
}
void check_close(const Tensors& a, const Tensors& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("tensor " << i);
    REQUIRE(a[i].spec() == b[i].spec());
    const std::vector<double> p = a[i].to_vector(), q = b[i].to_vector();
    for (std::size_t k = 0; k < p.size(); ++k)
      CHECK(p[k] == Approx(q[k]).epsilon(tolerance).margin(tolerance));
  }
}
void check_same(const Tensors& a, const Tensors& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    CHECK(a[i].to_vector() == b[i].to_vector());
}

}   // namespace

TEST_CASE("map_scan is the scan of its step", "[map_scan]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t steps = GENERATE(0, 1, 7), lanes = GENERATE(0, 1, 3, 4, 21);
  const double tolerance = dtype == DType::f32 ? 2e-6 : 1e-13;
  const Tensors x = inputs(steps, lanes, dtype);
  if (steps > 0) check_close(fused(x), by_ops(x), tolerance);
  if (steps == 0) check_same({fused(x)[0], fused(x)[1]}, {x[0], x[1]});
  if (steps == 0) CHECK(fused(x)[2].shape() == Shape{0, lanes});
  if (steps > 0)
    check_close(gradients([](const Tensors& z) { return fused(z); }, x),
                gradients([](const Tensors& z) { return by_ops(z); }, x), 10 * tolerance);
}

TEST_CASE("map_scan from the last step to the first", "[map_scan]") {
  const Tensors x = inputs(5, 6);
  const auto backwards = [](const Tensors& z) { return fused(z, {.reverse = true}); };
  check_close(backwards(x), by_ops(x, true), 1e-13);
  check_close(gradients(backwards, x), gradients([](const Tensors& z) { return by_ops(z, true); }, x), 1e-12);
}

TEST_CASE("the gradient of map_scan has the same bits however few carries it keeps", "[map_scan]") {
  const Tensors x = inputs(100, 19, GENERATE(DType::f32, DType::f64, DType::bf16));
  const Tensors all = gradients([](const Tensors& z) { return fused(z); }, x);
  for (const std::int64_t bytes : {1, 2000, 4000, 12000}) {
    const auto f = [&](const Tensors& z) { return fused(z, {.checkpoint_bytes = bytes}); };
    check_same(gradients(f, x), all);
  }
}

TEST_CASE("the gradient computes each step once where the tape keeps all carries", "[map_scan]") {
  constexpr std::int64_t steps = 50, all = steps * 8;   // bytes
  const Tensor p = uniform({1}, 0.2, 0.8, 0), x = uniform({steps, 1}, -1, 1, 1);
  std::int64_t calls = 0;
  const auto step_of_one = [&calls](const auto& c, const auto& now, const auto& decay) {
    ++calls;
    const auto next = tanh(c[0] * decay[0] + now[0]);
    return std::pair(std::array{next}, std::array{next});
  };
  for (const std::int64_t bytes : {all, all - 1}) {
    CAPTURE(bytes);
    GradientTape tape;
    tape.watch(p);
    const MapScanOptions options = {.checkpoint_bytes = bytes};
    const Tensor y =
        sum(map_scan(step_of_one, std::array{p}, std::array{x}, std::array{p}, options).second[0]);
    calls = 0;
    tape.gradient(y, p);
    CHECK((calls == steps) == (bytes == all));
  }
}

TEST_CASE("map_scan has the same bits on one thread and on two", "[map_scan]") {
  const Tensors x = inputs(20, 3000);
  const auto f = [](const Tensors& z) { return fused(z); };
  const int before = num_threads();
  set_num_threads(1);
  const Tensors y = f(x), dx = gradients(f, x);
  set_num_threads(2);
  check_same(f(x), y);
  check_same(gradients(f, x), dx);
  set_num_threads(before);
}

TEST_CASE("derivatives of map_scan agree with finite differences", "[map_scan]") {
  const Tensors x = inputs(3, 2);
  CHECK(check_gradients([](const Tensors& z) { return weighted(fused(z)); }, x));
}

TEST_CASE("the tangents of map_scan agree with its step by ops", "[map_scan]") {
  const Tensors x = inputs(6, 5), all = inputs(6, 5);
  const auto tangents = [&](const auto& f) {
    const ForwardAccumulator accumulator(Sources(std::vector<Source>{x[0], x[3], x[5]}),
                                         {all[1], all[2], all[4]});
    Tensors dy;
    for (const Tensor& y : f(x))
      dy.push_back(accumulator.jvp(y).tensor());
    return dy;
  };
  check_close(tangents([](const Tensors& z) { return fused(z); }),
              tangents([](const Tensors& z) { return by_ops(z); }), 1e-12);
}

TEST_CASE("the inputs of map_scan broadcast and are promoted", "[map_scan]") {
  const auto decay = [](const auto& c, const auto& x, const auto& p) {
    const auto next = p[0] * c[0] + x[0];
    return std::pair(std::array{next}, std::array{next});
  };
  const Tensor xs = uniform({4, 3}, -1, 1), start = tensor(0.25F), rate = uniform({2, 1}, 0.1, 0.9);
  GradientTape tape;
  for (const Tensor& t : {xs, start, rate})
    tape.watch(t);
  const auto [last, all] = map_scan(decay, std::array{start}, std::array{xs}, std::array{rate});
  REQUIRE(all[0].spec() == Spec{DType::f64, {4, 2, 3}});
  const auto gradient = tape.gradient(sum(last[0]), {xs, start, rate});
  CHECK(gradient[0].dense().shape() == xs.shape());
  CHECK(gradient[1].dense().spec() == start.spec());
  CHECK(gradient[2].dense().shape() == rate.shape());
  double expected = 0;   // of the start: the sum of r⁴, three times
  for (const double r : rate.to_vector())
    expected += 3 * r * r * r * r;
  CHECK(gradient[1].dense().item<float>() == Approx(expected).epsilon(1e-6));
}

TEST_CASE("map_scan without xs runs the given number of steps", "[map_scan]") {
  const auto twice = [](const auto& c, const auto&, const auto&) {
    return std::pair(std::array{2 * c[0]}, std::array<std::remove_cvref_t<decltype(c[0])>, 0>{});
  };
  const std::array<Tensor, 0> none{};
  const auto [last, outputs] = map_scan(twice, std::array{tensor({1.0, 3.0})}, none, none, {.length = 5});
  CHECK(last[0].to_vector() == std::vector{32.0, 96.0});
  CHECK(outputs.empty());
}

TEST_CASE("cotangents of map_scan that are stacked", "[map_scan]") {
  const Tensors x = inputs(3, 2);
  const auto f = [&](const Tensor& a) { return fused({a, x[1], x[2], x[3], x[4], x[5], x[6]})[0]; };
  const auto g = [&](const Tensor& a) { return by_ops({a, x[1], x[2], x[3], x[4], x[5], x[6]})[0]; };
  check_close({jacobian(f, x[0])}, {jacobian(g, x[0])}, 1e-12);
}

TEST_CASE("a compiled function with map_scan has the bits of eager", "[map_scan]") {
  const Tensors x = inputs(6, 11);
  const auto f = [](const Tensors& z) { return gradients([](const Tensors& w) { return fused(w); }, z); };
  const auto recorded = compile(f);
  const Tensors eager = f(x);
  check_same(recorded(x), eager);
  check_same(recorded(x), eager);
}

TEST_CASE("map_scan rejects invalid arguments", "[map_scan]") {
  const Tensors x = inputs(4, 3);
  const auto with = [&](std::size_t i, const Tensor& t) {
    Tensors z = x;
    z[i] = t;
    return z;
  };
  CHECK(message_of<ShapeError>([&] {
          fused(with(3, zeros({5, 3})));
        }) == "map_scan: first axes differ: input 0 is f64[4,3], input 1 is f32[5,3]");
  CHECK(message_of<ShapeError>([&] { fused(with(4, zeros({2}))); }) ==
        "map_scan: input 4, f32[2], does not broadcast with the inputs before it, of elements [3]");
  CHECK(message_of<ArgumentError>([&] { fused(with(1, Tensor())); }) == "map_scan: input 1 is undefined");
  CHECK_THROWS_AS(fused(with(0, zeros({3}, DType::c64))), DTypeError);
  CHECK_THROWS_AS(fused(x, {.length = 3}), ShapeError);
  CHECK_THROWS_AS(fused(x, {.checkpoint_bytes = 0}), ArgumentError);
}

}   // namespace map_scan_test
