// A rank of test/distribute/ranks.sh. `ranks train` compares bits with Replicas in one process; `ranks
// overlap` counts what a rank sends while its backward pass runs; `ranks save` and `ranks restore` are two
// halves of a training run, and the second compares bits; `ranks own_mpi` calls MPI itself; the other modes
// fail in the way that their names say.
#include <stdlib.h>
#include <unistd.h>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "tapedeck/checkpoint.h"
#include "tapedeck/custom_gradient.h"
#include "tapedeck/distribute.h"
#include "tapedeck/tapedeck.h"

using namespace tapedeck;

namespace {

int sent = 0;         // messages that hold numbers
bool stuck = false;   // stops responding before the next message

}   // namespace

// MPI's profiling interface: the library calls this function instead of MPI's own.
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  if (type == MPI_INT32_T && stuck) sleep(600);
  sent += type == MPI_INT32_T;
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

namespace {

Tensor part(const Tensor& x, Replica r) {
  const std::int64_t n = x.shape()[0] / r.count;
  return strided_slice(x, {{r.index * n, (r.index + 1) * n}});
}

/// x itself; the backward pass calls f with the gradient when it reaches this point.
Tensor hooked(const Tensor& x, const std::function<void(const Tensor&)>& f) {
  return custom_gradient([f](const Tensor& t) {
    return std::pair(t * 1.0, [f](const Tensor& dy) {
      f(dy);
      return dy;
    });
  })(x);
}

/// Dense, sparse, mixed and missing gradients in several buckets.
template <class R> std::vector<double> train(const R& replicas) {
  const Tensor x = random::normal({32, 6}, {.seed = 1}), y = random::normal({32, 3}, {.seed = 2}),
               rows = astype(random::uniform({32}, {.seed = 3}, 0, 5), DType::i32);
  const Variable w(random::normal({6, 3}, {.seed = 4}), {.name = "w"}),
      table(random::normal({50, 3}, {.seed = 5}), {.name = "table"}),
      mixed(random::normal({50, 3}, {.seed = 6}), {.name = "mixed"});
  const Variable rare(ones({3}), {.name = "rare"}), steps(tensor(0), {.trainable = false}),
      wide(ones({}, DType::f64), {.name = "wide"});
  // Large steps, so that no bit is lost to rounding.
  Momentum momentum({.learning_rate = 1.0, .momentum = 0.9});
  std::vector<double> result;
  replicas.run([&](Replica r) {
    for (int i = 0; i < 5; ++i) {
      const Loss loss = [&] {
        Tensor z = tanh(matmul(part(x, r), w)) + gather(table, part(rows, r)) +
                   (r.index == 1 ? strided_slice(mixed, {{0, 32 / r.count}}) : gather(mixed, part(rows, r)));
        if (r.index == 2 && i != 3) z = z * rare;
        return mean(square(z - part(y, r))) + astype(square(wide), DType::f32);
      };
      const Tensor value = momentum.minimize(loss, {.variables = {{w, table, mixed, rare, wide}}}, steps),
                   all = sum_over_replicas(value);
      if (r.index == 0) result.push_back(all.item());
    }
  });
  for (const Variable& v : {w, table, mixed, rare, wide, steps})
    for (const double e : v.value().to_vector())
      result.push_back(e);
  return result;
}

/// Gradients of halves, dense, sparse and mixed, whose sums f16 does not hold.
template <class R> std::vector<double> halves(const R& replicas) {
  std::vector<double> result;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Variable w(zeros({3}, dtype), {.name = "w"}), table(zeros({2, 3}, dtype), {.name = "table"}),
        mixed(zeros({2, 3}, dtype), {.name = "mixed"});
    GradientDescent descent({.learning_rate = 1e-4});
    replicas.run([&](Replica r) {
      const Tensor large = full({3}, 30000.0, dtype);
      for (int i = 0; i < 3; ++i)
        descent.minimize(
            [&] {
              const Tensor row = sum(gather(table, tensor({1})) * large),
                           either =
                               r.index == 1 ? sum(mixed * large) : sum(gather(mixed, tensor({0})) * large);
              return astype(sum(w * large) + row + either, DType::f32);
            },
            {.variables = {{w, table, mixed}}});
      descent.apply_gradients({{large, w}});   // no mean: the sum is beyond f16
    });
    if (!(std::abs(w.value().at({0}) / (-9 - 3.0 * replicas.count()) - 1) < 0.01))
      result.push_back(NAN);   // which is no other number
    for (const Variable& v : {w, table, mixed})
      for (const double e : v.value().to_vector())
        result.push_back(e);
  }
  return result;
}

