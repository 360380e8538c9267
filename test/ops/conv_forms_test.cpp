// Variants of convolution and pooling that are composed of ops, compared with their definitions as plain
// loops. Their gradients follow from the ops; only those that depend on a choice of the variant, in ties and
// in windows of different sizes, are tested here.
#include <catch2/catch.hpp>
#include <cmath>

#include "closeness.h"
#include "ops/sample_inputs.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/tapedeck.h"

namespace conv_forms_test {

using namespace tapedeck;
using samples::uniform;

namespace {

// One axis of a window, with its padding computed.
struct Axis {
  std::int64_t extent, size, stride, dilation, before, outputs;
  static Axis valid(std::int64_t n, std::int64_t size, std::int64_t stride = 1, std::int64_t dilation = 1,
                    std::int64_t before = 0, std::int64_t after = 0) {
    return {n, size, stride, dilation, before, (n + before + after - (size - 1) * dilation - 1) / stride + 1};
  }
  static Axis same(std::int64_t n, std::int64_t size, std::int64_t stride = 1, std::int64_t dilation = 1) {
    const std::int64_t outputs = (n + stride - 1) / stride,
                       padding =
                           std::max<std::int64_t>((outputs - 1) * stride + (size - 1) * dilation + 1 - n, 0);
    return {n, size, stride, dilation, padding / 2, outputs};
  }
};

/// Calls f(output volume, element of x, cell) for everything that windows over volumes [n, d, h, w] read, in
/// order. Positions do not count channels.
template <class F> void each_read(std::int64_t images, const Axis (&a)[3], const F& f) {
  for (std::int64_t n = 0, o = 0; n < images; ++n)
    for (std::int64_t i = 0; i < a[0].outputs; ++i)
      for (std::int64_t j = 0; j < a[1].outputs; ++j)
        for (std::int64_t k = 0; k < a[2].outputs; ++k, ++o)
          for (std::int64_t p = 0, cell = 0; p < a[0].size; ++p)
            for (std::int64_t q = 0; q < a[1].size; ++q)
              for (std::int64_t r = 0; r < a[2].size; ++r, ++cell) {
                const std::int64_t z = i * a[0].stride + p * a[0].dilation - a[0].before,
                                   y = j * a[1].stride + q * a[1].dilation - a[1].before,
                                   x = k * a[2].stride + r * a[2].dilation - a[2].before;
                if (z < 0 || y < 0 || x < 0 || z >= a[0].extent || y >= a[1].extent || x >= a[2].extent)
                  continue;
                f(o, ((n * a[0].extent + z) * a[1].extent + y) * a[2].extent + x, cell);
              }
}
std::int64_t outputs_of(const Axis (&a)[3]) { return a[0].outputs * a[1].outputs * a[2].outputs; }

// Filters are [cells, in / groups, out]; returns values of shape [outputs, out].
std::vector<double> convolution(const Tensor& x, const Tensor& filters, std::int64_t images,
                                const Axis (&a)[3], std::int64_t in, std::int64_t out,
                                std::int64_t groups = 1) {
  const std::vector<double> v = x.to_vector(), w = filters.to_vector();
  std::vector<double> y(static_cast<std::size_t>(images * outputs_of(a) * out));
  const std::int64_t each_in = in / groups, each_out = out / groups;
  each_read(images, a, [&](std::int64_t o, std::int64_t e, std::int64_t cell) {
    for (std::int64_t c = 0; c < out; ++c)
      for (std::int64_t k = 0; k < each_in; ++k)
        y[static_cast<std::size_t>(o * out + c)] +=
            v[static_cast<std::size_t>(e * in + c / each_out * each_in + k)] *
            w[static_cast<std::size_t>((cell * each_in + k) * out + c)];
  });
  return y;
}
double difference(const Tensor& y, const std::vector<double>& expected) {
  return worst(reshape(y, {-1}), tensor(expected));
}

double dot(const Tensor& a, const Tensor& b) { return sum(a * b).item(); }

}   // namespace

TEST_CASE("convolutions in one and three dimensions and in groups agree with their definition", "[conv]") {
  {
    const Tensor x = uniform({2, 9, 3}, -1, 1), f = uniform({4, 3, 5}, -1, 1, 1);
    const Tensor y = conv1d(x, f, {.strides = 2, .dilation = 2});
    CHECK(y.shape() == Shape{2, 2, 5});
    CHECK(difference(y, convolution(x, f, 2, {Axis::valid(1, 1), Axis::valid(1, 1), Axis::valid(9, 4, 2, 2)},
                                    3, 5)) < 1e-14);
    CHECK(difference(conv1d(x, f, {.padding = Padding::same}),
                     convolution(x, f, 2, {Axis::valid(1, 1), Axis::valid(1, 1), Axis::same(9, 4)}, 3, 5)) <
          1e-14);
  }
  {
    const Tensor x = uniform({2, 5, 4, 6, 3}, -1, 1), f = uniform({3, 2, 3, 3, 4}, -1, 1, 1);
    CHECK(difference(conv3d(x, f),
                     convolution(x, f, 2, {Axis::valid(5, 3), Axis::valid(4, 2), Axis::valid(6, 3)}, 3, 4)) <
          1e-14);
    CHECK(difference(conv3d(x, f, {.strides = {2, 1, 3}, .padding = Padding::same}),
                     convolution(x, f, 2, {Axis::same(5, 3, 2), Axis::same(4, 2), Axis::same(6, 3, 3)}, 3,
                                 4)) < 1e-14);
    CHECK(difference(conv3d(x, f, {.dilation = {2, 3, 1}, .padding = {1, 0, {0, 2, 1, 1}}}),
                     convolution(x, f, 2,
                                 {Axis::valid(5, 3, 1, 2, 1, 0), Axis::valid(4, 2, 1, 3, 0, 2),
                                  Axis::valid(6, 3, 1, 1, 1, 1)},
                                 3, 4)) < 1e-14);
    CHECK(check_gradients(
        [](const std::vector<Tensor>& in) {
          return conv3d(in[0], in[1], {.strides = 2, .padding = Padding::same});
        },
        {x, f}));
  }
  {
    const Tensor x = uniform({2, 5, 4, 6}, -1, 1), f = uniform({3, 2, 2, 9}, -1, 1, 1);
    const Tensor y = conv2d(x, f, {.strides = {2, 1}, .groups = 3});
    CHECK(difference(y, convolution(x, f, 2, {Axis::valid(1, 1), Axis::valid(5, 3, 2), Axis::valid(4, 2)}, 6,
                                    9, 3)) < 1e-14);
    const Tensor first = transpose(x, {0, 3, 1, 2});
    CHECK(worst(conv2d(first, f, {.strides = {2, 1}, .groups = 3, .layout = Layout::nchw}),
                transpose(y, {0, 3, 1, 2})) == 0);
    const Tensor row = uniform({2, 9, 6}, -1, 1), g = uniform({4, 2, 9}, -1, 1, 1),
                 z = conv1d(row, g, {.strides = 2, .groups = 3});
    CHECK(difference(z, convolution(row, g, 2, {Axis::valid(1, 1), Axis::valid(1, 1), Axis::valid(9, 4, 2)},
                                    6, 9, 3)) < 1e-14);
    CHECK(worst(conv1d(transpose(row, {0, 2, 1}), g, {.strides = 2, .groups = 3, .layout = Layout::nchw}),
                transpose(z, {0, 2, 1})) == 0);
  }
  {
    const Tensor x = uniform({2, 5, 4, 6, 6}, -1, 1), f = uniform({3, 2, 3, 2, 9}, -1, 1, 1);
    const Conv3dOptions o{.strides = {2, 1, 2}, .padding = {1, 0, {0, 1, 1, 0}}, .groups = 3};
    const Tensor y = conv3d(x, f, o);
    CHECK(difference(y, convolution(x, f, 2,
                                    {Axis::valid(5, 3, 2, 1, 1, 0), Axis::valid(4, 2, 1, 1, 0, 1),
                                     Axis::valid(6, 3, 2, 1, 1, 0)},
                                    6, 9, 3)) < 1e-14);
    Conv3dOptions first = o;
    first.layout = Layout::ncdhw;
    CHECK(worst(conv3d(transpose(x, {0, 4, 1, 2, 3}), f, first), transpose(y, {0, 4, 1, 2, 3})) == 0);
    CHECK(conv3d(astype(x, DType::f32), f, o).dtype() == DType::f64);
    CHECK(check_gradients([&](const std::vector<Tensor>& in) { return conv3d(in[0], in[1], o); }, {x, f}));
  }
}

TEST_CASE("depthwise_conv2d is a convolution with as many groups as channels", "[conv]") {
  const Tensor x = uniform({2, 5, 6, 3}, -1, 1), f = uniform({3, 2, 3, 2}, -1, 1, 1);
  const Tensor in_groups = reshape(f, {3, 2, 1, 6});
  CHECK(difference(depthwise_conv2d(x, f, {.strides = 2, .padding = Padding::same}),
                   convolution(x, in_groups, 2, {Axis::valid(1, 1), Axis::same(5, 3, 2), Axis::same(6, 2, 2)},
                               3, 6, 3)) < 1e-14);
  CHECK(difference(
            depthwise_conv2d(x, f, {.dilation = {1, 3}, .padding = {1, 1, 0, 1}}),
            convolution(x, in_groups, 2,
                        {Axis::valid(1, 1), Axis::valid(5, 3, 1, 1, 1, 1), Axis::valid(6, 2, 1, 3, 0, 1)}, 3,
                        6, 3)) < 1e-14);
  CHECK(check_gradients(
      [](const std::vector<Tensor>& in) { return depthwise_conv2d(in[0], in[1], {.padding = 1}); }, {x, f}));
}

// By the same ops on images whose channels are last already.
TEST_CASE(
    "images with channels first, and of another dtype than the filters, are filtered channel by channel",
    "[conv]") {
  const Tensor x = uniform({2, 3, 5, 6}, -1, 1), f = uniform({3, 2, 3, 2}, -1, 1, 1),
               g = uniform({3, 2, 3}, -1, 1, 2);
  const std::vector<int> last{0, 2, 3, 1}, first{0, 3, 1, 2};
  const Conv2dOptions nchw{.strides = {1, 2}, .padding = Padding::same, .layout = Layout::nchw},
      nhwc{.strides = {1, 2}, .padding = Padding::same};
  CHECK(same_bits(depthwise_conv2d(x, f, nchw),
                  transpose(depthwise_conv2d(transpose(x, last), f, nhwc), first)));
  CHECK(same_bits(dilation2d(x, g, nchw), transpose(dilation2d(transpose(x, last), g, nhwc), first)));
  CHECK(check_gradients([&](const std::vector<Tensor>& in) { return depthwise_conv2d(in[0], in[1], nchw); },
                        {x, f}));
  CHECK_THROWS_WITH(
      dilation2d(ones({3, 4}), g, nchw),
      "dilation2d: x needs the axes height, width and channels: x is f32[3,4], filters is f64[3,2,3]");
  CHECK_THROWS_WITH(
      depthwise_conv2d(ones({3, 4}), f, nchw),
      "depthwise_conv2d: x needs the axes height, width and channels: x is f32[3,4], filters is "
      "f64[3,2,3,2]");

  const Tensor images = astype(transpose(x, last), DType::f32);
  CHECK(same_bits(depthwise_conv2d(images, f), depthwise_conv2d(astype(images, DType::f64), f)));
  CHECK(same_bits(dilation2d(images, g), dilation2d(astype(images, DType::f64), g)));
  CHECK_THROWS_AS(depthwise_conv2d(astype(images, DType::i32), f), DTypeError);
  CHECK_THROWS_AS(dilation2d(images, ones({3, 2, 3}, DType::c64)), DTypeError);
}

TEST_CASE("transposed convolutions are the adjoints", "[conv]") {
  const Tensor f = uniform({3, 2, 4, 5}, -1, 1, 1);   // conv2d takes 4 channels and gives 5
  for (const Padding& p : {Padding(Padding::valid), Padding(Padding::same), Padding(1, 0, 1, 1)}) {
    const Tensor image = uniform({2, 7, 6, 4}, -1, 1),
                 y = conv2d(image, f, {.strides = {2, 3}, .padding = p}), v = uniform(y.shape(), -1, 1, 2);
    const Tensor back = conv2d_transpose(v, f, {.strides = {2, 3}, .padding = p, .size = {7, 6}});
    CHECK(back.shape() == image.shape());
    CHECK(dot(y, v) == Approx(dot(image, back)).epsilon(1e-12));
  }
  CHECK(conv2d_transpose(uniform({2, 3, 3, 5}, -1, 1), f, {.strides = 2}).shape() == Shape{2, 7, 6, 4});
  CHECK(conv2d_transpose(uniform({2, 3, 3, 5}, -1, 1), f, {.strides = 2, .padding = Padding::same}).shape() ==
        Shape{2, 6, 6, 4});
  const Tensor volume_filters = uniform({2, 3, 2, 4, 5}, -1, 1, 1);
  for (const Padding3d& p :
       {Padding3d(Padding::valid), Padding3d(Padding::same), Padding3d(1, 0, {1, 1, 0, 1})}) {
    const Tensor volume = uniform({1, 4, 5, 6, 4}, -1, 1),
                 y = conv3d(volume, volume_filters, {.strides = {2, 1, 2}, .padding = p}),
                 v = uniform(y.shape(), -1, 1, 2);
    const Tensor back =
        conv3d_transpose(v, volume_filters, {.strides = {2, 1, 2}, .padding = p, .size = {4, 5, 6}});
    CHECK(back.shape() == volume.shape());
    CHECK(dot(y, v) == Approx(dot(volume, back)).epsilon(1e-12));
  }
  CHECK(conv3d_transpose(uniform({1, 2, 2, 2, 5}, -1, 1), volume_filters, {.strides = 2}).shape() ==
        Shape{1, 4, 5, 4, 4});
  CHECK(conv3d_transpose(uniform({1, 2, 2, 2, 5}, -1, 1), volume_filters,
                         {.strides = 2, .padding = Padding::same})
            .shape() == Shape{1, 4, 4, 4, 4});
  {
    const Tensor volume = uniform({1, 4, 5, 6, 6}, -1, 1), in_groups = uniform({2, 3, 2, 3, 4}, -1, 1, 1);
    const Tensor y = conv3d(volume, in_groups, {.strides = 2, .groups = 2}), v = uniform(y.shape(), -1, 1, 2);
    const Tensor back = conv3d_transpose(v, in_groups, {.strides = 2, .size = {4, 5, 6}, .groups = 2});
    CHECK(dot(y, v) == Approx(dot(volume, back)).epsilon(1e-12));
    const Tensor first =
        conv3d_transpose(transpose(v, {0, 4, 1, 2, 3}), in_groups,
                         {.strides = 2, .size = {4, 5, 6}, .groups = 2, .layout = Layout::ncdhw});
    CHECK(worst(first, transpose(back, {0, 4, 1, 2, 3})) == 0);
    const Tensor image = uniform({2, 7, 6, 6}, -1, 1), g = uniform({3, 2, 2, 9}, -1, 1, 1),
                 z = conv2d(image, g, {.strides = 2, .groups = 3}), w = uniform(z.shape(), -1, 1, 2);
    CHECK(dot(z, w) == Approx(dot(image, conv2d_transpose(w, g, {.strides = 2, .size = {7, 6}, .groups = 3})))
                           .epsilon(1e-12));
  }
}

TEST_CASE("dilation2d takes the largest sum, and its gradient flows to that element", "[conv]") {
  const Tensor x = samples::distinct({1, 4, 5, 2}), f = uniform({2, 3, 2}, -1, 1, 1);
  const Axis a[] = {Axis::valid(1, 1), Axis::same(4, 2), Axis::same(5, 3)};
  const std::vector<double> v = x.to_vector(), w = f.to_vector();
  std::vector<double> expected(40, -1e300);
  each_read(1, a, [&](std::int64_t o, std::int64_t e, std::int64_t cell) {
    for (std::int64_t c = 0; c < 2; ++c) {
      double& y = expected[static_cast<std::size_t>(o * 2 + c)];
      y = std::max(y, v[static_cast<std::size_t>(e * 2 + c)] + w[static_cast<std::size_t>(cell * 2 + c)]);
    }
  });
  CHECK(difference(dilation2d(x, f, {.padding = Padding::same}), expected) == 0);
  CHECK(check_vjp(
      [](const std::vector<Tensor>& in) { return dilation2d(in[0], in[1], {.padding = Padding::same}); },
      {x, f}));
  GradientTape tape;
  const Tensor even = zeros({1, 2, 2, 1}), flat = zeros({2, 2, 1});
  tape.watch(even), tape.watch(flat);
  const auto [dx, df] = tape.gradient(dilation2d(even, flat), even, flat);
  CHECK(dx.dense().to_vector() == std::vector<double>{1, 0, 0, 0});
  CHECK(df.dense().to_vector() == std::vector<double>{1, 0, 0, 0});
}

TEST_CASE("pooling in one and three dimensions agrees with its definition", "[pool]") {
  const Tensor x = samples::distinct({2, 5, 4, 6, 3});
  const auto check = [&](const Pool3dOptions& o, const Axis(&a)[3]) {
    const std::vector<double> v = x.to_vector();
    const std::size_t n = static_cast<std::size_t>(2 * outputs_of(a) * 3);
    std::vector<double> largest(n, -1e300), total(n), count(n);
    each_read(2, a, [&](std::int64_t at, std::int64_t e, std::int64_t) {
      for (std::int64_t c = 0; c < 3; ++c) {
        const auto i = static_cast<std::size_t>(at * 3 + c);
        largest[i] = std::max(largest[i], v[static_cast<std::size_t>(e * 3 + c)]);
        total[i] += v[static_cast<std::size_t>(e * 3 + c)];
        ++count[i];
      }
    });
    for (std::size_t i = 0; i < n; ++i)
      total[i] /= count[i];
    CHECK(difference(max_pool3d(x, o), largest) == 0);
    CHECK(difference(avg_pool3d(x, o), total) < 1e-13);
  };
  check({.window = {2, 3, 2}}, {Axis::valid(5, 2, 2), Axis::valid(4, 3, 3), Axis::valid(6, 2, 2)});
  check({.window = 3, .strides = {1, 2, 2}, .padding = Padding::same},
        {Axis::same(5, 3), Axis::same(4, 3, 2), Axis::same(6, 3, 2)});
  check({.window = 3, .strides = 2, .padding = {1, 0, {0, 1, 2, 1}}},
        {Axis::valid(5, 3, 2, 1, 1, 0), Axis::valid(4, 3, 2, 1, 0, 1), Axis::valid(6, 3, 2, 1, 2, 1)});
  CHECK(check_gradients(
      [](const std::vector<Tensor>& in) {
        return max_pool3d(in[0], {.window = 2}) * avg_pool3d(in[0], {.window = 2});
      },
      {x}));
  // If all are equal, the first element of a volume gets the gradient.
  const Tensor even = zeros({2, 2, 2, 1});
  GradientTape tape;
  tape.watch(even);
  CHECK(tape.gradient(max_pool3d(even, {.window = 2}), even).dense().to_vector() ==
        std::vector<double>{1, 0, 0, 0, 0, 0, 0, 0});

  const Tensor row = tensor({{{1.0}, {3.0}, {2.0}, {5.0}, {4.0}}}, DType::f64);
  CHECK(max_pool1d(row, {.window = 2, .strides = 1}).to_vector() == std::vector<double>{3, 3, 5, 5});
  CHECK(avg_pool1d(row, {.window = 2, .padding = Padding::same}).to_vector() ==
        std::vector<double>{2, 3.5, 4});
}

TEST_CASE("a number as padding pads both ends of a row, and nothing else", "[conv][pool]") {
  const Tensor x = uniform({2, 9, 3}, -1, 1), f = uniform({3, 3, 5}, -1, 1, 1);
  const Axis padded[] = {Axis::valid(1, 1), Axis::valid(1, 1), Axis::valid(9, 3, 1, 1, 1, 1)};
  CHECK(conv1d(x, f, {.padding = 1}).shape() == Shape{2, 9, 5});
  CHECK(difference(conv1d(x, f, {.padding = 1}), convolution(x, f, 2, padded, 3, 5)) < 1e-14);
  CHECK(worst(conv1d(transpose(x, {0, 2, 1}), f, {.padding = 1, .layout = Layout::nchw}),
              transpose(conv1d(x, f, {.padding = 1}), {0, 2, 1})) == 0);
  CHECK(check_gradients(
      [](const std::vector<Tensor>& in) { return conv1d(in[0], in[1], {.strides = 2, .padding = 2}); },
      {x, f}));

  const Tensor row = tensor({{{1.0}, {3.0}, {2.0}, {5.0}, {4.0}}}, DType::f64);
  CHECK(max_pool1d(row, {.window = 2, .padding = 1}).to_vector() == std::vector<double>{1, 3, 5});
  CHECK(avg_pool1d(row, {.window = 3, .strides = 2, .padding = 1}).to_vector() ==
        std::vector<double>{2, 10.0 / 3, 4.5});
  CHECK(check_gradients(
      [](const std::vector<Tensor>& in) { return avg_pool1d(in[0], {.window = 3, .padding = 2}); }, {x}));
  CHECK_THROWS_AS(conv1d(x, f, {.padding = -1}), ArgumentError);
  CHECK_THROWS_AS(max_pool1d(row, {.window = 2, .padding = 2}), ArgumentError);
}

TEST_CASE("max_pool_with_argmax returns the indices of the largest elements", "[pool]") {
  const Tensor x = samples::distinct({2, 5, 4, 3});
  const auto [y, position] = max_pool_with_argmax(x, {.window = {3, 2}, .strides = {1, 2}});
  CHECK(worst(y, max_pool2d(x, {.window = {3, 2}, .strides = {1, 2}})) == 0);
  CHECK(position.dtype() == DType::i64);
  const std::vector<std::int64_t> at = position.to_vector<std::int64_t>(),
                                  through = max_pool_with_argmax(x, {.window = {3, 2}, .strides = {1, 2}},
                                                                 {.through_all_images = true})
                                                .position.to_vector<std::int64_t>();
  const std::vector<double> v = x.to_vector(), largest = y.to_vector();
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::size_t image = i / (at.size() / 2);
    CHECK(v[image * 60 + static_cast<std::size_t>(at[i])] == largest[i]);
    CHECK(through[i] == at[i] + static_cast<std::int64_t>(image * 60));
    CHECK(static_cast<std::size_t>(at[i] % 3) == i % 3);
  }
  const double nan = std::nan("");
  CHECK(max_pool_with_argmax(tensor({{{1.0}, {nan}}, {{nan}, {2.0}}}), {.window = 2})
            .position.item<std::int64_t>() == 1);
  CHECK(max_pool_with_argmax(zeros({2, 2, 1}), {.window = 2}).position.item<std::int64_t>() == 0);
  CHECK(max_pool_with_argmax(zeros({1, 0, 1}), {.window = {1, 2}, .padding = {0, 0, 1, 1}})
            .position.item<std::int64_t>() == -1);
}

