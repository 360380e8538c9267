// Convolutions as matrix products. What the window reads for an output position is a row of a matrix of "columns", which is
// made piece by piece, small enough for the second cache, and multiplied by BLAS. A window of one pixel reads x itself.
#include "kernels/conv.h"

#include <cstring>

#include "base/visit.h"
#include "kernels/gemm.h"
#include "kernels/onednn.h"
#include "kernels/room.h"
#include "kernels/simd.h"

namespace tapedeck::kernels {
namespace {

constexpr std::int64_t kPieceBytes = 1 << 18;     // of columns: a share of the second cache
constexpr std::int64_t kPiecePositions = 192;     // at least, since BLAS rearranges the filters for every piece
constexpr double kTask = 1 << 24;                 // multiplications that are worth a thread
constexpr std::int64_t kGrain = 1 << 16;          // elements to add up that are worth a thread

// x with a whole vector to read behind its last element. Tensors in their handles have none.
template <class T> class Readable {
 public:
  explicit Readable(const Tensor& x) : x_(elements<T>(x)) {
    if (!x.handle()->buffer) x_ = std::copy_n(x_, x.size(), copy_) - x.size();
  }
  operator const T*() const { return x_; }

 private:
  const T* x_;
  alignas(64) T copy_[2 * kGroup<T>] = {};
};

// The cells of the window that lie inside the image, for an output column.
struct Inside { std::int64_t begin, end, pixel; };

template <class T> void add(const T* __restrict x, T* __restrict y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

/// The columns matrix of a convolution; positions count through all images' outputs.
template <class T> class Columns {
 public:
  explicit Columns(const Conv2d& c) : c_(c), direct_(is_direct(c.window.rows) && is_direct(c.window.columns)), inside_(static_cast<std::size_t>(c.window.columns.outputs)) {
    const WindowAxis& a = c.window.columns;
    for (std::int64_t o = 0; o < a.outputs; ++o) {
      const std::int64_t begin = a.cell_at(o, 0);
      inside_[static_cast<std::size_t>(o)] = {begin, a.cell_at(o, a.extent), a.position(o, begin)};
    }
  }

  /// The matrix is x itself.
  bool direct() const { return direct_; }
  std::int64_t width() const { return c_.window.cells() * c_.in; }
  std::int64_t positions() const { return c_.images * c_.window.outputs(); }
  double work() const { return static_cast<double>(width()) * static_cast<double>(c_.out); }   // of one position
  /// Positions that are computed at once.
  std::int64_t piece() const { return std::max(kPiecePositions, kPieceBytes / (std::max<std::int64_t>(width(), 1) * static_cast<std::int64_t>(sizeof(T)))); }
  /// Room for a piece. Copies write whole vectors.
  Room<T> room() const { return direct_ ? nullptr : room_for<T>(std::min(piece(), positions()) * width() + kGroup<T>); }

  void gather(const T* x, std::int64_t begin, std::int64_t end, T* columns) const {
    const WindowAxis &rows = c_.window.rows, &across = c_.window.columns;
    const std::int64_t line = across.size * c_.in;
    each_line(begin, end, [&](std::int64_t image, std::int64_t row, std::int64_t from, std::int64_t to) {
      const std::int64_t first = rows.cell_at(row, 0), last = rows.cell_at(row, rows.extent);
      const T* top = x + (image * rows.extent + rows.position(row, 0)) * across.extent * c_.in;
      for (std::int64_t o = from; o < to; ++o) {
        const Inside& in = inside_[static_cast<std::size_t>(o)];
        clear(columns, first * line);
        columns += first * line;
        for (std::int64_t r = first; r < last; ++r, columns += line) gather_line(top + (r * rows.dilation * across.extent + in.pixel) * c_.in, in, columns);
        clear(columns, (rows.size - last) * line);
        columns += (rows.size - last) * line;
      }
    });
  }

  /// The adjoint, for the rows [row_begin, row_end) of the images.
  void scatter_add(const T* columns, std::int64_t begin, std::int64_t end, std::int64_t row_begin, std::int64_t row_end, T* dx) const {
    const WindowAxis &rows = c_.window.rows, &across = c_.window.columns;
    const std::int64_t line = across.size * c_.in;
    each_line(begin, end, [&](std::int64_t image, std::int64_t row, std::int64_t from, std::int64_t to) {
      const std::int64_t first = rows.cell_at(row, row_begin), last = rows.cell_at(row, row_end);
      T* top = dx + (image * rows.extent + rows.position(row, 0)) * across.extent * c_.in;
      for (std::int64_t o = from; o < to; ++o, columns += width()) {
        const Inside& in = inside_[static_cast<std::size_t>(o)];
        for (std::int64_t r = first; r < last; ++r) add_line(columns + r * line, in, top + (r * rows.dilation * across.extent + in.pixel) * c_.in);
      }
    });
  }

 private:
  static bool is_direct(const WindowAxis& a) { return a.size == 1 && a.stride == 1 && a.before == 0 && a.outputs == a.extent; }

  // Calls f(image, output row, first output column, last + 1) for the lines of the positions [begin, end).
  template <class F> void each_line(std::int64_t begin, std::int64_t end, const F& f) const {
    const std::int64_t n = c_.window.columns.outputs, lines = c_.window.rows.outputs;
    while (begin < end) {
      const std::int64_t line = begin / n, from = begin % n, to = std::min(n, from + end - begin);
      f(line / lines, line % lines, from, to);
      begin += to - from;
    }
  }

  // Whole vectors, over what comes next in the columns.
  static void copy(const T* x, T* columns, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += kWidth<T>) Batch<T>::load_unaligned(x + i).store_unaligned(columns + i);
  }
  static void clear(T* columns, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += kWidth<T>) Batch<T>(T(0)).store_unaligned(columns + i);
  }
  void gather_line(const T* x, const Inside& in, T* columns) const {
    const WindowAxis& across = c_.window.columns;
    clear(columns, in.begin * c_.in);
    if (across.dilation == 1) copy(x, columns + in.begin * c_.in, (in.end - in.begin) * c_.in);
    else for (std::int64_t k = in.begin; k < in.end; ++k, x += across.dilation * c_.in) copy(x, columns + k * c_.in, c_.in);
    clear(columns + in.end * c_.in, (across.size - in.end) * c_.in);
  }

