// Images of other sizes. In: images [..., height, width, channels]. Out: images.
// Every way to resize is linear, and separable into rows and columns: one op along one axis, whose adjoint is itself with the
// transposed table, makes them all.
#include "tapedeck/ops/image.h"

#include <cmath>
#include <memory>

#include "base/format.h"
#include "kernels/places.h"
#include "kernels/resample.h"
#include "ops/samples.h"
#include "ops/window.h"
#include "tapedeck/ops.h"
#include "tensor/storage.h"

namespace tapedeck {
namespace {

using namespace samples;
using kernels::WeightTable;

// Along an axis that counts from the end.
struct ResampleAttrs {
  std::shared_ptr<const WeightTable> table, adjoint;
  int axis;
};
ResampleAttrs resampling(WeightTable table, int axis) {
  auto adjoint = std::make_shared<const WeightTable>(transposed(table));
  return {std::make_shared<const WeightTable>(std::move(table)), std::move(adjoint), axis};
}

Spec infer_resample(const Call& c) {
  const auto& [table, adjoint, axis] = c.attrs<ResampleAttrs>();
  require_floating(c, 0);
  Spec y = c.x[0].spec();
  const int at = y.shape.ndim() + axis;
  if (at < 0 || y.shape[at] != table->inputs) throw_shape_error(c, fmt::format("axis {} is not of extent {}", axis, table->inputs));
  y.shape.set(at, table->outputs());
  return y;
}

// Where the middle of output pixel o lies in the image.
struct Positions {
  std::int64_t inputs;
  double scale;
  Align align;

