// What ops and rules cost. In: events as they begin and end. Out: a table, and JSON for Chrome's trace
// viewer.
#include <algorithm>
#include <chrono>
#include <map>

#include <nlohmann/json.hpp>

#include "core/format.h"
#include "debug/listing.h"
#include "debug/origin.h"
#include "tapedeck/debug.h"

namespace tapedeck {

class EventLog final : public Observer {
 public:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string name, scopes;
    Spec first;              // of the results
    bool backward, inside;   // a rule; a part of another event
    bool in_backward;        // a rule, or a part of one
    std::int64_t bytes;
    Clock::time_point begin, end;
  };

  void begins(const Event& e) override {
    if (stopped) return;
    open.reserve(open.size() + 1);   // so that the entry is opened where it is made
    const bool in_backward = e.backward || (!open.empty() && entries[open.back()].in_backward);
    entries.push_back(
        {std::string(e.name), tapedeck::scopes(), {}, e.backward, !open.empty(), in_backward, 0, {}, {}});
    open.push_back(entries.size() - 1);
    entries.back().begin = Clock::now();   // last, so that the notes themselves do not count
  }
  void ends(const Event&) noexcept override {
    const Clock::time_point end = Clock::now();
    if (stopped || open.empty()) return;
    entries[open.back()].end = end;
    open.pop_back();
  }
  void computed(const Event&, std::span<const Tensor> y) override {
    for (const Tensor& t : y)
      add(t.spec(), t.nbytes());
  }
  void after_rule(const Event&, std::span<const Gradient> dx) override {
    for (const Gradient& g : dx)
      if (g.defined()) add(g.slices() ? g.slices()->values.spec() : g.tensor().spec(), g.nbytes());
  }

  std::vector<Entry> entries;
  std::vector<std::size_t> open;
  Clock::time_point start = Clock::now();
  bool stopped = false;

 private:
  void add(const Spec& spec, std::int64_t bytes) {
    if (stopped || open.empty()) return;
    Entry& e = entries[open.back()];
    if (e.bytes == 0) e.first = spec;
    e.bytes += bytes;
  }
};

Profile::Profile() : log_(std::make_unique<EventLog>()) {}
Profile::~Profile() = default;
void Profile::stop() { log_->stopped = true; }

std::vector<OpCost> Profile::costs() const {
  std::map<std::string, OpCost> by_name;
  for (const EventLog::Entry& e : log_->entries) {
    if (e.inside || e.end < e.begin) continue;   // still open
    OpCost& cost = by_name[e.name];
    cost.name = e.name;
    ++(e.backward ? cost.rules : cost.calls);
    (e.backward ? cost.rule_bytes : cost.bytes) += e.bytes;
    (e.backward ? cost.rule_seconds : cost.seconds) += std::chrono::duration<double>(e.end - e.begin).count();
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
    if (e.end < e.begin) continue;
    nlohmann::ordered_json args = {{"bytes", e.bytes}};
    if (e.bytes) args["result"] = to_string(e.first);
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
  return nlohmann::ordered_json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump(1);
}

}   // namespace tapedeck
