// Parts of images and images seen through a transform: frames, each pixel of which has a position in an
// image, at which it is read. Reading is linear in the images; its adjoint adds pixels of frames where they
// were read.
#include "core/format.h"
#include "core/storage.h"
#include "kernels/image/image_sample.h"
#include "ops/derivative_of_ops.h"
#include "ops/nn/window.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

// Images [images, height, width, channels] and frames of some size, behind any axes in front.
struct FrameAttrs {
  std::int64_t images, height, width;
  HeightWidth size;
  Interpolation method;
  double outside = 0;

  // Without what is outside, reading is linear.
  FrameAttrs linear() const {
    FrameAttrs a = *this;
    a.outside = 0;
    return a;
  }
  kernels::Frames of(const Tensor& x, std::int64_t frames) const {
    return {front_of(x, 4).size(),
            images,
            height,
            width,
            channels_of(x),
            frames,
            size.height,
            size.width,
            method == Interpolation::nearest,
            outside};
  }
};
FrameAttrs frames_of(const Tensor& x, HeightWidth size, Interpolation method, double outside) {
  return {x.shape()[0], x.shape()[1], x.shape()[2], size, method, outside};
}

// Input 0 as [..., from], and the same with other extents.
Spec with_frames(const Call& c, const Shape& from, const Shape& to) {
  const Tensor& x = c.x[0];
  require_floating(c, 0);
  if (x.dtype() != c.x[1].dtype()) throw_dtype_error(c, "dtypes differ");
  if (x.ndim() < 4 || Shape(x.shape().dims().subspan(static_cast<std::size_t>(x.ndim() - 4), 3)) != from)
    throw_shape_error(c, fmt::format("{} is not of extents {} and channels", c.op.args[0], from));
  Shape y = front_of(x, 4);
  for (const std::int64_t d : to)
    y.push_back(d);
  y.push_back(channels_of(x));
  return {x.dtype(), y};
}
Shape image_extents(const FrameAttrs& a) { return {a.images, a.height, a.width}; }
Shape frame_extents(const FrameAttrs& a, std::int64_t frames) {
  return {frames, a.size.height, a.size.width};
}

Spec infer_boxes(const Call& c, bool adjoint) {
  const auto& a = c.attrs<FrameAttrs>();
  const Tensor &boxes = c.x[1], &indices = c.x[2];
  if (boxes.ndim() != 2 || boxes.shape()[1] != 4 || indices.shape() != Shape{boxes.shape()[0]})
    throw_shape_error(c, "boxes are not [n,4] and box_indices not [n]");
  require_indices(c, 2);
  const Shape images = image_extents(a), frames = frame_extents(a, boxes.shape()[0]);
  return adjoint ? with_frames(c, frames, images) : with_frames(c, images, frames);
}
void check_indices(const Call& c) {
  const std::int64_t images = c.attrs<FrameAttrs>().images;
  visit_indices(c.x[2], [&](const auto indices) {
    for (std::size_t i = 0; i < indices.size(); ++i)
      if (indices[i] < 0 || indices[i] >= images)
        throw_error<ShapeError>("{}: index {} at {} of box_indices is out of range for {} images", c.op.name,
                                indices[i], i, images);
  });
}

Spec infer_transformed(const Call& c, bool adjoint) {
  const auto& a = c.attrs<FrameAttrs>();
  const Shape& t = c.x[1].shape();
  if (t != Shape{8} && t != Shape{1, 8} && t != Shape{a.images, 8})
    throw_error<ShapeError>("{}: transforms are not [8] or [{},8]: they are {}", c.op.name, a.images,
                            c.x[1].spec());
  const Shape images = image_extents(a), frames = frame_extents(a, a.images);
  return adjoint ? with_frames(c, frames, images) : with_frames(c, images, frames);
}

// Images as rows of channels, read at integer positions [n, rows, columns]; 0 outside.
class Pixels {
 public:
  Pixels(const Tensor& x, const Tensor& image)
      : rows_(reshape(x, {x.shape()[0] * x.shape()[1] * x.shape()[2], x.shape()[3]})),
        first_(reshape(astype(image, DType::i64) * (x.shape()[1] * x.shape()[2]), {image.size(), 1, 1})),
        height_(x.shape()[1]),
        width_(x.shape()[2]) {}

  Tensor inside(const Tensor& y, const Tensor& x) const {
    return logical_and(logical_and(y >= 0, y <= static_cast<double>(height_ - 1)),
                       logical_and(x >= 0, x <= static_cast<double>(width_ - 1)));
  }
  Tensor at(const Tensor& y, const Tensor& x) const {
    const Tensor known = inside(y, x);
    const auto index = [&](const Tensor& t) { return astype(where(known, t, 0), DType::i64); };
    return where(expand_dims(known, -1), gather(rows_, first_ + index(y) * width_ + index(x)), 0);
  }

