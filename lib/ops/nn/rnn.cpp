// Recurrent cells and losses of sequences. In: activations, states and weights. Out: states or losses. Ops
// over all time steps have kernels for the forward pass and the gradient; the gradient is differentiated
// through the same function built from ops.
#include "tapedeck/ops/rnn.h"

#include <limits>

#include "core/format.h"
#include "core/storage.h"
#include "kernels/nn/ctc.h"
#include "kernels/nn/lstm.h"
#include "ops/infer.h"
#include "ops/nn/rnn.h"
#include "ops/pull_back_by_ops.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using Tensors = std::vector<Tensor>;

void require_weights(std::string_view name, const Tensor& x, std::int64_t units, const Tensor& weights,
                     const Tensor& bias, std::int64_t gates) {
  const std::int64_t in = x.shape()[x.ndim() - 1];
  if (weights.shape() != Shape{in + units, gates * units} || bias.shape() != Shape{gates * units})
    throw_error<ShapeError>("{}: weights and bias are not {} and {}: they are {} and {}", name,
                            Shape{in + units, gates * units}, Shape{gates * units}, weights.spec(),
                            bias.spec());
}
// Throws ShapeError unless h and c are [batch, units] for x [..., batch, in].
void require_state(std::string_view name, const Tensor& x, int ndim, const Tensor& h, const Tensor& c) {
  if (x.ndim() != ndim || h.ndim() != 2 || h.shape() != c.shape() || h.shape()[0] != x.shape()[ndim - 2])
    throw_error<ShapeError>("{}: x must be {} and the state [batch, units]: x is {}, h is {}, c is {}", name,
                            ndim == 3 ? "[time, batch, in]" : "[batch, in]", x.spec(), h.spec(), c.spec());
}

// Throws DTypeError unless all inputs of a cell are of floating-point dtypes.
void require_floating_cell(std::string_view name,
                           std::initializer_list<std::pair<const char*, const Tensor*>> inputs) {
  for (const auto& [input, x] : inputs)
    if (!is_floating(x->dtype()))
      throw_error<DTypeError>("{}: takes f32, f64, f16 or bf16, use astype: {} is {}", name, input,
                              x->spec());
}

// One step. of_x is the product of x with its weights, plus the bias.
LstmState step(const Tensor& of_x, const LstmState& state, const Tensor& of_h, double forget_bias) {
  const std::vector<Tensor> gates =
      split(of_x + matmul(state.h, of_h), 4, -1);   // input, candidate, forget, output
  const Tensor c = sigmoid(gates[2] + forget_bias) * state.c + sigmoid(gates[0]) * tanh(gates[1]);
  return {sigmoid(gates[3]) * tanh(c), c};
}

kernels::Lstm lstm_of(const Call& c, const Tensor& h0, std::int64_t time) {
  return {time, h0.shape()[0], h0.shape()[1], c.attrs<LstmAttrs>().forget_bias};
}

std::vector<Spec> infer_lstm(const Call& c) {
  const Tensor &x = c.x[0], &h = c.x[1];
  require_floating(c, 0);
  require_state(c.op.name, x, 3, h, c.x[2]);
  const std::int64_t time = x.shape()[0], batch = x.shape()[1], units = h.shape()[1];
  require_weights(c.op.name, x, units, c.x[3], c.x[4], 4);
  require_one_dtype(c);
  (void)Shape{time, batch}.size();   // throws on overflow
  const Spec states{x.dtype(), {time, batch, units}};
  return {states, states, {x.dtype(), {time, batch, 4 * units}}};
}

// Computes the contribution of x by one matrix product for all steps.
void run_lstm(const Call& c, std::span<Tensor> y) {
  const Tensor &x = c.x[0], &h = c.x[1], &weights = c.x[3];
  const std::int64_t time = x.shape()[0], batch = x.shape()[1], in = x.shape()[2], units = h.shape()[1];
  y[2] = reshape(matmul(reshape(x, {time * batch, in}), slice(weights, {0, 0}, {in, 4 * units})) + c.x[4],
                 {time, batch, 4 * units});
  allocate_for(y[0]);
  allocate_for(y[1]);
  kernels::lstm(lstm_of(c, h, time), h, c.x[2], weights, y[2], y[0], y[1]);
}

