// In: calls of compiled functions. Out: their results, computed by recorded programs or by the functions
// themselves.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "compile/plan/verify.h"
#include "compile/record/signature.h"
#include "compile/record/taped.h"
#include "compile/record/tracer.h"
#include "compile/replay/workspace.h"
#include "compile/show/listing.h"
#include "core/bytes.h"
#include "core/format.h"
#include "core/storage.h"
#include "core/visit.h"
#include "debug/event_log.h"
#include "debug/page.h"
#include "op/recorder.h"
#include "tape/variable.h"
#include "tapedeck/compile.h"
#include "tapedeck/debug.h"

namespace tapedeck::detail {
namespace {

using compiled::Plan, compiled::Program, compiled::Signature, compiled::Tracer, compiled::with_fresh_ids;

class RecordedProgram {
 public:
  RecordedProgram(const Arguments& x, Program program, Tracer::Variables v, std::shared_ptr<const void> s)
      : signature(x), plan(std::move(program)), variables(std::move(v)), structure(std::move(s)) {}

  Signature signature;
  Plan plan;
  Tracer::Variables variables;
  std::shared_ptr<const void> structure;   // the structure of the result
  std::size_t number = 0;                  // the index among the programs of the function
  std::atomic<std::int64_t> calls{0};

  /// Describes the replay and its steps for observers, at the first call.
  const ReplayedStep& observed(const std::string& function) {
    std::call_once(once_, [&] {
      whole_ = {.name = "function " + function + (number ? fmt::format(", program {}", number) : ""),
                .whole = true,
                .program = this};
      steps_ = compiled::steps_of(plan, whole_.name);
    });
    return whole_;
  }
  std::span<const ReplayedStep> observed_steps() const { return steps_; }

 private:
  std::once_flag once_;
  ReplayedStep whole_;
  std::vector<ReplayedStep> steps_;
};

// Whether an observer, communicator or outer recording of the caller has to see the ops.
bool must_run_eagerly() {
  return thread_state.trace || thread_state.communicator || (thread_state.observer && must_see_ops());
}

// Whether two tensors have the same bits, except for the sign and the payload of NaN.
bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.spec() != b.spec()) return false;
  return visit_stored(a.dtype(), [&]<class T>(T) {
    const T *x = elements<T>(a), *y = elements<T>(b);
    for (std::int64_t i = 0; i < a.size(); ++i)
      if (std::memcmp(&x[i], &y[i], sizeof(T)) && !(x[i] != x[i] && y[i] != y[i])) return false;
    return true;
  });
}

// The cleared lists of the thread's last call, for reuse; null during a call. Not kept while the thread's
// destructors run.
constinit thread_local CallLists::Lists* spare_lists __attribute__((tls_model("initial-exec"))) = nullptr;
constinit thread_local bool lists_are_kept __attribute__((tls_model("initial-exec"))) = false;

[[gnu::noinline]] CallLists::Lists* make_lists() {
  struct ThreadExit {
    ThreadExit() { lists_are_kept = true; }
    ~ThreadExit() {
      lists_are_kept = false;
      delete std::exchange(spare_lists, nullptr);
    }
  };
  thread_local ThreadExit at_exit;
  (void)&at_exit;
  return new CallLists::Lists;
}

// The variables that a program assigns.
std::vector<VariableCell*> assigned_by(const Program& p) {
  std::vector<VariableCell*> cells;
  for (const compiled::Node& n : p.nodes())
    if (const auto* store = compiled::as<compiled::StoreNode>(n)) cells.push_back(store->cell.get());
  return cells;
}
std::vector<Tensor> values_of(std::span<VariableCell* const> cells) {
  std::vector<Tensor> values;
  for (const VariableCell* c : cells)
    values.push_back(c->value);
  return values;
}

}   // namespace

struct Programs::State {
  CompileOptions options;
  mutable std::mutex mutex;
  std::vector<std::shared_ptr<RecordedProgram>> entries;
  std::vector<Signature> makers;   // signatures of calls that created variables
  compiled::TapedPrograms taped{options};

  std::shared_ptr<RecordedProgram> find(const Arguments& x) const {
    const std::lock_guard lock(mutex);
    const auto e = std::find_if(entries.begin(), entries.end(),
                                [&](const auto& entry) { return entry->signature.matches(x); });
    return e == entries.end() ? nullptr : *e;
  }
  // Precondition: the mutex is locked.
  const std::shared_ptr<RecordedProgram>& entry(std::string_view what, std::size_t number) const {
    if (number >= entries.size())
      throw_error<ArgumentError>("{}: there is no program {} of {}, which has {}; the first one is 0", what,
                                 number, options.name, entries.size());
    return entries[number];
  }
  bool full() const {
    const std::lock_guard lock(mutex);
    return entries.size() >= static_cast<std::size_t>(options.max_programs);
  }
  Returned record(const Arguments& x, const Eager& eager);
  bool has_made_variables(const Arguments& x) const {
    const std::lock_guard lock(mutex);
    return std::any_of(makers.begin(), makers.end(), [&](const Signature& s) { return s.matches(x); });
  }
  void note_made_variables(const Arguments& x, bool again);
  void add(const Arguments& x, Program program, const Tracer& tracer, std::shared_ptr<const void> structure);
  void replay(RecordedProgram& e, const Arguments& x, std::vector<Tensor>& y);
  void replay_checked(RecordedProgram& e, const Arguments& x, const Eager& eager, std::vector<Tensor>& y);
  void check_replay(RecordedProgram& e, const Arguments& x, const Eager& eager, std::vector<Tensor>& y);

