// The training programs of README.md and docs/, with their step recorded: the bits of all losses, variables
// and slots are those of eager steps. Not included: replicas, where a function runs by itself, and fit, which
// has the loop of training.md.
#include <catch2/catch.hpp>
#include <cmath>

#include "closeness.h"
#include "tapedeck/compile.h"
#include "tapedeck/dataset.h"
#include "tapedeck/gradient_transform.h"
#include "tapedeck/gradients.h"
#include "tapedeck/moving_average.h"
#include "tapedeck/nn.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"
#include "tapedeck/update_rule.h"

namespace docs_training_test {

using namespace tapedeck;

namespace {

using Tensors = std::vector<Tensor>;
constexpr std::uint64_t kSteps = 50;

/// A program has `batch`, a step of one, and its variables; and optimizers, of which the slots are compared,
/// too.
template <class P> Tensors train(bool recorded) {
  P program;
  const auto step = [&](const Tensors& x, random::Key key) { return program.step(x, key); };
  const auto replayed = compile(step);
  Tensors all;
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    const random::Key key = random::Key{.seed = 1}.split(i);
    const Tensors x = program.batch(key.split(0));
    all.push_back(recorded ? replayed(x, key.split(1)) : step(x, key.split(1)));
  }
  for (const Variable& v : program.variables())
    all.push_back(v.value());
  for (const NamedTensor& v : program.optimizer.variables())
    all.push_back(v.value);
  if (recorded) {
    const auto programs = replayed.programs();
    CHECK(programs.size() == 1);
    CHECK(programs.at(0).calls == kSteps - 1);
  }
  return all;
}

/// Also that the loss falls, and does not end in NaN, whose bits would agree.
template <class P> void check_program() {
  const Tensors eager = train<P>(false), replayed = train<P>(true);
  CHECK(eager[kSteps - 1].item() < eager[0].item());
  REQUIRE(eager.size() == replayed.size());
  for (std::size_t i = 0; i < eager.size(); ++i) {
    INFO((i < kSteps ? "loss " : "variable ") << i % kSteps);
    CHECK(same_bits(eager[i], replayed[i]));
  }
}

struct WholeBatch {
  Tensors batch(random::Key) const { return {}; }
};

// README.md
struct Line : WholeBatch {
  Tensor x = random::uniform({100}, {.seed = 1}, -1, 1);
  Tensor y = 2.0 * x + 1.0 + 0.1 * random::normal({100}, {.seed = 2});
  Variable w{tensor(0.0)}, b{tensor(0.0)};
  GradientDescent optimizer{{.learning_rate = 0.1}};

  std::vector<Variable> variables() const { return {w, b}; }
  Tensor step(const Tensors&, random::Key) {
    GradientTape tape;
    const Tensor loss = mean(square(w * x + b - y));
    const auto [dw, db] = tape.gradient(loss, w, b);
    optimizer.apply_gradients({{dw, w}, {db, b}});
    return loss;
  }
};

// checkpoints.md
struct Drawn {
  Variable w{zeros({3, 1})}, b{zeros({1})};
  Adam optimizer{{.learning_rate = 0.1}};

  Tensors batch(random::Key key) const { return {random::normal({16, 3}, key)}; }
  std::vector<Variable> variables() const { return {w, b}; }
  Tensor step(const Tensors& x, random::Key) {
    return optimizer.minimize(
        [&] { return mean(square(matmul(x[0], w) + b - sum(x[0], {1}, {.keepdims = true}))); });
  }
};

// differentiation.md, from_jax.md
struct Implicit : WholeBatch {
  Variable w{zeros({3})}, bias{tensor(0.0)};
  Tensor inputs = random::normal({32, 3}, {.seed = 1}), targets = sum(inputs, 1);
  Adam optimizer{{.learning_rate = 0.1}};

