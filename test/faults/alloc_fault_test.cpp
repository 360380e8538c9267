// Makes every single allocation fail in turn, once or from then on: only std::bad_alloc is thrown, nothing
// leaks, and tapes, variables and optimizers stay unchanged. OpenBLAS, TBB and the C++ runtime allocate with
// malloc at first use, and abort if that fails, so everything runs once beforehand.
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "closeness.h"
#include "core/sanitizers.h"
#include "faults/faulty_memory.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/compile.h"
#include "tapedeck/csv.h"
#include "tapedeck/dataset.h"
#include "tapedeck/debug.h"
#include "tapedeck/distribute.h"
#include "tapedeck/gradient_transform.h"
#include "tapedeck/moving_average.h"
#include "tapedeck/npy.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"
#include "tapedeck/training_log.h"
#include "tapedeck/update_rule.h"
#include "temporary_folder.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

using Tensors = std::vector<Tensor>;
constexpr bool kBlocksAreReused = !kSanitized;

// Handles of tensors come from slabs, whose free handles the thread keeps. To count free handles, take them
// until the library allocates another slab; all but a few stay taken.
constexpr std::int64_t kSlab = 64, kSlabBytes = kSlab * static_cast<std::int64_t>(sizeof(detail::Block));
std::int64_t slabs() { return aligned_allocations(kSlabBytes); }

Tensors& taken() {
  static Tensors list;
  return list;
}
/// Leaves the thread with that many free handles.
void leave_handles(std::int64_t count) {
  if (!kBlocksAreReused) return;
  taken().reserve(1 << 20);
  for (const std::int64_t before = slabs(); slabs() == before;)
    taken().push_back(tensor(1.0));
  for (std::int64_t i = 1; i < kSlab; ++i)
    taken().push_back(tensor(1.0));
  taken().resize(taken().size() - static_cast<std::size_t>(count));
}
std::int64_t handles_in_use() {
  leave_handles(0);
  const std::int64_t used = kSlab * slabs() - static_cast<std::int64_t>(taken().size());
  taken().resize(taken().size() - kSlab);
  return used;
}

struct Usage {
  std::int64_t bytes = live_bytes(), blocks = 0, handles = 0;
  Usage() {
    if (kBlocksAreReused) handles = handles_in_use();
    release_buffers();
    blocks = blocks_in_use() - (kBlocksAreReused ? slabs() : 0);
  }
};

/// The operation to attempt, and a check of the state afterwards.
struct Scenario {
  std::function<void()> attempt;
  std::function<bool(bool succeeded)> check;
};
/// Makes a fresh scenario.
using MakeScenario = std::function<Scenario()>;

using Then = NoMemory::Then;

/// Makes allocation n of the attempt fail, or, with n < 0, the first handle that needs a new slab. Returns
/// what is wrong afterwards; sets whether an allocation failed at all. Uses no Catch2 macros meanwhile,
/// because they allocate.
const char* try_with(const MakeScenario& make, int n, std::int64_t handles_left, Then then, bool& happened) {
  const Usage before;
  {
    const Scenario s = make();
    bool succeeded = false, another = false;
    release_buffers();   // otherwise there would be nothing to allocate
    {
      leave_handles(handles_left);
      const NoMemory fault(std::max(n, 0), then, n < 0 ? kSlabBytes : 0);
      try {
        s.attempt();
        succeeded = true;
      } catch (const std::bad_alloc&) {
      } catch (...) {
        another = true;
      }
      happened = fault.happened();
    }
    if (another) return "another exception came out";
    if (!succeeded && !happened) return "it failed although there was memory";
    if (!s.check(succeeded)) return succeeded ? "a wrong result" : "something changed";
  }
  const Usage after;
  if (after.bytes != before.bytes) return "buffers are lost";
  if (after.handles != before.handles) return "handles are lost";
  return after.blocks != before.blocks ? "memory is lost" : nullptr;
}

