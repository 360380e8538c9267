// A table of the layers of a network.
#pragma once
#include <concepts>
#include <functional>
#include <string>

#include "tapedeck/nn/variables.h"

namespace tapedeck::nn {

namespace detail {

/// Walks a network and calls it. `input` describes what it is called with.
TAPEDECK_EXPORT std::string summary_of(std::string_view type, const std::function<void(const Visit&)>& walk,
                                       const std::function<Tensor()>& call, const std::string& input);
TAPEDECK_EXPORT std::string description_of(const Tensor& x);

}   // namespace detail

/// A table of the layers: names and types, what each returns for this input, where it is a layer of tapedeck
/// or of a Sequential, and how many numbers its variables hold; then the sums, and how many of the numbers
/// are trainable. Calls the network once, without a tape. Variables that several layers share count once in
/// the sums. An error says the path of the layer that it is from.
template <class Network> std::string summary(const Network& network, const Tensor& input) {
  return detail::summary_of(
      detail::type_name<Network>(),
      // A walk does not change anything by itself.
      [&](const detail::Visit& visit) { detail::walk(const_cast<Network&>(network), {}, visit); },
      [&]() -> Tensor { return network(input); }, detail::description_of(input));
}

}   // namespace tapedeck::nn
