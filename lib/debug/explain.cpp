// Why a gradient is none. In: a tape, and with a History all ops that its thread has computed. Out: a
// sentence.
#include <algorithm>
#include <map>
#include <set>

#include "core/format.h"
#include "debug/listing.h"
#include "op/observer.h"
#include "tape/untracked_source.h"
#include "tapedeck/debug.h"

namespace tapedeck {

struct LoggedTensor {
  std::uint64_t id;
  Spec spec;
};
struct LoggedOp {
  std::string name;
  bool has_rule;
  std::vector<LoggedTensor> x, y;
  std::vector<const Recorder*> tapes;   // that were recording then
};

class OpLog final : public Observer {
 public:
  void computed(const Event& e, std::span<const Tensor> y) override {
    LoggedOp op{std::string(e.name), e.call.op.rule.kind != RuleKind::none, {}, {}, recording_tapes()};
    for (int i = 0; i < e.call.x.size(); ++i)
      op.x.push_back({e.call.x[i].id(), e.call.x[i].spec()});
    for (const Tensor& t : y)
      op.y.push_back({t.id(), t.spec()});
    ops.push_back(std::move(op));
  }
  void read(const detail::VariableCell& cell, const Tensor& value) override {
    const Spec spec = value.spec();
    ops.push_back({fmt::format("the read of \"{}\"", cell.name),
                   true,
                   {{cell.handle.id(), spec}},
                   {{value.id(), spec}},
                   recording_tapes()});
  }
  std::vector<LoggedOp> ops;

