// The derivatives of an elementwise op, each in one pass. vjp: dx = dy * partial, of all wanted inputs at
// once, summed over the axes along which an input was broadcast. jvp: dy = the sum of partial * dx.
#pragma once
#include "kernels/elementwise/map.h"

namespace tapedeck::kernels {

/// Operands: the inputs, then the output, then dy. Results: the gradients of the inputs.
template <class T> using VjpRow = PassRow<T, kFusedInputs + 2, kFusedInputs>;
template <class T> using VjpLoop = void (*)(const VjpRow<T>&);
struct VjpKernel {
  int inputs;
  unsigned read;                  // bit i: input i is read; bit `inputs`: the output is
  unsigned reads[kFusedInputs];   // the same for the gradient of each input
  VjpLoop<float> f32;
  VjpLoop<double> f64;
};

/// Gradients of single elements are one sum for each piece of so many elements, then these in a tree, so that
/// errors grow with log n.
inline constexpr std::int64_t kSumPiece = 4096;
template <class T> T sum_pairwise(const T* x, std::int64_t n) {
  if (n <= 8) {
    T s = 0;
    for (std::int64_t i = 0; i < n; ++i)
      s += x[i];
    return s;
  }
  return sum_pairwise(x, n / 2) + sum_pairwise(x + n / 2, n - n / 2);
}

/// Whether x broadcast to y along rows so short that sums over them take longer in a pass than by the op sum.
bool has_short_rows(const Shape& y, Refs x);
/// The same for x that broadcast to dy; not of halves, which the pass would round before the sum.
inline bool sums_apart(const Tensor& dy, Refs x) {
  for (int i = 0; i < x.size(); ++i)
    if (x[i].size() != 1 && x[i].size() != dy.size())
      return !is_half(dy.dtype()) && has_short_rows(dy.shape(), x);
  return false;
}

/// dx[i] is undefined if it is not wanted; else it has the shape of x[i], or of dy: then it is not summed.
/// x[i] and y need no data if no wanted gradient reads them. A dx[i] of dy's shape may be dy itself. If bit i
/// of `adds` is set, dx[i] has dy's shape and its elements are added to; it may then be the same tensor as an
/// earlier dx.
void run_vjp(const VjpKernel& kernel, const Tensor& dy, const Tensor* const* x, const Tensor* y,
             const Tensor* dx, unsigned adds = 0);

/// The tensors of a pass over `shape`, of n elements. Operands: first the inputs, which broadcast to it, then
/// others of that shape. Those that are not in `read` need no data. In a pass of several directions these
/// others, and the results, have that many in front.
struct PassTensors {
  DType dtype;
  const Shape& shape;
  std::int64_t n;
  int inputs, operands, results;
  bool gradients;           // result i is the gradient of input i, of its shape; else results are of `shape`
  unsigned read;            // bit i: operand i is read
  const Tensor* const* x;   // operands
  const Tensor* out;        // results; undefined where not wanted
  unsigned adds = 0;        // bit k: result k is of `shape`, and its elements are added to
  /// Of the operands; a gradient has that of its input. Moved ones have the last axis of `shape`. Null: none.
  const Shift* shifts = nullptr;
  std::int64_t directions = 1;
};
/// Runs the loops of a user's function f over them.
void run_pass(const UserLoops& loops, const void* f, const PassTensors& pass);

/// Elements of a block of a vjp's loop.
template <class T> inline constexpr std::int64_t kVjpBlock = 1024 / static_cast<std::int64_t>(sizeof(T));

/// Puts factor times the elements of a block, [begin, end) of the row, where result k is put. A sum adds its
/// vectors to four sums in turns, so that an addition does not wait for the one before it; the first block
/// sets them.
template <class T> void collect(const VjpRow<T>& row, std::size_t k, const T* block, T factor,
                                std::int64_t begin, std::int64_t end, Batch<T>* sums);
/// Adds the four sums to *out.
template <class T> void end_sum(const Batch<T>* sums, T* out) {
  put_sum(Put::sum, out, (sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/// The kernels of both passes. For each input one Partial: Partial::at(x..., y) is its value, and bit i of
/// Partial::read tells whether it reads argument i.
template <class... Partial> struct Fused {
  static constexpr std::size_t N = sizeof...(Partial);
  static constexpr unsigned read = (Partial::read | ...);

  /// Block by block: results that are added up wait in buffers, so that the loop has no branch but for what
  /// is wanted, and what adds up is compiled once for all ops.
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
        // First, since another result may be written over dy.
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
  /// Whether result k is dy or -dy, and nothing else is put where it is.
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
    return {N, read, {Partial::read...}, vjp<float>(args, inputs), vjp<double>(args, inputs)};
  }

  /// A function of x..., y, dx...
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
