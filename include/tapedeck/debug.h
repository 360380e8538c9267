// Diagnostics: the contents of a tape, the reason why a gradient is none, costs in time and memory, and the
// origin of a NaN. They cost nothing unless used.
#pragma once
#include <string>

#include "tapedeck/gradient_tape.h"

namespace tapedeck {

/// The recorded graph in Graphviz's DOT language; draw it with `dot -Tsvg`. A box is an op, with the specs of
/// its outputs and the bytes of tensors kept for its gradient; final results, which no other op uses, have a
/// double border. Ellipses are watched tensors and variables. Reads of variables and untracked inputs are not
/// shown. Equal recordings produce equal text. Throws GradientError if gradient() has consumed the tape.
TAPEDECK_EXPORT std::string to_dot(const GradientTape& tape);

/// The recorded graph as a table with one line per op in order of recording: its number, name, inputs ("#2"
/// is the result of op 2, "." an untracked input), outputs, and bytes kept. The first line has the total, in
/// which memory shared by several ops counts once; if ops convert f32 to f64, which propagates to all later
/// results, the line states how many do, and their lines are marked. Throws as to_dot does.
TAPEDECK_EXPORT std::string summary(const GradientTape& tape);

class Profile;
namespace detail {
class Programs;
}

/// Writes the recorded graph as a page of HTML for a browser: the ops in order next to their gradients, with
/// shapes, bytes kept and the memory over time. The page can fold repeated layers, search and zoom. Ops
/// recorded in AnomalyMode also have their scopes and call stack. The file needs no other file and no
/// network, and replaces an earlier one. Throws as to_dot does, and FileError if the file cannot be written.
TAPEDECK_EXPORT void write_html(const GradientTape& tape, const std::string& path);
/// write_html with the times and scopes of the ops that the profile has measured, and with the times of their
/// rules if the tape is persistent and gradient() has run.
TAPEDECK_EXPORT void write_html(const GradientTape& tape, const std::string& path, const Profile& profile);

/// Whether a tape recording on this thread tracks x, so that ops on x are recorded. Accumulators are not
/// considered.
TAPEDECK_EXPORT bool is_followed(const Tensor& x);
/// The order of derivatives available for computations on x from now on: 0 if x is not tracked; 1 if one tape
/// or accumulator tracks it; 2, meaning any order, if several of them or a persistent tape track it.
TAPEDECK_EXPORT int order_followed(const Tensor& x);

class EventLog;
class Observer;
class OpLog;

/// Logs every op of this thread while it exists, differentiable or not, so that explain() can name the op at
/// which a path ends. Uses some hundred bytes per op and keeps no tensors alive.
class TAPEDECK_EXPORT History {
 public:
  [[nodiscard]] History();
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;
  /// The number of ops logged.
  std::size_t size() const;

 private:
  friend TAPEDECK_EXPORT std::string explain(const GradientTape&, const Source&, const Source&,
                                             const History&);
  std::unique_ptr<OpLog> log_;
};

/// Explains why tape.gradient(target, source) is none, or states that it is not. Possible reasons: target or
/// source is undefined or has a dtype without a derivative, the source was not watched, or the target does
/// not depend on it. If there is a path, lists its ops; if not, names the last recorded ops on paths from the
/// source: the path is cut after these. Throws GradientError if gradient() has consumed the tape.
TAPEDECK_EXPORT std::string explain(const GradientTape& tape, const Source& target, const Source& source);
/// explain() with a history, which must have begun before the first relevant op. Names the ops that cut the
/// paths, by their numbers in the history: ops without a derivative such as stop_gradient, ops with integer
/// results, and ops that ran while the tape was not recording. The tape may already be consumed.
TAPEDECK_EXPORT std::string explain(const GradientTape& tape, const Source& target, const Source& source,
                                    const History& history);

/// Names the computations of this thread while it exists; the name of nested scopes is a path, such as
/// "encoder/layer1". The name appears in messages of AnomalyMode and NumericsCheck, and in profile traces.
/// Scopes must be destroyed in reverse order.
class TAPEDECK_EXPORT Scope {
 public:
  [[nodiscard]] explicit Scope(std::string name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// The name of this scope alone, and the enclosing scope, or null.
  const std::string& name() const { return name_; }
  const Scope* outer() const { return outer_; }

 private:
  std::string name_;
  const Scope* outer_;
};

/// While it exists, a NaN or infinity in a backward pass of this thread makes gradient() throw GradientError.
/// The message names the op whose rule produced it first and, for ops recorded in this mode, their scopes and
/// call stack. The call stack has the names of the program's functions if it was linked with -rdynamic.
class TAPEDECK_EXPORT AnomalyMode {
 public:
  [[nodiscard]] AnomalyMode();
  ~AnomalyMode();
  AnomalyMode(const AnomalyMode&) = delete;
  AnomalyMode& operator=(const AnomalyMode&) = delete;

 private:
  std::unique_ptr<Observer> observer_;
};

/// While it exists, an op of this thread that returns a NaN or infinity throws ArgumentError, with its name
/// and scopes, and is not recorded. Cross entropies whose labels look like logits throw it, too: labels of
/// sigmoid_cross_entropy outside [0, 1], and negative labels of softmax_cross_entropy. Ops of backward passes
/// are checked, too.
class TAPEDECK_EXPORT NumericsCheck {
 public:
  [[nodiscard]] NumericsCheck();
  ~NumericsCheck();
  NumericsCheck(const NumericsCheck&) = delete;
  NumericsCheck& operator=(const NumericsCheck&) = delete;

 private:
  std::unique_ptr<Observer> observer_;
};

/// Cost of all calls of one op, and of its rule in backward passes: count, seconds, and bytes of results. For
/// a step of a compiled function's replays, the bytes are those that it writes to memory, and those that it
/// reads from memory, as far as they are known.
struct OpCost {
  std::string name;
  std::int64_t calls = 0, bytes = 0, rules = 0, rule_bytes = 0;
  double seconds = 0, rule_seconds = 0;
  std::int64_t read_bytes = 0;
};

/// Measures the ops of this thread, and the rules of backward passes, until stop() or destruction. The
/// overhead is some hundred nanoseconds per op.
class TAPEDECK_EXPORT Profile {
 public:
  [[nodiscard]] Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  /// Ends the measurement; the results remain available.
  void stop();

  /// One entry per op, in descending order of time. Ops called by a composite op or a rule are included in
  /// its cost. Replays of a compiled function f have an entry for the steps of each op, "function f: matmul",
  /// for the groups of the same ops, "function f: group mul+tanh", and for the rest, "function f". An
  /// operation recorded by record_operation() appears as a call that takes no time, since its results are
  /// computed elsewhere.
  std::vector<OpCost> costs() const;
  /// The result of costs() as a text table.
  std::string table() const;
  /// All events in order, with scopes and the spec of their first result, as JSON for chrome://tracing and
  /// ui.perfetto.dev. Ops are nested inside those that call them; backward passes have a separate track.
  /// Invalid UTF-8 bytes of names become U+FFFD.
  std::string trace() const;

 private:
  friend TAPEDECK_EXPORT void write_html(const GradientTape&, const std::string&, const Profile&);
  friend class detail::Programs;
  std::unique_ptr<EventLog> log_;
};

}   // namespace tapedeck
