// Checks an op by its samples: outputs, derivatives, stacked cotangents and f32. In: an op and samples. Out:
// the first fault, in words.
#include <algorithm>
#include <complex>
#include <ostream>

#include "core/format.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/join.h"

namespace tapedeck {
namespace {

using Tensors = std::vector<Tensor>;

bool trainable(const Tensor& x) { return is_trainable(x.dtype()); }
bool any_trainable(const Tensors& x) { return std::any_of(x.begin(), x.end(), trainable); }
Tensors trainable(const Tensors& x) {
  Tensors some;
  std::copy_if(x.begin(), x.end(), std::back_inserter(some), [](const Tensor& t) { return trainable(t); });
  return some;
}
bool is_single(const Tensor& x) { return real_of(x.dtype()) == DType::f32; }

/// Values without a pattern in [-1, 1], of x's spec; integers get zeros.
Tensor any_like(const Tensor& x, int which) {
  if (!trainable(x)) return zeros(x.shape(), x.dtype());
  std::vector<std::complex<double>> v(static_cast<std::size_t>(x.size()));
  double u = 0.17 * which;
  const auto next = [&u] { return 2 * (u = std::fmod(u + 0.6180339887498949, 1.0)) - 1; };
  for (std::complex<double>& e : v) {
    const double real = next();
    e = {real, is_complex(x.dtype()) ? next() : 0};
  }
  const Tensor z = tensor(v, x.shape());
  return astype(z, x.dtype());
}
Tensors any_like(const Tensors& x) {
  Tensors all;
  for (const Tensor& t : x)
    all.push_back(any_like(t, static_cast<int>(all.size()) + 3));
  return all;
}

using ComplexNumber = std::complex<double>;

/// The largest magnitude among b's finite elements.
double largest(const Tensor& b) {
  double most = 0;
  for (const ComplexNumber& v : b.to_vector<ComplexNumber>())
    if (std::isfinite(std::abs(v))) most = std::max(most, std::abs(v));
  return most;
}

/// Describes the first element of a that differs from b by more than the tolerance, relative to the element
/// of b, and than the floor; empty if there is none. NaN equals NaN.
std::string difference(std::string_view what, const Tensor& a, const Tensor& b, double tolerance,
                       double floor) {
  const auto is_nan = [](ComplexNumber z) { return std::isnan(z.real()) || std::isnan(z.imag()); };
  if (a.shape() != b.shape()) return fmt::format("{} is {}, not {}", what, a.spec(), b.spec());
  const std::vector<ComplexNumber> u = a.to_vector<ComplexNumber>(), v = b.to_vector<ComplexNumber>();
  for (std::size_t i = 0; i < u.size(); ++i) {
    if (u[i] == v[i] || (is_nan(u[i]) && is_nan(v[i])) ||
        std::abs(u[i] - v[i]) <= std::max(tolerance * std::abs(v[i]), floor))
      continue;
    const auto text = [&](ComplexNumber z) {
      return is_complex(b.dtype()) ? fmt::format("{:.17g}{:+.17g}i", z.real(), z.imag())
                                   : fmt::format("{:.17g}", z.real());
    };
    return fmt::format("{}, {}, is {} at element {}, not {}", what, b.spec(), text(u[i]), i, text(v[i]));
  }
  return {};
}

/// One op with one sample. Each function returns the first fault that it finds.
class OpCheck {
 public:
  OpCheck(const Op& op, const Sample& s, const OpCheckOptions& options)
      : op_(op), s_(s), options_(options), y_(run(s.inputs)) {}

  /// Sets `part` to the part of the check that runs.
  std::string fault(std::string_view& part) const {
    const bool varies = any_trainable(s_.inputs), differentiable = varies && any_trainable(y_);
    part = "the check of the outputs";
    std::string text = in_outputs();
    part = "the check of the derivative";
    if (text.empty() && differentiable) text = has_rule() ? in_derivative() : in_no_derivative();
    part = "the check of stacked cotangents";
    if (text.empty() && differentiable && has_rule() && op_.rule.stacks && op_.rule.vjp)
      text = in_stacked_cotangents();
    part = "the check of f32";
    if (text.empty() && varies) text = in_f32(differentiable && has_rule());
    return text;
  }

