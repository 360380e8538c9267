// Complex numbers. Expected values are from NumPy 1.24 unless a comment says otherwise.
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>

#include "case.h"
#include "message_of.h"
#include "ops/op_samples.h"
#include "tapedeck/forward_accumulator.h"

namespace complex_test {

using namespace tapedeck;
using namespace tapedeck::test;
using samples::c128;
using samples::f64;
using Z = std::complex<double>;

namespace {

Tensor points() { return c128({{3, -4}, {-0.5, 0.25}, {1e-9, -2e-9}, {-2, 0.1}}); }
Tensor others() { return c128({{0.5, 1}, {2, -1}, {0, 1}, {-1.5, 0}}); }
Tensor gradient_of(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x).dense();
}

}   // namespace

// NumPy: x / np.abs(x), np.abs(a - b) ** 2 and np.linalg.norm
TEST_CASE("signs, squared differences and norms of complex numbers", "[complex]") {
  const Tensor z = samples::c128({{3, 4}, {0, -2}, {0, 0}}), w = samples::c128({{2, 1}, {0, 0}, {-1, 1}});
  const auto off = [](const Tensor& x, const Tensor& y) { return max(abs(x - y)).item(); };
  CHECK(off(sign(z), samples::c128({{0.6, 0.8}, {0, -1}, {0, 0}})) < 1e-15);
  CHECK(off(squared_difference(z, w), samples::c128({{10, 0}, {4, 0}, {2, 0}})) < 1e-15);
  CHECK(off(squared_difference(z, 1.0), samples::c128({{20, 0}, {5, 0}, {1, 0}})) < 1e-15);
  const Tensor norm = euclidean_norm(samples::c128({{3, 4}, {0, -12}}));
  CHECK(norm.dtype() == DType::f64);
  CHECK(norm.item() == Approx(13).epsilon(1e-15));
  const Tensor a = samples::spread({2, 3}), b = samples::spread({3}, 3);
  using Inputs = std::vector<Tensor>;
  CHECK(check_gradients([](const Inputs& x) { return sign(x[0]); }, {a}));
  CHECK(check_gradients([](const Inputs& x) { return squared_difference(x[0], x[1]); }, {a, b}));
  CHECK(check_gradients([](const Inputs& x) { return squared_difference(x[0], x[1]); }, {a, real(b)}));
  CHECK(check_gradients([](const Inputs& x) { return euclidean_norm(x[0], 1, {.keepdims = true}); }, {a}));
  const Tensor nothing = zeros({1}, DType::c128), one = ones_like(nothing);
  for (const Tensor& y : {xlogy(nothing, nothing), xlog1py(nothing, -one), xdivy(nothing, nothing),
                          div_no_nan(one, nothing), mul_no_nan(one / nothing, nothing)})
    CHECK(off(y, nothing) == 0);
  GradientTape tape({.persistent = true});
  tape.watch(z);
  const Tensor of_zero = gather(sign(z), tensor({2}));
  CHECK(off(tape.gradient(of_zero, z, {.output_gradients = {samples::c128({{1, 1}})}}).dense(),
            zeros_like(z)) == 0);
}

