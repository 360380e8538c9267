// Random programs with nested branches, recorded once and replayed with values that take other branches.
#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "closeness.h"
#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

namespace branches_random_test {

using namespace tapedeck;

namespace {

using Tensors = std::vector<Tensor>;

struct Kind {
  int order = 0;          // of derivatives in the program
  bool captures = true;   // of tensors by branches
};
/// A program whose steps depend on its seed alone, so that a recording and an eager run take the same steps.
/// It consists of blocks, each of which returns two of its tensors and an integer, and has a seed of its own.
class RandomProgram {
 public:
  RandomProgram(unsigned seed, Kind kind, std::vector<Variable> variables)
      : seed_(seed), kind_(kind), variables_(std::move(variables)) {}

  Tensors operator()(const Tensor& a, const Tensor& b, const Tensor& i) const {
    return block({seed_, 3, kind_.order}, {a, b}, i);
  }
  /// The branches that have run since the last call of this function.
  std::set<unsigned> take_branches() const { return std::exchange(branches_, {}); }

 private:
  struct Place {
    unsigned seed;
    int depth, order;   // how many branches and derivatives may be around each other in this block
  };

  Tensors block(Place at, Tensors x, Tensor i) const {
    std::minstd_rand random(at.seed);
    const auto pick = [&] { return x[random() % x.size()]; };
    for (auto steps = 3 + random() % 4; steps; --steps) {
      const Tensor a = pick(), b = pick();
      const Place inner{static_cast<unsigned>(random()), at.depth - 1, at.order};
      switch (random() % 13) {
        case 0:
          x.push_back(sin(a) + b);
          break;
        case 1:
          x.push_back(a * b);
          break;
        case 2:
          x.push_back(tanh(a) - 0.5 * b);
          break;
        case 3:
          x.push_back(a * b[random() % 2 ? 0 : 1]);   // a row, which is a view
          break;
        case 4:
          x.push_back(reshape(transpose(a), a.shape()));
          break;
        case 5:
          if (kind_.order < 2)   // derivatives are with respect to the other one
            variables_[at.order == kind_.order ? random() % 2 : 0].assign(tanh(a));
          break;
        case 6:
          x.push_back(variables_[random() % 2].value());
          break;
        case 7:
          i = random() % 2 ? 2 * i : astype(floor(2 * sum(sin(a))), DType::i32);
          break;
        case 8:
        case 9:
        case 10:
          if (at.depth) branch(inner, random() % 5, a, b, x, i);
          break;
        case 11:
          if (at.order) add_gradients({inner.seed, inner.depth + 1, at.order - 1}, a, b, x, i);
          break;
        default:
          if (at.order) add_tangents({inner.seed, inner.depth + 1, at.order - 1}, a, b, x, i);
          break;
      }
    }
    return {pick(), pick(), i};
  }

  // Adds the results of one of some blocks, with a and b as operands; all of x may be captured.
  void branch(Place at, std::size_t kind, const Tensor& a, const Tensor& b, Tensors& x, Tensor& i) const {
    const auto choice = [&](unsigned k) {
      return [=, this, place = Place{at.seed + k, at.depth, at.order}](const Tensor& u, const Tensor& w,
                                                                       const Tensor& n) {
        branches_.insert(place.seed);
        Tensors own = kind_.captures ? x : Tensors();
        own.insert(own.end(), {u, w, u});
        return block(place, std::move(own), n);
      };
    };
    // In a recording an operand is another tensor than outside of the branch, and so is a result.
    const auto copy = [&](const Tensor& t) { return kind_.order ? identity(t) : t; };
    const Tensor u = copy(a), w = copy(b);
    Tensors y;
    if (kind == 0)
      y = cond(i > 0, {u, w, i}, choice(0), choice(1));
    else if (kind < 3)
      y = cond(sum(sin(2 * a)) > 0, {u, w, i}, choice(0), choice(1));
    else if (kind == 3)
      y = switch_case(i, {u, w, i}, std::vector{choice(0), choice(1), choice(2)});
    else
      y = switch_case(astype(floor(sum(3 * sin(b))), DType::i64), {w, u, i},
                      std::vector{choice(0), choice(1)});
    x.insert(x.end(), {copy(y[0]), copy(y[1])});
    i = y[2];
  }
  void add_gradients(Place at, const Tensor& a, const Tensor& b, Tensors& x, Tensor& i) const {
    GradientTape tape;
    tape.watch(a);
    if (a.id() != b.id()) tape.watch(b);
    const Tensors y = block(at, x, i);
    for (const Gradient& g :
         tape.gradient(Targets{sin(y[0]) * y[1], y[0] * y[0]}, Sources{a, b, variables_[1]},
                       {.unconnected = UnconnectedGradients::zero}))
      x.push_back(tanh(g.dense()));
    x.push_back(y[0]);
    i = y[2];
  }
  void add_tangents(Place at, const Tensor& a, const Tensor& b, Tensors& x, Tensor& i) const {
    const ForwardAccumulator forward(Sources{a, variables_[1]}, {b, a});
    const Tensors y = block(at, x, i);
    for (const Gradient& t : forward.jvp(std::array{y[0], y[1]}, UnconnectedGradients::zero))
      x.push_back(tanh(t.dense()));
    i = y[2];
  }

