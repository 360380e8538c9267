// In: values and their lives. Out: their offsets in the arena.
#include <algorithm>

#include "compile/plan/plan.h"

namespace tapedeck::compiled {
namespace {

// Memory that is free for a while, best fit first.
class Holes {
 public:
  std::int64_t take(std::int64_t bytes) {
    auto best = holes_.end();
    for (auto h = holes_.begin(); h != holes_.end(); ++h) {
      if (h->bytes >= bytes && (best == holes_.end() || h->bytes < best->bytes)) best = h;
      if (h->bytes == bytes) break;   // none fits better
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

// The value whose memory v may take over: that to which a product is added, where nothing else reads it then
// or later.
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

}   // namespace

// Best fit, in the order of definition.
void arrange(Plan& plan) {
  const auto& lives = plan.lives;
  const auto bytes_of = [&](ValueId v) { return padded_bytes(plan.program[v].spec); };
  std::vector<ValueId> order;
  for (const ValueId v : ids_of(plan.homes)) {
    Home& home = plan.homes[v];
    if (home.in == Home::In::arena) order.push_back(v);
    if (home.in != Home::In::constants) continue;
    home.offset = plan.constant_bytes;
    plan.constant_bytes += bytes_of(v);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](ValueId a, ValueId b) { return lives[a].first < lives[b].first; });
  Holes holes;
  std::vector<ValueId> ending;   // a heap: those that end first are in front
  IdVector<ValueId, bool> taken(plan.homes.size());
  const auto later = [&](ValueId a, ValueId b) { return lives[a].last > lives[b].last; };
  for (const ValueId v : order) {
    for (; !ending.empty() && lives[ending.front()].last < lives[v].first; ending.pop_back()) {
      std::pop_heap(ending.begin(), ending.end(), later);
      if (!taken[ending.back()]) holes.give(plan.homes[ending.back()].offset, bytes_of(ending.back()));
    }
    if (const ValueId before = overwritten_by(plan, v); before) {
      taken[before] = true;
      plan.homes[v].offset = plan.homes[before].offset;
    } else {
      plan.homes[v].offset = holes.take(bytes_of(v));
    }
    ending.push_back(v);
    std::push_heap(ending.begin(), ending.end(), later);
  }
  plan.arena_bytes = holes.end();
}

}   // namespace tapedeck::compiled
