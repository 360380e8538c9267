// Saves and restores the position of a training.
#include "nn/fit_state.h"

#include <algorithm>

#include "core/format.h"
#include "optim/saved_state.h"
#include "tapedeck/ops/array.h"

namespace tapedeck::nn {
namespace {

constexpr std::string_view kHistory = "history/", kBest = "best/";

double number(std::int64_t n) { return static_cast<double>(n); }

/// One number, over all epochs.
Tensor column(const std::vector<EpochReport>& history, const auto& number_of) {
  std::vector<double> values;
  for (const EpochReport& epoch : history)
    values.push_back(number_of(epoch));
  return tensor(values);
}
std::vector<double> column(const SavedState& saved, std::string_view name, std::int64_t epochs) {
  const auto at = saved.tensors.find(fmt::format("{}{}", kHistory, name));
  if (at == saved.tensors.end() || at->second.spec() != Spec{DType::f64, {epochs}})
    throw_error<ArgumentError>(
        "fit: checkpoints: the last one has no \"{}\" for its {} epochs; use the metrics and the validation "
        "with which it was made, or another folder",
        name, epochs);
  return at->second.to_vector<double>();
}

std::vector<EpochReport> history_of(const SavedState& saved, std::int64_t epochs,
                                    const std::vector<std::string>& names) {
  std::vector<EpochReport> history;
  if (epochs == 0) return history;
  for (const double steps : column(saved, "step", epochs))
    history.push_back({.epoch = std::ssize(history), .steps = whole_number("fit", "history/step", steps)});
  for (const std::string& name : names) {
    const std::vector<double> values = column(saved, name, epochs);
    for (std::size_t i = 0; i < history.size(); ++i)
      history[i].numbers.push_back({name, values[i]});
  }
  return history;
}

NamedTensors best_values_of(const SavedState& saved) {
  NamedTensors best;
  for (const auto& [name, value] : saved.tensors)
    if (name.starts_with(kBest)) best.emplace(name.substr(kBest.size()), value);
  return best;
}

}   // namespace

SavedState FitState::state() const {
  SavedState saved = {.scalars = {{"epoch", number(at.epoch)},
                                  {"batch", number(at.batch)},
                                  {"batches", number(batches)},
                                  {"steps", number(at.steps)},
                                  {"best_epoch", number(at.best_epoch.value_or(-1))},
                                  {"best", at.best},
                                  {"waited", number(at.waited)},
                                  {"stopped", number(at.stopped)},
                                  {"log_size", number(at.log_size)}},
                      .kind = "fit"};
  for (const auto& [name, value] : at.best_values)
    saved.tensors.emplace(fmt::format("{}{}", kBest, name), value);
  if (at.history.empty()) return saved;
  const auto put = [&](const std::string& name, const auto& number_of) {
    saved.tensors.emplace(fmt::format("{}{}", kHistory, name), column(at.history, number_of));
  };
  put("step", [](const EpochReport& e) { return number(e.steps); });
  for (const std::string& name : names)
    put(name, [&](const EpochReport& e) { return e[name]; });
  return saved;
}

Commit FitState::prepare_restore(const SavedState& saved) {
  StateReader reader("fit", saved);
  FitPosition p = {
      .epoch = reader.count("epoch"), .batch = reader.count("batch"), .steps = reader.count("steps")};
  const std::int64_t saved_batches = reader.count("batches");
  if (const std::int64_t epoch = reader.count("best_epoch", -1); epoch >= 0) p.best_epoch = epoch;
  p.best = reader.scalar("best");
  p.waited = reader.count("waited");
  p.stopped = reader.count("stopped") > 0;
  p.log_size = reader.count("log_size", -1);
  reader.end_scalars();
  if (p.batch > 0 && saved_batches != batches)
    throw_error<ArgumentError>(
        "fit: checkpoints: the last one is at batch {} of {}, but an epoch now has {}; use the data and the "
        "batch size with which it was made, or another folder",
        p.batch, saved_batches, batches);
  if (p.batch > batches)
    throw_error<ArgumentError>("restore: batch of fit is {}, but an epoch has {}", p.batch, batches);
  if (p.best_epoch >= p.epoch)
    throw_error<ArgumentError>("restore: best_epoch of fit is {}, of {} epochs", *p.best_epoch, p.epoch);
  p.history = history_of(saved, p.epoch, names);
  p.best_values = best_values_of(saved);
  if (keeps_best && p.best_epoch && p.best_values.empty())
    throw ArgumentError(
        "fit: restore_best: the last checkpoint was made without it, so the best variables are unknown; "
        "leave it out, or use another folder");
  return [this, p = std::move(p)]() mutable { at = std::move(p); };
}

bool FitState::may_have(std::string_view tensor) const {
  return tensor.starts_with(kHistory) || tensor.starts_with(kBest);
}

}   // namespace tapedeck::nn
