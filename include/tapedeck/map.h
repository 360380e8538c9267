// map: a function of elements, written as a generic lambda, as one op: one pass forward, one pass backward.
// Not included in tapedeck.h, since only this header and the headers of tapedeck/simd/ need xsimd.
#pragma once
#include <array>
#include <tuple>

#include "tapedeck/op.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"
#include "tapedeck/simd/dual.h"
#include "tapedeck/simd/pass.h"

namespace tapedeck {

/// A name that is known at compile time.
template <std::size_t N> struct MapName {
  char text[N] = {};
  consteval MapName(const char (&name)[N]) {
    for (std::size_t i = 0; i < N; ++i)
      text[i] = name[i];
  }
  /// The name.
  constexpr std::string_view view() const { return {text, N - 1}; }
};

/// The result of shifted(): an operand of map that is read shifted by `by` along its last axis, with `fill`
/// where it has no elements.
struct Shifted {
  Tensor x;
  std::int64_t by;
  double fill;
};

/// x shifted by `by` along its last axis, as an operand of map: x[…, j - by] replaces x[…, j], and `fill` is
/// used if j - by is outside of the axis. So map reads the previous element for `by` = 1, and the next one
/// for -1, without a copy; the gradient is added where the element was read. Throws ArgumentError if x is a
/// number, and ShapeError if x has no axis or `by` exceeds it.
TAPEDECK_EXPORT Shifted shifted(const Operand& x, std::int64_t by, double fill = 0);

namespace detail {

/// Information about a user's function f for the library. f itself is in the attributes of the call.
struct MapFunction {
  int inputs, results;
  kernels::UserLoops forward, vjp, jvp;
  std::vector<Tensor> (*of_tensors)(const void* attrs, std::span<const Tensor> x);   // f, computed by ops
  const kernels::Shift* (*shifts)(const void* attrs);   // shifts of the inputs; null if none is shifted
};
TAPEDECK_EXPORT Spec map_spec(const MapFunction& m, const Call& c);
TAPEDECK_EXPORT void map_forward(const MapFunction& m, const Call& c, std::span<Tensor> y);
TAPEDECK_EXPORT void map_vjp(const MapFunction& m, const Call& c, std::span<Gradient> dy,
                             std::span<Gradient> dx);
TAPEDECK_EXPORT void map_jvp(const MapFunction& m, const Call& c, Refs dx, std::span<Tensor> dy);

template <class R> inline constexpr bool kIsList = requires { std::tuple_size<R>::value; };
template <class R> inline constexpr std::size_t kResults = 1;
template <class R>
requires kIsList<R>
inline constexpr std::size_t kResults<R> = std::tuple_size_v<R>;

template <class R> inline constexpr bool kIsCondition = false;
template <class D> inline constexpr bool kIsCondition<DualCondition<D>> = true;

/// The instruction set that a file is compiled for. It is part of the types of all declarations that follow,
/// so that files of one program that are compiled for different instruction sets share no code.
using MapTarget = xsimd::batch<float>::arch_type;

/// The attributes of a map with shifted operands.
template <class F, int n> struct MovedFunction {
  F f;
  kernels::Shift shifts[n];
};

template <std::size_t, class T> struct At { using Type = T; };   // clang 14 loses the pack of an alias
template <class F, class D, std::size_t... I> constexpr bool takes_numbers(std::index_sequence<I...>) {
  return std::invocable<const F&, typename At<I, const D&>::Type...>;
}
template <class F, int n, class A> inline constexpr bool kTakesNumbers =
    takes_numbers<F, Dual<float, 0, A>>(std::make_index_sequence<static_cast<std::size_t>(n)>{});

/// The loops of F, a function of n elements, some of which may be shifted: for its values, its gradients, and
/// its tangents in one direction.
template <class F, int n, class A, bool moved = false> struct MapLoops {
  using Attributes = std::conditional_t<moved, MovedFunction<F, n>, F>;
  template <class T> using Batch = xsimd::batch<T, A>;
  template <class T> static constexpr std::int64_t kWidth = static_cast<std::int64_t>(Batch<T>::size);
  static constexpr auto kInputs = std::make_index_sequence<static_cast<std::size_t>(n)>{};

  template <class D, std::size_t... I>
  static auto value_of(const F& f, const D* x, std::index_sequence<I...>) {
    return f(x[I]...);
  }
  using Result =
      decltype(value_of(std::declval<const F&>(), static_cast<const Dual<float, 0, A>*>(nullptr), kInputs));
  static constexpr bool list = kIsList<Result>;   // whether f returns a list of results
  static constexpr std::size_t results = kResults<Result>;
  static constexpr auto kOutputs = std::make_index_sequence<results>{};

  /// Calls use(results...) with the results of f as duals, passed as arguments so that they stay in
  /// registers.
  template <class D, class Use, class... X> static void call(const F& f, const Use& use, const X&... x) {
    if constexpr (list)
      std::apply([&](const auto&... y) { use(as<D>(y)...); }, f(x...));
    else
      use(as<D>(f(x...)));
  }
  template <class D, class R> static D as(const R& result) {
    static_assert(!kIsCondition<R>,
                  "map: the lambda returns a condition; return where(condition, 1, 0) for a number");
    static_assert(kIsCondition<R> || std::is_convertible_v<R, D>, "map: the lambda must return a number");
    return D(result);
  }

  template <class T, std::size_t... I>
  static std::array<kernels::Stream<T>, sizeof...(I)> streams(const kernels::UserRow<T>& row,
                                                              std::size_t from, std::index_sequence<I...>) {
    return {row.x[from + I]...};
  }

  template <class T, std::size_t... I, std::size_t... K>
  static void forward(const F& f, const kernels::UserRow<T>& row, std::index_sequence<I...>,
                      std::index_sequence<K...>) {
    using D = Dual<T, 0, A>;
    const auto in = streams(row, 0, kInputs);   // locals: a vector store may alias anything else
    T* const out[] = {row.out[K]...};
    for (std::int64_t i = 0; i < row.n; i += kWidth<T>) {
      call<D>(
          f, [&](const auto&... y) { (y.value.store_unaligned(out[K] + i), ...); },
          D(kernels::load<Batch<T>>(in[I], i))...);
    }
  }

  template <class T, std::size_t... I, std::size_t... K>
  static void vjp(const F& f, const kernels::UserRow<T>& row, std::index_sequence<I...>,
                  std::index_sequence<K...>) {
    using D = Dual<T, n, A>;
    const auto in = streams(row, 0, kInputs);
    const auto dys = streams(row, n, kOutputs);
    T* const out[] = {row.out[I]...};
    const kernels::Put how[] = {row.put[I]...};
    Batch<T> sums[n];
    for (Batch<T>& s : sums)
      s = Batch<T>(T(0));
    const Batch<T> one(T(1));
    for (std::int64_t i = 0, end = row.n; i < end; i += kWidth<T>) {
      // Load all cotangents first, since a gradient may be written over one of them.
      const Batch<T> dy[] = {kernels::load<Batch<T>>(dys[K], i)...};
      const auto put_gradients = [&](const auto&... y) {
        (kernels::put(how[I], out[I], i, gradient<I>(dys.data(), dy, kOutputs, y...), sums[I]), ...);
      };
      call<D>(f, put_gradients, D(kernels::load<Batch<T>>(in[I], i), static_cast<int>(I), one)...);
    }
    (kernels::put_sum(how[I], out[I], sums[I]), ...);
  }
  template <std::size_t I, class T, std::size_t... K, class... Y>
  static Batch<T> gradient(const kernels::Stream<T>* dys, const Batch<T>* dy, std::index_sequence<K...>,
                           const Y&... y) {
    return (term<I>(y, dy[K], dys[K].mask) + ...);
  }
  // The contribution of a result to a gradient. A result without a cotangent contributes 0, since its
  // derivative may be infinite.
  template <std::size_t I, class D>
  static typename D::Batch term(const D& y, const typename D::Batch& dy, std::int64_t used) {
    if (!(y.depends >> I & 1) || (results > 1 && !used)) return typename D::Batch(0);
    return dy * y.tangent[I];
  }

  template <class T, std::size_t... I, std::size_t... K>
  static void jvp(const F& f, const kernels::UserRow<T>& row, std::index_sequence<I...>,
                  std::index_sequence<K...>) {
    using D = Dual<T, 1, A>;
    const auto in = streams(row, 0, kInputs), dx = streams(row, n, kInputs);
    T* const out[] = {row.out[K]...};
    for (std::int64_t i = 0; i < row.n; i += kWidth<T>) {
      call<D>(
          f, [&](const auto&... dy) { (dy.tangent[0].store_unaligned(out[K] + i), ...); },
          D(kernels::load<Batch<T>>(in[I], i), 0, kernels::load<Batch<T>>(dx[I], i))...);
    }
  }

  // The loops work on a copy of the function, since stores may alias its captures. They are flattened so that
  // the compiler knows Dual::depends.
  template <class T>
  [[gnu::flatten]] static void run_forward(const void* attrs, const kernels::UserRow<T>& row) {
    forward<T>(copy(attrs), row, kInputs, kOutputs);
  }
  template <class T> [[gnu::flatten]] static void run_vjp(const void* attrs, const kernels::UserRow<T>& row) {
    vjp<T>(copy(attrs), row, kInputs, kOutputs);
  }
  template <class T> [[gnu::flatten]] static void run_jvp(const void* attrs, const kernels::UserRow<T>& row) {
    jvp<T>(copy(attrs), row, kInputs, kOutputs);
  }
  static const F& function_of(const void* attrs) {
    if constexpr (moved)
      return static_cast<const Attributes*>(attrs)->f;
    else
      return *static_cast<const F*>(attrs);
  }
  static std::conditional_t<std::is_trivially_copyable_v<F>, F, const F&> copy(const void* attrs) {
    return function_of(attrs);
  }
  static const kernels::Shift* shifts_of(const void* attrs) {
    if constexpr (moved)
      return static_cast<const Attributes*>(attrs)->shifts;
    else
      return nullptr;
  }

  static std::vector<Tensor> of_tensors(const void* attrs, std::span<const Tensor> x) {
    const auto tensor = [&](const auto& y) {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(y)>>)
        return full({}, static_cast<double>(y), x[0].dtype());
      else
        return Tensor(y);
    };
    const auto y = value_of(function_of(attrs), x.data(), kInputs);
    if constexpr (list)
      return std::apply([&](const auto&... v) { return std::vector<Tensor>{tensor(v)...}; }, y);
    else
      return {tensor(y)};
  }

