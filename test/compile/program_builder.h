// ProgramBuilder: a program written node by node, together with the values that the nodes compute when run
// one after the other.
#pragma once
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "compile/fuse/bound_group.h"
#include "compile/fuse/verify.h"
#include "compile/ir/verify.h"
#include "compile/rewrite/sums.h"
#include "core/bytes.h"
#include "kernels/layout/copy.h"
#include "ops/reduce/reduce.h"
#include "tapedeck/ops.h"
#include "tapedeck/threads.h"

namespace tapedeck {

using namespace compiled;

/// Runs a group, the given number of times. Between two calls others use its scratch memory.
inline void run_group(const Group& group, const Memory& memory, Writable scratch, int times = 1) {
  BoundGroup bound(group, scratch);
  bound.for_each_pointer(
      [&](ValueId v, std::int64_t first_byte, const std::byte*& p) { p = memory.read[v].get() + first_byte; },
      [&](ValueId v, std::byte*& p) { p = memory.write[v].get(); });
  for (int i = 0; i < times; ++i) {
    std::memset(scratch.get(), 0xff, static_cast<std::size_t>(group.scratch_bytes()));
    bound.run();
  }
}

class ProgramBuilder {
 public:
  Program program;
  std::vector<Tensor> values;        // computed by the kernels; by value of the program
  IdVector<ValueId, bool> outputs;   // the values that the caller reads
  int threads = 0;                   // if not 0: groups are made before so many are allowed

