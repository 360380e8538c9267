// In: executions from the door, and ends of tensors. Out: entries, and for each tracked tensor its slot and
// its producer.
#include "tape/tape.h"

#include <algorithm>

#include "core/storage.h"
#include "op/observer.h"

namespace tapedeck {
namespace {

// Reading a variable: its value depends on the variable itself, which a hollow handle stands for.
constexpr Op read_variable = {
    .name = "read_variable",
    .doc = "The value that a variable holds.",
    .args = {"variable"},
    .infer = [](const Call& c) { return c.x[0].spec(); },
    .forward = {},
    .rule = {
        .kind = RuleKind::linear,
        .passes_slices = true,
        .vjp = [](const Call&, std::span<Gradient> dy, std::span<Gradient> dx) { dx[0] = std::move(dy[0]); },
        .jvp = [](const Call&, Refs dx, std::span<Tensor> dy) { dy[0] = dx[0]; }},
};

// The inputs' slots, in place for ops with few inputs. Returns whether the tape tracks one of them.
bool find_inputs(Tape& tape, const Call& c, Slot* slots) {
  bool any = false;
  for (int i = 0; i < c.x.size(); ++i) {
    if (tape.options().watch_all && is_trainable(c.x[i].dtype())) tape.watch(c.x[i]);
    slots[i] = is_trainable(c.x[i].dtype()) ? tape.slot_of(c.x[i]) : -1;
    any |= slots[i] >= 0;
  }
  return any;
}

// Exactly what the rule reads for the gradients of the inputs that the tape tracks.
void keep(TapeEntry& e, const Call& c, std::span<Tensor> y, unsigned read_by_partials) {
  const Rule& rule = c.op.rule;
  const std::span<Tensor> kept_x = e.kept_x(), kept_y = e.kept_y();
  const bool many = y.size() != 1;
  for (int i = 0; i < c.x.size(); ++i) {
    if (rule.by_partials() ? read_by_partials >> i & 1 : rule.keeps(i))
      kept_x[static_cast<std::size_t>(i)] = c.x[i];
    else if (rule.reads_shapes || many || c.x[i].shape() != y[0].shape())
      kept_x[static_cast<std::size_t>(i)] = hollow(c.x[i]);
  }
  for (std::size_t k = 0; k < y.size(); ++k) {
    if (rule.by_partials() ? read_by_partials >> kMaxInputs & 1 : rule.reads_y)
      kept_y[k] = saved_copy(y[k]);
    else if (many)
      kept_y[k] = hollow(y[k]);
  }
}

Slot first_output(TapeEntry& e) {
  const std::span<Slot> y = e.y();
  return *std::find_if(y.begin(), y.end(), [](Slot s) { return s >= 0; });
}

}   // namespace

bool is_read(const TapeEntry& e) { return e.op == &read_variable; }

Tape::Tape(const TapeOptions& options) : options_(options) { tracked_.reserve(64); }

void Tape::grow(std::size_t more) { tracked_.reserve(std::max(2 * tracked_.size(), tracked_.size() + more)); }

Slot Tape::new_slot(const Tensor& x, std::int32_t producer) noexcept {
  Slot s = free_;
  if (s >= 0) {
    free_ = tracked_[static_cast<std::size_t>(s)].next;
  } else {
    s = static_cast<Slot>(tracked_.size());
    tracked_.emplace_back();
  }
  const detail::Block& b = x.block();
  Tracked& t = tracked_[static_cast<std::size_t>(s)];
  t.producer = producer;
  t.uses = 1;
  t.spec.dtype = b.dtype;
  t.spec.shape = b.shape;
  t.id = b.id;
  name(x, s);
  return s;
}

void Tape::watch(const Tensor& x) {
  if (slot_of(x) >= 0) return;
  sweep_mail();
  make_room(1);
  reserve_names(1);
  new_slot(x, -1);
}

void Tape::watch(const Variable& v) {
  const bool known = std::find(variables_.begin(), variables_.end(), v) != variables_.end();
  if (!known) variables_.push_back(v);
  try {
    watch(v.cell().handle);
  } catch (...) {
    if (!known) variables_.pop_back();
    throw;
  }
}

void Tape::read(detail::VariableCell& cell, Tensor& value) {
  if (paused) return;
  const bool watched = slot_of(cell.handle) >= 0;
  if (!watched && !(options_.watch_accessed_variables && cell.trainable) &&
      !(options_.watch_all && is_trainable(value.dtype())))
    return;
  if (!watched) watch(Variable(cell.shared_from_this()));
  const Tensor* x[] = {&cell.handle};
  record({.op = read_variable, .x = {x, 1}}, {&value, 1});
}

void Tape::record(const Call& c, std::span<Tensor> y) {
  if (paused) return;
  sweep_mail();
  const int n = c.x.size();
  const bool few = n <= kMaxInputs && y.size() == 1;
  std::array<Slot, kMaxInputs> few_x;
  std::unique_ptr<TapeEntry::More> more;
  if (few) {
    if (!find_inputs(*this, c, few_x.data())) return;
    if (!is_trainable(y[0].dtype())) return;
  } else {
    std::vector<Slot> x(static_cast<std::size_t>(n));
    if (!find_inputs(*this, c, x.data())) return;
    if (std::none_of(y.begin(), y.end(), [](const Tensor& t) { return is_trainable(t.dtype()); })) return;
    more = std::make_unique<TapeEntry::More>();
    more->x = std::move(x);
    more->y.resize(y.size(), -1);
    more->kept_x.resize(more->x.size());
    more->kept_y.resize(y.size());
  }

  // All that may throw comes first.
  make_room(y.size());
  if (!alone() || c.op.forward.run == nullptr) reserve_names(y.size());
  const std::int32_t k = entries_.acquire();
  TapeEntry& e = entries_[k];
  try {
    e.op = &c.op;
    e.inputs = n;
    e.outputs = static_cast<std::int32_t>(y.size());
    if (few) e.few_x = few_x;
    e.more = std::move(more);
    if (c.raw_attrs.type) e.attrs = OwnedAttrs(c.raw_attrs);
    unsigned reads = 0;
    if (c.op.rule.by_partials())
      for (int i = 0; i < n; ++i)
        if (e.few_x[static_cast<std::size_t>(i)] >= 0) reads |= c.op.rule.partial_reads[i];
    keep(e, c, y, reads);
  } catch (...) {
    entries_.release(k);
    throw;
  }
  for (const Slot s : e.x())
    if (s >= 0) take_use(s);
  const std::span<Slot> out = e.y();
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!is_trainable(y[i].dtype())) continue;
    const Slot before = slot_of(y[i]);   // outputs that were not made by the door may be known already
    if (before >= 0) forget_name(y[i]);
    out[i] = new_slot(y[i], k);
    ++e.reachable_outputs;
    if (before >= 0) ended(before);
  }
  if (c.op.rule.reads_y)
    for (std::size_t i = 0; i < y.size(); ++i) {
      Tensor& copy = e.kept_y()[i];
      if (!copy.defined() || !copy.raw()) continue;
      track_copy(copy, y[i], slot_outlives_copies(y[i]));
      tell_copied(y[i]);
    }
  if (thread_state.observer) [[unlikely]]
    note_place(k);
}