 private:
  compiled::Workspaces workspaces_;
};

// Runs the function and records its program. If there is no memory for the program, the results are returned
// all the same, and the next call records again.
Returned Programs::State::record(const Arguments& x, const Eager& eager) {
  const std::vector<Tensor> own = with_fresh_ids(x.tensors);
  // Read before the recording: another thread may record at the same time.
  const bool had_made_variables = has_made_variables(x);
  Tracer tracer(options.name, {.captures = options.captures == Captures::allow,
                               .no_actions = options.check ? Tracer::kTwice : std::string_view()});
  for (const Tensor& t : own)
    tracer.add_argument(t);
  std::vector<random::Key> keys;
  for (const random::Key& k : x.keys)
    keys.push_back(tracer.add_key(k));
  Returned r = eager(own, keys);
  try {
    Program program = tracer.finish(r.tensors);
    std::unordered_map<std::uint64_t, std::size_t> arguments;
    for (std::size_t i = 0; i < own.size(); ++i)
      arguments.try_emplace(own[i].id(), i);
    for (Tensor& y : r.tensors)   // results that are arguments become the caller's tensors again
      if (const auto at = y.defined() ? arguments.find(y.id()) : arguments.end(); at != arguments.end())
        y = x.tensors[at->second];
    if (tracer.made_variables())
      note_made_variables(x, had_made_variables);
    else
      add(x, std::move(program), tracer, r.structure);
  } catch (const std::bad_alloc&) {}
  return r;
}

void Programs::State::note_made_variables(const Arguments& x, bool again) {
  if (again)
    throw_error<TraceError>(
        "{}: creates variables in each call; create them once, outside the function or in its first call",
        options.name);
  Signature signature(x);
  const std::lock_guard lock(mutex);
  makers.push_back(std::move(signature));
}

void Programs::State::add(const Arguments& x, Program program, const Tracer& tracer,
                          std::shared_ptr<const void> structure) {
  auto entry =
      std::make_shared<RecordedProgram>(x, std::move(program), tracer.variables(), std::move(structure));
  if (entry->plan.fault) compiled::report_fault(options.name, *entry->plan.fault);
  const std::lock_guard lock(mutex);
  if (std::none_of(entries.begin(), entries.end(), [&](const auto& e) { return e->signature.matches(x); })) {
    entry->number = entries.size();
    entries.push_back(std::move(entry));
  }
}

void Programs::State::replay(RecordedProgram& e, const Arguments& x, std::vector<Tensor>& y) {
  e.calls.fetch_add(1, std::memory_order_relaxed);
  if (thread_state.notes) [[unlikely]]
    for (const auto& [address, weak] : e.variables)
      if (const auto cell = weak.lock()) detail::note_access(*cell);
  const compiled::BorrowedWorkspace workspace(workspaces_);
  compiled::Replay& replay = workspace->replay(e.number, e.plan);
  if (!thread_state.observer) [[likely]]
    return replay.run(x.tensors, x.keys, y);
  observe_step(e.observed(options.name), [&] { replay.run(x.tensors, x.keys, y, e.observed_steps()); });
}