 private:
  Tensor rows_, first_;   // first_[i, 0, 0]: the first row of the image that frame i shows
  std::int64_t height_, width_;
};

// Of `count` positions from a to b, in shares of `last`: how much of a and of b they are; the middle where
// there is one.
struct Shares {
  Tensor of_a, of_b;

  Shares(std::int64_t count, std::int64_t last, DType dtype) {
    const auto scale = static_cast<double>(last);
    of_b = count == 1
               ? full({1}, 0.5 * scale, dtype)
               : arange(0, static_cast<double>(count), 1, dtype) * scale / static_cast<double>(count - 1);
    of_a = scale - of_b;
  }
};

// The gradient of boxes. Between four pixels a b c d, at the distances down and right from a, the derivative
// is (1 - right) (c - a) + right (d - b) in y and (1 - down) (b - a) + down (d - c) in x.
Tensor box_gradient(const FrameAttrs& a, const Tensor& x, const Tensor& boxes, const Tensor& indices,
                    const Tensor& dy) {
  if (x.ndim() > 4) {   // further images, each with all boxes
    const std::int64_t further = front_of(x, 4).size(), n = boxes.shape()[0];
    const Tensor first = expand_dims(arange(further) * a.images, 1);
    const Shape front(dy.shape().dims().first(static_cast<std::size_t>(dy.ndim() - x.ndim())));
    const auto behind_front = [&](std::initializer_list<std::int64_t> extents) {
      Shape shape = front;
      for (const std::int64_t d : extents)
        shape.push_back(d);
      return shape;
    };
    const Tensor g =
        box_gradient(a, reshape(x, {further * a.images, a.height, a.width, channels_of(x)}),
                     tile(boxes, {further, 1}), reshape(first + astype(indices, DType::i64), {further * n}),
                     reshape(dy, behind_front({further * n, a.size.height, a.size.width, channels_of(x)})));
    return sum(reshape(g, behind_front({further, n, 4})), -3);
  }
  const std::vector<Tensor> corner = split(boxes, 4, 1);   // y1, x1, y2, x2, each [n, 1]
  const Shares along_y(a.size.height, a.height - 1, x.dtype()), along_x(a.size.width, a.width - 1, x.dtype());
  const Tensor y = expand_dims(corner[0] * along_y.of_a + corner[2] * along_y.of_b, 2),
               z = expand_dims(corner[1] * along_x.of_a + corner[3] * along_x.of_b, 1);
  const Pixels pixels(x, indices);
  const Tensor known = pixels.inside(y, z), safe_y = where(known, y, 0), safe_x = where(known, z, 0),
               top = floor(safe_y), left = floor(safe_x);
  const Tensor down = expand_dims(safe_y - top, -1), right = expand_dims(safe_x - left, -1);
  const Tensor p = pixels.at(top, left), q = pixels.at(top, left + 1), r = pixels.at(top + 1, left),
               s = pixels.at(top + 1, left + 1), bend = p - q - r + s;
  const auto at_positions = [&](const Tensor& slope, int other_axis) {
    return sum(where(known, sum(dy * slope, -1), 0), other_axis);   // [..., n, positions]
  };
  const Tensor of_y = at_positions(r - p + bend * right, -1), of_x = at_positions(q - p + bend * down, -2);
  return stack({sum(of_y * along_y.of_a, -1), sum(of_x * along_x.of_a, -1), sum(of_y * along_y.of_b, -1),
                sum(of_x * along_x.of_b, -1)},
               -1);
}

Tensor crops(const FrameAttrs& a, const Tensor& x, const Tensor& boxes, const Tensor& indices);
Tensor crops_adjoint(const FrameAttrs& a, const Tensor& dy, const Tensor& boxes, const Tensor& indices);
Tensor transformed(const FrameAttrs& a, const Tensor& x, const Tensor& transforms);
Tensor transformed_adjoint(const FrameAttrs& a, const Tensor& dy, const Tensor& transforms);

OwnedAttrs frames(std::int64_t images, HeightWidth image, HeightWidth size,
                  Interpolation method = Interpolation::bilinear, double outside = 0) {
  return Attrs(FrameAttrs{images, image.height, image.width, size, method, outside});
}
Tensor inner_boxes() {
  return f64({{0.11, 0.07, 0.83, 0.91}, {0.9, 0.8, 0.13, 0.21}, {0.2, -0.63, 1.27, 0.7}});
}
Tensor box_images() { return tensor({1, 0, 1}); }
Tensor turn() { return f64({0.91, 0.23, 0.37, -0.13, 1.07, 0.21, 0.01, 0.02}); }

