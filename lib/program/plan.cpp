// In: a program. Out: its plan.
#include "program/plan.h"

#include <algorithm>

#include "program/add_products.h"
#include "program/split_sums.h"

namespace tapedeck::program {
namespace {

constexpr std::int64_t kSmall = 64;   // bytes: what lies in the handle of a tensor

// Memory that is free for a while, best fit first.
class Holes {
 public:
  std::int64_t take(std::int64_t bytes) {
    auto best = holes_.end();
    for (auto h = holes_.begin(); h != holes_.end(); ++h)
      if (h->bytes >= bytes && (best == holes_.end() || h->bytes < best->bytes)) best = h;
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

bool changes_variables(const Node& n) { return n.kind == Node::Kind::store || n.kind == Node::Kind::action; }
bool returns_memory(const Node& n) {
  return n.kind == Node::Kind::action || (n.kind == Node::Kind::op && n.op->forward.outputs == Outputs::own);
}

}   // namespace

std::int64_t padded_bytes(const Spec& spec) { return (spec.nbytes() + 63) / 64 * 64 + 64; }

Plan::Plan(Program recorded) : program(std::move(recorded)) {
  find_passes(program);
  add_products(program);
  split_sums(program);
  find_passes(program);
  places.resize(program.values.size());
  parts.resize(program.values.size());
  for (std::size_t v = 0; v < parts.size(); ++v) {
    const Elements at = elements_of(program, static_cast<ValueId>(v));
    parts[static_cast<std::size_t>(at.value)].push_back({static_cast<ValueId>(v), at.first});
  }
  find_live();
  steps = schedule(program, live);
  find_uses();
  find_memory();
  hold_reads();
  make_groups();
  arrange();
}

void Plan::find_live() {
  live.assign(program.nodes.size(), false);
  std::vector<std::int32_t> found;
  const auto need_node = [&](std::int32_t n) {
    if (live[static_cast<std::size_t>(n)]) return;
    live[static_cast<std::size_t>(n)] = true;
    found.push_back(n);
  };
  const auto need = [&](ValueId v) {
    if (v == kNoValue) return;
    const Value& value = program.value(elements_of(program, v).value);
    if (value.from == Value::From::node) need_node(value.at);
  };
  for (const ValueId v : program.outputs)
    need(v);
  for (std::size_t n = 0; n < program.nodes.size(); ++n)
    if (changes_variables(program.nodes[n])) need_node(static_cast<std::int32_t>(n));
  while (!found.empty()) {
    const Node& node = program.nodes[static_cast<std::size_t>(found.back())];
    found.pop_back();
    for (const ValueId v : node.in)
      need(v);
  }
}

void Plan::use(ValueId v, std::int32_t step) {
  if (v == kNoValue) return;
  Place& p = places[static_cast<std::size_t>(elements_of(program, v).value)];
  p.last = std::max(p.last, step);
}

void Plan::find_uses() {
  const auto end = static_cast<std::int32_t>(steps.size());
  for (std::int32_t s = 0; s < end; ++s)
    for (const std::int32_t n : steps[static_cast<std::size_t>(s)].nodes) {
      const Node& node = program.nodes[static_cast<std::size_t>(n)];
      for (const ValueId v : node.out)
        if (v != kNoValue) places[static_cast<std::size_t>(v)].first = s, use(v, s);
      // What a kernel returns may be the memory of what it reads.
      for (const ValueId v : node.in)
        use(v, returns_memory(node) ? end : s);
    }
  for (const ValueId v : program.outputs)
    use(v, end);
  // Values are stored before the next action, or at the end.
  for (std::int32_t s = end, next = end; s-- > 0;) {
    const Node& node = program.nodes[static_cast<std::size_t>(steps[static_cast<std::size_t>(s)].nodes[0])];
    if (node.kind == Node::Kind::action) next = s;
    if (node.kind == Node::Kind::store) use(node.in[0], next);
  }
}

// Which values lie in memory, and in whose.
void Plan::find_memory() {
  const auto is_read = [&](ValueId v) { return places[static_cast<std::size_t>(v)].last >= 0; };
  std::vector<bool> kept(program.values.size(), false);   // read by other steps than that which defines it
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const std::int32_t n : steps[s].nodes) {
      const Node& node = program.nodes[static_cast<std::size_t>(n)];
      for (const ValueId v : node.in) {
        if (v == kNoValue) continue;
        const auto of = static_cast<std::size_t>(elements_of(program, v).value);
        if (!steps[s].fused || places[of].first != static_cast<std::int32_t>(s)) kept[of] = true;
      }
      if (!steps[s].fused)
        for (const ValueId v : node.out)
          if (v != kNoValue) kept[static_cast<std::size_t>(v)] = true;
    }
  for (const ValueId v : program.outputs)
    if (v != kNoValue) kept[static_cast<std::size_t>(elements_of(program, v).value)] = true;

  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const Value& value = program.values[v];
    Place& place = places[v];
    if (value.from == Value::From::part || !is_read(static_cast<ValueId>(v)) || !kept[v]) continue;
    const bool small = value.spec.nbytes() <= kSmall;
    if (value.from != Value::From::node) {
      place.memory = small ? Memory::copied : Memory::given;
      place.first = -1;
      continue;
    }
    const Node& node = program.nodes[static_cast<std::size_t>(value.at)];
    place.memory = node.kind == Node::Kind::read ? (small ? Memory::copied : Memory::given)
                   : returns_memory(node)        ? (small ? Memory::copied : Memory::returned)
                                                 : Memory::arena;
  }
  for (const ValueId v : program.outputs)
    if (v != kNoValue && elements_of(program, v).value == v && program.value(v).spec.nbytes() > kSmall)
      if (Place& place = places[static_cast<std::size_t>(v)]; place.memory == Memory::arena)
        place.memory = Memory::output;
}

void Plan::hold_reads() {
  std::vector<std::int32_t> changes;   // steps, in order
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const std::int32_t n : steps[s].nodes)
      if (changes_variables(program.nodes[static_cast<std::size_t>(n)]))
        changes.push_back(static_cast<std::int32_t>(s));
  for (const Node& node : program.nodes) {
    if (node.kind != Node::Kind::read) continue;
    // A change after the read and before, or while, the value is used.
    Place& place = places[static_cast<std::size_t>(node.out[0])];
    const auto next = std::upper_bound(changes.begin(), changes.end(), place.first);
    place.held = next != changes.end() && *next <= place.last;
  }
}

