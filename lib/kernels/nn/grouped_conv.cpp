// Direct convolution: a vector of a group's output channels is accumulated in registers for several output
// positions at once; each filter vector that is loaded is used for all of them. Filters are packed into the
// order of use, group by group, in whole vectors; lanes past a group's channels are padding and not stored.
// Threads split lines, which are rows of outputs; a filter gradient is the sum of partial sums over lines,
// cut by sizes alone.
#include "kernels/nn/grouped_conv.h"

#include "core/bytes.h"
#include "core/visit.h"
#include "kernels/layout/scratch.h"
#include "kernels/simd/lanes.h"

namespace tapedeck::kernels::grouped_conv {
namespace {

constexpr double kGroupedTask = 1 << 22;   // least multiplications per thread

/// Precomputed sizes and strides of a convolution.
template <class T> struct Geometry {
  const Conv& c;
  std::int64_t in, out, vectors, cells;   // channels per group, and vectors per group's output channels
  std::int64_t lines;                     // rows of outputs of all images

  explicit Geometry(const Conv& conv)
      : c(conv),
        in(c.in / c.groups),
        out(c.out / c.groups),
        vectors((out + kWidth<T> - 1) / kWidth<T>),
        cells(c.window.cells()),
        lines(c.images * c.window.planes.outputs * c.window.plane.rows.outputs) {}

  std::int64_t packed() const { return c.groups * vectors * cells * in * kWidth<T>; }
  double work_of_line() const {
    return static_cast<double>(c.window.plane.columns.outputs) * static_cast<double>(c.weights());
  }
  std::int64_t lanes(std::int64_t v) const { return std::min(kWidth<T>, out - v * kWidth<T>); }
  const WindowAxis& columns() const { return c.window.plane.columns; }
  std::int64_t pixel_step() const { return columns().stride * c.in; }

  /// Calls f(packed filters of a vector of output channels, group, the vector's first channel, its number of
  /// channels).
  template <class F> void each_vector(T* packed, const F& f) const {
    for (std::int64_t g = 0; g < c.groups; ++g)
      for (std::int64_t v = 0; v < vectors; ++v, packed += cells * in * kWidth<T>)
        f(packed, g, v * kWidth<T>, lanes(v));
  }
  /// Calls f(index of the row of cells in the window, offset in x of the row of pixels that these cells read)
  /// for the rows inside of the image that an output line reads.
  template <class F> void each_line_read(std::int64_t line, const F& f) const {
    const WindowAxis &planes = c.window.planes, &rows = c.window.plane.rows;
    const std::int64_t j = line % rows.outputs, i = line / rows.outputs % planes.outputs,
                       image = line / rows.outputs / planes.outputs;
    const std::int64_t top = rows.cell_at(j, 0), bottom = rows.cell_at(j, rows.extent);
    for (std::int64_t p = planes.cell_at(i, 0); p < planes.cell_at(i, planes.extent); ++p)
      for (std::int64_t r = top; r < bottom; ++r)
        f(p * rows.size + r,
          ((image * planes.extent + planes.position(i, p)) * rows.extent + rows.position(j, r)) *
              columns().extent * c.in);
  }
};

/// Filters packed in the order of use; filter(group, cell, input channel, output channel in the group)
/// returns one element.
template <class T, class F> Scratch<T> packed(const Geometry<T>& geometry, const F& filter) {
  Scratch<T> scratch = scratch_for<T>(geometry.packed());
  geometry.each_vector(scratch.get(), [&](T* to, std::int64_t g, std::int64_t first, std::int64_t lanes) {
    for (std::int64_t cell = 0; cell < geometry.cells; ++cell)
      for (std::int64_t k = 0; k < geometry.in; ++k, to += kWidth<T>) {
        std::fill_n(to, kWidth<T>, T(0));
        for (std::int64_t l = 0; l < lanes; ++l)
          to[l] = filter(g, cell, k, first + l);
      }
  });
  return scratch;
}

// Computes n neighbouring outputs of a line that read the same cells [begin, end) of the columns.
template <int n, class T> void outputs(const Geometry<T>& geometry, std::int64_t line, const T* x,
                                       std::int64_t begin, std::int64_t end, std::int64_t first,
                                       const T* filters, T* y, std::int64_t lanes) {
  const WindowAxis& a = geometry.columns();
  const std::int64_t in = geometry.in, step = geometry.pixel_step();
  Batch<T> total[n];
  for (Batch<T>& t : total)
    t = Batch<T>(T(0));
  geometry.each_line_read(line, [&](std::int64_t cell, std::int64_t at) {
    for (std::int64_t k = begin; k < end; ++k) {
      const T* from[(n + 3) / 4];   // a pointer for every fourth output; the others are at fixed strides
      for (int i = 0; i < n; i += 4)
        from[i / 4] = x + at + (first + k * a.dilation) * geometry.c.in + i * step;
      const T* filter = filters + (cell * a.size + k) * in * kWidth<T>;
      for (const T* const end_of_filter = filter + in * kWidth<T>; filter < end_of_filter;
           filter += kWidth<T>) {
        const Batch<T> f = load<Batch<T>>(filter);
        for (int i = 0; i < n; ++i)
          total[i] = detail::multiply_add(Batch<T>(from[i / 4][i % 4 * step]), f, total[i]);
        for (const T*& p : from)
          ++p;
      }
    }
  });
  for (int i = 0; i < n; ++i, y += geometry.c.out) {
    if (lanes == kWidth<T>) {
      store(total[i], y);
    } else {
      alignas(64) T all[kWidth<T>];
      store(total[i], all);
      std::copy_n(all, lanes, y);
    }
  }
}

template <class T> void convolve(const Geometry<T>& geometry, const T* x, const Scratch<T>& filters, T* y) {
  const WindowAxis& a = geometry.columns();
  const auto is_inside = [&](std::int64_t o) {
    return o < a.outputs && a.position(o, 0) >= 0 && a.position(o, a.size - 1) < a.extent;
  };
  const auto piece = static_cast<std::int64_t>(std::clamp(kGroupedTask / geometry.work_of_line(), 1.0, 1e15));
  parallel_for(geometry.lines, piece, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line)
      geometry.each_vector(filters.get(), [&](const T* f, std::int64_t g, std::int64_t channel,
                                              std::int64_t lanes) {
        const T* from = x + g * geometry.in;
        T* to = y + line * a.outputs * geometry.c.out + g * geometry.out + channel;
        for (std::int64_t o = 0, n; o < a.outputs; o += n, to += n * geometry.c.out) {
          const bool inside = is_inside(o);
          const std::int64_t first = a.position(o, 0);
          if (inside && is_inside(o + 11))
            outputs<12>(geometry, line, from, 0, a.size, first, f, to, lanes), n = 12;
          else if (inside && is_inside(o + 3))
            outputs<4>(geometry, line, from, 0, a.size, first, f, to, lanes), n = 4;
          else
            outputs<1>(geometry, line, from, a.cell_at(o, 0), a.cell_at(o, a.extent), first, f, to, lanes),
                n = 1;
        }
      });
  });
}

