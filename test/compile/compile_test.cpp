// Compiled functions apart from their arithmetic: signatures, variables, optimizers, keys, errors.
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "closeness.h"
#include "core/bytes.h"
#include "tapedeck/compile.h"
#include "tapedeck/gradients.h"
#include "tapedeck/map.h"
#include "tapedeck/moving_average.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"

namespace compile_test {

using namespace tapedeck;

TEST_CASE("a function is recorded once for each signature", "[recorded]") {
  int runs = 0;
  const auto f = compile([&](const Tensor& x, const Tensor& y) {
    ++runs;
    return tanh(x * y) + 1;
  });
  const Tensor a = tensor({1.0, 2.0}), b = tensor({3.0, 4.0});
  const Tensor first = f(a, b), second = f(b, a);
  CHECK(runs == 1);
  CHECK(same_bits(first, second));
  CHECK(same_bits(f(b, b + 1), tanh(b * (b + 1)) + 1));
  CHECK(runs == 1);
  f(a, tensor(2.0));
  CHECK(runs == 2);
  f(a, a);   // one tensor twice
  CHECK(runs == 3);
  f(b, b);
  CHECK(runs == 3);
  const auto programs = f.programs();
  REQUIRE(programs.size() == 3);
  CHECK(programs[0].signature == "f32[2], f32[2]");
  CHECK(programs[0].calls == 2);
}

TEST_CASE("a training step is replayed with the bits of eager steps", "[recorded]") {
  const auto train = [](bool recorded) {
    const Variable w(astype(reshape(arange(12), {4, 3}), DType::f32) * 0.1), b(zeros({3}));
    Adam adam({.learning_rate = 0.05});
    const auto step = [&](const Tensor& x, const Tensor& y) {
      GradientTape tape;
      const Tensor loss = mean(square(tanh(matmul(x, w) + b) - y));
      const auto g = tape.gradient(loss, w, b);
      adam.apply_gradients({{g[0], w}, {g[1], b}});
      return loss;
    };
    const auto replayed = compile(step);
    std::vector<Tensor> all;
    for (int i = 0; i < 50; ++i) {
      const Tensor x = random::normal({8, 4}, {.seed = 3, .stream = static_cast<std::uint64_t>(i)}),
                   y = random::uniform({8, 3}, {.seed = 4, .stream = static_cast<std::uint64_t>(i)});
      all.push_back(recorded ? replayed(x, y) : step(x, y));
    }
    all.push_back(w.value());
    all.push_back(b.value());
    if (recorded) CHECK(replayed.programs().at(0).calls == 49);
    return all;
  };
  const auto eager = train(false), replayed = train(true);
  for (std::size_t i = 0; i < eager.size(); ++i)
    CHECK(same_bits(eager[i], replayed[i]));
}

TEST_CASE("variables are live in a compiled function", "[recorded]") {
  const Variable v(tensor({1.0, 2.0})), w(tensor({5.0, 6.0}));
  const auto swap = compile([&](const Tensor& x) {
    const Tensor before = v.value();
    v.assign(w.value() * x);
    w.assign(before);
    return v.value() + w.value();
  });
  const Tensor two = tensor(2.0);
  CHECK(swap(two).to_vector() == std::vector<double>{11, 14});
  CHECK(v.value().to_vector() == std::vector<double>{10, 12});
  CHECK(swap(two).to_vector() == std::vector<double>{12, 16});
  CHECK(v.value().to_vector() == std::vector<double>{2, 4});
  CHECK(w.value().to_vector() == std::vector<double>{10, 12});
  v.assign(tensor({-1.0, -2.0}));
  CHECK(swap(two).to_vector() == std::vector<double>{19, 22});
  w += 1;
  CHECK(w.value().to_vector() == std::vector<double>{0, -1});

  const auto count = compile([&] { v += 1; });
  count();
  count();
  count();
  CHECK(v.value().to_vector() == std::vector<double>{23, 27});
}

TEST_CASE("a value that was read keeps its numbers when the variable changes", "[recorded]") {
  for (const std::int64_t n : {3, 1000}) {
    const Variable v(ones({n}));
    const auto f = compile([&] {
      const Tensor before = v.value();
      v.assign(before * 2);
      return before;
    });
    CHECK(f().at({0}) == 1);
    const Tensor held = f();
    CHECK(held.at({0}) == 2);
    CHECK(f().at({0}) == 4);
    CHECK(held.at({n - 1}) == 2);
    CHECK(v.value().at({n - 1}) == 8);
  }
}

TEST_CASE("numbers of recorded tensors cannot be read", "[recorded][errors]") {
  const auto f = compile([](const Tensor& x) { return sum(x).item() > 0 ? x : -x; }, {.name = "sign"});
  const Variable v(tensor({1.0, 2.0}));
  CHECK_THROWS_WITH(
      f(tensor({1.0, 2.0})),
      "sign: the numbers of f32[], computed by #0 sum, are read on the host, where a replay would see the "
      "numbers of the recording; use cond or where, or do this outside the compiled function");
  CHECK(f.programs().empty());
  CHECK_THROWS_AS(f(tensor({1.0, 2.0})), TraceError);
  const Tensor outside = tensor(3.0);
  const auto g = compile([&](const Tensor& x) { return x * outside.item(); });
  CHECK(g(tensor(2.0)).item() == 6);
}

TEST_CASE("key arguments are live", "[recorded]") {
  const auto f = compile([](const Tensor& x, random::Key key) {
    return x * random::uniform({100}, key.split(1)) + random::normal({100}, key.split(2).split(7));
  });
  const Tensor x = tensor(2.0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const random::Key key{.seed = i};
    const Tensor wanted =
        x * random::uniform({100}, key.split(1)) + random::normal({100}, key.split(2).split(7));
    CHECK(same_bits(f(x, key), wanted));
  }
  CHECK(f.programs().size() == 1);
}

TEST_CASE("results keep the structure that the function returns", "[recorded]") {
  const auto f = compile([](const std::vector<Tensor>& x, double factor) {
    GradientTape tape;
    tape.watch(x[0]);
    const Tensor y = sum(x[0] * x[1]) * factor;
    return std::tuple(y, tape.gradient(y, x), std::pair(x[0], x[1] + 1));
  });
  for (int i = 0; i < 3; ++i) {
    const Tensor a = tensor({1.0 + i, 2.0}), b = tensor({3.0, 4.0});
    const auto [y, g, pair] = f(std::vector{a, b}, 2.0);
    CHECK(y.item() == 2 * (3 + 3 * i + 8));
    CHECK(same_bits(g[0].dense(), b * 2));
    CHECK_FALSE(g[1].defined());
    CHECK(same_bits(pair.first, a));
    CHECK(same_bits(pair.second, b + 1));
  }
  CHECK(f.programs().size() == 1);
  f(std::vector{tensor({1.0, 2.0}), tensor({1.0, 2.0})}, 3.0);   // another number
  CHECK(f.programs().size() == 2);
}

TEST_CASE("gradients are returned as the function returns them: dense, sparse or none", "[recorded]") {
  const Variable table(random::normal({6, 2}, {.seed = 1})), w(ones({2})), count(tensor(std::int64_t{1}));
  const auto f = [&](const Tensor& ids, const Tensor& y) {
    GradientTape tape;
    const Tensor loss = sum(square(gather(table, ids) * w - y));
    return std::tuple(loss, tape.gradient(loss, std::vector<Variable>{table, w, count}), Gradient(loss));
  };
  for (const int check : {0, 1}) {
    const auto compiled = compile(f, {.check = check});
    for (int i = 0; i < 4; ++i) {
      const Tensor ids = tensor({i, 5, i, 1}), y = random::normal({4, 2}, {.seed = 2});
      const auto [loss, g, of_loss] = compiled(ids, y);
      const auto [wanted_loss, wanted, of_wanted] = f(ids, y);
      CHECK(same_bits(loss, wanted_loss));
      CHECK(same_bits(of_loss.dense(), wanted_loss));
      REQUIRE(g[0].slices());
      CHECK(same_bits(g[0].slices()->values, wanted[0].slices()->values));
      CHECK(same_bits(g[0].slices()->indices, wanted[0].slices()->indices));
      CHECK(g[0].slices()->dense_shape == Shape{6, 2});
      CHECK(same_bits(g[1].tensor(), wanted[1].tensor()));
      REQUIRE_FALSE(g[2].defined());
      CHECK_THROWS_WITH(g[2].dense(), Catch::Contains("integers"));   // the reason, as without compile
    }
    CHECK(compiled.programs().at(0).calls == 3);
  }
}

TEST_CASE("an error in a replay leaves variables unchanged", "[recorded][errors]") {
  const Variable v(zeros({2}));
  const auto f = compile([&](const Tensor& i) {
    v += 1;
    const Tensor y = gather(arange(3), i);
    v += 1;
    return y;
  });
  f(tensor({0}));
  CHECK(f(tensor({2})).at({0}) == 2);
  CHECK(v.value().at({0}) == 4);
  CHECK_THROWS_AS(f(tensor({3})), Error);
  CHECK(v.value().at({0}) == 4);
  CHECK(f(tensor({1})).at({0}) == 1);
  CHECK(v.value().at({0}) == 6);
}

TEST_CASE("check finds values that were frozen at the recording", "[recorded]") {
  double factor = 2;
  const auto f = compile([&](const Tensor& x) { return x * factor; }, {.check = 1});
  CHECK(f(tensor(3.0)).item() == 6);
  CHECK(f(tensor(4.0)).item() == 8);
  factor = 3;
  CHECK_THROWS_AS(f(tensor(4.0)), TraceError);
}

TEST_CASE("a tape of the caller differentiates a compiled function", "[recorded]") {
  const auto f = compile([](const Tensor& x) { return x * x; });
  const Tensor x = tensor(3.0);
  f(x);
  f(x);
  GradientTape tape;
  tape.watch(x);
  CHECK(tape.gradient(f(x), x).dense().item() == 6);
}

TEST_CASE("a function may make its variables at the first call", "[recorded]") {
  std::optional<Variable> v;
  const auto f = compile([&](const Tensor& x) {
    if (!v) v.emplace(x * 10);
    *v += x;
    return v->value();
  });
  CHECK(f(tensor(1.0)).item() == 11);
  CHECK(f(tensor(2.0)).item() == 13);
  CHECK(f(tensor(3.0)).item() == 16);
  CHECK(f(tensor(4.0)).item() == 20);
  CHECK(f.programs().at(0).calls == 2);
  const auto g = compile([](const Tensor& x) { return Variable(x).value() + 1; });
  g(tensor(1.0));
  CHECK_THROWS_AS(g(tensor(1.0)), TraceError);
}

TEST_CASE("several threads call one function", "[recorded][threads]") {
  const Variable w(random::normal({40, 30}, {.seed = 1}));
  const auto f = compile([&](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(sum(tanh(matmul(x, w))), x);
  });
  std::vector<Tensor> x, wanted;
  for (std::uint64_t i = 0; i < 4; ++i) {
    x.push_back(random::normal({20, 40}, {.seed = 2, .stream = i}));
    GradientTape tape;
    tape.watch(x.back());
    wanted.push_back(tape.gradient(sum(tanh(matmul(x.back(), w))), x.back()).dense());
  }
  std::vector<int> same(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int call = 0; call < 20; ++call)
        same[i] += same_bits(f(x[i]).dense(), wanted[i]);
    });
  for (std::thread& t : threads)
    t.join();
  CHECK(same == std::vector<int>{20, 20, 20, 20});
  CHECK(f.programs().size() == 1);
}

