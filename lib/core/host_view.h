// HostView: the numbers of a tensor, read on the host, outside of kernels. A recording is notified, and
// refuses the read if a replay would see other numbers.
#pragma once
#include <optional>
#include <string_view>

#include "core/thread_state.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Notifies the recording, if there is one, that the numbers of x are read on the host; it may throw
/// TraceError, which names the reader. Throws DTypeError unless x is of this dtype.
std::span<const std::byte> look_at(const Tensor& x, std::optional<DType> dtype, std::string_view reader);

/// T is the element type of the tensor, or std::byte for the memory of a tensor of any dtype.
template <class T> class HostView {
 public:
  HostView(const Tensor& x, std::string_view reader)
      : x_(x), data_(reinterpret_cast<const T*>(look_at(x, dtype(), reader).data())) {}

  std::int64_t size() const { return std::is_same_v<T, std::byte> ? x_.nbytes() : x_.size(); }
  const T* data() const { return data_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size(); }
  const T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  static constexpr std::optional<DType> dtype() {
    if constexpr (std::is_same_v<T, std::byte>)
      return {};
    else
      return dtype_of<T>;
  }

  Tensor x_;
  const T* data_;
};

/// The single number of x, as Tensor::item returns it, with the reader's name for the message of a recording.
template <class T> T read_one(const Tensor& x, std::string_view reader) {
  (void)look_at(x, {}, reader);
  return x.item<T>();
}

}   // namespace tapedeck
