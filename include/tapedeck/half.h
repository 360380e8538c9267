// float16 and bfloat16: numbers of 16 bits, for storage. Arithmetic on them is done in float.
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>

namespace tapedeck {

namespace detail {

/// Rounds to nearest, ties to even, and to infinity beyond 65504. A NaN keeps its sign and upper bits, and
/// becomes quiet.
constexpr std::uint16_t float16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  // Adding 0.5 rounds to multiples of 2^-24, the step of subnormal numbers.
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000,
                      normal = (size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13,
                      nan = 0x7e00 | (size >> 13 & 0x3ff);
  const std::uint32_t finite = size < 0x38800000 ? small : normal;
  return static_cast<std::uint16_t>(sign | (size > 0x7f800000 ? nan : size > 0x477fefff ? 0x7c00u : finite));
}
constexpr float float16_value(std::uint16_t bits) {
  const std::uint32_t size = bits & 0x7fff, shifted = size << 13;
  const auto small =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24f);
  const std::uint32_t special = shifted + (224u << 23) + (size > 0x7c00 ? 1u << 22 & ~shifted : 0u),
                      finite = size < 0x400 ? small : shifted + (112u << 23);
  return std::bit_cast<float>((size < 0x7c00 ? finite : special) | static_cast<std::uint32_t>(bits & 0x8000)
                                                                       << 16);
}

/// float16_bits and float16_value for bfloat16, the upper half of a float.
constexpr std::uint16_t bfloat16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1), nan = bits | 1u << 22;
  return static_cast<std::uint16_t>(((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded) >> 16);
}
constexpr float bfloat16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}   // namespace detail

/// IEEE's binary16: 11 bits of precision, numbers up to 65504. Construction from a float rounds to nearest,
/// ties to even, and to infinity beyond the range. As an operand, it converts to float.
struct float16 {
  std::uint16_t bits;   // sign, 5 bits of exponent, 10 of fraction

  float16() = default;
  constexpr explicit float16(float value) : bits(detail::float16_bits(value)) {}
  /// The value, which a float represents exactly.
  constexpr operator float() const { return detail::float16_value(bits); }
};

/// The upper half of a float: 8 bits of precision, the range of float. Construction from a float rounds to
/// nearest, ties to even. As an operand, it converts to float.
struct bfloat16 {
  std::uint16_t bits;   // sign, 8 bits of exponent, 7 of fraction

  bfloat16() = default;
  constexpr explicit bfloat16(float value) : bits(detail::bfloat16_bits(value)) {}
  /// The value, which a float represents exactly.
  constexpr operator float() const { return detail::bfloat16_value(bits); }
};

/// float16 or bfloat16.
template <class T>
concept HalfNumber = std::same_as<T, float16> || std::same_as<T, bfloat16>;

}   // namespace tapedeck
