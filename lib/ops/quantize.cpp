// Rounding to few levels. In: activations or weights, and a range. Out: the nearest levels. The derivative is that of clipping, as
// if nothing were rounded, so it is no derivative that differences would show: these are recorded operations and have no entries.
#include "tapedeck/ops/quantize.h"

#include <cmath>

#include "base/format.h"
#include "tapedeck/custom_gradient.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/op.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

void check_bits(std::string_view name, int bits, int most) {
  if (bits < 2 || bits > most) throw_error<ArgumentError>("{}: bits is {}; use 2..{}", name, bits, most);
}
void require_real(std::string_view name, const Tensor& x) {
  if (!is_trainable(x.dtype())) throw_error<DTypeError>("{}: takes f32 or f64, use astype: x is {}", name, x.spec());
}
void require_range(std::string_view name, const Tensor& x, const Tensor& min, const Tensor& max, const Shape& shape) {
  require_real(name, x);
  if (min.dtype() != x.dtype() || max.dtype() != x.dtype()) throw_error<DTypeError>("{}: dtypes differ: x is {}, min is {}, max is {}", name, x.spec(), min.spec(), max.spec());
  if (min.shape() != shape || max.shape() != shape) throw_error<ShapeError>("{}: min and max are not of shape {}: x is {}, min is {}, max is {}", name, shape, x.spec(), min.spec(), max.spec());
}

// A range moved and the distance of its levels. Jacob et al. 2018, section 3: 0 becomes a level exactly.
struct Levels { double min, max, step; };
Levels nudged(std::string_view name, double min, double max, const FakeQuant& o) {
  if (!(min < max) || !std::isfinite(max - min)) throw_error<ArgumentError>("{}: min is {}, max is {}; use a finite min below max", name, min, max);
  const double first = o.narrow_range ? 1 : 0, last = std::ldexp(1, o.bits) - 1, step = (max - min) / (last - first);
  const double zero = std::clamp(std::round(first - min / step), first, last);
  return {(first - zero) * step, (last - zero) * step, step};
}

/// The sum of dy over the axes that `like`, of one row or of rank 0, does not have; dy has the rank of x.
Tensor summed_to(const Tensor& dy, const Tensor& like) {
  if (like.ndim() == 0) return sum(dy);
  std::vector<int> axes;
  for (int d = 2; d <= dy.ndim(); ++d) axes.push_back(-d);
  return sum(dy, axes);
}

// Records y as a function of x, min and max whose derivative is that of clip(x, low, high).
Tensor straight_through(std::string_view name, const Tensor& y, const Tensor& x, const Tensor& low, const Tensor& high, const std::vector<Tensor>& inputs) {
  Tensor below, above;
  {
    const StopRecording pause;
    below = x < low, above = x > high;
  }
  const auto inside = [below, above](const Tensor& d) { return where(logical_or(below, above), 0, d); };
  const bool range = inputs.size() == 3;
  record_operation(std::string(name), std::span(&y, 1), inputs,
                   [=](std::span<const Tensor> dy) {
                     std::vector<Gradient> dx{inside(dy[0])};
                     if (range) dx.push_back(summed_to(where(below, dy[0], 0), inputs[1])), dx.push_back(summed_to(where(above, dy[0], 0), inputs[2]));
                     return dx;
                   },
                   [=](std::span<const Tensor> v) {
                     Tensor total = v[0].defined() ? inside(v[0]) : zeros_like(x);
                     if (range && v[1].defined()) total = total + where(below, v[1], 0);
                     if (range && v[2].defined()) total = total + where(above, v[2], 0);
                     return std::vector<Tensor>{total};
                   });
  return y;
}

// low, high and step are of rank 0 or rows of x.
Tensor fake_quant(std::string_view name, const Tensor& x, const Tensor& low, const Tensor& high, const Tensor& step, const std::vector<Tensor>& inputs) {
  Tensor y;
  {
    const StopRecording pause;
    y = floor((clip(x, low, high) - low) / step + 0.5) * step + low;
  }
  return straight_through(name, y, x, low, high, inputs);
}

Tensor number(double v, const Tensor& x) { return full({}, v, x.dtype()); }

}  // namespace

Tensor fake_quant_with_min_max_args(const Tensor& x, double min, double max, const FakeQuant& options) {
  constexpr std::string_view name = "fake_quant_with_min_max_args";
  check_bits(name, options.bits, 16);
  require_real(name, x);
  const Levels levels = nudged(name, min, max, options);
  return fake_quant(name, x, number(levels.min, x), number(levels.max, x), number(levels.step, x), {x});
}

