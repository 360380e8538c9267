// In: a program. Out: for each node, the pass over elements that it can be part of.
#include "compile/fuse/fusible.h"

#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "kernels/elementwise/grid.h"

namespace tapedeck::compiled {
namespace {

// Whether every operand of a vjp has all elements of the pass or a single one, so that its sums are over all
// elements.
bool is_flat(const VjpNode& node, const Pass& pass) {
  return std::all_of(node.in.begin(), node.in.begin() + node.kernel->inputs,
                     [&](const Access& a) { return a.size() == pass.n || a.size() == 1; });
}
bool has_known_sums(const Program& p, const VjpNode& node, const Pass& pass) {
  const bool flat = is_flat(node, pass);
  return std::all_of(node.results.begin(), node.results.end(), [&](const VjpNode::Result& r) {
    return p[r.value].spec.shape.size() == pass.n || flat || row_sum_of(node, r);
  });
}

// Whether a view has a small inner stride. Transpositions and the like are faster as separate kernels.
bool is_near(const kernels::StridedView& view) {
  constexpr std::int64_t near = 4;
  const std::int64_t step = view.ndim() ? view[view.ndim() - 1].stride : 0;
  return step >= -near && step <= near;
}

// Whether an operand repeats narrow rows or columns. Kernels have special loops for these, whereas a group
// would fetch them run by run. A single row does not count, since a group lays it out. A run of a column is
// one number, with which a group fills a row.
bool has_narrow_rows(const Program& p, const Node& node, const Access& a) {
  constexpr std::int64_t narrow_row = 64, narrow_column = 8, many = 4096;   // elements of a run; of the pass
  const Shape& shape = shape_of_pass(p, node);
  if (shape.size() < many || a.size() == shape.size()) return false;
  const kernels::StridedView view = kernels::broadcast(a.spec.shape, shape);
  if (view.ndim() < 2 || (view.ndim() == 2 && view[0].stride == 0)) return false;
  const auto [extent, stride] = view[view.ndim() - 1];
  return extent < (stride == 0 ? narrow_column : narrow_row);
}

bool can_be_fused(const Program& p, const Node& node) {
  if (as<VjpNode>(node) || as<JvpNode>(node)) return true;
  if (const SelectNode* n = as<SelectNode>(node)) return is_near(*n->view) && n->in.size() > 1;
  if (const OpNode* n = as<OpNode>(node))
    return n->out.size() == 1 && (n->map || is_full_sum(p, node) || logic_kernel(*n) || is_cast_of_bools(*n));
  return false;
}

bool has_one_pattern(const Value& v) {
  if (v.from != Value::From::constant || v.spec.shape.size() == 0) return false;
  const auto size = static_cast<std::size_t>(size_of(v.spec.dtype));
  const std::byte* const x = v.constant.raw();   // compares each element with the next one
  return !std::memcmp(x, x + size, static_cast<std::size_t>(v.constant.nbytes()) - size);
}

// The spec of an operand or result that has the shape of the pass.
const Spec& shaped_like(const Program& p, const Node& node) {
  if (const VjpNode* n = as<VjpNode>(node)) return n->dy().spec;
  if (const JvpNode* n = as<JvpNode>(node)) return p[n->out].spec;
  if (const SelectNode* n = as<SelectNode>(node)) return p[n->out].spec;
  const OpNode& n = std::get<OpNode>(node);
  return is_full_sum(p, node) ? n.in[0].spec : p[n.out[0]].spec;
}

}   // namespace

const Shape& shape_of_pass(const Program& p, const Node& node) { return shaped_like(p, node).shape; }

bool is_full_sum(const Program& p, const Node& node) {
  const OpNode* n = as<OpNode>(node);
  return n && (n->op->meaning == Meaning::sum || n->op->meaning == Meaning::mean) && n->out[0] &&
         p[n->out[0]].spec.shape.size() == 1;
}

std::optional<RowSum> row_sum_of(const VjpNode& node, const VjpNode::Result& result) {
  const std::size_t inputs = node.inputs();
  const Shape* shapes[kernels::kFusedInputs];
  kernels::Put put[kernels::kFusedInputs];
  std::int64_t sizes[kernels::kFusedInputs] = {};
  for (std::size_t k = 0; k < inputs; ++k)
    shapes[k] = &node.in[k].spec.shape;
  const kernels::Rows rows = kernels::rows_of(node.dy().spec.shape, {shapes, inputs});
  std::fill_n(put, inputs, kernels::Put::nothing);
  for (const VjpNode::Result& r : node.results) {
    bool adds = r.before.reads();
    for (std::size_t k = 0; k < inputs; ++k) {
      if (!(r.inputs >> k & 1)) continue;
      const bool all = shapes[k]->size() == rows.count * rows.inner;
      put[k] = all             ? adds ? kernels::Put::add : kernels::Put::store
               : rows.moves[k] ? kernels::Put::add
                               : kernels::Put::sum;
      sizes[k] = shapes[k]->size();
      adds = true;
    }
  }
  std::size_t i = 0;
  while (!(result.inputs >> i & 1))
    ++i;
  const bool is_sum_of_rows = rows.outer == 1 && rows.moves[i] && rows.strides[0][i] == 0;
  const kernels::Grid grid(rows, put, static_cast<int>(inputs), sizes);
  if (!is_sum_of_rows || grid.copies(static_cast<int>(i)) != grid.pieces()) return {};
  return RowSum{rows.inner, grid.rows_of_band()};
}

Passes::Passes(const Program& p) : p_(p), uniform_(p.values().size(), false), of_(p.size()) {
  for (const ValueId v : ids_of(p.values()))
    uniform_[v] = has_one_pattern(p[v]);
  for (const NodeId n : ids_of(p.nodes()))
    of_[n] = pass_of(p[n]);
}

// For logic on bools: the dtype of a group in which one of the operands is computed.
DType Passes::dtype_of_bools(const Node& node) const {
  DType dtype = DType::boolean;
  for_each_operand(node, [&](const Access& a) {
    const NodeId from = p_[a.of].node;
    if (dtype == DType::boolean && from && of_[from]) dtype = of_[from]->dtype;
  });
  return dtype;
}

Pass Passes::wanted_pass(const Node& node) const {
  const Spec& shaped = shaped_like(p_, node);
  DType dtype = shaped.dtype;
  if (const OpNode* n = as<OpNode>(node); n && dtype == DType::boolean && logic_kernel(*n)) {
    dtype = n->in[0].spec.dtype;
    if (dtype == DType::boolean) dtype = dtype_of_bools(node);
  }
  return {dtype, shaped.shape.size()};
}

std::optional<Pass> Passes::pass_of(const Node& node) const {
  if (!can_be_fused(p_, node)) return {};
  const Pass pass = wanted_pass(node);
  if ((pass.dtype != DType::f32 && pass.dtype != DType::f64) || pass.n == 0) return {};
  if (as<SelectNode>(node)) return pass;
  bool readable = true;
  for_each_operand(node, [&](const Access& a) {
    const Reading how = reading_of(pass, a);
    readable &= how != Reading::none && !(how == Reading::view && has_narrow_rows(p_, node, a));
  });
  const VjpNode* vjp = as<VjpNode>(node);
  return readable && (!vjp || has_known_sums(p_, *vjp, pass)) ? std::optional(pass) : std::nullopt;
}

Reading Passes::reading_of(const Pass& pass, const Access& a) const {
  const std::int64_t size = a.size();
  if (a.spec.dtype == DType::boolean)
    return size == pass.n ? Reading::bools : size == 1 ? Reading::single : Reading::none;
  if (a.spec.dtype != pass.dtype) return Reading::none;
  if (uniform_[a.of]) return Reading::single;
  if (size != pass.n) return size == 1 ? Reading::single : Reading::view;
  const std::int64_t group = 64 / size_of(pass.dtype);
  const auto padded = [&](std::int64_t n) { return (n + group - 1) / group * group; };
  return a.first + padded(size) <= padded(p_[a.of].spec.shape.size()) ? Reading::elements : Reading::view;
}

bool Passes::is_elementwise_result(const Pass& pass, ValueId v) const {
  const Value& value = p_[v];
  if (value.from != Value::From::node || value.spec.shape.size() != pass.n) return false;
  return of_[value.node] == pass && !is_full_sum(p_, p_[value.node]);
}

bool Passes::is_read_block_by_block(NodeId reader, const Access& a) const {
  return of_[reader] && !as<SelectNode>(p_[reader]) && a.size() == of_[reader]->n &&
         is_elementwise_result(*of_[reader], a.of);
}

}   // namespace tapedeck::compiled
