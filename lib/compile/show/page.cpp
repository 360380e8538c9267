// In: a plan, and the events of a profile. Out: the data of its page of HTML.
#include <algorithm>
#include <map>
#include <numeric>

#include "compile/show/listing.h"
#include "core/format.h"
#include "debug/event_log.h"
#include "debug/page.h"

namespace tapedeck::compiled {
namespace {

// Tensors have numbers: first the arguments, then the results of the nodes in the order in which they run.
class PlanPage {
 public:
  PlanPage(const Plan& plan, std::span<const double> seconds) : plan_(plan), seconds_(seconds) {}

  std::string text(std::string_view title) {
    for (const ValueId v : plan_.program.arguments()) {
      numbers_.try_emplace(v, tensors_++);
      sources_.add(fmt::format(R"({{"name":"argument {}","spec":{}}})", tensors_ - 1, spec_of(v)));
    }
    const std::vector<std::int64_t> live = live_bytes();
    int group = 0;
    for (std::size_t s = 0; s < live.size(); ++s) {
      const Step& step = *(plan_.steps.begin() + static_cast<std::ptrdiff_t>(s));
      const std::string scope = step.fused ? fmt::format("group {}", ++group) : "";
      // What the step takes, in equal parts.
      const double seconds = s < seconds_.size() ? seconds_[s] / static_cast<double>(step.nodes.size()) : 0;
      for (const NodeId n : step.nodes)
        add(plan_.program[n], scope, live[s], seconds);
    }
    return fmt::format(R"({{"title":{},"arena":{},"sources":{},"ops":{},"functions":[]}})",
                       json_string(title), plan_.arena_bytes, sources_.text(), ops_.text());
  }

 private:
  std::string spec_of(ValueId v) const { return json_string(to_string(plan_.program[v].spec)); }

  // Of the values in the arena that a step needs or that a later one reads, by step.
  std::vector<std::int64_t> live_bytes() const {
    std::vector<std::int64_t> change(plan_.steps.size() + 1);
    for (const ValueId v : ids_of(plan_.homes)) {
      const Life& life = plan_.lives[v];
      if (plan_.homes[v].in != Home::In::arena || !life.is_used()) continue;
      const std::int64_t bytes = padded_bytes(plan_.program[v].spec);
      change[static_cast<std::size_t>(std::max(life.first, 0))] += bytes;
      change[static_cast<std::size_t>(life.last) + 1] -= bytes;
    }
    change.pop_back();
    std::partial_sum(change.begin(), change.end(), change.begin());
    return change;
  }

  void add(const Node& node, const std::string& scope, std::int64_t live, double seconds) {
    JsonList inputs, outputs;
    for_each_operand(node, [&](const Access& a) {
      const auto known = numbers_.find(a.of);   // not there: a constant
      inputs.add(std::to_string(known == numbers_.end() ? -1 : known->second));
    });
    std::int64_t written = 0;
    std::string memory;
    for_each_result(node, [&](ValueId v) {
      numbers_.try_emplace(v, tensors_++);
      outputs.add(spec_of(v));
      const std::string_view place = memory_of(plan_, v);
      if (memory.find(place) == std::string::npos)
        memory += (memory.empty() ? "" : ", ") + std::string(place);
      if (plan_.homes[v].in != Home::In::registers && plan_.homes[v].in != Home::In::borrowed)
        written += plan_.program[v].spec.nbytes();
    });
    ops_.add(fmt::format(
        R"({{"name":{},"scope":"{}","in":{},"out":{},"keeps":{},"total":{},"forward":{},"backward":0,"calls":[],"memory":"{}"}})",
        json_string(name_of(node)), scope, inputs.text(), outputs.text(), written, live, seconds, memory));
  }

  const Plan& plan_;
  const std::span<const double> seconds_;   // by step; none: not measured
  std::map<ValueId, int> numbers_;
  int tensors_ = 0;
  JsonList sources_, ops_;
};

}   // namespace

std::vector<double> seconds_of(const EventLog& log, std::string_view replay,
                               std::span<const ReplayedStep> steps) {
  std::vector<double> sum(steps.size());
  std::map<std::ptrdiff_t, std::size_t> begun;   // how many steps of a replay have been seen
  std::size_t replays = 0;
  for (std::size_t i = 0; i < log.entries.size(); ++i) {
    const EventLog::Entry& e = log.entries[i];
    if (e.is_open()) continue;
    if (e.replay && e.name == replay) begun[static_cast<std::ptrdiff_t>(i)] = 0, ++replays;
    const auto at = begun.find(e.of);
    if (at == begun.end() || at->second == steps.size() || steps[at->second].name != e.name) continue;
    sum[at->second++] += e.seconds();
  }
  for (double& s : sum)
    s /= static_cast<double>(std::max<std::size_t>(replays, 1));
  return sum;
}

std::string page_of(const Plan& plan, std::string_view title, std::span<const double> seconds) {
  return PlanPage(plan, seconds).text(title);
}

}   // namespace tapedeck::compiled
