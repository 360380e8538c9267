// Encodes Code as instructions of x86-64.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "compile/machine/machine_code.h"

namespace tapedeck::compiled {

/// Position-independent code of a function like MachineCode::run, which begins at `entry`. To be copied to a
/// multiple of 64. It has no unwind information: functions that it calls must not throw.
struct EmittedCode {
  std::unique_ptr<std::byte[]> memory;   // of `bytes`
  std::span<const std::byte> bytes;
  std::size_t entry;
};
EmittedCode emit(const Code& code, const CodePlaces& places, const VectorSet& set);

}   // namespace tapedeck::compiled
