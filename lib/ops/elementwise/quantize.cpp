// Rounding to a small number of levels. In: activations or weights, and a range. Out: the nearest levels. The
// derivative is that of clipping without rounding, so finite differences do not reproduce it.
#include "tapedeck/ops/quantize.h"

#include <cmath>

#include "core/format.h"
#include "core/storage.h"
#include "kernels/elementwise/map.h"
#include "op/elementwise.h"
#include "op/piecewise_constant.h"
#include "ops/elementwise/quantize.h"
#include "ops/infer.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

void check_bits(const Call& c, int bits, int most) {
  if (bits < 2 || bits > most) throw_error<ArgumentError>("{}: bits is {}; use 2..{}", c.op.name, bits, most);
}
// The spec of x. Throws unless min and max, inputs 1 and 2, have this shape.
Spec with_range(const Call& c, const Shape& shape) {
  require_floating(c, 0);
  require_one_dtype(c);
  if (c.x[1].shape() != shape || c.x[2].shape() != shape)
    c.throw_shape_error(fmt::format("min and max must have shape {}", shape));
  return c.x[0].spec();
}

// A range, shifted so that 0 is exactly a level, and the step between levels: Jacob et al. 2018, section 3.
// NaN propagates.
struct Levels {
  double min, max, step;
};
Levels nudged(const Call& c, double min, double max) {
  const FakeQuantOptions& o = c.attrs<FakeQuantAttrs>().options;
  if (min >= max || std::isinf(max - min))
    throw_error<ArgumentError>("{}: min is {}, max is {}; use a finite min below max", c.op.name, min, max);
  const double first = o.narrow_range ? 1 : 0, last = std::ldexp(1, o.bits) - 1,
               step = (max - min) / (last - first);
  const double zero = std::clamp(std::round(first - min / step), first, last);
  return {(first - zero) * step, (last - zero) * step, step};
}

// The levels of a call as tensors: scalars, or rows that broadcast to x.
struct Range {
  Tensor low, high, step;

  explicit Range(const Call& c) {
    const auto& a = c.attrs<FakeQuantAttrs>();
    const bool given = c.x.size() == 1;
    const std::vector<double> min = given ? std::vector<double>{a.min} : c.x[1].to_vector(),
                              max = given ? std::vector<double>{a.max} : c.x[2].to_vector();
    std::vector<double> lows, highs, steps;
    for (std::size_t i = 0; i < min.size(); ++i) {
      const Levels levels = nudged(c, min[i], max[i]);
      lows.push_back(levels.min), highs.push_back(levels.max), steps.push_back(levels.step);
    }
    const Shape shape = given ? Shape{} : c.x[1].shape();
    const auto like_x = [&](const std::vector<double>& v) {
      return astype(tensor(v, shape), c.x[0].dtype());
    };
    low = like_x(lows), high = like_x(highs), step = like_x(steps);
  }
};

// Functions of SIMD vectors. The operands other than x are scalars or rows.
struct ToLevels {
  auto operator()(auto x, auto low, auto high, auto step) const {
    // Computes a multiple of the step: with low added instead, the result may not be exactly 0 if the
    // compiler fuses the operations.
    const auto level = floor((minimum(maximum(x, low), high) - low) / step + 0.5);
    return (level + floor(low / step + 0.5)) * step;
  }
};
struct HalfUp {
  auto operator()(auto x, auto scale, auto least, auto most) const {
    return floor(minimum(maximum(x, least), most) * scale + 0.5) / scale;
  }
};
// Rounds ties to the even level: the one below, if rounding up results in an odd level.
struct HalfToEven {
  auto operator()(auto x, auto scale, auto least, auto most) const {
    const auto scaled = minimum(maximum(x, least), most) * scale, up = floor(scaled + 0.5);
    return where(equal(up - scaled, 0.5), floor(up * 0.5) * 2, up) / scale;
  }
};
template <class F>
void run_on(const Tensor& x, const Tensor& a, const Tensor& b, const Tensor& c, Tensor& y) {
  const Tensor* operands[] = {&x, &a, &b, &c};
  allocate_for(y);
  kernels::run_map(kernels::map_kernel<F, 4>, {operands, 4}, y);
}

void run_fake_quant(const Call& c, std::span<Tensor> y) {
  const Range range(c);
  run_on<ToLevels>(c.x[0], range.low, range.high, range.step, y[0]);
}

// The levels that `bits` bits represent: steps per unit, and the lowest and highest value.
struct Steps {
  double scale, least, most;
};
constexpr double kNoScale = std::numeric_limits<double>::max();
Steps steps_between(const Call& c, double low, double high) {
  const QuantizeAndDequantizeOptions& o = c.attrs<QuantizeAttrs>().options;
  if (low > high || std::isinf(high - low))
    throw_error<ArgumentError>("{}: min is {}, max is {}; use a finite min of at most max", c.op.name, low,
                               high);
  if (std::isnan(high - low)) return {high - low, low, high};
  // Each side of 0 has a step with which it uses all of its levels. The finer of the two would not cover the
  // other side, so the coarser one is used.
  const double last = std::ldexp(1, o.bits - (o.is_signed ? 1 : 0)) - 1, first = !o.is_signed     ? 0
                                                                                 : o.narrow_range ? -last
                                                                                                  : -last - 1;
  const double by_low = first * low > 0 ? first / low : kNoScale,
               by_high = last * high > 0 ? last / high : kNoScale, scale = std::min(by_low, by_high);
  if (scale == kNoScale) return {1, 0, 0};   // the range is only 0, or is on the side without levels
  return {scale, by_low < by_high ? low : first / scale, by_low < by_high ? last / scale : high};
}

