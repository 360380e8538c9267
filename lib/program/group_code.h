// GroupCode: what a group does with each block, as instructions on the entries of a table of pointers.
#pragma once
#include "program/pass.h"
#include "program/schedule.h"

namespace tapedeck::program {

/// An entry of the table.
using Entry = std::uint32_t;

/// The arithmetic that groups do by themselves, the last result in vector registers, and where an operand of
/// it is: there, an element for each of the block, or one for all.
enum class Arithmetic : std::uint8_t { add, sub, mul, div, neg, none };
enum class Form : std::uint8_t { held, moving, single };
inline constexpr std::uint8_t kNoArithmetic = 255;
constexpr std::uint8_t arithmetic_code(Arithmetic op, Form a, Form b) {
  return static_cast<std::uint8_t>(static_cast<int>(op) * 9 + static_cast<int>(a) * 3 + static_cast<int>(b));
}

struct GroupInstruction {
  enum class Kind : std::uint8_t {
    map,      // the loop of a map kernel: operands, then a result
    pull,     // the loop of a vjp kernel: x..., y, dy, then a result for each x
    copy,     // an operand, a result
    fetch,    // memory, a result: those elements that view `at` selects
    widen,    // bytes of bools, a result
    narrow,   // an operand, bytes of bools
    sum,      // an operand, which is added to sum `at`
  };
  Kind kind;
  std::uint8_t operands = 0;
  std::uint16_t moves = 0;   // bit i: operand i has an element for each of the block; else one for all
  kernels::Put put[kernels::kFusedInputs] = {};
  std::uint32_t first = 0;   // of GroupCode::entries: the operands and results
  std::uint32_t at = 0;
  std::uint8_t code = kNoArithmetic;   // map: arithmetic_code of what the loop does
  bool stores = true;                  // else only the next instruction reads the result, where it is held
  void (*loop)() = nullptr;            // a MapLoop or VjpLoop of the dtype of the group
};

struct GroupCode {
  /// The table: entry 0 is zeros, which stand for what is not read; then come registers; single elements, as
  /// vectors of copies; elements and bytes of bools in memory, whose pointers move from block to block; and
  /// memory that views select from.
  std::uint32_t registers = 0;
  std::vector<Elements> singles, streams, bytes, viewed;
  std::uint32_t size() const {
    return 1 + registers +
           static_cast<std::uint32_t>(singles.size() + streams.size() + bytes.size() + viewed.size());
  }
  std::vector<bool> single_bools;   // of the singles: it is one byte

  /// How a sum adds up, which is how the op or the vjp kernel does.
  enum class Order : std::uint8_t { full, pull, rows };
  struct Sum {
    ValueId to;   // none: nobody reads it
    Order order;
    bool mean = false;
    RowSum rows = {1, 1};
  };

  NodePass pass;
  std::vector<GroupInstruction> instructions;
  std::vector<Entry> entries;
  std::vector<kernels::StridedView> views;
  std::vector<Sum> sums;
  std::vector<ValueId> reads, writes;
};

GroupCode make_group_code(const Program& p, const ProgramStep& step, const std::vector<bool>& kept);

}   // namespace tapedeck::program
