// Max and average pooling of [images, height, width, channels], f32 or f64, and their derivatives. Results do
// not depend on the number of threads.
#pragma once
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// The cells [begin, end) that each output of an axis reads, at least one. Neither begins nor ends decrease
/// from one output to the next.
struct PoolAxis {
  struct Cells {
    std::int64_t begin, end;
  };

  std::int64_t extent = 1;
  std::vector<Cells> cells = {{0, 1}};

  std::int64_t outputs() const { return static_cast<std::int64_t>(cells.size()); }
  /// The largest number of cells that one output reads.
  std::int64_t widest() const;
};

struct Pool {
  PoolAxis rows, columns;

  std::int64_t pixels() const { return rows.extent * columns.extent; }   // per image
};
struct Pooling {
  const Pool& pool;
  std::int64_t images, channels;
};

/// The largest cell of each window; NaN if one is NaN.
void max_pool(const Pooling& p, const Tensor& x, Tensor& y);
/// Like max_pool; position is the flat index of the first largest cell: cell · channels + channel, within its
/// image or, if `through`, within the whole tensor.
void max_pool_with_positions(const Pooling& p, const Tensor& x, bool through, Tensor& y, Tensor& position);
// Image i of the other tensors belongs to image i % x_images of x. If the largest cell is NaN, so are its
// derivatives.
/// dx = 0, then adds dy at the first largest cell of x.
void max_pool_scatter(const Pooling& p, const Tensor& dy, const Tensor& x, std::int64_t x_images, Tensor& dx);
/// y = v's element at the first largest cell of x.
void max_pool_gather(const Pooling& p, const Tensor& v, const Tensor& x, std::int64_t x_images, Tensor& y);
/// The mean of each window's cells.
void avg_pool(const Pooling& p, const Tensor& x, Tensor& y);
void avg_pool_gradient(const Pooling& p, const Tensor& dy, Tensor& dx);

}   // namespace tapedeck::kernels
