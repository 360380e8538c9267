// Jacobians with tapes, with all rows in one pass and one by one. Expected values are closed forms or those
// of test/data/cases.json.
#include <catch2/catch.hpp>
#include <cmath>

#include "case.h"
#include "closeness.h"
#include "message_of.h"
#include "ops/odd_ops.h"
#include "ops/op_samples.h"
#include "tapedeck/control.h"
#include "tensors_of.h"

namespace jacobian_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr JacobianOptions kTogether = {}, kOneByOne = {.vectorize = false}, kChunks = {.max_bytes = 1};

std::vector<Tensor> jacobian_of(const TensorFunction& f, const std::vector<Tensor>& x,
                                const JacobianOptions& options) {
  GradientTape tape;
  for (const Tensor& t : x)
    tape.watch(t);
  return tensors_of(tape.jacobian(f(x), Sources(x), options));
}

}   // namespace

TEST_CASE("cases: jacobians", "[cases][jacobian]") {
  check_case("jac-diag-pfor", [&](Case& c) {
    const Tensor x = c.input("x"), y = c.input("y");
    c.check("jac", jacobian_of([](const auto& in) { return in[0] * in[0] * in[1]; }, {x, y}, kTogether));
  });
  check_case("jac-diag-loop", [&](Case& c) {
    const Tensor x = c.input("x"), y = c.input("y");
    c.check("jac", jacobian_of([](const auto& in) { return in[0] * in[0] * in[1]; }, {x, y}, kOneByOne));
  });
  check_case("jac-matmul-self", [&](Case& c) {
    GradientTape tape({.persistent = true});
    const Tensor x = c.input("x");
    tape.watch(x);
    const Tensor y = matmul(x, x), chunks = tape.jacobian(y, x, kChunks);
    if (c.compares()) CHECK(tape.jacobian(y, x).to_vector() == chunks.to_vector());
    c.check("jac", chunks);
  });
  check_case("jac-nested", [&](Case& c) {
    const Tensor x = c.input(ones({10, 2}));
    GradientTape outer;
    outer.watch(x);
    Tensor first;
    {
      GradientTape inner;
      inner.watch(x);
      first = inner.jacobian(sum(square(x)), x);
    }
    const Tensor second = outer.batch_jacobian(first, x);
    CHECK(second.shape() == Shape{10, 2, 2});
    c.check("jac_each_of_10", reshape(slice(second, {9, 0, 0}, {1, 2, 2}), {2, 2}));
  });
  check_case("jac-foldl", [&](Case& c) {
    const TensorFunction fold = [](const std::vector<Tensor>& x) {
      const std::vector<Tensor> parts = unstack(x[0]);
      return parts[0] + parts[1] + parts[2];
    };
    c.check("jac", jacobian_of(fold, {zeros({3})}, kTogether)[0]);
    CHECK(jacobian_of(fold, {zeros({3})}, kOneByOne)[0].to_vector() == std::vector<double>{1, 1, 1});
  });
  for (const char* id : {"batch-jac-diag", "batch-jac-loop"}) {
    check_case(id, [&](Case& c) {
      const bool loop = std::string_view(id) == "batch-jac-loop";
      GradientTape tape({.persistent = loop});
      const Tensor x = c.input("x"), y = c.input("y");
      tape.watch(x), tape.watch(y);
      c.check("jac", tape.batch_jacobian(x * x * y, x, loop ? kOneByOne : kTogether));
    });
  }
  check_case("batch-jac-degenerate", [&](Case& c) {
    for (const JacobianOptions& options : {kOneByOne, kTogether}) {
      GradientTape tape;
      const Tensor x = zeros({1, 0});
      tape.watch(x);
      const Tensor j = tape.batch_jacobian(square(x), x, options);
      if (options.vectorize)
        c.check("shape", std::vector<std::int64_t>(j.shape().begin(), j.shape().end()));
      else
        CHECK(j.shape() == Shape{1, 0, 0});
    }
  });
  check_case("batch-jac-bad-shape", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input(ones({2, 3}));
    tape.watch(x);
    c.check_error<ShapeError>(
        [&] {
          tape.batch_jacobian(concat({x, x}, 0), x);
        },
        "batch_jacobian: first extents differ: the target is f32[4,3], the source f32[2,3]");
  });
  // All rows run in one pass, whether the tape is persistent or not.
  check_case("batch-jac-parallel-nonpersistent", [&](Case& c) {
    c.superseded("error", "G14");
    GradientTape tape;
    const Tensor x = c.input(tensor({{3.0}}));
    tape.watch(x);
    CHECK(tape.batch_jacobian(tile(pow(x, 4), {1, 16}), x, {.max_bytes = 64}).to_vector() ==
          std::vector<double>(16, 108));
  });
}

