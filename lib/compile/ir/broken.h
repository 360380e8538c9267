// What a verifier throws, and returns.
#pragma once
#include <optional>
#include <string>

#include "core/format.h"

namespace tapedeck::compiled {

/// The first rule that is broken. Caught by fault_of alone.
struct Broken {
  std::string rule;
};
template <class... A> [[noreturn]] void broken(fmt::format_string<A...> text, A&&... a) {
  throw Broken{fmt::format(text, std::forward<A>(a)...)};
}

/// Runs a verifier: what it finds, after where it is then.
template <class V> std::optional<std::string> fault_of(V v) {
  try {
    v.run();
    return {};
  } catch (const Broken& b) {
    return v.where() + b.rule;
  }
}

}   // namespace tapedeck::compiled
