// Derivatives of functions as functions: grad(f) is the gradient of f, so that grad(f)(x) is the gradient at
// x, and grad(grad(f))(x) a second derivative. They can be compiled, and compiled functions can be
// differentiated.
//
// f may have arguments of any type. grad<1>(f) is the gradient with respect to argument 1, and grad<0, 2>(f)
// returns a tuple of the gradients with respect to arguments 0 and 2; without indices, grad, value_and_grad,
// jacobian and hessian differentiate with respect to argument 0. A differentiated argument is a tensor, a
// variable, which stands for its value, or a list such as a std::vector of tensors, which f receives as a
// std::vector<Tensor>, and whose gradients are a vector, too. Permitted results of f and errors are as in
// gradients.h, and derivatives with respect to arguments on which f does not depend are zeros. f is copied,
// and called as const.
#pragma once
#include <array>
#include <optional>
#include <utility>

#include "tapedeck/gradients.h"

namespace tapedeck {

/// Declares that a function returns a pair of the differentiated value and an auxiliary value of any type,
/// such as an accuracy or a new state: value_and_grad(f, has_aux)(x) is the tuple (value, gradient, auxiliary
/// value), and grad(f, has_aux)(x) the pair (gradient, auxiliary value).
struct HasAux {};
inline constexpr HasAux has_aux;

namespace detail {

template <class X>
concept DifferentiableArgument = OneSource<X> || ListOfSources<X>;
/// The type in which f receives an argument of type X: new tensors if it is differentiated, a reference
/// otherwise.
template <class X, bool differentiated> struct Passed { using Type = const X&; };
template <DifferentiableArgument X> struct Passed<X, true> {
  using Type = std::conditional_t<OneSource<X>, Tensor, std::vector<Tensor>>;
};
template <std::size_t i, std::size_t... n> inline constexpr bool kIsOneOf = ((i == n) || ...);

/// A call f(x...) as a function of the tensors in its arguments n...
template <class F, class I, class N, class... X> struct CallIn;
template <class F, std::size_t... i, std::size_t... n, class... X>
struct CallIn<F, std::index_sequence<i...>, std::index_sequence<n...>, X...> {
  template <std::size_t k, class A> using PassedAs = typename Passed<A, kIsOneOf<k, n...>>::Type;

  static constexpr bool fits() {
    if constexpr (((n < sizeof...(X)) && ...) && ((DifferentiableArgument<X> || !kIsOneOf<i, n...>)&&...))
      return std::invocable<const F&, const PassedAs<i, X>&...>;
    else
      return false;
  }

  const F& f;
  std::tuple<const X&...> x;

  CallIn(std::string_view name, const F& function, const X&... all) : f(function), x(all...) {
    check_function(name, f);
  }

  /// Calls f with other tensors, in the order of the arguments.
  auto operator()(std::span<const Tensor> tensors) const {
    const std::tuple<PassedAs<i, X>...> own{take<i>(tensors)...};
    return std::apply(f, own);
  }
  /// The tensors in the arguments n... of the call.
  std::vector<Tensor> tensors() const {
    return checked_tensors([](std::size_t, const Tensor&) {});
  }
  /// tensors(). Throws DTypeError if one has an integer dtype or bool.
  std::vector<Tensor> differentiable_tensors(std::string_view name) const {
    return checked_tensors(
        [&](std::size_t number, const Tensor& t) { check_differentiable(name, number, t); });
  }
  /// Converts derivatives, one for each of tensors(), to the form of the arguments; for several arguments, to
  /// a tuple.
  template <class D> auto in_form(std::vector<D> derivatives) const {
    auto next = derivatives.begin();
    const auto of = [&]<class A>(const A& argument) {
      if constexpr (OneSource<A>) {
        return D(std::move(*next++));
      } else {
        const auto first = std::exchange(next, next + size_of_list(argument));
        return std::vector<D>(first, next);
      }
    };
    if constexpr (sizeof...(n) == 1)
      return of(std::get<n...>(x));
    else
      return std::tuple{of(std::get<n>(x))...};
  }