TEST_CASE("a program depends on no number of threads", "[recorded][threads]") {
  const int before = num_threads();
  const auto f = compile([](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    tape.watch(x);
    tape.watch(y);
    return tape.gradient(mean(exp(x * y) - y), x, y);
  });
  const Tensor x = random::normal({300'001}, {.seed = 1}), y = random::normal({}, {.seed = 2});
  set_num_threads(1);
  const auto eager = f(x, y), one = f(x, y);
  set_num_threads(4);
  const auto four = f(x, y);
  set_num_threads(before);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(same_bits(one[i].dense(), eager[i].dense()));
    CHECK(same_bits(four[i].dense(), eager[i].dense()));
  }
}

TEST_CASE("results are written into tensors that only the caller owns", "[recorded]") {
  const auto f = compile([](const Tensor& x) { return tanh(x) * 2; });
  for (const std::int64_t n : {0, 1, 7, 100000}) {
    const Tensor x = random::normal({n}, {.seed = 1}), z = random::normal({n}, {.seed = 2});
    Tensor y = f(x);
    const std::byte* const memory = y.raw();
    const std::uint64_t id = y.id();
    f.into(y, z);
    CHECK(same_bits(y, tanh(z) * 2));
    CHECK(y.raw() == memory);
    CHECK(y.id() != id);

    const Tensor kept = y;   // shared now
    f.into(y, x);
    CHECK(same_bits(y, tanh(x) * 2));
    CHECK(same_bits(kept, tanh(z) * 2));
    f.into(y, y);   // an argument, too
    CHECK(same_bits(y, tanh(tanh(x) * 2) * 2));
    y = zeros({n, 2});   // of another shape
    f.into(y, z);
    CHECK(same_bits(y, tanh(z) * 2));
    y = {};
    f.into(y, z);
    CHECK(same_bits(y, kept));
  }
}

TEST_CASE("results in lists and tuples are written into the caller's tensors", "[recorded]") {
  const auto f = compile([](const Tensor& x) {
    const Tensor y = x + 1;
    return std::tuple(y, std::vector<Tensor>{x * 3, y, x}, sum(x));
  });
  const Tensor x = ones({1000}), z = random::normal({1000}, {.seed = 5});
  auto y = f(x);
  const std::byte* const memory = std::get<1>(y)[0].raw();
  f.into(y, z);
  CHECK(same_bits(std::get<0>(y), z + 1));
  CHECK(same_bits(std::get<1>(y)[0], z * 3));
  CHECK(std::get<1>(y)[0].raw() == memory);
  CHECK(same_bits(std::get<1>(y)[1], z + 1));
  CHECK(same_bits(std::get<1>(y)[2], z));
  CHECK(same_bits(std::get<2>(y), sum(z)));
}

TEST_CASE("after an error the caller still has the result tensors", "[recorded][errors]") {
  const auto f = compile([](const Tensor& x, const Tensor& i) { return gather(x, i) * 2; });
  const Tensor x = tensor({0.0, 1.0, 2.0, 3.0, 4.0});
  Tensor y = f(x, tensor({1, 2}));
  f.into(y, x, tensor({3, 4}));
  const std::byte* const memory = y.raw();
  CHECK_THROWS_AS(f.into(y, x, tensor({3, 5})), ArgumentError);
  CHECK(y.raw() == memory);
  f.into(y, x, tensor({0, 1}));
  CHECK(same_bits(y, tensor({0.0, 2.0})));
}

TEST_CASE("sparse gradients are written into slices that only the caller owns", "[recorded]") {
  const Variable table(random::normal({6, 2}, {.seed = 1}));
  const auto f = [&](const Tensor& ids) {
    GradientTape tape;
    const Tensor loss = sum(square(gather(table, ids)));
    return std::pair(loss, tape.gradient(loss, table));
  };
  const auto compiled = compile(f);
  auto result = compiled(tensor({1, 2}));
  compiled.into(result, tensor({1, 2}));
  const std::byte* const values = result.second.slices()->values.raw();
  compiled.into(result, tensor({3, 4}));
  REQUIRE(result.second.slices());
  CHECK(result.second.slices()->values.raw() == values);
  CHECK(same_bits(result.second.dense(), f(tensor({3, 4})).second.dense()));

  CHECK_THROWS_AS(compiled.into(result, tensor({3, 6})), ArgumentError);
  CHECK(result.first.defined());
  REQUIRE(result.second.slices());
  CHECK(result.second.slices()->values.raw() == values);
  CHECK(result.second.slices()->indices.shape() == Shape{2});
  CHECK(result.second.slices()->dense_shape == Shape{6, 2});

  const Gradient kept = result.second;   // shared now
  compiled.into(result, tensor({0, 5}));
  CHECK(kept.slices()->values.raw() == values);
  CHECK(same_bits(result.second.dense(), f(tensor({0, 5})).second.dense()));

  for (const Gradient& other : {Gradient(), Gradient(ones({6, 2})), Gradient(IndexedSlices{}), kept}) {
    result.second = other;
    compiled.into(result, tensor({5, 5}));
    REQUIRE(result.second.slices());
    CHECK(same_bits(result.second.dense(), f(tensor({5, 5})).second.dense()));
  }
}

TEST_CASE("the programs of a function share their memory", "[recorded]") {
  const auto f = compile([](const Tensor& x) {
    const Tensor y = cumsum(tanh(x)), z = cumsum(exp(-square(x)));   // both are in memory at once
    return sum(cumsum(y * z + 1));
  });
  const std::int64_t sizes[] = {50000, 100000, 1000};
  std::vector<Tensor> x, wanted;
  for (const std::int64_t n : sizes) {
    x.push_back(random::normal({n}, {.seed = 3}));
    wanted.push_back(f(x.back()));
  }
  const std::int64_t before = live_bytes();
  for (int i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < x.size(); ++k)
      CHECK(same_bits(f(x[k]), wanted[k]));
  std::int64_t most = 0;
  for (const ProgramInfo& p : f.programs())
    most = std::max(most, p.arena_bytes);
  CHECK(most > 800000);
  CHECK(live_bytes() - before < most * 5 / 4);   // that of the largest program; buffers are rounded up
}

TEST_CASE("signatures distinguish dtypes", "[recorded]") {
  const auto f = compile([](const Tensor& x) { return x + x; });
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::c64, DType::f32}) {
    const Tensor x = astype(tensor({1.0, 2.0}), dtype);
    CHECK(same_bits(f(x), x + x));
  }
  CHECK(f.programs().size() == 5);
}

