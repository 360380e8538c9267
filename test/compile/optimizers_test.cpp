// Steps of every update rule in a compiled function: the bits of eager steps, of dense and sparse gradients,
// with constraints and transformed gradients.
#include <catch2/catch.hpp>
#include <map>

#include "closeness.h"
#include "optim/trajectories.h"
#include "tapedeck/compile.h"
#include "tapedeck/gradient_transform.h"
#include "tapedeck/tapedeck.h"

namespace optimizers_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

/// What is compiled: whole steps, or the function that returns the gradients for them.
enum class Recorded { nothing, steps, gradients };

/// The variables and losses after each of some steps.
std::vector<Tensor> train(const Json& trajectory, bool sparse, Recorded recorded) {
  Optimizer optimizer = optimizer_of(trajectory);
  if (!sparse) optimizer.add_transform(transforms::clip_norm(1.5));
  const Variable table(random::normal({5, 4}, {.seed = 1})),
      w(random::normal({4, 3}, {.seed = 2}),
        {.constraint = [](const Tensor&x) { return clip(x, -0.9, 0.9); }}),
      count(tensor(std::int64_t{0}));
  const auto gradients = [&](const Tensor& ids, const Tensor& y) {
    GradientTape tape;
    const Tensor x = sparse ? gather(table, ids) : matmul(one_hot(ids, 5), table);
    const Tensor loss = mean(square(matmul(x, w) - y));
    return std::pair(loss, tape.gradient(loss, table, w));
  };
  const auto apply = [&](const auto& loss_and_gradients) {
    const auto& [loss, g] = loss_and_gradients;
    REQUIRE((g[0].slices() != nullptr) == sparse);
    optimizer.apply_gradients({{g[0], table}, {g[1], w}}, count);
    return loss;
  };
  const auto step = [&](const Tensor& ids, const Tensor& y) { return apply(gradients(ids, y)); };
  const auto replayed_gradients = compile(gradients);
  const auto replayed = compile(step);
  std::vector<Tensor> all;
  for (std::uint64_t i = 0; i < 6; ++i) {
    const Tensor ids = tensor(std::vector<std::int64_t>{1, static_cast<std::int64_t>(i % 5), 3, 1}),
                 y = random::normal({4, 3}, {.seed = 3, .stream = i});
    switch (recorded) {
      case Recorded::nothing:
        all.push_back(step(ids, y));
        break;
      case Recorded::steps:
        all.push_back(replayed(ids, y));
        break;
      case Recorded::gradients:
        all.push_back(apply(replayed_gradients(ids, y)));
        break;
    }
    for (const Variable& v : {table, w, count})
      all.push_back(v.value());
  }
  if (recorded == Recorded::steps) CHECK(replayed.programs().at(0).calls == 5);
  if (recorded == Recorded::gradients) CHECK(replayed_gradients.programs().at(0).calls == 5);
  return all;
}

}   // namespace

TEST_CASE("every update rule steps in replays as it does eagerly", "[recorded][optimizer]") {
  std::map<std::string, Json> rules;   // one trajectory of each
  for (const Json& t : trajectories())
    rules.emplace(t.at("rule").get<std::string>(), t);
  CHECK(rules.size() >= 15);
  for (const auto& [name, trajectory] : rules)
    for (const bool sparse : {false, true}) {
      INFO(name << (sparse ? ", sparse" : ", dense"));
      const auto eager = train(trajectory, sparse, Recorded::nothing),
                 replayed = train(trajectory, sparse, Recorded::steps),
                 outside = train(trajectory, sparse, Recorded::gradients);
      for (std::size_t i = 0; i < eager.size(); ++i) {
        INFO("after step " << i / 4 << ", tensor " << i % 4);
        CHECK(same_bits(eager[i], replayed[i]));
        CHECK(same_bits(eager[i], outside[i]));
      }
    }
}

