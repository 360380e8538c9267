// GradientTape: records the ops of this thread and differentiates them.
#pragma once
#include <array>
#include <tuple>

#include "tapedeck/gradient.h"
#include "tapedeck/variable.h"

namespace tapedeck {

class Tape;
struct RecordingScope;

/// Options of a GradientTape.
struct TapeOptions {
  bool persistent = false;                // gradient() may be called more than once
  bool watch_accessed_variables = true;   // trainable variables are watched when they are read
  bool watch_all = false;                 // every op input with a differentiable dtype is watched, too
};

/// The result, none or zeros, that tapes return for a source on which the targets do not depend, and
/// accumulators for a tensor that does not depend on the primals.
enum class UnconnectedGradients { none, zero };

/// A target or source of differentiation: a tensor, a variable, or a gradient. A gradient stands for its
/// dense(), which is a new tensor at each call if the gradient is slices. A variable as a source stands for
/// all its reads; as a target, for its current value.
class TAPEDECK_EXPORT Source {
 public:
  Source(const Tensor& t) : tensor_(t) {}
  Source(const Variable& v) : variable_(v) {}
  Source(const Gradient& g) : tensor_(g.dense()) {}
  /// The variable, or nullopt for a tensor.
  const std::optional<Variable>& variable() const { return variable_; }
  const Tensor& tensor() const { return tensor_; }   // undefined for a variable

 private:
  Tensor tensor_;
  std::optional<Variable> variable_;
};

/// A list of sources, constructed from one source, several in braces, or a list of tensors or variables.
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
  Sources(const std::vector<Gradient>& list);
  /// The sources in the order given.
  const std::vector<Source>& all() const { return all_; }

 private:
  std::vector<Source> all_;
};
/// A list of targets, constructed in the same ways.
using Targets = Sources;

namespace detail {

template <class S>
concept OneSource = std::convertible_to<const S&, Source>;
template <class S>
concept ListOfSources = !OneSource<S> && std::convertible_to<const S&, Sources>;
template <class S, std::size_t... I> constexpr bool are_sources(std::index_sequence<I...>) {
  return (OneSource<std::remove_cvref_t<std::tuple_element_t<I, S>>> && ...);
}
template <class S> constexpr bool is_tuple_of_sources() {
  if constexpr (!OneSource<S> && !ListOfSources<S> && requires { std::tuple_size<S>::value; })
    return are_sources<S>(std::make_index_sequence<std::tuple_size_v<S>>{});
  else
    return false;
}
/// A std::array, pair or tuple of tensors and variables, or of references to them, as std::tie makes one.
template <class S>
concept TupleOfSources = is_tuple_of_sources<S>();
template <class S>
concept AnySources = OneSource<S> || ListOfSources<S> || TupleOfSources<S>;

/// The type of the derivatives with respect to sources of type S: Gradient, or a list, array, pair or tuple
/// of gradients.
template <class S> struct GradientsOf { using Type = std::vector<Gradient>; };
template <OneSource S> struct GradientsOf<S> { using Type = Gradient; };
template <class T, std::size_t n> struct GradientsOf<std::array<T, n>> {
  using Type = std::array<Gradient, n>;
};
template <template <class...> class Tuple, class... T>
requires TupleOfSources<Tuple<T...>>
struct GradientsOf<Tuple<T...>> {
  using Type = Tuple<std::conditional_t<true, Gradient, T>...>;
};
template <class S> Sources sources_of(const S& s) {
  if constexpr (TupleOfSources<S>)
    return std::apply([](const auto&... each) { return Sources{Source(each)...}; }, s);
  else
    return Sources(s);
}
template <class S> typename GradientsOf<S>::Type in_form_of(std::vector<Gradient> all) {
  if constexpr (OneSource<S>)
    return std::move(all[0]);
  else if constexpr (TupleOfSources<S>)
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return typename GradientsOf<S>::Type{std::move(all[I])...};
    }
  (std::make_index_sequence<std::tuple_size_v<S>>{});
  else return all;
}

}   // namespace detail

/// A list of gradients, convertible from tensors.
struct TAPEDECK_EXPORT OutputGradients : std::vector<Gradient> {
  using std::vector<Gradient>::vector;
  OutputGradients(std::vector<Gradient> list);
  OutputGradients(const std::vector<Tensor>& list);
};

