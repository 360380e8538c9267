// Operators that update: rebinding of tensors, updates of variables, and brackets. Expected values are sums
// and products of small numbers, and the functions for which the operators stand.
#include <catch2/catch.hpp>

#include "core/bytes.h"
#include "message_of.h"
#include "tapedeck/debug.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/tapedeck.h"
#include "values.h"

namespace operators_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

template <class X, class Y>
concept assignable = requires {
  std::declval<X>() = std::declval<Y>();
};
template <class X>
concept updatable = requires {
  std::declval<X>() += 1;
};

// What would change a temporary alone, such as x[i] = y, does not compile.
static_assert(assignable<Tensor&, Tensor> && assignable<Tensor&, const Tensor&>);
static_assert(!assignable<Tensor, Tensor> && !assignable<Tensor, const Tensor&>);
static_assert(updatable<Tensor&> && !updatable<Tensor> && !updatable<const Tensor&>);
// A variable's value may change through a const handle; which cell a handle refers to may not.
static_assert(updatable<const Variable&> && !assignable<Variable&, Tensor> && !assignable<Variable&, double>);
static_assert(assignable<Variable&, Variable> && !assignable<const Variable&, Variable>);
static_assert(std::is_nothrow_move_assignable_v<Tensor> && std::is_nothrow_move_assignable_v<Variable>);
static_assert(sizeof(Tensor) == sizeof(void*) && sizeof(Operand) == 2 * sizeof(void*));
static_assert(std::is_convertible_v<std::size_t, Slice> && !std::is_convertible_v<double, Slice> &&
              !std::is_convertible_v<bool, Slice>);

constexpr std::int64_t kMany = 4096;   // elements that are not stored inline

Values values(const Tensor& x) { return x.to_vector(); }

// Makes the four updates by y, and tells which of them changed x's value to what.
template <class X> std::vector<Values> updates(const auto& fresh, const auto& y) {
  std::vector<Values> results;
  X a = fresh(), s = fresh(), m = fresh(), d = fresh();
  a += y, s -= y, m *= y, d /= y;
  for (const Tensor& x : {Tensor(a), Tensor(s), Tensor(m), Tensor(d)})
    results.push_back(values(x));
  return results;
}

}   // namespace

TEST_CASE("+= -= *= /= of tensors and variables", "[operators]") {
  const std::vector<Values> expected = {{10, 6}, {6, 2}, {16, 8}, {4, 2}};
  const auto fresh = [] { return tensor({8.0, 4.0}); };
  const auto cell = [&] { return Variable(fresh()); };
  CHECK(updates<Tensor>(fresh, 2) == expected);
  CHECK(updates<Tensor>(fresh, tensor({2.0, 2.0})) == expected);
  CHECK(updates<Tensor>(fresh, Variable(tensor({2.0, 2.0}))) == expected);
  CHECK(updates<Variable>(cell, 2) == expected);
  CHECK(updates<Variable>(cell, tensor(2.0)) == expected);
  CHECK(updates<Variable>(cell, Variable(tensor({2.0, 2.0}))) == expected);
}

TEST_CASE("x += y is x = x + y: other handles keep their value", "[operators]") {
  Tensor x = full({kMany}, 3);
  const Tensor other = x, part = slice(x, {0}, {kMany / 2});
  const std::uint64_t before = x.id();
  x += 1;
  CHECK(x.id() != before);
  CHECK(other.id() == before);
  CHECK(x.at({0}) == 4);
  CHECK(other.at({0}) == 3);
  CHECK(part.at({0}) == 3);
  Tensor& same = x += 1;
  CHECK(&same == &x);
}

TEST_CASE("x has the dtype and shape of the sum after +=", "[operators]") {
  Tensor x = tensor({1.0, 2.0});
  x += tensor({{1.0}, {2.0}});
  CHECK(x.spec() == Spec{DType::f32, {2, 2}});
  CHECK(values(x) == Values{2, 3, 3, 4});
  x += f64({0.5, 0.25});
  CHECK(x.dtype() == DType::f64);
  Tensor n = tensor({1, 2});
  n *= 2;
  CHECK(n.dtype() == DType::i32);
  n *= 0.5;
  CHECK(n.spec() == Spec{DType::f32, {2}});
  CHECK(values(n) == Values{1, 2});
}

