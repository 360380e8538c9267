// Convolutions as matrix products (im2col). The elements that the window reads for one output position are a
// row of a matrix. Pieces, ranges of rows that fit into the L2 cache, are gathered and multiplied by BLAS.
// For a window of one pixel, the matrix is x itself. Threads split the pieces; in the input gradient, they
// own disjoint rows of images; a filter gradient is the sum of partial sums over pieces, cut by sizes alone.
#include "kernels/nn/conv.h"

#include <cstring>

#include "core/bytes.h"
#include "core/visit.h"
#include "kernels/layout/scratch.h"
#include "kernels/linalg/gemm.h"
#include "kernels/nn/grouped_conv.h"
#include "kernels/nn/onednn_conv.h"
#include "kernels/simd/simd.h"

namespace tapedeck::kernels {
namespace {

constexpr std::int64_t kPieceBytes = 1 << 18;   // of a piece of the im2col matrix: a part of the L2 cache
// The least rows of a piece, since BLAS repacks the filters for each piece.
constexpr std::int64_t kPiecePositions = 192;
constexpr double kConvTask = 1 << 24;          // least multiplications per thread
constexpr std::int64_t kConvGrain = 1 << 16;   // least elements to sum per thread

// x, readable by whole vectors past its last element. Tensors stored inside of their handles have no padding
// and are copied.
template <class T> class PaddedInput {
 public:
  explicit PaddedInput(const Tensor& x) : x_(elements<T>(x)) {
    if (!x.handle()->buffer) x_ = std::copy_n(x_, x.size(), copy_) - x.size();
  }
  operator const T*() const { return x_; }

 private:
  const T* x_;
  alignas(64) T copy_[2 * kGroup<T>] = {};
};

// For an output column: the cells of the window inside the image, and the pixel that the first of them reads.
struct ConvInside {
  std::int64_t begin, end, pixel;
};

template <class T> void add(const T* __restrict x, T* __restrict y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] += x[i];
}

/// The im2col matrices of a convolution, one per group of channels. Rows are output positions, counted
/// through all images.
template <class T> class Im2col {
 public:
  explicit Im2col(const Conv& c)
      : c_(c),
        channels_(c.in / c.groups),
        is_view_(c.window.planes.is_identity() && c.window.plane.rows.is_identity() &&
                 c.window.plane.columns.is_identity()),
        inside_(static_cast<std::size_t>(c.window.plane.columns.outputs)) {
    const WindowAxis& a = c.window.plane.columns;
    for (std::int64_t o = 0; o < a.outputs; ++o) {
      const std::int64_t begin = a.cell_at(o, 0);
      inside_[static_cast<std::size_t>(o)] = {begin, a.cell_at(o, a.extent), a.position(o, begin)};
    }
  }

  /// Whether the matrix is x itself.
  bool is_view() const { return is_view_; }
  std::int64_t width() const { return c_.window.cells() * channels_; }
  /// The distance between rows of a matrix.
  std::int64_t step() const { return is_view_ ? c_.in : width(); }
  std::int64_t positions() const { return c_.images * c_.window.outputs(); }
  /// The number of rows in a piece.
  std::int64_t piece() const {
    return std::max(kPiecePositions, kPieceBytes / (std::max<std::int64_t>(width(), 1) *
                                                    static_cast<std::int64_t>(sizeof(T))));
  }
  /// Scratch memory for a piece, with padding, since copies write whole vectors.
  Scratch<T> scratch() const {
    return is_view_ ? nullptr : scratch_for<T>(std::min(piece(), positions()) * width() + kGroup<T>);
  }

  /// Rows [begin, end) of a group's matrix: a view of x, or computed into `scratch`.
  const T* rows(const T* x, std::int64_t group, std::int64_t begin, std::int64_t end, T* scratch) const {
    x += group * channels_;
    if (is_view_) return x + begin * c_.in;
    gather(x, begin, end, scratch);
    return scratch;
  }

  /// The adjoint of rows(): adds columns to the planes [plane_begin, plane_end) of dx.
  void scatter_add(const T* columns, std::int64_t group, std::int64_t begin, std::int64_t end,
                   std::int64_t plane_begin, std::int64_t plane_end, T* dx) const {
    const WindowAxis& planes = c_.window.planes;
    const Window2d& plane = c_.window.plane;
    const std::int64_t line = plane.columns.size * channels_;
    dx += group * channels_;
    each_line(begin, end,
              [&](std::int64_t image, std::int64_t i, std::int64_t j, std::int64_t from, std::int64_t to) {
                const std::int64_t first = planes.cell_at(i, plane_begin),
                                   last = planes.cell_at(i, plane_end), top = plane.rows.cell_at(j, 0),
                                   bottom = plane.rows.cell_at(j, plane.rows.extent);
                T* corner = dx + corner_of(image, i, j);
                for (std::int64_t o = from; o < to; ++o, columns += width()) {
                  const ConvInside& in = inside_[static_cast<std::size_t>(o)];
                  for (std::int64_t p = first; p < last; ++p)
                    for (std::int64_t r = top; r < bottom; ++r)
                      add_line(columns + (p * plane.rows.size + r) * line, in,
                               corner + element_of(p, r, in.pixel));
                }
              });
  }

 private:
  // corner_of: the offset in x of an output's window. element_of: the offset from there to the first element
  // that a line (one row of the window's cells) reads.
  std::int64_t corner_of(std::int64_t image, std::int64_t i, std::int64_t j) const {
    const auto& [planes, plane] = c_.window;
    return ((image * planes.extent + planes.position(i, 0)) * plane.rows.extent + plane.rows.position(j, 0)) *
           plane.columns.extent * c_.in;
  }
  std::int64_t element_of(std::int64_t p, std::int64_t r, std::int64_t pixel) const {
    const auto& [planes, plane] = c_.window;
    return ((p * planes.dilation * plane.rows.extent + r * plane.rows.dilation) * plane.columns.extent +
            pixel) *
           c_.in;
  }

  // Calls f(image, output plane, output row, first output column, last + 1) for each row of outputs in
  // positions [begin, end).
  template <class F> void each_line(std::int64_t begin, std::int64_t end, const F& f) const {
    const std::int64_t n = c_.window.plane.columns.outputs, rows = c_.window.plane.rows.outputs,
                       planes = c_.window.planes.outputs;
    while (begin < end) {
      const std::int64_t line = begin / n, from = begin % n, to = std::min(n, from + end - begin);
      f(line / rows / planes, line / rows % planes, line % rows, from, to);
      begin += to - from;
    }
  }

  void gather(const T* x, std::int64_t begin, std::int64_t end, T* columns) const {
    const WindowAxis& planes = c_.window.planes;
    const Window2d& plane = c_.window.plane;
    const std::int64_t line = plane.columns.size * channels_, lines = plane.rows.size * line;
    each_line(begin, end,
              [&](std::int64_t image, std::int64_t i, std::int64_t j, std::int64_t from, std::int64_t to) {
                const std::int64_t first = planes.cell_at(i, 0), last = planes.cell_at(i, planes.extent),
                                   top = plane.rows.cell_at(j, 0),
                                   bottom = plane.rows.cell_at(j, plane.rows.extent);
                const T* corner = x + corner_of(image, i, j);
                for (std::int64_t o = from; o < to; ++o) {
                  const ConvInside& in = inside_[static_cast<std::size_t>(o)];
                  columns = clear(columns, first * lines);
                  for (std::int64_t p = first; p < last; ++p) {
                    columns = clear(columns, top * line);
                    for (std::int64_t r = top; r < bottom; ++r, columns += line)
                      gather_line(corner + element_of(p, r, in.pixel), in, columns);
                    columns = clear(columns, (plane.rows.size - bottom) * line);
                  }
                  columns = clear(columns, (planes.size - last) * lines);
                }
              });
  }

  // copy and clear write whole vectors; elements beyond the end are overwritten by the next call.
  static void copy(const T* x, T* columns, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += kWidth<T>)
      Batch<T>::load_unaligned(x + i).store_unaligned(columns + i);
  }
  static T* clear(T* columns, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += kWidth<T>)
      Batch<T>(T(0)).store_unaligned(columns + i);
    return columns + n;
  }
  // Whether the cells of a line are contiguous in x.
  bool in_one_run() const { return c_.window.plane.columns.dilation == 1 && c_.groups == 1; }
  std::int64_t cell_step() const { return c_.window.plane.columns.dilation * c_.in; }

  void gather_line(const T* x, const ConvInside& in, T* columns) const {
    clear(columns, in.begin * channels_);
    if (in_one_run())
      copy(x, columns + in.begin * channels_, (in.end - in.begin) * channels_);
    else
      for (std::int64_t k = in.begin; k < in.end; ++k, x += cell_step())
        copy(x, columns + k * channels_, channels_);
    clear(columns + in.end * channels_, (c_.window.plane.columns.size - in.end) * channels_);
  }

  void add_line(const T* columns, const ConvInside& in, T* dx) const {
    columns += in.begin * channels_;
    if (in_one_run()) return add(columns, dx, (in.end - in.begin) * channels_);
    for (std::int64_t k = in.begin; k < in.end; ++k, columns += channels_, dx += cell_step())
      add(columns, dx, channels_);
  }

  const Conv& c_;
  std::int64_t channels_;   // per group
  bool is_view_;
  CachedVector<ConvInside> inside_;
};

