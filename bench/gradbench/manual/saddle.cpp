#include "../saddle.h"

#include "../descent.h"
#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

using Point = std::array<double, 2>;
double square(const Point& p) { return p[0] * p[0] + p[1] * p[1]; }
Point twice(const Point& p) { return {2 * p[0], 2 * p[1]}; }

/// The b with the largest |a|² - |b|².
Point best(const Point& a, const Point& start) {
  return argmin([&](const Point& b) { return square(b) - square(a); }, twice, start);
}

/// At the maximum over b, the derivative by b is 0, so the derivative by a is the derivative of |a|².
void search(const Point& start, Values& out) {
  const Point a = argmin([&](const Point& p) { return square(p) - square(best(p, start)); }, twice, start);
  const Point b = best(a, start);
  out = {a[0], a[1], b[0], b[1]};
}

}   // namespace

std::vector<Work> works(const std::shared_ptr<const saddle::Input>& in) {
  return std::vector<Work>(4, work([in](Values& out) { search(in->start, out); }));
}

}   // namespace gradbench::GRADBENCH_KIND