constexpr Op table[] = {
    {.name = "crop_and_resize",
     .doc = "Parts of images, all of one size: boxes y1, x1, y2, x2 in shares of height - 1 and width - 1, "
            "read between pixels or at the nearest ones.",
     .tensorflow = "CropAndResize",
     .args = {"x", "boxes", "box_indices"},
     .infer = [](const Call& c) { return infer_boxes(c, false); },
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           check_indices(c);
           kernels::read_boxes(c.attrs<FrameAttrs>().of(c.x[0], c.x[2].size()), c.x[0], c.x[1], c.x[2], y[0]);
         },
     .rule = custom({.x = 0b111},
                    [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
                      const auto& a = c.attrs<FrameAttrs>();
                      const Tensor dy = std::move(dys[0]).dense();
                      if (c.needs(0)) dx[0] = crops_adjoint(a.linear(), dy, c.x[1], c.x[2]);
                      if (c.needs(1) && a.method == Interpolation::bilinear)
                        dx[1] = box_gradient(a, c.x[0], c.x[1], c.x[2], dy);
                    }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 5, 4, 7}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {3, 4}, Interpolation::bilinear, 0.5)},
               {.inputs = {uniform({2, 5, 4, 37}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {1, 2}, Interpolation::nearest)},
               {.inputs = {uniform({2, 2, 5, 4, 3}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {3, 4})},
               {.inputs = {uniform({2, 5, 4, 2}, -1, 1), zeros({0, 4}, DType::f64), zeros({0}, DType::i64)},
                .attrs = frames(2, {5, 4}, 2)},
               {.inputs = {uniform({2, 5, 4, 2}, -1, 1),
                           f64({{0.11, 0.07, 0.83, 0.91}, {0.9, 0.8, 0.13, 0.21}, {0.03, 0.04, 0.96, 0.94}}),
                           tensor({1, 0, 0})},
                .attrs = frames(2, {5, 4}, {3, 4}),
                .expected = {tensor(
                    std::vector<double>{0.3088949088405539,   -0.035037113659656345, -0.8745108889597993,
                                        0.3615570885399905,   -0.47791668676015225,  0.7581512907396376,
                                        -0.08132248456050534, -0.3052545070607164,   0.5179980096381324,
                                        -0.19553401286207778, 0.636992211837779,     0.20106018933756908,
                                        -0.44481358596257436, 0.5976543915372161,    -0.24181938376292678,
                                        -0.4657514062631378,  0.407901110435711,     -0.3560309120644992,
                                        0.7044953126353578,   0.04056329013514766,   -0.5789104851649958,
                                        0.4371574923347947,   -0.4023162829653482,   0.8337516945344415,
                                        -0.03204797850727258, -0.07598000100748314,  -0.3106081919570247,
                                        0.2774597855427652,   -0.5891684054067767,   0.47089957209301314,
                                        -0.12772861885652853, 0.3683393586432611,    0.13959453869531702,
                                        -0.6243374838048932,  -0.1389656747544351,   -0.5228976972546454,
                                        -0.4175258882041871,  0.37854208929560273,   -0.651686101653939,
                                        0.5399818758458506,   0.3112370558979066,    -0.4526949666023036,
                                        0.03267684244815452,  -0.35125518005205575,  -0.2458833710015975,
                                        0.5501846064981923,   -0.5244435844513495,   0.7116243930484403,
                                        -0.7206504495004625,  0.5154175279993273,    -0.2957280900008408,
                                        0.900339887498949,    0.12919426949878082,   -0.4747377530014293,
                                        0.5541166289984024,   -0.20981539350180778,  -0.9279589443035902,
                                        0.30810903319619964,  -0.5030365848039684,   0.6930313926958213,
                                        -0.07811422530434686, -0.6820462478045569,   0.3468081341952748,
                                        -0.41712388830493546, 0.6247325608932822,    0.10080053839307196,
                                        -0.7103450796070961,  0.5193228978926937,    -0.28542272010747455,
                                        0.656245257392315,    0.13949963939214705,   -0.3220323831080629},
                    {3, 3, 4, 2})},
                .oracle =
                    "torch.nn.functional.grid_sample(torch.tensor(x[box_indices]).permute(0, 3, 1, 2), "
                    "torch.tensor(np.stack(np.broadcast_arrays("
                    "(2 * (boxes[:, 1:2] + (boxes[:, 3:] - boxes[:, 1:2]) * np.arange(4) / 3) - 1)[:, None], "
                    "(2 * (boxes[:, :1] + (boxes[:, 2:3] - boxes[:, :1]) * np.arange(3) / 2) - 1)[:, :, "
                    "None]), -1)), align_corners=True).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {tensor(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}, {1, 3, 3, 1}),
                           f64({{0.1, 0.2, 0.9, 0.8}, {0.02, 0.01, 1.9, 0.97}}), tensor({0, 0})},
                .attrs = frames(1, 3, 2, Interpolation::nearest, -1),
                .expected = {tensor(std::vector<double>{0, 2, 6, 8, 0, 2, -1, -1}, {2, 2, 2, 1})},
                .oracle = "by hand"}};
         }},

    {.name = "crop_and_resize_adjoint",
     .doc = "The adjoint of crop_and_resize in its images: images to which the pixels of the frames dy are "
            "added where they were read.",
     .tensorflow = "CropAndResizeGradImage",
     .args = {"dy", "boxes", "box_indices"},
     .infer = [](const Call& c) { return infer_boxes(c, true); },
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           check_indices(c);
           kernels::read_boxes_adjoint(c.attrs<FrameAttrs>().of(c.x[0], c.x[2].size()), c.x[0], c.x[1],
                                       c.x[2], y[0]);
         },
     .rule = unstacked(custom({.x = 0b111},
                              [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
                                const auto& a = c.attrs<FrameAttrs>();
                                const Tensor v = std::move(dys[0]).dense();
                                if (c.needs(0)) dx[0] = crops(a, v, c.x[1], c.x[2]);
                                if (c.needs(1) && a.method == Interpolation::bilinear)
                                  dx[1] = box_gradient(a, v, c.x[1], c.x[2], c.x[0]);
                              })),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 3, 4, 7}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {3, 4})},
               {.inputs = {uniform({3, 1, 2, 37}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {1, 2}, Interpolation::nearest)},
               {.inputs = {uniform({2, 3, 3, 4, 3}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {3, 4})},
               {.inputs = {zeros({0, 2, 2, 2}, DType::f64), zeros({0, 4}, DType::f64),
                           zeros({0}, DType::i64)},
                .attrs = frames(2, {5, 4}, 2)},
               {.inputs = {tensor(std::vector<double>{4, 8}, {2, 1, 1, 1}),
                           f64({{0, 0, 1, 1}, {0.25, 0.5, 0.75, 1}}), tensor({0, 0})},
                .attrs = frames(1, 2, 1),
                .expected = {tensor(std::vector<double>{2, 4, 2, 4}, {1, 2, 2, 1})},
                .oracle = "by hand"}};
         }},

    {.name = "projective_transform",
     .doc = "Images in frames that a projective transform maps to them, read between pixels or at the "
            "nearest ones; no gradient of the transform.",
     .tensorflow = "ImageProjectiveTransformV2",
     .args = {"x", "transforms"},
     .infer = [](const Call& c) { return infer_transformed(c, false); },
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           const auto& a = c.attrs<FrameAttrs>();
           kernels::read_transformed(a.of(c.x[0], a.images), c.x[0], c.x[1], y[0]);
         },
     .rule = custom(
         {.x = 0b10},
         [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
           dx[0] = transformed_adjoint(c.attrs<FrameAttrs>().linear(), std::move(dy[0]).dense(), c.x[1]);
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) {
           if (dx[0].defined()) dy[0] = transformed(c.attrs<FrameAttrs>().linear(), dx[0], c.x[1]);
         }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4, 5, 7}, -1, 1), stack({turn(), turn() * 0.9})},
                .attrs = frames(2, {4, 5}, {4, 3})},
               {.inputs = {uniform({2, 4, 5, 37}, -1, 1), turn()},
                .attrs = frames(2, {4, 5}, {4, 3}, Interpolation::nearest)},
               {.inputs = {zeros({0, 4, 5, 2}, DType::f64), turn()}, .attrs = frames(0, {4, 5}, {4, 3})},
               {.inputs = {uniform({1, 4, 5, 2}, -1, 1), turn()},
                .attrs = frames(1, {4, 5}, {4, 3}),
                .expected = {tensor(
                    std::vector<double>{
                        -0.5134989664008072, 0.5671690110989828,  -0.13701281022368178,  0.4483346496797941,
                        0.23752793747010661, -0.4889564368683284, -0.033587233287408876, -0.18390910584528944,
                        0.33092917487546764, -0.4330028476247426, 0.04716346276302198,   -0.0754963703880754,
                        0.4278663562447047,  -0.3360656662555055, 0.6308407170048531,    0.017112776137296067,
                        0.1275594968342171,  0.3636274743340069,  0.6113202557965209,    0.020353974239754498,
                        -0.4578759554834243, 0.3917762486964408,  -0.40019778849513565,  0.7864874729552715},
                    {1, 4, 3, 2})},
                .oracle = "(lambda x, t, j, i: torch.nn.functional.grid_sample(torch.tensor(x).permute(0, 3, "
                          "1, 2), torch.tensor(np.stack([(t[0] * j + t[1] * i + t[2]) / (t[6] * j + t[7] * i "
                          "+ 1) / 2 - 1, "
                          "(t[3] * j + t[4] * i + t[5]) / (t[6] * j + t[7] * i + 1) / 1.5 - 1], -1))[None], "
                          "align_corners=True).permute(0, 2, 3, 1).numpy())(x, transforms, "
                          "*np.meshgrid(np.arange(3.0), np.arange(4.0)))"},
               {.inputs = {tensor(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}, {1, 3, 3, 1}),
                           f64({1, 0, 1, 0, 1, 0, 0, 0})},
                .attrs = frames(1, 3, 3, Interpolation::nearest, -1),
                .expected = {tensor(std::vector<double>{1, 2, -1, 4, 5, -1, 7, 8, -1}, {1, 3, 3, 1})},
                .oracle = "by hand"}};
         }},

    {.name = "projective_transform_adjoint",
     .doc = "The adjoint of projective_transform in its images.",
     .args = {"dy", "transforms"},
     .infer = [](const Call& c) { return infer_transformed(c, true); },
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           const auto& a = c.attrs<FrameAttrs>();
           kernels::read_transformed_adjoint(a.of(c.x[0], a.images), c.x[0], c.x[1], y[0]);
         },
     .rule =
         linear([](const Call& c, const Tensor& v) { return transformed(c.attrs<FrameAttrs>(), v, c.x[1]); },
                {.x = 0b10}),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4, 3, 7}, -1, 1), turn()}, .attrs = frames(2, {4, 5}, {4, 3})},
               {.inputs = {zeros({0, 4, 3, 2}, DType::f64), turn()}, .attrs = frames(0, {4, 5}, {4, 3})},
               {.inputs = {tensor(std::vector<double>{1, 2, 4, 8}, {1, 2, 2, 1}),
                           f64({1, 0, 0.5, 0, 1, 0, 0, 0})},
                .attrs = frames(1, 2, 2),
                .expected = {tensor(std::vector<double>{0.5, 1.5, 2, 6}, {1, 2, 2, 1})},
                .oracle = "by hand"}};
         }},
};

