// fit: a training loop as one function. All that it does, a loop of one's own can do with public functions,
// with the same bits: see fit.
#pragma once
#include <variant>

#include "tapedeck/dataset.h"
#include "tapedeck/nn/metrics.h"
#include "tapedeck/nn/run.h"
#include "tapedeck/nn/variables.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {
class Checkpoint;
class LossScale;
class TrainingLog;
}   // namespace tapedeck

namespace tapedeck::nn {

/// "loss", the name of a metric, or one of these of the validation data, such as "validation_loss".
struct NamedNumber {
  std::string name;
  double value = 0;
  friend bool operator==(const NamedNumber&, const NamedNumber&) = default;
};

/// What a function of a network, a batch and a Run may return instead of the loss alone, for metrics.
struct BatchResult {
  Tensor loss;
  Tensor labels = {}, predictions = {};
};

/// After a batch.
struct BatchReport {
  std::int64_t epoch = 0, batch = 0;   // from 0
  std::int64_t steps = 0;              // so far
  double loss = 0;                     // of this batch
  bool stop = false;                   // to be set by on_batch
};

/// After an epoch. Printed, it is the line that fit draws, which counts epochs from 1:
/// "epoch 1  loss 0.25  validation_loss 0.5".
struct TAPEDECK_EXPORT EpochReport {
  std::int64_t epoch = 0;                  // from 0
  std::int64_t steps = 0;                  // so far
  std::vector<NamedNumber> numbers = {};   // the loss, the metrics, and then both of the validation data
  bool stop = false;                       // to be set by on_epoch

  /// Throws ArgumentError, which lists the names, for another one.
  double operator[](std::string_view name) const;
  friend bool operator==(const EpochReport&, const EpochReport&) = default;
  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const EpochReport& epoch);
};

/// A whole training. Printed, it has a line for each epoch, and one for the rest.
struct FitReport {
  std::vector<EpochReport> history = {};         // of all complete epochs
  std::optional<std::int64_t> best_epoch = {};   // by the monitor; none where it was NaN throughout
  bool stopped_early = false;                    // by early_stopping or a callback
  std::int64_t steps = 0;
  std::optional<std::int64_t> resumed_at = {};   // the steps that a checkpoint began with
  double seconds = 0;                            // of this call

  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const FitReport& report);
};

/// A data set, which fit divides into batches, or a loader, which has its own.
class FitData {
 public:
  FitData(Dataset dataset) : data_(std::move(dataset)) {}
  FitData(DataLoader loader) : data_(std::move(loader)) {}
  /// As given.
  const std::variant<Dataset, DataLoader>& data() const { return data_; }

 private:
  std::variant<Dataset, DataLoader> data_;
};

/// Nothing; a data set or a loader; or a part, between 0 and 1, of the data set for training: its last rows,
/// which are not trained on.
class FitValidation {
 public:
  FitValidation() = default;
  FitValidation(double part) : data_(part) {}
  FitValidation(Dataset dataset) : data_(FitData(std::move(dataset))) {}
  FitValidation(DataLoader loader) : data_(FitData(std::move(loader))) {}
  /// As given.
  const std::variant<std::monostate, double, FitData>& data() const { return data_; }

 private:
  std::variant<std::monostate, double, FitData> data_;
};

/// Ends a training whose monitor gets no better.
struct EarlyStopping {
  std::int64_t patience = 5;   // epochs in a row that are not better than the best one
  double min_delta = 0;        // a better one differs by more than this
  bool restore_best = false;   // in the end the network has the variables of the best epoch
};

/// Files from which fit goes on.
struct FitCheckpoints {
  std::string folder;              // of this training alone; step-N.safetensors are in it
  std::int64_t every_epochs = 1;   // 0: not after epochs
  std::int64_t every_steps = 0;    // 0: not after steps
  std::int64_t keep_last = 3;      // 0: all
  bool keep_best = false;          // best.safetensors has the network's variables after the best epoch
  /// Adds what else is to be saved and restored, such as the state of a callback.
  std::function<void(Checkpoint&)> add = {};
};

/// Where a training is shown: on standard error, if at all.
enum class FitProgress {
  automatic,   // a bar where standard error is a terminal, else lines
  bar,         // the batches of the present epoch; then a line
  lines,       // a line an epoch
  silent,
};