/// Returns the number of allocations.
int check_every_allocation(const MakeScenario& make) {
  make().attempt();   // allocations that happen once per process
  int n = 0;
  for (const Then then : {Then::recovers, Then::stays}) {
    const auto fails_at = [&](int n, std::int64_t handles_left) {
      bool happened = false;
      const char* wrong = try_with(make, n, handles_left, then, happened);
      INFO("allocation " << n << (then == Then::stays ? " and all further ones, " : ", ") << handles_left
                         << " handles left: " << (wrong ? wrong : ""));
      REQUIRE(wrong == nullptr);
      return happened;
    };
    for (n = 0; fails_at(n, kSlab); ++n) {}
    // The first handle fails, then the second one, and so on.
    std::int64_t left = 0;
    while (kBlocksAreReused && left < kSlab && fails_at(-1, left))
      ++left;
  }
  return n;
}

/// Gradients of a persistent tape, which must be the same after a failure.
Tensors dense(const std::vector<Gradient>& gradients) {
  Tensors all;
  for (const Gradient& g : gradients)
    all.push_back(g.dense());
  return all;
}
bool same(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}

/// check_every_allocation of work, which must give the same tensors after a failure.
int check_every_allocation_of(const std::function<Tensors()>& work) {
  const Tensors expected = work();
  return check_every_allocation([&] {
    const auto y = std::make_shared<Tensors>();
    return Scenario{
        .attempt = [&work, y] { *y = work(); },
        .check =
            [&, y](bool succeeded) { return (!succeeded || same(*y, expected)) && same(work(), expected); }};
  });
}

const Shape kShape = {20, 30};
Tensor some(const Shape& shape, std::uint64_t seed) { return random::normal(shape, {.seed = seed}); }

}   // namespace

TEST_CASE("out of memory while ops are recorded", "[fault]") {
  struct State {
    Tensor x = some(kShape, 1), row = some({30}, 2);
    Variable v{some(kShape, 3)}, other{some({30}, 4)};
    GradientTape tape{{.persistent = true}};
    Tensor loss, more;
    Tensors expected;
    std::size_t entries = 0;

    State() {
      tape.watch(x), tape.watch(row);
      loss = sum(exp(x * v) + row);
      other.value();   // the tape keeps a read as long as its value lives
      expected = gradients();
      entries = tape.size();
    }
    Tensors gradients() {
      const StopRecording pause;
      return dense(tape.gradient(Targets(loss), Sources{x, v, row}));
    }
  };
  CHECK(check_every_allocation([] {
          const auto s = std::make_shared<State>();
          return Scenario{
              .attempt =
                  [s] {
                    s->more = concat({tanh(s->x) * s->other, softmax(s->v),
                                      gather(s->x, tensor({1, 0}, DType::i64)), exp(s->v * 2)},
                                     0);
                  },
              .check =
                  [s](bool succeeded) {
                    if (succeeded == (s->tape.size() == s->entries) || !same(s->gradients(), s->expected))
                      return false;
                    s->more = {};
                    if (s->tape.size() != s->entries) return false;
                    s->loss = sum(exp(s->x * s->v) + s->row);
                    return same(s->gradients(), s->expected);
                  }};
        }) > 0);
}

TEST_CASE("out of memory where a variable is read for the first time", "[fault]") {
  struct State {
    Variable v{some(kShape, 1)};
    GradientTape tape;
  };
  CHECK(check_every_allocation([] {
          const auto s = std::make_shared<State>();
          return Scenario{.attempt = [s] { s->v.value(); },
                          .check =
                              [s](bool succeeded) {
                                return (!succeeded || s->tape.watched_variables().size() == 1) &&
                                       same_bits(s->tape.gradient(sum(square(s->v)), s->v).dense(), 2 * s->v);
                              }};
        }) > 0);
}

TEST_CASE("out of memory while several recorders see an op", "[fault]") {
  struct State {
    Tensor x = some(kShape, 1), dx = some(kShape, 2);
    GradientTape outer{{.persistent = true}};
    ForwardAccumulator forward{x, dx};
    GradientTape inner{{.persistent = true}};
    Tensor y, z;
    Tensors expected;

    State() {
      outer.watch(x), inner.watch(x);
      y = exp(x) * tanh(x);
      expected = results();
    }
    Tensors results() {
      const StopRecording pause;
      Tensors all = dense(outer.gradient(Targets(y), Sources{x}));
      all.push_back(inner.gradient(y, x).dense());
      all.push_back(forward.jvp(y));
      return all;
    }
  };
  CHECK(check_every_allocation([] {
          const auto s = std::make_shared<State>();
          return Scenario{.attempt = [s] { s->z = exp(s->y * s->x) + sqrt(exp(s->x)); },
                          .check =
                              [s](bool) {
                                if (!same(s->results(), s->expected)) return false;
                                s->z = {};
                                s->y = exp(s->x) * tanh(s->x);
                                return same(s->results(), s->expected);
                              }};
        }) > 0);
}

