// In: plans. Out: their replays, which share memory.
#include "compile/replay/workspace.h"

#include <algorithm>

namespace tapedeck::compiled {
// If a program needs larger arenas, all replays are dropped, since they are bound to the old ones, and
// created again when needed.
Replay& Workspace::replay(std::size_t number, const Plan& plan) {
  if (number < replays_.size() && replays_[number]) return *replays_[number];
  if (arena_.size() < plan.arena_bytes || scratch_.size() < plan.scratch_bytes || arena_.size() == 0) {
    const std::int64_t arena = std::max(plan.arena_bytes, arena_.size()),
                       scratch = std::max(plan.scratch_bytes, scratch_.size());
    replays_.clear();
    arena_ = {}, scratch_ = {};
    arena_ = Arena(arena);
    scratch_ = Arena(scratch);
  }
  if (number >= replays_.size()) replays_.resize(number + 1);
  replays_[number] = std::make_unique<Replay>(plan, arena_, scratch_);
  return *replays_[number];
}

std::unique_ptr<Workspace> Workspaces::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    auto w = std::make_unique<Workspace>();
    idle_.reserve(count_ + 1);   // so that give() does not throw
    ++count_;
    return w;
  }
  std::unique_ptr<Workspace> w = std::move(idle_.back());
  idle_.pop_back();
  return w;
}
void Workspaces::give(std::unique_ptr<Workspace> w) noexcept {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(w));
}

}   // namespace tapedeck::compiled
