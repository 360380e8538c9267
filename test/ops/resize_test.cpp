// Images: resizing compared with torch and with values by hand, crops, transforms, colours, and pixels moved
// between axes.
#include <catch2/catch.hpp>
#include <cmath>

#include "closeness.h"
#include "ops/sample_inputs.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/tapedeck.h"

namespace resize_test {

using namespace tapedeck;
using samples::uniform;

namespace {

Tensor image(std::int64_t h, std::int64_t w, const std::vector<double>& v) { return tensor(v, {1, h, w, 1}); }
std::vector<double> row_of(const Tensor& y) { return y.to_vector(); }

}   // namespace

TEST_CASE("sizes that torch supports, too", "[image]") {
  const Tensor x = uniform({1, 4, 5, 1}, -1, 1);
  // torch.nn.functional.interpolate, mode bilinear
  CHECK(worst(resize_bilinear(x, {3, 7}),
              image(3, 7,
                    {-0.7338753745837187,  -0.02755081601241033, 0.28392631077315383,   -0.2617394195841391,
                     0.38307104053475854,  0.45645292922508435,  0.2103965354154405,    -0.49342219125178666,
                     0.21290236731952175,  0.5243794941050859,   -0.021286236252207047, -0.5669519666095001,
                     -0.2554748398239356,  0.45084971874737256,  -0.25296900791985466,  -0.4990254017294982,
                     -0.42564351303917203, 0.21916694707972492,  -0.32649878327756815,  -0.015021656492003647,
                     0.6913029020793046})) < 1e-13);
  // mode bicubic, align_corners; torch has its weights in f32
  CHECK(worst(resize_bicubic(x, {3, 7}, Align::corners),
              image(3, 7,
                    {-0.7639320225002102, 0.1678847793978174,  0.300309279999502,     -0.2917960675006306,
                     0.5975800664807183,  0.8411156781935145,  0.18033988749894903,   -0.49342219125178666,
                     0.5877001662017964,  0.8416524445812587,  -0.021286236252207047, -0.8842249170856727,
                     -0.6302726387062108, 0.45084971874737256, -0.22291236000336312,  -0.8836881506979282,
                     -0.6401525389851329, 0.2492235949962165,  -0.34288175250391556,  -0.21045725190223144,
                     0.7213594999957961})) < 1e-6);
  // mode bilinear, antialias
  CHECK(worst(scale_and_translate(x, 2, {.scale_y = 0.5, .scale_x = 0.4}),
              image(2, 2,
                    {0.003547562953374373, 0.06009910236853837, -0.1026715748729525, -0.04612003545778848})) <
        1e-13);
}

TEST_CASE("how pixels are aligned", "[image]") {
  const Tensor x = image(1, 4, {0, 1, 2, 3});
  CHECK(row_of(resize_nearest(x, {1, 2}, Align::edges)) == std::vector<double>{0, 2});
  CHECK(row_of(resize_nearest(x, {1, 2}, Align::corners)) == std::vector<double>{0, 3});
  CHECK(row_of(resize_nearest(x, {1, 2}, Align::centres)) == std::vector<double>{1, 3});
  CHECK(row_of(resize_bilinear(x, {1, 8}, Align::edges)) ==
        std::vector<double>{0, 0.5, 1, 1.5, 2, 2.5, 3, 3});
  CHECK(row_of(resize_bilinear(x, {1, 7}, Align::corners)) == std::vector<double>{0, 0.5, 1, 1.5, 2, 2.5, 3});
  CHECK(row_of(resize_bilinear(x, {1, 8}, Align::centres)) ==
        std::vector<double>{0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3});
  // Keys' kernel at distances 3/4, 1/4, 5/4 and 7/4, for a = -1/2; at the border, positions outside the image
  // are left out.
  const std::vector<double> cubic = row_of(resize_bicubic(x, {1, 8}));
  CHECK(cubic[3] == Approx(-0.0703125 * 0 + 0.8671875 * 1 + 0.2265625 * 2 - 0.0234375 * 3));
  CHECK(cubic[0] == Approx((0.8671875 * 0 - 0.0703125 * 1) / (0.8671875 - 0.0703125)));
  for (const Align align : {Align::edges, Align::corners, Align::centres})
    for (const auto& resize : {resize_nearest, resize_bilinear, resize_bicubic}) {
      const Tensor y = uniform({2, 3, 4, 2}, -1, 1);
      CHECK(worst(resize(y, {3, 4}, align), y) < 1e-15);
      CHECK(worst(resize(ones({1, 5, 3, 1}, DType::f64), {7, 2}, align), ones({1, 7, 2, 1})) < 1e-14);
      CHECK(check_gradients(
          [&](const std::vector<Tensor>& in) {
            return resize(in[0], {5, 3}, align);
          },
          {y}));
    }
}

TEST_CASE("scale_and_translate moves images in their frame", "[image]") {
  const Tensor x = image(1, 4, {1, 2, 3, 4});
  CHECK(row_of(scale_and_translate(x, {1, 4}, {.translate_x = 1})) == std::vector<double>{0, 1, 2, 3});
  CHECK(row_of(scale_and_translate(x, {1, 4}, {.translate_x = -2})) == std::vector<double>{3, 4, 0, 0});
  for (const Kernel2d kernel :
       {Kernel2d::box, Kernel2d::triangle, Kernel2d::keys_cubic, Kernel2d::mitchell_cubic, Kernel2d::gaussian,
        Kernel2d::lanczos1, Kernel2d::lanczos3, Kernel2d::lanczos5}) {
    CHECK(worst(scale_and_translate(ones({1, 6, 5, 1}, DType::f64), {3, 10},
                                    {.scale_y = 0.5, .scale_x = 2, .kernel = kernel}),
                ones({1, 3, 10, 1})) < 1e-14);
    CHECK(check_vjp(
        [=](const std::vector<Tensor>& in) {
          return scale_and_translate(in[0], {3, 6}, {0.7, 1.4, 0.3, -0.2, kernel});
        },
        {uniform({1, 4, 5, 2}, -1, 1)}));
  }
}

TEST_CASE("crop_and_resize reads boxes, and its gradient reaches images and boxes", "[image]") {
  const Tensor x = reshape(arange(0, 18, 1, DType::f64), {2, 3, 3, 1});
  const Tensor boxes = tensor({{0.0, 0.0, 1.0, 1.0}, {0.0, 0.5, 0.5, 1.0}, {0.0, 0.0, 2.0, 1.0}}, DType::f64),
               index = tensor({0, 1, 0});
  const Tensor y = crop_and_resize(x, boxes, index, 2, {.outside = -1});
  CHECK(y.to_vector() == std::vector<double>{0, 2, 6, 8, 10, 11, 13, 14, 0, 2, -1, -1});
  CHECK(crop_and_resize(x, boxes, index, 1).to_vector() ==
        std::vector<double>{4, 12, 7});   // the middle of each box
  CHECK(crop_and_resize(x, tensor({{0.1, 0.2, 0.9, 0.8}}, DType::f64), tensor({0}), 2,
                        {.method = Interpolation::nearest})
            .to_vector() == std::vector<double>{0, 2, 6, 8});
  const Tensor photo = uniform({2, 5, 4, 2}, -1, 1),
               inner = tensor({{0.11, 0.07, 0.83, 0.91}, {0.9, 0.8, 0.13, 0.21}}, DType::f64);
  CHECK(check_gradients(
      [](const std::vector<Tensor>& in) {
        return crop_and_resize(in[0], in[1], tensor({1, 0}), {3, 4});
      },
      {photo, inner}));
  CHECK_THROWS_WITH(crop_and_resize(x, boxes, tensor({0, 1, 2}), 2),
                    "crop_and_resize: index 2 at 2 of box_indices is out of range for 2 images");
  CHECK_THROWS_AS(crop_and_resize(x, boxes, tensor({0, 1}), 2), ShapeError);
  CHECK_THROWS_AS(crop_and_resize(x, boxes, tensor({0.0, 1.0, 0.0}), 2), DTypeError);
  CHECK(std::isnan(
      crop_and_resize(x, full({1, 4}, std::nan(""), DType::f64), tensor({0}), 1, {.outside = -3}).item()));
}

TEST_CASE("the last row and column of a crop that ends at the edge are inside the image", "[image]") {
  for (const DType t : {DType::f32, DType::f64})
    for (const std::int64_t extent : {4, 14, 42})
      for (const std::int64_t count : {2, 3, 22})
        for (const double start : {0.0, 0.1, 0.2, 0.35, 1.0 / 3}) {
          CAPTURE(name_of(t), extent, count, start);
          const Tensor x = ones({1, extent, extent, 1}, t);
          const Tensor boxes = tensor({{start, start, 1.0, 1.0}, {1.0, 1.0, start, start}}, t);
          const Tensor y = crop_and_resize(x, boxes, tensor({0, 0}), {count, count}, {.outside = -1});
          CHECK(max(abs(y - 1)).item() < 1e-6);
        }
}

// Positions of f32 boxes are computed in f64, as in the kernel: else an edge of the image would be outside.
TEST_CASE("boxes that end at the edge of an image have all their gradient", "[image]") {
  const Tensor x = random::normal({1, 12, 12, 1}, {.seed = 3}, DType::f64);
  const auto f = [&](const Tensor& boxes) {
    const Tensor y = crop_and_resize(astype(x, boxes.dtype()), boxes, tensor({0}), {3, 3});
    return sum(y * astype(tensor({{{{1.0}, {2.0}, {-1.0}}, {{0.5}, {3.0}, {1.0}}, {{2.0}, {1.0}, {4.0}}}}),
                          y.dtype()));
  };
  for (const double start : {0.27, 0.123, 0.61}) {
    const Tensor boxes = tensor({{start, 0.123, 1.0, 0.817}}, DType::f64);
    const Tensor g = grad(f, boxes).dense(), g32 = grad(f, astype(boxes, DType::f32)).dense();
    CHECK(max(abs(g - astype(g32, DType::f64))).item() < 1e-3);
    const double h = 1e-6;
    for (int k : {0, 1, 3}) {   // y2 is at the edge, where there is no derivative from both sides
      const Tensor step = one_hot(tensor(k), 4, DType::f64) * h;
      const double expected = (f(boxes + step).item() - f(boxes - step).item()) / (2 * h);
      CHECK(g.at({0, k}) == Approx(expected).margin(1e-5));
    }
  }
}

// TensorFlow's kernel takes the pixels at floor and ceil of a position, which at a whole one are the same.
TEST_CASE("whole positions have no slope in boxes", "[image]") {
  const auto gradient = [](const Tensor& x, const Tensor& boxes, HeightWidth size) {
    GradientTape tape;
    tape.watch(boxes);
    return tape.gradient(crop_and_resize(x, boxes, tensor({0}), size), boxes).dense().to_vector();
  };
  const auto box = [](std::initializer_list<double> v) { return reshape(tensor(v, DType::f64), {1, 4}); };
  const Tensor photo = uniform({1, 3, 4, 1}, -1, 1), small = image(2, 2, {0, 1, 4, 9});
  const std::vector<double> zero(4);
  CHECK(gradient(photo, box({0, 0, 1, 1}), {3, 4}) == zero);
  CHECK(gradient(photo, box({0, 0, 1, 1}), {2, 2}) == zero);
  CHECK(gradient(photo, box({1, 1, 0, 0}), {3, 4}) == zero);
  CHECK(gradient(image(3, 3, {0, 1, 4, 9, 16, 25, 36, 49, 64}), box({0, 0, 1, 1}), 1) == zero);
  CHECK(gradient(small, box({0, 0, 1, 0.5}), 2) == std::vector<double>{0, 0, 0, 6});   // rows are whole
  CHECK(gradient(small, box({0, 0, 0.5, 1}), 2) == std::vector<double>{0, 0, 12, 0});
}

TEST_CASE("halves are rounded away from 0, as TensorFlow does", "[image]") {
  const Tensor x = image(1, 3, {7, 8, 9});
  const auto moved = [&](double by_x, double by_y) {
    return projective_transform(x, tensor({1.0, 0.0, by_x, 0.0, 1.0, by_y, 0.0, 0.0}, DType::f64), {1, 3},
                                {.outside = -1})
        .to_vector();
  };
  CHECK(moved(-0.5, 0) == std::vector<double>{-1, 8, 9});
  CHECK(moved(0.5, 0) == std::vector<double>{8, 9, -1});
  CHECK(moved(0.49999999999999994, 0)[0] == 7);
  CHECK(moved(0, -0.5) == std::vector<double>{-1, -1, -1});
  CHECK(moved(0, -0.49999999999999994) == std::vector<double>{7, 8, 9});
  // Python: round half away from 0 of 0.5, 1.5 and 2.5
  CHECK(crop_and_resize(image(1, 4, {6, 7, 8, 9}), tensor({{0.0, 0.5 / 3, 0.0, 2.5 / 3}}, DType::f64),
                        tensor({0}), {1, 3}, {.method = Interpolation::nearest})
            .to_vector() == std::vector<double>{7, 8, 9});
}

TEST_CASE("projective_transform reads where the transform maps to", "[image]") {
  const Tensor x = reshape(arange(0, 9, 1, DType::f64), {1, 3, 3, 1});
  const auto rows = [](std::initializer_list<double> v) { return tensor(v, DType::f64); };
  CHECK(worst(projective_transform(x, rows({1, 0, 0, 0, 1, 0, 0, 0}), 3), x) == 0);
  CHECK(projective_transform(x, rows({1, 0, 1, 0, 1, 0, 0, 0}), 3, {.outside = -1}).to_vector() ==
        std::vector<double>{1, 2, -1, 4, 5, -1, 7, 8, -1});
  CHECK(projective_transform(x, rows({0, 1, 0, 1, 0, 0, 0, 0}), 3).to_vector() ==
        std::vector<double>{0, 3, 6, 1, 4, 7, 2, 5, 8});   // transposed
  CHECK(projective_transform(x, rows({1, 0, 0.5, 0, 1, 0, 0, 0}), {1, 3}, {.method = Interpolation::bilinear})
            .to_vector() == std::vector<double>{0.5, 1.5, 1});
  CHECK(projective_transform(x, rows({1, 0, 0, 0, 1, 0, 1, 0}), {1, 3}).to_vector() ==
        std::vector<double>{0, 1, 1});   // x / (x + 1): 0, 1/2, 2/3
  const Tensor photo = uniform({2, 4, 5, 2}, -1, 1),
               turn = reshape(rows({0.9, 0.2, 0.3, -0.1, 1.1, 0.2, 0.01, 0.02}), {1, 8});
  for (const Interpolation method : {Interpolation::nearest, Interpolation::bilinear})
    CHECK(check_gradients(
        [&](const std::vector<Tensor>& in) {
          return projective_transform(in[0], turn, {4, 3}, {.method = method});
        },
        {photo}));
  CHECK_THROWS_WITH(projective_transform(x, zeros({7}, DType::f64), 3),
                    "projective_transform: transforms are not [8] or [1,8]: they are f64[7]");
}

TEST_CASE("colours", "[image]") {
  const Tensor rgb =
      tensor({{0.2, 0.5, 0.3}, {0.9, 0.1, 0.4}, {0.3, 0.35, 0.8}, {0.8, 0.75, 0.1}}, DType::f64);
  // Python's colorsys.rgb_to_hsv
  const Tensor hsv = tensor({{0.38888888888888884, 0.6, 0.5},
                             {0.9375, 0.888888888888889, 0.9},
                             {0.65, 0.625, 0.8},
                             {0.15476190476190474, 0.875, 0.8}},
                            DType::f64);
  CHECK(worst(rgb_to_hsv(rgb), hsv) < 1e-15);
  CHECK(worst(hsv_to_rgb(hsv), rgb) < 1e-15);
  for (const double turns : {-2.0, -1.0, 1.0, 3.0})
    CHECK(worst(hsv_to_rgb(hsv + tensor({turns, 0.0, 0.0}, DType::f64)), rgb) < 1e-14);
  CHECK(check_gradients([](const std::vector<Tensor>& in) { return rgb_to_hsv(in[0]); }, {rgb}));
  const Tensor grey = tensor({{0.0, 0.0, 0.0}, {0.5, 0.5, 0.5}}, DType::f64);
  GradientTape tape;
  tape.watch(grey), tape.watch(hsv);
  const Tensor of_grey = rgb_to_hsv(grey);
  CHECK(of_grey.to_vector() == std::vector<double>{0, 0, 0, 0, 0, 0.5});
  const std::vector<Gradient> g = tape.gradient(Targets({of_grey, hsv_to_rgb(hsv)}), Sources({grey, hsv}));
  for (const double d : g[0].dense().to_vector())
    CHECK(std::isfinite(d));
  CHECK_FALSE(g[1].defined());
  CHECK_THROWS_WITH(rgb_to_hsv(zeros({2, 4})),
                    "rgb_to_hsv: the last axis does not hold three channels: x is f32[2,4]");
}

TEST_CASE("space, batch, depth and volumes", "[space]") {
  const Tensor x = uniform({2, 4, 6, 3}, -1, 1);
  CHECK(worst(batch_to_space_nd(space_to_batch_nd(x, {2, 3}, {1, 0}, {1, 3}), {2, 3}, {1, 0}, {1, 3}), x) ==
        0);
  CHECK(worst(depth_to_space(space_to_depth(x, 2), 2), x) == 0);
  CHECK(space_to_depth(tensor({{{1}, {2}}, {{3}, {4}}}), 2).to_vector() == std::vector<double>{1, 2, 3, 4});
  const Tensor volume = uniform({2, 4, 5, 6, 2}, -1, 1), filters = uniform({2, 3, 2, 2, 3}, -1, 1, 1);
  const Tensor patches =
      extract_volume_patches(volume, {.window = {2, 3, 2}, .strides = {1, 2, 1}, .padding = Padding::same});
  CHECK(patches.shape() == Shape{2, 4, 3, 6, 24});
  CHECK(worst(matmul(reshape(patches, {-1, 24}), reshape(filters, {24, 3})),
              reshape(conv3d(volume, filters, {.strides = {1, 2, 1}, .padding = Padding::same}), {-1, 3})) <
        1e-14);
  CHECK_THROWS_WITH(space_to_batch_nd(x, {3, 2}, {0, 0}, {0, 0}),
                    "space_to_batch_nd: blocks of [3,2] do not divide a padded axis of 4: x is f64[2,4,6,3]");
  CHECK_THROWS_WITH(batch_to_space_nd(x, {2, 2}, {0, 0}, {0, 0}),
                    "batch_to_space_nd: blocks of [2,2] do not divide the batch: x is f64[2,4,6,3]");
  CHECK_THROWS_WITH(space_to_depth(x, 4),
                    "space_to_depth: blocks of 4 do not divide height and width: x is f64[2,4,6,3]");
  CHECK_THROWS_WITH(depth_to_space(x, 2),
                    "depth_to_space: 2·2 does not divide the channels: x is f64[2,4,6,3]");
  CHECK_THROWS_AS(space_to_depth(x, 0), ArgumentError);
  CHECK_THROWS_AS(space_to_batch_nd(x, {2}, {0, 0}, {0}), ShapeError);
  CHECK_THROWS_AS(extract_image_patches(zeros({2, 2, 1}), {.window = 3}), ShapeError);
}

TEST_CASE("resizing rejects invalid arguments", "[image][errors]") {
  CHECK_THROWS_WITH(resize_bilinear(zeros({4, 4}), 2),
                    "resize_bilinear: x needs the axes height, width and channels: x is f32[4,4]");
  CHECK_THROWS_WITH(resize_nearest(zeros({1, 0, 4, 1}), 2),
                    "resize_nearest: the image is empty: x is f32[1,0,4,1]");
  CHECK_THROWS_WITH(resize_bicubic(zeros({1, 4, 4, 1}), {0, 2}),
                    "resize_bicubic: size is 0×2; use 1..2147483647");
  CHECK_THROWS_WITH(scale_and_translate(zeros({1, 4, 4, 1}), 2, {.scale_y = 0}),
                    "scale_and_translate: scale is 0, 1; use positive ones");
  CHECK_THROWS_AS(resize_bilinear(tensor({{{1}}}), 2), DTypeError);
}

}   // namespace resize_test
