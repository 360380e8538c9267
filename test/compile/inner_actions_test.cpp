// Actions in the functions of branches and loops: steps of optimizers, moving averages and the like. Each
// case runs eagerly and compiled, on variables of its own; after each call both must have the same bits.
#include <catch2/catch.hpp>
#include <memory>

#include "closeness.h"
#include "message_of.h"
#include "tapedeck/compile.h"
#include "tapedeck/control.h"
#include "tapedeck/moving_average.h"
#include "tapedeck/npy.h"
#include "tapedeck/optimizer.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"
#include "temporary_folder.h"

namespace inner_actions_test {

using namespace tapedeck;
using test::message_of;

namespace {

using Tensors = std::vector<Tensor>;

// The state of a case.
struct Model {
  Variable w{tensor({0.5, -1.0, 2.0}), {.name = "w"}};
  Variable count{tensor(0.0), {.name = "count"}};
  Adam adam{{.learning_rate = 0.1}};
  Momentum descent{{.learning_rate = 0.05, .momentum = 0.9}};

  // Takes a step towards the target, and returns the loss before it.
  template <class O> Tensor train(O& optimizer, const Tensor& target) {
    GradientTape tape;
    const Tensor loss = sum(square(w - target));
    optimizer.apply_gradients({{tape.gradient(loss, w), w}});
    return loss;
  }
};

void check_same(const Tensors& a, const Tensors& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    CAPTURE(k, a[k], b[k]);
    CHECK(same_bits(a[k], b[k]));
  }
}

// Calls f(model, x) for each x, eagerly and compiled.
template <class M = Model, class F> void check(const F& f, const Tensors& calls) {
  const auto plain = std::make_unique<M>(), recorded = std::make_unique<M>();
  const auto compiled = compile([&f, &m = *recorded](const Tensor& x) { return f(m, x); });
  for (std::size_t call = 0; call < calls.size(); ++call) {
    CAPTURE(call);
    const Tensors wanted = f(*plain, calls[call]), y = compiled(calls[call]);
    check_same(y, wanted);
    check_same({recorded->w.value(), recorded->count.value()}, {plain->w.value(), plain->count.value()});
  }
  REQUIRE(compiled.programs().size() == 1);
  CHECK(compiled.programs()[0].calls == static_cast<std::int64_t>(calls.size()) - 1);
  if constexpr (requires { plain->state(); }) check_same(recorded->state(), plain->state());
}
const Tensors kTargets = {tensor({1.0, 2.0, 3.0}), tensor({-1.0, 0.5, 2.0}), tensor({4.0, 4.0, -4.0}),
                          tensor({0.0, 0.0, 0.0})};
const Tensors kNumbers = {tensor(1.0), tensor(-2.0), tensor(3.0), tensor(-0.5), tensor(-1.0), tensor(2.0)};

}   // namespace

TEST_CASE("a loop trains", "[recorded][loops][actions]") {
  SECTION("fori_loop") {
    check(
        [](Model& m, const Tensor& target) -> Tensors {
          return {fori_loop(0, 20,
                            [&](const Tensor&, const Tensor& sum) { return sum + m.train(m.adam, target); },
                            {zeros({})})};
        },
        kTargets);
  }
  SECTION("scan, with a batch and a key for each step") {
    check(
        [](Model& m, const Tensor& target) -> Tensors {
          const Tensor batches = stack({target, target * 2.0, -target});
          const random::Key key{.seed = 3};
          const auto [i, losses] = scan(
              [&](const Tensor& i, const Tensor& batch) {
                const Tensor noise = random::normal(batch.shape(), key.split(i));
                return std::pair(i + tensor(1, DType::i64), m.train(m.descent, batch + noise));
              },
              {tensor(0, DType::i64)}, {batches});
          return {i, losses};
        },
        kTargets);
  }
  SECTION("while_loop, whose condition reads what the step changes") {
    check(
        [](Model& m, const Tensor& target) -> Tensors {
          return {while_loop(
              [&](const Tensor& i) { return logical_and(i<200.0, sum(square(m.w - target))> 0.01); },
              [&](const Tensor& i) {
                m.train(m.adam, target);
                return i + 1.0;
              },
              {zeros({})})};
        },
        kTargets);
  }
  SECTION("loops in loops") {
    check(
        [](Model& m, const Tensor& target) -> Tensors {
          return {fori_loop(0, 3,
                            [&](const Tensor& i, const Tensor& sum) {
                              const Tensor goal = target * astype(i, DType::f32);
                              return fori_loop(0, 4,
                                               [&](const Tensor&, const Tensor& s) {
                                                 return s + m.train(m.descent, goal);
                                               },
                                               {sum});
                            },
                            {zeros({})})};
        },
        kTargets);
  }
  SECTION("no steps") {
    check(
        [](Model& m, const Tensor& target) -> Tensors {
          return {fori_loop(0, 0,
                            [&](const Tensor&, const Tensor& sum) { return sum + m.train(m.adam, target); },
                            {zeros({})})};
        },
        kTargets);
  }
}

