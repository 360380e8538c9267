// GroupCode: the instructions that a group runs on each block. Operands and results are entries of two tables
// of pointers, one for reading and one for writing. Arguments, variables and constants are in the first table
// only.
#pragma once
#include "compile/fuse/fusible.h"
#include "compile/fuse/schedule.h"
#include "compile/machine/machine_code.h"

namespace tapedeck::compiled {

/// An index into one of the two tables.
using TableIndex = std::uint32_t;

struct GroupInstruction {
  enum class Kind : std::uint8_t {
    call,      // runs the loop of calls[b]
    machine,   // runs machine[b]
    copy,      // copies a to y; if b is 1, broadcasts the single element of a
    fetch,     // y is the elements of a that view b selects
    widen,     // converts a, bytes of bools, to numbers in y
    narrow,    // converts a to y, bytes of bools
    sum,       // adds a to sum b
  };
  Kind kind;
  TableIndex a = 0, b = 0;   // a: an entry of the table for reading
  TableIndex y = 0;          // an entry of the table for writing
};

/// A call of the loop of a map kernel, with entries for the operands and the result; or of a vjp kernel, with
/// entries for x..., y, dy, and a result for each x.
struct GroupCall {
  bool is_vjp = false;
  std::uint8_t operands = 0;
  std::uint16_t moves = 0;   // bit i: operand i has one element per element of the block, not a single one
  kernels::Put put[kernels::kFusedInputs] = {};
  std::uint32_t first = 0;      // index into GroupCode::entries: the operands, then the results
  void (*loop)() = nullptr;     // a MapLoop or VjpLoop of the dtype of the group
  void (*tracer)() = nullptr;   // the MapTracer or VjpTracer; null if it has none
};

/// Elements of a value in memory, from element `first` on.
struct Elements {
  ValueId of;
  std::int64_t first;
};

struct GroupCode {
  /// The table for reading has entries for: zeros, in place of operands that are not read; registers; single
  /// elements, broadcast to a vector; elements in memory; results of the group in memory; bytes of bools;
  /// memory from which views select. The table for writing: registers; results; bytes of bools. Pointers to
  /// elements, results and bytes advance from block to block. No other instruction writes to the register
  /// that a view is fetched to, since its entry for reading may point to the elements where they are.
  std::uint32_t registers = 0;
  std::vector<Elements> singles, streams, bytes, viewed;
  std::vector<ValueId> results, bool_results;
  std::vector<bool> single_bools;   // by single: whether it is a bool

  TableIndex first_single() const { return 1 + registers; }
  TableIndex first_stream() const { return first_single() + count(singles); }
  TableIndex first_result() const { return first_stream() + count(streams); }   // in the table for reading
  TableIndex first_bytes() const { return first_result() + count(results); }
  TableIndex first_viewed() const { return first_bytes() + count(bytes); }
  TableIndex size() const { return first_viewed() + count(viewed); }
  TableIndex written() const { return registers + count(results) + count(bool_results); }

  /// The order in which a sum is added up, which is that of the op or of the vjp kernel.
  enum class Order : std::uint8_t { full, vjp, rows };
  struct Sum {
    ValueId to;   // none if nothing reads it
    Order order;
    bool mean = false;
    RowSum rows = {1, 1};
  };

  Pass pass;
  std::int64_t operations = 0;   // the number of instructions before machine code replaces them
  std::vector<GroupInstruction> instructions;
  std::vector<GroupCall> calls;
  std::vector<std::shared_ptr<const MachineCode>> machine;
  VectorSet vectors = kVectors;      // of machine code
  std::vector<TableIndex> entries;   // the entries of the calls
  std::vector<kernels::StridedView> views;
  std::vector<Sum> sums;
  std::vector<ValueId> reads, writes;   // the values in memory, without duplicates

 private:
  template <class T> static TableIndex count(const std::vector<T>& list) {
    return static_cast<TableIndex>(list.size());
  }
};

/// `kept`: values that must be in memory after the group.
GroupCode make_group_code(const Program& p, const Passes& passes, const Step& step,
                          const IdVector<ValueId, bool>& kept);

}   // namespace tapedeck::compiled
