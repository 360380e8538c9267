// Checkpoints: a restore brings back everything or nothing; mismatches are listed; objects added after a
// deferred restore get their values then.
#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "core/bytes.h"
#include "message_of.h"
#include "optim/any_rule.h"
#include "tape/variable.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/moving_average.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"
#include "tapedeck/update_rule.h"
#include "temporary_folder.h"

namespace checkpoint_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

using Names = std::vector<std::string>;

struct Run {
  Variable kernel{zeros({2, 3}), {.name = "kernel"}}, bias{zeros({3}, DType::f64), {.name = "bias"}};
  Tensor history;
  random::Key key{1, 2};
  std::int64_t step = 0;
  double rate = 0;
  Checkpoint checkpoint;

  Run() {
    checkpoint.add("dense/kernel", kernel), checkpoint.add("dense/bias", bias),
        checkpoint.add("history", history);
    checkpoint.add("key", key), checkpoint.add("step", step), checkpoint.add("rate", rate);
  }
  void train() {
    kernel.assign(random::normal({2, 3}, key)), bias.assign(tensor({1, 2, 3}, DType::f64));
    history = tensor({0.5, 0.25});
    key = {0xffff'ffff'ffff'fffe, 0x8000'0000'0000'0001};
    step = (std::int64_t{1} << 60) + 1, rate = 0.1;
  }
  std::string state() const {
    return to_string(kernel.value()) + to_string(bias.value()) +
           (history.defined() ? to_string(history) : "none") + std::to_string(std::uint64_t{key.seed}) + " " +
           std::to_string(std::uint64_t{key.stream}) + " " + std::to_string(step) + " " +
           std::to_string(rate);
  }
};

}   // namespace

TEST_CASE("a checkpoint restores everything", "[checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder / "run.safetensors";
  Run first;
  first.train();
  first.checkpoint.save(path, {{"note", "good"}});

  Run second;
  REQUIRE(second.state() != first.state());
  const RestoreReport report = second.checkpoint.restore(path);
  CHECK(second.state() == first.state());
  CHECK(report.restored == Names{"dense/bias", "dense/kernel", "history", "key", "rate", "step"});
  CHECK((report.missing.empty() && report.extra.empty() && report.different.empty()));
  CHECK(report.metadata.at("note") == "good");
  CHECK(load_safetensors(path).at("step").item<std::int64_t>() == first.step);
}

TEST_CASE("saving is not recorded, and restored variables are updated in place", "[checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder / "run.safetensors";
  const Variable w(ones({1000}));
  Checkpoint checkpoint;
  checkpoint.add("w", w);
  GradientTape tape;
  checkpoint.save(path);
  CHECK(tape.watched_variables().empty());
  checkpoint.restore(path);
  const auto* memory = w.cell().value.raw();
  w.assign_add(ones({1000}));
  CHECK(w.cell().value.raw() == memory);
}

TEST_CASE("mismatches are listed, and nothing changes", "[checkpoint][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "run.safetensors";
  Variable a(ones({2})), b(ones({3})), c(ones({4}));
  Checkpoint written;
  written.add("a", a), written.add("b", b), written.add("x", c);
  written.save(path);

  Variable a2(zeros({2})), b2(zeros({3}, DType::f64)), d2(zeros({1}));
  Checkpoint here;
  here.add("a", a2), here.add("b", b2), here.add("d", d2);
  CHECK(message_of<FileError>([&] { here.restore(path); }) ==
        "restore: " + path +
            ": does not match; missing: d; extra: x; different: \"b\" is f32[3] in run.safetensors, f64[3] "
            "here");
  CHECK(a2.value().at({0}) == 0);

  const RestoreReport report = here.restore(path, RestoreMode::partial);
  CHECK(report.restored == Names{"a"});
  CHECK(report.missing == Names{"d"});
  CHECK(report.extra == Names{"x"});
  CHECK(report.different == Names{"\"b\" is f32[3] in run.safetensors, f64[3] here"});
  CHECK((a2.value().at({0}) == 1 && b2.value().at({0}) == 0));
  CHECK(here.waiting().empty());
}

