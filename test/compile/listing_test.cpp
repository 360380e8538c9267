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

TEST_CASE("the programs of branches and loops are listed below the table", "[recorded][branches][loops]") {
  const auto f = compile(
      [](const Tensor& x) {
        GradientTape tape;
        tape.watch(x);
        const Tensor y = cond(
            sum(x) > 0.0, {x}, [](const Tensor& t) { return exp(t); },
            [](const Tensor& t) { return sinh(t); });
        const auto step = [](const Tensor&, const Tensor& t) { return t * 0.5 + sin(t); };
        const Tensor z = fori_loop(0, 100, step, {y}, {.snapshots = 5});
        const Tensor w = while_loop([](const Tensor& t) { return sum(t) < 1e3; },
                                    [](const Tensor& t) { return t * t; }, {z});
        return tape.gradient(w, x).dense();
      },
      {.name = "f"});
  f(ones({3}));
  const std::string text = f.summary();
  // The fewest runs of 100 steps with 5 snapshots, by Griewank's and Walther's formula.
  for (const char* part :
       {": branch 0\n", ": branch 1\n", "  exp ", "  sinh ", ": step, 100 times",
        ": step, with 5 snapshots of 20 B, 316 times for 100 steps", ": step, again for its gradient",
        ": condition\n", ": step, while the condition holds", ": gradient of a step, once for each"}) {
    INFO(text << "\n" << part);
    CHECK(text.find(part) != std::string::npos);
  }
}

}   // namespace listing_test
