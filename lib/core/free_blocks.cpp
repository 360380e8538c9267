#include "core/free_blocks.h"

#include <new>

#include "core/fork.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

namespace {

using Free = ThreadState::Free;

// The first block of a portion links to the others and to the next portion.
struct Portion : Free {
  Portion* next_portion;
  std::uint32_t count;

  bool is_full() const { return count == kBlockPortion; }
};
static_assert(sizeof(Portion) <= sizeof(detail::Block));

// Only portions at the front may be less than full, and no two adjacent ones of these would fit into one. So
// threads that return a few blocks each do not leave many small portions.
Portion* portions = nullptr;   // guarded by memory_lock

Portion* as_portion(Free* first, Portion* next_portion, std::uint32_t count) noexcept {
  Free* const next = first->next;
  return new (first) Portion{{next}, next_portion, count};
}

Free* last_of(Free* list) noexcept {
  while (list->next)
    list = list->next;
  return list;
}

void add_full(Free* first) noexcept {
  Portion*& before = portions && !portions->is_full() ? portions->next_portion : portions;
  before = as_portion(first, before, kBlockPortion);
}

void add_some(FreeBlocks blocks, Free* last) noexcept {
  if (!portions || portions->count + blocks.count > kBlockPortion) {
    portions = as_portion(blocks.first, portions, blocks.count);
  } else {
    last->next = portions;
    portions = as_portion(blocks.first, portions->next_portion, portions->count + blocks.count);
  }
}

}   // namespace

void give_blocks(FreeBlocks blocks) noexcept {
  if (blocks.count == kBlockPortion) {
    const std::lock_guard lock(memory_lock);
    add_full(blocks.first);
  } else {
    Free* const last = last_of(blocks.first);
    const std::lock_guard lock(memory_lock);
    add_some(blocks, last);
  }
}

FreeBlocks take_blocks() noexcept {
  const std::lock_guard lock(memory_lock);
  if (!portions) return {};
  Portion* const taken = portions;
  portions = taken->next_portion;
  return {taken, taken->count};
}

Free* take_block() noexcept {
  const std::lock_guard lock(memory_lock);
  if (!portions) return nullptr;
  Portion* const taken = portions;
  portions = taken->count == 1 ? taken->next_portion
                               : as_portion(taken->next, taken->next_portion, taken->count - 1);
  return taken;
}

}   // namespace tapedeck
