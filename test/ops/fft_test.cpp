// Fourier transforms compared with their definition, their inverses, and errors.
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>

#include "message_of.h"
#include "ops/sample_inputs.h"
#include "tapedeck/tapedeck.h"

namespace fft_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

using Number = std::complex<double>;
using Numbers = std::vector<Number>;

constexpr std::int64_t kLengths[] = {1,  2,  3,   4,   5,   7,    8,    9,    12,  16,
                                     37, 64, 210, 323, 529, 1001, 1024, 2640, 8191};

/// The definition along the middle axis of [outer, n, inner], in O(n²).
Numbers defined_along(const Numbers& x, std::size_t n, std::size_t inner, bool inverse) {
  Numbers y(x.size()), turns(n);
  for (std::size_t i = 0; i < n; ++i)
    turns[i] = std::polar(
        1.0, (inverse ? 2 : -2) * 3.141592653589793 * static_cast<double>(i) / static_cast<double>(n));
  for (std::size_t at = 0; at < x.size(); at += n * inner)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t w = 0; w < inner; ++w) {
        Number sum = 0;
        for (std::size_t j = 0; j < n; ++j)
          sum += x[at + j * inner + w] * turns[j * k % n];
        y[at + k * inner + w] = inverse ? sum / static_cast<double>(n) : sum;
      }
  return y;
}
Numbers defined(const Tensor& x, int axes, bool inverse) {
  Numbers y = x.to_vector<Number>();
  std::size_t inner = 1;
  for (int d = x.ndim() - 1; d >= x.ndim() - axes; --d) {
    const auto n = static_cast<std::size_t>(x.shape()[d]);
    y = defined_along(y, n, inner, inverse);
    inner *= n;
  }
  return y;
}

/// The largest difference, divided by the largest absolute value.
double off(const Tensor& x, const Numbers& exact) {
  const Numbers v = x.to_vector<Number>();
  REQUIRE(v.size() == exact.size());
  double worst = 0, largest = 1e-300;
  for (std::size_t i = 0; i < v.size(); ++i)
    worst = std::max(worst, std::abs(v[i] - exact[i])), largest = std::max(largest, std::abs(exact[i]));
  return worst / largest;
}
double off(const Tensor& x, const Tensor& exact) { return off(x, exact.to_vector<Number>()); }

/// The first n / 2 + 1 elements of every row of n.
Numbers first_half(const Numbers& x, std::size_t n) {
  Numbers y;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i % n <= n / 2) y.push_back(x[i]);
  return y;
}

constexpr double kTolerance = 1e-14, kSingle = 2e-6;

}   // namespace

TEST_CASE("transforms of any length follow the definition", "[fft]") {
  for (const std::int64_t n : kLengths) {
    INFO("n " << n);
    const Tensor x = samples::spread({n > 1000 ? 1 : 3, n}), single = astype(x, DType::c64);
    const Numbers forth = defined(x, 1, false), back = defined(x, 1, true);
    CHECK(fft(x).dtype() == DType::c128);
    CHECK(fft(single).dtype() == DType::c64);
    CHECK(off(fft(x), forth) < kTolerance);
    CHECK(off(ifft(x), back) < kTolerance);
    CHECK(off(fft(single), forth) < kSingle);
    CHECK(off(ifft(single), back) < kSingle);
    CHECK(off(ifft(fft(x)), x) < kTolerance);
  }
}

TEST_CASE("a transform of one number is this number", "[fft]") {
  const Tensor one = tensor(Numbers{{3, -4}});
  CHECK(fft(one).to_vector<Number>() == Numbers{{3, -4}});
  CHECK(ifft(one).to_vector<Number>() == Numbers{{3, -4}});
  CHECK(rfft(tensor({5.0}, DType::f64)).to_vector<Number>() == Numbers{5});
  CHECK(irfft(tensor(Numbers{5}), {1}).to_vector() == std::vector<double>{5});
}

TEST_CASE("transforms of real numbers are the first half of complex ones, and can be inverted", "[fft]") {
  for (const std::int64_t n : kLengths) {
    INFO("n " << n);
    const Tensor x = samples::uniform({n > 1000 ? 1 : 3, n}, -1, 1), single = astype(x, DType::f32),
                 y = rfft(x);
    CHECK(y.spec() == Spec{DType::c128, {x.shape()[0], n / 2 + 1}});
    CHECK(rfft(single).dtype() == DType::c64);
    const Numbers exact = first_half(defined(astype(x, DType::c128), 1, false), static_cast<std::size_t>(n));
    CHECK(off(y, exact) < kTolerance);
    CHECK(off(rfft(single), exact) < kSingle);
    CHECK(irfft(y, {n}).spec() == x.spec());
    CHECK(off(irfft(y, {n}), x) < kTolerance);
    CHECK(off(irfft(rfft(single), {n}), single) < kSingle);
    if (n % 2 == 0) CHECK(off(irfft(y), x) < kTolerance);
  }
}

// The sum of ±x: its imaginary part would be of rounding size, and its angle -π or π, if exp(-πi) were
// rounded.
TEST_CASE("the last number of a transform of an even number of real numbers is real", "[fft]") {
  for (const std::int64_t n : {2, 4, 6, 10, 16, 100, 1000}) {
    const Tensor y = rfft(random::normal({n}, {.seed = 1}, DType::f64));
    CHECK(imag(y).at({n / 2}) == 0);
    CHECK(imag(y).at({0}) == 0);
  }
}

