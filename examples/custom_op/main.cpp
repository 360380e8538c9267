// An op of one's own: log_cosh, log(cosh(x)), a loss that is smooth at 0 and straight far from it, with its kernel and its
// derivative. The program checks the derivative, of first and second order, against differences. docs/adding_an_op.md explains the fields.
#include <cmath>
#include <iostream>
#include <numbers>

#include <tapedeck/gradcheck.h>
#include <tapedeck/op.h>
#include <tapedeck/tapedeck.h>

namespace td = tapedeck;

namespace {

template <class T> void fill_log_cosh(const td::Tensor& x, td::Tensor& y) {
  const std::span<const T> in = x.data<T>();
  const std::span<T> out = td::writable<T>(y);
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = std::abs(in[i]) + std::log1p(std::exp(-2 * std::abs(in[i]))) - std::numbers::ln2_v<T>;   // exp never overflows
}

constexpr td::Op kLogCosh = {
    .name = "log_cosh",
    .doc = "log(cosh(x)).",
    .args = {"x"},
    .infer = [](const td::Call& c) {
      if (!td::is_trainable(c.x[0].dtype())) td::throw_dtype_error(c, "takes f32 or f64");
      return c.x[0].spec();
    },
    .forward = [](const td::Call& c, std::span<td::Tensor> y) {
      c.x[0].dtype() == td::DType::f32 ? fill_log_cosh<float>(c.x[0], y[0]) : fill_log_cosh<double>(c.x[0], y[0]);
    },
    // How gradients go back, and how tangents go forward. Both are made of ops, so that they can be differentiated again.
    .rule = td::custom({.x = 1},
                       [](const td::Call& c, std::span<td::Gradient> dy, std::span<td::Gradient> dx) { dx[0] = dy[0].dense() * td::tanh(c.x[0]); },
                       [](const td::Call& c, td::Refs dx, std::span<td::Tensor> dy) { dy[0] = dx[0] * td::tanh(c.x[0]); }),
};

td::Tensor log_cosh(td::Operand x) { return kLogCosh(x); }

}  // namespace

int main() {
  const td::Tensor x = td::linspace(-30, 30, 7, td::DType::f64);
  td::GradientTape tape;
  tape.watch(x);
  const td::Tensor y = log_cosh(x);
  std::cout << "x            " << x << "\nlog_cosh(x)  " << y << "\nslope        " << tape.gradient(y, x).dense() << '\n';

  const td::Agreement agreement = td::check_gradients([](const std::vector<td::Tensor>& in) { return log_cosh(in[0]); }, {td::linspace(-2, 2, 9, td::DType::f64)});
  std::cout << (agreement ? "the derivatives agree: " : "the derivatives differ: ") << agreement << '\n';
  return agreement ? 0 : 1;
}
