// Every op of every table, tested with its samples. An op without samples fails.
//   build/test/tapedeck_test '[op]' -c exp     runs one op
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>

#include "ops/op_samples.h"
#include "ops/sample_values.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradcheck.h"
#include "tensors_of.h"

namespace op_table_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

/// Calls check(op, sample) for each sample of each op, with one section per op.
template <class F> void for_every_sample(const F& check) {
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      DYNAMIC_SECTION(op->name) {
        int number = 0;
        for (const Sample& sample : complete_samples_of(*op)) {
          INFO(family.name << ": " << op->name << ", sample " << number++);
          check(*op, sample);
        }
      }
}

/// Whether the output has the broadcast shape of the inputs and its first element depends only on their first
/// elements, determined by trial.
bool elementwise(const Op& op, const Sample& s) {
  if (op.infer.many || s.attrs.view().type || s.inputs.empty()) return false;
  Tensors x, first, exchanged;
  for (const Tensor& t : s.inputs) {
    if (t.size() == 0) return false;
    const bool odd = x.size() % 2, alone = s.inputs.size() == 1;
    x.push_back(tiled(t, odd ? Shape{3} : Shape{2, 3}));
    exchanged.push_back(tiled(t, odd || alone ? Shape{2, 3} : Shape{3}));
    first.push_back(tiled(t, {1}));
  }
  try {
    const Tensor y = run(op, x, s.attrs)[0];
    return y.shape() == Shape{2, 3} && run(op, exchanged, s.attrs)[0].shape() == y.shape() &&
           close(tiled(y, {1}), run(op, first, s.attrs)[0], 0);
  } catch (const Error&) {
    return false;
  }
}
/// Whether any of the op's samples shows it elementwise.
bool elementwise(const Op& op) {
  const std::vector<Sample> samples = samples_of(op);
  return std::any_of(samples.begin(), samples.end(), [&](const Sample& s) { return elementwise(op, s); });
}
/// The gradients of all inputs at once, for the cotangents dy; undefined where there is none.
Tensors vjp(const Op& op, const Sample& s, const Tensors& x, const Tensors& dy) {
  GradientTape tape;
  const Tensors sources = trainable(x);
  for (const Tensor& t : sources)
    tape.watch(t);
  const std::vector<Gradient> g = tape.gradient(Targets(trainable(run(op, x, s.attrs))), Sources(sources),
                                                {.output_gradients = trainable(dy)});
  Tensors dx;
  auto next = g.begin();
  for (const Tensor& t : x) {
    const Gradient one = is_trainable(t.dtype()) ? *next++ : Gradient();
    dx.push_back(one.defined() ? one.dense() : Tensor());
  }
  return dx;
}

bool any_trainable(const Tensors& x) { return !trainable(x).empty(); }
/// Whether the op has a derivative here.
bool differentiable(const Op& op, const Sample& s) {
  return has_derivative(op) && any_trainable(s.inputs) && any_trainable(run(op, s.inputs, s.attrs));
}

/// Irregular values in [-1, 1], of x's spec; zeros for integers.
Tensor any_like(const Tensor& x, int which) {
  if (is_complex(x.dtype())) return astype(samples::spread(x.shape(), which), x.dtype());
  return is_trainable(x.dtype()) ? astype(samples::uniform(x.shape(), -1, 1, which), x.dtype())
                                 : zeros_like(x);
}
Tensors any_like(const Tensors& x) {
  Tensors all;
  for (const Tensor& t : x)
    all.push_back(any_like(t, static_cast<int>(all.size()) + 3));
  return all;
}

}   // namespace

TEST_CASE("dispatch may skip the inference of ops with loops: real inputs of one spec give that spec",
          "[op]") {
  int ops = 0;
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops) {
      if (!op->forward.loops) continue;
      ++ops;
      for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
        for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{2, 1, 5}}) {
          INFO(op->name << ": " << to_string(Spec{dtype, shape}));
          const Tensor x = ones(shape, dtype);
          const Tensor* refs[kMaxInputs] = {&x, &x, &x, &x};
          const auto inputs = std::find(op->args, op->args + kMaxInputs, std::string_view()) - op->args;
          REQUIRE(op->infer.one);
          CHECK(op->infer.one({.op = *op, .x = {refs, static_cast<int>(inputs)}}) == x.spec());
        }
    }
  CHECK(ops > 50);
}

