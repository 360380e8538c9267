// Finds where NaN and infinities originate: checks the results of rules and ops.
#include <cmath>
#include <complex>

#include "core/bytes.h"
#include "core/cast.h"
#include "core/format.h"
#include "core/visit.h"
#include "debug/origin.h"
#include "tapedeck/debug.h"
#include "tapedeck/indexed_slices.h"

namespace tapedeck {
namespace {

const Tensor& numbers_of(const Gradient& g) { return g.slices() ? g.slices()->values : g.tensor(); }
std::string fault(const Tensor& x, std::int64_t at) {
  std::complex<double> z;
  detail::convert_to(x, at, 1, DType::c128, &z);
  return fmt::format("{}, has {} at element {}", x.spec(),
                     std::isnan(z.real()) || std::isnan(z.imag()) ? "nan" : "inf", at);
}

// The position of the first number of x that is NaN or infinite, or -1.
std::int64_t first_not_finite(const Tensor& x) {
  if (!is_trainable(x.dtype()) || !x.has_values()) return -1;
  if (is_half(x.dtype())) return first_not_finite(to_computed(x));
  return visit_floating(real_of(x.dtype()), [&]<class T>(T) {
    const int parts = is_complex(x.dtype()) ? 2 : 1;
    const T* number = elements<T>(x);
    const std::int64_t n = x.size() * parts;
    bool finite = true;
    for (std::int64_t i = 0; i < n; ++i)
      finite &= number[i] - number[i] == T(0);
    if (finite) return std::int64_t{-1};
    std::int64_t i = 0;
    while (std::isfinite(number[i]))
      ++i;
    return i / parts;
  });
}

class RuleCheck final : public Observer {
 public:
  void before_rule(const Event& e, std::span<const Gradient> dy) override {
    check(e, dy, "output", "; it came with the output gradients, or from a sum");
  }
  void after_rule(const Event& e, std::span<const Gradient> dx) override { check(e, dx, "input", ""); }
  std::shared_ptr<const Origin> origin(std::uint64_t id) const override { return origin_here(id); }

 private:
  static void check(const Event& e, std::span<const Gradient> gradients, std::string_view what,
                    std::string_view more) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const Tensor& g = numbers_of(gradients[i]);
      if (const std::int64_t at = first_not_finite(g); at >= 0)
        throw_error<GradientError>("{}: the gradient of {} {}, {}{}{}", e.name, what, i, fault(g, at), more,
                                   e.origin ? describe(*e.origin) : "");
    }
  }
};

std::string in_scopes() {
  const std::string in = scopes();
  return in.empty() ? "" : fmt::format("\n  in scope \"{}\"", in);
}

// The labels of a cross entropy are probabilities, or one-hot rows with weights: others are probably logits,
// passed by mistake.
void check_labels(const Event& e) {
  const bool sigmoid = e.call.op.name == "sigmoid_cross_entropy";
  if (!sigmoid && e.call.op.name != "softmax_cross_entropy") return;
  const Tensor labels = to_computed(e.call.x[0]);
  visit_floating(labels.dtype(), [&]<class T>(T) {
    const T* label = elements<T>(labels);
    for (std::int64_t i = 0; i < labels.size(); ++i)
      if (label[i] < 0 || (sigmoid && label[i] > 1))
        throw_error<ArgumentError>(
            "{}: labels, {}, has {} at element {}, which is {}; are labels and logits swapped?{}", e.name,
            e.call.x[0].spec(), label[i], i, sigmoid ? "not in [0, 1]" : "negative", in_scopes());
  });
}

class ResultCheck final : public Observer {
 public:
  void computed(const Event& e, std::span<const Tensor> y) override {
    check_labels(e);
    for (std::size_t k = 0; k < y.size(); ++k)
      if (const std::int64_t at = first_not_finite(y[k]); at >= 0)
        throw_error<ArgumentError>("{}: result {}, {}{}", e.name, k, fault(y[k], at), in_scopes());
  }
};

}   // namespace

AnomalyMode::AnomalyMode() : observer_(std::make_unique<RuleCheck>()) {}
AnomalyMode::~AnomalyMode() = default;
NumericsCheck::NumericsCheck() : observer_(std::make_unique<ResultCheck>()) {}
NumericsCheck::~NumericsCheck() = default;

}   // namespace tapedeck
