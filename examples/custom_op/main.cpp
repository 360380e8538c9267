// An op of one's own: softplus, log(1 + exp(x)), with its kernel and its derivative. The program checks the derivative, of
// first and second order, against differences. docs/adding_an_op.md explains the fields.
#include <algorithm>
#include <cmath>
#include <iostream>

#include <tapedeck/gradcheck.h>
#include <tapedeck/op.h>
#include <tapedeck/tapedeck.h>

namespace td = tapedeck;

namespace {

template <class T> void fill_softplus(const td::Tensor& x, td::Tensor& y) {
  const std::span<const T> in = x.data<T>();
  const std::span<T> out = td::writable<T>(y);
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = std::max(in[i], T(0)) + std::log1p(std::exp(-std::abs(in[i])));   // exp never overflows
}

constexpr td::Op kSoftplus = {
    .name = "softplus",
    .doc = "log(1 + exp(x)).",
    .args = {"x"},
    .infer = [](const td::Call& c) {
      if (!td::is_trainable(c.x[0].dtype())) td::throw_dtype_error(c, "takes f32 or f64");
      return c.x[0].spec();
    },
    .forward = [](const td::Call& c, std::span<td::Tensor> y) {
      c.x[0].dtype() == td::DType::f32 ? fill_softplus<float>(c.x[0], y[0]) : fill_softplus<double>(c.x[0], y[0]);
    },
    // How gradients go back, and how tangents go forward. Both are made of ops, so that they can be differentiated again.
    .rule = td::custom({.x = 1},
                       [](const td::Call& c, std::span<td::Gradient> dy, std::span<td::Gradient> dx) { dx[0] = dy[0].dense() * td::sigmoid(c.x[0]); },
                       [](const td::Call& c, td::Refs dx, std::span<td::Tensor> dy) { dy[0] = dx[0] * td::sigmoid(c.x[0]); }),
};

td::Tensor softplus(td::Operand x) { return kSoftplus(x); }

}  // namespace

int main() {
  const td::Tensor x = td::linspace(-30, 30, 7, td::DType::f64);
  td::GradientTape tape;
  tape.watch(x);
  const td::Tensor y = softplus(x);
  std::cout << "x            " << x << "\nsoftplus(x)  " << y << "\nslope        " << tape.gradient(y, x).dense() << '\n';

  const td::Agreement agreement = td::check_gradients([](const std::vector<td::Tensor>& in) { return softplus(in[0]); }, {td::linspace(-2, 2, 9, td::DType::f64)});
  std::cout << (agreement ? "the derivatives agree: " : "the derivatives differ: ") << agreement << '\n';
  return agreement ? 0 : 1;
}
