// Loops and branches in compiled functions, beside eager mode and loops by hand.
#pragma once
#include "../report.h"

namespace bench {

using Tensors = std::vector<td::Tensor>;
using Numbers = std::vector<double>;

struct Loop {
  std::string name;
  Tensors x;
  std::function<Tensors(const Tensors&)> f;   // it is compiled
  std::function<Numbers()> by_hand;           // its results
  double tolerance = 1e-10;                   // of the largest element
  Run eager = {};                             // by default f itself
  std::vector<Run> more = {};                 // further competitors, after those below
};
enum Competitor : std::size_t { replay, hand, eager };

/// Times a loop. Throws what require_close throws.
Race race(const Loop& l);

/// Throws std::runtime_error if an element of a result differs from that by hand by more than `tolerance` of
/// the largest element of this result.
void require_close(const std::string& name, const Tensors& results, const Numbers& by_hand, double tolerance);

td::Tensor number(double x);   // f64

void run_scalars();
void run_kalman();
void run_lstm();
void run_branch();
void run_memory();
void run_training();

}   // namespace bench
