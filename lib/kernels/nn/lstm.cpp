// An LSTM, step by step: one product with the state by BLAS, in panels of columns that are cut by sizes
// alone, then one pass over the gates. Threads split the panels, and the rows of the batch.
#include "kernels/nn/lstm.h"

#include <algorithm>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/linalg/gemm.h"
#include "kernels/simd/simd.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kLstmCut{1 << 10, 1 << 12};      // units, which take some seven nanoseconds each
constexpr std::int64_t kLstmGrain = 1 << 20;   // least multiplications per thread

/// Neighbouring units that are computed together: a vector of them, or the last n.
template <class T> struct Units {
  std::int64_t n;
  bool whole() const { return n >= kWidth<T>; }
  Batch<T> load(const T* p) const {
    return !p ? Batch<T>(T(0)) : whole() ? Batch<T>::load_unaligned(p) : load_first(p, n);
  }
  void store(const Batch<T>& v, T* p) const { whole() ? v.store_unaligned(p) : store_first(v, p, n); }
};

/// Calls f(row of the batch, first unit, units) for all units of all rows, in parallel.
template <class T, class F> void each_units(const Lstm& l, const F& f) {
  parallel_for(l.batch, cut_of(kLstmCut, l.units), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b)
      for (std::int64_t i = 0; i < l.units; i += kWidth<T>)
        f(b, i, Units<T>{l.units - i});
  });
}

/// y = a b or y += a b, by panels of columns in parallel.
template <class T> void multiply(const MatrixProduct<T>& p) {
  if (p.m == 0 || p.n == 0 || p.k == 0) return;
  const std::int64_t panels = std::max<std::int64_t>(p.m * p.n * p.k / kLstmGrain, 1);
  parallel_for(p.n, lines_of_panel(p.n, panels),
               [&](std::int64_t begin, std::int64_t end) { gemm(p.columns(begin, end)); });
}

template <class T> const T* of_state(const Lstm& l, const Tensor& weights) {
  return elements<T>(weights) + weights.size() - l.units * 4 * l.units;
}
template <class T> const T* or_null(const Tensor& x) { return x.size() ? elements<T>(x) : nullptr; }

template <class T>
void forward(const Lstm& l, const T* h, const T* c, const T* weights, T* gates, T* next_h, T* next_c) {
  const std::int64_t u = l.units, row = l.batch * u;
  for (std::int64_t t = 0; t < l.time;
       ++t, gates += 4 * row, h = next_h, c = next_c, next_h += row, next_c += row) {
    multiply(MatrixProduct<T>{.m = l.batch,
                              .n = 4 * u,
                              .k = u,
                              .a = h,
                              .b = weights,
                              .y = gates,
                              .lda = u,
                              .ldb = 4 * u,
                              .ldy = 4 * u,
                              .add = true});
    each_units<T>(l, [=](std::int64_t b, std::int64_t i, const Units<T>& units) {
      T* z = gates + b * 4 * u + i;
      const Batch<T> in = sigmoid(units.load(z)), candidate = tanh(units.load(z + u)),
                     forget = sigmoid(units.load(z + 2 * u) + Batch<T>(static_cast<T>(l.forget_bias)));
      const Batch<T> out = sigmoid(units.load(z + 3 * u)),
                     memory = forget * units.load(c + b * u + i) + in * candidate;
      units.store(in, z), units.store(candidate, z + u), units.store(forget, z + 2 * u),
          units.store(out, z + 3 * u);
      units.store(memory, next_c + b * u + i);
      units.store(out * tanh(memory), next_h + b * u + i);
    });
  }
}

// dh0 and dc0 hold the cotangents of the state between two steps.
template <class T> void backward(const Lstm& l, const T* dh, const T* dc, const T* dgates, const T* gates,
                                 const T* c, const T* c0, const T* weights, T* dz, T* dh0, T* dc0) {
  const std::int64_t u = l.units, row = l.batch * u;
  std::fill_n(dh0, row, T(0));
  std::fill_n(dc0, row, T(0));
  for (std::int64_t t = l.time; t-- > 0;) {
    const auto at = [=](const T* p, std::int64_t size) { return p ? p + t * size : p; };
    const T *dh_t = at(dh, row), *dc_t = at(dc, row), *dg_t = at(dgates, 4 * row), *g_t = at(gates, 4 * row),
            *memory = c + t * row, *before = t ? memory - row : c0;
    T* dz_t = dz + t * 4 * row;
    each_units<T>(l, [=](std::int64_t b, std::int64_t i, const Units<T>& units) {
      using V = Batch<T>;
      const std::int64_t k = b * u + i, g = 4 * b * u + i;
      const auto gate = [&](std::int64_t which) { return units.load(g_t + g + which * u); };
      const auto from_outside = [&](std::int64_t which) {
        return units.load(dg_t ? dg_t + g + which * u : nullptr);
      };
      const V in = gate(0), candidate = gate(1), forget = gate(2), out = gate(3),
              squashed = tanh(units.load(memory + k));
      const V d_h = units.load(dh0 + k) + units.load(dh_t ? dh_t + k : nullptr);
      const V d_c =
          units.load(dc0 + k) + units.load(dc_t ? dc_t + k : nullptr) + d_h * out * (1 - squashed * squashed);
      units.store((d_c * candidate + from_outside(0)) * in * (1 - in), dz_t + g);
      units.store((d_c * in + from_outside(1)) * (1 - candidate * candidate), dz_t + g + u);
      units.store((d_c * units.load(before + k) + from_outside(2)) * forget * (1 - forget), dz_t + g + 2 * u);
      units.store((d_h * squashed + from_outside(3)) * out * (1 - out), dz_t + g + 3 * u);
      units.store(d_c * forget, dc0 + k);
    });
    multiply(MatrixProduct<T>{.m = l.batch,
                              .n = u,
                              .k = 4 * u,
                              .a = dz_t,
                              .b = weights,
                              .y = dh0,
                              .b_transposed = true,
                              .lda = 4 * u,
                              .ldb = 4 * u,
                              .ldy = u});
  }
}

}   // namespace

void lstm(const Lstm& l, const Tensor& h0, const Tensor& c0, const Tensor& weights, Tensor& gates, Tensor& h,
          Tensor& c) {
  if (l.batch == 0 || l.units == 0) return;
  const OneBlasThread guard;
  visit_floating(gates.dtype(), [&](auto one) {
    using T = decltype(one);
    forward(l, elements<T>(h0), elements<T>(c0), of_state<T>(l, weights), elements<T>(gates), elements<T>(h),
            elements<T>(c));
  });
}

void lstm_gradient(const Lstm& l, const Tensor& dh, const Tensor& dc, const Tensor& dgates,
                   const Tensor& gates, const Tensor& c, const Tensor& c0, const Tensor& weights, Tensor& dz,
                   Tensor& dh0, Tensor& dc0) {
  if (l.batch == 0 || l.units == 0) return;
  const OneBlasThread guard;
  visit_floating(gates.dtype(), [&](auto one) {
    using T = decltype(one);
    backward(l, or_null<T>(dh), or_null<T>(dc), or_null<T>(dgates), elements<T>(gates), elements<T>(c),
             elements<T>(c0), of_state<T>(l, weights), elements<T>(dz), elements<T>(dh0), elements<T>(dc0));
  });
}

}   // namespace tapedeck::kernels
