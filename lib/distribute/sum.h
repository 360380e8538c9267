// Sums over replicas, in one order wherever the replicas are.
#pragma once
#include "tapedeck/optimizer.h"

namespace tapedeck {

/// parts[i], of replica i, is added to by parts[i + 1] for even i, then by parts[i + 2] for every fourth, and
/// so on: a binomial tree, in which a message goes from replica i + stride to replica i. Nones do not count;
/// slices are made dense first where any part is.
Gradient sum_in_tree(std::vector<Gradient> parts);

/// One pair for each variable that a replica has, in order of first appearance, replica by replica; a
/// variable that a replica names several times has as many. A gradient that is none, or not there, counts as
/// zero; where all are, the sum is none.
std::vector<GradientAndVariable> sum_pairs(std::span<const std::span<const GradientAndVariable>> replicas);

}   // namespace tapedeck
