// Debugging tools. Tapes as pictures: the Graphviz text, in full for a tiny tape, in parts for others. Also
// summaries, explain, anomaly mode and profiles.
#include <catch2/catch.hpp>

#include <cmath>
#include <thread>

#include <nlohmann/json.hpp>

#include "message_of.h"
#include "ops/odd_ops.h"
#include "tapedeck/debug.h"

namespace debug_test {

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Contains, Catch::EndsWith, Catch::StartsWith;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++n;
  return n;
}

}   // namespace

TEST_CASE("the picture of a tape", "[debug]") {
  const Variable w(ones({4, 2}), {.name = "w"});
  const Tensor x = ones({3, 4}), constant = ones({2});
  GradientTape tape;
  tape.watch(x);
  const Tensor product = matmul(x, w), y = tanh(product + constant), other = neg(product);
  CHECK(to_dot(tape) == R"(digraph tape {
  label="4 ops keep 104 B"; fontname="sans-serif"; fontsize=11;
  node [shape=box, style="rounded,filled", fillcolor="#f5f5f5", color="#777777", fontname="sans-serif", fontsize=11];
  edge [color="#555555", arrowsize=0.7, fontname="sans-serif", fontsize=9];
  source0 [label="w\nf32[4,2]", shape=ellipse, style=filled, fillcolor="#d6e4f5"];
  source1 [label="watched\nf32[3,4]", shape=ellipse, style=filled, fillcolor="#dcecd8"];
  op0 [label="matmul\nf32[3,2]\nkeeps 80 B"];
  op1 [label="add\nf32[3,2]"];
  op2 [label="tanh\nf32[3,2]\nkeeps 24 B", peripheries=2, fillcolor="#fbe9c6"];
  op3 [label="neg\nf32[3,2]", peripheries=2, fillcolor="#fbe9c6"];
  source1 -> op0;
  source0 -> op0;
  op0 -> op1;
  op1 -> op2;
  op0 -> op3;
}
)");
}

