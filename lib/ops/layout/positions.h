// Positions among the first axes of a tensor: the second input of a call is indices [entries…, depth], whose
// last axis holds one.
#pragma once
#include <optional>

#include "ops/axes.h"

namespace tapedeck {

/// shape with `count` axes from position axis on replaced by others.
Shape replaced(const Shape& shape, int axis, int count, const Shape& others);

inline int depth_of(const Call& c) { return static_cast<int>(c.x[1].shape()[c.x[1].ndim() - 1]); }
inline Shape entries_of(const Call& c) {
  return Shape(c.x[1].shape().dims().first(static_cast<std::size_t>(c.x[1].ndim() - 1)));
}
/// Throws DTypeError or ShapeError unless the indices can be positions among `axes` axes.
void require_nd_indices(const Call& c, int axes);
/// The indices as positions in the first axes of `indexed`, counted through. Throws ShapeError, with this
/// name and spec, for one outside.
Tensor flat_indices(const Call& c, const Shape& indexed, std::string_view name, const Spec& spec);

/// An index, and where it stands among all.
struct Outside {
  std::int64_t index, position;
};
/// The first index from extent on, or, unless those mean something, below 0.
std::optional<Outside> first_outside(const Tensor& indices, std::int64_t extent,
                                     bool negative_means_something = false);
/// Throws ShapeError, with this name, unless the second input's indices are in the range of that axis of
/// `indexed`.
void require_in_range(const Call& c, const Tensor& indexed, std::string_view name, int axis);

/// gather_nd by positions among the last `axes` axes of x, and its adjoint, for rules.
Tensor gather_positions(const Tensor& x, const Tensor& indices, int axes);
Tensor scatter_positions(const Tensor& updates, const Tensor& indices, const Shape& shape);

}   // namespace tapedeck
