// A tape as a page of HTML. In: entries and slots, and the events of a profile. Out: the page's data.
#include "core/format.h"
#include "debug/event_log.h"
#include "debug/listing.h"
#include "debug/page.h"
#include "op/id_map.h"
#include "tapedeck/debug.h"

namespace tapedeck {
namespace {

struct Measured {
  double forward = 0, backward = 0;
  std::string_view scopes = {};
};

// Tensors have numbers: first the sources, then the results of the ops in order.
class Data {
 public:
  Data(const Listing& listing, const EventLog* log)
      : listing_(listing),
        tape_(listing.tape()),
        number_(tape_.slots(), -1),
        measured_(listing.ops().size()) {
    at_.reserve(measured_.size());
    int tensors = 0;
    for (const Slot s : listing.sources())
      number_[static_cast<std::size_t>(s)] = tensors++;
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      TapeEntry& e = entry(i);
      if (const std::uint64_t id = tape_.id_of(e); at_.find(id) < 0)
        at_.insert(id, static_cast<std::int32_t>(i));
      for (const Slot y : e.y())
        if (const int number = tensors++; y >= 0) number_[static_cast<std::size_t>(y)] = number;
    }
    if (!log) return;
    for (const EventLog::Entry& e : log->entries)
      add(e);
  }

  std::string text() {
    JsonList sources, ops, functions;
    for (const Slot s : listing_.sources()) {
      const std::string* variable = listing_.variable(s);
      sources.add(fmt::format(R"({{"name":{},"spec":{}}})", json_string(variable ? *variable : "watched"),
                              json_string(to_string(tape_.spec(s)))));
    }
    for (std::size_t i = 0; i < measured_.size(); ++i)
      ops.add(op(entry(i), measured_[i]));
    for (const std::string& f : functions_)
      functions.add(json_string(f));
    return fmt::format(R"({{"title":"Tape","sources":{},"ops":{},"functions":{}}})", sources.text(),
                       ops.text(), functions.text());
  }

 private:
  TapeEntry& entry(std::size_t i) const { return tape_.entries()[listing_.ops()[i]]; }

  // A tensor may be the result of several events, such as record_operation()'s: the name distinguishes them.
  void add(const EventLog::Entry& event) {
    if (event.id == 0) return;
    const auto i = static_cast<std::size_t>(at_.find(event.id));
    if (i >= measured_.size() || event.is_open() || name_of(entry(i)) != event.name) return;
    Measured& m = measured_[i];
    if (!event.backward)
      m.forward += event.seconds(), m.scopes = event.scopes;
    else if (event.tape == &tape_)
      m.backward += event.seconds();
  }

  std::string op(TapeEntry& e, const Measured& m) {
    KeptBytes kept;
    kept.add(e), all_.add(e);
    JsonList inputs, outputs, calls;
    for (const Slot x : e.x())
      inputs.add(std::to_string(x < 0 ? -1 : number_[static_cast<std::size_t>(listing_.origin(x))]));
    for (std::size_t i = 0; i < e.y().size(); ++i)
      outputs.add(json_string(to_string(listing_.output(e, i))));
    const Origin* origin = tape_.origin_of(e);
    if (origin)
      for (const std::string& caller : callers(*origin))
        calls.add(std::to_string(function(caller)));
    return fmt::format(
        R"({{"name":{},"scope":{},"in":{},"out":{},"keeps":{},"total":{},"forward":{},"backward":{},"calls":{}}})",
        json_string(name_of(e)), json_string(origin ? std::string_view(origin->scopes) : m.scopes),
        inputs.text(), outputs.text(), kept.total(), all_.total(), m.forward, m.backward, calls.text());
  }

  std::size_t function(const std::string& name) {
    std::size_t i = 0;
    while (i < functions_.size() && functions_[i] != name)
      ++i;
    if (i == functions_.size()) functions_.push_back(name);
    return i;
  }

  const Listing& listing_;
  Tape& tape_;
  KeptBytes all_;
  std::vector<int> number_;          // of tensors, by slot
  IdMap at_;                         // ops by the id of their output
  std::vector<Measured> measured_;   // by op
  std::vector<std::string> functions_;
};

[[gnu::cold]] void write_tape(const GradientTape& tape, const std::string& path, const EventLog* log) {
  const Listing listing(tape.tape(), "write_html");
  write_page(path, Data(listing, log).text());
}

}   // namespace

void write_html(const GradientTape& tape, const std::string& path) { write_tape(tape, path, nullptr); }
void write_html(const GradientTape& tape, const std::string& path, const Profile& profile) {
  write_tape(tape, path, profile.log_.get());
}

}   // namespace tapedeck
