// Replicas on threads: one common step, the same bits on any number of threads, and errors that stop the
// other replicas. Catch2's macros are called on the main thread only.
#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "case.h"
#include "message_of.h"
#include "optim/any_rule.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/distribute.h"
#include "tapedeck/gradient_transform.h"
#include "tapedeck/moving_average.h"
#include "tapedeck/nn/dense.h"
#include "tapedeck/nn/fit.h"
#include "tapedeck/nn/normalization.h"
#include "tapedeck/nn/sequential.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"
#include "tapedeck/training_log.h"
#include "temporary_folder.h"

namespace replicas_test {

using namespace tapedeck;
using test::Case;
using test::check_case;
using test::message_of;

namespace {

constexpr int kCount = 4;
const Replicas kFour(kCount, {.reduction = LossReduction::sum});

Tensor part(const Tensor& x, Replica r) {
  const std::int64_t n = x.shape()[0] / r.count;
  return strided_slice(x, {{r.index * n, (r.index + 1) * n}});
}

struct Trained {
  std::vector<double> weights, slots, table;
  std::int64_t iterations, global_step;
  friend bool operator==(const Trained&, const Trained&) = default;
};

/// A few training steps of a small network with an embedding table.
Trained train(const Replicas& replicas) {
  const Tensor x = random::normal({32, 6}, {.seed = 1}), y = random::normal({32, 3}, {.seed = 2}),
               rows = astype(random::uniform({32}, {.seed = 3}, 0, 5), DType::i32);
  const Variable w(random::normal({6, 3}, {.seed = 4}), {.name = "w"}),
      table(random::normal({50, 3}, {.seed = 5}), {.name = "table"});
  const Variable step(tensor(std::int64_t{0}), {.trainable = false});
  Momentum momentum({.learning_rate = 0.2, .momentum = 0.9});
  replicas.run([&](Replica r) {
    for (int i = 0; i < 5; ++i)
      momentum.minimize(
          [&] {
            return mean(square(tanh(matmul(part(x, r), w)) + gather(table, part(rows, r)) - part(y, r)));
          },
          {}, step);
  });
  return {w.value().to_vector(), momentum.slot(w, "momentum").to_vector(), table.value().to_vector(),
          momentum.iterations(), static_cast<std::int64_t>(step.value().item())};
}

}   // namespace

TEST_CASE("cases: replicas", "[cases][threads]") {
  check_case("dist-mean-loss-scaling", [&](Case& c) {
    const Variable v = c.variable(tensor(3.0));
    std::vector<double> gradients(2);
    std::vector<char> scaled(2);
    Replicas(2).run([&](Replica r) {
      gradients[static_cast<std::size_t>(r.index)] =
          Optimizer::compute_gradients([&] { return v * v; })[0].gradient.dense().item();
      scaled[static_cast<std::size_t>(r.index)] = is_loss_scaled();
    });
    CHECK(gradients[0] == gradients[1]);
    CHECK((scaled[0] && scaled[1]));
    c.check("grad", gradients[0]);
  });
  check_case("dist-filter-none", [&](Case& c) {
    const Variable v = c.variable(tensor(3.0)), unused = c.variable(tensor(1.0));
    Momentum& momentum = c.keep([&] { return Momentum({.learning_rate = 1.0, .momentum = 0.5}); });
    Replicas(2).run([&](Replica) { momentum.minimize([&] { return v * v; }, {.variables = {{unused, v}}}); });
    c.holds("property", v.value().item() == 3 - 6 && momentum.slot(v, "momentum").defined() &&
                            !momentum.slot(unused, "momentum").defined() && unused.value().item() == 1);
  });
  check_case("dist-cross-replica-apply", [&](Case& c) {
    const Variable v = c.variable(tensor(3.0));
    GradientDescent outer({.learning_rate = 1.0}), inner({.learning_rate = 1.0});
    outer.add_transform(
        [&](std::span<GradientAndVariable> pairs, std::int64_t) { inner.apply_gradients(pairs); });
    c.check_error([&] { Replicas(2).run([&](Replica) { outer.minimize([&] { return v * v; }); }); },
                  "apply_gradients: called outside the function passed to Replicas::run; call it inside, or "
                  "with SkipAggregation for gradients that are summed already");
    CHECK(v.value().item() == 3);
    CHECK(outer.iterations() == 0);
  });
}

TEST_CASE("replicas give the same bits on any number of threads", "[threads]") {
  const Trained all = train(Replicas(kCount));
  CHECK(all.iterations == 5);
  CHECK(all.global_step == 5);
  for (const int threads : {1, 2, 3, 4, 9})
    CHECK(train(Replicas(kCount, {.threads = threads})) == all);
}

TEST_CASE("replicas with a mean loss train like one replica with the whole batch", "[threads]") {
  const Trained one = train(Replicas(1));
  for (const int count : {2, 4, 8}) {
    const Trained many = train(Replicas(count));
    for (std::size_t i = 0; i < one.weights.size(); ++i)
      CHECK(many.weights[i] == Approx(one.weights[i]).epsilon(1e-4));
    for (std::size_t i = 0; i < one.table.size(); ++i)
      CHECK(many.table[i] == Approx(one.table[i]).epsilon(1e-4).margin(1e-5));
  }
}

namespace {

struct Line {
  Variable slope{zeros({4, 1}), {.name = "slope"}};
  Tensor operator()(const Tensor& x) const { return matmul(x, slope); }
};

Tensor distance(const Tensor& labels, const Tensor& predictions) {
  return mean(square(predictions - labels));
}

constexpr int kRows = 16;   // of a replica
/// What a replica trains on; the labels of each replica differ.
Dataset own_data(Replica r) {
  const Tensor x =
      random::normal({kRows, 4}, random::Key{.seed = 7}.split(static_cast<std::uint64_t>(r.index)));
  return Dataset({x, sum(x, {1}, {.keepdims = true}) * (1.0 + r.index)});
}

}   // namespace

TEST_CASE("fit: replicas train with the bits of a loop by hand", "[threads][fit]") {
  const Line by_fit, by_hand;
  Momentum fitted({.learning_rate = 0.1, .momentum = 0.5}), descent({.learning_rate = 0.1, .momentum = 0.5});
  std::vector<nn::FitReport> reports(2);
  std::vector<std::vector<double>> losses(2);
  Replicas(2).run([&](Replica r) {
    reports[static_cast<std::size_t>(r.index)] =
        nn::fit(by_fit, distance, fitted, own_data(r),
                {.epochs = 3, .batch = 8, .shuffle = false, .progress = nn::FitProgress::silent});
  });
  Replicas(2).run([&](Replica r) {
    const DataLoader loader(own_data(r), {.batch = 8});
    for (int epoch = 0; epoch < 3; ++epoch) {
      double sum = 0;
      for (const Batch& batch : loader.epoch(epoch))
        sum += descent.minimize([&] { return distance(batch[1], by_hand(batch[0])); }).item();
      losses[static_cast<std::size_t>(r.index)].push_back(sum / 2);
    }
  });
  CHECK(by_fit.slope.value().to_vector() == by_hand.slope.value().to_vector());
  CHECK(fitted.iterations() == 6);
  CHECK(reports[0].history == reports[1].history);
  for (std::size_t epoch = 0; epoch < 3; ++epoch)
    CHECK(reports[0].history[epoch]["loss"] == Approx((losses[0][epoch] + losses[1][epoch]) / 2));
}

TEST_CASE("fit: replicas stop early at the same epoch", "[threads][fit]") {
  const Line line;
  GradientDescent descent({.learning_rate = 0.2});
  std::vector<nn::FitReport> reports(2);
  Replicas(2).run([&](Replica r) {
    reports[static_cast<std::size_t>(r.index)] =
        nn::fit(line, distance, descent, own_data(r),
                {.epochs = 200,
                 .batch = 8,
                 .shuffle = false,
                 .early_stopping = nn::EarlyStopping{.patience = 1, .min_delta = 1e-3},
                 .progress = nn::FitProgress::silent});
  });
  CHECK(reports[0].stopped_early);
  CHECK(reports[0].steps < 400);
  CHECK(reports[0].steps == reports[1].steps);
}

TEST_CASE("fit: replicas reject options that only one of them would act on", "[threads][fit][errors]") {
  const Line line;
  GradientDescent descent({.learning_rate = 0.1});
  const auto refused = [&](const nn::FitOptions& options) {
    return message_of<ArgumentError>(
        [&] { Replicas(2).run([&](Replica r) { nn::fit(line, distance, descent, own_data(r), options); }); });
  };
  CHECK(refused({.checkpoints = nn::FitCheckpoints{.folder = "unused"}}) ==
        "fit: checkpoints cannot be used with replicas; restore before they run, and save in the on_epoch of "
        "one of them");
  CHECK(refused({.early_stopping = nn::EarlyStopping{.restore_best = true}}) ==
        "fit: early_stopping.restore_best cannot be used with replicas; keep the values in on_epoch");
  CHECK(descent.iterations() == 0);
}

TEST_CASE("the number of threads limits how many replicas run at once", "[threads]") {
  const Variable v(tensor(1.0));
  for (const int threads : {1, 2}) {
    GradientDescent descent({.learning_rate = 0.1});
    std::atomic<int> running{0}, most{0};
    Replicas(kCount, {.threads = threads}).run([&](Replica) {
      for (int i = 0; i < 10; ++i) {
        const int n = ++running;
        for (int seen = most; seen < n && !most.compare_exchange_weak(seen, n);) {}
        std::this_thread::yield();
        --running;
        descent.minimize([&] { return v * v; });
      }
    });
    CHECK(most <= threads);
    CHECK(descent.iterations() == 10);
  }
}

TEST_CASE("gradients are added up in a tree", "[threads]") {
  // 1 + 2⁻²⁴ is 1 in f32: summed from the left, the result would be 1; as a tree, (1 + e) + (e + e), it is
  // more than 1.
  const float e = 0x1p-24f, terms[] = {1, e, e, e};
  const Variable v(tensor(0.0f));
  GradientDescent descent({.learning_rate = 1.0});
  float sum = 0;
  kFour.run([&](Replica r) {
    const Tensor x = tensor(terms[r.index]), all = sum_over_replicas(x);
    if (r.index == 3) sum = all.item<float>();
    descent.apply_gradients({{x, v}});
  });
  CHECK(sum == 1 + 2 * e);
  CHECK(v.value().item<float>() == -(1 + 2 * e));
}

TEST_CASE("halves are added up in f32, and rounded once", "[threads][half]") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const double e = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;   // half of the space between 1 and the next
    const std::vector<double> terms = {1, e, e, 1.5 * e};      // as halves (1 + e) + (e + 1.5 e) is 1 + 2 e
    Tensor sum;
    kFour.run([&](Replica r) {
      const Tensor all = sum_over_replicas(tensor(terms[static_cast<std::size_t>(r.index)], dtype));
      if (r.index == 2) sum = all;
    });
    CHECK(sum.dtype() == dtype);
    CHECK(sum.item() == 1 + 4 * e);
  }
}

