// Data for training: tensors whose rows belong together, and batches of them, shuffled by a key and made
// ahead on a thread.
#pragma once
#include <functional>
#include <iterator>
#include <memory>
#include <vector>

#include "tapedeck/ops/random.h"

namespace tapedeck {

/// Rows of each tensor of a dataset, in its order.
using Batch = std::vector<Tensor>;

/// Tensors of one length: the first axis counts examples.
class TAPEDECK_EXPORT Dataset {
 public:
  /// Throws ArgumentError without tensors, ShapeError for scalars and lengths that differ.
  explicit Dataset(std::vector<Tensor> tensors);

  /// How many examples there are.
  std::int64_t size() const { return tensors_[0].shape()[0]; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// The examples at these places, i32 or i64 [n]; throws ShapeError or ArgumentError where there are none
  /// such.
  Batch at(const Tensor& places) const;
  /// Those from begin on, without end, and without a copy.
  Dataset range(std::int64_t begin, std::int64_t end) const;

 private:
  std::vector<Tensor> tensors_;
};

struct DataLoaderOptions {
  std::int64_t batch = 32;
  bool shuffle = false;
  random::Key key = {};          // what is random in epoch e comes from key.split(e)
  bool drop_remainder = false;   // the last batch, where it would be smaller
  std::int64_t prefetch = 2;     // batches that a thread makes ahead; 0: each is made when it is asked for
  /// Makes another batch of each, such as turned images, with a key of its own. It runs on the thread that
  /// makes batches.
  std::function<Batch(Batch, random::Key)> transform = {};
};

/// One pass over a dataset, for a range-based for loop, once. What is thrown while a batch is made is thrown
/// where it is asked for.
class TAPEDECK_EXPORT Epoch {
 public:
  class Iterator {
   public:
    const Batch& operator*() const { return batch_; }
    const Batch* operator->() const { return &batch_; }
    TAPEDECK_EXPORT Iterator& operator++();
    friend bool operator==(const Iterator& i, std::default_sentinel_t) { return i.batch_.empty(); }

   private:
    friend class Epoch;
    explicit Iterator(Epoch& epoch) : epoch_(&epoch) { ++*this; }

    Epoch* epoch_;
    Batch batch_;
  };

  ~Epoch();
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  friend class DataLoader;
  struct State;
  explicit Epoch(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Cuts a dataset into batches. Batch i of epoch e depends on dataset, options, e and i alone: not on
/// threads, and not on what was asked for before, so a run that stops goes on with `epoch(e, i)`.
class TAPEDECK_EXPORT DataLoader {
 public:
  /// Throws ArgumentError for a batch below 1 or a prefetch below 0.
  explicit DataLoader(Dataset dataset, DataLoaderOptions options = {});

  /// Batches of an epoch.
  std::int64_t size() const;
  /// From batch `first` on. Throws ArgumentError for negative numbers and where first is beyond size(). The
  /// loader may end before the epoch does.
  Epoch epoch(std::int64_t number, std::int64_t first = 0) const;

 private:
  std::shared_ptr<const struct DataLoaderState> state_;
};

}   // namespace tapedeck
