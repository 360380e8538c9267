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
  bool registered = false;        // its memory is passed on or freed when it ends
  bool ended = false;             // that has happened: cache nothing any more
  bool inside_parallel = false;   // it runs a piece of a parallel_for
  /// Of numbers with no tensor beside them; the dtype of a rule while it runs as ops.
  std::optional<DType> number_dtype = {};
  BufferCache* buffers = nullptr;
  std::uint64_t next_id = 0, end_id = 0;
  Recorder* innermost = nullptr;      // top of the stack of recorders
  RecordingScope* scopes = nullptr;   // innermost scope that has replaced this stack
  Recorder* alive = nullptr;          // list of all recorders of this thread, on the stack or not
  std::uint32_t alive_count = 0;
  VariableNotes* notes = nullptr;         // innermost VariableWatcher
  Observer* observer = nullptr;           // innermost observer of ops and rules
  Trace* trace = nullptr;                 // of the function that is recorded
  Communicator* communicator = nullptr;   // set where the thread is a replica, or runs replicas
  std::uint64_t replica = 0;   // where it shares variables with other replicas: its number among all
};
static_assert(sizeof(ThreadState) <= 128);

// Constant-initialised and trivially destructible: no guard, no wrapper call. initial-exec: no
// __tls_get_addr; the library's thread-local data must then stay within a few hundred bytes, or dlopen of it
// fails, so large state is behind a pointer.
extern constinit thread_local ThreadState thread_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

}   // namespace tapedeck
