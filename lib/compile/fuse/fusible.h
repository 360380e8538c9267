// Which nodes can be fused into a group, and how a node of a group reads its operands.
#pragma once
#include <optional>

#include "compile/ir/program.h"
#include "kernels/elementwise/decision.h"

namespace tapedeck::compiled {

/// The iteration space that the nodes of a group share: n elements of f32 or f64.
struct Pass {
  DType dtype;
  std::int64_t n;
  friend bool operator==(const Pass&, const Pass&) = default;
};

/// The kernel that computes the node in a group, which represents bools as the numbers 0 and 1; null if the
/// node is no comparison, logic or selection.
inline const kernels::MapKernel* logic_kernel(const OpNode& node) {
  return node.op->forward.decision ? &node.op->forward.decision->numbers : nullptr;
}
/// Whether the node converts bools to another dtype.
inline bool is_cast_of_bools(const OpNode& node) {
  return node.op->meaning == Meaning::cast && node.in[0].spec.dtype == DType::boolean;
}

/// How a node of a group reads an operand.
enum class Reading : std::uint8_t {
  elements,   // one for each element of the pass, readable in whole lines of 64 bytes
  single,     // a single element for all: the operand has one element, or is a uniform constant
  bools,      // one for each element, as bytes
  view,       // broadcast to the shape of the pass
  none,       // a group cannot read it
};

/// A gradient that is the sum of rows of `width` elements, added up in bands of `rows_of_band` rows: one sum
/// per band, then the sums in order.
struct RowSum {
  std::int64_t width, rows_of_band;
};

class Passes {
 public:
  explicit Passes(const Program& p);

  /// The pass of a node, or none if it cannot be part of a group.
  const std::optional<Pass>& operator[](NodeId n) const { return of_[n]; }
  /// Whether v is a constant whose elements all have the same bits.
  bool is_uniform(ValueId v) const { return uniform_[v]; }

  Reading reading_of(const Pass& pass, const Access& a) const;
  /// Whether a node of this pass computes v element by element, so that other nodes of the group can read v
  /// block by block. Other values are sums, which are complete only after the group, or come from outside the
  /// group.
  bool is_elementwise_result(const Pass& pass, ValueId v) const;
  /// Whether the node can read an operand block by block, in one group with the node that computes it.
  bool is_read_block_by_block(NodeId reader, const Access& a) const;

 private:
  std::optional<Pass> pass_of(const Node& node) const;
  Pass wanted_pass(const Node& node) const;
  DType dtype_of_bools(const Node& node) const;

  const Program& p_;
  IdVector<ValueId, bool> uniform_;
  IdVector<NodeId, std::optional<Pass>> of_;
};

/// Whether the node is a sum or mean of all elements.
bool is_full_sum(const Program& p, const Node& node);
/// The sum of rows that a result of a vjp is; none if it is no such sum.
std::optional<RowSum> row_sum_of(const VjpNode& node, const VjpNode::Result& r);
/// The shape of the pass of a node.
const Shape& shape_of_pass(const Program& p, const Node& node);

}   // namespace tapedeck::compiled
