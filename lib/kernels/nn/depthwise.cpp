// Depthwise convolution and dilation, vectorized over channels: for each output position and vector of
// channels, a loop over the window's cells. Threads split lines, which are rows of outputs, or own rows of
// dx; a filter gradient is the sum of partial sums over lines, cut by sizes alone.
#include "kernels/nn/depthwise.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/bytes.h"
#include "core/visit.h"
#include "kernels/layout/scratch.h"
#include "kernels/simd/lanes.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kDepthwiseCut{1 << 15, 1 << 17};   // products
constexpr double kPartialWork = 1 << 17;         // least products per partial sum of a filter gradient

/// For one output of an axis: the cells [begin, end) of its window that are inside of the image.
struct DepthwiseInside {
  std::int64_t begin, end, first;   // first: the position that cell `begin` reads
};
std::vector<DepthwiseInside> inside_of(const WindowAxis& a) {
  std::vector<DepthwiseInside> all;
  for (std::int64_t o = 0; o < a.outputs; ++o) {
    const std::int64_t begin = a.cell_at(o, 0);
    all.push_back({begin, a.cell_at(o, a.extent), a.position(o, begin)});
  }
  return all;
}

/// The precomputed positions that windows read.
struct Geometry {
  std::vector<DepthwiseInside> rows, columns;
  std::int64_t channels, width, row_step, column_step;   // steps from one cell to the next, in elements

  explicit Geometry(const Depthwise& g)
      : rows(inside_of(g.window.rows)),
        columns(inside_of(g.window.columns)),
        channels(g.channels),
        width(g.window.columns.extent),
        row_step(g.window.rows.dilation * width * channels),
        column_step(g.window.columns.dilation * channels) {}

  /// Calls f(offset in the image, offset in the filters) for the cells that an output reads, in rows
  /// [row_begin, row_end).
  template <class F> void each_cell(const Depthwise& g, const DepthwiseInside& r, const DepthwiseInside& c,
                                    std::int64_t row_begin, std::int64_t row_end, const F& f) const {
    for (std::int64_t i = row_begin; i < row_end; ++i) {
      std::int64_t at = r.first * width * channels + (i - r.begin) * row_step + c.first * channels,
                   filter = (i * g.window.columns.size + c.begin) * channels;
      for (std::int64_t j = c.begin; j < c.end; ++j, at += column_step, filter += channels)
        f(at, filter);
    }
  }
};

double work_of_line(const Depthwise& g) {
  return static_cast<double>(g.window.columns.outputs * g.channels) * static_cast<double>(g.window.cells());
}

/// The number of rows of outputs of all images; 0 if rows are empty, since there may be billions of empty
/// ones.
std::int64_t lines_of(const Depthwise& g) {
  return g.window.columns.outputs * g.channels == 0 ? 0 : g.images * g.window.rows.outputs;
}

/// Calls f(image, position in y, output row, output column) for all outputs, in parallel.
template <class F> void for_outputs(const Depthwise& g, const F& f) {
  const std::int64_t rows = g.window.rows.outputs, columns = g.window.columns.outputs;
  parallel_for(lines_of(g), cut_of(kDepthwiseCut, static_cast<std::int64_t>(std::min(work_of_line(g), 1e15))),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t line = begin; line < end; ++line)
                   for (std::int64_t j = 0; j < columns; ++j)
                     f(line / rows, line * columns + j, static_cast<std::size_t>(line % rows),
                       static_cast<std::size_t>(j));
               });
}

/// y = the fold f(accumulator, x, filter) over the cells of each window, starting with `first`.
template <class T, class F>
void fold_windows(const Depthwise& g, const T* x, const T* filters, T first, T* y, const F& f) {
  const Geometry at(g);
  const std::int64_t image_size = g.window.pixels() * g.channels, channels = g.channels;
  for_outputs(g, [&](std::int64_t image, std::int64_t position, std::size_t i, std::size_t j) {
    const T* from = x + image * image_size;
    each_group<T>(channels, [&](std::int64_t c, auto group) {
      using V = decltype(group);
      V total(first);
      at.each_cell(g, at.rows[i], at.columns[j], at.rows[i].begin, at.rows[i].end,
                   [&](std::int64_t e, std::int64_t filter) {
                     total = f(total, load<V>(from + e + c), load<V>(filters + filter + c));
                   });
      store(total, y + position * channels + c);
    });
  });
}

template <class T> void forward(const Depthwise& g, const T* x, const T* filters, T* y) {
  fold_windows(g, x, filters, T(0), y,
               [](auto total, auto a, auto b) { return detail::multiply_add(a, b, total); });
}

