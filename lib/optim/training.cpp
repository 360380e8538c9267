// Gradients of several losses, or of a scaled loss, up to a step.
#include "tapedeck/training.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/format.h"
#include "op/recorder.h"
#include "optim/communicator.h"
#include "optim/master.h"
#include "optim/recorded.h"
#include "optim/saved_state.h"
#include "tape/variable.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

const Tensor& values_of(const Gradient& g) { return g.slices() ? g.slices()->values : g.tensor(); }

Gradient in_f32(const Gradient& g) { return g.defined() ? with_numbers(g, in_f32(values_of(g))) : g; }
Gradient times(const Gradient& g, double factor) {
  return g.defined() ? with_numbers(g, in_f32(values_of(g)) * factor) : Gradient();
}

bool finite(const Gradient& g) {   // ∞ · 0 is NaN
  return !g.defined() || sum(values_of(g) * 0.0).item() == 0;
}

constexpr std::array<std::string_view, 4> kSumSlots = {"indices", "place", "sum", "values"};

// The slots of one variable; undefined if missing.
struct SavedSum {
  Variable variable;
  Tensor indices = {}, place = {}, sum = {}, values = {};

  Tensor& slot(std::string_view name) {
    Tensor* const all[] = {&indices, &place, &sum, &values};
    const auto at = std::find(kSumSlots.begin(), kSumSlots.end(), name);
    if (at == kSumSlots.end())
      throw_error<ArgumentError>("restore: gradient_accumulator has no slot \"{}\"", name);
    return *all[at - kSumSlots.begin()];
  }
  std::int64_t order() const {
    if (!place.defined() || place.dtype() != DType::i64 || place.size() != 1)
      throw_error<ArgumentError>(
          "restore: gradient_accumulator: the place of {} is missing, or is not an i64 scalar",
          detail::described(variable.cell()));
    const std::string name = fmt::format("the place of {}", detail::described(variable.cell()));
    return whole_number("gradient_accumulator", name, place.item());
  }
  Gradient gradient() const {
    if (values.defined() != indices.defined() || (values.defined() && sum.defined()))
      throw_error<ArgumentError>(
          "restore: gradient_accumulator: {} has only one of values and indices, or a sum in addition to "
          "them",
          detail::described(variable.cell()));
    if (!values.defined() && !sum.defined()) return {};
    const Tensor& numbers = sum.defined() ? sum : values;
    const DType dtype = computed_in(variable.dtype());
    if (numbers.dtype() != dtype)
      throw_error<DTypeError>("restore: {} is {}, the numbers of its sum are {}; they must be {}",
                              detail::label(variable.cell()), variable.cell().value.spec(), numbers.spec(),
                              name_of(dtype));
    if (sum.defined() && sum.shape() != variable.shape())
      throw_error<ShapeError>("restore: {} is {}, its sum is {}", detail::label(variable.cell()),
                              variable.cell().value.spec(), sum.spec());
    if (sum.defined()) return sum;
    IndexedSlices slices = {values, indices, variable.shape()};
    validate(slices, "restore", variable.name());
    return slices;
  }
};

struct RestoredSum {
  std::int64_t place;
  GradientAndVariable pair;
};

std::vector<RestoredSum> sums_of(std::span<const SlotValue> slots) {
  std::vector<SavedSum> saved;
  for (const SlotValue& s : slots) {
    auto at = std::find_if(saved.begin(), saved.end(),
                           [&](const SavedSum& other) { return other.variable == s.variable; });
    if (at == saved.end()) at = saved.insert(at, {s.variable});
    at->slot(s.slot) = s.value;
  }
  std::vector<RestoredSum> sums;
  for (const SavedSum& s : saved)
    sums.push_back({s.order(), {s.gradient(), s.variable}});
  std::stable_sort(sums.begin(), sums.end(),
                   [](const RestoredSum& a, const RestoredSum& b) { return a.place < b.place; });
  return sums;
}

void check_fits(const GradientAndVariable& p) {
  if (!p.gradient.defined()) return;
  const IndexedSlices* s = p.gradient.slices();
  const DType given = (s ? s->values : p.gradient.tensor()).dtype(), own = p.variable.dtype();
  if (given != own && given != computed_in(own))
    throw_error<DTypeError>("gradient_accumulator: {} is {}, its gradient {}; use astype",
                            detail::label(p.variable.cell()), p.variable.cell().value.spec(), given);
  const Shape& wanted = p.variable.shape();
  if (s) {
    const IndexedSlices all = {s->values, s->indices, s->dense_shape ? *s->dense_shape : wanted};
    validate(all, "gradient_accumulator", p.variable.name());
    if (*all.dense_shape == wanted) return;
  } else if (p.gradient.tensor().shape() == wanted) {
    return;
  }
  throw_error<ShapeError>("gradient_accumulator: {} is {}, its gradient has the shape {}",
                          detail::label(p.variable.cell()), p.variable.cell().value.spec(),
                          s ? *s->dense_shape : p.gradient.tensor().shape());
}

}   // namespace