TEST_CASE("functions of complex numbers have NumPy's values", "[complex]") {
  struct Row {
    Tensor (*f)(Operand);
    Tensor expected;
  };
  const Row rows[] = {{sqrt, c128({{2.0, -1.0},
                                   {0.17178037486125622, 0.7276733451126774},
                                   {4.022479320953552e-05, -2.486028939392892e-05},
                                   {0.03534430258244299, 1.4146551592967946}})},
                      {rsqrt, c128({{0.4, 0.2},
                                    {0.3072900763121319, -1.3017016520692888},
                                    {17989.07439947867, 11117.859405028421},
                                    {0.01765010243511059, -0.7064450745266417}})},
                      {exp, c128({{-13.128783081462158, 15.200784463067954},
                                  {0.5876750903439226, 0.15005808662216327},
                                  {1.000000001, -2.0000000020000004e-09},
                                  {0.134659170529511, 0.013510983718377254}})},
                      {expm1, c128({{-14.128783081462158, 15.200784463067954},
                                    {-0.4123249096560773, 0.15005808662216327},
                                    {9.999999985e-10, -2.0000000020000004e-09},
                                    {-0.865340829470489, 0.013510983718377254}})},
                      {log, c128({{1.6094379124341003, -0.9272952180016122},
                                  {-0.5815754049028404, 2.677945044588987},
                                  {-19.918546880729362, -1.1071487177940904},
                                  {0.694395620659239, 3.0916342578678506}})},
                      // The third is from the series z - z²/2, since NumPy loses half the digits there.
                      {log1p, c128({{1.7328679513998633, -0.7853981633974483},
                                    {-0.5815754049028404, 0.4636476090008061},
                                    {1.0000000015e-09, -1.999999998e-09},
                                    {0.004975165426583965, 3.0419240010986313}})},
                      {sin, c128({{3.853738037919377, 27.016813258003932},
                                  {-0.494485780933195, 0.22168816414957482},
                                  {1e-09, -2e-09},
                                  {-0.9138477039622271, -0.04168407614796651}})},
                      {cos, c128({{-27.034945603074224, 3.851153334811777},
                                  {0.9051501505596068, 0.12110879604381165},
                                  {1.0, 2e-18},
                                  {-0.4182293052531153, 0.09108136804653548}})},
                      {tan, c128({{-0.00018734620462947845, -0.9993559873814732},
                                  {-0.504500702698564, 0.3124206925025888},
                                  {1e-09, -2e-09},
                                  {2.065378584277949, 0.5494631300380569}})},
                      {asin, c128({{0.6339838656391766, -2.305509031243477},
                                   {-0.5016088532755008, 0.28139605624529274},
                                   {1e-9, -2e-09},
                                   {-1.5131571227434844, 1.3188765472109005}})},
                      {acos, c128({{0.93681246115572, 2.305509031243477},
                                   {2.0724051800703975, -0.28139605624529274},
                                   {1.5707963257948967, 2e-09},
                                   {3.083953449538381, -1.3188765472109005}})},
                      {atan, c128({{1.4483069952314644, -0.15899719167999918},
                                   {-0.4842544903299662, 0.20058661813123432},
                                   {1e-9, -2e-9},
                                   {-1.1079477582644959, 0.01997069291190143}})},
                      {sinh, c128({{-6.5481200409110025, 7.61923172032141},
                                   {-0.504895714387995, 0.2789791283502615},
                                   {1e-09, -2e-09},
                                   {-3.6087412126897433, 0.37559284993485376}})},
                      {cosh, c128({{-6.580663040551157, 7.581552742746545},
                                   {1.0925708047319176, -0.12892104172809826},
                                   {1.0, -2e-18},
                                   {3.743400383219254, -0.36208186621647653}})},
                      {tanh, c128({{1.000709536067233, -0.0049082580674960595},
                                   {-0.4854872810241353, 0.19805544995134955},
                                   {1e-09, -2e-09},
                                   {-0.9647068845629901, 0.0070230213519918445}})},
                      {asinh, c128({{2.2999140408792695, -0.9176168533514787},
                                    {-0.4926756834207706, 0.2243284526346675},
                                    {1e-9, -2e-09},
                                    {-1.4445294550556134, 0.044700495856989056}})},
                      {acosh, c128({{2.305509031243477, -0.93681246115572},
                                    {0.28139605624529274, 2.0724051800703975},
                                    {2e-09, -1.5707963257948967},
                                    {1.3188765472109005, 3.083953449538381}})},
                      {atanh, c128({{0.1175009073114339, -1.4099210495965755},
                                    {-0.500370000052531, 0.3143981432077165},
                                    {1e-9, -2e-9},
                                    {-0.5470961851917696, 1.5376224984884392}})},
                      {reciprocal, c128({{0.12, 0.16},
                                         {-1.6, -0.8},
                                         {200000000.0, 400000000.0},
                                         {-0.49875311720698257, -0.02493765586034913}})},
                      {sigmoid, c128({{1.0320721995882685, 0.04019550765508409},
                                      {0.3757248355800388, 0.05900296431450803},
                                      {0.50000000025, -5e-10},
                                      {0.11880302306440525, 0.010492876025938243}})}};
  int number = 0;
  for (const Row& row : rows) {
    INFO("function " << number++);
    CHECK(close(row.f(points()), row.expected, 1e-14));
    CHECK(close(row.f(astype(points(), DType::c64)), row.expected, 2e-6));
  }
  CHECK(log1p(points()).at<Z>({2}).real() == Approx(1.0000000015e-9).epsilon(1e-15));
  CHECK(expm1(points()).at<Z>({2}).real() == Approx(9.999999985e-10).epsilon(1e-15));
}

