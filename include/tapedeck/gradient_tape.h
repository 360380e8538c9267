// GradientTape: records what this thread computes, and differentiates it.
#pragma once
#include <array>

#include "tapedeck/gradient.h"
#include "tapedeck/variable.h"

namespace tapedeck {

class Tape;
struct RecordingScope;

struct TapeOptions {
  bool persistent = false;                // gradient() may be called more than once
  bool watch_accessed_variables = true;   // trainable variables are watched when they are read
  bool watch_all = false;                 // so is everything with a derivative that an op takes
};

/// What gradient() gives for a source that the targets do not depend on.
enum class UnconnectedGradients { none, zero };

/// What to differentiate, or with respect to what: tensors and variables, one or many. A variable as a source
/// stands for all its reads; as a target, for its present value.
class TAPEDECK_EXPORT Source {
 public:
  Source(const Tensor& t) : tensor_(t) {}
  Source(const Variable& v) : variable_(v) {}
  const std::optional<Variable>& variable() const { return variable_; }
  const Tensor& tensor() const { return tensor_; }   // undefined for a variable

 private:
  Tensor tensor_;
  std::optional<Variable> variable_;
};

class TAPEDECK_EXPORT Sources {
 public:
  template <class T>
  requires std::convertible_to<const T&, Source> Sources(const T& one) : Sources(Source(one)) {}
  Sources(const Source& one);
  Sources(std::initializer_list<Source> list);
  Sources(std::span<const Tensor> list);
  Sources(std::span<const Variable> list);
  Sources(const std::vector<Tensor>& list);
  Sources(std::vector<Source> list) : all_(std::move(list)) {}
  Sources(const std::vector<Variable>& list);
  const std::vector<Source>& all() const { return all_; }

 private:
  std::vector<Source> all_;
};
using Targets = Sources;

/// A list of gradients, from tensors too.
struct TAPEDECK_EXPORT OutputGradients : std::vector<Gradient> {
  using std::vector<Gradient>::vector;
  OutputGradients(std::vector<Gradient> list);
  OutputGradients(const std::vector<Tensor>& list);
};

/// How the terms of one tensor's gradient are added up: the sums are the same but for rounding, the memory is
/// not.
enum class Aggregation {
  add_n,          // all at once, or early by the two numbers below
  tree,           // pairs, pairs of pairs and so on, as they come: of n terms log2(n) wait
  accumulate_n,   // each into the sum as it comes: none waits
};

struct GradientOptions {
  /// One for each target, of its shape and dtype, dense or slices; none, like an undefined tensor, stands for
  /// ones. Empty: ones for all.
  OutputGradients output_gradients = {};
  UnconnectedGradients unconnected = UnconnectedGradients::none;
  /// Taken for constants: gradients come to these, but do not pass through what they were computed by. The
  /// gradients of sources listed here are partial derivatives.
  Sources stop_gradients = {};
  Aggregation aggregation = Aggregation::add_n;
  /// All gradients of an op are there before one of them is used: always so, whatever is said here.
  bool gate_gradients = false;
  /// The terms of one tensor's gradient are summed early when there are at least min_aggregate_count of them
  /// and together they take more than min_aggregate_bytes: few large terms live at once, and a sum finds some
  /// of them in the cache.
  std::size_t min_aggregate_count = 3;
  std::int64_t min_aggregate_bytes = std::int64_t{16} << 20;
};

enum class JacobianMode {
  automatic,   // of a function: forward if x has fewer elements than f(x)
  reverse,     // row by row of the Jacobian: a gradient for each element of the target
  forward,     // column by column, for functions only: a tangent for each element of the source
};

struct JacobianOptions {
  JacobianMode mode = JacobianMode::automatic;
  /// Rows or columns go through the tape together; else one at a time, with the same result.
  bool vectorize = true;
  /// So many go together that their gradients of the largest tensor take no more than this.
  std::int64_t max_bytes = std::int64_t{64} << 20;
  /// For a tape: an undefined tensor, or zeros. Functions give zeros.
  UnconnectedGradients unconnected = UnconnectedGradients::none;
};

/// One line of GradientTape::recorded(). inputs and outputs count tensors.
struct RecordedOp {
  std::string_view name;
  int inputs, outputs;
};

/// Records from its construction to its end, on the thread that made it, where it must stay. Tapes nest: an
/// op is recorded by every tape that tracks one of its inputs, and the gradient of an inner tape is recorded
/// by the outer ones.
class TAPEDECK_EXPORT GradientTape {
 public:
  explicit GradientTape(TapeOptions options = {});
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  /// Follow x from here on. Integers and bools have no derivative and only cause a warning. Ignored while
  /// recording is stopped for the thread by StopRecording.
  void watch(const Tensor& x);
  void watch(const Variable& v);

