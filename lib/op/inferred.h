// What an op infers, which may depend on numbers: a trace hears of an error.
#pragma once
#include "core/trace.h"
#include "tapedeck/op.h"

namespace tapedeck {

template <class Infer> auto inferred(const Call& c, const Infer& infer) {
  try {
    return infer(c);
  } catch (...) {
    if (thread_state.trace && !c.op.forward.loops && c.op.meaning == Meaning::other)
      thread_state.trace->on_throw(c.op.name);
    throw;
  }
}

}   // namespace tapedeck
