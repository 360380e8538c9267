// gradients() and related functions on a Recording. Expected values are closed forms or those of
// test/data/cases.json.
#include "tapedeck/gradients.h"
#include "tapedeck/memory.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "case.h"
#include "message_of.h"
#include "ops/odd_ops.h"

namespace gradients_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

/// Operations on x, each with a gradient in separate memory, and their sum. Each notes the live bytes while
/// its gradient is computed.
struct ManyTerms {
  Tensor x = ones({1 << 14}), y;
  std::int64_t base = 0, peak = 0;

  explicit ManyTerms(int terms) {
    const Recording recording;
    std::vector<Tensor> all;
    for (int k = 1; k <= terms; ++k) {
      all.push_back(tensor(1.0));
      record_operation("term", {&all.back(), 1}, {&x, 1}, [this, k](std::span<const Tensor> dy) {
        const Tensor dx = dy[0] * full_like(x, k);
        peak = std::max(peak, live_bytes() - base);
        return std::vector<Gradient>{dx};
      });
    }
    y = add_n(all);
    const StopRecording unrecorded;   // so that the ops of the gradients save nothing
    for (const Aggregation a : {Aggregation::add_n, Aggregation::tree, Aggregation::accumulate_n}) {
      base = live_bytes(), peak = 0;
      const Gradient g = gradients(y, x, {.aggregation = a})[0];
      sums.push_back(g.dense());
      peaks.push_back(static_cast<double>(peak) / static_cast<double>(x.nbytes()));
    }
  }
  std::vector<Tensor> sums;
  std::vector<double> peaks;   // in tensors of x's size
};

}   // namespace

TEST_CASE("a recording follows new tensors and variables that are read", "[gradients]") {
  const Variable v(tensor({1.0, 2.0})), fixed(tensor(3.0), {.trainable = false});
  const Tensor before = tensor({4.0, 5.0});
  const Recording recording;
  const Tensor made = tensor(2.0), a = before * made, y = sum(a * v * fixed);
  const std::vector<Gradient> g = gradients(y, {before, made, a, v, fixed});
  CHECK(g[0].dense().to_vector() == std::vector<double>{6, 12});
  CHECK(g[1].dense().item() == 3 * (4 * 1 + 5 * 2));
  CHECK(g[2].dense().to_vector() == std::vector<double>{3, 6});
  CHECK(g[3].dense().to_vector() == std::vector<double>{24, 30});
  CHECK(g[4].dense().item() == 2 * 14);
}

TEST_CASE("recorded entries are freed when nothing can reach them", "[gradients]") {
  const Recording recording;
  const std::int64_t base = live_bytes();
  Tensor y = ones({1000});
  for (int i = 0; i < 10; ++i)
    y = tanh(ones({1000}) * 0.5);
  CHECK(recording.size() == 2);
  y = {};
  CHECK(recording.size() == 0);
  CHECK(live_bytes() == base);
}

TEST_CASE("gradients reads the innermost recording or persistent tape", "[gradients]") {
  const Tensor x = tensor(3.0);
  const char* nothing =
      "gradients: nothing is recorded on this thread; create a Recording, or a persistent GradientTape, "
      "before the computation to be differentiated";
  CHECK(message_of([&] { gradients(x, x); }) == nothing);
  const Recording outer;
  const Tensor y = x * x;
  CHECK(gradients(y, x)[0].dense().item() == 6);
  {
    GradientTape once;   // not persistent: passed over
    once.watch(x);
    CHECK(gradients(y, x)[0].dense().item() == 6);
    GradientTape inner({.persistent = true});
    CHECK_FALSE(gradients(y, x)[0].defined());
    inner.watch(x);
    CHECK(gradients(x * x * x, x)[0].dense().item() == 27);
  }
  const StopRecording pause;
  CHECK(gradients(y, x)[0].dense().item() == 6);
  CHECK_FALSE(gradients(x * x, x)[0].defined());
}

TEST_CASE("gradients of gradients", "[gradients]") {
  const Tensor x = tensor(2.0, DType::f64);
  const Recording recording;
  const Tensor y = pow(x, 4);
  const Tensor first = gradients(y, x)[0].dense(), second = gradients(first, x)[0].dense(),
               third = gradients(second, x)[0].dense();
  CHECK(first.item() == Approx(32));
  CHECK(second.item() == Approx(48));
  CHECK(third.item() == Approx(48));
}

