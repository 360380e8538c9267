// Tapes as pictures: the text for Graphviz, whole for a tiny tape, and what stands in it for others.
#include <catch2/catch.hpp>

#include "odd_ops.h"

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Contains;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

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

TEST_CASE("a picture of a tape that is empty, or used up", "[debug]") {
  const Tensor x = ones({2});
  GradientTape tape;
  CHECK_THAT(to_dot(tape), Contains("0 ops keep 0 B") && !Contains("op0"));
  tape.watch(x);
  CHECK_THAT(to_dot(tape), Contains("source0 [label=\"watched\\nf32[2]\""));
  const Tensor y = x * x;
  (void)tape.gradient(y, x);
  CHECK_THROWS_WITH(to_dot(tape), "to_dot: this tape was already used; make it persistent, or draw it before gradient is called");
}

TEST_CASE("ops are drawn in order of time, without those that nobody can reach", "[debug]") {
  const Tensor x = ones({2});
  GradientTape tape;
  tape.watch(x);
  Tensor dropped = tanh(x);
  const Tensor first = exp(x);
  dropped = Tensor();
  const Tensor second = log(first);   // takes the place of the dropped one
  const std::string dot = to_dot(tape);
  CHECK_THAT(dot, Contains("op0 [label=\"exp") && Contains("op1 [label=\"log") && !Contains("tanh"));
}

TEST_CASE("several outputs and operations of one's own in a picture", "[debug]") {
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
  record_operation("mine \"clipped\"", {&y, 1}, {&sum, 1}, [](std::span<const Tensor> dy) { return std::vector<Gradient>{dy[0]}; });
  const std::string dot = to_dot(tape);
  CHECK_THAT(dot, Contains(R"(op0 [label="pair\nf32[2]\nf32[2]"];)") && Contains("op0 -> op1 [label=\"output 0\"];") && Contains("op0 -> op1 [label=\"output 1\"];"));
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
