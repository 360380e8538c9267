// Shape: the extents of a tensor, stored inline. Spec: the dtype and shape of a tensor.
#pragma once
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

#include "tapedeck/dtype.h"

namespace tapedeck {

/// Up to eight dimensions, outermost first; unused ones are zero. Rank 0 is a scalar with one element.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> dims) {
    for (const std::int64_t d : dims)
      push_back(d);
  }
  constexpr explicit Shape(std::span<const std::int64_t> dims) {
    for (const std::int64_t d : dims)
      push_back(d);
  }

  /// The number of dimensions; one extent, unchecked; all extents.
  constexpr int ndim() const { return ndim_; }
  constexpr std::int64_t operator[](int axis) const { return dims_[axis]; }
  constexpr std::span<const std::int64_t> dims() const { return {dims_, static_cast<std::size_t>(ndim_)}; }
  constexpr const std::int64_t* begin() const { return dims_; }
  constexpr const std::int64_t* end() const { return dims_ + ndim_; }

  /// Throws ShapeError beyond eight dimensions.
  constexpr void push_back(std::int64_t d) {
    if (ndim_ == kMaxRank) throw ShapeError("shape: more than 8 dimensions");
    dims_[ndim_++] = d;
  }
  /// Replaces one extent.
  constexpr void set(int axis, std::int64_t d) { dims_[axis] = d; }

  /// Number of elements. Throws ShapeError if a dimension is negative or the product overflows.
  constexpr std::int64_t size() const {
    std::int64_t n = 1, negative = 0;
    bool overflow = false;
    for (int i = 0; i < ndim_; ++i) {
      overflow |= __builtin_mul_overflow(n, dims_[i], &n);
      negative |= dims_[i];
    }
    return overflow || negative < 0 ? unusual_size() : n;
  }

  friend constexpr bool operator==(const Shape& a, const Shape& b) {
    if (a.ndim_ != b.ndim_) return false;
    for (int i = 0; i < a.ndim_; ++i)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }
  /// Prints the result of to_string.
  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const Shape& shape);

 private:
  TAPEDECK_EXPORT std::int64_t unusual_size() const;   // throws; 0 if an extent is zero

  std::int64_t dims_[kMaxRank] = {};
  std::int32_t ndim_ = 0;
};

/// The broadcast shape of a and b: aligned at the last axis, extents of 1 repeat. Throws ShapeError if the
/// shapes are incompatible.
TAPEDECK_EXPORT Shape broadcast_shapes(const Shape& a, const Shape& b);

/// Dtype and shape of a tensor.
struct Spec {
  DType dtype = DType::f32;
  Shape shape;

  /// Number of elements times element size. Throws ShapeError if it overflows.
  TAPEDECK_EXPORT std::int64_t nbytes() const;
  friend bool operator==(const Spec&, const Spec&) = default;
  /// Prints the result of to_string.
  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const Spec& spec);
};

/// "[2,3]"
TAPEDECK_EXPORT std::string to_string(const Shape& shape);
/// "f32[2,3]", as used in messages.
TAPEDECK_EXPORT std::string to_string(const Spec& spec);

}   // namespace tapedeck
