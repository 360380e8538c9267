// f16 and bf16 through every op. Expected values are computed in f32 from the same numbers, and rounded once.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>

#include "core/bytes.h"
#include "message_of.h"
#include "ops/op_samples.h"
#include "ops/sample_values.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/memory.h"
#include "tapedeck/ops.h"
#include "tensors_of.h"

namespace ops_half_test {

using namespace tapedeck;
using tapedeck::bfloat16;   // OpenBLAS declares one, too
using namespace tapedeck::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

Tensors as(const Tensors& x, DType from, DType to) {
  Tensors y;
  for (const Tensor& t : x)
    y.push_back(t.dtype() == from ? astype(t, to) : t);
  return y;
}
Tensors trainable(const Tensors& x) {
  Tensors some;
  for (const Tensor& t : x)
    if (is_trainable(t.dtype())) some.push_back(t);
  return some;
}
Tensors any_like(const Tensors& x) {
  Tensors all;
  for (const Tensor& t : x)
    all.push_back(is_complex(t.dtype()) ? astype(samples::spread(t.shape(), 3), t.dtype())
                                        : astype(samples::uniform(t.shape(), -1, 1, 3), t.dtype()));
  return all;
}

/// Whether a is b, in each bit or as NaN.
bool same(const Tensor& a, const Tensor& b) {
  if (a.spec() != b.spec()) return false;
  if (a.nbytes() == 0 || std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.nbytes())) == 0)
    return true;
  if (!is_trainable(a.dtype())) return false;
  const auto u = a.to_vector<std::complex<double>>(), v = b.to_vector<std::complex<double>>();
  for (std::size_t i = 0; i < u.size(); ++i)
    if (u[i] != v[i] && !(std::isnan(std::abs(u[i])) && std::isnan(std::abs(v[i])))) return false;
  return true;
}
/// Whether a is b up to some steps of the half type at b's largest number.
bool near(const Tensor& a, const Tensor& b, double epsilon) {
  if (a.spec() != b.spec()) return false;
  const auto u = a.to_vector<std::complex<double>>(), v = b.to_vector<std::complex<double>>();
  double most = 0;
  for (const auto& z : v)
    if (std::isfinite(std::abs(z))) most = std::max(most, std::abs(z));
  for (std::size_t i = 0; i < u.size(); ++i)
    if (std::abs(u[i] - v[i]) > 4 * epsilon * most) return false;
  return true;
}

Tensors gradients(const Op& op, const Sample& s, const Tensors& x, const Tensors& dy) {
  GradientTape tape;
  const Tensors sources = trainable(x);
  for (const Tensor& t : sources)
    tape.watch(t);
  Tensors dx;
  for (const Gradient& g :
       tape.gradient(Targets(trainable(run(op, x, s.attrs))), Sources(sources), {.output_gradients = dy}))
    dx.push_back(g.defined() ? g.dense() : Tensor());
  return dx;
}
Tensors tangents(const Op& op, const Sample& s, const Tensors& x, const Tensors& dx) {
  const ForwardAccumulator forward(Sources(trainable(x)), dx);
  return tensors_of(forward.jvp(Sources(trainable(run(op, x, s.attrs)))));
}

/// A call with these inputs and outputs.
struct CallOf {
  std::vector<const Tensor*> x, y;
  Call call;
  CallOf(const Op& op, const Sample& s, const Tensors& inputs, const Tensors& outputs)
      : x(pointers(inputs)),
        y(pointers(outputs)),
        call{.op = op, .raw_attrs = s.attrs.view(), .x = refs(x), .y = refs(y)} {}