TEST_CASE("branches train", "[recorded][branches][actions]") {
  SECTION("one of two") {
    check(
        [](Model& m, const Tensor& x) -> Tensors {
          const Tensor target = x * ones({3});
          return {cond(
              x > 0.0, {}, [&] { return m.train(m.adam, target); },
              [&] { return m.train(m.descent, target) * 2.0; })};
        },
        kNumbers);
  }
  SECTION("one trains, the other assigns, or does nothing") {
    check(
        [](Model& m, const Tensor& x) -> Tensors {
          const Tensor target = x * ones({3});
          return {switch_case(
                      where(x > 0.0, tensor(0), where(x < -1.0, tensor(1), tensor(2))), {},
                      [&] { return m.train(m.adam, target); },
                      [&] {
                        m.w.assign(target + m.count);
                        return sum(m.w.value());
                      },
                      [&] { return sum(target); }),
                  m.w.value()};
        },
        kNumbers);
  }
  SECTION("in a loop") {
    check(
        [](Model& m, const Tensor& x) -> Tensors {
          const Tensor target = x * ones({3});
          return {fori_loop(0, 5,
                            [&](const Tensor& i, const Tensor& sum) {
                              return sum +
                                     cond(
                                         equal(floor_mod(i, tensor(2, DType::i64)), tensor(0, DType::i64)),
                                         {}, [&] { return m.train(m.adam, target); },
                                         [&] {
                                           m.count.assign_add(tensor(1.0));
                                           return m.train(m.descent, target * 2.0);
                                         });
                            },
                            {zeros({})})};
        },
        kNumbers);
  }
}

TEST_CASE("variables in a function that trains have the values of each step", "[recorded][loops][actions]") {
  SECTION("read before and after the step, kept by the function, and assigned") {
    check(
        [](Model& m, const Tensor& target) -> Tensors {
          m.w.assign_add(target * 0.125);
          const Tensor outside = m.w.value();
          const auto [last, seen] = scan(
              [&](const Tensor& before, const Tensor& scale) {
                const Tensor first = m.w.value();
                m.train(m.adam, target * scale);
                const Tensor second = m.w.value();
                m.count.assign_add(sum(second));
                m.w.assign(m.w * 0.5 + outside);
                return std::pair(second, stack({before, first, second, m.w.value(), outside}));
              },
              {zeros({3})}, {tensor({1.0, 2.0, -1.0})});
          m.w.assign_sub(last);
          return {last, seen, m.w.value(), outside, m.count.value()};
        },
        kTargets);
  }
  SECTION("a captured tensor that is the value of a variable before") {
    check(
        [](Model& m, const Tensor& target) -> Tensors {
          const Tensor y = target * 3.0;
          m.w.assign(y);
          const Tensor sum_of = fori_loop(0, 3,
                                          [&](const Tensor&, const Tensor& s) {
                                            m.train(m.descent, target);
                                            return s + y * m.w;
                                          },
                                          {zeros({3})});
          return {sum_of, y, m.w.value()};
        },
        kTargets);
  }
  SECTION("a variable as a carry") {
    check(
        [](Model& m, const Tensor& target) -> Tensors {
          return {fori_loop(0, 3,
                            [&](const Tensor&, const Tensor& before) {
                              m.train(m.descent, target);
                              return before + m.w;
                            },
                            {m.w.value()})};
        },
        kTargets);
  }
}

namespace {

struct Trained : Model {
  ExponentialMovingAverage average{0.9};
  WeightedMovingAverage weighted{0.75};
  GradientAccumulator accumulator;
  LossScale scale{{.initial = 8.0, .growth_interval = 3}};

  Tensors state() {
    Tensors all = {average.average(w).value(), tensor(accumulator.count()), tensor(scale.value())};
    for (const GradientAndVariable& p : accumulator.take_sum())
      all.push_back(p.gradient.dense());
    for (const auto& [name, t] : weighted.state().tensors)
      all.push_back(t);
    return all;
  }
};

}   // namespace

TEST_CASE("moving averages, accumulators and loss scales in a loop", "[recorded][loops][actions]") {
  check<Trained>(
      [](Trained& m, const Tensor& target) -> Tensors {
        return {fori_loop(0, 4,
                          [&](const Tensor&, const Tensor& sum_before) {
                            const Tensor loss = m.train(m.adam, target);
                            m.average.apply(std::vector{m.w});
                            const Tensor mean = m.weighted.update(loss, tensor(2.0));
                            m.scale.minimize(m.descent, [&] { return sum(square(m.w - target)); },
                                             {.variables = std::vector{m.w}});
                            GradientTape tape;
                            const Tensor y = sum(m.w * m.w);
                            m.accumulator.add({{tape.gradient(y, m.w), m.w}});
                            return sum_before + mean;
                          },
                          {zeros({})})};
      },
      kTargets);
}

