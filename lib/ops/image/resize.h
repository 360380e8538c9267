// The attributes of the resizing ops: a table of weights for each method.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "kernels/image/resample.h"
#include "tapedeck/ops/resize.h"

namespace tapedeck {

using kernels::WeightTable;

// Resamples along one axis, counted from the end.
struct ResampleAttrs {
  std::shared_ptr<const WeightTable> table, adjoint;
  int axis;
};
inline ResampleAttrs resampling(WeightTable table, int axis) {
  auto adjoint = std::make_shared<const WeightTable>(transposed(table));
  return {std::make_shared<const WeightTable>(std::move(table)), std::move(adjoint), axis};
}

// The position in the image of the centre of output pixel o.
struct Positions {
  std::int64_t inputs;
  double scale;
  Align align;

  Positions(std::int64_t in, std::int64_t out, Align a)
      : inputs(in),
        scale(a == Align::corners && out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1)
                                             : static_cast<double>(in) / static_cast<double>(out)),
        align(a) {}
  double operator()(std::int64_t o) const {
    return align == Align::centres ? (static_cast<double>(o) + 0.5) * scale - 0.5
                                   : static_cast<double>(o) * scale;
  }
  std::int64_t clamped(double position) const {
    return std::clamp(static_cast<std::int64_t>(position), std::int64_t{0}, inputs - 1);
  }
};

inline WeightTable nearest_table(std::int64_t in, std::int64_t out, Align align) {
  const Positions at(in, out, align);
  WeightTable table{.inputs = in};
  for (std::int64_t o = 0; o < out; ++o) {
    table.append(at.clamped(align == Align::corners   ? std::round(at(o))
                            : align == Align::centres ? std::floor((static_cast<double>(o) + 0.5) * at.scale)
                                                      : std::floor(at(o))),
                 1);
    table.end_output();
  }
  return table;
}

inline WeightTable linear_table(std::int64_t in, std::int64_t out, Align align) {
  const Positions at(in, out, align);
  WeightTable table{.inputs = in};
  for (std::int64_t o = 0; o < out; ++o) {
    const double low = std::floor(at(o)), share = at(o) - low;
    table.append(at.clamped(low), 1 - share);
    table.append(at.clamped(low + 1), share);
    table.end_output();
  }
  return table;
}

