// Derivatives of functions. In: a function and a point. Out: its value there, and its gradients, Jacobian
// products or Jacobians, by tapes and accumulators that live for the call.
#include <algorithm>

#include "core/format.h"
#include "core/storage.h"
#include "op/recorder.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradients.h"
#include "tapedeck/ops.h"
#include "transforms/jacobian.h"

namespace tapedeck {
namespace {

using detail::Traced;

// Calls f, and checks that its values are defined.
std::vector<Tensor> run(const Traced& f, const std::vector<Tensor>& x) {
  std::vector<Tensor> y = f.call(f.takes_nothing ? std::span<const Tensor>() : std::span<const Tensor>(x));
  for (const Tensor& t : y)
    if (!t.defined())
      throw ArgumentError(
          "function: an undefined tensor was returned; is a return missing? (Or is it a gradient that is "
          "none?)");
  return y;
}

// A new tensor with the memory of x. identity is called only if a recorder or an observer would notice it.
Tensor alias(const Tensor& x) { return thread_state.observer || followed(x) ? identity(x) : share(x); }

// The arguments with which f is called for xs: new tensors, so that xs themselves, which f may also capture,
// are constants, and a tensor that is listed twice is two arguments. A function without arguments captures
// xs.
std::vector<Tensor> arguments(const Traced& f, std::vector<Tensor> xs) {
  if (!f.takes_nothing)
    for (Tensor& x : xs)
      if (x.defined()) x = alias(x);
  return xs;
}

// Watches the inputs with respect to which f is differentiated, and calls f.
struct Watched {
  Watched(GradientTape& tape, const Traced& f, const Sources& xs) : are_arguments(!f.takes_nothing) {
    std::vector<Tensor> inputs;
    if (are_arguments) {
      for (const Source& x : xs.all())
        inputs.push_back(x.variable() ? x.variable()->value() : x.tensor());
      inputs = arguments(f, std::move(inputs));
      for (const Tensor& t : inputs)
        tape.watch(t);
      sources = inputs;
    } else {
      for (const Source& x : xs.all())
        x.variable() ? tape.watch(*x.variable()) : tape.watch(x.tensor());
      sources = xs;
    }
    values = run(f, inputs);
  }

  std::vector<Tensor> values;
  Sources sources{};
  bool are_arguments;   // the sources are the tensors that f was called with
};

constexpr TapeOptions kOnlySources = {.watch_accessed_variables = false};

const Tensor& only(const std::vector<Tensor>& values, std::string_view name) {
  if (values.size() != 1)
    throw_error<ArgumentError>("{}: the function returns {} tensors; it must return one", name,
                               values.size());
  return values[0];
}

// The derivatives as dense tensors; none of them is none.
std::vector<Tensor> dense(std::vector<Gradient> derivatives) {
  std::vector<Tensor> result;
  for (Gradient& d : derivatives)
    result.push_back(std::move(d).dense());
  return result;
}

// Warns, once per thread, if no path leads from a function's value to any argument.
void warn_of_constant(const std::vector<Gradient>& gradients, const Sources& arguments) {
  bool any = false;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) return;
    any |= is_trainable(arguments.all()[i].tensor().dtype());
  }
  thread_local bool warned = false;
  if (any && !std::exchange(warned, true))
    warn(
        "grad: no path leads from the function's value to an argument, so its derivatives are zeros; unless "
        "it is constant, it has to compute the value from its arguments by ops, not from captured tensors, "
        "or from numbers read by item() or data()");
}

// Gradients in arguments; zeros if there is no path. Integers and bools have no derivative.
std::vector<Gradient> in_arguments(std::vector<Gradient> gradients, const Sources& arguments) {
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (const Tensor& x = arguments.all()[i].tensor(); !gradients[i].defined() && is_trainable(x.dtype()))
      gradients[i] = zeros_like(x);
  return gradients;
}

void check_scalar(const Tensor& y, std::string_view name) {
  if (y.size() != 1)
    throw_error<ShapeError>(
        "{}: the function's value is {}; it must have one element: return its sum or mean", name, y.spec());
}

// The gradient of f as a function of what f takes; if f takes nothing, with respect to xs, which it captures.
Traced gradient_of(const Traced& f, const std::vector<Tensor>& xs, std::string_view name) {
  return {[f, xs, name](std::span<const Tensor> arguments) {
            const std::span<const Tensor> x = f.takes_nothing ? std::span<const Tensor>(xs) : arguments;
            GradientTape tape(kOnlySources);
            const Watched w(tape, f, x);
            check_scalar(only(w.values, name), name);
            return dense(tape.gradient(w.values, w.sources, {.unconnected = UnconnectedGradients::zero}));
          },
          f.takes_nothing};
}

