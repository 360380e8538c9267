// Workspaces: the memory of replays. The programs of a function share a workspace, since a thread runs one
// program at a time.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "compile/replay/replay.h"

namespace tapedeck::compiled {

/// Memory for the replays of one thread at a time.
class Workspace {
 public:
  /// The replay of program `number` of the function, which has this plan.
  Replay& replay(std::size_t number, const Plan& plan);

 private:
  Arena arena_, scratch_;
  std::vector<std::unique_ptr<Replay>> replays_;   // by number; null until it is needed
};

/// The workspaces of a function: one for each concurrent call.
class Workspaces {
 public:
  std::unique_ptr<Workspace> take();
  void give(std::unique_ptr<Workspace> w) noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
  std::size_t count_ = 0;
};

class BorrowedWorkspace {
 public:
  explicit BorrowedWorkspace(Workspaces& all) : all_(all), workspace_(all.take()) {}
  ~BorrowedWorkspace() { all_.give(std::move(workspace_)); }
  BorrowedWorkspace(const BorrowedWorkspace&) = delete;
  Workspace* operator->() const { return workspace_.get(); }

 private:
  Workspaces& all_;
  std::unique_ptr<Workspace> workspace_;
};

}   // namespace tapedeck::compiled
