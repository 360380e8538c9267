// A call of a user's map, and the functions that differentiate it.
#pragma once
#include "tapedeck/map.h"

namespace tapedeck::detail {

struct MapCall {
  const MapFunction& m;
  Attrs attrs;
  Refs x;
  const Shape& shape;             // of the results
  const kernels::Shift* shifts;   // of the inputs; null if none is shifted

  DType dtype() const { return x[0].dtype(); }
  kernels::Shift shift(int i) const { return shifts ? shifts[i] : kernels::Shift(); }
};

/// Adds the gradients of the wanted inputs to dx. Some cotangents may be undefined, and all may be stacked.
/// Runs one fused pass, as an op if an operand is tracked; or multiplies the cotangents by partials.
void pull(const MapCall& c, std::vector<Tensor> dy, unsigned wanted, std::span<Gradient> dx);
/// Likewise, sets dy to the tangents of the results. Some tangents of the inputs may be undefined.
void push(const MapCall& c, Refs dx, std::span<Tensor> dy);

/// Run the fused pass directly, even if operands are tracked.
void pull_in_passes(const MapCall& c, std::vector<Tensor> dy, unsigned wanted, std::span<Gradient> dx);
void push_in_passes(const MapCall& c, Refs dx, std::span<Tensor> dy);

/// The stacking axes of cotangents of the results, or of tangents of the inputs. None if all are undefined.
Shape front_of_results(const MapCall& c, std::span<const Tensor> dy);
Shape front_of_inputs(const MapCall& c, Refs dx);

/// The results of f, computed by ops on tensors x in place of the inputs, and broadcast to c.shape.
std::vector<Tensor> results_by_ops(const MapCall& c, std::span<const Tensor> x);
/// x shifted along its last axis. For tangents fill is 0, and the transpose is the shift by -by.
Tensor moved(const Tensor& x, kernels::Shift shift);

/// Pointers to tensors, for Refs.
std::vector<const Tensor*> pointers_to(std::span<const Tensor> x);
inline Refs refs(const std::vector<const Tensor*>& x) { return {x.data(), static_cast<int>(x.size())}; }

}   // namespace tapedeck::detail
