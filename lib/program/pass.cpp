// In: a node. Out: the pass over elements that it can be a part of.
#include "program/pass.h"

#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "kernels/elementwise/grid.h"
#include "ops/reduce/reduce.h"
#include "program/logic.h"

namespace tapedeck::program {
namespace {

std::int64_t size_of_value(const Program& p, ValueId v) { return p.value(v).spec.shape.size(); }

// Of a pull: dy, whose shape is that of the pass.
ValueId cotangent_of(const Node& node) { return node.in[static_cast<std::size_t>(node.vjp->inputs) + 1]; }

bool are_readable(const Program& p, const Node& node, const NodePass& pass) {
  return std::all_of(node.in.begin(), node.in.end(),
                     [&](ValueId v) { return v == kNoValue || reading_of(p, pass, v) != Reading::none; });
}

// Whether no operand of a pull is a row or the like, so that its sums are over all elements at once.
bool is_flat(const Node& node, const NodePass& pass) {
  return std::all_of(node.in_specs.begin(), node.in_specs.begin() + node.vjp->inputs,
                     [&](const Spec& s) { return s.shape.size() == pass.n || s.shape.size() == 1; });
}

bool has_known_sums(const Program& p, const Node& node, const NodePass& pass) {
  const auto inputs = static_cast<std::size_t>(node.vjp->inputs);
  const bool has_specs = node.in_specs.size() >= inputs, flat = has_specs && is_flat(node, pass);
  for (std::size_t i = 0; i < inputs; ++i)
    if (node.out[i] != kNoValue && size_of_value(p, node.out[i]) != pass.n)
      if (!has_specs || !(flat || row_sum_of(p, node, i))) return false;
  return true;
}

// Transpositions and the like are faster as kernels of their own.
bool is_near(const kernels::StridedView& view) {
  constexpr std::int64_t near = 4;
  const std::int64_t step = view.ndim() ? view[view.ndim() - 1].stride : 0;
  return step >= -near && step <= near;
}

// Of logic, whose operands are bools: the dtype of the group in which one of them is computed.
DType dtype_of_bools(const Program& p, const Node& node) {
  for (const ValueId v : node.in)
    if (const Value& value = p.value(v); value.from == Value::From::node)
      if (const auto& pass = p.nodes[static_cast<std::size_t>(value.at)].fused) return pass->dtype;
  return DType::boolean;
}

// The value that has the shape of the pass.
ValueId shaped_like(const Program& p, const Node& node) {
  return is_full_sum(p, node) ? node.in[0] : node.kind == Node::Kind::pull ? cotangent_of(node) : node.out[0];
}

NodePass wanted_pass(const Program& p, const Node& node) {
  const ValueId shaped = shaped_like(p, node);
  DType dtype = p.value(shaped).spec.dtype;
  if (dtype == DType::boolean && logic_kernel(node)) {
    dtype = p.value(node.in[0]).spec.dtype;
    if (dtype == DType::boolean) dtype = dtype_of_bools(p, node);
  }
  return {dtype, size_of_value(p, shaped)};
}

bool can_be_fused(const Program& p, const Node& node) {
  switch (node.kind) {
    case Node::Kind::pull:
    case Node::Kind::map:
      return true;
    case Node::Kind::select:
      return is_near(node.view) && size_of_value(p, node.in[0]) > 1;
    case Node::Kind::op:
      return node.out.size() == 1 &&
             (node.map || is_full_sum(p, node) || logic_kernel(node) || is_cast_of_bools(p, node));
    default:
      return false;
  }
}

std::optional<NodePass> pass_of(const Program& p, const Node& node) {
  if (!can_be_fused(p, node)) return {};
  const NodePass pass = wanted_pass(p, node);
  if ((pass.dtype != DType::f32 && pass.dtype != DType::f64) || pass.n == 0) return {};
  if (node.kind == Node::Kind::select) return pass;
  const bool fits =
      are_readable(p, node, pass) && (node.kind != Node::Kind::pull || has_known_sums(p, node, pass));
  return fits ? std::optional(pass) : std::nullopt;
}

bool is_uniform(const Value& v) {
  if (v.from != Value::From::constant || v.spec.shape.size() == 0) return false;
  const auto size = static_cast<std::size_t>(size_of(v.spec.dtype));
  const std::byte* const x = v.constant.raw();   // each element is the next one
  return !std::memcmp(x, x + size, static_cast<std::size_t>(v.constant.nbytes()) - size);
}

}   // namespace

bool is_one(const Program& p, ValueId v) {
  const Value& value = p.value(elements_of(p, v).value);
  if (!value.uniform) return false;
  if (value.spec.dtype == DType::f32) return *elements<float>(value.constant) == 1;
  return value.spec.dtype == DType::f64 && *elements<double>(value.constant) == 1;
}

Elements elements_of(const Program& p, ValueId v) {
  std::int64_t first = 0;
  for (; p.value(v).from == Value::From::part; v = p.value(v).whole)
    first += p.value(v).first;
  return {v, first};
}

void find_passes(Program& p) {
  for (Value& v : p.values)
    v.uniform = is_uniform(v);
  for (Node& node : p.nodes)
    node.fused = pass_of(p, node);
}

void number_values(Program& p) {
  for (std::size_t n = 0; n < p.nodes.size(); ++n)
    for (const ValueId v : p.nodes[n].out)
      if (v != kNoValue) p.value(v).at = static_cast<std::int32_t>(n);
}

const Shape& shape_of(const Program& p, const Node& node) { return p.value(shaped_like(p, node)).spec.shape; }

Reading reading_of(const Program& p, const NodePass& pass, ValueId v) {
  const DType dtype = p.value(v).spec.dtype;
  const std::int64_t size = size_of_value(p, v);
  if (dtype == DType::boolean)
    return size == pass.n ? Reading::bools : size == 1 ? Reading::single : Reading::none;
  if (dtype != pass.dtype) return Reading::none;
  if (p.value(elements_of(p, v).value).uniform) return Reading::single;
  if (size != pass.n) return size == 1 ? Reading::single : Reading::view;
  const std::int64_t group = 64 / size_of(pass.dtype);
  const auto padded = [&](std::int64_t n) { return (n + group - 1) / group * group; };
  const auto [whole, first] = elements_of(p, v);
  return first + padded(size) <= padded(size_of_value(p, whole)) ? Reading::elements : Reading::view;
}

std::optional<RowSum> row_sum_of(const Program& p, const Node& node, std::size_t i) {
  const auto inputs = static_cast<std::size_t>(node.vjp->inputs);
  const Shape* shapes[kernels::kFusedInputs];
  kernels::Put put[kernels::kFusedInputs];
  std::int64_t sizes[kernels::kFusedInputs];
  for (std::size_t k = 0; k < inputs; ++k)
    shapes[k] = &node.in_specs[k].shape;
  const kernels::Rows rows = kernels::rows_of(shape_of(p, node), {shapes, inputs});
  for (std::size_t k = 0; k < inputs; ++k) {
    const bool wanted = node.out[k] != kNoValue, all = shapes[k]->size() == rows.count * rows.inner;
    put[k] = !wanted         ? kernels::Put::nothing
             : all           ? node.adds >> k & 1 ? kernels::Put::add : kernels::Put::store
             : rows.moves[k] ? kernels::Put::add
                             : kernels::Put::sum;
    sizes[k] = wanted ? shapes[k]->size() : 0;
  }
  const bool is_sum_of_rows = rows.outer == 1 && rows.moves[i] && rows.strides[0][i] == 0;
  const kernels::Grid grid(rows, put, static_cast<int>(inputs), sizes);
  if (!is_sum_of_rows || grid.copies(static_cast<int>(i)) != grid.pieces()) return {};
  return RowSum{rows.inner, grid.rows_of_band()};
}

bool is_full_sum(const Program& p, const Node& node) {
  return node.kind == Node::Kind::op && node.attrs.view().type == &kAttrsType<ReduceAttrs> &&
         (node.op->name == "sum" || node.op->name == "mean") && size_of_value(p, node.out[0]) == 1;
}

bool is_elementwise_result(const Program& p, const NodePass& pass, ValueId v) {
  const Value& value = p.value(elements_of(p, v).value);
  if (value.from != Value::From::node || value.spec.shape.size() != pass.n || size_of_value(p, v) != pass.n)
    return false;
  const Node& node = p.nodes[static_cast<std::size_t>(value.at)];
  return !is_full_sum(p, node) && node.fused == pass;
}

bool is_read_block_by_block(const Program& p, const Node& node, ValueId v) {
  return node.fused && node.kind != Node::Kind::select && is_elementwise_result(p, *node.fused, v);
}

}   // namespace tapedeck::program