  void add_line(const T* columns, const Inside& in, T* dx) const {
    const WindowAxis& across = c_.window.columns;
    columns += in.begin * c_.in;
    if (across.dilation == 1) return add(columns, dx, (in.end - in.begin) * c_.in);
    for (std::int64_t k = in.begin; k < in.end; ++k, columns += c_.in, dx += across.dilation * c_.in) add(columns, dx, c_.in);
  }

  const Conv2d& c_;
  bool direct_;
  CachedVector<Inside> inside_;
};

// Calls f(begin, end) for the pieces of [begin, end).
template <class F> void each_piece(std::int64_t begin, std::int64_t end, std::int64_t piece, const F& f) {
  for (std::int64_t p = begin; p < end; p += piece) f(p, std::min(p + piece, end));
}

std::int64_t at_least_one(double n) { return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(n, 1e15))); }

template <class T> void forward(const Conv2d& c, const T* x, const T* filters, T* y) {
  const Columns<T> matrix(c);
  const std::int64_t k = matrix.width(), piece = matrix.piece(), pieces = (matrix.positions() + piece - 1) / piece;
  const OneBlasThread guard;
  parallel_for(pieces, at_least_one(kTask / (matrix.work() * static_cast<double>(piece))), [&](std::int64_t first, std::int64_t last) {
    const Room<T> room = matrix.room();
    each_piece(first * piece, std::min(last * piece, matrix.positions()), piece, [&](std::int64_t begin, std::int64_t end) {
      const T* columns = matrix.direct() ? x + begin * k : room.get();
      if (!matrix.direct()) matrix.gather(x, begin, end, room.get());
      gemm(Product<T>{.m = end - begin, .n = c.out, .k = k, .a = columns, .b = filters, .y = y + begin * c.out, .lda = k, .ldb = c.out, .ldy = c.out});
    });
  });
}

