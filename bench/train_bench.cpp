// Time of a training step: multilayer perceptrons with Adam, always on the same batch.
#include <cmath>

#include "bench.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

class Mlp {
 public:
  Mlp(const std::vector<std::int64_t>& widths, std::int64_t batch)
      : x_(td::random::normal({batch, widths.front()}, {.seed = 1})),
        labels_(td::astype(td::random::uniform({batch}, {.seed = 2}, 0, static_cast<double>(widths.back())),
                           td::DType::i64)) {
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      const double scale = 1 / std::sqrt(static_cast<double>(widths[i]));
      variables_.emplace_back(
          td::random::uniform({widths[i], widths[i + 1]}, {.seed = 3 + i}, -scale, scale));
      variables_.emplace_back(td::zeros({widths[i + 1]}));
    }
  }

  td::Tensor logits() const {
    td::Tensor y = x_;
    for (std::size_t i = 0; i < variables_.size(); i += 2) {
      y = td::matmul(y, variables_[i]) + variables_[i + 1];
      if (i + 2 < variables_.size()) y = td::relu(std::move(y));
    }
    return y;
  }
  std::vector<td::Gradient> gradients() const {
    td::GradientTape tape;
    const td::Tensor loss = td::mean(td::sparse_softmax_cross_entropy(labels_, logits()));
    return tape.gradient(td::Targets(loss), td::Sources(variables_));
  }
  void update(std::vector<td::Gradient> gradients) {
    std::vector<td::GradientAndVariable> pairs;
    for (std::size_t i = 0; i < variables_.size(); ++i)
      pairs.push_back({std::move(gradients[i]), variables_[i]});
    adam_.apply_gradients(pairs);
  }

 private:
  td::Tensor x_, labels_;
  std::vector<td::Variable> variables_;
  td::Adam adam_;
};

using Make = Mlp (*)();
Mlp mlp() { return {{784, 512, 512, 10}, 128}; }
Mlp tiny_mlp() { return {{4, 16, 16, 3}, 8}; }

void forward(State& state, Make make) {
  const Mlp net = make();
  bench::each(state, [&] { return net.logits(); });
}
void gradients(State& state, Make make) {
  const Mlp net = make();
  bench::each(state, [&] { return net.gradients(); });
}
void update(State& state, Make make) {
  Mlp net = make();
  const std::vector<td::Gradient> gradients = net.gradients();
  for (auto _ : state)
    net.update(gradients);
}
void step(State& state, Make make) {
  Mlp net = make();
  for (auto _ : state)
    net.update(net.gradients());
}

void register_cases(const std::string& name, const std::string& batch, Make make) {
  const auto add = [&](const char* part, void (*f)(State&, Make)) {
    benchmark::RegisterBenchmark((name + part + batch).c_str(), f, make)
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  };
  add("_step/", step), add("_forward/", forward), add("_gradients/", gradients), add("_adam/", update);
}

}   // namespace

int main(int argc, char** argv) {
  register_cases("train/mlp", "128", mlp);
  register_cases("train/tiny_mlp", "8", tiny_mlp);
  return bench::run(argc, argv, td::set_num_threads);
}
