// Functions to minimize, all in f64: the 35 of Moré, Garbow and Hillstrom, the swing-up of a pendulum, and
// random ones. scipy_counts.py has the same problems in NumPy.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck::test {

struct Problem {
  std::string name;
  std::function<Tensor(const Tensor&)> f;
  std::vector<double> start;
  std::vector<double> minima;   // as published; local ones and those at infinity follow the least
};

/// J. J. Moré, B. S. Garbow, K. E. Hillstrom, Testing Unconstrained Optimization Software, ACM Transactions
/// on Mathematical Software 7 (1981), in the paper's order, with its standard starts; Watson's with 6, 9 and
/// 12 numbers.
std::vector<Problem> published_problems();

/// Forces u, one a step of 0.05 s, that swing a pendulum up from rest, where angle'' = u - 9.81 sin(angle).
Problem pendulum();

/// 40 of each of five kinds, of 2 to 25 numbers: waves in a bowl, fits of a layer of tanh, chains of curved
/// valleys, double wells with couplings, and pendulums.
std::vector<Problem> random_problems();

/// Whether the value is one of the problem's minima, within 10⁻⁵ of it, or 10⁻⁸ where it is 0.
bool is_minimum(const Problem& p, double value);

}   // namespace tapedeck::test
