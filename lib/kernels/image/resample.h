// Weighted sums along one axis, given by a sparse table of positions and weights. All image resizing, and its
// adjoints, are made of these.
#pragma once
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// A sparse matrix in CSR form: output o is the sum of weight[t] · input[position[t]] for t in [begin[o],
/// begin[o + 1]).
struct WeightTable {
  std::int64_t inputs = 0;
  std::vector<std::int64_t> begin = {0}, position = {};
  std::vector<double> weight = {};

  std::int64_t outputs() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  void append(std::int64_t at, double w) { position.push_back(at), weight.push_back(w); }
  void end_output() { begin.push_back(static_cast<std::int64_t>(position.size())); }
};
/// The transposed matrix, for the adjoint.
WeightTable transposed(const WeightTable& table);

/// x is [before, table.inputs, after] and y [before, outputs, after], both f32 or f64. Results do not depend
/// on the number of threads.
void weighted_sums(const WeightTable& table, const Tensor& x, std::int64_t before, std::int64_t after,
                   Tensor& y);

}   // namespace tapedeck::kernels
