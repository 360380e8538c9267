// Tensors without ops' derivatives: how they are made, read, promoted, shared, kept in memory and printed.
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <iomanip>
#include <limits>
#include <set>
#include <sstream>
#include <thread>

#include "core/bytes.h"
#include "tapedeck/compile.h"
#include "tapedeck/nn.h"
#include "tapedeck/tapedeck.h"

namespace tensor_test {

using namespace tapedeck;
using Catch::Equals;

namespace {

using Doubles = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

}   // namespace

TEST_CASE("nested lists make tensors; a decimal point makes f32", "[tensor]") {
  CHECK(tensor(2.5).spec() == Spec{DType::f32, {}});
  CHECK(tensor({1.0, 2.0, 3.0}).spec() == Spec{DType::f32, {3}});
  CHECK(tensor({{1, 2}, {3, 4}, {5, 6}}).spec() == Spec{DType::i32, {3, 2}});
  CHECK(tensor({{{1.f}, {2.f}}, {{3.f}, {4.f}}}).spec() == Spec{DType::f32, {2, 2, 1}});
  CHECK(tensor({{{{1, 0}}}}, DType::boolean).spec() == Spec{DType::boolean, {1, 1, 1, 2}});
  CHECK(tensor({1.0, 2.0}, DType::f64).spec() == Spec{DType::f64, {2}});
  CHECK(tensor({1.9, -1.9, 300.0, kNan}, DType::u8).to_vector<int>() == std::vector<int>{1, 0, 255, 0});
  CHECK(tensor({1.9, -1.9, 300.0, -300.0, kNan}, DType::i8).to_vector<int>() ==
        std::vector<int>{1, -1, 127, -128, 0});
  CHECK(tensor({{1.0, 2.0}, {3.0, 4.0}}).to_vector() == Doubles{1, 2, 3, 4});
}

TEST_CASE("lists whose rows differ in length are refused", "[tensor]") {
  CHECK_THROWS_AS(tensor({{1, 2}, {3}}), ShapeError);
  CHECK_THROWS_AS(tensor({{{1.0}, {2.0}}, {{3.0}}}), ShapeError);
}

TEST_CASE("vectors and spans keep their type", "[tensor]") {
  const std::vector<double> v{1, 2, 3, 4, 5, 6};
  const Tensor t = tensor(v, {2, 3});
  CHECK(t.spec() == Spec{DType::f64, {2, 3}});
  CHECK(t.to_vector() == v);
  CHECK(tensor(std::vector<std::int64_t>{7}).spec() == Spec{DType::i64, {1}});
  CHECK(tensor(std::span<const double>(v), {6}).at({5}) == 6);
  CHECK_THROWS_WITH(tensor(v, {4}), "tensor: 6 values for shape [4]");
}

TEST_CASE("shapes, specs and dtypes print", "[tensor]") {
  const Tensor x = zeros({2, 3}, DType::i64);
  std::ostringstream out;
  out << x.shape() << ' ' << x.spec() << ' ' << x.dtype() << ' ' << Shape{};
  CHECK(out.str() == "[2,3] i64[2,3] i64 []");
}

TEST_CASE("factories", "[tensor]") {
  CHECK(full({2}, 1.5).to_vector() == Doubles{1.5, 1.5});
  CHECK(zeros({2, 0}).size() == 0);
  CHECK(ones({}, DType::i64).item<int>() == 1);
  CHECK(full_like(tensor({1, 2}), 7).to_vector<int>() == std::vector<int>{7, 7});
  CHECK(arange(3).spec() == Spec{DType::i64, {3}});
  CHECK(arange(0, 1, 0.25).to_vector() == Doubles{0, 0.25, 0.5, 0.75});
  CHECK(arange(2, 0, -1, DType::i32).to_vector<int>() == std::vector<int>{2, 1});
  CHECK(arange(1, 0).size() == 0);
  CHECK_THROWS_AS(arange(0, 1, 0), ArgumentError);
  CHECK_THROWS_AS(arange(0, kInf), ArgumentError);
  CHECK(linspace(0, 1, 5).to_vector() == Doubles{0, 0.25, 0.5, 0.75, 1});
  CHECK(linspace(3, 9, 1).to_vector() == Doubles{3});
  CHECK(linspace(0, 0.3, 4, DType::f64).at({-1}) == 0.3);
  CHECK_THROWS_AS(linspace(0, 1, -1), ArgumentError);
  CHECK(eye(2).to_vector() == Doubles{1, 0, 0, 1});
  CHECK(eye(2, 3, DType::boolean).to_vector<int>() == std::vector<int>{1, 0, 0, 0, 1, 0});
}

TEST_CASE("readers convert, and check dtypes and sizes", "[tensor]") {
  const Tensor t = tensor({{1.5, 2.5}, {3.5, 4.5}});
  CHECK(t.at({1, 0}) == 3.5);
  CHECK(t.at({-1, -1}) == 4.5);
  CHECK(t.at<int>({0, 1}) == 2);
  CHECK(slice(t, {1, 1}, {1, 1}).item() == 4.5);
  CHECK_THROWS_WITH(t.at({0, 2}), "at: index 2 is out of range for axis 1 of f32[2,2]");
  CHECK_THROWS_AS(t.at({-3, 0}), ShapeError);
  CHECK_THROWS_WITH(t.at({0}), "at: 1 indices for f32[2,2]");
  CHECK_THROWS_WITH(t.item(), "item: the tensor has 4 elements: f32[2,2]; use at or to_vector");
  CHECK_THROWS_WITH(t.data<double>(), "data: the tensor is f32[2,2], not f64; use astype");
}

TEST_CASE("an undefined tensor throws wherever it is used", "[tensor]") {
  Tensor undefined;
  CHECK_FALSE(undefined.defined());
  CHECK_THROWS_AS(undefined.shape(), ArgumentError);
  CHECK_THROWS_AS(undefined.dtype(), ArgumentError);
  CHECK_THROWS_AS(undefined.item(), ArgumentError);
  CHECK_THROWS_AS(undefined.id(), ArgumentError);
  CHECK_THROWS_AS(undefined + 1.0, ArgumentError);
  CHECK_THROWS_AS(reshape(undefined, {1}), ArgumentError);
  CHECK_THROWS_AS(concat({tensor({1.0}), undefined}, 0), ArgumentError);
  CHECK_THROWS_AS(zeros_like(undefined), ArgumentError);

  Tensor moved = tensor(1.0);
  undefined = std::move(moved);
  CHECK(undefined.item() == 1);
  CHECK_FALSE(moved.defined());
}

TEST_CASE("every value has a unique id, across threads", "[tensor]") {
  const Tensor t = tensor({1.0, 2.0});
  const Tensor same = t;
  CHECK(same.id() == t.id());
  std::vector<std::uint64_t> here{t.id(),
                                  identity(t).id(),
                                  stop_gradient(t).id(),
                                  reshape(t, {2}).id(),
                                  slice(t, {0}, {2}).id(),
                                  astype(t, DType::f32).id(),
                                  transpose(t).id(),
                                  broadcast_to(t, {2}).id(),
                                  (t + 0.0).id(),
                                  (t * 1.0).id()};
  std::vector<std::uint64_t> there;
  std::thread([&] {
    for (int i = 0; i < 100; ++i)
      there.push_back(zeros({}).id());
  }).join();
  std::set<std::uint64_t> all(here.begin(), here.end());
  all.insert(there.begin(), there.end());
  CHECK(all.size() == here.size() + there.size());
}

namespace {

/// The n-th of the words in a text.
std::string_view word(std::string_view text, int n) {
  while (n-- > 0)
    text.remove_prefix(text.find(' ') + 1);
  return text.substr(0, text.find(' '));
}

}   // namespace

// np.promote_types of all types, in the order of DType; for bf16 with ml_dtypes.
TEST_CASE("dtypes promote as NumPy's do", "[tensor]") {
  const std::string_view expected[kDTypes] = {
      "f32 f64 f32 f64 f64 f32 f32 c64 c128 f32 f32 f32 f32 f64 f64",
      "f64 f64 f64 f64 f64 f64 f64 c128 c128 f64 f64 f64 f64 f64 f64",
      "f32 f64 i8 i32 i64 i16 i8 c64 c128 f16 bf16 i16 i32 i64 f64",
      "f64 f64 i32 i32 i64 i32 i32 c128 c128 f64 f64 i32 i32 i64 f64",
      "f64 f64 i64 i64 i64 i64 i64 c128 c128 f64 f64 i64 i64 i64 f64",
      "f32 f64 i16 i32 i64 u8 u8 c64 c128 f16 bf16 i16 u16 u32 u64",
      "f32 f64 i8 i32 i64 u8 bool c64 c128 f16 bf16 i16 u16 u32 u64",
      "c64 c128 c64 c128 c128 c64 c64 c64 c128 c64 c64 c64 c64 c128 c128",
      "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
      "f32 f64 f16 f64 f64 f16 f16 c64 c128 f16 f32 f32 f32 f64 f64",
      "f32 f64 bf16 f64 f64 bf16 bf16 c64 c128 f32 bf16 f32 f32 f64 f64",
      "f32 f64 i16 i32 i64 i16 i16 c64 c128 f32 f32 i16 i32 i64 f64",
      "f32 f64 i32 i32 i64 u16 u16 c64 c128 f32 f32 i32 u16 u32 u64",
      "f64 f64 i64 i64 i64 u32 u32 c128 c128 f64 f64 i64 u32 u32 u64",
      "f64 f64 f64 f64 f64 u64 u64 c128 c128 f64 f64 f64 u64 u64 u64"};
  for (int a = 0; a < kDTypes; ++a)
    for (int b = 0; b < kDTypes; ++b) {
      const auto left = static_cast<DType>(a), right = static_cast<DType>(b);
      INFO(name_of(left) << " with " << name_of(right));
      CHECK(name_of(promote(left, right)) == word(expected[a], b));
      CHECK(concat({ones({1}, left), ones({1}, right)}, 0).dtype() == promote(left, right));
      if (left != DType::boolean || right != DType::boolean)
        CHECK((ones({1}, left) + ones({1}, right)).dtype() == promote(left, right));
    }
}

TEST_CASE("numbers take the dtype of the other operand, or one that can represent them", "[tensor]") {
  CHECK((ones({2}) * 2.0).dtype() == DType::f32);
  CHECK((2 * ones({2}, DType::f64)).dtype() == DType::f64);
  CHECK((ones({2}, DType::i32) * 2).dtype() == DType::i32);
  CHECK((ones({2}, DType::u8) + 1).dtype() == DType::u8);
  CHECK((ones({2}, DType::i8) + 1).dtype() == DType::i8);
  CHECK((ones({2}, DType::i32) * 2.0).dtype() == DType::f32);
  CHECK((ones({2}, DType::boolean) * 2.0).dtype() == DType::f32);
  CHECK((ones({2}, DType::boolean) + 1).dtype() == DType::i64);
  CHECK((ones({2}, DType::c64) * 2.0).dtype() == DType::c64);
  CHECK((1 - tensor({1.0, 3.0})).to_vector() == Doubles{0, -2});
}

TEST_CASE("numbers and new tensors without a dtype have the default dtype", "[tensor]") {
  CHECK(default_dtype() == DType::f32);
  struct Reset {
    ~Reset() { set_default_dtype(DType::f32); }
  } const reset;
  set_default_dtype(DType::f64);
  for (const Tensor& t :
       {tensor(2.5), tensor({1.0, 2.0}), tensor({1, 2.5}), zeros({2}), ones({2}), full({2}, 1), eye(2),
        linspace(0, 1, 3), arange(0, 2), random::normal({2}, {}), random::uniform({2}, {}),
        one_hot(tensor({1}), 2), ones({2}, DType::i32) * 0.5, ones({2}, DType::boolean) * 0.5, add(0.5, 1.5)})
    CHECK(t.dtype() == DType::f64);
  CHECK(tensor(0.1).item() == 0.1);
  CHECK(nn::Dense(2, 3, {}).kernel.dtype() == DType::f64);
  const auto halved = [](const Tensor& x) { return x * 0.5; };
  const auto compiled = compile(halved);
  CHECK(compiled(tensor({1, 3})).dtype() == DType::f64);
  // What has a dtype keeps it.
  CHECK(tensor(2.5f).dtype() == DType::f32);
  CHECK((ones({2}, DType::f32) * 0.1).dtype() == DType::f32);
  CHECK((ones({2}, DType::f16) * 0.1).dtype() == DType::f16);
  CHECK(tensor({1, 2}).dtype() == DType::i32);
  set_default_dtype(DType::f32);
  CHECK(tensor(2.5).dtype() == DType::f32);
  CHECK(compiled(tensor({1, 3})).dtype() == DType::f32);
  CHECK_THROWS_WITH(set_default_dtype(DType::i32),
                    "set_default_dtype: i32 cannot be the default; use f32 or f64");
  CHECK_THROWS_AS(set_default_dtype(DType::f16), DTypeError);
}

TEST_CASE("element counts and bytes that overflow are refused", "[tensor]") {
  const std::int64_t large = std::int64_t{1} << 32;
  CHECK_THROWS_AS(zeros({large, large}), ShapeError);
  CHECK_THROWS_AS(zeros({std::int64_t{1} << 61}, DType::f64), ShapeError);
  CHECK_THROWS_AS(zeros({std::int64_t{1} << 59}, DType::c128), ShapeError);
  CHECK_THROWS_AS(broadcast_to(tensor(1.0, DType::c128), {std::int64_t{1} << 59}), ShapeError);
  CHECK_THROWS_AS(zeros({-1}), ShapeError);
  CHECK_THROWS_AS(zeros({0, -1}), ShapeError);
  CHECK(zeros({large, large, 0}).size() == 0);
  CHECK_THROWS_AS(broadcast_to(zeros({1, 1}), {large, large}), ShapeError);
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}), ShapeError);
}

