// Free blocks that lie with no thread: of threads that have ended, and of those that free more tensors than
// they make. They come in slabs, so they never go back to the system, but to the next thread.
#pragma once
#include "core/thread_state.h"

namespace tapedeck {

/// What a thread gives and takes at once, at most. Both take a time that this bounds, however many blocks
/// and threads there are.
inline constexpr std::uint32_t kBlockPortion = 256;

struct FreeBlocks {
  ThreadState::Free* first = nullptr;
  std::uint32_t count = 0;
};

/// One to kBlockPortion blocks.
void give_blocks(FreeBlocks blocks) noexcept;
/// Some blocks, or one; none where there are none.
FreeBlocks take_blocks() noexcept;
ThreadState::Free* take_block() noexcept;

}   // namespace tapedeck
