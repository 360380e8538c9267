// Memory of a replay, by what may be done with it: arguments, variables and constants are ReadOnly all the
// way down to the loops. What may be written is memory of the program's own, or of a result that nothing else
// has.
#pragma once
#include "compile/ir/ids.h"
#include "core/storage.h"

namespace tapedeck::compiled {

class ReadOnly {
 public:
  ReadOnly() = default;
  explicit ReadOnly(const std::byte* p) : p_(p) {}
  const std::byte* get() const { return p_; }

 private:
  const std::byte* p_ = nullptr;
};

class Writable {
 public:
  Writable() = default;
  std::byte* get() const { return p_; }
  operator ReadOnly() const { return ReadOnly(p_); }

 private:
  friend class Arena;
  friend class OutputSlot;
  explicit Writable(std::byte* p) : p_(p) {}
  std::byte* p_ = nullptr;
};

/// Memory that belongs to the replays of a program.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::int64_t bytes);
  std::int64_t size() const { return memory_.defined() ? memory_.size() : 0; }
  Writable at(std::int64_t offset) const;
  /// A tensor of that spec that keeps the arena alive, and has no memory yet.
  Tensor view(const Spec& spec) const;

 private:
  Tensor memory_;
};

/// A tensor that a call allocates for a result.
class OutputSlot {
 public:
  /// x becomes a tensor of that spec under a new id: the one that is given, if it fits and nothing else
  /// shares it, which is taken then; or a fresh one.
  OutputSlot(Tensor& x, Tensor* given, const Spec& spec);
  Writable memory() const { return memory_; }

 private:
  Writable memory_;
};

/// Where the values of a program lie: for each, memory to read, and the same to write where it may be.
struct Memory {
  explicit Memory(std::size_t values) : read(values), write(values) {}
  void bind(ValueId v, ReadOnly m) { read[v] = m; }
  void bind(ValueId v, Writable m) { read[v] = m, write[v] = m; }

  IdVector<ValueId, ReadOnly> read;
  IdVector<ValueId, Writable> write;
};

}   // namespace tapedeck::compiled
