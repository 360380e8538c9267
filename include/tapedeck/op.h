// To define an op: one constant says its name, shapes, kernel and derivative. The library's ops and a user's
// own use this same header; docs/guide/adding_an_op.md walks through both. tapedeck/gradcheck.h checks an
// op.
#pragma once
#include <concepts>
#include <new>
#include <string_view>

#include "tapedeck/gradient.h"
#include "tapedeck/operand.h"
#include "tapedeck/random_key.h"
#include "tapedeck/refs.h"

namespace tapedeck {

struct Op;
namespace kernels {
struct MapKernel;
}

/// Inputs that an op may have without cost; with more, recording it allocates.
inline constexpr int kMaxInputs = 4;

/// How values of an attribute type are kept and dropped.
struct AttrsType {
  std::uint32_t size, align;
  void (*copy)(const void* from, void* to);   // null: the bytes
  void (*destroy)(void*);                     // null: nothing to do
  /// The key of random numbers in attributes that have a member `key`; null: they have none. A compiled
  /// function draws with the keys of each call.
  random::Key& (*key)(void* attrs);
};

namespace detail {
template <class T> constexpr auto key_of_attrs() -> random::Key& (*)(void*) {
  if constexpr (requires(T & attrs) {
                  { attrs.key } -> std::same_as<random::Key&>;
                })
    return +[](void* attrs) -> random::Key& { return static_cast<T*>(attrs)->key; };
  else
    return nullptr;
}
}   // namespace detail

template <class T> inline constexpr AttrsType kAttrsType = {
    sizeof(T), alignof(T),
    std::is_trivially_copyable_v<T>
        ? nullptr
        : +[](const void* from, void* to) { new (to) T(*static_cast<const T*>(from)); },
    std::is_trivially_destructible_v<T> ? nullptr : +[](void* p) { static_cast<T*>(p)->~T(); },
    detail::key_of_attrs<T>()};

/// The attributes of a call: a small struct of the op's own, seen through a pointer.
struct Attrs {
  const void* data = nullptr;
  const AttrsType* type = nullptr;

  Attrs() = default;
  template <class T>
  requires(!std::same_as<T, Attrs>) Attrs(const T& value) : data(&value), type(&kAttrsType<T>) {}
  Attrs(const void* d, const AttrsType* t) : data(d), type(t) {}
};

/// Attributes kept by value: 16 bytes inline, the rest on the heap.
class TAPEDECK_EXPORT OwnedAttrs {
 public:
  OwnedAttrs() = default;
  OwnedAttrs(const Attrs& a) {
    if (a.type) copy_from(a);
  }
  OwnedAttrs(const OwnedAttrs& o) : OwnedAttrs(o.view()) {}
  OwnedAttrs(OwnedAttrs&& o) noexcept : type_(std::exchange(o.type_, nullptr)), bytes_(o.bytes_) {}
  OwnedAttrs& operator=(OwnedAttrs o) noexcept {
    std::swap(type_, o.type_), std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~OwnedAttrs() {
    if (type_) destroy();
  }

  /// They as a call sees them; valid as long as this object is unchanged.
  Attrs view() const { return {type_ ? (inline_fits(*type_) ? bytes_.data : bytes_.heap) : nullptr, type_}; }
  /// The key in them, of a type that has one.
  random::Key& key() { return type_->key(inline_fits(*type_) ? bytes_.data : bytes_.heap); }

 private:
  // Values inline may be moved as bytes, so they must be trivially copyable.
  static bool inline_fits(const AttrsType& t) { return t.size <= 16 && t.align <= 8 && !t.copy; }
  void copy_from(const Attrs& a);
  void destroy() noexcept;

  const AttrsType* type_ = nullptr;
  union Bytes {
    alignas(8) std::byte data[16];
    void* heap;
  } bytes_ = {};
};

/// One execution, as an op's functions see it. In a rule, an input or output that the rule does not read is
/// shape-only: its shape and dtype are there, its data is not.
struct Call {
  const Op& op;
  Attrs raw_attrs = {};                       // read them by attrs
  Refs x = {};                                // the inputs
  Refs y = {};                                // the outputs; in rules only
  std::uint64_t wanted = ~std::uint64_t{0};   // of which inputs: see needs

