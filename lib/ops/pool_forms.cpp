// Other forms of pooling, composed of ops: in one and three dimensions, with positions, and over windows of two extents.
// Maxima and means are separable: a volume's windows are those of its planes, and then of the planes.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "ops/window.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using Pool2d = Tensor (*)(const Tensor&, const Pool2dOptions&);
constexpr std::int64_t kAsWindow = Pool2dOptions::kAsWindow;

Tensor pool1d(std::string_view name, Pool2d pool, const Tensor& x, const Pool1dOptions& o) {
  if (x.ndim() < 2) throw_error<ShapeError>("{}: x needs the axes width and channels: x is {}", name, x.spec());
  const std::int64_t stride = o.stride == kAsWindow ? o.window : o.stride;
  return squeeze(pool(expand_dims(x, -3), {.window = {1, o.window}, .strides = {1, stride}, .padding = o.padding}), -3);
}

Tensor pool3d(std::string_view name, Pool2d pool, const Tensor& x, const Pool3dOptions& o) {
  if (x.ndim() < 4) throw_error<ShapeError>("{}: x needs the axes depth, height, width and channels: x is {}", name, x.spec());
  const DepthHeightWidth strides = o.strides == DepthHeightWidth(kAsWindow) ? o.window : o.strides;
  const Tensor planes = pool(x, {.window = {o.window.height, o.window.width}, .strides = {strides.height, strides.width}, .padding = o.padding.plane});
  const Shape& s = planes.shape();
  const int n = planes.ndim();
  const Padding across = o.padding.plane.mode == Padding::given ? Padding(o.padding.front, o.padding.back, 0, 0) : o.padding.plane;
  const Shape front(s.dims().first(static_cast<std::size_t>(n - 4)));
  const Tensor volumes = pool(reshape(planes, behind(front, {s[n - 4], s[n - 3] * s[n - 2]}, s[n - 1])),
                              {.window = {o.window.depth, 1}, .strides = {strides.depth, 1}, .padding = across});
  Shape result = front;
  result.push_back(volumes.shape()[volumes.ndim() - 3]);
  return reshape(volumes, behind(result, {s[n - 3], s[n - 2]}, s[n - 1]));
}

// Where windows begin, and the extent at the end. Graham 2014, section 3: random windows are of two extents in any order;
// pseudo-random ones are ceil(a (i + u)) with one random u.
std::vector<std::int64_t> bounds_of(std::string_view name, std::int64_t extent, double ratio, bool pseudo_random, random::Key key) {
  if (!(ratio >= 1 && ratio <= static_cast<double>(extent))) throw_error<ArgumentError>("{}: a ratio is {}; use 1..{}", name, ratio, extent);
  const auto outputs = static_cast<std::int64_t>(std::floor(static_cast<double>(extent) / ratio));
  std::vector<std::int64_t> bounds{0};
  if (pseudo_random) {
    const double a = static_cast<double>(extent) / static_cast<double>(outputs), k = std::floor(a), n = static_cast<double>(outputs);
    const double most = std::min((k + 2) / a - 1, (static_cast<double>(extent) + 1 - k) / a - (n - 1));
    const double u = random::uniform({}, key, 0, 1, DType::f64).item() * most;
    for (std::int64_t i = 1; i < outputs; ++i) bounds.push_back(static_cast<std::int64_t>(std::ceil(a * (static_cast<double>(i) + u))) - 1);
    bounds.push_back(extent);
    return bounds;
  }
  const std::vector<std::int64_t> order = random::permutation(outputs, key).to_vector<std::int64_t>();
  for (const std::int64_t i : order) bounds.push_back(bounds.back() + extent / outputs + (i < extent % outputs ? 1 : 0));
  return bounds;
}

// The windows between bounds along an axis: entry by entry of all windows at once, where shorter ones have nothing.
Tensor pooled(const Tensor& x, const std::vector<std::int64_t>& bounds, int axis, bool overlapping, bool largest) {
  const std::size_t outputs = bounds.size() - 1;
  const std::int64_t extent = bounds.back();
  const auto size = [&](std::size_t o) { return std::min(bounds[o + 1] + (overlapping ? 1 : 0), extent) - bounds[o]; };
  std::int64_t most = 0;
  for (std::size_t o = 0; o < outputs; ++o) most = std::max(most, size(o));
  Tensor y;
  for (std::int64_t k = 0; k < most; ++k) {
    std::vector<std::int64_t> index(outputs);
    std::vector<double> share(outputs);
    for (std::size_t o = 0; o < outputs; ++o) {
      index[o] = bounds[o] + std::min(k, size(o) - 1);
      share[o] = k < size(o) ? 1 / static_cast<double>(size(o)) : 0;
    }
    Tensor entry = gather(x, tensor(index), x.ndim() + axis);
    if (!largest) {
      Shape along{static_cast<std::int64_t>(outputs)};
      for (int d = axis + 1; d < 0; ++d) along.push_back(1);
      entry = entry * astype(tensor(share, along), x.dtype());
    }
    y = !y.defined() ? entry : largest ? maximum(y, entry) : y + entry;
  }
  return y;
}

Fractional fractional(std::string_view name, const Tensor& x, const FractionalOptions& o, random::Key key, bool largest) {
  if (!is_trainable(x.dtype())) throw_error<DTypeError>("{}: takes f32 or f64, use astype: x is {}", name, x.spec());
  if (x.ndim() < 3) throw_error<ShapeError>("{}: x needs the axes height, width and channels: x is {}", name, x.spec());
  const std::vector<std::int64_t> rows = bounds_of(name, x.shape()[x.ndim() - 3], o.height_ratio, o.pseudo_random, key.split(0));
  const std::vector<std::int64_t> columns = bounds_of(name, x.shape()[x.ndim() - 2], o.width_ratio, o.pseudo_random, key.split(1));
  return {pooled(pooled(x, rows, -3, o.overlapping, largest), columns, -2, o.overlapping, largest), tensor(rows), tensor(columns)};
}

}  // namespace

Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options) { return pool1d("max_pool1d", max_pool2d, x, options); }
Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options) { return pool1d("avg_pool1d", avg_pool2d, x, options); }
Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options) { return pool3d("max_pool3d", max_pool2d, x, options); }
Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options) { return pool3d("avg_pool3d", avg_pool2d, x, options); }

Fractional fractional_max_pool(const Tensor& x, const FractionalOptions& options, random::Key key) { return fractional("fractional_max_pool", x, options, key, true); }
Fractional fractional_avg_pool(const Tensor& x, const FractionalOptions& options, random::Key key) { return fractional("fractional_avg_pool", x, options, key, false); }

}  // namespace tapedeck
