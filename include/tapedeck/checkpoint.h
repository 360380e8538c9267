// Checkpoints: save the state of a training run to a file and resume from it with identical results.
#pragma once
#include <concepts>
#include <optional>
#include <vector>

#include "tapedeck/named_variable.h"
#include "tapedeck/ops/random.h"
#include "tapedeck/owned.h"
#include "tapedeck/safetensors.h"
#include "tapedeck/saved_state.h"

namespace tapedeck {

/// An object that a Checkpoint can save, such as an Optimizer or a MovingAverage. prepare_restore checks a
/// state and changes nothing. It may also have
///   slot_names()           the slots that state() may have
///   slot_spec(v, slot)     the required dtype and shape of such a slot of v, if only one is possible
///   may_have(name)         whether state() has a tensor of this name at some times and not at others
template <class T>
concept HasState = requires(T& x, const T& constant, const SavedState& s) {
  { constant.state() } -> std::same_as<SavedState>;
  { x.prepare_restore(s) } -> std::same_as<Commit>;
};

/// How a restore treats names, dtypes and shapes that differ between file and checkpoint.
enum class RestoreMode {
  strict,     // the file must contain exactly the added names
  partial,    // restores values whose dtype and shape are the same in the file; leaves the others unchanged
  deferred,   // like partial, but values of names not yet added are assigned when these are added
};

/// Names of values. Entries of `different` also describe the value in the file and the value in the
/// checkpoint.
struct RestoreReport {
  std::vector<std::string> restored;
  std::vector<std::string> missing;     // added, but not in the file
  std::vector<std::string> extra;       // in the file, but not added; deferred: pending
  std::vector<std::string> different;   // the dtype, shape or kind of object differs
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
  /// Adds all variables of a list, such as nn::variables(network), as `name` + "/" + the name of the
  /// variable. If it throws, none is added.
  void add(const std::string& name, std::span<const NamedVariable> variables);
  /// Adds the state of an optimizer, a moving average, a LossScale, a GradientAccumulator or another object
  /// of this kind: its scalars and tensors as name/scalar and name/tensor, and its slots of all variables of
  /// the checkpoint as name/variable/slot. These need not exist yet. Constructor arguments of the object,
  /// such as hyperparameters, are not saved.
  template <HasState T> void add(const std::string& name, T& object) {
    Object o = {[&object] { return object.state(); },
                [&object](const SavedState& s) { return object.prepare_restore(s); }};
    if constexpr (requires { object.slot_names(); }) o.slot_names = object.slot_names();
    if constexpr (requires(const Variable& v) { object.slot_spec(v, std::string_view()); })
      o.slot_spec = [&object](const Variable& v, std::string_view slot) { return object.slot_spec(v, slot); };
    if constexpr (requires { object.may_have(std::string_view()); })
      o.may_have = [&object](std::string_view tensor) { return object.may_have(tensor); };
    add_object(name, std::move(o));
  }
  /// If `tensor` is undefined, restore accepts a value of any dtype and shape.
  void add(const std::string& name, Tensor& tensor);
  /// Adds a random key or a number, which is restored with the same bits.
  void add(const std::string& name, random::Key& key);
  void add(const std::string& name, double& number);
  void add(const std::string& name, std::int64_t& number);
  /// Adds other state that can be represented as a tensor. `read` returns the current state, or an undefined
  /// tensor if there is none; its dtype and shape must not change. `write` must accept every value that
  /// `read` may return. A restore calls it before anything else changes; if it throws, the values written so
  /// far are written back.
  void add(const std::string& name, std::function<Tensor()> read, std::function<void(const Tensor&)> write);

  /// Writes everything to a file in the safetensors format. An existing file is replaced only after the new
  /// one is completely on disk, so a failure leaves the old file intact. Throws ArgumentError if a value is
  /// undefined or an object has slots of a variable that was not added, and FileError if the file cannot
  /// be written.
  void save(const std::string& path, const Metadata& metadata = {}) const;

  /// Restores from a file. Throws FileError, and changes nothing, if the file cannot be read or is damaged,
  /// if an object cannot restore its state or, if strict, it does not match; the message lists missing, extra
  /// and different names. Objects of another kind than in the file count as different, and no part of them is
  /// restored. Slots, and tensors that an object does not always have, are reset by a strict restore that
  /// does not find them.
  RestoreReport restore(const std::string& path, RestoreMode mode = RestoreMode::strict);

  /// Names of pending values of deferred restores. If several files have a value of one name, the last
  /// restored one is used.
  std::vector<std::string> waiting() const;
  /// Discards the pending values.
  void drop_waiting();

 private:
  struct Object {
    std::function<SavedState()> state;
    std::function<Commit(const SavedState&)> prepare_restore;
    std::vector<std::string> slot_names = {};
    std::function<std::optional<Spec>(const Variable&, std::string_view slot)> slot_spec = {};
    std::function<bool(std::string_view tensor)> may_have = {};
  };
  struct [[gnu::visibility("hidden")]] State;
  void add_object(const std::string& name, Object object);

  detail::Owned<State> state_;
};

/// How many checkpoints a folder keeps, and the prefix before the step in their names.
struct CheckpointFolderOptions {
  std::int64_t keep_last = 5;   // number of checkpoints to keep; 0: all
  std::string prefix = "step-";
};

/// The checkpoints of one run: files such as step-100.safetensors in one folder.
class TAPEDECK_EXPORT CheckpointFolder {
 public:
  /// The folder is created when needed, and may contain checkpoints with other prefixes. Throws ArgumentError
  /// if keep_last is negative, or if the prefix contains a slash or ends with a digit, which would be
  /// ambiguous with the step.
  explicit CheckpointFolder(std::string folder, CheckpointFolderOptions options = {});

  /// Saves the checkpoint of a step ≥ 0, then removes all but the last `keep_last` and temporary files left
  /// by killed processes. Returns the path.
  std::string save(const Checkpoint& checkpoint, std::int64_t step, const Metadata& metadata = {}) const;
  /// The path of the checkpoint with the highest step; nullopt if there is no checkpoint. Folders, and other
  /// entries that are not files, do not count.
  std::optional<std::string> latest() const;
  /// The existing steps in ascending order.
  std::vector<std::int64_t> steps() const;
  /// The path of the checkpoint of this step, whether or not it exists.
  std::string path_of(std::int64_t step) const;

 private:
  std::string folder_;
  CheckpointFolderOptions options_;
};

}   // namespace tapedeck
