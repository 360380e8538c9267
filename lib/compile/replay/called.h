// Ops whose attributes are programs. A replay runs these in memory of its own.
#pragma once
#include <memory>
#include <span>

#include "tapedeck/op.h"

namespace tapedeck::compiled {

/// A call of programs, with the memory that it needs. It serves one call at a time.
class PreparedCall {
 public:
  virtual ~PreparedCall() = default;
  /// Does what the op's kernel does.
  virtual void run(Refs x, std::span<Tensor> y) = 0;
};

/// The programs of an op. The specs of its outputs do not depend on numbers.
class CalledPrograms {
 public:
  virtual ~CalledPrograms() = default;
  virtual std::unique_ptr<PreparedCall> prepare() const = 0;
  /// The memory of a prepared call.
  virtual std::int64_t arena_bytes() const = 0;
};

/// The attributes of such an op.
struct CallAttrs {
  std::shared_ptr<const CalledPrograms> programs;
};

/// The programs of an op with these attributes; null if they are others.
inline const CalledPrograms* called_programs(const Attrs& attrs) {
  return attrs.type == &kAttrsType<CallAttrs> ? static_cast<const CallAttrs*>(attrs.data)->programs.get()
                                              : nullptr;
}

}   // namespace tapedeck::compiled
