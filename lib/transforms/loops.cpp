// Loops. In: the function of a step, and the operands of the first step. Out: the results of the last step.
//
// The ops of the steps are recorded as they run. With snapshots, the steps before each state that is kept are
// recorded as one operation, which is recomputed for its gradient: then with more snapshots between its
// steps, until single steps are recorded.
#include <algorithm>

#include "core/format.h"
#include "core/trace.h"
#include "op/recorder.h"
#include "tapedeck/control.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/join.h"
#include "tapedeck/ops/slice.h"
#include "transforms/loop_steps.h"
#include "transforms/recompute.h"
#include "transforms/snapshots.h"
#include "transforms/zero_gradients.h"

namespace tapedeck {
namespace {

using Tensors = std::vector<Tensor>;

struct Loop {
  std::string_view name;
  std::function<bool(std::int64_t, std::span<const Tensor>)> goes_on;
  std::function<Tensors(std::int64_t, std::span<const Tensor>)> step;
  std::optional<std::int64_t> steps = {};   // if their number is known; then goes_on is not called
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

// Runs steps [begin, end).
Tensors run(const Loop& loop, std::span<const Tensor> x, std::int64_t begin, std::int64_t end) {
  Tensors vars(x.begin(), x.end());
  for (std::int64_t i = begin; i < end; ++i)
    take_step(loop, i, vars);
  return vars;
}
Tensors run(const Loop& loop, std::span<const Tensor> x) {
  if (loop.steps) return run(loop, x, 0, *loop.steps);
  Tensors vars(x.begin(), x.end());
  for (std::int64_t i = 0; goes_on(loop, i, vars); ++i)
    take_step(loop, i, vars);
  return vars;
}

using SharedLoop = std::shared_ptr<const Loop>;
Tensors run_with_snapshots(const SharedLoop& loop, std::span<const Tensor> x, std::int64_t begin,
                           std::int64_t end, std::int64_t snapshots);

// The functions that compute the variables after steps [begin, end). As without snapshots, captures that no
// result depends on have no gradients.
Recomputed recomputed_steps(const SharedLoop& loop, std::int64_t begin, std::int64_t end,
                            std::int64_t snapshots) {
  return {.backward =
              [=](std::span<const Tensor> x) { return run_with_snapshots(loop, x, begin, end, snapshots); },
          .forward = [=](std::span<const Tensor> x) { return run(*loop, x, begin, end); },
          .zero_captures = false};
}

// Runs steps [begin, end), of which the last one is recorded as it runs.
Tensors run_with_snapshots(const SharedLoop& loop, std::span<const Tensor> x, std::int64_t begin,
                           std::int64_t end, std::int64_t snapshots) {
  Tensors vars(x.begin(), x.end());
  while (end - begin > 1) {
    const std::int64_t next = begin + next_snapshot(end - begin, snapshots);
    const Recomputed again = recomputed_steps(loop, begin, next, snapshots);
    vars = recomputed(loop->name, vars, again.forward, again);
    begin = next, snapshots = std::max<std::int64_t>(snapshots - 1, 1);
  }
  if (begin < end) take_step(*loop, begin, vars);
  return vars;
}

// Runs a loop whose number of steps is not known, then records the steps between the states that are kept.
Tensors run_with_online_snapshots(const SharedLoop& loop, std::span<const Tensor> x, std::int64_t snapshots) {
  OnlineSnapshots online(snapshots);
  std::vector<Tensors> kept;
  std::int64_t steps = 0;
  Captured captures;
  const Tensors last = run_unrecorded(
      x,
      [&](std::span<const Tensor> in) {
        Tensors vars(in.begin(), in.end());
        for (; goes_on(*loop, steps, vars); ++steps) {
          if (const std::int64_t k = online.offer(); k >= 0) {
            if (k < static_cast<std::int64_t>(kept.size())) kept.erase(kept.begin() + k);
            kept.push_back(vars);
          }
          take_step(*loop, steps, vars);
        }
        return vars;
      },
      captures);
  Tensors vars(x.begin(), x.end());
  for (std::size_t k = 0; k < kept.size(); ++k) {
    const bool is_last = k + 1 == kept.size();
    const std::int64_t begin = online.kept()[k], end = is_last ? steps : online.kept()[k + 1],
                       free = snapshots - static_cast<std::int64_t>(k);
    require_few_runs(loop->name, end - begin, free);
    vars = record_recomputed(loop->name, vars, is_last ? last : kept[k + 1], captures,
                             recomputed_steps(loop, begin, end, free));
  }
  return vars;
}

void check_count(std::string_view name, std::string_view what, std::int64_t n) {
  if (n < 0) throw_error<ArgumentError>("{}: {} is {}; use 0 or more", name, what, n);
}
std::int64_t steps_between(std::int64_t lower, std::int64_t upper) {
  std::int64_t n = 0;
  if (lower >= upper) return 0;
  return __builtin_sub_overflow(upper, lower, &n) ? std::numeric_limits<std::int64_t>::max() : n;
}
void check_defined(std::string_view name, std::string_view what, std::span<const Tensor> x) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!x[i].defined()) throw_error<ArgumentError>("{}: {} {} is undefined", name, what, i);
}

Tensors run(Loop loop, Tensors vars, std::int64_t snapshots, bool back_prop) {
  check_count(loop.name, "snapshots", snapshots);
  check_defined(loop.name, "variable", vars);
  if (!back_prop) {
    const RecordingScope unrecorded(nullptr);
    for (Tensor& t : vars)
      t = identity(t);
    vars = run(loop, vars);
    for (Tensor& t : vars)   // which may be captured tensors
      t = identity(t);
    return vars;
  }
  if (snapshots == 0 || !thread_state.innermost)
    return connected(vars, [&](std::span<const Tensor> x) { return run(loop, x); });
  if (loop.steps) require_few_runs(loop.name, *loop.steps, snapshots);
  const auto shared = std::make_shared<const Loop>(std::move(loop));
  return connected(vars, [&](std::span<const Tensor> x) {
    return shared->steps ? run_with_snapshots(shared, x, 0, *shared->steps, snapshots)
                         : run_with_online_snapshots(shared, x, snapshots);
  });
}

// Records a loop whose step has no outputs. own: the number of leading variables that are not the user's.
Tensors run_traced(Trace::Loop loop, Tensors vars, bool back_prop, std::size_t own = 0) {
  check_count(loop.name, "snapshots", loop.snapshots);
  check_defined(loop.name, "variable", vars);
  if (thread_state.innermost && !loop.condition && loop.snapshots > 0)
    require_few_runs(loop.name, loop.steps, loop.snapshots);
  loop.carries = vars.size();
  loop.step = [name = loop.name, own, step = std::move(loop.step)](std::span<const Tensor> x) {
    Tensors next = step(x);
    if (next.size() != x.size()) detail::throw_results(name, next.size() - own, x.size() - own);
    check_variables(name, "variable", x.subspan(own), std::span(next).subspan(own), 1);
    return next;
  };
  if (back_prop) return recording()->loop(loop, vars);
  const RecordingScope unrecorded(nullptr);
  for (Tensor& t : vars)
    t = identity(t);
  return recording()->loop(loop, vars);
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

// The results of the first step.
Tensors checked_step(const Scan& scan, std::span<const Tensor> x) {
  Tensors result = scan.step(x);
  if (result.size() < scan.carries) detail::throw_results("scan", result.size(), scan.carries);
  check_variables("scan", "carry", x.first(scan.carries), result, 1);
  for (std::size_t j = scan.carries; j < result.size(); ++j)
    if (!result[j].defined())
      throw_error<ArgumentError>("scan: output {} is undefined after step 1", j - scan.carries);
  return result;
}

using SharedScan = std::shared_ptr<const Scan>;
Tensors run_with_snapshots(const SharedScan& scan, std::span<const Tensor> in, std::int64_t done,
                           std::int64_t steps, std::int64_t snapshots);

Recomputed recomputed_steps(const SharedScan& scan, std::int64_t done, std::int64_t steps,
                            std::int64_t snapshots) {
  return {.backward =
              [=](std::span<const Tensor> x) { return run_with_snapshots(scan, x, done, steps, snapshots); },
          .forward = [=](std::span<const Tensor> x) { return run(*scan, x, done, steps); },
          .zero_captures = false};
}

// As run, but only the last step is recorded as it runs.
Tensors run_with_snapshots(const SharedScan& scan, std::span<const Tensor> in, std::int64_t done,
                           std::int64_t steps, std::int64_t snapshots) {
  const auto carries = static_cast<std::ptrdiff_t>(scan->carries);
  Tensors carry(in.begin(), in.begin() + carries), xs(in.begin() + carries, in.end());
  std::vector<Tensors> outputs;   // by output: those of each part of the steps
  for (bool is_last = false; !is_last;) {
    is_last = steps <= 1;
    const std::int64_t part = is_last ? steps : next_snapshot(steps, snapshots), rest = steps - part;
    for (Tensor& x : xs) {   // the entries for this part go to the operands
      if (rest == 0) {
        carry.push_back(x);
        continue;
      }
      const Tensors both = split(x, scan->reverse ? Ints{rest, part} : Ints{part, rest}, 0);
      carry.push_back(both[scan->reverse ? 1 : 0]);
      x = both[scan->reverse ? 0 : 1];
    }
    const Recomputed again = recomputed_steps(scan, done, part, snapshots);
    Tensors result =
        is_last ? run(*scan, carry, done, part) : recomputed("scan", carry, again.forward, again);
    outputs.resize(result.size() - scan->carries);
    for (std::size_t j = 0; j < outputs.size(); ++j)
      outputs[j].push_back(std::move(result[scan->carries + j]));
    result.resize(scan->carries);
    carry = std::move(result);
    done += part, steps = rest, snapshots = std::max<std::int64_t>(snapshots - 1, 1);
  }
  for (Tensors& parts : outputs) {
    if (scan->reverse) std::reverse(parts.begin(), parts.end());
    carry.push_back(concat(parts, 0));
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

Tensors while_loop(std::function<bool(std::span<const Tensor>)> condition, Function traced, Function body,
                   Tensors vars, const WhileOptions& options) {
  check_count("while_loop", "maximum_iterations", options.maximum_iterations);
  if (traced && recording())
    return run_traced({.name = "while_loop",
                       .steps = options.maximum_iterations,
                       .condition =
                           [traced](std::span<const Tensor> x) {
                             Tensors holds = traced(x);
                             (void)Condition(holds[0], "while_loop");
                             return holds;
                           },
                       .step = std::move(body),
                       .carries = {},
                       .snapshots = options.snapshots},
                      std::move(vars), options.back_prop);
  return run({.name = "while_loop",
              .goes_on = [condition = std::move(condition), n = options.maximum_iterations](
                             std::int64_t i, std::span<const Tensor> x) { return i < n && condition(x); },
              .step = [body = std::move(body)](std::int64_t, std::span<const Tensor> x) { return body(x); }},
             std::move(vars), options.snapshots, options.back_prop);
}

Tensors fori_loop(std::int64_t lower, std::int64_t upper,
                  std::function<Tensors(std::int64_t, std::span<const Tensor>)> body, Tensors vars,
                  const ForOptions& options) {
  return run({.name = "fori_loop",
              .goes_on = {},
              .step = [lower, body = std::move(body)](
                          std::int64_t i, std::span<const Tensor> x) { return body(lower + i, x); },
              .steps = steps_between(lower, upper)},
             std::move(vars), options.snapshots, options.back_prop);
}

Tensors fori_loop(std::int64_t lower, std::int64_t upper, Function body, Tensors vars,
                  const ForOptions& options) {
  const auto with = [](const Tensor& i, std::span<const Tensor> x) {
    Tensors all = {i};
    all.insert(all.end(), x.begin(), x.end());
    return all;
  };
  const std::int64_t steps = steps_between(lower, upper);
  if (steps == 0 || !recording())
    return fori_loop(
        lower, upper,
        [with, body = std::move(body)](std::int64_t i, std::span<const Tensor> x) {
          return body(with(tensor(i), x));
        },
        std::move(vars), options);
  check_defined("fori_loop", "variable", vars);
  Tensors y = run_traced(
      {.name = "fori_loop",
       .steps = steps,
       .condition = {},
       .step = [with, body = std::move(body)](std::span<const Tensor> x) { return with(x[0] + 1, body(x)); },
       .carries = {},
       .snapshots = options.snapshots},
      with(tensor(lower), vars), options.back_prop, 1);
  y.erase(y.begin());
  return y;
}

Tensors scan(Function step, std::span<const Tensor> init, std::span<const Tensor> xs,
             const ScanLoopOptions& options) {
  check_count("scan", "snapshots", options.snapshots);
  check_defined("scan", "carry", init);
  const std::int64_t steps = steps_of("scan", xs, options.length);
  const auto scan = std::make_shared<const Scan>(Scan{std::move(step), init.size(), options.reverse});
  Tensors in(init.begin(), init.end());
  in.insert(in.end(), xs.begin(), xs.end());
  const bool recomputes = options.snapshots > 0 && thread_state.innermost;
  if (recomputes) require_few_runs("scan", steps, options.snapshots);
  if (steps > 0 && recording())
    return recording()->loop({.name = "scan",
                              .steps = steps,
                              .condition = {},
                              .step = [scan](std::span<const Tensor> x) { return checked_step(*scan, x); },
                              .carries = init.size(),
                              .reverse = options.reverse,
                              .snapshots = options.snapshots},
                             in);
  return connected(in, [&](std::span<const Tensor> x) {
    return recomputes ? run_with_snapshots(scan, x, 0, steps, options.snapshots) : run(*scan, x, 0, steps);
  });
}

}   // namespace detail
}   // namespace tapedeck