TEST_CASE("a Jacobian has a part for each source, none without a path", "[jacobian]") {
  const Tensor x = tensor({1.0, 2.0}), other = ones({3}), n = tensor({1, 2, 3});
  const Variable v(tensor({{1.0, 2.0}, {3.0, 4.0}}));
  GradientTape tape({.persistent = true});
  tape.watch(x), tape.watch(other);
  const Tensor y = gather(v, tensor({1, 1})) * x;   // y[i][k] = v[1][k] x[k]; sparse gradients become dense
  const std::vector<Gradient> j = tape.jacobian(y, {x, v, other});
  CHECK(j[0].shape() == Shape{2, 2, 2});
  CHECK(j[0].to_vector() == std::vector<double>{3, 0, 0, 4, 3, 0, 0, 4});
  CHECK(j[1].shape() == Shape{2, 2, 2, 2});
  CHECK(j[1].to_vector() == std::vector<double>{0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0, 2});
  CHECK_FALSE(j[2].defined());
  CHECK(tape.jacobian(y, other, {.unconnected = UnconnectedGradients::zero}).shape() == Shape{2, 2, 3});
  CHECK(tape.jacobian(x, x).to_vector() == std::vector<double>{1, 0, 0, 1});
  CHECK(tape.jacobian(tensor({1.0, 2.0, 3.0}), x, {.unconnected = UnconnectedGradients::zero}).shape() ==
        Shape{3, 2});
  CHECK(tape.batch_jacobian(ones({2, 3}), v).to_vector() == std::vector<double>(12, 0));
  set_warning_handler([](std::string_view) {});
  CHECK_FALSE(tape.jacobian(n, x).defined());
  set_warning_handler({});
}

TEST_CASE("a target without a Jacobian is an error, and the tape is unchanged", "[jacobian][errors]") {
  const Tensor x = ones({2, 2}), z = astype(x, DType::c64);
  GradientTape tape;
  tape.watch(x), tape.watch(z);
  const Tensor y = x * x, w = z * z;
  CHECK(message_of([&] { tape.jacobian(w, x); }) ==
        "jacobian: the target is c64[2,2]; only real numbers have a Jacobian here");
  CHECK(message_of([&] { tape.jacobian(y, z); }) ==
        "jacobian: a source is c64[2,2]; only real numbers have a Jacobian here");
  CHECK(message_of([&] { tape.jacobian(y, x, {.mode = JacobianMode::forward}); }) ==
        "jacobian: a tape supports reverse mode only; use forward mode with a function");
  CHECK(message_of([&] { tape.batch_jacobian(sum(y), x); }) ==
        "batch_jacobian: the target is f32[]; it must have rank 2 or more");
  CHECK(message_of([&] { tape.batch_jacobian(y, sum(x)); }) ==
        "batch_jacobian: the source is f32[]; it must have rank 2 or more");
  CHECK(tape.jacobian(y, x).shape() == Shape{2, 2, 2, 2});
  CHECK(message_of([&] { tape.jacobian(y, x); }) ==
        "gradient: this tape was already used; make it persistent to call gradient twice");
}

TEST_CASE("rows go together in chunks that fit", "[jacobian][memory]") {
  const Tensor x = random::normal({32}, {.seed = 1}), m = random::normal({32, 32}, {.seed = 2});
  const auto passes_and_values = [&](std::int64_t max_bytes) {
    seen = {};
    GradientTape tape;
    tape.watch(x);
    const Tensor j =
        tape.jacobian(outputs(kPair, {tanh(matmul(m, expand_dims(x, 1)))})[0], x, {.max_bytes = max_bytes});
    return std::pair(seen.runs, j.to_vector());
  };
  const auto all = passes_and_values(1 << 20), four = passes_and_values(8 * 32 * 4),
             each = passes_and_values(0);
  CHECK(all.first == 1);
  CHECK(four.first == 4);
  CHECK(each.first == 32);
  for (std::size_t i = 0; i < all.second.size(); ++i) {
    CHECK(four.second[i] == Approx(all.second[i]).epsilon(1e-5).margin(1e-6));
    CHECK(each.second[i] == Approx(all.second[i]).epsilon(1e-5).margin(1e-6));
  }
}

