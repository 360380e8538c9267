#include "kernels/elementwise/finite.h"

#include <cmath>

#include "core/bytes.h"
#include "core/visit.h"

namespace tapedeck::kernels {

std::optional<NotFinite> first_not_finite(const Tensor& x) {
  return visit_floating(x.dtype(), [&]<class T>(T) -> std::optional<NotFinite> {
    const T* element = elements<T>(x);
    bool finite = true;
    for (std::int64_t i = 0; i < x.size(); ++i)
      finite &= element[i] - element[i] == T(0);
    if (finite) return {};
    std::int64_t i = 0;
    while (std::isfinite(element[i]))
      ++i;
    return NotFinite{static_cast<double>(element[i]), i};
  });
}

}   // namespace tapedeck::kernels
