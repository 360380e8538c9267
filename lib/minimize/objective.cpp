#include "minimize/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/format.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

double epsilon_of(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::epsilon()
                             : double{std::numeric_limits<float>::epsilon()};
}

}   // namespace

bool is_lower(double a, double b) { return a < b - 1e-15 * std::abs(b); }

bool is_finite(double value, std::span<const double> g) {
  return std::isfinite(value) && std::isfinite(norm(g));
}

double unit_of(double x) { return std::ldexp(1.0, std::clamp(std::ilogb(x), -1022, 1022)); }

double norm(std::span<const double> v) {
  double largest = 0, sum = 0;
  for (const double e : v)
    largest = std::max(largest, std::abs(e));
  const double unit = unit_of(largest);
  for (const double e : v)
    sum += e / unit * (e / unit);
  return unit * std::sqrt(sum);
}

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Objective::Objective(std::string_view caller, ValueAndGrad f, const std::vector<Tensor>& x,
                     const MinimizeOptions& options)
    : caller_(caller), f_(std::move(f)), epsilon_(epsilon_of(DType::f64)), options_(options) {
  if (!f_.call) throw_error<ArgumentError>("{}: the function is empty", caller);
  if (!(options.tolerance >= 0))
    throw_error<ArgumentError>("{}: tolerance is {}; use 0 or more", caller, options.tolerance);
  if (options.max_iterations < 0)
    throw_error<ArgumentError>("{}: max_iterations is {}; use 0 or more", caller, options.max_iterations);
  std::size_t n = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!x[i].defined()) throw_error<ArgumentError>("{}: x[{}] is undefined", caller, i);
    if (x[i].dtype() != DType::f32 && x[i].dtype() != DType::f64)
      throw_error<DTypeError>("{}: x[{}] is {}; use f32 or f64", caller, i, x[i].spec());
    specs_.push_back(x[i].spec());
    epsilon_ = std::max(epsilon_, epsilon_of(x[i].dtype()));
    n += static_cast<std::size_t>(x[i].size());
  }
  if (n == 0) throw_error<ArgumentError>("{}: x has no elements", caller);
  start_.resize(n);
  pack(x, start_);
}

void Objective::pack(std::span<const Tensor> parts, std::span<double> x) const {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t n = static_cast<std::size_t>(specs_[i].shape.size());
    const Tensor part =
        parts[i].defined() ? astype(parts[i], DType::f64) : zeros(specs_[i].shape, DType::f64);
    std::ranges::copy(part.data<double>(), x.begin());
    x = x.subspan(n);
  }
}

std::vector<Tensor> Objective::unpack(std::span<const double> x) const {
  std::vector<Tensor> parts;
  for (const Spec& s : specs_) {
    const std::size_t n = static_cast<std::size_t>(s.shape.size());
    parts.push_back(astype(tensor(x.first(n), s.shape), s.dtype));
    x = x.subspan(n);
  }
  return parts;
}

double Objective::value_and_gradient(std::span<const double> x, std::span<double> g) {
  const std::vector<Tensor> parts = unpack(x);
  pack(parts, g);
  if (!std::isfinite(norm(g))) return std::nan("");
  ++evaluations_;
  const auto [value, gradients] = f_.call(parts);
  const StopRecording unrecorded;
  if (!value.defined()) throw_error<ArgumentError>("{}: the function returns an undefined tensor", caller_);
  if (value.shape().ndim() > 0)
    throw_error<ShapeError>("{}: the function returns {}; use a scalar", caller_, value.spec());
  if (gradients.size() != specs_.size())
    throw_error<ArgumentError>("{}: {} gradients for {} tensors", caller_, gradients.size(), specs_.size());
  has_gradient_ = std::ranges::any_of(gradients, &Gradient::defined);
  std::vector<Tensor> dense;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    dense.push_back(gradients[i].defined() ? gradients[i].dense() : Tensor());
    if (dense[i].defined() && dense[i].shape() != specs_[i].shape)
      throw_error<ShapeError>("{}: the gradient for x[{}] is {}, x[{}] is {}", caller_, i, dense[i].spec(), i,
                              specs_[i]);
  }
  pack(dense, g);
  epsilon_ = std::max(epsilon_, epsilon_of(value.dtype()));
  const double number = astype(value, DType::f64).item<double>();
  if (is_finite(number, g) && (best_.x.empty() || number < best_.value)) {
    best_.x.assign(x.begin(), x.end());
    best_.g.assign(g.begin(), g.end());
    best_.value = number;
  }
  return number;
}

const Point& Objective::begin() {
  std::vector<double> g(size());
  const double value = value_and_gradient(start_, g);
  if (!is_finite(value, g))
    throw_error<ArgumentError>(
        "{}: at the start the value is {}, the gradient's norm {}; use a start where both are finite",
        caller_, value, norm(g));
  if (!has_gradient_)
    throw_error<ArgumentError>(
        "{}: no gradient reaches x; compute the value from the function's argument by ops, not by item() or "
        "by what was assigned to variables",
        caller_);
  return best_;
}

void Objective::note(Minimum& m, const Point& p) const {
  const Point& noted = is_lower(best_.value, p.value) ? best_ : p;
  m.x = unpack(noted.x);
  m.value = noted.value;
  m.gradient_norm = norm(noted.g);
  m.evaluations = evaluations_;
  m.converged = m.gradient_norm <= options_.tolerance * std::max(1.0, norm(noted.x));
}

void Objective::arrive(Minimum& m, const Point& p) const {
  note(m, p);
  if (m.iterations > 0 && options_.progress && !options_.progress(m))
    m.reason = "stopped by progress";
  else if (m.converged)
    m.reason = "the gradient is small";
  else if (m.iterations == options_.max_iterations)
    m.reason = "max_iterations";
}

// Rounding affects each number of x, and the value.
double Objective::rounding(const Point& p) const {
  double size = std::abs(p.value);
  for (std::size_t i = 0; i < p.x.size(); ++i)
    size += std::abs(p.x[i] * p.g[i]);
  return epsilon_ * std::max(size, std::numeric_limits<double>::min() / epsilon_);
}

ValueAndGrad detail::value_and_grad_of(std::string_view caller, Traced f) {
  return {[caller, f = std::move(f)](const std::vector<Tensor>& x) {
    Differentiated d = value_and_gradients(f, Sources(x), {}, false);
    if (d.values.size() != 1) throw_results(caller, d.values.size(), 1);
    return std::pair(std::move(d.values[0]), std::move(d.gradients));
  }};
}

}   // namespace tapedeck