// Each task owns rows of images and visits all windows that reach them.
template <class T> void input_gradient(const Depthwise& g, const T* dy, const T* filters, T* dx) {
  const Geometry at(g);
  const WindowAxis& rows = g.window.rows;
  const std::int64_t channels = g.channels, line = g.window.columns.extent * channels;
  if (rows.extent * line == 0) return;
  const RowTasks tasks(rows, g.images, work_of_line(g) * static_cast<double>(rows.outputs),
                       static_cast<double>(kDepthwiseCut.piece));
  parallel_for(
      tasks.count(), Cut{1, kDepthwiseCut.least / kDepthwiseCut.piece},
      [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t task = first; task < last; ++task) {
          const RowTasks::Task t = tasks[task];
          for (std::int64_t image = t.image_begin; image < t.image_end; ++image) {
            T* to = dx + image * rows.extent * line;
            std::fill_n(to + t.row_begin * line, (t.row_end - t.row_begin) * line, T(0));
            for (std::int64_t i = rows.output_begin(t.row_begin); i < rows.output_end(t.row_end); ++i)
              for (std::int64_t j = 0; j < g.window.columns.outputs; ++j) {
                const T* d = dy + ((image * rows.outputs + i) * g.window.columns.outputs + j) * channels;
                const DepthwiseInside& r = at.rows[static_cast<std::size_t>(i)];
                at.each_cell(g, r, at.columns[static_cast<std::size_t>(j)], rows.cell_at(i, t.row_begin),
                             rows.cell_at(i, t.row_end), [&](std::int64_t e, std::int64_t filter) {
                               each_group<T>(channels, [&](std::int64_t c, auto group) {
                                 using V = decltype(group);
                                 store(detail::multiply_add(load<V>(d + c), load<V>(filters + filter + c),
                                                            load<V>(to + e + c)),
                                       to + e + c);
                               });
                             });
              }
          }
        }
      });
}

// Each partial sum adds the terms of its lines in order; then the partial sums are added in order.
template <class T> void filter_gradient(const Depthwise& g, const T* x, const T* dy, T* dfilters) {
  const Geometry at(g);
  const std::int64_t channels = g.channels, rows = g.window.rows.outputs, columns = g.window.columns.outputs,
                     lines = lines_of(g), n = g.window.cells() * channels;
  const std::int64_t partials = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(work_of_line(g) * static_cast<double>(lines) / kPartialWork), 1,
      std::min(kMaxPartialSums, std::max<std::int64_t>(lines, 1)));
  const PartialSums<T> sums(partials, n, dfilters);
  parallel_for(partials, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t s = first; s < last; ++s) {
      T* sum = sums[s];
      std::fill_n(sum, n, T(0));
      for (std::int64_t k = s * lines / partials; k < (s + 1) * lines / partials; ++k) {
        const T* from = x + k / rows * g.window.pixels() * channels;
        const DepthwiseInside& r = at.rows[static_cast<std::size_t>(k % rows)];
        for (std::int64_t j = 0; j < columns; ++j) {
          const T* d = dy + (k * columns + j) * channels;
          at.each_cell(g, r, at.columns[static_cast<std::size_t>(j)], r.begin, r.end,
                       [&](std::int64_t e, std::int64_t filter) {
                         each_group<T>(channels, [&](std::int64_t c, auto group) {
                           using V = decltype(group);
                           store(detail::multiply_add(load<V>(from + e + c), load<V>(d + c),
                                                      load<V>(sum + filter + c)),
                                 sum + filter + c);
                         });
                       });
        }
      }
    }
  });
  sums.add_up();
}

// Whether v replaces the largest value so far. The first NaN does, and stays.
template <class T> bool beats(T v, T best) { return v > best || (v != v && best == best); }

template <class T> void run_dilation(const Depthwise& g, const T* x, const T* filters, T* y) {
  fold_windows(g, x, filters, -std::numeric_limits<T>::infinity(), y, [](auto largest, auto a, auto b) {
    const auto v = a + b;
    return choose((v > largest) | !(v == v), v, largest);
  });
}

template <class T> void run_positions(const Depthwise& g, const T* x, const T* filters, std::int64_t* of_x,
                                      std::int64_t* of_filters) {
  const Geometry at(g);
  const std::int64_t image_size = g.window.pixels() * g.channels, channels = g.channels;
  for_outputs(g, [&](std::int64_t image, std::int64_t position, std::size_t i, std::size_t j) {
    for (std::int64_t c = 0; c < channels; ++c) {
      T largest = 0;
      std::int64_t element = -1, cell = 0;
      at.each_cell(g, at.rows[i], at.columns[j], at.rows[i].begin, at.rows[i].end,
                   [&](std::int64_t e, std::int64_t filter) {
                     const T v = x[image * image_size + e + c] + filters[filter + c];
                     if (element < 0 || beats(v, largest)) largest = v, element = e, cell = filter;
                   });
      of_x[position * channels + c] = image * image_size + element + c;
      of_filters[position * channels + c] = cell + c;
    }
  });
}

}   // namespace

void depthwise(const Depthwise& g, const Tensor& x, const Tensor& filters, Tensor& y) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    forward(g, elements<T>(x), elements<T>(filters), elements<T>(y));
  });
}
void depthwise_input_gradient(const Depthwise& g, const Tensor& dy, const Tensor& filters, Tensor& dx) {
  visit_floating(dy.dtype(), [&](auto one) {
    using T = decltype(one);
    input_gradient(g, elements<T>(dy), elements<T>(filters), elements<T>(dx));
  });
}
void depthwise_filter_gradient(const Depthwise& g, const Tensor& x, const Tensor& dy, Tensor& dfilters) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    filter_gradient(g, elements<T>(x), elements<T>(dy), elements<T>(dfilters));
  });
}
void dilation(const Depthwise& g, const Tensor& x, const Tensor& filters, Tensor& y) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    run_dilation(g, elements<T>(x), elements<T>(filters), elements<T>(y));
  });
}
void dilation_positions(const Depthwise& g, const Tensor& x, const Tensor& filters, Tensor& of_x,
                        Tensor& of_filters) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    run_positions(g, elements<T>(x), elements<T>(filters), elements<std::int64_t>(of_x),
                  elements<std::int64_t>(of_filters));
  });
}

}   // namespace tapedeck::kernels