// test/distribute/ranks.cpp sums the same on ranks.
TEST_CASE("replicas sum all dtypes but bool", "[threads]") {
  for (int t = 0; t < kDTypes; ++t) {
    const DType dtype = static_cast<DType>(t);
    Tensor sum;
    const auto run = [&] {
      Replicas(2).run([&](Replica r) {
        sum_over_replicas(tensor(0.0));   // both have begun, so that both fail and the first one is named
        const Tensor all = sum_over_replicas(full({3}, r.index + 1.0, dtype));
        if (r.index == 0) sum = all;
      });
    };
    CAPTURE(name_of(dtype));
    if (dtype == DType::boolean) {
      CHECK(message_of<DTypeError>(run) == "sum_over_replicas: replica 0: x is bool[3]; use astype");
      continue;
    }
    run();
    CHECK(sum.dtype() == dtype);
    CHECK((is_complex(dtype) ? real(sum) : sum).at({2}) == 3);
  }
  const auto undefined = [] {
    Replicas(2).run([](Replica) {
      sum_over_replicas(tensor(0.0));
      sum_over_replicas(Tensor());
    });
  };
  CHECK(message_of<ArgumentError>(undefined) == "sum_over_replicas: replica 0: x is undefined");
}

TEST_CASE(
    "gradients of replicas: sparse ones are joined, dense and sparse ones are added, and none counts as zero",
    "[threads]") {
  const Variable sparse(zeros({5, 2}, DType::f64), {.name = "sparse"}), mixed(zeros({3}, DType::f64)),
      rare(zeros({2}, DType::f64)), listed(zeros({}, DType::f64));
  GradientDescent descent({.learning_rate = 1.0});
  std::vector<IndexedSlices> seen;
  descent.add_transform([&](std::span<GradientAndVariable> pairs, std::int64_t) {
    if (pairs[0].gradient.slices()) seen.push_back(*pairs[0].gradient.slices());
  });
  descent.add_transform(transforms::scale(-1.0));   // so that the variables become the sums
  kFour.run([&](Replica r) {
    const double n = r.index + 1;
    const Tensor row = full({1, 2}, n, DType::f64), place = tensor({r.index / 2});
    std::vector<GradientAndVariable> pairs = {{IndexedSlices{row, place}, sparse}};
    pairs.push_back({r.index == 2 ? Gradient(full({3}, 10, DType::f64))
                                  : Gradient(IndexedSlices{full({1}, n, DType::f64), tensor({1})}),
                     mixed});
    pairs.push_back({r.index == 1 ? Gradient(ones({2}, DType::f64)) : Gradient(), rare});
    if (r.index == 3) pairs.insert(pairs.begin(), {tensor(7.0, DType::f64), listed});
    descent.apply_gradients(pairs);
  });
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].values.to_vector() == std::vector<double>{1, 1, 2, 2, 3, 3, 4, 4});
  CHECK(seen[0].indices.to_vector() == std::vector<double>{0, 0, 1, 1});
  CHECK(sparse.value().to_vector() == std::vector<double>{3, 3, 7, 7, 0, 0, 0, 0, 0, 0});
  CHECK(mixed.value().to_vector() == std::vector<double>{10, 10 + 1 + 2 + 4, 10});
  CHECK(rare.value().to_vector() == std::vector<double>{1, 1});
  CHECK(listed.value().item() == 7);
}

