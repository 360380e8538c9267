// Group: elementwise nodes, and sums of what they compute, in one pass over blocks of elements. What only
// nodes of the group read stays in registers: scratch memory of one block. Results have the bits that the
// nodes give one after the other, for any number of threads.
#pragma once
#include "program/group_code.h"

namespace tapedeck::program {

class Group {
 public:
  /// `kept`: values that must be in memory after the group, since something outside of it (or the caller)
  /// reads them; the others stay in registers.
  Group(const Program& p, const ProgramStep& step, const std::vector<bool>& kept);

  /// Values that the group reads from, and writes to, memory.
  std::span<const ValueId> reads() const { return code_.reads; }
  std::span<const ValueId> writes() const { return code_.writes; }
  /// memory[v]: the first byte of value v's elements, padded to 64 bytes; a value of one element is *not*
  /// splat. scratch: scratch_bytes() aligned to 64. Writes may cover the padding.
  void run(std::byte* const* memory, std::byte* scratch) const;
  std::int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  template <class T> struct Run;

  GroupCode code_;
  std::int64_t piece_;         // elements that one thread runs over at once
  std::int64_t piece_bytes_;   // of scratch, for each piece
  std::int64_t scratch_bytes_;
};

}   // namespace tapedeck::program
