// Random programs with loops and branches. Each is recorded once and replayed with other numbers, other
// values of variables and other numbers of steps; each replay must have the bits of an eager run.
#include <catch2/catch.hpp>
#include <memory>
#include <random>

#include "closeness.h"
#include "tapedeck/compile.h"
#include "tapedeck/control.h"
#include "tapedeck/optimizer.h"
#include "tapedeck/tapedeck.h"

namespace loops_random_test {

using namespace tapedeck;

namespace {

using Tensors = std::vector<Tensor>;
using Random = std::mt19937;

const Tensor& pick(const Tensors& from, Random& random) {
  const std::size_t n = from.size(), last = std::min<std::size_t>(n, 3);
  return random() % 2 ? from[random() % n] : from[n - 1 - random() % last];   // often a late one
}

// What may be read at a place in a program: arguments, captured tensors, carries, earlier results.
struct Scope {
  Tensors reals, counts;   // vectors of four numbers; integers
  Tensor limit;            // of steps of a while_loop
  int depth = 0;           // of loops and branches
  bool is_taped = false;   // a tape records: no second one is made, as only first derivatives have the bits
};

// A function that is drawn while it runs. Whenever a step or branch runs, the same is drawn for it.
class RandomProgram {
 public:
  /// With an optimizer, the program also trains its variables, and has no tapes around branches and loops.
  RandomProgram(unsigned seed, std::vector<Variable> variables, std::shared_ptr<Optimizer> optimizer = {})
      : seed_(seed), variables_(std::move(variables)), optimizer_(std::move(optimizer)) {}

  Tensors operator()(const Tensors& x, const Tensor& limit) const {
    Random random(seed_);
    Scope s{.reals = x,
            .counts = {limit, tensor(1, DType::i64)},
            .limit = limit,
            .is_taped = optimizer_ != nullptr};
    if (random() % 2 && !optimizer_) {
      Tensors all = gradients_around(s, random, 3);
      all.push_back(s.reals.back());
      return all;
    }
    statements(s, random);
    loop(s, random);
    Tensors all = {s.reals.back(), s.counts.back()};
    for (int k = 0; k < 4; ++k)
      all.push_back(pick(s.reals, random));
    return all;
  }

 private:
  void statements(Scope& s, Random& random) const {
    for (auto n = 1 + random() % (s.depth ? 3 : 5); n > 0; --n)
      statement(s, random);
  }
  void statement(Scope& s, Random& random) const {
    const auto kind = random() % 16;
    if (kind < 3 && s.depth < 2) return loop(s, random);
    if (kind == 3 && s.depth < 3) return branch(s, random);
    if (kind == 4 && !s.is_taped) {
      const Tensors g = gradients_around(s, random, 1);
      s.reals.insert(s.reals.end(), g.begin(), g.end());
    } else if (optimizer_ && (kind == 4 || kind == 7)) {
      train(s, random);
    } else if (kind == 5) {
      variables_[random() % 2].assign(tanh(pick(s.reals, random)));
    } else if (kind == 6) {
      s.counts.push_back(pick(s.counts, random) + pick(s.counts, random));
    } else {
      s.reals.push_back(value(s, random));
    }
  }

  void train(Scope& s, Random& random) const {
    const Variable& w = variables_[random() % 2];
    GradientTape tape;
    const Tensor loss = sum(square(tanh(w * pick(s.reals, random)) - pick(s.reals, random)));
    optimizer_->apply_gradients({{tape.gradient(loss, w), w}});
    if (random() % 2) s.reals.push_back(loss * ones({4}, loss.dtype()));
  }

  Tensor value(const Scope& s, Random& random) const {
    const Tensor a = pick(s.reals, random), b = pick(s.reals, random);
    switch (random() % 10) {
      case 0:
        return tanh(a) * b;
      case 1:
        return a * (0.25 * sum(b));
      case 2:
        return sin(a * a) + 0.5 * b;
      case 3:
        return concat({slice(a, {2}, {2}), slice(b, {0}, {2})}, 0);
      case 4:
        return reshape(transpose(reshape(a, {2, 2})), {4});
      case 5:
        return reverse(a);
      case 6:
        return 0.5 * (a * variables_[random() % 2] + variables_[random() % 2]);
      case 7:
        return tanh(a + 0.1 * astype(pick(s.counts, random), a.dtype()));
      case 8:
        return where(a < b, a, b * 0.5);
      default:
        return 0.5 * (a + b);
    }
  }