  /// Whether anybody wants the gradient of input i; the others need not be computed.
  bool needs(int i) const { return i >= 64 || (wanted >> i & 1); }
  /// The attributes, of the type that they were given as.
  template <class T> const T& attrs() const { return *static_cast<const T*>(raw_attrs.data); }
};

/// How an op's derivative is given.
enum class RuleKind : std::uint8_t {
  none,        // has no derivative: gradients through it are none
  undefined,   // must not be differentiated: asking for it throws GradientError
  partials,    // elementwise, from one partial for each input
  linear,      // linear in its first input
  bilinear,    // linear in each of its first two inputs
  custom,      // vjp and jvp as they are
};

/// What a custom or linear rule reads: bit i of x is input i, bit 31 all further ones.
struct Reads {
  std::uint32_t x = 0;
  bool y = false;
};

namespace detail {
TAPEDECK_EXPORT Tensor jvp_of_linear(const Call& c, Refs dx);
TAPEDECK_EXPORT Tensor jvp_of_bilinear(const Call& c, Refs dx);
}   // namespace detail

/// The derivative of an op. Its functions none, undefined, linear, bilinear and custom make one.
struct Rule {
  /// Everything at once: dy[k] is the gradient of output k (none where nothing came, if accepts_none; else
  /// zeros). The vjp sets dx[i] for every input that c.needs(i); what it leaves is none. It is made of ops,
  /// so that it can be differentiated.
  using Vjp = void (*)(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
  /// dx[i] is undefined where input i has no tangent; the result has one tangent for each output, undefined
  /// for zero.
  using Jvp = void (*)(const Call& c, Refs dx, std::span<Tensor> dy);

  RuleKind kind = RuleKind::none;
  /// Bit i: the vjp reads input i, which is kept; bit 31 stands for all from 31 on.
  std::uint32_t reads_x = 0;
  bool reads_y = false;   // outputs are kept
  /// partials, bilinear: what the gradient of each input reads; bit kMaxInputs: the output.
  std::uint8_t partial_reads[kMaxInputs] = {};
  bool reads_shapes = false;    // the shapes of inputs and outputs that are not kept are kept
  bool accepts_none = false;    // the vjp takes none for an output that nobody used, instead of zeros
  bool passes_slices = false;   // the vjp takes IndexedSlices; for others they are made dense
  /// Bit i: the vjp adds to a dense dx[i] that it is given, where it can in its memory.
  std::uint8_t adds = 0;
  std::uint8_t zero_in = 0;   // bit i: the derivative in input i is zeros, of any order
  bool stacks = true;         // cotangents with extra leading axes pass through; else they are looped over
  /// custom: so do tangents through the jvp; else such are pushed by the transposed vjp.
  bool jvp_stacks = false;
  Vjp vjp = nullptr;
  Jvp jvp = nullptr;   // null: by transposing the vjp

  /// Whether tapes keep input i; whether the gradient of each input has reads of its own.
  bool keeps(int i) const { return reads_x >> (i < 31 ? i : 31) & 1; }
  bool by_partials() const { return kind == RuleKind::partials || kind == RuleKind::bilinear; }

  /// No derivative.
  static constexpr Rule none() { return {}; }
  /// A derivative that must not be asked for.
  static constexpr Rule undefined() { return {.kind = RuleKind::undefined}; }
  /// Of an op that is linear in its first input, the only one with a derivative: adjoint(call, dy) gives the
  /// gradient of that input from that of the only output. `reads` tells which other inputs it needs.
  template <class F> static constexpr Rule linear(F, Reads reads = {}) {
    return {
        .kind = RuleKind::linear,
        .reads_x = reads.x,
        .reads_shapes = true,
        .vjp = [](const Call& c, std::span<Gradient> dy,
                  std::span<Gradient> dx) { dx[0] = F{}(c, std::move(dy[0]).dense()); },
        .jvp = [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = detail::jvp_of_linear(c, dx); }};
  }
  /// Of an op that is linear in each of its two inputs; the two adjoints.
  template <class A, class B> static constexpr Rule bilinear(A, B) {
    return {
        .kind = RuleKind::bilinear,
        .reads_x = 3,
        .partial_reads = {2, 1},
        .reads_shapes = true,
        .vjp =
            [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
              const Tensor dy = std::move(dys[0]).dense();
              if (c.needs(0)) dx[0] = A{}(c, dy);
              if (c.needs(1)) dx[1] = B{}(c, dy);
            },
        .jvp = [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = detail::jvp_of_bilinear(c, dx); }};
  }
  /// vjp and jvp as they are; without a jvp, forward mode transposes the vjp.
  static constexpr Rule custom(Reads reads, Vjp vjp, Jvp jvp = nullptr) {
    return {.kind = RuleKind::custom,
            .reads_x = reads.x,
            .reads_y = reads.y,
            .reads_shapes = true,
            .vjp = vjp,
            .jvp = jvp};
  }
};

/// Where the memory of an op's outputs comes from.
enum class Outputs : std::uint8_t {
  fresh,           // allocated before the kernel runs
  may_overwrite,   // the same, but a first output may be the memory of an input of its spec
  own,   // put in their places by the kernel, which finds them without elements: views, and ops computed by
         // other ops
};

/// Of which dtypes a kernel computes. Dispatch converts inputs of others to what they are computed in (see
/// computed_in), and rounds the outputs once; so it does for the op's rule, unless that is of partials.
enum class Takes : std::uint8_t {
  computed,   // those that are computed in themselves
  halves,     // these, f16 and bf16
  any,        // all: the kernel moves elements, and the rule is made of ops
};

/// What computes the outputs, and whose memory they get.
struct Kernel {
  /// Fills the outputs. They may be written up to the next multiple of 64 bytes.
  using Run = void (*)(const Call& c, std::span<Tensor> y);
  Run run = nullptr;
  Outputs outputs = Outputs::fresh;   // whose memory they get
  Takes takes = Takes::computed;      // of which dtypes
  /// The library's elementwise ops: their loops. Of floating point of one spec they give that spec.
  const kernels::MapKernel* loops = nullptr;

