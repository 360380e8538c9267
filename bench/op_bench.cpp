// One call of every op in the tests' tables, on its first sample: forward, and recorded with its gradient.
#include "bench.h"
#include "ops/samples.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/op.h"
#include "tapedeck/threads.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

void forward(State& state, const td::Op* op, td::Sample sample) {
  bench::each(state, [&] { return op->run(sample.inputs, sample.attrs.view()); });
}

void gradient(State& state, const td::Op* op, td::Sample sample) {
  std::vector<td::Tensor> sources;
  for (const td::Tensor& x : sample.inputs)
    if (td::is_trainable(x.dtype())) sources.push_back(x);
  bench::each(state, [&] {
    td::GradientTape tape;
    for (const td::Tensor& x : sources)
      tape.watch(x);
    return tape.gradient(op->run(sample.inputs, sample.attrs.view()), sources);
  });
}

void register_ops() {
  for (const td::ops::Family& family : td::ops::families()) {
    for (const td::Op* op : family.ops) {
      const std::string name = std::string(family.name) + "/" + std::string(op->name);
      const td::Sample sample = td::test::samples_of(*op).front();
      benchmark::RegisterBenchmark((name + "/forward").c_str(), forward, op, sample)->UseRealTime();
      if (op->rule.kind != td::RuleKind::none && op->rule.kind != td::RuleKind::undefined)
        benchmark::RegisterBenchmark((name + "/gradient").c_str(), gradient, op, sample)->UseRealTime();
    }
  }
}

}   // namespace

int main(int argc, char** argv) {
  register_ops();
  return bench::run(argc, argv, td::set_num_threads);
}
