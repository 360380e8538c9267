// Loops. In: the function of a step, and the operands of the first step. Out: the results of the last step.
//
// The ops of the steps are recorded as they run. With checkpoint_every, the steps are divided into segments,
// each of which is recorded as one operation that is recomputed for its gradient.
#include <algorithm>

#include "core/format.h"
#include "op/recorder.h"
#include "tapedeck/control.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/join.h"
#include "tapedeck/ops/slice.h"
#include "transforms/loop_steps.h"
#include "transforms/recompute.h"
#include "transforms/zero_gradients.h"

namespace tapedeck {
namespace {

using Tensors = std::vector<Tensor>;

struct Loop {
  std::string_view name;
  std::function<bool(std::int64_t, std::span<const Tensor>)> goes_on;
  std::function<Tensors(std::int64_t, std::span<const Tensor>)> step;
};

void check_variables(std::string_view name, std::string_view what, std::span<const Tensor> before,
                     std::span<const Tensor> after, std::int64_t steps) {
  for (std::size_t k = 0; k < before.size(); ++k) {
    if (!after[k].defined())
      throw_error<ArgumentError>("{}: {} {} is undefined after step {}", name, what, k, steps);
    if (const Spec is = after[k].spec(), was = before[k].spec(); is != was)
      throw_changed(is, was,
                    fmt::format("{}: {} {} enters the loop as {} and is {} after step {}", name, what, k, was,
                                is, steps));
  }
}

void take_step(const Loop& loop, std::int64_t i, Tensors& vars) {
  Tensors next = loop.step(i, vars);
  if (next.size() != vars.size()) detail::throw_results(loop.name, next.size(), vars.size());
  check_variables(loop.name, "variable", vars, next, i + 1);
  vars = std::move(next);
}

bool goes_on(const Loop& loop, std::int64_t i, const Tensors& vars) {
  const RecordingScope unrecorded(nullptr);
  return loop.goes_on(i, vars);
}

Tensors run(const Loop& loop, std::span<const Tensor> x) {
  Tensors vars(x.begin(), x.end());
  for (std::int64_t i = 0; goes_on(loop, i, vars); ++i)
    take_step(loop, i, vars);
  return vars;
}

Tensors run_in_segments(const std::shared_ptr<const Loop>& loop, std::span<const Tensor> x,
                        std::int64_t every) {
  Tensors vars(x.begin(), x.end());
  for (std::int64_t begin = 0, steps = every; steps == every; begin += steps) {
    const auto made = std::make_shared<std::int64_t>(0);   // steps taken; a rerun skips the condition
    const auto first = [&](std::span<const Tensor> in) {
      Tensors v(in.begin(), in.end());
      for (; *made < every && goes_on(*loop, begin + *made, v); ++*made)
        take_step(*loop, begin + *made, v);
      return v;
    };
    const auto again = [loop, begin, made](std::span<const Tensor> in) {
      Tensors v(in.begin(), in.end());
      for (std::int64_t i = 0; i < *made; ++i)
        take_step(*loop, begin + i, v);
      return v;
    };
    vars = recomputed(loop->name, vars, first, again);
    steps = *made;
  }
  return vars;
}

void check_count(std::string_view name, std::string_view what, std::int64_t n) {
  if (n < 0) throw_error<ArgumentError>("{}: {} is {}; use 0 or more", name, what, n);
}
void check_defined(std::string_view name, std::string_view what, std::span<const Tensor> x) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!x[i].defined()) throw_error<ArgumentError>("{}: {} {} is undefined", name, what, i);
}

Tensors run(Loop loop, Tensors vars, std::int64_t every, bool back_prop) {
  check_count(loop.name, "checkpoint_every", every);
  check_defined(loop.name, "variable", vars);
  if (!back_prop) {
    const RecordingScope unrecorded(nullptr);
    for (Tensor& t : vars)
      t = identity(t);
    return run(loop, vars);
  }
  if (every == 0 || !thread_state.innermost)
    return connected(vars, [&](std::span<const Tensor> x) { return run(loop, x); });
  const auto shared = std::make_shared<const Loop>(std::move(loop));
  return connected(vars, [&](std::span<const Tensor> x) { return run_in_segments(shared, x, every); });
}

struct Scan {
  Function step;
  std::size_t carries;
  bool reverse;
};

// Runs `steps` steps, starting with step `done`. In: carries, then the parts of the xs for these steps. Out:
// carries, then stacked outputs.
Tensors run(const Scan& scan, std::span<const Tensor> in, std::int64_t done, std::int64_t steps) {
  const std::size_t n = static_cast<std::size_t>(steps);
  Tensors arguments(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(scan.carries));
  arguments.resize(in.size());
  std::vector<Tensors> entries, outputs;
  for (const Tensor& x : in.subspan(scan.carries))
    entries.push_back(unstack(x, 0));
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t i = scan.reverse ? n - 1 - k : k;
    for (std::size_t j = 0; j < entries.size(); ++j)
      arguments[scan.carries + j] = std::move(entries[j][i]);
    Tensors result = scan.step(arguments);
    if (result.size() < scan.carries || (k > 0 && result.size() != scan.carries + outputs.size()))
      detail::throw_results("scan", result.size(), scan.carries + outputs.size());
    if (k == 0) outputs.resize(result.size() - scan.carries, Tensors(n));
    const std::int64_t after = done + static_cast<std::int64_t>(k) + 1;
    check_variables("scan", "carry", std::span(arguments).first(scan.carries), result, after);
    for (std::size_t j = 0; j < scan.carries; ++j)
      arguments[j] = std::move(result[j]);
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      Tensor& y = outputs[j][i] = std::move(result[scan.carries + j]);
      if (!y.defined()) throw_error<ArgumentError>("scan: output {} is undefined after step {}", j, after);
      const Spec is = y.spec(), was = outputs[j][scan.reverse ? n - 1 : 0].spec();
      if (is != was)
        throw_changed(is, was,
                      fmt::format("scan: output {} is {} first and {} after step {}", j, was, is, after));
    }
  }
  arguments.resize(scan.carries);
  for (const Tensors& y : outputs)
    arguments.push_back(stack(y, 0));
  return arguments;
}

