// Two custom optimizers. AdaBelief updates the elements of a variable by a loop over numbers, which the
// library runs over parts of variables, on several threads, and over the rows of sparse gradients. Muon
// updates whole matrices by ops. The program fits a linear map with both and, for comparison, with plain
// gradient descent. docs/guide/optimizers.md explains the fields.
#include <cmath>

#include <fmt/format.h>
#include <tapedeck/tapedeck.h>
#include <tapedeck/update_rule.h>

#include "../common/example.h"

namespace td = tapedeck;

namespace {

// m is a running mean of g, s of (g - m)²; x moves by m / √s, both corrected: Zhuang et al., "AdaBelief
// optimizer", 2020.
template <class T> void move_by_belief(const td::UpdateRow<T>& row) {
  T *const x = row.x, *const m = row.slots[0], *const s = row.slots[1];
  const T part_of_m = row.c[0], part_of_s = row.c[1], rate = row.c[2], correction = row.c[3],
          epsilon = row.c[4];
  for (std::int64_t i = 0; i < row.n; ++i) {
    m[i] += part_of_m * (row.g[i] - m[i]);
    const T surprise = row.g[i] - m[i];
    s[i] += part_of_s * (surprise * surprise - s[i]) + epsilon;
    x[i] -= rate * m[i] / (std::sqrt(s[i] * correction) + epsilon);
  }
}

/// AdaBelief's hyperparameters, in the order of the list below.
struct Belief {
  double learning_rate, beta1, beta2, epsilon;
};

constexpr td::UpdateRule kAdaBelief = {
    .name = "adabelief",
    .doc = "Adam with the mean of (g - m)² in the place of that of g².",
    .slots = {{"m"}, {"s"}},
    .hyperparameters = {{"learning_rate", 1e-3, td::domains::finite},
                        {"beta1", 0.9, td::domains::decay},
                        {"beta2", 0.999, td::domains::decay},
                        {"epsilon", 1e-8, td::domains::positive}},
    .scalars = {{"beta1_power", [](const td::Hyperparameters& h) { return td::with_names<Belief>(h).beta1; }},
                {"beta2_power",
                 [](const td::Hyperparameters& h) { return td::with_names<Belief>(h).beta2; }}},
    .prepare =
        [](td::Step& s) {
          const auto [learning_rate, beta1, beta2, epsilon] = td::with_names<Belief>(s.h);
          const auto [power1, power2] = s.scalars;
          s.c = {1 - beta1, 1 - beta2, learning_rate / (1 - power1), 1 / (1 - power2), epsilon};
        },
    .rows = {move_by_belief<float>, move_by_belief<double>},
    .finish =
        [](td::Step& s) noexcept {
          const auto h = td::with_names<Belief>(s.h);
          s.scalars[0] *= h.beta1;
          s.scalars[1] *= h.beta2;
        },
};

// A matrix with singular values near 1 and the singular vectors of x, by five steps of a Newton–Schulz
// iteration.
td::Tensor orthogonalised(td::Tensor x) {
  x = x / (td::euclidean_norm(x) + 1e-7);
  for (int i = 0; i < 5; ++i) {
    const td::Tensor a = td::matmul(x, td::transpose(x));
    x = 3.4445 * x + td::matmul(-4.7750 * a + 2.0315 * td::matmul(a, a), x);
  }
  return x;
}

// Moves a matrix by its momentum, with all singular values made equal: Jordan et al., "Muon", 2024.
struct Muon {
  double learning_rate, momentum;
};

constexpr td::UpdateRule kMuon = {
    .name = "muon",
    .doc =
        "a = momentum · a + g; x -= learning_rate · the nearest matrix to a with orthogonal rows or columns.",
    .slots = {{"momentum"}},
    .hyperparameters = {{"learning_rate", 0.02, td::domains::finite}, {"momentum", 0.95, td::domains::decay}},
    .dense =
        [](const td::Step& s, td::Tensor& x, std::span<td::Tensor> slots, const td::Tensor& g) {
          if (x.ndim() != 2)
            throw td::ShapeError("muon: takes matrices; use another optimizer for the other variables");
          const auto [learning_rate, momentum] = td::with_names<Muon>(s.h);
          slots[0] = momentum * slots[0] + g;
          x = x - learning_rate * orthogonalised(momentum * slots[0] + g);
        },
};

/// The loss at each step.
Curve fit(td::Optimizer optimizer, const char* colour) {
  const td::Tensor x = td::random::normal({256, 8}, {.seed = 1}),
                   y = td::matmul(x, td::random::normal({8, 4}, {.seed = 2}));
  const td::Variable w(td::zeros({8, 4}));
  const td::Loss loss = [&] { return td::mean(td::square(td::matmul(x, w) - y)); };
  Curve losses{.x = counted(201, 0), .colour = colour, .name = std::string(optimizer.name())};
  for (int i = 0; i <= 200; ++i)
    losses.y.push_back(optimizer.minimize(loss).item());
  fmt::print("{}: {:.3g} after 200 steps\n", losses.name, losses.y.back());
  return losses;
}

/// Compares two steps of AdaBelief, for the gradient 1, with values by hand. After correction, m is 1; s is
/// 0.9², then the mean of 0.9² and 0.81² with weights in the ratio 0.999 to 1.
bool believes_as_the_paper() {
  const td::Variable x(td::tensor(0.0, td::DType::f64));
  td::Optimizer adabelief(kAdaBelief, {{"learning_rate", 1.0}});
  for (int i = 0; i < 2; ++i)
    adabelief.apply_gradients({{td::tensor(1.0, td::DType::f64), x}});
  return std::abs(x.value().item() + 1 / 0.9 + 1 / std::sqrt((0.999 * 0.81 + 0.6561) / 1.999)) < 1e-4;
}

void example(Run& run) {
  run.claim(believes_as_the_paper(), "two steps of AdaBelief are those of the paper");
  const td::Schedule falling = td::schedule::cosine({.initial = 0.1, .steps = 200});
  const std::vector<Curve> losses = {
      fit(td::GradientDescent({.learning_rate = falling}), kPaleBlue),
      fit(td::Optimizer(kAdaBelief, {{"learning_rate", falling}}), kBlue),
      fit(td::Optimizer(kMuon, {{"learning_rate", falling}, {"momentum", 0.5}}), kOrange)};
  run.claim(losses[0].y.back() < 0.1 && losses[1].y.back() < 1e-6 && losses[2].y.back() < 1e-6,
            "all of them fit the map, the two well");
  run.picture.chart({}, "Fitting a linear map:", {.label = "step", .whole = true},
                    {.label = "mean square", .logarithmic = true}, losses);
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "AdaBelief and Muon, as two optimizers of one's own", example);
}
