// ForwardAccumulator, alone and nested with tapes. Expected values are closed forms.
#include <catch2/catch.hpp>
#include <cmath>

#include "tapedeck/op.h"
#include "tapedeck/tapedeck.h"
#include "warnings.h"

namespace forward_test {

using namespace tapedeck;

namespace {

const Tensor kX = tensor(0.5, DType::f64), kOne = tensor(1.0, DType::f64);

// x³ with a rule without a jvp: forward mode transposes the vjp.
constexpr Op kCube = {
    .name = "cube",
    .doc = "x³.",
    .args = {"x"},
    .infer = [](const Call& c) { return c.x[0].spec(); },
    .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = c.x[0] * c.x[0] * c.x[0]; },
                Outputs::by_kernel},
    .rule =
        Rule::custom({.x = 1}, [](const Call& c, std::span<Gradient> dy,
                                  std::span<Gradient> dx) { dx[0] = 3 * c.x[0] * c.x[0] * dy[0].dense(); }),
};

Tensor cube_of(const Tensor& x) { return kCube(x); }

// x itself; notes the live bytes when it or its derivative is computed.
std::int64_t most_bytes = 0;
void note_bytes() { most_bytes = std::max(most_bytes, live_bytes()); }
constexpr Op kProbe = {
    .name = "probe",
    .doc = "x.",
    .args = {"x"},
    .infer = [](const Call& c) { return c.x[0].spec(); },
    .forward = {[](const Call& c, std::span<Tensor> y) { note_bytes(), y[0] = identity(c.x[0]); },
                Outputs::by_kernel},
    .rule = Rule::custom(
        {}, [](const Call&, std::span<Gradient> dy, std::span<Gradient> dx) { note_bytes(), dx[0] = dy[0]; },
        [](const Call&, Refs dx, std::span<Tensor> dy) { note_bytes(), dy[0] = dx[0]; }),
};

}   // namespace

TEST_CASE("an accumulator follows the tensors that depend on its primal", "[forward]") {
  const ForwardAccumulator forward(kX, tensor(2.0, DType::f64));
  CHECK(forward.jvp(exp(kX)).item() == Approx(2 * std::exp(0.5)));
  CHECK_FALSE(forward.jvp(exp(kOne)).defined());
  CHECK(forward.jvp(kX).item() == 2);
}

TEST_CASE("tangents fit their primals", "[forward][errors]") {
  CHECK_THROWS_WITH(ForwardAccumulator(kX, tensor(1.0)),
                    "forward accumulator: the primal is f64[], its tangent f32[]; use astype");
  CHECK_THROWS_WITH(ForwardAccumulator(kX, ones({2}, DType::f64)),
                    "forward accumulator: the primal is f64[], its tangent f64[2]");
  const Tensor x = ones({2});
  CHECK_THROWS_WITH(ForwardAccumulator(x, x, {.stacked = true}),
                    "forward accumulator: the primal is f32[2], its stack of tangents f32[2]; it must have "
                    "one more axis, in front");
  CHECK_THROWS_AS(ForwardAccumulator(x, ones({2, 3}), {.stacked = true}), ShapeError);
  CHECK_THROWS_WITH(ForwardAccumulator({x, kX}, {ones({3, 2}), ones({2}, DType::f64)}, {.stacked = true}),
                    "forward accumulator: the tangent of f64[] has 2 directions, but earlier ones have 3");
  CHECK_THROWS_WITH(ForwardAccumulator({x, kX}, {x}), "forward accumulator: 1 tangents for 2 primals");
  CHECK_THROWS_WITH(ForwardAccumulator({kX, x, kX}, {kX, x, kX}),
                    "forward accumulator: primal 2, f64[], is given several times; add its tangents up");
  CHECK_THROWS_WITH(ForwardAccumulator(Tensor(), kX), "forward accumulator: a primal is undefined");
  CHECK_THROWS_WITH(ForwardAccumulator(kX, Tensor()),
                    "forward accumulator: the tangent of f64[] is undefined");
}

