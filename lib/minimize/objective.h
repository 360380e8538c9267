// Objective: a function of tensors as a function of one vector of f64, which is what minimizers compute with.
#pragma once
#include "tapedeck/minimize.h"

namespace tapedeck {

struct Point {
  std::vector<double> x, g;   // g is the gradient at x
  double value = 0;
};

/// Whether a is lower than b by more than the rounding of b. For smaller differences, comparing the gradients
/// shows better which of two points is nearer to a minimum.
bool is_lower(double a, double b);

class Objective {
 public:
  /// Checks dtypes and the options.
  Objective(std::string_view caller, ValueAndGrad f, const std::vector<Tensor>& x,
            const MinimizeOptions& options);

  std::size_t size() const { return start_.size(); }

  /// Returns the value, and writes the gradient to g, zeros if it is none. NaN if x is not finite in its
  /// dtypes.
  double value_and_gradient(std::span<const double> x, std::span<double> g);
  /// Evaluates the start; throws if the value or the gradient is not finite, or if no gradient reaches x.
  const Point& begin();
  /// The point with the least value of all evaluated so far whose value and gradient are finite.
  const Point& best() const { return best_; }

  std::vector<Tensor> unpack(std::span<const double> x) const;
  void pack(std::span<const Tensor> parts, std::span<double> x) const;

  /// Sets x, the value, the norm of the gradient and `converged` to those of p, or of the best point if it is
  /// lower.
  void note(Minimum& m, const Point& p) const;
  /// As note, at the start of a run, where m.iterations is 0, or at the end of an iteration. Calls progress
  /// after an iteration, and sets the reason if the run ends here.
  void arrive(Minimum& m, const Point& p) const;

  /// How far rounding may change the value near p.
  double rounding(const Point& p) const;

 private:
  std::string_view caller_;
  ValueAndGrad f_;
  std::vector<Spec> specs_;
  std::vector<double> start_;
  Point best_;
  double epsilon_;   // of the least precise dtype of x and the value
  const MinimizeOptions& options_;
  int evaluations_ = 0;
  bool has_gradient_ = false;   // at the point evaluated last
};

bool is_finite(double value, std::span<const double> g);
/// The largest power of two up to x that is a normal number and has a normal reciprocal. Division by it is
/// exact.
double unit_of(double x);
/// The Euclidean norm, computed without overflow or underflow of squares.
double norm(std::span<const double> v);
double dot(std::span<const double> a, std::span<const double> b);

}   // namespace tapedeck
