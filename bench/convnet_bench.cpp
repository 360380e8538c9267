// Time of a convolutional network: two convolutions with pooling and two dense layers, on a batch of
// images.
#include <cmath>

#include "bench.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

constexpr std::int64_t kBatch = 64, kClasses = 10;

td::Tensor weights(const td::Shape& shape, std::uint64_t seed) {
  const double inputs = static_cast<double>(shape.size() / shape[shape.ndim() - 1]);
  return td::random::normal(shape, {.seed = seed}) / std::sqrt(inputs);
}

struct Convnet {
  td::Tensor logits() const {
    const td::Conv2dOptions same{.padding = td::Padding::same};
    const td::Tensor small =
        td::max_pool2d(td::relu(td::conv2d(images, filters1, same) + bias1), {.window = 2});
    const td::Tensor smaller =
        td::max_pool2d(td::relu(td::conv2d(small, filters2, same) + bias2), {.window = 2});
    const td::Tensor hidden =
        td::relu(td::matmul(td::reshape(smaller, {kBatch, 7 * 7 * 64}), weights3) + bias3);
    return td::matmul(hidden, weights4) + bias4;
  }
  std::vector<td::Gradient> gradients() const {
    const std::vector<td::Tensor> parameters = {filters1, bias1, filters2, bias2,
                                                weights3, bias3, weights4, bias4};
    td::GradientTape tape;
    for (const td::Tensor& p : parameters)
      tape.watch(p);
    const td::Tensor loss = td::mean(td::sparse_softmax_cross_entropy(labels, logits()));
    return tape.gradient(td::Targets(loss), td::Sources(parameters));
  }

  td::Tensor images = td::random::normal({kBatch, 28, 28, 1}, {.seed = 1});
  td::Tensor labels = td::astype(td::random::uniform({kBatch}, {.seed = 2}, 0, kClasses), td::DType::i64);
  td::Tensor filters1 = weights({5, 5, 1, 32}, 3), bias1 = td::zeros({32});
  td::Tensor filters2 = weights({5, 5, 32, 64}, 4), bias2 = td::zeros({64});
  td::Tensor weights3 = weights({7 * 7 * 64, 1024}, 5), bias3 = td::zeros({1024});
  td::Tensor weights4 = weights({1024, kClasses}, 6), bias4 = td::zeros({kClasses});
};

void forward(State& state) {
  const Convnet net;
  bench::each(state, [&] { return net.logits(); });
}
void gradients(State& state) {
  const Convnet net;
  bench::each(state, [&] { return net.gradients(); });
}

BENCHMARK(forward)->Name("train/convnet_forward/64")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(gradients)->Name("train/convnet_gradients/64")->Unit(benchmark::kMillisecond)->UseRealTime();

}   // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