// Calls f(begin, end) for pieces of [begin, end).
template <class F> void each_piece(std::int64_t begin, std::int64_t end, std::int64_t piece, const F& f) {
  for (std::int64_t p = begin; p < end; p += piece)
    f(p, std::min(p + piece, end));
}

double work_of_position(const Conv& c) { return static_cast<double>(c.weights()); }
std::int64_t at_least_one(double n) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(n, 1e15)));
}

template <class T> void forward(const Conv& c, const T* x, const T* filters, T* y) {
  const Im2col<T> matrix(c);
  const std::int64_t piece = matrix.piece(), pieces = (matrix.positions() + piece - 1) / piece,
                     out = c.out / c.groups;
  const OneBlasThread guard;
  parallel_for(pieces, at_least_one(kConvTask / (work_of_position(c) * static_cast<double>(piece))),
               [&](std::int64_t first, std::int64_t last) {
                 const Scratch<T> scratch = matrix.scratch();
                 each_piece(first * piece, std::min(last * piece, matrix.positions()), piece,
                            [&](std::int64_t begin, std::int64_t end) {
                              for (std::int64_t g = 0; g < c.groups; ++g)
                                gemm(MatrixProduct<T>{.m = end - begin,
                                                      .n = out,
                                                      .k = matrix.width(),
                                                      .a = matrix.rows(x, g, begin, end, scratch.get()),
                                                      .b = filters + g * out,
                                                      .y = y + begin * c.out + g * out,
                                                      .lda = matrix.step(),
                                                      .ldb = c.out,
                                                      .ldy = c.out});
                            });
               });
}

