// Training steps of networks, compared with the functions themselves and with the matrix products in them.
#include <cblas.h>

#include "cases.h"

namespace bench {
namespace {

struct Network {
  std::vector<std::int64_t> widths;
  std::int64_t batch;
  std::vector<td::Variable> variables = {};
  td::Adam adam = td::Adam({.learning_rate = 1e-4});

  void initialize() {
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      variables.emplace_back(0.1 * td::random::normal({widths[i], widths[i + 1]}, {i}));
      variables.emplace_back(td::zeros({widths[i + 1]}));
    }
  }
  td::Tensor step(const td::Tensor& x, const td::Tensor& labels) {
    td::GradientTape tape;
    td::Tensor y = x;
    for (std::size_t i = 0; i < variables.size(); i += 2) {
      y = td::matmul(y, variables[i]) + variables[i + 1];
      if (i + 2 < variables.size()) y = td::tanh(y);
    }
    const td::Tensor loss = td::mean(td::sparse_softmax_cross_entropy(labels, y));
    adam.apply_gradients(tape.gradient(td::Targets{loss}, td::Sources(variables)), variables);
    return loss;
  }
};

void run_network(const std::string& name, Network network, const Goal& goal) {
  if (!is_chosen(name)) return;
  network.initialize();
  const auto step = [&](const td::Tensor& x, const td::Tensor& labels) { return network.step(x, labels); };
  const auto recorded = td::compile(step);
  const td::Tensor x = numbers({network.batch, network.widths[0]}, 1),
                   labels = td::zeros({network.batch}, td::DType::i32);
  const Run runs[] = {[&] { (void)step(x, labels); }, [&] { (void)recorded(x, labels); }};
  const Race race(runs);
  const bool by_eager = goal.at_least > 0;
  report(name, by_eager ? race.ratio(0, 1) : race.seconds(1) * 1e6, by_eager ? "of eager's speed" : "us",
         goal, beside_eager(race, 1, 0));
}

constexpr std::int64_t kSteps = 100, kBatch = 32, kHidden = 128;

struct Lstm {
  td::Tensor x = td::random::normal({kSteps, kBatch, kHidden}, {.seed = 1}),
             wx = 0.05 * td::random::normal({kHidden, 4 * kHidden}, {.seed = 2}),
             wh = 0.05 * td::random::normal({kHidden, 4 * kHidden}, {.seed = 3}),
             b = td::zeros({4 * kHidden});

  static td::Tensor loss(const std::vector<td::Tensor>& t) {
    td::Tensor h = td::zeros({kBatch, kHidden}), c = td::zeros({kBatch, kHidden});
    for (const td::Tensor& step : td::unstack(t[0], 0)) {
      const std::vector<td::Tensor> gates =
          td::split(td::matmul(step, t[1]) + td::matmul(h, t[2]) + t[3], 4, 1);
      c = td::sigmoid(gates[1]) * c + td::sigmoid(gates[0]) * td::tanh(gates[2]);
      h = td::sigmoid(gates[3]) * td::tanh(c);
    }
    return td::sum(td::square(h));
  }
};

// The matrix products of a sequence: for the gates, and for the gradients of h and both weights.
class Products {
 public:
  void run() {
    for (std::int64_t t = 0; t < kSteps; ++t)
      for (int k = 0; k < 2; ++k)
        multiply(CblasNoTrans, CblasNoTrans, kBatch, 4 * kHidden, kHidden, h_, w_, gates_);
    for (std::int64_t t = 0; t < kSteps; ++t) {
      multiply(CblasNoTrans, CblasTrans, kBatch, kHidden, 4 * kHidden, gates_, w_, h_);
      for (int k = 0; k < 2; ++k)
        multiply(CblasTrans, CblasNoTrans, kHidden, 4 * kHidden, kBatch, h_, gates_, w_, 1);
    }
  }

 private:
  using Floats = std::vector<float>;
  static void multiply(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, std::int64_t m, std::int64_t n, std::int64_t k,
                       const Floats& a, const Floats& b, Floats& c, float beta = 0) {
    const auto i = [](std::int64_t v) { return static_cast<blasint>(v); };
    cblas_sgemm(CblasRowMajor, ta, tb, i(m), i(n), i(k), 1, a.data(), i(ta == CblasTrans ? m : k), b.data(),
                i(tb == CblasTrans ? k : n), beta, c.data(), i(n));
  }
  Floats h_ = Floats(kBatch * kHidden), w_ = Floats(4 * kHidden * kHidden),
         gates_ = Floats(4 * kBatch * kHidden);
};

void run_lstm() {
  const std::string name = "LSTM 100 x 32 x 128, gradients";
  if (!is_chosen(name)) return;
  const Lstm l;
  const std::vector<td::Tensor> x = {l.x, l.wx, l.wh, l.b};
  const auto gradients = [](const std::vector<td::Tensor>& t) {
    td::GradientTape tape;
    for (std::size_t i = 1; i < t.size(); ++i)
      tape.watch(t[i]);
    return tape.gradient(Lstm::loss(t), t[1], t[2], t[3]);
  };
  const auto recorded = td::compile(gradients);
  Products products;
  const Run runs[] = {[&] { (void)gradients(x); }, [&] { (void)recorded(x); }, [&] { products.run(); }};
  const Race race(runs);
  report(name, race.ratio(2, 1), "of its products", {.at_least = 0.88}, beside_eager(race, 1, 0));
}

}   // namespace

void run_networks() {
  run_network("step of a network 4-16-16-3, batch 8", {{4, 16, 16, 3}, 8}, {.at_most = 3});
  run_network("step of a network 784-512-512-10, batch 64", {{784, 512, 512, 10}, 64}, {.at_least = 1});
  run_lstm();
}

}   // namespace bench
