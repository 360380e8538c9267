// Branches. In: operands and the chosen function. Out: its results, with a gradient with respect to every
// operand.
//
// The ops of the function are recorded as they run. Operands that it does not use must get zero gradients, by
// two ops: `enter` returns copies of the operands for the function, and a token, which is an empty tensor;
// `leave` returns the results of the function, and has the token as an additional input. The gradient of any
// result therefore reaches `enter` through the token, and the rule of `enter` returns zeros for operands
// whose copies received no gradient. The gradients are recorded as piecewise constant in the operands, so
// that higher derivatives are zeros rather than none, even if the branch is linear.
#include "core/format.h"
#include "core/host_view.h"
#include "core/storage.h"
#include "core/trace.h"
#include "op/piecewise_constant.h"
#include "op/recorder.h"
#include "op/stacked_shapes.h"
#include "tapedeck/control.h"
#include "tapedeck/op.h"
#include "transforms/zero_gradients.h"

namespace tapedeck {
namespace {

const Spec kToken = {DType::f32, {0}};

// Zeros of this spec, preceded by the stacking axes of g, which is a gradient of a tensor of rank `rank`.
Tensor zeros_stacked_like(const Gradient& g, int rank, const Spec& spec) {
  return zeros(g.is_dense() ? behind_extra(g.tensor(), rank, spec.shape) : spec.shape, spec.dtype);
}

void share_all(const Call& c, std::span<Tensor> y, int n) {
  for (int i = 0; i < n; ++i)
    share_with(y[static_cast<std::size_t>(i)], c.x[i]);
}

std::vector<Spec> first_specs(const Call& c, int n) {
  std::vector<Spec> specs;
  for (int i = 0; i < n; ++i)
    specs.push_back(c.x[i].spec());
  return specs;
}

constexpr Rule rule_of(Reads reads, Rule::Vjp vjp, Rule::Jvp jvp) {
  Rule rule = Rule::custom(reads, vjp, jvp).accepting_none();
  rule.passes_slices = true;
  return rule;
}

// The gradient g of an operand, recorded as piecewise constant in the operand; slices are returned unchanged.
Gradient piecewise_in(const Gradient& g, const Tensor& x) {
  if (!g.is_dense()) return g;
  return piecewise_in(g.tensor(), x);
}

// The outputs of `enter` are its inputs and the token; the inputs of `leave` are its outputs and the token.
constexpr Op enter = {
    .name = "enter",
    .doc = "The operands of a branch as new tensors, and a token.",
    .args = {"operand"},
    .infer =
        [](const Call& c) {
          std::vector<Spec> specs = first_specs(c, c.x.size());
          specs.push_back(kToken);
          return specs;
        },
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  share_all(c, y, c.x.size());
                  allocate_for(y.back());
                },
                Outputs::by_kernel, KernelDtypes::all},
    .rule = rule_of(
        {.x = ~std::uint32_t{0}},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          std::size_t k = 0;
          while (!dy[k].defined())
            ++k;
          const int rank = c.y[static_cast<int>(k)].ndim();
          for (std::size_t i = 0; i < dx.size(); ++i) {
            const Tensor& x = c.x[static_cast<int>(i)];
            if (c.needs_gradient(static_cast<int>(i)))
              dx[i] = piecewise_in(
                  dy[i].defined() ? dy[i] : Gradient(zeros_stacked_like(dy[k], rank, x.spec())), x);
          }
        },
        [](const Call&, Refs dx, std::span<Tensor> dy) {
          for (int i = 0; i < dx.size(); ++i)
            dy[static_cast<std::size_t>(i)] = dx[i];
        }),
};
constexpr Op leave = {
    .name = "leave",
    .doc = "The results of a branch as new tensors.",
    .args = {"result"},
    .infer = [](const Call& c) { return first_specs(c, c.x.size() - 1); },
    .forward = {[](const Call& c, std::span<Tensor> y) { share_all(c, y, c.x.size() - 1); },
                Outputs::by_kernel, KernelDtypes::all},
    .rule = rule_of(
        {},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          std::size_t k = 0;
          while (!dy[k].defined())
            ++k;
          dx.back() = zeros_stacked_like(dy[k], c.y[static_cast<int>(k)].ndim(), kToken);
          std::ranges::move(dy, dx.begin());
        },
        [](const Call&, Refs dx, std::span<Tensor> dy) {
          for (std::size_t k = 0; k < dy.size(); ++k)
            dy[k] = dx[static_cast<int>(k)];
        }),
};

}   // namespace