TEST_CASE("an update reuses the memory of a tensor without other owners", "[operators]") {
  Tensor x = full({kMany}, 3);
  const std::byte* memory = x.raw();
  x += 1;
  x *= full({kMany}, 2);
  CHECK(x.raw() == memory);
  CHECK(x.at({kMany - 1}) == 8);
  SECTION("not where x is both operands") {
    Tensor* const same = &x;
    x += *same;
    x *= *same;
    CHECK(x.at({kMany - 1}) == 256);
    x -= *same;
    CHECK(x.at({0}) == 0);
  }
  SECTION("not where the operand is a part of x") {
    x += slice(x, {0}, {1});
    CHECK(values(x) == Values(kMany, 16));
  }
  SECTION("not while a tape records, which may fail afterwards") {
    const GradientTape tape;
    x += 1;
    CHECK(x.raw() != memory);
  }
}

TEST_CASE("a result reuses the memory of a temporary that no gradient reads", "[operators]") {
  const Tensor x = full({kMany}, 3), w = full({kMany}, 5);
  const auto memory_of_product = [&](const Tensor& factor) {
    Tensor sum = x + 1;
    const std::byte* memory = sum.raw();
    return std::pair(factor * std::move(sum), memory);
  };
  GradientTape tape;
  tape.watch(x);
  SECTION("the factor has no gradient") {
    const auto [y, memory] = memory_of_product(w);
    CHECK(y.raw() == memory);
    CHECK(values(tape.gradient(y, x).dense()) == Values(kMany, 5));
  }
  SECTION("the gradient of the factor reads it") {
    tape.watch(w);
    const auto [y, memory] = memory_of_product(w);
    CHECK(y.raw() != memory);
    CHECK(values(tape.gradient(y, w).dense()) == Values(kMany, 4));
  }
  SECTION("so does its tangent") {
    const ForwardAccumulator tangents(w, ones_like(w));
    const auto [y, memory] = memory_of_product(w);
    CHECK(y.raw() != memory);
    CHECK(values(tangents.jvp(y)) == Values(kMany, 4));
  }
}

TEST_CASE("an update that throws leaves x unchanged", "[operators][errors]") {
  Tensor x = full({kMany}, 3), n = arange(kMany), undefined;
  const std::uint64_t ids[] = {x.id(), n.id()};
  CHECK_THROWS_AS(x += zeros({kMany + 1}), ShapeError);
  CHECK_THROWS_AS(x *= undefined, ArgumentError);
  CHECK_THROWS_AS(undefined += x, ArgumentError);
  CHECK_THROWS_AS(n /= 2 * n, DTypeError);
  {
    const NumericsCheck check;   // complains after the kernel has run
    CHECK_THROWS_AS(x *= std::numeric_limits<float>::infinity() * 0, Error);
    CHECK_THROWS_AS(x /= 0, Error);
  }
  CHECK(std::pair(x.id(), n.id()) == std::pair(ids[0], ids[1]));
  CHECK(values(x) == Values(kMany, 3));
  CHECK(n.at({7}) == 7);
}

TEST_CASE("gradients flow through updates of tensors", "[operators][tape]") {
  const Tensor x = f64({1, 2}), factor = f64({3, 5});
  const auto f = [&](const Tensor& source) {
    Tensor y = source;
    y *= factor;   // 3 a, 5 b
    y += source;   // 4 a, 6 b
    y *= y;        // 16 a², 36 b²
    y -= 1;
    y /= source;   // 16 a - 1 / a, 36 b - 1 / b
    return y;
  };
  const Values slopes = {17, 36.25}, curvatures = {-2, -0.25};   // 16 + 1 / x², 36 + 1 / x²; -2 / x³
  SECTION("tape, and tapes in each other") {
    GradientTape outer;
    outer.watch(x);
    Tensor dx;
    {
      GradientTape inner;
      inner.watch(x);
      dx = inner.gradient(f(x), x).dense();
    }
    CHECK(values(dx) == slopes);
    CHECK(values(outer.gradient(dx, x).dense()) == curvatures);
  }
  SECTION("forward, and forward over reverse") {
    CHECK(values(jvp(f, x, ones_like(x))) == slopes);
    const auto total = [&](const Tensor& source) { return sum(f(source)); };
    CHECK(values(hessian_vector_product(total, x, ones_like(x))) == curvatures);
  }
  SECTION("a source that is updated is another tensor from then on") {
    Tensor a = f64({1, 2});
    const Tensor source = a;
    GradientTape tape({.persistent = true});
    tape.watch(a);
    a *= 3;
    const Tensor y = a * a;
    CHECK(values(tape.gradient(y, a).dense()) == Values{6, 12});
    CHECK(values(tape.gradient(y, source).dense()) == Values{18, 36});
  }
  SECTION("saved tensors of a tape are unchanged") {
    Tensor a = full({kMany}, 3, DType::f64);
    const Tensor source = a;
    GradientTape tape;
    tape.watch(source);
    Tensor square = source * source, y = square * square;
    {
      const StopRecording pause;
      const Tensor& itself = y;
      square += 1, a *= 0, y -= itself;
    }
    const Tensor z = sum(square * 0 + source * source);
    CHECK(tape.gradient(z, source).dense().at({0}) == 6);
  }
}

