// Plan: how a program is replayed: which nodes run, in which steps, and where each value lies.
#pragma once
#include "compile/fuse/effects.h"
#include "compile/fuse/group.h"
#include "compile/fuse/schedule.h"

namespace tapedeck::compiled {

/// Where the elements of a value lie. Values share a place only where the planner lets them, which is in the
/// arena and where their lives do not meet.
struct Home {
  enum class In : std::uint8_t {
    registers,   // of a group; or nothing reads the value
    arena,       // at `offset`; small arguments, variables and returned tensors are copied there
    constants,   // at `offset`, a copy of a small constant
    borrowed,    // where the caller, the variable or the constant has it
    output,      // in a result of the function, which is allocated at each call
    returned,    // in a tensor that a kernel or an action returns at each call
  };
  In in = In::registers;
  std::int64_t offset = 0;
  bool held = false;   // read from a variable that changes before the last use
};

/// The steps from a value's definition to its last use. Before the first step: -1.
struct Life {
  std::int32_t first = -1, last = -1;
  bool is_used() const { return last >= 0; }
};

// Facts that the planner, the replay and the verifier need.

inline constexpr std::int64_t kSmallBytes = 64;   // what lies in the handle of a tensor
/// Whether a node returns tensors with memory of their own: it is a view, or made of ops.
bool returns_memory(const Node& n);
/// Bytes of a value in an arena: whole groups of 64, and one more, since parts of it begin anywhere.
std::int64_t padded_bytes(const Spec& spec);

struct Plan {
  explicit Plan(Program recorded);
  Plan(const Plan&) = delete;   // its passes refer to its program

  Program program;
  std::unique_ptr<const Passes> passes;
  Steps steps;
  IdVector<ValueId, Life> lives;
  IdVector<ValueId, Home> homes;
  std::vector<Group> groups;   // of the steps that are fused, in their order
  std::int64_t arena_bytes = 0, scratch_bytes = 0, constant_bytes = 0;
  /// What a verifier has found, of the program as it was recorded or rewritten, or of the plan. Such a plan
  /// must not be used, and may be there in part.
  std::optional<std::string> fault;

 private:
  void make();
};

/// Nodes whose results are needed.
IdVector<NodeId, bool> find_live(const Program& p);
IdVector<ValueId, Life> find_lives(const Program& p, const Steps& steps);
IdVector<ValueId, Home> find_homes(const Program& p, const Steps& steps,
                                   const IdVector<ValueId, Life>& lives);
/// Gives values in arenas their offsets.
void arrange(Plan& plan);

}   // namespace tapedeck::compiled
