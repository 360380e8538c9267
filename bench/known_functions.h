// The functions of f64 that benchmarks of autodiff libraries commonly differentiate: reductions, a product of
// matrices, a density and a regression.
#pragma once
#include <cmath>

#include "tapedeck/tapedeck.h"

namespace bench {

namespace known {

using Tensors = std::vector<tapedeck::Tensor>;

inline tapedeck::Tensor normals(const tapedeck::Shape& shape, std::uint64_t seed) {
  return tapedeck::random::normal(shape, {.seed = seed}, tapedeck::DType::f64);
}

inline tapedeck::Tensor number(double v) { return tapedeck::full({}, v, tapedeck::DType::f64); }

/// Logarithm of the density of a normal distribution at x, without the constant.
inline tapedeck::Tensor normal_log_pdf(const tapedeck::Tensor& x, const tapedeck::Tensor& mean,
                                       const tapedeck::Tensor& deviation) {
  using namespace tapedeck;
  return -0.5 * sum(square((x - mean) / deviation)) - static_cast<double>(x.size()) * log(deviation);
}

/// A function, the variables with respect to which it is differentiated, and its other arguments.
struct Function {
  tapedeck::Tensor (*f)(const Tensors& variables, const Tensors& data);
  Tensors variables, data = {};
};

inline Function sum(std::int64_t n) {
  return {[](const Tensors& v, const Tensors&) { return tapedeck::sum(v[0]); }, {normals({n}, 1)}};
}
inline Function prod(std::int64_t n) {
  return {[](const Tensors& v, const Tensors&) { return tapedeck::prod(v[0]); },
          {1 + 1e-3 * normals({n}, 1)}};
}
inline Function log_sum_exp(std::int64_t n) {
  return {[](const Tensors& v, const Tensors&) { return tapedeck::logsumexp(v[0]); }, {normals({n}, 1)}};
}
/// The sum of the product of two square matrices that have n elements in total.
inline Function matrix_product(std::int64_t n) {
  const std::int64_t side = std::llround(std::sqrt(n / 2));
  return {[](const Tensors& v, const Tensors&) { return tapedeck::sum(tapedeck::matmul(v[0], v[1])); },
          {normals({side, side}, 1), normals({side, side}, 2)}};
}
inline Function normal_log_pdf(std::int64_t n) {
  return {[](const Tensors& v, const Tensors&) { return known::normal_log_pdf(v[0], v[1], v[2]); },
          {normals({n}, 1), number(0.1), number(1.3)}};
}
/// The log-density of a regression with n parameters: weights, an offset and the deviation.
inline Function regression(std::int64_t n) {
  return {[](const Tensors& v, const Tensors& d) {
            const tapedeck::Tensor zero = number(0), one = number(1);
            return known::normal_log_pdf(d[1] - tapedeck::matmul(d[0], v[0]) - v[1], zero, v[2]) +
                   known::normal_log_pdf(v[0], zero, one) + known::normal_log_pdf(v[1], zero, one);
          },
          {normals({n - 2, 1}, 3), number(0.5), number(1.3)},
          {normals({1000, n - 2}, 1), normals({1000, 1}, 2)}};
}

/// The value, then the gradients.
inline Tensors differentiate(const Function& k, const Tensors& variables) {
  tapedeck::GradientTape tape;
  for (const tapedeck::Tensor& t : variables)
    tape.watch(t);
  Tensors all = {k.f(variables, k.data)};
  for (const tapedeck::Gradient& g : tape.gradient(tapedeck::Targets(all[0]), tapedeck::Sources(variables)))
    all.push_back(g.dense());
  return all;
}

}   // namespace known
}   // namespace bench