TEST_CASE("names in a picture are escaped", "[debug]") {
  const Variable v(tensor(1.0), {.name = "a \"b\" \\N\nc"});
  GradientTape tape;
  const Tensor y = exp(v);
  CHECK_THAT(to_dot(tape), Contains(R"([label="a \"b\" \\N\nc\nf32[]",)"));
}

TEST_CASE("pictures of a persistent tape before and after its gradient are the same", "[debug]") {
  const Tensor x = ones({2});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = exp(x) * x;
  tape.stop();
  const std::string before = to_dot(tape);
  CHECK(tape.gradient(y, x).defined());
  CHECK(to_dot(tape) == before);
}

TEST_CASE("a picture of an empty or consumed tape", "[debug]") {
  const Tensor x = ones({2});
  GradientTape tape;
  CHECK_THAT(to_dot(tape), Contains("0 ops keep 0 B") && !Contains("op0"));
  tape.watch(x);
  CHECK_THAT(to_dot(tape), Contains("source0 [label=\"watched\\nf32[2]\""));
  const Tensor y = x * x;
  (void)tape.gradient(y, x);
  CHECK_THROWS_WITH(
      to_dot(tape),
      "to_dot: this tape was already used; make it persistent, or ask before gradient is called");
}

TEST_CASE("ops are drawn in order of time, without unreachable ones", "[debug]") {
  const Tensor x = ones({2});
  GradientTape tape;
  tape.watch(x);
  Tensor dropped = tanh(x);
  const Tensor first = exp(x);
  dropped = Tensor();
  const Tensor second = log(first);   // reuses the entry of the dropped one
  const std::string dot = to_dot(tape);
  CHECK_THAT(dot, Contains("op0 [label=\"exp") && Contains("op1 [label=\"log") && !Contains("tanh"));
}

TEST_CASE("several outputs and user-defined operations in a picture", "[debug]") {
  const Tensor x = ones({2});
  GradientTape tape;
  tape.watch(x);
  const std::vector<Tensor> pair = outputs(kPair, {x});
  const Tensor sum = pair[0] + pair[1];
  Tensor y;
  {
    const StopRecording pause;
    y = identity(sum);
  }
  record_operation("mine \"clipped\"", {&y, 1}, {&sum, 1},
                   [](std::span<const Tensor> dy) { return std::vector<Gradient>{dy[0]}; });
  const std::string dot = to_dot(tape);
  CHECK_THAT(dot, Contains(R"(op0 [label="pair\nf32[2]\nf32[2]"];)") &&
                      Contains("op0 -> op1 [label=\"output 0\"];") &&
                      Contains("op0 -> op1 [label=\"output 1\"];"));
  CHECK_THAT(dot, Contains(R"(op2 [label="mine \"clipped\"\nf32[2]", peripheries=2)"));
  CHECK(tape.recorded().back().name == "mine \"clipped\"");
}

TEST_CASE("a tensor that several ops keep counts once", "[debug]") {
  const Tensor x = ones({1024});
  GradientTape tape;
  tape.watch(x);
  const Tensor a = x * x, b = x * x;
  const std::string dot = to_dot(tape);
  CHECK_THAT(dot, Contains("2 ops keep 4.0 KiB"));
  CHECK(count(dot, "keeps 4.0 KiB") == 2);
  CHECK(count(dot, "source0 -> ") == 4);
}

TEST_CASE("sizes are printed in the largest unit that fits", "[debug]") {
  const auto kept = [](std::int64_t elements) {
    const Tensor x = zeros({elements});
    GradientTape tape;
    tape.watch(x);
    const Tensor y = x * x;
    const std::string text = summary(tape);
    return text.substr(0, text.find('\n'));
  };
  CHECK(kept(255) == "1 ops keep 1020 B");
  CHECK(kept(256) == "1 ops keep 1.0 KiB");
  CHECK(kept(1 << 17) == "1 ops keep 512.0 KiB");
  CHECK(kept(1 << 18) == "1 ops keep 1.0 MiB");
}

TEST_CASE("the summary of a tape", "[debug]") {
  const Variable w(ones({4, 2}), {.name = "w"});
  const Tensor x = ones({3, 4}), constant = ones({2});
  GradientTape tape;
  tape.watch(x);
  const Tensor product = matmul(x, w), y = tanh(product + constant);
  const std::vector<Tensor> parts = split(y, 2, -1);
  const Tensor other = neg(parts[1]);
  CHECK(summary(tape) == R"(5 ops keep 104 B
#  op      inputs                        outputs             keeps
0  matmul  watched f32[3,4], w f32[4,2]  f32[3,2]             80 B
1  add     #0 f32[3,2], .                f32[3,2]                 
2  tanh    #1 f32[3,2]                   f32[3,2]             24 B
3  split   #2 f32[3,2]                   f32[3,1], f32[3,1]       
4  neg     #3:1 f32[3,1]                 f32[3,1]                 
)");
  CHECK(tape.gradient(y, x).defined());
  CHECK_THROWS_WITH(
      summary(tape),
      "summary: this tape was already used; make it persistent, or ask before gradient is called");
}

TEST_CASE("a summary marks where f32 becomes f64", "[debug]") {
  const Variable w(ones({2, 2}), {.name = "w"}), narrow(ones({2}), {.name = "b"});
  const Tensor x = tensor(std::vector<double>{1, 2, 3, 4}, {2, 2});
  GradientTape tape;
  const Tensor product = matmul(x, w), y = product + narrow, z = complex(narrow, narrow) * complex(x, x);
  CHECK(summary(tape) == R"(7 ops keep 96 B; 3, marked *, convert f32 to f64
#  op        inputs                  outputs    keeps
0  astype *  w f32[2,2]              f64[2,2]        
1  matmul    ., #0 f64[2,2]          f64[2,2]    32 B
2  astype *  b f32[2]                f64[2]          
3  add       #1 f64[2,2], #2 f64[2]  f64[2,2]        
4  complex   b f32[2], b f32[2]      c64[2]          
5  astype *  #4 c64[2]               c128[2]         
6  mul       #5 c128[2], .           c128[2,2]   64 B
)");
}

TEST_CASE("what tapes and accumulators follow, and how often", "[debug]") {
  const Tensor x = ones({2});
  CHECK_FALSE(is_followed(x));
  CHECK(order_followed(x) == 0);
  GradientTape outer;
  outer.watch(x);
  CHECK(is_followed(x));
  CHECK(order_followed(x) == 1);
  {
    const ForwardAccumulator forward(x, x);
    CHECK(order_followed(x) == 2);
    const StopRecording pause(outer);
    CHECK_FALSE(is_followed(x));
    CHECK(order_followed(x) == 1);
  }
  GradientTape persistent({.persistent = true});
  const Tensor z = ones({2});
  persistent.watch(z);
  CHECK(order_followed(z) == 2);
}

TEST_CASE("why a gradient is none, by the tape", "[debug]") {
  const Tensor x = ones({2}), unwatched = ones({3}), n = tensor({1, 2});
  const Variable fixed(ones({2}), {.name = "fixed", .trainable = false}), w(ones({2}), {.name = "w"});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = exp(x) * w, lone = exp(w), cut = stop_gradient(y);
  CHECK(explain(tape, y, x) == "not none, unless a rule on the way gives none: mul <- exp");
  CHECK(explain(tape, y, w) == "not none, unless a rule on the way gives none: mul");
  CHECK(explain(tape, x, x) == "not none: the target is the source");
  CHECK(explain(tape, y, unwatched) ==
        "none: the source f32[3] was not watched before its use, nor computed from a watched tensor "
        "while the tape recorded; watch it before it is used");
  CHECK(explain(tape, y, fixed) ==
        "none: the source \"fixed\" is a variable that is not trainable; watch it before it is read, or make "
        "it trainable");
  CHECK(explain(tape, y, n) == "none: the source i32[2] is i32, which has no derivative");
  CHECK(explain(tape, Tensor(), x) == "none: the target is undefined");
  CHECK(explain(tape, lone, x) ==
        "none: the tape has no path from the target f32[2] to the source f32[2]: the ops that depend on the "
        "source end at mul f32[2]");
  CHECK_THAT(
      explain(tape, cut, x),
      Contains("none: the target f32[2] is not on the tape") &&
          EndsWith("the tape has the source f32[2]: the ops that depend on the source end at mul f32[2]"));
  const Tensor unused = ones({4});
  tape.watch(unused);
  CHECK_THAT(explain(tape, y, unused), EndsWith("to the source f32[4]: no recorded op reads the source"));
  const Tensor second = sin(x), third = cos(x);   // two more paths that end, and one that continues
  CHECK_THAT(explain(tape, lone, x), EndsWith("end at mul f32[2], sin f32[2], cos f32[2]"));
  for (const Tensor& t : {lone, cut})
    CHECK_FALSE(tape.gradient(t, x).defined());
}

TEST_CASE("why a gradient is none, by a history", "[debug]") {
  const Tensor x = ones({2});
  GradientTape tape;
  tape.watch(x);
  const History history;
  const Tensor a = exp(x), b = stop_gradient(a), c = b * 2.0, i = astype(astype(a, DType::i32), DType::f32),
               other = ones({2}) * 3.0;
  Tensor unseen;
  {
    const StopRecording pause;
    unseen = square(a);
  }
  const Tensor both = c + i, late = neg(unseen);
  CHECK(explain(tape, c, x, history) ==
        "none: every path from the target f32[2] to the source f32[2] is cut:\n  op 1, stop_gradient (f32[2] "
        "-> f32[2]), has no derivative");
  CHECK(explain(tape, both, x, history) ==
        "none: every path from the target f32[2] to the source f32[2] is cut:\n  op 1, stop_gradient (f32[2] "
        "-> f32[2]), has no derivative"
        "\n  op 3, astype (f32[2] -> i32[2]), gives i32, which has no derivative");
  CHECK_THAT(explain(tape, late, x, history),
             EndsWith("op 6, square (f32[2] -> f32[2]), ran while the tape did not record"));
  CHECK(explain(tape, other, x, history) == "none: the target f32[2] does not depend on the source f32[2]");
  CHECK(explain(tape, a, x, history) ==
        "not none, unless a rule on the way gives none: the target f32[2] depends on the source f32[2]");
  CHECK(explain(tape, ones({4}), x, history) ==
        "none: the target f32[4] was not computed while the history lived");
  CHECK(history.size() == 9);
  CHECK_FALSE(tape.gradient(both, x).defined());
  CHECK_THAT(explain(tape, both, x, history), Contains("stop_gradient"));   // used up
  CHECK_THROWS_WITH(explain(tape, both, x), Contains("explain: this tape was already used"));

  const Variable w(ones({2}), {.name = "w"});
  GradientTape third;
  Tensor paused;
  {
    const StopRecording pause;
    paused = w;
  }
  const Tensor followed = exp(w), product = paused * 2.0;
  CHECK_THAT(explain(third, product, w, history),
             EndsWith("op 9, the read of \"w\" (f32[2] -> f32[2]), ran while the tape did not record"));
  CHECK_THAT(explain(third, followed, w, history), StartsWith("not none"));

  const Tensor z = ones({2}), before = exp(z);
  GradientTape second;
  second.watch(z);
  CHECK_THAT(explain(second, before, z, history), Contains("ran while the tape did not record"));
}

TEST_CASE("a history knows which tape did not record", "[debug]") {
  const Tensor x = ones({2});
  GradientTape tape;
  tape.watch(x);
  const History history;
  Tensor unseen;
  {
    const StopRecording pause(tape);
    unseen = square(x);
  }
  const Tensor y = neg(unseen);
  CHECK_THAT(explain(tape, y, x, history),
             EndsWith("op 0, square (f32[2] -> f32[2]), ran while the tape did not record"));
  const ForwardAccumulator tangents(x, ones({2}));
  const Tensor seen = exp(x);
  CHECK_THAT(explain(tape, seen, x, history), StartsWith("not none"));
}

TEST_CASE("a history follows a variable from reads before it", "[debug]") {
  const Variable w(ones({2}), {.name = "w"}), v(ones({2}), {.name = "v"});
  GradientTape tape;
  const Tensor of_w = w.value(), of_v = v.value();
  const History history;
  const Tensor y = of_w * 2.0, z = of_v * 3.0;
  CHECK_THAT(explain(tape, y, w, history), StartsWith("not none"));
  CHECK_THAT(explain(tape, z, v, history), StartsWith("not none"));
  CHECK_THAT(explain(tape, z, w, history), Contains("does not depend on"));
}

TEST_CASE("anomaly mode names the op and the place", "[debug]") {
  const Tensor x = tensor({1.0, 0.0, 4.0});
  const auto gradient = [&] {
    GradientTape tape;
    tape.watch(x);
    Tensor y;
    {
      const Scope outer("net"), inner("layer1");
      y = sqrt(x);
    }
    return tape.gradient(sum(y * 2.0), x);
  };
  CHECK(gradient().defined());
  {
    const AnomalyMode anomaly;
    CHECK_THROWS_WITH(gradient(), Contains("sqrt: the gradient of input 0, f32[3], has inf at element 1\n  "
                                           "in scope \"net/layer1\"\n  recorded by "));
    // Functions of this file have no symbols: each line names the program and the place in it.
    const std::string message = message_of<GradientError>(gradient);
    CHECK_THAT(message, !Contains("by \n") && !EndsWith("by "));
    GradientTape tape;
    tape.watch(x);
    const Tensor y = exp(x);
    CHECK_THROWS_WITH(tape.gradient(Targets(y), x, {.output_gradients = {tensor({1.0, 1.0, HUGE_VAL})}}),
                      Contains("exp: the gradient of output 0, f32[3], has inf at element 2; it came with "
                               "the output gradients, or from a sum"));
    GradientTape fine;
    fine.watch(x);
    CHECK(fine.gradient(exp(x), x).defined());
  }
  CHECK(gradient().defined());
}

TEST_CASE("anomaly mode keeps no more places than entries", "[debug][memory]") {
  const AnomalyMode anomaly;
  GradientTape tape({.persistent = true});
  const Tensor x = tensor(0.5);
  tape.watch(x);
  for (int i = 0; i < 3; ++i) {
    const Scope scope(std::to_string(i));
    const Tensor y = log(x - 0.5);
    CHECK_THROWS_WITH(tape.gradient(y, x),
                      Contains("in scope \"" + std::to_string(i) + "\""));   // numbers of entries are reused
  }
  CHECK(tape.size() == 0);
}

TEST_CASE("NumericsCheck checks results in its scope", "[debug]") {
  const Tensor x = tensor({1.0, 0.0});
  CHECK(log(x).defined());
  GradientTape tape;
  tape.watch(x);
  {
    const NumericsCheck check;
    const Scope scope("loss");
    CHECK(exp(x).defined());
    CHECK_THROWS_WITH(log(x), "log: result 0, f32[2], has inf at element 1\n  in scope \"loss\"");
    CHECK_THROWS_AS(x / 0.0, ArgumentError);
    CHECK_THROWS_WITH(complex(x, x) / 0.0, Contains("div: result 0, c64[2], has inf at element 0"));
  }
  CHECK(tape.size() == 0);   // exp has ended, the others were not recorded
  CHECK(log(x).defined());
}

TEST_CASE("labels that look like logits are reported", "[debug]") {
  const Tensor labels = tensor({{0.0, 1.0}, {0.25, 0.75}}), logits = tensor({{-0.5, 2.0}, {0.5, 1.5}});
  CHECK(sigmoid_cross_entropy(logits, labels).defined());
  const NumericsCheck check;
  const Scope scope("loss");
  CHECK(sigmoid_cross_entropy(labels, logits).defined());
  CHECK_THROWS_WITH(sigmoid_cross_entropy(logits, labels),
                    "sigmoid_cross_entropy: labels, f32[2,2], has -0.5 at element 0, which is not in [0, 1]; "
                    "are labels and logits swapped?\n  in scope \"loss\"");
  CHECK_THROWS_WITH(sigmoid_cross_entropy(abs(logits), labels), Contains("has 2 at element 1"));
  CHECK_THROWS_AS(sigmoid_cross_entropy(2.0, logits), ArgumentError);
  CHECK_THROWS_WITH(softmax_cross_entropy(astype(logits, DType::f64), astype(labels, DType::f64)),
                    Contains("labels, f64[2,2], has -0.5 at element 0, which is negative"));
  CHECK(softmax_cross_entropy(labels * 3.0, logits).defined());   // rows may have weights
  CHECK(sigmoid_cross_entropy(zeros({0}), zeros({0})).defined());
}

TEST_CASE("a profile", "[debug]") {
  const Tensor x = ones({64, 64}), w = ones({64, 64});
  Profile profile;
  Gradient g;
  {
    GradientTape tape;
    tape.watch(x);
    const Scope scope("layer");
    g = tape.gradient(sum(tanh(matmul(x, w)) * tanh(x)), x);
  }
  profile.stop();
  CHECK(exp(x).defined());
  const std::vector<OpCost> costs = profile.costs();
  const auto cost = [&](const std::string& name) {
    const auto found =
        std::find_if(costs.begin(), costs.end(), [&](const OpCost& c) { return c.name == name; });
    return found == costs.end() ? OpCost{} : *found;
  };
  CHECK(cost("tanh").calls == 2);
  CHECK(cost("tanh").rules == 2);
  CHECK(cost("tanh").bytes == 2 * 64 * 64 * 4);
  CHECK(cost("matmul").calls == 1);   // the product inside the rule counts as time of the rule
  CHECK(cost("matmul").rules == 1);
  CHECK(cost("matmul").rule_bytes == 64 * 64 * 4);
  CHECK(cost("matmul").seconds > 0);
  CHECK(cost("exp").calls == 0);
  CHECK(std::is_sorted(costs.begin(), costs.end(), [](const OpCost& a, const OpCost& b) {
    return a.seconds + a.rule_seconds > b.seconds + b.rule_seconds;
  }));
  CHECK_THAT(profile.table(), Contains("tanh") && Contains("calls") && Contains("32.0 KiB"));

  const nlohmann::json trace = nlohmann::json::parse(profile.trace());
  int rules = 0, inside = 0;
  double rule_begin = 0, rule_end = 0;
  for (const nlohmann::json& e : trace["traceEvents"]) {
    CHECK(e["ph"] == "X");
    CHECK(e["dur"].get<double>() >= 0);
    CHECK(e["args"]["scope"] == "layer");
    rules += e["cat"] == "backward";
    const double begin = e["ts"], end = begin + e["dur"].get<double>();
    if (e["cat"] == "backward" && e["name"] == "matmul")
      rule_begin = begin, rule_end = end;
    else if (rule_begin < begin && end <= rule_end)
      inside += e["name"] == "matmul" && e["tid"] == 2;
  }
  CHECK(rules == 5);   // sum, mul, tanh twice, matmul
  CHECK(inside == 1);
}

TEST_CASE("the trace of a profile is valid JSON for any scope name", "[debug]") {
  Profile profile;
  {
    const Scope scope("bad \xff\"\n");
    CHECK(exp(ones({2})).defined());
  }
  profile.stop();
  const std::string trace = profile.trace();
  CHECK(nlohmann::json::accept(trace));
  CHECK_THAT(trace, Contains("bad \xef\xbf\xbd\\\"\\n"));
}

TEST_CASE("a profile of user-defined operations", "[debug]") {
  const Tensor x = ones({64});
  const Profile profile;
  {
    GradientTape tape;
    tape.watch(x);
    Tensor y;
    {
      const StopRecording pause;
      y = exp(x);
    }
    record_operation("mine", {&y, 1}, {&x, 1},
                     [y](std::span<const Tensor> dy) { return std::vector<Gradient>{dy[0] * y}; });
    CHECK(tape.gradient(y, x).dense().at({3}) == Approx(std::exp(1.0)));
  }
  const std::vector<OpCost> costs = profile.costs();
  const auto mine =
      std::find_if(costs.begin(), costs.end(), [](const OpCost& c) { return c.name == "mine"; });
  REQUIRE(mine != costs.end());
  CHECK(mine->calls == 1);
  CHECK(mine->bytes == 256);
  CHECK(mine->rules == 1);
  CHECK(mine->rule_bytes == 256);
  CHECK(mine->rule_seconds > mine->seconds);   // the product inside the rule counts as time of the rule
  CHECK(std::none_of(costs.begin(), costs.end(), [](const OpCost& c) { return c.name == "mul"; }));
}

TEST_CASE("observers look at their own thread", "[debug][threads]") {
  const Tensor x = zeros({8});
  const Profile profile;
  const NumericsCheck check;
  const AnomalyMode anomaly;
  const History history;
  constexpr int kThreads = 4, kRuns = 200;
  std::vector<std::int64_t> calls(kThreads), rules(kThreads), seen(kThreads), thrown(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      bool unchecked = true;
      try {
        GradientTape tape;
        tape.watch(x);
        unchecked = !std::isfinite(tape.gradient(log(x), x).dense().at({0}));   // not checked here
      } catch (const Error&) {
        unchecked = false;
      }
      if (!unchecked) return;
      const Profile own;
      const History log_of_ops;
      for (int run = 0; run < kRuns; ++run) {
        const Scope scope("thread" + std::to_string(t));
        GradientTape tape;
        tape.watch(x);
        const Tensor y = tanh(x + 1.0);
        (void)tape.gradient(y, x);
        const NumericsCheck strict;
        try {
          (void)log(x);
        } catch (const ArgumentError& e) {
          thrown[t] += std::string_view(e.what()).find("in scope \"thread" + std::to_string(t) + "\"") !=
                       std::string_view::npos;
        }
      }
      for (const OpCost& c : own.costs())
        if (c.name == "tanh") calls[t] = c.calls, rules[t] = c.rules;
      seen[t] = static_cast<std::int64_t>(log_of_ops.size());
    });
  for (std::thread& t : threads)
    t.join();
  const std::vector<std::int64_t> each(kThreads, kRuns);
  CHECK(calls == each);
  CHECK(rules == each);
  CHECK(thrown == each);
  for (const std::int64_t n : seen)
    CHECK(n >= 2 * kRuns);
  CHECK(profile.costs().empty());
  CHECK(history.size() == 0);
  CHECK_THROWS_AS(log(x), ArgumentError);
}

TEST_CASE("an op that throws ends its event", "[debug]") {
  const Profile profile;
  {
    const NumericsCheck check;
    CHECK_THROWS(log(zeros({2})));
  }
  CHECK(exp(zeros({2})).defined());
  const std::vector<OpCost> costs = profile.costs();
  CHECK(costs.size() == 2);   // exp is not inside log
}

TEST_CASE("a path is found in time linear in the tape", "[debug]") {
  const Tensor x = ones({2}), other = ones({2});
  GradientTape tape;
  tape.watch(x);
  Tensor y = x;
  for (int i = 0; i < 60; ++i)
    y = y + y;   // 2^60 paths
  CHECK_THAT(explain(tape, y, x), StartsWith("not none"));
  CHECK_THAT(explain(tape, y, other), StartsWith("none: the source f32[2] was not watched"));
  CHECK_THAT(explain(tape, other, x), EndsWith("end at add f32[2]"));
}

TEST_CASE("an output in the first slot of a tape is listed, drawn and freed like others", "[debug]") {
  const Tensor x = ones({2}), c = ones({2});
  GradientTape tape;
  {
    const Tensor gone = ones({3});
    tape.watch(gone);
    tape.watch(x);
  }
  Tensor y = exp(x);   // takes the slot of `gone`
  const Tensor z = c * y;
  CHECK(summary(tape) == R"(2 ops keep 16 B
#  op   inputs          outputs  keeps
0  exp  watched f32[2]  f32[2]     8 B
1  mul  ., #0 f32[2]    f32[2]     8 B
)");
  const std::string dot = to_dot(tape);
  CHECK_THAT(dot, Contains("source0 -> op0;") && Contains("op0 -> op1;") && !Contains("source1"));
  CHECK(explain(tape, z, x) == "not none, unless a rule on the way gives none: mul <- exp");
  Tensor last = tanh(x);
  CHECK(tape.size() == 3);
  std::thread([&] { last = Tensor(); }).join();
  CHECK(tape.size() == 2);
  CHECK(tape.gradient(z, x).dense().at({0}) == Approx(std::exp(1.0F)));
}

}   // namespace debug_test
