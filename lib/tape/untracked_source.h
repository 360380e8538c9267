// Why a tape does not track a source.
#pragma once
#include "tape/tape.h"

namespace tapedeck {

/// The reason, as a clause for messages: "the source was not watched …". Precondition: the tape does not
/// track the source.
inline const char* why_untracked(const Tape& tape, const Source& source) {
  const auto v = source.variable();
  if (!is_trainable(tensor_of(source).dtype()))
    return "the source has integers or bools, which have no derivative";
  if (!v)
    return "the source was not watched before its use, nor computed from a watched tensor while the tape "
           "recorded; watch it before it is used";
  if (!v->trainable())
    return "the source is a variable that is not trainable; watch it before it is read, or make it trainable";
  if (!tape.options().watch_accessed_variables)
    return "the source is a variable, and the options of this tape say not to watch variables automatically; "
           "watch it before it is read";
  return "the source is a variable that was not read while the tape recorded on its thread: a value that was "
         "read "
         "before, while recording was stopped or on another thread, is a constant; read it under the tape";
}

}   // namespace tapedeck
