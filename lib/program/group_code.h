// GroupCode: what a group does with each block, as instructions on the entries of a table of pointers.
#pragma once
#include "program/pass.h"
#include "program/schedule.h"

namespace tapedeck::program {

/// An entry of the table.
using Entry = std::uint32_t;

/// What groups compute by themselves, of an operand a or of a and b, with the last result in vector
/// registers. Those that are named after a partial give a times it, at b.
enum class Arithmetic : std::uint8_t {
  add,
  sub,
  mul,
  div,
  maximum,
  minimum,
  of_square,
  of_sqrt,
  of_log,
  of_div_in_a,
  of_tanh,
  of_sigmoid,
  neg,   // from here on: of one operand
  sqrt,
  exp,
  log,
  tanh,
  sigmoid,
  none
};
constexpr bool has_one_operand(Arithmetic op) { return op >= Arithmetic::neg; }
constexpr bool is_long(Arithmetic op) { return op >= Arithmetic::exp; }   // tens of machine instructions

/// What may follow a product within its instruction: the sum of the product and c, or the difference.
enum class Then : std::uint8_t { add, sub, sub_from, none };

/// Where an operand is: in vector registers; in memory, an element for each of the block, or one for all.
enum class Form : std::uint8_t { held, moving, single };

struct GroupInstruction {
  enum class Kind : std::uint8_t {
    end,
    pause,       // begins a new chain of handlers, since not all compilers make jumps of their calls
    call,        // the loop of calls[b]
    copy,        // a to y; the one element of a, where b is 1
    fetch,       // those elements of a that view b selects, to y
    widen,       // a, bytes of bools, to y
    narrow,      // a to y, bytes of bools
    sum,         // adds a to sum b
    held_sum,    // the same of the last result
    arithmetic   // from here on; in the end, products with what follows them
  };
  std::uint16_t code;    // of the handler
  bool stores = false;   // arithmetic, fetch: y is written; else only the next instruction reads the result
  Entry a = 0, b = 0, y = 0, c = 0;
};

constexpr std::uint16_t code_of(GroupInstruction::Kind kind) { return static_cast<std::uint16_t>(kind); }
constexpr std::uint16_t code_of(Arithmetic op, Form a, Form b) {
  return static_cast<std::uint16_t>(code_of(GroupInstruction::Kind::arithmetic) + static_cast<int>(op) * 9 +
                                    static_cast<int>(a) * 3 + static_cast<int>(b));
}
/// Of a b and then c, which is in memory.
constexpr std::uint16_t code_of(Then then, Form a, Form b, Form c) {
  const int forms = (static_cast<int>(a) * 3 + static_cast<int>(b)) * 2 + (c == Form::single);
  return static_cast<std::uint16_t>(code_of(Arithmetic::none, Form::held, Form::held) +
                                    static_cast<int>(then) * 18 + forms);
}
inline constexpr std::uint16_t kCodes = code_of(Then::none, Form::held, Form::held, Form::moving);

/// The loop of a map kernel: operands, then a result; or of a vjp kernel: x..., y, dy, then a result for
/// each x.
struct GroupCall {
  bool is_pull = false;
  std::uint8_t operands = 0;
  std::uint16_t moves = 0;   // bit i: operand i has an element for each of the block; else one for all
  kernels::Put put[kernels::kFusedInputs] = {};
  std::uint32_t first = 0;    // of GroupCode::entries: the operands and results
  void (*loop)() = nullptr;   // a MapLoop or VjpLoop of the dtype of the group
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
  std::vector<GroupInstruction> instructions;   // the last one is Kind::end
  std::vector<GroupCall> calls;
  std::vector<Entry> entries;   // of the calls
  std::vector<kernels::StridedView> views;
  std::vector<Sum> sums;
  std::vector<ValueId> reads, writes;
};

GroupCode make_group_code(const Program& p, const ProgramStep& step, const std::vector<bool>& kept);

}   // namespace tapedeck::program
