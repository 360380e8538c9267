// ProgramBuilder: a program written node by node, beside the values that the nodes give one after the other.
#pragma once
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "core/bytes.h"
#include "core/storage.h"
#include "kernels/layout/copy.h"
#include "ops/reduce/reduce.h"
#include "program/group.h"
#include "program/split_sums.h"
#include "tapedeck/ops.h"

namespace tapedeck {

using namespace program;

class ProgramBuilder {
 public:
  Program program;
  std::vector<Tensor> values;   // as the kernels give them
  std::vector<bool> outputs;    // what the caller reads

  ValueId argument(const Tensor& x) { return add({.spec = x.spec(), .from = Value::From::argument}, x); }
  ValueId constant(const Tensor& x) {
    return add({.spec = x.spec(), .from = Value::From::constant, .constant = x}, x);
  }
  ValueId part(ValueId whole, std::int64_t first, const Shape& shape) {
    return add(
        {.spec = {of(whole).dtype(), shape}, .from = Value::From::part, .whole = whole, .first = first},
        share(of(whole), shape, first));
  }
  /// `op` names the op whose kernel k is, if any.
  ValueId map(const kernels::MapKernel& k, std::vector<ValueId> x, std::string_view op = {}) {
    const Tensor* in[kernels::kMaxOperands];
    Shape shape = of(x[0]).shape();
    for (std::size_t i = 0; i < x.size(); ++i) {
      in[i] = &of(x[i]);
      if (in[i]->size() >= shape.size()) shape = in[i]->shape();
    }
    Tensor y = allocate({in[0]->dtype(), shape});
    kernels::run_map(k, {in, static_cast<int>(x.size())}, y);
    Node node{.kind = op.empty() ? Node::Kind::map : Node::Kind::op, .map = &k, .in = std::move(x)};
    if (!op.empty()) node.op = find_op(op);
    node.out = {add_result(y)};
    program.nodes.push_back(std::move(node));
    return program.nodes.back().out[0];
  }
  /// An op without attributes, by its kernel.
  ValueId op(std::string_view name, std::vector<ValueId> x) {
    std::vector<Tensor> in;
    for (const ValueId v : x)
      in.push_back(of(v));
    Node node{.kind = Node::Kind::op, .op = find_op(name), .in = std::move(x)};
    node.out = {add_result(node.op->run(in, {})[0])};
    program.nodes.push_back(std::move(node));
    return program.nodes.back().out[0];
  }
  /// bool to another dtype.
  ValueId cast(ValueId x, DType dtype) {
    Node node{.kind = Node::Kind::op, .op = find_op("astype"), .in = {x}};
    node.out = {add_result(astype(of(x), dtype))};
    program.nodes.push_back(std::move(node));
    return program.nodes.back().out[0];
  }
  ValueId select(ValueId x, const kernels::StridedView& view, const Shape& shape) {
    Tensor y = allocate({of(x).dtype(), shape});
    kernels::copy_from(of(x), view, y);
    Node node{.kind = Node::Kind::select, .in = {x}, .view = view};
    node.out = {add_result(y)};
    program.nodes.push_back(std::move(node));
    return program.nodes.back().out[0];
  }
  /// Gradients of those x that `wanted` says; what is added to, or none, for each.
  std::vector<ValueId> pull(const kernels::VjpKernel& k, std::vector<ValueId> x, ValueId y, ValueId dy,
                            unsigned wanted, const std::vector<ValueId>& to = {}) {
    Node node{.kind = Node::Kind::pull, .vjp = &k, .in = x};
    node.in.insert(node.in.end(), {y, dy});
    const Tensor* in[kernels::kFusedInputs];
    Tensor dx[kernels::kFusedInputs];
    for (std::size_t i = 0; i < node.in.size(); ++i)
      node.in_specs.push_back(of(node.in[i]).spec());
    for (std::size_t i = 0; i < x.size(); ++i) {
      in[i] = &of(x[i]);
      if (!(wanted >> i & 1)) continue;
      dx[i] = allocate(in[i]->spec());
      if (i >= to.size() || to[i] == kNoValue) continue;
      std::memcpy(dx[i].raw(), of(to[i]).raw(), static_cast<std::size_t>(dx[i].nbytes()));
      node.adds |= 1u << i;
      node.in.push_back(to[i]);
    }
    unsigned read = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (wanted >> i & 1) read |= k.reads[i];
    for (std::size_t i = 0; i <= x.size(); ++i)
      if (!(read >> i & 1)) node.in[i] = kNoValue;
    run_vjp(k, of(dy), in, &of(y), dx, node.adds);
    for (std::size_t i = 0; i < x.size(); ++i)
      node.out.push_back(dx[i].defined() ? add_result(dx[i]) : kNoValue);
    program.nodes.push_back(node);
    return node.out;
  }
  /// Both gradients of x·x in one: the second is added to the first.
  ValueId pull_twice(const kernels::VjpKernel& k, ValueId x, ValueId dy) {
    Tensor dx = allocate(of(x).spec());
    const Tensor *in[] = {&of(x), &of(x)}, both[] = {dx, dx};
    run_vjp(k, of(dy), in, &of(x), both, 2);
    Node node{.kind = Node::Kind::pull, .vjp = &k, .adds = 2, .in = {x, x, kNoValue, dy, kNoValue}};
    node.in_specs.assign(4, of(x).spec());
    const ValueId v = add_result(dx);
    node.out = {v, v};
    program.nodes.push_back(std::move(node));
    return v;
  }
  ValueId full_sum(ValueId x, bool is_mean) {
    const Tensor y = is_mean ? mean(of(x)) : sum(of(x));
    Node node{.kind = Node::Kind::op,
              .op = find_op(is_mean ? "mean" : "sum"),
              .attrs = Attrs(ReduceAttrs{.axes = (1u << of(x).ndim()) - 1, .keepdims = false}),
              .in = {x}};
    node.out = {add_result(y)};
    program.nodes.push_back(std::move(node));
    return program.nodes.back().out[0];
  }
  /// A node that is not fused.
  ValueId other(std::vector<ValueId> x, const Tensor& y) {
    Node node{.kind = Node::Kind::action, .in = std::move(x)};
    node.out = {add_result(y)};
    program.nodes.push_back(std::move(node));
    return program.nodes.back().out[0];
  }

