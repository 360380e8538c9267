// map_scan: a recurrence over time whose step is a generic lambda of elements, as one op: its loop and the
// loop of its gradient are compiled into the user's program. Like map.h, not included in tapedeck.h.
#pragma once
#include <vector>

#include "tapedeck/control.h"
#include "tapedeck/map.h"
#include "tapedeck/simd/adjoint.h"
#include "tapedeck/simd/scan_pass.h"

namespace tapedeck {

/// Options of map_scan.
struct MapScanOptions {
  std::optional<std::int64_t> length = {};   // number of steps; required if there are no xs
  bool reverse = false;                      // iterate from the last entries of xs to the first
  /// A tape keeps the carries of all steps if they fit into this many bytes. Otherwise the gradient
  /// recomputes the carries of a few lanes at a time: of all steps if these fit, or else of some steps at
  /// regular distances first and then of the steps in between. The result is the same.
  std::int64_t checkpoint_bytes = std::int64_t{1} << 25;
};

namespace detail {

/// Settings of a map_scan and of its gradient; for the latter, also the cotangents that exist and the
/// gradients that are requested.
struct MapScanSettings {
  std::int64_t steps, checkpoint_bytes;
  bool reverse;
  bool keeps = false;   // whether the carries before each step are results, too
  std::uint64_t given = 0, wanted = 0;
};
/// Information about a user's step function for the library.
struct MapScanFunction {
  int carries, xs, parameters, outputs;
  kernels::ScanLoops forward, vjp, jvp;
  /// Computes the recurrence on tensors, by ops.
  std::vector<Tensor> (*of_tensors)(const void* attrs, std::span<const Tensor> x);
  const MapScanSettings& (*settings)(const void* attrs);

