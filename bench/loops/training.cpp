// A hundred steps of training as one scan, compared with a compiled step that is called a hundred times, and
// with eager steps.
#include "cases.h"
#include "tapedeck/optimizer.h"

namespace bench {
namespace {

constexpr std::int64_t kSteps = 100, kBatch = 16;

// A network of one hidden layer, and its optimizer.
struct Network {
  explicit Network(std::int64_t width)
      : first(numbers({8, width}, 1, -0.5, 0.5)), second(numbers({width, 1}, 2, -0.5, 0.5)) {}

  td::Tensor step(const td::Tensor& x, const td::Tensor& y) {
    td::GradientTape tape;
    const td::Tensor out = td::matmul(td::tanh(td::matmul(x, first)), second);
    const td::Tensor loss = td::mean(td::square(out - y));
    const auto [a, b] = tape.gradient(loss, first, second);
    adam.apply_gradients({{a, first}, {b, second}});
    return loss;
  }

  td::Variable first, second;
  td::Adam adam{{.learning_rate = 1e-3}};
};

void run(std::int64_t width) {
  const std::string name = "100 steps of training, width " + std::to_string(width);
  if (!is_chosen(name)) return;
  const td::Tensor x = numbers({kSteps, kBatch, 8}, 3), y = numbers({kSteps, kBatch, 1}, 4);
  Network eager(width), of_steps(width), of_scan(width);
  const auto step =
      td::compile([&](const td::Tensor& a, const td::Tensor& b) { return of_steps.step(a, b); });
  const auto scan = td::compile([&](const td::Tensor& a, const td::Tensor& b) {
    return td::scan([&](const td::Tensor& u, const td::Tensor& v) { return of_scan.step(u, v); }, {}, {a, b});
  });
  const auto each = [&](const auto& f) {
    for (std::int64_t i = 0; i < kSteps; ++i)
      (void)f(x[i], y[i]);
  };
  const Run runs[] = {
      [&] { (void)scan(x, y); }, [&] { each(step); },
      [&] { each([&](const td::Tensor& a, const td::Tensor& b) { return eager.step(a, b); }); }};
  const Race race(runs);
  report(name, race.ratio(1, 0), "times as fast as the compiled step", {},
         std::to_string(race.ratio(2, 0)).substr(0, 4) + " times as fast as eager");
}

}   // namespace

void run_training() {
  for (const std::int64_t width : {8, 64})
    run(width);
}

}   // namespace bench