// Adds the columns of all positions to the pixels that they were read from; columns(begin, end, room) gives those of a piece.
template <class T, class F> void scatter(const Columns<T>& matrix, const Conv2d& c, double work, double task, T* dx, const F& columns) {
  const Window2d& w = c.window;
  const std::int64_t line = w.columns.outputs, image = w.outputs(), width = w.columns.extent * c.in;
  const RowTasks tasks(w.rows, c.images, work * static_cast<double>(image), task);
  parallel_for(tasks.count(), 1, [&](std::int64_t first, std::int64_t last) {
    const Room<T> room = matrix.room();
    for (std::int64_t i = first; i < last; ++i) {
      const RowTasks::Task t = tasks[i];
      std::int64_t begin = t.image_begin * image, end = t.image_end * image;
      if (t.image_end - t.image_begin == 1) {
        end = begin + w.rows.output_end(t.row_end) * line;
        begin += w.rows.output_begin(t.row_begin) * line;
      }
      for (std::int64_t n = t.image_begin; n < t.image_end; ++n) std::fill_n(dx + (n * w.rows.extent + t.row_begin) * width, (t.row_end - t.row_begin) * width, T(0));
      each_piece(begin, end, matrix.piece(), [&](std::int64_t from, std::int64_t to) {
        matrix.scatter_add(columns(from, to, room.get()), from, to, t.row_begin, t.row_end, dx);
      });
    }
  });
}

template <class T> void input_gradient(const Conv2d& c, const T* dy, const T* filters, T* dx) {
  const Columns<T> matrix(c);
  const std::int64_t k = matrix.width();
  const auto columns_of = [&](std::int64_t begin, std::int64_t end, T* columns) {
    gemm(Product<T>{.m = end - begin, .n = k, .k = c.out, .a = dy + begin * c.out, .b = filters, .y = columns, .b_transposed = true, .lda = c.out, .ldb = c.out, .ldy = k});
    return columns;
  };
  const OneBlasThread guard;
  if (!matrix.direct()) return scatter(matrix, c, matrix.work(), kTask, dx, columns_of);
  const std::int64_t piece = std::max(matrix.piece(), at_least_one(kTask / matrix.work()));
  parallel_for(matrix.positions(), piece, [&](std::int64_t begin, std::int64_t end) { columns_of(begin, end, dx + begin * k); });
}

template <class T> void gather(const Conv2d& c, const T* x, T* y) {
  const Columns<T> matrix(c);
  const std::int64_t k = matrix.width(), piece = matrix.piece();
  if (matrix.direct()) return static_cast<void>(std::copy_n(x, matrix.positions() * k, y));
  // By way of a piece of room, since vectors are written beyond its end.
  parallel_for((matrix.positions() + piece - 1) / piece, 1, [&](std::int64_t first, std::int64_t last) {
    const Room<T> room = matrix.room();
    each_piece(first * piece, std::min(last * piece, matrix.positions()), piece, [&](std::int64_t begin, std::int64_t end) {
      matrix.gather(x, begin, end, room.get());
      std::copy_n(room.get(), (end - begin) * k, y + begin * k);
    });
  });
}