TEST_CASE("gradients are added up where a replay gives the sum separate memory", "[recorded]") {
  const Tensor x = random::normal({2, 3, 4}, {.seed = 1}), b = random::normal({2, 1, 4}, {.seed = 2});
  const auto broadcast = [](const Tensor& x, const Tensor& b) {
    GradientTape tape;
    tape.watch(x), tape.watch(b);
    return tape.gradient(sum(x * b + (x * x) * b), x, b);
  };
  const auto mapped = [](const Tensor& x, const Tensor& b) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = map([](auto u, auto v) { return u * tanh(u) + v; }, x, b);
    const Tensor z = map([](auto u, auto v) { return u * u * v; }, x, y);
    return tape.gradient(sum(y) + sum(z * z), x);
  };
  const auto f = compile(broadcast);
  const auto g = compile(mapped);
  for (const double factor : {1.0, 2.0, -3.0}) {
    const auto wanted = broadcast(x * factor, b), actual = f(x * factor, b);
    for (std::size_t i = 0; i < 2; ++i)
      CHECK(same_bits(actual[i].dense(), wanted[i].dense()));
    CHECK(same_bits(g(x * factor, b).dense(), mapped(x * factor, b).dense()));
  }
}

TEST_CASE("a step uses the value that it changes", "[recorded]") {
  const auto train = [](bool recorded) {
    const Variable v(ones({1000})), w(full({1000}, 2.0));
    GradientDescent sgd({.learning_rate = 0.5});
    const auto step = [&](const Tensor& g) { sgd.apply_gradients({{g, w}, {w.value(), v}}); };
    const auto replayed = compile(step);
    for (const double g : {1.0, 2.0, 3.0})
      recorded ? replayed(full({1000}, g)) : step(full({1000}, g));
    return std::array{v.value(), w.value()};
  };
  const auto eager = train(false), replayed = train(true);
  CHECK(replayed[1].at({999}) == -1);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(same_bits(eager[i], replayed[i]));
}

