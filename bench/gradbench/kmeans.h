// k-means: the sum over all points of the squared distance to the closest centroid, and a step of Newton's
// method. The Hessian is diagonal.
#pragma once
#include "suite.h"

namespace gradbench::kmeans {

struct Input {
  int k, n, d;
  Values points, centroids;   // [n, d], [k, d]
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

template <class T> static T objective(const Input& in, const T* centroids) {
  T sum = 0;
  for (int p = 0; p < in.n; ++p) {
    T closest = 0;
    for (int c = 0; c < in.k; ++c) {
      T distance = 0;
      for (int i = 0; i < in.d; ++i) {
        const T difference = in.points[static_cast<std::size_t>(p * in.d + i)] - centroids[c * in.d + i];
        distance += difference * difference;
      }
      if (c == 0 || distance < closest) closest = distance;
    }
    sum += closest;
  }
  return sum;
}

}   // namespace gradbench::kmeans