  Positions(std::int64_t in, std::int64_t out, Align a)
      : inputs(in), scale(a == Align::corners && out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : static_cast<double>(in) / static_cast<double>(out)), align(a) {}
  double operator()(std::int64_t o) const {
    return align == Align::centres ? (static_cast<double>(o) + 0.5) * scale - 0.5 : static_cast<double>(o) * scale;
  }
  std::int64_t clamped(double position) const { return std::clamp(static_cast<std::int64_t>(position), std::int64_t{0}, inputs - 1); }
};

WeightTable nearest_table(std::int64_t in, std::int64_t out, Align align) {
  const Positions at(in, out, align);
  WeightTable table{.inputs = in};
  for (std::int64_t o = 0; o < out; ++o) {
    table.append(at.clamped(align == Align::corners ? std::round(at(o)) : align == Align::centres ? std::floor((static_cast<double>(o) + 0.5) * at.scale) : std::floor(at(o))), 1);
    table.end_output();
  }
  return table;
}

WeightTable linear_table(std::int64_t in, std::int64_t out, Align align) {
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
double cubic(double d, double a) {
  d = std::abs(d);
  if (d >= 2) return 0;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

// Divides the weights of the output that is being made by their sum, unless that is as good as 0.
void normalise(WeightTable& table) {
  const auto first = static_cast<std::size_t>(table.begin.back());
  double sum = 0;
  for (std::size_t t = first; t < table.weight.size(); ++t) sum += table.weight[t];
  if (std::abs(sum) < 1000 * std::numeric_limits<float>::min()) return;
  for (std::size_t t = first; t < table.weight.size(); ++t) table.weight[t] /= sum;
}

WeightTable cubic_table(std::int64_t in, std::int64_t out, Align align) {
  const Positions at(in, out, align);
  const bool keys = align == Align::centres;
  WeightTable table{.inputs = in};
  for (std::int64_t o = 0; o < out; ++o) {
    const double low = std::floor(at(o));
    for (int k = -1; k <= 2; ++k) {
      const double weight = cubic(at(o) - (low + k), keys ? -0.5 : -0.75);
      if (!keys || (low + k >= 0 && low + k < static_cast<double>(in))) table.append(at.clamped(low + k), weight);
    }
    if (keys) normalise(table);
    table.end_output();
  }
  return table;
}

double radius_of(Kernel2d kernel) {
  switch (kernel) {
    case Kernel2d::box: return 0.5;
    case Kernel2d::gaussian: return 1.5;
    case Kernel2d::keys_cubic: case Kernel2d::mitchell_cubic: return 2;
    case Kernel2d::lanczos3: return 3;
    case Kernel2d::lanczos5: return 5;
    default: return 1;
  }
}
// Of the distance in pixels.
double weight_of(Kernel2d kernel, double d) {
  const double radius = radius_of(kernel), pi_d = 3.14159265358979323846 * d;
  switch (kernel) {
    case Kernel2d::box: return d < radius ? 1 : d == radius ? 0.5 : 0;
    case Kernel2d::triangle: return d < radius ? 1 - d : 0;
    case Kernel2d::keys_cubic: return cubic(d, -0.5);
    case Kernel2d::mitchell_cubic:   // Mitchell and Netravali 1988, B = C = 1/3
      return d >= 2 ? 0 : d >= 1 ? ((-7.0 / 18 * d + 2) * d - 10.0 / 3) * d + 16.0 / 9 : (7.0 / 6 * d - 2) * d * d + 8.0 / 9;
    case Kernel2d::gaussian: return d < radius ? std::exp(-2 * d * d) : 0;   // a standard deviation of radius / 3
    default: return d > radius ? 0 : d <= 1e-3 ? 1 : radius * std::sin(pi_d) * std::sin(pi_d / radius) / (pi_d * pi_d);
  }
}

WeightTable scaled_table(std::int64_t in, std::int64_t out, double scale, double translate, const ScaleAndTranslate& options) {
  const double wider = options.antialias ? std::max(1 / scale, 1.0) : 1, radius = radius_of(options.kernel) * wider, last = static_cast<double>(in - 1);
  WeightTable table{.inputs = in};
  for (std::int64_t o = 0; o < out; ++o) {
    const double middle = (static_cast<double>(o) + 0.5 - translate) / scale;
    if (middle >= 0 && middle <= static_cast<double>(in)) {
      const auto from = static_cast<std::int64_t>(std::clamp(std::ceil(middle - radius - 0.5), 0.0, last)), to = static_cast<std::int64_t>(std::clamp(std::floor(middle + radius - 0.5), 0.0, last));
      for (std::int64_t k = from; k <= to; ++k) table.append(k, weight_of(options.kernel, std::abs(static_cast<double>(k) + 0.5 - middle) / wider));
      normalise(table);
    }
    table.end_output();
  }
  return table;
}

Tensor resample(const ResampleAttrs& attrs, const Tensor& x);

constexpr Op table[] = {
    {.name = "resample",
     .doc = "Weighted sums along an axis: y[o] = Σ w[o, i] x[i], with few weights for each o. All ways to resize images are made of it.",
     .tensorflow = "ResizeNearestNeighbor ResizeNearestNeighborGrad ResizeBilinear ResizeBilinearGrad ResizeBicubic ResizeBicubicGrad ScaleAndTranslate ScaleAndTranslateGrad",
     .args = {"x"},
     .infer = infer_resample,
     .forward = [](const Call& c, std::span<Tensor> y) {
       const auto& a = c.attrs<ResampleAttrs>();
       const kernels::AroundAxis around(c.x[0].shape(), c.x[0].ndim() + a.axis);
       kernels::weighted_sums(*a.table, c.x[0], around.before, around.after, y[0]);
     },
     .rule = linear([](const Call& c, const Tensor& dy) {
       const auto& a = c.attrs<ResampleAttrs>();
       return resample({a.adjoint, a.table, a.axis}, dy);
     }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({2, 5, 3}, -1, 1)}, .attrs = Attrs(resampling(linear_table(5, 8, Align::centres), -2))},
           {.inputs = {uniform({2, 6, 2, 37}, -1, 1)}, .attrs = Attrs(resampling(cubic_table(6, 4, Align::edges), -3))},
           {.inputs = {uniform({3, 0}, -1, 1)}, .attrs = Attrs(resampling(nearest_table(3, 4, Align::corners), -2))},
           {.inputs = {uniform({7, 3, 2}, -1, 1)}, .attrs = Attrs(resampling(transposed(scaled_table(4, 7, 0.8, 1.5, {})), -3))},
           {.inputs = {uniform({2, 5, 3}, -1, 1)}, .attrs = Attrs(resampling(linear_table(5, 8, Align::centres), -2)),
            .expected = {tensor(std::vector<double>{-0.7639320225002102, 0.4721359549995796, -0.2917960675006306, -0.016592802031736076, 0.34447517546805373,
                -0.41945684703215647, 0.9260346557803698, 0.1621026332801596, -0.6018293892200506, 0.7436621135924757, -0.020269908907734502, -0.7842019314079447,
                0.5612895714045816, -0.20264245109562862, -0.3415744735958388, 0.37891702921668746, -0.38501499328352273, 0.7260529842162671, 0.19654448702879335,
                -0.5673875354714168, 0.668680442028373, 0.06888370749726747, -0.6950483150029427, 0.5410196624968471, -0.22291236000336312, -0.9868443825035733,
                0.2492235949962165, -0.350573139534889, -0.2395051620350992, 0.12156281546469061, -0.5329456817227831, 0.7031222957770067, -0.060809726723203505,
                -0.7153182239106772, 0.5207497535891126, -0.24318226891109762, -0.27269076609857135, 0.33837721140121846, -0.42555481109899174, 0.7949366917135345,
                0.15600466921332434, -0.6079273532868859, 0.7375641495256404, -0.026367872974569773, -0.79029989547478, 0.6099033699941145, -0.15402865250609565,
                -0.9179606750063058}, {2, 8, 3})}, .oracle = "torch.nn.functional.interpolate(torch.tensor(x).permute(0, 2, 1), 8, mode='linear').permute(0, 2, 1).numpy()"},
           {.inputs = {uniform({1, 7, 2}, -1, 1)}, .attrs = Attrs(resampling(linear_table(7, 4, Align::corners), -2)),
            .expected = {tensor(std::vector<double>{-0.7639320225002102, 0.4721359549995796, 0.18033988749894903, -0.5835921350012612, -0.8753882025018918,
                0.36067977499789805, 0.06888370749726747, -0.6950483150029427}, {1, 4, 2})}, .oracle = "torch.nn.functional.interpolate(torch.tensor(x).permute(0, 2, 1), 4, mode='linear', align_corners=True).permute(0, 2, 1).numpy()"}};
     }},
};

Tensor resample(const ResampleAttrs& attrs, const Tensor& x) { return find(table, "resample").with(attrs, x); }

void require_size(std::string_view name, const Tensor& x, HeightWidth size) {
  if (x.ndim() < 3) throw_error<ShapeError>("{}: x needs the axes height, width and channels: x is {}", name, x.spec());
  if (std::min(x.shape()[x.ndim() - 3], x.shape()[x.ndim() - 2]) < 1) throw_error<ShapeError>("{}: the image is empty: x is {}", name, x.spec());
  if (std::min(size.height, size.width) < 1 || std::max(size.height, size.width) > kMostCells)
    throw_error<ArgumentError>("{}: size is {}×{}; use 1..{}", name, size.height, size.width, kMostCells);
}

// The axis first that leaves fewer pixels to the other; columns first where they are equal.
template <class F> Tensor resized(std::string_view name, const Tensor& x, HeightWidth size, const F& table_of) {
  require_size(name, x, size);
  const std::int64_t height = x.shape()[x.ndim() - 3], width = x.shape()[x.ndim() - 2];
  const ResampleAttrs rows = resampling(table_of(height, size.height, true), -3), columns = resampling(table_of(width, size.width, false), -2);
  return size.height < height ? resample(columns, resample(rows, x)) : resample(rows, resample(columns, x));
}

}  // namespace