// The inputs of block_lstm_gradient: dh, dc, dgates, gates, c, c0 and weights.
std::vector<Spec> infer_lstm_gradient(const Call& c) {
  const Tensor &gates = c.x[3], &states = c.x[4], &c0 = c.x[5], &weights = c.x[6];
  require_one_dtype(c);
  require_floating(c, 0);
  const auto fits = [&](int i, const Shape& shape) {
    return c.x[i].shape() == shape || c.x[i].shape() == Shape{0};
  };
  if (c0.ndim() != 2 || states.ndim() != 3 || weights.ndim() != 2 ||
      states.shape() != Shape{states.shape()[0], c0.shape()[0], c0.shape()[1]} ||
      gates.shape() != Shape{states.shape()[0], c0.shape()[0], 4 * c0.shape()[1]} ||
      weights.shape()[1] != 4 * c0.shape()[1] || weights.shape()[0] < c0.shape()[1] ||
      !fits(0, states.shape()) || !fits(1, states.shape()) || !fits(2, gates.shape()))
    c.throw_shape_error("states, gates and weights do not match");
  return {gates.spec(), c0.spec(), c0.spec()};
}

Tensors lstm_gradient_by_ops(const Tensors& x) {
  const Tensor &c0 = x[5], &weights = x[6];
  const std::int64_t time = x[3].shape()[0], batch = c0.shape()[0], units = c0.shape()[1];
  if (batch == 0 || units == 0)
    return {zeros(x[3].shape(), c0.dtype()), zeros(c0.shape(), c0.dtype()), zeros(c0.shape(), c0.dtype())};
  const Tensor of_h = slice(weights, {weights.shape()[0] - units, 0}, {units, 4 * units});
  const auto at = [](const Tensor& t, std::int64_t step) { return strided_slice(t, {step}); };
  Tensor dh0 = zeros({batch, units}, c0.dtype()), dc0 = dh0;
  Tensors dz(static_cast<std::size_t>(time));
  for (std::int64_t t = time; t-- > 0;) {
    const Tensors gate = split(at(x[3], t), 4, -1);
    Tensors from_outside(4, zeros({batch, units}, c0.dtype()));
    if (x[2].size()) from_outside = split(at(x[2], t), 4, -1);
    const Tensor squashed = tanh(at(x[4], t)), before = t ? at(x[4], t - 1) : c0;
    const Tensor d_h = x[0].size() ? dh0 + at(x[0], t) : dh0, carried = x[1].size() ? dc0 + at(x[1], t) : dc0,
                 d_c = carried + d_h * gate[3] * (1 - squashed * squashed);
    dz[static_cast<std::size_t>(t)] = concat({(d_c * gate[1] + from_outside[0]) * gate[0] * (1 - gate[0]),
                                              (d_c * gate[0] + from_outside[1]) * (1 - square(gate[1])),
                                              (d_c * before + from_outside[2]) * gate[2] * (1 - gate[2]),
                                              (d_h * squashed + from_outside[3]) * gate[3] * (1 - gate[3])},
                                             -1);
    dc0 = d_c * gate[2];
    dh0 = matmul(dz[static_cast<std::size_t>(t)], of_h, {.transpose_b = true});
  }
  return {time ? stack(dz) : zeros({0, batch, 4 * units}, c0.dtype()), dh0, dc0};
}

Tensors lstm_gradient(const LstmAttrs& a, const Tensors& x);

void lstm_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const Tensor &x = c.x[0], &h = c.x[1], &weights = c.x[3];
  const std::int64_t time = x.shape()[0], batch = x.shape()[1], in = x.shape()[2], units = h.shape()[1];
  const auto given = [&](std::size_t k) {
    return dy[k].defined() ? std::move(dy[k]).dense() : zeros({0}, x.dtype());
  };
  const Tensors g =
      lstm_gradient(c.attrs<LstmAttrs>(), {given(0), given(1), given(2), c.y[2], c.y[1], c.x[2], weights});
  const Tensor dz = reshape(g[0], {time * batch, 4 * units});
  if (c.needs_gradient(0))
    dx[0] = reshape(matmul(dz, slice(weights, {0, 0}, {in, 4 * units}), {.transpose_b = true}), x.shape());
  if (c.needs_gradient(1)) dx[1] = g[1];
  if (c.needs_gradient(2)) dx[2] = g[2];
  if (c.needs_gradient(3)) {
    const Tensor before =
        time ? concat({expand_dims(h, 0), slice(c.y[0], {0, 0, 0}, {time - 1, batch, units})}, 0) : c.y[0];
    dx[3] = concat({matmul(reshape(x, {time * batch, in}), dz, {.transpose_a = true}),
                    matmul(reshape(before, {time * batch, units}), dz, {.transpose_a = true})},
                   0);
  }
  if (c.needs_gradient(4)) dx[4] = sum(dz, 0);
}

