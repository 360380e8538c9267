// Adapts user functions to one signature. A function may accept tensors as separate arguments or as a span,
// and return one tensor, or a pair, tuple or list of tensors.
#pragma once
#include <array>
#include <concepts>
#include <functional>
#include <iterator>
#include <string_view>
#include <tuple>

#include "tapedeck/gradient.h"

namespace tapedeck {

/// The common signature: a function from tensors to tensors.
using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

namespace detail {

/// "caller: the function does not take 3 tensors"
[[noreturn]] TAPEDECK_EXPORT void throw_count(std::string_view caller, std::size_t arguments);
/// "caller: the function returns 2 tensors, not 3"
[[noreturn]] TAPEDECK_EXPORT void throw_results(std::string_view caller, std::size_t returned,
                                                std::size_t wanted);

/// "caller: the function is empty"
[[noreturn]] TAPEDECK_EXPORT void throw_empty(std::string_view caller);
/// Throws ArgumentError for an empty std::function and a null pointer.
template <class F> void check_function(std::string_view caller, const F& f) {
  if constexpr (std::is_pointer_v<F> || requires { f.target_type(); })
    if (!f) throw_empty(caller);
}

inline constexpr std::size_t kMaxArguments = 8;   // for functions that take tensors as separate arguments

template <class R> using Value = std::conditional_t<std::convertible_to<R, const Tensor&> &&
                                                        !std::same_as<std::remove_cvref_t<R>, Gradient>,
                                                    Tensor, std::remove_cvref_t<R>>;
template <std::size_t> struct One { using Type = const Tensor&; };   // clang 14 loses the pack of an alias
template <class F, std::size_t... I> constexpr bool takes(std::index_sequence<I...>) {
  return std::invocable<F&, typename One<I>::Type...>;
}
template <class F, std::size_t... I> constexpr auto result_of(std::index_sequence<I...>) {
  return std::type_identity<Value<std::invoke_result_t<F&, typename One<I>::Type...>>>{};
}
template <class F, std::size_t N> inline constexpr bool kTakes = takes<F>(std::make_index_sequence<N>{});

/// The smallest number of tensors, from N on, that F accepts as separate arguments. More than kMaxArguments
/// if F accepts none. With the smallest from 0 on, its result type is determined.
template <class F, std::size_t N = 0> constexpr std::size_t fewest() {
  if constexpr (N > kMaxArguments)
    return N;
  else if constexpr (kTakes<F, N>)
    return N;
  else
    return fewest<F, N + 1>();
}
template <class F> inline constexpr std::size_t kFewest = fewest<F>();
template <class F> inline constexpr bool takes_each = kFewest<F> <= kMaxArguments;
template <class F> constexpr bool takes_tensors() {
  if constexpr (takes_each<F>)
    return true;
  else
    return std::invocable<F&, std::span<const Tensor>>;
}
template <class F> inline constexpr bool kTakesTensors = takes_tensors<F>();

template <class F> constexpr auto find_result() {
  if constexpr (takes_each<F>)
    return result_of<F>(std::make_index_sequence<kFewest<F>>{});
  else
    return std::type_identity<Value<std::invoke_result_t<F&, std::span<const Tensor>>>>{};
}
/// The result type of F; Tensor for types that convert to Tensor, such as Variable, but Gradient for
/// Gradient, which may be none.
template <class F> using ResultOf = typename decltype(find_result<F>())::type;

/// Whether S is a structure: a tensor or gradient, or a list, array, pair or tuple of structures.
template <class S> constexpr bool is_structure() {
  if constexpr (std::is_void_v<S>) {
    return false;
  } else if constexpr (std::same_as<S, Tensor> || std::same_as<S, Gradient>) {
    return true;
  } else if constexpr (requires(S & s) { s.begin(), s.end(); }) {
    using Element = std::remove_cvref_t<decltype(*std::declval<S&>().begin())>;
    return !std::same_as<S, Element> && is_structure<Element>();
  } else if constexpr (requires { std::tuple_size<S>::value; }) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (is_structure<std::remove_cvref_t<std::tuple_element_t<I, S>>>() && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<S>>{});
  } else {
    return false;
  }
}
/// Returns true if F is a function of tensors; otherwise rejects it at compile time with a message. Code that
/// a caller guards with `if constexpr` on this result adds no further compiler errors.
template <class F> constexpr bool is_tensor_function() {
  static_assert(kTakesTensors<F>,
                "the function has to take tensors: up to eight arguments const Tensor&, or one "
                "std::span<const Tensor>");
  if constexpr (kTakesTensors<F>) {
    static_assert(
        is_structure<ResultOf<F>>(),
        "the function has to return a Tensor or Gradient, or a list, array, pair or tuple of these, but it "
        "returns something else (of a Variable, return value())");
    return is_structure<ResultOf<F>>();
  }
  return false;
}

/// Calls f with x as separate arguments, which are the N tensors that it accepts, or more.
template <std::size_t N, class F>
ResultOf<F> call_each(std::string_view caller, F& f, std::span<const Tensor> x) {
  if constexpr (N > kMaxArguments) {
    throw_count(caller, x.size());
  } else {
    if (x.size() == N) return [&]<std::size_t... I>(std::index_sequence<I...>)->ResultOf<F> {
        return f(x[I]...);
      }
    (std::make_index_sequence<N>{});
    return call_each<fewest<F, N + 1>()>(caller, f, x);
  }
}
/// Calls f with the tensors as separate arguments if it accepts that, else with a span.
template <class F> ResultOf<F> call(std::string_view caller, F& f, std::span<const Tensor> x) {
  check_function(caller, f);
  if constexpr (takes_each<F>)
    return call_each<kFewest<F>>(caller, f, x);
  else
    return f(x);
}

/// Calls `visit` with every tensor and gradient of a structure: a tensor or gradient, or a list, array, pair
/// or tuple of structures.
template <class S, class V> void for_each_part(S& s, const V& visit) {
  if constexpr (std::same_as<S, Tensor> || std::same_as<S, Gradient>) {
    visit(s);
  } else if constexpr (requires { s.begin(), s.end(); }) {
    for (auto& e : s)
      for_each_part(e, visit);
  } else {
    static_assert(
        requires { std::tuple_size<S>::value; },
        "the function has to return tensors, gradients, or lists, arrays, pairs and tuples of these");
    std::apply([&](auto&... e) { (for_each_part(e, visit), ...); }, s);
  }
}
/// Calls `visit` with every tensor of a structure. Gradients are made dense; for a gradient that is none, the
/// tensor is undefined.
template <class S, class V> void for_each_tensor(S& structure, const V& visit) {
  for_each_part(structure, [&]<class T>(T& part) {
    if constexpr (std::same_as<T, Tensor>) {
      visit(part);
    } else {
      const bool is_none = !part.defined();
      Tensor t = is_none ? Tensor() : std::move(part).dense();
      visit(t);
      if (!is_none || t.defined()) part = std::move(t);   // otherwise part remains none, with its reason
    }
  });
}
template <class S> std::vector<Tensor> tensors_of(S& structure) {
  if constexpr (std::same_as<S, std::vector<Tensor>>) {
    return structure;
  } else {
    std::vector<Tensor> all;
    for_each_tensor(structure, [&](const Tensor& t) { all.push_back(t); });
    return all;
  }
}
/// Replaces the tensors of a structure, in order, by the same number of others.
template <class S> void replace_tensors(S& structure, std::span<Tensor> by) {
  auto next = by.begin();
  for_each_tensor(structure, [&](Tensor& t) { t = std::move(*next++); });
}
/// Builds a structure from these tensors: a list, or a type that determines how many there are.
template <class S> S structure_of(std::string_view caller, std::vector<Tensor> tensors) {
  if constexpr (std::same_as<S, std::vector<Tensor>>) {
    return tensors;
  } else if constexpr (std::same_as<S, std::vector<Gradient>>) {
    return S(std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end()));
  } else {
    S result{};
    std::size_t n = 0;
    for_each_tensor(result, [&](const Tensor&) { ++n; });
    if (n != tensors.size()) throw_results(caller, n, tensors.size());
    replace_tensors(result, tensors);
    return result;
  }
}

/// Converts f to a Function.
template <class F> Function function_of(std::string_view caller, F f) {
  return [caller, f = std::move(f)](std::span<const Tensor> x) mutable {
    if constexpr (std::same_as<ResultOf<F>, std::vector<Tensor>>) {
      return call(caller, f, x);
    } else {
      auto result = call(caller, f, x);
      return tensors_of(result);
    }
  };
}

template <class X> void append_to(std::vector<Tensor>& all, const X& one) {
  if constexpr (std::convertible_to<const X&, const Tensor&>)
    all.push_back(static_cast<const Tensor&>(one));
  else
    all.insert(all.end(), one.begin(), one.end());
}
/// Flattens arguments (tensors, variables and lists of tensors) into one list.
template <class... X> std::vector<Tensor> list_of(const X&... x) {
  std::vector<Tensor> all;
  (append_to(all, x), ...);
  return all;
}

}   // namespace detail
}   // namespace tapedeck
