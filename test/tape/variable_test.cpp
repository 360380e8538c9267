// Variables: reads, updates, and tapes that watch them.
#include <catch2/catch.hpp>

#include "core/bytes.h"
#include "message_of.h"
#include "tape/variable.h"
#include "tapedeck/tapedeck.h"
#include "values.h"

namespace variable_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

Values values(const Tensor& v) { return v.to_vector(); }
const Shape kLarge = {64, 64};

}   // namespace

TEST_CASE("messages distinguish variables without a name", "[variable][errors]") {
  const Variable first(zeros({4, 8})), second(zeros({4, 8})), named(zeros({4, 8}), {.name = "w"});
  const std::string number = std::to_string(second.id());
  CHECK(first.id() != second.id());
  CHECK(message_of<ShapeError>([&] { second.assign(zeros({4})); }) ==
        "assign: variable #" + number + " is f32[4,8], the value is f32[4]");
  CHECK(message_of<ArgumentError>([&] { second.assign(Tensor()); }) ==
        "assign: the value for variable #" + number + " f32[4,8] is undefined");
  CHECK(message_of<ArgumentError>([&] { named.assign(Tensor()); }) ==
        "assign: the value for variable \"w\" is undefined");
}

TEST_CASE("a variable has a name, a dtype and a shape, and copies share it", "[variable]") {
  const Variable v(tensor({1.0, 2.0}), {.name = "weights"}), unnamed(tensor(1)), copy = v;
  CHECK(v.name() == "weights");
  CHECK(v.trainable());
  CHECK(v.dtype() == DType::f32);
  CHECK(v.shape() == Shape{2});
  CHECK(unnamed.name() == "variable");
  CHECK_FALSE(unnamed.trainable());   // an integer has no derivative
  CHECK(copy == v);
  CHECK_FALSE(unnamed == v);
  CHECK(v.id() < unnamed.id());
  copy.assign(tensor({3.0, 4.0}));
  CHECK(values(v) == Values{3, 4});
}

TEST_CASE("assign, add and subtract", "[variable]") {
  const Variable v(tensor({1.0, 2.0}));
  v.assign_add(tensor({10.0, 20.0}));
  CHECK(values(v) == Values{11, 22});
  v.assign_sub(tensor({1.0, 2.0}));
  CHECK(values(v) == Values{10, 20});
  v.assign(tensor({7.0, 8.0}));
  CHECK(values(v) == Values{7, 8});
  v.assign_add(v);
  CHECK(values(v) == Values{14, 16});
}

TEST_CASE("a value of another shape or dtype is refused, and nothing changes", "[variable]") {
  const Variable v(tensor({1.0, 2.0}));
  CHECK_THROWS_AS(v.assign(tensor(1.0)), ShapeError);
  CHECK_THROWS_AS(v.assign_add(ones({2, 1})), ShapeError);
  CHECK_THROWS_AS(v.assign_sub(ones({2}, DType::f64)), DTypeError);
  CHECK_THROWS_AS(v.assign(Tensor()), ArgumentError);
  CHECK_THROWS_AS(Variable(Tensor()), ArgumentError);
  CHECK(values(v) == Values{1, 2});
}

TEST_CASE("tensors that were read or assigned do not change with the variable", "[variable]") {
  for (const Shape& shape : {Shape{2}, kLarge}) {
    const Tensor initial = ones(shape);
    const Variable v(initial);
    const Tensor before = v.value();
    v.assign_add(ones(shape));
    const Tensor assigned = full(shape, 5), flat = reshape(v, {-1});
    v.assign(assigned);
    v.assign_sub(ones(shape));
    v.assign_add(full(shape, 10));
    CHECK(initial.to_vector()[0] == 1);
    CHECK(before.to_vector()[0] == 1);
    CHECK(flat.to_vector()[0] == 2);
    CHECK(assigned.to_vector()[0] == 5);
    CHECK(values(v)[0] == 14);
  }
}

TEST_CASE("an update is in place if the memory has no other owner", "[variable]") {
  const Variable v(ones(kLarge));
  const Tensor one = ones(kLarge);
  const std::byte* memory = v.cell().value.raw();
  for (int i = 0; i < 3; ++i)
    v.assign_add(one);
  CHECK(v.cell().value.raw() == memory);
  const Tensor held = v.value();
  v.assign_add(one);
  CHECK(v.cell().value.raw() != memory);
}

