// Branches and loops with derivatives of any order. A plain `if` or `for` can be differentiated as well,
// since a tape records the ops that ran. The functions here also check shapes and dtypes, return a gradient
// for every operand, and can run a loop in little memory. They call functions of tensors, passed as separate
// arguments or as a span, which return a tensor, or a std::vector, std::array, std::pair or std::tuple of
// tensors. Tensors and variables that they capture are differentiated, too.
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "tapedeck/function.h"

namespace tapedeck {

/// The condition of a branch or loop: a bool, or a bool tensor with one element. Throws DTypeError or
/// ShapeError for other tensors.
class TAPEDECK_EXPORT Condition {
 public:
  Condition(bool value) : value_(value) {}
  Condition(const Tensor& value, std::string_view reader = "cond");
  /// Whether the condition is true. In a compiled function that computes the condition, throws TraceError,
  /// which names the reader.
  explicit operator bool() const;
  /// The tensor, if a function is compiled that computes it; else undefined.
  const Tensor& computed() const { return tensor_; }

 private:
  bool value_ = false;
  Tensor tensor_;
  std::string reader_;
};

/// The index of a branch: a number, or a tensor of integers with one element. Throws DTypeError or ShapeError
/// for other tensors.
class TAPEDECK_EXPORT BranchIndex {
 public:
  template <std::integral I> BranchIndex(I value) : value_(static_cast<std::int64_t>(value)) {}
  BranchIndex(const Tensor& value);
  /// The branch to run out of n; an index out of range selects the last one. In a compiled function that
  /// computes the index, throws TraceError.
  std::size_t among(std::size_t n) const {
    if (tensor_.defined()) throw_computed();
    return value_ >= 0 && value_ < static_cast<std::int64_t>(n) ? static_cast<std::size_t>(value_) : n - 1;
  }
  /// The tensor, if a function is compiled that computes it; else undefined.
  const Tensor& computed() const { return tensor_; }

 private:
  [[noreturn]] void throw_computed() const;

