// Group: elementwise nodes, and sums of their results, fused into one pass over blocks of elements. Values
// that only nodes of the group read stay in registers, which are scratch memory of one block. Results have
// the same bits as those of the nodes run one after the other, for any number of threads.
#pragma once
#include <optional>
#include <span>

#include "compile/fuse/cursor.h"
#include "compile/fuse/group_code.h"
#include "compile/fuse/memory.h"

namespace tapedeck::compiled {

class Group {
 public:
  /// `kept`: values that must be in memory after the group, since something outside of it reads them; others
  /// stay in registers.
  Group(const Program& p, const Passes& passes, const Step& step, const IdVector<ValueId, bool>& kept);
  /// Runs `machine` in place of `code`, of which it is made, if it is given.
  explicit Group(GroupCode code, std::optional<GroupCode> machine = {});

  /// The values that the group reads from memory, and those that it writes to memory.
  std::span<const ValueId> reads() const { return code_.reads; }
  std::span<const ValueId> writes() const { return code_.writes; }
  /// The instructions, before machine code is made of them.
  const GroupCode& code() const { return code_; }
  /// Runs the group. The memory of values must be padded to a multiple of 64 bytes, since the group may read
  /// and write up to the next 64-byte boundary; values of one element are not broadcast in memory. scratch:
  /// scratch_bytes() bytes, aligned to 64.
  void run(const Memory& memory, Writable scratch) const;
  std::int64_t scratch_bytes() const { return layout_.all; }

 private:
  template <class T> struct Run;
  /// The parts of a sum: the elements per part, the number of parts, and the offset of the partial sums in
  /// scratch, in bytes.
  struct Parts {
    std::int64_t elements, count, offset;
  };
  /// The repeated row that a piece lays out for a view, and its offset in the area, in bytes.
  struct LaidOut {
    RepeatedRow row;
    std::int64_t offset;
  };
  /// The layout of scratch memory, in bytes: offsets in an area, its size, and the size of all scratch.
  struct Layout {
    std::int64_t block, stride;   // in elements: of a block, at most; from a register to the next one
    std::int64_t to, registers, sums, cursors;
    std::int64_t areas, area, all;   // areas: how many there are
    std::vector<Parts> parts;        // for each sum
    std::vector<LaidOut> rows;       // for each view
  };

  Group(GroupCode code, const Program& p);
  void lay_out();
  const GroupCode& running() const { return machine_ ? *machine_ : code_; }

  GroupCode code_;
  std::optional<GroupCode> machine_;   // the same with machine code
  std::int64_t piece_;                 // the elements per piece, which one thread runs at a time
  Layout layout_;
};

}   // namespace tapedeck::compiled