 private:
  /// The absolute error allowed in any element if the largest is right within the tolerance. For an
  /// elementwise op it does not depend on other elements, since their terms do not mix.
  double floor(const Tensor& b, double tolerance) const {
    return op_.rule.kind == RuleKind::partials ? s_.floor : std::max(s_.floor, tolerance * largest(b));
  }
  bool has_rule() const { return op_.rule.kind != RuleKind::none && op_.rule.kind != RuleKind::undefined; }
  bool held(std::size_t i) const { return i < 64 && (options_.gradients.held >> i & 1); }
  Tensors run(const Tensors& x) const { return op_.run(x, s_.attrs.view()); }
  template <class F> auto with_call(const Tensors& x, const Tensors& y, const F& f) const {
    std::vector<const Tensor*> px, py;
    for (const Tensor& t : x)
      px.push_back(&t);
    for (const Tensor& t : y)
      py.push_back(&t);
    return f(Call{.op = op_,
                  .raw_attrs = s_.attrs.view(),
                  .x = {px.data(), static_cast<int>(px.size())},
                  .y = {py.data(), static_cast<int>(py.size())}});
  }

  std::string in_outputs() const {
    const std::vector<Spec> specs = with_call(s_.inputs, {}, [&](const Call& c) {
      return op_.infer.many ? op_.infer.many(c) : std::vector<Spec>{op_.infer.one(c)};
    });
    if (specs.size() != y_.size()) return fmt::format("{} outputs, {} inferred", y_.size(), specs.size());
    if (!s_.expected.empty() && s_.expected.size() != y_.size())
      return fmt::format("{} outputs, {} expected", y_.size(), s_.expected.size());
    for (std::size_t k = 0; k < y_.size(); ++k) {
      if (y_[k].spec() != specs[k])
        return fmt::format("output {} is {}, inferred is {}", k, y_[k].spec(), specs[k]);
      if (s_.expected.empty()) continue;
      if (y_[k].spec() != s_.expected[k].spec())
        return fmt::format("output {} is {}, expected is {}", k, y_[k].spec(), s_.expected[k].spec());
      std::string text = difference(fmt::format("output {}", k), y_[k], s_.expected[k],
                                    is_single(y_[k]) ? 1e-6 : 1e-13, s_.floor);
      if (!text.empty()) return text;
    }
    return {};
  }

  /// The gradients of all inputs for the cotangents dy; undefined if there is none.
  Tensors vjp(const Tensors& x, const Tensors& dy) const {
    GradientTape tape;
    const Tensors sources = trainable(x);
    for (const Tensor& t : sources)
      tape.watch(t);
    std::vector<Gradient> g =
        tape.gradient(Targets(trainable(run(x))), Sources(sources), {.output_gradients = trainable(dy)});
    Tensors dx;
    auto next = g.begin();
    for (const Tensor& t : x) {
      Gradient one = trainable(t) ? std::move(*next++) : Gradient();
      dx.push_back(one.defined() ? std::move(one).dense() : Tensor());
    }
    return dx;
  }

  std::string in_derivative() const {
    const Tensors dx = vjp(s_.inputs, any_like(y_));
    bool all_held = true;
    for (std::size_t i = 0; i < dx.size(); ++i) {
      if (held(i) && dx[i].defined()) return fmt::format("input {} is held, but has a gradient", i);
      all_held = all_held && (held(i) || !trainable(s_.inputs[i]));
    }
    if (!options_.differences || all_held) return {};
    const Agreement a = check_gradients(as_function(op_, s_.attrs), s_.inputs, options_.gradients);
    return a ? std::string() : text_of(a);
  }
  static std::string text_of(const Agreement& a) {
    std::ostringstream out;
    out << a;
    return out.str();
  }

  std::string in_no_derivative() const {
    try {
      for (const Tensor& dx : vjp(s_.inputs, any_like(y_)))
        if (dx.defined()) return "a gradient came through an op without a derivative";
    } catch (const GradientError&) {
      if (op_.rule.kind == RuleKind::undefined) return {};
      throw;
    }
    return op_.rule.kind == RuleKind::undefined ? "asking for the gradient did not throw" : "";
  }