// Adds the im2col rows of all positions to the pixels from which they were read. columns(group, begin, end,
// scratch) returns the rows of a piece.
template <class T, class F>
void scatter(const Im2col<T>& matrix, const Conv& c, double work, double task, T* dx, const F& columns) {
  const WindowAxis& planes = c.window.planes;
  const std::int64_t plane_outputs = c.window.plane.outputs(), outputs = c.window.outputs(),
                     plane = c.window.plane.pixels() * c.in;
  const RowTasks tasks(planes, c.images, work * static_cast<double>(outputs), task);
  parallel_for(tasks.count(), 1, [&](std::int64_t first, std::int64_t last) {
    const Scratch<T> scratch = matrix.scratch();
    for (std::int64_t i = first; i < last; ++i) {
      const RowTasks::Task t = tasks[i];
      std::int64_t begin = t.image_begin * outputs, end = t.image_end * outputs;
      if (t.image_end - t.image_begin == 1) {
        end = begin + planes.output_end(t.row_end) * plane_outputs;
        begin += planes.output_begin(t.row_begin) * plane_outputs;
      }
      for (std::int64_t n = t.image_begin; n < t.image_end; ++n)
        std::fill_n(dx + (n * planes.extent + t.row_begin) * plane, (t.row_end - t.row_begin) * plane, T(0));
      each_piece(begin, end, matrix.piece(), [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t g = 0; g < c.groups; ++g)
          matrix.scatter_add(columns(g, from, to, scratch.get()), g, from, to, t.row_begin, t.row_end, dx);
      });
    }
  });
}

