// Sums the gradients of all replicas. Each gradient fits its variable.
#include "distribute/sum.h"

#include <algorithm>
#include <map>

#include "core/format.h"
#include "optim/master.h"

namespace tapedeck {
namespace {

struct Terms {
  Variable variable;
  std::vector<Gradient> parts;   // one per replica
};

// Slices get their variable's shape, which adding them to a dense gradient needs. Halves are added in f32.
Gradient term_of(const Gradient& g, const Variable& v) {
  if (const IndexedSlices* s = g.slices()) return IndexedSlices{in_f32(s->values), s->indices, v.shape()};
  return g.defined() ? Gradient(in_f32(g.tensor())) : g;
}

}   // namespace

Gradient sum_in_tree(std::vector<Gradient> parts) {
  if (std::any_of(parts.begin(), parts.end(), [](const Gradient& g) { return g.is_dense(); }))
    for (Gradient& g : parts)
      if (g.slices()) g = g.dense();
  for (std::size_t stride = 1; stride < parts.size(); stride *= 2)
    for (std::size_t i = 0; i + stride < parts.size(); i += 2 * stride) {
      std::vector<Gradient> two;
      two.push_back(std::move(parts[i]));
      two.push_back(std::move(parts[i + stride]));
      parts[i] = aggregate(std::move(two));
    }
  return parts.empty() ? Gradient() : std::move(parts[0]);
}

void check_term(const Tensor& x, std::string_view caller, std::string_view who, int index) {
  if (!x.defined()) throw_error<ArgumentError>("{}: {} {}: x is undefined", caller, who, index);
  if (x.dtype() == DType::boolean)
    throw_error<DTypeError>("{}: {} {}: x is {}; use astype", caller, who, index, x.spec());
}

std::vector<GradientAndVariable> sum_pairs(std::span<const std::span<const GradientAndVariable>> replicas) {
  std::vector<Terms> all;
  // (variable, n-th occurrence) -> index in `all`
  std::map<std::pair<std::uint64_t, int>, std::size_t> places;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    std::map<std::uint64_t, int> times;
    for (const auto& [gradient, variable] : replicas[r]) {
      const auto [place, first] = places.try_emplace({variable.id(), times[variable.id()]++}, all.size());
      if (first) all.push_back({variable, std::vector<Gradient>(replicas.size())});
      all[place->second].parts[r] = term_of(gradient, variable);
    }
  }

  std::vector<GradientAndVariable> sums;
  for (Terms& t : all)
    sums.push_back({sum_in_tree(std::move(t.parts)), t.variable});
  return sums;
}

}   // namespace tapedeck