TEST_CASE("a variable that is listed twice takes two updates, among replicas too", "[threads]") {
  const Variable v(tensor(1.0));
  Momentum momentum({.learning_rate = 1.0, .momentum = 0.5});
  Replicas(2).run([&](Replica) { momentum.apply_gradients({{tensor(0.5), v}, {tensor(2.0), v}}); });
  CHECK(momentum.slot(v, "momentum").item() == 0.5 * 1 + 4);
  CHECK(v.value().item() == 1 - 1 - 4.5);
}

TEST_CASE("constraints, schedules and global_step of replicas run once a step", "[threads]") {
  const std::thread::id caller = std::this_thread::get_id();
  int constrained = 0, asked = 0, elsewhere = 0;
  const Variable v(tensor(1.0), {.constraint = [&](const Tensor& x) {
                     ++constrained;
                     elsewhere += std::this_thread::get_id() != caller;
                     return maximum(x, 0.0);
                   }});
  const Variable steps(tensor(0), {.trainable = false});
  GradientDescent descent({.learning_rate = [&] {
    ++asked;
    return 1.0;
  }});
  asked = 0;
  kFour.run([&](Replica) {
    for (int i = 0; i < 3; ++i)
      descent.minimize([&] { return v * v; }, {}, steps);
  });
  CHECK(constrained == 3);
  CHECK(asked == 3);
  CHECK(elsewhere == 0);
  CHECK(steps.value().item() == 3);
  CHECK(v.value().item() == 0);
}

