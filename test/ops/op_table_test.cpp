// Every op of every table, tested from its own entry; a new op is covered the moment it is in a table.
//   build/test/tapedeck_test '[op]' -c exp     runs one op
#include <catch2/catch.hpp>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "ops/op_samples.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradcheck.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

/// check(op, sample) for each sample of each op, an op a section.
template <class F> void for_every_sample(const F& check) {
  for (const OpFamily& family : op_families())
    for (const Op& op : family.ops)
      DYNAMIC_SECTION(op.name) {
        int number = 0;
        for (const Sample& sample : op.samples()) {
          INFO(family.name << ": " << op.name << ", sample " << number++);
          check(op, sample);
        }
      }
}

/// Whether the output has the broadcast shape of the inputs and the first element depends on the first
/// elements alone, found by trying.
bool elementwise(const Op& op, const Sample& s) {
  if (op.infer.many || s.attrs.view().type || s.inputs.empty()) return false;
  Tensors x, first;
  for (const Tensor& t : s.inputs) {
    if (t.size() == 0) return false;
    x.push_back(tiled(t, x.size() % 2 ? Shape{3} : Shape{2, 3}));
    first.push_back(tiled(t, {1}));
  }
  try {
    const Tensor y = run(op, x, s.attrs)[0];
    return y.shape() == Shape{2, 3} && close(tiled(y, {1}), run(op, first, s.attrs)[0], 0);
  } catch (const Error&) {
    return false;
  }
}
bool has_derivative(const Op& op) {
  return op.rule.kind != RuleKind::none && op.rule.kind != RuleKind::undefined;
}
Tensors trainable(const Tensors& x) {
  Tensors some;
  std::copy_if(x.begin(), x.end(), std::back_inserter(some),
               [](const Tensor& t) { return is_trainable(t.dtype()); });
  return some;
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

/// Inputs in which an op has no derivative though there is one, as bits: their gradients are none, and
/// differences hold them fast.
unsigned held_fast(const Op& op) {
  static const std::map<std::string_view, unsigned> inputs = {{"betainc", 0b011},
                                                              {"polygamma", 0b01},
                                                              {"projective_transform", 0b10},
                                                              {"projective_transform_adjoint", 0b10},
                                                              {"zeta", 0b01}};
  const auto found = inputs.find(op.name);
  return found == inputs.end() ? 0 : found->second;
}
/// The op as a function of its other inputs.
TensorFunction of_the_others(const Op& op, const OwnedAttrs& attrs, const Tensors& x) {
  return [f = as_function(op, attrs), x, held = held_fast(op)](const Tensors& others) {
    Tensors all;
    for (std::size_t i = 0, next = 0; i < x.size(); ++i)
      all.push_back(held >> i & 1 ? x[i] : others[next++]);
    return f(all);
  };
}
Tensors the_others(const Op& op, const Tensors& x) {
  Tensors some;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(held_fast(op) >> i & 1)) some.push_back(x[i]);
  return some;
}

/// Ops whose derivative is that of another function, since differences would see their steps; quantize_test
/// compares it.
bool is_rounded(const Op& op) {
  return op.name.starts_with("fake_quant") || op.name == "quantize_and_dequantize";
}

bool any_trainable(const Tensors& x) { return !trainable(x).empty(); }
/// Whether there is something to differentiate.
bool differentiable(const Op& op, const Sample& s) {
  return has_derivative(op) && any_trainable(s.inputs) && any_trainable(run(op, s.inputs, s.attrs));
}

/// Values without a pattern in [-1, 1], of x's spec; integers get zeros.
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

TEST_CASE("every entry is complete", "[op]") {
  std::set<std::string_view> names;
  for (const OpFamily& family : op_families())
    for (const Op& op : family.ops) {
      INFO(op.name);
      CHECK(names.insert(op.name).second);
      CHECK_FALSE(op.doc.empty());
      REQUIRE(op.samples);
      const std::vector<Sample> samples = op.samples();
      CHECK_FALSE(samples.empty());
      CHECK(std::any_of(samples.begin(), samples.end(), [](const Sample& s) { return !s.expected.empty(); }));
      for (const Sample& s : samples) {
        CHECK(s.expected.empty() == s.oracle.empty());
        if (op.rule.kind == RuleKind::partials) CHECK(elementwise(op, s));
        if (!s.inputs.empty()) CHECK_FALSE(op.args[0].empty());
        if (s.inputs.size() < kMaxInputs) CHECK(op.args[s.inputs.size()].empty());
      }
    }
}

