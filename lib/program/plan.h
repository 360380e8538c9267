// Plan: how a program is replayed: which nodes run, in which steps, and where each value lies.
#pragma once
#include "program/group.h"
#include "program/pass.h"
#include "program/program.h"
#include "program/schedule.h"

namespace tapedeck::program {

/// Where the elements of a value lie.
enum class Memory : std::uint8_t {
  none,       // nothing reads it, or a group alone does
  arena,      // at `offset`
  copied,     // at `offset`, where a small argument, variable or returned tensor goes; of the memory of its
              // own that constants have, where a small constant goes
  given,      // an argument or the value of a variable, where the caller or the variable has it; a constant
  output,     // a result of the function, which is allocated at each call
  returned,   // a tensor that a kernel or an action returns at each call
};

struct Place {
  Memory memory = Memory::none;
  std::int64_t offset = 0;
  std::int32_t first = -1, last = -1;   // the steps from its definition to its last use
  bool held = false;                    // read from a variable that changes before its last use
};

struct Plan {
  explicit Plan(Program recorded);

  Program program;
  std::vector<bool> live;   // nodes
  std::vector<ProgramStep> steps;
  std::vector<Group> groups;   // of the steps that are fused, in their order
  std::vector<Place> places;   // of values that are no parts of others
  /// For these, itself and the values that are its elements, with where each begins, in elements.
  std::vector<std::vector<Elements>> parts;
  std::int64_t arena_bytes = 0, scratch_bytes = 0, constant_bytes = 0;

 private:
  void find_live();
  void find_uses();
  void use(ValueId v, std::int32_t step);
  void find_memory();
  void hold_reads();
  void make_groups();
  ValueId taken_over_by(ValueId v) const;
  void arrange();
};

/// Bytes of a value in an arena: whole groups of 64, and one more, since parts of it begin anywhere.
std::int64_t padded_bytes(const Spec& spec);

}   // namespace tapedeck::program