TEST_CASE("out of memory in a gradient", "[fault]") {
  struct State {
    explicit State(bool persistent) : tape{{.persistent = persistent}} {
      tape.watch(x), tape.watch(row), tape.watch(table);
      const Tensor h = tanh(matmul(x, v) + row);
      loss = mean(softmax(h) * h) + sum(gather(table, indices)) + sum(max(h, 0)) + sum(x);
      tape.stop();
    }
    std::vector<Gradient> gradients() { return tape.gradient(Targets(loss), Sources{x, row, table, v}); }

    Tensor x = some({20, 8}, 1), row = some({30}, 2), table = some({50, 3}, 3),
           indices = tensor({4, 1, 4, 0}, DType::i64), loss;
    Variable v{some({8, 30}, 4)};
    GradientTape tape;
    std::vector<Gradient> result;
  };
  const Tensors expected = dense(State(true).gradients());
  for (const bool persistent : {true, false})
    CHECK(check_every_allocation([&, persistent] {
            const auto s = std::make_shared<State>(persistent);
            return Scenario{.attempt = [s] { s->result = s->gradients(); },
                            .check =
                                [s, persistent, &expected](bool succeeded) {
                                  if (succeeded && !same(dense(s->result), expected)) return false;
                                  s->result.clear();
                                  return !persistent || same(dense(s->gradients()), expected);
                                }};
          }) > 0);
}

TEST_CASE("out of memory while observers look", "[fault]") {
  struct State {
    Tensor x = some(kShape, 1), y;
    GradientTape tape{{.persistent = true}};
    Profile inner;
    NumericsCheck numerics;
    AnomalyMode anomaly;
    History history;
    Profile outer;
    std::vector<Gradient> result;

    State() { tape.watch(x); }
    static std::int64_t calls(const Profile& profile, std::string_view name) {
      for (const OpCost& c : profile.costs())
        if (c.name == name) return c.calls;
      return 0;
    }
  };
  const Tensor x = some(kShape, 1);
  GradientTape tape;
  tape.watch(x);
  const Tensor expected = tape.gradient(sum(tanh(x) * exp(x)), x).dense();
  CHECK(check_every_allocation([&] {
          const auto s = std::make_shared<State>();
          return Scenario{.attempt =
                              [s] {
                                const Scope scope("a name that is too long to lie in the string itself");
                                s->y = sum(tanh(s->x) * exp(s->x));
                                s->tape.stop();
                                s->result = s->tape.gradient(Targets(s->y), Sources(s->x));
                              },
                          .check =
                              [s, &expected](bool succeeded) {
                                if (succeeded && !same_bits(s->result[0].dense(), expected)) return false;
                                s->result.clear(), s->y = {};
                                // A scope that failed to begin, or has ended, must not be active.
                                const std::size_t before = s->history.size();
                                (void)cos(s->x);
                                return State::calls(s->inner, "cos") == 1 &&
                                       State::calls(s->outer, "cos") == 1 && s->history.size() == before + 1;
                              }};
        }) > 0);
}

// An update rule by tensors instead of by rows.
constexpr UpdateRule kOfTensors = {
    .name = "of_tensors",
    .slots = {{"m"}, {"v"}},
    .dense =
        [](const Step&, Tensor& x, std::span<Tensor> slots, const Tensor& g) {
          slots[0] = slots[0] + g, slots[1] = slots[1] + g * g, x = x - slots[0] / (1 + slots[1]);
        },
    .sparse = [](const Step&, Tensor& x, std::span<Tensor> slots,
                 const IndexedSlices& g) { slots[0] = slots[0] + to_dense(g), x = x - slots[0]; },
};