template <class T> void filter_gradient(const Conv2d& c, const T* x, const T* dy, T* dfilters) {
  const Columns<T> matrix(c);
  const std::int64_t k = matrix.width(), n = k * c.out, piece = matrix.piece(), pieces = (matrix.positions() + piece - 1) / piece;
  // Each share adds up its pieces one after the other.
  const std::int64_t most = std::min({kShares, pieces, at_least_one(static_cast<double>(kShareBytes) / (static_cast<double>(n) * sizeof(T)))});
  const std::int64_t wanted = std::min(most, at_least_one(matrix.work() * static_cast<double>(matrix.positions()) / (4 * kTask)));
  const std::int64_t per_share = (pieces + wanted - 1) / wanted, shares = (pieces + per_share - 1) / per_share;
  const Shares<T> sums(shares, n, dfilters);
  const OneBlasThread guard;
  parallel_for(shares, 1, [&](std::int64_t first, std::int64_t last) {
    const Room<T> room = matrix.room();
    for (std::int64_t s = first; s < last; ++s) {
      T* sum = sums[s];
      bool add = false;
      each_piece(s * per_share * piece, std::min((s + 1) * per_share * piece, matrix.positions()), piece, [&](std::int64_t begin, std::int64_t end) {
        const T* columns = matrix.direct() ? x + begin * k : room.get();
        if (!matrix.direct()) matrix.gather(x, begin, end, room.get());
        gemm(Product<T>{.m = k, .n = c.out, .k = end - begin, .a = columns, .b = dy + begin * c.out, .y = sum, .a_transposed = true, .lda = k, .ldb = c.out, .ldy = c.out, .add = add});
        add = true;
      });
    }
  });
  sums.add_up();
}

void fill_with_zeros(Tensor& y) { std::memset(y.raw(), 0, static_cast<std::size_t>(y.nbytes())); }

// Whether there is anything to multiply.
bool no_columns(const Conv2d& c) { return c.images == 0 || c.in == 0 || c.window.outputs() == 0; }
bool nothing(const Conv2d& c) { return no_columns(c) || c.out == 0; }

}  // namespace

void conv2d(const Conv2d& c, const Tensor& x, const Tensor& filters, Tensor& y) {
  if (nothing(c)) return fill_with_zeros(y);
  if (y.dtype() == DType::f32 && onednn::conv2d(c, elements<float>(x), elements<float>(filters), elements<float>(y))) return;
  visit_floating(y.dtype(), [&](auto one) { using T = decltype(one); forward<T>(c, Readable<T>(x), elements<T>(filters), elements<T>(y)); });
}

void conv2d_input_gradient(const Conv2d& c, const Tensor& dy, const Tensor& filters, Tensor& dx) {
  if (nothing(c)) return fill_with_zeros(dx);
  if (dx.dtype() == DType::f32 && onednn::conv2d_input_gradient(c, elements<float>(dy), elements<float>(filters), elements<float>(dx))) return;
  visit_floating(dx.dtype(), [&](auto one) { using T = decltype(one); input_gradient<T>(c, elements<T>(dy), elements<T>(filters), elements<T>(dx)); });
}

void conv2d_filter_gradient(const Conv2d& c, const Tensor& x, const Tensor& dy, Tensor& dfilters) {
  if (nothing(c)) return fill_with_zeros(dfilters);
  if (x.dtype() == DType::f32 && onednn::conv2d_filter_gradient(c, elements<float>(x), elements<float>(dy), elements<float>(dfilters))) return;
  visit_floating(x.dtype(), [&](auto one) { using T = decltype(one); filter_gradient<T>(c, Readable<T>(x), elements<T>(dy), elements<T>(dfilters)); });
}

void patches(const Conv2d& c, const Tensor& x, Tensor& y) {
  if (no_columns(c)) return fill_with_zeros(y);
  visit_floating(x.dtype(), [&](auto one) { using T = decltype(one); gather<T>(c, Readable<T>(x), elements<T>(y)); });
}

void patches_gradient(const Conv2d& c, const Tensor& dy, Tensor& dx) {
  if (no_columns(c)) return fill_with_zeros(dx);
  visit_floating(dx.dtype(), [&](auto one) {
    using T = decltype(one);
    const Columns<T> matrix(c);
    const T* from = elements<T>(dy);
    scatter(matrix, c, static_cast<double>(matrix.width()), static_cast<double>(kGrain), elements<T>(dx),
            [from, k = matrix.width()](std::int64_t begin, std::int64_t, T*) { return from + begin * k; });
  });
}

}  // namespace tapedeck::kernels
