// f16 and bf16 compared with their definitions, for all bit patterns and around all ties; casts between all
// dtypes. Expected values are computed with ldexp and exact arithmetic in f64.
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <cstring>

#include "core/bytes.h"
#include "message_of.h"
#include "tapedeck/ops.h"

namespace core_half_test {

using namespace tapedeck;
using tapedeck::bfloat16;   // OpenBLAS declares one, too
using namespace tapedeck::test;

namespace {

/// A format of 16 bits: the bits of its fraction, and the exponent of its subnormal numbers' step.
struct Format {
  DType dtype;
  int fraction, step;

  double value_of(std::uint16_t bits) const {
    const int size = bits & 0x7fff, exponent = size >> fraction, part = size & ((1 << fraction) - 1),
              most = (1 << (15 - fraction)) - 1;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == most) return part ? std::nan("") : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(part, step);
    return sign * std::ldexp((1 << fraction) + part, step + exponent - 1);
  }
  std::uint16_t infinity() const { return static_cast<std::uint16_t>(0x7fff >> fraction << fraction); }
};
constexpr Format kFormats[] = {{DType::f16, 10, -24}, {DType::bf16, 7, -133}};

std::vector<std::uint16_t> bits_of(const Tensor& x) {
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(x.size()));
  std::memcpy(bits.data(), x.raw(), static_cast<std::size_t>(x.nbytes()));
  return bits;
}
Tensor of_bits(const std::vector<std::uint16_t>& bits, DType dtype) {
  Tensor x = zeros({std::ssize(bits)}, dtype);
  std::memcpy(x.raw(), bits.data(), static_cast<std::size_t>(x.nbytes()));
  return x;
}
/// All bits of 16, or those of numbers from 0 up to infinity.
std::vector<std::uint16_t> all_bits(int count = 0x10000) {
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    bits[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(i);
  return bits;
}
/// What x rounds to, by one number at a time, in the vectors of the library, and from f64.
void check_rounding(const Format& format, const std::vector<float>& x, const std::vector<std::uint16_t>& y) {
  const Tensor t = tensor(x);
  const std::vector<std::uint16_t> rounded = bits_of(astype(t, format.dtype)),
                                   from_f64 = bits_of(astype(astype(t, DType::f64), format.dtype));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint16_t one = format.dtype == DType::f16 ? float16(x[i]).bits : bfloat16(x[i]).bits;
    wrong += one != y[i] || rounded[i] != y[i] || from_f64[i] != y[i];
  }
  CHECK(wrong == 0);
}

static_assert(float(float16(65519.0f)) == 65504 && float16(65520.0f).bits == 0x7c00);
static_assert(float16(0x1.8p-24f).bits == 2 && float16(0x1p-25f).bits == 0 && float16(-0.0f).bits == 0x8000);
static_assert(float(bfloat16(1.00390625f)) == 1 && float(bfloat16(1.01171875f)) == 1.015625f);
static_assert(float16(1.5f) + float16(0.25f) == 1.75f && float16(2.0f) > bfloat16(1.0f));

}   // namespace