std::vector<Tensor> connected(std::span<const Tensor> operands, const Function& f) {
  if (!thread_state.innermost) return f(operands);
  std::vector<Tensor> arguments(operands.begin(), operands.end()), inputs;
  for (const Tensor& t : operands)
    if (t.defined() && followed(t)) inputs.push_back(t);
  if (inputs.empty()) return f(operands);
  std::vector<Tensor> copies = enter.run(inputs);
  const Tensor token = std::move(copies.back());
  for (std::size_t i = 0, k = 0; k < inputs.size(); ++i)
    if (arguments[i].defined() && arguments[i].id() == inputs[k].id()) arguments[i] = std::move(copies[k++]);
  std::vector<Tensor> results = f(arguments);
  if (!tracked(token)) return results;   // only accumulators record
  std::vector<Tensor> defined;
  for (const Tensor& t : results)
    if (t.defined()) defined.push_back(t);
  if (defined.empty()) return results;
  defined.push_back(token);
  std::vector<Tensor> left = leave.run(defined);
  auto next = left.begin();
  for (Tensor& t : results)
    if (t.defined()) t = std::move(*next++);
  return results;
}

namespace {
// Throws unless y has the declared specs, if any are declared.
void check_outputs(std::string_view name, std::span<const Tensor> y, std::span<const Spec> outputs) {
  if (outputs.empty()) return;
  if (y.size() != outputs.size()) detail::throw_results(name, y.size(), outputs.size());
  for (std::size_t k = 0; k < y.size(); ++k) {
    if (!y[k].defined())
      throw_error<ArgumentError>("{}: output {} is undefined, {} was declared", name, k, outputs[k]);
    if (y[k].spec() != outputs[k])
      throw_changed(y[k].spec(), outputs[k],
                    fmt::format("{}: output {} is {}, {} was declared", name, k, y[k].spec(), outputs[k]));
  }
}
}   // namespace

std::vector<Tensor> detail::branch(std::string_view name, std::span<const Tensor> operands, const Function& f,
                                   std::span<const Spec> outputs) {
  return connected(operands, [&](std::span<const Tensor> x) {
    std::vector<Tensor> y = f(x);
    check_outputs(name, y, outputs);
    return y;
  });
}

std::vector<Tensor> detail::recorded_branch(std::string_view name, const Tensor& index,
                                            std::span<const Tensor> operands,
                                            const std::vector<Function>& branches,
                                            std::span<const Spec> outputs) {
  if (!thread_state.trace)
    throw_error<TraceError>("{}: the condition was computed while a function was recorded, which has ended",
                            name);
  // Undefined operands are not recorded; the branches get them nevertheless.
  std::vector<Tensor> defined;
  for (const Tensor& t : operands)
    if (t.defined()) defined.push_back(t);
  const std::vector<Tensor> all(operands.begin(), operands.end());
  std::vector<Function> of_defined;
  for (const Function& f : branches)
    of_defined.push_back([f, all](std::span<const Tensor> x) {
      std::vector<Tensor> arguments = all;
      for (std::size_t i = 0, k = 0; i < arguments.size(); ++i)
        if (arguments[i].defined()) arguments[i] = x[k++];
      return f(arguments);
    });
  const bool is_complete = defined.size() == operands.size();
  std::vector<Tensor> y = is_complete ? thread_state.trace->branch(name, index, operands, branches)
                                      : thread_state.trace->branch(name, index, defined, of_defined);
  check_outputs(name, y, outputs);
  return y;
}

Condition::Condition(const Tensor& value, std::string_view reader) : reader_(reader) {
  if (!value.defined()) throw_error<ArgumentError>("{}: the condition is undefined", reader);
  if (value.dtype() != DType::boolean)
    throw_error<DTypeError>("{}: the condition is {}; use bool, such as the result of a comparison", reader,
                            value.spec());
  if (value.size() != 1)
    throw_error<ShapeError>("{}: the condition is {}; use one element, as by all or any", reader,
                            value.spec());
  if (thread_state.trace && thread_state.trace->is_computed(value))
    tensor_ = value;
  else
    value_ = read_one<std::uint8_t>(value, reader) != 0;
}
Condition::operator bool() const {
  return tensor_.defined() ? read_one<std::uint8_t>(tensor_, reader_) != 0 : value_;
}

BranchIndex::BranchIndex(const Tensor& value) {
  if (!value.defined()) throw ArgumentError("switch_case: the index is undefined");
  if (!is_integer(value.dtype()))
    throw_error<DTypeError>("switch_case: the index is {}; use an integer dtype, as by astype", value.spec());
  if (value.size() != 1)
    throw_error<ShapeError>("switch_case: the index is {}; use one number", value.spec());
  if (thread_state.trace && thread_state.trace->is_computed(value))
    tensor_ = value;
  else
    value_ = read_one<std::int64_t>(value, "switch_case");
}

void BranchIndex::throw_computed() const {
  (void)read_one<std::int64_t>(tensor_, "switch_case");   // throws while a function is recorded
  throw TraceError("switch_case: the index was computed while a function was recorded, which has ended");
}

void detail::throw_empty(std::string_view caller) {
  throw_error<ArgumentError>("{}: the function is empty", caller);
}
void detail::throw_count(std::string_view caller, std::size_t arguments) {
  throw_error<ArgumentError>("{}: the function does not take {} tensors", caller, arguments);
}
void detail::throw_results(std::string_view caller, std::size_t returned, std::size_t wanted) {
  throw_error<ArgumentError>("{}: the function returns {} tensors, not {}", caller, returned, wanted);
}

}   // namespace tapedeck
