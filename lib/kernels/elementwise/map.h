// The forward pass of an elementwise op: y = f(x...), element by element, for tensors of one dtype that
// broadcast to y. Only the loops over whole groups of 64 bytes are compiled for each f. The code for dtypes,
// shapes, rows and tails is in map.cpp, and common to all ops.
#pragma once
#include "core/cast.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/half_loop.h"
#include "kernels/elementwise/limits.h"
#include "kernels/elementwise/row.h"
#include "kernels/simd/simd.h"
#include "tapedeck/refs.h"
#include "tapedeck/simd/pass.h"

namespace tapedeck::kernels {

/// Computes f for n elements; n is a multiple of kGroup.
template <class T> using MapLoop = void (*)(T* out, const Stream<T>* x, std::int64_t n);
/// Traces f: appends its operations to the code that the thread traces, and returns its result.
using MapTracer = detail::LaneValue (*)(const detail::LaneValue* x);
struct MapKernel {
  int operands;
  MapLoop<float> f32;
  MapLoop<double> f64;
  MapTracer traced_f32 = nullptr, traced_f64 = nullptr;   // null unless kTraced
  MapLoop<std::int8_t> i8 = nullptr;                      // these four: only for ops that support integers
  MapLoop<std::int32_t> i32 = nullptr;
  MapLoop<std::int64_t> i64 = nullptr;
  MapLoop<std::uint8_t> u8 = nullptr;
  MapLoop<std::complex<float>> c64 = nullptr;   // these two: only for ops that support complex numbers
  MapLoop<std::complex<double>> c128 = nullptr;
  MapLoop<Half> f16 = nullptr;   // these two: if null, the f32 loop runs on converted blocks
  MapLoop<Half> bf16 = nullptr;
};

/// Computes y, which may share memory with an operand of its shape.
void run_map(const MapKernel& kernel, Refs x, Tensor& y);
/// Like run_map, for operands and y of one floating-point spec with few elements (is_few).
void run_few(const MapKernel& kernel, Refs x, Tensor& y);

template <class F, class T, std::size_t... I> constexpr MapLoop<T> map_loop(std::index_sequence<I...>) {
  return [](T* out, const Stream<T>* x, std::int64_t n) {
    const Stream<T> p[] = {x[I]...};   // a local, since a vector store may alias anything else
    for (std::int64_t i = 0; i < n; i += kStep<T>)
      F{}(load<Vector<T>>(p[I], i)...).store_unaligned(out + i);
  };
}
/// Like map_loop, for a brief f: the operands are advanced once per group.
template <class F, class T, std::size_t... I> constexpr MapLoop<T> brief_map_loop(std::index_sequence<I...>) {
  return [](T* out, const Stream<T>* x, std::int64_t n) {
    Stream<T> p[] = {x[I]...};
    for (T* const end = out + n; out < end; out += kGroup<T>) {
      for (std::int64_t i = 0; i < kGroup<T>; i += kStep<T>)
        F{}(load<Vector<T>>(p[I], i)...).store_unaligned(out + i);
      ((p[I].p += kGroup<T> & p[I].mask), ...);
    }
  };
}

template <class F, class T, std::size_t... I> constexpr MapTracer map_tracer(std::index_sequence<I...>) {
  if constexpr (kTraced)
    return [](const detail::LaneValue* x) { return tracing::id<T>(F{}(tracing::vector<T>(x[I])...)); };
  else
    return nullptr;
}

/// The number of parameters of F.
template <class F, class... X> constexpr std::size_t arity() {
  if constexpr (std::is_invocable_v<F, X...>)
    return sizeof...(X);
  else
    return arity<F, X..., Batch<double>>();
}

/// The dtypes that a lambda supports: f32 and f64, and additionally integers, complex numbers, or both.
enum class Over { reals, integers, complexes, numbers };
/// A brief lambda takes less time than the conversion of halves, which are then converted in registers, by a
/// separate loop. Other lambdas need too many registers for two vectors at a time.
enum class Body { any, brief };

template <class F, class T, Body body> constexpr MapLoop<T> floating_loop(auto operands) {
  if constexpr (body == Body::brief)
    return brief_map_loop<F, T>(operands);
  else
    return map_loop<F, T>(operands);
}
template <class F, std::size_t N, Over over, Body body> constexpr MapKernel make_map_kernel() {
  constexpr auto operands = std::make_index_sequence<N>{};
  MapKernel k = {N, floating_loop<F, float, body>(operands), floating_loop<F, double, body>(operands),
                 map_tracer<F, float>(operands), map_tracer<F, double>(operands)};
  if constexpr (over == Over::integers || over == Over::numbers) {
    k.i8 = map_loop<F, std::int8_t>(operands);
    k.i32 = map_loop<F, std::int32_t>(operands);
    k.i64 = map_loop<F, std::int64_t>(operands);
    k.u8 = map_loop<F, std::uint8_t>(operands);
  }
  if constexpr (over == Over::complexes || over == Over::numbers) {
    k.c64 = map_loop<F, std::complex<float>>(operands);
    k.c128 = map_loop<F, std::complex<double>>(operands);
  }
  if constexpr (body == Body::brief) {
    k.bf16 = half_map_loop<F, PairsOfBf16>(operands);
#ifdef TAPEDECK_HALF_VECTORS
    k.f16 = half_map_loop<F, PairsOfF16>(operands);
#endif
  }
  return k;
}
template <class F, std::size_t N, Over over = Over::reals, Body body = Body::any>
inline constexpr MapKernel map_kernel = make_map_kernel<F, N, over, body>();

}   // namespace tapedeck::kernels