// Reshapes a range with one number for each entry of an axis, counted from the end, to broadcast to x.
Tensor along(std::optional<int> axis, const Tensor& range) {
  Shape shape = range.shape();
  for (int d = -1; axis && d > *axis; --d)
    shape.push_back(1);
  return reshape(range, shape);
}

void run_quantize(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  const QuantizeAndDequantizeOptions& o = c.attrs<QuantizeAttrs>().options;
  const std::vector<double> low = c.x[1].to_vector(), high = c.x[2].to_vector();
  std::vector<double> scale, least, most;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const Steps steps = steps_between(c, low[i], high[i]);
    scale.push_back(steps.scale), least.push_back(steps.least), most.push_back(steps.most);
  }
  const auto like_x = [&](const std::vector<double>& v) {
    return along(o.axis, astype(tensor(v, c.x[1].shape()), x.dtype()));
  };
  (o.round == QuantizeAndDequantizeOptions::Round::half_up
       ? run_on<HalfUp>
       : run_on<HalfToEven>)(x, like_x(scale), like_x(least), like_x(most), y[0]);
}

// The derivative of clip(x, low, high). low and high are scalars, or have one number for each entry of an
// axis, counted from the end. Inputs 1 and 2 of the call, if it has them, get their gradients.
class Clipped {
 public:
  Clipped(const Tensor& x, const Tensor& low, const Tensor& high, std::optional<int> axis)
      : axis_(axis), x_(x), below_(x < along(axis, low)), above_(x > along(axis, high)) {}

  void pull_back(const Call& c, const Tensor& dy, std::span<Gradient> dx) const {
    if (c.needs_gradient(0)) dx[0] = inside(dy);
    if (c.x.size() == 1) return;
    std::vector<int> axes;   // axes of x that min and max do not have
    for (int d = -1; d >= -c.x[0].ndim(); --d)
      if (d != axis_) axes.push_back(d);
    const auto summed = [&](const Tensor& outside) { return axes.empty() ? outside : sum(outside, axes); };
    if (c.needs_gradient(1)) dx[1] = summed(where(below_, dy, 0));
    if (c.needs_gradient(2)) dx[2] = summed(where(above_, dy, 0));
  }
  Tensor push_forward(const Call& c, Refs dx) const {
    Tensor total = dx[0].defined() ? inside(dx[0]) : zeros_like(c.x[0]);
    if (dx.size() == 1) return total;
    if (dx[1].defined()) total = total + where(below_, along(axis_, dx[1]), 0);
    if (dx[2].defined()) total = total + where(above_, along(axis_, dx[2]), 0);
    return total;
  }

 private:
  Tensor inside(const Tensor& d) const { return piecewise(where(logical_or(below_, above_), 0, d), x_); }

  std::optional<int> axis_;
  Tensor x_, below_, above_;
};
Clipped clipped_of(const Call& c) {
  const Range range(c);
  return {c.x[0], range.low, range.high, range.low.ndim() == 0 ? std::nullopt : std::optional(-1)};
}
Clipped clipped_by_inputs(const Call& c) {
  return {c.x[0], c.x[1], c.x[2], c.attrs<QuantizeAttrs>().options.axis};
}
constexpr Rule as_clipped(std::uint32_t reads) {
  return Rule::custom(
      {.x = reads},
      [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
        clipped_of(c).pull_back(c, std::move(dy[0]).dense(), dx);
      },
      [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = clipped_of(c).push_forward(c, dx); });
}

Spec infer_vars(const Call& c, const Shape& shape) {
  check_bits(c, c.attrs<FakeQuantAttrs>().options.bits, 16);
  return with_range(c, shape);
}

constexpr Op kFakeQuantWithMinMaxArgs = {
    .name = "fake_quant_with_min_max_args",
    .doc =
        "x rounded to the nearest of 2^bits levels between two numbers, which are shifted so that 0 is a "
        "level (Jacob et al. 2018, section 3); the derivative is that of clipping.",
    .tensorflow = "FakeQuantWithMinMaxArgs",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          check_bits(c, c.attrs<FakeQuantAttrs>().options.bits, 16);
          require_floating(c, 0);
          return c.x[0].spec();
        },
    .forward = {run_fake_quant, Outputs::by_kernel},
    .rule = as_clipped(0b1),
};

