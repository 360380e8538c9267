// Layers in sequence, and residual layers. A layer is anything that can be called with a tensor, or with a
// tensor and a Run, and returns a type that converts to Tensor, such as Dense, relu, a lambda or a
// user-defined struct.
#pragma once
#include <memory>
#include <type_traits>
#include <vector>

#include "tapedeck/nn/new_variables.h"
#include "tapedeck/nn/run.h"
#include "tapedeck/nn/walk.h"
#include "tapedeck/ops/activations.h"
#include "tapedeck/owned.h"

namespace tapedeck::nn {

namespace detail {

template <class L>
concept TakesRun = std::is_invocable_r_v<Tensor, const L&, const Tensor&, Run>;
template <class L>
concept LayerLike = TakesRun<L> || std::is_invocable_r_v<Tensor, const L&, const Tensor&>;

/// A layer, or an argument mistaken for one: a number, or a callable that accepts a tensor only if it is not
/// const.
template <class L>
concept LayerOrMistake = LayerLike<L> || std::is_arithmetic_v<L> || std::is_invocable_v<L&, const Tensor&>;

/// gelu in its exact form, as a layer.
struct ExactForm {
  Tensor (*op)(Operand, Gelu);

  Tensor operator()(const Tensor& x) const { return op(x, Gelu::exact); }
  template <class V> void for_each_member(const V&) const {}
};

}   // namespace detail

/// A layer of any type. Copying copies the layer; the copy shares its variables.
class Layer {
 public:
  template <class L>
  requires(!std::same_as<std::remove_cvref_t<L>, Layer> && detail::LayerOrMistake<std::decay_t<L>>)
      Layer(L&& layer) {
    using Own = std::decay_t<L>;
    static_assert(detail::LayerLike<Own>,
                  "a layer must be callable, also if const, with a tensor, and return one: Tensor "
                  "operator()(const Tensor& x) const");
    if constexpr (detail::LayerLike<Own>) layer_ = std::make_unique<Of<Own>>(std::forward<L>(layer));
  }
  /// An overloaded op, such as td::relu if map.h is included, and td::gelu in its exact form.
  Layer(Tensor (*op)(Operand)) : layer_(std::make_unique<Of<Tensor (*)(Operand)>>(op)) {}
  Layer(Tensor (*op)(Operand, Gelu)) : Layer(detail::ExactForm{op}) {}
  Layer(const Layer& o) : layer_(o.layer_->copy()) {}
  Layer(Layer&&) noexcept = default;
  Layer& operator=(Layer o) noexcept {
    layer_.swap(o.layer_);
    return *this;
  }

  /// Calls the layer, with the Run if the layer accepts one.
  Tensor operator()(const Tensor& x, Run run = {}) const { return layer_->call(x, run); }
  /// The variables have the names that they have in the layer.
  template <class V> void for_each_member(const V& visit) {
    visit("", static_cast<detail::HiddenMember&>(*layer_));
  }

 private:
  struct Any : detail::HiddenMember {
    virtual std::unique_ptr<Any> copy() const = 0;
    virtual Tensor call(const Tensor& x, Run run) const = 0;
  };
  template <class L> struct Of final : Any {
    explicit Of(L l) : layer(std::move(l)) {}
    std::unique_ptr<Any> copy() const override { return std::make_unique<Of>(layer); }
    Tensor call(const Tensor& x, Run run) const override {
      if constexpr (detail::TakesRun<L>)
        return detail::noted(&layer, detail::type_name<L>(), layer(x, run));
      else
        return detail::noted(&layer, detail::type_name<L>(), layer(x));
    }
    void walk(const std::string& path, const detail::Visit& visit) override {
      detail::walk(layer, path, visit);
    }

    L layer;
  };

  tapedeck::detail::Owned<Any> layer_;
};

/// Each layer is called with the result of the one before; the i-th with run.split(i). Its variables are
/// named "0/kernel", "1/…", and error messages contain the path of the layer. Within a struct, create
/// user-defined layers by a lambda, since g++ 12 does not compile temporaries of aggregates there:
///   nn::Sequential blocks = nn::repeat(6, [this](std::uint64_t i) { return Block{key.split(i), width}; });
class TAPEDECK_EXPORT Sequential {
 public:
  Sequential() = default;
  Sequential(std::initializer_list<Layer> layers) : layers_(layers) {}
  /// Sequential{net} is a copy of net, not a network whose only layer is net. Several networks are layers.
  template <std::same_as<Sequential> S> Sequential(std::initializer_list<S> networks)
      : layers_(networks.size() == 1 ? networks.begin()->layers_
                                     : std::vector<Layer>(networks.begin(), networks.end())) {}
  explicit Sequential(std::vector<Layer> layers) : layers_(std::move(layers)) {}

  /// Appends a layer.
  void push_back(Layer layer) { layers_.push_back(std::move(layer)); }
  /// The number of layers.
  std::size_t size() const { return layers_.size(); }
  /// The i-th layer, unchecked.
  const Layer& operator[](std::size_t i) const { return layers_[i]; }

  /// The result of the last layer.
  Tensor operator()(const Tensor& x, Run run = {}) const;
  /// Visits the variables: see variables.h.
  template <class V> void for_each_member(const V& visit) {
    for (std::size_t i = 0; i < layers_.size(); ++i)
      visit(std::to_string(i), layers_[i]);
  }

 private:
  std::vector<Layer> layers_;
};

/// A Sequential of n layers: make_layer(0), make_layer(1), …
template <class F> Sequential repeat(std::uint64_t n, const F& make_layer) {
  std::vector<Layer> layers;
  for (std::uint64_t i = 0; i < n; ++i)
    layers.emplace_back(make_layer(i));
  return Sequential(std::move(layers));
}

/// x + layer(x).
struct Residual {
  Layer layer;

  /// Applies the layer to x, and adds x.
  TAPEDECK_EXPORT Tensor operator()(const Tensor& x, Run run = {}) const;
  /// The variables have the names that they have in the layer.
  template <class V> void for_each_member(const V& visit) { visit("", layer); }
};

}   // namespace tapedeck::nn