/// How the terms of one tensor's gradient are summed. Results differ only by rounding; peak memory differs.
enum class Aggregation {
  add_n,          // all terms at once, or early as set by the two limits below
  tree,           // pairwise as terms arrive: about log2(n) partial sums of n terms are kept
  accumulate_n,   // each term is added to a running sum as it arrives
};

/// Options of gradient().
struct GradientOptions {
  /// One output gradient (cotangent) for each target, of its shape and dtype, dense or IndexedSlices. An
  /// entry that is none or undefined stands for ones; an empty list, for ones for all targets.
  OutputGradients output_gradients = {};
  /// The result for sources without a path. Arguments of functions always get zeros.
  UnconnectedGradients unconnected = UnconnectedGradients::none;
  /// Tensors and variables that are treated as constants: they receive gradients but do not propagate them to
  /// the tensors they were computed from. A source listed here gets its partial derivative.
  Sources stop_gradients = {};
  Aggregation aggregation = Aggregation::add_n;   // how the terms of one tensor's gradient are summed
  /// The terms of one tensor's gradient are summed early once there are at least `min_aggregate_count` of
  /// them and together they exceed `min_aggregate_bytes`. Thus few large terms exist at a time, and some are
  /// still in the cache when they are summed.
  std::size_t min_aggregate_count = 3;
  std::int64_t min_aggregate_bytes = std::int64_t{16} << 20;
};

/// Whether a Jacobian is computed by rows or by columns.
enum class JacobianMode {
  automatic,   // for functions: forward if x has fewer elements than f(x), else reverse
  reverse,     // one row of the Jacobian, thus one gradient, per element of the target
  forward,     // for functions only: one column, thus one tangent, per element of the source
};

/// Options of jacobian(), batch_jacobian() and the functions that use them.
struct JacobianOptions {
  JacobianMode mode = JacobianMode::automatic;
  /// Process many rows or columns in one batched pass; if false, one at a time, with the same result.
  bool vectorize = true;
  /// Limits the batch of rows or columns: their gradients of the largest tensor take at most this many bytes.
  std::int64_t max_bytes = std::int64_t{64} << 20;
  /// The result of tapes, none or zeros, for a source without a path. Functions always return zeros.
  UnconnectedGradients unconnected = UnconnectedGradients::none;
};

/// One entry of GradientTape::recorded(). `inputs` and `outputs` count tensors.
struct RecordedOp {
  std::string_view name;
  int inputs, outputs;
};

/// Records from construction to destruction on the thread that created it; it must not be used on another
/// thread. Tapes nest: an op is recorded by every tape that tracks one of its inputs, and the gradient
/// computation of an inner tape is recorded by the outer ones.
class TAPEDECK_EXPORT GradientTape {
 public:
  explicit GradientTape(TapeOptions options = {});
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  /// Start tracking x. Integer and bool tensors have no derivative: watching them only issues a warning.
  /// Watching a tensor twice issues a warning, too: copies of a handle are one tensor, which has one
  /// gradient. watch() has no effect while StopRecording is active on this thread.
  void watch(const Tensor& x);
  void watch(const Variable& v);
  template <class A, class B, class... More> void watch(const A& a, const B& b, const More&... more) {
    watch(a), watch(b), (watch(more), ...);
  }

  /// Pause and resume recording. Throw GradientError if the tape is already stopped or already recording.
  void stop();
  void start();
  /// Discard everything recorded and watched, and continue recording. Throws GradientError if the tape is not
  /// recording.
  void reset();

