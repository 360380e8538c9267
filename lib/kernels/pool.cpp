// Pooling, vectorised over channels: for each output position a group of channels at a time passes over the window's cells.
#include "kernels/pool.h"

#include <algorithm>
#include <limits>

#include "base/parallel.h"
#include "base/visit.h"
#include "kernels/lanes.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kCut{1 << 16, 1 << 18};   // elements read

// Whether v takes the place of the largest so far; the first NaN does, and keeps it.
bool beats(auto v, auto best) requires std::is_floating_point_v<decltype(v)> { return v > best || (v != v && best == best); }
template <class T> xsimd::batch_bool<T> beats(const Batch<T>& v, const Batch<T>& best) { return (v > best) | (~(v == v) & (best == best)); }

/// The part of a window that lies inside the image.
struct Cells {
  std::int64_t row_begin, row_end, column_begin, column_end;

  template <class T> T count() const { return static_cast<T>((row_end - row_begin) * (column_end - column_begin)); }
  Cells in_rows(std::int64_t begin, std::int64_t end) const { return {std::max(row_begin, begin), std::min(row_end, end), column_begin, column_end}; }
};

// Calls f(image, position in y, cells) for the windows of the output rows [begin, end) of an image.
template <class F> void each_window(const Pool2d& p, std::int64_t image, std::int64_t begin, std::int64_t end, const F& f) {
  const auto& [rows, columns] = p.window;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t top = rows.position(i, 0), row_begin = std::max<std::int64_t>(top, 0), row_end = std::min(top + rows.size, rows.extent);
    for (std::int64_t j = 0; j < columns.outputs; ++j) {
      const std::int64_t left = columns.position(j, 0);
      f(image, (image * rows.outputs + i) * columns.outputs + j, Cells{row_begin, row_end, std::max<std::int64_t>(left, 0), std::min(left + columns.size, columns.extent)});
    }
  }
}

double work_of_line(const Pool2d& p) { return static_cast<double>(p.window.columns.outputs * p.channels) * static_cast<double>(p.window.cells()); }

/// f(image, position, cells) for every window, in any order.
template <class F> void for_outputs(const Pool2d& p, const F& f) {
  const std::int64_t lines = p.window.rows.outputs;
  parallel_for(p.images * lines, cut_of(kCut, static_cast<std::int64_t>(std::min(work_of_line(p), 1e15))), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) each_window(p, line / lines, line % lines, line % lines + 1, f);
  });
}

/// Sets dx to zero, then f(image, position, cells, owned) for every window that reaches rows which a task owns. It may write
/// to these rows only.
template <class T, class F> void for_inputs(const Pool2d& p, T* dx, const F& f) {
  const WindowAxis& rows = p.window.rows;
  const std::int64_t width = p.window.columns.extent * p.channels;
  const RowTasks tasks(rows, p.images, work_of_line(p) * static_cast<double>(rows.outputs), static_cast<double>(kCut.piece));
  parallel_for(tasks.count(), Cut{1, kCut.least / kCut.piece}, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const RowTasks::Task t = tasks[i];
      for (std::int64_t image = t.image_begin; image < t.image_end; ++image) {
        std::fill_n(dx + (image * rows.extent + t.row_begin) * width, (t.row_end - t.row_begin) * width, T(0));
        each_window(p, image, rows.output_begin(t.row_begin), rows.output_end(t.row_end),
                    [&](std::int64_t, std::int64_t position, const Cells& cells) { f(image, position, cells, cells.in_rows(t.row_begin, t.row_end)); });
      }
    }
  });
}

// An image from some channel on.
template <class T> struct Image {
  T* first;
  std::int64_t row, pixel;   // strides

  Image(T* images, const Pool2d& p, std::int64_t image, std::int64_t channel)
      : first(images + image * p.window.pixels() * p.channels + channel), row(p.window.columns.extent * p.channels), pixel(p.channels) {}
  T* at(std::int64_t r, std::int64_t c) const { return first + r * row + c * pixel; }
};

/// The largest cell of some channels, and its number; the first where several are equal.
template <class V, class T> struct Largest {
  V value = V(-std::numeric_limits<T>::infinity()), number = V(T(0));

  Largest(const Image<const T>& x, const Cells& cells) {
    T n = 0;
    for (std::int64_t r = cells.row_begin; r < cells.row_end; ++r)
      for (std::int64_t c = cells.column_begin; c < cells.column_end; ++c, ++n) {
        const V v = load<V>(x.at(r, c));
        const auto better = beats(v, value);
        value = choose(better, v, value);
        number = choose(better, V(n), number);
      }
  }
};

template <class T> void run_max(const Pool2d& p, const T* x, T* y) {
  for_outputs(p, [&](std::int64_t image, std::int64_t position, const Cells& cells) {
    each_group<T>(p.channels, [&](std::int64_t channel, auto group) {
      store(Largest<decltype(group), T>(Image(x, p, image, channel), cells).value, y + position * p.channels + channel);
    });
  });
}

