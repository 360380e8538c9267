// Group: elementwise nodes, and sums of their results, fused into one pass over blocks of elements. Values
// that only nodes of the group read stay in registers, which are scratch memory of one block. Results have
// the same bits as those of the nodes run one after the other, for any number of threads.
#pragma once
#include <optional>
#include <span>

#include "compile/fuse/cursor.h"
#include "compile/fuse/group_code.h"

namespace tapedeck::compiled {

/// The pieces of a group, each of which one thread runs at a time, and its scratch memory. This consists of
/// areas, one for each piece that is at work, and of the partial sums of all pieces. An area holds the two
/// tables, the registers, the single elements, the sums in progress and the cursors. Lengths are in elements,
/// offsets and sizes in bytes.
struct GroupLayout {
  static constexpr std::int64_t most_areas = 64;
  /// A sum: the length of its parts, their number, and the offset of their sums in scratch memory.
  struct Parts {
    std::int64_t elements, count, offset;
  };
  /// The repeated row that a piece lays out for a view, and its offset in the area.
  struct LaidOut {
    RepeatedRow row;
    std::int64_t offset;
  };

  std::int64_t piece;           // the length of a piece
  std::int64_t block, stride;   // the length of a block, at most; from a register to the next one
  std::int64_t to, registers, sums, cursors, area;   // offsets in an area, and its size
  std::int64_t areas, all;                           // their number; the size of all scratch memory
  std::vector<Parts> parts;                          // for each sum
  std::vector<LaidOut> rows;                         // for each view
};

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
  /// The instructions that run.
  const GroupCode& running() const { return machine_ ? *machine_ : code_; }
  const GroupLayout& layout() const { return layout_; }
  std::int64_t scratch_bytes() const { return layout_.all; }

 private:
  Group(GroupCode code, const Program& p);
  GroupLayout make_layout() const;

  GroupCode code_;
  std::optional<GroupCode> machine_;   // the same with machine code
  GroupLayout layout_;
};

}   // namespace tapedeck::compiled
