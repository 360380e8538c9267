// Which nodes can be part of a group, and how values pass between those of one group.
#pragma once
#include "program/program.h"

namespace tapedeck::program {

/// The value of which v is elements, and from where on.
struct Elements {
  ValueId value;
  std::int64_t first;
};
Elements elements_of(const Program& p, ValueId v);

/// Sets Node::fused of all nodes, and Value::uniform.
void find_passes(Program& p);
/// Sets Value::at of what nodes give, after nodes were added or removed.
void number_values(Program& p);

/// Whether v is a constant of ones.
bool is_one(const Program& p, ValueId v);

/// A sum or mean of all elements; `mean` tells which.
bool is_full_sum(const Program& p, const Node& node);

/// A gradient of a pull that is the sum of all rows, of `width` elements each, in bands of so many rows: one
/// sum for each band, then these in order.
struct RowSum {
  std::int64_t width, rows_of_band;
};
/// Of gradient i of a pull; none where it is no such sum.
std::optional<RowSum> row_sum_of(const Program& p, const Node& node, std::size_t i);

/// Whether v is what a node of a group of this pass computes element by element, so that nodes of the group
/// can read it block by block. Others are sums, which are there when the group has run, or come from
/// elsewhere.
bool is_elementwise_result(const Program& p, const NodePass& pass, ValueId v);
/// Whether the node reads v so, in a group with the node that computes it.
bool is_read_block_by_block(const Program& p, const Node& node, ValueId v);

/// How a node of a group reads an operand.
enum class Reading : std::uint8_t {
  elements,   // one for each element of the pass, in whole groups of 64 bytes
  single,     // one for all of them: it has one, or is a uniform constant
  bools,      // one for each element, as bytes
  view,       // those that view_of() selects
  none,       // it cannot
};
Reading reading_of(const Program& p, const NodePass& pass, ValueId v);

/// The shape of the pass.
const Shape& shape_of(const Program& p, const Node& node);

}   // namespace tapedeck::program