TEST_CASE("a failed restore changes nothing", "[checkpoint][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "run.safetensors";
  Run first;
  first.train();
  first.checkpoint.save(path);
  const std::string whole = text_of(path);

  Run second;
  const std::string before = second.state();
  for (std::size_t n = 0; n < whole.size(); n += 7) {
    write_text(path, whole.substr(0, n));
    REQUIRE_THROWS_AS(second.checkpoint.restore(path), FileError);
    std::string flipped = whole;
    flipped[n] = static_cast<char>(flipped[n] ^ 4);
    write_text(path, flipped);
    for (const RestoreMode mode : {RestoreMode::strict, RestoreMode::partial, RestoreMode::deferred})
      REQUIRE_THROWS_AS(second.checkpoint.restore(path, mode), FileError);
    REQUIRE(second.state() == before);
  }
  CHECK(second.checkpoint.waiting().empty());

  // A user's function throws after other objects were restored.
  write_text(path, whole);
  Run third;
  third.train();
  Tensor thing = tensor(7.0);
  third.checkpoint.add(
      "zz", [&] { return thing; },
      [&](const Tensor& x) { x.item() == 7 ? void(thing = x) : throw ArgumentError("not this one"); });
  third.checkpoint.save(path);
  const std::string initial = third.state();
  NamedTensors changed = load_safetensors(path);
  changed["zz"] = tensor(8.0), changed["step"] = tensor(std::int64_t{5});
  changed["history"] = tensor({9.0, 1.0});
  save_safetensors(path, changed);
  CHECK(message_of([&] { third.checkpoint.restore(path); }) == "not this one");
  CHECK(third.state() == initial);
  CHECK(thing.item() == 7);
}

TEST_CASE("an object added after a deferred restore gets its saved value", "[checkpoint]") {
  const TemporaryFolder folder;
  Variable v(tensor({1.0, 2.0})), u(tensor(5.0));
  Checkpoint one, two;
  one.add("v", v), one.add("u", u);
  one.save(folder / "one");
  v.assign(tensor({3.0, 4.0}));
  two.add("v", v);
  two.save(folder / "two");

  Checkpoint later;
  Variable early(tensor(0.0));
  later.add("u", early);
  const RestoreReport report = later.restore(folder / "one", RestoreMode::deferred);
  CHECK(report.extra == Names{"v"});
  CHECK(early.value().item() == 5);
  later.restore(folder / "two", RestoreMode::deferred);   // without "u"
  CHECK(later.waiting() == Names{"v"});

  Variable wrong(zeros({3})), right(zeros({2}));
  CHECK(message_of<FileError>([&] { later.add("v", wrong); }) ==
        "restore: " + (folder / "two") + ": \"v\" is f32[2] in two, f32[3] here");
  CHECK(later.waiting() == Names{"v"});
  later.add("v", right);
  CHECK(right.value().to_vector() == std::vector<double>{3, 4});
  CHECK(later.waiting().empty());

  Checkpoint forgetful;
  forgetful.restore(folder / "one", RestoreMode::deferred);
  CHECK(forgetful.waiting() == Names{"u", "v"});
  forgetful.drop_waiting();
  Variable late(tensor(0.5));
  forgetful.add("u", late);
  CHECK(late.value().item() == 0.5);
}

TEST_CASE("a rejected list leaves pending values unassigned", "[checkpoint]") {
  const TemporaryFolder folder;
  const Variable a(tensor({1.0, 2.0})), b(tensor(3.0));
  Checkpoint saved, later;
  saved.add("net", std::vector<NamedVariable>{{"a", a}, {"b", b}});
  saved.save(folder / "one");
  later.restore(folder / "one", RestoreMode::deferred);
  const Variable fits(zeros({2})), wrong(zeros({2})), right(tensor(0.0));
  CHECK(message_of<FileError>([&] {
          later.add("net", std::vector<NamedVariable>{{"a", fits}, {"b", wrong}});
        }) == "restore: " + (folder / "one") + ": \"net/b\" is f32[] in one, f32[2] here");
  CHECK(fits.value().to_vector() == std::vector<double>{0, 0});
  CHECK(later.waiting() == Names{"net/a", "net/b"});
  CHECK_THROWS_AS(later.add("net", std::vector<NamedVariable>{{"a", fits}, {"a", right}}), ArgumentError);
  CHECK_THROWS_AS(later.add("net", std::vector<NamedVariable>{{"a", fits}, {"b", fits}}), ArgumentError);
  later.add("net", std::vector<NamedVariable>{{"a", fits}, {"b", right}});
  CHECK(fits.value().to_vector() == std::vector<double>{1, 2});
  CHECK(right.value().item() == 3);
}