  /// The gradient of the sum of all elements of the targets with respect to the sources. Returns one Gradient
  /// for one source, and a list, array, pair or tuple of gradients for a list, array, pair or tuple of
  /// sources: auto [dw, db] = tape.gradient(loss, std::tie(w, b)). A gradient is none if no path leads from
  /// the targets to its source. Stops and consumes the tape unless it is persistent: a second call throws
  /// GradientError. A persistent tape that still records also records this computation, for higher
  /// derivatives; otherwise call stop() before. Throws ArgumentError, ShapeError or DTypeError if
  /// `output_gradients` do not match the targets, and ArgumentError if `unconnected` is not a value of its
  /// enum; the tape is then unchanged.
  template <detail::AnySources T = Targets, detail::AnySources S = Sources>
  typename detail::GradientsOf<S>::Type gradient(const T& targets, const S& sources) {
    return detail::in_form_of<S>(gradients_of(detail::sources_of(targets), detail::sources_of(sources)));
  }
  template <detail::AnySources T = Targets, detail::AnySources S = Sources>
  typename detail::GradientsOf<S>::Type gradient(const T& targets, const S& sources,
                                                 const GradientOptions& options) {
    return detail::in_form_of<S>(
        gradients_of(detail::sources_of(targets), detail::sources_of(sources), options));
  }
  /// gradient() for several sources without a list: auto [dw, db] = tape.gradient(loss, w, b).
  template <detail::AnySources T = Targets, detail::OneSource A, detail::OneSource B,
            detail::OneSource... More>
  std::array<Gradient, sizeof...(More) + 2> gradient(const T& targets, const A& a, const B& b,
                                                     const More&... more) {
    return gradient(targets, std::array{Source(a), Source(b), Source(more)...});
  }
  /// Rejects other arguments at compile time, with a message that says what to write.
  template <class T = Targets, class S>
  requires(!detail::AnySources<T> || !detail::AnySources<S>) Gradient
      gradient(const T&, const S&, const GradientOptions& = {}) {
    if constexpr (!detail::AnySources<T>)
      static_assert(sizeof(T) == 0, "gradient: a target is a tensor or a variable, or a list of these");
    if constexpr (!detail::AnySources<S>)
      static_assert(sizeof(S) == 0,
                    "gradient: a source is a tensor or a variable, or a list of these: of a network, "
                    "nn::trainable_variables(net)");
    return {};
  }

  /// Whether the target was computed from the source by ops that this tape has recorded and that have
  /// derivatives; if not, gradient() returns none. Does not consume the tape. Throws GradientError if the
  /// tape has already been consumed.
  bool depends(const Source& target, const Source& source) const;

  /// The derivative of every element of target with respect to every element of the sources, of shape
  /// target.shape + source.shape each, in the form that gradient() returns; none if there is no path.
  /// Consumes the tape as gradient() does. Ops whose rule is not batched run once per cotangent. Throws what
  /// gradient() throws, DTypeError for complex tensors, and ArgumentError for JacobianMode::forward.
  template <detail::AnySources S = Sources>
  typename detail::GradientsOf<S>::Type jacobian(const Source& target, const S& sources,
                                                 const JacobianOptions& options = {}) {
    return detail::in_form_of<S>(jacobians_of(target, detail::sources_of(sources), options));
  }
  /// The Jacobian of each target[b] with respect to source[b], of shape [b] + target.shape[1:] +
  /// source.shape[1:]. Assumes that target[b] depends on no other row of source. Zeros if there is no path.
  /// Throws ShapeError unless both have rank 2 or more and equal first extents.
  Tensor batch_jacobian(const Source& target, const Source& source, const JacobianOptions& options = {});

  /// The watched variables in order of creation. Available after gradient(), but cleared by reset().
  std::vector<Variable> watched_variables() const;
  /// Recorded ops whose outputs are still reachable, in no particular order.
  std::vector<RecordedOp> recorded() const;
  /// The number of recorded ops whose outputs are still reachable.
  std::size_t size() const;
  /// Whether the tape is recording. False after stop(), and after gradient() of a tape that is not
  /// persistent.
  bool recording() const;

  // Internal.
  Tape& tape() const { return *tape_; }

 private:
  friend class StopRecording;
  std::vector<Gradient> gradients_of(const Targets& targets, const Sources& sources);
  std::vector<Gradient> gradients_of(const Targets& targets, const Sources& sources,
                                     const GradientOptions& options);
  std::vector<Gradient> jacobians_of(const Source& target, const Sources& sources,
                                     const JacobianOptions& options);

  std::unique_ptr<Tape> tape_;
};

/// A persistent tape that also tracks every trainable tensor created or read while it records, so that
/// nothing needs watch(). gradients() and the related functions in gradients.h use it.
class TAPEDECK_EXPORT Recording : public GradientTape {
 public:
  [[nodiscard]] Recording() : GradientTape({.persistent = true, .watch_all = true}) {}
};

/// While it exists, tapes and accumulators record nothing on this thread; if constructed with a tape, only
/// that tape stops recording.
class TAPEDECK_EXPORT StopRecording {
 public:
  [[nodiscard]] StopRecording();
  [[nodiscard]] explicit StopRecording(GradientTape& tape);
  ~StopRecording();
  StopRecording(const StopRecording&) = delete;
  StopRecording& operator=(const StopRecording&) = delete;

 private:
  Tape* tape_ = nullptr;   // must outlive this object
  RecordingScope* scope_ = nullptr;
};

}   // namespace tapedeck