/// How fit trains.
struct FitOptions {
  std::int64_t epochs = 1;                  // in all, those before a checkpoint included
  std::optional<std::int64_t> batch = {};   // rows of a batch of data sets; none: 32
  std::optional<bool> shuffle = {};         // rows of a data set, anew in each epoch; none: true
  /// Rows are shuffled by key.split(0), and batch n of the training, counted over all epochs, is run with
  /// key.split(1).split(n); among several replicas with .split(index) of that.
  random::Key key = {};
  FitValidation validation = {};      // after each epoch, with Run{.training = false}
  std::vector<Metric> metrics = {};   // of the predictions before the steps
  /// What is trained, each once; none: the trainable variables of the network. With checkpoints and
  /// restore_best all have to be of the network, which is what they save.
  std::optional<std::vector<Variable>> variables = {};
  std::int64_t accumulate = 1;       // batches whose mean gradient makes a step; an epoch ends with one
  LossScale* loss_scale = nullptr;   // steps that it leaves out count as steps
  std::string monitor = {};          // the number that says which epoch is best; "": validation_loss, or
                                     // loss where there is none
  std::optional<bool> larger_is_better = {};   // of the monitor; none: false for losses
  std::optional<EarlyStopping> early_stopping = {};
  std::optional<FitCheckpoints> checkpoints = {};
  TrainingLog* log = nullptr;   // gets a line an epoch
  std::int64_t log_steps = 0;   // and one after this many steps; 0: none
  std::function<void(BatchReport&)> on_batch = {};
  std::function<void(EpochReport&)> on_epoch = {};
  FitProgress progress = FitProgress::automatic;
};

/// How evaluate divides data, and what it computes beside the loss.
struct EvaluateOptions {
  std::optional<std::int64_t> batch = {};   // rows of a batch of a data set; none: 32
  std::vector<Metric> metrics = {};
};

namespace detail {

/// Runs the network and the loss.
using BatchFunction = std::function<BatchResult(const Batch&, const Run&)>;

/// Throws unless a batch is a pair of inputs and labels.
TAPEDECK_EXPORT void check_pair(const Batch& batch);
TAPEDECK_EXPORT FitReport fit(std::vector<NamedVariable> variables, const BatchFunction& function,
                              Optimizer& optimizer, const FitData& data, const FitOptions& options);
TAPEDECK_EXPORT std::vector<NamedNumber> evaluate(const BatchFunction& function, const FitData& data,
                                                  const EvaluateOptions& options);

template <class Network> Tensor run_network(const Network& network, const Tensor& x, const Run& run) {
  return in_network(network, [&]() -> Tensor {
    if constexpr (std::invocable<const Network&, const Tensor&, const Run&>)
      return network(x, run);
    else
      return network(x);
  });
}

template <class Network, class Loss> BatchFunction batch_function(const Network& network, Loss& loss) {
  if constexpr (std::invocable<Loss&, const Tensor&, const Tensor&>) {
    return [&](const Batch& batch, const Run& run) {
      check_pair(batch);
      const Tensor predictions = run_network(network, batch[0], run);
      return BatchResult{loss(batch[1], predictions), batch[1], predictions};
    };
  } else {
    static_assert(
        std::invocable<Loss&, const Network&, const Batch&, const Run&>,
        "fit: use a loss of (labels, predictions), a lambda where a function has more arguments, or of "
        "(network, batch, run)");
    return [&](const Batch& batch, const Run& run) {
      return in_network(network, [&] { return BatchResult{loss(network, batch, run)}; });
    };
  }
}

}   // namespace detail

/// Trains a network, a struct with variables (see variables), for some epochs. The loss is a function of
/// (labels, predictions), for batches of inputs and labels; or one of (network, batch, run) that returns the
/// loss, or a BatchResult. A loss of several elements counts as its mean. It is, with the same bits,
///
///   for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch)
///     for (const Batch& batch : loader.epoch(epoch))
///       optimizer.minimize([&] { return mean(loss(batch[1], network(batch[0], run))); }, {.variables = …});
///
/// where loader has the rows of data in batches, and each batch has a key of its own: see FitOptions. The
/// loss and the metrics of an epoch are means over its rows. After each epoch come the validation, the log,
/// on_epoch and the checkpoint.
///
/// With a folder for checkpoints it begins where the last one was made, or else makes one at once; a killed
/// training that is started again with the same arguments gives the same bits: variables, state of the
/// optimizer, history, and lines of the log, of which those after the checkpoint are removed. A training that
/// is complete there, or was ended by early_stopping, returns its report.
///
/// As a replica (see Replicas), each calls it with its own part of the data, of as many batches as the
/// others have. The numbers of an epoch are means over the replicas, so that all of them stop at the same
/// epoch. A loss_scale is shared by all. Of the options, checkpoints and early_stopping.restore_best are
/// refused there.
///
/// Where a function throws, or a callback stops within an epoch, variables and optimizer are as the last
/// complete step left them, but for what the network itself assigns. Throws ArgumentError, which names the
/// option, for values that cannot be used, and what data, network, loss, optimizer, files and callbacks
/// throw.
template <class Network, class Loss> FitReport fit(const Network& network, Loss loss, Optimizer& optimizer,
                                                   const FitData& data, const FitOptions& options = {}) {
  return detail::fit(variables(network), detail::batch_function(network, loss), optimizer, data, options);
}

/// The loss and the metrics of a network that is not trained, as means over the rows: what fit does for
/// validation. Not recorded on tapes.
template <class Network, class Loss> std::vector<NamedNumber> evaluate(const Network& network, Loss loss,
                                                                       const FitData& data,
                                                                       const EvaluateOptions& options = {}) {
  return detail::evaluate(detail::batch_function(network, loss), data, options);
}

}   // namespace tapedeck::nn