TEST_CASE("an object nested in another one has its own parts", "[checkpoint]") {
  const TemporaryFolder folder;
  const auto save = [&] {
    ExponentialMovingAverage averages(0.5);
    averages.apply("x", tensor(2.0));
    LossScale scale({.initial = 8});
    Checkpoint c;
    c.add("ema", averages), c.add("ema/scale", scale);
    c.save(folder / "one");
  };
  save();
  for (const bool is_deferred : {false, true}) {
    ExponentialMovingAverage averages(0.5);
    LossScale scale({.initial = 2});
    Checkpoint c;
    if (is_deferred) c.restore(folder / "one", RestoreMode::deferred);
    c.add("ema", averages), c.add("ema/scale", scale);
    if (!is_deferred) c.restore(folder / "one");
    CHECK(scale.value() == 8);
    CHECK(averages.has_average("x"));
    CHECK_FALSE(averages.has_average("scale"));
    c.save(folder / "two");
    CHECK(load_safetensors(folder / "two").size() == load_safetensors(folder / "one").size());
  }
}

TEST_CASE("an object of another kind does not prevent restoring the rest", "[checkpoint]") {
  const TemporaryFolder folder;
  const Variable w(tensor({1.0, 2.0}), {.name = "w"});
  Adam adam({.learning_rate = 0.1});
  adam.apply_gradients({{ones({2}), w}});
  Checkpoint saved, later;
  saved.add("rule", adam), saved.add("w", w);
  saved.save(folder / "one");
  AdamW other({.learning_rate = 0.1});
  later.add("rule", other);
  CHECK(later.restore(folder / "one", RestoreMode::deferred).different.size() == 1);
  CHECK(later.waiting() == Names{"w"});
  const Variable here(zeros({2}));
  later.add("w", here);
  CHECK(here.value().to_vector() == w.value().to_vector());
}

namespace {

/// A training run with dense and sparse gradients that depend on the step.
struct Training {
  Variable w{linspace(1, 2, 5), {.name = "w"}},
      table{reshape(linspace(-1, 1, 12, DType::f64), {4, 3}), {.name = "table"}};
  Optimizer optimizer;
  std::int64_t step = 0;
  random::Key key{.seed = 4};
  Checkpoint checkpoint;

  explicit Training(std::string_view rule) : optimizer(optimizer_of(rule)) {
    checkpoint.add("w", w), checkpoint.add("table", table), checkpoint.add("optimizer", optimizer),
        checkpoint.add("step", step), checkpoint.add("key", key);
  }
  void run(std::int64_t steps) {
    for (const std::int64_t end = step + steps; step < end; ++step) {
      const random::Key now = key.split(0);
      key = key.split(1);
      optimizer.apply_gradients({{random::normal({5}, now), w},
                                 {IndexedSlices{random::normal({2, 3}, now, DType::f64),
                                                tensor({step % 4, std::int64_t{1}}), Shape{4, 3}},
                                  table}});
    }
  }
  std::string state(const TemporaryFolder& folder) const {
    checkpoint.save(folder / "state");
    return text_of(folder / "state");
  }
};

}   // namespace

TEST_CASE("training continues from a checkpoint with the bits of an uninterrupted run",
          "[checkpoint][optimizer]") {
  const TemporaryFolder folder;
  for (const std::string_view rule : Optimizer::rules()) {
    INFO(rule);
    Training whole(rule);
    whole.run(6);
    Training first(rule);
    first.run(3);
    first.checkpoint.save(folder / "half");
    // A separate process, which knows nothing but the file.
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        Training second(rule);
        second.checkpoint.restore(folder / "half");
        second.run(3);
        second.checkpoint.save(folder / "end");
        _exit(0);
      } catch (...) {
        _exit(1);
      }
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    CHECK(text_of(folder / "end") == whole.state(folder));

    // Restores a state from before the first step, without slots, over a state that has slots.
    Training third(rule);
    const std::string start = third.state(folder);
    third.checkpoint.save(folder / "start");
    third.run(2);
    third.checkpoint.restore(folder / "start");
    CHECK(third.state(folder) == start);
  }
}