TEST_CASE("every op has samples, and all samples are of an op", "[op]") {
  std::multiset<std::string> ops, sampled;
  const auto named = [](std::string_view family, std::string_view op) {
    return std::string(family) + ": " + std::string(op);
  };
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      ops.insert(named(family.name, op->name));
  for (const SampleFamily& family : sample_families())
    for (const OpSamples& entry : family.ops)
      sampled.insert(named(family.name, entry.op));
  for (const std::string& op : ops) {
    INFO(op);
    CHECK(ops.count(op) == 1);
    CHECK(sampled.count(op) == 1);
  }
  for (const std::string& op : sampled) {
    INFO(op);
    CHECK(ops.count(op) == 1);
  }
}

TEST_CASE("every entry is complete", "[op]") {
  std::set<std::string_view> names;
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops) {
      INFO(op->name);
      CHECK(names.insert(op->name).second);
      CHECK_FALSE(op->doc.empty());
      const std::vector<Sample> samples = samples_of(*op);
      for (const Sample& s : samples) {
        if (op->rule.kind == RuleKind::partials) CHECK(elementwise(*op, s));
        if (!s.inputs.empty()) CHECK_FALSE(op->args[0].empty());
        if (s.inputs.size() < kMaxInputs) CHECK(op->args[s.inputs.size()].empty());
      }
    }
}

// An oracle is an expression that scripts/oracle recomputes.
TEST_CASE("every sample has expected outputs from an oracle, or says why not", "[op]") {
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops) {
      const OpSamples& entry = entry_of(*op);
      int number = 0;
      for (const Sample& s : complete_samples_of(*op)) {
        INFO(op->name << ", sample " << number++ << "; scripts/oracle --write computes expected outputs");
        const bool says_why = !entry.no_oracle.empty() || s.oracle.starts_with("none: ");
        CHECK((!s.expected.empty() || says_why));
        CHECK((s.oracle != "by hand" || says_why));
      }
    }
}

TEST_CASE("every op agrees with its samples, to second order", "[op]") {
  for_every_sample([](const Op& op, const Sample& s) {
    const OpSamples& entry = entry_of(op);
    CHECK(check_op(op, {&s, 1},
                   {.differences = entry.no_differences.empty(), .gradients = {.held = entry.held}}));
    if (any_trainable(s.inputs)) CHECK_NOTHROW(run(op, in_f32(s.inputs), s.attrs));
  });
}

// The tests below leave out ops that refuse the trial's shapes. A new op of one input or more that is
// elementwise raises the number; one that falls is no longer tested.
TEST_CASE("the number of ops that prove elementwise is known", "[op]") {
  std::string names;
  int count = 0;
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      if (elementwise(*op)) names += " " + std::string(op->name), ++count;
  INFO("elementwise:" << names);
  CHECK(count == 129);
}

TEST_CASE("elementwise ops accept every pair of shapes that broadcast", "[op]") {
  const Shape shapes[] = {{}, {1}, {0}, {37}, {5, 37}, {3, 1, 37}, {5, 1}, {3, 5, 1}, {2, 0, 37}};
  const auto fits = [](const Shape& a, const Shape& b) {
    try {
      return broadcast_shapes(a, b).ndim() >= 0;
    } catch (const ShapeError&) {
      return false;
    }
  };
  for_every_sample([&](const Op& op, const Sample& s) {
    if (!elementwise(op, s)) return;
    for (const Shape& a : shapes)
      for (const Shape& b : shapes) {
        if (!fits(a, b)) continue;
        INFO(to_string(a) << " and " << to_string(b));
        const Shape all = broadcast_shapes(a, b);
        Tensors x, expanded;
        for (std::size_t i = 0; i < s.inputs.size(); ++i) {
          x.push_back(nudged(tiled(s.inputs[i], i % 2 ? b : a), 0.0137 * static_cast<double>(i)));
          expanded.push_back(repeated(x.back(), all));
        }
        const Tensor y = run(op, x, s.attrs)[0];
        CHECK(y.shape() == all);
        CHECK(close(y, run(op, expanded, s.attrs)[0], 0));
        if (differentiable(op, s)) {
          const GradcheckOptions options = {.held = entry_of(op).held};
          CHECK(check_vjp(as_function(op, s.attrs), x, options));
          CHECK(check_jvp(as_function(op, s.attrs), x, options));
        }
        if (s.inputs.size() == 1) break;   // b would have rank 0, and a the output's shape
      }
  });
}

