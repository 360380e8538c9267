// Checkpoints: what is added comes back, all of it or nothing; what does not match is listed; what comes later gets its value then.
#include <catch2/catch.hpp>

#include "message_of.h"
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
    checkpoint.add("dense/kernel", kernel), checkpoint.add("dense/bias", bias), checkpoint.add("history", history);
    checkpoint.add("key", key), checkpoint.add("step", step), checkpoint.add("rate", rate);
  }
  void train() {
    kernel.assign(random::normal({2, 3}, key)), bias.assign(tensor({1, 2, 3}, DType::f64));
    history = tensor({0.5, 0.25});
    key = {0xffff'ffff'ffff'fffe, 0x8000'0000'0000'0001};
    step = (std::int64_t{1} << 60) + 1, rate = 0.1;
  }
  std::string state() const {
    return to_string(kernel.value()) + to_string(bias.value()) + (history.defined() ? to_string(history) : "none") + std::to_string(key.seed) + " " + std::to_string(key.stream) + " " + std::to_string(step) + " " + std::to_string(rate);
  }
};

}  // namespace

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
  const auto* memory = w.value().raw();
  w.assign_add(ones({1000}));
  CHECK(w.value().raw() == memory);
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
  CHECK(message_of([&] { here.restore(path); }) ==
        "restore: " + path + ": does not match; missing: d; extra: x; different: \"b\" is f32[3] in " + path + ", f64[3] here");
  CHECK(a2.value().at({0}) == 0);

  const RestoreReport report = here.restore(path, RestoreMode::partial);
  CHECK(report.restored == Names{"a"});
  CHECK(report.missing == Names{"d"});
  CHECK(report.extra == Names{"x"});
  CHECK(report.different == Names{"\"b\" is f32[3] in " + path + ", f64[3] here"});
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
    for (const RestoreMode mode : {RestoreMode::strict, RestoreMode::partial, RestoreMode::deferred}) REQUIRE_THROWS_AS(second.checkpoint.restore(path, mode), FileError);
    REQUIRE(second.state() == before);
  }
  CHECK(second.checkpoint.waiting().empty());

  // What a user's function throws, after others were assigned.
  write_text(path, whole);
  Run third;
  third.train();
  Tensor thing = tensor(7.0);
  third.checkpoint.add("zz", [&] { return thing; }, [&](const Tensor& x) { x.item() == 7 ? void(thing = x) : throw ArgumentError("not this one"); });
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
  CHECK(message_of([&] { later.add("v", wrong); }) == "restore: " + (folder / "two") + ": \"v\" is f32[2] in " + (folder / "two") + ", f32[3] here");
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

TEST_CASE("names in a checkpoint are taken once", "[checkpoint][errors]") {
  Checkpoint checkpoint;
  Variable v(tensor(1.0), {.name = "v"});
  std::int64_t n = 0;
  checkpoint.add("v", v);
  CHECK(message_of([&] { checkpoint.add("v", n); }) == "checkpoint: there are two of the name \"v\"");
  CHECK(message_of([&] { checkpoint.add("w", v); }) == "checkpoint: variable \"w\" was added before, as \"v\"");
  CHECK(message_of([&] { checkpoint.add("f", {}, [](const Tensor&) {}); }) == "checkpoint: \"f\" has no function to read it");
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
  for (step = 0; step < 12; step += 2) CHECK(checkpoints.save(checkpoint, step) == path + "/step-" + std::to_string(step) + ".safetensors");
  CHECK(checkpoints.steps() == std::vector<std::int64_t>{6, 8, 10});
  CHECK(checkpoints.latest() == path + "/step-10.safetensors");
  checkpoint.restore(*checkpoints.latest());
  CHECK(step == 10);

  // Other files are none of its business; what was saved last stays, even if its number is lower.
  for (const char* name : {"step-07.safetensors", "step-.safetensors", "step-5.txt", "other-1.safetensors", "step-99999999999999999999.safetensors", "step--1.safetensors"}) write_text(path + "/" + name, "x");
  write_text(path + "/step-3.safetensors.partial", "what a killed process has left");
  checkpoints.save(checkpoint, 1);
  CHECK(checkpoints.steps() == std::vector<std::int64_t>{1, 6, 8, 10});
  CHECK_FALSE(std::filesystem::exists(path + "/step-3.safetensors.partial"));
  CHECK(std::filesystem::exists(path + "/step-07.safetensors"));

  const CheckpointFolder all(path, {.keep_last = 0, .prefix = "all"});
  for (step = 0; step < 8; ++step) all.save(checkpoint, step);
  CHECK(all.steps().size() == 8);
  CHECK(message_of([&] { all.save(checkpoint, -1); }) == "checkpoint_folder: step is -1; use 0 or more");
  CHECK(message_of([] { CheckpointFolder("x", {.keep_last = -1}); }) == "checkpoint_folder: keep_last is -1; use 0, for all, or more");
  CHECK(message_of([] { CheckpointFolder("x", {.prefix = "a/b"}); }) == "checkpoint_folder: the prefix has a slash: \"a/b\"");
}