TEST_CASE("assign and update change the value, w = v makes a handle of the same cell",
          "[operators][variable]") {
  Variable w(tensor({1.0, 2.0})), v(tensor({5.0, 6.0}));
  const Variable handle = w;
  w.assign(tensor({3.0, 4.0}));
  CHECK(values(handle) == Values{3, 4});
  handle.update([](const Tensor& value) { return 2 * value; });
  CHECK(values(w) == Values{6, 8});
  handle.assign(v);
  CHECK(values(w) == Values{5, 6});
  CHECK_FALSE(w == v);
  w = v;
  CHECK(w == v);
  CHECK_FALSE(handle == v);

  // Containers move handles, and structs of variables are copied member by member.
  std::vector<Variable> list = {w, handle};
  list.erase(list.begin());
  CHECK(list[0] == handle);
  std::swap(w, list[0]);
  CHECK(w == handle);
  struct Layer {
    Variable weights, bias;
  };
  Layer a{w, v}, b{v, v};
  b = a;
  CHECK(b.weights == w);
}

TEST_CASE("update reads the variable, and its function is not recorded", "[operators][variable]") {
  const Variable w(tensor(3.0), {.name = "w"});
  GradientTape tape({.persistent = true});
  const std::size_t before = tape.size();
  w.update([](const Tensor& value) { return value * value; });
  CHECK(w.value().item() == 9);
  CHECK(tape.size() == before);
  CHECK(tape.gradient(w * w, w).dense().item() == 18);
}

TEST_CASE("an update of a variable that does not fit changes nothing", "[operators][variable][errors]") {
  const Variable w(full({kMany}, 3), {.name = "w"}), n(tensor({2, 4}));
  CHECK(message_of([&] {
          w += zeros({2, kMany});
        }) == R"(+=: variable "w" is f32[4096], the value is f32[2,4096])");
  CHECK(message_of([&] { w *= f64(2.0); }) ==
        R"(*=: variable "w" is f32[4096], the value is f64[4096]; use astype)");
  CHECK(message_of([&] { w.assign(zeros({2})); }) ==
        R"(assign: variable "w" is f32[4096], the value is f32[2])");
  CHECK(message_of([&] { w.update([](const Tensor& value) { return sum(value); }); }) ==
        R"(update: variable "w" is f32[4096], the value is f32[])");
  CHECK(message_of([&] { w.update({}); }) == R"(update: the function for variable "w" is empty)");
  CHECK_THROWS_AS(w.update([](const Tensor&) -> Tensor { throw ArgumentError("no"); }), ArgumentError);
  CHECK_THROWS_AS(w -= zeros({3}), ShapeError);
  CHECK_THROWS_AS(n /= 2, DTypeError);
  CHECK_THROWS_AS(n *= 0.5, DTypeError);
  CHECK_THROWS_AS(w.assign(Tensor()), ArgumentError);
  CHECK_THROWS_AS(w += Tensor(), ArgumentError);
  {
    const NumericsCheck check;   // complains after the kernel has run
    CHECK_THROWS_AS(w /= 0, Error);
    CHECK_THROWS_AS(w.assign_add(full({kMany}, std::numeric_limits<float>::infinity())), Error);
  }
  CHECK(values(w) == Values(kMany, 3));
  CHECK(values(n) == Values{2, 4});
}

TEST_CASE("updates of variables are in place and not differentiated", "[operators][variable][tape]") {
  const Variable w(full({kMany}, 3));
  const std::byte* memory = w.value().raw();
  w += 1;
  w *= full({kMany}, 2);
  CHECK(w.value().raw() == memory);
  const Tensor held = w.value();
  const Variable& itself = w;
  w -= itself;
  CHECK(held.at({0}) == 8);
  CHECK(values(w) == Values(kMany, 0));
  w += 3;

  GradientTape tape;
  const Tensor x = full({kMany}, 2);
  tape.watch(x);
  const Tensor y = w * x;
  w *= x;
  w += w;   // 12
  const Tensor z = sum(y + w * x);
  const auto [dw, dx] = tape.gradient(z, w, x);
  CHECK(dw.dense().at({0}) == 4);    // both reads count, the updates do not
  CHECK(dx.dense().at({0}) == 15);   // 3 + 12
}