  Access argument(const Tensor& x) { return known(program.add_argument(x.spec()), x); }
  Access constant(const Tensor& x) { return known(program.add_constant(x), x); }
  static Access part(const Access& of, std::int64_t first, const Shape& shape) {
    return {of.of, of.first + first, {of.spec.dtype, shape}};
  }
  /// `op` names the op whose kernel k is, if any.
  Access map(const kernels::MapKernel& k, std::vector<Access> x, std::string_view op = {}) {
    std::vector<Tensor> in;
    const Tensor* refs[kernels::kMaxOperands];
    Shape shape = x[0].spec.shape;
    for (const Access& a : x) {
      in.push_back(of(a));
      if (a.size() > shape.size() || (a.size() == shape.size() && a.spec.shape.ndim() > shape.ndim()))
        shape = a.spec.shape;
    }
    for (std::size_t i = 0; i < in.size(); ++i)
      refs[i] = &in[i];
    Tensor y = allocate({x[0].spec.dtype, shape});
    kernels::run_map(k, {refs, static_cast<int>(x.size())}, y);
    const Access result = promised(y);
    if (op.empty())
      program.define(JvpNode{.map = &k, .in = std::move(x), .out = result.of});
    else
      program.define(OpNode{.op = find_op(op), .map = &k, .in = std::move(x), .out = {result.of}});
    return result;
  }
  /// Adds an op without attributes, computed by its kernel.
  Access op(std::string_view name, const std::vector<Access>& x) {
    std::vector<Tensor> in;
    for (const Access& a : x)
      in.push_back(of(a));
    const Access result = promised(find_op(name)->run(in, {})[0]);
    program.define(OpNode{.op = find_op(name), .in = x, .out = {result.of}});
    return result;
  }
  /// Adds a cast of bool to another dtype.
  Access cast(const Access& x, DType dtype) {
    const Access result = promised(astype(of(x), dtype));
    program.define(OpNode{.op = find_op("astype"), .in = {x}, .out = {result.of}});
    return result;
  }
  Access select(const Access& x, const kernels::StridedView& view, const Shape& shape) {
    Tensor y = allocate({x.spec.dtype, shape});
    kernels::copy_from(of(x), view, y);
    const Access result = promised(y);
    program.define(
        SelectNode{.in = x, .view = std::make_shared<const kernels::StridedView>(view), .out = result.of});
    return result;
  }
  /// Adds a vjp. Returns the gradients of the x whose bits are set in `wanted`; other accesses are empty.
  /// `before`: the values that they are added to.
  std::vector<Access> vjp(const kernels::VjpKernel& k, const std::vector<Access>& x, const Access& y,
                          const Access& dy, unsigned wanted, const std::vector<Access>& before = {}) {
    VjpNode node{.kernel = &k, .in = x};
    node.in.insert(node.in.end(), {y, dy});
    std::vector<Tensor> in;
    const Tensor* refs[kernels::kFusedInputs];
    Tensor dx[kernels::kFusedInputs];
    unsigned adds = 0, read = 0;
    for (const Access& a : x)
      in.push_back(of(a));
    for (std::size_t i = 0; i < x.size(); ++i) {
      refs[i] = &in[i];
      if (!(wanted >> i & 1)) continue;
      read |= k.reads[i];
      dx[i] = allocate(in[i].spec());
      node.results.push_back({{}, 1u << i, {}});
      if (i >= before.size() || !before[i].reads()) continue;
      const Tensor b = of(before[i]);
      std::memcpy(dx[i].raw(), b.raw(), static_cast<std::size_t>(b.nbytes()));
      adds |= 1u << i;
      node.results.back().before = before[i];
    }
    for (std::size_t i = 0; i <= x.size(); ++i)
      if (!(read >> i & 1)) node.in[i] = {.spec = node.in[i].spec};
    const Tensor result = of(y);
    run_vjp(k, of(dy), refs, &result, dx, adds);
    std::vector<Access> all(x.size());
    std::size_t r = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!dx[i].defined()) continue;
      all[i] = promised(dx[i]);
      node.results[r++].value = all[i].of;
    }
    program.define(std::move(node));
    return all;
  }
  /// Adds a vjp with both gradients of x·x in one result: the second is added to the first.
  Access vjp_twice(const kernels::VjpKernel& k, const Access& x, const Access& dy) {
    const Tensor value = of(x), cotangent = of(dy);
    Tensor dx = allocate(value.spec());
    const Tensor *in[] = {&value, &value}, both[] = {dx, dx};
    run_vjp(k, cotangent, in, &value, both, 2);
    const Access result = promised(dx);
    program.define(
        VjpNode{.kernel = &k, .in = {x, x, {.spec = x.spec}, dy}, .results = {{result.of, 0b11, {}}}});
    return result;
  }
  Access full_sum(const Access& x, bool is_mean) {
    const Access result = promised(is_mean ? mean(of(x)) : sum(of(x)));
    program.define(
        OpNode{.op = find_op(is_mean ? "mean" : "sum"),
               .attrs = Attrs(ReduceAttrs{.axes = (1u << x.spec.shape.ndim()) - 1, .keepdims = false}),
               .in = {x},
               .out = {result.of}});
    return result;
  }
  /// Adds a node that is not fused.
  Access other(const std::vector<Access>& x, const Tensor& y) {
    const Access result = promised(y);
    program.define(ActionNode{
        .action = [](std::span<const Tensor>, const random::Key&) { return std::vector<Tensor>(); },
        .in = x,
        .out = {result.of}});
    return result;
  }

  /// Splits sums as a plan does.
  void split_sums() {
    program = with_sums_of_two(std::move(program));
    while (values.size() < program.values().size())
      known(ValueId(values.size()), allocate(program.values()[ValueId(values.size())].spec));
  }

  Tensor of(const Access& a) const {
    const Tensor& whole = values[a.of.index()];
    return share(whole, a.spec.shape, a.first);
  }

  /// The steps of the program, in which all nodes are live.
  Steps steps() {
    passes = std::make_unique<const Passes>(program);
    return schedule(program, *passes, IdVector<NodeId, bool>(program.size(), true));
  }
  std::unique_ptr<const Passes> passes;   // of the last call of steps

  /// Replays the program, with separate memory for each value, and compares the values in memory bit for bit.
  /// Returns the number of groups.
  int check() {
    CHECK(verify(program).value_or("") == "");
    const Steps all = steps();
    const IdVector<ValueId, bool> in_memory = kept(all);
    std::vector<Arena> own;
    Memory memory(values.size());
    for (const ValueId v : ids_of(program.values())) {
      const Tensor& x = values[v.index()];
      own.emplace_back(x.nbytes() + 64);
      memory.bind(v, own.back().at(0));
      const bool given = program[v].from == Value::From::argument || program[v].from == Value::From::constant;
      if (given) std::memcpy(memory.write[v].get(), x.raw(), static_cast<std::size_t>(x.nbytes()));
      if (!given) std::memset(memory.write[v].get(), 0xfd, static_cast<std::size_t>(own.back().size()));
      if (given) memory.write[v] = {};
    }
    int groups = 0;
    for (const Step& step : all) {
      groups += step.fused;
      if (step.fused)
        run(step, in_memory, memory);
      else
        for_each_result(program[step.nodes[0]], [&](ValueId v) {
          const Tensor& x = values[v.index()];
          std::memcpy(memory.write[v].get(), x.raw(), static_cast<std::size_t>(x.nbytes()));
        });
      for (const NodeId n : step.nodes)
        for_each_result(program[n], [&](ValueId v) {
          if (in_memory[v]) compare(v, memory.read[v].get());
        });
    }
    return groups;
  }

  /// The values that must be in memory: outputs, and operands of other steps.
  IdVector<ValueId, bool> kept(const Steps& all) const {
    IdVector<ValueId, bool> in_memory = outputs;
    IdVector<NodeId, StepId> step_of(program.size());
    for (const StepId s : ids_of(all))
      for (const NodeId n : all[s].nodes)
        step_of[n] = s;
    for (const NodeId n : ids_of(program.nodes()))
      for_each_operand(program[n], [&](const Access& a) {
        const NodeId from = program.node_of(a);
        if (!from || step_of[from] != step_of[n]) in_memory[a.of] = true;
      });
    return in_memory;
  }
  /// Whether the code leaves out a value that must be in memory.
  bool lacks_results(const Step& step, const GroupCode& code,
                     const IdVector<ValueId, bool>& in_memory) const {
    const auto writes = [&](ValueId v) {
      for (const auto* list : {&code.results, &code.bool_results})
        if (std::find(list->begin(), list->end(), v) != list->end()) return true;
      return std::any_of(code.sums.begin(), code.sums.end(),
                         [&](const GroupCode::Sum& s) { return s.to == v; });
    };
    bool lacks = false;
    for (const NodeId n : step.nodes)
      for_each_result(program[n], [&](ValueId v) { lacks |= in_memory[v] && !writes(v); });
    return lacks;
  }

  static const Op* find_op(std::string_view name) {
    for (const ops::Family& family : ops::families())
      for (const Op* op : family.ops)
        if (op->name == name) return op;
    return nullptr;
  }

 private:
  Access known(ValueId v, const Tensor& x) {
    values.push_back(x);
    outputs.push_back(false);
    return program.all_of(v);
  }
  Access promised(const Tensor& y) { return known(program.promise(y.spec()), y); }

  void run(const Step& step, const IdVector<ValueId, bool>& kept, const Memory& memory) const {
    const Group group(program, *passes, step, kept);
    CHECK(verify(program, *passes, step, group.code()).value_or("") == "");
    for (const ValueId v : group.writes())
      CHECK(kept[v]);
    if (threads > 0) set_num_threads(threads);
    const Arena scratch(group.scratch_bytes() + 64);
    const auto past = reinterpret_cast<std::uintptr_t>(scratch.at(0).get()) & 63;
    run_group(group, memory, scratch.at(static_cast<std::int64_t>(-past & 63)), 2);
  }
  // Any two NaN are equal: sign and payload come from one of two operands, and compilers choose which.
  void compare(ValueId v, const std::byte* memory) const {
    const Tensor& x = values[v.index()];
    CAPTURE(v.index(), x.size());
    const bool same = x.dtype() == DType::boolean ? are_same<std::uint8_t>(x, memory)
                      : x.dtype() == DType::f32   ? are_same<float>(x, memory)
                                                  : are_same<double>(x, memory);
    CHECK(same);
  }
  template <class T> static bool are_same(const Tensor& x, const std::byte* memory) {
    const T *a = elements<T>(x), *b = reinterpret_cast<const T*>(memory);
    return std::equal(a, a + x.size(), b, [](const T& p, const T& q) {
      return (p != p && q != q) || !std::memcmp(&p, &q, sizeof(T));
    });
  }
};

}   // namespace tapedeck