TEST_CASE("losses of replicas are scaled only for a mean", "[threads]") {
  const Variable v(tensor(3.0));
  for (const auto& [count, reduction, gradient] : {std::tuple{1, LossReduction::mean, 6.0},
                                                   {4, LossReduction::mean, 1.5},
                                                   {4, LossReduction::sum, 6.0}}) {
    std::vector<double> by_function, by_tape, seeded, losses;
    int scaled = 0;
    Replicas(count, {.reduction = reduction, .threads = 1})
        .run([&](Replica) {   // one at a time, so the lists need no lock
          GradientTape tape;
          const Tensor loss = scale_loss(v * v);
          by_tape.push_back(tape.gradient(loss, v).dense().item());
          by_function.push_back(
              Optimizer::compute_gradients([&] { return v * v; })[0].gradient.dense().item());
          scaled += is_loss_scaled();
          seeded.push_back(
              Optimizer::compute_gradients([&] { return v * v; }, {.output_gradient = tensor(2.0)})[0]
                  .gradient.dense()
                  .item());
          GradientDescent none({.learning_rate = 0.0});
          const SkipAggregation own;
          losses.push_back(none.minimize([&] { return v * v; }).item());
        });
    const auto all = [n = by_tape.size()](double x) { return std::vector<double>(n, x); };
    CHECK(by_tape.size() == static_cast<std::size_t>(count));
    CHECK(by_function == all(gradient));
    CHECK(by_tape == all(gradient));
    CHECK(seeded == all(2 * gradient));
    CHECK(losses == all(9));
    CHECK(scaled == (gradient == 1.5 ? 4 : 0));
  }
  CHECK(scale_loss(v).item() == 3);
  CHECK_FALSE(is_loss_scaled());
}

TEST_CASE("SkipAggregation gives each replica its own variables", "[threads]") {
  std::vector<double> ends(kCount);
  kFour.run([&](Replica r) {
    const Variable own(tensor(1.0));
    GradientDescent descent({.learning_rate = 1.0});
    const SkipAggregation skip;
    descent.apply_gradients({{tensor(1.0 * r.index), own}});
    ends[static_cast<std::size_t>(r.index)] = own.value().item();
  });
  CHECK(ends == std::vector<double>{1, 0, -1, -2});

  const Variable v(tensor(1.0)),
      copy(tensor(1.0));   // an already summed gradient can be applied within a step
  GradientDescent outer({.learning_rate = 1.0}), inner({.learning_rate = 1.0});
  outer.add_transform([&](std::span<GradientAndVariable> pairs, std::int64_t) {
    const SkipAggregation skip;
    inner.apply_gradients({{pairs[0].gradient, copy}});
  });
  kFour.run([&](Replica) { outer.minimize([&] { return v * v; }); });
  CHECK(v.value().item() == 1 - 8);
  CHECK(copy.value().item() == 1 - 8);
}

TEST_CASE("a network that only one replica creates is not trained by all", "[threads]") {
  GradientDescent descent({.learning_rate = 1.0});
  const auto train = [&](int count) {
    Replicas(count).run([&](Replica r) {
      const Variable own(tensor(3.0), {.name = "w" + std::to_string(r.index)});
      descent.minimize([&] { return own * own; });
    });
  };
  CHECK(message_of<GradientError>([&] { train(2); }) ==
        "apply_gradients: variable \"w0\" was made by replica 0, and no other replica trains it; make "
        "variables before run, or step with SkipAggregation");
  CHECK(descent.iterations() == 0);
  train(1);
  CHECK(descent.iterations() == 1);

  std::optional<Variable> made;   // by one replica, for all
  Replicas(2).run([&](Replica r) {
    if (r.index == 0) made.emplace(tensor(3.0));
    sum_over_replicas(tensor(0.0));   // waits for it
    descent.minimize([&] { return *made * *made; });
  });
  CHECK(made->value().item() == -3);
  const Variable other(tensor(1.0));   // made is one of an earlier run, which a replica may list alone
  Replicas(2).run([&](Replica r) { descent.apply_gradients({{tensor(2.0), r.index == 0 ? *made : other}}); });
  CHECK(made->value().item() == -5);
}

