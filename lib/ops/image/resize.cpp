// Images of other sizes. In: images [..., height, width, channels]. Out: images.
// Every way to resize is linear, and separable into rows and columns: one op along one axis, whose adjoint is
// itself with the transposed table, makes them all. They differ in their tables.
#include "tapedeck/ops/resize.h"

#include <cmath>
#include <memory>

#include "core/format.h"
#include "core/storage.h"
#include "kernels/image/resample.h"
#include "kernels/layout/strided_view.h"
#include "ops/nn/window.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

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
  if (at < 0 || y.shape[at] != table->inputs)
    throw_shape_error(c, fmt::format("axis {} is not of extent {}", axis, table->inputs));
  y.shape.set(at, table->outputs());
  return y;
}

// Where the middle of output pixel o lies in the image.
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

WeightTable nearest_table(std::int64_t in, std::int64_t out, Align align) {
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
  for (std::size_t t = first; t < table.weight.size(); ++t)
    sum += table.weight[t];
  if (std::abs(sum) < 1000 * std::numeric_limits<float>::min()) return;
  for (std::size_t t = first; t < table.weight.size(); ++t)
    table.weight[t] /= sum;
}

WeightTable cubic_table(std::int64_t in, std::int64_t out, Align align) {
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

double radius_of(Kernel2d kernel) {
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
// Of the distance in pixels.
double weight_of(Kernel2d kernel, double d) {
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

WeightTable scaled_table(std::int64_t in, std::int64_t out, double scale, double translate,
                         const ScaleAndTranslate& options) {
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

Tensor resample(const ResampleAttrs& attrs, const Tensor& x);

// The rows and the columns of an image. The axis first that leaves fewer pixels to the other; columns first
// where they are equal.
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

Spec infer_resize(const Call& c) {
  const auto& [rows, columns] = c.attrs<ResizeAttrs>();
  require_floating(c, 0);
  require_images(c, 0, {rows.table->inputs, columns.table->inputs},
                 c.x[0].ndim() < 3 ? 0 : channels_of(c.x[0]));
  return {c.x[0].dtype(),
          behind(front_of(c.x[0]), {rows.table->outputs(), columns.table->outputs()}, channels_of(c.x[0]))};
}
void run_resize(const Call& c, std::span<Tensor> y) { y[0] = c.attrs<ResizeAttrs>()(c.x[0]); }
constexpr Rule resize_rule() {
  return linear([](const Call& c, const Tensor& dy) { return c.attrs<ResizeAttrs>().adjoint(dy); });
}

using Table = WeightTable (*)(std::int64_t in, std::int64_t out, Align align);
ResizeAttrs resizing(Table table, HeightWidth from, HeightWidth to, Align align) {
  return resizing(from, to, [=](std::int64_t in, std::int64_t out, bool) { return table(in, out, align); });
}
ResizeAttrs resizing(const ScaleAndTranslate& o, HeightWidth from, HeightWidth to) {
  return resizing(from, to, [&](std::int64_t in, std::int64_t out, bool rows) {
    return scaled_table(in, out, rows ? o.scale_y : o.scale_x, rows ? o.translate_y : o.translate_x, o);
  });
}
template <class T> OwnedAttrs resized(const T& table, HeightWidth from, HeightWidth to, Align align) {
  return Attrs(resizing(table, from, to, align));
}
OwnedAttrs scaled(const ScaleAndTranslate& o, HeightWidth from, HeightWidth to) {
  return Attrs(resizing(o, from, to));
}

constexpr Op table[] = {
    {.name = "resample",
     .doc = "Weighted sums along an axis: y[o] = Σ w[o, i] x[i], with few weights for each o. All ways to "
            "resize images are made of it.",
     .tensorflow = "ResizeNearestNeighborGrad ResizeBilinearGrad ResizeBicubicGrad ScaleAndTranslateGrad",
     .args = {"x"},
     .infer = infer_resample,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           const auto& a = c.attrs<ResampleAttrs>();
           const kernels::AroundAxis around(c.x[0].shape(), c.x[0].ndim() + a.axis);
           kernels::weighted_sums(*a.table, c.x[0], around.before, around.after, y[0]);
         },
     .rule = linear([](const Call& c, const Tensor& dy) {
       const auto& a = c.attrs<ResampleAttrs>();
       return resample({a.adjoint, a.table, a.axis}, dy);
     }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 5, 3}, -1, 1)},
                .attrs = Attrs(resampling(linear_table(5, 8, Align::centres), -2))},
               {.inputs = {uniform({2, 6, 2, 37}, -1, 1)},
                .attrs = Attrs(resampling(cubic_table(6, 4, Align::edges), -3))},
               {.inputs = {uniform({3, 0}, -1, 1)},
                .attrs = Attrs(resampling(nearest_table(3, 4, Align::corners), -2))},
               {.inputs = {uniform({7, 3, 2}, -1, 1)},
                .attrs = Attrs(resampling(transposed(scaled_table(4, 7, 0.8, 1.5, {})), -3))},
               {.inputs = {uniform({2, 5, 3}, -1, 1)},
                .attrs = Attrs(resampling(linear_table(5, 8, Align::centres), -2)),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102,   0.4721359549995796,    -0.2917960675006306,
                                        -0.016592802031736076, 0.34447517546805373,   -0.41945684703215647,
                                        0.9260346557803698,    0.1621026332801596,    -0.6018293892200506,
                                        0.7436621135924757,    -0.020269908907734502, -0.7842019314079447,
                                        0.5612895714045816,    -0.20264245109562862,  -0.3415744735958388,
                                        0.37891702921668746,   -0.38501499328352273,  0.7260529842162671,
                                        0.19654448702879335,   -0.5673875354714168,   0.668680442028373,
                                        0.06888370749726747,   -0.6950483150029427,   0.5410196624968471,
                                        -0.22291236000336312,  -0.9868443825035733,   0.2492235949962165,
                                        -0.350573139534889,    -0.2395051620350992,   0.12156281546469061,
                                        -0.5329456817227831,   0.7031222957770067,    -0.060809726723203505,
                                        -0.7153182239106772,   0.5207497535891126,    -0.24318226891109762,
                                        -0.27269076609857135,  0.33837721140121846,   -0.42555481109899174,
                                        0.7949366917135345,    0.15600466921332434,   -0.6079273532868859,
                                        0.7375641495256404,    -0.026367872974569773, -0.79029989547478,
                                        0.6099033699941145,    -0.15402865250609565,  -0.9179606750063058},
                    {2, 8, 3})},
                .oracle = "torch.nn.functional.interpolate(torch.tensor(x).permute(0, 2, 1), 8, "
                          "mode='linear').permute(0, 2, 1).numpy()"},
               {.inputs = {uniform({1, 7, 2}, -1, 1)},
                .attrs = Attrs(resampling(linear_table(7, 4, Align::corners), -2)),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102, 0.4721359549995796, 0.18033988749894903,
                                        -0.5835921350012612, -0.8753882025018918, 0.36067977499789805,
                                        0.06888370749726747, -0.6950483150029427},
                    {1, 4, 2})},
                .oracle = "torch.nn.functional.interpolate(torch.tensor(x).permute(0, 2, 1), 4, "
                          "mode='linear', align_corners=True).permute(0, 2, 1).numpy()"}};
         }},

    {.name = "resize_nearest",
     .doc = "Each pixel the nearest one of an image of another size.",
     .tensorflow = "ResizeNearestNeighbor",
     .args = {"x"},
     .infer = infer_resize,
     .forward = {run_resize, Outputs::own},
     .rule = resize_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4, 5, 3}, -1, 1)},
                .attrs = resized(nearest_table, {4, 5}, {6, 2}, Align::corners)},
               {.inputs = {uniform({3, 2, 37}, -1, 1)},
                .attrs = resized(nearest_table, {3, 2}, {1, 1}, Align::edges)},
               {.inputs = {uniform({0, 3, 2, 1}, -1, 1)},
                .attrs = resized(nearest_table, {3, 2}, {4, 4}, Align::centres)},
               {.inputs = {uniform({1, 4, 5, 2}, -1, 1)},
                .attrs = resized(nearest_table, {4, 5}, {3, 7}, Align::centres),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102,  0.4721359549995796,   -0.2917960675006306,
                                        0.9442719099991592,   -0.2917960675006306,  0.9442719099991592,
                                        0.18033988749894903,  -0.5835921350012612,  0.6524758424985286,
                                        -0.11145618000168156, 0.6524758424985286,   -0.11145618000168156,
                                        -0.8753882025018918,  0.36067977499789805,  -0.042572472504414094,
                                        -0.8065044950046243,  0.4295634824951655,   -0.3343685400050447,
                                        0.4295634824951655,   -0.3343685400050447,  0.9016994374947451,
                                        0.13776741499453493,  -0.6261646075056753,  0.6099033699941145,
                                        -0.6261646075056753,  0.6099033699941145,   -0.15402865250609565,
                                        -0.9179606750063058,  0.31810730249348396,  -0.44582472000672624,
                                        0.7902432574930636,   0.026311234992853372, 0.7902432574930636,
                                        0.026311234992853372, -0.7376207875073568,  0.498447189992433,
                                        -0.2654848325077772,  0.9705831449920126,   -0.2654848325077772,
                                        0.9705831449920126,   0.2066511224918024,   -0.5572809000084078},
                    {1, 3, 7, 2})},
                .oracle = "torch.nn.functional.interpolate(torch.tensor(x).permute(0, 3, 1, 2), (3, 7), "
                          "mode='nearest-exact').permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 4, 5, 2}, -1, 1)},
                .attrs = resized(nearest_table, {4, 5}, {3, 7}, Align::edges),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102,   0.4721359549995796,    -0.7639320225002102,
                                        0.4721359549995796,    -0.2917960675006306,   0.9442719099991592,
                                        0.18033988749894903,   -0.5835921350012612,   0.18033988749894903,
                                        -0.5835921350012612,   0.6524758424985286,    -0.11145618000168156,
                                        -0.8753882025018918,   0.36067977499789805,   -0.40325224750231214,
                                        0.8328157299974777,    -0.40325224750231214,  0.8328157299974777,
                                        0.06888370749726747,   -0.6950483150029427,   0.5410196624968471,
                                        -0.22291236000336312,  0.5410196624968471,    -0.22291236000336312,
                                        -0.9868443825035733,   0.2492235949962165,    -0.5147084275039937,
                                        0.7213595499957961,    -0.042572472504414094, -0.8065044950046243,
                                        -0.042572472504414094, -0.8065044950046243,   0.4295634824951655,
                                        -0.3343685400050447,   0.9016994374947451,    0.13776741499453493,
                                        0.9016994374947451,    0.13776741499453493,   -0.6261646075056753,
                                        0.6099033699941145,    -0.15402865250609565,  -0.9179606750063058},
                    {1, 3, 7, 2})},
                .oracle = "torch.nn.functional.interpolate(torch.tensor(x).permute(0, 3, 1, 2), (3, 7), "
                          "mode='nearest').permute(0, 2, 3, 1).numpy()"}};
         }},

    {.name = "resize_bilinear",
     .doc = "Each pixel between the four nearest ones of an image of another size, by distance.",
     .tensorflow = "ResizeBilinear",
     .args = {"x"},
     .infer = infer_resize,
     .forward = {run_resize, Outputs::own},
     .rule = resize_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4, 5, 3}, -1, 1)},
                .attrs = resized(linear_table, {4, 5}, {6, 2}, Align::edges)},
               {.inputs = {uniform({3, 2, 37}, -1, 1)},
                .attrs = resized(linear_table, {3, 2}, {1, 1}, Align::corners)},
               {.inputs = {uniform({0, 3, 2, 1}, -1, 1)},
                .attrs = resized(linear_table, {3, 2}, {4, 4}, Align::centres)},
               {.inputs = {uniform({1, 4, 5, 2}, -1, 1)},
                .attrs = resized(linear_table, {4, 5}, {3, 7}, Align::centres),
                .expected = {tensor(
                    std::vector<double>{-0.7038187266672272,   0.5322492508325626,   -0.4340267523817531,
                                        0.6115650346418463,    -0.09678678452491053, 0.3297573834510697,
                                        0.24045318333193202,   -0.5234788391682782,  0.33959791309353654,
                                        -0.18623887131143554,  -0.13268592857343073, 0.1510010965454071,
                                        -0.8152749066689087,   0.420793070830881,    -0.22291236000336312,
                                        0.013155617496426686,  0.04687961428211093,  -0.2884809796466707,
                                        0.3841195821389536,    -0.3798124403612566,  0.7213595499957961,
                                        -0.042572472504414094, -0.3699719107187901,  0.29466749535242853,
                                        -0.6041605142905186,   0.20333603463784236,  -0.3343685400050447,
                                        -0.09830056250525487,  0.2579940066605008,   -0.5059380158397093,
                                        0.5277859809459748,    -0.2361460415542353,  0.38883547261234136,
                                        0.10109392630260733,   -0.46440075000700604, 0.43833389415944984,
                                        -0.36525602024540194,  0.7755738620162925,   -0.12325414762665467,
                                        0.2556709727302775,    0.1465378266588193,   -0.6173941958413909},
                    {1, 3, 7, 2})},
                .oracle = "torch.nn.functional.interpolate(torch.tensor(x).permute(0, 3, 1, 2), (3, 7), "
                          "mode='bilinear').permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 4, 5, 2}, -1, 1)},
                .attrs = resized(linear_table, {4, 5}, {3, 7}, Align::corners),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102,   0.4721359549995796,   -0.4491747191671571,
                                        0.7868932583326327,    -0.13441741583410408, 0.4349838949990192,
                                        0.18033988749894903,   -0.5835921350012612,  0.49509719083200204,
                                        -0.26883483166820815,  0.143187827498389,    0.045922471664844845,
                                        -0.8753882025018918,   0.36067977499789805,  -0.22291236000336312,
                                        0.013155617496426686,  0.09184494332968994,  -0.33875374583718687,
                                        0.40660224666274297,   -0.35732977583746717, 0.7213595499957961,
                                        -0.042572472504414094, -0.2972164800044839,  0.2721848308286389,
                                        -0.6491258433380979,   0.2536088008283589,   -0.3343685400050447,
                                        -0.09830056250525487,  0.31810730249348396,  -0.44582472000672624,
                                        0.6328646058265369,    -0.1310674166736732,  0.28095524249292353,
                                        0.18368988665937985,   -0.7376207875073568,  0.498447189992433,
                                        -0.4228634841743038,   0.8132044933254859,   -0.10810618084125082,
                                        0.4612951299918729,    0.2066511224918024,   -0.5572809000084078},
                    {1, 3, 7, 2})},
                .oracle = "torch.nn.functional.interpolate(torch.tensor(x).permute(0, 3, 1, 2), (3, 7), "
                          "mode='bilinear', align_corners=True).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.name = "resize_bicubic",
     .doc = "Each pixel of the sixteen nearest ones of an image of another size, by Keys' cubic convolution "
            "(1981).",
     .tensorflow = "ResizeBicubic",
     .args = {"x"},
     .infer = infer_resize,
     .forward = {run_resize, Outputs::own},
     .rule = resize_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4, 5, 3}, -1, 1)},
                .attrs = resized(cubic_table, {4, 5}, {6, 2}, Align::edges)},
               {.inputs = {uniform({3, 2, 37}, -1, 1)},
                .attrs = resized(cubic_table, {3, 2}, {1, 1}, Align::corners)},
               {.inputs = {uniform({0, 3, 2, 1}, -1, 1)},
                .attrs = resized(cubic_table, {3, 2}, {4, 4}, Align::centres)},
               {.inputs = {uniform({1, 4, 5, 1}, -1, 1)},
                .attrs = resized(cubic_table, {4, 5}, {3, 7}, Align::centres),
                .expected = {tensor(
                    std::vector<double>{-0.8173889917365132,  -0.0029470817576064943, 0.36651493673925617,
                                        -0.2732490768825769,  0.5080304754058561,     0.5660581462471189,
                                        0.16764255346497542,  -0.5727077045042017,    0.3272706065181926,
                                        0.7776593774870108,   -0.021286236252207047,  -0.8202318499914248,
                                        -0.36984307902260705, 0.5301352319997875,     -0.2102150259693895,
                                        -0.6086306187515332,  -0.5506029479102699,    0.23067660437816284,
                                        -0.40908740924367115, -0.03962539074680793,   0.7748165192320992},
                    {1, 3, 7, 1})},
                .oracle = "(lambda x, k: np.einsum('pi,qj,bijc->bpqc', k(3, 4), k(7, 5), x))(x, lambda m, n: "
                          "(lambda w: w / w.sum(1, keepdims=True))((lambda d: np.where(d <= 1, (1.5 * d - "
                          "2.5) * d * d + 1, "
                          "np.where(d < 2, ((2.5 - 0.5 * d) * d - 4) * d + 2, 0)))(abs((np.arange(m)[:, "
                          "None] + 0.5) * n / m - 0.5 - np.arange(n)))))"}};
         }},

    {.name = "scale_and_translate",
     .doc = "An image scaled, then moved, in a frame of some size, with weights of pixels by their distance; "
            "0 where it does not reach.",
     .tensorflow = "ScaleAndTranslate",
     .args = {"x"},
     .infer = infer_resize,
     .forward = {run_resize, Outputs::own},
     .rule = resize_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4, 5, 3}, -1, 1)},
                .attrs = scaled({0.7, 1.4, 0.3, -0.2, Kernel2d::lanczos3}, {4, 5}, {3, 7})},
               {.inputs = {uniform({3, 2, 37}, -1, 1)}, .attrs = scaled({.translate_x = 1}, {3, 2}, {2, 3})},
               {.inputs = {uniform({0, 3, 2, 1}, -1, 1)}, .attrs = scaled({}, {3, 2}, {4, 4})},
               {.inputs = {uniform({1, 6, 5, 2}, -1, 1)},
                .attrs = scaled({.scale_y = 0.5, .scale_x = 0.4}, {6, 5}, {3, 2}),
                .expected = {tensor(
                    std::vector<double>{-0.08611570873589822, 0.09800421681583962, -0.19379185068479088,
                                        0.0942241787630508, 0.18944882453956904, -0.08584683432427749,
                                        -0.13900653818854442, 0.13115234840215445, -0.2655061227044442,
                                        0.2173151015485924, 0.21123331976224752, -0.0981532481925081},
                    {1, 3, 2, 2})},
                .oracle = "torch.nn.functional.interpolate(torch.tensor(x).permute(0, 3, 1, 2), (3, 2), "
                          "mode='bilinear', antialias=True).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {tensor(std::vector<double>{1, 2, 3, 4}, {1, 4, 1})},
                .attrs = scaled({.translate_x = -2}, {1, 4}, {1, 4}),
                .expected = {tensor(std::vector<double>{3, 4, 0, 0}, {1, 4, 1})},
                .oracle = "by hand"}};
         }},
};

