// Recurrent cells and losses of sequences, composed of ops. In: activations, states and weights. Out: states or losses.
#include "tapedeck/ops/rnn.h"

#include <limits>

#include "base/format.h"
#include "tapedeck/op.h"
#include "tapedeck/ops.h"
#include "tensor/storage.h"

namespace tapedeck {
namespace {

void require_weights(std::string_view name, const Tensor& x, std::int64_t units, const Tensor& weights, const Tensor& bias, std::int64_t gates) {
  const std::int64_t in = x.shape()[x.ndim() - 1];
  if (weights.shape() != Shape{in + units, gates * units} || bias.shape() != Shape{gates * units})
    throw_error<ShapeError>("{}: weights and bias are not {} and {}: they are {} and {}", name, Shape{in + units, gates * units}, Shape{gates * units}, weights.spec(), bias.spec());
}
// h is [batch, units] for x [..., batch, in].
void require_state(std::string_view name, const Tensor& x, int ndim, const Tensor& h, const Tensor& c) {
  if (x.ndim() != ndim || h.ndim() != 2 || h.shape() != c.shape() || h.shape()[0] != x.shape()[ndim - 2])
    throw_error<ShapeError>("{}: x is not {} and the state not [batch, units]: x is {}, h is {}, c is {}", name, ndim == 3 ? "[time, batch, in]" : "[batch, in]", x.spec(), h.spec(), c.spec());
}

// One step, from the products of x with the weights and the bias.
LstmState step(const Tensor& of_x, const LstmState& state, const Tensor& of_h, double forget_bias) {
  const std::vector<Tensor> gates = split(of_x + matmul(state.h, of_h), 4, -1);   // input, candidate, forget, output
  const Tensor c = sigmoid(gates[2] + forget_bias) * state.c + sigmoid(gates[0]) * tanh(gates[1]);
  return {sigmoid(gates[3]) * tanh(c), c};
}

// The weights of x and those of the state.
struct Halves { Tensor of_x, of_h; };
Halves halves(const Tensor& weights, std::int64_t in) {
  const std::vector<Tensor> both = split(weights, {in, -1}, 0);
  return {both[0], both[1]};
}

void require_lengths(const Tensor& lengths, std::string_view what, std::int64_t batch, std::int64_t most) {
  if (lengths.dtype() != DType::i32 && lengths.dtype() != DType::i64) throw_error<DTypeError>("ctc_loss: {} must be i32 or i64, use astype: they are {}", what, lengths.spec());
  if (lengths.shape() != Shape{batch}) throw_error<ShapeError>("ctc_loss: {} are not [{}]: they are {}", what, batch, lengths.spec());
  visit_indices(lengths, [&](const auto n) {
    for (std::size_t b = 0; b < n.size(); ++b)
      if (n[b] < 0 || n[b] > most) throw_error<ShapeError>("ctc_loss: {} is {} at {}; use 0..{}", what, n[b], b, most);
  });
}

constexpr double kNever = -1e30;   // the logarithm of no probability, which has no NaN in its derivatives

}  // namespace

LstmState lstm_cell(const Tensor& x, const LstmState& state, const Tensor& weights, const Tensor& bias, double forget_bias) {
  require_state("lstm_cell", x, 2, state.h, state.c);
  require_weights("lstm_cell", x, state.h.shape()[1], weights, bias, 4);
  const auto [of_x, of_h] = halves(weights, x.shape()[1]);
  return step(matmul(x, of_x) + bias, state, of_h, forget_bias);
}

// What x contributes is one product for all steps.
LstmState block_lstm(const Tensor& x, const LstmState& state, const Tensor& weights, const Tensor& bias, double forget_bias) {
  require_state("block_lstm", x, 3, state.h, state.c);
  const std::int64_t time = x.shape()[0], batch = x.shape()[1], in = x.shape()[2], units = state.h.shape()[1];
  require_weights("block_lstm", x, units, weights, bias, 4);
  if (time == 0) return {zeros({0, batch, units}, x.dtype()), zeros({0, batch, units}, x.dtype())};
  const auto [of_x, of_h] = halves(weights, in);
  const std::vector<Tensor> steps = unstack(reshape(matmul(reshape(x, {time * batch, in}), of_x) + bias, {time, batch, 4 * units}), 0);
  std::vector<Tensor> h, c;
  LstmState last = state;
  for (const Tensor& of_step : steps) {
    last = step(of_step, last, of_h, forget_bias);
    h.push_back(last.h);
    c.push_back(last.c);
  }
  return {stack(h), stack(c)};
}

Tensor gru_cell(const Tensor& x, const Tensor& h, const GruWeights& w) {
  require_state("gru_cell", x, 2, h, h);
  require_weights("gru_cell", x, h.shape()[1], w.gates, w.gates_bias, 2);
  require_weights("gru_cell", x, h.shape()[1], w.candidate, w.candidate_bias, 1);
  const std::vector<Tensor> gates = split(sigmoid(matmul(concat({x, h}, 1), w.gates) + w.gates_bias), 2, -1);   // reset, update
  const Tensor candidate = tanh(matmul(concat({x, gates[0] * h}, 1), w.candidate) + w.candidate_bias);
  return candidate + gates[1] * (h - candidate);
}

// Graves et al. 2006, equations 5 to 8: the forward variables of the labels with blanks around each, in logarithms.
Tensor ctc_loss(const Tensor& labels, const Tensor& logits, const Tensor& label_lengths, const Tensor& logit_lengths, std::int64_t blank) {
  if (!is_floating(logits.dtype())) throw_error<DTypeError>("ctc_loss: takes f32 or f64, use astype: logits is {}", logits.spec());
  if (labels.dtype() != DType::i32 && labels.dtype() != DType::i64) throw_error<DTypeError>("ctc_loss: labels must be i32 or i64, use astype: they are {}", labels.spec());
  if (logits.ndim() != 3 || labels.ndim() != 2 || labels.shape()[0] != logits.shape()[1])
    throw_error<ShapeError>("ctc_loss: logits are not [time, batch, classes] and labels not [batch, most]: logits is {}, labels is {}", logits.spec(), labels.spec());
  const std::int64_t time = logits.shape()[0], batch = logits.shape()[1], classes = logits.shape()[2], most = labels.shape()[1], states = 2 * most + 1;
  if (blank < 0 || blank >= classes) throw_error<ArgumentError>("ctc_loss: blank is {}; use 0..{}", blank, classes - 1);
  require_lengths(label_lengths, "label_lengths", batch, most);
  require_lengths(logit_lengths, "logit_lengths", batch, time);

  // Per sequence and state: its class, whether the state two before may go on to it, and whether the sequence may end in it.
  const std::vector<std::int64_t> label = labels.to_vector<std::int64_t>(), length = label_lengths.to_vector<std::int64_t>();
  std::vector<std::int64_t> place;
  std::vector<std::uint8_t> skips, ends, starts;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t s = 0; s < states; ++s) {
      const std::int64_t k = s / 2, n = length[static_cast<std::size_t>(b)];
      const bool used = s % 2 && k < n;
      const auto at = [&](std::int64_t i) { return label[static_cast<std::size_t>(b * most + i)]; };
      if (used && (at(k) < 0 || at(k) >= classes || at(k) == blank))
        throw_error<ShapeError>("ctc_loss: label {} at [{},{}] is the blank or out of range for {} classes", at(k), b, k, classes);
      place.push_back(b * classes + (used ? at(k) : blank));
      skips.push_back(used && k > 0 && at(k) != at(k - 1));
      ends.push_back(s == 2 * n || s == 2 * n - 1);
      starts.push_back(s < 2);
    }
  const auto flags = [&](const std::vector<std::uint8_t>& v) { return astype(tensor(v, {batch, states}), DType::boolean); };
  const Tensor skip = flags(skips), end = flags(ends), start = flags(starts);
  if (time == 0) return where(equal(label_lengths, 0), zeros({batch}, logits.dtype()), std::numeric_limits<double>::infinity());

