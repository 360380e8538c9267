// MachineCode: Code as a function of the processor, for x86-64 with AVX2 and FMA, or AVX-512.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "compile/machine/code.h"

namespace tapedeck::compiled {

/// Where the operands and the results of code are, as entries of two tables of pointers.
struct CodePlaces {
  std::vector<std::uint32_t> streams;   // by number of an operand; in the table for reading
  std::vector<std::uint32_t> results;   // by number of a result; in the table for writing
  /// The entry of single 0. A single is repeated for 64 bytes, and the next one follows.
  std::uint32_t first_single = 0;
  friend bool operator==(const CodePlaces&, const CodePlaces&) = default;
};

/// What machine code is made of, and shared by.
struct PlacedCode {
  Code code;   // from CodeBuilder::finish
  CodePlaces places;
  friend bool operator==(const PlacedCode&, const PlacedCode&) = default;
};

struct MachineCode {
  /// Computes the results for `bytes` bytes of each operand: a positive multiple of 64, or those of one
  /// vector if the code has one at a time at most. Results must not overlap operands.
  void (*run)(const void* const* from, void* const* to, std::int64_t bytes);
  std::shared_ptr<const std::byte> memory;   // of run
};

/// Whether machine code can be made for the processor that the library is built for, the environment has no
/// TAPEDECK_MACHINE_CODE=0, and the system has not refused memory for it.
bool makes_machine_code();
/// Makes machine code of each, or finds that of equal code. Empty if the system gives no memory for it, which
/// it warns of once. Precondition: makes_machine_code(), and the processor has the vectors of `set`.
std::vector<std::shared_ptr<const MachineCode>> machine_code(std::vector<PlacedCode> all,
                                                             const VectorSet& set = kVectors);

}   // namespace tapedeck::compiled
