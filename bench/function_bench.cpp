// Recorded functions: replays beside the functions themselves, and beside loops written by hand, in turns, on
// one thread.
//   ninja -C build bench/function_bench && build/bench/function_bench [word...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string_view>

#include "median.h"
#include "tapedeck/recorded_function.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using Clock = std::chrono::steady_clock;

namespace {

std::vector<std::string_view> words;

double seconds(const std::function<void()>& f, int repeats) {
  const auto begin = Clock::now();
  for (int i = 0; i < repeats; ++i)
    f();
  return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
}

/// How much faster `replay` is than `eager`; and, where a hand-written loop is given, which part of its speed
/// each reaches. `ops`: of one run.
void compare(const std::string& name, int ops, const std::function<void()>& eager,
             const std::function<void()>& replay, const std::function<void()>& by_hand = nullptr) {
  if (!words.empty() && std::none_of(words.begin(), words.end(),
                                     [&](std::string_view w) { return name.find(w) != std::string::npos; }))
    return;
  eager(), replay();
  int repeats = 1;
  while (seconds(eager, repeats) * repeats < 2e-3)
    repeats *= 2;
  std::vector<double> faster, replays, of_limit, eager_of_limit;
  for (int i = 0; i < 15; ++i) {
    const double e = seconds(eager, repeats), r = seconds(replay, repeats);
    faster.push_back(e / r);
    replays.push_back(r);
    if (!by_hand) continue;
    const double limit = seconds(by_hand, repeats);
    of_limit.push_back(limit / r);
    eager_of_limit.push_back(limit / e);
  }
  std::printf("%-34s replay %10.3f us, %8.2f ns an op, %6.2f times as fast as eager", name.c_str(),
              bench::median(replays) * 1e6, bench::median(replays) * 1e9 / ops, bench::median(faster));
  if (by_hand)
    std::printf(", %.2f of a loop by hand (eager %.2f)", bench::median(of_limit),
                bench::median(eager_of_limit));
  std::printf("\n");
}

td::Tensor random(const td::Shape& shape, std::uint64_t seed) {
  return td::random::uniform(shape, {seed}, 0.5, 1.5);
}

/// 1,000 additions and multiplications one after the other.
void chains() {
  constexpr int ops = 1000;
  for (const std::int64_t n : {1, 8, 64, 10'000}) {
    // Close to 1, since products of many would become denormal.
    const td::Tensor x = random({n}, 1), a = random({n}, 2), m = 1 + 1e-3 * (random({n}, 3) - 1);
    const auto chain = [](const td::Tensor& start, const td::Tensor& add, const td::Tensor& by) {
      td::Tensor y = start;
      for (int i = 0; i < ops / 2; ++i)
        y = y * by + add;
      return y;
    };
    const auto gradient_of_x = [&](const td::Tensor& start, const td::Tensor& add, const td::Tensor& by) {
      td::GradientTape tape;
      tape.watch(start);
      return tape.gradient(chain(start, add, by), start);
    };
    const auto gradients = [&](const td::Tensor& start, const td::Tensor& add, const td::Tensor& by) {
      td::GradientTape tape;
      for (const td::Tensor& t : {start, add, by})
        tape.watch(t);
      return tape.gradient(chain(start, add, by), start, add, by);
    };
    const std::string size = " n=" + std::to_string(n);
    const auto f = td::function(chain);
    const auto g = td::function(gradient_of_x);
    const auto h = td::function(gradients);
    compare(
        "chain" + size, ops, [&] { (void)chain(x, a, m); }, [&] { (void)f(x, a, m); });
    compare(
        "chain, gradient of x" + size, ops, [&] { (void)gradient_of_x(x, a, m); }, [&] { (void)g(x, a, m); });
    compare(
        "chain, all gradients" + size, ops, [&] { (void)gradients(x, a, m); }, [&] { (void)h(x, a, m); });
  }
}

/// Σ tanh(x w + b), and its gradients.
void sums() {
  for (const std::int64_t n : {10'000, 1'000'000, 16'000'000}) {
    const td::Tensor x = random({n}, 1), w = random({n}, 2), b = random({n}, 3);
    const auto value = [](const td::Tensor& p, const td::Tensor& q, const td::Tensor& r) {
      return td::sum(td::tanh(p * q + r));
    };
    const auto gradients = [&](const td::Tensor& p, const td::Tensor& q, const td::Tensor& r) {
      td::GradientTape tape;
      for (const td::Tensor& t : {p, q, r})
        tape.watch(t);
      return tape.gradient(value(p, q, r), p, q, r);
    };
    const auto f = td::function(value);
    const auto g = td::function(gradients);
    const std::string size = " n=" + std::to_string(n);
    compare(
        "sum of tanh" + size, 4, [&] { (void)value(x, w, b); }, [&] { (void)f(x, w, b); });
    compare(
        "sum of tanh, gradients" + size, 4, [&] { (void)gradients(x, w, b); }, [&] { (void)g(x, w, b); });
  }
}

/// A step of Adam on a network of 4-16-16-3, and of 784-512-512-10.
void steps() {
  struct Sizes {
    std::vector<std::int64_t> layers;
    std::int64_t batch;
  };
  for (const Sizes& s : {Sizes{{4, 16, 16, 3}, 8}, Sizes{{784, 512, 512, 10}, 64}}) {
    std::vector<td::Variable> variables;
    for (std::size_t i = 0; i + 1 < s.layers.size(); ++i) {
      variables.emplace_back(0.1 * td::random::normal({s.layers[i], s.layers[i + 1]}, {i}));
      variables.emplace_back(td::zeros({s.layers[i + 1]}));
    }
    td::Adam adam({.learning_rate = 1e-4});
    const auto step = [&](const td::Tensor& x, const td::Tensor& labels) {
      td::GradientTape tape;
      td::Tensor y = x;
      for (std::size_t i = 0; i < variables.size(); i += 2) {
        y = td::matmul(y, variables[i]) + variables[i + 1];
        if (i + 2 < variables.size()) y = td::tanh(y);
      }
      const td::Tensor loss = td::mean(td::sparse_softmax_cross_entropy(labels, y));
      adam.apply_gradients(tape.gradient(td::Targets{loss}, td::Sources(variables)), variables);
      return loss;
    };
    const auto f = td::function(step);
    const td::Tensor x = random({s.batch, s.layers[0]}, 1), labels = td::zeros({s.batch}, td::DType::i32);
    compare(
        "step of a network, " + std::to_string(s.layers[0]) + " inputs", 1, [&] { (void)step(x, labels); },
        [&] { (void)f(x, labels); });
  }
}

/// 500 ops on 10⁶ elements, with gradient.
void long_program() {
  const td::Tensor x = random({1'000'000}, 1);
  const auto f = [](const td::Tensor& start) {
    td::GradientTape tape;
    tape.watch(start);
    td::Tensor y = start;
    for (int i = 0; i < 125; ++i)
      y = td::tanh(y * 1.01 + 0.1) * y;
    return tape.gradient(td::sum(y), start);
  };
  const auto recorded = td::function(f);
  compare(
      "500 ops on 10^6, gradient", 500, [&] { (void)f(x); }, [&] { (void)recorded(x); });
  if (!recorded.programs().empty())
    std::printf("  memory of the program: %.1f MB\n",
                static_cast<double>(recorded.programs()[0].arena_bytes) * 1e-6);
}

}   // namespace

int main(int argc, char** argv) {
  words.assign(argv + 1, argv + argc);
  chains();
  sums();
  steps();
  long_program();
}