  std::vector<Variable> variables() const { return {w, bias}; }
  Tensor step(const Tensors&, random::Key) {
    const auto loss = [&] { return mean(square(sum(inputs * w, 1) + bias - targets)); };
    const ImplicitGradients all = implicit_value_and_grad(loss);
    optimizer.apply_gradients(all.gradients, all.variables);
    return all.value;
  }
};

// from_pytorch.md
struct WithMomentum : WholeBatch {
  Tensor x = random::normal({64, 3}, {.seed = 1}), y = sum(x, 1, {.keepdims = true}) + 0.5;
  Variable w{zeros({3, 1})}, b{zeros({1})};
  Momentum optimizer{{.learning_rate = 0.1, .momentum = 0.9}};

  std::vector<Variable> variables() const { return {w, b}; }
  Tensor step(const Tensors&, random::Key) {
    return optimizer.minimize([&] { return mean(square(matmul(x, w) + b - y)); });
  }
};

struct Circle : WholeBatch {
  Tensor x = random::uniform({256, 2}, {.seed = 3}, -1.25, 1.25);
  Tensor label = astype(sum(square(x), 1) < 1.0, DType::i32);
  Adam optimizer{{.learning_rate = 0.02}};
};

// basics.md
struct ByHand : Circle {
  Variable w1{random::normal({2, 16}, {.seed = 4})}, b1{zeros({16})};
  Variable w2{0.25 * random::normal({16, 2}, {.seed = 5})}, b2{zeros({2})};

  std::vector<Variable> variables() const { return {w1, b1, w2, b2}; }
  Tensor step(const Tensors&, random::Key) {
    GradientTape tape;
    const Tensor scores = matmul(relu(matmul(x, w1) + b1), w2) + b2;
    const Tensor loss = mean(sparse_softmax_cross_entropy(label, scores));
    const auto [dw1, db1, dw2, db2] = tape.gradient(loss, w1, b1, w2, b2);
    optimizer.apply_gradients({{dw1, w1}, {db1, b1}, {dw2, w2}, {db2, b2}});
    return loss;
  }
};

// first_programs.md, networks.md
struct ByLayers : Circle {
  nn::Dense hidden{2, 32, {.seed = 1}}, head{32, 2, {.seed = 2}};

  std::vector<Variable> variables() const { return {hidden.kernel, *hidden.bias, head.kernel, *head.bias}; }
  Tensor step(const Tensors&, random::Key) {
    return optimizer.minimize(
        [&] { return mean(sparse_softmax_cross_entropy(label, head(relu(hidden(x))))); });
  }
};

// networks.md, "Training or not"
struct WithRun : WholeBatch {
  nn::Dense hidden{4, 8, {.seed = 1}}, head{8, 1, {.seed = 2}};
  nn::BatchNorm norm{8};
  nn::Dropout dropout{0.5};
  Tensor x = random::normal({32, 4}, {.seed = 3});
  GradientDescent optimizer{{.learning_rate = 0.1}};

  std::vector<Variable> variables() const {
    std::vector<Variable> all{hidden.kernel, *hidden.bias, head.kernel, *head.bias};
    for (const NamedVariable& v : nn::variables(norm))
      all.push_back(v.variable);
    return all;
  }
  Tensor step(const Tensors&, random::Key key) {
    const nn::Run run{.training = true, .key = key};
    return optimizer.minimize([&] { return mean(square(head(dropout(relu(norm(hidden(x), run)), run)))); });
  }
};

// networks.md, "Which variables"
struct OfSomeVariables : WholeBatch {
  nn::Sequential network{nn::Dense(2, 8, {.seed = 1}), nn::LayerNorm(8), tapedeck::relu,
                         nn::Dense(8, 1, {.seed = 2})};
  Tensor x = random::normal({32, 2}, {.seed = 3});
  Adam optimizer{{.learning_rate = 0.01}};

