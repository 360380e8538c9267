// Cross products, on one thread.
#include "kernels/linalg/cross.h"

#include "core/bytes.h"
#include "core/visit.h"

namespace tapedeck::kernels {

void cross(const Tensor& a, const Tensor& b, Tensor& y) {
  visit_floating(y.dtype(), [&]<class T>(T) {
    const T* u = elements<T>(a);
    const T* v = elements<T>(b);
    T* out = elements<T>(y);
    for (std::int64_t i = 0; i < y.size(); i += 3)
      for (int k = 0; k < 3; ++k) {
        const std::int64_t next = i + (k + 1) % 3, last = i + (k + 2) % 3;
        out[i + k] = u[next] * v[last] - u[last] * v[next];
      }
  });
}

}   // namespace tapedeck::kernels
