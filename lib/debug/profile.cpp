// The cost of ops, rules and steps of replays. In: events as they begin and end. Out: a table, and JSON for
// Chrome's trace viewer.
#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/format.h"
#include "debug/event_log.h"
#include "debug/text.h"
#include "tapedeck/debug.h"

namespace tapedeck {

void EventLog::begins(const Event& e) {
  begin({.name = std::string(e.name), .backward = e.backward, .id = e.id, .tape = e.tape});
}
void EventLog::step_begins(const ReplayedStep& s) {
  begin({.name = s.name,
         .first = s.first,
         .bytes = s.written,
         .replay = s.whole,
         .program = s.program,
         .read = s.read});
}

void EventLog::begin(Entry e) {
  if (stopped) return;
  e.scopes = tapedeck::scopes();
  e.in_backward = e.backward || (open != kNone && innermost().in_backward);
  e.of = open;
  entries.push_back(std::move(e));
  open = std::ssize(entries) - 1;
  innermost().begin = Clock::now();   // last, so that the bookkeeping is not measured
}

void EventLog::ends(const Event&) noexcept { step_ends(); }
void EventLog::step_ends() noexcept {
  const Clock::time_point end = Clock::now();
  if (stopped || open == kNone) return;
  innermost().end = end;
  open = innermost().of;
}

void EventLog::computed(const Event&, std::span<const Tensor> y) {
  for (const Tensor& t : y)
    add(t.spec(), t.nbytes());
  const auto tracked =
      std::find_if(y.begin(), y.end(), [](const Tensor& t) { return is_trainable(t.dtype()); });
  if (open != kNone && tracked != y.end()) innermost().id = tracked->id();
}

void EventLog::after_rule(const Event&, std::span<const Gradient> dx) {
  for (const Gradient& g : dx)
    if (g.defined()) add(g.slices() ? g.slices()->values.spec() : g.tensor().spec(), g.nbytes());
}

void EventLog::add(const Spec& spec, std::int64_t bytes) {
  if (open == kNone) return;
  Entry& e = innermost();
  if (e.bytes == 0) e.first = spec;
  e.bytes += bytes;
}

Profile::Profile() : log_(std::make_unique<EventLog>()) {}
Profile::~Profile() = default;
void Profile::stop() { log_->stopped = true; }

std::vector<OpCost> Profile::costs() const {
  std::map<std::string, OpCost> by_name;
  std::vector<bool> listed;   // events that are part of no other, or of a listed replay
  for (const EventLog::Entry& e : log_->entries) {
    const EventLog::Entry* whole =
        e.of == EventLog::kNone ? nullptr : &log_->entries[static_cast<std::size_t>(e.of)];
    listed.push_back(!whole || (whole->replay && listed[static_cast<std::size_t>(e.of)]));
    if (!listed.back() || e.is_open()) continue;
    OpCost& cost = by_name[e.name];
    cost.name = e.name;
    ++(e.backward ? cost.rules : cost.calls);
    (e.backward ? cost.rule_bytes : cost.bytes) += e.bytes;
    (e.backward ? cost.rule_seconds : cost.seconds) += e.seconds();
    cost.read_bytes += e.read;
    if (whole && !whole->is_open()) by_name[whole->name].seconds -= e.seconds();
  }
  std::vector<OpCost> costs;
  for (auto& [name, cost] : by_name)
    costs.push_back(std::move(cost));
  std::stable_sort(costs.begin(), costs.end(), [](const OpCost& a, const OpCost& b) {
    return a.seconds + a.rule_seconds > b.seconds + b.rule_seconds;
  });
  return costs;
}

std::string Profile::table() const {
  const std::vector<OpCost> all = costs();
  std::size_t width = 2;
  for (const OpCost& c : all)
    width = std::max(width, c.name.size());
  std::string out = fmt::format("{:<{}}  {:>8}  {:>10}  {:>10}  {:>8}  {:>10}  {:>10}\n", "op", width,
                                "calls", "ms", "bytes", "rules", "ms", "bytes");
  OpCost sum{.name = "all"};
  const auto put = [&](const OpCost& c) {
    out += fmt::format("{:<{}}  {:>8}  {:>10.3f}  {:>10}  {:>8}  {:>10.3f}  {:>10}\n", c.name, width, c.calls,
                       c.seconds * 1e3, with_unit(c.bytes), c.rules, c.rule_seconds * 1e3,
                       with_unit(c.rule_bytes));
  };
  for (const OpCost& c : all) {
    put(c);
    sum.calls += c.calls, sum.seconds += c.seconds, sum.bytes += c.bytes;
    sum.rules += c.rules, sum.rule_seconds += c.rule_seconds, sum.rule_bytes += c.rule_bytes;
  }
  put(sum);
  return out;
}

std::string Profile::trace() const {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  const auto microseconds = [](EventLog::Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  for (const EventLog::Entry& e : log_->entries) {
    if (e.is_open()) continue;
    nlohmann::ordered_json args = {{"bytes", e.bytes}};
    if (e.bytes) args["result"] = to_string(e.first);
    if (e.read) args["read"] = e.read;
    if (!e.scopes.empty()) args["scope"] = e.scopes;
    events.push_back({{"name", e.name},
                      {"cat", e.backward ? "backward" : "forward"},
                      {"ph", "X"},
                      {"ts", microseconds(e.begin - log_->start)},
                      {"dur", microseconds(e.end - e.begin)},
                      {"pid", 1},
                      {"tid", e.in_backward ? 2 : 1},
                      {"args", std::move(args)}});
  }
  return nlohmann::ordered_json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump(
      1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}   // namespace tapedeck