// Numbers of entries are used again, so a place has the id of its entry's output. Without memory for it there
// is none.
void Tape::note_place(std::int32_t k) noexcept try {
  const auto i = static_cast<std::size_t>(k);
  std::shared_ptr<const Place> place = here(tracked(first_output(entries_[k])).id);
  if (!place) return;
  if (places_.size() <= i) places_.resize(i + 1);
  places_[i] = std::move(place);
} catch (const std::bad_alloc&) {}

const Place* Tape::place_of(TapeEntry& e) const {
  const Tracked& y = tracked(first_output(e));
  const auto k = static_cast<std::size_t>(y.producer);
  return k < places_.size() && places_[k] && places_[k]->id == y.id ? places_[k].get() : nullptr;
}

void Tape::take_use(Slot s) noexcept {
  Tracked& t = tracked_[static_cast<std::size_t>(s)];
  if (t.uses++ == 0 && t.producer >= 0) ++entries_[t.producer].reachable_outputs;
}

void Tape::drop_use(Slot s) noexcept {
  Tracked& t = tracked_[static_cast<std::size_t>(s)];
  if (--t.uses > 0) return;
  t.next = dead_;
  dead_ = s;
}

void Tape::free_slot(Slot s) noexcept {
  Tracked& t = tracked_[static_cast<std::size_t>(s)];
  unname(t.id);
  t.next = free_;
  free_ = s;
}

void Tape::ended(Slot s) noexcept {
  drop_use(s);
  if (dead_ >= 0 && !freeing_) free_dead();
}

// Frees what is out of reach, and what that leaves out of reach, as a list instead of by recursion: the end
// of a kept tensor comes back to `ended`, which only adds to the list.
void Tape::free_dead() noexcept {
  freeing_ = true;
  while (dead_ >= 0) {
    const Slot s = dead_;
    const std::int32_t producer = tracked_[static_cast<std::size_t>(s)].producer;
    dead_ = tracked_[static_cast<std::size_t>(s)].next;
    if (producer < 0) {
      free_slot(s);
      continue;
    }
    TapeEntry& e = entries_[producer];
    if (--e.reachable_outputs > 0)
      continue;   // the slot ends with the entry, whose rule may compute with a kept copy of this output yet
    for (const Slot y : e.y())
      if (y >= 0) free_slot(y);
    for (const Slot x : e.x())
      if (x >= 0) drop_use(x);
    entries_.release(producer);
  }
  freeing_ = false;
}

void Tape::reset() {
  unname_all();
  entries_.clear();
  tracked_.clear();
  free_ = dead_ = -1;
  variables_.clear();
}

void Tape::consume() noexcept {
  leave();
  retire();
  used = true;
}

void Tape::free_entries() noexcept { entries_.clear(); }

Tape::Most Tape::most() const {
  Most most;
  for (const Tracked& t : tracked_) {
    if (t.uses == 0) continue;
    most.nbytes = std::max(most.nbytes, t.spec.nbytes());
    most.ndim = std::max(most.ndim, t.spec.shape.ndim());
  }
  return most;
}

std::vector<Variable> Tape::watched_variables() const {
  std::vector<Variable> sorted = variables_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Variable& a, const Variable& b) { return a.id() < b.id(); });
  return sorted;
}

}   // namespace tapedeck
