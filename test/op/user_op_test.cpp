// A user's own op, made with op.h: checked, recorded, differentiated and named in errors like the library's.
#include <catch2/catch.hpp>

#include "ops/op_samples.h"
#include "tapedeck/compile.h"

namespace user_op_test {

using namespace tapedeck;
using namespace tapedeck::test;
using samples::f64, samples::uniform;

namespace {

/// An op of one input, whose kernel gives one output of the same spec.
constexpr Op like_x(std::string_view name, std::string_view doc, Kernel::Run run, Rule rule) {
  return {.name = name,
          .doc = doc,
          .args = {"x"},
          .infer = [](const Call& c) { return c.x[0].spec(); },
          .forward = {run, Outputs::by_kernel},
          .rule = rule};
}

/// sqrt(a² + b²), with a kernel over typed spans.
template <class T> void hypotenuse(const Call& c, Tensor& y) {
  const auto a = c.x[0].data<T>(), b = c.x[1].data<T>();
  const auto out = writable<T>(y);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = std::hypot(a[i], b[i]);
}

constexpr Op kHypot = {
    .name = "distance",
    .doc = "sqrt(a² + b²).",
    .args = {"a", "b"},
    .infer =
        [](const Call& c) {
          if (!is_trainable(c.x[0].dtype())) c.throw_dtype_error("a must be f32 or f64");
          if (c.x[0].shape() != c.x[1].shape()) c.throw_shape_error("shapes differ");
          return c.x[0].spec();
        },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          c.x[0].dtype() == DType::f32 ? hypotenuse<float>(c, y[0]) : hypotenuse<double>(c, y[0]);
        },
    .rule =
        Rule::custom({.x = 3, .y = true}, [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
          const Tensor scaled = dys[0].dense() / c.y[0];
          for (int i : {0, 1})
            if (c.needs_gradient(i)) dx[static_cast<std::size_t>(i)] = scaled * c.x[i];
        })};
Tensor distance(Operand a, Operand b) { return kHypot(a, b); }
std::vector<Sample> samples_of_distance() {
  return {{.inputs = {uniform({2, 3}, 1, 2), uniform({2, 3}, -2, -1, 1)}},
          {.inputs = {f64({3, 5}), f64({4, 12})}, .expected = {f64({5, 13})}, .oracle = "np.hypot(a, b)"}};
}

struct PowerAttrs {
  std::vector<int> exponents;
};

/// The sum of powers of x; its attributes own memory.
constexpr Op kPowers = {
    .name = "powers",
    .doc = "The sum of x to each of the exponents.",
    .args = {"x"},
    .infer = [](const Call& c) { return c.x[0].spec(); },
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  y[0] = zeros_like(c.x[0]);
                  for (const int n : c.attrs<PowerAttrs>().exponents)
                    y[0] = y[0] + pow(c.x[0], n);
                },
                Outputs::by_kernel},
    .rule = Rule::custom({.x = 1}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
      Tensor slope = zeros_like(c.x[0]);
      for (const int n : c.attrs<PowerAttrs>().exponents)
        slope = slope + n * pow(c.x[0], n - 1);
      dx[0] = dy[0].dense() * slope;
    })};

/// The sum of any number of tensors, each weighted by its position.
constexpr Op kWeighted = {
    .name = "weighted",
    .doc = "x[0] + 2 x[1] + 3 x[2] + …",
    .args = {"x"},
    .infer = [](const Call& c) { return c.x[0].spec(); },
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  y[0] = zeros_like(c.x[0]);
                  for (int i = 0; i < c.x.size(); ++i)
                    y[0] = y[0] + (i + 1) * c.x[i];
                },
                Outputs::by_kernel},
    .rule = Rule::custom({}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
      for (int i = 0; i < c.x.size(); ++i)
        if (c.needs_gradient(i)) dx[static_cast<std::size_t>(i)] = dy[0].dense() * (i + 1);
    })};

}   // namespace

