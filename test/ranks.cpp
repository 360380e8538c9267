// A rank of test/ranks.sh: `ranks train` compares bits with Replicas in one process, `ranks save` and `ranks restore` are two halves of
// a training run, of which the second compares them; the others end as their names say.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "tapedeck/checkpoint.h"
#include "tapedeck/distribute.h"
#include "tapedeck/tapedeck.h"

using namespace tapedeck;

namespace {

Tensor part(const Tensor& x, Replica r) {
  const std::int64_t n = x.shape()[0] / r.count;
  return strided_slice(x, {{r.index * n, (r.index + 1) * n}});
}

/// Dense, sparse, mixed and missing gradients in several buckets.
template <class R> std::vector<double> train(const R& replicas) {
  const Tensor x = random::normal({32, 6}, {.seed = 1}), y = random::normal({32, 3}, {.seed = 2}), rows = astype(random::uniform({32}, {.seed = 3}, 0, 5), DType::i32);
  const Variable w(random::normal({6, 3}, {.seed = 4}), {.name = "w"}), table(random::normal({50, 3}, {.seed = 5}), {.name = "table"}), mixed(random::normal({50, 3}, {.seed = 6}), {.name = "mixed"});
  const Variable rare(ones({3}), {.name = "rare"}), steps(tensor(0), {.trainable = false}), wide(ones({}, DType::f64), {.name = "wide"});
  Momentum momentum({.learning_rate = 1.0, .momentum = 0.9});   // no bit is lost in small steps
  std::vector<double> result;
  replicas.run([&](Replica r) {
    for (int i = 0; i < 5; ++i) {
      const Loss loss = [&] {
        Tensor z = tanh(matmul(part(x, r), w)) + gather(table, part(rows, r)) + (r.index == 1 ? strided_slice(mixed, {{0, 32 / r.count}}) : gather(mixed, part(rows, r)));
        if (r.index == 2 && i != 3) z = z * rare;
        return mean(square(z - part(y, r))) + astype(square(wide), DType::f32);
      };
      const Tensor value = momentum.minimize(loss, {.variables = {{w, table, mixed, rare, wide}}}, steps), all = sum_over_replicas(value);
      if (r.index == 0) result.push_back(all.item());
    }
  });
  for (const Variable& v : {w, table, mixed, rare, wide, steps})
    for (const double e : v.value().to_vector()) result.push_back(e);
  return result;
}

int compare(const Ranks& ranks) {
  std::vector<double> here = train(ranks), there = train(Replicas(ranks.count(), {.threads = 1}));
  if (ranks.replica().index != 0) there.erase(there.begin(), there.begin() + 5);   // sums, which rank 0 keeps
  if (here != there) std::cout << "rank " << ranks.replica().index << " has other bits than a replica in one process\n";
  return here != there;
}

/// A training run that goes on from a file: weights, slots of a momentum, a random key, and the number of steps.
struct Training {
  Variable w{random::normal({6, 3}, {.seed = 4}), {.name = "w"}}, b{zeros({3}), {.name = "b"}}, steps{tensor(std::int64_t{0}), {.name = "steps", .trainable = false}};
  Momentum momentum{{.learning_rate = 0.5, .momentum = 0.9}};
  Checkpoint checkpoint;

  Training() {
    checkpoint.add("w", w), checkpoint.add("b", b), checkpoint.add("steps", steps), checkpoint.add("momentum", momentum);
  }
  template <class R> void train(const R& replicas, int count) {
    replicas.run([&](Replica r) {
      for (int i = 0; i < count; ++i) {
        const Tensor x = random::normal({32, 6}, {.seed = static_cast<std::uint64_t>(steps.value().item())});
        momentum.minimize([&] { return mean(square(tanh(matmul(part(x, r), w)) + b - 1)); }, {}, steps);
      }
    });
  }
  std::vector<double> state() const {
    std::vector<double> result;
    for (const Tensor& x : {w.value(), b.value(), steps.value(), momentum.slot(w, "momentum"), momentum.slot(b, "momentum")})
      for (const double e : x.to_vector()) result.push_back(e);
    return result;
  }
};

constexpr int kHalf = 10;

void save(const Ranks& ranks, const std::string& path) {
  Training training;
  training.train(ranks, kHalf);
  ranks.run([&](Replica r) { if (r.index == 0) training.checkpoint.save(path); });
  if (!std::filesystem::exists(path)) throw std::runtime_error("the end of run does not wait for rank 0");
}

int restore(const Ranks& ranks, const std::string& path, int missing_on) {
  Training here, there;
  try {
    ranks.run([&](Replica r) { here.checkpoint.restore(r.index == missing_on ? path + ".missing" : path); });
  } catch (const Error& e) {
    std::cout << "rank " << ranks.replica().index << " does not go on: " << e.what() << std::endl;
    sleep(1);   // until all have said so: mpirun ends them with the first
    return 1;
  }
  here.train(ranks, kHalf);
  there.train(Replicas(ranks.count()), 2 * kHalf);
  if (here.state() != there.state()) std::cout << "rank " << ranks.replica().index << " has other bits than a run that was not interrupted\n";
  return here.state() != there.state();
}

}  // namespace

int main(int, char** argv) try {
  const std::string mode = argv[1];
  const Ranks ranks({.timeout_seconds = mode == "silent" ? 2.0 : 30.0, .bucket_bytes = 100});
  if (mode == "train") return compare(ranks) || compare(ranks);
  if (mode == "save") return save(ranks, argv[2]), 0;
  if (mode == "restore") return restore(ranks, argv[2], argv[3] ? std::stoi(argv[3]) : -1);
  ranks.run([&](Replica r) {
    const Variable v(full({mode == "shape" && r.index == 2 ? 4 : 3}, mode == "value" && r.index == 1), {.name = "dense/kernel"});
    GradientDescent descent({.learning_rate = 1.0});
    for (int i = 0; i < 3; ++i) {
      if (i == 1 && r.index == 3) {
        if (mode == "throws") throw std::runtime_error("out of data");
        if (mode == "dies") _exit(9);
        if (mode == "ends") return;
        if (mode == "silent") sleep(600);
        if (mode == "misfit") descent.apply_gradients({{ones({5}), v}});
      }
      descent.minimize([&] { return sum(square(v)); });
    }
  });
} catch (const std::exception& e) {
  std::cout << e.what() << std::endl;
  return 1;
}