TEST_CASE("tapes of the calling thread and persistent tapes of replicas do not see the step", "[threads]") {
  const Variable v(tensor(2.0));
  GradientTape outer({.persistent = true});
  const Tensor before = v * v;
  std::atomic<int> entries{0};
  GradientDescent descent({.learning_rate = 1.0});
  kFour.run([&](Replica) {
    GradientTape tape({.persistent = true});
    const Tensor loss = v * v;
    descent.apply_gradients({{tape.gradient(loss, v), v}});
    entries += tape.gradient(loss, v).dense().item() == 4;   // at the value that it has read
  });
  CHECK(entries == 4);
  CHECK(v.value().item() == 2 - 16);
  CHECK(outer.gradient(before, v).dense().item() == 4);
}

TEST_CASE("an exception of a replica ends the others and is rethrown by run", "[threads]") {
  for (const int threads : {0, 1, 2}) {
    const Replicas replicas(kCount, {.threads = threads});
    const Variable v(tensor(1.0));
    GradientDescent descent({.learning_rate = 0.0});
    std::atomic<int> steps{0}, told{0};
    const auto f = [&](Replica r) {
      for (int i = 0; i < 100; ++i) {
        if (r.index == 2 && i == 3) throw std::out_of_range("replica 2 gives up");
        try {
          descent.minimize([&] { return v * v; });
        } catch (const GradientError& e) {
          told += e.what() == "apply_gradients: replica " + std::to_string(r.index) +
                                  " stops because replica 2 has failed";
          throw;
        }
        ++steps;
      }
    };
    std::string message;
    try {
      replicas.run(f);
    } catch (const std::out_of_range& e) {
      message = e.what();
    }
    CHECK(message == "replica 2 gives up");
    CHECK(steps == 3 * kCount);
    CHECK(told == kCount - 1);
    CHECK(descent.iterations() == 3);

    replicas.run([&](Replica) { descent.minimize([&] { return v * v; }); });   // the next run works
    CHECK(descent.iterations() == 4);
  }
  CHECK_THROWS_AS(kFour.run([](Replica r) {
    if (r.index == 0) throw 7;
  }),
                  int);
}

TEST_CASE("an exception of a step is thrown on every replica", "[threads]") {
  const Variable v(tensor(1.0), {.constraint = [](const Tensor& x) -> Tensor {
                     if (x.item() < 0) throw std::runtime_error("below zero");
                     return x;
                   }});
  GradientDescent descent({.learning_rate = 1.0});
  std::atomic<int> caught{0};
  kFour.run([&](Replica) {
    try {
      descent.apply_gradients({{tensor(1.0), v}});
    } catch (const std::runtime_error& e) {
      caught += e.what() == std::string("below zero");
    }
    descent.apply_gradients({{tensor(0.125), v}});
  });
  CHECK(caught == 4);
  CHECK(v.value().item() == 0.5);
}

TEST_CASE("errors of replicas name the replica and the variable", "[threads]") {
  const Variable v(zeros({2, 3}), {.name = "dense/kernel"});
  GradientDescent descent({.learning_rate = 1.0}), other({.learning_rate = 1.0});
  const auto run = [](const std::function<void(Replica)>& f) { return [f] { kFour.run(f); }; };
  const auto gradient = [&](const Gradient& odd) {
    return run([&descent, v, odd](Replica r) {
      descent.apply_gradients({{r.index == 2 ? odd : Gradient(ones({2, 3})), v}});
    });
  };
  CHECK(message_of<ShapeError>(gradient(ones({2, 4}))) ==
        "apply_gradients: replica 2: the gradient does not fit variable \"dense/kernel\": gradient is "
        "f32[2,4], variable is f32[2,3]");
  CHECK(message_of<DTypeError>(gradient(ones({2, 3}, DType::f64))) ==
        "apply_gradients: replica 2: the gradient does not fit variable \"dense/kernel\": gradient is "
        "f64[2,3], variable is f32[2,3]");
  const std::string sparse = message_of<ShapeError>(gradient(IndexedSlices{ones({1, 3}), tensor({2})}));
  CHECK(sparse.starts_with("apply_gradients: replica 2: "));
  CHECK(sparse.find("dense/kernel") != std::string::npos);
  CHECK(v.value().to_vector() == std::vector<double>(6));
  CHECK(descent.iterations() == 0);

  CHECK(message_of<ArgumentError>(run([&](Replica) {
          descent.apply_gradients({{Gradient(), v}});
        })) ==
        "apply_gradients: no gradient reaches variable \"dense/kernel\"; compute the loss from their values "
        "by ops, while the tape records");
  CHECK(message_of<ArgumentError>(run([&](Replica) {
          descent.apply_gradients(std::initializer_list<GradientAndVariable>());
        })) == "apply_gradients: no variables given");
  CHECK(message_of<GradientError>(run([&](Replica r) {
          (r.index == 3 ? other : descent).apply_gradients({{ones({2, 3}), v}});
        })) ==
        "apply_gradients: replica 3 has another optimizer than replica 0; all replicas must take the same "
        "steps in the same order");
  CHECK(message_of<GradientError>(run([&](Replica r) {
          if (r.index == 1)
            sum_over_replicas(tensor(1.0));
          else
            descent.apply_gradients({{ones({2, 3}), v}});
        })) ==
        "sum_over_replicas: replica 1 calls this while replica 0 calls apply_gradients; all replicas must "
        "take the same steps in the same order");
  const Variable count(tensor(0), {.trainable = false});
  CHECK(message_of<GradientError>(run([&](Replica r) {
          descent.apply_gradients({{ones({2, 3}), v}}, r.index ? std::optional(count) : std::nullopt);
        })) == "apply_gradients: replica 1 has another global_step than replica 0; use one for all");
  CHECK(message_of<GradientError>(run([&](Replica r) {
          if (r.index != 1) descent.apply_gradients({{ones({2, 3}), v}});
        })) ==
        "apply_gradients: replica 0 waits for replica 1, which has ended; all replicas must take the same "
        "steps in the same order");
  CHECK(message_of<ShapeError>(run([&](Replica r) { sum_over_replicas(ones({r.index / 3 + 1})); })) ==
        "sum_over_replicas: x is f32[1] on replica 0, f32[2] on replica 3");
  CHECK(message_of<DTypeError>(run([&](Replica r) {
          sum_over_replicas(ones({1}, r.index ? DType::f64 : DType::f32));
        })) == "sum_over_replicas: x is f32[1] on replica 0, f64[1] on replica 1");
  CHECK(descent.iterations() == 0);
}