  // Gradients, in copies of some values and in the variables, of what statements and loops compute.
  Tensors gradients_around(Scope& s, Random& random, int loops) const {
    GradientTape tape;
    Scope inner = s;
    inner.is_taped = true;
    std::vector<Source> sources(variables_.begin(), variables_.end());
    for (int k = 0; k < 3; ++k) {
      sources.emplace_back(inner.reals.emplace_back(identity(pick(s.reals, random))));
      tape.watch(sources.back().tensor());
    }
    for (int k = 0; k < loops; ++k) {
      statements(inner, random);
      if (s.depth < 2) loop(inner, random);
    }
    const Tensors targets = {inner.reals.back(), pick(inner.reals, random)};
    Tensors all;
    for (const Gradient& g : tape.gradient(Targets(targets), Sources(std::move(sources)),
                                           {.unconnected = UnconnectedGradients::zero}))
      all.push_back(g.dense());
    s.reals.push_back(inner.reals.back());
    return all;
  }

  void branch(Scope& s, Random& random) const {
    const auto seed = static_cast<unsigned>(random());
    const auto side = [this, s, seed](unsigned more) {
      return [this, s, seed = seed + more](const Tensor& a, const Tensor& b) {
        Random own(seed);
        Scope inner = s;
        ++inner.depth;
        inner.reals.push_back(a), inner.reals.push_back(b);
        statements(inner, own);
        return std::pair(inner.reals.back(), value(inner, own));
      };
    };
    const Tensor holds = random() % 2 ? sum(pick(s.reals, random)) > 0 : pick(s.counts, random) > 2;
    const auto [a, b] = cond(holds, {pick(s.reals, random), pick(s.reals, random)}, side(0), side(1));
    s.reals.push_back(a), s.reals.push_back(b);
  }

  void loop(Scope& s, Random& random) const {
    const auto seed = static_cast<unsigned>(random());
    const std::size_t carries = random() % 3, outputs = random() % 3, entries = random() % 3;
    const auto steps = static_cast<std::int64_t>(1 + random() % 4);
    // in: carries, a count, entries. Returns carries, a count, outputs.
    const auto step = [=, this](std::span<const Tensor> in, std::size_t wanted, bool counts) {
      Random own(seed);
      Scope inner = s;
      ++inner.depth;
      for (std::size_t k = 0; k < in.size(); ++k)
        (k == carries ? inner.counts : inner.reals).push_back(in[k]);
      statements(inner, own);
      Tensors next;
      for (std::size_t k = 0; k < carries; ++k)
        next.push_back(own() % 4 ? pick(inner.reals, own) : in[k]);
      next.push_back(counts ? in[carries] + 1 : pick(inner.counts, own));
      for (std::size_t k = 0; k < wanted; ++k)
        next.push_back(own() % 2 ? value(inner, own) : pick(inner.reals, own));
      return next;
    };
    Tensors init, xs;
    for (std::size_t k = 0; k < carries; ++k)
      init.push_back(pick(s.reals, random));
    init.push_back(tensor(0, DType::i64));
    for (std::size_t k = 0; k < entries; ++k) {
      Tensors all;
      for (std::int64_t i = 0; i < steps; ++i)
        all.push_back(pick(s.reals, random));
      xs.push_back(stack(all));
    }
    Tensors y;
    switch (random() % 4) {
      default:
        y = scan([=](std::span<const Tensor> in) { return step(in, outputs, false); }, init, xs,
                 {.length = steps, .reverse = random() % 2 == 0});
        for (std::size_t k = carries + 1; k < y.size(); ++k)
          if (random() % 3) s.reals.push_back(random() % 2 ? sum(y[k], 0) : y[k][{-1}]);
        break;
      case 2: {
        const bool looks = carries > 0 && random() % 2;
        y = while_loop(
            [=, limit = s.limit](std::span<const Tensor> in) {
              const Tensor more = in[carries] < limit;
              return looks ? logical_and(more, sum(in[0]) < 2) : more;
            },
            [=](std::span<const Tensor> in) { return step(in, 0, true); }, init);
        break;
      }
      case 3:
        if (random() % 2)
          y = fori_loop(
              0, steps, [=](std::int64_t, const auto&... x) { return step(Tensors{x...}, 0, false); }, init);
        else
          y = fori_loop(
              2, 2 + steps,
              [=](const Tensor& i, const auto&... x) {
                Tensors in = {x...};
                in[carries] = in[carries] + i;
                return step(in, 0, false);
              },
              init);
        break;
    }
    for (std::size_t k = 0; k < carries; ++k)
      s.reals.push_back(y[k]);
    s.counts.push_back(y[carries]);
  }

