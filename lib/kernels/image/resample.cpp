// Weighted sums along an axis, vectorized over the axes after it. Threads split the outputs; each sum is
// computed in the order of the table.
#include "kernels/image/resample.h"

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/simd/lanes.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kResampleCut{1 << 14, 1 << 16};   // products

// One output entry: the weighted sum of n runs, each of `after` contiguous elements of x.
template <class T> void sum_runs(const T* x, const std::int64_t* position, const T* weight, std::int64_t n,
                                 std::int64_t after, T* y) {
  if (n == 2) {
    const T *a = x + position[0] * after, *b = x + position[1] * after;
    return each_group<T>(after, [=](std::int64_t i, auto one) {
      using V = decltype(one);
      store(detail::multiply_add(V(weight[0]), load<V>(a + i), V(weight[1]) * load<V>(b + i)), y + i);
    });
  }
  each_group<T>(after, [=](std::int64_t i, auto one) {
    using V = decltype(one);
    V total(T(0));
    for (std::int64_t t = 0; t < n; ++t)
      total = detail::multiply_add(V(weight[t]), load<V>(x + position[t] * after + i), total);
    store(total, y + i);
  });
}

template <class T>
void run(const WeightTable& table, const T* x, std::int64_t before, std::int64_t after, T* y) {
  const std::vector<T> weight(table.weight.begin(), table.weight.end());
  const std::int64_t outputs = table.outputs(), taps = static_cast<std::int64_t>(weight.size());
  if (outputs == 0 || after == 0) return;
  parallel_for(before * outputs, cut_of(kResampleCut, (taps / outputs + 1) * after),
               [&](std::int64_t first, std::int64_t last) {
                 std::int64_t image = first / outputs, o = first % outputs;
                 for (std::int64_t line = first; line < last; ++line) {
                   const std::int64_t begin = table.begin[static_cast<std::size_t>(o)],
                                      end = table.begin[static_cast<std::size_t>(o) + 1];
                   sum_runs(x + image * table.inputs * after, table.position.data() + begin,
                            weight.data() + begin, end - begin, after, y + line * after);
                   if (++o == outputs) ++image, o = 0;
                 }
               });
}

}   // namespace

void weighted_sums(const WeightTable& table, const Tensor& x, std::int64_t before, std::int64_t after,
                   Tensor& y) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    run(table, elements<T>(x), before, after, elements<T>(y));
  });
}

}   // namespace tapedeck::kernels
