// Datasets: batches of rows of tensors, by key, epoch and batch number, made on the caller's thread or
// prefetched by another one.
#include "tapedeck/dataset.h"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "core/format.h"
#include "core/storage.h"
#include "op/recorder.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/index.h"

namespace tapedeck {

Dataset::Dataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  if (tensors_.empty()) throw ArgumentError("dataset: no tensors given");
  for (const Tensor& x : tensors_) {
    if (x.ndim() == 0) throw_error<ShapeError>("dataset: {} has no axis that counts examples", x.spec());
    if (x.shape()[0] != tensors_[0].shape()[0])
      throw_error<ShapeError>("dataset: the tensors differ in length: {}, {}", tensors_[0].spec(), x.spec());
  }
}

Batch Dataset::at(const Tensor& places) const {
  Batch rows;
  for (const Tensor& x : tensors_)
    rows.push_back(gather(x, places));
  return rows;
}

Dataset Dataset::range(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || begin > end || end > size())
    throw_error<ArgumentError>("dataset: the range from {} to {} is not within {} examples", begin, end,
                               size());
  Batch rows;
  for (const Tensor& x : tensors_) {
    Shape shape = x.shape();
    shape.set(0, 1);
    const std::int64_t row = shape.size();
    shape.set(0, end - begin);
    rows.push_back(share(x, shape, begin * row));
  }
  return Dataset(std::move(rows));
}

struct DataLoaderState {
  Dataset dataset;
  DataLoaderOptions options;

  std::int64_t batches() const {
    const std::int64_t whole = dataset.size() / options.batch;
    return whole + (!options.drop_remainder && dataset.size() % options.batch ? 1 : 0);
  }
};

// State shared by the caller and the prefetching thread (the producer).
struct Epoch::State {
  State(std::shared_ptr<const DataLoaderState> l, std::int64_t n, std::int64_t first)
      : loader(std::move(l)), number(n), next(first) {}

  const std::shared_ptr<const DataLoaderState> loader;
  const std::int64_t number;
  std::int64_t next;   // next batch to make; owned by the producer
  Tensor order;        // owned by the producer
  std::mutex lock;     // guards the members below
  std::condition_variable changed;
  std::list<Batch> made;
  bool is_begun = false;   // owned by the consumer
  Batch used;              // freed by the producer, which reuses the memory for the next batch
  std::exception_ptr error;
  bool is_done = false, is_wanted = true;
  std::thread maker;
  const pid_t process = ::getpid();   // a forked child has no prefetching thread

  bool is_elsewhere() const { return maker.joinable() && ::getpid() != process; }
  Batch make();
  void make_ahead() noexcept;
  Batch take(Batch last);
};

// Makes the next batch; empty after the last one.
Batch Epoch::State::make() {
  const auto& [dataset, options] = *loader;
  if (next >= loader->batches()) return {};
  const RecordingScope unrecorded(nullptr);
  const random::Key key = options.key.split(static_cast<std::uint64_t>(number));
  const std::int64_t begin = next * options.batch, end = std::min(begin + options.batch, dataset.size());
  if (options.shuffle && !order.defined()) order = random::permutation(dataset.size(), key.split(0));
  Batch batch =
      options.shuffle ? dataset.at(share(order, {end - begin}, begin)) : dataset.range(begin, end).tensors();
  if (options.transform)
    batch = options.transform(std::move(batch), key.split(1).split(static_cast<std::uint64_t>(next)));
  if (batch.empty()) throw ArgumentError("data_loader: the transform returned a batch without tensors");
  ++next;
  return batch;
}

void Epoch::State::make_ahead() noexcept {
  std::unique_lock guard(lock);
  for (;;) {
    changed.wait(guard, [this] { return !is_wanted || std::ssize(made) < loader->options.prefetch; });
    if (!is_wanted) return;
    Batch freed = std::exchange(used, {});
    guard.unlock();
    freed.clear();
    std::list<Batch> next_one;
    std::exception_ptr thrown;
    try {
      next_one.push_back(make());
    } catch (...) {
      thrown = std::current_exception();
    }
    guard.lock();
    is_done = thrown || next_one.front().empty();
    error = thrown;
    if (!is_done) made.splice(made.end(), next_one);
    changed.notify_all();
    if (is_done) return;
  }
}

Batch Epoch::State::take(Batch last) {
  if (loader->options.prefetch == 0) {
    last.clear();
    return make();
  }
  if (is_elsewhere())
    throw ArgumentError(
        "data_loader: the thread that makes the batches of this epoch is in the parent process; begin an "
        "epoch in the child, at the batch with which to continue");
  std::unique_lock guard(lock);
  std::move(last.begin(), last.end(), std::back_inserter(used));
  changed.wait(guard, [this] { return is_done || !made.empty(); });
  if (made.empty()) {
    if (error) std::rethrow_exception(error);
    return {};
  }
  Batch batch = std::move(made.front());
  made.pop_front();
  changed.notify_all();
  return batch;
}

Epoch::Epoch(std::unique_ptr<State> state) : state_(std::move(state)) {
  if (state_->loader->options.prefetch > 0)
    state_->maker = std::thread([s = state_.get()] { s->make_ahead(); });
}

Epoch::~Epoch() {
  if (!state_->maker.joinable()) return;
  if (state_->is_elsewhere()) {   // neither the thread nor its locks can be waited for
    (void)state_.release();
    return;
  }
  {
    const std::lock_guard guard(state_->lock);
    state_->is_wanted = false;
  }
  state_->changed.notify_all();
  state_->maker.join();
}

Epoch::Iterator Epoch::begin() {
  if (std::exchange(state_->is_begun, true))
    throw_error<ArgumentError>(
        "data_loader: epoch {} has been looped over already; use loader.epoch({}) for the "
        "same batches again, or another number",
        state_->number, state_->number);
  return Iterator(*this);
}

Epoch::Iterator& Epoch::Iterator::operator++() {
  batch_ = epoch_->state_->take(std::move(batch_));
  return *this;
}

DataLoader::DataLoader(Dataset dataset, DataLoaderOptions options) {
  if (options.batch < 1)
    throw_error<ArgumentError>("data_loader: the batch is {}; use 1 or more", options.batch);
  if (options.prefetch < 0)
    throw_error<ArgumentError>("data_loader: prefetch is {}; use 0 or more", options.prefetch);
  state_ = std::make_shared<const DataLoaderState>(DataLoaderState{std::move(dataset), std::move(options)});
}

std::int64_t DataLoader::size() const { return state_->batches(); }

Epoch DataLoader::epoch(std::int64_t number, std::int64_t first) const {
  if (number < 0 || first < 0 || first > size())
    throw_error<ArgumentError>("data_loader: there is no batch {} in epoch {}; an epoch has {}", first,
                               number, size());
  return Epoch(std::make_unique<Epoch::State>(state_, number, first));
}

}   // namespace tapedeck
