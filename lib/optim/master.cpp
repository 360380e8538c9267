#include "optim/master.h"

#include "core/bytes.h"
#include "core/cast.h"
#include "core/parallel.h"
#include "tapedeck/ops.h"

namespace tapedeck {

void follow(Tensor& master, const Tensor& value) noexcept {
  constexpr std::int64_t most = 512;
  const DType half = value.dtype();
  auto* x = elements<float>(master);
  const auto* y = elements<Half>(value);
  parallel_for(value.size(), Cut{1 << 15, 1 << 17}, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += most) {
      const std::int64_t n = std::min(most, end - i);
      Half rounded[most];
      float wide[most];
      narrow(half, x + i, rounded, n);
      widen(half, y + i, wide, n);
      for (std::int64_t k = 0; k < n; ++k)
        x[i + k] = rounded[k].bits == y[i + k].bits ? x[i + k] : wide[k];
    }
  });
}

Tensor in_f32(const Tensor& x) { return is_half(x.dtype()) ? astype(x, DType::f32) : x; }

Gradient with_numbers(const Gradient& g, const Tensor& numbers) {
  const IndexedSlices* slices = g.slices();
  return slices ? Gradient(IndexedSlices{numbers, slices->indices, slices->dense_shape}) : Gradient(numbers);
}

}   // namespace tapedeck
