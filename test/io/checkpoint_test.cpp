// Checkpoints: a restore brings back everything or nothing; mismatches are listed; objects added after a
// deferred restore get their values then.
#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "message_of.h"
#include "tape/variable.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/tapedeck.h"
#include "temporary_folder.h"

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
           (history.defined() ? to_string(history) : "none") + std::to_string(key.seed) + " " +
           std::to_string(key.stream) + " " + std::to_string(step) + " " + std::to_string(rate);
  }
};

}   // namespace

TEST_CASE("a checkpoint brings everything back", "[checkpoint]") {
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
  CHECK(load_safetensors(path).tensors.at("step").item<std::int64_t>() == first.step);
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

TEST_CASE("what does not match is listed, and nothing changes", "[checkpoint][errors]") {
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

TEST_CASE("a restore that fails leaves everything as it was", "[checkpoint][errors]") {
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
  NamedTensors changed = load_safetensors(path).tensors;
  changed["zz"] = tensor(8.0), changed["step"] = tensor(std::int64_t{5});
  changed["history"] = tensor({9.0, 1.0});
  save_safetensors(path, changed);
  CHECK(message_of([&] { third.checkpoint.restore(path); }) == "not this one");
  CHECK(third.state() == initial);
  CHECK(thing.item() == 7);
}

TEST_CASE("what is added after a deferred restore gets its value then", "[checkpoint]") {
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

namespace {

Optimizer optimizer_of(std::string_view rule) {
  return rule == "momentum" ? Optimizer(rule, {{"learning_rate", 0.1}, {"momentum", 0.9}})
                            : Optimizer(rule, {{"learning_rate", 0.1}});
}

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

TEST_CASE("training goes on from a checkpoint bit by bit as if it had not stopped",
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

TEST_CASE("an optimizer's numbers and slots have names", "[checkpoint][optimizer]") {
  const TemporaryFolder folder;
  Training training("adam");
  training.run(1);
  training.checkpoint.save(folder / "x");
  const TensorFile file = load_safetensors(folder / "x");
  Names names;
  for (const auto& [name, tensor] : file.tensors)
    names.push_back(name);
  CHECK(names == Names{"key", "optimizer/beta1_power", "optimizer/beta2_power", "optimizer/iterations",
                       "optimizer/table/m", "optimizer/table/v", "optimizer/w/m", "optimizer/w/v", "step",
                       "table", "w"});
  CHECK(file.tensors.at("optimizer/iterations").item() == 1);

  // A slot of a different shape, and a missing one.
  NamedTensors changed = file.tensors;
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

  changed = file.tensors;
  changed["optimizer/iterations"] = tensor(0.5, DType::f64);
  save_safetensors(folder / "x", changed);
  const std::string second = training.state(folder);
  CHECK(message_of<ArgumentError>([&] { training.checkpoint.restore(folder / "x"); }) ==
        "restore: iterations of adam is 0.5; use a whole number of 0 or more");
  CHECK(training.state(folder) == second);

  // An exception after the optimizer was restored.
  training.checkpoint.add(
      "zz", [] { return tensor(0.0); },
      [](const Tensor& x) {
        if (x.item() != 0) throw ArgumentError("not this one");
      });
  const std::string third = training.state(folder);
  changed = load_safetensors(folder / "state").tensors;
  changed["zz"] = tensor(1.0), changed["optimizer/iterations"] = tensor(9.0, DType::f64),
  changed["optimizer/w/m"] = zeros({5});
  save_safetensors(folder / "x", changed);
  CHECK(message_of<ArgumentError>([&] { training.checkpoint.restore(folder / "x"); }) == "not this one");
  CHECK(training.state(folder) == third);

  const Variable other(tensor(1.0), {.name = "other"});
  training.optimizer.apply_gradients({{tensor(1.0), other}});
  CHECK(message_of([&] { training.checkpoint.save(folder / "x"); }) ==
        "save: optimizer \"optimizer\" has slots of variable \"other\", which is not in the checkpoint; add "
        "it");
  Checkpoint clash;
  std::int64_t n = 0;
  clash.add("a/iterations", n), clash.add("a", training.optimizer);
  CHECK(message_of([&] { clash.save(folder / "x"); }) == "save: there are two of the name \"a/iterations\"");
  CHECK(message_of([&] { clash.add("a", n); }) == "checkpoint: there are two of the name \"a\"");
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
  {
    Case c("ckpt-deferred-slot");
    Checkpoint root = restored();
    Variable v(tensor(0.0));
    root.add("var", v);
    c.check("var_after", v.value());
    Adam adam({.learning_rate = 0.1});
    root.add("optimizer", adam);
    c.check("m_slot", adam.slot(v, "m"));
    CHECK(adam.iterations() == 1);
    CHECK(root.waiting().empty());
  }
  {
    Case c("ckpt-slot-order-graph");
    Checkpoint root = restored();
    Adam adam({.learning_rate = 0.1});
    root.add("optimizer", adam);
    const bool waits = root.waiting() == Names{"optimizer/var/m", "optimizer/var/v", "var"};
    Variable v(tensor(0.0));
    const bool is_not_there = !adam.slot(v, "m").defined();
    root.add("var", v);
    c.holds("property", waits && is_not_there && adam.slot(v, "m").item() == 14 && v.value().item() == 12);
  }
}

TEST_CASE("names in a checkpoint are taken once", "[checkpoint][errors]") {
  Checkpoint checkpoint;
  Variable v(tensor(1.0), {.name = "v"});
  std::int64_t n = 0;
  checkpoint.add("v", v);
  CHECK(message_of([&] { checkpoint.add("v", n); }) == "checkpoint: there are two of the name \"v\"");
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