TEST_CASE("the memory layout of inputs makes no difference", "[op]") {
  for_every_sample([](const Op& op, const Sample& s) {
    Tensors odd;
    for (const Tensor& t : s.inputs)
      odd.push_back(at_odd_offset(t));
    const Tensors y = run(op, s.inputs, s.attrs), z = run(op, odd, s.attrs);
    for (std::size_t k = 0; k < y.size(); ++k)
      CHECK(close(z[k], y[k], 1e-15));
    if (!differentiable(op, s)) return;
    const Tensors dy = any_like(y);
    const Tensors dx = vjp(op, s, s.inputs, dy), dz = vjp(op, s, odd, dy);
    for (std::size_t i = 0; i < dx.size(); ++i)
      if (dx[i].defined()) CHECK(close(dz[i], dx[i], 1e-14));
  });
}

TEST_CASE("an op may take over the memory of temporaries only", "[op]") {
  for_every_sample([](const Op& op, const Sample& s) {
    if (op.infer.many || s.inputs.empty()) return;
    const Tensor y = run(op, s.inputs, s.attrs)[0];
    Tensors given, held;
    std::vector<const Tensor*> refs;
    for (const Tensor& t : s.inputs)
      given.push_back(fresh(t)), held.push_back(fresh(t));
    for (const Tensor& t : given)
      refs.push_back(&t);
    CHECK(close(op({refs.data(), static_cast<int>(refs.size())}, s.attrs.view(), ~0u), y, 1e-15));
    const Tensors kept = held;
    refs.clear();
    for (const Tensor& t : held)
      refs.push_back(&t);
    CHECK(close(op({refs.data(), static_cast<int>(refs.size())}, s.attrs.view(), ~0u), y, 1e-15));
    for (std::size_t i = 0; i < kept.size(); ++i)
      CHECK(close(kept[i], s.inputs[i], 0));
  });
}

// Which elements must be NaN is determined by trial: an element that changes when the values of an input are
// permuted, or doubled where the op refuses permutations, depends on that input. So it must be NaN when the
// whole input is NaN.
TEST_CASE("NaN in, NaN out", "[op]") {
  for_every_sample([](const Op& op, const Sample& s) {
    if (entry_of(op).throws_on_nan) return;
    const Tensors y = run(op, s.inputs, s.attrs);
    for (std::size_t i = 0; i < s.inputs.size(); ++i) {
      if (!is_trainable(s.inputs[i].dtype()) || s.inputs[i].size() < 2) continue;
      INFO("input " << i);
      Tensors x = s.inputs;
      x[i] = full_like(s.inputs[i], std::nan(""));
      if (is_complex(x[i].dtype())) x[i] = complex(real(x[i]), real(x[i]));
      const Tensors with_nan = run(op, x, s.attrs);
      int taken = 0;
      for (const std::int64_t by : {1, 2, 0}) {
        if (by == 0 && taken > 0) continue;
        x[i] = by ? rotated(s.inputs[i], by) : s.inputs[i] + s.inputs[i];
        Tensors moved;
        try {
          moved = run(op, x, s.attrs);
        } catch (const ArgumentError&) {
          continue;   // the matrix is singular, or not positive definite
        }
        ++taken;
        for (std::size_t k = 0; k < y.size(); ++k) {
          if (!is_trainable(y[k].dtype())) continue;
          const Numbers a = numbers_of(y[k]), b = numbers_of(moved[k]), n = numbers_of(with_nan[k]);
          std::int64_t lost = 0;
          for (std::size_t e = 0; e < a.size(); ++e)
            lost += a[e] != b[e] && !is_nan(n[e]);
          CHECK(lost == 0);
        }
      }
      CHECK(taken > 0);
    }
  });
}

TEST_CASE("K stacked tangents give the K tangents", "[op]") {
  constexpr std::int64_t kCount = 3;
  for_every_sample([](const Op& op, const Sample& s) {
    if (!differentiable(op, s)) return;
    const Tensors x = trainable(s.inputs);
    std::vector<Tensors> directions(kCount);
    Tensors stacks;
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t j = 0; j < kCount; ++j)
        directions[j].push_back(any_like(x[i], static_cast<int>(i + 2 * j) + 4));   // not x itself
      stacks.push_back(stack({directions[0][i], directions[1][i], directions[2][i]}));
    }
    ForwardAccumulator all(x, stacks, {.stacked = true});
    const Tensors y = run(op, s.inputs, s.attrs), dy = tensors_of(all.jvp(Sources(y)));
    all.stop();
    for (std::int64_t j = 0; j < kCount; ++j) {
      const ForwardAccumulator one(x, directions[static_cast<std::size_t>(j)]);
      const Tensors z = run(op, s.inputs, s.attrs), dz = tensors_of(one.jvp(Sources(z)));
      for (std::size_t k = 0; k < z.size(); ++k) {
        if (dy[k].defined() && dz[k].defined())
          CHECK(close(row(dy[k], j), dz[k], 1e-12));
        else if (dy[k].defined() || dz[k].defined())
          CHECK(sum(abs(dy[k].defined() ? dy[k] : dz[k])).item() == 0);   // undefined is zero
      }
    }
  });
}