TEST_CASE("replicas cannot be nested", "[threads]") {
  CHECK(message_of<GradientError>([] { kFour.run([](Replica) { Replicas(2).run([](Replica) {}); }); }) ==
        "run: replicas are already running on this thread, and cannot be nested");
  const Variable v(tensor(1.0));
  GradientDescent descent({.learning_rate = 1.0});
  descent.add_transform(
      [](std::span<GradientAndVariable>, std::int64_t) { Replicas(2).run([](Replica) {}); });
  CHECK(message_of<GradientError>([&] {
          kFour.run([&](Replica) { descent.minimize([&] { return v * v; }); });
        }) == "run: replicas are already running on this thread, and cannot be nested");
}

TEST_CASE("replicas reject invalid options", "[threads]") {
  CHECK(message_of<ArgumentError>([] { Replicas(0); }) == "replicas: 0 replicas; use 1 or more");
  CHECK(message_of<ArgumentError>([] { Replicas(2, {.threads = -1}); }) ==
        "replicas: -1 threads; use 1 or more, or 0 for one per replica");
  CHECK(message_of<ArgumentError>([] { Replicas(2, {.reduction = static_cast<LossReduction>(2)}); }) ==
        "replicas: unknown value for reduction: 2; use LossReduction::sum or mean");
  CHECK(message_of<ArgumentError>([] { kFour.run({}); }) == "run: the replicas' function is empty");
}

TEST_CASE("running statistics cover the batches of all replicas", "[threads]") {
  const Tensor x = random::normal({24, 5}, {.seed = 1}) * 3 + 7;
  const auto run = [&](const Replicas& replicas) {
    const nn::BatchNorm norm(5, {.momentum = 0.5});
    replicas.run([&](Replica r) {
      for (int i = 0; i < 20; ++i)
        norm(part(x * (1 + i % 3), r), {.training = true});
    });
    std::vector<double> all = norm.mean.value().to_vector();
    const std::vector<double> variance = norm.variance.value().to_vector();
    all.insert(all.end(), variance.begin(), variance.end());
    return all;
  };
  const nn::BatchNorm whole(5, {.momentum = 0.5});
  for (int i = 0; i < 20; ++i)
    whole(x * (1 + i % 3), {.training = true});
  for (int count = 1; count <= 4; ++count) {
    CAPTURE(count);
    const std::vector<double> first = run(Replicas(count));
    for (int i = 0; i < 5; ++i) {
      CHECK(first[static_cast<std::size_t>(i)] ==
            Approx(whole.mean.value().to_vector()[static_cast<std::size_t>(i)]).epsilon(1e-6));
      CHECK(first[static_cast<std::size_t>(5 + i)] ==
            Approx(whole.variance.value().to_vector()[static_cast<std::size_t>(i)]).epsilon(1e-5));
    }
    for (int threads = 1; threads <= count; ++threads)
      CHECK(run(Replicas(count, {.threads = threads})) == first);
  }
}

