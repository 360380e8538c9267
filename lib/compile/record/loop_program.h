// The programs of a recorded loop, and the ops that run them.
#pragma once
#include "compile/record/inner.h"
#include "op/stacked_shapes.h"

namespace tapedeck::compiled {

/// A loop. Its operands are the carries, then tensors whose first axes are the steps, then tensors that are
/// the same in each step. Its results are the carries, then the outputs of all steps along new first axes.
struct LoopProgram {
  std::shared_ptr<const Callee> condition, step;   // condition: null if there is none
  std::int64_t steps;                              // their number, or the largest one if there is a condition
  std::vector<Spec> carries, outputs;              // of a step
  std::size_t entries;                             // the number of operands with an entry for each step
  bool reverse;                                    // whether steps go from the last entries to the first
  /// `step`, with whether the condition holds after it as one more result, if that may be computed after the
  /// last step as well; else null.
  std::shared_ptr<const Callee> checked = {};
  std::shared_ptr<const Callee> block = {};   // of `block_steps` steps, if these are short; else null
  std::int64_t block_steps = 0;

  std::vector<Spec> results() const;
  /// Whether its programs have nodes that act; whether they use variables.
  bool acts() const;
  bool uses_variables() const;
  /// Adds `checked` and `block`.
  void add_block();

 private:
  void add_checked();
};
/// Runs it as an op, which no tape records. If it has a condition, the last result is the number of steps, an
/// i64.
Tensors run_loop(const Tensors& operands, LoopProgram l);

/// Drops the outputs of loops that nothing in the program reads, and what computes them alone.
Program without_unread_outputs(Program p);

/// The gradient of a loop for which no values of steps were kept. It runs the steps again.
struct LoopGradient {
  LoopProgram step;      // without outputs
  LoopProgram forward;   // outputs: the values that the gradient reads
  /// Its carries: cotangents of carries, and sums of gradients of what is captured. Its entries: the outputs
  /// of `forward`, those entries of the loop that it reads, and the cotangents of outputs.
  LoopProgram backward;
  std::vector<int> entries, others;   // the operands of the loop that the gradient reads
  std::string name;
  std::size_t sums;         // the last carries of `backward` that are sums
  std::int64_t snapshots;   // carries are kept before so many steps; 0: values of all steps are kept
};
/// Runs it as an op, which no tape records. steps: their number. x: the operands of the loop. dy: the carries
/// of `backward`, then the cotangents of outputs. Returns the results of `backward`.
Tensors run_loop_gradient(const Tensor& steps, const Tensors& x, const Tensors& dy, LoopGradient g);

}   // namespace tapedeck::compiled
