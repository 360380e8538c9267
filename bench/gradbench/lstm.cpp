#include "lstm.h"

#include <array>

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

/// The two gates that the input of a cell decides, and the rest of the cell: one op each.
std::array<Tensor, 2> gates_of_input(const Tensor& x, const Tensor* w) {
  return td::map<"gates">([](auto x_, auto wf, auto bf, auto wo,
                             auto bo) { return std::pair(sigmoid(x_ * wf + bf), sigmoid(x_ * wo + bo)); },
                          x, w[0], w[4], w[2], w[6]);
}
std::array<Tensor, 2> rest_of_cell(const std::array<Tensor, 2>& gates, const Tensor& h, const Tensor& c,
                                   const Tensor* w) {
  return td::map<"cell">(
      [](auto forget, auto out, auto h_, auto c_, auto wi, auto bi, auto wc, auto bc) {
        const auto next = c_ * forget + sigmoid(h_ * wi + bi) * tanh(h_ * wc + bc);
        return std::pair(next, out * tanh(next));
      },
      gates[0], gates[1], h, c, w[1], w[5], w[3], w[7]);
}
/// The gates of the first layer's inputs, which are known beforehand, for all steps at once.
auto expert(const Input& in) {
  return [d = Data(in)](Inputs x) {
    const Tensor& extra = x[1];
    const Tensors state = td::unstack(d.state), w = td::unstack(td::reshape(x[0], {8 * d.layers, d.bits}));
    const std::array<Tensor, 2> first = gates_of_input(d.now * extra[0], &w[0]);
    const Tensors forget = td::unstack(first[0]), out = td::unstack(first[1]);
    Tensors h, c, outputs;
    for (std::size_t l = 0; l < state.size(); l += 2) {
      h.push_back(state[l]);
      c.push_back(state[l + 1]);
    }
    for (std::size_t t = 0; t < forget.size(); ++t) {
      for (std::size_t l = 0; l < h.size(); ++l) {
        const std::array<Tensor, 2> gates =
            l == 0 ? std::array<Tensor, 2>{forget[t], out[t]} : gates_of_input(h[l - 1], &w[8 * l]);
        std::array<Tensor, 2> next = rest_of_cell(gates, h[l], c[l], &w[8 * l]);
        c[l] = std::move(next[0]);
        h[l] = std::move(next[1]);
      }
      outputs.push_back(h.back());
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
  const auto g = expert(*in);
  return with_peers({eager("natural", x, f, gradients_of(f)), recorded("expert", x, g, gradients_of(g))}, in);
}

Eval eval() {
  return {"lstm",
          {"objective", "jacobian"},
          true,
          {size(2, 1024), size(2, 8192), size(6, 8192)},
          {size(1, 3), size(3, 9)}};
}

}   // namespace gradbench::lstm
