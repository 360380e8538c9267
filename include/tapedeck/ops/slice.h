// Slices of tensors. All dtypes.
#pragma once
#include "tapedeck/ints.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The part of x that starts at `begin` and has extents `size`; a size of -1 extends to the end. Without a
/// copy if the part is contiguous, such as a range of rows. The gradient is 0 outside the part. Throws
/// ShapeError if it exceeds x or the lists do not have a number for each axis.
TAPEDECK_EXPORT Tensor slice(const Tensor& x, Ints begin, Ints size);

/// One item of `x[{…}]` and strided_slice, as in NumPy's brackets. A number such as `3` is an index: it
/// selects this entry and removes the axis. `{1, 5}` is `1:5`, the entries 1, 2, 3 and 4; `{{}, {}, -1}` is
/// `::-1`, all entries in reverse order; `{}` is `:`, all entries. `Slice::ellipsis` is `...`, all entries of
/// the remaining axes, and `Slice::new_axis` is `None`, a new axis of extent 1. Negative begins, ends and
/// indices count from the end. Begins and ends out of range are clamped.
struct Slice {
  /// range: `begin:end:stride`; index: the entry `begin`; the others: see Slice.
  enum class Kind : std::uint8_t { range, index, ellipsis, new_axis };

  constexpr Slice() = default;
  template <std::integral T>
  requires(!std::same_as<T, bool>) constexpr Slice(T index)
      : kind(Kind::index), begin(static_cast<std::int64_t>(index)) {}
  constexpr Slice(std::optional<std::int64_t> from, std::optional<std::int64_t> to, std::int64_t by = 1)
      : begin(from), end(to), stride(by) {}
  constexpr explicit Slice(Kind k) : kind(k) {}
  static const Slice ellipsis, new_axis;

  Kind kind = Kind::range;
  std::optional<std::int64_t> begin, end;   // nullopt: the start or end of the axis
  std::int64_t stride = 1;
};
inline constexpr Slice Slice::ellipsis{Slice::Kind::ellipsis}, Slice::new_axis{Slice::Kind::new_axis};

/// Slices the first axes of x; the remaining axes are kept: `strided_slice(x, {0, {1, 5}})` is NumPy's `x[0,
/// 1:5]`, and also written `x[{0, {1, 5}}]`. Without a copy if the result is contiguous. Throws ShapeError if
/// an index is out of range or there are more slices than axes, and ArgumentError for a stride of 0 or a
/// second ellipsis.
TAPEDECK_EXPORT Tensor strided_slice(const Tensor& x, std::span<const Slice> slices);
inline Tensor strided_slice(const Tensor& x, std::initializer_list<Slice> slices) {
  return strided_slice(x, std::span<const Slice>(slices.begin(), slices.size()));
}

/// x with the elements of strided_slice(x, slices) replaced by `updates`, which have its shape and dtype. x
/// has a gradient of 0 where it is replaced. Throws as strided_slice does, and ShapeError or DTypeError if
/// updates do not match.
TAPEDECK_EXPORT Tensor strided_slice_update(const Tensor& x, std::span<const Slice> slices,
                                            const Tensor& updates);
inline Tensor strided_slice_update(const Tensor& x, std::initializer_list<Slice> slices,
                                   const Tensor& updates) {
  return strided_slice_update(x, std::span<const Slice>(slices.begin(), slices.size()), updates);
}

}   // namespace tapedeck
