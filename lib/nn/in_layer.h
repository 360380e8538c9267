// Errors of layers, which name the layer and the input that it expects.
#pragma once
#include <string_view>

#include "tapedeck/nn/walk.h"

namespace tapedeck::nn {

/// A layer, and the input that it expects: a tensor with named axes, "...,height,width,#", where # has the
/// extent n; without a # a description in words.
struct Takes {
  const void* layer;
  std::string_view type;
  const Variable& weights;
  std::string_view axes;
  std::int64_t n = 0;
};

/// Call this in a handler. Throws an error of the same type, with the layer and its input. An error that is
/// not a ShapeError, DTypeError or ArgumentError, or that names a layer already, is rethrown unchanged.
[[noreturn]] void rethrow_in_layer(const Takes& takes, const Tensor& x);
/// As rethrow_in_layer, for layer i of the Sequential at this address.
[[noreturn]] void rethrow_in_sequence(const void* sequence, std::size_t i,
                                      const std::function<void(const detail::Visit&)>& walk);

/// Returns f(); its errors name the layer. Has no cost unless f throws.
template <class F> auto in_layer(const Takes& takes, const Tensor& x, const F& f) {
  try {
    return f();
  } catch (const Error&) {
    rethrow_in_layer(takes, x);
  }
}

}   // namespace tapedeck::nn