TEST_CASE("fractional pooling has windows of two extents that cover the image", "[pool]") {
  const Tensor x = samples::distinct({2, 11, 7, 2});
  for (const bool pseudo : {false, true})
    for (const bool overlapping : {false, true}) {
      const FractionalPoolOptions options{1.5, 1.3, pseudo, overlapping};
      const Fractional most = fractional_max_pool(x, options, {5}),
                       average = fractional_avg_pool(x, options, {5});
      REQUIRE(most.y.shape() == Shape{2, 7, 5, 2});
      CHECK(same_bits(most.row_bounds, average.row_bounds));
      const std::vector<std::int64_t> rows = most.row_bounds.to_vector<std::int64_t>(),
                                      columns = most.column_bounds.to_vector<std::int64_t>();
      REQUIRE((rows.size() == 8 && columns.size() == 6));
      CHECK((rows.front() == 0 && rows.back() == 11 && columns.front() == 0 && columns.back() == 7));
      for (std::size_t i = 0; i < 7; ++i)
        CHECK((rows[i + 1] - rows[i] == 1 || rows[i + 1] - rows[i] == 2));
      for (std::int64_t i = 0; i < 7; ++i)
        for (std::int64_t j = 0; j < 5; ++j) {
          const std::int64_t top = rows[static_cast<std::size_t>(i)],
                             left = columns[static_cast<std::size_t>(j)], more = overlapping ? 1 : 0;
          const std::int64_t bottom =
                                 std::min<std::int64_t>(rows[static_cast<std::size_t>(i) + 1] + more, 11),
                             right =
                                 std::min<std::int64_t>(columns[static_cast<std::size_t>(j) + 1] + more, 7);
          const Tensor window = strided_slice(x, {{}, {top, bottom}, {left, right}});
          CHECK(worst(max(window, {1, 2}), strided_slice(most.y, {{}, i, j})) == 0);
          CHECK(worst(mean(window, {1, 2}), strided_slice(average.y, {{}, i, j})) < 1e-14);
        }
    }
  const Tensor line = zeros({1, 7, 7, 1});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {   // 7/4 is nearer to 2, which bounds the random shift
    const Tensor bounds = fractional_max_pool(line, {1.75, 1.75, true}, {seed}).row_bounds;
    const Tensor extents = slice(bounds, {1}, {4}) - slice(bounds, {0}, {4});
    CHECK(min(extents).item() == 1);
    CHECK(max(extents).item() == 2);
  }
  CHECK(check_vjp(
      [](const std::vector<Tensor>& in) {
        return fractional_max_pool(in[0], {1.5, 1.3}, {5}).y + fractional_avg_pool(in[0], {1.5, 1.3}, {6}).y;
      },
      {x}));
  CHECK(worst(fractional_max_pool(x, {1, 1}, {5}).y, x) == 0);
  CHECK_THROWS_WITH(fractional_max_pool(x, {0.5, 1}, {5}), "fractional_max_pool: a ratio is 0.5; use 1..11");
}