TEST_CASE("out of memory in a step of an optimizer", "[fault]") {
  struct State {
    Tensor ones_of_v = ones(kShape);
    std::vector<Variable> v = {Variable(some(kShape, 1)), Variable(some({40, 3}, 2)), Variable(some({5}, 3))};
    std::vector<Gradient> g = {some(kShape, 4),
                               IndexedSlices{some({4, 3}, 5), tensor({7, 1, 7, 0}, DType::i64), Shape{40, 3}},
                               some({5}, 6)};
    Optimizer optimizer;
    Tensor held;   // shares the value of the first variable, which then cannot be updated in place

    explicit State(const UpdateRule* rule) : optimizer(rule ? Optimizer(*rule) : Adam()) {
      v.back() = Variable(some({5}, 3), {.constraint = [](const Tensor& x) { return x * 0.5; }});
      optimizer.add_transform(transforms::clip_norm(0.1));
      optimizer.restore_slot(v[2], "v", some({5}, 7));
    }

    Tensors values() const {
      Tensors all;
      for (const Variable& x : v)
        all.push_back(x.value() * 1);
      for (const Variable& x : v)
        for (const char* name : {"m", "v"})
          if (const Tensor slot = optimizer.slot(x, name); slot.defined()) all.push_back(slot * 1);
      return all;
    }
  };
  for (const UpdateRule* rule : {static_cast<const UpdateRule*>(nullptr), &kOfTensors})
    for (const int steps : {0, 2}) {
      const auto make = [rule, steps] {
        const auto s = std::make_shared<State>(rule);
        for (int i = 0; i < steps; ++i)
          s->optimizer.apply_gradients(s->g, s->v);
        s->held = s->v[0].value();
        return s;
      };
      const auto reference = make();
      const Tensors before = reference->values();
      reference->optimizer.apply_gradients(reference->g, reference->v);
      const Tensors after = reference->values();
      CHECK(check_every_allocation([&] {
              const auto s = make();
              return Scenario{.attempt = [s] { s->optimizer.apply_gradients(s->g, s->v); },
                              .check =
                                  [s, steps, &before, &after](bool succeeded) {
                                    if (s->optimizer.iterations() != steps + succeeded ||
                                        !same(s->values(), succeeded ? after : before))
                                      return false;
                                    if (!succeeded) s->optimizer.apply_gradients(s->g, s->v);
                                    return same(s->values(), after);
                                  }};
            }) > 0);
    }
}

namespace {

/// Two replicas that take two steps; the state must be that before a step or after it.
struct Replicated {
  Variable w{some({6}, 1)};
  GradientDescent descent{{.learning_rate = 0.5}};

  /// meanwhile(replica) lives as long as the replica's function.
  template <class F> void run(const F& meanwhile) {
    Replicas(2).run([&](Replica r) {
      [[maybe_unused]] const auto held = meanwhile(r);
      for (int i = 0; i < 2; ++i)
        descent.minimize([&] { return sum(square(w.value())) * static_cast<double>(r.index + 1); });
    });
  }
  void run() {
    run([](Replica) { return 0; });
  }
  /// The mean gradient is (1 + 2) / 2 · 2 w.
  bool is_after(std::int64_t steps) const {
    const double factor = std::pow(1 - 0.5 * 3, static_cast<double>(steps));
    return descent.iterations() == steps && worst(w.value(), some({6}, 1) * factor) < 1e-6;
  }
};

/// Tells at its end whether an allocation has failed.
class Told : public NoMemory {
 public:
  Told(int n, Then then, bool& told) : NoMemory(n, then), told_(told) {}
  ~Told() { told_ = happened(); }

 private:
  bool& told_;
};

}   // namespace

TEST_CASE("out of memory where replicas take steps", "[fault]") {
  Replicated().run();
  for (const Then then : {Then::recovers, Then::stays})
    for (const int where : {-1, 0, 1})   // on the thread that calls run, or a replica's
      for (int n = 0;; ++n) {
        const std::int64_t bytes = live_bytes();
        bool happened = false, succeeded = false;
        {
          Replicated r;
          try {
            if (where < 0) {
              const Told fault(n, then, happened);
              r.run();
            } else {
              r.run([&](Replica replica) {
                return replica.index == where ? std::make_unique<Told>(n, then, happened) : nullptr;
              });
            }
            succeeded = true;
          } catch (const std::bad_alloc&) {}
          INFO("allocation " << n << " of " << where
                             << (then == Then::stays ? ", and all further ones" : ""));
          REQUIRE(succeeded != happened);
          REQUIRE((r.is_after(2) || (!succeeded && (r.is_after(0) || r.is_after(1)))));
          const std::int64_t steps = r.descent.iterations();
          r.run();
          REQUIRE(r.is_after(steps + 2));
        }
        REQUIRE(live_bytes() == bytes);
        if (!happened) {
          CHECK(n > 10);
          break;
        }
      }
}