TEST_CASE("a user's op computes, converts numbers and names itself in errors", "[op]") {
  CHECK(close(distance(f64({3, 5}), f64({4, 12})), f64({5, 13}), 1e-15));
  CHECK(distance(tensor({3.0, 6.0}), tensor({4.0, 8.0})).dtype() == DType::f32);
  CHECK(distance(tensor({3.0f}), tensor({4.0f}, DType::f64)).dtype() == DType::f64);
  CHECK_THROWS_WITH(distance(ones({2}), ones({3})), "distance: shapes differ: a is f32[2], b is f32[3]");
  CHECK_THROWS_WITH(distance(arange(2), arange(2)),
                    "distance: a must be f32 or f64: a is i64[2], b is i64[2]");
}

TEST_CASE("a user's op is called with a list of tensors", "[op]") {
  const Tensor x[] = {f64({3, 5}), f64({4, 12})}, expected = f64({5, 13});
  const Tensor* pointers[] = {&x[0], &x[1]};
  const Refs refs(pointers, 2);
  CHECK(close(kHypot(std::vector{x[0], x[1]}), expected, 1e-15));
  CHECK(close(kHypot(x), expected, 1e-15));
  CHECK(close(kHypot(std::span<const Tensor>(x)), expected, 1e-15));
  CHECK(close(kHypot(refs), expected, 1e-15));
}

TEST_CASE("a user's op is checked by its samples", "[op]") { CHECK(check_op(kHypot, samples_of_distance())); }

TEST_CASE("a user's op keeps attributes that own memory", "[op]") {
  const Tensor x = f64({2, 3});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y;
  {
    PowerAttrs attrs{{1, 2, 3}};
    y = kPowers(x, attrs);
    attrs.exponents.assign(100, 7);
  }
  CHECK(y.to_vector() == std::vector<double>{14, 39});
  for (int i = 0; i < 2; ++i)
    CHECK(tape.gradient(y, x).dense().to_vector() == std::vector<double>{1 + 4 + 12, 1 + 6 + 27});
}

TEST_CASE("attributes of another type than the op reads are an error", "[op][errors]") {
  struct Scale {
    double by;
  };
  using Catch::Contains;
  const Tensor x = f64({2, 3});
  GradientTape tape;
  tape.watch(x);
  CHECK_THROWS_WITH(kPowers(x, Scale{2}), Contains("powers: its attributes are read as ") &&
                                              Contains("PowerAttrs, but the call has ") && Contains("Scale"));
  CHECK_THROWS_WITH(kPowers(x), Contains("PowerAttrs, but the call has none"));
  CHECK_THROWS_AS(kPowers.run(Tensors{x}, Scale{2}), InternalError);
  CHECK(tape.size() == 0);
}

namespace {
template <class F> constexpr Op kCalled = {
    .name = "called",
    .doc = "f(x), with the lambda f as attributes.",
    .args = {"x"},
    .infer = [](const Call& c) { return c.x[0].spec(); },
    .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = c.attrs<F>()(c.x[0]); }, Outputs::by_kernel},
    .rule = Rule::none()};
}   // namespace
TEST_CASE("two lambdas of one function are attributes of two types", "[op][errors]") {
  const auto f = [k = 3.0](const Tensor& x) { return x * k; };
  const auto g = [k = std::int64_t{7}](const Tensor& x) { return x + static_cast<double>(k); };
  static_assert(sizeof(f) == sizeof(g));
  CHECK(kCalled<decltype(f)>(f64({2}), f).item() == 6);
  CHECK_THROWS_AS(kCalled<decltype(f)>(f64({2}), g), InternalError);
}

TEST_CASE("too few inputs are an error", "[op][errors]") {
  const Tensor x = f64({3, 5});
  CHECK_THROWS_WITH(kHypot(x),
                    "op: input or output 1 is read, but there are 1; infer must refuse other numbers of "
                    "inputs than the op's functions read");
  CHECK_THROWS_AS(kHypot.run(Tensors{x}), ArgumentError);
  CHECK_THROWS_AS(kHypot(Tensors{}), ArgumentError);
}

