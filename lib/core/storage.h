// Memory of tensors. Small ones: one block from the thread's free list. Large ones: a cached buffer, padded
// to whole vectors.
#pragma once
#include "core/thread_state.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// A fresh tensor whose elements are not set. Its memory may be written up to the next multiple of 64 bytes.
/// Throws ShapeError if the number of bytes overflows.
Tensor allocate(DType dtype, const Shape& shape, std::int64_t size);
inline Tensor allocate(const Spec& s) { return allocate(s.dtype, s.shape, s.shape.size()); }
/// Allocates a tensor of the spec of x, for a kernel that writes whole groups of 64 bytes.
Tensor allocate_like(const Tensor& x);
/// The elements of x from `first` on under another shape: the same buffer (a copy of inline data), a new id.
/// Without a shape: all of x.
Tensor share(const Tensor& x, const Shape& shape, std::int64_t first = 0);
Tensor share(const Tensor& x);
/// Copies the elements of a tensor of the same spec.
void copy_elements(const Tensor& from, Tensor& to) noexcept;
/// A copy of x that does not share its memory.
Tensor copy_of(const Tensor& x);
/// A tensor of that spec without memory, to which a kernel that provides its own outputs (Outputs::by_kernel)
/// gives memory with one of the two functions below.
Tensor blank(const Spec& spec);
void allocate_for(Tensor& blank);
void share_with(Tensor& blank, const Tensor& x, std::int64_t first = 0);
/// A tensor with the dtype, shape and id of x but no data; and a new tensor of that spec without data.
Tensor shape_only(const Tensor& x);
Tensor shape_only(const Spec& spec);
/// The same value under the same id, for a tape to save: the copy does not keep the tape's entry alive.
Tensor saved_copy(const Tensor& x);
/// Associates a saved copy with x's slot, or else its id, for all recorders that track x.
void track_copy(Tensor& copy, const Tensor& x, bool keeps_slot) noexcept;
/// After an update in place: x is a new tensor, with a new id, that no recorder tracks.
void renew(Tensor& x);

/// Integers as i64. Throws ArgumentError for u64 values beyond the range of i64.
Tensor to_i64(const Tensor& integers);
/// The bytes of a fresh tensor, to be written.
std::span<std::byte> writable_bytes(Tensor& fresh);

/// Memory from the thread's cache of buffers, for lists that live as long as a tape or a pass. Not counted in
/// live_bytes().
void* take_memory(std::int64_t bytes);
void give_memory(void* p) noexcept;
template <class T> struct CachedAllocator {
  using value_type = T;
  CachedAllocator() = default;
  template <class U> CachedAllocator(const CachedAllocator<U>&) noexcept {}
  T* allocate(std::size_t n) {
    return static_cast<T*>(take_memory(static_cast<std::int64_t>(n * sizeof(T))));
  }
  void deallocate(T* p, std::size_t) noexcept { give_memory(p); }
  friend bool operator==(const CachedAllocator&, const CachedAllocator&) { return true; }
};
template <class T> using CachedVector = std::vector<T, CachedAllocator<T>>;

/// Called when a tensor that has been tracked (see op/recorder.h) is released. The first recorder sets it;
/// before, no tensor is tracked.
using TensorEndHook = void (*)(const detail::Block& block) noexcept;
void set_tensor_end_hook(TensorEndHook hook) noexcept;

}   // namespace tapedeck
