// map(f): the forward function of an elementwise op, made of a lambda f of SIMD vectors. It computes f of
// every element in one pass, over operands that broadcast.
#pragma once
#include "kernels/elementwise/map.h"
#include "tapedeck/op.h"

namespace tapedeck {
namespace detail {

using kernels::Body, kernels::Over;
template <Over over, Body body = Body::any, class F> constexpr Kernel map_over(F) {
  constexpr std::size_t inputs = kernels::arity<F, kernels::Batch<double>>();
  constexpr const kernels::MapKernel& loops = kernels::map_kernel<F, inputs, over, body>;
  return {[](const Call& c, std::span<Tensor> y) { kernels::run_map(loops, c.x, y[0]); },
          Outputs::may_overwrite, KernelDtypes::native_and_halves, &loops};
}

}   // namespace detail

/// Kernels for f32 and f64; map_complex also for c64 and c128.
template <class F> constexpr Kernel map(F f) { return detail::map_over<detail::Over::reals>(f); }
template <class F> constexpr Kernel map_complex(F f) { return detail::map_over<detail::Over::complexes>(f); }
/// Like map and map_complex, for an f that is cheaper than the conversion of f16 and bf16 to f32 and back:
/// these are then converted in registers, by a separate loop.
template <class F> constexpr Kernel map_short(F f) {
  return detail::map_over<detail::Over::reals, detail::Body::brief>(f);
}
template <class F> constexpr Kernel map_short_complex(F f) {
  return detail::map_over<detail::Over::complexes, detail::Body::brief>(f);
}
/// Like map_short, and also for the integers; map_numbers for c64 and c128, too.
template <class F> constexpr Kernel map_arithmetic(F f) {
  return detail::map_over<detail::Over::integers, detail::Body::brief>(f);
}
template <class F> constexpr Kernel map_numbers(F f) {
  return detail::map_over<detail::Over::numbers, detail::Body::brief>(f);
}

}   // namespace tapedeck