TEST_CASE("ops that lead to no source are not differentiated", "[gradients]") {
  const Tensor a = tensor(2.0), b = tensor(3.0);
  const Recording recording;
  seen = {};
  const Tensor other = outputs(kPair, {b})[0], y = a * other;
  CHECK(gradients(y, a)[0].dense().item() == 3);
  CHECK(seen.runs == 0);
  CHECK(gradients(y, b)[0].dense().item() == 2);
  CHECK(seen.runs == 1);
  // Visited first on a path that need not be differentiated, then on one that must.
  const Tensor shared = outputs(kPair, {b})[0] * 2, both = shared * a + shared;
  CHECK(gradients(both, {b, a})[0].dense().item() == 6);
}

TEST_CASE("terms are added up by the requested method", "[gradients][memory]") {
  const ManyTerms terms(64);
  for (const Tensor& sum : terms.sums)
    CHECK(sum.to_vector() == std::vector<double>(static_cast<std::size_t>(terms.x.size()), 64 * 65 / 2));
  // The last term is added to 63 others: sums of 32, 16, 8, 4, 2 and 1 terms, and their sum.
  CHECK(terms.peaks[0] == Approx(64).margin(0.1));
  CHECK(terms.peaks[1] == Approx(7).margin(0.1));
  CHECK(terms.peaks[2] == Approx(2).margin(0.1));
  const Tensor x = tensor(1.0);
  const Recording recording;
  CHECK(message_of([&] { gradients(x * x, x, {.aggregation = static_cast<Aggregation>(9)}); }) ==
        "gradient: unknown value for aggregation: 9; use Aggregation::add_n, tree or accumulate_n");
}

TEST_CASE("every number of terms gives their sum", "[gradients]") {
  for (int n = 1; n < 20; ++n)
    for (const Tensor& sum : ManyTerms(n).sums)
      CHECK(sum.at({0}) == n * (n + 1) / 2);
}

TEST_CASE("gradients stop at the given tensors", "[gradients]") {
  const Tensor x = tensor(2.0);
  const Recording recording;
  const std::vector<Tensor> pair = outputs(kPair, {x * 1});   // x and 2 x
  const Tensor y = 3 * pair[0] + 5 * pair[1];
  CHECK(gradients(y, x)[0].dense().item() == 13);
  const std::vector<Gradient> past_one = gradients(y, {x, pair[1]}, {.stop_gradients = pair[1]});
  CHECK(past_one[0].dense().item() == 3);
  CHECK(past_one[1].dense().item() == 5);
  CHECK_FALSE(gradients(y, x, {.stop_gradients = y})[0].defined());
  CHECK(gradients(y, y, {.stop_gradients = y})[0].dense().item() == 1);
  const Variable v(tensor(2.0));
  const Tensor read = v;
  CHECK_FALSE(gradients(read * read, v, {.stop_gradients = read})[0].defined());
  CHECK(gradients(read * v, v, {.stop_gradients = read})[0].dense().item() == 2);
}

TEST_CASE("errors name rules whose results do not fit", "[gradients][errors]") {
  const Tensor x = tensor({1.0, 2.0});
  const Recording recording;
  const auto returning = [&](std::vector<Gradient> dx) {
    const Tensor y = tensor(1.0);
    record_operation("operation", {&y, 1}, {&x, 1}, [dx](std::span<const Tensor>) { return dx; });
    return message_of([&] { gradients(y, x); });
  };
  CHECK(returning({Tensor(tensor(1.0))}) ==
        "operation: the rule's gradient of input 0 is f32[], the input is f32[2]");
  CHECK(returning({tensor({1.0, 2.0}, DType::f64)}) ==
        "operation: the rule's gradient of input 0 is f64[2], the input is f32[2]");
  CHECK(returning({x, x}) == "operation: the backward function returned 2 gradients for 1 inputs");
}

TEST_CASE("complex targets need output gradients", "[cases][gradients][errors]") {
  const Tensor z = complex(tensor(7.0), tensor(3.0));
  const Recording recording;
  const Tensor y = z * z;
  check_case("grad-complex-default-grad-ys", [&](Case& c) {
    c.check_error(
        [&] { gradients(y, z); },
        "gradients: target 0 is c64, and complex numbers have no default output gradient; pass one");
  });
  CHECK(gradients(y, z, {.output_gradients = {ones_like(y)}})[0].defined());
}

