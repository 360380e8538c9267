// Convolution and pooling: compared with plain loops for sizes that are divided among threads, closed forms,
// the cases, edge cases, exact error texts, and the same bits for any number of threads. The op table test
// covers derivatives for small sizes.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "case.h"
#include "closeness.h"
#include "core/sanitizers.h"
#include "ops/sample_inputs.h"
#include "tapedeck/tapedeck.h"

namespace conv_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

/// The input position that output position `o` reads, by the definition of padding.
struct Axis {
  std::int64_t extent, size, stride, dilation, before, outputs;

  Axis(std::int64_t extent_, std::int64_t size_, std::int64_t stride_, std::int64_t dilation_,
       Padding::Mode mode, std::int64_t before_, std::int64_t after)
      : extent(extent_), size(size_), stride(stride_), dilation(dilation_), before(before_) {
    const std::int64_t reach = (size - 1) * dilation + 1;
    if (mode == Padding::valid) before = 0, after = 0;
    if (mode == Padding::same) {
      const std::int64_t all =
          std::max<std::int64_t>(0, ((extent + stride - 1) / stride - 1) * stride + reach - extent);
      before = all / 2, after = all - before;
    }
    outputs = (extent + before + after - reach) / stride + 1;
  }
};

/// Calls f(position in the image, cell of the window, output position) for all matching triples.
template <class F> void each_cell(const Axis& rows, const Axis& columns, const F& f) {
  for (std::int64_t i = 0; i < rows.outputs; ++i)
    for (std::int64_t j = 0; j < columns.outputs; ++j)
      for (std::int64_t r = 0; r < rows.size; ++r)
        for (std::int64_t c = 0; c < columns.size; ++c) {
          const std::int64_t y = i * rows.stride + r * rows.dilation - rows.before,
                             x = j * columns.stride + c * columns.dilation - columns.before;
          if (y >= 0 && y < rows.extent && x >= 0 && x < columns.extent)
            f(y * columns.extent + x, r * columns.size + c, i * columns.outputs + j);
        }
}

/// conv2d and its two gradients from the definition, in f64.
struct Products {
  Tensor y, dx, df;
};
Products by_definition(const Tensor& x, const Tensor& filters, const Tensor& dy_or_ones,
                       const Conv2dOptions& o) {
  const Shape &xs = x.shape(), &fs = filters.shape();
  const std::int64_t n = xs[0], in = fs[2], out = fs[3], group = out / o.groups;   // input channels per group
  const Axis rows(xs[1], fs[0], o.strides.height, o.dilation.height, o.padding.mode, o.padding.top,
                  o.padding.bottom);
  const Axis columns(xs[2], fs[1], o.strides.width, o.dilation.width, o.padding.mode, o.padding.left,
                     o.padding.right);
  const Shape ys{n, rows.outputs, columns.outputs, out};
  const std::vector<double> a = x.to_vector(), f = filters.to_vector(), g = dy_or_ones.to_vector();
  std::vector<double> y(static_cast<std::size_t>(ys.size())), dx(a.size()), df(f.size());
  for (std::int64_t image = 0; image < n; ++image)
    each_cell(rows, columns, [&](std::int64_t pixel, std::int64_t cell, std::int64_t position) {
      for (std::int64_t k = 0; k < in; ++k)
        for (std::int64_t c = 0; c < out; ++c) {
          const auto at_x = static_cast<std::size_t>((image * xs[1] * xs[2] + pixel) * xs[3] +
                                                     c / group * in + k),
                     at_f = static_cast<std::size_t>((cell * in + k) * out + c);
          const auto at_y =
              static_cast<std::size_t>((image * rows.outputs * columns.outputs + position) * out + c);
          y[at_y] += a[at_x] * f[at_f];
          dx[at_x] += g[at_y] * f[at_f];
          df[at_f] += g[at_y] * a[at_x];
        }
    });
  return {tensor(y, ys), tensor(dx, xs), tensor(df, fs)};
}