  constexpr Kernel() = default;
  template <class F>
  requires std::convertible_to<F, Run>
  constexpr Kernel(F f, Outputs o = Outputs::fresh, Takes t = Takes::computed,
                   const kernels::MapKernel* l = nullptr)
      : run(f), outputs(o), takes(t), loops(l) {}
};

/// The elements of a fresh output, to be written by its kernel.
template <class T> std::span<T> writable(Tensor& y) {
  const std::span<const T> all = std::as_const(y).template data<T>();
  return {const_cast<T*>(all.data()), all.size()};
}

/// The specs of the outputs. One function for ops with one output, another for those with several.
struct Infer {
  /// Throw what is wrong with the inputs or attributes: see throw_shape_error and throw_dtype_error.
  using One = Spec (*)(const Call&);
  using Many = std::vector<Spec> (*)(const Call&);
  One one = nullptr;
  Many many = nullptr;

  template <class F>
  requires std::convertible_to<F, One>
  constexpr Infer(F f) : one(f) {}
  template <class F>
  requires std::convertible_to<F, Many>
  constexpr Infer(F f) : many(f) {}
};

/// What a compiled function knows of an op beside its kernel: it adds products where they are summed, splits
/// sums, computes sums of all elements and casts of bools together with what gives them, and computes
/// products and parts of few elements without the kernel.
enum class Meaning : std::uint8_t {
  other,
  add,
  add_n,
  sum,
  mean,
  matmul,
  cast,
  rearrange,   // elements of the inputs, and zeros; which ones, shapes and attributes alone tell
  add_part,    // the first input, with the elements of the second added to some of its own; the same
  effect,      // it throws or prints by what the numbers are, and is called whether its output is used or not
};

/// An op: a constant, which lives as long as the program. Its address identifies it.
struct Op {
  std::string_view name, doc;
  std::string_view tensorflow = {};   // TensorFlow's op types that this one stands for, with spaces between
  /// Names of the tensor arguments, for messages; the last one stands for all further.
  std::string_view args[kMaxInputs] = {};
  Infer infer;
  Kernel forward;
  Rule rule;
  Meaning meaning = Meaning::other;

