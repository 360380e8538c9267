// In: values and their lives. Out: their offsets in the arena.
#include <algorithm>
#include <numeric>
#include <span>

#include "compile/plan/plan.h"

namespace tapedeck::compiled {
namespace {

// A best-fit allocator of offsets in the arena.
class Holes {
 public:
  std::int64_t take(std::int64_t bytes) {
    auto best = holes_.end();
    for (auto h = holes_.begin(); h != holes_.end(); ++h) {
      if (h->bytes >= bytes && (best == holes_.end() || h->bytes < best->bytes)) best = h;
      if (h->bytes == bytes) break;   // an exact fit is the best
    }
    if (best == holes_.end()) {
      end_ += bytes;
      return end_ - bytes;
    }
    const std::int64_t at = best->at;
    best->at += bytes;
    best->bytes -= bytes;
    if (best->bytes == 0) holes_.erase(best);
    return at;
  }
  void give(std::int64_t at, std::int64_t bytes) {
    auto next = std::lower_bound(holes_.begin(), holes_.end(), at,
                                 [](const Hole& h, std::int64_t place) { return h.at < place; });
    next = holes_.insert(next, {at, bytes});
    if (next + 1 != holes_.end() && at + bytes == (next + 1)->at) {
      next->bytes += (next + 1)->bytes;
      holes_.erase(next + 1);
    }
    if (next != holes_.begin() && (next - 1)->at + (next - 1)->bytes == at) {
      (next - 1)->bytes += next->bytes;
      holes_.erase(next);
    }
  }
  std::int64_t end() const { return end_; }

 private:
  struct Hole {
    std::int64_t at, bytes;
  };
  std::vector<Hole> holes_;
  std::int64_t end_ = 0;
};

// The value whose memory v may overwrite: the operand to which a product is added, if nothing else reads it
// in that step or later.
ValueId overwritten_by(const Plan& plan, ValueId v) {
  const NodeId n = plan.program[v].node;
  const ProductSum* sum = n ? as<ProductSum>(plan.program[n]) : nullptr;
  if (!sum || !plan.program.is_all(sum->before())) return {};
  const ValueId before = sum->before().of;
  const bool is_factor = sum->a().of == before || sum->b().of == before;
  const bool is_fit = plan.homes[before].in == Home::In::arena && plan.homes[v].in == Home::In::arena &&
                      plan.lives[before].last == plan.lives[v].first;
  return is_fit && !is_factor ? before : ValueId();
}

// Lists of values by step, each in the order of ids. Filled in two passes: count() all, then counted(), then
// add() all.
class ByStep {
 public:
  explicit ByStep(std::size_t steps) : end_(steps + 1) {}
  void count(std::int32_t step) { ++end_[static_cast<std::size_t>(step) + 1]; }
  void counted() {
    std::partial_sum(end_.begin(), end_.end(), end_.begin());
    list_.resize(end_.back());
  }
  void add(std::int32_t step, ValueId v) { list_[end_[static_cast<std::size_t>(step)]++] = v; }
  /// The values of a step. Precondition: all values that were counted have been added.
  std::span<const ValueId> operator[](std::size_t step) const {
    const std::size_t first = step ? end_[step - 1] : 0;
    return std::span(list_).subspan(first, end_[step] - first);
  }

 private:
  std::vector<std::size_t> end_;
  std::vector<ValueId> list_;
};

}   // namespace

// Allocates values best fit, in the order of their definitions.
void arrange(Plan& plan) {
  const auto& lives = plan.lives;
  const auto bytes_of = [&](ValueId v) { return padded_bytes(plan.program[v].spec); };
  const std::size_t steps = plan.steps.size() + 2;   // and one before the first, and one after the last
  const auto first_of = [&](ValueId v) { return lives[v].first + 1; };
  const auto last_of = [&](ValueId v) { return lives[v].last + 1; };
  ByStep beginning(steps), ending(steps);
  for (const ValueId v : ids_of(plan.homes)) {
    Home& home = plan.homes[v];
    if (home.in == Home::In::arena) beginning.count(first_of(v)), ending.count(last_of(v));
    if (home.in != Home::In::constants) continue;
    home.offset = plan.constant_bytes;
    plan.constant_bytes += bytes_of(v);
  }
  beginning.counted(), ending.counted();
  for (const ValueId v : ids_of(plan.homes))
    if (plan.homes[v].in == Home::In::arena) beginning.add(first_of(v), v), ending.add(last_of(v), v);
  Holes holes;
  IdVector<ValueId, bool> taken(plan.homes.size());
  for (std::size_t s = 0; s < steps; ++s) {
    for (const ValueId v : beginning[s]) {
      if (const ValueId before = overwritten_by(plan, v); before) {
        taken[before] = true;
        plan.homes[v].offset = plan.homes[before].offset;
      } else {
        plan.homes[v].offset = holes.take(bytes_of(v));
      }
    }
    for (const ValueId v : ending[s])
      if (!taken[v]) holes.give(plan.homes[v].offset, bytes_of(v));
  }
  plan.arena_bytes = holes.end();
}

}   // namespace tapedeck::compiled