TEST_CASE("a step sees the values assigned before it", "[recorded]") {
  const Variable w(zeros({3})), u(zeros({3}));
  GradientDescent sgd({.learning_rate = 1.0});
  const auto f = compile([&](const Tensor& x) {
    w.assign(x);
    u.assign(w.value() * 10);
    sgd.apply_gradients({{ones({3}), w}});
    return w.value() + u.value();
  });
  for (const double x : {5.0, 6.0, 7.0}) {
    CHECK(f(full({3}, x)).at({2}) == x - 1 + 10 * x);
    CHECK(w.value().at({0}) == x - 1);
    CHECK(u.value().at({0}) == 10 * x);
  }
}

TEST_CASE("values assigned before a step stay in memory until the step", "[recorded]") {
  const Variable w(zeros({1000})), u(zeros({1000}));
  GradientDescent sgd({.learning_rate = 1.0});
  const auto f = compile([&](const Tensor& x) {
    const Tensor a = tanh(x);
    w.assign(cumsum(x));
    sgd.apply_gradients({{cumsum(a), u}});
    return exp(x);   // in one pass with the tanh, which is late for that reason
  });
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Tensor x = random::normal({1000}, {.seed = i}), before = u.value();
    CHECK(same_bits(f(x), exp(x)));
    CHECK(same_bits(w.value(), cumsum(x)));
    CHECK(same_bits(u.value(), before - cumsum(tanh(x))));
  }
}

