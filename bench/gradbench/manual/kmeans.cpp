#include "../kmeans.h"

#include <algorithm>
#include <limits>

#include "lanes.h"
#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

constexpr std::size_t kKmeansLanes = 16;   // centroids at a time

/// Centroids as columns, [d, k], and half of their squared norms, which are infinite for the padding that
/// fills the last lanes (numbers in registers).
class Centroids {
 public:
  explicit Centroids(const kmeans::Input& in)
      : d_(static_cast<std::size_t>(in.d)),
        k_((static_cast<std::size_t>(in.k) + kKmeansLanes - 1) / kKmeansLanes * kKmeansLanes),
        columns_(d_ * k_),
        half_squares_(k_, 1e300) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(in.k); ++c) {
      half_squares_[c] = 0;
      for (std::size_t i = 0; i < d_; ++i) {
        const double x = in.centroids[c * d_ + i];
        columns_[i * k_ + c] = x;
        half_squares_[c] += x * x / 2;
      }
    }
  }

  /// The closest centroid c, which has the smallest |c|² / 2 - p c.
  std::size_t closest(const double* point) const {
    double best[kKmeansLanes], at[kKmeansLanes] = {};
    std::fill(best, best + kKmeansLanes, 1e300);
    for (std::size_t first = 0; first < k_; first += kKmeansLanes) {
      double score[kKmeansLanes];
      scores(point, first, score);
      for (std::size_t c = 0; c < kKmeansLanes; ++c) {
        const bool less = score[c] < best[c];
        at[c] = less ? static_cast<double>(first) : at[c];
        best[c] = less ? score[c] : best[c];
      }
    }
    std::size_t lane = 0;
    for (std::size_t c = 1; c < kKmeansLanes; ++c)   // without branches, which would be unpredictable
      lane = best[c] < best[lane] ? c : lane;
    return static_cast<std::size_t>(at[lane]) + lane;
  }

 private:
  void scores(const double* point, std::size_t first, double* out) const {
    Sixteen sums(&half_squares_[first]);
    for (std::size_t i = 0; i < d_; ++i)
      sums.add_product(-point[i], &columns_[i * k_ + first]);
    sums.store(out);
  }

  std::size_t d_, k_;
  std::vector<double> columns_, half_squares_;
};

double distance(const double* a, const double* b, std::size_t d) {
  double sum = 0;
  for (std::size_t i = 0; i < d; ++i)
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}
std::size_t closest_as_suite(const kmeans::Input& in, const double* point) {
  const auto d = static_cast<std::size_t>(in.d);
  double best = std::numeric_limits<double>::max();
  std::size_t at = 0;
  for (std::size_t c = 0; c < static_cast<std::size_t>(in.k); ++c) {
    const double to = distance(point, &in.centroids[c * d], d);
    if (to < best) best = to, at = c;
  }
  return at;
}

/// Calls f(point, its closest centroid) for all points.
template <class F> void for_points(const kmeans::Input& in, const F& f) {
  const auto d = static_cast<std::size_t>(in.d);
  if (kSuite || in.k < 2 * static_cast<int>(kKmeansLanes)) {   // for few centroids, one by one is faster
    for (std::size_t p = 0; p < in.points.size(); p += d)
      f(&in.points[p], closest_as_suite(in, &in.points[p]));
  } else {
    const Centroids centroids(in);
    for (std::size_t p = 0; p < in.points.size(); p += d)
      f(&in.points[p], centroids.closest(&in.points[p]));
  }
}

void cost(const kmeans::Input& in, Values& out) {
  const auto d = static_cast<std::size_t>(in.d);
  double sum = 0;
  for_points(in,
             [&](const double* point, std::size_t c) { sum += distance(point, &in.centroids[c * d], d); });
  out.assign(1, sum);
}

/// The gradient of a centroid is 2 (count · centroid - sum of its points), the Hessian's diagonal 2 count.
void step(const kmeans::Input& in, Values& out) {
  const auto d = static_cast<std::size_t>(in.d);
  Values counts(static_cast<std::size_t>(in.k));
  out.assign(in.centroids.size(), 0);
  for_points(in, [&](const double* point, std::size_t c) {
    counts[c] += 1;
    for (std::size_t i = 0; i < d; ++i)
      out[c * d + i] += point[i];
  });
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = in.centroids[i] - out[i] / counts[i / d];
}

}   // namespace

std::vector<Work> works(const std::shared_ptr<const kmeans::Input>& in) {
  return {work([in](Values& out) { cost(*in, out); }), work([in](Values& out) { step(*in, out); })};
}

}   // namespace gradbench::GRADBENCH_KIND
