// Faults in programs, in the code of groups and in plans: the verifiers find each of them, or it has no
// effect.
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "compile/fuse/lower.h"
#include "compile/plan/plan.h"
#include "compile/plan/verify.h"
#include "compile/replay/replay.h"
#include "compile/replay/small_node.h"
#include "random_programs.h"
#include "tape/variable.h"
#include "tapedeck/variable.h"

namespace verify_test {

using namespace tapedeck;
using namespace tapedeck::compiled;

namespace {

struct Counts {
  int found = 0, harmless = 0, groups = 0, machine = 0;
};

/// Sets the sign and the payload of NaN, which machine code may change.
template <class T> void unify_nan(std::byte* x, std::int64_t n) {
  for (auto* const p = reinterpret_cast<T*>(x); n > 0; --n)
    if (std::isnan(p[n - 1])) p[n - 1] = std::numeric_limits<T>::quiet_NaN();
}

/// The bytes of the values of a step that must be in memory, by code that the verifier has passed.
using Results = std::map<ValueId, std::vector<std::byte>>;
Results results_of(const ProgramBuilder& b, const Step& step, const IdVector<ValueId, bool>& kept,
                   const Group& group) {
  std::vector<Arena> own;
  Memory memory(b.values.size());
  for (const ValueId v : ids_of(b.program.values())) {
    const Tensor& x = b.values[v.index()];
    own.emplace_back(x.nbytes() + 64);
    memory.bind(v, own.back().at(0));
    std::memcpy(memory.write[v].get(), x.raw(), static_cast<std::size_t>(x.nbytes()));
  }
  std::vector<ValueId> written;
  for (const NodeId n : step.nodes)
    for_each_result(b.program[n], [&](ValueId v) {
      if (kept[v]) written.push_back(v);
    });
  for (const ValueId v : written)
    std::memset(memory.write[v].get(), 0xfd, static_cast<std::size_t>(b.values[v.index()].nbytes()));
  const Arena scratch(group.scratch_bytes() + 64);
  const auto past = reinterpret_cast<std::uintptr_t>(scratch.at(0).get()) & 63;
  run_group(group, memory, scratch.at(static_cast<std::int64_t>(-past & 63)));
  Results all;
  for (const ValueId v : written) {
    const std::byte* const p = memory.read[v].get();
    all[v].assign(p, p + b.values[v.index()].nbytes());
  }
  return all;
}
Results with_one_nan(const ProgramBuilder& b, Results all) {
  for (auto& [v, bytes] : all) {
    const Tensor& x = b.values[v.index()];
    if (x.dtype() == DType::f32) unify_nan<float>(bytes.data(), x.size());
    if (x.dtype() == DType::f64) unify_nan<double>(bytes.data(), x.size());
  }
  return all;
}

/// Calls f(code, what) with the code after each of many single faults in what the code reads of itself.
template <class F> void for_each_fault(const GroupCode& code, const F& f) {
  std::string_view what;
  const auto changed = [&](const auto& change) {
    GroupCode other = code;
    change(other);
    f(other, what);
  };
  for (std::size_t i = 0; i < code.instructions.size(); ++i) {
    what = "an instruction";
    changed(
        [&](GroupCode& c) { c.instructions.erase(c.instructions.begin() + static_cast<std::ptrdiff_t>(i)); });
    what = "another kind of instruction";
    using Kind = GroupInstruction::Kind;
    for (const Kind kind :
         {Kind::call, Kind::machine, Kind::copy, Kind::fetch, Kind::widen, Kind::narrow, Kind::sum})
      if (kind != code.instructions[i].kind) changed([&](GroupCode& c) { c.instructions[i].kind = kind; });
    what = "swapped instructions";
    if (i > 0) changed([&](GroupCode& c) { std::swap(c.instructions[i], c.instructions[i - 1]); });
    what = "an entry of an instruction";
    for (const int by : {-1, 1}) {
      changed([&](GroupCode& c) { c.instructions[i].a += static_cast<TableIndex>(by); });
      changed([&](GroupCode& c) { c.instructions[i].b += static_cast<TableIndex>(by); });
      changed([&](GroupCode& c) { c.instructions[i].y += static_cast<TableIndex>(by); });
    }
  }
  what = "a call";
  for (std::size_t k = 0; k < code.calls.size(); ++k) {
    for (int bit = 0; bit < code.calls[k].operands; ++bit)
      changed(
          [&](GroupCode& c) { c.calls[k].moves = static_cast<std::uint16_t>(c.calls[k].moves ^ 1u << bit); });
    changed([&](GroupCode& c) { c.calls[k].first = static_cast<std::uint32_t>(c.entries.size()); });
    for (const GroupCall& other : code.calls)
      if (other.is_vjp == code.calls[k].is_vjp && other.operands == code.calls[k].operands) {
        changed([&](GroupCode& c) { c.calls[k].loop = other.loop; });
        changed([&](GroupCode& c) { c.calls[k].tracer = other.tracer; });
      }
    if (code.calls[k].operands > 1)
      changed([&](GroupCode& c) { std::swap(c.entries[c.calls[k].first], c.entries[c.calls[k].first + 1]); });
    if (!code.calls[k].is_vjp) continue;
    for (int r = 0; r + 2 < code.calls[k].operands; ++r)
      for (const auto put : {kernels::Put::nothing, kernels::Put::store, kernels::Put::add})
        if (put != code.calls[k].put[r]) changed([&](GroupCode& c) { c.calls[k].put[r] = put; });
  }
  what = "an entry of a call";
  for (const GroupCall& call : code.calls)
    for (std::size_t e = call.first, end = e + call.operands + (call.is_vjp ? call.operands - 2u : 1u);
         e < end; ++e)
      for (const int by : {-1, 1})
        changed([&](GroupCode& c) { c.entries[e] += static_cast<TableIndex>(by); });
  what = "elements";
  for (auto list : {&GroupCode::singles, &GroupCode::streams, &GroupCode::bytes, &GroupCode::viewed})
    for (std::size_t k = 0; k < (code.*list).size(); ++k) {
      for (const int by : {-1, 1})
        changed([&](GroupCode& c) { (c.*list)[k].first += by; });
      for (std::size_t other = 0; other < (code.*list).size(); ++other)
        if (other != k) changed([&](GroupCode& c) { (c.*list)[k] = (code.*list)[other]; });
    }
  what = "results";
  for (auto list : {&GroupCode::results, &GroupCode::bool_results})
    for (std::size_t k = 0; k < (code.*list).size(); ++k) {
      changed([&](GroupCode& c) { (c.*list).erase((c.*list).begin() + static_cast<std::ptrdiff_t>(k)); });
      for (std::size_t other = 0; other < (code.*list).size(); ++other)
        if (other != k) changed([&](GroupCode& c) { std::swap((c.*list)[k], (c.*list)[other]); });
    }
  what = "a sum";
  for (std::size_t s = 0; s < code.sums.size(); ++s) {
    changed([&](GroupCode& c) { c.sums[s].mean ^= true; });
    changed([&](GroupCode& c) {
      c.sums[s].order =
          c.sums[s].order == GroupCode::Order::full ? GroupCode::Order::vjp : GroupCode::Order::full;
    });
    changed([&](GroupCode& c) { c.sums[s].to = {}; });
  }
}

void check_faults(ProgramBuilder& b, Counts& counts) {
  const Steps steps = b.steps();
  const IdVector<ValueId, bool> kept = b.kept(steps);
  for (const Step& step : steps) {
    if (!step.fused) continue;
    const GroupCode code = make_group_code(b.program, *b.passes, step, kept);
    REQUIRE(verify(b.program, *b.passes, step, code).value_or("") == "");
    const Results wanted = results_of(b, step, kept, Group(code));
    const auto machine_code_of = [&](const GroupCode& c) {
      return makes_machine_code() ? with_machine_code(b.program, c) : std::nullopt;
    };
    ++counts.groups, counts.machine += machine_code_of(code).has_value();
    const auto is_same_by_machine = [&, wanted_of_machine = with_one_nan(b, wanted)](const GroupCode& c) {
      return with_one_nan(b, results_of(b, step, kept, Group(c, machine_code_of(c)))) == wanted_of_machine;
    };
    const bool same_by_machine = is_same_by_machine(code);
    CHECK(same_by_machine);
    for_each_fault(code, [&](const GroupCode& changed, std::string_view what) {
      if (verify(b.program, *b.passes, step, changed) || b.lacks_results(step, changed, kept)) {
        ++counts.found;
        return;
      }
      ++counts.harmless;
      const bool same = results_of(b, step, kept, Group(changed)) == wanted && is_same_by_machine(changed);
      CAPTURE(what);
      CHECK(same);
    });
  }
}

}   // namespace

TEST_CASE("a fault in a group's code is found, or changes no bit", "[program]") {
  Counts counts;
  for (unsigned seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    RandomProgram program(seed % 2 ? DType::f32 : DType::f64, 40 + seed, seed, false);
    for (int k = 0; k < 14; ++k)
      program.add_node();
    program.choose_outputs();
    check_faults(program.b, counts);
    RandomMatrixProgram matrices(seed % 2 ? DType::f64 : DType::f32, 5, 7 + seed, seed);
    for (int k = 0; k < 14; ++k)
      matrices.add_node();
    matrices.choose_outputs();
    check_faults(matrices.b, counts);
  }
  CAPTURE(counts.found, counts.harmless);
  CHECK(counts.found > 2000);
  if (makes_machine_code()) CHECK(counts.machine > counts.groups / 2);   // others only copy
}

TEST_CASE("code with indices outside its tables is found", "[program]") {
  using Kind = GroupInstruction::Kind;
  RandomProgram program(DType::f32, 40, 3, false);
  for (int k = 0; k < 14; ++k)
    program.add_node();
  program.choose_outputs();
  ProgramBuilder& b = program.b;
  const Steps steps = b.steps();
  const IdVector<ValueId, bool> kept = b.kept(steps);
  int checked = 0;
  for (const Step& step : steps) {
    if (!step.fused) continue;
    const GroupCode code = make_group_code(b.program, *b.passes, step, kept);
    const auto is_found = [&](const auto& change) {
      GroupCode other = code;
      change(other);
      return verify(b.program, *b.passes, step, other).has_value();
    };
    for (std::size_t i = 0; i < code.instructions.size(); ++i) {
      const Kind kind = code.instructions[i].kind;
      const auto set = [&](TableIndex GroupInstruction::*place, std::size_t to) {
        return [i, place, to](GroupCode& c) { c.instructions[i].*place = static_cast<TableIndex>(to); };
      };
      if (kind == Kind::call) CHECK(is_found(set(&GroupInstruction::b, code.calls.size())));
      if (kind == Kind::fetch) CHECK(is_found(set(&GroupInstruction::b, code.views.size())));
      if (kind == Kind::sum) CHECK(is_found(set(&GroupInstruction::b, code.sums.size())));
      if (kind != Kind::call) CHECK(is_found(set(&GroupInstruction::a, code.size())));
      if (kind != Kind::call && kind != Kind::sum) CHECK(is_found(set(&GroupInstruction::y, code.written())));
      ++checked;
    }
  }
  CHECK(checked > 4);
}

namespace {

std::string fault_of(const Program& p) { return verify(p).value_or(""); }

/// A plan of several steps: products that wait for a sum, and one that is added to.
Program program_with_steps() {
  ProgramBuilder b;
  const Access x = b.argument(full({40}, 1.5)), y = b.argument(full({40}, 0.5));
  const Access a = b.map(mul_map, {x, y}, "mul"), c = b.map(mul_map, {a, y}, "mul"), s = b.full_sum(c, false);
  const Access d = b.map(mul_map, {a, s}, "mul"), e = b.map(mul_map, {d, c}, "mul"), t = b.full_sum(e, true);
  const Access f = b.map(mul_map, {e, t}, "mul");
  b.program.add_output(b.map(mul_map, {f, a}, "mul"));
  b.program.add_output(s);
  return std::move(b.program);
}

}   // namespace

TEST_CASE("the verifier of programs names the node and the rule", "[program]") {
  Program p;
  const ValueId x = p.add_argument({DType::f32, {8}}), y = p.promise({DType::f32, {8}});
  const Op& mul = *ProgramBuilder::find_op("mul");
  SECTION("an access beyond its value") {
    p.define(OpNode{.op = &mul, .map = &mul_map, .in = {p.all_of(x), {x, 1, {DType::f32, {8}}}}, .out = {y}});
    CHECK(fault_of(p) == "node 0, mul: reads f32[8] from element 1 of f32[8]");
  }
  SECTION("an access of another dtype") {
    p.define(OpNode{.op = &mul, .map = &mul_map, .in = {p.all_of(x), {x, 0, {DType::i32, {8}}}}, .out = {y}});
    CHECK(fault_of(p) == "node 0, mul: reads f32[8] as i32[8]");
  }
  SECTION("operands that do not broadcast") {
    p.define(OpNode{.op = &mul, .map = &mul_map, .in = {p.all_of(x), {x, 0, {DType::f32, {3}}}}, .out = {y}});
    CHECK(fault_of(p) == "node 0, mul: f32[3] does not broadcast to [8]");
  }
  SECTION("a view that leaves its value") {
    const auto view = std::make_shared<const kernels::StridedView>(kernels::sliced({16}, {8}, {8}));
    p.define(SelectNode{.in = p.all_of(x), .view = view, .out = y});
    CHECK(fault_of(p) == "node 0, slice: a view selects elements 8 to 15 of f32[8]");
  }
  SECTION("a second definition") {
    p.define(OpNode{.op = &mul, .map = &mul_map, .in = {p.all_of(x), p.all_of(x)}, .out = {y}});
    CHECK_THROWS_WITH(
        p.define(OpNode{.op = &mul, .map = &mul_map, .in = {p.all_of(x), p.all_of(x)}, .out = {y}}),
        "compile: mul defines a value that is defined already");
  }
  SECTION("a missing value") {
    CHECK_THROWS_WITH(
        p.define(OpNode{.op = &mul, .map = &mul_map, .in = {p.all_of(y), p.all_of(x)}, .out = {y}}),
        "compile: mul reads a value that is not defined");
  }
}

TEST_CASE("values of variables and actions must have a home that holds them", "[program]") {
  const Variable w(linspace(-1, 2, 40));
  Program p;
  const ValueId x = p.add_argument({DType::f32, {40}}), read = p.promise({DType::f32, {40}}),
                given = p.promise({DType::f32, {40}}), y = p.promise({DType::f32, {40}});
  p.define(ReadNode{.cell = w.cell().shared_from_this(), .out = read});
  p.define(ActionNode{
      .action = [](std::span<const Tensor> v, const random::Key&) { return std::vector{v[0] + 1.0}; },
      .in = {p.all_of(x)},
      .out = {given}});
  p.define(OpNode{.op = ProgramBuilder::find_op("mul"),
                  .map = &mul_map,
                  .in = {p.all_of(read), p.all_of(given)},
                  .out = {y}});
  p.add_output(p.all_of(y));
  const auto fault = [&](ValueId v, Home::In in) {
    Plan plan(p);
    REQUIRE(plan.fault.value_or("") == "");
    plan.homes[v].in = in;
    return verify(plan).value_or("");
  };
  CHECK(fault(given, Home::In::borrowed) != "");
  CHECK(fault(read, Home::In::returned) != "");
  CHECK(fault(x, Home::In::returned) != "");
  CHECK(fault(y, Home::In::returned) != "");
}

TEST_CASE("nodes that read or change variables run in recorded order", "[program]") {
  const Variable w(linspace(-1, 2, 40)), u(linspace(-1, 1, 40));
  const Spec spec{DType::f32, {40}};
  Program p;
  const ValueId x = p.add_argument(spec);
  const auto read = [&](const Variable& v) {
    const ValueId y = p.promise(spec);
    p.define(ReadNode{.cell = v.cell().shared_from_this(), .out = y});
    return y;
  };
  const ValueId first = read(w);
  p.define(StoreNode{.cell = u.cell().shared_from_this(), .in = p.all_of(x)});
  p.define(
      ActionNode{.action = [](std::span<const Tensor>, const random::Key&) { return std::vector<Tensor>(); },
                 .in = {p.all_of(first)}});
  p.add_output(p.all_of(read(u)));
  const Plan right(p);
  REQUIRE(right.fault.value_or("") == "");
  REQUIRE(right.steps.size() == 4);
  for (std::size_t s = 0; s < 4; ++s)
    for (std::size_t t = s + 1; t < 4; ++t) {
      Plan plan(p);
      std::swap(plan.steps[StepId(s)], plan.steps[StepId(t)]);
      CAPTURE(s, t);
      CHECK(verify(plan).has_value());
    }
}

TEST_CASE("actions, nodes that may throw and nodes that must run keep their order", "[program]") {
  const Spec spec{DType::f32, {40}};
  Program p;
  const ValueId x = p.add_argument(spec);
  const auto op = [&](std::string_view name, DType t) {
    const ValueId y = p.promise({t, {40}});
    p.define(OpNode{.op = ProgramBuilder::find_op(name), .in = {p.all_of(x)}, .out = {y}});
    p.add_output(p.all_of(y));
  };
  const auto action = [&] {
    p.define(ActionNode{
        .action = [](std::span<const Tensor>, const random::Key&) { return std::vector<Tensor>(); },
        .in = {p.all_of(x)}});
  };
  op("softmax", DType::f32), action(), op("log_softmax", DType::f32), action();
  const Plan right(p);
  REQUIRE(right.fault.value_or("") == "");
  REQUIRE(right.steps.size() == 4);
  for (std::size_t s = 0; s < 4; ++s) {
    CHECK(right.steps[StepId(s)].nodes == std::vector{NodeId(s)});
    for (std::size_t t = s + 1; t < 4; ++t) {
      Plan plan(p);
      std::swap(plan.steps[StepId(s)], plan.steps[StepId(t)]);
      CAPTURE(s, t);
      CHECK(verify(plan).has_value());
    }
  }
}

TEST_CASE("f32 and f64 nodes of few elements are small nodes", "[program]") {
  const auto is_small = [](DType t, std::int64_t n) {
    ProgramBuilder b;
    const Access x = b.argument(ones({n}, t));
    const Access y = b.map(mul_map, {x, x}, "mul");
    return SmallNode::of(b.program, b.program[b.program.node_of(y)]).has_value();
  };
  for (const DType t : {DType::f32, DType::f64})
    CHECK((is_small(t, 1) && is_small(t, 256) && !is_small(t, 257)));
}

TEST_CASE("a fault in a plan is found, or changes no bit", "[program]") {
  const Program p = program_with_steps();
  const std::vector<Tensor> x = {linspace(-1, 2, 40), linspace(0.5, 1, 40)};
  const auto results = [&](const Plan& plan) {
    Replay replay(plan, Arena(plan.arena_bytes), Arena(plan.scratch_bytes));
    std::vector<Tensor> y;
    replay.run(x, {}, y);
    return std::pair(y[0].to_vector(), y[1].to_vector());
  };
  const Plan right(p);
  REQUIRE(right.fault.value_or("") == "");
  const auto wanted = results(right);
  Counts counts;
  const auto check = [&](const auto& change) {
    Plan plan(p);
    change(plan);
    if (verify(plan)) {
      ++counts.found;
      return;
    }
    ++counts.harmless;
    CHECK(results(plan) == wanted);
  };
  for (const ValueId v : ids_of(right.homes)) {
    if (right.homes[v].in == Home::In::arena)
      for (const int by : {-128, -64, -1, 1, 64, 128, 100'000})
        check([&](Plan& plan) { plan.homes[v].offset += by; });
    for (const ValueId other : ids_of(right.homes))
      if (right.homes[v].in == Home::In::arena && right.homes[other].in == Home::In::arena && other != v)
        check([&](Plan& plan) { plan.homes[v].offset = plan.homes[other].offset; });
    for (const auto in :
         {Home::In::registers, Home::In::borrowed, Home::In::constants, Home::In::output, Home::In::returned})
      if (right.homes[v].in != in && right.homes[v].in != Home::In::registers)
        check([&](Plan& plan) { plan.homes[v].in = in; });
  }
  for (std::size_t s = 0; s < right.steps.size(); ++s)
    for (std::size_t t = s + 1; t < right.steps.size(); ++t)
      check([&](Plan& plan) {
        std::swap(plan.steps[StepId(s)], plan.steps[StepId(t)]);
        std::vector<Group> groups;
        for (const Step& step : plan.steps)
          if (step.fused)
            for (std::size_t g = 0, k = 0; k < right.steps.size(); ++k)
              if (right.steps[StepId(k)].fused)
                if (const Group& group = right.groups[g++]; right.steps[StepId(k)].nodes == step.nodes)
                  groups.push_back(group);
        plan.groups = groups;
      });
  check([](Plan& plan) { plan.arena_bytes -= 64; });
  check([](Plan& plan) { plan.scratch_bytes -= 64; });
  CAPTURE(counts.found, counts.harmless);
  CHECK(counts.found > 60);
}

}   // namespace verify_test