TEST_CASE("tapes watch trainable variables when they are read", "[variable][tape]") {
  const Variable v(tensor(3.0), {.name = "v"}), fixed(tensor(2.0), {.trainable = false});
  GradientTape tape({.persistent = true});
  const Tensor y = v * v * fixed;
  const auto [dv, df] = tape.gradient(y, v, fixed);
  CHECK(dv.dense().item() == 12);
  CHECK_FALSE(df.defined());
  REQUIRE(tape.watched_variables().size() == 1);
  CHECK(tape.watched_variables()[0] == v);
}

TEST_CASE("watching by access can be turned off, and a variable can be watched by hand", "[variable][tape]") {
  const Variable v(tensor(3.0)), w(tensor(2.0)), fixed(tensor(5.0), {.trainable = false});
  GradientTape tape({.watch_accessed_variables = false});
  tape.watch(w), tape.watch(fixed);
  const auto [dv, dw, df] = tape.gradient(v * w * fixed, v, w, fixed);
  CHECK_FALSE(dv.defined());
  CHECK(dw.dense().item() == 15);
  CHECK(df.dense().item() == 6);
}

TEST_CASE("a variable as a source stands for all its reads, before and after an update", "[variable][tape]") {
  const Variable v(tensor(3.0));
  GradientTape tape;
  const Tensor first = v * 2;
  v.assign(tensor(10.0));
  const Tensor second = v * v;
  CHECK(tape.gradient({first, second}, v).dense().item() == 2 + 20);
}

TEST_CASE("an update between forward and backward does not touch what was saved", "[variable][tape]") {
  for (const Shape& shape : {Shape{2}, kLarge}) {
    const Variable v(full(shape, 3));
    GradientTape tape;
    const Tensor y = v * v;
    v.assign_add(full(shape, 100));
    v.assign(full(shape, 7));
    v.assign_sub(full(shape, 1));
    CHECK(tape.gradient(y, v).dense().to_vector()[0] == 6);
    CHECK(values(v)[0] == 6);
  }
}

TEST_CASE("a variable as a target counts as itself", "[variable][tape]") {
  const Variable v(tensor({1.0, 2.0}));
  GradientTape tape;
  tape.watch(v);
  CHECK(tape.gradient(v, v).dense().to_vector() == Values{1, 1});
}

TEST_CASE("updates are not differentiated", "[variable][tape]") {
  const Tensor x = tensor(2.0);
  const Variable v(tensor(1.0));
  GradientTape tape;
  tape.watch(x);
  v.assign(x * x);
  CHECK_FALSE(tape.gradient(v * 3, x).defined());
}

TEST_CASE("reads before the tape began are not followed", "[variable][tape]") {
  for (const Shape& shape : {Shape{}, kLarge}) {
    const Variable v(full(shape, 2));
    const Tensor before = v;
    GradientTape tape;
    const auto [dv, db] = tape.gradient(v / before, v, before);
    CHECK(values(dv.dense())[0] == 0.5);
    CHECK_FALSE(db.defined());
    CHECK(values(grad([&](const Tensor& t) { return sum(t / before); }, v).dense())[0] == 0.5);
    const auto pairs = Optimizer::compute_gradients([&] { return sum(v / before); });
    CHECK(values(pairs[0].gradient.dense())[0] == 0.5);
    const ForwardAccumulator forward(v, ones(shape));
    CHECK(values(forward.jvp(v / before))[0] == 0.5);
  }
}

TEST_CASE("a read while nothing records is not followed", "[variable][tape]") {
  const Variable v(tensor(2.0));
  GradientTape tape;
  const Tensor first = v * 1;
  Tensor paused, on_others;
  {
    const StopRecording pause;
    paused = v;
  }
  {
    const StopRecording pause(tape);
    on_others = v;
  }
  CHECK(tape.gradient(v * paused * on_others + first, v).dense().item() == 2 * 2 + 1);
}