namespace {

/// Everything that keeps a state between steps besides optimizers. `step` chooses the values.
struct Averages {
  Variable w{linspace(1, 2, 5), {.name = "w"}}, table{zeros({4, 3}), {.name = "table"}},
      unused{zeros({2}), {.name = "unused"}}, followed{zeros({3}), {.name = "followed"}},
      plain_followed{ones({3}, DType::f64), {.name = "plain"}};
  MovingAverage debiased{followed}, plain{plain_followed, {.zero_debias = false}};
  WeightedMovingAverage weighted{0.7};
  ExponentialMovingAverage averages{0.9}, debiased_averages{0.8, {.zero_debias = true}};
  LossScale scale{{.initial = 8, .growth_interval = 3}};
  GradientAccumulator accumulator;
  GradientDescent descent{{.learning_rate = 0.1}};
  std::int64_t step = 0;
  Tensor mean = zeros({3});   // of the weighted average
  Checkpoint checkpoint;

  Averages() {
    checkpoint.add("w", w), checkpoint.add("table", table), checkpoint.add("unused", unused);
    checkpoint.add("debiased", debiased), checkpoint.add("plain", plain);
    checkpoint.add("weighted", weighted), checkpoint.add("averages", averages);
    checkpoint.add("debiased_averages", debiased_averages);
    checkpoint.add("scale", scale), checkpoint.add("accumulator", accumulator);
    checkpoint.add("descent", descent), checkpoint.add("step", step), checkpoint.add("mean", mean);
  }
  void run(std::int64_t steps) {
    for (const std::int64_t end = step + steps; step < end; ++step) {
      const random::Key key = random::Key{.seed = 7}.split(static_cast<std::uint64_t>(step));
      const Tensor x = random::normal({3}, key);
      debiased.update(x, 0.9), plain.update(astype(x, DType::f64), 0.8);
      mean = weighted.update(x, abs(x) + 1);
      averages.apply(std::vector{w, table}, step), averages.apply("x", x), averages.apply("deep/x", x * x);
      debiased_averages.apply("loss", sum(x));
      const double bad = step % 4 == 3 ? INFINITY : 1;
      std::vector<GradientAndVariable> pairs = {
          {random::normal({5}, key.split(1)) * bad, w},
          {Gradient(), unused},
          {IndexedSlices{random::normal({2, 3}, key.split(2)), tensor({step % 4, std::int64_t{1}})}, table}};
      if (step % 2) std::reverse(pairs.begin(), pairs.end());
      if (!scale.unscale(pairs)) continue;
      accumulator.add(pairs);
      if (accumulator.count() == 3) descent.apply_gradients(accumulator.take_mean());
    }
  }
  std::string state(const TemporaryFolder& folder) const {
    checkpoint.save(folder / "state");
    return text_of(folder / "state");
  }
};

}   // namespace

TEST_CASE("averages, loss scales and sums of gradients continue from a checkpoint bit by bit",
          "[checkpoint]") {
  const TemporaryFolder folder;
  constexpr std::int64_t kSteps = 9;
  Averages whole;
  whole.run(kSteps);
  const std::string end = whole.state(folder);
  for (std::int64_t stop = 0; stop < kSteps; ++stop) {
    INFO("stopped after step " << stop);
    Averages first;
    first.run(stop);
    const std::string middle = first.state(folder);
    first.checkpoint.save(folder / "middle");

    Averages second, used;
    second.checkpoint.restore(folder / "middle");
    CHECK(second.state(folder) == middle);
    second.run(kSteps - stop);
    CHECK(second.state(folder) == end);
    used.run(4);   // has averages, sums and slots that the file may lack
    used.checkpoint.restore(folder / "middle");
    CHECK(used.state(folder) == middle);
    used.run(kSteps - stop);
    CHECK(used.state(folder) == end);

    // Objects and variables that are added later.
    Averages third;
    const auto add_all = [&](Checkpoint& c) {
      c.add("averages", third.averages), c.add("accumulator", third.accumulator);
      c.add("debiased_averages", third.debiased_averages), c.add("weighted", third.weighted);
      c.add("w", third.w), c.add("scale", third.scale), c.add("table", third.table);
      c.add("debiased", third.debiased), c.add("plain", third.plain), c.add("unused", third.unused);
      c.add("descent", third.descent), c.add("step", third.step), c.add("mean", third.mean);
    };
    Checkpoint later;
    later.restore(folder / "middle", RestoreMode::deferred);
    add_all(later);
    CHECK(later.waiting().empty());
    CHECK(third.state(folder) == middle);
  }
}