  static std::vector<const Tensor*> pointers(const Tensors& all) {
    std::vector<const Tensor*> p;
    for (const Tensor& t : all)
      p.push_back(&t);
    return p;
  }
  static Refs refs(const std::vector<const Tensor*>& p) { return {p.data(), static_cast<int>(p.size())}; }
};
/// What the rule itself gives in f32 for these outputs, which were rounded; in the order of trainable inputs.
/// any_slices: whether it gives slices, whose rows are rounded before they are added up.
Tensors by_rule(const Op& op, const Sample& s, const Tensors& x, const Tensors& y, const Tensors& dy,
                bool& any_slices) {
  std::vector<Gradient> dys(y.size()), dxs(x.size());
  for (std::size_t k = 0, next = 0; k < y.size(); ++k)
    if (is_trainable(y[k].dtype())) dys[k] = dy[next++];
  op.rule.vjp(CallOf(op, s, x, y).call, dys, dxs);
  any_slices = std::any_of(dxs.begin(), dxs.end(), [](const Gradient& g) { return g.slices(); });
  Tensors dx;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (is_trainable(x[i].dtype())) dx.push_back(dxs[i].defined() ? dxs[i].dense() : Tensor());
  return dx;
}

/// One op with one sample in one half type.
struct HalfCase {
  const Op& op;
  const Sample& sample;
  DType half;

  /// Whether the gradient is rounded once: rules of ops that move elements are made of ops of halves.
  bool is_exact() const { return op.forward.dtypes != KernelDtypes::all; }
  void compare(const Tensors& a, const Tensors& b, bool exact) const {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      REQUIRE(a[i].defined() == b[i].defined());
      if (!a[i].defined()) continue;
      const Tensor expected = a[i].dtype() == half ? astype(b[i], half) : b[i];
      INFO(i << ": " << to_string(a[i]) << " is not " << to_string(expected));
      CHECK((exact ? same(a[i], expected) : near(a[i], expected, half == DType::f16 ? 0x1p-10 : 0x1p-7)));
    }
  }
  /// False for an op that refuses the type.
  bool check() const {
    const Tensors x = as(sample.inputs, DType::f64, half), f = as(x, half, DType::f32);
    Tensors y;
    try {
      y = run(op, x, sample.attrs);
    } catch (const DTypeError&) {
      return false;
    }
    const Tensors z = run(op, f, sample.attrs);
    compare(y, z, true);
    const bool differentiable = op.rule.kind != RuleKind::none && op.rule.kind != RuleKind::undefined &&
                                !trainable(x).empty() && !trainable(y).empty();
    if (!differentiable) return true;
    const Tensors dy = any_like(trainable(y)), dx = any_like(trainable(x)), kept = as(y, half, DType::f32);
    bool any_slices = false;
    const Tensors expected = by_rule(op, sample, f, kept, as(dy, half, DType::f32), any_slices);
    compare(gradients(op, sample, x, dy), expected, is_exact() && !any_slices);
    if (!op.rule.reads_y)
      compare(tangents(op, sample, x, dx), tangents(op, sample, f, as(dx, half, DType::f32)), false);
    return true;
  }
};

}   // namespace

TEST_CASE("every op of f32 accepts f16 and bf16, and rounds once", "[op]") {
  std::string refused;
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      if (op->name != "nextafter") DYNAMIC_SECTION(op->name) {   // whose result is a matter of the type
          int number = 0;
          for (const Sample& s : complete_samples_of(*op)) {
            const bool real = std::any_of(s.inputs.begin(), s.inputs.end(),
                                          [](const Tensor& t) { return t.dtype() == DType::f64; });
            for (const DType half : {DType::f16, DType::bf16}) {
              if (!real) continue;
              INFO(family.name << ": " << op->name << ", sample " << number << ", " << name_of(half));
              CHECK(HalfCase{*op, s, half}.check());
            }
            ++number;
          }
        }
}