TEST_CASE("an op is called with operands, tensors or a list", "[op]") {
  const Tensor a = f64({3, 5}), b = f64({4, 12});
  const std::vector<double> expected = {5, 13};
  CHECK(kHypot(a, b).to_vector() == expected);
  CHECK(kHypot(Operand(a), Operand(b)).to_vector() == expected);
  CHECK(kHypot(Tensors{a, b}).to_vector() == expected);
  CHECK(kHypot.run(Tensors{a, b})[0].to_vector() == expected);
  CHECK(kHypot(Operand(a), Operand(tensor({4.0f, 12.0f}))).dtype() == DType::f64);
  const PowerAttrs squares{{2}};
  CHECK(kPowers(f64({2, 3}), squares).to_vector() == std::vector<double>{4, 9});
  CHECK(kPowers(Tensors{f64({2, 3})}, squares).to_vector() == std::vector<double>{4, 9});
  CHECK(kWeighted(Tensors{a, b}).to_vector() == std::vector<double>{11, 29});
}

TEST_CASE("a kernel that replaces an output is detected", "[op][errors]") {
  constexpr static Op doubled = {.name = "doubled",
                                 .doc = "2 x.",
                                 .args = {"x"},
                                 .infer = [](const Call& c) { return c.x[0].spec(); },
                                 .forward = [](const Call& c, std::span<Tensor> y) { y[0] = c.x[0] * 2; },
                                 .rule = Rule::linear([](const Call&, const Tensor& dy) { return dy * 2; })};
  for (const DType t : {DType::f64, DType::f32, DType::f16})
    CHECK_THROWS_WITH(doubled(ones({3}, t)),
                      Catch::Contains("doubled: the kernel has replaced output 0; write "
                                      "its elements, by writable<T>(y[0])"));
  CHECK_THROWS_AS(compile([](const Tensor& x) { return doubled(x); })(ones({3})), InternalError);
  constexpr static Op none = {.name = "none",
                              .doc = "Nothing.",
                              .infer = [](const Call& c) { return c.x[0].spec(); },
                              .forward = {},
                              .rule = Rule::none()};
  CHECK_THROWS_WITH(none(ones({3})), "none: the op has no kernel");
}

TEST_CASE("a kernel may return its input", "[op]") {
  constexpr static Op reversed = {
      .name = "reversed",
      .doc = "x, with the opposite gradient; and x again.",
      .args = {"x"},
      .infer = [](const Call& c) { return std::vector<Spec>(2, c.x[0].spec()); },
      .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = y[1] = c.x[0]; }, Outputs::by_kernel},
      .rule = Rule::custom({}, [](const Call&, std::span<Gradient> dy, std::span<Gradient> dx) {
        dx[0] = dy[1].dense() - dy[0].dense();
      })};
  const auto f = [](const Tensor& x) { return sum(reversed.run(Tensors{x})[0] * 3 + x * x); };
  const auto second = [](const Tensor& x) { return sum(reversed.run(Tensors{x})[1] * 3 + x); };
  const Tensor x = f64({1, 2});
  CHECK(grad(f, x).to_vector() == std::vector<double>{-1, 1});
  CHECK(grad(second, x).to_vector() == std::vector<double>{4, 4});
  const auto compiled = compile([&](const Tensor& t) { return grad(f, t).tensor(); });
  for (const double scale : {1.0, 10.0, 100.0})
    CHECK(compiled(x * scale).to_vector() == grad(f, x * scale).to_vector());
  CHECK(x.to_vector() == std::vector<double>{1, 2});
}

TEST_CASE("an op takes any number of operands, numbers among them", "[op]") {
  const Tensor x = f64({1, 2}), n = tensor({10.0f, 20.0f});
  const Tensor y = kWeighted(Operand(x), Operand(n), Operand(x), Operand(x), Operand(2.0), Operand(x));
  CHECK(y.to_vector() == std::vector<double>{1 + 20 + 3 + 4 + 10 + 6, 2 + 40 + 6 + 8 + 10 + 12});
}