TEST_CASE("second derivatives on a recording", "[cases][gradients][hessian]") {
  const Tensor x = tensor({1.0, 2.0}, DType::f64), z = tensor(3.0, DType::f64);
  const Recording recording;
  const Tensor y = sum(x * x * x) * z;   // the Hessian with respect to x is diag(6 x z); for z it is none,
                                         // since its gradient does not depend on z
  const std::vector<Gradient> h = hessians(y, {x, z});
  CHECK(h[0].to_vector() == std::vector<double>{18, 0, 0, 36});
  CHECK_FALSE(h[1].defined());
  CHECK(hessians(y, z, {.unconnected = UnconnectedGradients::zero})[0].item() == 0);
  // d/dx (Σ 3 x² z v + w Σ x³) = 6 x z v + 3 w x²
  const Tensor v[] = {tensor({1.0, -1.0}, DType::f64), tensor(2.0, DType::f64)};
  const std::vector<Gradient> hv = hessian_vector_product(y, {x, z}, v);
  CHECK(hv[0].dense().to_vector() == std::vector<double>{18 + 6, -36 + 24});
  CHECK(hv[1].dense().item() == 3 - 12);
  check_case("grad-hvp-length-mismatch", [&](Case& c) {
    c.check_error([&] { hessian_vector_product(y, x, v); },
                  "hessian_vector_product: 2 vectors for 1 sources");
  });
}

TEST_CASE("cases: gradients", "[cases][gradients]") {
  check_case("grad-boundary-stop", [&](Case& c) {
    const Recording recording;
    const Tensor x = identity(c.input(tensor(1.0))), z = (x + 1) + 1;
    c.check("g", gradients(z, x));
  });
  check_case("grad-aggregation-experimental_tree", [&](Case& c) {
    const Recording recording;
    const Tensor x = c.input(tensor(1.0)), y = 2 * x;
    Tensor z = y;
    for (int i = 1; i < 10; ++i)
      z = z + y;
    c.check("g", gradients(z, {x, y}, {.aggregation = Aggregation::tree}));
  });
  check_case("grad-int-cast-breaks-path", [&](Case& c) {
    const Recording recording;
    const Tensor v = c.input(tensor(5.0));
    Tensor a = tensor(1);
    for (int i = 0; i < 4; ++i)
      a = a + astype(v, DType::i32);
    set_warning_handler([](std::string_view) {});
    c.check("g", gradients(a, v)[0]);
    set_warning_handler({});
  });
  check_case("grad-variable-default-zero-dtype", DType::f64, [&](Case& c) {
    const Recording recording;
    bool same = true;
    for (const DType t : {DType::f32, DType::f64}) {
      const Variable v = c.variable(tensor(100.0, t));
      const Tensor g = gradients(tensor(1.0), v, {.unconnected = UnconnectedGradients::zero})[0].dense();
      same &= g.dtype() == t;
      if (t == DType::f64) c.check("g", g);
    }
    c.holds("dtype", same);
  });
  check_case("grad-partial-vs-total", [&](Case& c) {
    const Recording recording;
    const Tensor x = c.input(tensor(1.0)), y = 2 * x, z = x + y;
    c.check("total", gradients(z, {x, y}));
    c.check("partial", gradients(z, {x, y}, {.stop_gradients = {x, y}}));
  });
  check_case("grad-unconnected-none", [&](Case& c) {
    const Recording recording;
    c.check("g", gradients(full({3, 1}, 1), ones({2, 2})));
  });
  check_case("grad-connected-zero-mode", [&](Case& c) {
    const Recording recording;
    const Tensor x = c.input(tensor(1.0));
    c.check("g", gradients(3 * x, x, {.unconnected = UnconnectedGradients::zero}));
  });
  check_case("grad-identityn-sibling", [&](Case& c) {
    const Recording recording;
    const std::vector<Tensor> pair = outputs(kIdentities, {tensor(1.0), tensor(2.0)});
    const Tensor e = identity(pair[0]);
    c.check("none", gradients(e, pair[1])[0]);
    c.check("zero", gradients(e, pair[1], {.unconnected = UnconnectedGradients::zero})[0]);
  });
  check_case("grad-captured-nested", [&](Case& c) {
    const Recording recording;
    const Tensor x1 = c.input(tensor(1.0)), x2 = c.input(tensor(2.0)), x3 = x1 * x2;
    c.check("g", gradients({identity(x1), identity(x2), identity(x3), x1}, {x1, x2}));
  });
  check_case("grad-captured-unrelated", [&](Case& c) {
    const Recording recording;
    const Tensor constant = c.input(tensor(2.0)), x = c.input(tensor(10.0)), y = x * constant,
                 z = constant * y;
    c.check("g", gradients(z, x)[0]);
  });
}

