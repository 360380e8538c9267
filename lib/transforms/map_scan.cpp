// The ops of map_scan. In: the compiled loops of a user's step function, and this function on tensors. Out:
// the recurrence, its gradients and its tangents as one op each. Derivatives of these run as ops.
#include "tapedeck/map_scan.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "op/recorder.h"
#include "op/stacked_shapes.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradient_tape.h"
#include "transforms/loop_steps.h"

namespace tapedeck::detail {
namespace {

using Tensors = std::vector<Tensor>;

bool bit(std::uint64_t bits, int i) { return bits >> i & 1; }

// Broadcasts x to the shape of the elements; with in_time, x has a leading time axis, which is kept.
Tensor spread(const Tensor& x, const Shape& elements, bool in_time) {
  if (!in_time) return x.shape() == elements ? x : broadcast_to(x, elements);
  const Shape full = behind(Shape{x.shape()[0]}, elements);
  return x.shape() == full ? x : broadcast_to(aligned(x, x.ndim() - 1, elements.ndim()), full);
}

DType common_dtype(std::string_view name, const Tensors& x) {
  DType dtype = x[0].dtype();
  for (const Tensor& t : x)
    dtype = promote(dtype, t.dtype());
  if (!is_floating(dtype))
    throw_error<DTypeError>("{}: takes f32, f64, f16 or bf16, input 0 is {}; use astype", name, x[0].spec());
  return dtype;
}

Shape common_shape(std::string_view name, const MapScanFunction& m, const Tensors& x) {
  Shape elements;
  for (int i = 0; i < m.inputs(); ++i) {
    const Tensor& t = x[static_cast<std::size_t>(i)];
    const bool in_time = i >= m.carries && i < m.carries + m.xs;
    const Shape own = in_time ? Shape(t.shape().dims().subspan(1)) : t.shape();
    try {
      elements = broadcast_shapes(elements, own);
    } catch (const ShapeError&) {
      throw_error<ShapeError>(
          "{}: input {}, {}, does not broadcast with the inputs before it, of elements {}{}", name, i,
          t.spec(), elements, in_time ? "; its first axis is the time axis" : "");
    }
  }
  return elements;
}

// The number of steps in a segment. The gradient keeps the carries of all steps of one segment, and the
// carries at the beginning of every segment.
std::int64_t segment_of(const MapScanFunction& m, const MapScanSettings& s) {
  const std::int64_t most = s.checkpoint_bytes / (64 * m.carries);   // a vector has at most 64 bytes
  if (s.steps < most) return std::max<std::int64_t>(s.steps, 1);
  const std::int64_t half = most / 2,
                     root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(s.steps))) + 1;
  return half > root ? half : root;
}

template <class T> void run_lanes(const kernels::ScanLoop<T>& loop, const Call& c, const MapScanSettings& s,
                                  const Tensors& in, std::span<Tensor> out, std::int64_t every) {
  std::vector<const T*> from;
  for (const Tensor& t : in)
    from.push_back(t.defined() ? t.data<T>().data() : nullptr);
  std::vector<T*> to;
  for (Tensor& t : out)
    to.push_back(t.defined() ? writable<T>(t).data() : nullptr);
  constexpr std::int64_t kGroup = 16;   // a multiple of the number of lanes of any vector
  constexpr Cut kCut = {1 << 10, 1 << 12};
  const std::int64_t lanes = c.x[0].size();
  parallel_for((lanes + kGroup - 1) / kGroup, cut_of(kCut, kGroup * s.steps),
               [&](std::int64_t begin, std::int64_t end) {
                 loop(c.raw_attrs.data, {s.steps, lanes, begin * kGroup, std::min(end * kGroup, lanes),
                                         from.data(), to.data(), every, s.reverse, s.keeps});
               });
}
void run(const kernels::ScanLoops& loops, const MapScanFunction& m, const Call& c, const Tensors& in,
         std::span<Tensor> out) {
  const MapScanSettings& s = m.settings(c.raw_attrs.data);
  if (c.x[0].dtype() == DType::f32)
    run_lanes<float>(loops.f32, c, s, in, out, segment_of(m, s));
  else
    run_lanes<double>(loops.f64, c, s, in, out, segment_of(m, s));
}

// Puts the inputs in their positions: the first `always` are always present; of `all` others, those whose bit
// in `given` is set. The rest are undefined.
Tensors placed(const Call& c, int always, int all, std::uint64_t given) {
  Tensors in;
  for (int i = 0; i < always; ++i)
    in.push_back(c.x[i]);
  for (int i = 0, next = always; i < all; ++i)
    in.push_back(bit(given, i) ? c.x[next++] : Tensor());
  return in;
}