void require_lengths(const Call& c, int i, std::string_view what, std::int64_t batch) {
  require_indices(c, i);
  if (c.x[i].shape() != Shape{batch})
    throw_error<ShapeError>("{}: {} must be [{}]: they are {}", c.op.name, what, batch, c.x[i].spec());
}
void require_sequences(const Call& c) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  require_floating(c, 1);
  require_indices(c, 0);
  if (logits.ndim() != 3 || labels.ndim() != 2 || labels.shape()[0] != logits.shape()[1])
    throw_error<ShapeError>(
        "{}: logits must be [time, batch, classes] and labels [batch, length]: logits is {}, labels is {}",
        c.op.name, logits.spec(), labels.spec());
  const std::int64_t classes = logits.shape()[2], blank = c.attrs<CtcAttrs>().blank;
  if (blank < 0 || blank >= classes)
    throw_error<ArgumentError>("{}: blank is {}; use 0..{}", c.op.name, blank, classes - 1);
  require_lengths(c, 2, "label_lengths", labels.shape()[0]);
  require_lengths(c, 3, "logit_lengths", labels.shape()[0]);
}

std::vector<std::int64_t> lengths_of(const Call& c, int i, std::string_view what, std::int64_t most) {
  std::vector<std::int64_t> n = c.x[i].to_vector<std::int64_t>();
  for (std::size_t b = 0; b < n.size(); ++b)
    if (n[b] < 0 || n[b] > most)
      throw_error<ShapeError>("{}: {} is {} at {}; use 0..{}", c.op.name, what, n[b], b, most);
  return n;
}
kernels::CtcLabels labels_of(const Call& c) {
  const std::int64_t time = c.x[1].shape()[0], classes = c.x[1].shape()[2], most = c.x[0].shape()[1],
                     blank = c.attrs<CtcAttrs>().blank;
  kernels::CtcLabels l{most, blank, c.x[0].to_vector<std::int64_t>(), lengths_of(c, 2, "label_lengths", most),
                       lengths_of(c, 3, "logit_lengths", time)};
  for (std::size_t b = 0; b < l.labels.size(); ++b)
    for (std::int64_t k = 0; k < l.labels[b]; ++k)
      if (const std::int64_t label =
              l.label[b * static_cast<std::size_t>(most) + static_cast<std::size_t>(k)];
          label < 0 || label >= classes || label == blank)
        throw_error<ShapeError>("{}: label {} at [{},{}] is the blank or out of range for {} classes",
                                c.op.name, label, b, k, classes);
  return l;
}

constexpr double kNever = -1e30;   // stands for log 0; finite, so that derivatives are not NaN