TEST_CASE("variables that are not sources cost nothing", "[jacobian]") {
  const Variable w(ones({3}));
  const Tensor x = tensor({1.0, 2.0, 3.0});
  seen = {};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * outputs(kPair, {w.value()})[0];
  CHECK(tape.jacobian(y, x).to_vector() == std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  CHECK(seen.runs == 0);
}

// An operation with its own backward function takes one cotangent at a time; a tensor of rank 8 cannot have
// more axes.
TEST_CASE("ops that cannot be stacked are looped over", "[jacobian]") {
  const Tensor x = tensor({1.0, 2.0});
  GradientTape tape;
  tape.watch(x);
  Tensor y;
  int runs = 0;
  {
    const StopRecording pause;
    y = x * 3;
  }
  record_operation("times three", {&y, 1}, {&x, 1}, [&](std::span<const Tensor> dy) {
    CHECK(dy[0].shape() == Shape{2});
    ++runs;
    return std::vector<Gradient>{dy[0] * 3};
  });
  CHECK(tape.jacobian(exp(y) * 0 + y * y, x).to_vector() == std::vector<double>{18, 0, 0, 36});
  CHECK(runs == 2);
  const Tensor deep = reshape(arange(4, DType::f32), {2, 1, 1, 1, 1, 1, 1, 2}), flat = arange(4, DType::f32);
  GradientTape other;
  other.watch(flat);
  CHECK(other.jacobian(reshape(square(reshape(flat, deep.shape())), {4}), flat).at({3, 3}) == 6);
}

TEST_CASE("Jacobians through tensors of the highest rank", "[jacobian][errors]") {
  const auto f = [](const Tensor& x) {   // from 2 to 4 elements: forward mode would be shorter
    const Tensor high = exp(reshape(x, {2, 1, 1, 1, 1, 1, 1, 1}));
    return reshape(concat({high, 2.0 * high}, 7), {2, 2});
  };
  const Tensor x = tensor({0.5, -1.0});
  const double a = std::exp(0.5), b = std::exp(-1.0);
  const Tensor expected = reshape(tensor({a, 0.0, 2 * a, 0.0, 0.0, b, 0.0, 2 * b}), {2, 2, 2});
  for (const bool vectorize : {true, false})
    for (const JacobianMode mode : {JacobianMode::automatic, JacobianMode::reverse})
      CHECK(worst(jacobian(f, x, {.mode = mode, .vectorize = vectorize}), expected) < 1e-15);
  CHECK(worst(jacobian(f, x, {.mode = JacobianMode::forward, .vectorize = false}), expected) < 1e-15);
  CHECK_THROWS_WITH(jacobian(f, x, {.mode = JacobianMode::forward}),
                    "reshape: an output is f32[2,1,1,1,1,1,1,1]; stacked tangents have one more axis, and "
                    "tensors have at most 8; use reverse mode, or one tangent at a time");
}

TEST_CASE("Jacobians of Jacobians", "[jacobian]") {
  const Tensor x = tensor({0.5, -1.0}, DType::f64);
  for (const JacobianOptions& inner_options : {kTogether, kOneByOne, kChunks}) {
    GradientTape outer;
    outer.watch(x);
    Tensor first;
    {
      GradientTape inner;
      inner.watch(x);
      first = inner.jacobian(sin(x) * sum(x), x, inner_options);
    }
    // f_i = sin(x_i) (x_0 + x_1), so that its second derivatives are -sin(x_i) s δ_ij δ_ik + cos(x_i) (δ_ij +
    // δ_ik)
    const Tensor second = outer.jacobian(first, x, inner_options);
    const std::vector<double> at = x.to_vector();
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 2; ++j)
        for (std::int64_t k = 0; k < 2; ++k) {
          const double xi = at[static_cast<std::size_t>(i)];
          CHECK(second.at({i, j, k}) ==
                Approx(-std::sin(xi) * -0.5 * (i == j && i == k) + std::cos(xi) * ((i == j) + (i == k))));
        }
  }
}