  /// As a plan does.
  void split_sums() {
    find_passes(program);
    program::split_sums(program);
    while (values.size() < program.values.size()) {
      values.push_back(allocate(program.values[values.size()].spec));
      outputs.push_back(false);
    }
  }

  const Tensor& of(ValueId v) const { return values[static_cast<std::size_t>(v)]; }

  /// The steps of a program of which everything is live.
  std::vector<ProgramStep> steps() {
    find_passes(program);
    return schedule(program, std::vector<bool>(program.nodes.size(), true));
  }

  /// Replays it, each value in memory of its own, and compares what lies in memory bit for bit. Returns the
  /// number of groups.
  int check() {
    const std::vector<ProgramStep> all = steps();
    const std::vector<bool> kept = find_kept(all);
    std::vector<Tensor> own;
    std::vector<std::byte*> memory(values.size());
    for (std::size_t v = 0; v < values.size(); ++v) {
      own.push_back(allocate(DType::u8, {values[v].nbytes() + 64}, values[v].nbytes() + 64));
      memory[v] = reinterpret_cast<std::byte*>(own[v].raw());
      const Value::From from = program.values[v].from;
      const bool given = from == Value::From::argument || from == Value::From::constant;
      if (given) std::memcpy(memory[v], values[v].raw(), static_cast<std::size_t>(values[v].nbytes()));
      if (!given) std::memset(memory[v], 0xfd, static_cast<std::size_t>(own[v].nbytes()));
    }
    int groups = 0;
    for (const ProgramStep& step : all) {
      groups += step.fused;
      if (step.fused)
        run(step, kept, memory);
      else
        for (const ValueId v : program.nodes[static_cast<std::size_t>(step.nodes[0])].out)
          if (v != kNoValue)
            std::memcpy(memory[static_cast<std::size_t>(v)], of(v).raw(),
                        static_cast<std::size_t>(of(v).nbytes()));
      for (const std::int32_t n : step.nodes)
        for (const ValueId v : program.nodes[static_cast<std::size_t>(n)].out)
          if (v != kNoValue && kept[static_cast<std::size_t>(v)])
            compare(v, memory[static_cast<std::size_t>(v)]);
    }
    return groups;
  }

 private:
  static const Op* find_op(std::string_view name) {
    for (const OpFamily& family : op_families())
      for (const Op& op : family.ops)
        if (op.name == name) return &op;
    return nullptr;
  }
  ValueId add(Value v, const Tensor& x) {
    program.values.push_back(std::move(v));
    values.push_back(x);
    outputs.push_back(false);
    return static_cast<ValueId>(values.size() - 1);
  }
  ValueId add_result(const Tensor& y) {
    return add({.spec = y.spec(), .at = static_cast<std::int32_t>(program.nodes.size())}, y);
  }
  std::vector<bool> find_kept(const std::vector<ProgramStep>& all) const {
    std::vector<bool> kept = outputs;
    std::vector<int> step_of(program.nodes.size());
    for (std::size_t s = 0; s < all.size(); ++s)
      for (const std::int32_t n : all[s].nodes)
        step_of[static_cast<std::size_t>(n)] = static_cast<int>(s);
    for (std::size_t n = 0; n < program.nodes.size(); ++n)
      for (const ValueId v : program.nodes[n].in) {
        if (v == kNoValue) continue;
        const ValueId whole = elements_of(program, v).value;
        const Value& value = program.value(whole);
        if (value.from != Value::From::node || step_of[static_cast<std::size_t>(value.at)] != step_of[n])
          kept[static_cast<std::size_t>(whole)] = true;
      }
    return kept;
  }
  void run(const ProgramStep& step, const std::vector<bool>& kept,
           const std::vector<std::byte*>& memory) const {
    const Group group(program, step, kept);
    for (const ValueId v : group.reads())
      CHECK(program.value(v).from != Value::From::part);
    for (const ValueId v : group.writes())
      CHECK(kept[static_cast<std::size_t>(v)]);
    Tensor scratch = allocate(DType::u8, {group.scratch_bytes() + 64}, group.scratch_bytes() + 64);
    auto* first = reinterpret_cast<std::byte*>(scratch.raw());
    first += -reinterpret_cast<std::uintptr_t>(first) & 63;
    group.run(memory.data(), first);
  }
  // NaN is NaN: its sign and payload are those of one of two operands, and compilers choose which.
  void compare(ValueId v, const std::byte* memory) const {
    CAPTURE(v, of(v).size());
    const bool same = of(v).dtype() == DType::boolean ? are_same<std::uint8_t>(of(v), memory)
                      : of(v).dtype() == DType::f32   ? are_same<float>(of(v), memory)
                                                      : are_same<double>(of(v), memory);
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
