// composite: the op that records operations with a backward function of their own. Its outputs exist already,
// so it is recorded without running a kernel.
#include "tape/record_operation.h"

#include "core/format.h"
#include "tape/tape.h"

namespace tapedeck {
namespace {

struct Functions {
  std::string name;
  WantedBackward backward;
  Pushforward forward;
};
using CompositeAttrs = std::shared_ptr<const Functions>;

void composite_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  const Functions& f = *c.attrs<CompositeAttrs>();
  std::vector<Tensor> dy;
  for (Gradient& g : dys)
    dy.push_back(g.defined() ? std::move(g).dense() : Tensor());
  std::vector<Gradient> result = f.backward(dy, c.wanted);
  if (result.size() != dx.size())
    throw_error<ArgumentError>("{}: the backward function returned {} gradients for {} inputs", f.name,
                               result.size(), dx.size());
  for (std::size_t i = 0; i < dx.size(); ++i)
    if (const IndexedSlices* s = result[i].slices(); s && !c.op.rule.stacks)
      validate({s->values, s->indices, s->dense_shape.value_or(c.x[static_cast<int>(i)].shape())}, f.name);
  std::move(result.begin(), result.end(), dx.begin());
}

void composite_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  const Functions& f = *c.attrs<CompositeAttrs>();
  std::vector<Tensor> tangents;
  for (int i = 0; i < dx.size(); ++i)
    tangents.push_back(dx[i]);
  std::vector<Tensor> result = f.forward(tangents);
  if (result.size() != dy.size())
    throw_error<GradientError>("{}: the forward function returned {} tangents for {} outputs", f.name,
                               result.size(), dy.size());
  std::move(result.begin(), result.end(), dy.begin());
}

constexpr Op composite_op(Rule::Vjp vjp, Rule::Jvp jvp, bool stacks, bool accepts_none = false) {
  return {.name = "composite",
          .doc = "An operation with a backward function of its own.",
          .args = {"x"},
          .infer = [](const Call& c) { return c.x[0].spec(); },
          .forward = {},
          .rule = {.kind = RuleKind::custom,
                   .reads_shapes = true,
                   .accepts_none = accepts_none,
                   .stacks = stacks,
                   .vjp = vjp,
                   .jvp = jvp}};
}
constexpr Op composite = composite_op(composite_vjp, composite_jvp, false),
             without_forward = composite_op(composite_vjp, nullptr, false),
             without_backward = composite_op(nullptr, composite_jvp, false),
             stacking = composite_op(composite_vjp, composite_jvp, true),
             accepting_none = composite_op(composite_vjp, composite_jvp, false, true);

// A backward function that returns all gradients, whatever is wanted.
WantedBackward of_all(Backward backward) {
  return [backward = std::move(backward)](std::span<const Tensor> dy, std::uint64_t) { return backward(dy); };
}

void record(const Op& op, Functions functions, std::span<const Tensor> outputs,
            std::span<const Tensor> inputs) {
  const CompositeAttrs attrs = std::make_shared<const Functions>(std::move(functions));
  std::vector<const Tensor*> x;
  for (const Tensor& t : inputs)
    x.push_back(&t);
  std::vector<Tensor> y(outputs.begin(), outputs.end());
  record_computed({.op = op, .raw_attrs = attrs, .x = {x.data(), static_cast<int>(x.size())}}, y,
                  attrs->name);
}

}   // namespace

std::string_view name_of(const Op& op, const Attrs& attrs) {
  return op.rule.vjp == composite_vjp || op.rule.jvp == composite_jvp
             ? std::string_view((*static_cast<const CompositeAttrs*>(attrs.data))->name)
             : op.name;
}

void record_operation(std::string name, std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                      Backward backward, Pushforward forward) {
  if (!backward && !forward)
    throw_error<ArgumentError>("record_operation: \"{}\" has neither a backward nor a forward function",
                               name);
  if (outputs.empty()) return;
  const Op& op = !backward ? without_backward : forward ? composite : without_forward;
  record(op, {std::move(name), of_all(std::move(backward)), std::move(forward)}, outputs, inputs);
}

void record_operation_accepting_none(std::string name, std::span<const Tensor> outputs,
                                     std::span<const Tensor> inputs, Backward backward, Pushforward forward) {
  if (outputs.empty()) return;
  record(accepting_none, {std::move(name), of_all(std::move(backward)), std::move(forward)}, outputs, inputs);
}

void record_stacking_operation(std::string name, std::span<const Tensor> outputs,
                               std::span<const Tensor> inputs, WantedBackward backward, Pushforward forward) {
  record(stacking, {std::move(name), std::move(backward), std::move(forward)}, outputs, inputs);
}

}   // namespace tapedeck
