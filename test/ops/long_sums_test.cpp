// Ops of halves with 10,000 elements along an axis, compared with f64 on the same numbers. A sum that is kept
// in a half stops growing, at 256 times its terms in bf16 and at 2,048 in f16, and so misses more than half
// here.
#include <catch2/catch.hpp>

#include "ops/op_samples.h"
#include "ops/sample_values.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/ops.h"

namespace long_sums_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr std::int64_t kLong = 10'000, kMost = 25'000;   // elements along the axis, and in all
constexpr double kTolerance = 0.05;                      // of the largest number

/// Elements repeated along an axis of each input, or of none (-1) of one.
std::optional<Tensors> lengthened(const Tensors& inputs, const std::vector<int>& axes) {
  Tensors longer;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i];
    const int axis = axes[i];
    if (axis >= 0 && (axis >= x.ndim() || x.shape()[axis] == 0)) return {};
    longer.push_back(axis < 0 ? x : repeat(x, kLong / x.shape()[axis] + 1, axis));
    if (longer.back().size() > kMost) return {};
  }
  return longer;
}

Tensors of(const Tensors& x, DType from, DType to) {
  Tensors y;
  for (const Tensor& t : x)
    y.push_back(t.dtype() == from ? astype(t, to) : t);
  return y;
}

Tensors positive_like(const Tensors& x) {
  Tensors all;
  for (const Tensor& t : x)
    all.push_back(astype(random::uniform(t.shape(), {.seed = 3}, 0.5, 1.5), t.dtype()));
  return all;
}

/// Values and gradients; none where the op refuses the inputs.
std::optional<Tensors> values_of(const Op& op, const Sample& s, const Tensors& x) {
  Tensors all;
  try {
    for (const Spec& spec : inferred(op, x, s.attrs))
      if (spec.shape.size() > kMost) return {};
    GradientTape tape;
    for (const Tensor& t : trainable(x))
      tape.watch(t);
    all = trainable(run(op, x, s.attrs));
    // A rule that reads results reads rounded ones: docs/reference/accuracy.md.
    if (any_complex(all)) return {};
    if (has_derivative(op) && !op.rule.reads_y && !all.empty())
      for (const Gradient& g :
           tape.gradient(Targets(all), Sources(trainable(x)), {.output_gradients = positive_like(all)}))
        if (g.defined()) all.push_back(g.dense());
  } catch (const Error&) {
    return {};
  }
  return all;
}

/// Families of ops that ask for matrices of full rank, which repeated rows have not, and compute in f32.
bool asks_for_rank(std::string_view family) {
  return family == "solve" || family == "decompositions" || family == "eig" || family == "matrix_functions";
}

double largest(const Tensor& x) { return x.size() == 0 ? 0 : max(abs(x)).item(); }

/// Whether each is near, where the half can hold it.
bool near(const Tensors& halves, const Tensors& exact, DType half) {
  if (halves.size() != exact.size()) return false;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const double most = largest(exact[i]);
    if (!(most < (half == DType::f16 ? 60'000 : 1e30))) continue;
    if (!(largest(astype(halves[i], DType::f64) - exact[i]) <= kTolerance * most + 1e-4)) return false;
  }
  return true;
}

}   // namespace

TEST_CASE("ops add up many halves", "[op][half]") {
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      if (!asks_for_rank(family.name)) DYNAMIC_SECTION(op->name) {
          for (const Sample& s : complete_samples_of(*op)) {
            if (any_complex(s.inputs) || s.inputs.empty() || s.inputs.size() > 3) continue;
            std::vector<int> axes(s.inputs.size(), -1);
            // All choices of an axis, or none, for each input.
            const auto next = [&] {
              for (std::size_t i = 0; i < axes.size(); ++i) {
                if (++axes[i] < s.inputs[i].ndim()) return true;
                axes[i] = -1;
              }
              return false;
            };
            while (next()) {
              const std::optional<Tensors> longer = lengthened(s.inputs, axes);
              if (!longer) continue;
              for (const DType half : {DType::f16, DType::bf16}) {
                const Tensors x = of(*longer, DType::f64, half);
                const auto exact = values_of(*op, s, of(x, half, DType::f64));
                if (!exact) break;
                const auto halves = values_of(*op, s, x);
                if (!halves) break;
                CAPTURE(family.name, op->name, half, axes, specs_of(x));
                CHECK(near(*halves, *exact, half));
              }
            }
          }
        }
}

}   // namespace long_sums_test
