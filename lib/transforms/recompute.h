// Recomputation (checkpointing): functions that run a second time when their gradient is computed.
#pragma once
#include "tapedeck/function.h"
#include "tapedeck/variable.h"

namespace tapedeck {

/// What a function reads besides its operands, of what recorders follow or may follow later.
struct Captured {
  /// A variable that was read, and the id of the value, which changes with an update.
  struct Read {
    Variable variable;
    std::uint64_t version;

    bool updated() const;
  };
  std::vector<Tensor> tensors;
  std::vector<Read> reads;

  /// For a function that is about to run again: throws GradientError if a variable has been updated since.
  void require_current(std::string_view name) const;
};

/// Runs f(x) with new tensors for x, unrecorded, and notes what it captures.
std::vector<Tensor> run_unrecorded(std::span<const Tensor> x, const Function& f, Captured& captures);

/// The functions of a recomputation, which compute the same values from the same operands. They are kept as
/// long as a tape keeps the operation.
struct Recomputed {
  Function backward;           // the vjp runs it under a tape of its own
  Function forward;            // the jvp runs it under an accumulator
  bool zero_captures = true;   // whether captures that no result depends on have zeros as gradients, or none
};
/// Records y, which was computed from x, as the results of one operation, for which tapes keep only x and the
/// captures. Those of x that recorders follow receive gradients, which are zeros if there is no path; so do
/// the captures, but without a path theirs are zeros if `f.zero_captures`, otherwise none.
/// Throws ArgumentError if the function updates a variable that it reads; the vjp and jvp throw GradientError
/// if such a variable has been updated since. Returns new tensors for y.
std::vector<Tensor> record_recomputed(std::string_view name, std::span<const Tensor> x, std::vector<Tensor> y,
                                      const Captured& captures, Recomputed f);

/// Returns first(x), run unrecorded and recorded as one operation by record_recomputed.
std::vector<Tensor> recomputed(std::string_view name, std::span<const Tensor> x, const Function& first,
                               Recomputed again);

}   // namespace tapedeck
