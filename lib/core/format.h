// Formatting of messages by fmt, for .cpp files only: public headers must not include fmt. fmt/format.h,
// which takes half a second to compile, is for files that join lists.
#pragma once
#include <fmt/core.h>

#include "tapedeck/shape.h"

namespace tapedeck::detail {

/// Accepts "{}" alone. Not the formatter of strings, which every file would compile.
struct PlainFormatter {
  constexpr auto parse(fmt::format_parse_context& c) { return c.begin(); }
};

}   // namespace tapedeck::detail

template <> struct fmt::formatter<tapedeck::Shape> : tapedeck::detail::PlainFormatter {
  fmt::format_context::iterator format(const tapedeck::Shape& s, fmt::format_context& c) const;
};
template <> struct fmt::formatter<tapedeck::Spec> : tapedeck::detail::PlainFormatter {
  fmt::format_context::iterator format(const tapedeck::Spec& s, fmt::format_context& c) const;
};
template <> struct fmt::formatter<tapedeck::DType> : tapedeck::detail::PlainFormatter {
  fmt::format_context::iterator format(tapedeck::DType t, fmt::format_context& c) const;
};

namespace tapedeck {

/// throw_error<ShapeError>("sum: axis {} is out of range", axis)
template <class E, class... T>
[[noreturn, gnu::noinline]] void throw_error(fmt::format_string<T...> form, T&&... values) {
  throw E(fmt::format(form, std::forward<T>(values)...));
}
/// Issues a warning; each distinct text is passed on at most five times.
void warn(std::string_view text);

}   // namespace tapedeck
