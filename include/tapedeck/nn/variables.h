// The variables of a network, by name. A network is a struct of layers, and a layer a struct with variables:
// an aggregate, whose members are found at compile time, or a class with
//   template <class Visit> void for_each_member(Visit visit) { visit("hidden", hidden_); … }
// where a single member with the name "" replaces the class in paths, like the layer of nn::Residual. Members
// may be variables, layers, and vectors, std::arrays, maps by name, tuples, variants, optionals and smart
// pointers of these. Other members are ignored. An aggregate may not have base classes or C arrays.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tapedeck/named_variable.h"
#include "tapedeck/nn/walk.h"

namespace tapedeck::nn {

namespace detail {

/// Collects variables, each once, under its first name.
class TAPEDECK_EXPORT Collector {
 public:
  explicit Collector(std::string_view pattern);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  void add(const Node& node);
  std::vector<NamedVariable> take();

 private:
  struct [[gnu::visibility("hidden")]] State;
  std::unique_ptr<State> state_;
};

/// Replaces the variables of a copied network by new ones.
class TAPEDECK_EXPORT Copier {
 public:
  Copier();
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  /// note() is called for each node of the original, then replace() for each node of the copy. Each distinct
  /// variable is replaced by one new variable with its value and options, and each distinct object of a
  /// std::shared_ptr by one copy. Throws ArgumentError, without changing the original, if the copy still
  /// shares members with it.
  void note(const Node& node);
  void replace(const Node& node);

 private:
  struct [[gnu::visibility("hidden")]] State;
  void copy_pointee(const Node& node);
  std::unique_ptr<State> state_;
};

}   // namespace detail

/// The variables of a network, in the order of its members, whose names match a pattern: "*" stands for any
/// characters, as in "*/kernel" and "encoder/*". The names are paths, such as
/// "encoder/0/attention/query/kernel". A variable that several members share is listed once, under the first
/// of its names.
template <class Network>
std::vector<NamedVariable> variables(const Network& network, std::string_view pattern = "*") {
  detail::Collector found(pattern);
  // A walk does not change anything by itself.
  detail::walk(const_cast<Network&>(network), {}, [&](const detail::Node& node) { found.add(node); });
  return found.take();
}
/// The trainable ones of the variables, without names, as optimizers and tapes accept them.
TAPEDECK_EXPORT std::vector<Variable> trainable(const std::vector<NamedVariable>& variables);
template <class Network> std::vector<Variable> trainable_variables(const Network& network) {
  return trainable(variables(network));
}
/// Returns a predicate that is true for these variables, for transforms::weight_decay: weight_decay(1e-4,
/// nn::among(nn::variables(network, "*/kernel"))).
TAPEDECK_EXPORT std::function<bool(const Variable&)> among(std::vector<NamedVariable> variables);
/// The total number of elements of the variables.
TAPEDECK_EXPORT std::int64_t element_count(const std::vector<NamedVariable>& variables);

/// Returns a copy with its own variables, whose initial values are the current values of the originals. By
/// contrast, copy constructors share variables and the objects of a std::shared_ptr. Objects shared between
/// members are also shared between the members of the copy. Throws ArgumentError if a member refers to a
/// layer of the original in another way: by a std::shared_ptr to a base class or to a type that cannot be
/// copied, or by another pointer that copies share.
template <class Network> Network copy(const Network& network) {
  Network result = network;
  detail::Copier copier;
  detail::walk(const_cast<Network&>(network), {}, [&](const detail::Node& node) { copier.note(node); });
  detail::walk(result, {}, [&](const detail::Node& node) { copier.replace(node); });
  return result;
}

}   // namespace tapedeck::nn
