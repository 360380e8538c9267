// Functions by which layers create their variables.
#pragma once
#include <optional>
#include <string_view>

#include "tapedeck/nn/initializers.h"
#include "tapedeck/variable.h"

namespace tapedeck::nn::detail {

/// The kind of a variable, for which each library has its own default initializer.
enum class Role : std::uint8_t { kernel, input_of_recurrent, recurrent, embedding };

/// A variable "kernel", or "table" of an embedding, of this shape: initialized by options.kernel, or by the
/// default for its role. Throws ArgumentError, naming the layer, unless all extents are 1 or more.
TAPEDECK_EXPORT Variable new_kernel(std::string_view layer, const Shape& shape, random::Key key,
                                    const LayerOptions& options, Role role = Role::kernel);
/// A variable "bias" [n] for a kernel of this shape; nullopt if the options say so.
TAPEDECK_EXPORT std::optional<Variable> new_bias(std::int64_t n, const Shape& kernel, random::Key key,
                                                 const LayerOptions& options);
/// A variable "kernel" [inputs + outputs, gates · outputs] of a recurrent layer: the rows for the inputs,
/// followed by the rows for the state.
TAPEDECK_EXPORT Variable new_recurrent_kernel(std::string_view layer, std::int64_t inputs,
                                              std::int64_t outputs, std::int64_t gates, random::Key key,
                                              const LayerOptions& options);
/// The bias [gates · outputs] of a recurrent layer. Throws ArgumentError if the options exclude a bias.
TAPEDECK_EXPORT Variable new_recurrent_bias(std::string_view layer, std::int64_t outputs, std::int64_t gates,
                                            random::Key key, const LayerOptions& options);
/// A variable [n] whose elements are all the same number.
TAPEDECK_EXPORT Variable new_constant(std::string_view layer, std::string_view name, std::int64_t n,
                                      double value, DType dtype, bool trainable = true);

/// Returns y, after reporting it to an active summary() as the result of the layer at this address.
TAPEDECK_EXPORT Tensor noted(const void* layer, std::string_view type, Tensor y);

}   // namespace tapedeck::nn::detail