  int inputs() const { return carries + xs + parameters; }
  int results() const { return carries + outputs; }
};
TAPEDECK_EXPORT std::vector<Tensor> map_scan_inputs(std::string_view name, const MapScanFunction& m,
                                                    std::vector<Tensor> x, const MapScanOptions& options,
                                                    MapScanSettings& settings);
/// Whether a tape needs the carries of all steps, and they fit.
TAPEDECK_EXPORT bool map_scan_keeps(const MapScanFunction& m, std::span<const Tensor> x,
                                    const MapScanSettings& settings);
TAPEDECK_EXPORT std::vector<Spec> map_scan_specs(const MapScanFunction& m, const Call& c);
TAPEDECK_EXPORT void map_scan_forward(const MapScanFunction& m, const Call& c, std::span<Tensor> y);
/// The inputs of the ops of the derivatives. Also sets which of them exist.
TAPEDECK_EXPORT std::vector<Tensor> map_scan_vjp_inputs(const MapScanFunction& m, const Call& c,
                                                        std::span<Gradient> dy, MapScanSettings& settings);
TAPEDECK_EXPORT std::vector<Tensor> map_scan_jvp_inputs(const MapScanFunction& m, const Call& c, Refs dx,
                                                        MapScanSettings& settings);
TAPEDECK_EXPORT std::vector<Spec> map_scan_vjp_specs(const MapScanFunction& m, const Call& c);
TAPEDECK_EXPORT void map_scan_run_vjp(const MapScanFunction& m, const Call& c, std::span<Tensor> y);
TAPEDECK_EXPORT void map_scan_run_jvp(const MapScanFunction& m, const Call& c, std::span<Tensor> y);
/// The derivatives of these ops, computed by ops.
TAPEDECK_EXPORT void map_scan_vjp_of_vjp(const MapScanFunction& m, const Call& c, std::span<Gradient> dy,
                                         std::span<Gradient> dx);
TAPEDECK_EXPORT void map_scan_vjp_of_jvp(const MapScanFunction& m, const Call& c, std::span<Gradient> dy,
                                         std::span<Gradient> dx);

/// A step function and its settings.
template <class F> struct MapScanAttrs {
  F f;
  MapScanSettings settings;
};

/// The loops of F, a step function of C carries, X entries of xs and P parameters.
template <class F, std::size_t C, std::size_t X, std::size_t P, class A> struct MapScanLoops {
  template <class T> using Batch = xsimd::batch<T, A>;
  template <class T> static constexpr std::int64_t kWidth = static_cast<std::int64_t>(Batch<T>::size);
  using Attributes = MapScanAttrs<F>;

  template <class D> static auto step(const F& f, const std::array<D, C>& carry, const std::array<D, X>& x,
                                      const std::array<D, P>& p) {
    return f(carry, x, p);
  }
  using Result = decltype(step<Dual<float, 0, A>>(std::declval<const F&>(), {}, {}, {}));
  static_assert(std::tuple_size_v<Result> == 2,
                "map_scan: the lambda returns a pair: an array of the next carries, and one of outputs");
  static_assert(std::tuple_size_v<std::tuple_element_t<0, Result>> == C,
                "map_scan: the lambda returns as many carries as it takes");
  static constexpr std::size_t Y = std::tuple_size_v<std::tuple_element_t<1, Result>>;

  /// A group of lanes: a whole vector of them, or fewer.
  template <class T> struct Lanes {
    std::int64_t at, count, all;

    bool whole() const { return count == kWidth<T>; }
    Batch<T> load(const T* p) const {
      if (whole()) return Batch<T>::load_unaligned(p + at);
      T some[static_cast<std::size_t>(kWidth<T>)] = {};
      std::copy_n(p + at, count, some);
      return Batch<T>::load_unaligned(some);
    }
    void store(const Batch<T>& v, T* p) const {
      if (whole()) return v.store_unaligned(p + at);
      T some[static_cast<std::size_t>(kWidth<T>)];
      v.store_unaligned(some);
      std::copy_n(some, count, p + at);
    }
    Batch<T> load(const T* p, std::int64_t step) const { return load(p + step * all); }
    void store(const Batch<T>& v, T* p, std::int64_t step) const { store(v, p + step * all); }
  };
  /// Calls run(lanes, f) for all lanes of a pass, a vector of them at a time. `run` receives a copy of the
  /// function, since stores may alias its captures.
  template <class T, class Run>
  static void for_lanes(const void* attrs, const kernels::ScanPass<T>& pass, const Run& run) {
    const std::conditional_t<std::is_trivially_copyable_v<F>, F, const F&> f =
        static_cast<const Attributes*>(attrs)->f;
    for (std::int64_t at = pass.begin; at < pass.end; at += kWidth<T>)
      run(Lanes<T>{at, std::min(kWidth<T>, pass.end - at), pass.lanes}, f);
  }
  template <class T> static std::int64_t entry(const kernels::ScanPass<T>& pass, std::int64_t step) {
    return pass.reverse ? pass.steps - 1 - step : step;
  }
  template <std::size_t n, class G> static auto array_of(const G& g) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      using E = decltype(g(std::size_t{0}));
      return std::array<E, n>{g(I)...};
    }
    (std::make_index_sequence<n>());
  }
  /// Converts the results of a step to numbers of type D.
  template <class D, class R> static auto numbers(const R& result) {
    return array_of<std::tuple_size_v<R>>([&](std::size_t k) { return D(result[k]); });
  }

  template <class T>
  [[gnu::flatten]] static void forward(const void* attrs, const kernels::ScanPass<T>& pass) {
    using D = Dual<T, 0, A>;
    for_lanes<T>(attrs, pass, [&](const Lanes<T>& lanes, const F& f) {
      auto carry = array_of<C>([&](std::size_t c) { return D(lanes.load(pass.in[c])); });
      const auto p = array_of<P>([&](std::size_t i) { return D(lanes.load(pass.in[C + X + i])); });
      for (std::int64_t t = 0; t < pass.steps; ++t) {
        const std::int64_t at = entry(pass, t);
        if (pass.keeps)
          for (std::size_t c = 0; c < C; ++c)
            lanes.store(carry[c].value, pass.out[C + Y + c], t);
        const auto x = array_of<X>([&](std::size_t i) { return D(lanes.load(pass.in[C + i], at)); });
        const auto result = step<D>(f, carry, x, p);
        carry = numbers<D>(result.first);
        const auto y = numbers<D>(result.second);
        for (std::size_t k = 0; k < Y; ++k)
          lanes.store(y[k].value, pass.out[C + k], at);
      }
      for (std::size_t c = 0; c < C; ++c)
        lanes.store(carry[c].value, pass.out[c]);
    });
  }