TEST_CASE("a network with batch normalization is trained by replicas", "[threads]") {
  const auto trained = [](const Replicas& replicas) {
    const Tensor x = random::normal({32, 6}, {.seed = 1}), y = random::normal({32, 3}, {.seed = 2});
    const nn::Sequential net{nn::Dense(6, 8, {.seed = 3}), nn::BatchNorm(8), relu,
                             nn::Dense(8, 3, {.seed = 4})};
    Momentum momentum({.learning_rate = 0.1, .momentum = 0.9});
    replicas.run([&](Replica r) {
      for (int i = 0; i < 50; ++i)
        momentum.minimize([&] { return mean(square(net(part(x, r), {.training = true}) - part(y, r))); });
    });
    return net(x).to_vector();
  };
  for (int count = 1; count <= 4; ++count)
    CHECK(trained(Replicas(count)) == trained(Replicas(count, {.threads = 1})));
}

TEST_CASE("replicas train by every rule, with parts of different sizes", "[threads][optimizer]") {
  constexpr int kAll = 13;   // rows
  const Tensor x = random::normal({kAll, 6}, {.seed = 1}, DType::f64),
               y = random::normal({kAll, 3}, {.seed = 2}, DType::f64),
               ids = astype(random::uniform({kAll}, {.seed = 3}, 0, 8), DType::i32);
  const auto rows = [](const Tensor& t, Replica r) {
    return strided_slice(t, {{kAll * r.index / r.count, kAll * (r.index + 1) / r.count}});
  };
  const auto trained = [&](std::string_view rule, const Replicas& replicas) {
    const Variable w(random::normal({6, 3}, {.seed = 4}, DType::f64)),
        table(random::normal({8, 3}, {.seed = 5}, DType::f64));
    Optimizer optimizer = test::optimizer_of(rule);
    replicas.run([&](Replica r) {
      for (int i = 0; i < 5; ++i)
        optimizer.minimize([&] {
          return sum(square(tanh(matmul(rows(x, r), w)) + gather(table, rows(ids, r)) - rows(y, r)));
        });
    });
    std::vector<double> all = w.value().to_vector();
    const std::vector<double> more = table.value().to_vector();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  for (const std::string_view rule : Optimizer::rules()) {
    const std::vector<double> one = trained(rule, Replicas(1, {.reduction = LossReduction::sum}));
    for (const int count : {2, 3, 4}) {
      CAPTURE(rule, count);
      const std::vector<double> many = trained(rule, Replicas(count, {.reduction = LossReduction::sum}));
      CHECK(trained(rule, Replicas(count, {.reduction = LossReduction::sum, .threads = 1})) == many);
      double largest = 0;
      for (std::size_t i = 0; i < one.size(); ++i)
        largest = std::max(largest, std::abs(many[i] - one[i]));
      CHECK(largest < 1e-9);
    }
  }
}

TEST_CASE("replicas skip a step whose gradients are infinite on one of them", "[threads]") {
  for (const int threads : {1, 3}) {
    const Variable v(tensor(1.0f));
    GradientDescent descent({.learning_rate = 1.0});
    LossScale scale({.initial = 8, .growth_interval = 3});
    std::vector<int> seen(3);
    Replicas(3, {.reduction = LossReduction::sum, .threads = threads}).run([&](Replica r) {
      for (int i = 0; i < 5; ++i) {
        const double slope = i == 1 && r.index == 2 ? std::numeric_limits<double>::infinity() : 0.25;
        scale.minimize(descent, [&] { return v * slope; });
        seen[static_cast<std::size_t>(r.index)] += static_cast<int>(scale.value());
      }
    });
    CHECK(v.value().item() == 1 - 4 * 3 * 0.25);
    CHECK(descent.iterations() == 4);
    CHECK(scale.skipped() == 1);
    CHECK(seen == std::vector<int>(3, 8 + 4 + 4 + 4 + 8));
  }
}

TEST_CASE("replicas share one LossScale", "[threads]") {
  const Variable v(tensor(1.0f));
  GradientDescent descent({.learning_rate = 1.0});
  CHECK(message_of<GradientError>([&] {
          Replicas(2).run([&](Replica) {
            LossScale own;
            own.minimize(descent, [&] { return v * v; });
          });
        }) ==
        "loss_scale: replica 1 has another LossScale than replica 0; all replicas must take the same steps "
        "in the same order");
  CHECK(v.value().item() == 1);
}

TEST_CASE("fit: each replica has its own keys", "[threads][fit]") {
  const auto drawn = [](int count) {
    const Line line;
    GradientDescent descent({.learning_rate = 0.1});
    std::vector<double> numbers(static_cast<std::size_t>(count));
    Replicas(count).run([&](Replica r) {
      const auto loss = [&](const Line& l, const Batch& b, const nn::Run& run) {
        numbers[static_cast<std::size_t>(r.index)] = random::uniform({}, run.key).item();
        return distance(b[1], l(b[0]));
      };
      nn::fit(line, loss, descent, own_data(r),
              {.batch = kRows, .key = {.seed = 4}, .progress = nn::FitProgress::silent});
    });
    return numbers;
  };
  CHECK(drawn(1)[0] == random::uniform({}, random::Key{.seed = 4}.split(1).split(0)).item());
  const std::vector<double> two = drawn(2);
  CHECK(two[0] != two[1]);
  CHECK(two == drawn(2));
}

TEST_CASE("fit: replicas share a LossScale", "[threads][fit]") {
  const auto trained = [](LossScale* scale) {
    const Line line;
    GradientDescent descent({.learning_rate = 0.1});
    Replicas(2).run([&](Replica r) {
      nn::fit(line, distance, descent, own_data(r),
              {.epochs = 2, .batch = 8, .loss_scale = scale, .progress = nn::FitProgress::silent});
    });
    return line.slope.value().to_vector();
  };
  LossScale scale({.initial = 1024});
  CHECK(trained(&scale) == trained(nullptr));
  CHECK(scale.skipped() == 0);
}

TEST_CASE("replicas accumulate gradients, each in its own accumulator", "[threads]") {
  const Tensor x = random::normal({16, 4}, {.seed = 1}, DType::f64), y = sum(x, {1}, {.keepdims = true});
  const auto loss = [](const Line& line, const Tensor& a, const Tensor& b) {
    return mean(square(matmul(a, astype(line.slope, DType::f64)) - b));
  };
  const Line one, many;
  GradientDescent whole({.learning_rate = 0.1}), parts({.learning_rate = 0.1});
  whole.minimize([&] { return loss(one, x, y); });
  Replicas(2).run([&](Replica r) {
    GradientAccumulator accumulated;
    for (int i = 0; i < 2; ++i) {
      const Replica quarter{2 * r.index + i, 4};
      accumulated.add(
          Optimizer::compute_gradients([&] { return loss(many, part(x, quarter), part(y, quarter)); }));
    }
    parts.apply_gradients(accumulated.take_mean());
  });
  CHECK(parts.iterations() == 1);
  for (int i = 0; i < 4; ++i)
    CHECK(many.slope.value().to_vector()[static_cast<std::size_t>(i)] ==
          Approx(one.slope.value().to_vector()[static_cast<std::size_t>(i)]).epsilon(1e-6));
}

TEST_CASE("a replica cannot change a shared variable", "[threads]") {
  const Variable shared(zeros({2}), {.name = "w"}), own[2] = {Variable(zeros({2})), Variable(zeros({2}))};
  const auto message = [&](const std::function<void()>& change) {
    return message_of([&] { Replicas(2).run([&](Replica) { change(); }); });
  };
  const std::string text =
      ": variable \"w\" is shared by replicas, and this is the thread of one of them; change it in a step, "
      "or, where no other replica uses it, in the function with SkipAggregation";
  CHECK(message([&] { shared.assign(ones({2})); }) == "assign" + text);
  CHECK(message([&] { shared.assign_add(ones({2})); }) == "assign_add" + text);
  CHECK(message([&] { shared *= 2; }) == "*=" + text);
  MovingAverage average(shared);
  CHECK(message([&] { average.update(ones({2}), 0.5); }) == "assign" + text);
  const test::TemporaryFolder folder;
  Checkpoint checkpoint;
  checkpoint.add("w", shared);
  checkpoint.save(folder / "w");
  CHECK(message([&] { checkpoint.restore(folder / "w"); }) == "restore" + text);
  const SavedState state = average.state();
  CHECK(message([&] { average.restore(state); }) == "restore" + text);
  CHECK(shared.value().to_vector() == std::vector<double>{0, 0});
  Replicas(2).run([&](Replica r) {
    const Variable mine(zeros({2}));
    mine.assign(ones({2}));
    const SkipAggregation local;
    own[r.index].assign(mine.value() * r.index);
  });
  CHECK(own[1].value().to_vector() == std::vector<double>{1, 1});
  shared.assign(ones({2}));
}

TEST_CASE("gradients of halves are added in f32 among replicas", "[threads]") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Variable v(zeros({1}, dtype)), table(zeros({2, 1}, dtype));
    GradientDescent descent({.learning_rate = 1e-4});
    Replicas(2).run([&](Replica) {
      const Tensor g = full({1}, 40000.0, dtype);
      descent.apply_gradients({{g, v}, {IndexedSlices{reshape(g, {1, 1}), tensor({1}), Shape{2, 1}}, table}});
    });
    CHECK(v.value().item() == Approx(-8).epsilon(0.01));
    CHECK(table.value().at({1, 0}) == Approx(-8).epsilon(0.01));
  }
}

TEST_CASE("fit: replicas write a log once", "[threads][fit]") {
  const test::TemporaryFolder folder;
  const Line line;
  GradientDescent descent({.learning_rate = 0.1});
  TrainingLog log(folder / "log.jsonl");
  Replicas(2).run([&](Replica r) {
    nn::fit(line, distance, descent, own_data(r),
            {.epochs = 3, .log = &log, .progress = nn::FitProgress::silent});
  });
  std::ifstream text(folder / "log.jsonl");
  int lines = 0;
  for (std::string one; std::getline(text, one);)
    ++lines;
  CHECK(lines == 3);
}

}   // namespace replicas_test
