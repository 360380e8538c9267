// Profiles of compiled functions.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "closeness.h"
#include "tapedeck/compile.h"
#include "tapedeck/debug.h"
#include "tapedeck/tapedeck.h"

namespace profile_test {

using namespace tapedeck;

namespace {

OpCost cost_of(const Profile& profile, const std::string& name) {
  for (const OpCost& c : profile.costs())
    if (c.name == name) return c;
  return {};
}

}   // namespace

TEST_CASE("a profile lists the steps of replays", "[recorded][debug]") {
  const Variable w(ones({1000}), {.name = "w"});
  const auto f = compile(
      [&](const Tensor& x) {
        const Tensor y = cumsum(tanh(x * w) + 1);   // mul, tanh and add are a group
        w.assign(x);
        return y;
      },
      {.name = "f"});
  const Tensor x = random::normal({1000}, {.seed = 1});
  f(x);
  const Tensor wanted = cumsum(tanh(x * x) + 1);
  Profile profile;
  CHECK(same_bits(f(x), wanted));
  CHECK(same_bits(f(x), wanted));
  profile.stop();
  f(x);
  CHECK(f.programs().at(0).calls == 3);

  // 4,000 bytes a tensor: the group reads x, w and a number, and writes what cumsum reads.
  const OpCost group = cost_of(profile, "function f: group mul+tanh+add");
  CHECK(group.calls == 2);
  CHECK(group.bytes == 2 * 4000);
  CHECK(group.read_bytes == 2 * (8000 + 4));
  CHECK(group.seconds > 0);
  const OpCost sum = cost_of(profile, "function f: cumsum");
  CHECK(sum.calls == 2);
  CHECK(sum.bytes == 2 * 4000);
  CHECK(sum.read_bytes == 2 * 4000);
  CHECK(cost_of(profile, "function f: read w").bytes == 0);
  CHECK(cost_of(profile, "function f: assign w").bytes == 2 * 4000);
  CHECK(cost_of(profile, "function f").calls == 2);
  CHECK(cost_of(profile, "function f").seconds >= 0);
  CHECK(profile.costs().size() == 5);   // and no ops
  CHECK(f.summary().find("4  cumsum") != std::string::npos);
}

TEST_CASE("a trace shows the steps of a replay inside it", "[recorded][debug]") {
  const auto f = compile([](const Tensor& x) { return cumsum(exp(x)); }, {.name = "f"});
  const Tensor x = ones({10});
  f(x);
  Profile profile;
  {
    const Scope scope("training");
    f(x);
  }
  profile.stop();
  const nlohmann::json events = nlohmann::json::parse(profile.trace())["traceEvents"];
  REQUIRE(events.size() == 3);
  CHECK(events[0]["name"] == "function f");
  CHECK(events[1]["args"]["read"] == 40);
  CHECK(events[1]["args"]["bytes"] == 40);
  CHECK(events[1]["args"]["result"] == "f32[10]");
  const double begin = events[0]["ts"], end = begin + events[0]["dur"].get<double>();
  for (const nlohmann::json& e : events) {
    CHECK(e["args"]["scope"] == "training");
    CHECK(e["ts"].get<double>() >= begin);
    CHECK(e["ts"].get<double>() + e["dur"].get<double>() <= end);
  }
}

TEST_CASE("a profile distinguishes the programs of a function, common prefixes and long names",
          "[recorded][debug]") {
  const auto f = compile(
      [](const Tensor& x, const Tensor& i) {
        const Tensor picked = gather(x, i);   // first: within one expression, compilers choose the order
        return sum(exp(sin(tanh(x) + 1)) * 2) + picked;
      },
      {.name = "f"});
  const Tensor x = ones({10}), y = ones({20}), i = tensor(0);
  f(x, i), f(y, i);
  Profile profile;
  f(x, i);
  f(y, i);
  CHECK_THROWS_AS(f(x, tensor(10)), ArgumentError);   // in its first step, whose event it ends
  CHECK(exp(x).defined());
  CHECK(cost_of(profile, "function f: gather").calls == 2);
  CHECK(cost_of(profile, "function f: group tanh+add+sin+…").calls == 1);
  CHECK(cost_of(profile, "function f, program 1: group tanh+add+sin+…").calls == 1);
  CHECK(cost_of(profile, "function f").calls == 2);
  CHECK(cost_of(profile, "exp").calls == 1);
}

TEST_CASE("other observers see the ops of a compiled function", "[recorded][debug]") {
  int runs = 0;
  const auto f = compile([&](const Tensor& x) {
    ++runs;
    return log(x) * 2;
  });
  f(ones({2}));
  f(ones({2}));
  CHECK(runs == 1);
  {
    const Profile profile;
    const NumericsCheck check;
    CHECK_THROWS_AS(f(zeros({2})), ArgumentError);
    CHECK(runs == 2);
    CHECK(cost_of(profile, "log").calls == 1);
  }
  {
    const History history;
    f(ones({2}));
    CHECK(history.size() == 2);
    CHECK(runs == 3);
  }
  const Profile outer;
  {
    const Profile inner;   // profiles nest
    f(ones({2}));
    CHECK(cost_of(inner, "function function").calls == 1);
  }
  CHECK(cost_of(outer, "function function").calls == 1);
  CHECK(runs == 3);
}

TEST_CASE("a function is recorded under a profile, which sees the ops of this call", "[recorded][debug]") {
  const Variable w(ones({3}));
  Adam adam;
  const auto f = compile(
      [&](const Tensor& x) {
        GradientTape tape;
        const Tensor loss = sum(square(x * w));
        adam.apply_gradients({{tape.gradient(loss, w), w}});
        return loss;
      },
      {.name = "f"});
  const Profile profile;
  f(ones({3}));
  CHECK(cost_of(profile, "square").calls == 1);
  CHECK(cost_of(profile, "square").rules == 1);
  f(ones({3}));
  CHECK(f.programs().at(0).calls == 1);
  CHECK(cost_of(profile, "square").calls == 1);
  CHECK(cost_of(profile, "function f").calls == 1);
  CHECK(adam.iterations() == 2);
}

}   // namespace profile_test
