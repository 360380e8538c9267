// Objects that were moved from: using one is an error, not a crash.
#include <catch2/catch.hpp>

#include "message_of.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/nn.h"
#include "tapedeck/tapedeck.h"

namespace moved_from_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

template <class T> void check(T object, const std::function<void(T&)>& use) {
  INFO(typeid(T).name());
  T taken = std::move(object);
  CHECK(message_of<ArgumentError>([&] { use(object); }).find("moved from") != std::string::npos);
  use(taken);
  object = std::move(taken);
  use(object);
}

}   // namespace

TEST_CASE("use of a moved-from object throws", "[error]") {
  const Variable w(ones({2}));
  check<Adam>(Adam(), [&](Adam& a) { a.minimize([&] { return sum(w * w); }); });
  check<Adam>(Adam(), [](Adam& a) { (void)a.state(); });
  check<Optimizer>(Adam(), [](Optimizer& a) { (void)a.hyperparameter("learning_rate"); });
  check<nn::Layer>(nn::Dense(2, 2, {.seed = 1}), [](nn::Layer& l) { l(ones({1, 2})); });
  check<nn::Layer>(nn::Dense(2, 2, {.seed = 1}), [](nn::Layer& l) { const nn::Layer copy = l; });
  check<nn::Metric>(nn::Accuracy(), [](nn::Metric& m) { m.reset(); });
  check<nn::Metric>(nn::Accuracy(), [](nn::Metric& m) { const nn::Metric copy = m; });
  int names = 0;
  check<Checkpoint>(Checkpoint(),
                    [&](Checkpoint& c) { c.add("w" + std::to_string(names++), Variable(ones({2}))); });
}

}   // namespace moved_from_test