TEST_CASE("every op gives the expected outputs, with the specs that it infers", "[op]") {
  for_every_sample([](const Op& op, const Sample& s) {
    const Tensors y = run(op, s.inputs, s.attrs);
    CHECK(specs_of(y) == inferred(op, s.inputs, s.attrs));
    if (s.expected.empty()) return;
    REQUIRE(s.expected.size() == y.size());
    for (std::size_t k = 0; k < y.size(); ++k) {
      CHECK(y[k].spec() == s.expected[k].spec());
      CHECK(close(y[k], s.expected[k], real_of(y[k].dtype()) == DType::f32 ? 1e-6 : 1e-13));
    }
  });
}

TEST_CASE("every derivative agrees with differences, to second order", "[op]") {
  for_every_sample([](const Op& op, const Sample& s) {
    if (!differentiable(op, s) || is_rounded(op)) return;
    const TensorFunction f = of_the_others(op, s.attrs, s.inputs);
    const Tensors x = the_others(op, s.inputs);
    CHECK(check_vjp(f, x));
    CHECK(check_jvp(f, x));
    CHECK(check_gradients(f, x));
    const Tensors dx = vjp(op, s, s.inputs, any_like(run(op, s.inputs, s.attrs)));
    for (std::size_t i = 0; i < dx.size(); ++i)
      if (held_fast(op) >> i & 1) CHECK_FALSE(dx[i].defined());
  });
}

TEST_CASE("an op without a derivative gives none, and one that must not be differentiated throws", "[op]") {
  for_every_sample([](const Op& op, const Sample& s) {
    if (has_derivative(op) || !any_trainable(s.inputs)) return;
    const Tensors y = run(op, s.inputs, s.attrs), dy = any_like(y);
    if (!any_trainable(y)) return;
    if (op.rule.kind == RuleKind::undefined)
      CHECK_THROWS_AS(vjp(op, s, s.inputs, dy), GradientError);
    else
      for (const Tensor& dx : vjp(op, s, s.inputs, dy))
        CHECK_FALSE(dx.defined());
  });
}

TEST_CASE("f32 agrees with f64", "[op]") {
  for_every_sample([](const Op& op, const Sample& s) {
    if (!any_trainable(s.inputs)) return;
    Sample single{.inputs = in_f32(s.inputs), .attrs = s.attrs};
    const Tensors y = run(op, s.inputs, s.attrs), z = run(op, single.inputs, s.attrs);
    for (std::size_t k = 0; k < y.size(); ++k)
      CHECK(close(z[k], y[k], is_trainable(y[k].dtype()) ? 2e-5 : 0));
    if (!differentiable(op, s)) return;
    const Tensors dy = any_like(y), dz = any_like(z);
    const Tensors dx = vjp(op, s, s.inputs, dy), dw = vjp(op, single, single.inputs, dz);
    for (std::size_t i = 0; i < dx.size(); ++i) {
      REQUIRE(dx[i].defined() == dw[i].defined());
      if (!dx[i].defined()) continue;
      CHECK(dw[i].spec() == single.inputs[i].spec());
      CHECK(close(dw[i], dx[i], 1e-4));
    }
  });
}

TEST_CASE("elementwise ops take every pair of shapes that broadcast", "[op]") {
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
          CHECK(check_vjp(of_the_others(op, s.attrs, x), the_others(op, x)));
          CHECK(check_jvp(of_the_others(op, s.attrs, x), the_others(op, x)));
        }
        if (s.inputs.size() == 1) break;   // b is rank 0 here: all is a
      }
  });
}

TEST_CASE("where the inputs lie in memory makes no difference", "[op]") {
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
    CHECK(close(op.execute({refs.data(), static_cast<int>(refs.size())}, s.attrs.view(), ~0u), y, 1e-15));
    const Tensors kept = held;
    refs.clear();
    for (const Tensor& t : held)
      refs.push_back(&t);
    CHECK(close(op.execute({refs.data(), static_cast<int>(refs.size())}, s.attrs.view(), ~0u), y, 1e-15));
    for (std::size_t i = 0; i < kept.size(); ++i)
      CHECK(close(kept[i], s.inputs[i], 0));
  });
}