  std::string in_stacked_cotangents() const {
    constexpr std::int64_t kCount = 3;
    const auto pull_back = [&](const Tensors& dy) {
      std::vector<Gradient> cotangents(dy.begin(), dy.end()), dx(s_.inputs.size());
      with_call(s_.inputs, y_, [&](const Call& c) { op_.rule.vjp(c, cotangents, dx); });
      return dx;
    };
    std::vector<Tensors> each(kCount);
    Tensors stacked;
    for (const Tensor& t : y_) {
      Tensors rows;
      for (Tensors& one : each) {
        one.push_back(any_like(t, static_cast<int>(rows.size()) + 5));
        rows.push_back(expand_dims(one.back(), 0));
      }
      stacked.push_back(concat(rows, 0));
    }
    const std::vector<Gradient> all = pull_back(stacked);
    for (std::int64_t j = 0; j < kCount; ++j) {
      const std::vector<Gradient> one = pull_back(each[static_cast<std::size_t>(j)]);
      for (std::size_t i = 0; i < one.size(); ++i) {
        if (one[i].defined() != all[i].defined())
          return fmt::format("stacked cotangents and single ones do not both give input {} a gradient", i);
        if (!one[i].defined()) continue;
        std::string text =
            difference(fmt::format("from stacked cotangents, the gradient of input {}", i),
                       row(all[i].dense(), j), one[i].dense(), 1e-12, floor(one[i].dense(), 1e-12));
        if (!text.empty()) return text;
      }
    }
    return {};
  }
  /// x[i].
  static Tensor row(const Tensor& x, std::int64_t i) { return unstack(x)[static_cast<std::size_t>(i)]; }

  std::string in_f32(bool differentiable) const {
    Tensors x;
    for (const Tensor& t : s_.inputs)
      x.push_back(t.dtype() == DType::f64    ? astype(t, DType::f32)
                  : t.dtype() == DType::c128 ? astype(t, DType::c64)
                                             : t);
    Tensors y;
    try {
      y = run(x);
    } catch (const DTypeError&) {
      return {};
    }
    for (std::size_t k = 0; k < y.size(); ++k) {
      std::string text = difference(fmt::format("in f32, output {}", k), y[k], y_[k],
                                    trainable(y[k]) ? 2e-5 : 0, trainable(y[k]) ? floor(y_[k], 2e-5) : 0);
      if (!text.empty()) return text;
    }
    if (!differentiable) return {};
    const Tensors dx = vjp(x, any_like(y)), wide = vjp(s_.inputs, any_like(y_));
    for (std::size_t i = 0; i < dx.size(); ++i) {
      if (dx[i].defined() != wide[i].defined())
        return fmt::format("f32 and f64 do not both give input {} a gradient", i);
      if (!dx[i].defined()) continue;
      if (dx[i].spec() != x[i].spec())
        return fmt::format("in f32, the gradient of input {} is {}, the input {}", i, dx[i].spec(),
                           x[i].spec());
      std::string text = difference(fmt::format("in f32, the gradient of input {}", i), dx[i], wide[i], 1e-4,
                                    floor(wide[i], 1e-4));
      if (!text.empty()) return text;
    }
    return {};
  }

  const Op& op_;
  const Sample& s_;
  const OpCheckOptions& options_;
  Tensors y_;
};

// The first fault, or an exception that no check expects.
std::string fault_of(const Op& op, const Sample& s, const OpCheckOptions& options) {
  std::string_view part = "the op";
  try {
    return OpCheck(op, s, options).fault(part);
  } catch (const std::exception& e) {
    return fmt::format("{} has thrown: {}", part, e.what());
  }
}

}   // namespace

std::ostream& operator<<(std::ostream& out, const OpAgreement& a) {
  return out << (a.fault.empty() ? "no fault" : a.fault);
}

OpAgreement check_op(const Op& op, std::span<const Sample> samples, const OpCheckOptions& options) {
  if (samples.empty()) return {fmt::format("{}: there are no samples", op.name)};
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (const std::string fault = fault_of(op, samples[i], options); !fault.empty())
      return {fmt::format("{}, sample {}: {}", op.name, i, fault)};
  return {};
}

}   // namespace tapedeck
