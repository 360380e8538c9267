// map(f): the forward function of an elementwise op, made of a lambda f of SIMD vectors. It computes f of
// every element in one pass, over operands that broadcast.
#pragma once
#include "kernels/elementwise/map.h"
#include "tapedeck/op.h"

namespace tapedeck {
namespace detail {

template <kernels::Over over, class F> constexpr Kernel map_over(F) {
  constexpr std::size_t inputs = kernels::arity<F, kernels::Batch<double>>();
  constexpr const kernels::MapKernel& loops = kernels::map_kernel<F, inputs, over>;
  return {[](const Call& c, std::span<Tensor> y) { kernels::run_map(loops, c.x, y[0]); },
          Outputs::may_overwrite, Takes::halves, &loops};
}

}   // namespace detail

/// For f32 and f64.
template <class F> constexpr Kernel map(F f) { return detail::map_over<kernels::Over::reals>(f); }
/// For these and the integers; for these and c64 and c128; for all of them.
template <class F> constexpr Kernel map_arithmetic(F f) {
  return detail::map_over<kernels::Over::integers>(f);
}
template <class F> constexpr Kernel map_complex(F f) { return detail::map_over<kernels::Over::complexes>(f); }
template <class F> constexpr Kernel map_numbers(F f) { return detail::map_over<kernels::Over::numbers>(f); }

}   // namespace tapedeck
