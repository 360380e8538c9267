#include "../lse.h"

#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

double largest(const Values& x) {
  double most = x[0];
  for (const double v : x)
    most = v > most ? v : most;
  return most;
}

void primal(const Values& x, Values& out) {
  const double most = largest(x);
  double sum = 0;
  for (const double v : x)
    sum += std::exp(v - most);
  out.assign(1, std::log(sum) + most);
}

/// exp(x) divided by the sum.
void gradient(const Values& x, Values& out) {
  const double most = largest(x);
  double sum = 0;
  out.resize(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = std::exp(x[i] - most);
    sum += out[i];
  }
  const double scale = 1 / sum;
  for (double& v : out)
    v *= scale;
}

}   // namespace

std::vector<Work> works(const std::shared_ptr<const lse::Input>& in) {
  return {work([in](Values& out) { primal(in->x, out); }), work([in](Values& out) { gradient(in->x, out); })};
}

}   // namespace gradbench::GRADBENCH_KIND