template <int n> using Width = std::integral_constant<int, n>;

// sum[i] += Σ x[i + j · step] d[j] over j, where sum[i] and d[j] are vectors.
template <int n, class T>
void add_products(const T* x, std::int64_t step, const T* d, std::int64_t count, T* sum) {
  Batch<T> total[n];
  for (int i = 0; i < n; ++i)
    total[i] = load<Batch<T>>(sum + i * kWidth<T>);
  for (std::int64_t j = 0; j < count; ++j, x += step, d += kWidth<T>) {
    const Batch<T> v = load<Batch<T>>(d);
    for (int i = 0; i < n; ++i)
      total[i] = detail::multiply_add(Batch<T>(x[i]), v, total[i]);
  }
  for (int i = 0; i < n; ++i)
    store(total[i], sum + i * kWidth<T>);
}

// Adds one output line's terms to the packed filter gradient; d is scratch memory for a vector of the line.
template <class T>
void add_line(const Geometry<T>& geometry, std::int64_t line, const T* x, const T* dy, T* sums, T* d) {
  const Conv& c = geometry.c;
  const WindowAxis& a = geometry.columns();
  geometry.each_vector(sums, [&](T* sum, std::int64_t g, std::int64_t first, std::int64_t lanes) {
    const T* from = dy + line * a.outputs * c.out + g * geometry.out + first;
    for (std::int64_t o = 0; o < a.outputs; ++o)
      std::copy_n(from + o * c.out, lanes, d + o * kWidth<T>);
    geometry.each_line_read(line, [&](std::int64_t cell, std::int64_t at) {
      for (std::int64_t k = 0; k < a.size; ++k) {
        std::int64_t begin = 0, end = a.outputs;
        while (begin < end && a.position(begin, k) < 0)
          ++begin;
        while (end > begin && a.position(end - 1, k) >= a.extent)
          --end;
        const T* read = x + at + a.position(begin, k) * c.in + g * geometry.in;
        T* to = sum + (cell * a.size + k) * geometry.in * kWidth<T>;
        for (std::int64_t i = 0, n; i < geometry.in; i += n, read += n, to += n * kWidth<T>) {
          const auto add = [&](auto width) {
            n = width();
            add_products<width()>(read, geometry.pixel_step(), d + begin * kWidth<T>, end - begin, to);
          };
          switch (std::min<std::int64_t>(geometry.in - i, 8)) {
            case 1:
              add(Width<1>());
              break;
            case 2:
              add(Width<2>());
              break;
            case 3:
              add(Width<3>());
              break;
            case 8:
              add(Width<8>());
              break;
            default:
              add(Width<4>());
          }
        }
      }
    });
  });
}