TEST_CASE("every op's Jacobian is the same together and one by one", "[jacobian][op]") {
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops) {
      if (op->rule.kind == RuleKind::none || op->rule.kind == RuleKind::undefined) continue;
      DYNAMIC_SECTION(op->name) {
        for (const Sample& sample : samples_of(*op)) {
          GradientTape tape({.persistent = true});
          Tensors x;
          for (const Tensor& t : sample.inputs)
            if (is_floating(t.dtype())) tape.watch(x.emplace_back(t));
          const Tensors y = run(*op, sample.inputs, sample.attrs);
          for (const Tensor& t : y) {
            if (x.empty() || !is_floating(t.dtype()) || t.size() > 200) continue;
            const Tensor flat = reshape(t, {-1});
            const Tensors together = tensors_of(tape.jacobian(flat, Sources(x))),
                          each = tensors_of(tape.jacobian(flat, Sources(x), kOneByOne));
            for (std::size_t i = 0; i < x.size(); ++i) {
              REQUIRE(together[i].defined() == each[i].defined());
              if (each[i].defined()) CHECK(close(together[i], each[i], 1e-11));
            }
          }
        }
      }
    }
}

TEST_CASE("the Jacobian of an empty target is empty where a path leads", "[jacobian]") {
  const Tensor v = ones({7}, DType::f64), other = ones({2}, DType::f64), none = zeros({0, 7}, DType::f64);
  for (const JacobianOptions& options : {kTogether, kOneByOne}) {
    const std::vector<Tensor> all =
        jacobian_of([&](const std::vector<Tensor>& x) { return x[0] * none; }, {v, other}, options);
    REQUIRE(all[0].defined());
    CHECK(all[0].spec() == Spec{DType::f64, {0, 7, 7}});
    CHECK_FALSE(all[1].defined());
  }
  const Recording recording;
  const Tensor x = zeros({0}, DType::f64), y = sum(x * x);
  const Tensor h = hessians(y, x)[0];
  REQUIRE(h.defined());
  CHECK(h.spec() == Spec{DType::f64, {0, 0}});
}

TEST_CASE("the Jacobian of an empty target by what a loop with snapshots captures is empty",
          "[jacobian][control]") {
  const Tensor x = ones({0}, DType::f64), w = full({}, 2, DType::f64);
  for (const std::int64_t snapshots : {0, 2})
    for (const JacobianOptions& options : {kTogether, kOneByOne}) {
      CAPTURE(snapshots, options.vectorize);
      const std::vector<Tensor> all = jacobian_of(
          [&](const std::vector<Tensor>& in) {
            return fori_loop(0, 4, [w = in[1]](std::int64_t, const Tensor& t) { return t * w; }, {in[0]},
                             {.snapshots = snapshots});
          },
          {x, w}, options);
      for (const Tensor& t : all)
        REQUIRE(t.defined());
      CHECK(all[0].spec() == Spec{DType::f64, {0, 0}});
      CHECK(all[1].spec() == Spec{DType::f64, {0}});
    }
}

TEST_CASE("errors of a Jacobian come first, and leave the tape usable", "[jacobian][errors]") {
  const Tensor x = ones({1, 1, 1, 1, 1});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  CHECK(message_of<ShapeError>([&] { tape.jacobian(y, x); }) ==
        "jacobian: the derivative of f32[1,1,1,1,1] in f32[1,1,1,1,1] has 10 axes, but a tensor has at most "
        "8; reshape one of them to a vector first");
  CHECK(message_of<ShapeError>([&] {
          tape.batch_jacobian(y, x);
        }).starts_with("batch_jacobian: the derivative of"));
  CHECK(message_of<ArgumentError>([&] { tape.jacobian(y, x, {.unconnected = UnconnectedGradients(9)}); }) ==
        "jacobian: unknown value for unconnected: 9; use UnconnectedGradients::none or zero");
  CHECK(message_of<ArgumentError>([&] { tape.jacobian(y, x, {.mode = JacobianMode(9)}); }) ==
        "jacobian: unknown value for mode: 9; use JacobianMode::automatic, reverse or forward");
  CHECK(message_of<ArgumentError>([&] { tape.jacobian(y, x, {.max_bytes = -1}); }) ==
        "jacobian: max_bytes is -1; use 0 or more");
  CHECK(message_of<ArgumentError>([&] {
          jacobian([](const Tensor& t) { return t * t; }, x,
                   {.mode = JacobianMode::forward, .max_bytes = -1});
        }) == "jacobian: max_bytes is -1; use 0 or more");
  CHECK(tape.gradient(y, x).dense().to_vector() == std::vector<double>{2});
  const auto square = [](const Tensor& t) { return t * t; };
  for (const JacobianMode mode : {JacobianMode::forward, JacobianMode::reverse})
    CHECK(message_of<ShapeError>([&] {
            jacobian(square, x, {.mode = mode});
          }).starts_with("jacobian: the derivative of f32[1,1,1,1,1]"));
  CHECK_THROWS_AS(jacobian(square, x, {.mode = JacobianMode(9)}), ArgumentError);
}