TEST_CASE("empty tensors go through ops", "[tensor]") {
  const Tensor none = zeros({0, 3});
  CHECK((none + 1.0).shape() == Shape{0, 3});
  CHECK(transpose(none).shape() == Shape{3, 0});
  CHECK(concat({none, ones({2, 3})}, 0).shape() == Shape{2, 3});
  CHECK(sum(none).item() == 0);
  CHECK(none.to_vector().empty());
}

// A span of a temporary would dangle, so data() does not compile there.
template <class T>
concept HasElements = requires(T t) {
  std::forward<T>(t).template data<float>();
};
static_assert(HasElements<const Tensor&> && HasElements<Tensor&> && !HasElements<Tensor>);

TEST_CASE("reshapes and slices of rows share memory", "[tensor]") {
  const Tensor t = arange(0, 600, 1, DType::f32);
  const std::byte* raw = t.raw();
  CHECK(reshape(t, {20, 30}).raw() == raw);
  CHECK(identity(t).raw() == raw);
  CHECK(stop_gradient(t).raw() == raw);
  const Tensor rows = slice(reshape(t, {20, 30}), {4, 0}, {10, 30});
  CHECK(rows.raw() == raw + 4 * 120);
  CHECK(slice(reshape(t, {2, 10, 30}), {1, 2, 0}, {1, 3, 30}).raw() == raw + 4 * 360);
  CHECK(transpose(reshape(t, {1, 600})).raw() == raw);
  CHECK(slice(reshape(t, {20, 30}), {0, 1}, {20, 29}).raw() != raw + 4);

  const Tensor last = [] { return slice(arange(0, 600, 1, DType::f32), {500}, {100}); }();
  CHECK(last.at({99}) == 599);
}

