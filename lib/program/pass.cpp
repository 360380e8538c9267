// In: a node. Out: the pass over elements that it can be a part of.
#include "program/pass.h"

#include <algorithm>

#include "ops/reduce/reduce.h"

namespace tapedeck::program {
namespace {

std::int64_t size_of_value(const Program& p, ValueId v) { return p.value(v).spec.shape.size(); }

// Whether v can be read as n elements, in whole groups of 64 bytes, or as one for all of them.
bool is_readable(const Program& p, ValueId v, const NodePass& pass) {
  if (p.value(v).spec.dtype != pass.dtype) return false;
  const std::int64_t size = size_of_value(p, v);
  if (size != pass.n) return size == 1;
  const std::int64_t group = 64 / size_of(pass.dtype);
  const auto padded = [&](std::int64_t n) { return (n + group - 1) / group * group; };
  const auto [whole, first] = elements_of(p, v);
  return first + padded(size) <= padded(size_of_value(p, whole));
}
bool are_readable(const Program& p, const Node& node, const NodePass& pass) {
  return std::all_of(node.in.begin(), node.in.end(),
                     [&](ValueId v) { return v == kNoValue || is_readable(p, v, pass); });
}

// Gradients of single elements are summed in this order only where all operands are flat.
bool is_flat(const Node& node, const NodePass& pass) {
  const auto inputs = static_cast<std::size_t>(node.vjp->inputs);
  if (node.in_specs.size() < inputs) return false;
  return std::all_of(node.in_specs.begin(), node.in_specs.begin() + node.vjp->inputs,
                     [&](const Spec& s) { return s.shape.size() == pass.n || s.shape.size() == 1; });
}

bool is_flat_pull(const Program& p, const Node& node, const NodePass& pass) {
  bool sums = false;
  for (const ValueId v : node.out) {
    if (v == kNoValue) continue;
    const std::int64_t size = size_of_value(p, v);
    if (size != pass.n && size != 1) return false;
    sums |= size != pass.n;
  }
  return !sums || is_flat(node, pass);
}

}   // namespace

Elements elements_of(const Program& p, ValueId v) {
  std::int64_t first = 0;
  for (; p.value(v).from == Value::From::part; v = p.value(v).whole)
    first += p.value(v).first;
  return {v, first};
}

bool is_full_sum(const Program& p, const Node& node) {
  return node.kind == Node::Kind::op && node.attrs.view().type == &kAttrsType<ReduceAttrs> &&
         (node.op->name == "sum" || node.op->name == "mean") && size_of_value(p, node.out[0]) == 1;
}

std::optional<NodePass> pass_of(const Program& p, const Node& node) {
  const bool sum = is_full_sum(p, node), pull = node.kind == Node::Kind::pull;
  if (!sum && !pull && !(node.map && node.out.size() == 1)) return {};
  const ValueId shaped = sum    ? node.in[0]
                         : pull ? node.in[static_cast<std::size_t>(node.vjp->inputs) + 1]
                                : node.out[0];
  const NodePass pass{p.value(shaped).spec.dtype, size_of_value(p, shaped)};
  const bool fits = (pass.dtype == DType::f32 || pass.dtype == DType::f64) && pass.n > 0 &&
                    are_readable(p, node, pass) && (!pull || is_flat_pull(p, node, pass));
  return fits ? std::optional(pass) : std::nullopt;
}

bool is_elementwise_result(const Program& p, const NodePass& pass, ValueId v) {
  const Value& value = p.value(elements_of(p, v).value);
  if (value.from != Value::From::node || value.spec.shape.size() != pass.n || size_of_value(p, v) != pass.n)
    return false;
  const Node& node = p.nodes[static_cast<std::size_t>(value.at)];
  return !is_full_sum(p, node) && pass_of(p, node) == pass;
}

}   // namespace tapedeck::program