// Computes the gradient by ops, on tensors that an outer tape may track.
Tensors vjp_by_ops(const MapScanFunction& m, const Call& c, std::span<const Tensor> z) {
  const MapScanSettings& s = m.settings(c.raw_attrs.data);
  const std::span<const Tensor> x = z.first(static_cast<std::size_t>(m.inputs()));
  GradientTape tape({.watch_accessed_variables = false});
  std::vector<Source> sources, targets;
  for (int i = 0; i < m.inputs(); ++i) {
    if (!bit(s.wanted, i)) continue;
    tape.watch(x[static_cast<std::size_t>(i)]);
    sources.emplace_back(x[static_cast<std::size_t>(i)]);
  }
  const Tensors y = m.of_tensors(c.raw_attrs.data, x);
  GradientOptions options{.unconnected = UnconnectedGradients::zero};
  for (int k = 0, next = m.inputs(); k < m.results(); ++k) {
    if (!bit(s.given, k)) continue;
    targets.emplace_back(y[static_cast<std::size_t>(k)]);
    options.output_gradients.push_back(z[static_cast<std::size_t>(next++)]);
  }
  Tensors dx;
  for (Gradient& g : tape.gradient(Targets(targets), Sources(sources), options))
    dx.push_back(std::move(g).dense());
  return dx;
}
Tensors jvp_by_ops(const MapScanFunction& m, const Call& c, std::span<const Tensor> z) {
  const MapScanSettings& s = m.settings(c.raw_attrs.data);
  const std::span<const Tensor> x = z.first(static_cast<std::size_t>(m.inputs()));
  std::vector<Source> primals;
  for (int i = 0; i < m.inputs(); ++i)
    if (bit(s.given, i)) primals.emplace_back(x[static_cast<std::size_t>(i)]);
  const ForwardAccumulator accumulator{Sources(primals), z.subspan(x.size())};
  Tensors dy;
  for (const Tensor& t : m.of_tensors(c.raw_attrs.data, x)) {
    dy.push_back(accumulator.jvp(t, UnconnectedGradients::zero));
  }
  return dy;
}

// Computes the gradients of the results of `by_ops` with respect to all inputs of the call.
template <class F> void differentiate(const F& by_ops, const MapScanFunction& m, const Call& c,
                                      std::span<Gradient> dy, std::span<Gradient> dx) {
  Tensors z;
  std::vector<Source> sources, targets;
  GradientTape tape({.watch_accessed_variables = false});
  for (int i = 0; i < c.x.size(); ++i) {
    z.push_back(identity(c.x[i]));   // one tensor may be several inputs
    tape.watch(z.back());
    sources.emplace_back(z.back());
  }
  const Tensors y = by_ops(m, c, z);
  GradientOptions options;
  for (std::size_t k = 0; k < dy.size(); ++k) {
    if (!dy[k].defined()) continue;
    targets.emplace_back(y[k]);
    options.output_gradients.push_back(std::move(dy[k]));
  }
  std::vector<Gradient> all = tape.gradient(Targets(targets), Sources(sources), options);
  std::move(all.begin(), all.end(), dx.begin());
}

}   // namespace

Tensors map_scan_inputs(std::string_view name, const MapScanFunction& m, Tensors x,
                        const MapScanOptions& options, MapScanSettings& settings) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!x[i].defined()) throw_error<ArgumentError>("{}: input {} is undefined", name, i);
  if (options.checkpoint_bytes <= 0)
    throw_error<ArgumentError>("{}: checkpoint_bytes is {}; use 1 or more", name, options.checkpoint_bytes);
  const std::span<const Tensor> xs =
      std::span(x).subspan(static_cast<std::size_t>(m.carries), static_cast<std::size_t>(m.xs));
  settings = {.steps = steps_of(name, xs, options.length),
              .checkpoint_bytes = options.checkpoint_bytes,
              .reverse = options.reverse};
  const DType dtype = common_dtype(name, x);
  const Shape elements = common_shape(name, m, x);
  for (int i = 0; i < m.inputs(); ++i) {
    Tensor& t = x[static_cast<std::size_t>(i)];
    if (t.dtype() != dtype) t = astype(t, dtype);
    t = spread(t, elements, i >= m.carries && i < m.carries + m.xs);
  }
  return x;
}

