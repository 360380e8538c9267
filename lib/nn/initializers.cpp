// The initializers: random numbers that are scaled by fans, and a few matrices.
#include "tapedeck/nn/initializers.h"

#include <cmath>

#include "core/format.h"
#include "core/uniform_bounds.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck::nn::initializers {
namespace {

// The standard deviation of a standard normal number that is cut off beyond ±2.
constexpr double kTruncatedDeviation = 0.87962566103423978;

struct Fans {
  double in, out;
};
Fans fans_of(const Shape& shape) {
  const int rank = shape.ndim();
  if (rank == 0) return {1, 1};
  if (rank == 1) return {double(shape[0]), double(shape[0])};
  double window = 1;
  for (int axis = 0; axis < rank - 2; ++axis)
    window *= static_cast<double>(shape[axis]);
  return {window * static_cast<double>(shape[rank - 2]), window * static_cast<double>(shape[rank - 1])};
}

double mean_fan(Fans f) { return (f.in + f.out) / 2; }
double in_fan(Fans f) { return f.in; }

// With variance scale / fan. The fan is 0 for a kernel without elements.
template <double (*fan)(Fans)> Initializer uniform_by_fan(double scale) {
  return [scale](const Shape& shape, random::Key key, DType dtype) {
    const double limit = std::sqrt(3 * scale / std::max(fan(fans_of(shape)), 1.0));
    return random::uniform(shape, key, -limit, limit, dtype);
  };
}
template <double (*fan)(Fans)> Initializer normal_by_fan(double scale) {
  return [scale](const Shape& shape, random::Key key, DType dtype) {
    const double deviation = std::sqrt(scale / std::max(fan(fans_of(shape)), 1.0));
    return random::truncated_normal(shape, key, dtype) * (deviation / kTruncatedDeviation);
  };
}

void check_finite(std::string_view name, double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b))
    throw_error<ArgumentError>("{}: {} and {} are not both finite", name, a, b);
}

void check_normal(std::string_view name, double deviation, double mean) {
  check_finite(name, deviation, mean);
  if (deviation < 0) throw_error<ArgumentError>("{}: the deviation is {}; use 0 or more", name, deviation);
}

}   // namespace

Initializer constant(double value) {
  return [value](const Shape& shape, random::Key, DType dtype) { return full(shape, value, dtype); };
}
Initializer zeros() { return constant(0); }
Initializer ones() { return constant(1); }

Initializer uniform(double low, double high) {
  check_uniform_bounds(low, high);
  return [=](const Shape& shape, random::Key key, DType dtype) {
    return random::uniform(shape, key, low, high, dtype);
  };
}
Initializer normal(double deviation, double mean) {
  check_normal("normal", deviation, mean);
  return [=](const Shape& shape, random::Key key, DType dtype) {
    return random::normal(shape, key, dtype) * deviation + mean;
  };
}
Initializer truncated_normal(double deviation, double mean) {
  check_normal("truncated_normal", deviation, mean);
  return [=](const Shape& shape, random::Key key, DType dtype) {
    return random::truncated_normal(shape, key, dtype) * deviation + mean;
  };
}

Initializer glorot_uniform() { return uniform_by_fan<mean_fan>(1); }
Initializer glorot_normal() { return normal_by_fan<mean_fan>(1); }
Initializer he_uniform() { return uniform_by_fan<in_fan>(2); }
Initializer he_normal() { return normal_by_fan<in_fan>(2); }
Initializer lecun_uniform() { return uniform_by_fan<in_fan>(1); }
Initializer lecun_normal() { return normal_by_fan<in_fan>(1); }

Initializer orthogonal(double gain) {
  check_finite("orthogonal", gain, 0);
  return [gain](const Shape& shape, random::Key key, DType dtype) {
    const int rank = shape.ndim();
    if (rank < 2) throw_error<ShapeError>("orthogonal: the shape {} has rank {}; use 2 or more", shape, rank);
    const std::int64_t columns = shape[rank - 1], size = shape.size();
    if (size == 0) return tapedeck::zeros(shape, dtype);
    const std::int64_t rows = size / columns;
    // The sign of R's diagonal makes Q uniformly distributed: Mezzadri 2007.
    const auto [q, r] =
        qr(random::normal({std::max(rows, columns), std::min(rows, columns)}, key, DType::f64));
    const Tensor signs = where(less(diag_part(r), 0.0), -1.0, 1.0);
    const Tensor columns_first = q * signs * gain;
    return astype(reshape(rows < columns ? transpose(columns_first) : columns_first, shape), dtype);
  };
}
Initializer identity(double gain) {
  check_finite("identity", gain, 0);
  return [gain](const Shape& shape, random::Key, DType dtype) {
    if (shape.ndim() != 2) throw_error<ShapeError>("identity: the shape {} must have rank 2", shape);
    return eye(shape[0], shape[1], dtype) * gain;
  };
}

}   // namespace tapedeck::nn::initializers