  static constexpr MapFunction function = {n,
                                           static_cast<int>(results),
                                           {run_forward<float>, run_forward<double>},
                                           {run_vjp<float>, run_vjp<double>},
                                           {run_jvp<float>, run_jvp<double>},
                                           of_tensors,
                                           shifts_of};
};

template <class Loops> constexpr Infer map_infer() {
  if constexpr (Loops::results == 1)
    return [](const Call& c) { return map_spec(Loops::function, c); };
  else
    return [](const Call& c) { return std::vector<Spec>(Loops::results, map_spec(Loops::function, c)); };
}

template <MapName name, class F, int n, class A = MapTarget, bool moved = false,
          class Loops = MapLoops<F, n, A, moved>>
inline constexpr Op kMapOp = {
    .name = name.view(),
    .doc = "A user's function of elements.",
    .infer = map_infer<Loops>(),
    .forward = {[](const Call& c, std::span<Tensor> y) { map_forward(Loops::function, c, y); },
                moved ? Outputs::fresh : Outputs::may_overwrite},
    .rule = {
        .kind = RuleKind::custom,
        .reads_x = (1u << n) - 1,
        .reads_shapes = true,
        .accepts_none = true,
        .adds = static_cast<std::uint8_t>((1u << n) - 1),
        .jvp_stacks = true,
        .vjp = [](const Call& c, std::span<Gradient> dy,
                  std::span<Gradient> dx) { map_vjp(Loops::function, c, dy, dx); },
        .jvp = [](const Call& c, Refs dx, std::span<Tensor> dy) { map_jvp(Loops::function, c, dx, dy); }},
};

/// Runs the map on up to kMapInputs operands. Returns a Tensor, or an array of tensors if f returns a list.
template <MapName name, class F, int n, class A, bool moved>
auto run_map(const typename MapLoops<F, n, A, moved>::Attributes& attrs,
             std::initializer_list<Operand> operands) {
  using Loops = MapLoops<F, n, A, moved>;
  constexpr const Op& op = kMapOp<name, F, n, A, moved>;
  Tensor converted[n];
  const Tensor* refs[n];
  ops::promote(operands, converted, refs);
  if constexpr (Loops::list) {
    std::vector<Tensor> inputs;
    for (const Tensor* t : refs)
      inputs.push_back(*t);
    std::vector<Tensor> y = op.run(inputs, Attrs(attrs));
    std::array<Tensor, Loops::results> result;
    for (std::size_t k = 0; k < Loops::results; ++k)
      result[k] = std::move(y[k]);
    return result;
  } else {
    unsigned temporaries = 0, bit = 1;
    for (const Operand& o : operands) {
      if (o.temporary()) temporaries |= bit;
      bit <<= 1;
    }
    return op({refs, n}, Attrs(attrs), temporaries);
  }
}

template <class X> inline constexpr bool kIsShifted = std::same_as<std::remove_cvref_t<X>, Shifted>;
/// The tensor that is shifted, or the operand itself; and the shift.
template <class X> decltype(auto) unmoved(X&& x) {
  if constexpr (kIsShifted<X>)
    return std::as_const(x.x);
  else
    return std::forward<X>(x);
}
template <class X> kernels::Shift shift_of(const X& x) {
  if constexpr (kIsShifted<X>)
    return {x.by, x.fill};
  else
    return {};
}

}   // namespace detail