TEST_CASE("out of memory where a variable is assigned to", "[fault]") {
  using Assign = void (*)(const Variable&, const Tensor&);
  const Assign assignments[] = {[](const Variable& v, const Tensor& x) { v.assign(x * 2); },
                                [](const Variable& v, const Tensor& x) { v.assign_add(x); },
                                [](const Variable& v, const Tensor& x) { v.assign_sub(x); }};
  const Tensor x = some(kShape, 2);
  std::vector<int> allocations;
  for (const Assign assign : assignments)
    for (const bool held : {false, true})
      allocations.push_back(check_every_allocation([&, assign, held] {
        const Variable v(some(kShape, 1));
        v.assign_add(x);
        const Tensor before = v.value() * 1, value = held ? v.value() : Tensor();
        return Scenario{.attempt = [=] { assign(v, x); },
                        .check =
                            [=](bool succeeded) {
                              return same_bits(v.value(), before) != succeeded &&
                                     (!held || same_bits(value, before));
                            }};
      }));
  // An update in place needs no memory, but a new handle where handles are not used again.
  for (std::size_t i = 0; kBlocksAreReused && i < allocations.size(); ++i)
    CHECK((allocations[i] > 0) == (i < 2 || i % 2 == 1));
}

TEST_CASE("out of memory in a chain of reshapes", "[fault]") {
  const Tensor x = some({6, 4, 50}, 1), expected = transpose(reshape(x, {24, 50})) * 2;
  const std::vector<double> values = x.to_vector();
  CHECK(check_every_allocation([&] {
          const auto y = std::make_shared<Tensor>();
          return Scenario{.attempt =
                              [&x, y] {
                                Tensor t = reshape(x, {-1});
                                t = reshape(std::move(t), {24, 50});
                                t = transpose(expand_dims(t, 0), {0, 2, 1});
                                t = squeeze(slice(std::move(t), {0, 0, 0}, {1, -1, -1}), 0);
                                *y = std::move(t) * 2;
                              },
                          .check =
                              [&, y](bool succeeded) {
                                return x.to_vector() == values && y->defined() == succeeded &&
                                       (!succeeded || same_bits(*y, expected));
                              }};
        }) > 0);
}

TEST_CASE("out of memory in matrix products", "[fault]") {
  const Tensor a = some({3, 20, 30}, 1), b = some({30, 10}, 2);
  const auto work = [&] {
    GradientTape tape;
    tape.watch(a), tape.watch(b);
    const Tensor y = matmul(a, b);
    Tensors all = dense(tape.gradient(Targets(y), Sources{a, b}));
    all.push_back(y);
    return all;
  };
  CHECK(check_every_allocation_of(work) > 0);
}

TEST_CASE("out of memory in ops that use several threads", "[fault]") {
  set_num_threads(2);
  const Tensor x = some({300, 400}, 1), w = some({400, 300}, 2), row = some({400}, 3);
  const auto work = [&] {
    GradientTape tape;
    tape.watch(row);
    return dense({tape.gradient(sum(matmul(tanh(x + row), w), 0), row)});
  };
  const Tensors expected = work();
  CHECK(check_every_allocation([&] {
          const auto y = std::make_shared<Tensors>();
          return Scenario{.attempt = [&work, y] { *y = work(); },
                          .check = [&, y](bool succeeded) { return !succeeded || same(*y, expected); }};
        }) > 0);
  set_num_threads(1);
}

TEST_CASE("out of memory when a tensor is freed on another thread", "[fault]") {
  const std::int64_t bytes = live_bytes();
  {
    const Tensor x = some(kShape, 1);
    GradientTape tape;
    tape.watch(x);
    const Tensor kept = exp(x);
    for (int i = 0; i < 20; ++i)
      std::thread([gone = tanh(kept)]() mutable {
        const NoMemory fault(0, NoMemory::Then::stays);
        gone = {};
      }).join();
    CHECK(same_bits(tape.gradient(kept, x).dense(), kept));
  }
  CHECK(live_bytes() == bytes);
}

namespace {

bool same(const NamedTensors& a, const NamedTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_bits(x.second, y.second);
  });
}

