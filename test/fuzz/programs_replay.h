// The inputs with which a random program is replayed.
#pragma once
#include "programs.h"

namespace tapedeck::fuzz {

/// Other inputs for the replays of a program, in the order of its steps.
class Replay {
 public:
  Replay(const Run& run, const std::vector<Step>& steps, const std::vector<Tensor>& inputs);

  /// For call 0 the original tensor, for later calls other floats like x.
  Tensor other(const Tensor& x, int call);
  /// The integers and bools of all calls of functions, and the keys.
  std::pair<std::vector<Tensor>, std::vector<random::Key>> draw(int call);
  /// Assigns these to their places in the program.
  Others others_of(const std::vector<Tensor>& integers, const std::vector<random::Key>& keys) const;

  /// All tensors of the functions that are constants.
  const std::vector<Tensor>& captured() const { return captured_; }
  /// Whether there are branches or loops; whether a shape depends on integers or bools.
  bool has_control_flow() const { return control_flow_; }
  bool shapes_may_change() const { return shapes_; }

 private:
  void collect(const Run& run, const std::vector<Step>& steps);

  Draw d_;
  std::vector<Others::Place> places_, places_of_keys_;
  std::vector<Tensor> integers_, captured_;
  std::vector<random::Key> keys_;
  bool control_flow_ = false, shapes_ = false;
};

}   // namespace tapedeck::fuzz