 private:
  /// Reads each variable once.
  template <class Check> std::vector<Tensor> checked_tensors(const Check& check) const {
    std::vector<Tensor> all;
    const auto append = [&](std::size_t number, const Sources& own) {
      for (const Source& s : own.all()) {
        all.push_back(s.variable() ? s.variable()->value() : s.tensor());
        check(number, all.back());
      }
    };
    (append(n, std::get<n>(x)), ...);
    return all;
  }
  static std::ptrdiff_t size_of_list(const Sources& list) {
    return static_cast<std::ptrdiff_t>(list.all().size());
  }
  template <std::size_t k> decltype(auto) take(std::span<const Tensor>& tensors) const {
    using A = std::tuple_element_t<k, std::tuple<X...>>;
    if constexpr (!kIsOneOf<k, n...>) {
      return std::get<k>(x);
    } else if constexpr (OneSource<A>) {
      Tensor t = tensors[0];
      tensors = tensors.subspan(1);
      return t;
    } else {
      const std::ptrdiff_t size = size_of_list(std::get<k>(x));
      std::vector<Tensor> list(tensors.begin(), tensors.begin() + size);
      tensors = tensors.subspan(static_cast<std::size_t>(size));
      return list;
    }
  }
};

template <class F, class N, class... X> using CallOf = CallIn<F, std::index_sequence_for<X...>, N, X...>;
template <class F, class N, class... X>
concept CallableIn = CallOf<F, N, X...>::fits();

/// The indices of the differentiated arguments.
template <std::size_t... n> constexpr auto argument_numbers() {
  constexpr bool increase = [] {
    std::size_t last = 0, count = 0;
    return ((count++ == 0 || last < n ? (last = n, true) : false) && ...);
  }();
  static_assert(increase, "the numbers of the arguments have to increase, as in grad<0, 2>(f)");
  if constexpr (sizeof...(n) == 0)
    return std::index_sequence<0>();
  else
    return std::index_sequence<n...>();
}

/// The indices of all arguments that can be differentiated.
template <class... X, std::size_t... i> constexpr auto differentiable_numbers(std::index_sequence<i...>) {
  constexpr std::size_t count = (std::size_t{DifferentiableArgument<X>} + ... + 0);
  constexpr auto numbers = [] {
    std::array<std::size_t, count + 1> all = {};
    std::size_t next = 0;
    ((DifferentiableArgument<X> ? all[next++] = i : i), ...);
    return all;
  }();
  return [&]<std::size_t... k>(std::index_sequence<k...>) { return std::index_sequence<numbers[k]...>(); }
  (std::make_index_sequence<count>());
}
/// The indices n..., or those of all arguments that can be differentiated.
template <class N, class... X> using NumbersOrAll =
    std::conditional_t<N::size() == 0,
                       decltype(differentiable_numbers<X...>(std::index_sequence_for<X...>())), N>;

/// True. Does not compile if F returns something else than a Tensor or a Gradient.
template <class F> constexpr bool returns_one() {
  if constexpr (is_tensor_function<F>()) {
    constexpr bool one = std::same_as<ResultOf<F>, Tensor> || std::same_as<ResultOf<F>, Gradient>;
    static_assert(one,
                  "grad: the function has to return one tensor; where it returns a pair, of which the second "
                  "is not differentiated, use has_aux");
    return one;
  }
  return false;
}

template <class T> inline constexpr bool kIsPair = false;
template <class A, class B> inline constexpr bool kIsPair<std::pair<A, B>> = true;

/// Returns the value and the gradients in the form of the arguments.
template <class N, class F, class... X>
auto value_and_grad_in(std::string_view name, const F& f, const X&... x) {
  const CallOf<F, N, X...> call(name, f, x...);
  if constexpr (returns_one<CallOf<F, N, X...>>()) {
    auto d = value_and_grad_as(name, call, call.differentiable_tensors(name), {});
    return std::pair(std::move(d.first), call.in_form(std::move(d.second)));
  } else {
    return std::pair(Tensor(), Gradient());   // an assertion has failed
  }
}
/// Returns the value, the gradients and the auxiliary value of f.
template <class N, class F, class... X>
auto value_and_grad_and_aux(std::string_view name, const F& f, const X&... x) {
  const CallOf<F, N, X...> call(name, f, x...);
  using Both = decltype(call(std::span<const Tensor>()));
  if constexpr (kIsPair<Both>) {
    std::optional<typename Both::second_type> other;
    const auto first = [&](std::span<const Tensor> tensors) {
      Both both = call(tensors);
      other.emplace(std::move(both.second));
      return typename Both::first_type(std::move(both.first));
    };
    if constexpr (returns_one<std::remove_const_t<decltype(first)>>()) {
      auto d = value_and_grad_as(name, first, call.differentiable_tensors(name), {});
      return std::tuple(std::move(d.first), call.in_form(std::move(d.second)), std::move(*other));
    } else {
      return std::tuple(Tensor(), Gradient(), std::move(*other));
    }
  } else {
    static_assert(kIsPair<Both>, "has_aux: the function has to return a std::pair of the value to "
                                 "differentiate and an auxiliary result");
    return std::tuple(Tensor(), Gradient(), 0);
  }
}

}   // namespace detail

/// value_and_grad(f)(x...) is the pair of f(x...) and the gradient of its sum; with has_aux, a tuple of
/// three.
template <std::size_t... n, detail::Differentiable F = detail::UnaryOp> auto value_and_grad(F f) {
  using N = decltype(detail::argument_numbers<n...>());
  return [f = std::move(f)]<class... X>(const X&... x) requires detail::CallableIn<F, N, X...> {
    return detail::value_and_grad_in<N>("value_and_grad", f, x...);
  };
}
template <std::size_t... n, detail::Differentiable F> auto value_and_grad(F f, HasAux) {
  using N = decltype(detail::argument_numbers<n...>());
  return [f = std::move(f)]<class... X>(const X&... x) requires detail::CallableIn<F, N, X...> {
    return detail::value_and_grad_and_aux<N>("value_and_grad", f, x...);
  };
}
/// grad(f)(x...) is the gradient of the sum of f(x...); with has_aux, a pair.
template <std::size_t... n, detail::Differentiable F = detail::UnaryOp> auto grad(F f) {
  using N = decltype(detail::argument_numbers<n...>());
  return [f = std::move(f)]<class... X>(const X&... x) requires detail::CallableIn<F, N, X...> {
    return detail::value_and_grad_in<N>("grad", f, x...).second;
  };
}
template <std::size_t... n, detail::Differentiable F> auto grad(F f, HasAux) {
  using N = decltype(detail::argument_numbers<n...>());
  return [f = std::move(f)]<class... X>(const X&... x) requires detail::CallableIn<F, N, X...> {
    auto [value, gradient, other] = detail::value_and_grad_and_aux<N>("grad", f, x...);
    return std::pair(std::move(gradient), std::move(other));
  };
}

/// vjp(f)(x...) is the pair of f(x...) and its pullback, which returns a list of the gradients with respect
/// to all arguments that can be differentiated, or for vjp<0, 2>(f) with respect to arguments 0 and 2.
template <std::size_t... n, detail::Differentiable F, std::same_as<VjpOptions> Options>
auto vjp(F f, Options options) {
  return [ f = std::move(f), options ]<class... X>(
      const X&... x) requires detail::CallableIn<F, detail::NumbersOrAll<std::index_sequence<n...>, X...>,
                                                 X...> {
    using N = detail::NumbersOrAll<std::index_sequence<n...>, X...>;
    const detail::CallOf<F, N, X...> call("vjp", f, x...);
    return vjp(call, call.tensors(), options);
  };
}
template <std::size_t... n, detail::Differentiable F = detail::UnaryOp> auto vjp(F f) {
  return vjp<n...>(std::move(f), VjpOptions());
}
/// jvp(f)(x..., v...) is the derivative of f(x...) in the direction v...: half of the arguments are tangents.
/// All are tensors.
template <detail::Differentiable F = detail::UnaryOp> auto jvp(F f) {
  return [f = std::move(f)]<class... X>(const X&... x) requires(
      sizeof...(X) % 2 == 0 && detail::kTakes<const F, sizeof...(X) / 2> &&
      (std::convertible_to<const X&, const Tensor&> && ...)) {
    const std::vector<Tensor> all = {static_cast<const Tensor&>(x)...};
    const auto middle = all.begin() + sizeof...(X) / 2;
    return jvp(f, std::vector<Tensor>(all.begin(), middle), std::vector<Tensor>(middle, all.end()));
  };
}

/// jacobian(f)(x...) is the Jacobian of f(x...), which is one tensor, with respect to argument 0; jacobian<0,
/// 2>(f) returns a tuple.
template <std::size_t... n, detail::Differentiable F = detail::UnaryOp>
auto jacobian(F f, JacobianOptions options = {}) {
  using N = decltype(detail::argument_numbers<n...>());
  return [ f = std::move(f), options ]<class... X>(const X&... x) requires detail::CallableIn<F, N, X...> {
    const detail::CallOf<F, N, X...> call("jacobian", f, x...);
    if constexpr (detail::is_tensor_function<detail::CallOf<F, N, X...>>())
      return call.in_form(detail::jacobians(detail::traced("jacobian", call), call.tensors(), options));
    else
      return Tensor();
  };
}
/// hessian(f)(x...) is the Hessian of f(x...), which has one element, with respect to argument 0;
/// hessian<1>(f) differentiates with respect to argument 1.
template <std::size_t n = 0, detail::Differentiable F = detail::UnaryOp>
auto hessian(F f, JacobianOptions options = {}) {
  using N = std::index_sequence<n>;
  return [ f = std::move(f), options ]<class... X>(const X&... x) requires detail::CallableIn<F, N, X...> &&
      detail::OneSource<std::tuple_element_t<n, std::tuple<X...>>> {
    const detail::CallOf<F, N, X...> call("hessian", f, x...);
    return hessian(call, call.tensors()[0], options);
  };
}

}   // namespace tapedeck