  unsigned seed_;
  std::vector<Variable> variables_;
  std::shared_ptr<Optimizer> optimizer_;
};

// Vectors of four random numbers, of one dtype for each seed.
class Numbers {
 public:
  explicit Numbers(unsigned seed) : dtype_(seed % 2 ? DType::f32 : DType::f64), random_(seed) {}
  Tensor operator()() { return tensor({next(), next(), next(), next()}, dtype_); }

 private:
  double next() { return normal_(random_); }

  DType dtype_;
  Random random_;
  std::normal_distribution<double> normal_;
};

bool is_close(const Tensor& a, const Tensor& b) {
  const double e = a.dtype() == DType::f64 ? 1e-12 : 1e-5;
  const Tensor most = max(abs(a)) + 1;
  return a.spec() == b.spec() && all(abs(a - b) <= e * most).item<bool>();
}

}   // namespace

TEST_CASE("random programs with loops have the same bits recorded", "[recorded][loops]") {
  int same_programs = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    Numbers numbers(seed);
    const std::vector variables = {Variable(numbers()), Variable(numbers())};
    const RandomProgram program(seed, variables);
    const auto recorded = compile(program);
    bool same = true;
    for (int call = 0; call < 20 && same; ++call) {
      CAPTURE(seed, call);
      const Tensors x = {numbers(), numbers(), numbers()}, start = {numbers(), numbers()};
      const Tensor limit = tensor(call % 5, DType::i64);
      const auto run = [&](const auto& f) {
        for (std::size_t k = 0; k < 2; ++k)
          variables[k].assign(start[k]);
        Tensors y = f(x, limit);
        y.push_back(identity(variables[0])), y.push_back(identity(variables[1]));
        return y;
      };
      const Tensors eager = run(program), replayed = run(recorded);
      REQUIRE(eager.size() == replayed.size());
      for (std::size_t k = 0; k < eager.size(); ++k) {
        CAPTURE(k, eager[k], replayed[k]);
        const bool has_same_bits = same_bits(eager[k], replayed[k]);
        // Terms of captured tensors, and of those that a step uses several times, add up in another order.
        CHECK((has_same_bits || is_close(eager[k], replayed[k])));
        same = same && has_same_bits;
      }
    }
    if (same) ++same_programs;
    CHECK(recorded.programs().size() == 1);
  }
  CHECK(same_programs > 160);
}

TEST_CASE("random programs that train in loops and branches have the same bits recorded",
          "[recorded][loops][actions]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Numbers numbers(seed);
    const Tensor start[] = {numbers(), numbers()};
    const auto variables = [&] { return std::vector{Variable(start[0]), Variable(start[1])}; };
    const auto optimizer = [&]() -> std::shared_ptr<Optimizer> {
      if (seed % 3) return std::make_shared<Adam>(AdamOptions{.learning_rate = 0.1});
      return std::make_shared<Momentum>(MomentumOptions{.learning_rate = 0.1, .momentum = 0.9});
    };
    const std::vector<Variable> own = variables(), of_recorded = variables();
    const RandomProgram program(seed, own, optimizer());
    const auto recorded = compile(RandomProgram(seed, of_recorded, optimizer()));
    for (int call = 0; call < 6; ++call) {
      CAPTURE(seed, call);
      const Tensors x = {numbers(), numbers(), numbers()};
      const Tensor limit = tensor(call % 5, DType::i64);
      Tensors eager = program(x, limit), replayed = recorded(x, limit);
      for (std::size_t k = 0; k < 2; ++k)
        eager.push_back(own[k].value()), replayed.push_back(of_recorded[k].value());
      REQUIRE(eager.size() == replayed.size());
      for (std::size_t k = 0; k < eager.size(); ++k) {
        CAPTURE(k, eager[k], replayed[k]);
        REQUIRE(same_bits(eager[k], replayed[k]));
      }
    }
    CHECK(recorded.programs().size() == 1);
  }
}

}   // namespace loops_random_test