  unsigned seed_;
  Kind kind_;
  std::vector<Variable> variables_;
  mutable std::set<unsigned> branches_ = {};
};

/// Whether elements are equal, but for the signs of zeros, or but for rounding.
bool equal_numbers(const Tensor& a, const Tensor& b) { return a.spec() == b.spec() && worst(a, b) == 0; }
bool close(const Tensor& a, const Tensor& b) { return a.spec() == b.spec() && worst(a, b) < 1e-9; }

// Runs programs eagerly and recorded, 51 times, from equal values of the variables; `same` compares results.
void check_programs(unsigned first, unsigned programs, Kind kind,
                    bool (*same)(const Tensor&, const Tensor&)) {
  std::size_t all = 0, taken = 0;   // branches
  for (unsigned seed = first; seed < first + programs; ++seed) {
    const DType dtype = seed % 2 && same != close ? DType::f32 : DType::f64;
    const auto numbers = [&](std::uint64_t stream) {
      return random::normal({2, 1 + seed % 5}, {.seed = seed, .stream = stream}, dtype);
    };
    const std::vector<Variable> variables{Variable(numbers(1000)), Variable(numbers(1001))};
    const RandomProgram eager(seed, kind, variables);
    const auto recorded = compile([&](const auto&... x) { return eager(x...); });
    std::set<unsigned> seen;
    for (std::uint64_t k = 0; k <= 50; ++k) {
      const Tensor a = numbers(2 * k), b = numbers(2 * k + 1), i = tensor(static_cast<int>(k % 5) - 1);
      const auto results = [&](const auto& f) {
        Tensors y = f(a, b, i);
        y.insert(y.end(), variables.begin(), variables.end());
        return y;
      };
      const Tensors before(variables.begin(), variables.end()), wanted = results(eager);
      seen.merge(eager.take_branches());
      for (std::size_t n = 0; n < before.size(); ++n)
        variables[n].assign(before[n]);
      const Tensors y = results(recorded);
      if (k == 0) all += eager.take_branches().size();
      for (std::size_t n = 0; n < wanted.size(); ++n) {
        CAPTURE(seed, k, n, y[n], wanted[n]);
        REQUIRE(same(y[n], wanted[n]));
      }
    }
    taken += seen.size();
    CHECK(recorded.programs().at(0).calls == 50);
  }
  CHECK(all > programs);
  CHECK(2 * taken > all);
}

}   // namespace

TEST_CASE("random programs with branches replay as they run", "[recorded][branches]") {
  check_programs(0, 100, {}, same_bits);
}

TEST_CASE("random gradients and tangents of branches replay as they run", "[recorded][branches]") {
  check_programs(1000, 50, {.order = 1, .captures = false}, equal_numbers);
  check_programs(2000, 30, {.order = 1}, close);
}

TEST_CASE("random second derivatives of branches replay as they run", "[recorded][branches]") {
  check_programs(3000, 20, {.order = 2}, close);
}

}   // namespace branches_random_test