TEST_CASE("the forms of convolution and pooling reject invalid arguments", "[conv][errors]") {
  const Tensor x = zeros({1, 4, 4, 4});
  CHECK_THROWS_WITH(
      conv2d(x, zeros({2, 2, 2, 3}), {.groups = 2}),
      "conv2d: channels cannot be divided into 2 groups: x is f32[1,4,4,4], filters is f32[2,2,2,3]");
  CHECK_THROWS_WITH(conv2d(x, zeros({2, 2, 2, 3}), {.groups = 0}), "conv2d: groups is 0; use 1..2147483647");
  CHECK_THROWS_WITH(conv1d(zeros({4}), zeros({2, 2, 2})),
                    "conv1d: x needs the axes width and channels: x is f32[4], filters is f32[2,2,2]");
  const Tensor row = zeros({5, 2}), taps = zeros({2, 2, 3});
  for (const Padding p : {Padding(1, 1, 0, 0), Padding(2, 2, 2, 1), Padding(1, 0, 1, 1)}) {
    const std::string at_top =
        "1d: padding is " + std::to_string(p.top) + ", " + std::to_string(p.bottom) +
        " at top and bottom, but a sequence has neither; use 0 there, or one number for "
        "both ends";
    CHECK_THROWS_WITH(conv1d(row, taps, {.padding = p}), "conv" + at_top);
    CHECK_THROWS_WITH(max_pool1d(row, {.window = 4, .padding = p}), "max_pool" + at_top);
    CHECK_THROWS_WITH(avg_pool1d(row, {.window = 4, .padding = p}), "avg_pool" + at_top);
  }
  CHECK(conv1d(row, taps, {.padding = {0, 0, 2, 1}}).shape() == Shape{7, 3});
  CHECK(conv1d(row, taps, {.padding = {1, 1, 1, 1}}).shape() == Shape{6, 3});   // as 1
  CHECK_THROWS_WITH(conv3d(x, zeros({2, 2, 2, 3, 1})),
                    "conv3d: filters take 3 channels, x has 4: x is f32[1,4,4,4], filters is f32[2,2,2,3,1]");
  CHECK_THROWS_WITH(
      conv2d(x, zeros({2, 2, 1, 4}), {.groups = 2}),
      "conv2d: filters take 1 channels, a group of x has 2: x is f32[1,4,4,4], filters is f32[2,2,1,4]");
  CHECK_THROWS_WITH(conv3d(x, zeros({2, 2, 2, 4})),
                    "conv3d: filters need the axes planes, rows, columns, in and out: x is f32[1,4,4,4], "
                    "filters is f32[2,2,2,4]");
  CHECK_THROWS_WITH(conv3d(x, zeros({2, 2, 2, 4, 1}), {.strides = {1, 0, 2}}),
                    "conv3d: strides are 1×0×2; use 1..2147483647");
  CHECK_THROWS_WITH(
      conv3d(x, zeros({2, 5, 2, 4, 1})),
      "conv3d: the filters are larger than the padded volume: x is f32[1,4,4,4], filters is f32[2,5,2,4,1]");
  CHECK_THROWS_WITH(conv3d(x, zeros({2, 2, 2, 4, 1}), {.padding = {0, -1, 0}}),
                    "conv3d: padding is 0, -1 at front and back; use 0..2147483646");
  CHECK_THROWS_WITH(conv3d_transpose(x, zeros({2, 2, 2, 1, 4}), {.size = {3, 6, 5}}),
                    "conv3d_transpose: conv3d yields 2×5×4 for size 3×6×5: x is f32[1,4,4,4]");
  CHECK_THROWS_WITH(conv2d_transpose(x, zeros({2, 2, 3, 4}), {.size = 9}),
                    "conv2d_transpose: conv2d yields 8×8 for size 9×9: x is f32[1,4,4,4]");
  CHECK_THROWS_WITH(
      conv2d_transpose(x, zeros({2, 2, 4, 3})),
      "conv2d_transpose: filters take 3 channels, x has 4: x is f32[1,4,4,4], filters is f32[2,2,4,3]");
  CHECK_THROWS_WITH(depthwise_conv2d(x, zeros({2, 2, 3, 1})),
                    "depthwise_conv2d: filters are not [rows, columns, 4, multiplier]: x is f32[1,4,4,4], "
                    "filters is f32[2,2,3,1]");
  CHECK_THROWS_WITH(
      dilation2d(x, zeros({5, 2, 4})),
      "dilation2d: the filters are larger than the padded image: x is f32[1,4,4,4], filters is f32[5,2,4]");
  CHECK_THROWS_AS(max_pool3d(zeros({4, 4, 1}), {.window = 2}), ShapeError);
  CHECK_THROWS_AS(max_pool1d(zeros({4, 1}), {.window = 5}), ShapeError);
  CHECK_THROWS_AS(avg_pool1d(zeros({4, 1}), {.window = 0}), ArgumentError);
}

}   // namespace conv_forms_test