void GradientAccumulator::add(std::span<const GradientAndVariable> pairs) {
  if (thread_state.trace)
    return act(
        {"gradient_accumulator", lifetime_.watch()}, pairs, [] { return true; },
        [this](std::span<const GradientAndVariable> now) { add(now); });
  const RecordingScope unrecorded(nullptr);
  std::vector<GradientAndVariable> sums = sums_;
  std::vector<std::int64_t> places = places_;
  for (const GradientAndVariable& p : pairs) {
    check_fits(p);
    const auto at = std::find_if(sums.begin(), sums.end(),
                                 [&](const GradientAndVariable& s) { return s.variable == p.variable; });
    Gradient gradient = in_f32(p.gradient);
    if (const IndexedSlices* s = gradient.slices(); s && !s->dense_shape)
      gradient = IndexedSlices{s->values, s->indices, p.variable.shape()};
    if (at == sums.end())
      sums.push_back({std::move(gradient), p.variable}),
          places.push_back(places.empty() ? 0 : places.back() + 1);
    else
      at->gradient = aggregate({at->gradient, gradient});
  }
  sums_ = std::move(sums);
  places_ = std::move(places);
  ++count_;
}

std::vector<GradientAndVariable> GradientAccumulator::take_sum() {
  refuse_in_recording("gradient_accumulator", "its sum");
  if (count_ == 0) throw ArgumentError("take_sum: no gradients were added");
  count_ = 0;
  places_.clear();
  return std::exchange(sums_, {});
}

std::vector<GradientAndVariable> GradientAccumulator::take_mean() {
  refuse_in_recording("gradient_accumulator", "its sum");
  if (count_ == 0) throw ArgumentError("take_mean: no gradients were added");
  const RecordingScope unrecorded(nullptr);
  std::vector<GradientAndVariable> mean = sums_;
  for (GradientAndVariable& p : mean)
    p.gradient = times(p.gradient, 1 / static_cast<double>(count_));
  count_ = 0;
  places_.clear();
  sums_.clear();
  return mean;
}

std::int64_t GradientAccumulator::count() const {
  refuse_in_recording("gradient_accumulator", "the number of additions");
  return count_;
}

SavedState GradientAccumulator::state() const {
  refuse_in_recording("gradient_accumulator", "its state");
  SavedState s = {.scalars = {{"count", static_cast<double>(count_)}}, .kind = "gradient_accumulator"};
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const auto& [gradient, variable] = sums_[i];
    const auto put = [&, &v = variable](const char* slot, Tensor x) {
      s.slots.push_back({v, slot, std::move(x)});
    };
    put("place", tensor(places_[i]));
    if (gradient.is_dense()) put("sum", gradient.tensor());
    if (const IndexedSlices* slices = gradient.slices())
      put("values", slices->values), put("indices", slices->indices);
  }
  return s;
}

void GradientAccumulator::restore(const SavedState& state) { prepare_restore(state)(); }
Commit GradientAccumulator::prepare_restore(const SavedState& state) {
  refuse_in_recording("gradient_accumulator", "a state that is restored");
  const SavedState own = {.scalars = state.scalars, .tensors = state.tensors, .kind = state.kind};
  StateReader reader("gradient_accumulator", own);
  const std::int64_t count = reader.count("count");
  reader.end();
  std::vector<GradientAndVariable> sums;
  std::vector<std::int64_t> places;
  for (RestoredSum& s : sums_of(state.slots))
    sums.push_back(std::move(s.pair)), places.push_back(s.place);
  return [this, sums = std::move(sums), places = std::move(places), count]() mutable {
    sums_ = std::move(sums);
    places_ = std::move(places);
    count_ = count;
  };
}

std::vector<std::string> GradientAccumulator::slot_names() const {
  return {kSumSlots.begin(), kSumSlots.end()};
}

