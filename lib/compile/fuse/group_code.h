// GroupCode: what a group does with each block, as instructions on two tables of pointers: what is read, and
// what is written. Arguments, variables and constants stand in the first alone.
#pragma once
#include "compile/fuse/fusible.h"
#include "compile/fuse/schedule.h"

namespace tapedeck::compiled {

/// An entry of one of the two tables.
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
  Entry a = 0, b = 0, c = 0;   // of the table of what is read
  Entry y = 0;                 // of the table of what is written
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
  bool is_vjp = false;
  std::uint8_t operands = 0;
  std::uint16_t moves = 0;   // bit i: operand i has an element for each of the block; else one for all
  kernels::Put put[kernels::kFusedInputs] = {};
  std::uint32_t first = 0;    // of GroupCode::entries: the operands, then the results
  void (*loop)() = nullptr;   // a MapLoop or VjpLoop of the dtype of the group
};

/// Elements of a value in memory, from the first that is read on.
struct Elements {
  ValueId of;
  std::int64_t first;
};

struct GroupCode {
  /// What is read: zeros, which stand for what is not; registers; single elements, as vectors of copies;
  /// elements in memory, and what the group writes there; bytes of bools; memory that views select from. What
  /// is written: registers, elements and bytes. Pointers to elements and bytes move from block to block.
  std::uint32_t registers = 0;
  std::vector<Elements> singles, streams, bytes, viewed;
  std::vector<ValueId> results, bool_results;
  std::vector<bool> single_bools;   // of the singles: it is one byte

  Entry first_single() const { return 1 + registers; }
  Entry first_stream() const { return first_single() + count(singles); }
  Entry first_result() const { return first_stream() + count(streams); }   // of what is read
  Entry first_bytes() const { return first_result() + count(results); }
  Entry first_viewed() const { return first_bytes() + count(bytes); }
  Entry size() const { return first_viewed() + count(viewed); }
  Entry written() const { return registers + count(results) + count(bool_results); }

  /// How a sum adds up, which is how the op or the vjp kernel does.
  enum class Order : std::uint8_t { full, vjp, rows };
  struct Sum {
    ValueId to;   // none: nothing reads it
    Order order;
    bool mean = false;
    RowSum rows = {1, 1};
  };

  Pass pass;
  std::vector<GroupInstruction> instructions;   // the last one is Kind::end
  std::vector<GroupCall> calls;
  std::vector<Entry> entries;   // of the calls
  std::vector<kernels::StridedView> views;
  std::vector<Sum> sums;
  std::vector<ValueId> reads, writes;   // of memory; each once

 private:
  template <class T> static Entry count(const std::vector<T>& list) {
    return static_cast<Entry>(list.size());
  }
};

/// `kept`: values that must be in memory after the group.
GroupCode make_group_code(const Program& p, const Passes& passes, const Step& step,
                          const IdVector<ValueId, bool>& kept);

}   // namespace tapedeck::compiled
