// Formatting of messages by fmt, for .cpp files only: public headers must not include fmt.
#pragma once
#include <fmt/format.h>

#include "tapedeck/shape.h"

template <> struct fmt::formatter<tapedeck::Shape> : fmt::formatter<std::string> {
  auto format(const tapedeck::Shape& s, fmt::format_context& c) const {
    return fmt::formatter<std::string>::format(tapedeck::to_string(s), c);
  }
};
template <> struct fmt::formatter<tapedeck::Spec> : fmt::formatter<std::string> {
  auto format(const tapedeck::Spec& s, fmt::format_context& c) const {
    return fmt::formatter<std::string>::format(tapedeck::to_string(s), c);
  }
};
template <> struct fmt::formatter<tapedeck::DType> : fmt::formatter<std::string_view> {
  auto format(tapedeck::DType t, fmt::format_context& c) const {
    return fmt::formatter<std::string_view>::format(tapedeck::name_of(t), c);
  }
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
