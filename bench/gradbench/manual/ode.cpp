#include "../ode.h"

#include <algorithm>

#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

void primal(const ode::Input& in, Values& out) {
  out.resize(in.x.size());
  ode::solve(in, in.x.data(), out.data());
}

/// The last y of the exact solution is the product of all 2 x_i / (i + 1), so its derivatives are y / x_i.
void closed_form(const ode::Input& in, Values& out) {
  double y = 1;
  for (std::size_t i = 0; i < in.x.size(); ++i)
    y *= in.x[i] * 2 / static_cast<double>(i + 1);
  out.resize(in.x.size());
  for (std::size_t i = 0; i < in.x.size(); ++i)
    out[i] = y / in.x[i];
}

/// The stages of all steps, and the backward pass through them.
class Loop {
 public:
  explicit Loop(const std::shared_ptr<const ode::Input>& in)
      : in_(in),
        n_(in->x.size()),
        points_(n_ * 4 * static_cast<std::size_t>(in->s)),
        y_(n_),
        k_(n_),
        dy_(n_),
        dk_(n_) {}

  void gradient(Values& dx) {
    forward();
    dx.assign(n_, 0);
    std::fill(dy_.begin(), dy_.end(), 0);
    dy_.back() = 1;
    const double h = 2.0 / in_->s;
    for (auto t = static_cast<std::size_t>(in_->s); t-- > 0;) {
      const double* at = &points_[4 * t * n_];
      carry_.assign(n_, 0);
      stage_back(at + 3 * n_, h / 6, 0, dx);
      stage_back(at + 2 * n_, h / 3, h, dx);
      stage_back(at + n_, h / 3, h / 2, dx);
      stage_back(at, h / 6, h / 2, dx);
      for (std::size_t i = 0; i < n_; ++i)
        dy_[i] += sums_[i];
      std::fill(sums_.begin(), sums_.end(), 0);
    }
  }

 private:
  /// Computes the points at which slopes are evaluated: in each step, y itself and three others.
  void forward() {
    sums_.assign(n_, 0);
    std::fill(y_.begin(), y_.end(), 0);
    const double h = 2.0 / in_->s;
    for (std::size_t t = 0; t < static_cast<std::size_t>(in_->s); ++t) {
      double* at = &points_[4 * t * n_];
      std::copy(y_.begin(), y_.end(), at);
      for (const auto& [next, part] : std::initializer_list<std::pair<double, double>>{
               {h / 2, h / 6}, {h / 2, h / 3}, {h, h / 3}, {0, h / 6}}) {
        ode::slope(n_, in_->x.data(), at, k_.data());
        if (next != 0)
          for (std::size_t i = 0; i < n_; ++i)
            at[n_ + i] = points_[4 * t * n_ + i] + next * k_[i];
        for (std::size_t i = 0; i < n_; ++i)
          y_[i] += part * k_[i];
        at += n_;
      }
    }
  }
  /// The slope k at a point has a cotangent from y, times `part`, and from the point of the next stage, times
  /// `next`. The cotangent of this point is kept for the previous stage, and added to the sum for y, from
  /// which all points start.
  void stage_back(const double* at, double part, double next, Values& dx) {
    const Values& x = in_->x;
    for (std::size_t i = 0; i < n_; ++i)
      dk_[i] = part * dy_[i] + next * carry_[i];
    dx[0] += dk_[0];
    for (std::size_t i = 1; i < n_; ++i)
      dx[i] += dk_[i] * at[i - 1];
    for (std::size_t i = 1; i < n_; ++i)
      carry_[i - 1] = dk_[i] * x[i];
    carry_[n_ - 1] = 0;
    for (std::size_t i = 0; i < n_; ++i)
      sums_[i] += carry_[i];
  }

  std::shared_ptr<const ode::Input> in_;
  std::size_t n_;
  Values points_, y_, k_, dy_, dk_, carry_, sums_;
};

}   // namespace

std::vector<Work> works(const std::shared_ptr<const ode::Input>& in) {
  return {work([in](Values& out) { primal(*in, out); }), work([in](Values& out) { closed_form(*in, out); })};
}
std::vector<Work> backward_works(const std::shared_ptr<const ode::Input>& in) {
  const auto loop = std::make_shared<Loop>(in);
  return {work([in](Values& out) { primal(*in, out); }), work([loop](Values& out) { loop->gradient(out); })};
}

}   // namespace gradbench::GRADBENCH_KIND