// Replays the program, and compares the results with those of the function.
void Programs::State::replay_checked(RecordedProgram& e, const Arguments& x, const Eager& eager,
                                     std::vector<Tensor>& y) {
  const std::vector<Tensor> given = y;
  try {
    check_replay(e, x, eager, y);
  } catch (...) {
    y = given;
    throw;
  }
}
void Programs::State::check_replay(RecordedProgram& e, const Arguments& x, const Eager& eager,
                                   std::vector<Tensor>& y) {
  const std::vector<VariableCell*> cells = assigned_by(e.plan.program);
  const std::vector<Tensor> before = values_of(cells);
  const Returned wanted = eager(with_fresh_ids(x.tensors), x.keys);
  const std::vector<Tensor> values = values_of(cells);
  for (std::size_t i = 0; i < cells.size(); ++i)
    cells[i]->value = before[i];
  replay(e, x, y);
  if (y.size() != wanted.tensors.size())
    throw_error<TraceError>(
        "{}: the replay returns {} tensors, the function {}: it depends on something that was recorded as a "
        "constant",
        options.name, y.size(), wanted.tensors.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    if (!same_bits(y[i], wanted.tensors[i]))
      throw_error<TraceError>(
          "{}: result {} of the replay, {}, differs from that of the function: it depends on something that "
          "was recorded as a constant, or it is a gradient of a branch or a loop, whose last bits may differ",
          options.name, i, y[i].defined() ? to_string(y[i].spec()) : "none");
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (!same_bits(cells[i]->value, values[i]))
      throw_error<TraceError>(
          "{}: the replay and the function assign different values to {}: it depends on something that was "
          "recorded as a constant",
          options.name, detail::described(*cells[i]));
}

std::vector<Tensor> undefined(std::size_t n) { return std::vector<Tensor>(n); }

CallLists::CallLists() : lists_(spare_lists ? std::exchange(spare_lists, nullptr) : make_lists()) {}
CallLists::~CallLists() {
  if (spare_lists || !lists_are_kept) {
    delete lists_;
    return;
  }
  lists_->x.tensors.clear(), lists_->x.keys.clear(), lists_->x.rest.clear(), lists_->y.clear();
  spare_lists = lists_;
}

Programs::Programs(CompileOptions options) : state_(std::make_unique<State>()) {
  if (options.max_programs < 0 || options.check < 0)
    throw_error<ArgumentError>("compile: max_programs is {}, check is {}; use 0 or more",
                               options.max_programs, options.check);
  state_->options = std::move(options);
}
Programs::~Programs() = default;

std::shared_ptr<const void> Programs::call(const Arguments& x, const Eager& eager, std::vector<Tensor>& y) {
  bool eagerly = must_run_eagerly();
  std::optional<RecordingScope> unwatched;
  if (thread_state.innermost && !eagerly) {
    using Way = compiled::TapedPrograms::Way;
    std::shared_ptr<const void> structure;
    const bool as_one_op = state_->options.as_one_op && !state_->options.check;
    const Way way = as_one_op ? state_->taped.call(x, eager, y, structure) : Way::by_itself;
    if (way == Way::done) return structure;
    if (way == Way::as_unwatched) unwatched.emplace(nullptr);
    eagerly = way == Way::by_itself;
  }
  const std::shared_ptr<RecordedProgram> e = eagerly ? nullptr : state_->find(x);
  if (!e || e->plan.fault) {
    Returned r = e || eagerly || state_->full() ? eager(x.tensors, x.keys) : state_->record(x, eager);
    y = std::move(r.tensors);
    return std::move(r.structure);
  }
  const bool check = state_->options.check > 0 && (e->calls.load() + 1) % state_->options.check == 0;
  if (check)
    state_->replay_checked(*e, x, eager, y);
  else
    state_->replay(*e, x, y);
  return e->structure;
}

namespace {
ProgramInfo info_of(const RecordedProgram& e) {
  ProgramInfo info{.signature = e.signature.text(), .calls = e.calls.load()};
  for (const compiled::Step& step : e.plan.steps) {
    info.nodes += static_cast<std::int64_t>(step.nodes.size());
    if (step.fused) ++info.groups, info.fused += static_cast<std::int64_t>(step.nodes.size());
  }
  info.arena_bytes = e.plan.arena_bytes + e.plan.scratch_bytes;
  return info;
}
std::string headline(const std::string& name, const ProgramInfo& info) {
  return fmt::format("{}({}): nodes: {}, of these in groups: {}, replays: {}", name, info.signature,
                     info.nodes, info.fused, info.calls);
}
}   // namespace

std::vector<ProgramInfo> Programs::list() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<ProgramInfo> all;
  for (const auto& e : state_->entries)
    all.push_back(info_of(*e));
  return all;
}

std::string Programs::summary() const {
  const std::lock_guard lock(state_->mutex);
  std::string all;
  for (const auto& e : state_->entries)
    all += headline(state_->options.name, info_of(*e)) + "\n" + compiled::table_of(e->plan);
  return all;
}

std::string Programs::to_dot(std::size_t number) const {
  const std::lock_guard lock(state_->mutex);
  const RecordedProgram& e = *state_->entry("to_dot", number);
  return compiled::graph_of(e.plan, headline(state_->options.name, info_of(e)));
}

void Programs::write_html(const std::string& path, std::size_t number, const Profile* profile) const {
  const std::shared_ptr<RecordedProgram> e = [&] {
    const std::lock_guard lock(state_->mutex);
    return state_->entry("write_html", number);
  }();
  std::vector<double> seconds;
  if (profile) {
    const ReplayedStep& replay = e->observed(state_->options.name);
    seconds = compiled::seconds_of(*profile->log_, replay, e->observed_steps().size());
  }
  const std::string title = fmt::format("{}({})", state_->options.name, e->signature.text());
  write_page(path, compiled::page_of(e->plan, title, seconds));
}

}   // namespace tapedeck::detail
