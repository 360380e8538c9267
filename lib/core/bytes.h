// The memory of tensors, for kernels and for code that moves whole buffers; test/doors.sh lists these files.
// Reads of this memory are not recorded: kernels run again in each replay; other code does not, and must read
// numbers by HostView.
#pragma once
#include <span>

#include "core/storage.h"

namespace tapedeck {

struct detail::Bytes {
  static std::byte* of(const Tensor& x) { return x.handle()->data; }
  static std::byte*& of(Block& b) { return b.data; }
  static std::byte* of(const Block& b) { return b.data; }
  static std::span<std::byte, kInlineBytes> inside(Block& b) { return b.inline_data; }
};

template <class T> const T* elements(const Tensor& x) { return reinterpret_cast<const T*>(x.raw()); }
template <class T> T* elements(Tensor& x) { return reinterpret_cast<T*>(x.raw()); }
/// Calls f(span) with the elements of indices as i32 or i64. Other integers are converted to i64.
template <class F> decltype(auto) visit_indices(const Tensor& indices, F&& f) {
  const auto n = static_cast<std::size_t>(indices.size());
  if (indices.dtype() == DType::i32) return f(std::span(elements<std::int32_t>(indices), n));
  Tensor converted;
  if (indices.dtype() != DType::i64) [[unlikely]]
    converted = to_i64(indices);
  return f(std::span(elements<std::int64_t>(converted.defined() ? converted : indices), n));
}

}   // namespace tapedeck