TEST_CASE("every f16 and bf16 converts to f32 and f64 and back exactly", "[half]") {
  for (const Format& format : kFormats) {
    INFO(name_of(format.dtype));
    const std::vector<std::uint16_t> bits = all_bits();
    const Tensor x = of_bits(bits, format.dtype);
    const std::vector<double> from_f32 = astype(x, DType::f32).to_vector(), from_f64 = x.to_vector();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const double v = format.value_of(bits[i]);
      const double one =
          format.dtype == DType::f16 ? double(x.data<float16>()[i]) : double(x.data<bfloat16>()[i]);
      for (const double w : {from_f32[i], from_f64[i], one})
        wrong += std::isnan(v) ? !std::isnan(w) : v != w || std::signbit(v) != std::signbit(w);
    }
    CHECK(wrong == 0);
    for (const DType through : {DType::f32, DType::f64}) {
      const std::vector<std::uint16_t> back = bits_of(astype(astype(x, through), format.dtype));
      for (std::size_t i = 0; i < bits.size(); ++i) {
        const bool nan = (bits[i] & 0x7fff) > format.infinity();
        const int quiet = nan ? 1 << (format.fraction - 1) : 0;   // a NaN keeps its other bits
        wrong += back[i] != (bits[i] | quiet);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("f32 rounds to the nearest f16 and bf16, ties to even", "[half]") {
  for (const Format& format : kFormats) {
    INFO(name_of(format.dtype));
    std::vector<float> x;
    std::vector<std::uint16_t> y;
    const auto add = [&](double v, int bits) {
      for (const int sign : {0, 0x8000}) {
        x.push_back(static_cast<float>(sign ? -v : v));
        y.push_back(static_cast<std::uint16_t>(bits | sign));
      }
    };
    const int infinity = format.infinity();
    for (int bits = 0; bits < infinity; ++bits) {
      const double low = format.value_of(static_cast<std::uint16_t>(bits)),
                   high = bits + 1 < infinity ? format.value_of(static_cast<std::uint16_t>(bits + 1))
                                              : std::ldexp(1, format.dtype == DType::f16 ? 16 : 128),
                   tie = (low + high) / 2;
      const auto f = static_cast<float>(tie);
      add(low, bits);
      if (f == tie && std::isfinite(f)) {   // not between the least bf16, whose tie is no f32
        add(tie, bits + (bits & 1));
        add(std::nextafter(f, 0.0f), bits);
        if (const float above = std::nextafter(f, INFINITY); std::isfinite(above)) add(above, bits + 1);
      }
    }
    add(INFINITY, infinity);
    add(std::numeric_limits<float>::max(), infinity);
    add(format.dtype == DType::f16 ? 1e-30 : 0, 0);
    check_rounding(format, x, y);
  }
}

TEST_CASE("f32 of the whole range are rounded as computed in f64", "[half]") {
  for (const Format& format : kFormats) {
    std::vector<float> x;
    std::vector<std::uint16_t> y;
    for (std::uint32_t bits = 0; bits < 0x7f800000; bits += 4099) {
      float v;
      std::memcpy(&v, &bits, sizeof v);
      const int exponent = v == 0 ? 0 : std::ilogb(v);
      const int step = std::max(format.step, exponent - format.fraction);
      const double rounded = std::nearbyint(std::ldexp(static_cast<double>(v), -step));   // to even
      const double expected = std::ldexp(rounded, step);
      int found = 0;   // the numbers from 0 up are in the order of their bits
      for (int bit = 1 << 14; bit; bit >>= 1)
        if (found + bit <= format.infinity() &&
            format.value_of(static_cast<std::uint16_t>(found + bit)) <= expected)
          found += bit;
      const bool beyond = expected >= std::ldexp(1, format.dtype == DType::f16 ? 16 : 128);
      x.push_back(v), y.push_back(beyond ? format.infinity() : static_cast<std::uint16_t>(found));
    }
    check_rounding(format, x, y);
  }
}

TEST_CASE("f64 and integers are rounded once", "[half]") {
  const auto f16 = [](auto v) { return tensor(v, DType::f16).template item<double>(); };
  const auto bf16 = [](auto v) { return tensor(v, DType::bf16).template item<double>(); };
  // Behind a tie by less than f32 tells.
  CHECK(astype(tensor(std::vector{1 + 0x1p-11 + 0x1p-40}, {}), DType::f16).item() == 1 + 0x1p-10);
  CHECK(astype(tensor(std::vector{1 + 0x1p-11 - 0x1p-40}, {}), DType::f16).item() == 1);
  CHECK(astype(tensor(std::vector{1 + 0x1p-11}, {}), DType::f16).item() == 1);
  CHECK(astype(tensor(std::vector{-1 - 0x1p-8 - 0x1p-45}, {}), DType::bf16).item() == -1 - 0x1p-7);
  CHECK(astype(tensor(std::vector{0x1p-25 + 0x1p-70}, {}), DType::f16).item() == 0x1p-24);
  CHECK(std::isinf(astype(tensor(std::vector{1e300}, {}), DType::f16).item()));
  CHECK(bf16((std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1) == 0x1p62 + 0x1p55);
  CHECK(bf16((std::int64_t{1} << 62) + (std::int64_t{1} << 54)) == 0x1p62);
  CHECK(bf16(-(std::int64_t{1} << 62) - (std::int64_t{1} << 54) - 1) == -0x1p62 - 0x1p55);
  CHECK(bf16(~std::uint64_t{0}) == 0x1p64);
  CHECK(f16(2049) == 2048);
  CHECK(f16(2051) == 2052);
  CHECK(f16(std::uint16_t{65519}) == 65504);
  CHECK(std::isinf(f16(std::uint16_t{65520})));
}

TEST_CASE("casts between all dtypes keep small numbers", "[half]") {
  for (int a = 0; a < kDTypes; ++a)
    for (int b = 0; b < kDTypes; ++b) {
      const auto from = static_cast<DType>(a), to = static_cast<DType>(b);
      INFO(name_of(from) << " to " << name_of(to));
      const std::int64_t most = from == DType::boolean || to == DType::boolean ? 2 : 128;
      const Tensor x = astype(arange(most, from), to), y = arange(most, to);
      REQUIRE(x.dtype() == to);
      CHECK(std::memcmp(x.raw(), y.raw(), static_cast<std::size_t>(x.nbytes())) == 0);
      CHECK(all(equal(x, y)).item() == 1);
      if (!is_complex(from))
        CHECK(x.to_vector<std::complex<double>>() ==
              arange(most, DType::c128).to_vector<std::complex<double>>());
    }
}

TEST_CASE("casts to small integers wrap around, and saturate from floating point", "[half]") {
  CHECK(astype(tensor({70000, -1}), DType::u16).to_vector<int>() == std::vector{4464, 65535});
  CHECK(astype(tensor({40000, -1}), DType::i16).to_vector<int>() == std::vector{-25536, -1});
  CHECK(astype(tensor({-1}), DType::u64).item<std::uint64_t>() == ~std::uint64_t{0});
  CHECK(astype(tensor({1e20, -5.5, NAN}), DType::u64).to_vector<std::uint64_t>() ==
        std::vector<std::uint64_t>{~std::uint64_t{0}, 0, 0});
  CHECK(astype(tensor({1e6, -1e6, 2.75}, DType::bf16), DType::i16).to_vector<int>() ==
        std::vector{32767, -32768, 2});
  CHECK(astype(tensor({1e5, -3.0}, DType::f16), DType::u32).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{4294967295, 0});
  CHECK(tensor(~std::uint64_t{0}).item() == 0x1p64);
}

// As NumPy 1.24 prints f16, but for "1.0" in the place of its "1."; bf16 by the same rule.
TEST_CASE("halves print with enough digits to distinguish them", "[half]") {
  CHECK(to_string(tensor(0.1, DType::f16)) == "0.1 f16");
  CHECK(to_string(tensor(1.0 / 3, DType::f16)) == "0.3333 f16");
  CHECK(to_string(tensor(1.0 / 3, DType::bf16)) == "0.334 bf16");
  CHECK(to_string(tensor({65504.0, 1.0}, DType::f16)) == "[6.55e+04 1.00e+00] f16");
  CHECK(to_string(tensor({1.0, 0.5, NAN}, DType::bf16)) == "[1.0 0.5 nan] bf16");
  CHECK(to_string(tensor(~std::uint64_t{0})) == "18446744073709551615 u64");
  CHECK(to_string(tensor({-3, 7}, DType::i16)) == "[-3  7] i16");
}

TEST_CASE("small integers are computed in i64", "[half]") {
  const Tensor a = tensor({250, 3}, DType::u8), b = tensor({-4, 5}, DType::i8);
  CHECK((a + b).dtype() == DType::i16);
  CHECK((a + b).to_vector<int>() == std::vector{246, 8});
  const Tensor x = tensor({60000, 60001}, DType::u16);
  CHECK((x + x).to_vector<int>() == std::vector{120000 - 65536, 120002 - 65536});
  CHECK(max(x).item() == 60001);
  CHECK(sum(x, {}).dtype() == DType::u16);
  CHECK((tensor({1, 2}, DType::u64) - tensor({2, 1}, DType::u64)).to_vector<std::uint64_t>() ==
        std::vector{~std::uint64_t{0}, std::uint64_t{1}});
  const Tensor large = tensor(std::vector{~std::uint64_t{0}});
  CHECK(reshape(concat({large, large}, 0), {1, 2}).to_vector<std::uint64_t>()[1] == ~std::uint64_t{0});
  CHECK(message_of<ArgumentError>([&] { large + large; }) ==
        "u64 is computed in i64, which has no 18446744073709551615; use astype: x is u64[1]");
}

}   // namespace core_half_test
