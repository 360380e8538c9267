#include "compile/record/derivatives.h"

#include "tape/tape.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/ops/array.h"

namespace tapedeck::compiled {

// The operands as tensors that are not captured ones, too: one source must not be listed twice.
Tensors Differentiated::distinct(std::span<const Tensor> in) const {
  Tensors own(in.begin(), in.end());
  for (const std::size_t i : wanted)
    if (captured.contains(own[i])) own[i] = identity(own[i]);
  return own;
}

std::vector<Gradient> Differentiated::gradients(const Function& f, std::span<const Tensor> given,
                                                UnconnectedGradients mode, Tensors& y) const {
  const Tensors own = distinct(given);
  const std::span<const Tensor> in(own);
  GradientTape tape({.watch_accessed_variables = false});
  std::vector<Source> list;
  for (const std::size_t i : wanted)
    list.emplace_back(in[i]);
  captured.append_to(list);
  watch(tape, list);
  const Tensors results = f(in.first(operands));
  begin_gradient();
  Tensors targets;
  GradientOptions options{.unconnected = mode};
  std::size_t next = operands, result = 0;
  for (const Tensor& t : results)
    if (t.defined() && trainable[result++])
      targets.push_back(t), options.output_gradients.push_back(in[next++]);
  for (std::size_t k = wanted.size(); next < in.size(); ++k)
    targets.push_back(tensor_of(list[k])), options.output_gradients.push_back(in[next++]);
  y.insert(y.end(), results.begin(), results.end());
  return tape.gradient(Targets(targets), Sources(list), options);
}

Tensors Differentiated::tangents(const Function& f, std::span<const std::size_t> given,
                                 std::span<const Tensor> all_operands, UnconnectedGradients mode) const {
  const Tensors own = distinct(all_operands);
  const std::span<const Tensor> in(own);
  std::vector<Source> primals;
  Tensors known;
  std::size_t next = operands;
  for (const std::size_t s : given) {
    primals.push_back(s < wanted.size() ? Source(in[wanted[s]]) : captured[s - wanted.size()]);
    known.push_back(in[next++]);
  }
  const ForwardAccumulator forward(Sources(primals), known);
  Tensors all;
  std::size_t result = 0;
  for (const Tensor& t : f(in.first(operands)))
    if (t.defined()) {
      Gradient tangent;
      if (trainable[result++]) tangent = forward.jvp(t, mode);
      all.push_back(tangent.defined() ? std::move(tangent).dense() : Tensor());
    }
  return all;
}

}   // namespace tapedeck::compiled
