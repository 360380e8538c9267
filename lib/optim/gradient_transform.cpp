// Transforms gradients by their dense tensor, or by the values of slices after duplicates were summed.
#include "tapedeck/gradient_transform.h"

#include <cmath>
#include <limits>

#include "core/format.h"
#include "optim/master.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

// Replaces a gradient's values by f(values, indices); indices are undefined for a dense gradient.
template <class F> Gradient of_elements(const Gradient& g, const F& f) {
  if (!g.defined()) return {};
  if (g.is_dense()) return f(g.tensor(), Tensor());
  IndexedSlices s = sum_duplicates(*g.slices());
  s.values = f(s.values, s.indices);
  return s;
}
Gradient scaled(const Gradient& g, double factor) {
  return of_elements(g, [=](const Tensor& x, const Tensor&) {
    return is_half(x.dtype()) ? astype(in_f32(x) * factor, x.dtype()) : x * factor;
  });
}

// If the squares overflow, divides all elements by the largest first.
double norm_of(const Tensor& x) {
  const double norm = euclidean_norm(x).item();
  if (!std::isinf(norm)) return norm;
  const double largest = max(abs(x)).item();
  return std::isinf(largest) ? largest : largest * euclidean_norm(x / largest).item();
}
double norm_of(const Gradient& g) {
  double norm = 0;
  of_elements(g, [&](const Tensor& x, const Tensor&) { return norm = norm_of(in_f32(x)), x; });
  return norm;
}

double limited(std::string_view name, double limit) {
  if (!(limit >= 0)) throw_error<ArgumentError>("{}: the limit is {}; use 0 or more", name, limit);
  return limit;
}
double factor_of(double norm, double limit) {
  if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
  return norm > limit ? limit / norm : 1;
}

// A transformation with a limit: change(pairs, limit).
template <class F> GradientTransform with_limit(std::string_view name, Scheduled limit, F change) {
  if (!limit.varies()) limited(name, limit.at(0));
  return [name, limit = std::move(limit), change](std::span<GradientAndVariable> pairs, std::int64_t step) {
    change(pairs, limited(name, limit.at(step)));
  };
}

}   // namespace

Gradient clip_by_value(const Gradient& g, double low, double high) {
  if (!(low <= high))
    throw_error<ArgumentError>("clip_by_value: the bounds are {} and {}; use ascending ones", low, high);
  return of_elements(g, [=](const Tensor& x, const Tensor&) { return clip(x, low, high); });
}

Gradient clip_by_norm(const Gradient& g, double limit) {
  limited("clip_by_norm", limit);
  return scaled(g, factor_of(norm_of(g), limit));
}

double global_norm(std::span<const Gradient> gradients) {
  double norm = 0;
  for (const Gradient& g : gradients)
    norm = std::hypot(norm, norm_of(g));
  return norm;
}

std::vector<Gradient> clip_by_global_norm(std::span<const Gradient> gradients, double limit) {
  limited("clip_by_global_norm", limit);
  const double factor = factor_of(global_norm(gradients), limit);
  std::vector<Gradient> result;
  for (const Gradient& g : gradients)
    result.push_back(scaled(g, factor));
  return result;
}

namespace transforms {

GradientTransform clip_value(Scheduled limit) {
  return with_limit("clip_value", std::move(limit), [](std::span<GradientAndVariable> pairs, double most) {
    for (GradientAndVariable& p : pairs)
      p.gradient = clip_by_value(p.gradient, -most, most);
  });
}

GradientTransform clip_norm(Scheduled limit) {
  return with_limit("clip_norm", std::move(limit), [](std::span<GradientAndVariable> pairs, double most) {
    for (GradientAndVariable& p : pairs)
      p.gradient = clip_by_norm(p.gradient, most);
  });
}

GradientTransform clip_global_norm(Scheduled limit) {
  return with_limit("clip_global_norm", std::move(limit),
                    [](std::span<GradientAndVariable> pairs, double most) {
                      double norm = 0;
                      for (const GradientAndVariable& p : pairs)
                        norm = std::hypot(norm, norm_of(p.gradient));
                      const double factor = factor_of(norm, most);
                      for (GradientAndVariable& p : pairs)
                        p.gradient = scaled(p.gradient, factor);
                    });
}

GradientTransform scale(Scheduled factor) {
  return [factor = std::move(factor)](std::span<GradientAndVariable> pairs, std::int64_t step) {
    const double by = factor.at(step);
    for (GradientAndVariable& p : pairs)
      p.gradient = scaled(p.gradient, by);
  };
}

GradientTransform weight_decay(Scheduled rate, std::function<bool(const Variable&)> decays) {
  return [rate = std::move(rate), decays = std::move(decays)](std::span<GradientAndVariable> pairs,
                                                              std::int64_t step) {
    const double by = rate.at(step);
    for (auto& [gradient, variable] : pairs) {
      if (decays && !decays(variable)) continue;
      const Tensor v = variable.value();
      gradient = of_elements(gradient, [&](const Tensor& x, const Tensor& rows) {
        return in_f32(x) + by * in_f32(rows.defined() ? gather(v, rows) : v);   // a half would lose the decay
      });
    }
  };
}

GradientTransform noise(random::Key key, Scheduled deviation) {
  return [key, deviation = std::move(deviation)](std::span<GradientAndVariable> pairs, std::int64_t step) {
    const double by = deviation.at(step);
    const random::Key own = key.split(static_cast<std::uint64_t>(step));
    for (std::size_t i = 0; i < pairs.size(); ++i)
      pairs[i].gradient = of_elements(pairs[i].gradient, [&](const Tensor& x, const Tensor&) {
        const Tensor wide = in_f32(x);
        return astype(wide + by * random::normal(x.shape(), own.split(i), wide.dtype()), x.dtype());
      });
  };
}

}   // namespace transforms

}   // namespace tapedeck
