// GradientTape and StopRecording through the public interface: what is recorded, when, and what gradient()
// returns.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <thread>

#include "message_of.h"
#include "ops/odd_ops.h"
#include "tapedeck/debug.h"
#include "tapedeck/memory.h"
#include "values.h"
#include "warnings.h"

namespace tape_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

double value(const Gradient& g) { return g.dense().item(); }
bool is_none(const Gradient& g) { return !g.defined(); }

}   // namespace

TEST_CASE("a tape records ops that depend on watched tensors", "[tape]") {
  const Tensor x = tensor(3.0), other = tensor(2.0);
  const Tensor before = x * x;
  GradientTape tape;
  CHECK(tape.recording());
  tape.watch(x);
  const Tensor y = x * other, unrelated = other * other;
  CHECK(tape.size() == 1);
  REQUIRE(tape.recorded().size() == 1);
  CHECK(tape.recorded()[0].name == "mul");
  CHECK(tape.recorded()[0].inputs == 2);
  CHECK(tape.recorded()[0].outputs == 1);
  const std::vector<Gradient> g = tape.gradient({y, unrelated, before}, {x, other});
  CHECK(value(g[0]) == 2);
  CHECK(is_none(g[1]));
}

TEST_CASE("watching the result of an op keeps its history", "[tape]") {
  const Tensor x = tensor(3.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  tape.watch(y);
  const Tensor z = 2 * y;
  const auto [dx, dy] = tape.gradient(z, x, y);
  CHECK(value(dx) == 12);
  CHECK(value(dy) == 2);
}

TEST_CASE("a tape is used once unless it is persistent", "[tape]") {
  const Tensor x = tensor(3.0);
  GradientTape once, often({.persistent = true});
  once.watch(x), often.watch(x);
  const Tensor y = x * x, z = y * y;
  CHECK(value(once.gradient(z, x)) == 108);
  CHECK_FALSE(once.recording());
  CHECK(once.size() == 0);
  CHECK_THROWS_AS(once.gradient(y, x), GradientError);
  CHECK(value(often.gradient(z, x)) == 108);
  CHECK(often.recording());
  CHECK(value(often.gradient(z, x)) == 108);
  CHECK(value(often.gradient(y, x)) == 6);
}

TEST_CASE("several sources come back in their order, as an array or a vector", "[tape]") {
  const Tensor x = tensor(2.0), y = tensor(3.0), z = tensor(5.0);
  GradientTape tape({.persistent = true});
  for (const Tensor& t : {x, y, z})
    tape.watch(t);
  const Tensor product = x * y * z;
  const auto [dz, dx, dy] = tape.gradient(product, z, x, y);
  CHECK(value(dx) == 15);
  CHECK(value(dy) == 10);
  CHECK(value(dz) == 6);
  const std::vector<Tensor> sources = {y, x};
  const std::vector<Gradient> g = tape.gradient(product, sources);
  CHECK(value(g[0]) == 10);
  CHECK(value(g[1]) == 15);
}

TEST_CASE("a target that is not a scalar counts as its sum", "[tape]") {
  const Tensor x = tensor({1.0, 2.0, 3.0});
  GradientTape tape;
  tape.watch(x);
  CHECK(tape.gradient(x * x, x).dense().to_vector() == std::vector<double>{2, 4, 6});
}

TEST_CASE("unconnected sources get none or zeros of their shape", "[tape]") {
  const Tensor x = tensor(1.0), apart = ones({2, 3}, DType::f64);
  const Variable variable(ones({4}));
  GradientTape tape({.persistent = true});
  tape.watch(x), tape.watch(apart);
  const Tensor y = 2 * x;
  CHECK(is_none(tape.gradient(y, apart)));
  CHECK(is_none(tape.gradient(apart, x)));
  CHECK_THROWS_AS(tape.gradient(y, apart).dense(), GradientError);
  const std::vector<Gradient> g =
      tape.gradient(y, {x, apart, variable}, {.unconnected = UnconnectedGradients::zero});
  CHECK(value(g[0]) == 2);
  CHECK(g[1].dense().spec() == apart.spec());
  CHECK(g[2].dense().spec() == Spec{DType::f32, {4}});
  CHECK(sum(g[1].dense()).item() == 0);
}

TEST_CASE("copies of a handle are one tensor, which a tape warns of", "[tape]") {
  const Tensor x = tensor(3.0), copy = x, other = identity(x);
  const Warnings warnings;
  GradientTape tape;
  tape.watch(x), tape.watch(other);
  CHECK(warnings.texts.empty());
  tape.watch(copy);
  CHECK(warnings.texts ==
        std::vector<std::string>{
            "watch: this f32[] is watched already. Copies of a handle are one tensor, which has one "
            "gradient; for a separate tensor with the same value, use identity"});
  const auto [dx, dcopy, dother] = tape.gradient(x * x - copy * other, x, copy, other);
  CHECK(value(dx) == 6 - 3);
  CHECK(value(dcopy) == 6 - 3);
  CHECK(value(dother) == -3);

  GradientTape next({.persistent = true});   // of another tape, or after a reset, and of what an op made
  next.watch(x);
  next.reset();
  next.watch(x);
  const Tensor y = x * 2;
  next.watch(y), next.watch(y);
  CHECK(warnings.texts.size() == 1);
}

TEST_CASE("integers and bools have no gradient, and watching them warns", "[tape]") {
  Warnings warnings;
  const Tensor x = tensor(2.5), n = tensor(3, DType::i8);   // no other test causes a warning about i8
  for (int i = 0; i < 8; ++i) {
    GradientTape tape({.persistent = true});
    tape.watch(n);
    tape.watch(x);
    const Tensor y = x * n;
    CHECK(is_none(tape.gradient(y, n)));
    CHECK(is_none(tape.gradient(astype(x, DType::i8), x)));
    CHECK(is_none(tape.gradient(x > 1.0, x)));
    CHECK(value(tape.gradient(y, x)) == 3);
  }
  std::erase_if(warnings.texts, [](const std::string& text) { return text.find("i8") == std::string::npos; });
  CHECK_FALSE(warnings.texts.empty());
  CHECK(warnings.texts.size() % 5 ==
        0);   // each text is printed at most five times, and these occurred more often
  for (const std::string& text : warnings.texts)
    CHECK(std::count(warnings.texts.begin(), warnings.texts.end(), text) == 5);
}

TEST_CASE("output gradients weigh the targets", "[tape]") {
  const Tensor x = tensor({1.0, 2.0});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x, z = 3 * x;
  const Tensor dy = tensor({10.0, 100.0});
  CHECK(tape.gradient(y, x, {.output_gradients = {dy}}).dense().to_vector() == std::vector<double>{20, 400});
  CHECK(tape.gradient({y, z}, x, {.output_gradients = {dy, Tensor()}}).dense().to_vector() ==
        std::vector<double>{23, 403});
}

TEST_CASE("output gradients that do not fit are rejected, and the tape stays usable", "[tape]") {
  const Tensor x = tensor({1.0, 2.0});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  CHECK_THROWS_AS(tape.gradient(y, x, {.output_gradients = {ones({2}), ones({2})}}), ArgumentError);
  CHECK_THROWS_AS(tape.gradient({y, y}, x, {.output_gradients = {ones({2})}}), ArgumentError);
  CHECK_THROWS_AS(tape.gradient(y, x, {.output_gradients = {ones({3})}}), ShapeError);
  CHECK_THROWS_AS(tape.gradient(y, x, {.output_gradients = {ones({1, 2})}}), ShapeError);
  CHECK_THROWS_AS(tape.gradient(y, x, {.output_gradients = {ones({2}, DType::f64)}}), DTypeError);
  CHECK(tape.recording());
  CHECK(tape.gradient(y, x, {.output_gradients = {ones({2})}}).dense().to_vector() ==
        std::vector<double>{2, 4});
}

TEST_CASE("stop and start continue one recording", "[tape]") {
  const Tensor x = tensor(2.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  tape.stop();
  CHECK_FALSE(tape.recording());
  const Tensor lost = y * y;
  tape.start();
  CHECK(tape.recording());
  const Tensor z = y * x;
  CHECK(tape.size() == 2);
  CHECK(value(tape.gradient({z, lost}, x)) == 12);
}

TEST_CASE("stop, start and reset are errors at the wrong time", "[tape]") {
  GradientTape tape;
  CHECK_THROWS_AS(tape.start(), GradientError);
  tape.stop();
  CHECK_THROWS_AS(tape.stop(), GradientError);
  CHECK_THROWS_AS(tape.reset(), GradientError);
  tape.start();
  CHECK_NOTHROW(tape.reset());
}

TEST_CASE("reset forgets everything and continues to record", "[tape]") {
  const Tensor x = tensor(2.0);
  const Variable v(tensor(3.0));
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * v;
  CHECK(tape.size() == 2);   // the product, and reading v
  CHECK(tape.watched_variables().size() == 1);
  tape.reset();
  CHECK(tape.size() == 0);
  CHECK(tape.watched_variables().empty());
  CHECK(tape.recording());
  tape.watch(x);
  const auto [dx, dy] = tape.gradient(x * x, x, y);
  CHECK(value(dx) == 4);
  CHECK(is_none(dy));
}

TEST_CASE("StopRecording stops everything on the thread, or one tape", "[tape]") {
  const Tensor x = tensor(3.0);
  GradientTape a({.persistent = true}), b({.persistent = true});
  a.watch(x), b.watch(x);
  Tensor none_of_them, only_b;
  {
    const StopRecording pause;
    none_of_them = x * x;
    {
      const StopRecording again;
      none_of_them = none_of_them + x;
    }
    none_of_them = none_of_them * x;
    const Tensor y = tensor(1.0);
    a.watch(y);   // ignored
    only_b = y;
  }
  CHECK(a.size() == 0);
  CHECK(is_none(a.gradient(only_b * 2, only_b)));
  {
    const StopRecording pause(a);
    only_b = x * x;
  }
  const Tensor both = x * x;
  CHECK(is_none(a.gradient(none_of_them, x)));
  CHECK(is_none(a.gradient(only_b, x)));
  CHECK(value(b.gradient(only_b, x)) == 6);
  CHECK(value(a.gradient(both, x)) == 6);
}

TEST_CASE("StopRecording ends when an exception passes", "[tape]") {
  const Tensor x = tensor(3.0);
  GradientTape tape;
  tape.watch(x);
  try {
    const StopRecording pause;
    const StopRecording that(tape);
    throw std::runtime_error("passes");
  } catch (const std::runtime_error&) {}
  CHECK(value(tape.gradient(x * x, x)) == 6);
}

TEST_CASE("tapes nest two and three deep", "[tape]") {
  const Tensor x = tensor(2.0);
  GradientTape outer;
  outer.watch(x);
  Tensor second;
  {
    GradientTape middle;
    middle.watch(x);
    Tensor first;
    {
      GradientTape inner;
      inner.watch(x);
      first = inner.gradient(x * x * x * x, x).dense();
    }
    CHECK(first.item() == 32);
    second = middle.gradient(first, x).dense();
  }
  CHECK(second.item() == 48);
  CHECK(value(outer.gradient(second, x)) == 48);
}

TEST_CASE("tapes end in any order", "[tape]") {
  const Tensor x = tensor(3.0);
  auto a = std::make_unique<GradientTape>(), b = std::make_unique<GradientTape>(),
       c = std::make_unique<GradientTape>();
  for (const auto* t : {&a, &b, &c})
    (*t)->watch(x);
  Tensor y = x * x;
  a.reset();
  y = y * x;
  CHECK(value(c->gradient(y, x)) == 27);
  c.reset();
  y = y * x;
  CHECK(value(b->gradient(y, x)) == 108);
}

TEST_CASE("a tape that ends releases the tensors that it tracked", "[tape]") {
  const Tensor x = tensor(3.0);
  Tensor y;
  {
    GradientTape tape;
    tape.watch(x);
    y = x * x;
  }
  GradientTape tape;
  tape.watch(x);
  CHECK(is_none(tape.gradient(y * 2, x)));
}

TEST_CASE("watching is local to a tape", "[tape]") {
  const Tensor x = tensor(3.0);
  GradientTape watches, does_not;
  watches.watch(x);
  const Tensor y = x * x;
  CHECK(does_not.size() == 0);
  CHECK(is_none(does_not.gradient(y, x)));
  CHECK(value(watches.gradient(y, x)) == 6);
}

TEST_CASE("a persistent tape records its own gradients while it records", "[tape]") {
  const Tensor x = tensor(2.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x * x;
  const Tensor first = tape.gradient(y, x).dense();
  tape.stop();
  const Tensor second = tape.gradient(first, x).dense();
  CHECK(second.item() == 12);
  CHECK(is_none(tape.gradient(second, x)));
}

TEST_CASE("a tape cannot see the result of stop_gradient", "[tape]") {
  const Tensor x = tensor(3.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * stop_gradient(x * x);
  CHECK(value(tape.gradient(y, x)) == 9);
}

TEST_CASE("a tape keeps tensors that its rules need after the user drops them", "[tape]") {
  Tensor x = tensor(3.0), y;
  GradientTape tape;
  const Tensor source = x;
  tape.watch(x);
  {
    const Tensor squared = x * x, cubed = squared * x;
    y = cubed * squared;
  }
  x = {};
  CHECK(value(tape.gradient(y, source)) == 5 * 81);
}

TEST_CASE("undefined tensors are refused", "[tape]") {
  GradientTape tape;
  const Tensor x = tensor(1.0);
  tape.watch(x);
  CHECK_THROWS_AS(tape.watch(Tensor()), ArgumentError);
  CHECK_THROWS_AS(tape.gradient(Tensor(), x), ArgumentError);
  CHECK_THROWS_AS(tape.gradient(x, Tensor()), ArgumentError);
  CHECK(tape.recording());
  CHECK(value(tape.gradient(x * x, x)) == 2);
}

TEST_CASE("an output without owners is differentiated through the copy that its rule reads", "[tape]") {
  const Tensor x = random::normal({3, 5}, {.seed = 1}, DType::f64),
               v = random::normal({3, 5}, {.seed = 2}, DType::f64);
  const Tensor p = softmax(x);
  const Tensor expected = p * (v - sum(p * v, -1, {.keepdims = true}));   // of logsumexp's gradient, along v
  const auto close = [](const Tensor& a, const Tensor& b) { return max(abs(a - b)).item() < 1e-14; };

  GradientTape outer({.persistent = true});
  outer.watch(x);
  SECTION("by another tape") {
    GradientTape inner;
    inner.watch(x);
    const Tensor g = inner.gradient(logsumexp(x, -1), x).dense();
    CHECK(close(g, p));
    CHECK(close(outer.gradient(sum(g * v), x).dense(), expected));
  }
  SECTION("by the tape itself") {
    const Tensor y = logsumexp(x, -1), g = outer.gradient(y, x).dense();
    CHECK(close(outer.gradient(sum(g * v), x).dense(), expected));
  }
  SECTION("and is freed with the others") {
    const std::int64_t live = live_bytes();
    for (int i = 0; i < 100; ++i)
      logsumexp(x, -1);
    CHECK(live_bytes() == live);
  }
}

// The outer tape has released y, since no entry on it uses y. It must not mistake the inner tape's copy of y
// for a later tensor in the same slot.
TEST_CASE("a tensor that a paused tape has forgotten is a constant", "[tape]") {
  const Tensor x = tensor(0.5, DType::f64);
  GradientTape outer({.persistent = true});
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  Tensor z;
  {
    const Tensor y = tanh(x);
    const StopRecording pause(outer);
    z = y * 3.0;
  }
  const Tensor later = exp(x);   // may get the slot on the outer tape that y had
  const double t = std::tanh(0.5);
  const Tensor g = inner.gradient(z, x).dense();
  CHECK(g.item() == Approx(3 * (1 - t * t)));
  CHECK_FALSE(outer.gradient(g, later).defined());
  CHECK_FALSE(outer.gradient(g, x).defined());
}

TEST_CASE("targets and sources may both be lists in braces", "[tape]") {
  const Tensor x = tensor(3.0);
  const Variable v(tensor(2.0));
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x * v;
  tape.stop();
  CHECK(value(tape.gradient({y}, {x})[0]) == 12);
  CHECK(value(tape.gradient(y, {x})[0]) == 12);
  CHECK(value(tape.gradient({y, y}, {x, v}, {.unconnected = UnconnectedGradients::zero})[1]) == 18);
}

TEST_CASE("an integer source without a path gets zeros of its dtype where zeros are asked for", "[tape]") {
  set_warning_handler([](std::string_view) {});
  const Tensor x = tensor(1.0), n = tensor({1, 2});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  tape.stop();
  const Tensor zero = tape.gradient(y, {n}, {.unconnected = UnconnectedGradients::zero})[0].dense();
  CHECK(zero.spec() == n.spec());
  CHECK(zero.to_vector() == std::vector<double>{0, 0});
  const Tensor rows = tape.jacobian(y, n, {.unconnected = UnconnectedGradients::zero});
  CHECK(rows.spec() == Spec{DType::i32, {2}});
  CHECK_FALSE(tape.gradient(y, n).defined());
  const ForwardAccumulator forward(x, tensor(1.0));
  CHECK(forward.jvp(n, UnconnectedGradients::zero).spec() == n.spec());
  CHECK_FALSE(forward.jvp(n).defined());
  set_warning_handler({});
}

TEST_CASE("a gradient that is none gives the reason that the tape knows", "[tape][errors]") {
  const Tensor x = tensor(2.0), before = x * x;
  const auto why = [](const Gradient& g) { return message_of<GradientError>([&] { (void)g.dense(); }); };
  const auto watched = [&] {
    auto tape = std::make_unique<GradientTape>();
    tape->watch(x);
    return tape;
  };
  const std::string untracked_target =
      "the gradient of the f32[] is none: the tape does not track the target, which was computed while it "
      "did not record, from numbers, or by an op without a derivative; ask defined() first, or pass "
      ".unconnected = UnconnectedGradients::zero for zeros; explain() tells where the path ends";
  GradientTape unwatched;
  CHECK(why(unwatched.gradient(x * x, x)) ==
        "the gradient of the f32[] is none: the source was not watched before its use, nor computed from a "
        "watched tensor while the tape recorded; watch it before it is used; ask defined() first, or pass "
        ".unconnected = UnconnectedGradients::zero for zeros; explain() tells where the path ends");
  const Variable fixed(tensor(2.0), {.name = "w", .trainable = false});
  CHECK(why(GradientTape().gradient(x * fixed, fixed))
            .starts_with("the gradient of variable \"w\" f32[] is none: the source is a variable that is not "
                         "trainable; watch it before it is read, or make it trainable"));
  CHECK(why(watched()->gradient(before, x)) == untracked_target);
  {
    const auto tape = watched();
    CHECK(why(tape->gradient(tensor(x.item()) * 3, x)) == untracked_target);
  }
  {
    const auto tape = watched();
    const Tensor late = tensor(1.0), y = late * x;
    tape->watch(late);
    CHECK(why(tape->gradient(y, late))
              .starts_with("the gradient of the f32[] is none: no path leads from the target to the source: "
                           "the target does not depend on it, or it was watched after its use"));
  }
  {
    const auto tape = watched();
    Tensor renewed = x;
    const Tensor y = renewed * renewed;
    renewed += 1;   // y has been made of another tensor
    CHECK_THAT(why(tape->gradient(y, renewed)), Catch::Contains("was assigned another value by x += y"));
  }
  CHECK(
      why(Gradient()).starts_with("this gradient is none: no path leads from the target to the source; ask"));
}

TEST_CASE("a gradient of an untracked source gives the reason", "[tape][errors]") {
  struct Case {
    std::string_view what;
    std::function<std::pair<Gradient, std::string>()> none;   // and what explain() says
    std::string_view reason;
  };
  const Variable w(ones({2}), {.name = "w"}), n(tensor({1, 2}), {.name = "n"});
  const Variable fixed(ones({2}), {.name = "fixed", .trainable = false});
  const Tensor x = ones({2}), count = tensor({1, 2});
  const auto ask = [](GradientTape& tape, const Tensor& y, const Source& s) {
    std::string explained = explain(tape, y, s);
    return std::pair(tape.gradient(y, s), explained);
  };
  const std::string_view unread = " is a variable that was not read while the tape recorded on its thread: ";
  const Case cases[] = {
      {"never read",
       [&] {
         GradientTape tape;
         tape.watch(x);
         return ask(tape, x * 2, w);
       },
       unread},
      {"read before",
       [&] {
         const Tensor early = w.value();
         GradientTape tape;
         tape.watch(x);
         return ask(tape, early * x, w);
       },
       unread},
      {"read while stopped",
       [&] {
         GradientTape tape;
         tape.stop();
         const Tensor y = w * 2;
         return ask(tape, y, w);
       },
       unread},
      {"read on another thread",
       [&] {
         GradientTape tape;
         Tensor y;
         std::thread([&] { y = w * 2; }).join();
         return ask(tape, y, w);
       },
       unread},
      {"variables are not watched",
       [&] {
         GradientTape tape({.watch_accessed_variables = false});
         return ask(tape, w * 2, w);
       },
       " is a variable, and the options of this tape say not to watch variables automatically"},
      {"not trainable",
       [&] {
         GradientTape tape;
         return ask(tape, fixed * 2, fixed);
       },
       " is a variable that is not trainable; "},
      {"not watched",
       [&] {
         GradientTape tape;
         return ask(tape, x * 2, x);
       },
       " was not watched before its use"},
      {"integers",
       [&] {
         GradientTape tape;
         tape.watch(x);
         return ask(tape, x * 2, count);
       },
       "no derivative"},
      {"a variable of integers",
       [&] {
         GradientTape tape;
         tape.watch(x);
         return ask(tape, x * astype(n.value(), DType::f32), n);
       },
       "no derivative"},
  };
  set_warning_handler([](std::string_view) {});   // of integers
  for (const Case& of : cases) {
    INFO(of.what);
    const auto [gradient, explained] = of.none();
    REQUIRE_FALSE(gradient.defined());
    CHECK_THAT(message_of<GradientError>([&, &g = gradient] { (void)g.dense(); }),
               Catch::Contains("is none: the source") && Catch::Contains(std::string(of.reason)));
    CHECK_THAT(explained, Catch::StartsWith("none: the source") && Catch::Contains(std::string(of.reason)));
  }
  set_warning_handler({});
}

TEST_CASE("a history reports whether a variable was read", "[tape][debug]") {
  const Variable w(ones({2}), {.name = "w"});
  const History history;
  GradientTape tape;
  CHECK_THAT(explain(tape, ones({2}) * 2, w, history),
             Catch::Contains("\"w\" was not read on this thread while the history lived"));
  tape.stop();
  const Tensor y = w * 2;
  CHECK_THAT(explain(tape, y, w, history),
             Catch::Contains("\"w\" was read only while the tape did not record"));
}

TEST_CASE("a tape is differentiated on its own thread", "[tape][errors]") {
  const Tensor x = tensor(2.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  std::string gradient, jacobian;
  std::thread([&] {
    gradient = message_of<GradientError>([&] { tape.gradient(y, x); });
    jacobian = message_of<GradientError>([&] { tape.jacobian(y, x); });
  }).join();
  CHECK(gradient == "gradient: this tape belongs to another thread; make one on this thread");
  CHECK(jacobian == gradient);
  CHECK(value(tape.gradient(y, x)) == 4);
}

// In a process of its own, since a text is told five times at most.
TEST_CASE("a persistent tape that still records warns that it records its gradient, once a thread",
          "[.warnings]") {
  const Warnings warnings;
  std::thread([] {
    const Tensor x = tensor(2.0);
    for (int i = 0; i < 2; ++i) {
      GradientTape tape({.persistent = true});
      tape.watch(x);
      const Tensor y = x * x;
      tape.stop();
      (void)tape.gradient(y, x);
      tape.start();
      (void)tape.gradient(y, x);
    }
  }).join();
  CHECK(warnings.texts == std::vector<std::string>{
                              "gradient: this persistent tape is still recording, so it records the gradient "
                              "too; call stop() before, or use a Recording for higher derivatives"});
}

TEST_CASE("pauses of one tape and of all, with tapes that begin inside them", "[tape]") {
  const Tensor x = tensor(3.0);
  {
    const StopRecording pause;   // of what records now: a tape that begins later records
    GradientTape tape;
    tape.watch(x);
    CHECK(value(tape.gradient(x * x, x)) == 6);
    const ForwardAccumulator forward(x, tensor(1.0));
    CHECK(forward.jvp(x * x).item() == 6);
  }
  GradientTape tape;
  {
    const StopRecording pause(tape);
    tape.watch(x);   // watches all the same
    CHECK(tape.size() == 0);
  }
  CHECK(value(tape.gradient(x * x, x)) == 6);
}

TEST_CASE("slices without a dense_shape use the shape of their target", "[tape]") {
  const Tensor x = matrix({{1, 2}, {3, 4}, {5, 6}});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * 2;
  const IndexedSlices slices{matrix({{10, 20}}), tensor({1}), {}};
  CHECK(tape.gradient(y, {x}, {.output_gradients = {slices}})[0].dense().to_vector() ==
        std::vector<double>{0, 0, 20, 40, 0, 0});
}

}   // namespace tape_test
