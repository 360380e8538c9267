// Which nodes can be part of a group, and how values pass between those of one group.
#pragma once
#include <optional>

#include "program/program.h"

namespace tapedeck::program {

/// The value of which v is elements, and from where on.
struct Elements {
  ValueId value;
  std::int64_t first;
};
Elements elements_of(const Program& p, ValueId v);

/// What the nodes of a group have in common: a pass over n elements of f32 or f64.
struct NodePass {
  DType dtype;
  std::int64_t n;
  friend bool operator==(const NodePass&, const NodePass&) = default;
};
/// None where the node cannot be part of a group.
std::optional<NodePass> pass_of(const Program& p, const Node& node);

/// A sum or mean of all elements; `mean` tells which.
bool is_full_sum(const Program& p, const Node& node);
/// Whether v is what a node of a group of this pass computes element by element, so that nodes of the group
/// can read it block by block. Others are sums, which are there when the group has run, or come from
/// elsewhere.
bool is_elementwise_result(const Program& p, const NodePass& pass, ValueId v);

}   // namespace tapedeck::program