TEST_CASE("sparse gradients in a loop", "[recorded][loops][actions]") {
  check(
      [](Model& m, const Tensor& target) -> Tensors {
        const Tensor rows = tensor({2, 0, 2}, DType::i64);
        return {fori_loop(0, 3,
                          [&](const Tensor& i, const Tensor& s) {
                            GradientTape tape;
                            const Tensor loss =
                                sum(gather(m.w, floor_mod(rows + i, tensor(3, DType::i64))) * target);
                            m.adam.apply_gradients({{tape.gradient(loss, m.w), m.w}});
                            return s + loss;
                          },
                          {zeros({})})};
      },
      kTargets);
}

TEST_CASE("steps that a loop has taken remain if a later one throws", "[recorded][loops][actions]") {
  Model eager, recorded;
  const auto f = [](Model& m, const Tensor& x) -> Tensor {
    return fori_loop(0, 10,
                     [&](const Tensor& i, const Tensor& s) {
                       m.count.assign_add(tensor(1.0));
                       const Tensor loss = m.train(m.descent, s);
                       assert_that(i < x, "late");
                       return loss;
                     },
                     {ones({})});
  };
  const auto compiled = compile([&](const Tensor& x) { return f(recorded, x); });
  for (const int limit : {100, 100, 4, 100, 0}) {
    CAPTURE(limit);
    const Tensor x = tensor(limit, DType::i64);
    if (limit == 100) {
      check_same({compiled(x)}, {f(eager, x)});
    } else {
      CHECK_THROWS_AS(f(eager, x), Error);
      CHECK_THROWS_AS(compiled(x), Error);
    }
    check_same({recorded.w.value(), recorded.count.value()}, {eager.w.value(), eager.count.value()});
  }
}

TEST_CASE("actions in branches and loops are refused where they could be taken twice, or not be recorded",
          "[recorded][loops][branches][actions]") {
  Model m;
  const Tensor x = ones({3});
  const auto before = m.w.value().to_vector();
  const auto loop = [&](const Tensor& target) {
    return fori_loop(0, 3, [&](const Tensor&, const Tensor& s) { return s + m.train(m.adam, target); },
                     {sum(target)});
  };
  SECTION("under a tape of the function") {
    const auto f = compile([&](const Tensor& target) {
      GradientTape tape;
      tape.watch(target);
      return tape.gradient(loop(target), target).dense();
    });
    CHECK_THAT(message_of<TraceError>([&] { f(x); }),
               Catch::Contains("under a tape") && Catch::Contains("inside of the branch or the step"));
  }
  SECTION("with check") {
    const auto f = compile(loop, {.check = 1});
    CHECK_THAT(message_of<TraceError>([&] { f(x); }), Catch::Contains("taken twice"));
  }
  SECTION("in a condition") {
    const auto f = compile([&](const Tensor& target) {
      return while_loop([&](const Tensor& s) { return s + m.train(m.adam, target) < 3.0; },
                        [](const Tensor& s) { return s + 1.0; }, {zeros({})});
    });
    CHECK_THAT(message_of<TraceError>([&] { f(x); }), Catch::Contains("take it in the step"));
  }
  CHECK(m.w.value().to_vector() == before);
}

namespace {

// Nested branches, of which the innermost trains; counts the runs of its function.
Tensor nested(Model& m, const Tensor& x, int depth, int& runs) {
  if (depth == 0) {
    ++runs;
    return m.train(m.descent, x * ones({3}));
  }
  return cond(
      x > 0.0, {}, [&] { return nested(m, x, depth - 1, runs); }, [&] { return x * 2.0; });
}

}   // namespace

TEST_CASE("the functions of nested branches run a few times for their recording",
          "[recorded][branches][actions]") {
  Model m;
  for (const int depth : {1, 5, 10}) {
    int runs = 0;
    const auto f = compile([&](const Tensor& x) { return nested(m, x, depth, runs); });
    f(tensor(1.0));
    CHECK(runs == depth + 1);
  }
}