  OfSomeVariables() {
    optimizer.add_transform(transforms::clip_global_norm(1));
    optimizer.add_transform(transforms::weight_decay(1e-4, nn::among(nn::variables(network, "*/kernel"))));
  }
  std::vector<Variable> variables() const { return nn::trainable_variables(network); }
  Tensor step(const Tensors&, random::Key) {
    const Loss loss = [&] { return mean(square(network(x) - sum(x, 1, {.keepdims = true}))); };
    const Tensor before = optimizer.minimize(loss);
    optimizer.minimize(loss, {.variables = nn::trainable(nn::variables(network, "3/*"))});
    return before;
  }
};

// training.md
struct Loop {
  nn::Dense network{3, 1, {.seed = 3}};
  Tensor x = random::normal({64, 3}, {.seed = 1});
  DataLoader loader{Dataset({x, sum(x, 1, {.keepdims = true})}),
                    {.batch = 32, .shuffle = true, .key = {.seed = 2}}};
  Adam optimizer;

  std::int64_t epoch = 0;

  Tensors batch(random::Key) {   // the first one of an epoch
    Epoch batches = loader.epoch(epoch++);
    return *batches.begin();
  }
  std::vector<Variable> variables() const { return {network.kernel, *network.bias}; }
  Tensor step(const Tensors& batch, random::Key) {
    return optimizer.minimize([&] { return mean(square(batch[1] - network(batch[0]))); },
                              {.variables = nn::trainable_variables(network)});
  }
};

// optimizers.md, "Transformations"
struct Transformed : WholeBatch {
  Variable w{ones({3, 2}), {.name = "w"}}, b{zeros({2}), {.name = "b"}};
  Adam optimizer;

  Transformed() {
    optimizer.add_transform(transforms::clip_global_norm(1.0));
    optimizer.add_transform(
        transforms::weight_decay(1e-4, [](const Variable& v) { return v.name() != "b"; }));
    optimizer.add_transform(transforms::noise(
        {.seed = 7}, [](std::int64_t step) { return 0.01 / std::sqrt(1.0 + static_cast<double>(step)); }));
    optimizer.add_transform([](std::span<GradientAndVariable> pairs, std::int64_t) {
      for (auto& [gradient, variable] : pairs)
        gradient = sign(gradient.dense());
    });
  }
  std::vector<Variable> variables() const { return {w, b}; }
  Tensor step(const Tensors&, random::Key) {
    return optimizer.minimize([&] { return sum(square(matmul(ones({4, 3}), w) + b)); });
  }
};

// optimizers.md, "Micro-batches and loss scaling"
struct Scaled : WholeBatch {
  Tensor x = random::normal({8, 4}, {.seed = 1}), y = sum(x, 1);
  Variable w{zeros({4})};
  Momentum optimizer{{.learning_rate = 0.05, .momentum = 0.9}};
  LossScale scale{{.initial = 1024}};

  std::vector<Variable> variables() const { return {w}; }
  Tensor step(const Tensors&, random::Key) {
    const auto loss = [&] { return mean(square(sum(x * w, 1) - y)); };
    const Tensor before = loss();
    scale.minimize(optimizer, loss);
    return before;
  }
};

// optimizers.md, "Moving averages"
struct Averaged : WholeBatch {
  Variable w{tensor({0.0, 0.0}), {.name = "w"}};
  ExponentialMovingAverage average{0.99};
  GradientDescent optimizer{{.learning_rate = 0.1}};

