// Training data: datasets of tensors with matching rows, and loaders that make shuffled batches in advance on
// a background thread.
#pragma once
#include <functional>
#include <iterator>
#include <memory>
#include <vector>

#include "tapedeck/ops/random.h"

namespace tapedeck {

/// Rows of each tensor of a dataset, in the order of its tensors.
using Batch = std::vector<Tensor>;

/// Tensors of equal length; the first axis enumerates examples.
class TAPEDECK_EXPORT Dataset {
 public:
  /// Throws ArgumentError for an empty list, and ShapeError for scalars or if lengths differ.
  explicit Dataset(std::vector<Tensor> tensors);

  /// Number of examples.
  std::int64_t size() const { return tensors_[0].shape()[0]; }
  /// The tensors with all rows.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// The examples at these indices, integers [n]. Throws ShapeError if an index is out of range, and
  /// DTypeError for another dtype.
  Batch at(const Tensor& places) const;
  /// The examples from begin (included) to end (excluded), without a copy. Throws ArgumentError unless 0 ≤
  /// begin ≤ end ≤ size().
  Dataset range(std::int64_t begin, std::int64_t end) const;

 private:
  std::vector<Tensor> tensors_;
};

/// How a dataset is divided into batches.
struct DataLoaderOptions {
  std::int64_t batch = 32;
  bool shuffle = false;
  random::Key key = {};          // epoch e uses key.split(e) for all random choices
  bool drop_remainder = false;   // omit the last batch if it is smaller
  std::int64_t prefetch = 2;     // number of batches made in advance on a thread; 0: batches are made on
                                 // demand
  /// Maps each batch to another one, for example with augmented images, using a key for this batch. Runs on
  /// the thread that makes batches.
  std::function<Batch(Batch, random::Key)> transform = {};
};

/// One pass over a dataset, for a single range-based for loop. An exception thrown while a batch is made is
/// rethrown when that batch is requested.
class TAPEDECK_EXPORT Epoch {
 public:
  /// An iterator over batches; incrementing it waits for the next batch.
  class Iterator {
   public:
    /// The current batch, valid until the next increment.
    const Batch& operator*() const { return batch_; }
    const Batch* operator->() const { return &batch_; }
    /// Moves to the next batch. Rethrows an exception thrown while that batch was made.
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

  /// For a range-based for loop. Throws ArgumentError if called again: the batches are made once, and a
  /// second pass is another epoch, in another order.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  friend class DataLoader;
  struct [[gnu::visibility("hidden")]] State;
  explicit Epoch(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Divides a dataset into batches. Batch i of epoch e depends only on dataset, options, e and i, not on
/// threads or earlier requests, so an interrupted run resumes with `epoch(e, i)`.
class TAPEDECK_EXPORT DataLoader {
 public:
  /// Throws ArgumentError if the batch size is below 1 or prefetch below 0.
  explicit DataLoader(Dataset dataset, DataLoaderOptions options = {});

  /// Number of batches in an epoch.
  std::int64_t size() const;
  /// An epoch, starting at batch `first`. Throws ArgumentError for negative numbers or if first is greater
  /// than size(). The loader may be destroyed before the epoch.
  Epoch epoch(std::int64_t number, std::int64_t first = 0) const;

 private:
  std::shared_ptr<const struct DataLoaderState> state_;
};

}   // namespace tapedeck
