// To see what happened: what a tape holds, why a gradient is none, what took time and memory, and where NaN
// came from. Nothing here costs anything while it is not used.
#pragma once
#include <string>

#include "tapedeck/gradient_tape.h"

namespace tapedeck {

/// What the tape has recorded, as a graph in Graphviz's DOT language: `dot -Tsvg` draws it. A box is an op,
/// with the specs of its outputs and the bytes of tensors that it keeps for its gradient; results, which no
/// further op takes, have a double line. Watched tensors and variables are ellipses. Reads of a variable are
/// not shown, nor are inputs that the tape does not follow. The same recording gives the same text. Throws
/// GradientError where gradient() has used up the tape.
TAPEDECK_EXPORT std::string to_dot(const GradientTape& tape);

/// The same as a table, a line for each op in order of recording: its number, its name, what it takes ("#2"
/// is the result of op 2, "." an input that the tape does not follow), what it gives, and the bytes that it
/// keeps. The first line has the total, where what several ops keep counts once. Throws as to_dot does.
TAPEDECK_EXPORT std::string summary(const GradientTape& tape);

/// Whether a tape that records on this thread follows x, so that ops on x are recorded. Accumulators do not
/// count.
TAPEDECK_EXPORT bool is_followed(const Tensor& x);
/// The order of derivatives that can be taken of what is computed from x from here on: 0 where nobody follows
/// it, 1 for one tape or accumulator that does; 2, which stands for any order, for several of them or a
/// persistent tape.
TAPEDECK_EXPORT int order_followed(const Tensor& x);

class EventLog;
class Observer;
class OpLog;

/// Notes every op of this thread while it lives, with or without a derivative, so that explain() can name the
/// one at which a path ends. It takes some hundred bytes an op and holds no tensor.
class TAPEDECK_EXPORT History {
 public:
  [[nodiscard]] History();
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;
  /// The number of ops.
  std::size_t size() const;

 private:
  friend TAPEDECK_EXPORT std::string explain(const GradientTape&, const Source&, const Source&,
                                             const History&);
  std::unique_ptr<OpLog> log_;
};

/// Why tape.gradient(target, source) is none, or that it is not: target or source is undefined or of a dtype
/// without a derivative, the source was not watched, the target does not depend on it; else the ops on a
/// path. Where there is none, it names the ops at which the ways from the source end on the tape: what cuts
/// them comes next. Throws GradientError where gradient() has used up the tape.
TAPEDECK_EXPORT std::string explain(const GradientTape& tape, const Source& target, const Source& source);
/// With what history has seen, which must have begun before the first op of interest. It names the ops that
/// cut the paths, by their numbers in the history: those without a derivative such as stop_gradient, those
/// that give integers, and those that ran while the tape did not record. The tape may be used up.
TAPEDECK_EXPORT std::string explain(const GradientTape& tape, const Source& target, const Source& source,
                                    const History& history);

/// Names what this thread computes while it lives: one inside another is "encoder/layer1". The name appears
/// in messages of AnomalyMode and NumericsCheck, and in the traces of profiles. Scopes end in the reverse
/// order.
class TAPEDECK_EXPORT Scope {
 public:
  [[nodiscard]] explicit Scope(std::string name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  const std::string& name() const { return name_; }
  const Scope* outer() const { return outer_; }

 private:
  std::string name_;
  const Scope* outer_;
};

/// While it lives, a NaN or infinity in a backward pass of this thread makes gradient() throw GradientError.
/// It names the op whose rule gave the first one, and of ops that were recorded in this mode the scopes and
/// the calls that led there. Functions of a program have names in it where it was linked with -rdynamic.
class TAPEDECK_EXPORT AnomalyMode {
 public:
  [[nodiscard]] AnomalyMode();
  ~AnomalyMode();
  AnomalyMode(const AnomalyMode&) = delete;
  AnomalyMode& operator=(const AnomalyMode&) = delete;

 private:
  std::unique_ptr<Observer> observer_;
};

/// While it lives, an op of this thread that gives a NaN or infinity throws ArgumentError, with its name and
/// scopes, and is not recorded. The ops of backward passes are checked too.
class TAPEDECK_EXPORT NumericsCheck {
 public:
  [[nodiscard]] NumericsCheck();
  ~NumericsCheck();
  NumericsCheck(const NumericsCheck&) = delete;
  NumericsCheck& operator=(const NumericsCheck&) = delete;

 private:
  std::unique_ptr<Observer> observer_;
};

/// What the calls of one op have cost, and its rule in backward passes: number, seconds, and bytes of the
/// results.
struct OpCost {
  std::string name;
  std::int64_t calls = 0, bytes = 0, rules = 0, rule_bytes = 0;
  double seconds = 0, rule_seconds = 0;
};

/// Measures the ops of this thread, and the rules of backward passes, until stop() or its end. To measure
/// costs some hundred nanoseconds an op.
class TAPEDECK_EXPORT Profile {
 public:
  [[nodiscard]] Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  void stop();

  /// One for each op, the longest first. Ops that an op or a rule is made of count for that one. What
  /// record_operation() shows is a call that takes no time: its results come from ops that count for
  /// themselves, or from elsewhere.
  std::vector<OpCost> costs() const;
  /// The same as text.
  std::string table() const;
  /// Every event in order, with its scopes and the spec of its first result, as JSON for chrome://tracing and
  /// ui.perfetto.dev. There, ops lie inside those that they are parts of, and backward passes in a track of
  /// their own.
  std::string trace() const;

 private:
  std::unique_ptr<EventLog> log_;
};

}   // namespace tapedeck
