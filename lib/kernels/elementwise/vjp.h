// The fused passes behind an elementwise op. Backward: dx = dy * partial for every wanted input at once,
// summed over broadcast axes. Forward: dy = the sum of partial * dx.
#pragma once
#include "kernels/elementwise/map.h"

namespace tapedeck::kernels {

/// The inputs, then the output, then dy; out are the gradients of the inputs.
template <class T> using VjpRow = PassRow<T, kMaxInputs + 2, kMaxInputs>;
template <class T> using VjpLoop = void (*)(const VjpRow<T>&);
struct VjpKernel {
  int inputs;
  unsigned read;                // bit i: input i is read; bit `inputs`: the output is
  unsigned reads[kMaxInputs];   // the same for the gradient of each input
  VjpLoop<float> f32;
  VjpLoop<double> f64;
};

/// x[i] and y may be hollow where no wanted gradient reads them; dx[i] is undefined where not wanted, else
/// has the shape of x[i]. dx of dy's shape may be dy. Where bit i of `adds` is set, dx[i] is of dy's shape
/// and is added to; it may be a dx before it.
void run_vjp(const VjpKernel& kernel, const Tensor& dy, const Tensor* const* x, const Tensor* y,
             const Tensor* dx, unsigned adds = 0);

/// The tensors of a pass over `shape`, of n elements: inputs, which broadcast to it, then further operands of
/// that shape. What is not in `read` need not have data.
struct PassTensors {
  DType dtype;
  const Shape& shape;
  std::int64_t n;
  int inputs, operands, results;
  bool gradients;           // result i is the gradient of input i, of its shape; else they are of this shape
  unsigned read;            // bit i: operand i is read
  const Tensor* const* x;   // operands
  const Tensor* out;        // results; undefined where not wanted
  unsigned adds = 0;        // bit k: result k, which has every element, is added to what is there
};
/// A user's loops over them.
void run_pass(const UserLoops& loops, const void* f, const PassTensors& pass);

/// The group at i of `out`, which is null where nothing is put.
template <class T> void put(Put put, T* out, std::int64_t i, const Batch<T>& v, Batch<T>& sum) {
  switch (put) {
    case Put::nothing:
      return;
    case Put::store:
      return v.store_unaligned(out + i);
    case Put::add:
      return (Batch<T>::load_unaligned(out + i) + v).store_unaligned(out + i);
    case Put::sum:
      sum += v;
      return;
  }
}

/// Partial::at(x..., y) is the partial of one input, Partial::read the arguments that it reads.
template <class... Partial> struct Fused {
  static constexpr std::size_t N = sizeof...(Partial);
  static constexpr unsigned read = (Partial::read | ...);

  template <class T, std::size_t... I, std::size_t... K>
  static constexpr VjpLoop<T> vjp(std::index_sequence<I...>, std::index_sequence<K...>) {
    return [](const VjpRow<T>& row) {
      const VjpRow<T> r = row;   // locals: a vector store may alias anything else
      Batch<T> sums[N];
      for (Batch<T>& s : sums)
        s = Batch<T>(T(0));
      for (std::int64_t i = 0; i < r.n; i += kWidth<T>) {
        const Batch<T> dy = Batch<T>::load_unaligned(r.x[N + 1].p + i);
        const Batch<T> x[] = {load_read<T, I>(r, i)...};
        (put<T>(r.put[K], r.out[K], i, dy * Partial::template at<Batch<T>>(x[I]...), sums[K]), ...);
      }
      ((r.put[K] == Put::sum ? void(*r.out[K] += xsimd::hadd(sums[K])) : void()), ...);
    };
  }
  template <class T, std::size_t I> static Batch<T> load_read(const VjpRow<T>& r, std::int64_t i) {
    if constexpr (read >> I & 1)
      return load(r.x[I], i);
    else
      return Batch<T>(T(0));
  }
  static constexpr VjpKernel vjp_kernel() {
    constexpr auto args = std::make_index_sequence<N + 1>{};
    constexpr auto inputs = std::make_index_sequence<N>{};
    return {N, read, {Partial::read...}, vjp<float>(args, inputs), vjp<double>(args, inputs)};
  }

  /// Of x..., y, dx...
  struct Jvp {
    template <class... V> auto operator()(const V&... all) const {
      const std::common_type_t<V...> v[] = {all...};
      return sum(std::make_index_sequence<N>{}, std::make_index_sequence<N + 1>{}, v);
    }
    template <std::size_t... K, std::size_t... I, class V>
    static V sum(std::index_sequence<K...>, std::index_sequence<I...>, const V* v) {
      return ((v[N + 1 + K] * Partial::template at<V>(v[I]...)) + ...);
    }
  };
  static constexpr const MapKernel& jvp_kernel() { return map_kernel<Jvp, 2 * N + 1>; }
};

}   // namespace tapedeck::kernels
