// Every form of derivatives of functions: curried and with arguments, eager and compiled, called with two
// inputs after each other. Expected values are closed forms; inputs stay bitwise unchanged.
#include <catch2/catch.hpp>
#include <functional>

#include "core/bytes.h"
#include "tapedeck/compile.h"
#include "tapedeck/grad.h"
#include "tapedeck/ops.h"
#include "values.h"

namespace grad_forms_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

/// The value of a function, and for each argument its Jacobian, by rows; and its Hessian if the value is one
/// number.
struct Closed {
  Values value;
  std::vector<Values> jacobians, hessians = {};
};
/// A point, a direction for each argument, and weights of the outputs.
struct Input {
  std::vector<Tensor> x, v;
  Tensor dy;
  Closed closed;
};
using Expected = std::vector<Values>;

Values gradient(const Closed& c, std::size_t k, const Values& dy) {
  const std::size_t columns = c.jacobians[k].size() / dy.size();
  Values sum(columns);
  for (std::size_t o = 0; o < dy.size(); ++o)
    for (std::size_t j = 0; j < columns; ++j)
      sum[j] += dy[o] * c.jacobians[k][o * columns + j];
  return sum;
}
Expected gradients(const Input& in, const Values& dy) {
  Expected all;
  for (std::size_t k = 0; k < in.x.size(); ++k)
    all.push_back(gradient(in.closed, k, dy));
  return all;
}
Expected gradients(const Input& in) { return gradients(in, Values(in.closed.value.size(), 1)); }
Expected of_value_and(const Input& in, Expected rest) {
  rest.insert(rest.begin(), in.closed.value);
  return rest;
}
Values tangent(const Input& in) {
  Values sum(in.closed.value.size());
  for (std::size_t k = 0; k < in.x.size(); ++k) {
    const Values v = in.v[k].to_vector();
    for (std::size_t o = 0; o < sum.size(); ++o)
      for (std::size_t j = 0; j < v.size(); ++j)
        sum[o] += in.closed.jacobians[k][o * v.size() + j] * v[j];
  }
  return sum;
}

std::string bytes_of(const Tensor& x) {
  return {reinterpret_cast<const char*>(x.raw()), static_cast<std::size_t>(x.nbytes())};
}
std::vector<std::string> bytes_of(const std::vector<Tensor>& all) {
  std::vector<std::string> bytes;
  for (const Tensor& x : all)
    bytes.push_back(bytes_of(x));
  return bytes;
}

std::vector<Tensor> joined(std::vector<Tensor> a, const std::vector<Tensor>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
std::vector<Tensor> point(const Input& in) { return in.x; }
std::vector<Tensor> point_and_direction(const Input& in) { return joined(in.x, in.v); }
std::vector<Tensor> point_and_weights(const Input& in) { return joined(in.x, {in.dy}); }

void compare(const std::vector<Tensor>& actual, const Expected& expected, DType dtype) {
  const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-13;
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CHECK(actual[i].dtype() == dtype);
    const Values numbers = actual[i].to_vector();
    REQUIRE(numbers.size() == expected[i].size());
    double worst = 0;
    for (std::size_t j = 0; j < numbers.size(); ++j)
      worst = std::max(worst, std::abs(numbers[j] - expected[i][j]) / (1 + std::abs(expected[i][j])));
    CHECK(worst <= tolerance);
  }
}

/// Calls g of n tensors, and g compiled, with each input twice.
template <std::size_t n, class G>
void check(const std::string& name, const G& g, const std::vector<Input>& inputs,
           const std::function<std::vector<Tensor>(const Input&)>& arguments,
           const std::function<Expected(const Input&)>& expected) {
  const auto call_all = [&](const std::string& how, const auto& h) {
    for (const int round : {0, 1})
      for (const Input& in : inputs) {
        CAPTURE(name, how, round, in.x[0].spec());
        const std::vector<Tensor> x = arguments(in);
        const std::vector<std::string> before = bytes_of(x);
        auto y = [&]<std::size_t... i>(std::index_sequence<i...>) { return h(x[i]...); }
        (std::make_index_sequence<n>());
        compare(detail::tensors_of(y), expected(in), in.x[0].dtype());
        CHECK(bytes_of(x) == before);
      }
  };
  call_all("eager", g);
  const auto compiled = compile(g);
  call_all("compiled", compiled);
  CHECK(compiled.programs().size() == 1);
}

Expected jacobians(const Input& in) { return in.closed.jacobians; }
Expected value_and_gradients(const Input& in) { return of_value_and(in, gradients(in)); }
Expected value_and_weighted(const Input& in) { return of_value_and(in, gradients(in, in.dy.to_vector())); }