TEST_CASE("a function may be called by a step in itself", "[recorded]") {
  std::function<Tensor(const Tensor&)> inner;
  const Variable w(ones({1000}), {.constraint = [&](const Tensor& x) { return inner(x); }});
  GradientDescent sgd({.learning_rate = 0.5});
  const auto eager = [&](const Tensor& x, int depth) {
    const Tensor y = cumsum(tanh(x)), z = cumsum(x * depth);   // in memory across the step
    if (depth > 0) sgd.apply_gradients({{y, w}});
    return y + z;
  };
  const auto f = compile(eager);
  const auto trained = [&](bool recorded) {
    inner = [&, recorded](const Tensor& x) { return recorded ? f(x, 0) : eager(x, 0); };
    w.assign(ones({1000}));
    std::vector<Tensor> all;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const Tensor x = random::normal({1000}, {.seed = 7, .stream = i});
      all.push_back(recorded ? f(x, 1) : eager(x, 1));
    }
    all.push_back(w.value());
    return all;
  };
  const auto wanted = trained(false), actual = trained(true);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    CHECK(same_bits(wanted[i], actual[i]));
  CHECK(f.programs().size() == 2);
}

TEST_CASE("variables are assigned together, and not where a later op fails", "[recorded][errors]") {
  const Variable a(zeros({100})), b(zeros({3}));
  const auto f = compile([&](const Tensor& x, const Tensor& i) {
    const Tensor old = a.value();
    a.assign(x * 2);
    b.assign(slice(old, {0}, {3}));
    return gather(x, i) + sum(a.value());
  });
  const Tensor x = ones({100});
  f(x, tensor({0}));
  f(x, tensor({1}));
  CHECK(b.value().at({0}) == 2);
  CHECK_THROWS_AS(f(x * 5, tensor({100})), ArgumentError);
  CHECK(a.value().at({0}) == 2);
  CHECK(b.value().at({0}) == 2);
  const Tensor kept = a.value();   // so that its memory is shared
  f(x * 5, tensor({99}));
  CHECK(a.value().at({0}) == 10);
  CHECK(kept.at({0}) == 2);
  CHECK(b.value().at({2}) == 2);
  f(x, tensor({99}));
  CHECK(b.value().at({2}) == 10);
}

