// Sums gradient terms. In: dense or sparse terms of one tensor. Out: one gradient, in the buffer of a
// uniquely owned term if there is one. Uses ops, so that an outer tape records the sum.
#include "core/format.h"
#include "op/primitives.h"
#include "tape/imperative_grad.h"

namespace tapedeck {
namespace {

IndexedSlices joined(const std::vector<const IndexedSlices*>& terms) {
  std::vector<Tensor> values, indices;
  std::optional<Shape> dense_shape;
  for (const IndexedSlices* s : terms) {
    if (s->values.dtype() != terms[0]->values.dtype())
      throw_error<DTypeError>("aggregate: dtypes differ: values is {} and {}", terms[0]->values.spec(),
                              s->values.spec());
    if (dense_shape && s->dense_shape && *s->dense_shape != *dense_shape)
      throw_error<ShapeError>("aggregate: shapes differ: dense_shape is {} and {}", *dense_shape,
                              *s->dense_shape);
    if (!dense_shape) dense_shape = s->dense_shape;
    values.push_back(s->values);
    indices.push_back(s->indices);
  }
  return {concat(values, 0), concat(indices, 0), dense_shape};
}

Gradient sum_terms(std::span<Gradient> terms) {
  std::vector<const IndexedSlices*> sliced;
  std::vector<Tensor> dense;
  dense.reserve(terms.size());
  for (Gradient& g : terms) {
    if (g.slices())
      sliced.push_back(g.slices());
    else
      dense.push_back(std::move(g).dense());
  }
  if (dense.empty()) return joined(sliced);
  if (!sliced.empty()) dense.push_back(to_dense(sliced.size() == 1 ? *sliced[0] : joined(sliced)));
  return add_n(std::move(dense));
}

}   // namespace

const VSpace kGradients = {
    .aggregate = sum_terms,
    .nbytes = [](const Gradient& g) { return g.nbytes(); },
    .zeros = [](const Spec& s) { return zeros(s.shape, s.dtype); },
    .ones = [](const Spec& s) { return ones(s.shape, s.dtype); },
};

Gradient aggregate(std::vector<Gradient> terms) {
  std::erase_if(terms, [](const Gradient& g) { return !g.defined(); });
  for (const Gradient& g : terms)
    if (g.slices()) validate(*g.slices(), "aggregate");
  return terms.empty() ? Gradient() : terms.size() == 1 ? std::move(terms[0]) : sum_terms(terms);
}

}   // namespace tapedeck