// Keys 1981, equation 4, with its free parameter a.
inline double cubic(double d, double a) {
  d = std::abs(d);
  if (d >= 2) return 0;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

// Divides the weights of the output that is being built by their sum, unless the sum is close to 0.
inline void normalise(WeightTable& table) {
  const auto first = static_cast<std::size_t>(table.begin.back());
  double sum = 0;
  for (std::size_t t = first; t < table.weight.size(); ++t)
    sum += table.weight[t];
  if (std::abs(sum) < 1000 * std::numeric_limits<float>::min()) return;
  for (std::size_t t = first; t < table.weight.size(); ++t)
    table.weight[t] /= sum;
}

inline WeightTable cubic_table(std::int64_t in, std::int64_t out, Align align) {
  const Positions at(in, out, align);
  const bool keys = align == Align::centres;
  WeightTable table{.inputs = in};
  for (std::int64_t o = 0; o < out; ++o) {
    const double low = std::floor(at(o));
    for (int k = -1; k <= 2; ++k) {
      const double weight = cubic(at(o) - (low + k), keys ? -0.5 : -0.75);
      if (!keys || (low + k >= 0 && low + k < static_cast<double>(in)))
        table.append(at.clamped(low + k), weight);
    }
    if (keys) normalise(table);
    table.end_output();
  }
  return table;
}

inline double radius_of(Kernel2d kernel) {
  switch (kernel) {
    case Kernel2d::box:
      return 0.5;
    case Kernel2d::gaussian:
      return 1.5;
    case Kernel2d::keys_cubic:
    case Kernel2d::mitchell_cubic:
      return 2;
    case Kernel2d::lanczos3:
      return 3;
    case Kernel2d::lanczos5:
      return 5;
    default:
      return 1;
  }
}
// The weight at a distance of d pixels.
inline double weight_of(Kernel2d kernel, double d) {
  const double radius = radius_of(kernel), pi_d = 3.14159265358979323846 * d;
  switch (kernel) {
    case Kernel2d::box:
      return d < radius ? 1 : d == radius ? 0.5 : 0;
    case Kernel2d::triangle:
      return d < radius ? 1 - d : 0;
    case Kernel2d::keys_cubic:
      return cubic(d, -0.5);
    case Kernel2d::mitchell_cubic:   // Mitchell and Netravali 1988, B = C = 1/3
      return d >= 2   ? 0
             : d >= 1 ? ((-7.0 / 18 * d + 2) * d - 10.0 / 3) * d + 16.0 / 9
                      : (7.0 / 6 * d - 2) * d * d + 8.0 / 9;
    case Kernel2d::gaussian:
      return d < radius ? std::exp(-2 * d * d) : 0;   // a standard deviation of radius / 3
    default:
      return d > radius  ? 0
             : d <= 1e-3 ? 1
                         : radius * std::sin(pi_d) * std::sin(pi_d / radius) / (pi_d * pi_d);
  }
}

inline WeightTable scaled_table(std::int64_t in, std::int64_t out, double scale, double translate,
                                const ScaleAndTranslateOptions& options) {
  const double wider = options.antialias ? std::max(1 / scale, 1.0) : 1,
               radius = radius_of(options.kernel) * wider, last = static_cast<double>(in - 1);
  WeightTable table{.inputs = in};
  for (std::int64_t o = 0; o < out; ++o) {
    const double middle = (static_cast<double>(o) + 0.5 - translate) / scale;
    if (middle >= 0 && middle <= static_cast<double>(in)) {
      const auto from = static_cast<std::int64_t>(std::clamp(std::ceil(middle - radius - 0.5), 0.0, last)),
                 to = static_cast<std::int64_t>(std::clamp(std::floor(middle + radius - 0.5), 0.0, last));
      for (std::int64_t k = from; k <= to; ++k)
        table.append(k, weight_of(options.kernel, std::abs(static_cast<double>(k) + 0.5 - middle) / wider));
      normalise(table);
    }
    table.end_output();
  }
  return table;
}

/// Runs the op "resample".
Tensor resample(const ResampleAttrs& attrs, const Tensor& x);

// Resizes rows and columns, one after the other. Rows go first if that reduces their number, else columns.
struct ResizeAttrs {
  ResampleAttrs rows, columns;

  Tensor operator()(const Tensor& x) const {
    return rows.table->outputs() < rows.table->inputs ? resample(columns, resample(rows, x))
                                                      : resample(rows, resample(columns, x));
  }
  Tensor adjoint(const Tensor& dy) const { return ResizeAttrs{of_adjoint(rows), of_adjoint(columns)}(dy); }
  static ResampleAttrs of_adjoint(const ResampleAttrs& a) { return {a.adjoint, a.table, a.axis}; }
};
template <class F> ResizeAttrs resizing(HeightWidth from, HeightWidth to, const F& table_of) {
  return {resampling(table_of(from.height, to.height, true), -3),
          resampling(table_of(from.width, to.width, false), -2)};
}

using Table = WeightTable (*)(std::int64_t in, std::int64_t out, Align align);
inline ResizeAttrs resizing(Table table, HeightWidth from, HeightWidth to, Align align) {
  return resizing(from, to, [=](std::int64_t in, std::int64_t out, bool) { return table(in, out, align); });
}
inline ResizeAttrs resizing(const ScaleAndTranslateOptions& o, HeightWidth from, HeightWidth to) {
  return resizing(from, to, [&](std::int64_t in, std::int64_t out, bool rows) {
    return scaled_table(in, out, rows ? o.scale_y : o.scale_x, rows ? o.translate_y : o.translate_x, o);
  });
}

}   // namespace tapedeck