TEST_CASE("elementwise passes of halves agree with f32, at all lengths and positions", "[half]") {
  for (const DType half : {DType::f16, DType::bf16})
    for (const std::int64_t n : {1, 31, 32, 33, 511, 512, 513, 1500, 20000, 300000})
      for (const Shape& shape : {Shape{n}, Shape{3, n / 3 + 1}}) {
        INFO(name_of(half) << to_string(shape));
        const Tensor a = astype(random::normal(shape, {1}), half),
                     b = astype(random::normal(shape, {2}), half),
                     row = astype(random::normal({shape[shape.ndim() - 1]}, {3}), half),
                     dy = astype(random::normal(shape, {4}), half);
        const auto in = [](const Tensor& t) { return astype(t, DType::f32); };
        CHECK(same(tanh(a), astype(tanh(in(a)), half)));
        CHECK(same(a * row, astype(in(a)*in(row), half)));
        CHECK(same(a + b, astype(in(a) + in(b), half)));
        CHECK(same(a - row, astype(in(a)-in(row), half)));
        CHECK(same(square(-a), astype(square(-in(a)), half)));
        CHECK(same(a / b, astype(in(a) / in(b), half)));
        CHECK(same(maximum(relu(a), row), astype(maximum(relu(in(a)), in(row)), half)));
        // Products among which are subnormal numbers.
        const Tensor tiny = full({}, half == DType::f16 ? 1e-6 : 1e-39, half);
        CHECK(same(a * tiny, astype(in(a)*in(tiny), half)));
        const auto of = [&](const Tensor& p, const Tensor& q, const Tensor& d) {
          GradientTape tape;
          tape.watch(p);
          if (q.id() != p.id()) tape.watch(q);
          const Tensor y = p * q;
          const auto g = tape.gradient(y, Sources{p, q}, {.output_gradients = {d}});
          return Tensors{g[0].dense(), g[1].dense()};
        };
        for (const Tensor& q : {b, row, a}) {
          const Tensor wide = in(a);
          const Tensors g = of(a, q, dy), f = of(wide, q.id() == a.id() ? wide : in(q), in(dy));
          CHECK(same(g[0], astype(f[0], half)));
          CHECK(same(g[1], astype(f[1], half)));
        }
      }
}

TEST_CASE("functions made of ops compute halves in f32, and round once", "[half]") {
  using F = std::function<Tensor(const Tensor&)>;
  const std::pair<const char*, F> functions[] = {
      {"variance", [](const Tensor& t) { return variance(t); }},
      {"stddev", [](const Tensor& t) { return stddev(t, 1, {.keepdims = true, .correction = 1}); }},
      {"norm 1", [](const Tensor& t) { return norm(t, 1, 0); }},
      {"norm 3", [](const Tensor& t) { return norm(t, 3, 1); }},
      {"norm 1/2", [](const Tensor& t) { return norm(t, 0.5, 1); }},
      {"norm inf", [](const Tensor& t) { return norm(t, kInf); }},
      {"median", [](const Tensor& t) { return median(t, 1); }},
  };
  for (const DType half : {DType::f16, DType::bf16})
    for (const double scale :
         {1e-3, 1.0, 200.0, 2e4}) {   // the squares of 300, and their sums, are above f16
      const Tensor x = astype(random::normal({6, 64}, {.seed = 1}) * scale, half),
                   wide = astype(x, DType::f32);
      for (const auto& [name, f] : functions) {
        INFO(name << " of " << name_of(half) << ", " << scale);
        CHECK(same(f(x), astype(f(wide), half)));
        CHECK(same(grad(f, x).dense(), astype(grad(f, wide).dense(), half)));
      }
    }
  CHECK(stddev(astype(tensor({0.0, 510.0}), DType::f16)).item() == 255);
  CHECK(median(astype(tensor({60000.0, 60032.0}), DType::f16)).item() == 60032);   // 60016, to even
}

// Of all numbers of a half type, in order.
TEST_CASE("nextafter of halves returns the next half", "[half]") {
  const auto check = [](auto type, DType half) {
    using T = decltype(type);
    std::vector<double> all;
    for (std::uint32_t bits = 0; bits < 0x8000; ++bits) {
      T v;
      v.bits = static_cast<std::uint16_t>(bits);
      if (const double x = static_cast<float>(v); x == x) all.push_back(x);
    }
    const std::size_t n = all.size();   // 0, and upwards to infinity
    for (std::size_t i = 1; i < n; ++i)
      all.insert(all.begin(), -all[2 * i - 1]);
    const auto part = [&](std::size_t first, std::size_t count) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      return astype(tensor(std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count))), half);
    };
    const Tensor lower = part(0, all.size() - 1), upper = part(1, all.size() - 1);
    CHECK(same(nextafter(lower, kInf), upper));
    CHECK(same(nextafter(upper, tensor(-kInf, half)), lower));
    CHECK(same(nextafter(lower, upper), upper));
    CHECK(same(nextafter(lower, lower), lower));
    CHECK(std::isnan(nextafter(tensor(kNaN, half), 1).item()));
    CHECK(std::isnan(nextafter(tensor(1.0, half), kNaN).item()));
    CHECK(std::signbit(nextafter(tensor(0.0, half), -0.0).item()));   // as std::nextafter
    CHECK(nextafter(full({2, 1}, 1, half), full({2}, 3, half)).shape() == Shape{2, 2});
  };
  check(float16(), DType::f16);
  check(bfloat16(), DType::bf16);
}