TEST_CASE("averages keep their variables, and have names in a checkpoint", "[checkpoint]") {
  const TemporaryFolder folder;
  Averages run;
  run.run(2);
  run.checkpoint.save(folder / "x");
  Names names;
  for (const auto& [name, tensor] : load_safetensors(folder / "x"))
    if (name.find('/') != std::string::npos) names.push_back(name);
  CHECK(names == Names{"accumulator/count",
                       "accumulator/table/indices",
                       "accumulator/table/place",
                       "accumulator/table/values",
                       "accumulator/unused/place",
                       "accumulator/w/place",
                       "accumulator/w/sum",
                       "averages/deep/x/value",
                       "averages/table/average",
                       "averages/w/average",
                       "averages/x/value",
                       "debiased/biased",
                       "debiased/left",
                       "debiased/value",
                       "debiased_averages/loss/biased",
                       "debiased_averages/loss/left",
                       "debiased_averages/loss/value",
                       "descent/iterations",
                       "plain/value",
                       "scale/good",
                       "scale/skipped",
                       "scale/value",
                       "weighted/denominator",
                       "weighted/numerator"});
  const Variable average = run.averages.average(run.w), of_x = run.averages.average("x");
  const Tensor before = average.value(), before_x = of_x.value();
  run.run(3);
  run.checkpoint.restore(folder / "x");
  CHECK(run.averages.average(run.w) == average);
  CHECK(run.averages.average("x") == of_x);
  CHECK(average.value().to_vector() == before.to_vector());
  CHECK(of_x.value().to_vector() == before_x.to_vector());

  // Unlike what is here: nothing changes.
  const std::string state = run.state(folder);
  const auto restored = [&](const std::string& name, const Tensor& x,
                            RestoreMode mode = RestoreMode::strict) {
    NamedTensors changed = load_safetensors(folder / "state");
    changed["step"] = tensor(std::int64_t{77});
    x.defined() ? void(changed[name] = x) : void(changed.erase(name));
    save_safetensors(folder / "changed", changed);
    const std::string message = message_of([&] { run.checkpoint.restore(folder / "changed", mode); });
    if (message != "no error") CHECK(run.state(folder) == state);
    return message;
  };
  const std::string mismatch = "restore: " + (folder / "changed") + ": does not match; ";
  CHECK(restored("averages/w/average", zeros({4})) ==
        mismatch + "different: slot \"average\" of \"w\" is f32[4] in changed, f32[5] here");
  CHECK(restored("scale/good", Tensor()) == mismatch + "missing: scale/good");
  CHECK(restored("debiased/biased", Tensor()) == mismatch + "missing: debiased/biased");
  CHECK(restored("plain/biased", zeros({3})) == mismatch + "extra: plain/biased");
  CHECK(restored("averages/x/biased", zeros({3})) == mismatch + "extra: averages/x/biased");
  const std::string refused = "restore: " + (folder / "changed") + ": ";
  CHECK(restored("accumulator/count", tensor(0.5, DType::f64)) ==
        refused + "\"accumulator\": count of gradient_accumulator is 0.5; use a whole number of 0 or more");
  CHECK(restored("scale/value", tensor(-1, DType::f64)) ==
        refused + "\"scale\": value of loss_scale is -1; use a finite number above 0");
  CHECK(restored("debiased/left", tensor(2, DType::f64)) ==
        refused + "\"debiased\": left of moving_average is 2; use a number from 0 to 1");
  CHECK(restored("weighted/numerator", Tensor()) ==
        refused + "\"weighted\": tensor \"numerator\" of weighted_moving_average is missing");
  CHECK(restored("averages/x/value", tensor({1, 2})) ==
        refused +
            "\"averages\": \"x/value\" of exponential_moving_average is missing, or neither f32 nor f64");
  CHECK(restored("accumulator/w/sum", zeros({4})) ==
        refused + "\"accumulator\": variable \"w\" is f32[5], its sum is f32[4]");
  CHECK(restored("accumulator/table/values", Tensor()) ==
        refused +
            "\"accumulator\": gradient_accumulator: variable \"table\" has only one of values and indices, "
            "or a sum in addition to them");
  CHECK(restored("accumulator/w/place", Tensor()) ==
        refused +
            "\"accumulator\": gradient_accumulator: the place of variable \"w\" is missing, or is not an i64 "
            "scalar");
  for (const auto& [place, text] : {std::pair(std::int64_t{-1}, "-1"), {INT64_MAX, "9.223372036854776e+18"}})
    CHECK(restored("accumulator/w/place", tensor(place)) ==
          refused + "\"accumulator\": the place of variable \"w\" of gradient_accumulator is " + text +
              "; use a whole number of 0 or more");
  CHECK(restored("scale/good", Tensor(), RestoreMode::partial) == "no error");
  CHECK(run.step == 77);
}

