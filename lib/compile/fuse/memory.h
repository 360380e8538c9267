// Memory of a replay, typed by access: arguments, variables and constants are ReadOnly down to the loops.
// Only memory that belongs to the program, and memory of a result that has no other owner, is Writable.
#pragma once
#include <cstring>

#include "compile/ir/ids.h"
#include "core/storage.h"

namespace tapedeck::compiled {

/// Copies bytes between places that do not overlap. Most are those of one number.
inline void copy_bytes(const std::byte* from, std::byte* to, std::int64_t bytes) {
  if (bytes == 4)
    std::memcpy(to, from, 4);
  else if (bytes == 8)
    std::memcpy(to, from, 8);
  else if (bytes == 1)
    *to = *from;
  else if (bytes > 0)
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

class ReadOnly {
 public:
  ReadOnly() = default;
  explicit ReadOnly(const std::byte* p) : p_(p) {}
  const std::byte* get() const { return p_; }
  ReadOnly after(std::int64_t bytes) const { return ReadOnly(p_ + bytes); }

 private:
  const std::byte* p_ = nullptr;
};

class Writable {
 public:
  Writable() = default;
  std::byte* get() const { return p_; }
  operator ReadOnly() const { return ReadOnly(p_); }
  Writable after(std::int64_t bytes) const { return Writable(p_ + bytes); }

 private:
  friend class Arena;
  friend class OutputSlot;
  explicit Writable(std::byte* p) : p_(p) {}
  std::byte* p_ = nullptr;
};

/// Memory that belongs to the replays of a program; created with zeros.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::int64_t bytes);
  std::int64_t size() const { return memory_.defined() ? memory_.size() : 0; }
  Writable at(std::int64_t offset) const;
  /// A tensor of the given spec that keeps the arena alive. Its address is to be set by the caller.
  Tensor view(const Spec& spec) const;

 private:
  Tensor memory_;
};

/// A tensor that a call allocates for a result.
class OutputSlot {
 public:
  /// Sets x to a tensor of the given spec under a new id: moves *given if it has this spec and no other
  /// owner, otherwise allocates.
  OutputSlot(Tensor& x, Tensor* given, const Spec& spec);
  /// The memory of a result that was allocated before.
  explicit OutputSlot(Tensor& x);
  Writable memory() const { return memory_; }

 private:
  Writable memory_;
};

/// The memory of each value of a program: for reading, and, if it may be written, also for writing.
struct Memory {
  explicit Memory(std::size_t values) : read(values), write(values) {}
  void bind(ValueId v, ReadOnly m) { read[v] = m; }
  void bind(ValueId v, Writable m) { read[v] = m, write[v] = m; }

  IdVector<ValueId, ReadOnly> read;
  IdVector<ValueId, Writable> write;
};

}   // namespace tapedeck::compiled
