#include "lstm.h"

#include <algorithm>
#include <array>

#include "random.h"
#include "tapedeck/map_scan.h"
#include "tensors.h"

namespace gradbench::lstm {
namespace {

struct Data {
  explicit Data(const Input& in) : layers(in.layers), bits(in.bits) {
    const Tensor all = td::tensor(in.sequence, {in.count, in.bits});
    now = td::slice(all, {0, 0}, {in.count - 1, in.bits});
    next = td::slice(all, {1, 0}, {in.count - 1, in.bits});
    const Tensors rows = td::unstack(td::tensor(in.state, {2 * in.layers, in.bits}));
    for (std::size_t l = 0; l < rows.size(); l += 2)
      state.push_back({rows[l], rows[l + 1]});
  }
  int layers, bits;
  std::vector<std::array<Tensor, 2>> state;   // each layer's output and cell before the first character
  Tensor now, next;
};

/// Computes one layer after the other, each as a recurrence over all characters; then the predictions,
/// [steps, bits], from the outputs of the last layer.
auto natural(const Input& in) {
  return [d = Data(in)](Inputs x) {
    const Tensors w = td::unstack(td::reshape(x[0], {8 * d.layers, d.bits}));
    Tensor h = d.now * x[1][0];
    for (std::size_t l = 0; l < d.state.size(); ++l) {
      std::array<Tensor, 8> parameters;
      std::copy_n(w.begin() + static_cast<std::ptrdiff_t>(8 * l), 8, parameters.begin());
      h = td::map_scan<"lstm">(
              [](const auto& s, const auto& in_, const auto& p) {
                const auto forget = sigmoid(in_[0] * p[0] + p[4]), gate = sigmoid(s[0] * p[1] + p[5]),
                           out = sigmoid(in_[0] * p[2] + p[6]), change = tanh(s[0] * p[3] + p[7]);
                const auto cell = s[1] * forget + gate * change, output = out * tanh(cell);
                return std::pair(std::array{output, cell}, std::array{output});
              },
              d.state[l], std::array{h}, parameters)
              .second[0];
    }
    const Tensor y = h * x[1][1] + x[1][2];
    const Tensor norm = td::log(td::sum(td::exp(y), {1}, {.keepdims = true}) + 2);
    return -td::sum(d.next * (y - norm)) / static_cast<double>(d.next.size());
  };
}

Size size(int layers, int count) {
  return {std::to_string(layers) + "·" + std::to_string(count), [=] {
            constexpr int bits = 14;   // as in the suite's text
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
