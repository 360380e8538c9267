// Every sample of every op as a compiled function: the values, gradients and tangents of replays have the
// bits of the function itself.
#include <catch2/catch.hpp>

#include "closeness.h"
#include "ops/op_samples.h"
#include "tapedeck/compile.h"
#include "tapedeck/forward_accumulator.h"

namespace op_samples_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

bool same(const Tensor& a, const Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || same_bits(a, b));
}

Tensors nudged(const Tensors& x, double by) {
  Tensors all;
  for (const Tensor& t : x)
    all.push_back(test::nudged(t, by));
  return all;
}
Tensors at_odd_offsets(const Tensors& x) {
  Tensors all;
  for (const Tensor& t : x)
    all.push_back(at_odd_offset(t));
  return all;
}

/// f recorded with x, and replayed with other values: "" where all bits are those of f, or what is wrong.
template <class F> std::string compare(const F& f, const Tensors& x) {
  const auto recorded = compile(f, {.name = "sample"});
  const std::vector<Tensors> calls = {x, nudged(x, 1e-3), at_odd_offsets(x), nudged(x, -2e-3), x};
  int number = 0;
  for (const Tensors& arguments : calls) {
    Tensors wanted;
    try {
      wanted = f(arguments);
    } catch (const Error&) {   // not every sample may be changed
      if (number == 0) throw;
      continue;
    }
    const Tensors y = recorded(arguments);
    if (y.size() != wanted.size()) return "another number of results";
    for (std::size_t k = 0; k < y.size(); ++k)
      if (!same(y[k], wanted[k])) return "result " + std::to_string(k) + " of call " + std::to_string(number);
    ++number;
  }
  const auto programs = recorded.programs();
  return programs.size() == 1 && programs[0].calls == number - 1 ? "" : "it was not replayed";
}

Tensors dense(const std::vector<Gradient>& g) {
  Tensors all;
  for (const Gradient& one : g)
    all.push_back(one.defined() ? one.dense() : Tensor());
  return all;
}

template <class Check> void for_every_sample(const Check& check) {
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops) {
      int number = 0;
      for (const Sample& s : samples_of(*op)) {
        INFO(family.name << ": " << op->name << ", sample " << number++);
        check(*op, s);
      }
    }
}

}   // namespace

TEST_CASE("ops replay with the same bits", "[recorded][op]") {
  for_every_sample([&](const Op& op, const Sample& s) {
    const auto f = [&](const Tensors& x) { return run(op, x, s.attrs); };
    if (op.name != "nonzero")   // which finds more where zeros are changed
      CHECK(compare(f, s.inputs) == "");
  });
}

TEST_CASE("gradients replay with the same bits", "[recorded][op]") {
  for_every_sample([&](const Op& op, const Sample& s) {
    if (!has_derivative(op) || trainable(s.inputs).empty()) return;
    const auto gradients = [&](const Tensors& x) {
      GradientTape tape;
      const Tensors sources = trainable(x);
      for (const Tensor& t : sources)
        tape.watch(t);
      const Tensors y = trainable(run(op, x, s.attrs));
      if (y.empty()) return Tensors();
      return dense(tape.gradient(Targets(y), Sources(sources)));
    };
    CHECK(compare(gradients, s.inputs) == "");
  });
}

TEST_CASE("tangents replay with the same bits", "[recorded][op]") {
  for_every_sample([&](const Op& op, const Sample& s) {
    if (!has_derivative(op) || trainable(s.inputs).empty()) return;
    const auto tangents = [&](const Tensors& x) {
      const Tensors primals = trainable(x);
      Tensors ones;
      for (const Tensor& t : primals)
        ones.push_back(ones_like(t));
      const ForwardAccumulator a(primals, ones);
      Tensors dy;
      for (const Tensor& y : trainable(run(op, x, s.attrs)))
        dy.push_back(a.jvp(y).tensor());
      return dy;
    };
    CHECK(compare(tangents, s.inputs) == "");
  });
}

TEST_CASE("a replay rejects different shapes and wrong indices", "[recorded][errors]") {
  const auto places = compile([](const Tensor& x) { return nonzero(x); });
  CHECK(places(tensor({0.0, 1.0, 2.0})).shape() == Shape{2, 1});
  CHECK(places(tensor({3.0, 0.0, 2.0})).to_vector() == std::vector<double>{0, 2});
  CHECK_THROWS_WITH(places(tensor({3.0, 4.0, 2.0})),
                    "nonzero: returns i64[3,1] in a replay, but returned i64[2,1] when it was recorded; keep "
                    "it out of compiled functions: x is f32[3]");
  const auto sums =
      compile([](const Tensor& x, const Tensor& ids) { return unsorted_segment_sum(x, ids, 3); });
  const Tensor x = tensor({1.0, 2.0});
  CHECK(sums(x, tensor({0, 2})).to_vector() == std::vector<double>{1, 0, 2});
  CHECK_THROWS_AS(sums(x, tensor({0, 3})), ArgumentError);
  CHECK(sums(x, tensor({1, 1})).to_vector() == std::vector<double>{0, 3, 0});
}

}   // namespace op_samples_test
