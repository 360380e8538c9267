// Matrix products. Results are cut into panels (ranges of rows or columns) by size alone. Threads split the
// panels; each panel is a product by single-threaded BLAS.
#include "kernels/linalg/matmul.h"

#include <limits>
#include <optional>
#include <utility>

#include "core/bytes.h"
#include "core/cast.h"
#include "core/visit.h"
#include "kernels/layout/scratch.h"
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {
namespace {

// The fewest and the most rows or columns of a panel: narrower panels repeat BLAS's packing too often, wider
// ones leave too few panels.
constexpr std::int64_t kNarrowest = 128, kWidest = 256;
constexpr std::int64_t kMatmulGrain = 1 << 22;   // least multiplications per thread
// The most multiplications of a product that OpenBLAS computes on the calling thread without a guard; its own
// limit is four times that. The locks of a guard would take as long as a product of 8 × 8.
constexpr std::int64_t kOneThread = 1 << 16;
// The same limit for a matrix and a vector, for which OpenBLAS's own limit is 9,216.
constexpr std::int64_t kOneThreadOfVector = 1 << 13;
constexpr std::int64_t kConverted = 1 << 16;   // least halves per thread
constexpr std::int64_t kMaxExtent = std::numeric_limits<std::int32_t>::max();

// The addresses of the elements of a, b and y.
template <class T> struct Elements {
  const T *a, *b;
  T* y;
};

// The product of the first matrices of a and b.
template <class T> MatrixProduct<T> first_product(const Tensor& a, const Tensor& b, ReadTransposed t,
                                                  const Tensor& y, const Elements<T>& at, bool add) {
  return {.m = extent(y, 2),
          .n = extent(y, 1),
          .k = extent(a, t.a ? 2 : 1),
          .a = at.a,
          .b = at.b,
          .y = at.y,
          .a_transposed = t.a,
          .b_transposed = t.b,
          .lda = extent(a, 1),
          .ldb = extent(b, 1),
          .ldy = extent(y, 1),
          .add = add};
}

// The number of lines (rows or columns) in a panel. A single matrix is cut into at least two panels, if each
// is worth a thread.
std::int64_t panel_of(std::int64_t lines, std::int64_t work_of_line, std::int64_t matrices) {
  const std::int64_t wanted = std::max<std::int64_t>((lines + kWidest - 1) / kWidest, matrices == 1 ? 2 : 1),
                     most = lines / std::max(kNarrowest, kMatmulGrain / work_of_line);
  return lines_of_panel(lines, std::max<std::int64_t>(std::min(wanted, most), 1));
}

template <class T> void multiply(const Tensor& a, const Tensor& b, ReadTransposed t, const Tensor& y,
                                 const Elements<T>& at, bool add) {
  MatrixProduct<T> first = first_product<T>(a, b, t, y, at, add);
  if (y.size() == 0) return;
  if (first.k == 0) {
    if (!add) std::fill_n(first.y, y.size(), T(0));
    return;
  }
  std::int64_t count = y.size() / (first.m * first.n);
  const std::int64_t a_size = first.m * first.k, b_size = first.k * first.n,
                     y_size = first.m * first.n;   // per matrix
  // A batch of matrices times one matrix is a product of one tall matrix.
  if (!t.a && b.size() == b_size && a.size() == count * a_size && count * first.m <= kMaxExtent)
    first.m *= std::exchange(count, 1);

  const bool by_rows = first.m >= first.n;
  const std::int64_t lines = by_rows ? first.m : first.n,
                     work_of_line = (by_rows ? first.n : first.m) * first.k;
  const std::int64_t panel = panel_of(lines, work_of_line, count), panels = (lines + panel - 1) / panel;
  std::optional<OneBlasThread> guard;
  const bool is_vector = first.m == 1 || first.n == 1;
  if (first.m * first.n > (is_vector ? kOneThreadOfVector : kOneThread) / first.k) guard.emplace();
  parallel_for(count * panels, std::max<std::int64_t>(kMatmulGrain / (panel * work_of_line), 1),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t matrix = i / panels, from = i % panels * panel,
                                      to = std::min(from + panel, lines);
                   MatrixProduct<T> p = first;
                   p.a += matrix_of(a.shape(), y.shape(), matrix) * a_size;
                   p.b += matrix_of(b.shape(), y.shape(), matrix) * b_size;
                   p.y += matrix * y_size;
                   gemm(by_rows ? p.rows(from, to) : p.columns(from, to));
                 }
               });
}

// n, rounded up to 16 elements, a whole vector.
std::int64_t padded(std::int64_t n) { return (n + 15) / 16 * 16; }

void widen(const Tensor& x, float* y) {
  const Half* in = elements<Half>(x);
  parallel_for(x.size(), kConverted, [&](std::int64_t begin, std::int64_t end) {
    tapedeck::widen(x.dtype(), in + begin, y + begin, end - begin);
  });
}
void narrow(const float* x, Tensor& y) {
  Half* out = elements<Half>(y);
  parallel_for(y.size(), kConverted, [&](std::int64_t begin, std::int64_t end) {
    tapedeck::narrow(y.dtype(), x + begin, out + begin, end - begin);
  });
}

// Products of f16 or bf16, computed in f32.
void multiply_halves(const Tensor& a, const Tensor& b, ReadTransposed t, Tensor& y) {
  constexpr std::int64_t few = 1 << 12;
  alignas(64) float on_stack[few];
  const bool is_square = a.raw() == b.raw() && a.size() == b.size();
  const std::int64_t b_at = padded(a.size()), y_at = is_square ? b_at : b_at + padded(b.size()),
                     size = y_at + padded(y.size());
  const Scratch<float> scratch = size > few ? scratch_for<float>(size) : nullptr;
  float* const all = scratch ? scratch.get() : on_stack;
  widen(a, all);
  if (!is_square) widen(b, all + b_at);
  multiply<float>(a, b, t, y, {all, is_square ? all : all + b_at, all + y_at}, false);
  narrow(all + y_at, y);
}

}   // namespace

void matmul(const Tensor& a, const Tensor& b, ReadTransposed t, Tensor& y, bool add) {
  if (is_half(y.dtype())) return multiply_halves(a, b, t, y);
  visit_trainable(y.dtype(), [&](auto one) {
    using T = decltype(one);
    multiply<T>(a, b, t, y, {elements<T>(a), elements<T>(b), elements<T>(y)}, add);
  });
}

}   // namespace tapedeck::kernels