  template <class T> [[gnu::flatten]] static void jvp(const void* attrs, const kernels::ScanPass<T>& pass) {
    using D = Dual<T, 1, A>;
    constexpr std::size_t n = C + X + P;
    for_lanes<T>(attrs, pass, [&](const Lanes<T>& lanes, const F& f) {
      const auto input = [&](std::size_t i, std::int64_t at) {
        const D value(lanes.load(pass.in[i], at));
        return pass.in[n + i] ? D(value.value, 0, lanes.load(pass.in[n + i], at)) : value;
      };
      auto carry = array_of<C>([&](std::size_t c) { return input(c, 0); });
      const auto p = array_of<P>([&](std::size_t i) { return input(C + X + i, 0); });
      for (std::int64_t t = 0; t < pass.steps; ++t) {
        const std::int64_t at = entry(pass, t);
        const auto x = array_of<X>([&](std::size_t i) { return input(C + i, at); });
        const auto result = step<D>(f, carry, x, p);
        carry = numbers<D>(result.first);
        const auto y = numbers<D>(result.second);
        for (std::size_t k = 0; k < Y; ++k)
          lanes.store(y[k].tangent[0], pass.out[C + k], at);
      }
      for (std::size_t c = 0; c < C; ++c)
        lanes.store(carry[c].tangent[0], pass.out[c]);
    });
  }

  /// The gradient of a group of lanes, from the last step to the first. Carries that are not operands are
  /// recomputed beforehand: the carries of a segment of steps from the stored carry before its first step.
  template <class T> struct Backward {
    using B = Batch<T>;
    using D = Adjoint<T, A>;
    using Carry = std::array<B, C>;
    static constexpr std::size_t n = C + X + P;

    const F& f;
    const kernels::ScanPass<T>& pass;
    const Lanes<T>& lanes;
    std::vector<Carry>&kept, &segment;   // the carries before each segment; before each step of one
    typename D::Tape& tape;
    std::array<B, P> parameters, dp;
    Carry dcarry;

    [[gnu::flatten]] Carry forward(Carry carry, std::int64_t t) {
      using V = Dual<T, 0, A>;
      const std::int64_t at = entry(pass, t);
      const auto result =
          step<V>(f, array_of<C>([&](std::size_t c) { return V(carry[c]); }),
                  array_of<X>([&](std::size_t i) { return V(lanes.load(pass.in[C + i], at)); }),
                  array_of<P>([&](std::size_t i) { return V(parameters[i]); }));
      const auto next = numbers<V>(result.first);
      return array_of<C>([&](std::size_t c) { return next[c].value; });
    }
    /// Maps the cotangent of the carry after step t to the cotangent of the carry before it.
    [[gnu::flatten]] void back(const Carry& carry, std::int64_t t) {
      const std::int64_t at = entry(pass, t);
      Carry before;
      before.fill(B(T(0)));
      std::array<B, X> dx;
      dx.fill(B(T(0)));
      tape.restart();
      const auto input = [&](std::size_t i, const B& value, B& cotangent) {
        return i < C || pass.out[i] ? D(value, tape, cotangent) : D(value);
      };
      const auto result = step<D>(
          f, array_of<C>([&](std::size_t c) { return input(c, carry[c], before[c]); }),
          array_of<X>([&](std::size_t i) { return input(C + i, lanes.load(pass.in[C + i], at), dx[i]); }),
          array_of<P>([&](std::size_t i) { return input(C + X + i, parameters[i], dp[i]); }));
      const auto next = numbers<D>(result.first);
      const auto y = numbers<D>(result.second);
      for (std::size_t c = 0; c < C; ++c)
        next[c].seed(dcarry[c]);
      for (std::size_t k = 0; k < Y; ++k)
        if (const T* dy = pass.in[n + C + k]) y[k].seed(lanes.load(dy, at));
      tape.sweep();
      dcarry = before;
      for (std::size_t i = 0; i < X; ++i)
        if (pass.out[C + i]) lanes.store(dx[i], pass.out[C + i], at);
    }

    void run() {
      const auto load = [&](const T* p) { return p ? lanes.load(p) : B(T(0)); };
      parameters = array_of<P>([&](std::size_t i) { return load(pass.in[C + X + i]); });
      dcarry = array_of<C>([&](std::size_t c) { return load(pass.in[n + c]); });
      dp.fill(B(T(0)));
      if (pass.keeps)
        for (std::int64_t t = pass.steps; t-- > 0;)
          back(array_of<C>([&](std::size_t c) { return lanes.load(pass.in[n + C + Y + c], t); }), t);
      else
        run_segments();
      for (std::size_t c = 0; c < C; ++c)
        if (pass.out[c]) lanes.store(dcarry[c], pass.out[c]);
      for (std::size_t i = 0; i < P; ++i)
        if (pass.out[C + X + i]) lanes.store(dp[i], pass.out[C + X + i]);
    }
    void run_segments() {
      Carry carry = array_of<C>([&](std::size_t c) { return lanes.load(pass.in[c]); });
      const std::int64_t last = pass.steps > 0 ? (pass.steps - 1) / pass.every : -1;
      for (std::int64_t s = 0; s <= last; ++s) {
        kept[static_cast<std::size_t>(s)] = carry;
        for (std::int64_t t = s * pass.every; s < last && t < (s + 1) * pass.every; ++t)
          carry = forward(carry, t);
      }
      for (std::int64_t s = last; s >= 0; --s)
        take_back(s * pass.every, std::min((s + 1) * pass.every, pass.steps),
                  kept[static_cast<std::size_t>(s)]);
    }
    void take_back(std::int64_t begin, std::int64_t end, const Carry& first) {
      segment[0] = first;
      for (std::int64_t t = begin; t + 1 < end; ++t)
        segment[static_cast<std::size_t>(t + 1 - begin)] =
            forward(segment[static_cast<std::size_t>(t - begin)], t);
      for (std::int64_t t = end; t-- > begin;)
        back(segment[static_cast<std::size_t>(t - begin)], t);
    }
  };
  template <class T> static void vjp(const void* attrs, const kernels::ScanPass<T>& pass) {
    const std::int64_t computed = pass.keeps ? 0 : pass.steps;
    using Carry = typename Backward<T>::Carry;
    std::vector<Carry> kept(static_cast<std::size_t>((computed + pass.every - 1) / pass.every)),
        segment(static_cast<std::size_t>(std::min(pass.every, computed)));
    AdjointTape<T, A> tape;
    for_lanes<T>(attrs, pass, [&](const Lanes<T>& lanes, const F& f) {
      Backward<T>{f, pass, lanes, kept, segment, tape, {}, {}, {}}.run();
    });
  }