Products by_tape(const Tensor& x, const Tensor& filters, const Tensor& dy, const Conv2dOptions& o) {
  GradientTape tape;
  tape.watch(x), tape.watch(filters);
  const Tensor y = conv2d(x, filters, o);
  const std::vector<Gradient> g = tape.gradient(Targets(y), Sources{x, filters}, {.output_gradients = {dy}});
  return {y, g[0].dense(), g[1].dense()};
}

Tensor in_f32(const Tensor& x) { return astype(x, DType::f32); }

struct Geometry {
  Shape x, filters;
  Conv2dOptions options;
};
const Geometry kGeometries[] = {
    {{2, 9, 7, 3}, {3, 2, 3, 5}, {}},
    {{2, 9, 7, 3}, {3, 2, 3, 5}, {.strides = {2, 3}, .padding = Padding::same}},
    {{2, 9, 7, 3}, {3, 2, 3, 5}, {.dilation = {2, 3}, .padding = {5, 0, 1, 4}}},
    {{2, 9, 7, 3}, {3, 2, 3, 5}, {.strides = 5, .dilation = 2, .padding = 3}},
    {{2, 8, 6, 37}, {1, 1, 37, 2}, {}},
    {{2, 8, 6, 5}, {1, 1, 5, 4}, {.strides = 2}},
    {{5, 1, 1, 3}, {3, 3, 3, 2}, {.padding = Padding::same}},
    {{1, 4, 4, 1}, {3, 3, 1, 1}, {.padding = {9, 2, 0, 7}}},         // windows with nothing but padding
    {{1, 1, 2, 1}, {1, 2, 1, 1}, {}},                                // in the tensor's handle
    {{40, 5, 6, 2}, {3, 3, 2, 3}, {.padding = Padding::same}},       // several images in a piece
    {{3, 40, 50, 8}, {5, 5, 8, 16}, {.padding = Padding::same}},     // several pieces, tasks of two images
    {{1, 300, 100, 4}, {3, 3, 4, 40}, {.padding = Padding::same}},   // bands of one image
    {{1, 300, 100, 4}, {7, 3, 4, 20}, {.strides = 2, .dilation = {2, 1}}},
    {{1, 400, 100, 24}, {1, 1, 24, 40}, {}},                         // the same without columns
    {{1, 1, 20'000, 2}, {1, 3, 2, 3}, {}},                           // lines longer than a piece
    {{4, 19, 17, 16}, {3, 2, 16, 37}, {.padding = Padding::same}},   // from here on, work enough for oneDNN
    {{4, 19, 17, 37}, {2, 3, 37, 16}, {.dilation = {2, 3}, .padding = {2, 0, 1, 4}}},
    {{3, 21, 18, 3}, {5, 4, 3, 40}, {.strides = {2, 3}, .padding = Padding::same}},
    {{9, 14, 15, 20}, {1, 1, 20, 24}, {}},
    {{9, 31, 37, 33}, {4, 5, 33, 16}, {.padding = {3, 1, 0, 4}}},      // tasks of two images, and one
    {{1, 200, 150, 16}, {3, 3, 16, 32}, {.padding = Padding::same}},   // bands
    {{2, 300, 210, 16}, {4, 2, 16, 24}, {.strides = {3, 1}, .dilation = {2, 1}, .padding = {5, 2, 1, 0}}},
    {{2, 9, 7, 6}, {3, 2, 3, 10}, {.strides = {2, 1}, .padding = Padding::same, .groups = 2}},   // groups
    {{3, 13, 11, 12}, {3, 3, 1, 24}, {.dilation = {1, 2}, .padding = 1, .groups = 12}},
    {{9, 14, 15, 20}, {1, 1, 5, 24}, {.groups = 4}},
    {{4, 19, 17, 48}, {3, 3, 16, 48}, {.padding = Padding::same, .groups = 3}},
    {{3, 150, 60, 32}, {3, 2, 8, 64}, {.padding = {2, 0, 1, 1}, .groups = 4}},
    {{3, 21, 18, 48}, {3, 3, 4, 48}, {.padding = Padding::same, .groups = 12}},
    {{3, 21, 18, 20}, {2, 3, 5, 28}, {.padding = 1, .groups = 4}},
};

}   // namespace

TEST_CASE("convolutions and their gradients agree with the definition", "[conv][definition]") {
  for (const auto& [xs, fs, o] : kGeometries) {
    const Tensor x = samples::uniform(xs, -1, 1), f = samples::uniform(fs, -1, 1, 1),
                 dy = samples::uniform(conv2d(x, f, o).shape(), -1, 1, 2);
    INFO(to_string(xs) << " with " << to_string(fs) << " gives " << to_string(dy.shape()));
    if (kAddressSanitizer &&
        dy.size() * fs.size() / fs[3] > 5'000'000) {   // the loops below would take minutes
      by_tape(x, f, dy, o), by_tape(in_f32(x), in_f32(f), in_f32(dy), o);
      continue;
    }
    const Products p = by_definition(x, f, dy, o), q = by_tape(x, f, dy, o),
                   single = by_tape(in_f32(x), in_f32(f), in_f32(dy), o);
    const double terms = static_cast<double>(dy.size());
    CHECK(worst(q.y, p.y) < 1e-12);
    CHECK(worst(q.dx, p.dx) < 1e-12);
    CHECK(worst(q.df, p.df) < 1e-14 * std::max(100.0, terms));
    CHECK(worst(single.y, p.y) < 1e-4);
    CHECK(worst(single.dx, p.dx) < 1e-4);
    CHECK(worst(single.df, p.df) < 1e-6 * std::max(100.0, terms));
  }
}

TEST_CASE("convolutions of volumes in f32 agree with f64, whatever the algorithm", "[conv]") {
  struct Volumes {
    Shape x, filters;
    Conv3dOptions options;
  };
  const Volumes cases[] = {
      {{2, 9, 12, 11, 16}, {3, 2, 3, 16, 24}, {.padding = Padding::same}},
      {{2, 9, 12, 11, 16}, {3, 3, 3, 16, 24}, {.strides = {2, 1, 3}, .padding = {1, 0, {0, 2, 1, 1}}}},
      {{3, 30, 14, 13, 32}, {2, 3, 1, 16, 32}, {.dilation = {1, 2, 1}, .groups = 2}},
      {{1, 60, 20, 20, 6}, {3, 3, 3, 3, 8}, {.padding = Padding::same, .groups = 2}}};   // bands of planes
  const int before = num_threads();
  for (const Volumes& one : cases) {
    const Tensor x = samples::uniform(one.x, -1, 1), f = samples::uniform(one.filters, -1, 1, 1),
                 dy = samples::uniform(conv3d(x, f, one.options).shape(), -1, 1, 2);
    const auto all = [&](DType dtype) {
      GradientTape tape;
      const Tensor a = astype(x, dtype), b = astype(f, dtype);
      tape.watch(a), tape.watch(b);
      const Tensor y = conv3d(a, b, one.options);
      const std::vector<Gradient> g =
          tape.gradient(Targets(y), Sources{a, b}, {.output_gradients = {astype(dy, dtype)}});
      return std::vector<Tensor>{y, g[0].dense(), g[1].dense()};
    };
    INFO(to_string(one.x));
    set_num_threads(1);
    const std::vector<Tensor> exact = all(DType::f64), single = all(DType::f32);
    set_num_threads(4);
    const std::vector<Tensor> threads = all(DType::f32);
    CHECK(worst(single[0], exact[0]) < 1e-4);
    CHECK(worst(single[1], exact[1]) < 1e-4);
    CHECK(worst(single[2], exact[2]) < 1e-6 * static_cast<double>(dy.size()));
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(same_bits(single[i], threads[i]));
  }
  set_num_threads(before);
}

TEST_CASE("the gradient in the filters of many images is the sum of the gradients of few", "[conv]") {
  const Tensor x = samples::uniform({48, 40, 40, 16}, -1, 1), dy = samples::uniform(x.shape(), -1, 1, 1),
               f = zeros({3, 3, 16, 16}, DType::f64);
  const Conv2dOptions same{.padding = Padding::same};
  Tensor total = f;
  for (std::int64_t i = 0; i < 48; ++i)
    total = total + by_tape(slice(x, {i, 0, 0, 0}, {1, -1, -1, -1}), f,
                            slice(dy, {i, 0, 0, 0}, {1, -1, -1, -1}), same)
                        .df;
  const int before = num_threads();
  set_num_threads(1);
  const Tensor one = by_tape(x, f, dy, same).df;
  set_num_threads(4);
  const Tensor four = by_tape(x, f, dy, same).df;
  set_num_threads(before);
  CHECK(worst(one, total) < 1e-9);
  CHECK(same_bits(one, four));
}

TEST_CASE("same puts the odd row and column at the end", "[conv]") {
  const Tensor x = reshape(arange(1, 5, 1, DType::f64), {1, 2, 2, 1}),
               f = reshape(tensor({1.0, 10.0, 100.0, 1000.0}, DType::f64), {2, 2, 1, 1});
  CHECK(conv2d(x, f, {.padding = Padding::same}).to_vector() == std::vector<double>{4321, 402, 43, 4});
  CHECK(conv2d(x, f, {.padding = {0, 1, 0, 1}}).to_vector() == std::vector<double>{4321, 402, 43, 4});
  CHECK(conv2d(x, f, {.padding = {1, 0, 1, 0}}).to_vector() == std::vector<double>{1000, 2100, 3010, 4321});
  CHECK(conv2d(x, f).to_vector() == std::vector<double>{4321});
}

TEST_CASE("images may stand alone or behind several axes", "[conv]") {
  const Tensor x = samples::uniform({2, 3, 5, 4, 2}, -1, 1), f = samples::uniform({3, 3, 2, 4}, -1, 1, 1),
               flat = reshape(x, {6, 5, 4, 2});
  CHECK(conv2d(x, f).shape() == Shape{2, 3, 3, 2, 4});
  CHECK(same_bits(reshape(conv2d(x, f), {6, 3, 2, 4}), conv2d(flat, f)));
  CHECK(same_bits(reshape(max_pool2d(x, {.window = 2}), {6, 2, 2, 2}), max_pool2d(flat, {.window = 2})));
  const Tensor one = reshape(slice(flat, {4, 0, 0, 0}, {1, -1, -1, -1}), {5, 4, 2});
  CHECK(conv2d(one, f).shape() == Shape{3, 2, 4});
  CHECK(worst(conv2d(one, f), reshape(slice(conv2d(flat, f), {4, 0, 0, 0}, {1, -1, -1, -1}), {3, 2, 4})) <
        1e-14);
}

TEST_CASE("convolutions of empty tensors", "[conv]") {
  const Tensor f = ones({3, 3, 2, 4});
  CHECK(conv2d(zeros({0, 5, 5, 2}), f).shape() == Shape{0, 3, 3, 4});
  CHECK(conv2d(ones({1, 3, 3, 0}), zeros({3, 3, 0, 2})).to_vector() == std::vector<double>{0, 0});
  CHECK(conv2d(zeros({2, 0, 3, 2}), f, {.padding = Padding::same}).shape() == Shape{2, 0, 3, 4});
  CHECK(max_pool2d(zeros({0, 5, 5, 2}), {.window = 2}).shape() == Shape{0, 2, 2, 2});
  CHECK(avg_pool2d(zeros({3, 5, 5, 0}), {.window = 2}).shape() == Shape{3, 2, 2, 0});
  GradientTape tape;
  const Tensor x = zeros({0, 5, 5, 2});
  tape.watch(x), tape.watch(f);
  const auto [dx, df] = tape.gradient(conv2d(x, f), x, f);
  CHECK(dx.dense().shape() == x.shape());
  CHECK(df.dense().to_vector() == std::vector<double>(72, 0));
}

TEST_CASE("padding hides no NaN, and filters meet no padding that is NaN", "[conv]") {
  const Tensor x = full({1, 3, 3, 1}, kNaN), f = zeros({3, 3, 1, 1});
  for (const double v : conv2d(x, f, {.padding = Padding::same}).to_vector())
    CHECK(std::isnan(v));
  const Tensor infinite = full({3, 3, 1, 1}, kInf);   // times zero is NaN, as in any convolution over padding
  CHECK(std::isnan(conv2d(ones({1, 1, 1, 1}), infinite, {.padding = 1}).item()));
}

TEST_CASE("pools agree with the definition", "[conv][definition]") {
  struct Case {
    Shape x;
    Pool2dOptions options;
  };
  const Case cases[] = {{{2, 7, 6, 37}, {.window = 2}},
                        {{2, 7, 6, 3}, {.window = {3, 2}, .strides = {1, 2}}},
                        {{2, 7, 6, 1}, {.window = 3, .strides = 2, .padding = Padding::same}},
                        {{2, 7, 6, 16}, {.window = {4, 3}, .strides = 3, .padding = {3, 1, 0, 2}}},
                        {{1, 1, 1, 2}, {.window = 1}},
                        {{1, 400, 50, 20}, {.window = 3, .strides = 1, .padding = Padding::same}},   // bands
                        {{60, 8, 8, 5}, {.window = 2}}};   // images together
  for (const Case& one : cases) {
    const Shape& xs = one.x;
    const Pool2dOptions& o = one.options;
    const HeightWidth strides = o.strides.height > 0 ? o.strides : o.window;
    const Axis rows(xs[1], o.window.height, strides.height, 1, o.padding.mode, o.padding.top,
                    o.padding.bottom);
    const Axis columns(xs[2], o.window.width, strides.width, 1, o.padding.mode, o.padding.left,
                       o.padding.right);
    const Shape ys{xs[0], rows.outputs, columns.outputs, xs[3]};
    const Tensor x = samples::distinct(xs), dy = samples::uniform(ys, -1, 1, 1),
                 v = samples::uniform(xs, -1, 1, 2);
    const std::vector<double> a = x.to_vector(), g = dy.to_vector(), t = v.to_vector();
    std::vector<double> largest(g.size(), -kInf), tangent(g.size()), total(g.size()), count(g.size()),
        dmax(a.size()), davg(a.size());
    std::vector<std::size_t> place(g.size());
    const auto each = [&](const auto& f) {
      for (std::int64_t n = 0; n < xs[0]; ++n)
        each_cell(rows, columns, [&](std::int64_t pixel, std::int64_t, std::int64_t position) {
          for (std::int64_t c = 0; c < xs[3]; ++c)
            f(static_cast<std::size_t>((n * xs[1] * xs[2] + pixel) * xs[3] + c),
              static_cast<std::size_t>((n * ys[1] * ys[2] + position) * xs[3] + c));
        });
    };
    each([&](std::size_t i, std::size_t k) {
      if (a[i] > largest[k]) largest[k] = a[i], place[k] = i;
      total[k] += a[i], count[k] += 1;
    });
    each([&](std::size_t i, std::size_t k) {
      davg[i] += g[k] / count[k];
      if (place[k] == i) dmax[i] += g[k], tangent[k] = t[i];
    });
    for (std::size_t k = 0; k < g.size(); ++k)
      total[k] /= count[k];

    INFO(to_string(xs) << " gives " << to_string(ys));
    for (const bool single : {false, true}) {
      const Tensor p = single ? in_f32(x) : x, dp = single ? in_f32(dy) : dy;
      const double tolerance = single ? 2e-5 : 1e-12;
      GradientTape tape({.persistent = true});
      tape.watch(p);
      const ForwardAccumulator forward(p, single ? in_f32(v) : v);
      const Tensor y = max_pool2d(p, o), z = avg_pool2d(p, o);
      CHECK(worst(y, tensor(largest, ys)) <= (single ? 1e-3 : 0));
      CHECK(worst(z, tensor(total, ys)) <= (single ? 1e-2 : 1e-11));
      CHECK(worst(tape.gradient(Targets(y), Sources(p), {.output_gradients = {dp}})[0].dense(),
                  tensor(dmax, xs)) < tolerance);
      CHECK(worst(tape.gradient(Targets(z), Sources(p), {.output_gradients = {dp}})[0].dense(),
                  tensor(davg, xs)) < tolerance);
      CHECK(worst(forward.jvp(y), tensor(tangent, ys)) < tolerance);
    }
  }
}

TEST_CASE("the first of equal elements gets the gradient of a maximum", "[conv]") {
  const Tensor x =
      reshape(tensor({{1.0, 3.0, 3.0}, {3.0, 0.0, 3.0}, {-kInf, -kInf, 2.0}}, DType::f64), {3, 3, 1});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = max_pool2d(x, {.window = 2, .strides = 1});
  CHECK(y.to_vector() == std::vector<double>{3, 3, 3, 3});
  CHECK(tape.gradient(y, x).dense().to_vector() == std::vector<double>{0, 2, 0, 1, 0, 1, 0, 0, 0});
  const Tensor none = full({1, 2, 2, 1}, -kInf);
  tape.watch(none);
  CHECK(tape.gradient(max_pool2d(none, {.window = 2}), none).dense().to_vector() ==
        std::vector<double>{1, 0, 0, 0});
}

TEST_CASE("a maximum is NaN where there is one, and so is its gradient", "[conv]") {
  for (const std::int64_t channels : {1, 16}) {
    std::vector<double> values(static_cast<std::size_t>(8 * channels), 1);
    values[static_cast<std::size_t>(channels)] = kNaN;   // image [2,4], second column, first channel
    const Tensor x = tensor(values, {2, 4, channels});
    GradientTape tape;
    tape.watch(x);
    const Tensor y = max_pool2d(x, {.window = 2});
    CHECK(std::isnan(y.at({0, 0, 0})));
    CHECK(y.at({0, 1, 0}) == 1);
    const Tensor dx = tape.gradient(y, x).dense();
    for (const std::int64_t r : {0, 1})
      for (const std::int64_t c : {0, 1})
        CHECK(std::isnan(dx.at({r, c, 0})));
    CHECK(dx.at({0, 2, 0}) == 1);
    if (channels > 1) CHECK(dx.at({0, 0, 1}) == 1);
  }
}

TEST_CASE("averages over large windows are accurate", "[conv]") {
  const Tensor x = random::uniform({1, 1000, 1000, 1}, {.seed = 3});
  CHECK(std::abs(avg_pool2d(x, {.window = 1000}).item() - mean(astype(x, DType::f64)).item()) < 2e-6);
}

TEST_CASE("convolutions and pools do not depend on the number of threads", "[conv][threads]") {
  const auto all = [](int threads) {
    set_num_threads(threads);
    std::vector<Tensor> results;
    for (const auto& [xs, fs, o] : kGeometries) {
      const Tensor x = in_f32(samples::uniform(xs, -1, 1)), f = in_f32(samples::uniform(fs, -1, 1, 1));
      const Products p = by_tape(x, f, in_f32(samples::uniform(conv2d(x, f, o).shape(), -1, 1, 2)), o);
      results.insert(results.end(), {p.y, p.dx, p.df});
    }
    for (const Shape& s : {Shape{1, 300, 50, 20}, Shape{64, 12, 12, 24}}) {
      const Tensor x = in_f32(samples::uniform(s, -1, 1));
      GradientTape tape({.persistent = true});
      tape.watch(x);
      const Tensor y = max_pool2d(x, {.window = 3, .strides = 2}),
                   z = avg_pool2d(x, {.window = 3, .strides = 2});
      results.insert(results.end(), {y, z, tape.gradient(y, x).dense(), tape.gradient(z, x).dense()});
    }
    return results;
  };
  const int before = num_threads();
  const std::vector<Tensor> one = all(1);
  for (const int threads : kThreadSanitizer ? std::vector<int>{4} : std::vector<int>{2, 4, 8}) {
    const std::vector<Tensor> many = all(threads);
    for (std::size_t i = 0; i < one.size(); ++i)
      CHECK(same_bits(many[i], one[i]));
  }
  set_num_threads(before);
}

TEST_CASE("a convolution's variables are read, and f32 goes with f64", "[conv]") {
  const Variable f(ones({2, 2, 1, 1}));
  const Tensor x = ones({1, 3, 3, 1});
  GradientTape tape;
  CHECK(tape.gradient(conv2d(x, f), f).dense().to_vector() == std::vector<double>(4, 4));
  CHECK(conv2d(x, ones({2, 2, 1, 1}, DType::f64)).dtype() == DType::f64);
}

TEST_CASE("cases: convolution and pooling", "[cases][conv]") {
  check_case("op-conv2d-same-grad-input", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input(full({1, 4, 4, 3}, c.number("x_fill"))),
                 k = c.input(full({2, 2, 3, 2}, c.number("k_fill")));
    tape.watch(x), tape.watch(k);
    const auto [dx, dk] = tape.gradient(conv2d(x, k, {.padding = Padding::same}), x, k);
    c.check("dx", dx);
    c.check("dk", dk);
  });
  const auto pooled = [](const std::string& id, const auto& pool, const Tensor& dy) {
    check_case(id, [&](Case& c) {
      GradientTape tape;
      const Tensor x = c.input("x");
      tape.watch(x);
      c.check("grads", tape.gradient(Targets(pool(x)), Sources(x), {.output_gradients = {dy}}));
    });
  };
  pooled(
      "op-avgpool-valid", [](const Tensor& x) { return avg_pool2d(x, {.window = 2}); },
      reshape(tensor({1.0, 2.0, 3.0, 4.0}), {1, 2, 2, 1}));
  pooled(
      "op-avgpool-same-edge",
      [](const Tensor& x) { return avg_pool2d(x, {.window = 2, .padding = Padding::same}); },
      ones({1, 2, 2, 1}));
  pooled(
      "op-maxpool-valid", [](const Tensor& x) { return max_pool2d(x, {.window = 2}); }, ones({1, 2, 2, 1}));
  check_case("tape-conv2d-1x1-partial-params", [&](Case& c) {
    GradientTape tape;
    const Tensor i = c.input(full({1, 1, 1, 1}, 1)), k = c.input(full({1, 1, 1, 1}, 2));
    tape.watch(i);
    c.check("g", tape.gradient(conv2d(i, k, {.padding = Padding::same}), i));
  });
}