Tensor resize_nearest(const Tensor& x, HeightWidth size, Align align) {
  return resized("resize_nearest", x, size, [=](std::int64_t in, std::int64_t out, bool) { return nearest_table(in, out, align); });
}
Tensor resize_bilinear(const Tensor& x, HeightWidth size, Align align) {
  return resized("resize_bilinear", x, size, [=](std::int64_t in, std::int64_t out, bool) { return linear_table(in, out, align); });
}
Tensor resize_bicubic(const Tensor& x, HeightWidth size, Align align) {
  return resized("resize_bicubic", x, size, [=](std::int64_t in, std::int64_t out, bool) { return cubic_table(in, out, align); });
}

Tensor scale_and_translate(const Tensor& x, HeightWidth size, const ScaleAndTranslate& o) {
  if (!(o.scale_y > 0 && o.scale_x > 0 && std::isfinite(o.scale_y) && std::isfinite(o.scale_x)))
    throw_error<ArgumentError>("scale_and_translate: scale is {}, {}; use positive ones", o.scale_y, o.scale_x);
  if (!std::isfinite(o.translate_y) || !std::isfinite(o.translate_x)) throw_error<ArgumentError>("scale_and_translate: translate is {}, {}", o.translate_y, o.translate_x);
  return resized("scale_and_translate", x, size, [&](std::int64_t in, std::int64_t out, bool rows) {
    return scaled_table(in, out, rows ? o.scale_y : o.scale_x, rows ? o.translate_y : o.translate_x, o);
  });
}

std::span<const Op> image_ops() { return table; }

}  // namespace tapedeck
