// Free blocks that belong to no thread: they come from threads that have ended, or that free more tensors
// than they create. Blocks are parts of slabs, so they are never returned to the system, but reused by other
// threads.
#pragma once
#include "core/thread_state.h"

namespace tapedeck {

/// The most blocks that a thread returns or gets at once. This bounds the time of both, whatever the number
/// of blocks and threads.
inline constexpr std::uint32_t kBlockPortion = 256;

struct FreeBlocks {
  ThreadState::Free* first = nullptr;
  std::uint32_t count = 0;
};

/// One to kBlockPortion blocks.
void give_blocks(FreeBlocks blocks) noexcept;
/// take_blocks returns a portion, take_block a single block; nothing if there are no free blocks.
FreeBlocks take_blocks() noexcept;
ThreadState::Free* take_block() noexcept;

}   // namespace tapedeck
