// Compares second derivatives and Jacobians with libtorch's in one process, alternately, on the same numbers.
// Prints for each case the factor by which tapedeck is faster. Arguments: words; only cases whose names
// contain one of them run (all by default).
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "../differentiated.h"
#include "pair.h"
#include "rosenbrock.h"

namespace td = tapedeck;

namespace {

torch::Tensor copied(const td::Tensor& x) {
  const bool f32 = x.dtype() == td::DType::f32;
  const std::vector<std::int64_t> shape(x.shape().begin(), x.shape().end());
  const void* data = f32 ? static_cast<const void*>(x.data<float>().data()) : x.data<double>().data();
  return torch::from_blob(const_cast<void*>(data), shape, f32 ? torch::kFloat : torch::kDouble).clone();
}

bool agree(const td::Tensor& ours, const torch::Tensor& theirs) {
  if (ours.size() != theirs.numel()) return false;
  const std::vector<double> a = ours.to_vector();
  const torch::Tensor all = theirs.to(torch::kDouble).contiguous();
  const double* b = all.data_ptr<double>();
  const double scale = all.abs().max().item<double>(), most = theirs.dtype() == torch::kFloat ? 1e-5 : 1e-12;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= most * scale)) return false;
  return true;
}

struct TorchNetwork {
  explicit TorchNetwork(const bench::Network& n)
      : a(copied(n.a)),
        b(copied(n.b)),
        c(copied(n.c)),
        d(copied(n.d)),
        x(copied(n.x).set_requires_grad(true)) {}
  torch::Tensor a, b, c, d, x;

  torch::Tensor jacobian() const {
    const torch::Tensor y = torch::matmul(torch::tanh(torch::matmul(x, a) + b), c) + d;
    std::vector<torch::Tensor> rows;
    for (std::int64_t i = 0; i < y.size(1); ++i) {
      const torch::Tensor dy = torch::zeros_like(y);
      dy[0][i].fill_(1);
      rows.push_back(torch::autograd::grad({y}, {x}, {dy}, true)[0]);
    }
    return torch::cat(rows, 0);
  }
};

// libtorch's C++ API has no vmap.
constexpr const char* kByRows = "libtorch: a call of grad for each row";

bench::Race race(std::string name, std::string size, std::function<td::Tensor()> ours,
                 std::function<torch::Tensor()> theirs, std::string note = {}) {
  return {std::move(name),
          std::move(size),
          [=] { ours(); },
          [=] { theirs(); },
          [=] { return agree(ours(), theirs()); },
          std::move(note)};
}

std::vector<bench::Race> all_cases() {
  std::vector<bench::Race> cases;
  const td::Tensor few = bench::points(100), many = bench::points(1'000'000),
                   v = td::random::normal({1'000'000}, {.seed = 1}, td::DType::f64);
  const torch::Tensor few_too = copied(few).set_requires_grad(true),
                      many_too = copied(many).set_requires_grad(true), v_too = copied(v);
  const auto gradient = [](const td::Tensor& x) { return td::grad(bench::rosenbrock, x).dense(); };
  cases.push_back(race(
      "rosenbrock/gradient", "1000000", [=] { return gradient(many); },
      [=] { return peers::rosenbrock_gradient(many_too); }));
  cases.push_back(race(
      "rosenbrock/hessian", "100", [=] { return td::hessian(bench::rosenbrock, few); },
      [=] { return peers::rosenbrock_hessian(few_too); }, kByRows));
  cases.push_back(race(
      "rosenbrock/hessian_rows", "100",
      [=] { return td::hessian(bench::rosenbrock, few, {.mode = td::JacobianMode::reverse}); },
      [=] { return peers::rosenbrock_hessian(few_too); }, kByRows));
  cases.push_back(race(
      "rosenbrock/hessian_columns", "100",
      [=] { return td::hessian(bench::rosenbrock, few, {.mode = td::JacobianMode::forward}); },
      [=] { return peers::rosenbrock_hessian(few_too); }, kByRows));
  for (const auto& [mode, name] : {std::pair{td::JacobianMode::automatic, "hvp"},
                                   {td::JacobianMode::reverse, "hvp_reverse"},
                                   {td::JacobianMode::forward, "hvp_forward"}})
    cases.push_back(race(
        std::string("rosenbrock/") + name, "1000000",
        [=, m = mode] { return td::hessian_vector_product(bench::rosenbrock, many, v, m); },
        [=] { return peers::rosenbrock_hvp(many_too, v_too); }));
  for (const std::int64_t in : {64, 100}) {
    for (const std::int64_t units : {64, 256}) {
      const bench::Network network(in, units);
      const TorchNetwork torch_network(network);
      const std::string size = std::to_string(in) + "x" + std::to_string(units) + "x100";
      cases.push_back(race(
          "jacobian/rows", size,
          [=] { return td::jacobian(network, network.x, {.mode = td::JacobianMode::reverse}); },
          [=] { return torch_network.jacobian(); }, kByRows));
      cases.push_back(race(
          "jacobian/columns", size,
          [=] { return td::jacobian(network, network.x, {.mode = td::JacobianMode::forward}); },
          [=] { return torch_network.jacobian(); }, kByRows));
      cases.push_back(race(
          "jacobian/gradient_calls", size, [=] { return bench::gradient_calls(network); },
          [=] { return torch_network.jacobian(); }, kByRows));
    }
  }
  return cases;
}

}   // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  td::set_num_threads(1);
  return bench::run(all_cases(), {argv + 1, argv + argc});
}