  static std::vector<Tensor> of_tensors(const void* attrs, std::span<const Tensor> in) {
    const Attributes& a = *static_cast<const Attributes*>(attrs);
    const auto tensor = [&](const auto& y) {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(y)>>)
        return full(in[0].shape(), static_cast<double>(y), in[0].dtype());
      else
        return broadcast_to(Tensor(y), in[0].shape());
    };
    const auto p = array_of<P>([&](std::size_t i) { return in[C + X + i]; });
    const Function by_ops = [&](std::span<const Tensor> z) {
      const auto result = step<Tensor>(a.f, array_of<C>([&](std::size_t c) { return z[c]; }),
                                       array_of<X>([&](std::size_t i) { return z[C + i]; }), p);
      std::vector<Tensor> all;
      for (const auto& next : result.first)
        all.push_back(tensor(next));
      for (const auto& y : result.second)
        all.push_back(tensor(y));
      return all;
    };
    return detail::scan(by_ops, in.first(C), in.subspan(C, X),
                        {.length = a.settings.steps, .reverse = a.settings.reverse});
  }
  static const MapScanSettings& settings(const void* attrs) {
    return static_cast<const Attributes*>(attrs)->settings;
  }

  static constexpr MapScanFunction function = {static_cast<int>(C),
                                               static_cast<int>(X),
                                               static_cast<int>(P),
                                               static_cast<int>(Y),
                                               {forward<float>, forward<double>},
                                               {vjp<float>, vjp<double>},
                                               {jvp<float>, jvp<double>},
                                               of_tensors,
                                               settings};
};

/// A custom rule that reads all inputs, and the results if these are kept.
constexpr Rule map_scan_rule(bool keeps, Rule::Vjp vjp, Rule::Jvp jvp = nullptr) {
  Rule rule = Rule::custom({.x = ~0u, .y = keeps}, vjp, jvp).accepting_none();
  rule.stacks = false;
  return rule;
}

template <MapName name, class L> inline constexpr Op kMapScanVjp = {
    .name = name.view(),
    .doc = "The gradients of a user's recurrence.",
    .infer = [](const Call& c) { return map_scan_vjp_specs(L::function, c); },
    .forward = [](const Call& c, std::span<Tensor> y) { map_scan_run_vjp(L::function, c, y); },
    .rule = map_scan_rule(false, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
      map_scan_vjp_of_vjp(L::function, c, dy, dx);
    })};
