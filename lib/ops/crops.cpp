// Parts of images and images seen through a transform, composed of ops: for each output pixel a position in an image, at which
// it is read. Gradients go through what is gathered, and, for boxes, through the distances of positions from pixels.
#include "base/format.h"
#include "tapedeck/ops.h"
#include "tensor/storage.h"

namespace tapedeck {
namespace {

// Images as rows of channels, read at integer positions [n, height, width].
struct Pixels {
  Tensor rows;    // [batch · height · width, channels]
  Tensor first;   // of each output image [n, 1, 1]: its image's first row
  std::int64_t height, width;
  double outside;

  Pixels(const Tensor& x, const Tensor& image, double value)
      : rows(reshape(x, {x.shape()[0] * x.shape()[1] * x.shape()[2], x.shape()[3]})), first(reshape(astype(image, DType::i64) * (x.shape()[1] * x.shape()[2]), {image.size(), 1, 1})),
        height(x.shape()[1]), width(x.shape()[2]), outside(value) {}

  Tensor inside(const Tensor& y, const Tensor& x) const {
    return logical_and(logical_and(y >= 0, y <= static_cast<double>(height - 1)), logical_and(x >= 0, x <= static_cast<double>(width - 1)));
  }
  Tensor at(const Tensor& y, const Tensor& x) const {
    const Tensor known = inside(y, x);
    const auto index = [&](const Tensor& t) { return astype(where(known, t, 0), DType::i64); };
    return where(expand_dims(known, -1), gather(rows, first + index(y) * width + index(x)), outside);
  }
  Tensor nearest(const Tensor& y, const Tensor& x) const { return at(floor(y + 0.5), floor(x + 0.5)); }
  Tensor bilinear(const Tensor& y, const Tensor& x) const {
    const Tensor top = floor(y), left = floor(x), down = expand_dims(y - top, -1), right = expand_dims(x - left, -1);
    const auto between = [&](const Tensor& row) {
      const Tensor a = at(row, left);
      return a + (at(row, left + 1) - a) * right;
    };
    const Tensor above = between(top);
    return above + (between(top + 1) - above) * down;
  }
};

void require_batch(std::string_view name, const Tensor& x, HeightWidth size) {
  if (!is_trainable(x.dtype())) throw_error<DTypeError>("{}: takes f32 or f64, use astype: x is {}", name, x.spec());
  if (x.ndim() != 4) throw_error<ShapeError>("{}: x needs the axes batch, height, width and channels: x is {}", name, x.spec());
  if (std::min(x.shape()[1], x.shape()[2]) < 1) throw_error<ShapeError>("{}: the images are empty: x is {}", name, x.spec());
  if (std::min(size.height, size.width) < 1) throw_error<ArgumentError>("{}: size is {}×{}; use 1 or more", name, size.height, size.width);
}

// Of `count` positions from a to b, shares of `last`: the middle where there is one.
Tensor positions(const Tensor& a, const Tensor& b, std::int64_t count, std::int64_t last) {
  const auto scale = static_cast<double>(last);
  if (count == 1) return 0.5 * (a + b) * scale;
  return a * scale + (b - a) * (scale / static_cast<double>(count - 1)) * arange(0, static_cast<double>(count), 1, a.dtype());
}

}  // namespace

Tensor crop_and_resize(const Tensor& x, const Tensor& boxes, const Tensor& box_indices, HeightWidth size, const CropOptions& o) {
  require_batch("crop_and_resize", x, size);
  if (boxes.dtype() != x.dtype()) throw_error<DTypeError>("crop_and_resize: dtypes differ: x is {}, boxes is {}", x.spec(), boxes.spec());
  if (boxes.ndim() != 2 || boxes.shape()[1] != 4 || box_indices.shape() != Shape{boxes.shape()[0]})
    throw_error<ShapeError>("crop_and_resize: boxes are not [n,4] and box_indices not [n]: boxes is {}, box_indices is {}", boxes.spec(), box_indices.spec());
  if (box_indices.dtype() != DType::i32 && box_indices.dtype() != DType::i64)
    throw_error<DTypeError>("crop_and_resize: indices must be i32 or i64, use astype: box_indices is {}", box_indices.spec());
  visit_indices(box_indices, [&](const auto indices) {
    for (std::size_t i = 0; i < indices.size(); ++i)
      if (indices[i] < 0 || indices[i] >= x.shape()[0]) throw_error<ShapeError>("crop_and_resize: index {} at {} of box_indices is out of range for {} images", indices[i], i, x.shape()[0]);
  });
  const std::vector<Tensor> corner = split(boxes, 4, 1);   // y1, x1, y2, x2, each [n, 1]
  const Tensor y = expand_dims(positions(corner[0], corner[2], size.height, x.shape()[1] - 1), 2);
  const Tensor z = expand_dims(positions(corner[1], corner[3], size.width, x.shape()[2] - 1), 1);
  const Pixels pixels(x, box_indices, o.outside);
  const Tensor known = pixels.inside(y, z);
  // Outside, NaN or not, the first pixel is read and thrown away; a pixel behind the last one has no weight.
  const Tensor safe_y = where(known, y, 0), safe_x = where(known, z, 0);
  Tensor value = o.method == Interpolation::nearest ? pixels.nearest(safe_y, safe_x) : Pixels(x, box_indices, 0).bilinear(safe_y, safe_x);
  return where(expand_dims(known, -1), value, o.outside);
}

Tensor projective_transform(const Tensor& x, const Tensor& transforms, HeightWidth size, const ProjectiveOptions& o) {
  require_batch("projective_transform", x, size);
  const std::int64_t batch = x.shape()[0];
  if (transforms.dtype() != x.dtype()) throw_error<DTypeError>("projective_transform: dtypes differ: x is {}, transforms is {}", x.spec(), transforms.spec());
  if (transforms.shape() != Shape{8} && transforms.shape() != Shape{1, 8} && transforms.shape() != Shape{batch, 8})
    throw_error<ShapeError>("projective_transform: transforms are not [8] or [{},8]: they are {}", batch, transforms.spec());
  const std::vector<Tensor> t = split(reshape(stop_gradient(transforms), {-1, 8, 1, 1}), 8, 1);   // each [1 or batch, 1, 1, 1]
  const auto entry = [&](std::size_t i) { return reshape(t[i], {t[i].size(), 1, 1}); };
  const Tensor i = reshape(arange(0, static_cast<double>(size.height), 1, x.dtype()), {size.height, 1}), j = arange(0, static_cast<double>(size.width), 1, x.dtype());
  const auto row_of = [&](std::size_t k) { return entry(k) * j + entry(k + 1) * i; };
  const Tensor scale = row_of(6) + 1, known = logical_and(not_equal(scale, 0), broadcast_to(equal(i, i), {batch, size.height, size.width}));
  const auto position = [&](std::size_t k) {
    const Tensor p = (row_of(k) + entry(k + 2)) / where(equal(scale, 0), 1, scale);
    return where(known, p, -2);   // where there is none, outside
  };
  const Pixels pixels(x, arange(batch), o.outside);
  const Tensor y = position(3), z = position(0);
  return o.method == Interpolation::nearest ? pixels.nearest(y, z) : pixels.bilinear(y, z);
}

}  // namespace tapedeck
