// Probe: an argument of a partial at compile time. Its type encodes which arguments a value was computed
// from, so the type of a partial's result encodes which arguments the partial reads. Every function that
// partials call needs an overload here.
#pragma once
#include <type_traits>

namespace tapedeck {

/// A value that was computed from the arguments whose bits are set.
template <unsigned Read> struct Probe {};

/// The bits of a Probe; a plain number has none.
template <class T> inline constexpr unsigned probe_reads = 0;
template <unsigned A> inline constexpr unsigned probe_reads<Probe<A>> = A;

template <class T> inline constexpr bool kIsProbe = false;
template <unsigned A> inline constexpr bool kIsProbe<Probe<A>> = true;
/// Arguments that are Probes or numbers, at least one of them a Probe.
template <class... X>
concept Probed = (kIsProbe<X> || ...) && ((kIsProbe<X> || std::is_arithmetic_v<X>)&&...);
/// The type of a value that was computed from all of these.
template <class... X> using Joined = Probe<(probe_reads<X> | ...)>;

template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> operator+(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> operator-(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> operator*(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> operator/(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> operator<(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> operator<=(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> operator>(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> operator>=(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> maximum(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> minimum(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> pow(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> equal(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> mul_no_nan(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> div_no_nan(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> xlogy(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> xlog1py(A, B) { return {}; }
template <class A, class B>
requires Probed<A, B>
constexpr Joined<A, B> xdivy(A, B) { return {}; }
template <class C, class A, class B>
requires Probed<C, A, B>
constexpr Joined<C, A, B> where(C, A, B) { return {}; }

template <unsigned A> constexpr Probe<A> operator-(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> abs(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> sign(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> exp(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> log(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> sqrt(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> sin(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> cos(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> times(Probe<A>, double) { return {}; }
template <unsigned A> constexpr Probe<A> floor(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> sinh(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> cosh(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> tanh(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> sigmoid(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> has_log(Probe<A>) { return {}; }
template <unsigned A, unsigned B> constexpr Probe<A | B> no_inverse(Probe<A>, Probe<B>) { return {}; }

/// The arguments that a lambda's result depends on, as bits.
template <class F, unsigned... Bit> inline constexpr unsigned read_by =
    probe_reads<std::invoke_result_t<F, Probe<Bit>...>>;

}   // namespace tapedeck
