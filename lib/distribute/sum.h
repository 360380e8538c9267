// Sums of gradients over replicas, in a fixed order, the same in one process and across ranks.
#pragma once
#include "tapedeck/optimizer.h"

namespace tapedeck {

/// Adds in a binomial tree: parts[i + 1] to parts[i] for even i, then parts[i + 2] for every fourth i, and so
/// on; with ranks a message goes from rank i + stride to rank i. Undefined gradients are skipped. If any part
/// is dense, sparse ones are made dense first.
Gradient sum_in_tree(std::vector<Gradient> parts);

/// Throws unless sums over replicas support x. `who` is "replica" or "rank", of this index.
void check_term(const Tensor& x, std::string_view caller, std::string_view who, int index);

/// One pair per variable, in order of first appearance, replica by replica; a variable that a replica lists
/// several times has as many pairs. Undefined or missing gradients count as zero; if all are, the sum is
/// undefined.
std::vector<GradientAndVariable> sum_pairs(std::span<const std::span<const GradientAndVariable>> replicas);

}   // namespace tapedeck
