// Initial values of variables.
#pragma once
#include <functional>

#include "tapedeck/random_key.h"
#include "tapedeck/tensor.h"

namespace tapedeck::nn {

/// Computes the initial value of a variable from its shape and a key that no other variable has. For layers
/// of f16 and bf16 the dtype is f32, and the result is rounded.
using Initializer = std::function<Tensor(const Shape& shape, random::Key key, DType dtype)>;

/// The library whose default initializers layers use. keras: kernels are Glorot uniform, recurrent kernels
/// orthogonal, embeddings uniform in ±0.05, biases zero. pytorch: kernels and biases are uniform in
/// ±1/√fan_in, all kernels and biases of recurrent layers in ±1/√units, embeddings standard normal; the
/// projections of attention are Glorot uniform with zero biases.
enum class Defaults : std::uint8_t { keras, pytorch };

/// Options of most layers, concerning their variables.
struct LayerOptions {
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};   // empty: the initializers of the defaults
  DType dtype = default_dtype();
};

/// The initializers. fan_in and fan_out count the inputs and outputs of one unit: for a kernel [window
/// extents..., in, out], fan_in is the size of the window times in, and fan_out its size times out; for a
/// vector [n], both are n. All but constant throw ArgumentError for numbers that are not finite, uniform also
/// unless low < high, and the normal ones for a negative deviation.
namespace initializers {

/// Initialize every element with the same number.
TAPEDECK_EXPORT Initializer zeros();
TAPEDECK_EXPORT Initializer ones();
TAPEDECK_EXPORT Initializer constant(double value);
/// Uniform in [low, high).
TAPEDECK_EXPORT Initializer uniform(double low = -0.05, double high = 0.05);
/// Normal with this mean and standard deviation. If truncated, no value is more than two deviations from the
/// mean, so that the actual standard deviation is 0.88 of the given one.
TAPEDECK_EXPORT Initializer normal(double deviation = 0.05, double mean = 0);
TAPEDECK_EXPORT Initializer truncated_normal(double deviation = 0.05, double mean = 0);

/// Uniform in ±√(6 / (fan_in + fan_out)), or truncated normal of variance 2 / (fan_in + fan_out): Glorot and
/// Bengio 2010, equation 16.
TAPEDECK_EXPORT Initializer glorot_uniform();
TAPEDECK_EXPORT Initializer glorot_normal();
/// Uniform in ±√(6 / fan_in), or truncated normal of variance 2 / fan_in: for ReLU, He et al. 2015,
/// equation 10.
TAPEDECK_EXPORT Initializer he_uniform();
TAPEDECK_EXPORT Initializer he_normal();
/// Uniform in ±√(3 / fan_in), or truncated normal of variance 1 / fan_in: LeCun et al. 1998, section 4.6.
TAPEDECK_EXPORT Initializer lecun_uniform();
TAPEDECK_EXPORT Initializer lecun_normal();

/// A random matrix with orthonormal columns, or orthonormal rows if there are fewer rows, times gain. All
/// axes but the last count as rows. Saxe, McClelland and Ganguli 2014. Throws ShapeError below rank 2.
TAPEDECK_EXPORT Initializer orthogonal(double gain = 1);
/// The identity matrix times gain, padded with zeros if the matrix is not square. Throws ShapeError unless
/// the rank is 2.
TAPEDECK_EXPORT Initializer identity(double gain = 1);

}   // namespace initializers
}   // namespace tapedeck::nn
