// In: ops that were executed, and tensors that were released. Out: entries, and the slot and producer of each
// tracked tensor. The states of a tensor with respect to tapes are in op/recorder.h.
#include "tape/tape.h"

#include <algorithm>

#include "core/storage.h"
#include "op/observer.h"

namespace tapedeck {
namespace {

// A read of a variable. The value read depends on the variable, which a tape tracks as the shape-only handle
// in its cell.
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

// Finds the inputs' slots. Returns whether the tape tracks one of them.
bool find_inputs(Tape& tape, const Call& c, Slot* slots) {
  bool any = false;
  for (int i = 0; i < c.x.size(); ++i) {
    if (tape.options().watch_all && is_trainable(c.x[i].dtype())) tape.watch(c.x[i]);
    slots[i] = is_trainable(c.x[i].dtype()) ? tape.slot_of(c.x[i]) : -1;
    any |= slots[i] >= 0;
  }
  return any;
}

// The lists of an entry for an op with many inputs or several outputs; null if the op need not be recorded.
std::unique_ptr<TapeEntry::More> many_slots(Tape& tape, const Call& c, std::span<Tensor> y) {
  std::vector<Slot> x(static_cast<std::size_t>(c.x.size()));
  if (!find_inputs(tape, c, x.data())) return nullptr;
  if (std::none_of(y.begin(), y.end(), [](const Tensor& t) { return is_trainable(t.dtype()); }))
    return nullptr;
  auto more = std::make_unique<TapeEntry::More>();
  more->x = std::move(x);
  more->y.resize(y.size(), -1);
  more->kept_x.resize(more->x.size());
  more->kept_y.resize(y.size());
  return more;
}

// Saves exactly the tensors that the rule reads to compute the gradients of tracked inputs.
void save(TapeEntry& e, const Call& c, std::span<Tensor> y) {
  const Rule& rule = c.op.rule;
  unsigned read_by_partials = 0;
  if (rule.by_partials())
    for (int i = 0; i < c.x.size(); ++i)
      if (e.few_x[static_cast<std::size_t>(i)] >= 0) read_by_partials |= rule.partial_reads[i];
  const std::span<Tensor> kept_x = e.kept_x(), kept_y = e.kept_y();
  const bool many = y.size() != 1;
  for (int i = 0; i < c.x.size(); ++i) {
    if (rule.by_partials() ? read_by_partials >> i & 1 : rule.keeps(i))
      kept_x[static_cast<std::size_t>(i)] = c.x[i];
    else if (rule.reads_shapes || many || c.x[i].shape() != y[0].shape())
      kept_x[static_cast<std::size_t>(i)] = shape_only(c.x[i]);
  }
  for (std::size_t k = 0; k < y.size(); ++k) {
    if (rule.by_partials() ? read_by_partials >> kMaxInputs & 1 : rule.reads_y)
      kept_y[k] = saved_copy(y[k]);
    else if (many)
      kept_y[k] = shape_only(y[k]);
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
  if (producer < 0) ++watched_;
  assign_slot(x, s);
  return s;
}

void Tape::watch(const Tensor& x) {
  if (slot_of(x) >= 0) return;
  drain_ended();
  reserve_tracked(1);
  reserve_ids(1);
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
  if (paused || (!c.op.rule.vjp && c.op.rule.jvp)) return;   // an op with a jvp alone is for accumulators
  drain_ended();
  std::array<Slot, kMaxInputs> few_x;
  std::unique_ptr<TapeEntry::More> more;
  if (c.x.size() <= kMaxInputs && y.size() == 1) {
    if (!find_inputs(*this, c, few_x.data()) || !is_trainable(y[0].dtype())) return;
  } else {
    more = many_slots(*this, c, y);
    if (!more) return;
  }
  // Everything that may throw comes before the tape is changed.
  reserve_tracked(y.size());
  if (!alone() || c.op.forward.run == nullptr) reserve_ids(y.size());
  const std::int32_t k = add_entry(c, y, few_x, std::move(more));
  TapeEntry& e = entries_[k];
  for (const Slot s : e.x())
    if (s >= 0) take_use(s);
  track_outputs(k, y);
  if (c.op.rule.reads_y) track_copies(e, y);
  has_zeros |= c.op.rule.zero_in != 0;
  if (thread_state.observer) [[unlikely]]
    note_origin(k);
}

inline std::int32_t Tape::add_entry(const Call& c, std::span<Tensor> y,
                                    const std::array<Slot, kMaxInputs>& few_x,
                                    std::unique_ptr<TapeEntry::More> more) {
  const std::int32_t k = entries_.acquire();
  TapeEntry& e = entries_[k];
  try {
    e.op = &c.op;
    e.inputs = c.x.size();
    e.outputs = static_cast<std::int32_t>(y.size());
    if (!more)   // one by one: a load of 16 bytes right after shorter stores would stall
      for (int i = 0; i < c.x.size(); ++i)
        e.few_x[static_cast<std::size_t>(i)] = few_x[static_cast<std::size_t>(i)];
    e.more = std::move(more);
    if (c.raw_attrs.type) e.attrs = OwnedAttrs(c.raw_attrs);
    save(e, c, y);
  } catch (...) {
    entries_.release(k);
    throw;
  }
  return k;
}

inline void Tape::track_outputs(std::int32_t k, std::span<Tensor> y) noexcept {
  TapeEntry& e = entries_[k];
  const std::span<Slot> slots = e.y();
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!is_trainable(y[i].dtype())) continue;
    const Slot before = slot_of(y[i]);   // an output of record_operation() may be tracked already
    if (before >= 0) drop_slot(y[i]);
    slots[i] = new_slot(y[i], k);
    ++e.reachable_outputs;
    if (before >= 0) ended(before);
  }
}

inline void Tape::track_copies(TapeEntry& e, std::span<Tensor> y) noexcept {
  for (std::size_t i = 0; i < y.size(); ++i) {
    Tensor& copy = e.kept_y()[i];
    if (!copy.defined() || !copy.has_values()) continue;
    track_copy(copy, y[i], slot_outlives_copies(y[i]));
    notify_copied(y[i]);
  }
}

// Indices of entries are reused, so an origin contains the id of its entry's output. If memory runs out, the
// entry has no origin.
void Tape::note_origin(std::int32_t k) noexcept try {
  const auto i = static_cast<std::size_t>(k);
  std::shared_ptr<const Origin> origin = observe_origin(id_of(entries_[k]));
  if (!origin) return;
  if (origins_.size() <= i) origins_.resize(i + 1);
  origins_[i] = std::move(origin);
} catch (const std::bad_alloc&) {}

const Origin* Tape::origin_of(TapeEntry& e) const {
  const Tracked& y = tracked(first_output(e));
  const auto k = static_cast<std::size_t>(y.producer);
  return k < origins_.size() && origins_[k] && origins_[k]->id == y.id ? origins_[k].get() : nullptr;
}

std::uint64_t Tape::id_of(TapeEntry& e) const { return tracked(first_output(e)).id; }

void Tape::take_use(Slot s) noexcept {
  Tracked& t = tracked_[static_cast<std::size_t>(s)];
  if (t.uses++ == 0 && t.producer >= 0) ++entries_[t.producer].reachable_outputs;
}

void Tape::drop_use(Slot s) noexcept {
  Tracked& t = tracked_[static_cast<std::size_t>(s)];
  if (--t.uses > 0) return;
  t.next = unused_;
  unused_ = s;
}

void Tape::free_slot(Slot s) noexcept {
  Tracked& t = tracked_[static_cast<std::size_t>(s)];
  drop_id(t.id);
  if (t.producer < 0) --watched_;
  t.next = free_;
  free_ = s;
}

void Tape::ended(Slot s) noexcept {
  drop_use(s);
  if (unused_ >= 0 && !freeing_) free_unused();
}

// Frees unused slots, entries whose outputs are all unused, and slots that become unused thereby. Iterates
// over a list instead of recursing: releasing a saved tensor calls `ended`, which only appends to the list.
void Tape::free_unused() noexcept {
  freeing_ = true;
  while (unused_ >= 0) {
    const Slot s = unused_;
    const std::int32_t producer = tracked_[static_cast<std::size_t>(s)].producer;
    unused_ = tracked_[static_cast<std::size_t>(s)].next;
    if (producer < 0) {
      free_slot(s);
      continue;
    }
    TapeEntry& e = entries_[producer];
    if (--e.reachable_outputs > 0) continue;   // keep the slot: the rule may still read this output
    for (const Slot y : e.y())
      if (y >= 0) free_slot(y);
    for (const Slot x : e.x())
      if (x >= 0) drop_use(x);
    entries_.release(producer);
  }
  freeing_ = false;
}

void Tape::reset() {
  drop_all_slots();
  entries_.clear();
  tracked_.clear();
  free_ = unused_ = -1;
  watched_ = 0;
  has_zeros = false;
  variables_.clear();
  origins_.clear();
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
