// Memory of tensors. Small ones: one block from the thread's free list. Large ones: a cached buffer, padded
// to whole vectors.
#pragma once
#include "core/thread_state.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// A fresh tensor whose elements are not set. Its memory may be written up to the next multiple of 64 bytes.
/// Throws ShapeError where the number of bytes overflows.
Tensor allocate(DType dtype, const Shape& shape, std::int64_t size);
inline Tensor allocate(const Spec& s) { return allocate(s.dtype, s.shape, s.shape.size()); }
/// The elements of x from `first` on under another shape: the same buffer (a copy of inline data), a new id.
Tensor share(const Tensor& x, const Shape& shape, std::int64_t first = 0);
/// A new tensor of that spec to which one of the two below gives its elements, for kernels that make their
/// own outputs.
Tensor blank(const Spec& spec);
void allocate_for(Tensor& blank);
void share_with(Tensor& blank, const Tensor& x, std::int64_t first = 0);
/// The dtype, shape and id of x without its data.
Tensor hollow(const Tensor& x);
Tensor hollow(const Spec& spec);
/// The same value under the same id, for a tape to keep.
Tensor saved_copy(const Tensor& x);
/// From here on recorders that track x find its copy, too: by its slot where the first of them keeps that for
/// as long as there are copies, else by its id.
void track_copy(Tensor& copy, const Tensor& x, bool keeps_slot) noexcept;
/// After an update in place: the value is another one, so it gets a new id and nobody tracks it.
void renew(Tensor& x);

template <class T> const T* elements(const Tensor& x) { return reinterpret_cast<const T*>(x.raw()); }
template <class T> T* elements(Tensor& x) { return reinterpret_cast<T*>(x.raw()); }
/// Calls f(span) with the elements of indices, which are i32 or i64.
template <class F> decltype(auto) visit_indices(const Tensor& indices, F&& f) {
  const auto n = static_cast<std::size_t>(indices.size());
  if (indices.dtype() == DType::i32) return f(std::span(elements<std::int32_t>(indices), n));
  return f(std::span(elements<std::int64_t>(indices), n));
}

/// Memory from the thread's cache of buffers, for lists that come and go with every tape. Not counted as
/// live.
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

/// What recorders do when a tensor that they track ends.
void tensor_ended(const detail::Block& block) noexcept;

}   // namespace tapedeck