// Whether the forward pass keeps its carries for the gradient. Carries of halves are not kept: they are
// computed in f32, and would be rounded.
bool map_scan_keeps(const MapScanFunction& m, std::span<const Tensor> x, const MapScanSettings& s) {
  constexpr int most = 64;   // results, which are numbered by the bits of an integer
  const std::int64_t bytes = x[0].nbytes() * m.carries;   // bytes of the carries of one step
  return !is_half(x[0].dtype()) && std::any_of(x.begin(), x.end(), followed) &&
         m.results() + m.carries <= most && s.steps <= s.checkpoint_bytes / std::max<std::int64_t>(bytes, 1);
}

std::vector<Spec> map_scan_specs(const MapScanFunction& m, const Call& c) {
  if (!is_floating(c.x[0].dtype())) c.throw_dtype_error("takes f32, f64, f16 or bf16, use astype");
  const Spec one = c.x[0].spec();
  std::vector<Spec> specs(static_cast<std::size_t>(m.carries), one);
  const MapScanSettings& s = m.settings(c.raw_attrs.data);
  const int all = m.results() + (s.keeps ? m.carries : 0);
  specs.resize(static_cast<std::size_t>(all), {one.dtype, behind(Shape{s.steps}, one.shape)});
  return specs;
}
void map_scan_forward(const MapScanFunction& m, const Call& c, std::span<Tensor> y) {
  run(m.forward, m, c, placed(c, m.inputs(), 0, 0), y);
}

Tensors map_scan_vjp_inputs(const MapScanFunction& m, const Call& c, std::span<Gradient> dy,
                            MapScanSettings& settings) {
  Tensors inputs = placed(c, m.inputs(), 0, 0);
  settings.given = settings.wanted = 0;
  for (int k = 0; k < m.results(); ++k) {
    Gradient& one = dy[static_cast<std::size_t>(k)];
    if (!one.defined()) continue;
    settings.given |= std::uint64_t{1} << k;
    inputs.push_back(std::move(one).dense());
  }
  for (int k = 0; k < m.carries && settings.keeps; ++k)
    inputs.push_back(c.y[m.results() + k]);
  for (int i = 0; i < m.inputs(); ++i)
    if (c.needs_gradient(i)) settings.wanted |= std::uint64_t{1} << i;
  return inputs;
}
std::vector<Spec> map_scan_vjp_specs(const MapScanFunction& m, const Call& c) {
  std::vector<Spec> specs;
  for (int i = 0; i < m.inputs(); ++i)
    if (bit(m.settings(c.raw_attrs.data).wanted, i)) specs.push_back(c.x[i].spec());
  return specs;
}
void map_scan_run_vjp(const MapScanFunction& m, const Call& c, std::span<Tensor> y) {
  const MapScanSettings& s = m.settings(c.raw_attrs.data);
  Tensors out;
  for (int i = 0, next = 0; i < m.inputs(); ++i)
    out.push_back(bit(s.wanted, i) ? y[static_cast<std::size_t>(next++)] : Tensor());
  Tensors in = placed(c, m.inputs(), m.results(), s.given);
  for (int k = 0; k < m.carries && s.keeps; ++k)
    in.push_back(c.x[c.x.size() - m.carries + k]);
  run(m.vjp, m, c, in, out);
}
void map_scan_vjp_of_vjp(const MapScanFunction& m, const Call& c, std::span<Gradient> dy,
                         std::span<Gradient> dx) {
  differentiate(vjp_by_ops, m, c, dy, dx);
}

Tensors map_scan_jvp_inputs(const MapScanFunction& m, const Call& c, Refs dx, MapScanSettings& settings) {
  Tensors inputs = placed(c, m.inputs(), 0, 0);
  settings.given = settings.wanted = 0;
  settings.keeps = false;
  for (int i = 0; i < m.inputs(); ++i) {
    if (!dx[i].defined()) continue;
    settings.given |= std::uint64_t{1} << i;
    inputs.push_back(dx[i]);
  }
  return inputs;
}
void map_scan_run_jvp(const MapScanFunction& m, const Call& c, std::span<Tensor> y) {
  run(m.jvp, m, c, placed(c, m.inputs(), m.inputs(), m.settings(c.raw_attrs.data).given), y);
}
void map_scan_vjp_of_jvp(const MapScanFunction& m, const Call& c, std::span<Gradient> dy,
                         std::span<Gradient> dx) {
  differentiate(jvp_by_ops, m, c, dy, dx);
}

}   // namespace tapedeck::detail
