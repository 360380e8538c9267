// The derivatives of an elementwise op, each in one pass. vjp: dx = dy * partial, for all wanted inputs
// together, summed over the axes along which an input was broadcast. jvp: dy = the sum of partial * dx.
#pragma once
#include "kernels/elementwise/limits.h"
#include "kernels/elementwise/map.h"

namespace tapedeck::kernels {

/// Operands: the inputs, then the output, then dy. Results: the gradients of the inputs.
template <class T> using VjpRow = PassRow<T, kFusedInputs + 2, kFusedInputs>;
template <class T> using VjpLoop = void (*)(const VjpRow<T>&);
/// Traces the gradient of each input. Operands: as of a row; those that are not read may be any value.
using VjpTracer = void (*)(const detail::LaneValue* x, detail::LaneValue* dx);
struct VjpKernel {
  int inputs;
  unsigned read;                  // bit i: input i is read; bit `inputs`: the output is read
  unsigned reads[kFusedInputs];   // by input: the bits that its gradient reads
  VjpLoop<float> f32;
  VjpLoop<double> f64;
  VjpTracer traced_f32 = nullptr, traced_f64 = nullptr;   // null unless kTraced
};

/// The sum of n numbers, by halves, down to kPairwiseEnd.
template <class T> T sum_pairwise(const T* x, std::int64_t n) {
  if (n <= kPairwiseEnd) {
    T s = 0;
    for (std::int64_t i = 0; i < n; ++i)
      s += x[i];
    return s;
  }
  return sum_pairwise(x, n / 2) + sum_pairwise(x + n / 2, n - n / 2);
}

/// Whether x broadcast to y along rows so short that the op sum is faster than summing in the pass.
bool has_short_rows(const Shape& y, Refs x);
/// Whether to sum gradients of x by the op sum after the pass. Not for halves, which would be rounded before
/// the sum.
inline bool sums_apart(const Tensor& dy, Refs x) {
  for (int i = 0; i < x.size(); ++i)
    if (x[i].size() != 1 && x[i].size() != dy.size())
      return !is_half(dy.dtype()) && has_short_rows(dy.shape(), x);
  return false;
}

/// Computes the gradients dx. dx[i] is undefined if it is not wanted. Otherwise it has the shape of x[i], or
/// that of dy, and is then not summed. x[i] and y need no data if no wanted gradient reads them. A dx[i] of
/// the shape of dy may be dy itself. If bit i of `adds` is set, dx[i] has the shape of dy, and the gradient
/// is added to it; it may then be the same tensor as an earlier dx.
void run_vjp(const VjpKernel& kernel, const Tensor& dy, const Tensor* const* x, const Tensor* y,
             const Tensor* dx, unsigned adds = 0);

/// The tensors of a pass over `shape`, which has n elements. Operands: first the inputs, which broadcast to
/// `shape`, then others of that shape. Operands that are not in `read` need no data. In a pass over several
/// directions, the other operands and the results have a leading axis of this extent.
struct PassTensors {
  DType dtype;
  const Shape& shape;
  std::int64_t n;
  int inputs, operands, results;
  bool gradients;   // result i is the gradient of input i, and has its shape; otherwise results have `shape`
  unsigned read;    // bit i: operand i is read
  const Tensor* const* x;   // operands
  const Tensor* out;        // results; undefined if not wanted
  unsigned adds = 0;        // bit k: result k has `shape`, and is added to its elements
  /// By operand; a gradient has the shift of its input. Shifted operands have the last axis of `shape`. Null:
  /// no shifts.
  const Shift* shifts = nullptr;
  std::int64_t directions = 1;
};
/// Runs the loops of a user's function f over the tensors of a pass.
void run_pass(const UserLoops& loops, const void* f, const PassTensors& pass);

/// Stores, adds or sums factor * block, elements [begin, end) of the row, to result k, as row.put[k] says. A
/// sum has four accumulators, to which vectors are added in turn, so that an addition does not wait for the
/// previous one; the first block initializes them.
template <class T> void collect(const VjpRow<T>& row, std::size_t k, const T* block, T factor,
                                std::int64_t begin, std::int64_t end, Batch<T>* sums);
/// Adds the four accumulators to *out.
template <class T> void end_sum(const Batch<T>* sums, T* out) {
  put_sum(Put::sum, out, (sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/// The kernels of both passes, from one Partial per input: Partial::at(x..., y) is its value, and bit i of
/// Partial::read is set if it reads argument i.
template <class... Partial> struct Fused {
  static constexpr std::size_t N = sizeof...(Partial);
  static constexpr unsigned read = (Partial::read | ...);

  /// Works block by block. Results that are added or summed are buffered, so that the loop branches only on
  /// which results are wanted, and the code that adds and sums is compiled once for all ops.
  template <class T, std::size_t... I, std::size_t... K>
  static constexpr VjpLoop<T> vjp(std::index_sequence<I...>, std::index_sequence<K...>) {
    return [](const VjpRow<T>& row) {
      const VjpRow<T> r = row;   // a local, since a vector store may alias anything else
      const T* const dys = r.x[N + 1].p;
      alignas(64) T buffers[N][kVjpBlock<T>];
      Batch<T> sums[N][4];
      const bool direct[N] = {is_direct(r, K, Partial::sign())...},
                 wanted[N] = {r.put[K] != Put::nothing && !direct[K]...};
      T* const to[N] = {r.put[K] == Put::store ? r.out[K] : buffers[K]...};
      const std::int64_t mask[N] = {r.put[K] == Put::store ? -1 : kVjpBlock<T> - 1 ...};
      for (std::int64_t begin = 0; begin < r.n; begin += kVjpBlock<T>) {
        const std::int64_t end = std::min(begin + kVjpBlock<T>, r.n);
        // These come first, since another result may overwrite dy.
        ((direct[K] ? collect(r, K, dys + begin, T(Partial::sign()), begin, end, sums[K]) : void()), ...);
        if ((wanted[K] || ...))
          for (std::int64_t i = begin; i < end; i += kWidth<T>) {
            const Batch<T> dy = Batch<T>::load_unaligned(dys + i);
            const Batch<T> x[] = {load_read<T, I>(r, i)...};
            ((wanted[K]
                  ? (dy * Partial::template at<Batch<T>>(x[I]...)).store_unaligned(to[K] + (i & mask[K]))
                  : void()),
             ...);
          }
        ((wanted[K] && r.put[K] != Put::store ? collect(r, K, buffers[K], T(1), begin, end, sums[K])
                                              : void()),
         ...);
      }
      ((r.put[K] == Put::sum && r.n > 0 ? end_sum(sums[K], r.out[K]) : void()), ...);
    };
  }
  /// Whether result k is dy or -dy, and has its own memory, apart from dy and other results.
  template <class T> static bool is_direct(const VjpRow<T>& r, std::size_t k, int sign) {
    bool apart = sign != 0 && r.put[k] != Put::nothing && r.out[k] != r.x[N + 1].p;
    for (std::size_t other = 0; other < N; ++other)
      apart &= other == k || r.out[other] != r.out[k];
    return apart;
  }
  template <class T, std::size_t I> static Batch<T> load_read(const VjpRow<T>& r, std::int64_t i) {
    if constexpr (read >> I & 1)
      return load<Batch<T>>(r.x[I], i);
    else
      return Batch<T>(T(0));
  }
  static constexpr VjpKernel vjp_kernel() {
    constexpr auto args = std::make_index_sequence<N + 1>{};
    constexpr auto inputs = std::make_index_sequence<N>{};
    return {N,
            read,
            {Partial::read...},
            vjp<float>(args, inputs),
            vjp<double>(args, inputs),
            vjp_tracer<float>(args),
            vjp_tracer<double>(args)};
  }
  template <class T, std::size_t... I> static constexpr VjpTracer vjp_tracer(std::index_sequence<I...>) {
    if constexpr (kTraced)
      return [](const detail::LaneValue* x, detail::LaneValue* dx) {
        using V = xsimd::batch<T, detail::LaneTrace>;
        const V dy = tracing::vector<T>(x[N + 1]);
        ((*dx++ = tracing::id<T>(dy * Partial::template at<V>(tracing::vector<T>(x[I])...))), ...);
      };
    else
      return nullptr;
  }

  /// The jvp as a function of x..., y, dx...
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
