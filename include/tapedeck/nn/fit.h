// fit: a training loop as one function. A user's own loop can do the same with public functions, with the
// same bits: see fit.
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

/// A named result: "loss", the name of a metric, or one of these for the validation data, such as
/// "validation_loss".
struct NamedNumber {
  std::string name;
  double value = 0;
  friend bool operator==(const NamedNumber&, const NamedNumber&) = default;
};

/// Result that a function of a network, a batch and a Run may return instead of the loss alone, to provide
/// data for metrics.
struct BatchResult {
  Tensor loss;
  Tensor labels = {}, predictions = {};
};

/// The argument of on_batch, which is called after a batch.
struct BatchReport {
  std::int64_t epoch = 0, batch = 0;   // counted from 0
  std::int64_t steps = 0;              // so far
  double loss = 0;                     // the loss of this batch
  bool stop = false;                   // on_batch may set it
};

/// The argument of on_epoch, which is called after an epoch. Prints the line that fit shows, which counts
/// epochs from 1: "epoch 1  loss 0.25  validation_loss 0.5".
struct TAPEDECK_EXPORT EpochReport {
  std::int64_t epoch = 0;                  // counted from 0
  std::int64_t steps = 0;                  // so far
  std::vector<NamedNumber> numbers = {};   // the loss, the metrics, then both for the validation data
  bool stop = false;                       // on_epoch may set it

  /// The number of this name. Throws ArgumentError, which lists the names, for an unknown one.
  double operator[](std::string_view name) const;
  friend bool operator==(const EpochReport&, const EpochReport&) = default;
  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const EpochReport& epoch);
};

/// The report of a whole training. Prints one line for each epoch, and one for the rest.
struct FitReport {
  std::vector<EpochReport> history = {};         // the reports of all complete epochs
  std::optional<std::int64_t> best_epoch = {};   // by the monitor; nullopt if it was NaN throughout
  bool stopped_early = false;                    // by early_stopping or a callback
  std::int64_t steps = 0;
  std::optional<std::int64_t> resumed_at = {};   // the steps already in the checkpoint, if any
  double seconds = 0;                            // the duration of this call

  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const FitReport& report);
};

/// A dataset, which fit divides into batches, or a loader, which has its own batches.
class FitData {
 public:
  FitData(Dataset dataset) : data_(std::move(dataset)) {}
  FitData(DataLoader loader) : data_(std::move(loader)) {}
  /// The value passed to the constructor.
  const std::variant<Dataset, DataLoader>& data() const { return data_; }

 private:
  std::variant<Dataset, DataLoader> data_;
};

/// Validation data: none, a dataset or a loader, or a fraction, between 0 and 1, of the dataset for training:
/// its last rows, which are not used for training.
class FitValidation {
 public:
  FitValidation() = default;
  FitValidation(double part) : data_(part) {}
  FitValidation(Dataset dataset) : data_(FitData(std::move(dataset))) {}
  FitValidation(DataLoader loader) : data_(FitData(std::move(loader))) {}
  /// The value passed to the constructor.
  const std::variant<std::monostate, double, FitData>& data() const { return data_; }

 private:
  std::variant<std::monostate, double, FitData> data_;
};

/// Ends a training whose monitor no longer improves.
struct EarlyStopping {
  std::int64_t patience = 5;   // number of successive epochs that are not better than the best one
  double min_delta = 0;        // a better epoch differs by more than this
  bool restore_best = false;   // at the end the network has the variables of the best epoch
};

/// Checkpoints from which fit resumes.
struct FitCheckpoints {
  std::string folder;              // used by this training only; contains step-N.safetensors
  std::int64_t every_epochs = 1;   // 0: not after epochs
  std::int64_t every_steps = 0;    // 0: not after steps
  std::int64_t keep_last = 3;      // 0: all
  bool keep_best = false;          // best.safetensors has the network's variables after the best epoch
  /// Adds other objects to be saved and restored, such as the state of a callback.
  std::function<void(Checkpoint&)> add = {};
};

