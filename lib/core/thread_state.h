// What each thread keeps, in one thread_local so that an op looks it up once.
#pragma once
#include <cstdint>

#include "tapedeck/dtype.h"

namespace tapedeck {

class Communicator;
class Observer;
class Recorder;
struct RecordingScope;
class VariableNotes;
struct BufferCache;

struct ThreadState {
  struct Free {
    Free* next;
  };
  Free* free_blocks = nullptr;
  std::uint32_t free_block_count = 0;
  bool registered = false;        // its memory will be passed on when it ends
  bool ended = false;             // it has been: cache nothing any more
  bool inside_parallel = false;   // it runs a piece of a parallel_for
  DType number_dtype =
      DType::f32;   // of numbers with no tensor beside them; a rule's dtype while it is recorded
  BufferCache* buffers = nullptr;
  std::uint64_t next_id = 0, end_id = 0;
  Recorder* innermost = nullptr;      // what records now, innermost first
  RecordingScope* scopes = nullptr;   // what waits while a scope records less
  Recorder* alive = nullptr;          // every recorder that tensors of this thread may be tracked by
  std::uint32_t alive_count = 0;
  VariableNotes* notes = nullptr;         // innermost watcher of variables
  Observer* observer = nullptr;           // innermost of what debugs and measures
  Communicator* communicator = nullptr;   // where the thread is one of many replicas, or waits for them
};
static_assert(sizeof(ThreadState) <= 128);

// Constant-initialised and trivially destructible: no guard, no wrapper call. initial-exec: no
// __tls_get_addr; the library's thread-local data must then stay within a few hundred bytes, or dlopen of it
// fails, so what is large hangs on a pointer.
extern constinit thread_local ThreadState thread_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

}   // namespace tapedeck