  /// Dispatch, for ops without attributes: infers, allocates, computes, records. Numbers and mixed dtypes
  /// are converted first.
  template <std::same_as<Operand>... X> Tensor operator()(X... x) const {
    if ((!x.tensor() || ...)) [[unlikely]]
      return with_numbers({x...});
    const Tensor* refs[] = {x.tensor()...};
    unsigned temporaries = 0, bit = 1;
    ((temporaries |= x.temporary() ? bit : 0, bit <<= 1), ...);
    if (((refs[0]->defined() && x.tensor()->defined() &&
          refs[0]->handle()->dtype != x.tensor()->handle()->dtype) ||
         ...)) [[unlikely]]
      return with_numbers({x...});
    return execute({refs, sizeof...(X)}, {}, temporaries);
  }
  /// The same for an op with attributes; nothing is converted.
  template <class A, class... X> Tensor with(const A& attrs, const X&... x) const {
    const Tensor* refs[sizeof...(X) + 1] = {&x...};
    return execute({refs, sizeof...(X)}, Attrs(attrs));
  }
  /// The general form, for ops with one output. Bit i of temporaries: the caller gives input i away.
  TAPEDECK_EXPORT Tensor execute(Refs x, Attrs attrs = {}, unsigned temporaries = 0) const;
  /// The same for inputs that lie side by side.
  TAPEDECK_EXPORT Tensor execute(std::span<const Tensor> x, Attrs attrs = {}) const;
  /// The general form, for any number of outputs.
  TAPEDECK_EXPORT std::vector<Tensor> run(std::span<const Tensor> x, Attrs attrs = {}) const;
  /// Numbers become tensors, and mixed dtypes are promoted.
  TAPEDECK_EXPORT Tensor with_numbers(std::initializer_list<Operand> x) const;
};

/// Operands as tensors of one dtype, by the rules of op(): refs[i] is operand i itself, or converted[i].
TAPEDECK_EXPORT void promote(std::initializer_list<Operand> x, Tensor* converted, const Tensor** refs);

/// "op: what: a is f32[2,3], b is f32[4]", with the inputs of the call.
TAPEDECK_EXPORT std::string describe(const Call& c, std::string_view what);
/// Throw the error of this class, with the text of describe.
[[noreturn]] TAPEDECK_EXPORT void throw_shape_error(const Call& c, std::string_view what);
[[noreturn]] TAPEDECK_EXPORT void throw_dtype_error(const Call& c, std::string_view what);

/// The ops of a family of the library, which has the name of its header in tapedeck/ops/.
struct OpFamily {
  std::string_view name;
  std::span<const Op* const> ops;
};
/// The ops of the library, family by family.
TAPEDECK_EXPORT std::span<const OpFamily> op_families();

/// The same rule where the jvp takes stacked tangents.
constexpr Rule stacking_jvp(Rule rule) {
  rule.jvp_stacks = true;
  return rule;
}

/// The same rule where the vjp takes none for an output that nobody used.
constexpr Rule accepting_none(Rule rule) {
  rule.accepts_none = true;
  return rule;
}

}   // namespace tapedeck