template <class T> void input_gradient(const Conv& c, const T* dy, const T* filters, T* dx) {
  const Im2col<T> matrix(c);
  const std::int64_t out = c.out / c.groups;
  const auto columns_of = [&](std::int64_t g, std::int64_t begin, std::int64_t end, T* columns) {
    gemm(MatrixProduct<T>{.m = end - begin,
                          .n = matrix.width(),
                          .k = out,
                          .a = dy + begin * c.out + g * out,
                          .b = filters + g * out,
                          .y = columns,
                          .b_transposed = true,
                          .lda = c.out,
                          .ldb = c.out,
                          .ldy = matrix.step()});
    return columns;
  };
  const OneBlasThread guard;
  if (!matrix.is_view()) return scatter(matrix, c, work_of_position(c), kConvTask, dx, columns_of);
  const std::int64_t piece = std::max(matrix.piece(), at_least_one(kConvTask / work_of_position(c)));
  parallel_for(matrix.positions(), piece, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = 0; g < c.groups; ++g)
      columns_of(g, begin, end, dx + begin * c.in + g * (c.in / c.groups));
  });
}

template <class T> void gather(const Conv& c, const T* x, T* y) {
  const Im2col<T> matrix(c);
  const std::int64_t k = matrix.width(), piece = matrix.piece();
  if (matrix.is_view()) return static_cast<void>(std::copy_n(x, matrix.positions() * k, y));
  // Goes through scratch memory, since gather writes whole vectors past the end.
  parallel_for((matrix.positions() + piece - 1) / piece, 1, [&](std::int64_t first, std::int64_t last) {
    const Scratch<T> scratch = matrix.scratch();
    each_piece(first * piece, std::min(last * piece, matrix.positions()), piece,
               [&](std::int64_t begin, std::int64_t end) {
                 std::copy_n(matrix.rows(x, 0, begin, end, scratch.get()), (end - begin) * k, y + begin * k);
               });
  });
}

template <class T> void filter_gradient(const Conv& c, const T* x, const T* dy, T* dfilters) {
  const Im2col<T> matrix(c);
  const std::int64_t n = c.weights(), out = c.out / c.groups, piece = matrix.piece(),
                     pieces = (matrix.positions() + piece - 1) / piece;
  // Each partial sum adds its pieces in order.
  const std::int64_t most = std::min(
      {kMaxPartialSums, pieces,
       at_least_one(static_cast<double>(kMaxPartialSumBytes) / (static_cast<double>(n) * sizeof(T)))});
  const std::int64_t wanted = std::min(most, at_least_one(c.work() / (4 * kConvTask)));
  const std::int64_t per_partial = (pieces + wanted - 1) / wanted,
                     partials = (pieces + per_partial - 1) / per_partial;
  const PartialSums<T> sums(partials, n, dfilters);
  const OneBlasThread guard;
  parallel_for(partials, 1, [&](std::int64_t first, std::int64_t last) {
    const Scratch<T> scratch = matrix.scratch();
    for (std::int64_t s = first; s < last; ++s) {
      bool add = false;
      each_piece(s * per_partial * piece, std::min((s + 1) * per_partial * piece, matrix.positions()), piece,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t g = 0; g < c.groups; ++g)
                     gemm(MatrixProduct<T>{.m = matrix.width(),
                                           .n = out,
                                           .k = end - begin,
                                           .a = matrix.rows(x, g, begin, end, scratch.get()),
                                           .b = dy + begin * c.out + g * out,
                                           .y = sums[s] + g * out,
                                           .a_transposed = true,
                                           .lda = matrix.step(),
                                           .ldb = c.out,
                                           .ldy = c.out,
                                           .add = add});
                   add = true;
                 });
    }
  });
  sums.add_up();
}