TEST_CASE("sums of halves are of f32, rounded once", "[half]") {
  const Tensor x = full({100'000}, 1, DType::f16), y = full({4096, 4}, 0.1, DType::bf16);
  CHECK(sum(slice(x, {0}, {60'000})).item() == 60'000);
  CHECK(mean(x).item() == 1);
  CHECK(sum(y, 0).to_vector()[3] == float(bfloat16(4096 * float(bfloat16(0.1f)))));
  GradientTape tape;
  const Tensor bias = zeros({4}, DType::bf16);
  tape.watch(bias);
  CHECK(tape.gradient(sum(y + bias), bias).dense().to_vector()[0] == 4096);
}

TEST_CASE("reductions of halves have the bits of those in f32, and no copy in f32", "[half]") {
  const std::pair<Shape, std::vector<int>> cases[] = {
      {{0, 3}, {0}},         {{1}, {0}},          {{5, 1}, {1}},     {{37}, {0}},
      {{4'097}, {0}},        {{100'003}, {0}},    {{7, 4'500}, {1}}, {{1'025, 3}, {0}},
      {{301, 70}, {0}},      {{150, 2'600}, {0}}, {{6, 33, 5}, {1}}, {{9, 20, 31}, {0, 2}},
      {{4, 3, 5, 6}, {1, 3}}};
  for (const DType half : {DType::f16, DType::bf16})
    for (const auto& [shape, axes] : cases) {
      const Tensor x = astype(random::normal(shape, {3}), half), single = astype(x, DType::f32);
      CHECK(same(sum(x, axes), astype(sum(single, axes), half)));
      CHECK(same(mean(x, axes), astype(mean(single, axes), half)));
      if (x.size() == 0) continue;
      CHECK(same(max(x, axes), astype(max(single, axes), half)));
      CHECK(same(min(x, axes), astype(min(single, axes), half)));
    }
  const Tensor x = ones({1 << 20}, DType::bf16);
  release_buffers();
  CHECK(max(x).item() == 1);
  CHECK(sum(x).item() == 1 << 20);
  CHECK(cached_bytes() < 1 << 20);   // where a copy in f32 would be now, with 4 MB
}

TEST_CASE("derivatives of halves of second order", "[half]") {
  const Tensor x = tensor({0.5, 1.5}, DType::f16);
  GradientTape outer;
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  const Tensor g = inner.gradient(sum(x * x * x + exp(x)), x).dense();
  const Tensor h = outer.gradient(sum(g), x).dense();
  CHECK(h.dtype() == DType::f16);
  for (int i = 0; i < 2; ++i) {
    const double v = x.to_vector()[static_cast<std::size_t>(i)];
    CHECK(h.to_vector()[static_cast<std::size_t>(i)] == Approx(6 * v + std::exp(v)).epsilon(4e-3));
  }
}

TEST_CASE("derivatives of halves of second order agree with f32 up to rounding", "[half]") {
  using Function = Tensor (*)(const Tensor& x, const Tensor& w);
  constexpr std::pair<const char*, Function> functions[] = {
      {"elementwise", [](const Tensor& x, const Tensor& w) { return tanh(x) * w + x * x; }},
      {"matmul", [](const Tensor& x, const Tensor& w) { return square(matmul(x, w)); }},
      {"sum", [](const Tensor& x, const Tensor& w) { return square(sum(x * x, 1)) + sum(w, 0); }}};
  // The gradient by x of the dot product of a gradient and v.
  const auto product = [](Function f, const Tensor& x, const Tensor& w, const Tensor& v) {
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    const Tensor g = inner.gradient(sum(f(x, w)), x).dense();
    return outer.gradient(sum(g * v), x).dense();
  };
  for (const DType half : {DType::f16, DType::bf16})
    for (const auto& [name, f] : functions) {
      INFO(name << ", " << name_of(half));
      const Tensor x = astype(random::uniform({6, 6}, {1}, -1, 1), half),
                   w = astype(random::uniform({6, 6}, {2}, -1, 1), half),
                   v = astype(random::uniform({6, 6}, {3}, -1, 1), half);
      const Tensor h = product(f, x, w, v),
                   single = product(f, astype(x, DType::f32), astype(w, DType::f32), astype(v, DType::f32));
      CHECK(near(h, astype(single, half), half == DType::f16 ? 0x1p-11 : 0x1p-8));
      CHECK(max(abs(single)).item() > 0.1);
    }
}

TEST_CASE("indices may be of any integer type", "[half]") {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}});
  const auto list = [](DType t) { return tensor({2, 0}, t); };
  for (const DType t : {DType::i8, DType::u8, DType::i16, DType::u16, DType::u32, DType::u64}) {
    INFO(name_of(t));
    const Tensor at = list(t), wide = list(DType::i64);
    CHECK(same(gather(x, at), gather(x, wide)));
    CHECK(same(one_hot(at, 3), one_hot(wide, 3)));
    CHECK(same(segment_sum(x, tensor({0, 0, 1}, t)), segment_sum(x, tensor({0, 0, 1}, DType::i64))));
    CHECK(same(unsorted_segment_sum(x, tensor({1, 0, 1}, t), 2),
               unsorted_segment_sum(x, tensor({1, 0, 1}, DType::i64), 2)));
    CHECK(same(sparse_softmax_cross_entropy(at, slice(transpose(x), {0, 0}, {2, 3})),
               sparse_softmax_cross_entropy(wide, slice(transpose(x), {0, 0}, {2, 3}))));
    GradientTape tape;
    tape.watch(x);
    CHECK(same(tape.gradient(gather(x, at), x).dense(), tensor({{1.0, 1.0}, {0.0, 0.0}, {1.0, 1.0}})));
  }
  CHECK_THROWS_AS(gather(x, tensor(std::vector{~std::uint64_t{0}})), Error);
}

// docs/reference/accuracy.md names these numbers.
TEST_CASE("derivatives of halves that read the output use the rounded one", "[half]") {
  const auto slope = [](double x, DType dtype) {
    return grad([](const Tensor& t) { return tanh(t); }, full({}, x, dtype)).dense().item();
  };
  CHECK(slope(4.515625, DType::f16) == 0);
  CHECK(slope(4.5, DType::f16) > 0);
  CHECK(slope(3.484375, DType::bf16) == 0);
  CHECK(slope(3.453125, DType::bf16) > 0);
  const auto in_f32 = [](const Tensor& t) { return tanh(astype(t, DType::f32)); };
  CHECK(grad(in_f32, full({}, 4.625, DType::f16)).dense().item() > 0);
}

TEST_CASE("random numbers cannot be drawn as halves", "[half]") {
  CHECK(message_of<DTypeError>([] { random::normal({3}, {1}, DType::f16); }) ==
        "normal: returns f32 or f64, not f16");
}

TEST_CASE("vectors of f32 are rounded to bf16 by nearest even, subnormal numbers and NaN included",
          "[half]") {
  for (const std::uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
    std::vector<float> x;
    for (std::uint32_t high = 0; high < 1 << 16; ++high)
      x.push_back(std::bit_cast<float>(high << 16 | low));
    const Tensor y = astype(tensor(x), DType::bf16);
    const auto rounded = y.data<bfloat16>();
    std::int64_t wrong = 0;
    for (std::uint32_t high = 0; high < 1 << 16; ++high) {
      const bool is_up = low > 0x8000 || (low == 0x8000 && high % 2 == 1);
      const std::uint32_t expected = std::isnan(x[high]) ? high | 0x40 : high + is_up;
      wrong += std::bit_cast<std::uint16_t>(rounded[high]) != expected;
    }
    CHECK(wrong == 0);
  }
}

}   // namespace ops_half_test