  std::int64_t value_ = 0;
  Tensor tensor_;
};

/// Options of cond.
struct CondOptions {
  /// Expected outputs of both branches. A different number of tensors throws ArgumentError; a different dtype
  /// or shape throws DTypeError or ShapeError and names the output. If empty, outputs are not checked, since
  /// only one branch runs.
  std::vector<Spec> outputs = {};
};
/// Options of while_loop. A number below 0 throws ArgumentError.
struct WhileOptions {
  std::int64_t maximum_iterations = std::numeric_limits<std::int64_t>::max();   // the loop ends after these
  /// If not 0, tapes keep the loop variables of at most so many steps, that of the first included, and the
  /// gradient computes the others again, by the schedules with the fewest runs (Griewank and Walther 2000):
  /// with n snapshots, C(n + r, n) steps run again r times at most, 286 steps three times with 10. In
  /// while_loop, whose number of steps is not known, the fewest up to (n + 1) (n + 2) / 2 steps. 0: keep the
  /// variables of all steps. Throws ArgumentError if a step would run more than 100 times.
  ///
  /// The tapes then keep a copy of `body`, which runs again in gradient(), after while_loop has returned.
  /// Objects that it captures by reference must exist until then. If the loop is in a function that returns
  /// before gradient() is called, capture tensors and variables by value, which copies handles.
  std::int64_t snapshots = 0;
  bool back_prop = true;   // false: the loop is not differentiated
};
/// Options of fori_loop.
struct ForOptions {
  std::int64_t snapshots = 0;   // as in WhileOptions, also concerning captures of `body`
  bool back_prop = true;
};
/// Options of scan.
struct ScanLoopOptions {
  std::optional<std::int64_t> length = {};   // number of steps; required if xs is empty
  bool reverse = false;                      // iterate from the last entries to the first
  std::int64_t snapshots = 0;                // as in WhileOptions
};

namespace detail {

TAPEDECK_EXPORT std::vector<Tensor> branch(std::string_view name, std::span<const Tensor> operands,
                                           const Function& f, std::span<const Spec> outputs);
TAPEDECK_EXPORT std::vector<Tensor> recorded_branch(std::string_view name, const Tensor& index,
                                                    std::span<const Tensor> operands,
                                                    const std::vector<Function>& branches,
                                                    std::span<const Spec> outputs);
// traced: the condition as a function that returns a tensor, to be recorded; empty if it returns a bool.
TAPEDECK_EXPORT std::vector<Tensor> while_loop(std::function<bool(std::span<const Tensor>)> condition,
                                               Function traced, Function body, std::vector<Tensor> vars,
                                               const WhileOptions& options);
TAPEDECK_EXPORT std::vector<Tensor> fori_loop(
    std::int64_t lower, std::int64_t upper,
    std::function<std::vector<Tensor>(std::int64_t, std::span<const Tensor>)> body, std::vector<Tensor> vars,
    const ForOptions& options);
// body(i, vars…), with i as an i64 tensor.
TAPEDECK_EXPORT std::vector<Tensor> fori_loop(std::int64_t lower, std::int64_t upper, Function body,
                                              std::vector<Tensor> vars, const ForOptions& options);
TAPEDECK_EXPORT std::vector<Tensor> scan(Function step, std::span<const Tensor> init,
                                         std::span<const Tensor> xs, const ScanLoopOptions& options);

template <class F> ResultOf<F> run_branch(std::string_view name, std::span<const Tensor> operands, F& f,
                                          std::span<const Spec> outputs = {}) {
  std::optional<ResultOf<F>> result;
  std::vector<Tensor> tensors = branch(
      name, operands, [&](std::span<const Tensor> x) { return tensors_of(result.emplace(call(name, f, x))); },
      outputs);
  replace_tensors(*result, tensors);
  return *std::move(result);
}

// Calls one of several functions, which returns an R.
template <class R> R run_recorded(std::string_view name, const Tensor& index,
                                  std::span<const Tensor> operands,
                                  const std::vector<std::function<R(std::span<const Tensor>)>>& branches,
                                  std::span<const Spec> outputs = {}) {
  const auto result = std::make_shared<std::optional<R>>();   // tapes keep the functions
  std::vector<Function> functions;
  for (const auto& f : branches)
    functions.push_back([result, f](std::span<const Tensor> x) { return tensors_of(result->emplace(f(x))); });
  std::vector<Tensor> tensors = recorded_branch(name, index, operands, functions, outputs);
  R own = **result;
  replace_tensors(own, tensors);
  return own;
}

}   // namespace detail

/// Returns then(operands…) if the condition is true, else otherwise(operands…); only that branch runs. Both
/// return the same type. Every operand with a derivative gets a gradient, which is zero if the branch that
/// ran does not use it. Undefined tensors in the result stay undefined. Corresponds to TensorFlow's cond.
template <class T, class F> auto cond(const Condition& condition, const std::vector<Tensor>& operands, T then,
                                      F otherwise, const CondOptions& options = {}) {
  if constexpr (detail::is_tensor_function<T>() && detail::is_tensor_function<F>()) {
    static_assert(std::same_as<detail::ResultOf<T>, detail::ResultOf<F>>,
                  "both branches of cond must return the same type");
    using R = detail::ResultOf<T>;
    if (condition.computed().defined())
      return detail::run_recorded<R>(
          "cond", condition.computed(), operands,
          {[then](std::span<const Tensor> x) mutable { return R(detail::call("cond", then, x)); },
           [otherwise](std::span<const Tensor> x) mutable { return R(detail::call("cond", otherwise, x)); }},
          options.outputs);
    return condition ? detail::run_branch("cond", operands, then, options.outputs)
                     : detail::run_branch("cond", operands, otherwise, options.outputs);
  }
}

/// Calls the branch at `index` with the operands. An index out of range selects the last branch. Gradients
/// are as in cond. Throws ArgumentError if there are no branches.
template <class F> auto switch_case(const BranchIndex& index, const std::vector<Tensor>& operands,
                                    const std::vector<F>& branches) {
  if constexpr (detail::is_tensor_function<F>()) {
    if (branches.empty()) throw ArgumentError("switch_case: no branches");
    using R = detail::ResultOf<F>;
    if (index.computed().defined()) {
      std::vector<std::function<R(std::span<const Tensor>)>> all;
      for (const F& f : branches)
        all.push_back(
            [f](std::span<const Tensor> x) mutable { return R(detail::call("switch_case", f, x)); });
      return detail::run_recorded<R>("switch_case", index.computed(), operands, all);
    }
    F f = branches[index.among(branches.size())];
    return detail::run_branch("switch_case", operands, f);
  }
}
/// switch_case with branches as separate arguments, which must return the same type.
template <class F, class... G>
auto switch_case(const BranchIndex& index, const std::vector<Tensor>& operands, F first, G... more) {
  if constexpr (detail::is_tensor_function<F>() && (detail::is_tensor_function<G>() && ...)) {
    static_assert((std::same_as<detail::ResultOf<F>, detail::ResultOf<G>> && ...),
                  "all branches of switch_case must return the same type");
    const auto pick = [&](auto& f) {
      return std::function<detail::ResultOf<F>(std::span<const Tensor>)>(
          [f](std::span<const Tensor> x) mutable { return detail::call("switch_case", f, x); });
    };
    return switch_case(index, operands, std::vector{pick(first), pick(more)...});
  }
}

/// While condition(vars…) is true, sets vars = body(vars…). Returns the final variables in the structure that
/// body returns. The condition is not differentiated. Throws ArgumentError if body returns a different number
/// of tensors, and DTypeError or ShapeError, naming the variable, if one changes its dtype or shape.
template <class C, class B>
auto while_loop(C condition, B body, const std::vector<Tensor>& vars, const WhileOptions& options = {}) {
  static_assert(detail::kTakesTensors<C>,
                "while_loop: the condition has to take as many tensors as the body");
  if constexpr (detail::kTakesTensors<C> && detail::is_tensor_function<B>()) {
    const auto test = [condition](std::span<const Tensor> x) mutable {
      const auto holds = detail::call("while_loop", condition, x);
      if constexpr (std::is_convertible_v<decltype(holds), Tensor>)
        return static_cast<bool>(Condition(Tensor(holds), "while_loop"));
      else
        return static_cast<bool>(Condition(holds));
    };
    Function traced;
    if constexpr (std::convertible_to<detail::ResultOf<C>, Tensor> &&
                  !std::convertible_to<detail::ResultOf<C>, bool>)
      traced = [condition](std::span<const Tensor> x) mutable {
        return std::vector<Tensor>{Tensor(detail::call("while_loop", condition, x))};
      };
    return detail::structure_of<detail::ResultOf<B>>(
        "while_loop",
        detail::while_loop(test, traced, detail::function_of("while_loop", std::move(body)), vars, options));
  }
}

/// Sets vars = body(i, vars…) for each i from lower (included) to upper (excluded). Otherwise like
/// while_loop. i is a std::int64_t, or, if body takes a tensor instead, an i64 tensor with one element and no
/// axes: then a compiled function records one step, with a number it would record all steps.
template <class B> auto fori_loop(std::int64_t lower, std::int64_t upper, B body,
                                  const std::vector<Tensor>& vars, const ForOptions& options = {}) {
  const auto at = [](B& f, std::int64_t i) {
    return [&f, i ](const auto&... x) requires std::invocable<B&, std::int64_t, decltype(x)...> {
      return f(i, x...);
    };
  };
  using Step = decltype(at(body, 0));
  if constexpr (!detail::kTakesTensors<Step> && detail::kTakesTensors<B>) {
    if constexpr (detail::is_tensor_function<B>())
      return detail::structure_of<detail::ResultOf<B>>(
          "fori_loop",
          detail::fori_loop(lower, upper, detail::function_of("fori_loop", std::move(body)), vars, options));
  } else if constexpr (detail::is_tensor_function<Step>()) {
    const auto step = [at, body](std::int64_t i, std::span<const Tensor> x) mutable {
      Step f = at(body, i);
      auto result = detail::call("fori_loop", f, x);
      return detail::tensors_of(result);
    };
    return detail::structure_of<detail::ResultOf<Step>>("fori_loop",
                                                        detail::fori_loop(lower, upper, step, vars, options));
  }
}

/// Loops over the first axes of `xs`, which must all have the same extent. step(carry…, x…) returns the next
/// carry, followed by the outputs of this step. `init` is the initial carry. Returns the final carry and the
/// outputs stacked along a new first axis, in the structure that step returns:
///     auto [last, all] = scan([](const Tensor& sum, const Tensor& x) { Tensor s = sum + x;
///                                                                      return std::pair(s, s); },
///                             {zero}, {xs});
/// With an empty `init`, scan maps step over xs. Throws ArgumentError if step returns fewer tensors than init
/// has, or if `xs` and `length` do not determine the number of steps; throws DTypeError or ShapeError, naming
/// the carry or output, if one changes its dtype or shape.
template <class F> auto scan(F step, const std::vector<Tensor>& init, const std::vector<Tensor>& xs,
                             const ScanLoopOptions& options = {}) {
  if constexpr (detail::is_tensor_function<F>())
    return detail::structure_of<detail::ResultOf<F>>(
        "scan", detail::scan(detail::function_of("scan", std::move(step)), init, xs, options));
}

}   // namespace tapedeck
