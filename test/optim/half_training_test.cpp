// Variables of f16 and bf16, which are trained through an f32 master.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "core/bytes.h"
#include "data_folder.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/csv.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"
#include "temporary_folder.h"

namespace half_training_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

bool same(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() && std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.nbytes())) == 0;
}

}   // namespace

// The f32 variable sees the same gradients, so it is what the master has to be.
TEST_CASE("a variable of f16 or bf16 equals its f32 twin, rounded", "[half][optimizer]") {
  for (const DType half : {DType::f16, DType::bf16})
    for (const bool sparse : {false, true}) {
      const auto check = [&](Optimizer& a, Optimizer& b) {
        INFO(name_of(half) << ", " << a.name() << (sparse ? ", sparse" : ""));
        const Tensor start = astype(random::normal({40, 20}, {1}), half);
        Variable x(start), twin(astype(start, DType::f32));
        for (std::uint64_t i = 0; i < 4; ++i) {
          const Tensor g = astype(random::normal({sparse ? 3 : 40, 20}, {2 + i}), half),
                       wide = astype(g, DType::f32), rows = tensor({7, 3, 7});
          a.apply_gradients({{sparse ? Gradient(IndexedSlices{g, rows, x.shape()}) : Gradient(g), x}});
          b.apply_gradients(
              {{sparse ? Gradient(IndexedSlices{wide, rows, x.shape()}) : Gradient(wide), twin}});
          CHECK(same(a.slot(x, "master"), twin.value()));
          CHECK(same(x.value(), astype(twin.value(), half)));
        }
        for (const std::string& slot : a.slot_names())
          if (a.slot(x, slot).defined()) CHECK(same(a.slot(x, slot), b.slot(twin, slot)));
      };
      GradientDescent sgd({.learning_rate = 0.01}), sgd_twin({.learning_rate = 0.01});
      check(sgd, sgd_twin);
      Momentum momentum({.learning_rate = 0.01, .momentum = 0.9}),
          momentum_twin({.learning_rate = 0.01, .momentum = 0.9});
      check(momentum, momentum_twin);
      Adam adam({.learning_rate = 0.01}), adam_twin({.learning_rate = 0.01});
      check(adam, adam_twin);
      Ftrl ftrl({.learning_rate = 0.01}), ftrl_twin({.learning_rate = 0.01});
      check(ftrl, ftrl_twin);
    }
}

TEST_CASE("small steps of a half accumulate in its master", "[half][optimizer]") {
  Variable x(ones({3}, DType::bf16));
  GradientDescent descent({.learning_rate = 0x1p-12});   // each less than a step of bf16
  for (int i = 0; i < 512; ++i)
    descent.apply_gradients({{ones({3}, DType::bf16), x}});
  CHECK(x.value().to_vector() == std::vector<double>(3, 0.875));
  descent.apply_gradients({{ones({3}), x}});   // gradients of f32 are taken, too
  CHECK(descent.slot(x, "master").to_vector()[0] == 0.875 - 0x1p-12);
}

TEST_CASE("the master follows assignments to its variable, and constraints", "[half][optimizer]") {
  Variable x(ones({2}, DType::f16));
  GradientDescent descent({.learning_rate = 0x1p-14});
  descent.apply_gradients({{ones({2}, DType::f16), x}});
  x.assign(tensor({1.0, 5.0}, DType::f16));
  descent.apply_gradients({{ones({2}, DType::f16), x}});
  CHECK(descent.slot(x, "master").to_vector() == std::vector<double>{1 - 0x1p-13, 5 - 0x1p-14});

  Variable bounded(ones({2}, DType::f16), {.constraint = [](const Tensor& v) { return clip(v, -1, 0.5); }});
  descent.apply_gradients({{tensor({1.0, 2.0}, DType::f16), bounded}});
  CHECK(bounded.value().to_vector() == std::vector<double>{0.5, 0.5});
  descent.apply_gradients({{ones({2}, DType::f16), bounded}});
  CHECK(descent.slot(bounded, "master").to_vector()[0] == 0.5 - 0x1p-14);
}