// Three rows, then one.
TEST_CASE("a last chunk of rows may be smaller", "[jacobian]") {
  const Tensor x = random::normal({4}, {.seed = 3}, DType::f64);
  const auto f = [](const std::vector<Tensor>& in) { return in[0] * in[0] * in[0]; };
  const Tensor whole = jacobian_of(f, {x}, kTogether)[0],
               chunks = jacobian_of(f, {x}, {.max_bytes = 3 * x.nbytes()})[0];
  CHECK(chunks.to_vector() == whole.to_vector());
  CHECK(whole.at({3, 3}) == Approx(3 * x.at({3}) * x.at({3})));
}

// The largest tensor comes after a freed slot.
TEST_CASE("the largest tensor on the tape limits the size of chunks", "[jacobian]") {
  const Tensor x = tensor({1.0, 2.0, 3.0}, DType::f64);
  GradientTape tape;
  tape.watch(x);
  Tensor gone = x * 2;
  const Tensor wide = broadcast_to(x, {1000, 3}), y = outputs(kPair, {sum(wide, 0)})[0];
  gone = Tensor();
  seen = {};
  tape.jacobian(y, x, {.max_bytes = 2 * wide.nbytes()});
  CHECK(seen.runs == 2);
}

TEST_CASE("a Jacobian has the dtype of its input in each mode", "[jacobian]") {
  const auto narrow = [](const Tensor& t) { return astype(t * t, DType::f32); };
  const auto wide = [](const Tensor& t) { return astype(t * t, DType::f64); };
  for (const JacobianMode mode : {JacobianMode::automatic, JacobianMode::forward, JacobianMode::reverse})
    for (const DType dtype : {DType::f64, DType::f32, DType::f16})
      for (const bool vectorize : {true, false}) {
        INFO("mode " << static_cast<int>(mode) << ", " << name_of(dtype));
        const JacobianOptions options = {.mode = mode, .vectorize = vectorize};
        for (const Tensor& j : {jacobian(narrow, tensor({1.0, 2.0}, dtype), options),
                                jacobian(wide, tensor({1.0, 2.0}, dtype), options)}) {
          CHECK(j.dtype() == dtype);
          CHECK(j.to_vector() == std::vector<double>{2, 0, 0, 4});
        }
        CHECK(batch_jacobian(narrow, ones({2, 3}, dtype), options).dtype() == dtype);
      }
}

TEST_CASE("einsum under Jacobians of Jacobians", "[jacobian]") {
  const Tensor v = tensor({1.0, -2.0, 3.0}, DType::f64), m = reshape(arange(9, DType::f64), {3, 3});
  const std::vector<std::pair<std::string, Tensor>> cases = {
      {"i,i->", v}, {"i,j->ij", v}, {"ij,jk->ik", m}, {"ij,ij->", m}, {"...i,...i->...", m}};
  for (const auto& [equation, x] : cases) {
    CAPTURE(equation);
    const auto f = [&e = equation](const Tensor& t) { return einsum(e, std::vector{t, t}); };
    // f is quadratic: its second derivative d is constant, and f(t) = (d t) t / 2.
    std::vector<Tensor> seconds;
    for (const JacobianMode inner : {JacobianMode::forward, JacobianMode::reverse})
      for (const JacobianMode outer : {JacobianMode::forward, JacobianMode::reverse}) {
        const auto j = [&](const Tensor& t) { return jacobian(f, t, {.mode = inner}); };
        seconds.push_back(jacobian(j, x, {.mode = outer}));
      }
    const Tensor along = reshape(x, {-1}), y = f(x);
    for (const Tensor& d : seconds) {
      const Tensor rows = reshape(d, {y.size(), x.size(), x.size()});
      const Tensor product = sum(sum(rows * along, {2}) * along, {1});
      CHECK(worst(0.5 * product, reshape(y, {-1})) < 1e-12);
    }
  }
}

}   // namespace jacobian_test