/// One object of each kind that a checkpoint saves.
struct Training {
  Variable w{some({6}, 1), {.name = "w"}}, followed{zeros({3}), {.name = "followed"}};
  Tensor history = zeros({4});
  random::Key key{.seed = 1};
  std::int64_t step = 0;
  double rate = 1;
  Adam adam;
  MovingAverage average{followed};
  WeightedMovingAverage weighted{0.9};
  ExponentialMovingAverage averages{0.9, {.zero_debias = true}};
  LossScale scale;
  GradientAccumulator sums;
  Tensor written = tensor(0.0);   // by a function of the user's
  Checkpoint checkpoint;

  explicit Training(int steps) {
    add_to(checkpoint);
    checkpoint.add("w", w);
    for (; step < steps; ++step)
      run();
  }
  void add_to(Checkpoint& c) {
    c.add("followed", followed), c.add("history", history), c.add("key", key), c.add("step", step);
    c.add("rate", rate), c.add("adam", adam), c.add("average", average), c.add("weighted", weighted);
    c.add("averages", averages), c.add("scale", scale), c.add("sums", sums);
    c.add(
        "written", [this] { return written; }, [this](const Tensor& x) { written = x; });
  }
  void run() {
    const auto seed = static_cast<std::uint64_t>(step);
    std::vector<GradientAndVariable> pairs = {{some({6}, seed), w}};
    scale.unscale(pairs), sums.add(pairs), adam.apply_gradients(pairs);
    average.update(some({3}, seed + 10), 0.5), history = weighted.update(some({4}, seed + 20), ones({4}));
    averages.apply(std::vector{w}), averages.apply("x", history);
    key = key.split(seed), rate /= 2, written = tensor(rate);
  }
  NamedTensors state(const TemporaryFolder& folder) const {
    checkpoint.save(folder / "state");
    return load_safetensors(folder / "state");
  }
};

}   // namespace

TEST_CASE("out of memory while files are written", "[fault]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const Training training(2);
  const NamedTensors tensors = {{"a", some(kShape, 1)},
                                {"a name that is too long for the string", some({3}, 2)}};
  const std::function<void()> saves[] = {
      [&] {
        training.checkpoint.save(path, {{"note", "a text that is too long for the string"}});
      },
      [&] { save_safetensors(path, tensors); }, [&] { save_npy(path, tensors.begin()->second); },
      [&] { CheckpointFolder(path + "s", {.keep_last = 1}).save(training.checkpoint, 3); }};
  const std::string in_folder = path + "s/step-3.safetensors";
  for (const auto& save : saves) {
    const bool is_folder = &save == &saves[3];
    save();
    const std::string written = is_folder ? in_folder : path, whole = text_of(written);
    CHECK(check_every_allocation([&] {
            write_text(written, "old");
            return Scenario{.attempt = save, .check = [&](bool succeeded) {
                              const std::string text = text_of(written);
                              return (text == whole || (!succeeded && text == "old")) &&
                                     !std::filesystem::exists(written + ".partial");
                            }};
          }) > 0);
  }
}

// The time in a zip archive changes.
TEST_CASE("out of memory while archives and logs are written", "[fault]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const NamedTensors old = {{"a", ones({3})}}, tensors = {{"a", some(kShape, 1)}, {"b", some({3}, 2)}};
  if (has_npz())
    CHECK(check_every_allocation([&] {
            save_npz(path, old);
            return Scenario{.attempt = [&] { save_npz(path, tensors); },
                            .check =
                                [&](bool succeeded) {
                                  const NamedTensors there = load_npz(path);
                                  return (same(there, tensors) || (!succeeded && same(there, old))) &&
                                         folder.files() == 1;
                                }};
          }) > 0);
  const std::string line = "{\"step\":1,\"text\":\"a text that is too long for the string\"}\n";
  CHECK(check_every_allocation([&] {
          write_text(path, line + "{\"cut");
          return Scenario{.attempt =
                              [&] {
                                TrainingLog log(path);
                                log.write({{"step", 1}, {"text", "a text that is too long for the string"}});
                              },
                          .check =
                              [&](bool succeeded) {
                                const std::string text = text_of(path);
                                return succeeded ? text == line + line
                                                 : text == line || text == line + "{\"cut";
                              }};
        }) > 0);
}