template <class T> void filter_gradient(const Conv& c, const T* x, const T* dy, T* dfilters) {
  const Geometry<T> geometry(c);
  const std::int64_t n = geometry.packed(), lines = geometry.lines;
  const double most =
      std::min({static_cast<double>(kMaxPartialSums), static_cast<double>(lines),
                static_cast<double>(kMaxPartialSumBytes) / (static_cast<double>(n) * sizeof(T))});
  const auto partials =
      static_cast<std::int64_t>(std::max(std::min(most, c.work() / (4 * kGroupedTask)), 1.0));
  const Scratch<T> sum = scratch_for<T>(n);
  const PartialSums<T> sums(partials, n, sum.get());
  parallel_for(partials, 1, [&](std::int64_t first, std::int64_t last) {
    const Scratch<T> d = scratch_for<T>(geometry.columns().outputs * kWidth<T>);
    std::fill_n(d.get(), geometry.columns().outputs * kWidth<T>, T(0));
    for (std::int64_t s = first; s < last; ++s) {
      std::fill_n(sums[s], n, T(0));
      for (std::int64_t line = s * lines / partials; line < (s + 1) * lines / partials; ++line)
        add_line(geometry, line, x, dy, sums[s], d.get());
    }
  });
  sums.add_up();
  geometry.each_vector(sum.get(), [&](const T* from, std::int64_t g, std::int64_t first, std::int64_t lanes) {
    for (std::int64_t i = 0; i < geometry.cells * geometry.in; ++i)
      std::copy_n(from + i * kWidth<T>, lanes, dfilters + i * c.out + g * geometry.out + first);
  });
}

}   // namespace

void conv(const Conv& c, const Tensor& x, const Tensor& filters, Tensor& y) {
  visit_floating(y.dtype(), [&](auto one) {
    using T = decltype(one);
    const Geometry<T> geometry(c);
    const T* f = elements<T>(filters);
    convolve(geometry, elements<T>(x),
             packed(geometry,
                    [&](std::int64_t g, std::int64_t cell, std::int64_t in, std::int64_t out) {
                      return f[(cell * geometry.in + in) * c.out + g * geometry.out + out];
                    }),
             elements<T>(y));
  });
}

void conv_input_gradient(const Conv& c, const Tensor& dy, const Tensor& filters, Tensor& dx) {
  const Conv back{c.window.transposed(), c.images, c.out, c.in, c.groups};
  visit_floating(dx.dtype(), [&](auto one) {
    using T = decltype(one);
    const Geometry<T> geometry(back);
    const T* f = elements<T>(filters);
    convolve(
        geometry, elements<T>(dy),
        packed(geometry,
               [&](std::int64_t g, std::int64_t cell, std::int64_t in, std::int64_t out) {
                 return f[((geometry.cells - 1 - cell) * geometry.out + out) * c.out + g * geometry.in + in];
               }),
        elements<T>(dx));
  });
}

void conv_filter_gradient(const Conv& c, const Tensor& x, const Tensor& dy, Tensor& dfilters) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    filter_gradient<T>(c, elements<T>(x), elements<T>(dy), elements<T>(dfilters));
  });
}

}   // namespace tapedeck::kernels::grouped_conv