void Plan::make_groups() {
  std::vector<bool> kept(program.values.size(), false);
  for (std::size_t v = 0; v < kept.size(); ++v)
    kept[v] = places[v].memory != Memory::none;
  for (const ProgramStep& step : steps) {
    if (!step.fused) continue;
    groups.emplace_back(program, step, kept);
    scratch_bytes = std::max(scratch_bytes, groups.back().scratch_bytes());
  }
}

// The value whose memory v may take over: that to which a product is added, where nothing else reads it then
// or later.
ValueId Plan::taken_over_by(ValueId v) const {
  const Value& value = program.value(v);
  if (value.from != Value::From::node) return kNoValue;
  const Node& node = program.nodes[static_cast<std::size_t>(value.at)];
  if (node.kind != Node::Kind::add_product) return kNoValue;
  const ValueId before = node.in[2];
  const Place &from = places[static_cast<std::size_t>(before)], &to = places[static_cast<std::size_t>(v)];
  const bool is_factor = std::any_of(node.in.begin(), node.in.begin() + 2, [&](ValueId factor) {
    return elements_of(program, factor).value == before;
  });
  const bool is_fit = from.memory == Memory::arena && to.memory == Memory::arena && from.last == to.first &&
                      program.value(before).spec == value.spec;
  return is_fit && !is_factor ? before : kNoValue;
}

// First fit in the order of definition.
void Plan::arrange() {
  std::vector<ValueId> order;
  for (std::size_t v = 0; v < places.size(); ++v) {
    if (places[v].memory != Memory::arena && places[v].memory != Memory::copied) continue;
    if (program.values[v].from == Value::From::constant) {
      places[v].offset = constant_bytes;
      constant_bytes += padded_bytes(program.values[v].spec);
    } else {
      order.push_back(static_cast<ValueId>(v));
    }
  }
  const auto place_of = [&](ValueId v) -> Place& { return places[static_cast<std::size_t>(v)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](ValueId a, ValueId b) { return place_of(a).first < place_of(b).first; });
  Holes holes;
  std::vector<ValueId> ending;   // a heap: those that end first are in front
  std::vector<bool> taken(places.size(), false);
  const auto later = [&](ValueId a, ValueId b) { return place_of(a).last > place_of(b).last; };
  for (const ValueId v : order) {
    for (; !ending.empty() && place_of(ending.front()).last < place_of(v).first; ending.pop_back()) {
      std::pop_heap(ending.begin(), ending.end(), later);
      if (!taken[static_cast<std::size_t>(ending.back())])
        holes.give(place_of(ending.back()).offset, padded_bytes(program.value(ending.back()).spec));
    }
    if (const ValueId before = taken_over_by(v); before != kNoValue) {
      taken[static_cast<std::size_t>(before)] = true;
      place_of(v).offset = place_of(before).offset;
    } else {
      place_of(v).offset = holes.take(padded_bytes(program.value(v).spec));
    }
    ending.push_back(v);
    std::push_heap(ending.begin(), ending.end(), later);
  }
  arena_bytes = holes.end();
}

}   // namespace tapedeck::program
