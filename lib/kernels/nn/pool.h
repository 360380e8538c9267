// Pooling: what a window takes of each channel of an image. In: tensors [images, height, width, channels] of
// one dtype, f32 or f64. Results do not depend on the number of threads.
#pragma once
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// The cells [begin, end) of an axis that each output reads, at least one; neither begins nor ends decrease.
struct PoolAxis {
  struct Cells {
    std::int64_t begin, end;
  };

  std::int64_t extent = 1;
  std::vector<Cells> cells = {{0, 1}};

  std::int64_t outputs() const { return static_cast<std::int64_t>(cells.size()); }
  /// The most cells that an output reads.
  std::int64_t widest() const;
};

struct Pool {
  PoolAxis rows, columns;

  std::int64_t pixels() const { return rows.extent * columns.extent; }   // of one image
};
struct Pooling {
  const Pool& pool;
  std::int64_t images, channels;
};

/// The largest cell; NaN where there is one.
void max_pool(const Pooling& p, const Tensor& x, Tensor& y);
/// The same, and where the first such cell is: (cell · channels + channel), from the number of elements of
/// all images in front of it if `through`.
void max_pool_with_positions(const Pooling& p, const Tensor& x, bool through, Tensor& y, Tensor& position);
// Image i of the others belongs to image i % x_images of x. Where the largest cell is NaN, so are all
// derivatives.
/// dx = 0, and then dy is added where x has the first largest cell.
void max_pool_scatter(const Pooling& p, const Tensor& dy, const Tensor& x, std::int64_t x_images, Tensor& dx);
/// v's element where x has the first largest cell.
void max_pool_gather(const Pooling& p, const Tensor& v, const Tensor& x, std::int64_t x_images, Tensor& y);
/// The mean of the cells.
void avg_pool(const Pooling& p, const Tensor& x, Tensor& y);
void avg_pool_gradient(const Pooling& p, const Tensor& dy, Tensor& dx);

}   // namespace tapedeck::kernels
