#include "../llsq.h"

#include <algorithm>

#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

constexpr std::size_t kLlsqLanes = 32;   // points at a time; points beyond n contribute 0
using Lanes = double[kLlsqLanes];

/// The residuals of the points from `first` on.
void rests(const llsq::Input& in, int first, Lanes& t, Lanes& rest) {
  Lanes value = {};
  for (std::size_t p = 0; p < kLlsqLanes; ++p) {
    const int i = first + static_cast<int>(p);
    t[p] = i < in.n ? llsq::point(i, in.n) : 0;
  }
  for (std::size_t j = in.x.size(); j-- > 0;)
    for (std::size_t p = 0; p < kLlsqLanes; ++p)
      value[p] = value[p] * t[p] + in.x[j];
  for (std::size_t p = 0; p < kLlsqLanes; ++p)
    rest[p] = first + static_cast<int>(p) < in.n ? llsq::sign(t[p]) - value[p] : 0;
}

void primal(const llsq::Input& in, Values& out) {
  double sum = 0;
  Lanes t, rest;
  for (int first = 0; first < in.n; first += static_cast<int>(kLlsqLanes)) {
    rests(in, first, t, rest);
    for (const double r : rest)
      sum += r * r;
  }
  out.assign(1, sum / 2);
}

/// -Σ rest t^j
void gradient(const llsq::Input& in, Values& out) {
  constexpr std::size_t width = 8;   // partial sums of an entry
  std::vector<double> sums(in.x.size() * width);
  Lanes t, rest;
  for (int first = 0; first < in.n; first += static_cast<int>(kLlsqLanes)) {
    rests(in, first, t, rest);
    for (std::size_t j = 0; j < in.x.size(); ++j) {
      double* const to = &sums[j * width];
      for (std::size_t p = 0; p < width; ++p)
        to[p] += (rest[p] + rest[p + width]) + (rest[p + 2 * width] + rest[p + 3 * width]);
      for (std::size_t p = 0; p < kLlsqLanes; ++p)
        rest[p] *= t[p];
    }
  }
  out.assign(in.x.size(), 0);
  for (std::size_t j = 0; j < out.size(); ++j)
    for (std::size_t p = 0; p < width; ++p)
      out[j] -= sums[j * width + p];
}

/// The gradient, point by point.
void gradient_as_suite(const llsq::Input& in, Values& out) {
  out.assign(in.x.size(), 0);
  for (int i = 0; i < in.n; ++i) {
    const double t = llsq::point(i, in.n);
    double rest = llsq::sign(t), power = 1;
    for (const double x : in.x) {
      rest -= x * power;
      power *= t;
    }
    power = rest;
    for (double& g : out) {
      g -= power;
      power *= t;
    }
  }
}

}   // namespace

std::vector<Work> works(const std::shared_ptr<const llsq::Input>& in) {
  if (kSuite)
    return {work([in](Values& out) { out.assign(1, llsq::objective(*in, in->x.data())); }),
            work([in](Values& out) { gradient_as_suite(*in, out); })};
  return {work([in](Values& out) { primal(*in, out); }), work([in](Values& out) { gradient(*in, out); })};
}

}   // namespace gradbench::GRADBENCH_KIND
