// Checkpoints: save the state of a training run to a file and resume from it with identical results.
#pragma once
#include <vector>

#include "tapedeck/ops/random.h"
#include "tapedeck/safetensors.h"
#include "tapedeck/variable.h"

namespace tapedeck {

class Optimizer;

enum class RestoreMode {
  strict,     // the file must contain exactly the added names
  partial,    // restores what the file has in the same dtype and shape; keeps the rest unchanged
  deferred,   // as partial; values of names not yet added are assigned when these are added
};

/// Names of values. Entries of `different` also describe the value in the file and that in the checkpoint.
struct RestoreReport {
  std::vector<std::string> restored;
  std::vector<std::string> missing;     // added, but not in the file
  std::vector<std::string> extra;       // in the file, but not added; deferred: pending
  std::vector<std::string> different;   // of another dtype or shape
  Metadata metadata;
};

/// The named state of a training run. The checkpoint keeps variables alive; everything else that is added
/// must outlive it and must not move. Not thread-safe.
class TAPEDECK_EXPORT Checkpoint {
 public:
  Checkpoint();
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;

  /// Each throws ArgumentError if the name is already in use. If a deferred restore has a pending value of
  /// that name, it is assigned immediately; throws FileError, and adds nothing, if its dtype or shape
  /// differs.
  void add(const std::string& name, const Variable& variable);
  /// Adds the optimizer's counters as name/iterations and the slots of all variables of the checkpoint as
  /// name/variable/slot; slots need not exist yet. Hyperparameters are not saved.
  void add(const std::string& name, Optimizer& optimizer);
  /// If `tensor` is undefined, restore accepts a value of any dtype and shape.
  void add(const std::string& name, Tensor& tensor);
  void add(const std::string& name, random::Key& key);
  void add(const std::string& name, double& number);
  void add(const std::string& name, std::int64_t& number);
  /// Adds other state that can be represented as a tensor. `read` returns the current state, or an undefined
  /// tensor if there is none; its dtype and shape must not change. `write` takes what `read` may return; if
  /// it throws, values that the restore has already written are reverted.
  void add(const std::string& name, std::function<Tensor()> read, std::function<void(const Tensor&)> write);

  /// Writes everything to a file in the safetensors format. An existing file is replaced only after the new
  /// one is completely on disk, so a failure leaves the old file intact. Throws ArgumentError if a value is
  /// undefined or an optimizer has slots of a variable that was not added, and FileError if the file cannot
  /// be written.
  void save(const std::string& path, const Metadata& metadata = {}) const;

  /// Restores from a file. Throws FileError, and changes nothing, if the file cannot be read or is damaged
  /// or, if strict, does not match; the message lists what is missing, extra and different. Slots that a
  /// strict restore does not find in the file are reset.
  RestoreReport restore(const std::string& path, RestoreMode mode = RestoreMode::strict);

  /// Names of pending values of deferred restores. If several files have a value of one name, the last
  /// restored one is used.
  std::vector<std::string> waiting() const;
  /// Discards the pending values.
  void drop_waiting();

 private:
  struct [[gnu::visibility("hidden")]] State;
  std::unique_ptr<State> state_;
};

struct CheckpointFolderOptions {
  std::int64_t keep_last = 5;   // number of checkpoints to keep; 0: all
  std::string prefix = "step-";
};

/// The checkpoints of one run: files such as step-100.safetensors in one folder.
class TAPEDECK_EXPORT CheckpointFolder {
 public:
  /// The folder is created when needed. Throws ArgumentError if keep_last is negative or the prefix contains
  /// a slash.
  explicit CheckpointFolder(std::string folder, CheckpointFolderOptions options = {});

  /// Saves the checkpoint of a step ≥ 0, then removes all but the last `keep_last` and temporary files left
  /// by killed processes. Returns the path.
  std::string save(const Checkpoint& checkpoint, std::int64_t step, const Metadata& metadata = {}) const;
  /// The path of the checkpoint with the highest step; none if there is no checkpoint.
  std::optional<std::string> latest() const;
  /// The existing steps in ascending order.
  std::vector<std::int64_t> steps() const;
  std::string path_of(std::int64_t step) const;

 private:
  std::string folder_;
  CheckpointFolderOptions options_;
};

}   // namespace tapedeck
