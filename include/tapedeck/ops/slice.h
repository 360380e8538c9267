// Parts of tensors. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The part of x that starts at begin and has extents size; a size of -1 goes to the end. Without a copy
/// where the part is contiguous, as rows are. Throws ShapeError where it reaches outside.
TAPEDECK_EXPORT Tensor slice(const Tensor& x, const Shape& begin, const Shape& size);

/// What strided_slice takes along an axis, as NumPy has it in brackets:
///   3                  an index: this entry, without the axis
///   {1, 5}             1:5, the entries 1, 2, 3 and 4
///   {{}, {}, -1}       ::-1, all entries, backwards
///   {}                 :, all entries
///   Slice::ellipsis    ..., all entries of as many axes as are left over
///   Slice::new_axis    None, an axis of extent 1
/// Negative begins, ends and indices count from the end. Begins and ends that lie outside are moved to the
/// ends.
struct Slice {
  enum class Kind : std::uint8_t { range, index, ellipsis, new_axis };

  constexpr Slice() = default;
  constexpr Slice(std::int64_t index) : kind(Kind::index), begin(index) {}
  constexpr Slice(std::optional<std::int64_t> from, std::optional<std::int64_t> to, std::int64_t by = 1)
      : begin(from), end(to), stride(by) {}
  constexpr explicit Slice(Kind k) : kind(k) {}
  static const Slice ellipsis, new_axis;

  Kind kind = Kind::range;
  std::optional<std::int64_t> begin, end;   // none: the axis' end on that side
  std::int64_t stride = 1;
};
inline constexpr Slice Slice::ellipsis{Slice::Kind::ellipsis}, Slice::new_axis{Slice::Kind::new_axis};

/// What the slices take of the first axes of x; what is behind them is taken whole: strided_slice(x, {0, {1,
/// 5}}) is NumPy's x[0, 1:5]. Without a copy where the part is contiguous. Throws ShapeError for an index out
/// of range and for more slices than axes, ArgumentError for a stride of 0 and for a second ellipsis.
TAPEDECK_EXPORT Tensor strided_slice(const Tensor& x, std::span<const Slice> slices);
inline Tensor strided_slice(const Tensor& x, std::initializer_list<Slice> slices) {
  return strided_slice(x, std::span<const Slice>(slices.begin(), slices.size()));
}

/// x with updates in place of what strided_slice(x, slices) takes, and of its shape and dtype.
TAPEDECK_EXPORT Tensor strided_slice_update(const Tensor& x, std::span<const Slice> slices,
                                            const Tensor& updates);
inline Tensor strided_slice_update(const Tensor& x, std::initializer_list<Slice> slices,
                                   const Tensor& updates) {
  return strided_slice_update(x, std::span<const Slice>(slices.begin(), slices.size()), updates);
}

}   // namespace tapedeck