/// All forms with one argument.
template <class F> void check_unary(const F& f, const std::vector<Input>& inputs) {
  const auto all = [](const Input& in) { return gradients(in); };
  check<1>("grad(f)(x)", grad(f), inputs, point, all);
  check<1>(
      "grad(f, x)", [f](const Tensor& x) { return grad(f, x); }, inputs, point, all);
  check<1>("value_and_grad(f)(x)", value_and_grad(f), inputs, point, value_and_gradients);
  check<1>(
      "value_and_grad(f, x)", [f](const Tensor& x) { return value_and_grad(f, x); }, inputs, point,
      value_and_gradients);
  check<2>(
      "vjp(f)(x)",
      [f](const Tensor& x, const Tensor& dy) {
        const auto r = vjp(f)(x);
        return std::pair(r.first, r.second(dy));
      },
      inputs, point_and_weights, value_and_weighted);
  check<2>(
      "vjp(f, x)",
      [f](const Tensor& x, const Tensor& dy) {
        const auto r = vjp(f, x);
        return std::pair(r.first, r.second(dy));
      },
      inputs, point_and_weights, value_and_weighted);
  const auto one = [](const Input& in) { return Expected{tangent(in)}; };
  check<2>("jvp(f)(x, v)", jvp(f), inputs, point_and_direction, one);
  check<2>(
      "jvp(f, x, v)", [f](const Tensor& x, const Tensor& v) { return jvp(f, x, v); }, inputs,
      point_and_direction, one);
  for (const JacobianMode mode : {JacobianMode::automatic, JacobianMode::reverse, JacobianMode::forward}) {
    const JacobianOptions options = {.mode = mode};
    check<1>("jacobian(f)(x)", jacobian(f, options), inputs, point, jacobians);
    check<1>(
        "jacobian(f, x)", [f, options](const Tensor& x) { return jacobian(f, x, options); }, inputs, point,
        jacobians);
    if (inputs[0].closed.hessians.empty()) continue;
    const auto hessians = [](const Input& in) { return in.closed.hessians; };
    check<1>("hessian(f)(x)", hessian(f, options), inputs, point, hessians);
    check<1>(
        "hessian(f, x)", [f, options](const Tensor& x) { return hessian(f, x, options); }, inputs, point,
        hessians);
  }
}

/// All forms with two arguments; the value is one number.
template <class F> void check_binary(const F& f, const std::vector<Input>& inputs) {
  const auto all = [](const Input& in) { return gradients(in); };
  const auto second = [](const Input& in) { return Expected{gradients(in)[1]}; };
  check<2>("grad<0, 1>(f)(x, y)", grad<0, 1>(f), inputs, point, all);
  check<2>("grad<1>(f)(x, y)", grad<1>(f), inputs, point, second);
  check<2>(
      "grad(f, {x, y})",
      [f](const Tensor& x, const Tensor& y) {
        return grad(f, {x, y});
      },
      inputs, point, all);
  check<2>("value_and_grad<0, 1>(f)(x, y)", value_and_grad<0, 1>(f), inputs, point, value_and_gradients);
  check<2>(
      "value_and_grad(f, {x, y})",
      [f](const Tensor& x, const Tensor& y) {
        return value_and_grad(f, {x, y});
      },
      inputs, point, value_and_gradients);
  check<3>(
      "vjp(f)(x, y)",
      [f](const Tensor& x, const Tensor& y, const Tensor& dy) {
        const auto r = vjp(f)(x, y);
        return std::pair(r.first, r.second(dy));
      },
      inputs, point_and_weights, value_and_weighted);
  check<3>(
      "vjp(f, {x, y})",
      [f](const Tensor& x, const Tensor& y, const Tensor& dy) {
        const auto r = vjp(f, {x, y});
        return std::pair(r.first, r.second(dy));
      },
      inputs, point_and_weights, value_and_weighted);
  const auto one = [](const Input& in) { return Expected{tangent(in)}; };
  check<4>("jvp(f)(x, y, u, v)", jvp(f), inputs, point_and_direction, one);
  check<4>(
      "jvp(f, {x, y}, {u, v})",
      [f](const Tensor& x, const Tensor& y, const Tensor& u, const Tensor& v) {
        return jvp(f, {x, y}, {u, v});
      },
      inputs, point_and_direction, one);
  check<2>("jacobian<0, 1>(f)(x, y)", jacobian<0, 1>(f), inputs, point, jacobians);
  check<2>(
      "jacobian(f, {x, y})",
      [f](const Tensor& x, const Tensor& y) {
        return jacobian(f, std::vector{x, y});
      },
      inputs, point, jacobians);
  check<2>("hessian(f)(x, y)", hessian(f), inputs, point,
           [](const Input& in) { return Expected{in.closed.hessians[0]}; });
  check<2>("hessian<1>(f)(x, y)", hessian<1>(f), inputs, point,
           [](const Input& in) { return Expected{in.closed.hessians[1]}; });
}

