// What verifiers share: what they throw and return, and how far views reach.
#pragma once
#include <optional>
#include <string>

#include "core/format.h"
#include "kernels/layout/strided_view.h"

namespace tapedeck::compiled {

/// The first rule that is broken. Caught by fault_of alone.
struct Broken {
  std::string rule;
};
template <class... A> [[noreturn]] void broken(fmt::format_string<A...> text, A&&... a) {
  throw Broken{fmt::format(text, std::forward<A>(a)...)};
}

/// How many elements a view selects, and between which.
struct Reach {
  std::int64_t count = 1, least, most;
  explicit Reach(const kernels::StridedView& view) : least(view.offset()), most(view.offset()) {
    for (std::size_t d = 0; d < view.ndim(); ++d) {
      count *= view[d].extent;
      (view[d].stride < 0 ? least : most) += (view[d].extent - 1) * view[d].stride;
    }
  }
};

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