// In a sum of tangent terms for inputs of several shapes, broadcasting against one term can hide a wrong
// shape of another. So each input gets a tangent alone.
TEST_CASE("stacked tangents of one input alone", "[op]") {
  for_every_sample([](const Op& op, const Sample& s) {
    const Tensors x = trainable(s.inputs);
    if (!differentiable(op, s) || x.size() < 2) return;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Tensor a = any_like(x[i], 1), b = any_like(x[i], 2);
      const ForwardAccumulator both(x[i], stack({a, b}), {.stacked = true});
      const ForwardAccumulator second(x[i], b);
      const Tensors y = run(op, s.inputs, s.attrs);
      for (const Tensor& t : trainable(y)) {
        const Tensor dy = both.jvp(t).tensor(), dt = second.jvp(t).tensor();
        if (dy.defined() && dt.defined())
          CHECK(close(row(dy, 1), dt, 1e-12));
        else if (dy.defined() || dt.defined())
          CHECK(sum(abs(dy.defined() ? dy : dt)).item() == 0);
      }
    }
  });
}

TEST_CASE("a rule computes the requested gradients, for any subset of inputs", "[op]") {
  for_every_sample([](const Op& op, const Sample& s) {
    if (!differentiable(op, s)) return;
    const Tensors dy = any_like(run(op, s.inputs, s.attrs));
    const Tensors all = vjp(op, s, s.inputs, dy);
    for (std::size_t i = 0; i < s.inputs.size(); ++i) {
      if (!all[i].defined()) continue;
      GradientTape tape;
      tape.watch(s.inputs[i]);
      const Tensors y = run(op, s.inputs, s.attrs);
      const Gradient g =
          tape.gradient(Targets(trainable(y)), s.inputs[i], {.output_gradients = trainable(dy)});
      REQUIRE(g.defined());
      CHECK(close(g.dense(), all[i], 1e-13));
    }
  });
}

// Inputs that are not real. Which ops take them is determined by trial.
TEST_CASE("ops accept complex numbers", "[op][complex]") {
  const auto off_the_line = [](const Tensors& x, double by) {
    Tensors z;
    for (const Tensor& t : x)
      z.push_back(t.dtype() == DType::f64
                      ? complex(t, by * samples::uniform(t.shape(), -1, 1, static_cast<int>(z.size()) + 11))
                      : t);
    return z;
  };
  const auto is_f64 = [](const Tensor& t) { return t.dtype() == DType::f64; };
  // Whether the op takes such inputs instead of those of the sample.
  const auto takes = [&](const Op& op, const Sample& s) {
    const Tensors z = off_the_line(s.inputs, 0.4);
    Tensors y;
    try {
      y = run(op, z, s.attrs);
    } catch (const DTypeError&) {
      return false;
    }
    if (!any_complex(y) || !entry_of(op).real_differs.empty()) return true;
    const Tensors on_the_line = run(op, off_the_line(s.inputs, 0), s.attrs),
                  of_reals = run(op, s.inputs, s.attrs);
    for (std::size_t k = 0; k < y.size(); ++k)
      CHECK(close(on_the_line[k], of_reals[k], 1e-13));
    if (has_derivative(op) && entry_of(op).no_differences.empty())
      CHECK(check_gradients(as_function(op, s.attrs), z));
    return true;
  };
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops) {
      INFO(family.name << ": " << op->name);
      bool taken = false;
      for (const Sample& s : samples_of(*op)) {
        if (std::none_of(s.inputs.begin(), s.inputs.end(), is_f64)) continue;
        taken = takes(*op, s);
        if (!taken) break;   // a later sample without elements would be accepted
      }
      CHECK(taken == entry_of(*op).takes_complex);
    }
}

}   // namespace op_table_test