TEST_CASE("transforms along several axes are transforms along each", "[fft]") {
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 37, 2, 12}, Shape{3, 1, 7, 1}, Shape{2, 5, 9, 20}}) {
    INFO(to_string(shape));
    const Tensor x = samples::spread(shape), r = samples::uniform(shape, -1, 1), z = astype(r, DType::c128);
    const auto n = static_cast<std::size_t>(shape[3]);
    CHECK(off(fft2d(x), defined(x, 2, false)) < kTolerance);
    CHECK(off(ifft2d(x), defined(x, 2, true)) < kTolerance);
    CHECK(off(fft3d(x), defined(x, 3, false)) < kTolerance);
    CHECK(off(ifft3d(x), defined(x, 3, true)) < kTolerance);
    CHECK(off(rfft2d(r), first_half(defined(z, 2, false), n)) < kTolerance);
    CHECK(off(rfft3d(r), first_half(defined(z, 3, false), n)) < kTolerance);
    CHECK(off(irfft2d(rfft2d(r), {shape[2], shape[3]}), r) < kTolerance);
    CHECK(off(irfft3d(rfft3d(r), {shape[1], shape[2], shape[3]}), r) < kTolerance);
  }
}

TEST_CASE("a length cuts off or fills up with zeros", "[fft]") {
  const Tensor x = samples::uniform({2, 3, 6}, -1, 1), z = samples::spread({2, 3, 6});
  CHECK(off(rfft(x, {4}), rfft(slice(x, {0, 0, 0}, {2, 3, 4}))) == 0);
  CHECK(off(rfft(x, {9}), rfft(pad(x, {0, 0, 0}, {0, 0, 3}))) == 0);
  CHECK(off(rfft2d(x, {5, 4}), rfft2d(pad(slice(x, {0, 0, 0}, {2, 3, 4}), {0, 0, 0}, {0, 2, 0}))) == 0);
  CHECK(irfft(z).shape() == Shape{2, 3, 10});
  CHECK(off(irfft(z, {7}), irfft(slice(z, {0, 0, 0}, {2, 3, 4}), {7})) == 0);
  CHECK(irfft(z, {20}).shape() == Shape{2, 3, 20});
  CHECK(irfft3d(z, {1, 2, 3}).shape() == Shape{1, 2, 3});
}

// For a holomorphic f a gradient g becomes g · conj(f'): through the transform, n times the inverse
// transform.
TEST_CASE("gradients of transforms agree with their definition", "[fft]") {
  const Tensor z = samples::spread({5}), g = samples::spread({5}, 2);
  {
    GradientTape tape;
    tape.watch(z);
    CHECK(off(tape.gradient(fft(z), z, {.output_gradients = {g}}).dense(), ifft(g) * 5) < kTolerance);
  }
  // Σ |rfft(x)|² for an even length: by Parseval's theorem, n Σ x² for the whole transform, in which only the
  // first and the middle entry occur once.
  for (const std::int64_t n : {6, 7}) {
    const Tensor x = samples::uniform({n}, -1, 1);
    GradientTape tape;
    tape.watch(x);
    const Tensor y = rfft(x), all = sum(square(real(y))) + sum(square(imag(y)));
    const Tensor dx = tape.gradient(all, x).dense();
    const double total = sum(x).item(), alternating = sum(x * cos(arange(n) * 3.141592653589793)).item();
    for (std::int64_t i = 0; i < n; ++i) {
      double expected = static_cast<double>(n) * x.at<double>({i}) + total;
      if (n % 2 == 0) expected += alternating * (i % 2 ? -1 : 1);
      CHECK(dx.at<double>({i}) == Approx(expected));
    }
  }
}

TEST_CASE("transforms of empty tensors are empty", "[fft]") {
  CHECK(fft(zeros({0, 3}, DType::c64)).shape() == Shape{0, 3});
  CHECK(fft3d(zeros({2, 0, 3, 4, 5}, DType::c64)).shape() == Shape{2, 0, 3, 4, 5});
  CHECK(rfft2d(zeros({0, 3, 4})).shape() == Shape{0, 3, 3});
  CHECK(irfft2d(zeros({0, 3, 4}, DType::c128)).shape() == Shape{0, 3, 6});
}

TEST_CASE("transforms reject invalid arguments", "[fft][errors]") {
  const Tensor z = zeros({3}, DType::c64), x = zeros({3});
  CHECK(message_of([&] { fft(x); }) == "fft: takes c64 or c128, use complex or astype: x is f32[3]");
  CHECK(message_of([&] { rfft(z); }) == "rfft: takes f32, f64, f16 or bf16, use astype: x is c64[3]");
  CHECK(message_of([&] { irfft(x); }) == "irfft: takes c64 or c128, use complex or astype: x is f32[3]");
  CHECK(message_of([&] { fft2d(z); }) == "fft2d: takes tensors of rank 2 or more: x is c64[3]");
  CHECK(message_of([&] {
          fft(zeros({2, 0}, DType::c64));
        }) == "fft: no elements along an axis that is transformed: x is c64[2,0]");
  CHECK(
      message_of([&] {
        rfft(x, {2, 3});
      }) ==
      "rfft: fft_length must have an extent for each of the last axes, 1: fft_length is [2,3], x is f32[3]");
  CHECK(message_of([&] { rfft(x, {0}); }) == "rfft: fft_length must be at least 1: fft_length is [0]");
  CHECK_THROWS_AS(irfft(zeros({1}, DType::c64)), ShapeError);
  CHECK_THROWS_AS(irfft(zeros({}, DType::c64)), ShapeError);
  CHECK_THROWS_AS(irfft(z, {-1}), ShapeError);
}

}   // namespace fft_test