/// Alternating steps of two optimizers, whose gradients change between dense, sparse and none from step to
/// step, and passes that are not followed by a step.
template <class R> std::vector<double> change(const R& replicas) {
  const Variable a(random::normal({30}, {.seed = 1}), {.name = "a"}),
      b(random::normal({7}, {.seed = 2}), {.name = "b"}), c(random::normal({40}, {.seed = 3}), {.name = "c"});
  const Variable table(random::normal({20, 3}, {.seed = 4}), {.name = "table"}),
      wide(random::normal({30}, {.seed = 5}, DType::f64), {.name = "wide"});
  const Tensor scale = random::uniform({64}, {.seed = 6}, 0.5, 1.5), rows = tensor({3, 5, 3});
  Momentum momentum({.learning_rate = 0.7, .momentum = 0.9}), other({.learning_rate = 0.3, .momentum = 0.5});
  std::vector<double> result;
  replicas.run([&](Replica r) {
    const Tensor s = strided_slice(scale, {{r.index, r.index + 1}});
    const bool last = r.index == r.count - 1;
    for (int i = 0; i < 25; ++i) {
      const bool fails = last && (i % 12 == 6 || i == 24);
      if (i == 24 && !last) break;   // the last pass is not followed by a step
      double norm = 0;
      int passes = 0;
      const auto loss = [&] {
        Tensor l = sum(sin(s * hooked(a, [&](const Tensor& dy) {
                             if (fails && ++passes == 1)
                               throw std::out_of_range("a pass that comes to nothing");
                             if (i % 12 == 8) norm = sum_over_replicas(sum(square(dy))).item();
                           })));
        const Tensor of_b = sum(s * square(b));
        if (i % 4 != 3 || r.index != 1)
          l = r.index % 2 ? of_b + l : l + of_b;   // none on one rank, and in a different order
        if (i % 7 == 2 || (i % 7 == 4 && r.index == 0))
          l = l + sum(s * gather(table, rows));   // slices on all, and on one
        else if (i % 7 != 4 && i % 7 != 6)
          l = l + sum(s * cos(table));   // none on all
        return l + astype(sum(square(wide)), DType::f32) * s * (1.0 + passes);
      };
      const LossOptions all = {.variables = {{a, wide, table, b}}};
      if (i == 18 && !fails) sum_over_replicas(s);
      try {
        momentum.minimize(loss, all);
      } catch (const std::out_of_range&) {
        if (i == 24) break;
        if (i == 18) sum_over_replicas(s);
        momentum.minimize(loss, all);
      }
      if (i % 3 != 0)
        other.minimize([&] { return sum(sin(s * c)) + sum(square(s * a)); }, {.variables = {{c, a}}});
      if (i % 5 == 4)
        other.apply_gradients(
            Optimizer::compute_gradients([&] { return sum(s * c * c); }, {.variables = {{c, a}}}));
      if (r.index == 0) result.push_back(norm);
    }
  });
  for (const Variable& v : {a, b, c, table, wide})
    for (const double e : v.value().to_vector())
      result.push_back(e);
  return result;
}

/// Sums of each dtype that has arithmetic; those of the small integers wrap.
template <class R> std::vector<double> sums(const R& replicas) {
  std::vector<double> result;
  replicas.run([&](Replica r) {
    for (int t = 0; t < kDTypes; ++t) {
      const DType dtype = static_cast<DType>(t);
      if (dtype == DType::boolean) continue;
      const Tensor sum = sum_over_replicas(full({3}, 100.0 + r.index, dtype));
      if (sum.dtype() != dtype) throw std::runtime_error("a sum has another dtype than its terms");
      if (r.index == 0) result.push_back((is_complex(dtype) ? real(sum) : sum).at({2}));
    }
  });
  return result;
}

template <class Train> int compare(const Ranks& ranks, std::size_t sums, const Train& train) {
  std::vector<double> here = train(ranks), there = train(Replicas(ranks.count(), {.threads = 1}));
  if (ranks.replica().index != 0)
    there.erase(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(sums));   // rank 0 keeps these
  if (here != there)
    std::cout << "rank " << ranks.replica().index << " has other bits than a replica in one process\n";
  return here != there;
}

/// A training run that continues from a file: weights, momentum slots, a random key, and the number of steps.
struct Training {
  Variable w{random::normal({6, 3}, {.seed = 4}), {.name = "w"}}, b{zeros({3}), {.name = "b"}},
      steps{tensor(std::int64_t{0}), {.name = "steps", .trainable = false}};
  Momentum momentum{{.learning_rate = 0.5, .momentum = 0.9}};
  Checkpoint checkpoint;

  Training() {
    checkpoint.add("w", w), checkpoint.add("b", b), checkpoint.add("steps", steps),
        checkpoint.add("momentum", momentum);
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
    for (const Tensor& x :
         {w.value(), b.value(), steps.value(), momentum.slot(w, "momentum"), momentum.slot(b, "momentum")})
      for (const double e : x.to_vector())
        result.push_back(e);
    return result;
  }
};

constexpr int kHalf = 10;

void save(const Ranks& ranks, const std::string& path) {
  Training training;
  training.train(ranks, kHalf);
  ranks.run([&](Replica r) {
    if (r.index == 0) training.checkpoint.save(path);
  });
  if (!std::filesystem::exists(path)) throw std::runtime_error("the end of run does not wait for rank 0");
}

