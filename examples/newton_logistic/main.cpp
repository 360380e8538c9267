// Logistic regression by Newton's method: classifies tumors from 30 measurements. The minimizer calls the
// loss as it is written here; the gradient and Hessian-vector products come from the tape.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <tapedeck/csv.h>
#include <tapedeck/minimize.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"

namespace td = tapedeck;

namespace {

constexpr double kLeastLoss = 0.09959137548470548;   // for all rows, by Newton's method in NumPy

struct Patients {
  td::Tensor x;   // f64[n,30]
  td::Tensor y;   // f64[n,1], 1 for benign

  Patients at(const td::Tensor& rows) const { return {td::gather(x, rows), td::gather(y, rows)}; }
};

Patients load() {
  const td::Tensor all =
      td::load_csv(example_data("breast_cancer.csv"), {.has_header = true, .dtype = td::DType::f64}).values;
  return {td::slice(all, {0, 0}, {-1, 30}), td::slice(all, {0, 30}, {-1, 1})};
}

// A fitted model; it standardizes measurements by the means and deviations of the rows it was fitted to.
struct Model {
  td::Tensor mean, deviation, w = {}, b = {};
  td::Tensor probabilities(const td::Tensor& x) const {
    return td::sigmoid(td::matmul((x - mean) / deviation, w) + b);
  }
};

struct Fit {
  Model model;
  td::Minimum minimum = {};
  std::vector<double> gradient_norms = {};   // after each iteration
};

enum class Method { newton, lbfgs };

Fit fit(const Patients& patients, Method method) {
  Fit f{.model = {.mean = td::mean(patients.x, {0}), .deviation = td::sqrt(td::variance(patients.x, {0}))}};
  const td::Tensor x = (patients.x - f.model.mean) / f.model.deviation;
  const auto loss = [&](const td::Tensor& w, const td::Tensor& b) {
    const td::Tensor z = td::matmul(x, w) + b;
    return td::mean(td::softplus(z) - patients.y * z) + 0.005 * td::sum(td::square(w));
  };
  const td::MinimizeOptions options = {
      .tolerance = 1e-10, .max_iterations = 1000, .progress = [&](const td::Minimum& m) {
        return f.gradient_norms.push_back(m.gradient_norm), true;
      }};
  const std::vector<td::Tensor> start = {td::zeros({30, 1}, td::DType::f64), td::tensor(0.0, td::DType::f64)};
  f.minimum = method == Method::newton ? td::minimize_newton(loss, start, {options})
                                       : td::minimize_lbfgs(loss, start, {options});
  f.model.w = f.minimum.x[0], f.model.b = f.minimum.x[1];
  return f;
}

double accuracy(const td::Tensor& p, const td::Tensor& y) {
  return td::mean(td::astype(td::equal(td::round(p), y), td::DType::f64)).item();
}

Curve norms(const Fit& f, const char* colour, const char* name) {
  Curve c{.x = counted(f.gradient_norms.size()), .y = f.gradient_norms, .colour = colour, .name = name};
  for (double& y : c.y)
    y = std::max(y, 1e-17);
  return c;
}

// The probabilities in ascending order, separately for malignant and benign rows.
std::vector<Curve> ranks(const td::Tensor& p, const td::Tensor& y) {
  const td::Tensor order = td::argsort(td::reshape(p, {-1}));
  const std::vector<double> probability = td::gather(p, order).to_vector(),
                            label = td::gather(y, order).to_vector();
  std::vector<Curve> curves = {{.colour = kOrange, .name = "malignant", .dots = true},
                               {.colour = kBlue, .name = "benign", .dots = true}};
  for (std::size_t i = 0; i < label.size(); ++i) {
    Curve& c = curves[label[i] == 1];
    c.x.push_back(static_cast<double>(i + 1)), c.y.push_back(probability[i]);
  }
  return curves;
}

void example(Run& run) {
  const Patients all = load();
  const Fit newton = fit(all, Method::newton);
  fmt::print("Newton: {} iterations, {} products with the Hessian, loss {:.16f}, accuracy {:.4f}\n",
             newton.minimum.iterations, newton.minimum.products, newton.minimum.value,
             accuracy(newton.model.probabilities(all.x), all.y));
  run.claim(newton.minimum.converged && newton.minimum.iterations < 15,
            "Newton's method needs fewer than 15 iterations");
  run.claim(std::abs(newton.minimum.value - kLeastLoss) < 1e-12, "the loss is the least one to 1e-12");

  std::vector<Curve> convergence = {norms(newton, kBlue, "Newton")};
  if (td::has_lbfgs()) {
    const Fit lbfgs = fit(all, Method::lbfgs);
    fmt::print("L-BFGS: {} iterations, loss {:.16f}\n", lbfgs.minimum.iterations, lbfgs.minimum.value);
    convergence.push_back(norms(lbfgs, kOrange, "L-BFGS"));
  }

  const td::Tensor order = td::random::permutation(all.x.shape()[0], {.seed = 1});
  const Patients seen = all.at(td::slice(order, {0}, {400})), others = all.at(td::slice(order, {400}, {-1}));
  const td::Tensor p = fit(seen, Method::newton).model.probabilities(others.x);
  const double right = accuracy(p, others.y);
  fmt::print("fitted to {} of them, accuracy on the other {}: {:.4f}\n", seen.y.size(), others.y.size(),
             right);
  run.claim(right > 0.95, "more than 95 % of rows that it has not seen are told right");

  run.picture.chart({.width = 600}, "Norm of the gradient:", {.label = "iteration", .whole = true},
                    {.label = "norm", .logarithmic = true}, convergence);
  run.picture.chart({.x = 600, .width = 600}, "Rows not seen:", {.label = "rank", .whole = true},
                    {.label = "probability of benign", .from = 0, .to = 1}, ranks(p, others.y));
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "logistic regression on medical data by Newton's method", example);
}