TEST_CASE("a kernel that leaves an output without elements is detected", "[op]") {
  constexpr static Op lazy = like_x(
      "lazy", "Nothing.", [](const Call&, std::span<Tensor> y) { CHECK(y[0].shape() == Shape{2}); },
      Rule::none());
  CHECK_THROWS_WITH(lazy(Operand(ones({2}))), "lazy: the kernel left an output without elements");
  CHECK_THROWS_AS(lazy.run(Tensors{ones({2})}), InternalError);
}

TEST_CASE("a rule cannot read elements that it has not declared", "[op][errors]") {
  static bool by_op;
  constexpr static Op pair = {
      .name = "pair",
      .doc = "x and x².",
      .args = {"x"},
      .infer =
          [](const Call& c) {
            return std::vector<Spec>{c.x[0].spec(), c.x[0].spec()};
          },
      .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = identity(c.x[0]), y[1] = c.x[0] * c.x[0]; },
                  Outputs::by_kernel},
      .rule = Rule::custom({}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
        const Tensor slope = by_op ? 2.0 * c.x[0] : tensor(2.0 * c.x[0].item());   // its shape is kept
        dx[0] = dy[0].dense() + slope * dy[1].dense();
      })};
  for (const auto& [way, message] :
       {std::pair(false, "data: this tensor's data was not kept"),
        std::pair(true,
                  "mul: the data of input 1, f64[1], was not kept for the rule that calls this op; a rule "
                  "declares the inputs and outputs that it reads, as by Rule::custom({.x = 0b1, .y = true}, "
                  "…) or Rule::linear(…, {.x = 0b10})")}) {
    by_op = way;
    const Tensor x = f64({3});
    GradientTape tape;
    tape.watch(x);
    const Tensor y = pair.run({&x, 1})[1];
    CHECK_THROWS_WITH(tape.gradient(y, x), message);
  }
}

TEST_CASE("a kernel may return one tensor in each call", "[op]") {
  static const Tensor kept = f64({7});
  constexpr static Op same = like_x(
      "same", "7, with a derivative of 1.", [](const Call&, std::span<Tensor> y) { y[0] = kept; },
      Rule::linear([](const Call&, const Tensor& dy) { return dy; }));
  const Tensor a = f64({1}), b = f64({2});
  GradientTape tape({.persistent = true});
  tape.watch(a), tape.watch(b), tape.watch(kept);
  const Tensor of_a = same(a), of_b = same(b);
  CHECK(of_a.id() != kept.id());
  CHECK(of_a.id() != of_b.id());
  CHECK(tape.gradient(of_a, a).item() == 1);
  CHECK_FALSE(tape.gradient(of_a, b).defined());
  CHECK_FALSE(tape.gradient(of_b, a).defined());
  CHECK_FALSE(tape.gradient(of_b, kept).defined());
  CHECK(tape.gradient(kept, kept).item() == 1);
  CHECK(kept.item() == 7);
}

TEST_CASE("a kernel may return a tensor that has no other owner", "[op]") {
  static Tensor kept;
  constexpr static Op moved = like_x(
      "moved", "A tensor that was recorded before.",
      [](const Call&, std::span<Tensor> y) { y[0] = std::move(kept); }, Rule::none());
  const Tensor x = f64({2});
  GradientTape tape;
  tape.watch(x);
  kept = 3 * x;
  CHECK_FALSE(tape.gradient(moved(x), x).defined());
}

TEST_CASE("a kernel that keeps its output and leaves it empty is an error", "[op][errors]") {
  static Tensor kept;
  constexpr static Op forgets = like_x(
      "forgets", "Nothing.", [](const Call&, std::span<Tensor> y) { kept = y[0]; }, Rule::none());
  CHECK_THROWS_WITH(forgets(f64({1})), "forgets: the kernel left an output without elements");
  kept = Tensor();
}