Tensor crops(const FrameAttrs& a, const Tensor& x, const Tensor& boxes, const Tensor& indices) {
  return find(table, "crop_and_resize").with(a, x, boxes, indices);
}
Tensor crops_adjoint(const FrameAttrs& a, const Tensor& dy, const Tensor& boxes, const Tensor& indices) {
  return find(table, "crop_and_resize_adjoint").with(a, dy, boxes, indices);
}
Tensor transformed(const FrameAttrs& a, const Tensor& x, const Tensor& transforms) {
  return find(table, "projective_transform").with(a, x, transforms);
}
Tensor transformed_adjoint(const FrameAttrs& a, const Tensor& dy, const Tensor& transforms) {
  return find(table, "projective_transform_adjoint").with(a, dy, transforms);
}

void require_batch(std::string_view name, const Tensor& x, HeightWidth size) {
  if (x.ndim() != 4)
    throw_error<ShapeError>("{}: x needs the axes batch, height, width and channels: x is {}", name,
                            x.spec());
  if (std::min(x.shape()[1], x.shape()[2]) < 1)
    throw_error<ShapeError>("{}: the images are empty: x is {}", name, x.spec());
  if (std::min(size.height, size.width) < 1 || std::max(size.height, size.width) > kMostCells)
    throw_error<ArgumentError>("{}: size is {}×{}; use 1..{}", name, size.height, size.width, kMostCells);
}

}   // namespace

Tensor crop_and_resize(const Tensor& x, const Tensor& boxes, const Tensor& box_indices, HeightWidth size,
                       const CropOptions& o) {
  require_batch("crop_and_resize", x, size);
  return crops(frames_of(x, size, o.method, o.outside), x, boxes, box_indices);
}
Tensor projective_transform(const Tensor& x, const Tensor& transforms, HeightWidth size,
                            const ProjectiveOptions& o) {
  require_batch("projective_transform", x, size);
  return transformed(frames_of(x, size, o.method, o.outside), x, transforms);
}

std::span<const Op> crop_ops() { return table; }

}   // namespace tapedeck
