// Makes scalar functions callable in the lambdas of op tables.
#pragma once
#include "op/elementwise.h"
#include "op/rules.h"
#include "tapedeck/ops.h"

namespace tapedeck {

/// A function that the lambdas of ops call. On vectors it applies of_numbers to each element, or to the whole
/// vector if it accepts vectors; f32 vectors may use another function, of_f32. On tensors it runs the op.
template <auto of_numbers, auto op, auto of_f32 = of_numbers> struct OfNumbers {
  template <class... X>
  requires std::is_invocable_v<decltype(of_numbers), decltype(static_cast<void>(std::declval<X>()), 0.0)...>
  constexpr auto operator()(const X&... x) const {
    if constexpr ((std::is_same_v<X, Tensor> || ...))
      return op(x...);
    else if constexpr (Probed<X...>)
      return Joined<X...>();
    else
      return of_vectors(vector_of<std::common_type_t<X...>>(x)...);
  }

 private:
  template <class V, class... More> static V of_vectors(const V& first, const More&... more) {
    if constexpr (std::is_invocable_v<decltype(of_numbers), V, More...>)
      return of_numbers(first, more...);
    else
      // NOLINTNEXTLINE(bugprone-branch-clone): the two may be one function
      return detail::by_element(detail::kSingle<typename V::value_type> ? of_f32 : of_numbers, first,
                                more...);
  }
  template <class V, class X> static V vector_of(const X& x) {
    if constexpr (std::is_arithmetic_v<X>)
      return V(static_cast<typename V::value_type>(x));
    else
      return x;
  }
};

}   // namespace tapedeck
