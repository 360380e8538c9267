// Errors of layers, which say what layer it is and what it takes.
#pragma once
#include <string_view>

#include "tapedeck/nn/walk.h"

namespace tapedeck::nn {

/// A layer, and what it is called with: a tensor whose axes are named, "...,height,width,#", where # has the
/// extent n; without an # other words for it.
struct Takes {
  const void* layer;
  std::string_view type;
  const Variable& weights;
  std::string_view axes;
  std::int64_t n = 0;
};

/// In a handler: throws the error again, of the same type, with the layer and what it was called with. An
/// error that is none of shapes, dtypes and arguments, or that says a layer already, is passed on.
[[noreturn]] void rethrow_in_layer(const Takes& takes, const Tensor& x);
/// The same for the i-th layer of a Sequential at this address.
[[noreturn]] void rethrow_in_sequence(const void* sequence, std::size_t i,
                                      const std::function<void(const detail::Visit&)>& walk);

/// f(), whose errors say the layer. Costs nothing without one.
template <class F> auto in_layer(const Takes& takes, const Tensor& x, const F& f) {
  try {
    return f();
  } catch (const Error&) {
    rethrow_in_layer(takes, x);
  }
}

}   // namespace tapedeck::nn
