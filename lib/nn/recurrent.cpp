// Recurrent layers: one op for all steps, or a loop of ops.
#include "tapedeck/nn/recurrent.h"

#include "core/format.h"
#include "nn/in_layer.h"
#include "tapedeck/nn/new_variables.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck::nn {
namespace {

Tensor swap_batch_and_time(const Tensor& x) { return transpose(x, {1, 0, 2}); }

void check_sequence(std::string_view layer, const Tensor& x, std::int64_t inputs, const Tensor& lengths) {
  if (x.ndim() != 3 || x.shape()[2] != inputs)
    throw_error<ShapeError>("{}: x is {}; it must be [batch, time, {}]", layer, x.spec(), inputs);
  if (!lengths.defined()) return;
  if (lengths.dtype() != DType::i32 && lengths.dtype() != DType::i64)
    throw_error<DTypeError>("{}: lengths are {}; use i32 or i64", layer, lengths.spec());
  const std::int64_t batch = x.shape()[0], time = x.shape()[1];
  if (lengths.shape() != Shape{batch})
    throw_error<ShapeError>("{}: lengths are {}; they must be [{}], one for each sequence", layer,
                            lengths.spec(), batch);
  for (const std::int64_t n : lengths.to_vector<std::int64_t>())
    if (n < 0 || n > time)
      throw_error<ShapeError>("{}: a length is {}, but time is {}; use 0..{}", layer, n, time, time);
}

// The states [time, batch, n], with zeros after the end of each sequence.
Tensor within(const Tensor& states, const Tensor& lengths) {
  if (!lengths.defined()) return states;
  const Tensor step = reshape(arange(states.shape()[0]), {-1, 1, 1});
  return where(less(step, reshape(astype(lengths, DType::i64), {1, -1, 1})), states, 0.0);
}
// The last state of each sequence, or `first` if it is empty.
Tensor last_of(const Tensor& states, const Tensor& first, const Tensor& lengths) {
  const std::int64_t time = states.shape()[0];
  if (!lengths.defined()) return time == 0 ? first : states[time - 1];
  const Tensor all = concat({expand_dims(first, 0), states}, 0);
  const Tensor at = reshape(astype(lengths, DType::i64), {1, -1, 1});
  return squeeze(take_along_axis(all, broadcast_to(at, {1, states.shape()[1], states.shape()[2]}), 0), {0});
}

}   // namespace

Lstm::Lstm(std::int64_t inputs_, std::int64_t outputs_, random::Key key, const LayerOptions& options)
    : inputs(inputs_),
      outputs(outputs_),
      forget_bias(options.defaults == Defaults::keras ? 1 : 0),
      kernel(detail::new_recurrent_kernel("lstm", inputs, outputs, 4, key, options)),
      bias(detail::new_recurrent_bias("lstm", outputs, 4, key.split(2), options)) {}

LstmSequence Lstm::operator()(const Tensor& x, const Tensor& lengths, const LstmState& state) const {
  return in_layer({this, "Lstm", kernel, "batch,time,#", inputs}, x, [&]() -> LstmSequence {
    check_sequence("lstm", x, inputs, lengths);
    const auto or_zeros = [&](const Tensor& s) {
      return s.defined() ? s : zeros({x.shape()[0], outputs}, x.dtype());
    };
    const LstmState first = {or_zeros(state.h), or_zeros(state.c)};
    const LstmState all =
        block_lstm(within(swap_batch_and_time(x), lengths), first, kernel, bias, forget_bias);
    return {detail::noted(this, "Lstm", swap_batch_and_time(within(all.h, lengths))),
            {last_of(all.h, first.h, lengths), last_of(all.c, first.c, lengths)}};
  });
}

Gru::Gru(std::int64_t inputs_, std::int64_t outputs_, random::Key key, const LayerOptions& options)
    : inputs(inputs_),
      outputs(outputs_),
      kernel(detail::new_kernel("gru", {inputs, 3 * outputs}, key.split(0), options,
                                detail::Role::input_of_recurrent)),
      recurrent(
          detail::new_kernel("gru", {outputs, 3 * outputs}, key.split(1), options, detail::Role::recurrent)),
      bias(detail::new_recurrent_bias("gru", outputs, 3, key.split(2), options)),
      recurrent_bias(detail::new_recurrent_bias("gru", outputs, 3, key.split(3), options)) {}

GruSequence Gru::operator()(const Tensor& x, const Tensor& lengths, const Tensor& state) const {
  return in_layer({this, "Gru", kernel, "batch,time,#", inputs}, x, [&]() -> GruSequence {
    check_sequence("gru", x, inputs, lengths);
    const Tensor first = state.defined() ? state : zeros({x.shape()[0], outputs}, x.dtype());
    const Tensor weights = recurrent, offset = recurrent_bias;
    std::vector<Tensor> states;
    Tensor h = first;
    const Tensor used = within(swap_batch_and_time(x), lengths);
    for (const Tensor& from_x : unstack(matmul(used, kernel) + bias.value())) {
      const std::vector<Tensor> in = split(from_x, {2 * outputs, outputs}, -1);
      const std::vector<Tensor> back = split(matmul(h, weights) + offset, {2 * outputs, outputs}, -1);
      const std::vector<Tensor> gates = split(sigmoid(in[0] + back[0]), 2, -1);
      const Tensor candidate = tanh(in[1] + gates[0] * back[1]);
      h = candidate + gates[1] * (h - candidate);
      states.push_back(h);
    }
    const Tensor all = states.empty() ? zeros({0, x.shape()[0], outputs}, x.dtype()) : stack(states);
    return {detail::noted(this, "Gru", swap_batch_and_time(within(all, lengths))),
            last_of(all, first, lengths)};
  });
}

}   // namespace tapedeck::nn