// The loss by the logarithms of the forward variables, whose states are the labels with a blank around each
// (Graves et al. 2006, equations 5 to 8).
Tensor ctc_by_ops(const kernels::CtcLabels& l, const Tensor& logits, const Tensor& label_lengths,
                  const Tensor& logit_lengths) {
  const std::int64_t time = logits.shape()[0], batch = logits.shape()[1], classes = logits.shape()[2],
                     states = 2 * l.most + 1;
  // For each sequence and state: its class, whether a path may skip the state before it, and whether a path
  // may end or start in it.
  std::vector<std::int64_t> place;
  std::vector<std::uint8_t> skips, ends, starts;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t s = 0; s < states; ++s) {
      const std::int64_t k = s / 2, n = l.labels[static_cast<std::size_t>(b)];
      const bool used = s % 2 && k < n;
      const auto at = [&](std::int64_t i) { return l.label[static_cast<std::size_t>(b * l.most + i)]; };
      place.push_back(b * classes + (used ? at(k) : l.blank));
      skips.push_back(used && k > 0 && at(k) != at(k - 1));
      ends.push_back(s == 2 * n || s == 2 * n - 1);
      starts.push_back(s < 2);
    }
  const auto flags = [&](const std::vector<std::uint8_t>& v) {
    return astype(tensor(v, {batch, states}), DType::boolean);
  };
  const Tensor skip = flags(skips), end = flags(ends), start = flags(starts);
  const Tensor emitted = reshape(
      gather(reshape(log_softmax(logits), {time, batch * classes}), tensor(place), 1), {time, batch, states});
  const Tensors at_step = unstack(emitted, 0);
  const auto behind = [&](const Tensor& a, std::int64_t by) {
    const std::int64_t n = std::min(by, states);
    return concat({full({batch, n}, kNever, a.dtype()), slice(a, {0, 0}, {batch, states - n})}, 1);
  };
  Tensor alpha = where(start, at_step[0], kNever);
  for (std::int64_t t = 1; t < time; ++t) {
    const Tensor before = behind(alpha, 1), skipped = where(skip, behind(alpha, 2), kNever),
                 most_likely = stop_gradient(maximum(maximum(alpha, before), skipped));
    const Tensor next =
        most_likely + log(exp(alpha - most_likely) + exp(before - most_likely) + exp(skipped - most_likely)) +
        at_step[static_cast<std::size_t>(t)];
    alpha = where(expand_dims(greater(logit_lengths, t), 1), next, alpha);
  }
  const Tensor last = where(end, alpha, kNever), largest = stop_gradient(max(last, 1, {.keepdims = true}));
  const Tensor loss = -(squeeze(largest, 1) + log(sum(exp(last - largest), 1)));
  // A sequence of 0 steps has a loss of 0 without labels, else infinity.
  const Tensor whole = where(equal(logit_lengths, 0), where(equal(label_lengths, 0), 0, 1e30), loss);
  return where(whole > 1e29, std::numeric_limits<double>::infinity(), whole);
}

Tensor ctc_gradient(const CtcAttrs& a, const Call& c);

constexpr Op kBlockLstm = {
    .name = "block_lstm",
    .doc =
        "The states h and c of an LSTM after every step of a sequence, and its gates: c = f c + i g and "
        "h = o tanh(c), where i, g, f and o are sigmoid or tanh of [x, h] weights + bias.",
    .tensorflow = "BlockLSTM",
    .args = {"x", "h", "c", "weights"},
    .infer = infer_lstm,
    .forward = {run_lstm, Outputs::by_kernel},
    .rule = unstacked(Rule::custom({.x = 0b1111, .y = true}, lstm_vjp).accepting_none()),
};

constexpr Op kBlockLstmGradient = {
    .name = "block_lstm_gradient",
    .doc =
        "The adjoint of block_lstm's recurrent part. Maps cotangents of h, c and gates, each of which may be "
        "empty, to cotangents of the gates before activation and of the initial state.",
    .args = {"dh", "dc", "dgates", "gates"},
    .infer = infer_lstm_gradient,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::lstm_gradient(lstm_of(c, c.x[5], c.x[3].shape()[0]), c.x[0], c.x[1], c.x[2], c.x[3],
                                 c.x[4], c.x[5], c.x[6], y[0], y[1], y[2]);
        },
    .rule = unstacked(Rule::custom({.x = 0b1111111},
                                   [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                                     pull_back_by_ops(c, dy, dx, lstm_gradient_by_ops);
                                   })),
};

constexpr Op kCtcLoss = {
    .name = "ctc_loss",
    .doc =
        "The negative logarithm of the total probability of labels over all alignments with time, in "
        "which a blank stands for no label (Graves et al. 2006, equation 8).",
    .tensorflow = "CTCLoss",
    .args = {"labels", "logits", "label_lengths", "logit_lengths"},
    .infer = [](const Call& c) -> Spec {
      require_sequences(c);
      return {c.x[1].dtype(), {c.x[1].shape()[1]}};
    },
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  const kernels::CtcLabels labels = labels_of(c);
                  allocate_for(y[0]);
                  kernels::ctc_loss(labels, log_softmax(c.x[1]), y[0]);
                },
                Outputs::by_kernel},
    .rule = Rule::custom(
        {.x = 0b1111},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          const Tensor of_sequences = expand_dims(expand_dims(std::move(dy[0]).dense(), -1), -3);
          dx[1] = of_sequences * ctc_gradient(c.attrs<CtcAttrs>(), c);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          if (dx[1].defined()) dy[0] = sum(ctc_gradient(c.attrs<CtcAttrs>(), c) * dx[1], {-3, -1});
        }),
};

