// Time of sparse gradients: 1,024 rows of a table of 10⁶ × 64, forward and backward, and with a step of Adam
// that changes only these rows; for comparison, a dense step over all rows.
#include "bench.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

constexpr std::int64_t kRows = 1'000'000, kWidth = 64, kIds = 1024;

td::Tensor ids(std::uint64_t seed) {
  return td::astype(td::random::uniform({kIds}, {.seed = seed}, 0, static_cast<double>(kRows)),
                    td::DType::i32);
}

struct Embedding {
  td::Gradient gradient() const {
    td::GradientTape tape;
    const td::Tensor rows = td::gather(table, chosen);
    return tape.gradient(td::sum(td::mean(rows, 0) * v), table);
  }
  void step(td::Optimizer& optimizer) const { optimizer.apply_gradients({{gradient(), table}}); }

  td::Variable table{0.01 * td::random::normal({kRows, kWidth}, {.seed = 1})};
  td::Tensor v = td::random::normal({kWidth}, {.seed = 2});
  td::Tensor chosen = ids(3);
};

void sparse_gradient(State& state) {
  const Embedding e;
  bench::each(state, [&] { return e.gradient(); });
}
void dense_gradient(State& state) {
  const Embedding e;
  bench::each(state, [&] { return e.gradient().dense(); });
}

void sparse_step(State& state) {
  const Embedding e;
  td::Adam adam({.lazy = true});   // like libtorch's
  e.step(adam);                    // the first step makes the slots
  for (auto _ : state)
    e.step(adam);
}
void sparse_step_fresh_ids(State& state) {
  Embedding e;
  td::Adam adam({.lazy = true});
  e.step(adam);
  std::uint64_t seed = 3;
  for (auto _ : state) {
    e.chosen = ids(++seed);
    e.step(adam);
  }
}
void dense_step(State& state) {
  const Embedding e;
  td::Adam adam;
  const auto step = [&] { adam.apply_gradients({{e.gradient().dense(), e.table}}); };
  step();
  for (auto _ : state)
    step();
}

void in_microseconds(const char* name, void (*f)(State&)) {
  benchmark::RegisterBenchmark(name, f)->Unit(benchmark::kMicrosecond)->UseRealTime();
}

}   // namespace

int main(int argc, char** argv) {
  in_microseconds("embedding/sparse_gradient/1Mx64", sparse_gradient);
  in_microseconds("embedding/sparse_step/1Mx64", sparse_step);
  in_microseconds("embedding/sparse_step_fresh_ids/1Mx64", sparse_step_fresh_ids);
  in_microseconds("embedding/dense_gradient/1Mx64", dense_gradient);
  in_microseconds("embedding/dense_step/1Mx64", dense_step);
  return bench::run(argc, argv, td::set_num_threads);
}
