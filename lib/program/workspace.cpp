// In: plans. Out: their replays, in memory that they share.
#include "program/workspace.h"

#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "core/storage.h"

namespace tapedeck::program {
namespace {

bool fits(const Tensor& memory, std::int64_t bytes) { return memory.defined() && memory.size() >= bytes; }

Tensor memory_of(std::int64_t bytes) {
  Tensor t = allocate({DType::u8, {std::max<std::int64_t>(bytes, 4096)}});   // more than lies in a handle
  std::memset(t.raw(), 0, static_cast<std::size_t>(t.nbytes()));
  return t;
}

}   // namespace

// Where a program needs more, the replays that are bound to less are made again when they are called again.
Replay& Workspace::replay(std::size_t number, const Plan& plan) {
  if (number < replays_.size() && replays_[number]) return *replays_[number];
  if (!fits(arena_, plan.arena_bytes) || !fits(scratch_, plan.scratch_bytes)) {
    replays_.clear();
    arena_ = {}, scratch_ = {};
    arena_ = memory_of(plan.arena_bytes);
    scratch_ = memory_of(plan.scratch_bytes);
  }
  if (number >= replays_.size()) replays_.resize(number + 1);
  replays_[number] = std::make_unique<Replay>(plan, arena_, scratch_);
  return *replays_[number];
}

std::unique_ptr<Workspace> Workspaces::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    auto w = std::make_unique<Workspace>();
    idle_.reserve(count_ + 1);   // so that giving it back does not throw
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

}   // namespace tapedeck::program