TEST_CASE("arithmetic, reductions and products of complex numbers", "[complex]") {
  const Tensor z = points(), w = others();
  CHECK(close(z + w, c128({{3.5, -3}, {1.5, -0.75}, {1e-9, 1 - 2e-9}, {-3.5, 0.1}}), 1e-15));
  CHECK(close(z * w, c128({{5.5, 1.0}, {-0.75, 1.0}, {2e-09, 1e-09}, {3.0, -0.15}}), 1e-15));
  CHECK(close(
      z / w, c128({{-2.0, -4.0}, {-0.25, 0.0}, {-2e-09, -1e-09}, {1.3333333333333333, -0.06666666666666667}}),
      1e-15));
  CHECK(close(pow(z, w),
              c128({{2.3304790489341816, 5.149201131069768},
                    {4.279359299305708, -1.541363288816469},
                    {1.4553983744372647, -2.6526949435963654},
                    {-0.02642012776131796, 0.3519015308752549}}),
              1e-14));
  CHECK(close(abs(z), f64({5, 0.5590169943749475, 2.23606797749979e-09, 2.0024984394500787}), 1e-15));
  CHECK(close(sum(z), tensor(Z(0.500000001, -3.650000002)), 1e-15));
  CHECK(close(mean(z), tensor(Z(0.12500000025, -0.9125000005)), 1e-15));
  CHECK(close(prod(z), tensor(Z(-1.0375e-08, -7e-09)), 1e-20));
  const Tensor a = reshape(c128({{1, 2}, {0, -1}, {0.5, 0}, {3, -1}}), {2, 2}),
               b = reshape(c128({{2, -1}, {1, 0}, {0, 1}, {-1, 1}}), {2, 2});
  CHECK(close(matmul(a, b), reshape(c128({{5, 3}, {2, 3}, {2, 2.5}, {-1.5, 4}}), {2, 2}), 1e-15));
  CHECK(close(matmul(a, b, {true, false}), reshape(c128({{4, 3.5}, {0.5, 2.5}, {0, 1}, {-2, 3}}), {2, 2}),
              1e-15));
  CHECK(equal(z, z).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 1, 1, 1});
  CHECK(close(transpose(a), reshape(c128({{1, 2}, {0.5, 0}, {0, -1}, {3, -1}}), {2, 2}), 0));
  const std::int64_t n = 70001;   // longer than the part that one thread sums
  CHECK(close(sum(complex(ones({n}, DType::f64), full({n}, -2, DType::f64))),
              tensor(Z(static_cast<double>(n), -2.0 * static_cast<double>(n))), 1e-15));
}

TEST_CASE("complex numbers with real and integer operands", "[complex]") {
  CHECK((tensor(Z(1, 2)) + tensor(1.0f)).dtype() == DType::c128);
  CHECK((tensor(std::complex<float>(1, 2)) + tensor(1.0f)).dtype() == DType::c64);
  CHECK((tensor(std::complex<float>(1, 2)) * 2.5).dtype() == DType::c64);
  CHECK((tensor(std::complex<float>(1, 2)) + tensor({1, 2})).dtype() == DType::c128);
  CHECK(complex(ones({3}), 2 * ones({2, 1})).spec() == Spec{DType::c64, {2, 3}});
  CHECK(real(ones({2})).dtype() == DType::f32);
  CHECK(close(imag(ones({2})), zeros({2}), 0));
  CHECK(close(angle(tensor({-1.5, 0.0, 2.0})), tensor({3.1415927, 0.0, 0.0}), 1e-7));
  CHECK(tensor(Z(1, -2)).item<Z>() == Z(1, -2));
  CHECK(to_string(c128({{1, -2.5}, {-0.25, 0}})) == "[ 1.00-2.5i -0.25+0.0i] c128");
  CHECK(to_string(c128({{1, 2}, {10, -20}})) == "[ 1.0 +2.0i 10.0-20.0i] c128");
  CHECK(to_string(c128({{1e-10, 1}, {2, -3e5}})) == "[1.0e-10+1.0e+00i 2.0e+00-3.0e+05i] c128");
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   infinity = std::numeric_limits<double>::infinity();
  CHECK(to_string(c128({{1, nan}, {-0.25, -infinity}})) == "[ 1.00+nani -0.25-infi] c128");
  CHECK(to_string(tensor(Z(0.1, -2))) == "0.1-2.0i c128");
  CHECK(astype(c128({{1.5, -2}, {0, 3}}), DType::f32).to_vector() == std::vector<double>{1.5, 0});
  CHECK(astype(c128({{0, 0}, {0, 3}}), DType::boolean).to_vector() == std::vector<double>{0, 1});
  CHECK(full({2}, 3, DType::c64).to_vector<std::complex<float>>() == std::vector<std::complex<float>>{3, 3});
}

