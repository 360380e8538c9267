// The library's state of each thread, in one thread_local, so that an op looks it up once.
#pragma once
#include <cstdint>
#include <optional>

#include "tapedeck/dtype.h"

namespace tapedeck {

class Communicator;
class Observer;
class Recorder;
struct RecordingScope;
class Trace;
class VariableNotes;
struct BufferCache;

struct ThreadState {
  struct Free {
    Free* next;
  };
  Free* free_blocks = nullptr;
  std::uint32_t free_block_count = 0;
  bool registered = false;        // a handler releases its memory when it ends
  bool ended = false;             // the handler has run: nothing is cached any more
  bool inside_parallel = false;   // it runs a piece of a parallel_for
  /// The dtype of operands that are plain numbers if no operand is a tensor; set while a rule runs as ops.
  std::optional<DType> number_dtype = {};
  BufferCache* buffers = nullptr;
  std::uint64_t next_id = 0, end_id = 0;
  Recorder* innermost = nullptr;      // top of the stack of recorders
  RecordingScope* scopes = nullptr;   // innermost scope that has replaced this stack
  Recorder* alive = nullptr;          // list of all recorders of this thread, on the stack or not
  std::uint32_t alive_count = 0;
  VariableNotes* notes = nullptr;         // innermost VariableWatcher
  Observer* observer = nullptr;           // innermost observer of ops and rules
  Trace* trace = nullptr;                 // records a function; else null
  Communicator* communicator = nullptr;   // set if the thread is a replica, or runs replicas
  std::uint64_t replica = 0;              // Communicator::number() of the replica
};
static_assert(sizeof(ThreadState) <= 128);

// Constant-initialised and trivially destructible: no guard, no wrapper call. initial-exec: no
// __tls_get_addr; the library's thread-local data must then stay within a few hundred bytes, or dlopen of it
// fails, so large state is behind a pointer.
extern constinit thread_local ThreadState thread_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

}   // namespace tapedeck