TEST_CASE("jvp looks up", "[forward]") {
  ForwardAccumulator forward({kX, kOne}, {tensor(2.0, DType::f64), tensor(3.0, DType::f64)});
  const Tensor a = kX * kX, b = kX * kOne, other = tensor({1.0, 2.0}), count = astype(other, DType::i32);
  forward.stop();
  const Tensor late = kX * 2.0;
  const auto [da, db] = forward.jvp(a, b);
  CHECK(da.item() == 2);
  CHECK(db.item() == 2 + 0.5 * 3);
  CHECK_FALSE(forward.jvp(late).defined());
  CHECK_FALSE(forward.jvp(other, UnconnectedGradients::none).defined());
  CHECK(forward.jvp(other, UnconnectedGradients::zero).to_vector() == std::vector<double>{0, 0});
  CHECK_FALSE(forward.jvp(count).defined());
  CHECK(forward.jvp(count, UnconnectedGradients::zero).spec() == count.spec());
  const std::vector<Gradient> list = forward.jvp({a, other}, UnconnectedGradients::zero);
  CHECK(list[0].item() == 2);
  CHECK(list[1].shape() == Shape{2});
  CHECK_THROWS_WITH(forward.jvp(a, static_cast<UnconnectedGradients>(7)),
                    "jvp: unknown value for unconnected: 7; use UnconnectedGradients::none or zero");
  CHECK_THROWS_WITH(forward.jvp(Tensor()), "jvp: the tensor is undefined");
}

TEST_CASE("an accumulator stops and starts", "[forward][errors]") {
  ForwardAccumulator forward(kX, kOne);
  CHECK(forward.recording());
  CHECK_THROWS_WITH(forward.start(), "start: this accumulator is recording already");
  forward.stop();
  CHECK_FALSE(forward.recording());
  CHECK_THROWS_WITH(forward.stop(), "stop: this accumulator is not recording");
  const Tensor y = exp(kX);
  forward.start();
  CHECK_FALSE(forward.jvp(y).defined());
  CHECK(forward.jvp(exp(kX)).defined());
  {
    const StopRecording pause;
    CHECK_FALSE(forward.jvp(exp(kX)).defined());
  }
}

TEST_CASE("tangents of one primal add up", "[forward]") {
  ForwardAccumulator forward(kX, tensor(2.0, DType::f64));
  const Tensor before = kX * 3.0;
  forward.watch(kX, tensor(5.0, DType::f64));
  forward.watch(kOne, tensor(1.0, DType::f64));
  CHECK(forward.jvp(kX).item() == 7);
  CHECK(forward.jvp(before).item() == 6);
  CHECK(forward.jvp(kX * kOne).item() == 7 + 0.5);
  CHECK_THROWS_AS(forward.watch(kX, tensor(1.0)), DTypeError);
}

TEST_CASE("tensors without a derivative have no tangent", "[forward]") {
  const test::Warnings warnings;
  const Tensor n = tensor({1, 2});
  const ForwardAccumulator forward({n, kX}, {n, kX});
  CHECK(warnings.texts ==
        std::vector<std::string>{"forward accumulator: a primal is i32, which has no derivative"});
  CHECK_FALSE(forward.jvp(n).defined());
  CHECK_FALSE(forward.jvp(astype(kX, DType::i32)).defined());
  CHECK_FALSE(forward.jvp(astype(astype(kX, DType::i32), DType::f64)).defined());
  CHECK_FALSE(forward.jvp(floor(kX)).defined());
  CHECK_FALSE(forward.jvp(stop_gradient(kX)).defined());
}

// Q(a, 0) = 1 for all a, and its slope in x is infinite for a < 1.
TEST_CASE("an input without a tangent adds nothing, even if its slope is infinite", "[forward]") {
  for (const DType t : {DType::f32, DType::f64}) {
    const Tensor a = tensor({0.5, 0.25, 2.0}, t), da = ones_like(a), x = zeros_like(a);
    const ForwardAccumulator along(a, da);
    CHECK(along.jvp(igammac(a, 0)).to_vector<double>() == std::vector<double>(3));
    CHECK(along.jvp(igammac(a, x)).to_vector<double>() == std::vector<double>(3));
    CHECK(along.jvp(igammac(reshape(a, {3, 1}), x)).to_vector<double>() == std::vector<double>(9));
    // d(a/b) = da/b where b = 0 has none
    CHECK(along.jvp(a / x).to_vector<double>() == std::vector<double>(3, INFINITY));
  }
}

