// The members of an aggregate, with their names, found at compile time: no macros, no base classes.
#pragma once
#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tapedeck::nn::detail {

inline constexpr std::size_t kMaxFields = 32;

// These functions are never defined or called; only their types and names are used.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif

/// Converts to the type of any member of an aggregate T, but not to T, which would be a copy.
template <class T> struct AnyMember {
  template <class M>
  requires(!std::same_as<M, T>) operator M() const;
};
template <std::size_t, class T> using Any = AnyMember<T>;
template <class T, std::size_t... I> constexpr bool is_made_of(std::index_sequence<I...>) {
  return requires { T{Any<I, T>{}...}; };
}
/// The number of members of T: the largest number of initializers that T accepts, up to one more than
/// kMaxFields.
template <class T, std::size_t N = kMaxFields + 1> consteval std::size_t field_count() {
  if constexpr (N == 0 || is_made_of<T>(std::make_index_sequence<N>{}))
    return N;
  else
    return field_count<T, N - 1>();
}

/// References to the members of x, in their order.
template <class T> constexpr auto fields_of(T& x) {
  constexpr std::size_t n = field_count<std::remove_const_t<T>>();
  static_assert(n <= kMaxFields,
                "a network may have 32 members; group them in structs, or give it for_each_member");
  if constexpr (n == 0)
    return std::tie();
  else if constexpr (n == 1) {
    auto& [m0] = x;
    return std::tie(m0);
  } else if constexpr (n == 2) {
    auto& [m0, m1] = x;
    return std::tie(m0, m1);
  } else if constexpr (n == 3) {
    auto& [m0, m1, m2] = x;
    return std::tie(m0, m1, m2);
  } else if constexpr (n == 4) {
    auto& [m0, m1, m2, m3] = x;
    return std::tie(m0, m1, m2, m3);
  } else if constexpr (n == 5) {
    auto& [m0, m1, m2, m3, m4] = x;
    return std::tie(m0, m1, m2, m3, m4);
  } else if constexpr (n == 6) {
    auto& [m0, m1, m2, m3, m4, m5] = x;
    return std::tie(m0, m1, m2, m3, m4, m5);
  } else if constexpr (n == 7) {
    auto& [m0, m1, m2, m3, m4, m5, m6] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6);
  } else if constexpr (n == 8) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7);
  } else if constexpr (n == 9) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8);
  } else if constexpr (n == 10) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9);
  } else if constexpr (n == 11) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10);
  } else if constexpr (n == 12) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11);
  } else if constexpr (n == 13) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12);
  } else if constexpr (n == 14) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13);
  } else if constexpr (n == 15) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14);
  } else if constexpr (n == 16) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15);
  } else if constexpr (n == 17) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16);
  } else if constexpr (n == 18) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17);
  } else if constexpr (n == 19) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18);
  } else if constexpr (n == 20) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19);
  } else if constexpr (n == 21) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20);
  } else if constexpr (n == 22) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
           m21] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20, m21);
  } else if constexpr (n == 23) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20, m21, m22);
  } else if constexpr (n == 24) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22, m23] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20, m21, m22, m23);
  } else if constexpr (n == 25) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22, m23, m24] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20, m21, m22, m23, m24);
  } else if constexpr (n == 26) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22, m23, m24, m25] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20, m21, m22, m23, m24, m25);
  } else if constexpr (n == 27) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22, m23, m24, m25, m26] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20, m21, m22, m23, m24, m25, m26);
  } else if constexpr (n == 28) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22, m23, m24, m25, m26, m27] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20, m21, m22, m23, m24, m25, m26, m27);
  } else if constexpr (n == 29) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22, m23, m24, m25, m26, m27, m28] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20, m21, m22, m23, m24, m25, m26, m27, m28);
  } else if constexpr (n == 30) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22, m23, m24, m25, m26, m27, m28, m29] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20, m21, m22, m23, m24, m25, m26, m27, m28, m29);
  } else if constexpr (n == 31) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22, m23, m24, m25, m26, m27, m28, m29, m30] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30);
  } else if constexpr (n == 32) {
    auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22, m23, m24, m25, m26, m27, m28, m29, m30, m31] = x;
    return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31);
  }
}

/// Undefined object of type T. Only the name of a pointer to a member is used, which the compiler spells out
/// as a template argument in __PRETTY_FUNCTION__.
template <class T> struct Holder { T value; };
template <class P> struct PointerTo { P p; };
template <class P> PointerTo(P) -> PointerTo<P>;
template <class T> extern const Holder<T> kNowhere;

template <PointerTo p> consteval std::string_view last_identifier() {
  const std::string_view text = __PRETTY_FUNCTION__;   // ends with "…::name)}]" or "….name}]"
  const auto is_letter = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;   // a part of a letter in UTF-8
  };
  std::size_t end = text.rfind('}');
  while (!is_letter(text[end - 1]))
    --end;
  std::size_t begin = end;
  while (is_letter(text[begin - 1]))
    --begin;
  return text.substr(begin, end - begin);
}
/// The name of the I-th member of T.
template <class T, std::size_t I> consteval std::string_view field_name() {
  return last_identifier<PointerTo{&std::get<I>(fields_of(kNowhere<T>.value))}>();
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// The name of a template instance that has an alias: "Conv2d" for Conv<2>.
template <class T> inline constexpr std::string_view given_name = {};
/// The name of a type without namespaces and template arguments: "Dense"; "lambda" or "function" for lambdas
/// and functions.
template <class T> consteval std::string_view type_name() {
  if (!given_name<std::remove_const_t<T>>.empty()) return given_name<std::remove_const_t<T>>;
  std::string_view text = __PRETTY_FUNCTION__;   // "… [with T = a::b::Name<…>; …]" or "… [T = a::b::Name<…>]"
  text.remove_prefix(text.find("T = ") + 4);
  if (text.find("lambda") != text.npos) return "lambda";
  if (text.find("(*") != text.npos) return "function";
  text = text.substr(0, text.find_first_of("<;]"));
  const std::size_t colon = text.rfind(':');
  return colon == text.npos ? text : text.substr(colon + 1);
}

}   // namespace tapedeck::nn::detail