TEST_CASE("a value that a step reads is unchanged while the step updates its variable",
          "[recorded][optimizer]") {
  for (const std::int64_t n : {3, 1000}) {
    const auto train = [n](bool recorded) {
      const Variable v(ones({n})), w(zeros({n}));
      GradientDescent sgd({.learning_rate = 0.5});
      const auto step = [&](const Tensor& g) { sgd.apply_gradients({{g, v}, {v.value(), w}}); };
      const auto replayed = compile(step);
      for (int i = 0; i < 4; ++i)
        recorded ? replayed(full({n}, 0.25)) : step(full({n}, 0.25));
      return std::vector{v.value(), w.value()};
    };
    const auto eager = train(false), replayed = train(true);
    CHECK(same_bits(replayed[0], eager[0]));
    CHECK(same_bits(replayed[1], eager[1]));
    CHECK(eager[1].at({n - 1}) == -0.5 * (1 + 0.875 + 0.75 + 0.625));
  }
}

TEST_CASE("a transformation that is added after the recording may keep gradients", "[recorded][optimizer]") {
  const Variable v(zeros({1000}));
  GradientDescent descent({.learning_rate = 1.0});
  const auto step = compile([&](const Tensor& g) { descent.apply_gradients({{g * 2, v}}); });
  step(ones({1000}));
  std::vector<Tensor> kept;
  descent.add_transform(
      [&](std::span<GradientAndVariable> pairs, std::int64_t) { kept.push_back(pairs[0].gradient.dense()); });
  for (const double g : {3.0, 4.0, 5.0})
    step(full({1000}, g));
  REQUIRE(kept.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(kept[i].at({999}) == 6 + 2 * static_cast<double>(i));
}

TEST_CASE("slots cannot be read while a function is recorded", "[recorded][optimizer]") {
  using Catch::Matchers::Contains;
  Adam adam({.learning_rate = 0.1});
  const Variable w(tensor({1.0, 2.0}), {.name = "weight"});
  const auto step = compile([&](const Tensor& g) {
    adam.apply_gradients({{g, w}});
    return 2 * adam.slot(w, "m");
  });
  CHECK_THROWS_WITH(step(tensor({1.0, 1.0})), Contains("adam: slot \"m\" of variable \"weight\"") &&
                                                  Contains("do this outside, after the call"));
  const auto plain = compile([&](const Tensor& g) { adam.apply_gradients({{g, w}}); });
  plain(tensor({1.0, 1.0}));
  plain(tensor({1.0, 1.0}));
  CHECK(adam.slot(w, "m").defined());
}

TEST_CASE("an optimizer's state cannot be read while a function is recorded", "[recorded][optimizer]") {
  using Catch::Matchers::Contains;
  Adam adam({.learning_rate = 0.1});
  GradientDescent sgd({.learning_rate = 0.1});
  const Variable w(tensor({1.0, 2.0}), {.name = "weight"});
  const std::function<Tensor()> readers[] = {[&] { return adam.variables().back().value; },
                                             [&] { return adam.state().slots.at(0).value; },
                                             [&] { return adam.weights().back(); }};
  for (const auto& read : readers) {
    const auto step = compile([&](const Tensor& g) {
      adam.apply_gradients({{g, w}});
      return read();
    });
    CHECK_THROWS_WITH(step(tensor({1.0, 1.0})), Contains("adam: its state cannot be used") &&
                                                    Contains("do this outside, after the call"));
    CHECK(step.programs().empty());
    CHECK(read().defined());
  }
  const auto count = compile([&](const Tensor& x) { return x * sgd.variables().at(0).value; });
  CHECK_THROWS_WITH(count(tensor({1.0})), Contains("its state cannot be used"));
  const auto slot = compile([&](const Tensor& x) { return x * adam.slot(w, "m"); });
  CHECK_THROWS_WITH(slot(tensor({1.0, 1.0})), Contains("adam: slot \"m\" of variable \"weight\""));
}

}   // namespace optimizers_test
