// Time of a recurrent network composed of primitive ops: an LSTM over a sequence, forward only and with the
// backward pass.
#include "bench.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

constexpr std::int64_t kSteps = 100, kBatch = 32, kHidden = 128;

struct Lstm {
  td::Tensor loss() const {
    td::Tensor h = td::zeros({kBatch, kHidden}), c = td::zeros({kBatch, kHidden});
    for (const td::Tensor& step : td::unstack(x, 0)) {
      const std::vector<td::Tensor> gates = td::split(td::matmul(step, wx) + td::matmul(h, wh) + b, 4, 1);
      c = td::sigmoid(gates[1]) * c + td::sigmoid(gates[0]) * td::tanh(gates[2]);
      h = td::sigmoid(gates[3]) * td::tanh(c);
    }
    return td::sum(td::square(h));
  }

  td::Tensor x = td::random::normal({kSteps, kBatch, kHidden}, {.seed = 1});
  td::Tensor wx = 0.05 * td::random::normal({kHidden, 4 * kHidden}, {.seed = 2}),
             wh = 0.05 * td::random::normal({kHidden, 4 * kHidden}, {.seed = 3});
  td::Tensor b = td::zeros({4 * kHidden});
};

void forward(State& state) {
  const Lstm lstm;
  bench::each(state, [&] { return lstm.loss(); });
}

void gradients(State& state) {
  const Lstm lstm;
  bench::each(state, [&] {
    td::GradientTape tape;
    tape.watch(lstm.wx), tape.watch(lstm.wh), tape.watch(lstm.b);
    return tape.gradient(lstm.loss(), lstm.wx, lstm.wh, lstm.b);
  });
}

BENCHMARK(forward)->Name("train/lstm_forward/100x32x128")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(gradients)->Name("train/lstm_gradients/100x32x128")->Unit(benchmark::kMillisecond)->UseRealTime();

}   // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
