// Group: elementwise nodes, and sums of what they compute, in one pass over blocks of elements. What only
// nodes of the group read stays in registers: scratch memory of one block. Results have the bits that the
// nodes give one after the other, for any number of threads.
#pragma once
#include "compile/fuse/cursor.h"
#include "compile/fuse/group_code.h"
#include "compile/fuse/memory.h"

namespace tapedeck::compiled {

class Group {
 public:
  /// `kept`: values that must be in memory after the group, since something outside of it (or the caller)
  /// reads them; the others stay in registers.
  Group(const Program& p, const Passes& passes, const Step& step, const IdVector<ValueId, bool>& kept)
      : Group(make_group_code(p, passes, step, kept)) {}
  explicit Group(GroupCode code);

  /// Values that the group reads from, and writes to, memory.
  std::span<const ValueId> reads() const { return code_.reads; }
  std::span<const ValueId> writes() const { return code_.writes; }
  const GroupCode& code() const { return code_; }
  /// Values lie in memory that is padded to 64 bytes; single elements are not broadcast there. May write up
  /// to the next 64-byte boundary. scratch: scratch_bytes() aligned to 64.
  void run(const Memory& memory, Writable scratch) const;
  std::int64_t scratch_bytes() const { return layout_.all; }

 private:
  template <class T> struct Run;
  /// The parts of a sum: the elements of each, how many there are, and the byte of scratch where their sums
  /// begin.
  struct Parts {
    std::int64_t elements, count, offset;
  };
  /// Of a view: the row that a piece lays out, from this byte of the piece's scratch on.
  struct LaidOut {
    RepeatedRow row;
    std::int64_t offset;
  };
  /// Of scratch. Bytes from the beginning of a piece's, then its size and that of all.
  struct Layout {
    std::int64_t to, registers, sums, cursors;
    std::int64_t piece, all;
    std::vector<Parts> parts;    // for each sum
    std::vector<LaidOut> rows;   // for each view
  };

  GroupCode code_;
  std::int64_t piece_;   // elements that one thread runs over at once
  Layout layout_;
};

}   // namespace tapedeck::compiled