TEST_CASE("buffers are counted, kept for the next results, and given back", "[tensor]") {
  release_buffers();
  const std::int64_t before = live_bytes();
  {
    const Tensor small = zeros({16});
    CHECK(live_bytes() == before);
    const Tensor large = zeros({1 << 16});
    CHECK(live_bytes() >= before + large.nbytes());
    const Tensor view = reshape(large, {1 << 8, 1 << 8});
    CHECK(live_bytes() < before + 2 * large.nbytes());
  }
  CHECK(live_bytes() == before);
  if (cached_bytes() == 0) return;   // sanitized builds cache no buffers

  CHECK(cached_bytes() >= 4 << 16);
  const std::int64_t cached = cached_bytes();
  {
    const Tensor again = zeros({1 << 16});
    CHECK(cached_bytes() < cached);
  }
  CHECK(cached_bytes() == cached);
  release_buffers();
  CHECK(cached_bytes() == 0);

  set_buffer_cache_limit(0);
  zeros({1 << 16});
  CHECK(cached_bytes() == 0);
  set_buffer_cache_limit(std::int64_t{1} << 30);
  CHECK_THROWS_AS(set_buffer_cache_limit(-1), ArgumentError);
}

TEST_CASE("tensors print like arrays", "[tensor][print]") {
  CHECK(to_string(Tensor()) == "undefined");
  CHECK(to_string(tensor(2.5)) == "2.5");
  CHECK(to_string(tensor(-3)) == "-3 i32");
  CHECK(to_string(tensor({1.0, 2.5, -10.25})) == "[  1.00   2.50 -10.25]");
  CHECK(to_string(tensor({1.0, 2.0}, DType::f64)) == "[1.0 2.0] f64");
  CHECK(to_string(tensor({{1, -20}, {300, 4}})) == "[[  1 -20]\n [300   4]] i32");
  CHECK(to_string(tensor({{{1.0}, {2.0}}, {{3.0}, {4.0}}})) == "[[[1.0]\n  [2.0]]\n\n [[3.0]\n  [4.0]]]");
  CHECK(to_string(tensor({1, 0}, DType::boolean)) == "[ true false] bool");
  CHECK(to_string(tensor({1.0, kNan, -kInf})) == "[ 1.0  nan -inf]");
  CHECK(to_string(tensor({1e-5, 1.0})) == "[1.0e-05 1.0e+00]");
  CHECK(to_string(tensor({1.25e10, kNan}, DType::f64)) == "[1.25e+10      nan] f64");
  CHECK(to_string(tensor({std::numeric_limits<std::int64_t>::max()})) == "[9223372036854775807] i64");
  CHECK(to_string(zeros({0, 3})) == "[] f32[0,3]");
  CHECK(to_string(arange(1001)) == "[   0    1    2 ...  998  999 1000] i64");
  CHECK(to_string(arange(1000)).find("...") == std::string::npos);
  CHECK(to_string(zeros({501, 2})) ==
        "[[0.0 0.0]\n [0.0 0.0]\n [0.0 0.0]\n ...\n [0.0 0.0]\n [0.0 0.0]\n [0.0 0.0]]");
}

