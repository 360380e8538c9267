// A table of the layers of a network.
#pragma once
#include <concepts>
#include <functional>
#include <string>

#include "tapedeck/nn/variables.h"

namespace tapedeck::nn {

namespace detail {

/// Walks a network and calls it. `input` describes the input of the call.
TAPEDECK_EXPORT std::string summary_of(std::string_view type, const std::function<void(const Visit&)>& walk,
                                       const std::function<Tensor()>& call, const std::string& input);
TAPEDECK_EXPORT std::string description_of(const Tensor& x);

}   // namespace detail

/// Returns a table of the layers: name, type, the spec of its result for this input, if it is a layer of
/// tapedeck or of a Sequential, and the number of elements of its variables; then the totals, and the number
/// of trainable elements. Calls the network once, without a tape. Variables that several layers share count
/// once in the totals. Error messages contain the path of the layer.
template <class Network> std::string summary(const Network& network, const Tensor& input) {
  return detail::summary_of(
      detail::type_name<Network>(),
      // A walk does not change anything by itself.
      [&](const detail::Visit& visit) { detail::walk(const_cast<Network&>(network), {}, visit); },
      [&]() -> Tensor { return network(input); }, detail::description_of(input));
}

}   // namespace tapedeck::nn
