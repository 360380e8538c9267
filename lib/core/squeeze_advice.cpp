#include "core/squeeze_advice.h"

#include <fmt/format.h>
#include <vector>

#include "core/format.h"

namespace tapedeck {
namespace {

// The axes of extent 1 that x has in addition to the axes of y. Empty if x has other additional axes, or no
// more axes than y.
std::vector<int> axes_to_squeeze(const Shape& x, const Shape& y) {
  std::vector<int> axes;
  int of_y = 0;
  for (int d = 0; d < x.ndim(); ++d) {
    if (of_y < y.ndim() && x[d] == y[of_y])
      ++of_y;
    else if (x[d] == 1)
      axes.push_back(d);
    else
      return {};
  }
  return of_y == y.ndim() ? axes : std::vector<int>{};
}

std::string listed(std::span<const int> axes) {
  return axes.size() == 1 ? std::to_string(axes[0]) : fmt::format("{{{}}}", fmt::join(axes, ", "));
}

}   // namespace

std::string squeeze_advice(NamedShape a, NamedShape b, std::string_view otherwise) {
  if (a.shape.ndim() < b.shape.ndim()) std::swap(a, b);
  const std::vector<int> axes = axes_to_squeeze(a.shape, b.shape);
  if (axes.empty()) return std::string(otherwise);
  return fmt::format("use squeeze({}, {})", a.name, listed(axes));
}

}   // namespace tapedeck
