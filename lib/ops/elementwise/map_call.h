// A call of a user's map, as its derivatives see it.
#pragma once
#include "tapedeck/map.h"

namespace tapedeck::detail {

struct MapCall {
  const MapFunction& m;
  Attrs attrs;
  Refs x;
  const Shape& shape;             // of the results
  const kernels::Shift* shifts;   // of the inputs; null where none is moved

  DType dtype() const { return x[0].dtype(); }
  kernels::Shift shift(int i) const { return shifts ? shifts[i] : kernels::Shift(); }
};

/// Adds to dx the gradients of the wanted inputs, from cotangents of which some may be undefined and all may
/// be stacked. By one fused pass, which is an op where a recorder follows; or by products.
void pull(const MapCall& c, std::vector<Tensor> dy, unsigned wanted, std::span<Gradient> dx);
/// The same for tangents: dy gets those of the results, from those of the inputs.
void push(const MapCall& c, Refs dx, std::span<Tensor> dy);

/// These passes, whatever follows.
void pull_in_passes(const MapCall& c, std::vector<Tensor> dy, unsigned wanted, std::span<Gradient> dx);
void push_in_passes(const MapCall& c, Refs dx, std::span<Tensor> dy);

/// The axes that stacked tensors have in front; none where all are undefined. They are those of the results,
/// or of the inputs.
Shape front_of_results(const MapCall& c, std::span<const Tensor> dy);
Shape front_of_inputs(const MapCall& c, Refs dx);

/// f by ops on tensors in place of the inputs: its results, broadcast to their shape.
std::vector<Tensor> results_by_ops(const MapCall& c, std::span<const Tensor> x);
/// x, or tangents of it, moved; and its transpose.
Tensor moved(const Tensor& x, kernels::Shift shift);

/// Pointers to tensors, for Refs.
std::vector<const Tensor*> pointers_to(std::span<const Tensor> x);
inline Refs refs(const std::vector<const Tensor*>& x) { return {x.data(), static_cast<int>(x.size())}; }

}   // namespace tapedeck::detail
