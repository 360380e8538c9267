// Elementwise ops in groups, with operands of all kinds, compared bit for bit with the kernels of the ops.
#include <random>

#include "op/rules.h"
#include "program_builder.h"
#include "tapedeck/simd/partials.h"

namespace arithmetic_test {

using namespace tapedeck;
using namespace tapedeck::compiled;
using kernels::Fused, kernels::map_kernel;

namespace {

template <class... F> kernels::VjpKernel vjp_of(F...) {
  return Fused<detail::Partial<F, static_cast<int>(sizeof...(F))>...>::vjp_kernel();
}
template <std::size_t operands, class F> kernels::MapKernel kernel_of(F) { return map_kernel<F, operands>; }

struct NamedKernel {
  std::string_view op;
  kernels::MapKernel kernel;
};
const NamedKernel kernels_of_ops[] = {{"add", kernel_of<2>([](auto a, auto b) { return a + b; })},
                                      {"sub", kernel_of<2>([](auto a, auto b) { return a - b; })},
                                      {"mul", kernel_of<2>([](auto a, auto b) { return a * b; })},
                                      {"div", kernel_of<2>([](auto a, auto b) { return a / b; })},
                                      {"maximum", kernel_of<2>([](auto a, auto b) { return maximum(a, b); })},
                                      {"minimum", kernel_of<2>([](auto a, auto b) { return minimum(a, b); })},
                                      {"square", kernel_of<1>([](auto x) { return x * x; })},
                                      {"neg", kernel_of<1>([](auto x) { return -x; })},
                                      {"sqrt", kernel_of<1>([](auto x) { return sqrt(x); })},
                                      {"exp", kernel_of<1>([](auto x) { return exp(x); })},
                                      {"log", kernel_of<1>([](auto x) { return log(x); })},
                                      {"tanh", kernel_of<1>([](auto x) { return tanh(x); })},
                                      {"sigmoid", kernel_of<1>([](auto x) { return sigmoid(x); })}};
const kernels::VjpKernel vjps_of_one[] = {
    vjp_of(partial::of_neg), vjp_of(partial::of_square), vjp_of(partial::of_sqrt),   vjp_of(partial::of_exp),
    vjp_of(partial::of_log), vjp_of(partial::of_tanh),   vjp_of(partial::of_sigmoid)};
const kernels::VjpKernel vjps_of_two[] = {
    vjp_of(partial::of_add_in_a, partial::of_add_in_b), vjp_of(partial::of_sub_in_a, partial::of_sub_in_b),
    vjp_of(partial::of_mul_in_a, partial::of_mul_in_b), vjp_of(partial::of_div_in_a, partial::of_div_in_b)};

Tensor numbers(DType dtype, const Shape& shape, std::uint64_t seed) {
  return random::uniform(shape, {seed}, 0.25, 2, dtype);
}

class Values {
 public:
  Values(DType dtype, std::int64_t n)
      : moving{b.argument(numbers(dtype, {n}, 1)), b.argument(numbers(dtype, {n}, 2))},
        single(b.argument(numbers(dtype, {}, 3))),
        uniform(b.constant(full({n}, 0.75, dtype))),
        ones(b.constant(full({n}, 1, dtype))),
        times(kernels_of_ops[2].kernel) {}

  /// A value that the node before has computed.
  Access computed() { return b.map(times, {moving[0], moving[1]}, "mul"); }
  void keep(const Access& v) {
    if (v.reads()) b.outputs[v.of] = true;
  }