TEST_CASE("a checkpoint keeps the master", "[half][optimizer]") {
  const TemporaryFolder folder;
  const std::string path = folder / "half.safetensors";
  const auto step = [](Optimizer& o, const Variable& x, std::uint64_t i) {
    o.apply_gradients({{astype(random::normal({5}, {i}), DType::bf16), x}});
  };
  Variable x(ones({5}, DType::bf16), {.name = "x"});
  Adam adam({.learning_rate = 1e-3});
  Checkpoint checkpoint;
  checkpoint.add("x", x);
  checkpoint.add("adam", adam);
  step(adam, x, 1), step(adam, x, 2);
  checkpoint.save(path);
  step(adam, x, 3);

  Variable y(zeros({5}, DType::bf16), {.name = "x"});
  Adam again({.learning_rate = 1e-3});
  Checkpoint other;
  other.add("x", y);
  other.add("adam", again);
  other.restore(path);
  step(again, y, 3);
  CHECK(same(x.value(), y.value()));
  CHECK(same(adam.slot(x, "master"), again.slot(y, "master")));
}

namespace {

struct Digits {
  Tensor pixels, labels;
};
Digits digits() {
  const TemporaryFolder folder;
  const std::string path = folder / "digits.csv",
                    packed = (data_folder() / "../../examples/data/digits.csv.gz").string();
  REQUIRE(std::system(("gzip -dc '" + packed + "' > '" + path + "'").c_str()) == 0);
  const Tensor all = load_csv(path, {.has_header = false}).values;
  return {slice(all, {0, 0}, {all.shape()[0], 64}) / 16,
          astype(reshape(slice(all, {0, 64}, {all.shape()[0], 1}), {-1}), DType::u16)};
}

/// A network of one hidden layer, trained for some epochs; the share of right answers among digits that it
/// has not seen. All of it is of one dtype but the loss.
double accuracy_in(DType dtype, const Digits& d, bool scaled) {
  const std::int64_t n = d.pixels.shape()[0], seen = n * 3 / 4, batch = 32;
  Variable a(astype(random::normal({64, 32}, {1}) * 0.2, dtype)), b(zeros({32}, dtype)),
      c(astype(random::normal({32, 10}, {2}) * 0.2, dtype)), e(zeros({10}, dtype));
  const auto scores = [&](const Tensor& x) { return matmul(relu(matmul(astype(x, dtype), a) + b), c) + e; };
  Adam adam({.learning_rate = 3e-3});
  LossScale scale;
  for (std::int64_t epoch = 0; epoch < 15; ++epoch)
    for (std::int64_t first = 0; first + batch <= seen; first += batch) {
      const Loss loss = [&] {
        const Tensor s = scores(slice(d.pixels, {first, 0}, {batch, 64}));
        return mean(sparse_softmax_cross_entropy(slice(d.labels, {first}, {batch}), astype(s, DType::f32)));
      };
      if (scaled)
        scale.minimize(adam, loss, {.variables = {{a, b, c, e}}});
      else
        adam.minimize(loss, {.variables = {{a, b, c, e}}});
    }
  const Tensor guess = argmax(scores(slice(d.pixels, {seen, 0}, {n - seen, 64})));
  return mean(astype(equal(guess, astype(slice(d.labels, {seen}, {n - seen}), DType::i64)), DType::f32))
      .item();
}

}   // namespace

TEST_CASE("digits are learned as well with weights and activations of 16 bits", "[half][optimizer]") {
  const Digits d = digits();
  const double single = accuracy_in(DType::f32, d, false), brain = accuracy_in(DType::bf16, d, false),
               half = accuracy_in(DType::f16, d, true);
  INFO("f32 " << single << ", bf16 " << brain << ", f16 with a scaled loss " << half);
  CHECK(single > 0.88);
  CHECK(brain > single - 0.02);
  CHECK(half > single - 0.02);
}

}   // namespace half_training_test
