// Compares steps of optimizers with libtorch's in one process, alternately, on variables of the same sizes.
// Prints for each case the factor by which tapedeck is faster. Arguments: words; only cases whose names
// contain one of them run (all by default).
#include <torch/all.h>

#include <cmath>
#include <memory>

#include "pair.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;

namespace {

using Sizes = std::vector<std::vector<std::int64_t>>;

/// The sizes of the weights and biases of a network with these widths.
Sizes network(const std::vector<std::int64_t>& widths) {
  Sizes sizes;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    sizes.push_back({widths[i], widths[i + 1]}), sizes.push_back({widths[i + 1]});
  return sizes;
}

torch::Tensor copied(const td::Tensor& x) {
  return torch::from_blob(const_cast<float*>(x.data<float>().data()),
                          std::vector<std::int64_t>(x.shape().begin(), x.shape().end()), torch::kFloat)
      .clone();
}
bool near(const td::Tensor& ours, const torch::Tensor& theirs) {
  return torch::allclose(copied(ours), theirs.detach(), 1e-5, 1e-6);
}

/// Variables and their gradients in both libraries.
struct Network {
  explicit Network(const Sizes& sizes) {
    for (const std::vector<std::int64_t>& size : sizes) {
      const td::Shape shape(size);
      const std::uint64_t seed = 2 * variables.size();
      variables.emplace_back(td::random::normal(shape, {.seed = seed}));
      gradients.push_back(td::random::normal(shape, {.seed = seed + 1}));
      parameters.push_back(copied(variables.back()).requires_grad_());
      parameters.back().mutable_grad() = copied(gradients.back().dense());
    }
  }
  bool agree() const {
    for (std::size_t i = 0; i < variables.size(); ++i)
      if (!near(variables[i], parameters[i])) return false;
    return true;
  }

  std::vector<td::Variable> variables;
  std::vector<td::Gradient> gradients;
  std::vector<torch::Tensor> parameters;
};

template <class Theirs, class Options> bench::Race race(const std::string& name, const std::string& size,
                                                        const Sizes& sizes, td::Optimizer ours,
                                                        const Options& options) {
  const auto net = std::make_shared<Network>(sizes);
  const auto mine = std::make_shared<td::Optimizer>(std::move(ours));
  const auto theirs = std::make_shared<Theirs>(net->parameters, options);
  const auto step = [=] { mine->apply_gradients(net->gradients, net->variables); };
  const auto their_step = [=] { theirs->step(); };
  return {name, size, step, their_step, [=] { return step(), their_step(), net->agree(); }};
}

/// The same as torch.optim.SparseAdam, which libtorch's C++ API does not have.
struct SparseAdam {
  torch::Tensor x, m = torch::zeros_like(x), v = torch::zeros_like(x);
  double count = 0;

  void step(const torch::Tensor& slices) {
    const torch::NoGradGuard no_gradients;
    ++count;
    const torch::Tensor g = slices.coalesce(), rows = g.indices()[0], values = g.values();
    const torch::Tensor m_old = m.index_select(0, rows), v_old = v.index_select(0, rows);
    const torch::Tensor m_moves = (values - m_old).mul_(0.1), v_moves = values.pow(2).sub_(v_old).mul_(0.001);
    m.index_add_(0, rows, m_moves);
    v.index_add_(0, rows, v_moves);
    const torch::Tensor numerator = m_moves.add(m_old), denominator = v_moves.add(v_old).sqrt_().add_(1e-8);
    x.index_add_(0, rows,
                 numerator.div_(denominator)
                     .mul_(-1e-3 * std::sqrt(1 - std::pow(0.999, count)) / (1 - std::pow(0.9, count))));
  }
};

bench::Race sparse_adam() {
  constexpr std::int64_t rows = 1'000'000, width = 64, ids = 1024;
  const td::Variable table(td::random::normal({rows, width}, {.seed = 1}));
  const td::Tensor values = td::random::normal({ids, width}, {.seed = 2}),
                   chosen = td::astype(td::random::uniform({ids}, {.seed = 3}, 0, rows), td::DType::i64);
  const auto mine = std::make_shared<td::Adam>(td::AdamOptions{.lazy = true});
  const auto theirs = std::make_shared<SparseAdam>(SparseAdam{copied(table)});
  const torch::Tensor places = torch::from_blob(const_cast<std::int64_t*>(chosen.data<std::int64_t>().data()),
                                                {1, ids}, torch::kLong)
                                   .clone(),
                      their_values = copied(values);
  const auto step = [=] {
    mine->apply_gradients({{td::IndexedSlices{values, chosen, table.shape()}, table}});
  };
  const auto their_step = [=] {
    theirs->step(torch::sparse_coo_tensor(places, their_values, {rows, width}));
  };
  return {"adam/sparse", "1Mx64, 1024", step, their_step,
          [=] { return step(), their_step(), near(table, theirs->x); }};
}

std::vector<bench::Race> all_cases() {
  namespace optim = torch::optim;
  const Sizes large = network({784, 800, 800, 10}), tiny = network({4, 16, 16, 3}),
              many = network(std::vector<std::int64_t>(51, 8));
  // libtorch adds epsilon at another place in the formula, so a negligible epsilon is used.
  const auto adam = [] { return td::Adam({.epsilon = 1e-12}); };
  const auto adam_too = optim::AdamOptions(1e-3).eps(1e-12);
  return {
      race<optim::Adam>("adam", "1.3M in 6", large, adam(), adam_too),
      race<optim::Adam>("adam", "403 in 6", tiny, adam(), adam_too),
      race<optim::Adam>("adam", "3600 in 100", many, adam(), adam_too),
      race<optim::Adam>("adam/amsgrad", "1.3M in 6", large, td::Adam({.epsilon = 1e-12, .amsgrad = true}),
                        optim::AdamOptions(1e-3).eps(1e-12).amsgrad(true)),
      race<optim::AdamW>("adamw", "1.3M in 6", large, td::AdamW(),
                         optim::AdamWOptions(1e-3).weight_decay(1e-2)),
      race<optim::SGD>("sgd", "1.3M in 6", large, td::GradientDescent({.learning_rate = 1e-3}),
                       optim::SGDOptions(1e-3)),
      race<optim::SGD>("sgd/momentum", "1.3M in 6", large,
                       td::Momentum({.learning_rate = 1e-3, .momentum = 0.9}),
                       optim::SGDOptions(1e-3).momentum(0.9)),
      race<optim::Adagrad>("adagrad", "1.3M in 6", large, td::Adagrad({.learning_rate = 1e-3}),
                           optim::AdagradOptions(1e-3).initial_accumulator_value(0.1).eps(0)),
      race<optim::RMSprop>("rmsprop/centered", "1.3M in 6", large,
                           td::RMSProp({.learning_rate = 1e-3,
                                        .epsilon = 1e-7,
                                        .centered = true,
                                        .initial_mean_square = 0,
                                        .epsilon_outside = true}),
                           optim::RMSpropOptions(1e-3).alpha(0.9).eps(1e-7).centered(true)),
      sparse_adam(),
  };
}

}   // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  td::set_num_threads(1);
  return bench::run(all_cases(), {argv + 1, argv + argc});
}
