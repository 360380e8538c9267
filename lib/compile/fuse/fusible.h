// Which nodes can be fused into a group, and how a node of a group reads its operands.
#pragma once
#include <optional>

#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// What the nodes of a group have in common: they run over n elements of f32 or f64.
struct Pass {
  DType dtype;
  std::int64_t n;
  friend bool operator==(const Pass&, const Pass&) = default;
};

/// How a node of a group reads an operand.
enum class Reading : std::uint8_t {
  elements,   // one for each element of the pass, in whole groups of 64 bytes
  single,     // one for all of them: it has one, or is a uniform constant
  bools,      // one for each element, as bytes
  view,       // broadcast to the shape of the pass
  none,       // it cannot
};

/// A gradient that is the sum of all rows, of `width` elements each, in bands of so many rows: one sum for
/// each band, then these in order.
struct RowSum {
  std::int64_t width, rows_of_band;
};

class Passes {
 public:
  explicit Passes(const Program& p);

  /// The pass of a node that can be part of a group.
  const std::optional<Pass>& operator[](NodeId n) const { return of_[n]; }
  /// Whether all elements of a constant have the same bits; whether it is ones.
  bool is_uniform(ValueId v) const { return uniform_[v]; }
  bool is_one(const Access& a) const;

  Reading reading_of(const Pass& pass, const Access& a) const;
  /// Whether v is what a node of a group of this pass computes element by element, so that nodes of the group
  /// can read it block by block. Others are sums, which are there when the group has run, or come from
  /// elsewhere.
  bool is_elementwise_result(const Pass& pass, ValueId v) const;
  /// Whether the node reads an operand so, in a group with the node that computes it.
  bool is_read_block_by_block(NodeId reader, const Access& a) const;

 private:
  std::optional<Pass> pass_of(const Node& node) const;
  Pass wanted_pass(const Node& node) const;
  DType dtype_of_bools(const Node& node) const;

  const Program& p_;
  IdVector<ValueId, bool> uniform_;
  IdVector<NodeId, std::optional<Pass>> of_;
};

/// A sum or mean of all elements.
bool is_full_sum(const Program& p, const Node& node);
/// Of a result of a vjp that is the sum of rows; none where it is no such sum.
std::optional<RowSum> row_sum_of(const VjpNode& node, const VjpNode::Result& r);
/// The shape of the pass.
const Shape& shape_of_pass(const Program& p, const Node& node);

}   // namespace tapedeck::compiled
