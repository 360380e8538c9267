// Creates the variables of layers; the layers that call one op.
#include "tapedeck/nn/dense.h"
#include "tapedeck/nn/dropout.h"
#include "tapedeck/nn/sequential.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "nn/in_layer.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck::nn {
namespace detail {
namespace {

void check_extents(std::string_view layer, const Shape& shape) {
  if (std::ranges::any_of(shape, [](std::int64_t n) { return n < 1; }))
    throw_error<ArgumentError>("{}: the kernel would be {}; use sizes of 1 or more", layer, shape);
}

// Uniform in ±√(1 / n).
Initializer uniform_of(double n) {
  const double limit = 1 / std::sqrt(n);
  return initializers::uniform(-limit, limit);
}
double fan_in(const Shape& kernel) {
  return static_cast<double>(kernel.size()) / static_cast<double>(kernel[kernel.ndim() - 1]);
}

Initializer kernel_default(Defaults defaults, Role role, const Shape& shape) {
  const bool is_keras = defaults == Defaults::keras;
  switch (role) {
    case Role::embedding:
      return is_keras ? initializers::uniform() : initializers::normal(1);
    case Role::recurrent:
      if (is_keras) return initializers::orthogonal();
      return uniform_of(fan_in(shape));
    case Role::input_of_recurrent:   // PyTorch's bounds are those of the state
      if (is_keras) return initializers::glorot_uniform();
      return uniform_of(static_cast<double>(shape[1]) / 3);
    case Role::kernel:
      break;
  }
  return is_keras ? initializers::glorot_uniform() : uniform_of(fan_in(shape));
}

Initializer bias_default(Defaults defaults, const Shape& kernel) {
  if (defaults == Defaults::keras) return initializers::zeros();
  return uniform_of(fan_in(kernel));
}

// Initial values of halves are computed in f32 and rounded.
Tensor first_value(std::string_view name, const Initializer& given, const Initializer& otherwise,
                   const Shape& shape, random::Key key, DType dtype) {
  const DType made_in = is_half(dtype) ? DType::f32 : dtype;
  const Tensor x = (given ? given : otherwise)(shape, key, made_in);
  if (!x.defined() || x.spec() != Spec{made_in, shape})
    throw_error<ArgumentError>("{}: its initializer returned {} instead of {}", name,
                               x.defined() ? to_string(x.spec()) : "an undefined tensor",
                               Spec{made_in, shape});
  return made_in == dtype ? x : astype(x, dtype);
}

}   // namespace

Variable new_kernel(std::string_view layer, const Shape& shape, random::Key key, const LayerOptions& options,
                    Role role) {
  check_extents(layer, shape);
  const std::string name = role == Role::embedding ? "table" : "kernel";
  return Variable(first_value(name, options.kernel, kernel_default(options.defaults, role, shape), shape, key,
                              options.dtype),
                  {.name = name});
}

Variable new_recurrent_kernel(std::string_view layer, std::int64_t inputs, std::int64_t outputs,
                              std::int64_t gates, random::Key key, const LayerOptions& options) {
  const Shape above = {inputs, gates * outputs}, below = {outputs, gates * outputs};
  check_extents(layer, above);
  const auto part = [&](const Shape& shape, std::uint64_t i, const Initializer& otherwise) {
    return first_value("kernel", options.kernel, otherwise, shape, key.split(i), options.dtype);
  };
  const Initializer of_state = kernel_default(options.defaults, Role::recurrent, below);
  const Initializer of_inputs =
      options.defaults == Defaults::keras ? initializers::glorot_uniform() : of_state;
  return Variable(concat({part(above, 0, of_inputs), part(below, 1, of_state)}, 0), {.name = "kernel"});
}

std::optional<Variable> new_bias(std::int64_t n, const Shape& kernel, random::Key key,
                                 const LayerOptions& options) {
  if (!options.use_bias) return {};
  return Variable(
      first_value("bias", options.bias, bias_default(options.defaults, kernel), {n}, key, options.dtype),
      {.name = "bias"});
}

Variable new_recurrent_bias(std::string_view layer, std::int64_t outputs, std::int64_t gates, random::Key key,
                            const LayerOptions& options) {
  const auto bias = new_bias(gates * outputs, {outputs, gates * outputs}, key, options);
  if (!bias) throw_error<ArgumentError>("{}: this layer always has a bias; set use_bias to true", layer);
  return *bias;
}

Variable new_constant(std::string_view layer, std::string_view name, std::int64_t n, double value,
                      DType dtype, bool trainable) {
  if (n < 1) throw_error<ArgumentError>("{}: the size is {}; use 1 or more", layer, n);
  if (!is_floating(dtype))
    throw_error<DTypeError>("{}: the dtype is {}; use f32, f64, f16 or bf16", layer, name_of(dtype));
  return Variable(full({n}, value, dtype), {.name = std::string(name), .trainable = trainable});
}

}   // namespace detail

Dense::Dense(std::int64_t inputs_, std::int64_t outputs_, random::Key key, const LayerOptions& options)
    : inputs(inputs_),
      outputs(outputs_),
      kernel(detail::new_kernel("dense", {inputs, outputs}, key.split(0), options)),
      bias(detail::new_bias(outputs, {inputs, outputs}, key.split(1), options)) {}
Tensor Dense::operator()(const Tensor& x) const {
  return in_layer({this, "Dense", kernel, "...,#", inputs}, x, [&] {
    Tensor y = matmul(x, kernel);
    if (bias) y = std::move(y) + bias->value();
    return detail::noted(this, "Dense", std::move(y));
  });
}

Embedding::Embedding(std::int64_t count_, std::int64_t outputs_, random::Key key, const LayerOptions& options)
    : count(count_),
      outputs(outputs_),
      table(detail::new_kernel("embedding", {count, outputs}, key, options, detail::Role::embedding)) {}
Tensor Embedding::operator()(const Tensor& ids) const {
  return in_layer({this, "Embedding", table, "integer ids"}, ids,
                  [&] { return detail::noted(this, "Embedding", gather(table, ids)); });
}

random::Key detail::key_of(const Run& run, std::string_view layer) {
  if (!run.has_key())
    throw_error<ArgumentError>(
        "{}: this run trains without a key, so each step would drop the same elements; pass a different key "
        "in each step, as in {{.training = true, .key = key.split(step)}}",
        layer);
  return run.key;
}

Tensor Dropout::operator()(const Tensor& x, Run run) const {
  return detail::noted(this, "Dropout",
                       run.training ? tapedeck::dropout(x, rate, detail::key_of(run, "dropout")) : x);
}

Tensor Sequential::operator()(const Tensor& x, Run run) const {
  Tensor y = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    try {
      y = layers_[i](y, run.split(i));
    } catch (const Error&) {
      // A walk alone does not change anything.
      rethrow_in_sequence(this, i, [&](const detail::Visit& visit) {
        detail::walk(const_cast<Sequential&>(*this), {}, visit);
      });
    }
  }
  return detail::noted(this, "Sequential", std::move(y));
}
Tensor Residual::operator()(const Tensor& x, Run run) const {
  const Tensor y = layer(x, run);
  if (y.shape() != x.shape())
    throw_error<ShapeError>("residual: x is {}, but its layer returns {}; they must have the same shape",
                            x.spec(), y.spec());
  return x + y;
}

}   // namespace tapedeck::nn