TEST_CASE("tangents of some inputs of an elementwise op", "[forward]") {
  const Tensor x = tensor({1.0, 2.0}), y = tensor({4.0, 8.0}), row = tensor({{1.0, 2.0}, {3.0, 4.0}});
  const Tensor dx = tensor({1.0, 10.0}), dy = tensor({2.0, 3.0});
  const ForwardAccumulator of_x(x, dx), of_y(y, dy);
  const Tensor quotient = x / y;   // dx/y - x dy/y²
  CHECK(of_x.jvp(quotient).to_vector<double>() == std::vector{0.25, 1.25});
  CHECK(of_y.jvp(quotient).to_vector<double>() == std::vector{-0.125, -0.09375});
  CHECK(of_x.jvp(x * row).to_vector<double>() == std::vector{1.0, 20.0, 3.0, 40.0});
  CHECK(of_x.jvp(clip(3.0, x, y)).to_vector<double>() == std::vector{0.0, 0.0});
  CHECK(of_y.jvp(clip(9.0, x, y)).to_vector<double>() == std::vector{2.0, 3.0});
  const ForwardAccumulator both({x, y}, {dx, dy});
  CHECK(both.jvp(clip(0.0, x, y)).to_vector<double>() == std::vector{1.0, 10.0});
}

TEST_CASE("tangents of a variable", "[forward]") {
  const Variable v(tensor(3.0, DType::f64), {.trainable = false});
  const ForwardAccumulator forward(v, tensor(2.0, DType::f64));
  const Tensor before = square(v);
  v.assign(tensor(5.0, DType::f64));
  CHECK(forward.jvp(before).item() == 12);
  CHECK(forward.jvp(square(v)).item() == 20);
  CHECK(forward.jvp(v).item() == 2);
}

TEST_CASE("a tape around an accumulator differentiates tangents", "[forward]") {
  GradientTape tape;
  tape.watch(kX);
  const ForwardAccumulator forward(kX, kOne);
  const Tensor tangent = forward.jvp(tanh(kX));   // 1 - tanh² is computed from the output
  const double t = std::tanh(0.5);
  CHECK(tape.gradient(tangent, kX).dense().item() == Approx(-2 * t * (1 - t * t)));
}

TEST_CASE("an accumulator around a tape pushes tangents through its gradient", "[forward]") {
  const ForwardAccumulator forward(kX, kOne);
  GradientTape tape;
  tape.watch(kX);
  const Tensor y = sum(tanh(kX * 2.0));   // the output of tanh lives on as the tape's copy only
  const Tensor gradient = tape.gradient(y, kX).dense();
  const double t = std::tanh(1.0), s = 1 - t * t;
  CHECK(gradient.item() == Approx(2 * s));
  CHECK(forward.jvp(gradient).item() == Approx(-8 * t * s));
}

TEST_CASE("an accumulator follows a tape's copy of the tensor in its first slot", "[forward]") {
  Tensor x = tensor(0.5, DType::f64);
  const ForwardAccumulator forward(x, kOne);
  const Tensor a = x * 2.0;
  x = {};   // tanh takes its slot
  GradientTape tape;
  tape.watch(a);
  const Tensor y = sum(tanh(a)), gradient = tape.gradient(y, a).dense();
  const double t = std::tanh(1.0), s = 1 - t * t;
  CHECK(gradient.item() == Approx(s));
  CHECK(forward.jvp(gradient).item() == Approx(-4 * t * s));
}