TEST_CASE("errors with complex numbers", "[complex][errors]") {
  const Tensor z = points();
  CHECK(message_of([&] { z.to_vector(); }) ==
        "tensor: c128[4] is not f64; ask for std::complex, or take real, imag or abs");
  CHECK(message_of([&] { (void)(z < z); }) ==
        "less: complex numbers are not supported, take real, imag or abs: a is c128[4], b is c128[4]");
  CHECK(message_of([&] { max(z); }) ==
        "max: complex numbers are not supported, take real, imag or abs: x is c128[4]");
  CHECK(message_of([&] { maximum(z, z); }) ==
        "maximum: complex numbers are not supported, take real, imag or abs: a is c128[4], b is c128[4]");
  CHECK(message_of([&] { erf(z); }) == "erf: takes f32, f64, f16 or bf16, use astype: x is c128[4]");
  CHECK(message_of([] { complex(ones({2}), ones({2}, DType::f64)); }).starts_with("complex: dtypes differ"));
  CHECK(message_of([] { complex(tensor({1}), tensor({1})); }) ==
        "complex: takes f32, f64, f16 or bf16, use astype: re is i32[1], im is i32[1]");
  CHECK_THROWS_AS(sort(z), DTypeError);
}

// L = |z - w|² has the gradient 2 (z - w): gradient descent converges to w.
TEST_CASE("the gradient of a real number points uphill", "[complex]") {
  const Tensor w = others();
  CHECK(close(gradient_of([&](const Tensor& z) { return sum(square(abs(z - w))); }, points()),
              2 * (points() - w), 1e-14));
  CHECK(close(gradient_of([&](const Tensor& z) { return sum(real((z - w) * conj(z - w))); }, points()),
              2 * (points() - w), 1e-14));
}

// g · conj(f'(z)), for f with a complex derivative; for a complex target, g is 1.
TEST_CASE("the gradient through a holomorphic function is conjugated", "[complex]") {
  const Tensor z = points();
  CHECK(close(gradient_of([](const Tensor& x) { return square(x); }, z), conj(2 * z), 1e-15));
  CHECK(close(gradient_of([](const Tensor& x) { return exp(x); }, z), conj(exp(z)), 1e-13));
  CHECK(close(gradient_of([&](const Tensor& x) { return x * others(); }, z), conj(others()), 1e-15));
  const ForwardAccumulator forward(z, ones_like(z));
  CHECK(close(forward.jvp(square(z)), 2 * z, 1e-15));
}

TEST_CASE("derivatives at 0, and of casts", "[complex]") {
  CHECK(close(gradient_of([](const Tensor& z) { return abs(z); }, c128({{0, 0}, {3, 4}})),
              c128({{0, 0}, {0.6, 0.8}}), 1e-15));
  CHECK(close(gradient_of([](const Tensor& z) { return 3 * astype(z, DType::f64); }, points()),
              full_like(points(), 3), 0));
  CHECK(close(gradient_of([](const Tensor& x) { return real(astype(x, DType::c128) * tensor(Z(2, 5))); },
                          f64({1, -1})),
              f64({2, 2}), 0));
  CHECK(check_gradients([](const Tensors& x) { return prod(x[0]); },
                        {c128({{1, 3}, {2, -1}, {0, 3}, {4, 0}})}));
}

TEST_CASE("eigenvectors of any matrix", "[complex]") {
  for (const Tensor& x : {samples::uniform({2, 7, 7}, -1, 1), samples::spread({5, 5})}) {
    const Eig e = eig(x);
    CHECK(close(matmul(astype(x, DType::c128), e.vectors), e.vectors * expand_dims(e.values, -2), 1e-13));
    const Tensor norms = euclidean_norm(abs(e.vectors), -2);
    CHECK(close(norms, ones_like(norms), 1e-14));
    CHECK(close(sum(e.values, -1), sum(diagonal(astype(x, DType::c128)), -1), 1e-13));
    CHECK(sum(abs(prod(e.values, -1) - det(astype(x, DType::c128)))).item() < 1e-12);   // near singular
  }
  // The sum of the squares of all eigenvalues is the trace of x x, whose gradient is 2 xᵀ.
  const Tensor x = samples::uniform({4, 4}, -1, 1);
  CHECK(close(gradient_of([](const Tensor& t) { return real(sum(square(eigvals(t)))); }, x), 2 * transpose(x),
              1e-12));
}

TEST_CASE("cases: complex numbers", "[cases][complex]") {
  check_case("op-prod-complex", DType::c128, [&](Case& c) {
    c.check("grads", {gradient_of([](const Tensor& z) { return prod(z); }, c.input("x"))});
  });
}

}   // namespace complex_test