/// An operand of map: an operand of ops, or one that is shifted along its last axis.
template <class X>
concept MapOperand = detail::kIsShifted<X> || std::convertible_to<X, Operand>;

/// Applies f to every element of up to sixteen f32 or f64 tensors, which broadcast; mixed dtypes are
/// promoted, and numbers have the dtype of the tensors: map([](auto x, auto a, auto b) { return a * exp(-b *
/// x * x); }, x, a, b). All of f is one op, computed in one pass over memory. Its derivatives are computed
/// with dual numbers, in one pass, too.
///
/// f is a generic lambda that must also accept Tensors, on which its second derivatives are computed. It
/// calls elementwise ops by their names, compares with <, <=, >, >=, equal and not_equal, and selects with
/// where(condition, a, b); docs/guide/map.md lists all. f must capture by value, since a tape keeps a copy of
/// it. A std::array, pair or tuple of up to eight results makes map return a std::array of as many tensors,
/// of the shape to which all inputs broadcast. With shifted(x, k) among the tensors, f reads the neighbours
/// of an element.
///
/// map<"name">(f, …) shows that name in messages and lists of ops. Throws ShapeError if shapes do not
/// broadcast, or if a shifted tensor does not have the last axis of the result, and DTypeError for complex
/// numbers and if all tensors are integers.
template <MapName name = "map", class A = detail::MapTarget, class F, MapOperand... X>
auto map(const F& f, X&&... x) requires(sizeof...(X) > 0) {
  constexpr int n = sizeof...(X);
  static_assert(n >= 1 && n <= kernels::kMapInputs, "map: takes one to sixteen tensors");
  static_assert(std::is_copy_constructible_v<F>, "map: the lambda must be copyable, since a tape keeps it");
  static_assert(detail::kTakesNumbers<F, n, A>,
                "map: the lambda has to take as many numbers as there are tensors, as auto, and be callable "
                "const: [](auto x, auto y) …");
  if constexpr (detail::kTakesNumbers<F, n, A>) {
    using Loops = detail::MapLoops<F, n, A>;
    static_assert(Loops::results >= 1 && Loops::results <= kernels::kMapResults,
                  "map: the lambda returns one to eight results");
    if constexpr ((detail::kIsShifted<X> || ...))
      return detail::run_map<name, F, n, A, true>({f, {detail::shift_of(x)...}},
                                                  {Operand(detail::unmoved(std::forward<X>(x)))...});
    else
      return detail::run_map<name, F, n, A, false>(f, {Operand(std::forward<X>(x))...});
  }
}

}   // namespace tapedeck
