// Dual numbers: values with their tangents, for derivatives in forward mode.
#pragma once
#include "tapedeck/simd/numbers.h"

namespace tapedeck {

/// A value with N tangents: N is 0 to compute values only, 1 for a derivative in one direction, and the
/// number of inputs for all partial derivatives. The numbers of nested derivatives differ in V or in Tag, so
/// that they cannot be mixed by mistake.
template <class V, int N, class Tag> struct DualNumber {
  using Value = V;
  using Batch = V;   // if V is a batch
  using value_type = typename V::value_type;
  using Condition = typename detail::ConditionOf<V>::Type;
  using AllTangents = std::make_index_sequence<static_cast<std::size_t>(N)>;

  V value;
  /// With N = 0, there is one unused element.
  V tangent[N > 0 ? N : 1];   // NOLINT(bugprone-branch-clone): N may be 1
  /// Bit i: tangent[i] may be other than 0. A constant for the compiler if the loop is inlined.
  unsigned depends = 0;

  DualNumber() = default;
  /// A constant.
  template <class C>
  requires detail::kIsConstant<C, DualNumber> DualNumber(const C& c) : value(detail::constant<V>(c)) {
    clear(AllTangents());
  }
  // Copies member by member, so that the members stay in registers.
  DualNumber(const DualNumber& o) { *this = o; }
  DualNumber& operator=(const DualNumber& o) {
    value = o.value;
    depends = o.depends;
    copy_tangents(o, AllTangents());
    return *this;
  }
  /// An input, with its tangent number i.
  DualNumber(const V& v, int i, const V& t) : DualNumber(v) {
    tangent[i] = t;
    depends = 1u << i;
  }

  /// The result y of a function of *this, by its partial (see partials.h).
  template <class Partial> DualNumber unary(const V& y, const Partial& partial) const {
    DualNumber r(y);
    r.add(*this, partial, value);
    return r;
  }
  /// The result y of a function of *this and b, by its partials.
  template <class PartialA, class PartialB> DualNumber binary(const DualNumber& b, const V& y,
                                                              const PartialA& partial_a,
                                                              const PartialB& partial_b) const {
    DualNumber r(y);
    r.add(*this, partial_a, value, b.value);
    r.add(b, partial_b, value, b.value);
    return r;
  }
  /// The value y with the tangents of *this where the condition is true, and of b elsewhere. They are
  /// selected, not multiplied by 1 and 0, since tangents that are not chosen may be infinite.
  DualNumber chosen(const V& y, const Condition& condition, const DualNumber& b) const {
    DualNumber r(y);
    r.choose(condition, *this, b, AllTangents());
    r.depends = depends | b.depends;
    return r;
  }

 private:
  template <std::size_t... I> void clear(std::index_sequence<I...>) {
    ((tangent[I] = detail::constant<V>(0)), ...);
  }
  template <std::size_t... I> void copy_tangents(const DualNumber& o, std::index_sequence<I...>) {
    ((tangent[I] = o.tangent[I]), ...);
  }
  // Adds the tangents of x, each times the partial, which is computed only if x has any.
  template <class Partial, class... In>
  void add(const DualNumber& x, const Partial& partial, const In&... inputs) {
    if constexpr (N > 0) {
      if (!x.depends) return;
      add_product(x, detail::partial_at(partial, value, inputs...), AllTangents());
      depends |= x.depends;
    }
  }
  template <std::size_t... I> void add_product(const DualNumber& x, const V& p, std::index_sequence<I...>) {
    if constexpr (N == 1 && detail::kIsScalar<V>)   // a branch costs more than a product here
      tangent[0] += x.tangent[0] * p;
    else
      ((x.depends >> I & 1
            ? void(tangent[I] = depends >> I & 1 ? detail::multiply_add(x.tangent[I], p, tangent[I])
                                                 : V(x.tangent[I] * p))
            : void()),
       ...);
  }
  template <std::size_t... I>
  void choose(const Condition& c, const DualNumber& a, const DualNumber& b, std::index_sequence<I...>) {
    ((tangent[I] =
          (a.depends | b.depends) >> I & 1 ? detail::chosen(c, a.tangent[I], b.tangent[I]) : tangent[I]),
     ...);
  }
};

/// A dual number for a batch of elements, with which a user's map computes. The instruction set A is part of
/// the type, so one program can hold code for several of them.
template <class T, int N, class A> using Dual = DualNumber<xsimd::batch<T, A>, N>;

}   // namespace tapedeck
