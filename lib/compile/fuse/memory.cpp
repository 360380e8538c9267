// In: the number of bytes that a program needs. Out: memory that it may write.
#include "compile/fuse/memory.h"

#include <algorithm>
#include <cstring>

#include "core/bytes.h"

namespace tapedeck::compiled {

Arena::Arena(std::int64_t bytes)   // more than a handle can hold
    : memory_(allocate({DType::u8, {std::max<std::int64_t>(bytes, 128)}})) {
  std::memset(memory_.raw(), 0, static_cast<std::size_t>(memory_.nbytes()));
}

Writable Arena::at(std::int64_t offset) const { return Writable(memory_.raw() + offset); }

Tensor Arena::view(const Spec& spec) const {
  Tensor t = blank(spec);
  detail::Block* b = t.handle();
  b->buffer = memory_.handle()->buffer;
  b->buffer->refs.fetch_add(1, std::memory_order_relaxed);
  return t;
}

OutputSlot::OutputSlot(Tensor& x, Tensor* given, const Spec& spec) {
  const bool fits = given && given->defined() && given->dtype() == spec.dtype &&
                    given->shape() == spec.shape && given->unique();
  x = fits ? std::exchange(*given, {}) : allocate(spec);
  if (fits) renew(x);
  memory_ = Writable(x.raw());
}
OutputSlot::OutputSlot(Tensor& x) : memory_(Writable(x.raw())) {}

}   // namespace tapedeck::compiled