void check_real(const Tensor& x, std::string_view name, std::string_view what) {
  if (!x.defined()) throw_error<ArgumentError>("{}: {} is undefined", name, what);
  if (!is_floating(x.dtype()))
    throw_error<DTypeError>("{}: {} is {}; use f32, f64, f16 or bf16", name, what, x.spec());
}

// Computes columns of the Jacobian of f(xs) with respect to input i, in the shape [columns] + f(xs).shape and
// the dtype of the input, as in reverse mode. units(first, count) returns the directions of columns [first,
// first + count), each in the shape of the input; f runs once per batch of columns.
template <class Units> Tensor columns_of(const Traced& f, const std::vector<Tensor>& xs, std::size_t i,
                                         std::int64_t columns, const JacobianOptions& options,
                                         std::string_view name, const Units& units) {
  std::vector<Tensor> parts;
  const bool stacked = options.vectorize || columns == 0;
  const std::int64_t at_once =
      stacked ? std::max<std::int64_t>(1, options.max_bytes / std::max<std::int64_t>(1, xs[i].nbytes())) : 1;
  for (std::int64_t first = 0, count = 0; first < std::max<std::int64_t>(columns, 1); first += count) {
    count = std::min(at_once, columns - first);
    const Tensor directions = units(first, count);
    const ForwardAccumulator forward(xs[i], stacked ? directions : reshape(directions, xs[i].shape()),
                                     {.stacked = stacked});
    const std::vector<Tensor> values = run(f, xs);
    const Tensor& y = only(values, name);
    check_real(y, name, "the function's value");
    const Tensor tangent = forward.jvp(y, UnconnectedGradients::zero);
    parts.push_back(stacked ? tangent : expand_dims(tangent, 0));
    if (columns == 0) break;
  }
  const Tensor all = parts.size() == 1 ? parts[0] : concat(parts, 0);
  return all.dtype() == xs[i].dtype() ? all : astype(all, xs[i].dtype());
}

// Whether to use reverse mode. A function with more outputs than inputs uses forward mode, unless stacked
// tangents of an intermediate tensor would exceed the maximum rank.
bool goes_in_reverse(const GradientTape& tape, const Tensor& y, std::int64_t columns,
                     const JacobianOptions& options) {
  return options.mode == JacobianMode::reverse || y.size() <= columns ||
         (options.vectorize && tape.tape().most().ndim >= Shape::kMaxRank);
}

JacobianOptions in_reverse(JacobianOptions options) {
  options.mode = JacobianMode::reverse;
  options.unconnected = UnconnectedGradients::zero;
  return options;
}

}   // namespace

void detail::check_differentiable(std::string_view name, std::size_t argument, const Tensor& x) {
  if (x.defined() && !is_trainable(x.dtype()))
    throw_error<DTypeError>(
        "{}: argument {} is {}, which has no derivative; use astype, or choose others, as in "
        "{}<1>(f)",
        name, argument, x.spec(), name);
}

detail::Differentiated detail::value_and_gradients(const Traced& f, const Sources& xs,
                                                   const GradientOptions& options, bool zeros) {
  GradientTape tape(kOnlySources);
  Watched w(tape, f, xs);
  std::vector<Gradient> gradients = tape.gradient(w.values, w.sources, options);
  if (zeros && w.are_arguments) {
    warn_of_constant(gradients, w.sources);
    gradients = in_arguments(std::move(gradients), w.sources);
  }
  return {std::move(w.values), std::move(gradients)};
}

ImplicitGradients implicit_value_and_grad(const std::function<Tensor()>& f) {
  if (!f) throw ArgumentError("implicit_value_and_grad: the function is empty");
  GradientTape tape;
  const Tensor value = f();
  if (!value.defined())
    throw ArgumentError("implicit_value_and_grad: an undefined tensor was returned; is a return missing?");
  std::vector<Variable> variables = tape.watched_variables();
  if (variables.empty())
    throw ArgumentError(
        "implicit_value_and_grad: the function reads no trainable variable, so there is nothing to "
        "differentiate with respect to");
  std::vector<Gradient> gradients = tape.gradient(Targets(value), Sources(variables));
  return {value, std::move(gradients), std::move(variables)};
}

struct Pullback::State {
  GradientTape tape;
  std::vector<Tensor> values;
  Sources sources;
  bool are_arguments;
};

std::pair<std::vector<Tensor>, Pullback> detail::values_and_pullback(const Traced& f, const Sources& xs,
                                                                     const VjpOptions& options) {
  // clang 14 cannot construct an aggregate in make_shared. NOLINTNEXTLINE(modernize-make-shared)
  const auto state = std::shared_ptr<Pullback::State>(new Pullback::State{
      GradientTape({.persistent = options.persistent, .watch_accessed_variables = false}), {}, {}, {}});
  Watched w(state->tape, f, xs);
  for (Tensor& y : w.values)
    y = identity(y);   // if f returns an input, the result is a separate tensor
  state->tape.stop();
  state->values = w.values;
  state->sources = std::move(w.sources);
  state->are_arguments = w.are_arguments;
  return {std::move(w.values), Pullback(state)};
}