// Treats an image as a volume whose planes have one row, so that work is cut between rows.
Conv in_planes(Conv c) {
  if (c.window.planes == kOne) std::swap(c.window.planes, c.window.plane.rows);
  return c;
}

void fill_with_zeros(Tensor& y) { std::memset(y.raw(), 0, static_cast<std::size_t>(y.nbytes())); }

// Whether the matrix, or the product, is empty.
bool no_columns(const Conv& c) { return c.images == 0 || c.in == 0 || c.window.outputs() == 0; }
bool nothing(const Conv& c) { return no_columns(c) || c.out == 0; }

// Whether im2col costs more than it saves: the products of groups are narrow, and windows over volumes have
// many short lines.
bool uses_grouped_conv(const Conv& c) { return c.groups > 1 || c.window.plane.rows != kOne; }
// Whether the input gradient uses direct convolution. Few channels would leave vectors partly empty.
bool gradient_uses_grouped_conv(const Conv& c) {
  return c.window.has_strides_of_one() && (c.groups > 1 || (uses_grouped_conv(c) && c.in >= 8));
}

}   // namespace

void conv(const Conv& given, const Tensor& x, const Tensor& filters, Tensor& y) {
  if (nothing(given)) return fill_with_zeros(y);
  const Conv c = in_planes(given);
  if (y.dtype() == DType::f32 &&
      onednn::conv(c, elements<float>(x), elements<float>(filters), elements<float>(y)))
    return;
  if (uses_grouped_conv(c)) return grouped_conv::conv(c, x, filters, y);
  visit_floating(y.dtype(), [&](auto one) {
    using T = decltype(one);
    forward<T>(c, PaddedInput<T>(x), elements<T>(filters), elements<T>(y));
  });
}

void conv_input_gradient(const Conv& given, const Tensor& dy, const Tensor& filters, Tensor& dx) {
  if (nothing(given)) return fill_with_zeros(dx);
  const Conv c = in_planes(given);
  if (dx.dtype() == DType::f32 &&
      onednn::conv_input_gradient(c, elements<float>(dy), elements<float>(filters), elements<float>(dx)))
    return;
  if (gradient_uses_grouped_conv(c)) return grouped_conv::conv_input_gradient(c, dy, filters, dx);
  visit_floating(dx.dtype(), [&](auto one) {
    using T = decltype(one);
    input_gradient<T>(c, elements<T>(dy), elements<T>(filters), elements<T>(dx));
  });
}

void conv_filter_gradient(const Conv& given, const Tensor& x, const Tensor& dy, Tensor& dfilters) {
  if (nothing(given)) return fill_with_zeros(dfilters);
  const Conv c = in_planes(given);
  if (x.dtype() == DType::f32 &&
      onednn::conv_filter_gradient(c, elements<float>(x), elements<float>(dy), elements<float>(dfilters)))
    return;
  if (uses_grouped_conv(c)) return grouped_conv::conv_filter_gradient(c, x, dy, dfilters);
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    filter_gradient<T>(c, PaddedInput<T>(x), elements<T>(dy), elements<T>(dfilters));
  });
}

void patches(const Conv& given, const Tensor& x, Tensor& y) {
  if (no_columns(given)) return fill_with_zeros(y);
  const Conv c = in_planes(given);
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    gather<T>(c, PaddedInput<T>(x), elements<T>(y));
  });
}

void patches_gradient(const Conv& given, const Tensor& dy, Tensor& dx) {
  if (no_columns(given)) return fill_with_zeros(dx);
  const Conv c = in_planes(given);
  visit_floating(dx.dtype(), [&](auto one) {
    using T = decltype(one);
    const Im2col<T> matrix(c);
    const T* from = elements<T>(dy);
    scatter(matrix, c, static_cast<double>(matrix.width()), static_cast<double>(kConvGrain), elements<T>(dx),
            [from, k = matrix.width()](std::int64_t, std::int64_t begin, std::int64_t, T*) {
              return from + begin * k;
            });
  });
}

}   // namespace tapedeck::kernels