TEST_CASE("brackets accept the arguments of strided_slice, gather and boolean_mask", "[operators][parts]") {
  const Tensor x = reshape(arange(24), {2, 3, 4});
  const Variable v(x, {.trainable = false});
  const std::size_t one = 1;
  const auto same = [](const Tensor& a, const Tensor& b) {
    CHECK(a.spec() == b.spec());
    CHECK(values(a) == values(b));
  };
  same(x[1], strided_slice(x, {1}));
  same(x[-2], strided_slice(x, {0}));
  same(x[one], x[1]);
  same(x[{1, 2}], strided_slice(x, {1, 2}));   // two indices, not a range
  same(x[{{1, 2}}], slice(x, {1, 0, 0}, {1, 3, 4}));
  same(x[Slice(1, 2)], x[{{1, 2}}]);
  same(x[{{}, {0, 3, 2}}], strided_slice(x, {{}, {0, 3, 2}}));
  same(x[{Slice::ellipsis, {{}, {}, -1}}], reverse(x, {2}));
  same(x[{Slice::ellipsis, -1}], x[{{}, {}, 3}]);
  same(x[{one, Slice::new_axis, {1, {}}}], reshape(slice(x, {1, 1, 0}, {1, 2, 4}), {1, 2, 4}));
  same(x[Slice::new_axis], expand_dims(x, 0));
  same(x[{}], x);
  same(x[Slice()], x);
  CHECK(x[{1, -1, one}].item() == 21);
  same(x[tensor({1, 0, 1})], gather(x, tensor({1, 0, 1})));
  same(x[tensor(std::int64_t{1})], x[1]);
  same(x[x > 20.5], tensor({21, 22, 23}, DType::i64));
  same(x[tensor({0, 1}, DType::boolean)], x[{{1, 2}}]);
  same(v[1], x[1]);
  same(v[{1, {1, {}}}], x[{1, {1, {}}}]);
  same(v[{{1, 2}}], x[{{1, 2}}]);
  same(v[tensor({1})], x[tensor({1})]);
  CHECK(x[1].raw() == x.raw() + 12 * sizeof(std::int64_t));   // without a copy
}

TEST_CASE("brackets are differentiated", "[operators][parts][tape]") {
  const Tensor x = matrix({{1, 2, 3}, {4, 5, 6}});
  const auto f = [](const Tensor& m) {
    return sum(m[0] * m[0]) + m[{1, 2}] * m[{0, 0}] + sum(m[{{}, {1, {}}}]) + sum(m[tensor({1, 1})]);
  };
  const Values expected = {8, 5, 7, 2, 3, 4};
  CHECK(values(grad(f, x).dense()) == expected);
  CHECK(jvp(f, x, ones_like(x)).item() == 29);
  CHECK(values(hessian_vector_product(f, x, ones_like(x))) == Values{3, 2, 2, 0, 0, 1});
  const Variable w(x);
  GradientTape tape;
  const Tensor y = sum(w[0] * w[0]) + w[{1, 2}] * w[{0, 0}] + sum(w[{{}, {1, {}}}]) + sum(w[tensor({1, 1})]);
  CHECK(values(tape.gradient(y, w).dense()) == expected);
}

TEST_CASE("brackets out of range name axis, index and shape", "[operators][parts][errors]") {
  const Tensor x = zeros({3, 4});
  CHECK(message_of([&] { (void)x[3]; }) == "operator[]: index 3 is out of range for axis 0 of x, f32[3,4]");
  CHECK(message_of([&] {
          (void)x[{0, -5}];
        }) == "operator[]: index -5 is out of range for axis 1 of x, f32[3,4]");
  CHECK_THROWS_AS(x[-4], ShapeError);
  CHECK(message_of([&] { (void)x[{0, 0, 0}]; }) == "operator[]: 3 slices for x of rank 2");
  CHECK_THROWS_AS((x[{Slice::ellipsis, Slice::ellipsis}]), ArgumentError);
  CHECK_THROWS_AS((x[{{{}, {}, 0}}]), ArgumentError);
  CHECK_THROWS_AS(x[tensor({3})], ShapeError);
  CHECK_THROWS_AS(x[tensor({0.5})], DTypeError);
  CHECK_THROWS_AS(x[Tensor()], ArgumentError);
  CHECK_THROWS_AS(Tensor()[0], ArgumentError);
  CHECK(values(x[{{2, 9}}]) == Values(4, 0));   // ranges are clamped
}

}   // namespace operators_test