LossScale::LossScale(LossScaleOptions options) : options_(options), value_(options.initial) {
  const auto [initial, factor, interval, least, most] = options;
  if (!(least > 0 && least <= initial && initial <= most && std::isfinite(most)))
    throw_error<ArgumentError>(
        "loss_scale: initial is {}, least is {}, most is {}; use ascending numbers above 0: least, initial, "
        "most",
        initial, least, most);
  if (!(factor > 1 && std::isfinite(factor)) || interval < 0)
    throw_error<ArgumentError>(
        "loss_scale: factor is {}, growth_interval is {}; use a factor above 1 and an interval of 0 or more",
        factor, interval);
}

double LossScale::value() const {
  refuse_in_recording("loss_scale", "its value");
  return value_;
}
std::int64_t LossScale::skipped() const {
  refuse_in_recording("loss_scale", "the number of skipped steps");
  return skipped_;
}

Tensor LossScale::scale(const Tensor& loss) const {
  const Tensor x = in_f32(loss);
  if (!thread_state.trace) return x * value_;
  const Spec spec = {x.dtype(), {}};
  const auto now = [this, dtype = x.dtype()](std::span<const Tensor>) {
    return std::vector<Tensor>{full({}, value_, dtype)};
  };
  return x * results_of({"loss_scale", lifetime_.watch()}, {}, std::span(&spec, 1), now)[0];
}

bool LossScale::unscale(std::span<GradientAndVariable> pairs) {
  const RecordingScope unrecorded(nullptr);
  const double factor = 1 / value_;
  bool is_finite = std::all_of(pairs.begin(), pairs.end(),
                               [](const GradientAndVariable& p) { return finite(p.gradient); });
  if (Communicator* const all = thread_state.communicator) {
    // Either all replicas take a step, or none does.
    const Tensor infinite = tensor(is_finite ? 0 : 1);
    const auto then = [this](const Tensor& sum) { count_step(sum.item() == 0); };
    is_finite = all->sum(infinite, {"loss_scale", "LossScale", this, then}).item() == 0;
  } else {
    count_step(is_finite);
  }
  if (!is_finite) return false;
  for (GradientAndVariable& p : pairs)
    p.gradient = times(p.gradient, factor);
  return true;
}

void LossScale::count_step(bool is_finite) {
  if (!is_finite) {
    if (options_.growth_interval > 0) value_ = std::max(options_.least, value_ / options_.factor);
    good_ = 0;
    ++skipped_;
  } else if (options_.growth_interval > 0 && ++good_ >= options_.growth_interval) {
    value_ = std::min(options_.most, value_ * options_.factor);
    good_ = 0;
  }
}

SavedState LossScale::state() const {
  refuse_in_recording("loss_scale", "its state");
  return {.scalars = {{"value", value_},
                      {"good", static_cast<double>(good_)},
                      {"skipped", static_cast<double>(skipped_)}},
          .kind = "loss_scale"};
}

void LossScale::restore(const SavedState& state) { prepare_restore(state)(); }
Commit LossScale::prepare_restore(const SavedState& state) {
  refuse_in_recording("loss_scale", "a state that is restored");
  StateReader reader("loss_scale", state);
  const double value = reader.scalar("value");
  const std::int64_t good = reader.count("good"), skipped = reader.count("skipped");
  reader.end();
  if (!(value > 0 && std::isfinite(value)))
    throw_error<ArgumentError>("restore: value of loss_scale is {}; use a finite number above 0", value);
  return [=, this] {
    value_ = std::clamp(value, options_.least, options_.most), good_ = good, skipped_ = skipped;
  };
}

Tensor LossScale::minimize(Optimizer& optimizer, const Loss& loss, const LossOptions& options,
                           const std::optional<Variable>& global_step) {
  if (!loss) throw ArgumentError("loss_scale: the loss is an empty function");
  if (options.variables) detail::check_distinct(*options.variables, "loss_scale");
  Tensor value;
  std::vector<GradientAndVariable> pairs =
      Optimizer::compute_gradients([&] { return scale(value = loss()); }, options);
  const auto step = [this, &optimizer, global_step](std::span<const GradientAndVariable> scaled) {
    std::vector<GradientAndVariable> unscaled(scaled.begin(), scaled.end());
    const LossScale before = *this;
    if (!unscale(unscaled)) return;
    try {
      optimizer.apply_gradients(unscaled, global_step);
    } catch (...) {   // other replicas may have counted meanwhile
      if (!thread_state.communicator) *this = before;
      throw;
    }
  };
  if (thread_state.trace)
    act(
        {"loss_scale", lifetime_.watch()}, pairs, [] { return true; }, step);
  else
    step(pairs);
  return value;
}

}   // namespace tapedeck
