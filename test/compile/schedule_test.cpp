// The schedule of a program: which nodes run together, and in what order.
#include "compile/plan/plan.h"
#include "program_builder.h"

namespace schedule_test {

using namespace tapedeck;
using namespace tapedeck::compiled;

namespace {

constexpr auto kMul = [](auto a, auto b) { return a * b; };
const kernels::MapKernel mul_map = kernels::map_kernel<decltype(kMul), 2>;

using Nodes = std::vector<std::size_t>;
std::vector<Nodes> nodes_of(const Steps& steps) {
  std::vector<Nodes> nodes;
  for (const Step& s : steps)
    for (Nodes& of_step = nodes.emplace_back(); const NodeId n : s.nodes)
      of_step.push_back(n.index());
  return nodes;
}
Access argument(ProgramBuilder& b, const Shape& shape) { return b.argument(full(shape, 1.5)); }

}   // namespace

TEST_CASE("independent chains of one size are one group", "[program]") {
  ProgramBuilder b;
  const Access x = argument(b, {8}), y = argument(b, {4, 2});
  b.map(mul_map, {b.map(mul_map, {x, x}), x});
  b.map(mul_map, {b.map(mul_map, {y, y}), y});
  CHECK(nodes_of(b.steps()) == std::vector<Nodes>{{0, 1, 2, 3}});
}

TEST_CASE("large chains form one group if they share an operand or a result", "[program]") {
  constexpr std::int64_t n = 1 << 13;   // f32: as many bytes as the first cache holds
  ProgramBuilder b;
  const Access x = argument(b, {n}), y = argument(b, {n}), row = argument(b, {n / 2}),
               ones = b.constant(full({n}, 1.0));
  const Access first = b.map(mul_map, {x, ones});
  const Access second = b.map(mul_map, {y, ones});
  b.map(mul_map, {first, first});
  b.map(mul_map, {ProgramBuilder::part(y, 0, {2, n / 2}), b.constant(full({2, n / 2}, 3.0))});
  b.map(mul_map, {ProgramBuilder::part(second, 0, {2, n / 2}), row});
  CHECK(nodes_of(b.steps()) == std::vector<Nodes>{{0, 2}, {1, 3, 4}});
}

TEST_CASE("sizes and dtypes do not mix", "[program]") {
  ProgramBuilder b;
  const Access x = argument(b, {8}), y = argument(b, {9}), z = b.argument(full({8}, 1.5, DType::f64));
  for (const Access& v : {x, y, z, x})
    b.map(mul_map, {v, v});
  CHECK(nodes_of(b.steps()) == std::vector<Nodes>{{1}, {2}, {0, 3}});
}

TEST_CASE("a sum ends a group, whose other results the next one reads", "[program]") {
  ProgramBuilder b;
  const Access x = argument(b, {8}), y = b.map(mul_map, {x, x}), s = b.full_sum(y, false);
  b.map(mul_map, {y, s});
  CHECK(nodes_of(b.steps()) == std::vector<Nodes>{{0, 1}, {2}});
}

TEST_CASE("values that are read through memory are computed in an earlier step", "[program]") {
  ProgramBuilder b;
  const Access x = argument(b, {8}), y = b.map(mul_map, {x, x}), one = ProgramBuilder::part(y, 3, {});
  b.map(mul_map, {y, one});
  const Access same = ProgramBuilder::part(y, 0, {2, 4});
  b.map(mul_map, {same, same});
  CHECK(nodes_of(b.steps()) == std::vector<Nodes>{{0, 2}, {1}});
}

TEST_CASE("a value that only later nodes read is computed with them", "[program]") {
  ProgramBuilder b;
  const Access x = argument(b, {8}), early = b.map(mul_map, {x, x}), y = b.map(mul_map, {x, x}),
               s = b.full_sum(y, false);
  b.map(mul_map, {b.map(mul_map, {y, s}), early});
  CHECK(nodes_of(b.steps()) == std::vector<Nodes>{{1, 2}, {0, 3, 4}});
}

TEST_CASE("nodes that act on variables keep their order, and do not delay others", "[program]") {
  ProgramBuilder b;
  const Access x = argument(b, {8});
  const Access late = b.other({b.map(mul_map, {b.full_sum(x, false), x})}, full({8}, 2.0));
  const Access early = b.other({}, full({8}, 3.0));
  b.map(mul_map, {early, x});
  b.map(mul_map, {late, early});
  CHECK(nodes_of(b.steps()) == std::vector<Nodes>{{0}, {1}, {2}, {3}, {4, 5}});
}

TEST_CASE("only live nodes are scheduled", "[program]") {
  ProgramBuilder b;
  const Access x = argument(b, {8});
  b.map(mul_map, {x, x});
  b.map(mul_map, {x, x});
  IdVector<NodeId, bool> live(2);
  live[NodeId(1)] = true;
  CHECK(nodes_of(schedule(b.program, Passes(b.program), live)) == std::vector<Nodes>{{1}});
}

TEST_CASE("passes without elements are no groups", "[program]") {
  ProgramBuilder b;
  const Access none = argument(b, {0});
  b.map(mul_map, {none, none});
  CHECK_FALSE(b.steps()[StepId(0)].fused);
}

TEST_CASE("a part whose last vector ends past its memory is read through a view", "[program]") {
  ProgramBuilder b;
  const Access x = argument(b, {32}), within = ProgramBuilder::part(x, 16, {16}),
               beyond = ProgramBuilder::part(x, 17, {15});
  b.map(mul_map, {within, within});
  b.map(mul_map, {beyond, beyond});
  b.steps();
  const Passes& passes = *b.passes;
  CHECK(passes.reading_of(*passes[NodeId(0)], within) == Reading::elements);
  CHECK(passes.reading_of(*passes[NodeId(1)], beyond) == Reading::view);
}

TEST_CASE("freed memory is given to the value that fits best", "[program]") {
  constexpr std::int64_t large = 1024, small = 64;   // elements
  Plan plan{Program()};
  const auto value = [&](std::int64_t n, Life life) {
    plan.program.promise({DType::f32, {n}});
    plan.lives.push_back(life);
    plan.homes.push_back({.in = Home::In::arena});
  };
  plan.steps = Steps(4);
  value(large, {0, 0}), value(small, {0, 3}), value(small, {0, 0}), value(small, {0, 3});
  value(small, {1, 3}), value(large, {2, 3});
  arrange(plan);
  const auto offset = [&](std::size_t v) { return plan.homes[ValueId(v)].offset; };
  CHECK(offset(4) == offset(2));
  CHECK(offset(5) == offset(0));
  CHECK(plan.arena_bytes == padded_bytes({DType::f32, {large}}) + 3 * padded_bytes({DType::f32, {small}}));
}

}   // namespace schedule_test