// d is computed from a through b and c; the gradient may be stopped at each of the four, and taken with
// respect to each.
TEST_CASE("cases: partial derivatives agree with a program whose tensors are cut", "[cases][gradients]") {
  check_case("grad-stop-gradients-equivalence", [&](Case& c) {
    std::vector<Tensor> r;
    for (std::uint64_t i = 0; i < 10; ++i)
      r.push_back(random::normal({3, 3}, {.seed = i + 1}, DType::f64));
    const auto program = [&](unsigned cut) {
      const auto maybe_cut = [&](int i, const Tensor& t) { return cut >> i & 1 ? stop_gradient(t) : t; };
      std::vector<Tensor> t(4), uncut(4);
      const auto add_one = [&](std::size_t i, const Tensor& value) {
        uncut[i] = value, t[i] = maybe_cut(static_cast<int>(i), value);
      };
      add_one(0, identity(r[0]));
      add_one(1, matmul(r[1], t[0]) + r[2]);
      add_one(2, matmul(r[3], t[0]) + matmul(r[4], t[1]) + r[5]);
      add_one(3, matmul(r[6], t[1]) + matmul(r[7], t[2]) + r[8]);
      return t;
    };
    bool equal_for_all = true;
    for (unsigned stops = 0; stops < 16; ++stops) {
      const Recording recording;
      const std::vector<Tensor> whole = program(0), cut = program(stops);
      std::vector<Tensor> stopped;
      for (std::size_t i = 0; i < 4; ++i)
        if (stops >> i & 1) stopped.push_back(whole[i]);
      for (unsigned asked = 1; asked < 16; ++asked) {
        std::vector<Tensor> of_whole, of_cut;
        for (std::size_t i = 0; i < 4; ++i)
          if (asked >> i & 1) of_whole.push_back(whole[i]), of_cut.push_back(cut[i]);
        const std::vector<Gradient> a = gradients(
            whole[3], of_whole, {.unconnected = UnconnectedGradients::zero, .stop_gradients = stopped});
        const std::vector<Gradient> b =
            gradients(cut[3], of_cut, {.unconnected = UnconnectedGradients::zero});
        for (std::size_t i = 0; i < a.size(); ++i)
          equal_for_all &= a[i].dense().to_vector() == b[i].dense().to_vector();
      }
    }
    c.holds("property", equal_for_all);
  });
}

TEST_CASE("cases: hessians", "[cases][gradients][hessian]") {
  check_case("grad-hessian-1d", [&](Case& c) {
    const Tensor m = c.input("M"), x = c.input("x");
    const Recording recording;
    c.check("hessian", hessians(sum(expand_dims(x, 1) * m * x), x)[0]);
  });
  check_case("grad-hessian-2d-square", [&](Case& c) {
    const Tensor x = random::normal({3, 3}, {.seed = 1});
    const Recording recording;
    const Tensor h = hessians(0.5 * sum(matmul(transpose(x), x)), x)[0];
    c.check("shape", std::vector<std::int64_t>(h.shape().begin(), h.shape().end()));
    c.check("as_matrix", reshape(h, {9, 9}));
  });
  check_case("grad-hessian-invalid-dims-seed", [&](Case& c) {   // any rank
    c.superseded("error", "V13");
  });
}

TEST_CASE("a bool target has no gradient", "[gradients][errors]") {
  const Tensor x = tensor(1.0);
  const Recording recording;
  const Tensor y = x < 2;
  CHECK(message_of<DTypeError>([&] { gradients(y, x, {.output_gradients = {y}}); }) ==
        "gradients: target 0 is bool, which has no gradient; use where or astype");
}

}   // namespace gradients_test