// What must be NaN is found by trying: an element that changes when the values of an input change places
// depends on that input, so it must be NaN when all of that input is.
TEST_CASE("NaN in, NaN out", "[op]") {
  for_every_sample([](const Op& op, const Sample& s) {
    if (op.name == "check_numerics" || op.name == "categorical") return;   // they throw
    const Tensors y = run(op, s.inputs, s.attrs);
    for (std::size_t i = 0; i < s.inputs.size(); ++i) {
      if (!is_trainable(s.inputs[i].dtype()) || s.inputs[i].size() < 2) continue;
      INFO("input " << i);
      Tensors x = s.inputs;
      x[i] = full_like(s.inputs[i], std::nan(""));
      if (is_complex(x[i].dtype())) x[i] = complex(real(x[i]), real(x[i]));
      const Tensors with_nan = run(op, x, s.attrs);
      for (const std::int64_t by : {1, 2}) {
        x[i] = rotated(s.inputs[i], by);
        Tensors moved;
        try {
          moved = run(op, x, s.attrs);
        } catch (const ArgumentError&) {
          continue;   // a matrix that is singular, or not positive definite
        }
        for (std::size_t k = 0; k < y.size(); ++k) {
          if (!is_trainable(y[k].dtype())) continue;
          const Numbers a = numbers_of(y[k]), b = numbers_of(moved[k]), n = numbers_of(with_nan[k]);
          std::int64_t lost = 0;
          for (std::size_t e = 0; e < a.size(); ++e)
            lost += a[e] != b[e] && !is_nan(n[e]);
          CHECK(lost == 0);
        }
      }
    }
  });
}

TEST_CASE("K stacked cotangents give the K gradients", "[op]") {
  constexpr std::int64_t kCount = 3;
  for_every_sample([](const Op& op, const Sample& s) {
    if (!differentiable(op, s) || !op.rule.stacks) return;
    const Tensors y = run(op, s.inputs, s.attrs);
    const Held x_refs(s.inputs), y_refs(y);
    const Call call{.op = op, .raw_attrs = s.attrs.view(), .x = x_refs.refs(), .y = y_refs.refs()};
    const auto pull_back = [&](const Tensors& dy) {
      std::vector<Gradient> cotangents(dy.begin(), dy.end()), dx(s.inputs.size());
      op.rule.vjp(call, cotangents, dx);
      return dx;
    };
    std::vector<Tensors> single(kCount);
    Tensors stacked;
    for (std::size_t k = 0; k < y.size(); ++k) {
      Tensors rows;
      for (std::int64_t j = 0; j < kCount; ++j) {
        single[static_cast<std::size_t>(j)].push_back(any_like(y[k], static_cast<int>(j) + 5));
        rows.push_back(expand_dims(single[static_cast<std::size_t>(j)].back(), 0));
      }
      stacked.push_back(concat(rows, 0));
    }
    const std::vector<Gradient> all = pull_back(stacked);
    for (std::int64_t j = 0; j < kCount; ++j) {
      const std::vector<Gradient> one = pull_back(single[static_cast<std::size_t>(j)]);
      for (std::size_t i = 0; i < one.size(); ++i) {
        REQUIRE(one[i].defined() == all[i].defined());
        if (one[i].defined()) CHECK(close(row(all[i].dense(), j), one[i].dense(), 1e-12));
      }
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
        directions[j].push_back(any_like(x[i], static_cast<int>(i + 7 * j)));
      stacks.push_back(stack({directions[0][i], directions[1][i], directions[2][i]}));
    }
    ForwardAccumulator all(x, stacks, {.stacked = true});
    const Tensors y = run(op, s.inputs, s.attrs), dy = all.jvp(Sources(y));
    all.stop();
    for (std::int64_t j = 0; j < kCount; ++j) {
      const ForwardAccumulator one(x, directions[static_cast<std::size_t>(j)]);
      const Tensors z = run(op, s.inputs, s.attrs), dz = one.jvp(Sources(z));
      for (std::size_t k = 0; k < z.size(); ++k) {
        if (dy[k].defined() && dz[k].defined())
          CHECK(close(row(dy[k], j), dz[k], 1e-12));
        else if (dy[k].defined() || dz[k].defined())
          CHECK(sum(abs(dy[k].defined() ? dy[k] : dz[k])).item() == 0);   // undefined is zero
      }
    }
  });
}

// In a sum of terms for inputs of several shapes one may carry the others' along.
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
        const Tensor dy = both.jvp(t), dt = second.jvp(t);
        if (dy.defined() && dt.defined())
          CHECK(close(row(dy, 1), dt, 1e-12));
        else if (dy.defined() || dt.defined())
          CHECK(sum(abs(dy.defined() ? dy : dt)).item() == 0);
      }
    }
  });
}

TEST_CASE("a rule computes what is wanted, whichever inputs those are", "[op]") {
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
          tape.gradient(Targets(trainable(y)), s.inputs[i], {.output_gradients = trainable(dy)})[0];
      REQUIRE(g.defined());
      CHECK(close(g.dense(), all[i], 1e-13));
    }
  });
}