TEST_CASE("a rule returns a gradient of the input's dtype, in f16 too, with its data", "[op][errors]") {
  static bool undeclared;
  constexpr static Op wrong = like_x(
      "wrong", "x, with gradients that no rule may return.",
      [](const Call& c, std::span<Tensor> y) { y[0] = identity(c.x[0]); },
      Rule::custom(
          {},
          [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
            dx[0] = undeclared ? c.x[0] : astype(dy[0].dense(), DType::i64);
          },
          [](const Call&, Refs dx, std::span<Tensor> dy) { dy[0] = astype(dx[0], DType::i64); }));
  for (const DType t : {DType::f32, DType::f16, DType::bf16}) {
    const Tensor x = tensor({0.75, -2.5}, t);
    for (const bool no_data : {false, true}) {
      undeclared = no_data;
      GradientTape tape;
      tape.watch(x);
      const Tensor z = tanh(x), y = wrong(z);
      if (no_data)
        CHECK_THROWS_WITH(tape.gradient(y, x), Catch::Contains("was not kept"));
      else
        CHECK_THROWS_WITH(tape.gradient(y, x),
                          Catch::Contains("wrong: the rule's gradient of input 0 is i64[2]"));
    }
    const ForwardAccumulator forward(x, x);
    CHECK_THROWS_WITH(wrong(x),
                      Catch::StartsWith("wrong: the rule's tangent of output 0 is i64[2], it should be "));
  }
}

TEST_CASE("an op with a jvp alone", "[op]") {
  constexpr static Op twice = like_x(
      "twice", "2 x", [](const Call& c, std::span<Tensor> y) { y[0] = 2 * c.x[0]; },
      Rule::custom({}, nullptr, [](const Call&, Refs dx, std::span<Tensor> dy) { dy[0] = 2 * dx[0]; }));
  const Tensor x = f64({1, 2});
  const Sample s = {.inputs = {x}};
  CHECK_FALSE(check_op(twice, {&s, 1}));   // the vjp disagrees, since there is none
  CHECK(check_op(twice, {&s, 1}, {.differences = false}));
  const ForwardAccumulator forward(x, ones({3, 2}, DType::f64), {.stacked = true});
  CHECK(close(forward.jvp(twice(x)).dense(), full({3, 2}, 2.0, DType::f64), 0));
}

TEST_CASE("a kernel may write more outputs than fit inline, and must not replace any", "[op]") {
  static int replaced;
  constexpr static Op many = {
      .name = "many",
      .doc = "Multiples of x.",
      .args = {"x"},
      .infer = [](const Call& c) { return std::vector<Spec>(2 * kMaxInputs, c.x[0].spec()); },
      .forward =
          [](const Call& c, std::span<Tensor> y) {
            for (std::size_t k = 0; k < y.size(); ++k)
              writable<double>(y[k])[0] = static_cast<double>(k) * c.x[0].item();
            if (replaced >= 0) y[static_cast<std::size_t>(replaced)] = f64({0});
          },
      .rule = Rule::none()};
  const Tensor x = f64({3});
  replaced = -1;
  const Tensors y = many.run({&x, 1});
  for (std::size_t k = 0; k < y.size(); ++k)
    CHECK(y[k].item() == 3 * static_cast<double>(k));
  for (replaced = 0; replaced < 2 * kMaxInputs; ++replaced)
    CHECK_THROWS_AS(many.run({&x, 1}), InternalError);
}

TEST_CASE("an op may have more inputs than fit inline", "[op]") {
  for (const std::size_t n : {1u, 4u, 5u, 40u, 100u}) {
    GradientTape tape;
    Tensors x;
    for (std::size_t i = 0; i < n; ++i)
      tape.watch(x.emplace_back(tensor(1.0)));
    const Tensor y = kWeighted.run(x)[0];
    CHECK(y.item() == static_cast<double>(n * (n + 1) / 2));
    const std::vector<Gradient> dx = tape.gradient(y, x);
    for (std::size_t i = 0; i < n; ++i)
      CHECK(dx[i].dense().item() == static_cast<double>(i + 1));
  }
}

}   // namespace user_op_test