TEST_CASE("branches and loops read what steps before them have changed",
          "[recorded][loops][branches][actions]") {
  check(
      [](Model& m, const Tensor& target) -> Tensors {
        m.train(m.adam, target);
        const Tensor first = cond(
            sum(target) > 0.0, {}, [&] { return m.w * 2.0; }, [&] { return m.w.value(); });
        const Tensor loss =
            fori_loop(0, 3, [&](const Tensor&, const Tensor& s) { return s + m.train(m.descent, target); },
                      {zeros({})});
        const Tensor second =
            fori_loop(0, 3, [&](const Tensor&, const Tensor& s) { return s + m.w * m.w; }, {zeros({3})});
        const Tensor third = fori_loop(
            0, 2, [&](const Tensor&, const Tensor& s) { return s + m.train(m.adam, first); }, {zeros({})});
        m.count.assign(sum(m.w.value()));
        return {first, loss, second, third, m.w.value()};
      },
      kTargets);
}

TEST_CASE("a gradient of a branch after a step that changes what it has read throws",
          "[recorded][loops][actions]") {
  Model m;
  const auto f = [&](bool in_loop) {
    const auto body = [&](const Tensor& x) {
      const GradientTape outer;
      GradientTape tape;
      const Tensor y = cond(
          x > 0.0, {}, [w = m.w, x] { return w * w * x; }, [w = m.w, x] { return w * x; });
      m.descent.apply_gradients({{ones({3}), m.w}});
      return tape.gradient(y, m.w).dense();
    };
    return compile([=](const Tensor& x) {
      return in_loop
                 ? fori_loop(0, 2, [&](const Tensor&, const Tensor& s) { return s + body(x); }, {zeros({3})})
                 : body(x);
    });
  };
  for (const bool in_loop : {false, true}) {
    CAPTURE(in_loop);
    CHECK_THAT(message_of<GradientError>([&] { f(in_loop)(tensor(1.0)); }),
               Catch::Contains("has been updated since"));
  }
}

TEST_CASE("an action counts as an update, also if it has changed nothing in the first call",
          "[recorded][branches][actions]") {
  Model m;
  const auto f = compile([&](const Tensor& x, const Tensor& trains) {
    const GradientTape outer;
    GradientTape tape;
    const Tensor y = cond(
        sum(x) > 0.0, {}, [w = m.w, x] { return w * w * x; }, [w = m.w, x] { return w * x; });
    {
      const StopRecording stop;
      cond(
          trains, {}, [&] { return m.train(m.descent, x); }, [&] { return sum(x); });
    }
    return tape.gradient(y, m.w).dense();
  });
  CHECK_THAT(message_of<GradientError>([&] { f(ones({3}), tensor(false)); }),
             Catch::Contains("has been updated since"));
}

TEST_CASE("a condition that assigns is refused where the step acts, too", "[recorded][loops][actions]") {
  Model m;
  for (const bool acts : {false, true}) {
    const auto f = compile([&](const Tensor& x) {
      return while_loop(
          [&](const Tensor& s) {
            m.count.assign_add(tensor(1.0));
            return s < 3.0;
          },
          [&](const Tensor& s) { return (acts ? m.train(m.descent, x) * 0.0 : zeros({})) + s + 1.0; },
          {zeros({})});
    });
    CHECK_THAT(message_of<TraceError>([&] { f(ones({3})); }), Catch::Contains("assign it in the step"));
  }
}

TEST_CASE("a tensor that no recording knows is refused in a branch, too", "[recorded][branches][errors]") {
  Model m;
  const test::TemporaryFolder folder;
  save_npy(folder / "t.npy", ones({3}));
  const auto f = compile([&](const Tensor& x) {
    const Tensor t = load_npy(folder / "t.npy");   // neither by an op nor from numbers
    return cond(
        sum(x) > 0.0, {},
        [&] {
          m.w.assign(t);
          return x * 1.0;
        },
        [&] { return x * 2.0; });
  });
  CHECK_THAT(message_of<TraceError>([&] { f(ones({3})); }), Catch::Contains("created during the recording"));
}

TEST_CASE("a loop trains under a tape of the caller", "[recorded][loops][actions]") {
  for (const bool as_one_op : {false, true}) {
    CAPTURE(as_one_op);
    Model eager, recorded;
    const auto f = [](Model& m, const Tensor& target) {
      const Tensor losses = fori_loop(
          0, 3, [&](const Tensor&, const Tensor& s) { return s + m.train(m.adam, target); }, {zeros({})});
      return losses * sum(target);
    };
    const auto compiled =
        compile([&](const Tensor& target) { return f(recorded, target); }, {.as_one_op = as_one_op});
    for (const Tensor& x : kTargets) {
      const auto gradient = [&](const auto& of) {
        GradientTape tape;
        tape.watch(x);
        return tape.gradient(of(x), x).dense();
      };
      check_same({gradient(compiled)}, {gradient([&](const Tensor& t) { return f(eager, t); })});
      check_same({recorded.w.value()}, {eager.w.value()});
    }
  }
}

}   // namespace inner_actions_test