TEST_CASE("each read of a variable is a separate tensor", "[variable][tape]") {
  const Variable v(tensor(3.0));
  {
    GradientTape tape({.persistent = true});
    const Tensor a = v, b = v, y = a * a + b * b * b;
    CHECK(a.id() != b.id());
    CHECK(tape.gradient(y, a).dense().item() == 6);
    CHECK(tape.gradient(y, b).dense().item() == 27);
    CHECK(tape.gradient(y, v).dense().item() == 33);
  }
  const Recording recording;
  const Tensor a = v, b = v;
  CHECK(gradients(a * a + b * b * b, v, {.stop_gradients = a})[0].dense().item() == 27);
  // Watching the value from one read does not watch later reads of the variable.
  const Variable fixed(tensor(5.0), {.trainable = false});
  const Tensor watched = fixed;
  GradientTape tape;
  tape.watch(watched);
  CHECK(tape.gradient(watched * fixed, watched).dense().item() == 5);
}

TEST_CASE("a read as an operand lives as long as the op runs", "[variable]") {
  for (const Shape& shape : {Shape{2}, kLarge}) {
    const Variable v(full(shape, 3));
    const auto updated = [&] {
      v.assign(full(shape, 7));
      return full(shape, 1);
    };
    const Tensor y = add(v, updated());   // the arguments are evaluated in unspecified order
    CHECK((values(y)[0] == 4 || values(y)[0] == 8));
    CHECK(values(v * v - v)[0] == 42);
    CHECK(values(v)[0] == 7);
  }
}

TEST_CASE("a variable that is read directly and in a recomputation gets both gradients", "[variable][tape]") {
  const Variable v(tensor(3.0));
  const Tensor before = v, x = tensor(2.0);
  GradientTape tape;
  tape.watch(x);
  const auto f = recompute_grad([&](const Tensor& t) { return t * v * v / before; });
  const auto [dv, dx] = tape.gradient(f(x) * v, v, x);   // x v³ / before
  CHECK(dv.dense().item() == 2 * 3 * 9 / 3);
  CHECK(dx.dense().item() == 9);
  const ForwardAccumulator forward(v, tensor(1.0));
  CHECK(forward.jvp(f(x) * v).item() == 18);
}

TEST_CASE("nested tapes follow a variable independently, to second order", "[variable][tape]") {
  const Variable v(tensor(3.0));
  GradientTape outer;
  Tensor first;
  {
    GradientTape inner;
    first = inner.gradient(v * v * v, v).dense();
  }
  CHECK(first.item() == 27);
  CHECK(outer.gradient(first, v).dense().item() == 18);
}

TEST_CASE("a variable outlives its tape, and a tape its variable", "[variable][tape]") {
  auto v = std::make_unique<Variable>(tensor(3.0), VariableOptions{.name = "v"});
  GradientTape tape;
  const Tensor y = *v * *v;
  const Variable source = *v;
  v.reset();
  CHECK(tape.watched_variables()[0].name() == "v");
  CHECK(tape.gradient(y, source).dense().item() == 6);
}

TEST_CASE("watched variables come in order of creation, each once", "[variable][tape]") {
  const Variable a(tensor(1.0), {.name = "a"}), b(tensor(2.0), {.name = "b"});
  const VariableWatcher watcher;
  GradientTape tape;
  const Tensor y = b * a * b;
  for (const std::vector<Variable>& watched : {tape.watched_variables(), watcher.watched_variables()}) {
    REQUIRE(watched.size() == 2);
    CHECK(watched[0] == a);
    CHECK(watched[1] == b);
  }
}

TEST_CASE("nothing is watched while recording is stopped", "[variable][tape]") {
  const Variable v(tensor(2.0));
  GradientTape tape;
  {
    const StopRecording pause;
    CHECK(v.value().item() == 2);
  }
  CHECK(tape.watched_variables().empty());
  {
    const StopRecording pause(tape);
    CHECK(v.value().item() == 2);
  }
  CHECK(tape.watched_variables().empty());
  CHECK(tape.gradient(v * v, v).dense().item() == 4);
}

TEST_CASE("a watcher notes the variables that an optimizer updates", "[variable]") {
  const Variable v(tensor(1.0), {.name = "v"});
  GradientDescent descent({.learning_rate = 0.5});
  const VariableWatcher watcher;
  descent.apply_gradients({{Gradient(tensor(1.0)), v}});
  REQUIRE(watcher.watched_variables().size() == 1);
  CHECK(watcher.watched_variables()[0] == v);
}

}   // namespace variable_test