Tensor resample(const ResampleAttrs& attrs, const Tensor& x) {
  return find(table, "resample").with(attrs, x);
}

void require_size(std::string_view name, const Tensor& x, HeightWidth size) {
  if (x.ndim() < 3)
    throw_error<ShapeError>("{}: x needs the axes height, width and channels: x is {}", name, x.spec());
  if (std::min(x.shape()[x.ndim() - 3], x.shape()[x.ndim() - 2]) < 1)
    throw_error<ShapeError>("{}: the image is empty: x is {}", name, x.spec());
  if (std::min(size.height, size.width) < 1 || std::max(size.height, size.width) > kMostCells)
    throw_error<ArgumentError>("{}: size is {}×{}; use 1..{}", name, size.height, size.width, kMostCells);
}

HeightWidth extents_of(const Tensor& x) { return {x.shape()[x.ndim() - 3], x.shape()[x.ndim() - 2]}; }
Tensor resize(const Op& op, Table table, const Tensor& x, HeightWidth size, Align align) {
  require_size(op.name, x, size);
  return op.with(resizing(table, extents_of(x), size, align), x);
}

}   // namespace

Tensor resize_nearest(const Tensor& x, HeightWidth size, Align align) {
  return resize(find(table, "resize_nearest"), nearest_table, x, size, align);
}
Tensor resize_bilinear(const Tensor& x, HeightWidth size, Align align) {
  return resize(find(table, "resize_bilinear"), linear_table, x, size, align);
}
Tensor resize_bicubic(const Tensor& x, HeightWidth size, Align align) {
  return resize(find(table, "resize_bicubic"), cubic_table, x, size, align);
}

Tensor scale_and_translate(const Tensor& x, HeightWidth size, const ScaleAndTranslate& o) {
  if (!(o.scale_y > 0 && o.scale_x > 0 && std::isfinite(o.scale_y) && std::isfinite(o.scale_x)))
    throw_error<ArgumentError>("scale_and_translate: scale is {}, {}; use positive ones", o.scale_y,
                               o.scale_x);
  if (!std::isfinite(o.translate_y) || !std::isfinite(o.translate_x))
    throw_error<ArgumentError>("scale_and_translate: translate is {}, {}", o.translate_y, o.translate_x);
  require_size("scale_and_translate", x, size);
  return find(table, "scale_and_translate").with(resizing(o, extents_of(x), size), x);
}

std::span<const Op> resize_ops() { return table; }

}   // namespace tapedeck
