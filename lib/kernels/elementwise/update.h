// Update rules as one pass over memory: gradients come in, variables and slots are changed in place. f32 and
// f64. A rule is a lambda of vectors, (x, s, g, c): it changes x and the slots s[0], s[1] … by the gradient g
// and the coefficients c[0], c[1] …
#pragma once
#include "kernels/simd/simd.h"
#include "kernels/sort/order_rows.h"
#include "tapedeck/update_rule.h"

namespace tapedeck::kernels {

/// A gradient of a variable. Dense: values is of its shape. Sparse: `order` says which rows of values belong
/// to which row.
struct StepGradient {
  const Tensor& values;
  const RowOrder* order = nullptr;
};

/// Changes x and the slots, which allocates nothing. Sparse: rows that are not named by `others`, or not at
/// all.
void update(Tensor& x, std::span<Tensor> slots, const StepGradient& g, const Step& step);
/// Runs a measure on what `update` would change, in pieces that depend on sizes alone.
RowSums measure(const RowMeasure& rows, Tensor& x, std::span<Tensor> slots, const StepGradient& g,
                const Step& step);

/// How a vector is read and written: all of it, or the first n lanes. Rows of a matrix begin and end
/// anywhere, so nothing is written beyond the last element.
template <class T> struct Whole {
  Batch<T> load(const T* p) const { return Batch<T>::load_unaligned(p); }
  void store(T* p, const Batch<T>& b) const { b.store_unaligned(p); }
};
template <class T> struct First {
  std::int64_t n;
  Batch<T> load(const T* p) const { return load_first(p, n); }
  void store(T* p, const Batch<T>& b) const { store_first(b, p, n); }
};

/// The loop of a lambda F over a row, which has the slots whose bits are set.
template <unsigned slots, class F> struct RowLoop {
  template <class T> static void run(const UpdateRow<T>& row) {
    loop<T>(row, [row](std::int64_t i, auto part) { return part.load(row.g + i); });
  }
  template <class T> static void run_or_zeros(const UpdateRow<T>& row) {
    if (row.g)
      run<T>(row);
    else
      loop<T>(row, [](std::int64_t, auto) { return Batch<T>(T(0)); });
  }
  template <class T> static void measure(const UpdateRow<T>& row, RowSums& sums) {
    Batch<T> parts[2] = {T(0), T(0)};
    const auto loop_of = [&](auto gradient) { loop<T>(row, gradient, parts); };
    if (row.g)
      loop_of([row](std::int64_t i, auto part) { return part.load(row.g + i); });
    else
      loop_of([](std::int64_t, auto) { return Batch<T>(T(0)); });
    for (std::size_t k = 0; k < 2; ++k)
      sums[k] += static_cast<double>(xsimd::hadd(parts[k]));
  }

 private:
  static constexpr bool has(std::size_t k) { return slots >> k & 1; }

  template <class T, class G, class... Sums>
  static void loop(UpdateRow<T> row, const G& gradient, Sums&... sums) {
    Batch<T> c[kMaxCoefficients];
    for (std::size_t k = 0; k < kMaxCoefficients; ++k)
      c[k] = Batch<T>(row.c[k]);
    const auto step = [&](std::int64_t i, auto part) {
      Batch<T> x = part.load(row.x + i), s[kMaxSlots];
      for (std::size_t k = 0; k < kMaxSlots; ++k)
        if (has(k)) s[k] = part.load(row.slots[k] + i);
      F()(x, s, gradient(i, part), c, sums...);
      for (std::size_t k = 0; k < kMaxSlots; ++k)
        if (has(k)) part.store(row.slots[k] + i, s[k]);
      if constexpr (sizeof...(Sums) == 0) part.store(row.x + i, x);
    };
    std::int64_t i = 0;
    for (; i + kWidth<T> <= row.n; i += kWidth<T>)
      step(i, Whole<T>());
    if (i < row.n) step(i, First<T>{row.n - i});
  }
};

template <unsigned slots, class F> constexpr RowUpdate rows(F) {
  return {RowLoop<slots, F>::template run<float>, RowLoop<slots, F>::template run<double>};
}
/// The same, also for rows without a gradient.
template <unsigned slots, class F> constexpr RowUpdate rows_or_zeros(F) {
  return {RowLoop<slots, F>::template run_or_zeros<float>, RowLoop<slots, F>::template run_or_zeros<double>};
}
/// Of a lambda (x, s, g, c, sums) that adds to the vectors sums[0] and sums[1], and 0 for elements that are 0
/// with slots of 0.
template <unsigned slots, class F> constexpr RowMeasure measured(F) {
  return {RowLoop<slots, F>::template measure<float>, RowLoop<slots, F>::template measure<double>};
}

}   // namespace tapedeck::kernels
