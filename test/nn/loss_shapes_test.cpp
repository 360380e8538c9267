// Every public loss refuses labels and predictions whose shapes differ, and its error names the call of
// squeeze that makes them equal. In halves, its value is the loss in f32, rounded.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <functional>
#include <regex>
#include <set>

#include "data_folder.h"
#include "message_of.h"
#include "tapedeck/nn.h"
#include "tapedeck/tapedeck.h"

namespace loss_shapes_test {

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Contains;

namespace {

struct LossOfTwo {
  std::string name;
  std::function<Tensor(const Tensor& labels, const Tensor& predictions)> f;
};

const std::vector<LossOfTwo> of_one_shape = {
    {"softmax_cross_entropy", softmax_cross_entropy},
    {"sigmoid_cross_entropy", [](auto& z, auto& x) { return sigmoid_cross_entropy(z, x); }},
    {"mean_squared_error", [](auto& z, auto& x) { return mean_squared_error(z, x); }},
    {"huber_loss", [](auto& z, auto& x) { return huber_loss(z, x); }},
    {"mean_absolute_error", nn::mean_absolute_error},
    {"mean_absolute_percentage_error", nn::mean_absolute_percentage_error},
    {"mean_squared_logarithmic_error", nn::mean_squared_logarithmic_error},
    {"log_cosh", nn::log_cosh},
    {"smooth_l1_loss", [](auto& z, auto& x) { return nn::smooth_l1_loss(z, x); }},
    {"binary_cross_entropy", [](auto& z, auto& x) { return nn::binary_cross_entropy(z, x); }},
    {"categorical_cross_entropy", [](auto& z, auto& x) { return nn::categorical_cross_entropy(z, x); }},
    {"binary_focal_cross_entropy", [](auto& z, auto& x) { return nn::binary_focal_cross_entropy(z, x); }},
    {"categorical_focal_cross_entropy",
     [](auto& z, auto& x) { return nn::categorical_focal_cross_entropy(z, x); }},
    {"kl_divergence", nn::kl_divergence},
    {"poisson", nn::poisson},
    {"gaussian_nll_loss", [](auto& z, auto& x) { return nn::gaussian_nll_loss(z, x, x); }},
    {"cosine_similarity", nn::cosine_similarity},
    {"hinge", nn::hinge},
    {"squared_hinge", nn::squared_hinge},
    {"categorical_hinge", nn::categorical_hinge},
    {"triplet_margin_loss", [](auto& z, auto& x) { return nn::triplet_margin_loss(z, x, x); }},
};

const std::vector<LossOfTwo> of_classes = {
    {"sparse_softmax_cross_entropy", sparse_softmax_cross_entropy},
    {"sparse_categorical_cross_entropy",
     [](auto& z, auto& x) { return nn::sparse_categorical_cross_entropy(z, x); }},
    {"nll_loss", [](auto& z, auto& x) { return nn::nll_loss(z, x); }},
};

// Whether each number is that of f32 to some roundings of its dtype; what the dtype cannot hold may be ∞.
void check_rounded(const Tensor& half, const Tensor& wide, double roundings) {
  REQUIRE(half.shape() == wide.shape());
  const double epsilon = half.dtype() == DType::f16 ? 0x1p-10 : 0x1p-7;
  const std::vector<double> y = half.to_vector(), wanted = wide.to_vector();
  for (std::size_t i = 0; i < y.size(); ++i) {
    CAPTURE(i, y[i], wanted[i]);
    const bool both_nan = y[i] != y[i] && wanted[i] != wanted[i];
    CHECK((both_nan || y[i] == wanted[i] || std::abs(wanted[i]) > 65504 ||
           std::abs(y[i] - wanted[i]) <= roundings * epsilon * std::abs(wanted[i]) + 1e-6));
  }
}

// The functions that a header declares.
std::set<std::string> declared(const std::string& header) {
  std::ifstream file(data_folder() / "../../include/tapedeck" / header);
  REQUIRE(file);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::regex function(R"(TAPEDECK_EXPORT Tensor (\w+)\()");
  std::set<std::string> names;
  for (std::sregex_iterator i(text.begin(), text.end(), function), end; i != end; ++i)
    names.insert((*i)[1]);
  return names;
}

}   // namespace

TEST_CASE("the tables of shapes have every public loss", "[losses]") {
  std::set<std::string> names = declared("ops/losses.h"),
                        listed = {"l2_loss", "smooth_labels"};   // of one tensor
  names.merge(declared("nn/losses.h"));
  for (const auto* table : {&of_one_shape, &of_classes})
    for (const LossOfTwo& loss : *table)
      listed.insert(loss.name);
  CHECK(names == listed);
}

TEST_CASE("losses reject labels and predictions of different shapes", "[losses]") {
  for (const LossOfTwo& loss : of_one_shape) {
    INFO(loss.name);
    const auto message = [&](const Shape& labels, const Shape& predictions) {
      return message_of<ShapeError>([&] { loss.f(zeros(labels), zeros(predictions)); });
    };
    CHECK_THAT(message({4}, {4, 1}), Catch::StartsWith(loss.name + ": ") && Contains("f32[4]") &&
                                         Contains("f32[4,1]") && Catch::EndsWith(", 1)"));
    CHECK_THAT(message({4}, {4, 1}), Contains("; use squeeze("));
    CHECK_THAT(message({1, 4, 1}, {4}), Contains("; use squeeze(") && Catch::EndsWith(", {0, 2})"));
    for (const auto& [labels, predictions] : {std::pair<Shape, Shape>{{4}, {1}}, {{2, 4}, {4}}, {{}, {4}}}) {
      CHECK_THAT(message(labels, predictions),
                 Contains(to_string(labels)) && Contains(to_string(predictions)) && !Contains("squeeze("));
    }
    CHECK_NOTHROW(loss.f(full({2, 4}, 0.5), full({2, 4}, 0.5)));
  }
}

TEST_CASE("losses of classes reject labels that do not match the rows", "[losses]") {
  for (const LossOfTwo& loss : of_classes) {
    INFO(loss.name);
    const auto message = [&](const Shape& labels, const Shape& predictions) {
      return message_of<ShapeError>([&] { loss.f(zeros(labels, DType::i64), full(predictions, 0.5)); });
    };
    CHECK_THAT(message({4, 1}, {4, 3}), Catch::StartsWith(loss.name + ": ") && Contains("i64[4,1]") &&
                                            Contains("f32[4,3]") &&
                                            Catch::EndsWith("; use squeeze(labels, 1)"));
    CHECK_THAT(message({4}, {3}), Contains("i64[4]") && Contains("f32[3]"));
    CHECK_THAT(message({4}, {4, 2, 3}), Contains("f32[4,2,3]") && Catch::EndsWith("reshape one of them"));
    CHECK_THAT(message({}, {}), Contains("f32[]"));
    CHECK(message({4}, {4, 3}) == "no error");
  }
}

TEST_CASE("a single number is the label of all elements", "[losses]") {
  const Tensor x = tensor({{1.0, 3.0}, {0.0, -1.0}}, DType::f64);
  CHECK(mean_squared_error(1, x).to_vector() == std::vector<double>{2, 2.5});
  CHECK(mean_squared_error(x, 1.0).to_vector() == std::vector<double>{2, 2.5});
  CHECK(huber_loss(1, x).to_vector() == std::vector<double>{0.75, 1});
}

TEST_CASE("losses of halves are f32 losses, rounded", "[losses]") {
  const Tensor labels = tensor({{0.0, 1.0, 1.0, 0.0}, {0.25, 0.5, 0.125, 0.125}, {30.0, -300.0, 2.0, 0.0}}),
               predictions =
                   tensor({{1.0, 0.0, 0.001, 0.999}, {0.5, 0.0001, 0.25, 0.25}, {1.0, 300.0, -14.0, 9.0}});
  const auto compare = [&](const LossOfTwo& loss, const Tensor& z, const Tensor& half) {
    CAPTURE(loss.name, name_of(half.dtype()));
    const Tensor wide = astype(half, DType::f32);
    GradientTape tape({.persistent = true});
    tape.watch(half), tape.watch(wide);
    const Tensor y = loss.f(z, half), wanted = loss.f(is_half(z.dtype()) ? astype(z, DType::f32) : z, wide);
    check_rounded(y, wanted, 1);
    // These get x twice: the rounded parts of its gradient cancel.
    if (loss.name != "gaussian_nll_loss" && loss.name != "triplet_margin_loss")
      check_rounded(tape.gradient(y, half).dense(), tape.gradient(wanted, wide).dense(), 2);
  };
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const LossOfTwo& loss : of_one_shape)
      compare(loss, astype(labels, dtype), astype(predictions, dtype));
    for (const LossOfTwo& loss : of_classes)
      compare(loss, tensor({1, 0, 3}), astype(abs(predictions), dtype));
  }
}

}   // namespace loss_shapes_test