// Expected texts are those of NumPy 1.24's array2string with floatmode="maxprec_equal", but for "1.0" in the
// place of its "1.", and of str() for tensors of rank 0.
TEST_CASE("braces around numbers of several types", "[tensor]") {
  using Complex = std::complex<double>;
  const std::int64_t large = (std::int64_t{1} << 53) + 1;   // no f64
  CHECK(tensor({1, 2.5}).spec() == Spec{DType::f32, {2}});
  CHECK(tensor({1, 2.5f}).spec() == Spec{DType::f32, {2}});
  CHECK(tensor({large, 1}).spec() == Spec{DType::i64, {2}});
  CHECK(tensor({1, large}).to_vector<std::int64_t>()[1] == large);
  CHECK(tensor({std::int8_t{-1}, std::uint8_t{255}}).spec() == Spec{DType::i16, {2}});
  CHECK(tensor({1, std::complex<float>(0, 2)}).spec() == Spec{DType::c64, {2}});
  CHECK(tensor({1.5, Complex(0, 2)}).to_vector<Complex>() == std::vector<Complex>{1.5, {0, 2}});
  CHECK(tensor({1.5, Complex(0, 2)}).dtype() == DType::c128);   // alone it is c128, too
  CHECK(tensor({{1, 2.5}, {3, 4}}).spec() == Spec{DType::f32, {2, 2}});
  CHECK(tensor({{1, 2.5}, {3, 4}}).to_vector() == Doubles{1, 2.5, 3, 4});
  CHECK(tensor({{1, 2}, {3, 4.5}}).to_vector() == Doubles{1, 2, 3, 4.5});
  CHECK(tensor({{1}, {2.5}}).spec() == Spec{DType::f32, {2, 1}});
  CHECK(tensor({{1, 2.5}}).spec() == Spec{DType::f32, {1, 2}});
  CHECK(tensor({{{1, 2.5}}}).spec() == Spec{DType::f32, {1, 1, 2}});
  CHECK(tensor({{{{{1, 2}, {3, 4}}}}}).spec() == Spec{DType::i32, {1, 1, 1, 2, 2}});
  CHECK(tensor({1, 0.5}, DType::f64).spec() == Spec{DType::f64, {2}});
  CHECK(tensor({0.1, 1}, DType::f64).at({0}) == 0.1);
  CHECK(tensor({1, 0.0}, DType::boolean).to_vector<int>() == std::vector<int>{1, 0});
  CHECK(tensor({}).spec() == Spec{DType::f32, {0}});
  CHECK(tensor({{}, {}}).spec() == Spec{DType::f32, {2, 0}});
  CHECK_THROWS_AS(tensor({{1, 2.5}, {3}}), ShapeError);
  CHECK_THROWS_AS(tensor({{1, 2.5}, 3}), ShapeError);
  CHECK_THROWS_AS(tensor({{{{{{{{{1}}}}}}}}}), ShapeError);   // rank 9
}