Tensors run_in_segments(const std::shared_ptr<const Scan>& scan, std::span<const Tensor> in,
                        std::int64_t steps, std::int64_t every) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(steps / every), every);
  if (steps % every) sizes.push_back(steps % every);
  std::vector<Tensors> parts, outputs;   // parts: for each of the xs; outputs: for each segment
  for (const Tensor& x : in.subspan(scan->carries))
    parts.push_back(split(x, sizes, 0));
  Tensors carry(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(scan->carries));
  std::int64_t done = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::size_t i = scan->reverse ? sizes.size() - 1 - k : k;
    for (Tensors& x : parts)
      carry.push_back(std::move(x[i]));
    const auto f = [scan, done, n = sizes[i]](std::span<const Tensor> x) { return run(*scan, x, done, n); };
    Tensors result = recomputed("scan", carry, f, f);
    outputs.emplace_back(result.begin() + static_cast<std::ptrdiff_t>(scan->carries), result.end());
    result.resize(scan->carries);
    carry = std::move(result);
    done += sizes[i];
  }
  if (scan->reverse) std::reverse(outputs.begin(), outputs.end());
  for (std::size_t j = 0; !outputs.empty() && j < outputs[0].size(); ++j) {
    Tensors y;
    for (Tensors& segment : outputs)
      y.push_back(std::move(segment[j]));
    carry.push_back(concat(y, 0));
  }
  return carry;
}

}   // namespace

std::int64_t steps_of(std::string_view name, std::span<const Tensor> xs, std::optional<std::int64_t> length) {
  check_defined(name, "input", xs);
  if (length) check_count(name, "length", *length);
  if (xs.empty() && !length)
    throw_error<ArgumentError>("{}: the number of steps is unknown; pass xs or a length", name);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].ndim() == 0)
      throw_error<ShapeError>("{}: input {} has no first axis to loop over: it is {}", name, i, xs[i].spec());
    if (xs[i].shape()[0] != xs[0].shape()[0])
      throw_error<ShapeError>("{}: first axes differ: input 0 is {}, input {} is {}", name, xs[0].spec(), i,
                              xs[i].spec());
  }
  if (!xs.empty() && length && xs[0].shape()[0] != *length)
    throw_error<ShapeError>("{}: length is {}, input 0 is {}", name, *length, xs[0].spec());
  return xs.empty() ? *length : xs[0].shape()[0];
}

namespace detail {

Tensors while_loop(std::function<bool(std::span<const Tensor>)> condition, Function body, Tensors vars,
                   const WhileOptions& options) {
  check_count("while_loop", "maximum_iterations", options.maximum_iterations);
  return run({.name = "while_loop",
              .goes_on = [condition = std::move(condition), n = options.maximum_iterations](
                             std::int64_t i, std::span<const Tensor> x) { return i < n && condition(x); },
              .step = [body = std::move(body)](std::int64_t, std::span<const Tensor> x) { return body(x); }},
             std::move(vars), options.checkpoint_every, options.back_prop);
}

Tensors fori_loop(std::int64_t lower, std::int64_t upper,
                  std::function<Tensors(std::int64_t, std::span<const Tensor>)> body, Tensors vars,
                  const ForOptions& options) {
  return run(
      {.name = "fori_loop",
       .goes_on = [lower, upper](std::int64_t i,
                                 std::span<const Tensor>) { return lower < upper && i < upper - lower; },
       .step = [lower, body = std::move(body)](std::int64_t i,
                                               std::span<const Tensor> x) { return body(lower + i, x); }},
      std::move(vars), options.checkpoint_every, options.back_prop);
}

Tensors scan(Function step, std::span<const Tensor> init, std::span<const Tensor> xs,
             const ScanLoopOptions& options) {
  check_count("scan", "checkpoint_every", options.checkpoint_every);
  check_defined("scan", "carry", init);
  const std::int64_t steps = steps_of("scan", xs, options.length);
  const auto scan = std::make_shared<const Scan>(Scan{std::move(step), init.size(), options.reverse});
  Tensors in(init.begin(), init.end());
  in.insert(in.end(), xs.begin(), xs.end());
  return connected(in, [&](std::span<const Tensor> x) {
    return options.checkpoint_every > 0 && thread_state.innermost
               ? run_in_segments(scan, x, steps, options.checkpoint_every)
               : run(*scan, x, 0, steps);
  });
}

}   // namespace detail
}   // namespace tapedeck