constexpr Op kFakeQuantWithMinMaxVars = {
    .name = "fake_quant_with_min_max_vars",
    .doc =
        "Same as fake_quant_with_min_max_args, but with tensors min and max of rank 0, which get the "
        "gradient of elements outside the range.",
    .tensorflow = "FakeQuantWithMinMaxVars",
    .args = {"x", "min", "max"},
    .infer = [](const Call& c) { return infer_vars(c, {}); },
    .forward = {run_fake_quant, Outputs::by_kernel},
    .rule = as_clipped(0b111),
};

constexpr Op kFakeQuantWithMinMaxVarsPerChannel = {
    .name = "fake_quant_with_min_max_vars_per_channel",
    .doc = "Same as fake_quant_with_min_max_vars, but with a min and a max for each entry of the last axis.",
    .tensorflow = "FakeQuantWithMinMaxVarsPerChannel",
    .args = {"x", "min", "max"},
    .infer =
        [](const Call& c) {
          require_axes(c, 1);
          return infer_vars(c, {c.x[0].shape()[c.x[0].ndim() - 1]});
        },
    .forward = {run_fake_quant, Outputs::by_kernel},
    .rule = as_clipped(0b111),
};

constexpr Op kQuantizeAndDequantize = {
    .name = "quantize_and_dequantize",
    .doc =
        "x rounded to the nearest multiple of a step, chosen so that the integers of `bits` bits cover "
        "min to max, which are scalars or have one element for each entry of an axis; the derivative is "
        "that of clipping.",
    .tensorflow = "QuantizeAndDequantizeV2",
    .args = {"x", "min", "max"},
    .infer =
        [](const Call& c) {
          const QuantizeAndDequantizeOptions& o = c.attrs<QuantizeAttrs>().options;
          check_bits(c, o.bits, 24);
          if (!o.axis) return with_range(c, {});
          require_axes(c, -*o.axis);
          return with_range(c, {c.x[0].shape()[c.x[0].ndim() + *o.axis]});
        },
    .forward = {run_quantize, Outputs::by_kernel},
    .rule = Rule::custom(
        {.x = 0b111},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          if (c.attrs<QuantizeAttrs>().range_of_x)
            dx[0] = std::move(dy[0]);
          else
            clipped_by_inputs(c).pull_back(c, std::move(dy[0]).dense(), dx);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          if (!c.attrs<QuantizeAttrs>().range_of_x)
            dy[0] = clipped_by_inputs(c).push_forward(c, dx);
          else if (dx[0].defined())
            dy[0] = dx[0];
        }),
};

constexpr const Op* quantize_table[] = {&kFakeQuantWithMinMaxArgs, &kFakeQuantWithMinMaxVars,
                                        &kFakeQuantWithMinMaxVarsPerChannel, &kQuantizeAndDequantize};

// The options with the axis counted from the end.
QuantizeAndDequantizeOptions from_end(QuantizeAndDequantizeOptions o, const Tensor& x) {
  if (o.axis) o.axis = checked_axis(kQuantizeAndDequantize, *o.axis, x.ndim()) - x.ndim();
  return o;
}

}   // namespace

Tensor fake_quant_with_min_max_args(const Tensor& x, double min, double max,
                                    const FakeQuantOptions& options) {
  if (std::isnan(min) || std::isnan(max))
    throw_error<ArgumentError>(
        "fake_quant_with_min_max_args: min is {}, max is {}; use a finite min below max", min, max);
  return kFakeQuantWithMinMaxArgs(x, FakeQuantAttrs{options, min, max});
}
Tensor fake_quant_with_min_max_vars(const Tensor& x, const Tensor& min, const Tensor& max,
                                    const FakeQuantOptions& options) {
  return kFakeQuantWithMinMaxVars(x, min, max, FakeQuantAttrs{options});
}
Tensor fake_quant_with_min_max_vars_per_channel(const Tensor& x, const Tensor& min, const Tensor& max,
                                                const FakeQuantOptions& options) {
  return kFakeQuantWithMinMaxVarsPerChannel(x, min, max, FakeQuantAttrs{options});
}

Tensor quantize_and_dequantize(const Tensor& x, const Tensor& min, const Tensor& max,
                               const QuantizeAndDequantizeOptions& options) {
  return kQuantizeAndDequantize(x, min, max, QuantizeAttrs{from_end(options, x)});
}
Tensor quantize_and_dequantize(const Tensor& x, const QuantizeAndDequantizeOptions& options) {
  if (!is_floating(x.dtype()))
    throw_error<DTypeError>("quantize_and_dequantize: takes f32, f64, f16 or bf16, use astype: x is {}",
                            x.spec());
  const QuantizeAndDequantizeOptions from_back = from_end(options, x);
  Axes others;
  for (int d = -x.ndim(); options.axis && d < 0; ++d)
    if (d != from_back.axis) others.list.push_back(d);
  others.all = !options.axis;
  if (x.size() == 0)
    throw_error<ShapeError>("quantize_and_dequantize: no elements to take the range of: x is {}", x.spec());
  const Tensor values = stop_gradient(x);
  return kQuantizeAndDequantize(x, min(values, others), max(values, others), QuantizeAttrs{from_back, true});
}

std::span<const Op* const> quantize_ops() { return quantize_table; }

}   // namespace tapedeck