std::vector<Gradient> Pullback::operator()(const OutputGradients& dy) const {
  std::vector<Gradient> gradients =
      state_->tape.gradient(state_->values, state_->sources, {.output_gradients = dy});
  return state_->are_arguments ? in_arguments(std::move(gradients), state_->sources) : gradients;
}

std::vector<Tensor> detail::tangents(const Traced& f, const std::vector<Tensor>& xs,
                                     const std::vector<Tensor>& v) {
  const std::vector<Tensor> inputs = arguments(f, xs);
  const ForwardAccumulator forward{Sources(inputs), std::span<const Tensor>(v)};
  const std::vector<Tensor> y = run(f, inputs);
  std::vector<Tensor> result;
  for (const Tensor& t : y)
    result.push_back(forward.jvp(t, UnconnectedGradients::zero));
  return result;
}

std::vector<Tensor> detail::jacobians(const Traced& f, const std::vector<Tensor>& xs,
                                      const JacobianOptions& options) {
  check_options("jacobian", options);
  std::int64_t columns = 0;
  for (const Tensor& x : xs) {
    check_real(x, "jacobian", "x");
    columns += x.size();
  }
  if (options.mode != JacobianMode::forward) {
    GradientTape tape(kOnlySources);
    const Watched w(tape, f, xs);
    const Tensor& y = only(w.values, "jacobian");
    check_real(y, "jacobian", "the function's value");
    if (goes_in_reverse(tape, y, columns, options))
      return dense(tape.jacobian(y, w.sources, in_reverse(options)));
  }
  const std::vector<Tensor> inputs = arguments(f, xs);
  std::vector<Tensor> result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i];
    const Tensor all =
        columns_of(f, inputs, i, x.size(), options, "jacobian", [&](std::int64_t first, std::int64_t count) {
          return reshape(identity_rows(first, count, x.size(), x.dtype()), behind({count}, x.shape()));
        });
    const Shape y(all.shape().dims().subspan(1));
    check_rank("jacobian", {x.dtype(), y}, x.spec(), y.ndim() + x.ndim());
    result.push_back(reshape(transpose(reshape(all, {x.size(), y.size()})), behind(y, x.shape())));
  }
  return result;
}

Tensor detail::batch_jacobian(const Traced& f, const Tensor& x, const JacobianOptions& options) {
  check_options("batch_jacobian", options);
  check_real(x, "batch_jacobian", "x");
  if (options.mode != JacobianMode::forward) {
    GradientTape tape(kOnlySources);
    const Watched w(tape, f, x);
    const Tensor& y = only(w.values, "batch_jacobian");
    check_real(y, "batch_jacobian", "the function's value");
    check_batch(y.spec(), x.spec());
    if (goes_in_reverse(tape, y, x.size(), options))
      return tape.batch_jacobian(y, w.sources.all()[0], in_reverse(options));
  }
  check_batch(x.spec(), x.spec());
  const Shape of_x(x.shape().dims().subspan(1));
  const Tensor all =
      columns_of(f, arguments(f, {x}), 0, of_x.size(), options, "batch_jacobian",
                 [&](std::int64_t first, std::int64_t count) { return batch_units(first, count, x.spec()); });
  const Shape y(all.shape().dims().subspan(1));
  check_batch({x.dtype(), y}, x.spec());
  check_rank("batch_jacobian", {x.dtype(), y}, x.spec(), y.ndim() + x.ndim() - 1);
  const Shape row(y.dims().subspan(1));
  return reshape(transpose(reshape(all, {of_x.size(), y[0], row.size()}), {1, 2, 0}), behind(y, of_x));
}

Tensor detail::hessian(const Traced& f, const Tensor& x, const JacobianOptions& options) {
  check_real(x, "hessian", "x");
  return jacobians(gradient_of(f, {x}, "hessian"), {x}, options)[0];
}

std::vector<Tensor> detail::hessian_vector_product(const Traced& f, const std::vector<Tensor>& xs,
                                                   const std::vector<Tensor>& v, JacobianMode mode) {
  if (v.size() != xs.size())
    throw_error<ArgumentError>("hessian_vector_product: {} vectors for {} tensors", v.size(), xs.size());
  for (std::size_t i = 0; i < v.size(); ++i)
    if (!v[i].defined()) throw_error<ArgumentError>("hessian_vector_product: vector {} is undefined", i);
  const Traced gradient = gradient_of(f, xs, "hessian_vector_product");
  if (mode == JacobianMode::forward) return detail::tangents(gradient, xs, v);
  GradientTape tape(kOnlySources);
  const Watched w(tape, gradient, xs);
  return dense(
      tape.gradient(w.values, w.sources, {.output_gradients = v, .unconnected = UnconnectedGradients::zero}));
}

}   // namespace tapedeck
