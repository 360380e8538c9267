// Plan: the schedule and the memory of a replay: which nodes run, in which steps, and where each value is
// stored.
#pragma once
#include "compile/fuse/effects.h"
#include "compile/fuse/group.h"
#include "compile/fuse/schedule.h"

namespace tapedeck::compiled {

/// Where the elements of a value are stored. Only values in the arena share memory, and only if their lives
/// do not overlap, or if a sum overwrites its first operand.
struct Home {
  enum class In : std::uint8_t {
    registers,   // of a group; also a value that nothing reads
    arena,       // at `offset`; small arguments, variables and returned tensors are copied into it
    constants,   // at `offset`: a copy of a small constant
    borrowed,    // in the memory of the argument, the variable or the constant
    output,      // in a result of the function, which each call allocates
    returned,    // in a tensor that a kernel or an action returns in each call
  };
  In in = In::registers;
  std::int64_t offset = 0;
  bool held = false;   // read from a variable that changes before the last use of the value
};

/// The steps of a value's definition and last use. -1: before the first step, or no use.
struct Life {
  std::int32_t first = -1, last = -1;
  bool is_used() const { return last >= 0; }
};

// Shared by the planner, the replay and the verifier.

inline constexpr std::int64_t kSmallBytes = 64;   // the size of the elements that a tensor's handle can hold
/// Whether a node returns tensors with memory that its kernel provides: it is a view, an op made of ops, or
/// an action.
bool returns_memory(const Node& n);
/// The bytes that a value takes in an arena: rounded up to a multiple of 64, plus 64, since accesses may
/// begin at any element.
std::int64_t padded_bytes(const Spec& spec);

struct Plan {
  explicit Plan(Program recorded);
  Plan(const Plan&) = delete;   // `passes` refers to `program`

  Program program;
  std::unique_ptr<const Passes> passes;
  Steps steps;
  IdVector<ValueId, Life> lives;
  IdVector<ValueId, Home> homes;
  std::vector<Group> groups;   // of the fused steps, in order
  std::int64_t arena_bytes = 0, scratch_bytes = 0, constant_bytes = 0;
  /// The rule that a verifier has found broken in the program, as recorded or rewritten, or in the plan. A
  /// plan with a fault must not be used, and may be incomplete.
  std::optional<std::string> fault;

 private:
  void make();
};

/// The nodes that must run, or whose results are needed.
IdVector<NodeId, bool> find_live(const Program& p);
IdVector<ValueId, Life> find_lives(const Program& p, const Steps& steps);
IdVector<ValueId, Home> find_homes(const Program& p, const Steps& steps,
                                   const IdVector<ValueId, Life>& lives);
/// Assigns offsets to the values in the arenas.
void arrange(Plan& plan);

}   // namespace tapedeck::compiled
