// Update rules as one pass over memory that reads gradients and changes variables and slots in place, in f32
// or f64. A rule's formula is a lambda of SIMD batches, (x, slots…, g, h): it changes x and the slots by the
// gradient g and by h, the hyperparameters under their names.
#pragma once
#include "kernels/simd/simd.h"
#include "kernels/sort/order_rows.h"
#include "tapedeck/update_rule.h"

namespace tapedeck {

/// A gradient of a variable. Dense: values is of its shape. Sparse: `order` says which rows of values belong
/// to which row.
struct StepGradient {
  const Tensor& values;
  const kernels::RowOrder* order = nullptr;
};

/// Changes x and the slots, without allocating. If the gradient is sparse, rows that it does not name are
/// changed by `others`, or not at all.
void update_rows(Tensor& x, std::span<Tensor> slots, const StepGradient& g, const Step& step);
/// Runs a measure on the rows that `update_rows` would change, in pieces that depend on sizes alone.
RowSums measure_rows(const RowMeasure& rows, Tensor& x, std::span<Tensor> slots, const StepGradient& g,
                     const Step& step);

/// A coefficient of the step. Numbers are combined in f64; combined with a batch, a number becomes a batch of
/// the variable's dtype.
struct Number {
  double value;

  template <class T, class A> operator xsimd::batch<T, A>() const {
    return xsimd::batch<T, A>(static_cast<T>(value));
  }
  friend Number operator-(Number a) { return {-a.value}; }
  friend Number operator*(Number a, Number b) { return {a.value * b.value}; }
  friend Number operator*(double a, Number b) { return {a * b.value}; }
  friend Number operator+(double a, Number b) { return {a + b.value}; }
  friend Number operator-(double a, Number b) { return {a - b.value}; }
};

/// How a batch is read and written: all of it, or the first n lanes. Rows of a matrix begin and end anywhere,
/// so nothing is written beyond the last element.
template <class T> struct Whole {
  kernels::Batch<T> load(const T* p) const { return kernels::Batch<T>::load_unaligned(p); }
  void store(T* p, const kernels::Batch<T>& b) const { b.store_unaligned(p); }
};
template <class T> struct First {
  std::int64_t n;
  kernels::Batch<T> load(const T* p) const { return kernels::load_first(p, n); }
  void store(T* p, const kernels::Batch<T>& b) const { kernels::store_first(b, p, n); }
};

/// The loop of a formula F over a row, with these slots, by index in the rule's list. Names<Number> has a
/// member for each coefficient of the step.
template <template <class> class Names, class F, std::size_t... slots> struct RowLoop {
  template <class T> static void run(const UpdateRow<T>& row) {
    loop<T>(row, [row](std::int64_t i, auto part) { return part.load(row.g + i); });
  }
  template <class T> static void run_or_zeros(const UpdateRow<T>& row) {
    if (row.g)
      run<T>(row);
    else
      loop<T>(row, [](std::int64_t, auto) { return kernels::Batch<T>(T(0)); });
  }
  template <class T> static void measure(const UpdateRow<T>& row, RowSums& sums) {
    kernels::Batch<T> parts[2] = {T(0), T(0)};
    const auto loop_of = [&](auto gradient) { loop<T>(row, gradient, parts); };
    if (row.g)
      loop_of([row](std::int64_t i, auto part) { return part.load(row.g + i); });
    else
      loop_of([](std::int64_t, auto) { return kernels::Batch<T>(T(0)); });
    for (std::size_t k = 0; k < 2; ++k)
      sums[k] += static_cast<double>(xsimd::hadd(parts[k]));
  }

 private:
  template <class T, class G, class... Sums>
  static void loop(UpdateRow<T> row, const G& gradient, Sums&... sums) {
    constexpr std::int64_t width = kernels::kWidth<T>;
    const auto h = with_names<Names<Number>>(row.step->c);
    const auto step = [&](std::int64_t i, auto part) {
      kernels::Batch<T> x = part.load(row.x + i);
      std::array<kernels::Batch<T>, sizeof...(slots)> values = {part.load(row.slots[slots] + i)...};
      std::apply([&](auto&... slot) { F()(x, slot..., gradient(i, part), h, sums...); }, values);
      std::apply([&](const auto&... slot) { (part.store(row.slots[slots] + i, slot), ...); }, values);
      if constexpr (sizeof...(Sums) == 0) part.store(row.x + i, x);
    };
    std::int64_t i = 0;
    for (; i + width <= row.n; i += width)
      step(i, Whole<T>());
    if (i < row.n) step(i, First<T>{row.n - i});
  }
};

/// The update by a formula (x, slots…, g, h).
template <template <class> class Names, std::size_t... slots, class F> constexpr RowUpdate rows(F) {
  using Loop = RowLoop<Names, F, slots...>;
  return {Loop::template run<float>, Loop::template run<double>};
}
/// As rows, but also for rows without a gradient, which is then 0.
template <template <class> class Names, std::size_t... slots, class F> constexpr RowUpdate rows_or_zeros(F) {
  using Loop = RowLoop<Names, F, slots...>;
  return {Loop::template run_or_zeros<float>, Loop::template run_or_zeros<double>};
}
/// The measure by a formula (x, slots…, g, h, sums), which adds to the batches sums[0] and sums[1]; for
/// elements that are 0 and have slots of 0 it must add 0.
template <template <class> class Names, std::size_t... slots, class F> constexpr RowMeasure measured(F) {
  using Loop = RowLoop<Names, F, slots...>;
  return {Loop::template measure<float>, Loop::template measure<double>};
}

}   // namespace tapedeck