template <MapName name, class L> inline constexpr Op kMapScanJvp = {
    .name = name.view(),
    .doc = "The tangents of a user's recurrence.",
    .infer = [](const Call& c) { return map_scan_specs(L::function, c); },
    .forward = [](const Call& c, std::span<Tensor> y) { map_scan_run_jvp(L::function, c, y); },
    .rule = map_scan_rule(false, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
      map_scan_vjp_of_jvp(L::function, c, dy, dx);
    })};
template <MapName name, class L, bool keeps> inline constexpr Op kMapScan = {
    .name = name.view(),
    .doc = "A user's recurrence over time.",
    .infer = [](const Call& c) { return map_scan_specs(L::function, c); },
    .forward = [](const Call& c, std::span<Tensor> y) { map_scan_forward(L::function, c, y); },
    .rule = map_scan_rule(
        keeps,
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          auto attrs = c.attrs<typename L::Attributes>();
          const std::vector<Tensor> inputs = map_scan_vjp_inputs(L::function, c, dy, attrs.settings);
          std::vector<Tensor> all = kMapScanVjp<name, L>.run(inputs, Attrs(attrs));
          std::size_t next = 0;
          for (std::size_t i = 0; i < dx.size(); ++i)
            if (attrs.settings.wanted >> i & 1) dx[i] = std::move(all[next++]);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          auto attrs = c.attrs<typename L::Attributes>();
          const std::vector<Tensor> inputs = map_scan_jvp_inputs(L::function, c, dx, attrs.settings);
          std::vector<Tensor> all = kMapScanJvp<name, L>.run(inputs, Attrs(attrs));
          std::move(all.begin(), all.end(), dy.begin());
        })};

}   // namespace detail

/// A recurrence over the first axes of xs, for every element on its own. The arguments of f(carry, x, p) are
/// std::arrays of the carries, of the entries of xs at a step, and of the parameters; it returns a pair of
/// arrays: the next carries, and the outputs of the step. Returns a pair of arrays of tensors: the final
/// carries, and the outputs, stacked along a first axis of time:
///     auto [last, all] = map_scan([](const auto& c, const auto& x, const auto& p) {
///       const auto next = p[0] * c[0] + x[0];
///       return std::pair(std::array{next}, std::array{next});
///     }, std::array{start}, std::array{xs}, std::array{decay});
///
/// f is a generic lambda as in map(), of numbers and of Tensors, on which second derivatives are computed.
/// All tensors are f32 or f64 and are promoted; carries, entries of xs and parameters broadcast. The whole
/// recurrence is one op. Its gradient uses the carries that the tape has kept, or recomputes them in the
/// memory that options.checkpoint_bytes allows each thread; it does not depend on the number of threads.
///
/// Requires at least one carry, and at most 64 tensors in all. Throws ArgumentError if xs and `length` do not
/// determine the number of steps, ShapeError if shapes do not broadcast or first axes differ, and DTypeError
/// for tensors that are not floating-point.
template <MapName name = "map_scan", class A = detail::MapTarget, class F, std::size_t C, std::size_t X,
          std::size_t P>
auto map_scan(const F& f, const std::array<Tensor, C>& carry, const std::array<Tensor, X>& xs,
              const std::array<Tensor, P>& parameters, const MapScanOptions& options = {}) {
  static_assert(C > 0, "map_scan: takes one carry or more; without, use map");
  static_assert(C + X + P <= 64, "map_scan: takes up to 64 tensors");
  static_assert(std::is_copy_constructible_v<F>,
                "map_scan: the lambda must be copyable, since a tape keeps it");
  using L = detail::MapScanLoops<F, C, X, P, A>;
  std::vector<Tensor> inputs(carry.begin(), carry.end());
  inputs.insert(inputs.end(), xs.begin(), xs.end());
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  detail::MapScanAttrs<F> attrs{f, {}};
  inputs = detail::map_scan_inputs(name.view(), L::function, std::move(inputs), options, attrs.settings);
  attrs.settings.keeps = detail::map_scan_keeps(L::function, inputs, attrs.settings);
  const Op& op = attrs.settings.keeps ? detail::kMapScan<name, L, true> : detail::kMapScan<name, L, false>;
  std::vector<Tensor> y = op.run(inputs, Attrs(attrs));
  std::pair<std::array<Tensor, C>, std::array<Tensor, L::Y>> results;
  std::move(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(C), results.first.begin());
  for (std::size_t k = 0; k < L::Y; ++k)
    results.second[k] = std::move(y[C + k]);
  return results;
}

}   // namespace tapedeck
