// Helpers shared by the verifiers: the exception for a broken rule, and the range of elements that a view
// selects.
#pragma once
#include <optional>
#include <string>

#include "core/format.h"
#include "kernels/layout/strided_view.h"

namespace tapedeck::compiled {

/// The exception for the first broken rule; caught by fault_of only.
struct Broken {
  std::string rule;
};
template <class... A> [[noreturn]] void broken(fmt::format_string<A...> text, A&&... a) {
  throw Broken{fmt::format(text, std::forward<A>(a)...)};
}

/// The number of elements that a view selects, and the least and the greatest position among them.
struct Reach {
  std::int64_t count = 1, least, most;
  explicit Reach(const kernels::StridedView& view) : least(view.offset()), most(view.offset()) {
    for (std::size_t d = 0; d < view.ndim(); ++d) {
      count *= view[d].extent;
      (view[d].stride < 0 ? least : most) += (view[d].extent - 1) * view[d].stride;
    }
  }
};

/// Runs a verifier. Returns the rule that it finds broken, preceded by its position, or nothing.
template <class V> std::optional<std::string> fault_of(V v) {
  try {
    v.run();
    return {};
  } catch (const Broken& b) {
    return v.where() + b.rule;
  }
}

}   // namespace tapedeck::compiled