TEST_CASE("accumulators nest", "[forward]") {
  const ForwardAccumulator outer(kX, kOne);
  const ForwardAccumulator inner(kX, kOne);
  const Tensor y = exp(kX * kX);   // y' = 2x y, y" = (2 + 4x²) y
  const Tensor first = inner.jvp(y);
  CHECK(first.item() == Approx(std::exp(0.25)));
  CHECK(outer.jvp(first).item() == Approx(3 * std::exp(0.25)));
  CHECK_FALSE(inner.jvp(outer.jvp(y)).defined());
}

TEST_CASE("an op without a jvp is followed by transposing its vjp", "[forward]") {
  GradientTape tape;
  tape.watch(kX);
  const ForwardAccumulator forward(kX, tensor(2.0, DType::f64));
  const Tensor tangent = forward.jvp(cube_of(kX));
  CHECK(tangent.item() == Approx(2 * 0.75));
  CHECK(tape.gradient(tangent, kX).dense().item() == Approx(2 * 3));
}

TEST_CASE("tangents are freed with their tensors", "[forward][memory]") {
  const Tensor x = ones({1000});
  const ForwardAccumulator forward(x, ones({1000}));
  const std::int64_t base = live_bytes();
  for (int i = 0; i < 100; ++i) {
    const Tensor y = exp(x) * 2.0;
    REQUIRE(forward.jvp(y).defined());
  }
  CHECK(live_bytes() == base);
}

TEST_CASE("the tangent of an elementwise op needs no memory but its own", "[forward][memory]") {
  const Tensor a = ones({1 << 16}), b = a * 2.0, da = ones({1 << 16}), db = da * 3.0;
  const ForwardAccumulator forward({a, b}, {da, db});
  release_buffers();
  const std::int64_t before = live_bytes() + cached_bytes();
  const Tensor y = a / b;   // (da - y db) / b
  CHECK(forward.jvp(y).at({0}) == -0.25);
  const std::int64_t taken = live_bytes() + cached_bytes() - before;
  CAPTURE(taken);
  CHECK(taken < 3 * a.nbytes());   // y and its tangent
}

TEST_CASE("an accumulator may end inside a tape that followed its tangents", "[forward]") {
  const Tensor x = tensor({1.0, 2.0}), dx = tensor({3.0, 4.0});
  GradientTape outer({.persistent = true});
  outer.watch(x);
  for (int i = 0; i < 3; ++i) {
    ForwardAccumulator forward(x, dx);
    const Tensor dy = forward.jvp(exp(x * x) + x);
    CHECK(outer.gradient(sum(dy), x).defined());
  }
  std::vector<Tensor> others;   // a handle that was freed twice would be handed out twice
  for (int i = 0; i < 200; ++i)
    others.push_back(tensor(1.0 * i));
  for (int i = 0; i < 200; ++i)
    CHECK(others[static_cast<std::size_t>(i)].item() == i);
}

TEST_CASE("tangents may be stacked", "[forward]") {
  const Tensor x = tensor({0.5, 1.0}, DType::f64),
               v = tensor({{1.0, 0.0}, {0.0, 2.0}, {3.0, 4.0}}, DType::f64);
  const ForwardAccumulator forward(x, v, {.stacked = true});
  const Tensor y = cube_of(x),
               scaled = tensor({{1.0}, {2.0}}, DType::f64) * y;   // by transposing its vjp; more axes than x
  CHECK(forward.jvp(y).to_vector() == std::vector<double>{0.75, 0, 0, 6, 2.25, 12});
  CHECK(forward.jvp(scaled).shape() == Shape{3, 2, 2});
  CHECK(forward.jvp(scaled).to_vector() ==
        std::vector<double>{0.75, 0, 1.5, 0, 0, 6, 0, 12, 2.25, 12, 4.5, 24});
  CHECK(forward.jvp(kOne, UnconnectedGradients::zero).shape() == Shape{3});
}