  ProgramBuilder b;
  Access moving[2], single, uniform, ones;
  const kernels::MapKernel& times;
};

// Splits the sums of a program. Returns the number of elements of each that is left.
std::vector<std::int64_t> sums_left(ProgramBuilder& b) {
  b.split_sums();
  std::vector<std::int64_t> left;
  for (const Node& node : b.program.nodes())
    if (name_of(node) == "add_n") left.push_back(b.program[std::get<OpNode>(node).out[0]].spec.shape.size());
  return left;
}

}   // namespace

TEST_CASE("arithmetic of groups has the bits of the ops", "[program]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t n = GENERATE(1, 5, 16, 40, 64, 100, 128, 1000);
  for (const NamedKernel& k : kernels_of_ops) {
    CAPTURE(k.op, name_of(dtype), n);
    Values v(dtype, n);
    if (k.kernel.operands == 1) {
      v.keep(v.b.map(k.kernel, {v.moving[0]}, k.op));
      v.keep(v.b.map(k.kernel, {v.computed()}, k.op));
      v.keep(v.b.map(v.times, {v.b.map(k.kernel, {v.computed()}, k.op), v.moving[1]}, "mul"));
    } else {
      for (const Access& other : {v.moving[0], v.single, v.uniform}) {
        v.keep(v.b.map(k.kernel, {v.moving[1], other}, k.op));
        v.keep(v.b.map(k.kernel, {other, v.moving[1]}, k.op));
        v.keep(v.b.map(k.kernel, {v.computed(), other}, k.op));
        v.keep(v.b.map(k.kernel, {other, v.computed()}, k.op));
      }
      const Access both = v.computed();
      v.keep(v.b.map(k.kernel, {both, both}, k.op));
    }
    CHECK(v.b.check() == 1);
  }
}

TEST_CASE("products and the operations that follow them are rounded separately", "[program]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t n = GENERATE(1, 5, 16, 40, 64, 100, 1000);
  for (const NamedKernel& k : {kernels_of_ops[0], kernels_of_ops[1], kernels_of_ops[2]}) {
    CAPTURE(k.op, name_of(dtype), n);
    Values v(dtype, n);
    for (int operands = 0; operands < 6; ++operands)
      for (const Access& c : {v.moving[0], v.uniform, v.single})
        for (const bool is_first : {false, true}) {
          const Access first = v.computed(), second = v.moving[1];
          const std::vector<Access> pairs[] = {{first, second},    {second, first}, {first, v.uniform},
                                               {v.uniform, first}, {first, first},  {second, v.uniform}};
          const Access x = v.b.map(v.times, pairs[operands], "mul");
          v.keep(v.b.map(k.kernel, is_first ? std::vector{x, c} : std::vector{c, x}, k.op));
        }
    CHECK(v.b.check() == 1);
  }
}

TEST_CASE("gradients of groups have the bits of the kernels", "[program]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t n = GENERATE(5, 16, 100, 1000);
  const auto check = [&](std::span<const kernels::VjpKernel> all, auto operands) {
    for (const kernels::VjpKernel& k : all)
      for (const bool to : {false, true}) {
        CAPTURE(&k - all.data(), name_of(dtype), n, to);
        Values v(dtype, n);
        const auto pull = [&](const Access& y, const Access& dy) {
          const std::vector<Access> x = operands(v), before(x.size(), to ? v.moving[1] : Access());
          for (const Access& dx : v.b.vjp(k, x, y, dy, (1u << x.size()) - 1, before))
            v.keep(dx);
        };
        pull(v.moving[1], v.moving[0]);
        pull(v.moving[1], v.computed());
        pull(v.computed(), v.moving[0]);
        pull(v.moving[1], v.uniform);
        pull(v.moving[1], v.ones);
        CHECK(v.b.check() == 1);
      }
  };
  check(vjps_of_one, [](Values& v) { return std::vector{v.moving[0]}; });
  check(vjps_of_two, [](Values& v) { return std::vector{v.moving[0], v.moving[1]}; });
}

TEST_CASE("gradients of single operands are sums in groups", "[program]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t n = GENERATE(5, 100, 4096, 10'000);
  for (const kernels::VjpKernel& k : vjps_of_two) {
    CAPTURE(&k - vjps_of_two, name_of(dtype), n);
    Values v(dtype, n);
    for (const Access& dy : {v.moving[1], v.ones, v.uniform}) {
      for (const Access& dx : v.b.vjp(k, {v.moving[0], v.single}, v.moving[1], dy, 3))
        v.keep(dx);
      for (const Access& dx : v.b.vjp(k, {v.single, v.moving[0]}, v.moving[1], dy, 3))
        v.keep(dx);
    }
    const auto groups = v.b.check();
    CHECK((groups == 1 || n >= 4096));   // large ones without a common operand are apart
  }
}

TEST_CASE("sums of a group's results have the bits of the ops", "[program]") {
  const std::int64_t n = GENERATE(5, 64, 100, 4096, 33'000);
  for (const DType dtype : {DType::f32, DType::f64}) {
    CAPTURE(name_of(dtype), n);
    Values v(dtype, n);
    const Access y = v.computed();
    v.keep(v.b.full_sum(y, false));
    v.keep(v.b.map(v.times, {y, v.moving[0]}, "mul"));   // y is read again
    v.keep(v.b.full_sum(v.computed(), true));
    CHECK(v.b.check() == 1);
  }
}

TEST_CASE("a group may have many instructions", "[program]") {
  Values v(DType::f32, 100);
  Access y = v.computed();
  for (int i = 0; i < 600; ++i)
    y = v.b.map(v.times, {y, v.moving[i % 2]}, "mul");
  v.keep(y);
  CHECK(v.b.check() == 1);
}

TEST_CASE("sums of many terms become additions in the group that computes the terms", "[program]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t n = GENERATE(1, 5, 1000);
  CAPTURE(name_of(dtype), n);
  Values v(dtype, n);
  std::vector<Access> terms = {v.ones};
  for (int k = 0; k < 5; ++k)
    terms.push_back(v.b.map(v.times, {terms.back(), v.moving[k % 2]}, "mul"));
  std::swap(terms[1], terms[4]);   // the first that are added come late
  const Access sum = v.b.op("add_n", terms), twice = v.b.op("add_n", {terms[2], terms[2]});
  v.keep(v.b.map(v.times, {sum, twice}, "mul"));
  CHECK(sums_left(v.b).empty());
  CHECK(v.b.check() == 1);
}

TEST_CASE("a sum whose terms are sums that become additions becomes additions, too", "[program]") {
  Values v(DType::f32, 100);
  const auto computed = [&](int k) { return v.b.map(v.times, {v.ones, v.moving[k]}, "mul"); };
  const Access first = v.b.op("add_n", {computed(0), computed(1)});
  const Access second = v.b.op("add_n", {first, v.b.map(v.times, {first, v.moving[0]}, "mul"), first});
  v.keep(v.b.op("add_n", {v.moving[0], second}));
  CHECK(sums_left(v.b).empty());
  CHECK(v.b.check() == 1);
}

TEST_CASE("a sum of a sum of another shape becomes additions, of another size does not", "[program]") {
  Values v(DType::f32, 100);
  const auto computed = [&] { return v.b.map(v.times, {v.ones, v.moving[0]}, "mul"); };
  const Access first = v.b.op("add_n", {computed(), v.moving[1]});
  const auto square = [](const Access& a) { return ProgramBuilder::part(a, 0, {10, 10}); };
  v.keep(v.b.op("add_n", {square(first), square(computed())}));
  const auto half = [](const Access& a) { return ProgramBuilder::part(a, 0, {50}); };
  v.keep(v.b.op("add_n", {half(first), half(v.moving[0])}));
  CHECK(sums_left(v.b) == std::vector<std::int64_t>{50});
  v.b.check();
}

TEST_CASE("any number of sums may complete each other", "[program]") {
  Values v(DType::f32, 1);
  std::vector<Access> terms;
  for (int k = 0; k < 100'000; ++k)
    terms.push_back(v.b.map(v.times, {v.ones, v.moving[k % 2]}, "mul"));
  Access sum = terms.back();   // so that all sums wait for the last term
  for (std::size_t k = terms.size() - 1; k-- > 0;)
    sum = v.b.op("add_n", {sum, terms[k]});
  v.keep(sum);
  CHECK(sums_left(v.b).empty());
}

TEST_CASE("sums with a term computed outside the group are not split", "[program]") {
  Values v(DType::f32, 100);
  v.keep(v.b.map(v.times, {v.computed(), v.moving[1]}, "mul"));
  const Access outside = v.b.op("add_n", {v.moving[0], v.moving[1]});
  v.keep(v.b.op("add_n", {v.computed(), outside}));
  v.b.split_sums();
  CHECK(name_of(v.b.program[NodeId(v.b.program.size() - 1)]) == "add_n");
  CHECK(v.b.check() == 1);
}

TEST_CASE("sums with arguments among their terms become additions", "[program]") {
  Values v(DType::f32, 100);
  v.keep(v.b.op("add_n", {v.moving[0], v.computed(), v.moving[1]}));
  CHECK(sums_left(v.b).empty());
  CHECK(v.b.check() == 1);
}

}   // namespace arithmetic_test
