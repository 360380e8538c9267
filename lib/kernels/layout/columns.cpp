// Copies the columns of a matrix to tensors, and back. The elements of a column are far apart in the matrix.
// Therefore, blocks that stay in the L1 cache are transposed in registers, so that their columns are
// contiguous, and each cache line of the matrix is read or written once. Threads split the rows.
#include "kernels/layout/columns.h"

#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/layout/transpose.h"

namespace tapedeck::kernels {
namespace {

constexpr std::int64_t kColumnsNear = 1 << 14;   // bytes of a block
constexpr std::int64_t kMostColumns = 64;        // of a block
constexpr std::int64_t kColumnsTask = 1 << 18;   // least bytes of the matrix per thread

// Calls f(scratch, first row, rows, first column, columns) for each block; the scratch memory holds a block.
template <class T, class F> void each_block(std::int64_t rows, std::int64_t columns, F f) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t across = std::min(columns, kMostColumns), down = kColumnsNear / size / across;
  const std::int64_t blocks = (rows + down - 1) / down;
  parallel_for(blocks, std::max(std::int64_t{1}, kColumnsTask / size / (down * columns)),
               [&](std::int64_t begin, std::int64_t end) {
                 alignas(64) std::byte scratch[kColumnsNear];
                 for (std::int64_t i = begin * down; i < std::min(end * down, rows); i += down)
                   for (std::int64_t j = 0; j < columns; j += across)
                     f(reinterpret_cast<T*>(scratch), i, std::min(down, rows - i), j,
                       std::min(across, columns - j));
               });
}

}   // namespace

void copy_to_columns(const Tensor& matrix, std::span<Tensor> columns) {
  const auto width = static_cast<std::int64_t>(columns.size());
  visit_size(matrix.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* from = elements<T>(matrix);
    each_block<T>(matrix.size() / width, width,
                  [&](T* block, std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t n) {
                    transpose(from + i * width + j, width, block, rows, n, rows);
                    for (std::int64_t k = 0; k < n; ++k)
                      std::memcpy(elements<T>(columns[static_cast<std::size_t>(j + k)]) + i, block + k * rows,
                                  static_cast<std::size_t>(rows) * sizeof(T));
                  });
  });
}

void copy_from_columns(Refs columns, Tensor& matrix) {
  const std::int64_t width = columns.size();
  visit_size(matrix.dtype(), [&](auto t) {
    using T = decltype(t);
    T* to = elements<T>(matrix);
    each_block<T>(matrix.size() / width, width,
                  [&](T* block, std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t n) {
                    for (std::int64_t k = 0; k < n; ++k)
                      std::memcpy(block + k * rows, elements<T>(columns[static_cast<int>(j + k)]) + i,
                                  static_cast<std::size_t>(rows) * sizeof(T));
                    transpose(block, rows, to + i * width + j, width, rows, n);
                  });
  });
}

}   // namespace tapedeck::kernels
