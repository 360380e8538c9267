// Objective: a function of tensors as a function of one vector of f64, which is what minimizers compute with.
#pragma once
#include "tapedeck/minimize.h"

namespace tapedeck {

class Objective {
 public:
  /// Checks dtypes and the options.
  Objective(std::string_view caller, ValueAndGrad f, const std::vector<Tensor>& x,
            const MinimizeOptions& options);

  std::size_t size() const { return start_.size(); }
  const std::vector<double>& start() const { return start_; }

  /// The value, and the gradient into g; zeros where it is none.
  double value_and_gradient(std::span<const double> x, std::span<double> g);
  /// value_and_gradient of the start; throws where they are not finite.
  double begin(std::span<double> g);

  std::vector<Tensor> unpack(std::span<const double> x) const;
  void pack(std::span<const Tensor> parts, std::span<double> x) const;

  /// Fills in x, value, norm and whether it has converged; the first two are the norms of the gradient and of
  /// x.
  void note(Minimum& m, std::span<const double> x, double value, std::span<const double> g) const;
  int evaluations() const { return evaluations_; }

 private:
  std::string_view caller_;
  ValueAndGrad f_;
  std::vector<Spec> specs_;
  std::vector<double> start_;
  double tolerance_;
  int evaluations_ = 0;
};

double dot(std::span<const double> a, std::span<const double> b);

}   // namespace tapedeck
