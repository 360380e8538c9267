// map(f): the kernel of an elementwise op. In: tensors of one dtype that broadcast to y. Out: f of every
// element, in one pass over vectors. Only the loop over whole groups is compiled for each op; types, shapes,
// rows and tails are in map.cpp, once.
#pragma once
#include "kernels/elementwise/broadcast.h"
#include "kernels/simd/simd.h"
#include "tapedeck/op.h"
#include "tapedeck/simd/pass.h"

namespace tapedeck {
namespace kernels {

template <class T> Vector<T> load(const Stream<T>& x, std::int64_t i) {
  return Vector<T>::load_unaligned(x.p + (i & x.mask));
}

/// f over whole groups of 64 bytes: n is a multiple of kGroup.
template <class T> using MapLoop = void (*)(T* out, const Stream<T>* x, std::int64_t n);
struct MapKernel {
  int operands;
  MapLoop<float> f32;
  MapLoop<double> f64;
  MapLoop<std::int8_t> i8 = nullptr;   // integers: only for ops that take them
  MapLoop<std::int32_t> i32 = nullptr;
  MapLoop<std::int64_t> i64 = nullptr;
  MapLoop<std::uint8_t> u8 = nullptr;
  MapLoop<std::complex<float>> c64 = nullptr;   // the same for complex numbers
  MapLoop<std::complex<double>> c128 = nullptr;
};

void run_map(const MapKernel& kernel, Refs x, Tensor& y);

template <class F, class T, std::size_t... I> constexpr MapLoop<T> map_loop(std::index_sequence<I...>) {
  return [](T* out, const Stream<T>* x, std::int64_t n) {
    const Stream<T> p[] = {x[I]...};   // locals: a vector store may alias anything else
    for (std::int64_t i = 0; i < n; i += kStep<T>)
      F{}(load(p[I], i)...).store_unaligned(out + i);
  };
}

template <class F, class... X> constexpr std::size_t arity() {
  if constexpr (std::is_invocable_v<F, X...>)
    return sizeof...(X);
  else
    return arity<F, X..., Batch<double>>();
}

/// The dtypes that a lambda is for, beside f32 and f64.
enum class Over { reals, integers, complexes, numbers };

template <class F, std::size_t N, Over over> constexpr MapKernel make_map_kernel() {
  constexpr auto operands = std::make_index_sequence<N>{};
  MapKernel k = {N, map_loop<F, float>(operands), map_loop<F, double>(operands)};
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
  return k;
}
template <class F, std::size_t N, Over over = Over::reals>
inline constexpr MapKernel map_kernel = make_map_kernel<F, N, over>();

template <Over over, class F> constexpr Kernel map_over(F) {
  return {[](const Call& c, std::span<Tensor> y) {
            run_map(map_kernel<F, arity<F, Batch<double>>(), over>, c.x, y[0]);
          },
          Outputs::may_overwrite};
}

}   // namespace kernels

/// Lifts a lambda on vectors over f32 and f64 and broadcasting.
template <class F> constexpr Kernel map(F f) { return kernels::map_over<kernels::Over::reals>(f); }
/// The same, over the integers too; over c64 and c128 too; over all of these.
template <class F> constexpr Kernel map_arithmetic(F f) {
  return kernels::map_over<kernels::Over::integers>(f);
}
template <class F> constexpr Kernel map_complex(F f) {
  return kernels::map_over<kernels::Over::complexes>(f);
}
template <class F> constexpr Kernel map_numbers(F f) { return kernels::map_over<kernels::Over::numbers>(f); }

}   // namespace tapedeck
