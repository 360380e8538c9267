// The training loop: batches, steps, epochs, and the actions after each of them.
#include "tapedeck/nn/fit.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <set>

#include "core/format.h"
#include "nn/fit_state.h"
#include "nn/progress.h"
#include "optim/communicator.h"
#include "tape/variable.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/ops/reduce.h"
#include "tapedeck/training.h"
#include "tapedeck/training_log.h"

namespace tapedeck::nn {
namespace {

using detail::BatchFunction;

constexpr std::int64_t kBatch = 32;
constexpr std::string_view kOfValidation = "validation_";

void check_count(std::string_view option, std::int64_t value, std::int64_t least) {
  if (value < least) throw_error<ArgumentError>("fit: {} is {}; use {} or more", option, value, least);
}

void check_options(const FitOptions& o) {
  check_count("epochs", o.epochs, 1);
  check_count("batch", o.batch.value_or(kBatch), 1);
  check_count("accumulate", o.accumulate, 1);
  check_count("log_steps", o.log_steps, 0);
  if (o.early_stopping) {
    check_count("early_stopping.patience", o.early_stopping->patience, 1);
    if (!(o.early_stopping->min_delta >= 0))
      throw_error<ArgumentError>("fit: early_stopping.min_delta is {}; use 0 or more",
                                 o.early_stopping->min_delta);
  }
  if (o.checkpoints) {
    check_count("checkpoints.every_epochs", o.checkpoints->every_epochs, 0);
    check_count("checkpoints.every_steps", o.checkpoints->every_steps, 0);
    check_count("checkpoints.keep_last", o.checkpoints->keep_last, 0);
    if (o.checkpoints->folder.empty())
      throw ArgumentError("fit: checkpoints.folder has no name; use \".\" for this one");
  }
}

/// Throws for options by which a single replica would decide, or change variables that others read.
void check_replica_options(const FitOptions& o) {
  const auto refuse = [](bool given, std::string_view option, std::string_view advice) {
    if (given) throw_error<ArgumentError>("fit: {} cannot be used with replicas; {}", option, advice);
  };
  refuse(o.checkpoints.has_value(), "checkpoints",
         "restore before they run, and save in the on_epoch of one of them");
  refuse(o.early_stopping && o.early_stopping->restore_best, "early_stopping.restore_best",
         "keep the values in on_epoch");
}

/// Whether this thread writes the output that only one replica writes.
bool is_first_replica() {
  return !thread_state.communicator || thread_state.communicator->replica().index == 0;
}

/// Averages numbers over replicas, so that all of them take the same decisions.
void average_over_replicas(std::vector<NamedNumber>& numbers) {
  if (!thread_state.communicator) return;
  std::vector<double> values = {1};
  for (const NamedNumber& n : numbers)
    values.push_back(n.value);
  const Tensor sums = thread_state.communicator->sum(tensor(values));
  const std::span<const double> of_all = sums.data<double>();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i].value = of_all[i + 1] / of_all[0];
}

/// Warns if labels [n] and predictions [n, 1] broadcast to a loss of all pairs, which is hardly ever
/// intended.
void warn_of_pairs(const BatchResult& r) {
  if (!r.labels.defined() || !r.predictions.defined() || r.labels.shape() == r.predictions.shape() ||
      r.loss.size() <= std::max(r.labels.size(), r.predictions.size()))
    return;
  warn(
      fmt::format("fit: the loss is {}, more elements than labels or predictions have: labels {} broadcast "
                  "with predictions {}; reshape one of them",
                  r.loss.spec(), r.labels.spec(), r.predictions.spec()));
}

/// The names of the loss and the metrics, and of both for the validation data.
std::vector<std::string> number_names(const FitOptions& o, bool validates) {
  std::vector<std::string> names = {"loss"};
  for (const Metric& metric : o.metrics)
    names.push_back(metric.name());
  if (validates)
    for (std::size_t i = 0, n = names.size(); i < n; ++i)
      names.push_back(fmt::format("{}{}", kOfValidation, names[i]));
  for (const std::string& name : names)
    if (name.empty() || name == "kind" || name == "epoch" || name == "step" ||
        std::count(names.begin(), names.end(), name) > 1)
      throw_error<ArgumentError>(
          "fit: metrics: the name \"{}\" is empty or already in use; use Metric(name, metric)", name);
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The number that decides which epoch is best.
struct Monitor {
  std::string name;
  bool larger_is_better;
  double min_delta;

  bool is_better(double value, double best) const {
    return larger_is_better ? value > best + min_delta : value < best - min_delta;
  }
};

Monitor monitor_of(const FitOptions& o, const std::vector<std::string>& names, bool validates) {
  const std::string name = !o.monitor.empty() ? o.monitor : validates ? "validation_loss" : "loss";
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw_error<ArgumentError>("fit: monitor is \"{}\"; use one of {}", name, listed(names));
  if (!o.larger_is_better && !name.ends_with("loss"))
    throw_error<ArgumentError>("fit: monitor is \"{}\"; set larger_is_better too, to true or false", name);
  return {name, o.larger_is_better.value_or(false), o.early_stopping ? o.early_stopping->min_delta : 0};
}

DataLoader unshuffled(const FitData& data, std::optional<std::int64_t> batch) {
  if (const auto* loader = std::get_if<DataLoader>(&data.data())) return *loader;
  return DataLoader(std::get<Dataset>(data.data()), {.batch = batch.value_or(kBatch)});
}

/// The data for training, and for validation.
struct Parts {
  FitData training;
  std::optional<FitData> validation;
};

Parts split(const FitData& data, const FitValidation& validation) {
  if (const auto* other = std::get_if<FitData>(&validation.data())) return {data, *other};
  const auto* part = std::get_if<double>(&validation.data());
  if (!part) return {data, {}};
  const auto* dataset = std::get_if<Dataset>(&data.data());
  if (!dataset)
    throw_error<ArgumentError>(
        "fit: validation is {} of the data, which is a loader; pass a data set or a loader for validation",
        *part);
  const double rows = static_cast<double>(dataset->size()) * *part;
  const std::int64_t n = std::isfinite(rows) ? std::llround(rows) : -1;
  if (n < 1 || n >= dataset->size())
    throw_error<ArgumentError>(
        "fit: validation is {} of {} rows; use a fraction that leaves rows for both training and validation",
        *part, dataset->size());
  const std::int64_t end = dataset->size() - n;
  return {dataset->range(0, end), dataset->range(end, dataset->size())};
}

/// Throws for options that would have no effect.
void check_use(const Parts& parts, const FitOptions& o) {
  const auto is_loader = [](const FitData& d) { return std::holds_alternative<DataLoader>(d.data()); };
  if (o.batch && is_loader(parts.training) && (!parts.validation || is_loader(*parts.validation)))
    throw ArgumentError("fit: batch has no effect on a DataLoader; set it in DataLoaderOptions instead");
  if (o.log_steps > 0 && !o.log) throw ArgumentError("fit: log_steps is set without a log; set log too");
  if (o.shuffle && is_loader(parts.training))
    throw ArgumentError("fit: shuffle has no effect on a DataLoader; set it in DataLoaderOptions instead");
}

DataLoader training_loader(const FitData& data, const FitOptions& o) {
  if (const auto* loader = std::get_if<DataLoader>(&data.data())) return *loader;
  return DataLoader(
      std::get<Dataset>(data.data()),
      {.batch = o.batch.value_or(kBatch), .shuffle = o.shuffle.value_or(true), .key = o.key.split(0)});
}

void check_not_empty(std::string_view caller, std::string_view what, const DataLoader& loader) {
  if (loader.size() == 0) throw_error<ArgumentError>("{}: {} has no batches", caller, what);
}

Tensor mean_loss(std::string_view caller, const BatchResult& result) {
  if (!result.loss.defined())
    throw_error<ArgumentError>("{}: the loss is undefined; return a tensor", caller);
  return result.loss.size() == 1 ? result.loss : mean(result.loss);
}

std::int64_t rows_of(const Batch& batch) { return batch[0].ndim() > 0 ? batch[0].shape()[0] : 1; }

/// Loss and metrics of the batches so far.
struct Tally {
  std::vector<Metric> metrics;
  Mean loss = Mean("loss");

  /// Begins without any batch.
  explicit Tally(std::vector<Metric> all) : metrics(std::move(all)) { reset(); }

  void add(std::string_view caller, const Batch& batch, const BatchResult& result, double batch_loss) {
    if (!metrics.empty() && !(result.labels.defined() && result.predictions.defined()))
      throw_error<ArgumentError>(
          "{}: metrics need labels and predictions; use a loss of (labels, predictions), or return a "
          "BatchResult with both",
          caller);
    for (Metric& metric : metrics)
      metric.add(result.labels, result.predictions);
    loss.add(batch_loss, static_cast<double>(rows_of(batch)));
  }
  std::vector<NamedNumber> numbers(std::string_view prefix = "") const {
    std::vector<NamedNumber> all = {{fmt::format("{}loss", prefix), loss.value()}};
    for (const Metric& metric : metrics)
      all.push_back({fmt::format("{}{}", prefix, metric.name()), metric.value()});
    return all;
  }
  void reset() {
    loss.reset();
    for (Metric& metric : metrics)
      metric.reset();
  }
};

std::vector<NamedNumber> evaluate_batches(std::string_view caller, const BatchFunction& function,
                                          const DataLoader& loader, const std::vector<Metric>& metrics,
                                          std::string_view prefix) {
  const StopRecording unrecorded;
  Tally tally(metrics);
  for (const Batch& batch : loader.epoch(0)) {
    const BatchResult result = function(batch, Run{});
    tally.add(caller, batch, result, mean_loss(caller, result).item());
  }
  return tally.numbers(prefix);
}

/// One call of fit.
class Loop {
 public:
  Loop(std::vector<NamedVariable> variables, const BatchFunction& function, Optimizer& optimizer,
       const Parts& parts, const FitOptions& options);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  FitReport run();

 private:
  void check_in_network() const;
  void open_folder();
  void begin();
  bool is_complete() const { return state_.at.stopped || state_.at.epoch >= options_.epochs; }
  void train_epoch();
  random::Key key_of_batch(std::int64_t n) const;
  void train_batch(const Batch& batch);
  void step(std::vector<GradientAndVariable> pairs);
  void end_batch(double loss);
  void end_epoch();
  void judge(const EpochReport& report);
  bool writes_log() const;
  void log_epoch(const EpochReport& report);
  bool is_due(std::int64_t count, std::int64_t FitCheckpoints::*every) const;
  void save();
  void restore_best() const;

  const std::vector<NamedVariable> variables_;
  const std::vector<Variable> trained_;
  const BatchFunction& function_;
  Optimizer& optimizer_;
  const FitOptions& options_;
  const DataLoader loader_;
  const std::optional<DataLoader> validation_;
  Tally tally_;
  FitState state_;
  const Monitor monitor_;
  GradientAccumulator accumulator_;
  std::optional<CheckpointFolder> folder_;
  Checkpoint checkpoint_;
  std::optional<std::pair<std::int64_t, std::int64_t>> saved_;   // the epoch and batch of the last checkpoint
  Progress progress_;
  std::optional<std::int64_t> resumed_at_;
  bool stop_ = false;   // a callback has requested it
};

Loop::Loop(std::vector<NamedVariable> variables, const BatchFunction& function, Optimizer& optimizer,
           const Parts& parts, const FitOptions& options)
    : variables_(std::move(variables)),
      trained_(options.variables ? *options.variables : trainable(variables_)),
      function_(function),
      optimizer_(optimizer),
      options_(options),
      loader_(training_loader(parts.training, options)),
      validation_(parts.validation ? std::optional(unshuffled(*parts.validation, options.batch))
                                   : std::nullopt),
      tally_(options.metrics),
      state_{number_names(options, validation_.has_value()), loader_.size(),
             options.early_stopping && options.early_stopping->restore_best},
      monitor_(monitor_of(options, state_.names, validation_.has_value())),
      progress_(is_first_replica() ? options.progress : FitProgress::silent, options.epochs, loader_.size()) {
  if (trained_.empty())
    throw ArgumentError(
        options.variables
            ? "fit: FitOptions::variables is an empty list; leave it out to train all variables of the "
              "network"
            : "fit: the network has no trainable variables; make one trainable, or name those to train in "
              "FitOptions::variables");
  tapedeck::detail::check_distinct(trained_, "fit");
  if (options.checkpoints || (options.early_stopping && options.early_stopping->restore_best))
    check_in_network();
  check_not_empty("fit", "the data", loader_);
  if (validation_) check_not_empty("fit", "the validation data", *validation_);
  if (options.checkpoints) open_folder();
}

// Checkpoints and restore_best save and restore the network, by the names of its variables.
void Loop::check_in_network() const {
  std::set<std::string_view> names;
  for (const auto& [name, variable] : variables_)
    if (!names.insert(name).second)
      throw_error<ArgumentError>(
          "fit: two variables of the network have the name \"{}\", so checkpoints and restore_best would "
          "confuse them; give them different names",
          name);
  for (const Variable& v : trained_)
    if (std::none_of(variables_.begin(), variables_.end(),
                     [&](const NamedVariable& own) { return own.variable == v; }))
      throw_error<ArgumentError>(
          "fit: {} is trained but is not part of the network, so checkpoints and restore_best would omit it; "
          "make it a member",
          tapedeck::detail::described(v.cell()));
}

void Loop::open_folder() {
  folder_.emplace(options_.checkpoints->folder,
                  CheckpointFolderOptions{.keep_last = options_.checkpoints->keep_last});
  checkpoint_.add("network", variables_);
  checkpoint_.add("optimizer", optimizer_);
  checkpoint_.add("fit", state_);
  if (options_.loss_scale) checkpoint_.add("loss_scale", *options_.loss_scale);
  checkpoint_.add("metrics/loss", tally_.loss);
  for (Metric& metric : tally_.metrics)
    checkpoint_.add("metrics/" + metric.name(), metric);
  if (options_.checkpoints->add) options_.checkpoints->add(checkpoint_);
}

/// Continues from the last checkpoint, or saves the first one.
void Loop::begin() {
  if (!folder_) return;
  const std::optional<std::string> latest = folder_->latest();
  if (!latest) return save();
  checkpoint_.restore(*latest);
  resumed_at_ = state_.at.steps;
  saved_ = {state_.at.epoch, state_.at.batch};
  TrainingLog* log = options_.log;
  if (log && !is_complete() && state_.at.log_size >= 0 && state_.at.log_size < log->size())
    log->truncate(state_.at.log_size);
  progress_.resume(state_.at.steps, is_complete());
}

FitReport Loop::run() {
  const auto began = std::chrono::steady_clock::now();
  begin();
  while (!stop_ && !is_complete())
    train_epoch();
  save();
  if (state_.keeps_best) restore_best();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  return {.history = state_.at.history,
          .best_epoch = state_.at.best_epoch,
          .stopped_early = stop_ || state_.at.stopped,
          .steps = state_.at.steps,
          .resumed_at = resumed_at_,
          .seconds = seconds.count()};
}

void Loop::train_epoch() {
  progress_.begin_epoch(state_.at.epoch, state_.at.batch);
  for (const Batch& batch : loader_.epoch(state_.at.epoch, state_.at.batch)) {
    train_batch(batch);
    if (stop_ && accumulator_.count() == 0) return;   // batches of a step belong together
  }
  end_epoch();
}

// Each replica gets its own key: if all of them dropped the same elements of different rows, they would learn
// less from these.
random::Key Loop::key_of_batch(std::int64_t n) const {
  const random::Key key = options_.key.split(1).split(static_cast<std::uint64_t>(n));
  const Communicator* const all = thread_state.communicator;
  if (!all || all->replica().count == 1) return key;
  return key.split(static_cast<std::uint64_t>(all->replica().index));
}

void Loop::train_batch(const Batch& batch) {
  FitPosition& at = state_.at;
  const std::int64_t n = at.epoch * loader_.size() + at.batch;
  const Run run = {.training = true, .key = key_of_batch(n)};
  BatchResult result;
  Tensor loss;
  const auto scaled_loss = [&] {
    result = function_(batch, run);
    loss = mean_loss("fit", result);
    return options_.loss_scale ? options_.loss_scale->scale(loss) : loss;
  };
  std::vector<GradientAndVariable> pairs = Optimizer::compute_gradients(scaled_loss, {.variables = trained_});
  const double number = loss.item();
  if (n == 0) warn_of_pairs(result);
  tally_.add("fit", batch, result, number);
  if (options_.accumulate == 1) {
    step(std::move(pairs));
  } else {
    accumulator_.add(pairs);
    if (accumulator_.count() == options_.accumulate || at.batch + 1 == loader_.size())
      step(accumulator_.take_mean());
  }
  ++at.batch;
  progress_.add_batch(rows_of(batch), [&] { return tally_.numbers(); });
  end_batch(number);
}

void Loop::step(std::vector<GradientAndVariable> pairs) {
  if (!options_.loss_scale || options_.loss_scale->unscale(pairs)) optimizer_.apply_gradients(pairs);
  ++state_.at.steps;
}

/// After a batch, with or without a step.
void Loop::end_batch(double loss) {
  const FitPosition& at = state_.at;
  const bool has_step = accumulator_.count() == 0;
  if (has_step && writes_log() && options_.log_steps > 0 && at.steps % options_.log_steps == 0)
    options_.log->write({{"kind", "step"}, {"epoch", at.epoch}, {"step", at.steps}, {"loss", loss}});
  if (options_.on_batch) {
    BatchReport report = {.epoch = at.epoch, .batch = at.batch - 1, .steps = at.steps, .loss = loss};
    options_.on_batch(report);
    stop_ = stop_ || report.stop;
  }
  if (has_step && is_due(at.steps, &FitCheckpoints::every_steps)) save();
}

void Loop::end_epoch() {
  FitPosition& at = state_.at;
  EpochReport report = {.epoch = at.epoch, .steps = at.steps, .numbers = tally_.numbers()};
  tally_.reset();
  if (validation_)
    for (NamedNumber& n : evaluate_batches("fit", function_, *validation_, options_.metrics, kOfValidation))
      report.numbers.push_back(std::move(n));
  average_over_replicas(report.numbers);
  judge(report);
  at.history.push_back(report);
  ++at.epoch;
  at.batch = 0;
  log_epoch(report);
  progress_.end_epoch(report);
  if (options_.on_epoch) options_.on_epoch(report);
  stop_ = stop_ || report.stop;
  if (is_due(at.epoch, &FitCheckpoints::every_epochs)) save();
}

/// Decides whether this epoch is the best one, and whether to stop.
void Loop::judge(const EpochReport& report) {
  FitPosition& at = state_.at;
  const double value = report[monitor_.name];
  if (std::isnan(value) || (at.best_epoch && !monitor_.is_better(value, at.best))) {
    ++at.waited;
    at.stopped = options_.early_stopping && at.waited >= options_.early_stopping->patience;
    return;
  }
  at.best_epoch = report.epoch;
  at.best = value;
  at.waited = 0;
  const StopRecording unrecorded;
  if (state_.keeps_best)
    for (const auto& [name, variable] : variables_)
      at.best_values.insert_or_assign(name, variable.value());
  if (!folder_ || !options_.checkpoints->keep_best) return;
  Checkpoint best;
  best.add("network", variables_);
  best.save(options_.checkpoints->folder + "/best.safetensors");
}

// Only the first replica writes the log: numbers of an epoch are averages over all replicas, the loss of a
// step is that of its own part of the batch.
bool Loop::writes_log() const { return options_.log && is_first_replica(); }

void Loop::log_epoch(const EpochReport& report) {
  if (!writes_log()) return;
  std::vector<LogField> fields = {{"kind", "epoch"}, {"epoch", report.epoch}, {"step", report.steps}};
  for (const NamedNumber& n : report.numbers)
    fields.push_back({n.name, n.value});
  options_.log->write(fields);
}

bool Loop::is_due(std::int64_t count, std::int64_t FitCheckpoints::*every) const {
  return folder_ && *options_.checkpoints.*every > 0 && count % (*options_.checkpoints.*every) == 0;
}

/// Saves a checkpoint, unless there is no folder or this position has been saved.
void Loop::save() {
  FitPosition& at = state_.at;
  const std::pair position(at.epoch, at.batch);
  if (!folder_ || saved_ == position) return;
  at.log_size = options_.log ? options_.log->size() : -1;
  folder_->save(checkpoint_, at.steps);
  saved_ = position;
}

void Loop::restore_best() const {
  for (const auto& [name, variable] : variables_)
    if (const auto value = state_.at.best_values.find(name); value != state_.at.best_values.end())
      variable.assign(value->second);
}

}   // namespace

double EpochReport::operator[](std::string_view name) const {
  std::vector<std::string> names;
  for (const NamedNumber& n : numbers) {
    if (n.name == name) return n.value;
    names.push_back(n.name);
  }
  throw_error<ArgumentError>("epoch_report: there is no \"{}\"; use one of {}", name, listed(names));
}

namespace detail {

void check_pair(const Batch& batch) {
  if (batch.size() != 2)
    throw_error<ArgumentError>(
        "fit: a batch has {} tensors, and a loss of (labels, predictions) takes inputs and labels; use a "
        "loss of "
        "(network, batch, run)",
        batch.size());
}

FitReport fit(std::vector<NamedVariable> variables, const BatchFunction& function, Optimizer& optimizer,
              const FitData& data, const FitOptions& options) {
  check_options(options);
  if (thread_state.communicator) check_replica_options(options);
  const Parts parts = split(data, options.validation);
  check_use(parts, options);
  return Loop(std::move(variables), function, optimizer, parts, options).run();
}

std::vector<NamedNumber> evaluate(const BatchFunction& function, const FitData& data,
                                  const EvaluateOptions& options) {
  if (options.batch && *options.batch < 1)
    throw_error<ArgumentError>("evaluate: batch is {}; use 1 or more", *options.batch);
  const DataLoader loader = unshuffled(data, options.batch);
  check_not_empty("evaluate", "the data", loader);
  return evaluate_batches("evaluate", function, loader, options.metrics, "");
}

}   // namespace detail
}   // namespace tapedeck::nn