TEST_CASE("out of memory while files are read", "[fault]") {
  const TemporaryFolder folder;
  const NamedTensors tensors = {{"a", some(kShape, 1)},
                                {"a name that is too long for the string", some({3}, 2)}};
  save_safetensors(folder / "s", tensors, {{"note", "a text that is too long for the string"}});
  save_npy(folder / "y", tensors.at("a"));
  if (has_npz()) save_npz(folder / "z", tensors);
  write_text(folder / "c", "a,b\n1,2\n3,4\n5,6\n");
  const std::function<NamedTensors()> loads[] = {
      [&] { return load_safetensors(folder / "s"); },
      [&] {
        return has_npz() ? load_npz(folder / "z") : NamedTensors{{"y", load_npy(folder / "y")}};
      },
      [&] {
        return NamedTensors{{"y", load_npy(folder / "y")}};
      },
      [&] {
        return NamedTensors{{"c", load_csv(folder / "c", {.has_header = true}).values}};
      },
      [&] {
        return NamedTensors{{"i", load_csv(folder / "c", {.has_header = true, .dtype = DType::i8}).values}};
      }};
  for (const auto& load : loads) {
    const NamedTensors expected = load();
    CHECK(check_every_allocation([&] {
            const auto loaded = std::make_shared<NamedTensors>();
            return Scenario{
                .attempt = [&load, loaded] { *loaded = load(); },
                .check = [&, loaded](bool succeeded) { return !succeeded || same(*loaded, expected); }};
          }) > 0);
  }
}

TEST_CASE("out of memory while a checkpoint is restored", "[fault]") {
  const TemporaryFolder folder;
  const Training later(4);
  later.checkpoint.save(folder / "later");
  const NamedTensors before = Training(2).state(folder), after = later.state(folder);
  for (const RestoreMode mode : {RestoreMode::strict, RestoreMode::deferred})
    CHECK(
        check_every_allocation([&, mode] {
          const auto t = std::make_shared<Training>(2);
          return Scenario{
              .attempt = [&, t, mode] { t->checkpoint.restore(folder / "later", mode); },
              .check = [&, t](bool succeeded) { return same(t->state(folder), succeeded ? after : before); }};
        }) > 0);
  // What is added after a deferred restore.
  CHECK(check_every_allocation([&] {
          struct Late {
            Training training{2};
            Checkpoint checkpoint;
          };
          const auto late = std::make_shared<Late>();
          late->training.add_to(late->checkpoint);
          late->checkpoint.restore(folder / "later", RestoreMode::deferred);
          const NamedTensors between = late->training.state(folder);
          return Scenario{.attempt = [late] { late->checkpoint.add("w", late->training.w); },
                          .check =
                              [&, late, between](bool succeeded) {
                                if (!succeeded) {
                                  if (!same(late->training.state(folder), between)) return false;
                                  late->checkpoint.add("w", late->training.w);
                                }
                                return late->checkpoint.waiting().empty() &&
                                       same(late->training.state(folder), after);
                              }};
        }) > 0);
}

TEST_CASE("out of memory while batches are made", "[fault]") {
  const DataLoader on_demand(Dataset({some({9, 2}, 1), arange(9)}),
                             {.batch = 4, .shuffle = true, .key = {.seed = 1}, .prefetch = 0});
  const auto batches = [](const DataLoader& loader) {
    Tensors all;
    for (const Batch& batch : loader.epoch(2))
      all.insert(all.end(), batch.begin(), batch.end());
    return all;
  };
  const Tensors expected = batches(on_demand);
  CHECK(check_every_allocation([&] {
          const auto made = std::make_shared<Tensors>();
          return Scenario{.attempt = [&, made] { *made = batches(on_demand); },
                          .check = [&, made](bool succeeded) { return !succeeded || same(*made, expected); }};
        }) > 0);

  // On the loader's thread, from the second batch on. The caller sees it.
  bool fails = true;
  for (int n = 0; fails; ++n)
    for (const Then then : {Then::recovers, Then::stays}) {
      fails = false;
      const DataLoader ahead(Dataset({some({9, 2}, 1), arange(9)}),
                             {.batch = 4,
                              .shuffle = true,
                              .key = {.seed = 1},
                              .prefetch = 2,
                              .transform = [&, n, then](Batch batch, random::Key) {
                                thread_local std::optional<NoMemory> fault;
                                if (!fault) fault.emplace(n, then);
                                return batch;
                              }});
      Tensors made;
      try {
        made = batches(ahead);
      } catch (const std::bad_alloc&) {
        fails = true;
      }
      INFO("allocation " << n);
      CHECK((fails || same(made, expected)));
      CHECK((n > 0 || fails));
    }
}