  /// End the recording, and go on with it. Throw GradientError where it is stopped, or recording, already.
  void stop();
  void start();
  /// Forget all that was recorded and watched, and go on. Throws GradientError where the tape is not
  /// recording.
  void reset();

  /// The gradient of target with respect to source: none where there is no path. A target that is no scalar
  /// counts as its sum. Ends and uses up the tape unless it is persistent; a second call throws
  /// GradientError.
  Gradient gradient(const Source& target, const Source& source);
  template <class S>
  Gradient gradient(const Source& target, const S& source) requires std::convertible_to<const S&, Source> {
    return gradient(target, Source(source));
  }
  /// The same for several sources: auto [dw, db] = tape.gradient(loss, w, b).
  template <class A, class B, class... S>
  std::array<Gradient, sizeof...(S) + 2> gradient(const Source& target, const A& a, const B& b,
                                                  const S&... more) requires
      std::convertible_to<const A&, Source> && std::convertible_to<const B&, Source> {
    std::vector<Gradient> g = gradient(Targets{target}, Sources{Source(a), Source(b), Source(more)...});
    std::array<Gradient, sizeof...(S) + 2> result;
    for (std::size_t i = 0; i < g.size(); ++i)
      result[i] = std::move(g[i]);
    return result;
  }
  /// The gradient of the sum of all targets for each source, in the order of the sources.
  /// Throws ArgumentError, ShapeError or DTypeError where output_gradients do not fit the targets, and
  /// ArgumentError where `unconnected` is neither of its values; the tape is then as it was.
  std::vector<Gradient> gradient(const Targets& targets, const Sources& sources,
                                 const GradientOptions& options = {});

  /// The derivative of every element of target with respect to every element of source, of shape target.shape
  /// + source.shape; undefined where there is no path. Uses up the tape as gradient() does. An op whose rule
  /// takes one cotangent at a time is looped over. Throws what gradient() throws, DTypeError for complex
  /// tensors, and ArgumentError for mode forward.
  Tensor jacobian(const Source& target, const Source& source, const JacobianOptions& options = {});
  template <class S>
  Tensor jacobian(const Source& target, const S& source,
                  const JacobianOptions& options = {}) requires std::convertible_to<const S&, Source> {
    return jacobian(target, Source(source), options);
  }
  std::vector<Tensor> jacobian(const Source& target, const Sources& sources,
                               const JacobianOptions& options = {});
  /// The Jacobian of each target[b] with respect to source[b], of shape [b] + target.shape[1:] +
  /// source.shape[1:], where target[b] depends on no other row of source. Zeros where there is no path.
  /// Throws ShapeError unless both have rank 2 or more and the same first extent.
  Tensor batch_jacobian(const Source& target, const Source& source, const JacobianOptions& options = {});

  /// The variables that the tape watches, in order of creation. They outlive gradient(), not reset().
  std::vector<Variable> watched_variables() const;
  /// Ops on the tape that something can still reach, in no particular order.
  std::vector<RecordedOp> recorded() const;
  std::size_t size() const;
  bool recording() const;

  // For the library.
  Tape& tape() const { return *tape_; }

 private:
  friend class StopRecording;
  std::unique_ptr<Tape> tape_;
};

/// A persistent tape that follows every trainable tensor made or read while it records, so that nothing is
/// watched by hand; gradients() and the functions beside it read it.
class TAPEDECK_EXPORT Recording : public GradientTape {
 public:
  [[nodiscard]] Recording() : GradientTape({.persistent = true, .watch_all = true}) {}
};

/// While it lives, nothing on this thread is recorded, by tapes or accumulators; or, given a tape, by that
/// tape alone.
class TAPEDECK_EXPORT StopRecording {
 public:
  [[nodiscard]] StopRecording();
  [[nodiscard]] explicit StopRecording(GradientTape& tape);
  ~StopRecording();
  StopRecording(const StopRecording&) = delete;
  StopRecording& operator=(const StopRecording&) = delete;

 private:
  Tape* tape_ = nullptr;   // must outlive this
  RecordingScope* scope_ = nullptr;
};

}   // namespace tapedeck