template <class T> void run_max_scatter(const Pool2d& p, const T* dy, const T* x, std::int64_t x_images, T* dx) {
  for_inputs(p, dx, [&](std::int64_t image, std::int64_t position, const Cells& cells, const Cells& owned) {
    each_group<T>(p.channels, [&](std::int64_t channel, auto group) {
      using V = decltype(group);
      const Largest<V, T> best(Image(x, p, image % x_images, channel), cells);
      const auto known = best.value == best.value;
      const V d = choose(known, load<V>(dy + position * p.channels + channel), best.value);
      const Image to(dx, p, image, channel);
      T n = static_cast<T>((owned.row_begin - cells.row_begin) * (cells.column_end - cells.column_begin));
      for (std::int64_t r = owned.row_begin; r < owned.row_end; ++r)
        for (std::int64_t c = owned.column_begin; c < owned.column_end; ++c, ++n) store(load<V>(to.at(r, c)) + choose(known & !(best.number == V(n)), V(T(0)), d), to.at(r, c));
    });
  });
}

template <class T> void run_max_gather(const Pool2d& p, const T* v, const T* x, std::int64_t x_images, T* y) {
  for_outputs(p, [&](std::int64_t image, std::int64_t position, const Cells& cells) {
    each_group<T>(p.channels, [&](std::int64_t channel, auto group) {
      using V = decltype(group);
      const Largest<V, T> best(Image(x, p, image % x_images, channel), cells);
      const Image from(v, p, image, channel);
      V found(T(0));
      T n = 0;
      for (std::int64_t r = cells.row_begin; r < cells.row_end; ++r)
        for (std::int64_t c = cells.column_begin; c < cells.column_end; ++c, ++n) found = choose(best.number == V(n), load<V>(from.at(r, c)), found);
      store(choose(best.value == best.value, found, best.value), y + position * p.channels + channel);
    });
  });
}

template <class T> void run_avg(const Pool2d& p, const T* x, T* y) {
  for_outputs(p, [&](std::int64_t image, std::int64_t position, const Cells& cells) {
    each_group<T>(p.channels, [&](std::int64_t channel, auto group) {
      using V = decltype(group);
      const Image from(x, p, image, channel);
      V total(T(0));
      for (std::int64_t r = cells.row_begin; r < cells.row_end; ++r) {   // lines first: errors of large windows stay small
        V line(T(0));
        for (std::int64_t c = cells.column_begin; c < cells.column_end; ++c) line += load<V>(from.at(r, c));
        total += line;
      }
      store(total / V(cells.count<T>()), y + position * p.channels + channel);
    });
  });
}

template <class T> void run_avg_gradient(const Pool2d& p, const T* dy, T* dx) {
  for_inputs(p, dx, [&](std::int64_t image, std::int64_t position, const Cells& cells, const Cells& owned) {
    each_group<T>(p.channels, [&](std::int64_t channel, auto group) {
      using V = decltype(group);
      const V share = load<V>(dy + position * p.channels + channel) / V(cells.count<T>());
      const Image to(dx, p, image, channel);
      for (std::int64_t r = owned.row_begin; r < owned.row_end; ++r)
        for (std::int64_t c = owned.column_begin; c < owned.column_end; ++c) store(load<V>(to.at(r, c)) + share, to.at(r, c));
    });
  });
}

}  // namespace

void max_pool2d(const Pool2d& p, const Tensor& x, Tensor& y) {
  visit_floating(y.dtype(), [&](auto one) { using T = decltype(one); run_max(p, elements<T>(x), elements<T>(y)); });
}

void max_pool2d_scatter(const Pool2d& p, const Tensor& dy, const Tensor& x, std::int64_t x_images, Tensor& dx) {
  visit_floating(dx.dtype(), [&](auto one) { using T = decltype(one); run_max_scatter(p, elements<T>(dy), elements<T>(x), x_images, elements<T>(dx)); });
}

void max_pool2d_gather(const Pool2d& p, const Tensor& v, const Tensor& x, std::int64_t x_images, Tensor& y) {
  visit_floating(y.dtype(), [&](auto one) { using T = decltype(one); run_max_gather(p, elements<T>(v), elements<T>(x), x_images, elements<T>(y)); });
}

void avg_pool2d(const Pool2d& p, const Tensor& x, Tensor& y) {
  visit_floating(y.dtype(), [&](auto one) { using T = decltype(one); run_avg(p, elements<T>(x), elements<T>(y)); });
}

void avg_pool2d_gradient(const Pool2d& p, const Tensor& dy, Tensor& dx) {
  visit_floating(dx.dtype(), [&](auto one) { using T = decltype(one); run_avg_gradient(p, elements<T>(dy), elements<T>(dx)); });
}

}  // namespace tapedeck::kernels