constexpr Op kCtcLossGradient = {
    .name = "ctc_loss_gradient",
    .doc =
        "The gradient of the sum of ctc_loss with respect to logits: softmax(logits) minus the "
        "probability of each class at each step, given the labels (Graves et al. 2006, equation 16).",
    .args = {"labels", "logits", "label_lengths", "logit_lengths"},
    .infer = [](const Call& c) -> Spec {
      require_sequences(c);
      return c.x[1].spec();
    },
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  const kernels::CtcLabels labels = labels_of(c);
                  const Tensor log_p = log_softmax(c.x[1]);
                  y[0] = copy_of(exp(log_p));   // a copy, since results of ops must not be written
                  kernels::ctc_gradient(labels, log_p, y[0]);
                },
                Outputs::by_kernel},
    .rule = unstacked(Rule::custom({.x = 0b1111},
                                   [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                                     if (c.x[1].size() == 0) {
                                       dx[1] = zeros_like(c.x[1]);
                                       return;
                                     }
                                     pull_back_by_ops(c, dy, dx, [labels = labels_of(c)](const Tensors& x) {
                                       GradientTape tape;
                                       tape.watch(x[1]);
                                       const Tensor loss = ctc_by_ops(labels, x[1], x[2], x[3]);
                                       return Tensors{tape.gradient(loss, x[1]).dense()};
                                     });
                                   })),
};

constexpr const Op* rnn_table[] = {&kBlockLstm, &kBlockLstmGradient, &kCtcLoss, &kCtcLossGradient};

Tensors lstm_gradient(const LstmAttrs& a, const Tensors& x) { return kBlockLstmGradient.run(x, Attrs(a)); }
Tensor ctc_gradient(const CtcAttrs& a, const Call& c) {
  return kCtcLossGradient(c.x[0], c.x[1], c.x[2], c.x[3], a);
}

}   // namespace

LstmState lstm_cell(const Tensor& x, const LstmState& state, const Tensor& weights, const Tensor& bias,
                    double forget_bias) {
  require_state("lstm_cell", x, 2, state.h, state.c);
  require_weights("lstm_cell", x, state.h.shape()[1], weights, bias, 4);
  require_floating_cell(
      "lstm_cell", {{"x", &x}, {"h", &state.h}, {"c", &state.c}, {"weights", &weights}, {"bias", &bias}});
  const std::vector<Tensor> halves = split(weights, {x.shape()[1], -1}, 0);   // the weights of x and of h
  return step(matmul(x, halves[0]) + bias, state, halves[1], forget_bias);
}

LstmState block_lstm(const Tensor& x, const LstmState& state, const Tensor& weights, const Tensor& bias,
                     double forget_bias) {
  const Tensors inputs{x, state.h, state.c, weights, bias};
  const Tensors y = kBlockLstm.run(inputs, Attrs(LstmAttrs{forget_bias}));
  return {y[0], y[1]};
}

Tensor gru_cell(const Tensor& x, const Tensor& h, const GruWeights& w) {
  require_state("gru_cell", x, 2, h, h);
  require_weights("gru_cell", x, h.shape()[1], w.gates, w.gates_bias, 2);
  require_weights("gru_cell", x, h.shape()[1], w.candidate, w.candidate_bias, 1);
  require_floating_cell("gru_cell", {{"x", &x},
                                     {"h", &h},
                                     {"gates", &w.gates},
                                     {"gates_bias", &w.gates_bias},
                                     {"candidate", &w.candidate},
                                     {"candidate_bias", &w.candidate_bias}});
  const std::vector<Tensor> gates =
      split(sigmoid(matmul(concat({x, h}, 1), w.gates) + w.gates_bias), 2, -1);   // reset, update
  const Tensor candidate = tanh(matmul(concat({x, gates[0] * h}, 1), w.candidate) + w.candidate_bias);
  return candidate + gates[1] * (h - candidate);
}

Tensor ctc_loss(const Tensor& labels, const Tensor& logits, const Tensor& label_lengths,
                const Tensor& logit_lengths, std::int64_t blank) {
  return kCtcLoss(labels, logits, label_lengths, logit_lengths, CtcAttrs{blank});
}

std::span<const Op* const> rnn_ops() { return rnn_table; }

}   // namespace tapedeck
