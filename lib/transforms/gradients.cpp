// Derivatives of the ops that a Recording has recorded. In: targets and sources. Out: the gradients, from the
// innermost persistent tape.
#include "tapedeck/gradients.h"

#include "core/format.h"
#include "tape/imperative_grad.h"
#include "tapedeck/ops/array.h"
#include "transforms/jacobian.h"

namespace tapedeck {
namespace {

Tape* persistent_among(Recorder* innermost) {
  for (Recorder* r = innermost; r; r = r->outer())
    if (Tape* tape = dynamic_cast<Tape*>(r); tape && tape->options().persistent) return tape;
  return nullptr;
}

// The innermost persistent tape, which a RecordingScope may have suspended. Error messages begin with `name`.
Tape& recorded(std::string_view name) {
  if (Tape* tape = persistent_among(thread_state.innermost)) return *tape;
  for (RecordingScope* s = thread_state.scopes; s; s = s->around)
    if (Tape* tape = persistent_among(s->suspended)) return *tape;
  throw_error<GradientError>(
      "{}: nothing is recorded on this thread; create a Recording, or a persistent GradientTape, before the "
      "computation to be differentiated",
      name);
}

}   // namespace

std::vector<Gradient> gradients(const Targets& ys, const Sources& xs, const GradientOptions& options) {
  Tape& tape = recorded("gradients");
  for (std::size_t i = 0; const Source& y : ys.all()) {
    if (!tensor_of(y).defined()) throw_error<ArgumentError>("gradients: target {} is undefined", i);
    const DType dtype = tensor_of(y).dtype();
    if (dtype == DType::boolean)
      throw_error<DTypeError>("gradients: target {} is bool, which has no gradient; use where or astype", i);
    const bool given = i < options.output_gradients.size() && options.output_gradients[i].defined();
    if (is_complex(dtype) && !given)
      throw_error<DTypeError>(
          "gradients: target {} is {}, and complex numbers have no default output gradient; pass one", i,
          dtype);
    ++i;
  }
  return differentiate(tape, ys, xs, options);
}

std::vector<Gradient> hessians(const Targets& ys, const Sources& xs, const JacobianOptions& options) {
  Tape& tape = recorded("hessians");
  const std::vector<Gradient> first = differentiate(tape, ys, xs, {});
  std::vector<Gradient> result;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Source& x = xs.all()[i];
    const Spec spec = tensor_of(x).spec();
    if (first[i].defined())
      result.push_back(jacobians(tape, first[i].dense(), x, options, "hessians")[0]);
    else if (options.unconnected == UnconnectedGradients::zero)
      result.push_back(zeros(behind(spec.shape, spec.shape), spec.dtype));
    else
      result.push_back(first[i]);
  }
  return result;
}

std::vector<Gradient> hessian_vector_product(const Targets& ys, const Sources& xs,
                                             std::span<const Tensor> v) {
  if (v.size() != xs.all().size())
    throw_error<ArgumentError>("hessian_vector_product: {} vectors for {} sources", v.size(),
                               xs.all().size());
  Tape& tape = recorded("hessian_vector_product");
  const std::vector<Gradient> first = differentiate(tape, ys, xs, {});
  std::vector<Tensor> targets, weights;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!first[i].defined()) continue;
    targets.push_back(first[i].dense());
    weights.push_back(stop_gradient(v[i]));
  }
  if (targets.empty()) return std::vector<Gradient>(first.size());
  return differentiate(tape, targets, xs, {.output_gradients = weights});
}

}   // namespace tapedeck
