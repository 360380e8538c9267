// Weighted sums along one axis, given by a sparse table of positions and weights. All image resizing and its
// adjoints are such sums.
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
inline WeightTable transposed(const WeightTable& table) {
  WeightTable t;
  t.inputs = table.outputs();
  const std::size_t n = table.position.size();
  t.begin.assign(static_cast<std::size_t>(table.inputs) + 1, 0);
  t.position.resize(n);
  t.weight.resize(n);
  for (const std::int64_t p : table.position)
    ++t.begin[static_cast<std::size_t>(p) + 1];
  for (std::size_t i = 1; i < t.begin.size(); ++i)
    t.begin[i] += t.begin[i - 1];
  std::vector<std::int64_t> next(t.begin.begin(), t.begin.end() - 1);
  for (std::int64_t o = 0; o < table.outputs(); ++o)
    for (std::int64_t k = table.begin[static_cast<std::size_t>(o)];
         k < table.begin[static_cast<std::size_t>(o) + 1]; ++k) {
      const auto from = static_cast<std::size_t>(k),
                 to = static_cast<std::size_t>(next[static_cast<std::size_t>(table.position[from])]++);
      t.position[to] = o;
      t.weight[to] = table.weight[from];
    }
  return t;
}

/// x is [before, table.inputs, after] and y [before, outputs, after], both f32 or f64. Results do not depend
/// on the number of threads.
void weighted_sums(const WeightTable& table, const Tensor& x, std::int64_t before, std::int64_t after,
                   Tensor& y);

}   // namespace tapedeck::kernels
