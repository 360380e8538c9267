// bf16 compared with f32: the speed of elementwise ops, reductions, gradients and matrix products, measured
// alternately.
//   ninja -C build bench/halves_bench && build/bench/halves_bench
#include <chrono>
#include <cstdio>
#include <functional>

#include "median.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using Clock = std::chrono::steady_clock;

namespace {

double seconds(const std::function<void()>& f, int repeats) {
  const auto begin = Clock::now();
  for (int i = 0; i < repeats; ++i)
    f();
  return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
}

/// Times f of two random tensors of this shape, in f32 and in bf16.
void compare(const char* name, const td::Shape& shape,
             const std::function<void(const td::Tensor&, const td::Tensor&)>& f) {
  const td::Tensor a = td::random::normal(shape, {1}), b = td::random::normal(shape, {2}),
                   half_a = td::astype(a, td::DType::bf16), half_b = td::astype(b, td::DType::bf16);
  const auto single = [&] { f(a, b); };
  const auto half = [&] { f(half_a, half_b); };
  int repeats = 1;
  while (seconds(single, repeats) * repeats < 2e-3)
    repeats *= 2;
  std::vector<double> of_single, ratios;
  for (int i = 0; i < 15; ++i) {
    of_single.push_back(seconds(single, repeats));
    ratios.push_back(of_single.back() / seconds(half, repeats));
  }
  std::printf("%-16s %-14s f32 %12.2f us   bf16 at %.2f times its speed\n", name,
              td::to_string(shape).c_str(), bench::median(of_single) * 1e6, bench::median(ratios));
}

void gradient(const td::Tensor& a, const td::Tensor& b,
              td::Tensor (*f)(const td::Tensor&, const td::Tensor&)) {
  td::GradientTape tape;
  tape.watch(a), tape.watch(b);
  const td::Tensor y = f(a, b);
  (void)tape.gradient(y, td::Sources{a, b}, {.output_gradients = {y}});
}

}   // namespace

int main() {
  for (const std::int64_t n : {8, 1'000, 16'384, 1'000'000, 16'000'000}) {
    compare("add", {n}, [](const td::Tensor& a, const td::Tensor& b) { (void)(a + b); });
    compare("tanh", {n}, [](const td::Tensor& a, const td::Tensor&) { (void)td::tanh(a); });
    compare("sum", {n}, [](const td::Tensor& a, const td::Tensor&) { (void)td::sum(a); });
    compare("max", {n}, [](const td::Tensor& a, const td::Tensor&) { (void)td::max(a); });
    compare("gradient", {n}, [](const td::Tensor& a, const td::Tensor& b) {
      gradient(a, b, [](const td::Tensor& x, const td::Tensor& y) { return td::tanh(x) * y; });
    });
  }
  for (const int axis : {0, 1})
    compare(axis ? "sum of rows" : "sum of columns", {1000, 1000},
            [axis](const td::Tensor& a, const td::Tensor&) { (void)td::sum(a, axis); });
  for (const std::int64_t n : {16, 64, 256, 1024}) {
    compare("matmul", {n, n}, [](const td::Tensor& a, const td::Tensor& b) { (void)td::matmul(a, b); });
    compare("matmul gradient", {n, n}, [](const td::Tensor& a, const td::Tensor& b) {
      gradient(a, b, [](const td::Tensor& x, const td::Tensor& y) { return td::matmul(x, y); });
    });
  }
}
