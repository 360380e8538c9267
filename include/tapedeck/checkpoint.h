// Checkpoints: the state of a training run in a file, from which it goes on as if it had not stopped.
#pragma once
#include <vector>

#include "tapedeck/ops/random.h"
#include "tapedeck/safetensors.h"
#include "tapedeck/variable.h"

namespace tapedeck {

class Optimizer;

enum class RestoreMode {
  strict,     // the file has what was added, and nothing else
  partial,    // what the file has in the same dtype and shape; the rest stays as it is
  deferred,   // the same, and what was not added yet gets its value when it is
};

/// Names, and for each that differs what the file has and what is here.
struct RestoreReport {
  std::vector<std::string> restored;
  std::vector<std::string> missing;     // added, but not in the file
  std::vector<std::string> extra;       // in the file, but not added; deferred: waiting
  std::vector<std::string> different;   // of another dtype or shape
  Metadata metadata;
};

/// What belongs to a training run, by name. Variables are kept alive; all else that is added must outlive the
/// checkpoint and stay where it is. Not to be used from several threads at once.
class TAPEDECK_EXPORT Checkpoint {
 public:
  Checkpoint();
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;

  /// Each throws ArgumentError for a name that is taken. Where a deferred restore left a value of that name,
  /// it is assigned at once; FileError where that is of another dtype or shape, and nothing is added.
  void add(const std::string& name, const Variable& variable);
  /// Its numbers, as name/iterations, and the slots of all variables of the checkpoint, as
  /// name/variable/slot, which need not be there yet. Hyperparameters are the program's own.
  void add(const std::string& name, Optimizer& optimizer);
  /// An undefined tensor takes what the file has, of any dtype and shape.
  void add(const std::string& name, Tensor& tensor);
  void add(const std::string& name, random::Key& key);
  void add(const std::string& name, double& number);
  void add(const std::string& name, std::int64_t& number);
  /// Anything else that can be told as a tensor. `read` gives its present state, an undefined tensor where
  /// there is none; what it gives for one and the same thing has one dtype and shape. `write` takes what
  /// `read` may give; where it throws, what a restore has written before is written back.
  void add(const std::string& name, std::function<Tensor()> read, std::function<void(const Tensor&)> write);

  /// Writes everything to a file in the safetensors format. The file takes the place of one that was there
  /// when all of it is on the disk: whatever happens before, the old one stays whole. Throws ArgumentError
  /// for what is undefined and where an optimizer has slots of a variable that was not added, FileError where
  /// the file cannot be written.
  void save(const std::string& path, const Metadata& metadata = {}) const;

  /// Reads it back. Throws FileError, and leaves everything as it was, where the file cannot be read or is
  /// damaged and, if strict, where it does not match; the message lists what is missing, extra and different.
  /// Slots that a strict restore does not find in the file begin anew.
  RestoreReport restore(const std::string& path, RestoreMode mode = RestoreMode::strict);

  /// Names of the values of deferred restores that wait for what they belong to. Of several files the last
  /// one's value counts.
  std::vector<std::string> waiting() const;
  /// Forgets them.
  void drop_waiting();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct CheckpointFolderOptions {
  std::int64_t keep_last = 5;   // 0: all
  std::string prefix = "step-";
};

/// The checkpoints of one run: files such as step-100.safetensors in one folder.
class TAPEDECK_EXPORT CheckpointFolder {
 public:
  /// Makes the folder when it is needed. Throws ArgumentError for a negative keep_last and for a prefix with
  /// a slash.
  explicit CheckpointFolder(std::string folder, CheckpointFolderOptions options = {});

  /// Saves the checkpoint of a step, 0 or more, then removes all but the last `keep_last` and what killed
  /// processes have left. Returns the path.
  std::string save(const Checkpoint& checkpoint, std::int64_t step, const Metadata& metadata = {}) const;
  /// The path of the highest step; none where there is no checkpoint.
  std::optional<std::string> latest() const;
  /// The steps that there are, ascending.
  std::vector<std::int64_t> steps() const;
  std::string path_of(std::int64_t step) const;

 private:
  std::string folder_;
  CheckpointFolderOptions options_;
};

}   // namespace tapedeck