TEST_CASE("stacks of zero directions, and through rules that accept one at a time", "[forward]") {
  const Tensor x = tensor({2.0, 3.0}, DType::f64);
  for (const std::int64_t directions : {0, 1, 3}) {
    const ForwardAccumulator forward(x, ones({directions, 2}, DType::f64), {.stacked = true});
    const Tensor y = depthwise_conv2d(reshape(x, {1, 1, 1, 2}), ones({1, 1, 2, 1}, DType::f64), {}),
                 z = cube_of(x);
    CHECK(forward.jvp(y).shape() == Shape{directions, 1, 1, 1, 2});
    CHECK(forward.jvp(z).shape() == Shape{directions, 2});
    if (directions)
      CHECK(forward.jvp(y).to_vector() == std::vector<double>(static_cast<std::size_t>(2 * directions), 1));
  }
}

TEST_CASE("a product with the Hessian takes the memory of two gradients", "[forward][memory]") {
  const Tensor x = random::normal({10000}, {.seed = 1}), v = random::normal({10000}, {.seed = 2});
  const auto gradient = [&] {
    GradientTape tape;
    tape.watch(x);
    Tensor y = x;
    for (int i = 0; i < 40; ++i)
      y = kProbe(y), y = tanh(y * 1.01);
    return tape.gradient(sum(y), x).dense();
  };
  const std::int64_t base = live_bytes();
  most_bytes = 0;
  gradient();
  const std::int64_t of_gradient = most_bytes - base;
  most_bytes = 0;
  {
    const ForwardAccumulator forward(x, v);
    CHECK(forward.jvp(gradient()).defined());
  }
  const std::int64_t of_product = most_bytes - base;
  CHECK(of_gradient > 40 * 40000);
  CHECK(of_product > of_gradient);
  CHECK(of_product <= 2 * of_gradient);
  CHECK(live_bytes() == base);
}

TEST_CASE("stacked tangents of a wrong shape are an error that names the op", "[forward][errors]") {
  static constexpr Op kFlat = {
      .name = "flat",
      .doc = "x, with a jvp that loses the stack.",
      .args = {"x"},
      .infer = [](const Call& c) { return c.x[0].spec(); },
      .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = identity(c.x[0]); }, Outputs::by_kernel},
      .rule = Rule::custom(
                  {}, [](const Call&, std::span<Gradient> dy, std::span<Gradient> dx) { dx[0] = dy[0]; },
                  [](const Call&, Refs dx, std::span<Tensor> dy) { dy[0] = sum(dx[0], 0); })
                  .stacking_jvp()};
  const Tensor x = tensor({1.0, 2.0}, DType::f64);
  const ForwardAccumulator forward(x, ones({3, 2}, DType::f64), {.stacked = true});
  CHECK_THROWS_WITH(kFlat(std::array{x}),
                    "flat: the rule's tangent of output 0 is f64[2], it should be f64[3,2]");
}

TEST_CASE("a tangent of a wrong shape or dtype is an error that names the op", "[forward][errors]") {
  static bool wrong_dtype;
  static constexpr Op kWrong = {
      .name = "wrong",
      .doc = "x, with a jvp of another spec.",
      .args = {"x"},
      .infer = [](const Call& c) { return c.x[0].spec(); },
      .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = identity(c.x[0]); }, Outputs::by_kernel},
      .rule = Rule::custom(
          {}, [](const Call&, std::span<Gradient> dy, std::span<Gradient> dx) { dx[0] = dy[0]; },
          [](const Call&, Refs dx, std::span<Tensor> dy) {
            dy[0] = wrong_dtype ? astype(dx[0], DType::f32) : sum(dx[0]);
          })};
  for (const bool dtype : {false, true}) {
    wrong_dtype = dtype;
    const Tensor x = tensor({1.0, 2.0}, DType::f64);
    const ForwardAccumulator forward(x, ones({2}, DType::f64));
    CHECK_THROWS_WITH(kWrong(x), std::string("wrong: the rule's tangent of output 0 is ") +
                                     (dtype ? "f32[2]" : "f64[]") + ", it should be f64[2]");
  }
}

TEST_CASE("the tangent of the first primal reaches the reads of a variable", "[forward]") {
  const Variable v(tensor(3.0, DType::f64));
  const ForwardAccumulator forward(v, tensor(2.0, DType::f64));
  CHECK(forward.jvp(v.value()).item() == 2);
  CHECK(forward.jvp(v * v).item() == 12);
}

}   // namespace forward_test
