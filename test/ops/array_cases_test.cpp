// The cases of test/data/cases.json on layout, slices and indices.
#include <catch2/catch.hpp>

#include "case.h"

namespace array_cases_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

/// Runs a case that states the gradient of f for a given cotangent, or for ones.
template <class F> void check_gradient(const char* id, const F& f, const Tensor& dy = {}) {
  check_case(id, [&](Case& c) {
    const Tensor x = c.input("x");
    GradientTape tape;
    tape.watch(x);
    const Tensor y = f(x);
    const std::vector<Gradient> g = tape.gradient(Targets(y), Sources(x), {.output_gradients = {dy}});
    CHECK(g[0].is_dense());
    c.check("grads", g);
  });
}

}   // namespace

TEST_CASE("cases: arrangement, parts and indices", "[cases][array]") {
  check_gradient("op-reshape", [](const Tensor& x) { return reshape(x, {3, 1}); });
  check_gradient("op-broadcast-to", [](const Tensor& x) { return broadcast_to(x, {2, 3}); });
  check_gradient("op-tile", [](const Tensor& x) { return tile(x, {3, 2}); });
  check_gradient("op-slice", [](const Tensor& x) { return slice(x, {1}, {1}); });
  check_gradient("op-gather-axis1", [](const Tensor& x) { return gather(x, tensor({1, 0}), 1); });
  check_gradient(
      "op-gather-nd",
      [](const Tensor& x) {
        return gather_nd(x, tensor({{0, 1}, {1, 1}, {0, 1}}));
      },
      tensor({1.0, 10.0, 100.0}));
}

}   // namespace array_cases_test
