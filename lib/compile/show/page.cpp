// In: a plan, and the events of a profile. Out: the data of its page of HTML.
#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

#include "compile/show/listing.h"
#include "core/format.h"
#include "debug/event_log.h"
#include "debug/page.h"

namespace tapedeck::compiled {
namespace {

// Numbers tensors: first the arguments, then the results of the nodes in the order in which they run.
class PlanPage {
 public:
  PlanPage(const Plan& plan, std::span<const double> seconds)
      : plan_(plan), seconds_(seconds), steps_(steps_of(plan, "")) {}

  std::string text(std::string_view title) {
    for (const ValueId v : plan_.program.arguments()) {
      numbers_.try_emplace(v, tensors_++);
      sources_.add(fmt::format(R"({{"name":"argument {}","spec":{}}})", tensors_ - 1, spec_of(v)));
    }
    const std::vector<std::int64_t> used = used_bytes();
    std::size_t group = 0;
    for (const StepId id : ids_of(plan_.steps)) {
      const Step& step = plan_.steps[id];
      const std::size_t s = id.index();
      StepFacts facts = {.used = used[s], .written = steps_[s].written};
      if (step.fused) {
        for (const ValueId v : plan_.groups[group].writes())
          facts.writes.insert(v);
        facts.scope = fmt::format("group {}", ++group);
      }
      // The time of a step is divided among its nodes.
      if (!seconds_.empty()) facts.seconds = seconds_[s] / static_cast<double>(step.nodes.size());
      for (const NodeId n : step.nodes)
        add(plan_.program[n], facts);
    }
    return fmt::format(R"({{"title":{},"arena":{},"sources":{},"ops":{},"functions":[]}})",
                       json_string(title), plan_.arena_bytes + plan_.scratch_bytes, sources_.text(),
                       ops_.text());
  }

 private:
  struct StepFacts {
    std::string scope = {};
    std::int64_t used = 0, written = 0;   // bytes
    double seconds = 0;                   // the node's share of the time of its step
    std::set<ValueId> writes = {};        // the values that a group writes
  };

  std::string spec_of(ValueId v) const { return json_string(to_string(plan_.program[v].spec)); }

  // The bytes of the arena that hold values during each step. A value may overwrite another one.
  std::vector<std::int64_t> used_bytes() const {
    const auto steps = static_cast<std::int32_t>(plan_.steps.size());
    std::vector<std::vector<ValueId>> begin(plan_.steps.size());
    for (const ValueId v : ids_of(plan_.homes))
      if (const Life& life = plan_.lives[v];
          plan_.homes[v].in == Home::In::arena && life.is_used() && life.first < steps)
        begin[static_cast<std::size_t>(std::max(life.first, 0))].push_back(v);
    std::vector<ValueId> alive;
    std::vector<std::int64_t> used;
    for (std::int32_t s = 0; s < steps; ++s) {
      std::erase_if(alive, [&](ValueId v) { return plan_.lives[v].last < s; });
      const std::vector<ValueId>& next = begin[static_cast<std::size_t>(s)];
      alive.insert(alive.end(), next.begin(), next.end());
      std::sort(alive.begin(), alive.end(),
                [&](ValueId a, ValueId b) { return plan_.homes[a].offset < plan_.homes[b].offset; });
      std::int64_t end = 0, bytes = 0;
      for (const ValueId v : alive) {
        const std::int64_t first = std::max(end, plan_.homes[v].offset);
        end = std::max(end, plan_.homes[v].offset + padded_bytes(plan_.program[v].spec));
        bytes += end - std::min(first, end);
      }
      used.push_back(bytes);
    }
    return used;
  }

  void add(const Node& node, const StepFacts& step) {
    JsonList inputs, reads, outputs;
    for_each_operand(node, [&](const Access& a) {
      const auto known = numbers_.find(a.of);   // a value without a number is a constant
      inputs.add(std::to_string(known == numbers_.end() ? -1 : known->second));
      reads.add(json_string(range_of(plan_, a)));
    });
    std::int64_t written = step.scope.empty() ? step.written : 0;
    std::set<std::string_view> memory;
    for_each_result(node, [&](ValueId v) {
      numbers_.try_emplace(v, tensors_++);
      outputs.add(spec_of(v));
      memory.insert(memory_of(plan_, v));
      if (step.writes.contains(v)) written += plan_.program[v].spec.nbytes();
    });
    ops_.add(fmt::format(
        R"({{"name":{},"scope":"{}","in":{},"reads":{},"out":{},"keeps":{},"total":{},"forward":{},"backward":0,"calls":[],"memory":"{}"}})",
        json_string(name_of(node)), step.scope, inputs.text(), reads.text(), outputs.text(), written,
        step.used, step.seconds, fmt::join(memory, ", ")));
  }

  const Plan& plan_;
  const std::span<const double> seconds_;   // by step; empty if not measured
  const std::vector<ReplayedStep> steps_;
  std::map<ValueId, int> numbers_;
  int tensors_ = 0;
  JsonList sources_, ops_;
};

}   // namespace

std::vector<double> seconds_of(const EventLog& log, const ReplayedStep& replay, std::size_t steps) {
  std::vector<double> sum(steps), own;   // sum over all replays; steps of the current replay
  std::ptrdiff_t whole = EventLog::kNone;
  double replays = 0;
  for (std::ptrdiff_t i = 0; i < std::ssize(log.entries); ++i) {
    const EventLog::Entry& e = log.entries[static_cast<std::size_t>(i)];
    if (e.is_open()) continue;
    if (e.replay) {
      whole = e.program == replay.program ? i : EventLog::kNone;
      own.clear();
    } else if (whole != EventLog::kNone && e.of == whole) {
      own.push_back(e.seconds());
      if (own.size() != steps) continue;   // a replay that ends by an exception has fewer
      for (std::size_t s = 0; s < steps; ++s)
        sum[s] += own[s];
      ++replays;
    }
  }
  for (double& s : sum)
    s /= std::max(replays, 1.0);
  return sum;
}

std::string page_of(const Plan& plan, std::string_view title, std::span<const double> seconds) {
  return PlanPage(plan, seconds).text(title);
}

}   // namespace tapedeck::compiled