Values diagonal(const Values& d) {
  Values all(d.size() * d.size());
  for (std::size_t i = 0; i < d.size(); ++i)
    all[i * d.size() + i] = d[i];
  return all;
}

/// Numbers that f32 represents, so that closed forms hold in both dtypes.
Tensor numbers(const Shape& shape, int seed, DType dtype) {
  Values all(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<double>(static_cast<int>(i) * 7 % 11 + seed) / 8 - 0.5;
  return astype(tensor(all, shape), dtype);
}

/// Two inputs of a function, with the closed form at each.
std::vector<Input> two_inputs(const Shape& shape, std::size_t arguments, DType dtype,
                              const std::function<Closed(const std::vector<Values>&)>& closed) {
  std::vector<Input> all;
  for (const int seed : {1, 4}) {
    Input in;
    std::vector<Values> x;
    for (std::size_t k = 0; k < arguments; ++k) {
      in.x.push_back(numbers(shape, seed + static_cast<int>(k), dtype));
      in.v.push_back(numbers(shape, seed + 5 + static_cast<int>(k), dtype));
      x.push_back(in.x[k].to_vector());
    }
    in.closed = closed(x);
    in.dy = numbers(in.closed.value.size() == 1 ? Shape() : shape, seed + 2, dtype);
    all.push_back(std::move(in));
  }
  return all;
}

// Elements within a handle and in a buffer of their own.
const Shape kVectors[] = {{3}, {20}};

}   // namespace

TEST_CASE("every form of a derivative: a sum of cubes", "[grad][compile]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Shape& shape : kVectors)
      check_unary([](const Tensor& x) { return sum(x * x * x); },
                  two_inputs(shape, 1, dtype, [](const std::vector<Values>& x) {
                    Values first, second;
                    double sum = 0;
                    for (const double u : x[0])
                      sum += u * u * u, first.push_back(3 * u * u), second.push_back(6 * u);
                    return Closed{{sum}, {first}, {diagonal(second)}};
                  }));
}

TEST_CASE("every form of a derivative: squares of elements", "[grad][compile]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Shape& shape : kVectors)
      check_unary([](const Tensor& x) { return x * x; },
                  two_inputs(shape, 1, dtype, [](const std::vector<Values>& x) {
                    Values squares, first;
                    for (const double u : x[0])
                      squares.push_back(u * u), first.push_back(2 * u);
                    return Closed{squares, {diagonal(first)}};
                  }));
}

TEST_CASE("every form of a derivative: a quadratic form of a matrix", "[grad][compile]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor a = astype(matrix({{1, 2}, {-1, 0.5}, {0.25, 3}}), dtype);
    const Values ata = matmul(a, transpose(a)).to_vector();   // [3,3]
    check_unary([a](const Tensor& x) { return sum(square(matmul(x, a))) / 2; },
                two_inputs({2, 3}, 1, dtype, [&](const std::vector<Values>& x) {
                  double sum = 0;
                  Values first(6), second(36);
                  for (std::size_t r = 0; r < 2; ++r)
                    for (std::size_t i = 0; i < 3; ++i)
                      for (std::size_t j = 0; j < 3; ++j) {
                        sum += x[0][r * 3 + i] * ata[i * 3 + j] * x[0][r * 3 + j] / 2;
                        first[r * 3 + i] += ata[i * 3 + j] * x[0][r * 3 + j];
                        second[(r * 3 + i) * 6 + r * 3 + j] = ata[i * 3 + j];
                      }
                  return Closed{{sum}, {first}, {second}};
                }));
  }
}

TEST_CASE("every form of a derivative: two arguments", "[grad][compile]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Shape& shape : {Shape{3}, Shape{4, 5}})
      check_binary(
          [](const Tensor& x, const Tensor& y) { return sum(x * x * y); },
          two_inputs(shape, 2, dtype, [](const std::vector<Values>& x) {
            double sum = 0;
            Values by_x, by_y, second;
            for (std::size_t i = 0; i < x[0].size(); ++i) {
              const double u = x[0][i], w = x[1][i];
              sum += u * u * w;
              by_x.push_back(2 * u * w), by_y.push_back(u * u), second.push_back(2 * w);
            }
            return Closed{{sum}, {by_x, by_y}, {diagonal(second), Values(second.size() * second.size())}};
          }));
}

}   // namespace grad_forms_test
