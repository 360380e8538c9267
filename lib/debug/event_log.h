// EventLog: the events that a Profile measures.
#pragma once
#include <chrono>

#include "debug/origin.h"

namespace tapedeck {

class EventLog final : public Observer {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::ptrdiff_t kNone = -1;
  struct Entry {
    std::string name, scopes = {};
    Spec first = {};             // of the first result
    bool backward = false;       // a rule
    bool in_backward = false;    // a rule, or a part of one
    std::ptrdiff_t of = kNone;   // index of the event that contains this one, or kNone
    std::int64_t bytes = 0;
    Clock::time_point begin = {}, end = {};
    std::uint64_t id = 0;             // id of the op's first output that a tape would track
    const Recorder* tape = nullptr;   // for a rule: the tape whose pass runs it
    bool replay = false;              // replay of a compiled function, which contains the steps
    const void* program = nullptr;    // for a replay: the program of the function
    std::int64_t read = 0;            // bytes that a step of a replay reads

    bool is_open() const { return end < begin; }
    double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
  };

  void begins(const Event& e) override;
  void ends(const Event&) noexcept override;
  void computed(const Event&, std::span<const Tensor> y) override;
  void after_rule(const Event&, std::span<const Gradient> dx) override;
  bool sees_replays() const override { return true; }
  void step_begins(const ReplayedStep& s) override;
  void step_ends() noexcept override;

  std::vector<Entry> entries;
  std::ptrdiff_t open = kNone;   // the innermost event that has not ended
  Clock::time_point start = Clock::now();
  bool stopped = false;

 private:
  Entry& innermost() { return entries[static_cast<std::size_t>(open)]; }
  void begin(Entry e);
  void add(const Spec& spec, std::int64_t bytes);
};

}   // namespace tapedeck