TEST_CASE("out of memory in Jacobians, loops and recomputation", "[fault]") {
  const Tensor x = some({4}, 1), w = some({4, 4}, 2);
  const auto layer = [&](const Tensor& v) { return tanh(sum(w * v, 1)); };
  const auto grad_of = [&](const std::function<Tensor(const Tensor&)>& f) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = f(x);
    return Tensors{y, tape.gradient(y, x).dense()};
  };
  const std::function<Tensors()> works[] = {
      [&] { return Tensors{jacobian(layer, x)}; },
      [&] { return Tensors{jacobian(layer, x, {.mode = JacobianMode::reverse, .vectorize = false})}; },
      [&] { return Tensors{hessian([&](const Tensor& v) { return sum(layer(v)); }, x)}; },
      [&] {
        return grad_of([&](const Tensor& v) {
          return fori_loop(0, 3, [&](std::int64_t, const Tensor& u) { return layer(u); }, {v});
        });
      },
      [&] {
        return grad_of([&](const Tensor& v) {
          return while_loop([](const Tensor& u) { return sum(u * u) < 50.0; },
                            [&](const Tensor& u) { return 2 * layer(u) + u; }, {v});
        });
      },
      [&] { return grad_of(recompute_grad([&](const Tensor& v) { return layer(layer(v)); })); },
  };
  for (const auto& work : works)
    CHECK(check_every_allocation_of(work) > 0);
}

TEST_CASE("out of memory in compiled functions", "[fault]") {
  struct State {
    Tensor x = some(kShape, 1);
    Variable w{some({30, 4}, 2)}, mean_loss{tensor(0.0)}, last{zeros({20, 4})};
    std::function<Tensor(const Tensor&)> step = [this](const Tensor& x) {
      GradientTape tape;
      const Tensor y = tanh(matmul(x, w)), loss = mean(square(y));
      const Tensor g = tape.gradient(loss, w).dense();
      w.assign(w - 0.1 * g);
      mean_loss.assign(0.9 * mean_loss + 0.1 * loss);
      last.assign(y);
      return loss;
    };
    Compiled<std::function<Tensor(const Tensor&)>> recorded = compile(step);
    Tensors before;   // and so their memory is shared

    void keep() { before = values(); }
    Tensors values() const { return {w.value(), mean_loss.value(), last.value()}; }
    bool steps_as_eager() {
      const Tensors start = values();
      const Tensor a = recorded(x);
      const Tensors after = values();
      w.assign(start[0]), mean_loss.assign(start[1]), last.assign(start[2]);
      return same_bits(a, step(x)) && same(after, values());
    }
  };
  // 0: the function is recorded; 1: replayed for the first time; 2: replayed again.
  for (const int calls : {0, 1, 2}) {
    INFO("after calls: " << calls);
    CHECK(check_every_allocation([&] {
            const auto s = std::make_shared<State>();
            for (int i = 0; i < calls; ++i)
              s->recorded(s->x);
            s->keep();
            return Scenario{.attempt = [s] { s->recorded(s->x); },
                            .check =
                                [s, calls](bool succeeded) {
                                  if (succeeded == same(s->values(), s->before) && calls > 0) return false;
                                  return s->steps_as_eager();
                                }};
          }) > 0);
  }
}

TEST_CASE("out of memory where a recording ends", "[fault]") {
  const Variable v(zeros({3}));
  std::optional<NoMemory> fault;
  bool fails = true;
  const auto f = compile([&](const Tensor& x) {
    v.assign(v + x);
    if (fails) fault.emplace(0, Then::stays);
  });
  const Tensor x = ones({3});
  bool threw = false;
  try {
    f(x);
  } catch (const std::bad_alloc&) {
    threw = true;
  }
  fault.reset();
  CHECK_FALSE(threw);   // f has run
  CHECK(v.value().at({0}) == 1);
  CHECK(f.programs().empty());
  fails = false;
  f(x), f(x);
  CHECK(v.value().at({0}) == 3);
  CHECK(f.programs().at(0).calls == 1);
}