  std::vector<Variable> variables() const { return {w, average.average(w)}; }
  Tensor step(const Tensors&, random::Key) {
    const Tensor loss = optimizer.minimize([&] { return sum(square(w - 1.0)); });
    average.apply(std::vector{w});
    return loss;
  }
};

// optimizers.md, "A rule of your own"
template <class T> void move(const UpdateRow<T>& row) {
  for (std::int64_t i = 0; i < row.n; ++i) {
    row.slots[0][i] = static_cast<T>(row.c[0]) * row.slots[0][i] + row.g[i];
    row.x[i] -= static_cast<T>(row.c[1]) * row.slots[0][i];
  }
}
constexpr UpdateRule kBall = {
    .name = "heavy_ball",
    .doc = "a = momentum · a + g; x -= rate · a, with a rate that halves every ten steps.",
    .slots = {{"a"}},
    .hyperparameters = {{"learning_rate", kRequired, domains::finite}, {"momentum", 0.9, domains::decay}},
    .scalars = {{"fallen", [](const Hyperparameters&) { return 1.0; }}},
    .prepare =
        [](Step& s) {
          s.c = {s.h[1], s.h[0] * s.scalars[0]};
        },
    .rows = {move<float>, move<double>},
    .finish =
        [](Step& s) noexcept {
          if (s.count % 10 == 0) s.scalars[0] /= 2;
        },
};
struct OwnRule : WholeBatch {
  Variable w{tensor({3.0, -2.0})};
  Optimizer optimizer{kBall, {{"learning_rate", 0.05}}};

  std::vector<Variable> variables() const { return {w}; }
  Tensor step(const Tensors&, random::Key) {
    return optimizer.minimize([&] { return sum(square(w)); });
  }
};

// tensorflow_walkthrough/training.md
constexpr UpdateRule kSign = {
    .name = "sign",
    .doc = "x -= learning_rate · sign(g)",
    .slots = {{"count"}},
    .hyperparameters = {{"learning_rate", kRequired, domains::finite}},
    .dense =
        [](const Step& step, Tensor& x, std::span<Tensor> slots, const Tensor& g) {
          slots[0] = slots[0] + 1.0;
          x = x - step.h[0] * sign(g);
        },
};
struct RuleOfTensors : WholeBatch {
  Variable w{tensor({30.0, -20.0})};
  Optimizer optimizer{kSign, {{"learning_rate", 0.5}}};

  std::vector<Variable> variables() const { return {w}; }
  Tensor step(const Tensors&, random::Key) {
    return optimizer.minimize([&] { return sum(w * w); });
  }
};

}   // namespace

TEST_CASE("training programs of the documentation: variables and tapes", "[recorded]") {
  check_program<Line>();
  check_program<Drawn>();
  check_program<Implicit>();
  check_program<WithMomentum>();
  check_program<ByHand>();
}

TEST_CASE("training programs of the documentation: layers", "[recorded]") {
  check_program<ByLayers>();
  check_program<WithRun>();
  check_program<OfSomeVariables>();
  check_program<Loop>();
}

TEST_CASE("training programs of the documentation: optimizers", "[recorded]") {
  check_program<Transformed>();
  check_program<Scaled>();
  check_program<Averaged>();
  check_program<OwnRule>();
  check_program<RuleOfTensors>();
}

TEST_CASE("micro-batches are recorded one by one", "[recorded]") {   // optimizers.md
  const Tensor x = random::normal({8, 4}, {.seed = 1}), y = sum(x, 1);
  const auto train = [&](bool recorded) {
    const Variable w(zeros({4}));
    Momentum momentum({.learning_rate = 0.05, .momentum = 0.9});
    GradientAccumulator accumulator;
    const auto add = [&](const Tensor& rows, const Tensor& sums) {
      accumulator.add(Optimizer::compute_gradients([&] { return mean(square(sum(rows * w, 1) - sums)); }));
    };
    const auto replayed = compile(add);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      for (std::int64_t first = 0; first < 8; first += 2) {
        const Tensor rows = slice(x, {first, 0}, {2, 4}), sums = slice(y, {first}, {2});
        recorded ? replayed(rows, sums) : add(rows, sums);
      }
      momentum.apply_gradients(accumulator.take_mean());
    }
    if (recorded) CHECK(replayed.programs().at(0).calls == 4 * kSteps - 1);
    return w.value();
  };
  CHECK(same_bits(train(false), train(true)));
}

}   // namespace docs_training_test
