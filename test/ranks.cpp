// A rank of test/ranks.sh: `ranks train` compares bits with Replicas in one process; the others end as their names say.
#include <unistd.h>

#include <iostream>
#include <stdexcept>

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

}  // namespace

int main(int, char** argv) try {
  const std::string mode = argv[1];
  const Ranks ranks({.timeout_seconds = mode == "silent" ? 2.0 : 30.0, .bucket_bytes = 100});
  if (mode == "train") return compare(ranks) || compare(ranks);
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