TEST_CASE("one thread records while others replay", "[recorded][threads]") {
  const auto step = [](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(sum(tanh(x) * x), x);
  };
  const auto f = compile(step, {.max_programs = 100});
  const auto x_of = [](std::int64_t n) { return random::normal({n}, {.seed = 1}); };
  const auto wanted_of = [&](std::int64_t n) { return step(x_of(n)).dense(); };
  f(x_of(1000));
  std::vector<std::thread> threads;
  std::array<int, 3> same{};
  threads.emplace_back([&] {
    for (std::int64_t n = 1; n <= 60; ++n)
      same[0] += same_bits(f(x_of(n)).dense(), wanted_of(n));
  });
  for (std::size_t t = 1; t < 3; ++t)
    threads.emplace_back([&, t] {
      const Tensor x = x_of(1000), wanted = wanted_of(1000);
      for (int i = 0; i < 60; ++i)
        same[t] += same_bits(f(x).dense(), wanted);
    });
  for (std::thread& t : threads)
    t.join();
  CHECK(same == std::array{60, 60, 60});
  CHECK(f.programs().size() == 61);
}

TEST_CASE("functions are copied and moved, and share their programs", "[recorded]") {
  auto f = compile([](const Tensor& x) { return exp(x); });
  const Tensor x = tensor({1.0, 2.0});
  f(x);
  const auto copy = f;
  copy(x);
  const auto moved = std::move(f);
  CHECK(same_bits(moved(x), exp(x)));
  CHECK(copy.programs().at(0).calls == 2);
}

TEST_CASE("a square and the sum that follows it have the bits of eager", "[recorded]") {
  const auto f = [](const Tensor& x, const Tensor& y) {
    return std::vector<Tensor>{square(x) + y, y - square(x), square(x) - y};
  };
  const auto recorded = compile(f);
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    const Tensor x = random::normal({37}, {.seed = seed}), y = random::normal({37}, {.seed = seed + 10});
    const std::vector<Tensor> eager = f(x, y), replayed = recorded(x, y);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(same_bits(eager[i], replayed[i]));
  }
}

TEST_CASE("a watcher sees all variables of a replay, even those that the result does not depend on",
          "[recorded]") {
  const Variable used(tensor(2.0)), unused(tensor(3.0)), assigned(tensor(0.0));
  const auto f = compile([&](const Tensor& x) {
    const Tensor ignored = unused * x;
    assigned.assign(x);
    return used * x;
  });
  for (int call = 0; call < 3; ++call) {
    const VariableWatcher watcher;
    f(tensor(5.0));
    CHECK(watcher.watched_variables() == std::vector<Variable>{used, unused, assigned});
  }
}

}   // namespace compile_test
