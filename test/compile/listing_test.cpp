// Programs as tables and graphs.
#include <catch2/catch.hpp>

#include "closeness.h"
#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

namespace listing_test {

using namespace tapedeck;

TEST_CASE("a program as a table and as a graph", "[recorded]") {
  const Variable w(ones({3}), {.name = "w"});
  const auto f = compile(
      [&](const Tensor& x) {
        GradientTape tape;
        tape.watch(x);
        const auto [dx, dw] = tape.gradient(sum(exp(cumsum(x) * w)), x, w);
        w.assign(dw.dense());
        return dx;
      },
      {.name = "f"});
  CHECK(f.summary().empty());
  CHECK_THROWS_WITH(f.to_dot(), "to_dot: there is no program 0 of f, which has 0; the first one is 0");
  f(ones({2, 3}));
  const std::string table = f.summary(), graph = f.to_dot();
  CHECK(table.substr(0, 12) == "f(f32[2,3]):");
  // The forward pass of which nothing is wanted but its gradient has no sum.
  for (const char* part :
       {"  read w ", "  cumsum ", "argument 0 f32[2,3]", "  mul ", "  exp ", "  gradient of exp ",
        "  gradient of mul ", "  assign w ", "group 1  ", " registers\n", " arena\n"}) {
    INFO(part);
    CHECK(table.find(part) != std::string::npos);
  }
  for (const char* part :
       {"digraph program {", "label=\"argument 0\\nf32[2,3]\", shape=ellipse", "subgraph cluster_1",
        "label=\"gradient of mul", "label=\"assign w\", shape=ellipse", "argument0 -> node"}) {
    INFO(part);
    CHECK(graph.find(part) != std::string::npos);
  }
  CHECK(std::count(table.begin(), table.end(), '\n') == f.programs().at(0).nodes + 2);

  f(ones({5, 3}));
  const std::string both = f.summary();
  CHECK(both.substr(0, table.size()) == table);
  CHECK(both.find("f(f32[5,3]):") == table.size());
  CHECK(f.to_dot(1).find("f(f32[5,3]):") != std::string::npos);
  CHECK_THROWS_AS(f.to_dot(2), ArgumentError);
}

}   // namespace listing_test
