// EventLog: what a Profile measures.
#pragma once
#include <chrono>

#include "debug/origin.h"

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
    std::uint64_t id;       // of the op's first output that a tape would track
    const Recorder* tape;   // of a rule: whose pass runs it

    bool is_open() const { return end < begin; }
    double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
  };

  void begins(const Event& e) override;
  void ends(const Event&) noexcept override;
  void computed(const Event&, std::span<const Tensor> y) override;
  void after_rule(const Event&, std::span<const Gradient> dx) override;

  std::vector<Entry> entries;
  std::vector<std::size_t> open;
  Clock::time_point start = Clock::now();
  bool stopped = false;

 private:
  void add(const Spec& spec, std::int64_t bytes);
};

}   // namespace tapedeck