 private:
  static std::vector<const Recorder*> recording_tapes() {
    std::vector<const Recorder*> tapes;
    for (const Recorder* r = thread_state.innermost; r; r = r->outer())
      if (const Tape* tape = dynamic_cast<const Tape*>(r); tape && !tape->paused) tapes.push_back(r);
    return tapes;
  }
};

namespace {

using Ids = std::set<std::uint64_t>;

std::string name_of_source(const Source& s, std::string_view what) {
  return s.variable() ? fmt::format("the {} \"{}\"", what, s.variable()->name())
                      : fmt::format("the {} {}", what, s.tensor().spec());
}

// The answer, if it does not depend on ops; else empty.
std::string at_first_sight(const Source& target, const Source& source) {
  for (const auto& [s, what] : {std::pair(&target, "target"), std::pair(&source, "source")}) {
    const Tensor& t = tensor_of(*s);
    if (!t.defined()) return fmt::format("none: the {} is undefined", what);
    if (!is_trainable(t.dtype()))
      return fmt::format("none: {} is {}, which has no derivative", name_of_source(*s, what),
                         name_of(t.dtype()));
  }
  if (tensor_of(target).id() == tensor_of(source).id()) return "not none: the target is the source";
  return "";
}

bool is_tracked(const Tape& tape, const Source& source) { return tape.slot_of(tensor_of(source)) >= 0; }

std::string untracked(const Tape& tape, const Source& source) {
  std::string_view why = why_untracked(tape, source);
  why.remove_prefix(std::string_view("the source").size());
  return fmt::format("none: {}{}", name_of_source(source, "source"), why);
}

// Why a source is not tracked, if the reads of variables are known.
std::string untracked(const Tape& tape, const Source& source, const std::vector<LoggedOp>& ops) {
  const auto v = source.variable();
  if (!v || !v->trainable() || !tape.options().watch_accessed_variables) return untracked(tape, source);
  const std::uint64_t id = tensor_of(source).id();
  const bool was_read = std::any_of(ops.begin(), ops.end(),
                                    [&](const LoggedOp& op) { return op.x.size() == 1 && op.x[0].id == id; });
  return fmt::format(
      "none: {} {}", name_of_source(source, "source"),
      was_read
          ? "was read only while the tape did not record: before it began, or while recording was stopped; "
            "read it under the tape"
          : "was not read on this thread while the history lived; read it under the tape");
}

// The ops on a path from the target back to the source; empty if there is no path.
std::vector<std::int32_t> way_back(Tape& tape, Slot target, Slot source) {
  std::map<Slot, Slot> from;   // the next tensor towards the target
  std::vector<Slot> stack = {target};
  while (!stack.empty() && !from.contains(source)) {
    const Slot s = stack.back();
    stack.pop_back();
    if (const std::int32_t p = tape.producer(s); p >= 0)
      for (const Slot x : tape.entries()[p].x())
        if (x >= 0 && from.emplace(x, s).second) stack.push_back(x);
  }
  std::vector<std::int32_t> way;
  if (from.contains(source))
    for (Slot s = source; s != target;)
      s = from[s], way.push_back(tape.producer(s));
  std::reverse(way.begin(), way.end());
  return way;
}

// The ends of the paths from the source: results that no other op on the tape uses. The op that cuts a path
// uses such a result.
std::string ends_of_ways(Tape& tape, Slot source) {
  constexpr std::size_t most = 4;
  std::map<Slot, std::vector<std::int32_t>> takers;
  for (std::int32_t k = 0; k < tape.entries().end(); ++k)
    if (TapeEntry& e = tape.entries()[k]; e.op)
      for (const Slot x : e.x())
        if (x >= 0) takers[x].push_back(k);
  std::set<Slot> reached = {source};
  std::set<std::pair<std::uint64_t, std::string>> ends;   // by id, so in the order of creation
  std::vector<Slot> stack = {source};
  while (!stack.empty()) {
    const Slot s = stack.back();
    stack.pop_back();
    const auto found = takers.find(s);
    if (found == takers.end() && tape.producer(s) >= 0)
      ends.emplace(tape.tracked(s).id,
                   fmt::format("{} {}", name_of(tape.entries()[tape.producer(s)]), tape.spec(s)));
    if (found == takers.end()) continue;
    for (const std::int32_t k : found->second)
      for (const Slot y : tape.entries()[k].y())
        if (y >= 0 && reached.insert(y).second) stack.push_back(y);
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& [id, end] : ends) {
    if (++shown > most) {
      text += ", ...";
      break;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ", ", end);
  }
  return text.empty() ? "no recorded op reads the source"
                      : "the ops that depend on the source end at " + text;
}

std::string by_tape(Tape& tape, const Source& target, const Source& source) {
  if (std::string reason = at_first_sight(target, source); !reason.empty()) return reason;
  if (!is_tracked(tape, source)) return untracked(tape, source);
  const Slot from = tape.slot_of(tensor_of(target)), to = tape.slot_of(tensor_of(source));
  if (from < 0)
    return fmt::format(
        "none: {} is not on the tape: nothing that the tape follows reaches it (a source may have been "
        "watched after its use), or it was computed while the tape did not record; a History can tell where "
        "it was cut; the tape has {}: {}",
        name_of_source(target, "target"), name_of_source(source, "source"), ends_of_ways(tape, to));
  const std::vector<std::int32_t> way = way_back(tape, from, to);
  if (way.empty())
    return fmt::format("none: the tape has no path from {} to {}: {}", name_of_source(target, "target"),
                       name_of_source(source, "source"), ends_of_ways(tape, to));
  std::string ops;
  std::size_t shown = 0;
  for (const std::int32_t k : way) {
    if (is_read(tape.entries()[k])) continue;
    if (++shown > 8) {
      ops += " <- ...";
      break;
    }
    ops += fmt::format("{}{}", ops.empty() ? "" : " <- ", name_of(tape.entries()[k]));
  }
  return fmt::format("not none, unless a rule on the way gives none: {}",
                     ops.empty() ? "the target is a value of the source" : ops);
}

// All ids under which the values of a source took part in computations.
Ids ids_of(Tape& tape, const Source& s) {
  Ids ids = {tensor_of(s).id()};
  if (!s.variable()) return ids;
  for (std::int32_t k = 0; k < tape.entries().end(); ++k) {
    TapeEntry& e = tape.entries()[k];
    if (e.op && is_read(e) && e.x()[0] == tape.slot_of(tensor_of(s))) ids.insert(tape.tracked(e.y()[0]).id);
  }
  return ids;
}

bool any(const std::vector<LoggedTensor>& list, const Ids& ids) {
  return std::any_of(list.begin(), list.end(), [&](const LoggedTensor& t) { return ids.contains(t.id); });
}

// Why no derivative passes through an op that has a followed tensor as an input; empty if one does.
std::string cut_by(const LoggedOp& op, const Ids& needed, const Tape& tape) {
  if (!op.has_rule) return "has no derivative";
  for (const LoggedTensor& y : op.y)
    if (needed.contains(y.id) && !is_trainable(y.spec.dtype))
      return fmt::format("gives {}, which has no derivative", name_of(y.spec.dtype));
  if (std::find(op.tapes.begin(), op.tapes.end(), &tape) == op.tapes.end())
    return "ran while the tape did not record";
  return "";
}

std::string shown(const LoggedOp& op) {
  std::string inputs, outputs;
  for (const LoggedTensor& x : op.x)
    inputs += fmt::format("{}{}", inputs.empty() ? "" : ", ", x.spec);
  for (const LoggedTensor& y : op.y)
    outputs += fmt::format("{}{}", outputs.empty() ? "" : ", ", y.spec);
  return fmt::format("{} ({} -> {})", op.name, inputs, outputs);
}

std::string by_history(Tape& tape, const Source& target, const Source& source,
                       const std::vector<LoggedOp>& ops) {
  if (std::string reason = at_first_sight(target, source); !reason.empty()) return reason;
  if (!is_tracked(tape, source)) return untracked(tape, source, ops);
  const std::string y = name_of_source(target, "target"), x = name_of_source(source, "source");
  Ids needed = ids_of(tape, target), reached = ids_of(tape, source);
  const Ids ends = needed;
  if (std::none_of(ops.begin(), ops.end(), [&](const LoggedOp& op) { return any(op.y, ends); }))
    return fmt::format("none: {} was not computed while the history lived", y);
  for (std::size_t k = ops.size(); k-- > 0;)
    if (any(ops[k].y, needed))
      for (const LoggedTensor& t : ops[k].x)
        needed.insert(t.id);

  Ids followed = reached;
  std::string cuts;
  for (std::size_t k = 0; k < ops.size(); ++k) {
    if (!any(ops[k].y, needed) || !any(ops[k].x, reached)) continue;
    for (const LoggedTensor& t : ops[k].y)
      reached.insert(t.id);
    if (!any(ops[k].x, followed)) continue;
    const std::string why = cut_by(ops[k], needed, tape);
    if (why.empty())
      for (const LoggedTensor& t : ops[k].y)
        followed.insert(t.id);
    else
      cuts += fmt::format("\n  op {}, {}, {}", k, shown(ops[k]), why);
  }
  const auto meets = [&](const Ids& ids) {
    return std::any_of(ends.begin(), ends.end(), [&](std::uint64_t id) { return ids.contains(id); });
  };
  if (!meets(reached)) return fmt::format("none: {} does not depend on {}", y, x);
  if (!meets(followed)) return fmt::format("none: every path from {} to {} is cut:{}", y, x, cuts);
  if (tape.slot_of(tensor_of(target)) < 0 && !target.variable())
    return fmt::format("none: {} was computed before {} was watched", y, x);
  return fmt::format("not none, unless a rule on the way gives none: {} depends on {}", y, x);
}

}   // namespace

History::History() : log_(std::make_unique<OpLog>()) {}
History::~History() = default;
std::size_t History::size() const { return log_->ops.size(); }

std::string explain(const GradientTape& tape, const Source& target, const Source& source) {
  if (tape.tape().used)
    throw GradientError(
        "explain: this tape was already used; make it persistent, ask before gradient is called, or keep a "
        "History");
  (void)tape.size();   // frees entries of tensors that were released on other threads
  return by_tape(tape.tape(), target, source);
}
std::string explain(const GradientTape& tape, const Source& target, const Source& source,
                    const History& history) {
  return by_history(tape.tape(), target, source, history.log_->ops);
}

}   // namespace tapedeck