TEST_CASE("a user-defined object has a state in a checkpoint", "[checkpoint]") {
  struct Meter {
    double sum = 0;
    SavedState state() const { return {.scalars = {{"sum", sum}}}; }
    Commit prepare_restore(const SavedState& s) {
      return [this, restored = s.scalars.at(0).value] { sum = restored; };
    }
  };
  const TemporaryFolder folder;
  Meter first{2.5}, second;
  Checkpoint one, two;
  one.add("meter", first), two.add("meter", second);
  one.save(folder / "x");
  CHECK(two.restore(folder / "x").restored == Names{"meter/sum"});
  CHECK(second.sum == 2.5);
}

// Slots of a rule of tensors may have shapes of their own.
TEST_CASE("slots whose spec is not the variable's are restored if the rule declares them so",
          "[checkpoint][optimizer]") {
  static constexpr UpdateRule kRule = {
      .name = "with_mean",
      .slots = {{"mean", [](const Tensor&, const Hyperparameters&) { return zeros({}, DType::f64); }}},
      .dense = [](const Step&, Tensor& x, std::span<Tensor> slots, const Tensor& g) {
        slots[0] = slots[0] + astype(mean(g), DType::f64);
        x = x - g * astype(slots[0], DType::f32);
      }};
  const TemporaryFolder folder;
  struct Run {
    Variable w{zeros({3}), {.name = "w"}};
    Optimizer optimizer{kRule};
    Checkpoint checkpoint;
    Run() { checkpoint.add("w", w), checkpoint.add("o", optimizer); }
  } first, second;
  first.optimizer.apply_gradients({{tensor({1.0, 2.0, 4.0}), first.w}});
  first.checkpoint.save(folder / "x");
  second.checkpoint.restore(folder / "x");
  CHECK(second.optimizer.slot(second.w, "mean").item() == first.optimizer.slot(first.w, "mean").item());
}

