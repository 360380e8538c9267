// Every update rule, compared with trajectories that scripts/trajectories computes with NumPy; and the same
// bits with several threads.
#include <catch2/catch.hpp>
#include <map>

#include "closeness.h"
#include "optim/trajectories.h"
#include "tapedeck/tapedeck.h"

namespace optimizer_table_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

using Matrix = std::vector<std::vector<double>>;

/// That many copies of it, stacked along the first axis.
Tensor matrix(const Json& rows, DType dtype, std::size_t copies = 1) {
  std::vector<double> values;
  for (std::size_t k = 0; k < copies; ++k)
    for (const auto& row : rows.get<Matrix>())
      values.insert(values.end(), row.begin(), row.end());
  return astype(tensor(values, {static_cast<std::int64_t>(rows.size() * copies), 3}), dtype);
}
Tensor rows_of(const Json& indices, std::size_t copies, DType dtype) {
  std::vector<std::int64_t> rows;
  for (std::size_t k = 0; k < copies; ++k)
    for (const auto row : indices.get<std::vector<std::int64_t>>())
      rows.push_back(row + static_cast<std::int64_t>(5 * k));
  return astype(tensor(rows), dtype);
}

/// The largest difference, relative for values above 1.
double distance(const Tensor& actual, const Json& expected, std::size_t copies) {
  const std::vector<double> a = actual.to_vector(), e = matrix(expected, DType::f64, copies).to_vector();
  REQUIRE(a.size() == e.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(a[i] - e[i]) / std::max(1.0, std::abs(e[i])));
  return largest;
}

}   // namespace

TEST_CASE("every rule has trajectories, with dense and sparse gradients", "[optimizer]") {
  for (const std::string_view rule : Optimizer::rules())
    for (const bool sparse : {false, true}) {
      CAPTURE(rule, sparse);
      CHECK(std::any_of(trajectories().begin(), trajectories().end(),
                        [&](const Json& t) { return t.at("rule") == rule && t.at("sparse") == sparse; }));
    }
}

TEST_CASE("rules follow the trajectories that NumPy computes", "[optimizer]") {
  const DType dtype = GENERATE(DType::f32, DType::f64), index_dtype = GENERATE(DType::i32, DType::i64);
  const std::size_t copies =
      GENERATE(std::size_t{1},
               std::size_t{7});   // copies of the variable, stacked: whole SIMD vectors and a remainder
  const double tolerance = dtype == DType::f32 ? 2e-6 : 1e-13;
  for (const Json& trajectory : trajectories()) {
    CAPTURE(dtype, index_dtype, copies, trajectory.at("rule"), trajectory.at("hyperparameters"),
            trajectory.at("sparse"));
    Optimizer optimizer = optimizer_of(trajectory);
    const Variable x(matrix(trajectory.at("start"), dtype, copies));
    for (const Json& step : trajectory.at("steps")) {
      const Tensor values = matrix(step.at("values"), dtype, copies);
      Gradient g = values;
      if (trajectory.at("sparse"))
        g = IndexedSlices{values, rows_of(step.at("indices"), copies, index_dtype), x.shape()};
      optimizer.apply_gradients({{g, x}});
      CHECK(distance(x.value(), step.at("x"), copies) < tolerance);
      CHECK(optimizer.slot_names().size() == step.at("slots").size());
      for (const auto& [name, slot] : step.at("slots").items())
        CHECK(distance(optimizer.slot(x, name), slot, copies) < tolerance);
      for (const auto& [name, number] : step.at("scalars").items())
        CHECK(optimizer.scalar(name) == Approx(number.get<double>()).epsilon(1e-13));
    }
  }
}

TEST_CASE("every rule states its formula and its source", "[optimizer]") {
  for (const std::string_view rule : Optimizer::rules()) {
    CAPTURE(rule);
    const std::string doc(Optimizer::doc(rule));
    CHECK(doc.ends_with('.'));
    CHECK(doc.find("x ") != std::string::npos);
    CHECK((rule == "gradient_descent" || doc.find(" 20") != std::string::npos));
  }
}

TEST_CASE("every rule descends a valley", "[optimizer]") {
  for (const Json& trajectory : trajectories()) {
    CAPTURE(trajectory.at("rule"), trajectory.at("hyperparameters"), trajectory.at("sparse"));
    auto settings = trajectory.at("hyperparameters").get<std::map<std::string, double>>();
    std::vector<Hyperparameter> hyperparameters;
    for (const auto& [name, value] : settings)
      if (name != "weight_decay" && !name.starts_with("l1") && !name.starts_with("l2"))
        hyperparameters.push_back({name, name == "learning_rate" ? value / 2 : value});
    Optimizer optimizer(trajectory.at("rule").get<std::string>(), hyperparameters);
    const Variable x(tensor({2.0, -1.5}, DType::f64));
    const Tensor steepness = tensor({1.0, 0.3}, DType::f64), bottom = tensor({0.5, 0.25}, DType::f64);
    const Loss loss = [&] { return sum(steepness * square(x - bottom)); };
    const double before = loss().item();
    for (int i = 0; i < 200; ++i) {
      if (trajectory.at("sparse"))
        optimizer.minimize([&] { return sum(steepness * square(gather(x, tensor({0, 1})) - bottom)); });
      else
        optimizer.minimize(loss);
    }
    CHECK(loss().item() < 0.05 * before);
  }
}

TEST_CASE("steps give the same bits on any number of threads", "[optimizer][threads]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  constexpr std::int64_t rows = 9000, width = 37, named = 5000;
  const Tensor start = random::normal({rows, width}, {.seed = 1}, dtype),
               dense = random::normal({rows, width}, {.seed = 2}, dtype);
  const Tensor values = random::normal({named, width}, {.seed = 3}, dtype);
  const Tensor indices = astype(random::uniform({named}, {.seed = 4}, 0, rows / 2.0), DType::i64);
  struct Threads {
    int before = num_threads();
    ~Threads() { set_num_threads(before); }
  } restore;
  for (const Json& trajectory : trajectories()) {
    CAPTURE(dtype, trajectory.at("rule"), trajectory.at("hyperparameters"), trajectory.at("sparse"));
    std::vector<Tensor> first;
    for (const int threads : {1, 2, 4, 8}) {
      set_num_threads(threads);
      Optimizer optimizer = optimizer_of(trajectory);
      const Variable x(start);
      const Gradient g =
          trajectory.at("sparse") ? Gradient(IndexedSlices{values, indices, start.shape()}) : Gradient(dense);
      for (int step = 0; step < 2; ++step)
        optimizer.apply_gradients({{g, x}});
      std::vector<Tensor> result = {x.value()};
      for (const std::string& name : optimizer.slot_names())
        result.push_back(optimizer.slot(x, name));
      if (first.empty()) first = result;
      for (std::size_t i = 0; i < result.size(); ++i)
        CHECK(same_bits(first[i], result[i]));
    }
  }
}

}   // namespace optimizer_table_test