Tensor fake_quant_with_min_max_vars(const Tensor& x, const Tensor& min, const Tensor& max, const FakeQuant& options) {
  constexpr std::string_view name = "fake_quant_with_min_max_vars";
  check_bits(name, options.bits, 16);
  require_range(name, x, min, max, {});
  const Levels levels = nudged(name, min.item(), max.item(), options);
  return fake_quant(name, x, number(levels.min, x), number(levels.max, x), number(levels.step, x), {x, min, max});
}

Tensor fake_quant_with_min_max_vars_per_channel(const Tensor& x, const Tensor& min, const Tensor& max, const FakeQuant& options) {
  constexpr std::string_view name = "fake_quant_with_min_max_vars_per_channel";
  check_bits(name, options.bits, 16);
  if (x.ndim() == 0) throw_error<ShapeError>("{}: takes tensors of rank 1 or more: x is {}", name, x.spec());
  require_range(name, x, min, max, {x.shape()[x.ndim() - 1]});
  std::vector<double> low, high, step;
  const std::vector<double> mins = min.to_vector(), maxs = max.to_vector();
  for (std::size_t i = 0; i < mins.size(); ++i) {
    const Levels levels = nudged(name, mins[i], maxs[i], options);
    low.push_back(levels.min), high.push_back(levels.max), step.push_back(levels.step);
  }
  const auto row = [&](const std::vector<double>& v) { return astype(tensor(v), x.dtype()); };
  return fake_quant(name, x, row(low), row(high), row(step), {x, min, max});
}

Tensor quantize_and_dequantize(const Tensor& x, const Tensor& min, const Tensor& max, const Quantize& o) {
  constexpr std::string_view name = "quantize_and_dequantize";
  check_bits(name, o.bits, 24);
  require_range(name, x, min, max, {});
  const double low = min.item(), high = max.item();
  if (!(low <= high) || !std::isfinite(high - low)) throw_error<ArgumentError>("{}: min is {}, max is {}; use a finite min up to max", name, low, high);
  // The finer of the two steps with which a side of 0 would be full is too fine for the other side, so the coarser one is taken.
  const double last = std::ldexp(1, o.bits - (o.is_signed ? 1 : 0)) - 1, first = !o.is_signed ? 0 : o.narrow_range ? -last : -last - 1;
  const double by_low = first * low > 0 ? first / low : std::numeric_limits<double>::max(), by_high = last * high > 0 ? last / high : std::numeric_limits<double>::max();
  const double scale = std::min(by_low, by_high);
  if (scale == std::numeric_limits<double>::max()) {
    Tensor y;
    {
      const StopRecording pause;
      y = zeros_like(x);
    }
    return straight_through(name, y, x, min, max, {x, min, max});
  }
  const double least = by_low < by_high ? low : first / scale, most = by_low < by_high ? last / scale : high;
  Tensor y;
  {
    const StopRecording pause;
    const Tensor scaled = clip(x, least, most) * scale, up = floor(scaled + 0.5);
    // Halves between two levels: to the even one, the other way where half_up has gone to an odd one.
    const Tensor odd_half = logical_and(equal(up - scaled, 0.5), not_equal(floor(up * 0.5) * 2, up));
    y = (o.round == Quantize::Round::half_up ? up : up - astype(odd_half, x.dtype())) / scale;
  }
  return straight_through(name, y, x, min, max, {x, min, max});
}

Tensor quantize_and_dequantize(const Tensor& x, const Quantize& options) {
  constexpr std::string_view name = "quantize_and_dequantize";
  require_real(name, x);
  if (x.size() == 0) throw_error<ShapeError>("{}: no elements to take the range of: x is {}", name, x.spec());
  Tensor y;
  {
    const StopRecording pause;
    y = quantize_and_dequantize(x, min(x), max(x), options);
  }
  record_operation(std::string(name), std::span(&y, 1), std::span(&x, 1), [](std::span<const Tensor> dy) { return std::vector<Gradient>{dy[0]}; },
                   [](std::span<const Tensor> v) { return std::vector<Tensor>{v[0]}; });
  return y;
}

std::span<const Op> quantize_ops() { return {}; }

}  // namespace tapedeck