TEST_CASE("an optimizer's numbers and slots have names", "[checkpoint][optimizer]") {
  const TemporaryFolder folder;
  Training training("adam");
  training.run(1);
  training.checkpoint.save(folder / "x");
  const NamedTensors saved = load_safetensors(folder / "x");
  Names names;
  for (const auto& [name, tensor] : saved)
    names.push_back(name);
  CHECK(names == Names{"key", "optimizer/beta1_power", "optimizer/beta2_power", "optimizer/iterations",
                       "optimizer/table/m", "optimizer/table/v", "optimizer/w/m", "optimizer/w/v", "step",
                       "table", "w"});
  CHECK(saved.at("optimizer/iterations").item() == 1);

  // A slot of a different shape, and a missing one.
  NamedTensors changed = saved;
  changed["optimizer/w/m"] = zeros({4});
  changed.erase("optimizer/w/v"), changed.erase("optimizer/beta1_power");
  save_safetensors(folder / "x", changed);
  const std::string before = training.state(folder);
  CHECK(message_of<FileError>([&] { training.checkpoint.restore(folder / "x"); }) ==
        "restore: " + (folder / "x") +
            ": does not match; missing: optimizer/beta1_power; different: slot \"m\" of \"w\" is f32[4] in "
            "x, f32[5] here");
  CHECK(training.state(folder) == before);
  training.run(1);
  CHECK(training.checkpoint.restore(folder / "x", RestoreMode::partial).missing ==
        Names{"optimizer/beta1_power"});
  CHECK(training.optimizer.iterations() == 1);
  CHECK(training.optimizer.slot(training.w, "m").defined());

  changed = saved;
  changed["optimizer/iterations"] = tensor(0.5, DType::f64);
  save_safetensors(folder / "x", changed);
  const std::string second = training.state(folder);
  CHECK(message_of<FileError>([&] { training.checkpoint.restore(folder / "x"); }) ==
        "restore: " + (folder / "x") +
            ": \"optimizer\": iterations of adam is 0.5; use a whole number of 0 or more");
  CHECK(training.state(folder) == second);

  // An exception after the optimizer was restored.
  training.checkpoint.add(
      "zz", [] { return tensor(0.0); },
      [](const Tensor& x) {
        if (x.item() != 0) throw ArgumentError("not this one");
      });
  const std::string third = training.state(folder);
  changed = load_safetensors(folder / "state");
  changed["zz"] = tensor(1.0), changed["optimizer/iterations"] = tensor(9.0, DType::f64),
  changed["optimizer/w/m"] = zeros({5});
  save_safetensors(folder / "x", changed);
  CHECK(message_of<ArgumentError>([&] { training.checkpoint.restore(folder / "x"); }) == "not this one");
  CHECK(training.state(folder) == third);

  const Variable other(tensor(1.0), {.name = "other"});
  training.optimizer.apply_gradients({{tensor(1.0), other}});
  CHECK(message_of([&] { training.checkpoint.save(folder / "x"); }) ==
        "save: \"optimizer\" has slots of variable \"other\", which is not in the checkpoint; add it");
  Checkpoint clash;
  std::int64_t n = 0;
  clash.add("a/iterations", n), clash.add("a", training.optimizer);
  CHECK(message_of([&] { clash.save(folder / "x"); }) == "save: the name \"a/iterations\" is used twice");
  CHECK(message_of([&] { clash.add("a", n); }) == "checkpoint: the name \"a\" is used twice");
}

TEST_CASE("cases: slots restored before there are variables and optimizers",
          "[checkpoint][optimizer][cases]") {
  const TemporaryFolder folder;
  {
    Variable v(tensor(0.0));
    Adam adam({.learning_rate = 0.1});
    Checkpoint root;
    root.add("var", v);
    adam.minimize([&] { return v * 1.0; });
    v.assign(tensor(12.0));
    root.save(folder / "a");
    root.add("optimizer", adam);
    v.assign(tensor(13.0));
    adam.restore_slot(v, "m", tensor(14.0));
    root.save(folder / "b");
  }
  const auto restored = [&] {
    Checkpoint root;
    root.restore(folder / "b", RestoreMode::deferred);
    root.restore(folder / "a", RestoreMode::deferred);
    return root;
  };
  check_case("ckpt-deferred-slot", [&](Case& c) {
    Checkpoint root = restored();
    const Variable v = c.variable(tensor(0.0));
    root.add("var", v);
    c.check("var_after", v.value());
    Adam& adam = c.keep([&] { return Adam({.learning_rate = 0.1}); });
    root.add("optimizer", adam);
    c.check("m_slot", adam.slot(v, "m"));
    CHECK(adam.iterations() == 1);
    CHECK(root.waiting().empty());
  });
  check_case("ckpt-slot-order-graph", [&](Case& c) {
    Checkpoint root = restored();
    Adam& adam = c.keep([&] { return Adam({.learning_rate = 0.1}); });
    root.add("optimizer", adam);
    const bool waits = root.waiting() == Names{"optimizer/var/m", "optimizer/var/v", "var"};
    const Variable v = c.variable(tensor(0.0));
    const bool is_not_there = !adam.slot(v, "m").defined();
    root.add("var", v);
    c.holds("property", waits && is_not_there && adam.slot(v, "m").item() == 14 && v.value().item() == 12);
  });
}

TEST_CASE("names in a checkpoint are unique", "[checkpoint][errors]") {
  Checkpoint checkpoint;
  Variable v(tensor(1.0), {.name = "v"});
  std::int64_t n = 0;
  checkpoint.add("v", v);
  CHECK(message_of([&] { checkpoint.add("v", n); }) == "checkpoint: the name \"v\" is used twice");
  CHECK(message_of([&] { checkpoint.add("w", v); }) ==
        "checkpoint: variable \"w\" was added before, as \"v\"");
  CHECK(message_of([&] { checkpoint.add("f", {}, [](const Tensor&) {}); }) ==
        "checkpoint: \"f\" has no function to read it");
  Tensor undefined;
  checkpoint.add("t", undefined);
  const TemporaryFolder folder;
  CHECK(message_of([&] { checkpoint.save(folder / "x"); }) == "save: \"t\" is undefined");
  CHECK(folder.files() == 0);
}