TEST_CASE("rows of more than 75 columns wrap", "[tensor][print]") {
  CHECK(to_string(arange(25)) ==
        "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24] i64");
  CHECK(to_string(full({2, 9}, 1234567)) ==
        "[[1234567.0 1234567.0 1234567.0 1234567.0 1234567.0 1234567.0 1234567.0\n"
        "  1234567.0 1234567.0]\n"
        " [1234567.0 1234567.0 1234567.0 1234567.0 1234567.0 1234567.0 1234567.0\n"
        "  1234567.0 1234567.0]]");
}

TEST_CASE("numbers print with as many decimals as they need", "[tensor][print]") {
  const auto f64 = [](std::initializer_list<double> v) { return to_string(tensor(v, DType::f64)); };
  CHECK(to_string(tensor({1.0 / 3, 2.0})) == "[0.33333334 2.00000000]");
  CHECK(f64({1.0 / 3, 2}) == "[0.33333333 2.00000000] f64");
  CHECK(to_string(tensor({0.1, 0.2})) == "[0.1 0.2]");
  CHECK(to_string(tensor({0.000123})) == "[0.000123]");
  CHECK(f64({99999.99, 123.4567}) == "[99999.9900   123.4567] f64");
  CHECK(to_string(tensor({123456.7, 234567.8})) == "[123456.7 234567.8]");
  CHECK(to_string(tensor({16777216.0, 3e7})) == "[16777216.0 30000000.0]");
  CHECK(to_string(tensor({-0.0, 1.0})) == "[-0.0  1.0]");
  CHECK(to_string(tensor({1.0 / 3, kInf, -kInf})) == "[0.33333334        inf       -inf]");
  CHECK(to_string(tensor({kNan})) == "[nan]");
  // 0.0001 as f32 is less than that.
  CHECK(to_string(tensor({1e-4})) == "[1.0e-04]");
  CHECK(f64({1e-4}) == "[0.0001] f64");
  CHECK(to_string(tensor({1.25, 1e-5})) == "[1.25e+00 1.00e-05]");
  CHECK(to_string(tensor({1.0, 2000.5})) == "[1.0000e+00 2.0005e+03]");
  CHECK(to_string(tensor({1.0, 1000.5, 0.0})).starts_with("[1.0000e+00"));
  CHECK(to_string(tensor({1.0, 1000.0, 0.0})) == "[   1.0 1000.0    0.0]");
  CHECK(f64({1e8, 1e7}) == "[1.0e+08 1.0e+07] f64");
  CHECK(f64({1e-100, 1e5}) == "[1.0e-100 1.0e+005] f64");
  CHECK(to_string(tensor({1e-40, 1.0})) == "[1.0e-40 1.0e+00]");
}