  const Tensor emitted = reshape(gather(reshape(log_softmax(logits), {time, batch * classes}), tensor(place), 1), {time, batch, states});
  const std::vector<Tensor> at_step = unstack(emitted, 0);
  const auto behind = [&](const Tensor& a, std::int64_t by) {
    const std::int64_t n = std::min(by, states);
    return concat({full({batch, n}, kNever, a.dtype()), slice(a, {0, 0}, {batch, states - n})}, 1);
  };
  // A sequence without steps has only the state before all labels.
  Tensor alpha = where(start, at_step[0], kNever);
  for (std::int64_t t = 1; t < time; ++t) {
    const Tensor before = behind(alpha, 1), skipped = where(skip, behind(alpha, 2), kNever), most_likely = stop_gradient(maximum(maximum(alpha, before), skipped));
    const Tensor next = most_likely + log(exp(alpha - most_likely) + exp(before - most_likely) + exp(skipped - most_likely)) + at_step[static_cast<std::size_t>(t)];
    alpha = where(expand_dims(greater(logit_lengths, t), 1), next, alpha);
  }
  const Tensor last = where(end, alpha, kNever), largest = stop_gradient(max(last, 1, true));
  const Tensor loss = -(squeeze(largest, 1) + log(sum(exp(last - largest), 1)));
  const Tensor whole = where(equal(logit_lengths, 0), where(equal(label_lengths, 0), 0, 1e30), loss);
  return where(whole > 1e29, std::numeric_limits<double>::infinity(), whole);
}

std::span<const Op> rnn_ops() { return {}; }

}  // namespace tapedeck