TEST_CASE("a folder keeps the last checkpoints", "[checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder / "deep/run";
  const CheckpointFolder checkpoints(path, {.keep_last = 3});
  CHECK_FALSE(checkpoints.latest());
  CHECK(checkpoints.steps().empty());

  std::int64_t step = 0;
  Checkpoint checkpoint;
  checkpoint.add("step", step);
  for (step = 0; step < 12; step += 2)
    CHECK(checkpoints.save(checkpoint, step) == path + "/step-" + std::to_string(step) + ".safetensors");
  CHECK(checkpoints.steps() == std::vector<std::int64_t>{6, 8, 10});
  CHECK(checkpoints.latest() == path + "/step-10.safetensors");
  checkpoint.restore(*checkpoints.latest());
  CHECK(step == 10);

  // Other files are left alone; the file saved last is kept, even if its number is lower.
  for (const char* name : {"step-07.safetensors", "step-.safetensors", "step-5.txt", "other-1.safetensors",
                           "step-99999999999999999999.safetensors", "step--1.safetensors"})
    write_text(path + "/" + name, "x");
  write_text(path + "/step-3.safetensors.partial", "what a killed process has left");
  checkpoints.save(checkpoint, 1);
  CHECK(checkpoints.steps() == std::vector<std::int64_t>{1, 6, 8, 10});
  CHECK_FALSE(std::filesystem::exists(path + "/step-3.safetensors.partial"));
  CHECK(std::filesystem::exists(path + "/step-07.safetensors"));

  const CheckpointFolder all(path, {.keep_last = 0, .prefix = "all"});
  for (step = 0; step < 8; ++step)
    all.save(checkpoint, step);
  CHECK(all.steps().size() == 8);
  CHECK(message_of([&] { all.save(checkpoint, -1); }) == "checkpoint_folder: step is -1; use 0 or more");
  CHECK(message_of([] { CheckpointFolder("x", {.keep_last = -1}); }) ==
        "checkpoint_folder: keep_last is -1; use 0, for all, or more");
  CHECK(message_of([] { CheckpointFolder("x", {.prefix = "a/b"}); }) ==
        "checkpoint_folder: the prefix has a slash: \"a/b\"");
}

TEST_CASE("checkpoints of several prefixes in a folder do not mix", "[checkpoint]") {
  const TemporaryFolder folder;
  Checkpoint checkpoint;
  std::int64_t step = 0;
  checkpoint.add("step", step);
  const std::vector<std::string> prefixes = {"", "-", "run", "run-", "run1-", "run-2-", "run."};
  const auto folder_of = [&](const std::string& prefix) {
    return CheckpointFolder(folder.path(), {.keep_last = 2, .prefix = prefix});
  };
  for (step = 9; step < 13; ++step)
    for (const std::string& prefix : prefixes)
      folder_of(prefix).save(checkpoint, step);
  for (const std::string& prefix : prefixes) {
    INFO(prefix);
    write_text(folder / (prefix + "3.safetensors.partial"), "x");
  }
  folder_of("run").save(checkpoint, 13);
  CHECK(folder_of("run").steps() == std::vector<std::int64_t>{12, 13});
  for (const std::string& prefix : prefixes) {
    INFO(prefix);
    if (prefix != "run") CHECK(folder_of(prefix).steps() == std::vector<std::int64_t>{11, 12});
    CHECK(std::filesystem::exists(folder / (prefix + "3.safetensors.partial")) == (prefix != "run"));
  }
  for (const char* prefix : {"run1", "run-2", "0"})
    CHECK(message_of<ArgumentError>([&] { folder_of(prefix); }) ==
          std::string("checkpoint_folder: the prefix ends with a digit, and step numbers follow it: \"") +
              prefix + "\"; use one such as \"" + prefix + "-\"");
}

}   // namespace checkpoint_test
