// The errors of values, first and second derivatives of elementwise functions at the points of
// test/data/accuracy.txt.
#pragma once
#include <string>
#include <vector>

#include "tapedeck/op.h"

namespace tapedeck::test {

/// An op as a function of x: "exp" for an op of one argument, "pow(x, 1.75)" for others.
class CalledOp {
 public:
  explicit CalledOp(const std::string& call);

  Tensor operator()(const Tensor& x) const;
  const Op& op() const { return *op_; }

 private:
  const Op* op_ = nullptr;
  std::vector<double> arguments_;   // NaN stands for x
};

struct Error {
  double ulps = 0, at = 0;
};
/// The largest errors of a function, for each dtype (f32, f64) and order of derivative (0, 1, 2).
struct Errors {
  std::string call;
  Error of[2][3];
};
std::vector<Errors> errors_over_range();

/// Two tables in Markdown: the errors, and the errors that test/data/accuracy_limits.txt allows.
void print_over_range(const std::vector<Errors>& all);
/// Prints which errors exceed their limits, which limits are not needed, and which ops have no points.
/// Returns the number of these.
int check_over_range(const std::vector<Errors>& all);

}   // namespace tapedeck::test