TEST_CASE("a tensor of rank 0 is printed in full", "[tensor][print]") {
  const auto f64 = [](double v) { return to_string(tensor(v, DType::f64)); };
  CHECK(to_string(tensor(1.0 / 3)) == "0.33333334");
  CHECK(f64(1.0 / 3) == "0.3333333333333333 f64");
  CHECK(f64(0.00012345678901234567) == "0.00012345678901234567 f64");
  CHECK(to_string(tensor(0.000123)) == "0.000123");
  CHECK(to_string(tensor(1.5e-5)) == "1.5e-05");
  CHECK(f64(123456789) == "123456789.0 f64");
  CHECK(f64(1e15) == "1000000000000000.0 f64");
  CHECK(to_string(tensor(1.5e20)) == "1.5e+20");
  CHECK(f64(1.5e300) == "1.5e+300 f64");
}

// With a precision: of array2string with that precision, but without its "." where no decimals are wanted.
// With a notation: by C++'s rules for numbers.
TEST_CASE("the stream's precision and notation count", "[tensor][print]") {
  const auto shown = [](const Tensor& x, const auto&... manipulators) {
    std::ostringstream out;
    (out << ... << manipulators) << x;
    return out.str();
  };
  CHECK(shown(tensor({1.0 / 3, 0.001}), std::setprecision(2)) == "[0.33 0.00]");
  CHECK(shown(tensor({0.006, 0.5}), std::setprecision(2)) == "[0.01 0.50]");
  CHECK(shown(tensor({1.5, 2.0}), std::setprecision(3)) == "[1.5 2.0]");
  CHECK(shown(tensor({1.6, 2.5}), std::setprecision(0)) == "[2 2]");
  CHECK(shown(tensor({1e-10, 123456.789012}, DType::f64), std::setprecision(3)) ==
        "[1.000e-10 1.235e+05] f64");
  CHECK(shown(tensor({9.996e99, 1.2345}, DType::f64), std::setprecision(3)) == "[9.996e+99 1.234e+00] f64");
  CHECK(shown(tensor({9.996e99, 1.25}, DType::f64), std::setprecision(2)) == "[1.00e+100 1.25e+000] f64");
  CHECK(shown(tensor({1.5, 9.9996e99}, DType::f64)) == "[1.5000e+00 9.9996e+99] f64");
  CHECK(shown(tensor({9.9996e99, 1.23456}, DType::f64)) == "[9.99960e+99 1.23456e+00] f64");
  CHECK(shown(tensor(1.0 / 3), std::setprecision(3)) == "0.333");
  CHECK(shown(tensor(1.0 / 3, DType::f64), std::setprecision(10)) == "0.3333333333 f64");
  CHECK(shown(tensor({1.0 / 3, 2000.0}), std::fixed, std::setprecision(3)) == "[   0.333 2000.000]");
  CHECK(shown(tensor({1.5, 2.0}), std::fixed) == "[1.500000 2.000000]");
  CHECK(shown(tensor({1.5, 2.0}), std::scientific, std::setprecision(2)) == "[1.50e+00 2.00e+00]");
  CHECK(shown(tensor({1, 2}), std::fixed) == "[1 2] i32");
  CHECK(shown(tensor({1.0 / 3, 2.0})) == to_string(tensor({1.0 / 3, 2.0})));
}

}   // namespace tensor_test