int restore(const Ranks& ranks, const std::string& path, int missing_on) {
  Training here, there;
  try {
    ranks.run([&](Replica r) { here.checkpoint.restore(r.index == missing_on ? path + ".missing" : path); });
  } catch (const Error& e) {
    std::cout << "rank " << ranks.replica().index << " does not go on: " << e.what() << std::endl;
    sleep(1);   // until all ranks have printed it: mpirun kills them when the first exits
    return 1;
  }
  here.train(ranks, kHalf);
  there.train(Replicas(ranks.count()), 2 * kHalf);
  if (here.state() != there.state())
    std::cout << "rank " << ranks.replica().index << " has other bits than a run that was not interrupted\n";
  return here.state() != there.state();
}

/// What a leaf of the tree of ranks has sent when its pass reaches its last layer: nothing in the first pass,
/// later a bucket for each of the other layers.
int overlap(const Ranks& ranks) {
  constexpr int kLayers = 6;
  std::vector<int> counts;
  ranks.run([&](Replica) {
    std::vector<Variable> w;
    for (int k = 0; k < kLayers; ++k)
      w.emplace_back(random::normal({8, 8}, {.seed = static_cast<std::uint64_t>(k)}));
    GradientDescent descent({.learning_rate = 0.01});
    for (int i = 0; i < 4; ++i)
      descent.minimize([&] {
        const int before = sent;
        Tensor x = hooked(matmul(ones({8, 8}), w[0]),
                          [&counts, before](const Tensor&) { counts.push_back(sent - before); });
        for (std::size_t k = 1; k < kLayers; ++k)
          x = tanh(k % 2 ? matmul(x, w[k]) : matmul(w[k], x));
        return mean(square(x));
      });
  });
  if (ranks.replica().index % 2 == 0 || counts == std::vector<int>{0, kLayers - 1, kLayers - 1, kLayers - 1})
    return 0;
  for (const int n : counts)
    std::cout << "rank " << ranks.replica().index << " sends " << n << " buckets in a pass\n";
  return 1;
}

// A program that uses MPI itself initializes and finalizes it.
int use_own_mpi() {
  int provided = 0, finalized = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  for (int i = 0; i < 2; ++i)
    Ranks().run([](Replica r) {
      if (sum_over_replicas(ones({2})).to_vector()[1] != r.count) throw std::runtime_error("a wrong sum");
    });
  MPI_Finalized(&finalized);
  if (finalized) throw std::runtime_error("MPI is finalized");
  return MPI_Finalize();
}

}   // namespace

int main(int, char** argv) try {
  const std::string mode = argv[1];
  if (mode == "own_mpi") return use_own_mpi();
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  const bool neighbour = rank && *rank == '2';   // has other options: the first to give up ends the job
  const Ranks ranks({.reduction = mode == "reduction" && neighbour ? LossReduction::sum : LossReduction::mean,
                     .timeout_seconds = mode.starts_with("silent") && neighbour ? 2.0 : 50.0,
                     .bucket_bytes = mode == "bucket_bytes" && neighbour ? 200 : 100});
  if (mode == "train")
    return compare(ranks, 5, [](const auto& r) { return train(r); }) ||
           compare(ranks, 24, [](const auto& r) { return change(r); }) ||
           compare(ranks, 0, [](const auto& r) { return halves(r); }) ||
           compare(ranks, kDTypes - 1, [](const auto& r) { return sums(r); });
  if (mode == "overlap") return overlap(ranks);
  if (mode == "save") return save(ranks, argv[2]), 0;
  if (mode == "restore") return restore(ranks, argv[2], argv[3] ? std::stoi(argv[3]) : -1);
  if (mode == "throws_outside" && ranks.replica().index == 3) throw std::runtime_error("out of place");
  ranks.run([&](Replica r) {
    const Variable v(full({mode == "shape" && r.index == 2 ? 4 : 3}, mode == "value" && r.index == 1),
                     {.name = "dense/kernel"}),
        first(ones({30}));
    GradientDescent descent({.learning_rate = 1.0});
    stuck = mode == "silent_in_step" && r.index == 3;
    for (int i = 0; i < 3; ++i) {
      if (i == 1 && r.index == 3) {
        if (mode == "throws") throw std::runtime_error("out of data");
        if (mode == "dies") _exit(9);
        if (mode == "ends") return;
        if (mode == "silent") sleep(600);
        if (mode == "bool_sum") sum_over_replicas(full({3}, 1, DType::boolean));
        if (mode == "misfit") descent.apply_gradients({{ones({5}), v}});
      }
      const auto in_pass = [&](const Tensor&) {   // when the gradient of `first` is being sent
        if (i < 2 || r.index != 3) return;
        if (mode == "throws_in_pass") throw std::runtime_error("out of luck");
        if (mode == "dies_in_pass") _exit(9);
        if (mode == "silent_in_pass") sleep(600);
      };
      descent.minimize([&] { return sum(square(hooked(v, in_pass))) + sum(square(first)); },
                       {.variables = {{v, first}}});
    }
  });
} catch (const std::exception& e) {
  std::cout << e.what() << std::endl;
  return 1;
}