// Inputs off the real line. What takes them is found by trying, and held against a list, so that none is
// lost.
TEST_CASE("ops take complex numbers", "[op][complex]") {
  const auto off_the_line = [](const Tensors& x, double by) {
    Tensors z;
    for (const Tensor& t : x)
      z.push_back(t.dtype() == DType::f64
                      ? complex(t, by * samples::uniform(t.shape(), -1, 1, static_cast<int>(z.size()) + 11))
                      : t);
    return z;
  };
  std::set<std::string_view> taken;
  for (const OpFamily& family : op_families())
    for (const Op& op : family.ops) {
      int number = 0;
      for (const Sample& s : op.samples()) {
        INFO(family.name << ": " << op.name << ", sample " << number++);
        if (std::none_of(s.inputs.begin(), s.inputs.end(),
                         [](const Tensor& t) { return t.dtype() == DType::f64; }))
          continue;
        const Tensors z = off_the_line(s.inputs, 0.4);
        Tensors y;
        try {
          y = run(op, z, s.attrs);
        } catch (const DTypeError&) {
          break;
        }
        taken.insert(op.name);
        if (!any_complex(y) || op.name == "eig")
          continue;   // LAPACK orders values of real and complex matrices differently
        const Tensors on_the_line = run(op, off_the_line(s.inputs, 0), s.attrs),
                      of_reals = run(op, s.inputs, s.attrs);
        for (std::size_t k = 0; k < y.size(); ++k)
          CHECK(close(on_the_line[k], of_reals[k], 1e-13));
        if (has_derivative(op)) CHECK(check_gradients(as_function(op, s.attrs), z));
      }
    }
  const std::set<std::string_view> expected = {"acos",
                                               "acosh",
                                               "add",
                                               "add_along_axis",
                                               "add_n",
                                               "asin",
                                               "asinh",
                                               "astype",
                                               "atan",
                                               "atanh",
                                               "band_part",
                                               "batch_to_space_nd",
                                               "boolean_mask",
                                               "boolean_put",
                                               "broadcast_to",
                                               "cholesky",
                                               "concat",
                                               "conjugate_transpose",
                                               "cos",
                                               "cosh",
                                               "cumprod",
                                               "cumsum",
                                               "depth_to_space",
                                               "det",
                                               "diag",
                                               "diag_part",
                                               "div",
                                               "dynamic_partition",
                                               "dynamic_stitch",
                                               "eig",
                                               "eigh",
                                               "einsum",
                                               "ensure_shape",
                                               "equal",
                                               "exp",
                                               "expand_dims",
                                               "expm1",
                                               "fill",
                                               "gather",
                                               "gather_nd",
                                               "identity",
                                               "identity_n",
                                               "inv",
                                               "linear_recurrence",
                                               "log",
                                               "log1p",
                                               "lstsq",
                                               "lu",
                                               "matmul",
                                               "matrix_diag",
                                               "matrix_diag_part",
                                               "matrix_set_diag",
                                               "mean",
                                               "mul",
                                               "neg",
                                               "not_equal",
                                               "ones_like",
                                               "pad",
                                               "pinv",
                                               "pow",
                                               "prevent_gradient",
                                               "print",
                                               "prod",
                                               "prod_of_others",
                                               "qr",
                                               "reciprocal",
                                               "repeat",
                                               "reshape",
                                               "reverse",
                                               "reverse_sequence",
                                               "roll",
                                               "rows_of_groups",
                                               "rsqrt",
                                               "scatter_add",
                                               "scatter_nd",
                                               "segment_mean",
                                               "segment_sum",
                                               "sigmoid",
                                               "sin",
                                               "sinh",
                                               "slice",
                                               "slogdet",
                                               "solve",
                                               "space_to_batch_nd",
                                               "space_to_depth",
                                               "sparse_segment_mean",
                                               "sparse_segment_sqrt_n",
                                               "sparse_segment_sum",
                                               "split",
                                               "sqrt",
                                               "square",
                                               "squeeze",
                                               "stack",
                                               "stop_gradient",
                                               "strided_pad",
                                               "strided_slice",
                                               "strided_slice_add",
                                               "strided_slice_update",
                                               "sub",
                                               "sum",
                                               "svd",
                                               "take_along_axis",
                                               "tan",
                                               "tanh",
                                               "tensor_scatter_add",
                                               "tensor_scatter_sub",
                                               "tensor_scatter_update",
                                               "tile",
                                               "trace",
                                               "transpose",
                                               "triangular_solve",
                                               "unsorted_segment_sum",
                                               "unstack",
                                               "where",
                                               "zeros_like"};
  CHECK(taken == expected);
}
