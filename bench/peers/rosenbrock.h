// libtorch's derivatives of Rosenbrock's function.
#pragma once
#include <torch/torch.h>

#include <vector>

namespace peers {

inline torch::Tensor rosenbrock(const torch::Tensor& x) {
  const auto n = x.size(0);
  const auto a = x.narrow(0, 0, n - 1), b = x.narrow(0, 1, n - 1);
  return (100 * (b - a * a).pow(2) + (1 - a).pow(2)).sum();
}
inline torch::Tensor rosenbrock_gradient(const torch::Tensor& x) {
  return torch::autograd::grad({rosenbrock(x)}, {x})[0];
}
inline torch::Tensor rosenbrock_hessian(const torch::Tensor& x) {
  const auto g = torch::autograd::grad({rosenbrock(x)}, {x}, {}, true, true)[0];
  std::vector<torch::Tensor> rows;
  for (int64_t i = 0; i < x.size(0); ++i)
    rows.push_back(torch::autograd::grad({g[i]}, {x}, {}, true)[0]);
  return torch::stack(rows);
}
inline torch::Tensor rosenbrock_hvp(const torch::Tensor& x, const torch::Tensor& v) {
  const auto g = torch::autograd::grad({rosenbrock(x)}, {x}, {}, true, true)[0];
  return torch::autograd::grad({g.dot(v)}, {x})[0];
}

}   // namespace peers
