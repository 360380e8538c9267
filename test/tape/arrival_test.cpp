// The engine's callbacks for final gradients of sources during a pass. Linked with the library's objects,
// since among the public functions only steps of several ranks use them.
#include <catch2/catch.hpp>
#include <map>

#include "tape/imperative_grad.h"
#include "tapedeck/tapedeck.h"

using namespace tapedeck;

TEST_CASE("the final gradient of each source is reported once, with the index of the source", "[engine]") {
  const Tensor first = tensor(2.0), second = tensor(3.0), unused = tensor(1.0);
  GradientTape tape;
  tape.watch(first);
  tape.watch(second);
  tape.watch(unused);
  REQUIRE(tape.tape().slot_of(first) == 0);
  const Tensor y = first * second + square(first);
  std::map<std::size_t, std::vector<double>> told;
  const std::vector<Gradient> g = differentiate(
      tape.tape(), Targets(y), Sources{second, unused, first}, {},
      [&](std::size_t source, const Gradient& dx) { told[source].push_back(dx.dense().item()); });
  CHECK(told == std::map<std::size_t, std::vector<double>>{{0, {2}}, {2, {7}}});
  CHECK(g[0].dense().item() == 2);
  CHECK_FALSE(g[1].defined());
  CHECK(g[2].dense().item() == 7);
}

TEST_CASE("a source is reported after its last term, without waiting for longer paths", "[engine]") {
  const Tensor near = tensor(2.0), far = tensor(0.5);
  for (const bool swapped : {false, true}) {
    GradientTape tape;
    tape.watch(near);
    tape.watch(far);
    const Tensor a = square(near), b = tanh(tanh(far)), y = swapped ? b + a : a + b;
    std::vector<std::size_t> order;
    differentiate(tape.tape(), Targets(y), Sources{far, near}, {},
                  [&](std::size_t source, const Gradient&) { order.push_back(source); });
    CHECK(order == std::vector<std::size_t>{1, 0});
  }
}
