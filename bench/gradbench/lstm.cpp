#include "lstm.h"

#include "random.h"
#include "tapedeck/map.h"
#include "tensors.h"

namespace gradbench::lstm {
namespace {

struct Data {
  explicit Data(const Input& in)
      : layers(in.layers),
        count(in.count),
        bits(in.bits),
        state(td::tensor(in.state, {2 * in.layers, in.bits})) {
    const Tensor all = td::tensor(in.sequence, {in.count, in.bits});
    now = td::slice(all, {0, 0}, {in.count - 1, in.bits});
    next = td::slice(all, {1, 0}, {in.count - 1, in.bits});
  }
  int layers, count, bits;
  Tensor state, now, next;
};

/// From the outputs of the last layer, [steps, bits].
Tensor loss(const Data& d, const Tensor& hidden, const Tensor& extra) {
  const Tensor y = hidden * extra[1] + extra[2];
  const Tensor norm = td::log(td::sum(td::exp(y), {1}, true) + 2);
  return -td::sum(d.next * (y - norm)) / static_cast<double>(d.next.size());
}

/// A loop over characters and layers.
auto natural(const Input& in) {
  return [d = Data(in)](Inputs x) {
    const Tensor main = td::reshape(x[0], {d.layers, 2, 4, d.bits});
    const Tensor& extra = x[1];
    const Tensors state = td::unstack(d.state), parameters = td::unstack(main),
                  inputs = td::unstack(d.now * extra[0]);
    Tensors w, b, h, c, outputs;
    for (int l = 0; l < d.layers; ++l) {
      const Tensor &of_layer = parameters[static_cast<std::size_t>(l)], weights = of_layer[0],
                   biases = of_layer[1];
      for (int gate = 0; gate < 4; ++gate) {
        w.push_back(weights[gate]);
        b.push_back(biases[gate]);
      }
      h.push_back(state[static_cast<std::size_t>(2 * l)]);
      c.push_back(state[static_cast<std::size_t>(2 * l + 1)]);
    }
    for (Tensor y : inputs) {
      for (std::size_t l = 0; l < h.size(); ++l) {
        const std::size_t g = 4 * l;
        const Tensor forget = td::sigmoid(y * w[g] + b[g]), in_gate = td::sigmoid(h[l] * w[g + 1] + b[g + 1]),
                     out_gate = td::sigmoid(y * w[g + 2] + b[g + 2]),
                     change = td::tanh(h[l] * w[g + 3] + b[g + 3]);
        c[l] = c[l] * forget + in_gate * change;
        h[l] = out_gate * td::tanh(c[l]);
        y = h[l];
      }
      outputs.push_back(y);
    }
    return loss(d, td::stack(outputs), extra);
  };
}

Size size(int layers, int count) {
  return {std::to_string(layers) + "·" + std::to_string(count), [=] {
            constexpr int bits = 14;   // of the suite's text
            Random random;
            Input in{.layers = layers,
                     .count = count,
                     .bits = bits,
                     .main = {},
                     .extra = {},
                     .state = {},
                     .sequence = {}};
            for (int t = 0; t < count; ++t) {
              const int character = random.index(40) == 0 ? 0x2014 : 'a' + random.index(26);   // some dashes
              for (int bit = bits; bit-- > 0;)
                in.sequence.push_back(character >> bit & 1);
            }
            in.state = random.uniforms(static_cast<std::size_t>(2 * layers * bits));
            in.main = random.uniforms(static_cast<std::size_t>(8 * layers * bits));
            in.extra = random.uniforms(3 * bits);
            return forms(std::make_shared<Input>(std::move(in)));
          }};
}

}   // namespace

Forms forms(const std::shared_ptr<const Input>& in) {
  const Tensors x = {td::tensor(in->main, {2 * in->layers, 4 * in->bits}),
                     td::tensor(in->extra, {3, in->bits})};
  const auto f = natural(*in);
  return with_peers({eager("natural", x, f, gradients_of(f)), recorded("expert", x, f, gradients_of(f))}, in);
}

Eval eval() {
  return {"lstm",
          {"objective", "jacobian"},
          true,
          {size(2, 1024), size(2, 8192), size(6, 8192)},
          {size(1, 3), size(3, 9)}};
}

}   // namespace gradbench::lstm