TEST_CASE("convolution and pooling reject invalid arguments", "[conv][errors]") {
  const Tensor x = zeros({2, 5, 4, 3}), f = zeros({3, 2, 3, 8});
  CHECK_THROWS_WITH(conv2d(zeros({2, 3, 5, 4}), f),
                    "conv2d: filters take 3 channels, x has 4 in its last axis; set .layout where channels "
                    "come first: x is f32[2,3,5,4], filters is f32[3,2,3,8]");
  CHECK_THROWS_WITH(conv2d(x, zeros({3, 2, 4, 8})),
                    "conv2d: filters take 4 channels, x has 3: x is f32[2,5,4,3], filters is f32[3,2,4,8]");
  CHECK_THROWS_WITH(
      conv2d(x, zeros({3, 3, 8})),
      "conv2d: filters need the axes rows, columns, in and out: x is f32[2,5,4,3], filters is f32[3,3,8]");
  CHECK_THROWS_WITH(
      conv2d(zeros({5, 3}), f),
      "conv2d: x needs the axes height, width and channels: x is f32[5,3], filters is f32[3,2,3,8]");
  CHECK_THROWS_WITH(
      conv2d(x, f, {.dilation = 3}),
      "conv2d: the filters are larger than the padded image: x is f32[2,5,4,3], filters is f32[3,2,3,8]");
  CHECK_THROWS_WITH(conv2d(x, zeros({3, 0, 3, 8})),
                    "conv2d: filters are empty: x is f32[2,5,4,3], filters is f32[3,0,3,8]");
  CHECK_THROWS_WITH(conv2d(x, f, {.strides = {1, 0}}), "conv2d: strides are 1×0; use 1..2147483647");
  CHECK_THROWS_WITH(conv2d(x, f, {.dilation = -2}), "conv2d: dilation is -2×-2; use 1..2147483647");
  CHECK_THROWS_WITH(conv2d(x, f, {.padding = {0, -1, 0, 2}}),
                    "conv2d: padding is 0, -1, 0, 2 at top, bottom, left, right; use 0..2147483646 for rows "
                    "and 0..2147483646 for columns");
  CHECK_THROWS_WITH(conv2d(x, zeros({3, 2, 3, 8}, DType::i32)),
                    "conv2d: dtypes differ: x is f32[2,5,4,3], filters is i32[3,2,3,8]");
  CHECK_THROWS_WITH(
      conv2d(zeros({1, std::int64_t{1} << 31, 0, 3}), f),
      "conv2d: extents of 2^31 and more are too large: x is f32[1,2147483648,0,3], filters is f32[3,2,3,8]");
  CHECK_THROWS_AS(conv2d(zeros({1 << 20, 1 << 20, 0}), zeros({3, 3, 0, 1 << 30}),
                         {.strides = 1, .padding = Padding::same}),
                  ShapeError);   // 2^70 elements
  CHECK_THROWS_AS(conv2d(x, f, {.strides = 0}), ArgumentError);
  CHECK_THROWS_AS(conv2d(x, f, {.dilation = 3}), ShapeError);
  CHECK_THROWS_AS(conv2d(Tensor(), f), ArgumentError);

  CHECK_THROWS_WITH(max_pool2d(x, {.window = {2, 5}}),
                    "max_pool2d: the window is larger than the padded image: x is f32[2,5,4,3]");
  CHECK_THROWS_WITH(max_pool2d(x, {.window = 0}), "max_pool2d: window is 0×0; use 1..2147483647");
  CHECK_THROWS_WITH(avg_pool2d(x, {.window = 2, .strides = {0, 1}}),
                    "avg_pool2d: strides are 0×1; use 1..2147483647");
  CHECK_THROWS_WITH(avg_pool2d(x, {.window = {2, 3}, .padding = 2}),
                    "avg_pool2d: padding is 2, 2, 2, 2 at top, bottom, left, right; use 0..1 for rows and "
                    "0..2 for columns");
  CHECK_THROWS_WITH(max_pool2d(x, {.window = {4096, 4097}}),
                    "max_pool2d: window is 4096×4097; more than 2^24 cells are too many");
  CHECK_THROWS_WITH(avg_pool2d(zeros({5, 4}), {.window = 2}),
                    "avg_pool2d: x needs the axes height, width and channels: x is f32[5,4]");
  CHECK_THROWS_WITH(max_pool2d(zeros({5, 4, 1}, DType::i32), {.window = 2}),
                    "max_pool2d: takes f32, f64, f16 or bf16, use astype: x is i32[5,4,1]");
}

}   // namespace conv_test
