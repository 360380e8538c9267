// EventLog: what a Profile measures.
#pragma once
#include <chrono>

#include "debug/origin.h"

namespace tapedeck {

class EventLog final : public Observer {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::ptrdiff_t kNone = -1;
  struct Entry {
    std::string name, scopes;
    Spec first;          // of the results
    bool backward;       // a rule
    bool in_backward;    // a rule, or a part of one
    std::ptrdiff_t of;   // the place of the event that this is a part of, or kNone
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
  std::ptrdiff_t open = kNone;   // the innermost event that has not ended
  Clock::time_point start = Clock::now();
  bool stopped = false;

 private:
  Entry& innermost() { return entries[static_cast<std::size_t>(open)]; }
  void add(const Spec& spec, std::int64_t bytes);
};

}   // namespace tapedeck