/// How the progress of a training is shown on standard error.
enum class FitProgress {
  automatic,   // a bar if standard error is a terminal, else lines
  bar,         // shows the batches of the current epoch; then a line
  lines,       // one line per epoch
  silent,
};

/// Options of fit.
struct FitOptions {
  std::int64_t epochs = 1;                  // total number, including those before a checkpoint
  std::optional<std::int64_t> batch = {};   // number of rows in a batch of a dataset; nullopt: 32
  std::optional<bool> shuffle = {};         // shuffle rows of a dataset in each epoch; nullopt: true
  /// Rows are shuffled by key.split(0), and batch n of the training, counted over all epochs, has the key
  /// key.split(1).split(n), followed by .split(index) on one of several replicas.
  random::Key key = {};
  FitValidation validation = {};      // after each epoch, with Run{.training = false}
  std::vector<Metric> metrics = {};   // computed with the predictions before the steps
  /// The variables to train, each once; nullopt: the trainable variables of the network. With checkpoints and
  /// restore_best, all must belong to the network, whose variables these save.
  std::optional<std::vector<Variable>> variables = {};
  std::int64_t accumulate = 1;       // batches per step by their mean gradient; an epoch ends with a step
  LossScale* loss_scale = nullptr;   // skipped steps count as steps
  std::string monitor = {};          // the number that determines the best epoch; "": validation_loss, or
                                     // loss where there is none
  std::optional<bool> larger_is_better = {};   // for the monitor; nullopt: false for losses
  std::optional<EarlyStopping> early_stopping = {};
  std::optional<FitCheckpoints> checkpoints = {};
  TrainingLog* log = nullptr;   // receives one line per epoch
  std::int64_t log_steps = 0;   // and one after this many steps; 0: none
  std::function<void(BatchReport&)> on_batch = {};
  std::function<void(EpochReport&)> on_epoch = {};
  FitProgress progress = FitProgress::automatic;
};

/// Options of evaluate: the size of batches, and metrics in addition to the loss.
struct EvaluateOptions {
  std::optional<std::int64_t> batch = {};   // number of rows in a batch of a dataset; nullopt: 32
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
/// loss, or a BatchResult. A loss of several elements counts as its mean. fit is, with the same bits,
///
///   for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch)
///     for (const Batch& batch : loader.epoch(epoch))
///       optimizer.minimize([&] { return mean(loss(batch[1], network(batch[0], run))); }, {.variables = …});
///
/// where loader divides the rows of data into batches, and each batch has its own key: see FitOptions. The
/// loss and the metrics of an epoch are means over its rows. Each epoch is followed by the validation, the
/// log, on_epoch and the checkpoint, in this order.
///
/// With a folder for checkpoints, fit resumes from the last one; if there is none, it saves one immediately.
/// A killed training that is started again with the same arguments produces the same bits: variables, state
/// of the optimizer, history, and lines of the log, of which those after the checkpoint are removed first. If
/// the training in the folder is complete, or was ended by early_stopping, fit returns its report.
///
/// Replicas (see Replicas) call fit each with its own part of the data; all parts must have the same number
/// of batches. The numbers of an epoch are means over the replicas, so that all stop at the same epoch. All
/// must share one loss_scale. The options checkpoints and early_stopping.restore_best are refused.
///
/// If a function throws, or a callback stops within an epoch, variables and optimizer are as after the last
/// complete step, except for assignments by the network itself. Throws ArgumentError, which names the option,
/// for invalid values, and what data, network, loss, optimizer, files and callbacks throw.
template <class Network, class Loss> FitReport fit(const Network& network, Loss loss, Optimizer& optimizer,
                                                   const FitData& data, const FitOptions& options = {}) {
  return detail::fit(variables(network), detail::batch_function(network, loss), optimizer, data, options);
}

/// Returns the loss and the metrics of a network without training it, as means over the rows, as fit does for
/// validation. Not recorded on tapes.
template <class Network, class Loss> std::vector<NamedNumber> evaluate(const Network& network, Loss loss,
                                                                       const FitData& data,
                                                                       const EvaluateOptions& options = {}) {
  return detail::evaluate(detail::batch_function(network, loss), data, options);
}

}   // namespace tapedeck::nn
