// What new variables begin with.
#pragma once
#include <functional>

#include "tapedeck/random_key.h"
#include "tapedeck/tensor.h"

namespace tapedeck::nn {

/// Makes the first value of a variable, from its shape and a key that no other variable has. For layers of
/// f16 and bf16 the dtype is f32, and what it gives is rounded.
using Initializer = std::function<Tensor(const Shape& shape, random::Key key, DType dtype)>;

/// Whose defaults layers begin with, where nothing else is given. keras: kernels are Glorot uniform,
/// recurrent ones orthogonal, embeddings uniform in ±0.05, biases zero. pytorch: kernels and biases are
/// uniform in ±1/√fan_in, recurrent ones in ±1/√units, embeddings standard normal; the projections of
/// attention are Glorot uniform with zero biases.
enum class Defaults : std::uint8_t { keras, pytorch };

/// What most layers may be told about their variables.
struct LayerOptions {
  bool use_bias = true;
  Defaults defaults = Defaults::keras;
  Initializer kernel = {}, bias = {};   // empty: those of the defaults
  DType dtype = default_dtype();
};

/// The initializers. Those that speak of fans count the inputs and outputs of one unit: of a kernel [window
/// extents..., in, out], fan_in is the window's size times in, fan_out its size times out; of a vector [n]
/// both are n. All but constant throw ArgumentError for numbers that are not finite, uniform unless low <
/// high, and normal ones for a negative deviation.
namespace initializers {

/// The same number everywhere.
TAPEDECK_EXPORT Initializer zeros();
TAPEDECK_EXPORT Initializer ones();
TAPEDECK_EXPORT Initializer constant(double value);
/// In [low, high).
TAPEDECK_EXPORT Initializer uniform(double low = -0.05, double high = 0.05);
/// Of this mean and standard deviation; truncated: none is more than two deviations from the mean, by which
/// those that are left have 0.88 of the deviation.
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

/// Orthonormal columns, or rows where there are fewer of these, of a random rotation, times gain: all axes
/// but the last are one. Saxe, McClelland and Ganguli 2014. Throws ShapeError below rank 2.
TAPEDECK_EXPORT Initializer orthogonal(double gain = 1);
/// The identity, times gain, and zeros in what is left of a matrix that is not square. Throws ShapeError
/// unless the rank is 2.
TAPEDECK_EXPORT Initializer identity(double gain = 1);

}   // namespace initializers
}   // namespace tapedeck::nn
