// Op: a constant that defines an op, with its name, shapes, kernel and derivative. The ops of the library and
// those of users are both defined with this header; docs/guide/adding_an_op.md explains how.
// tapedeck/gradcheck.h checks an op.
#pragma once
#include <concepts>
#include <new>
#include <string_view>
#include <typeinfo>

#include "tapedeck/gradient.h"
#include "tapedeck/operand.h"
#include "tapedeck/random_key.h"
#include "tapedeck/refs.h"

namespace tapedeck {

struct Op;
namespace kernels {
struct MapKernel;
struct Decision;
}   // namespace kernels

/// The number of inputs up to which executing and recording an op need no lists on the heap.
inline constexpr int kMaxInputs = 4;

namespace detail {
template <class T>
concept ListOfTensors = std::same_as<T, Refs> || std::convertible_to<const T&, std::span<const Tensor>>;
/// A type that attributes cannot have, since it more likely stands for an input.
template <class T>
concept LikeTensor = std::convertible_to<const T&, Operand> || std::convertible_to<const T&, Tensor> ||
    ListOfTensors<T> || std::is_pointer_v<T> || std::is_null_pointer_v<T> || std::is_array_v<T> ||
    requires(const T& x) {
  { *x } -> std::convertible_to<Tensor>;
};
}   // namespace detail

/// The type of attributes: how to copy and destroy them.
struct AttrsType {
  const std::type_info* type;
  std::uint32_t size, align;
  void (*copy)(const void* from, void* to);   // null: trivially copyable
  void (*destroy)(void*);                     // null: trivially destructible
  /// Returns the member `key`, a random::Key, of attributes; null if they have none. A compiled function
  /// draws with the keys of each call.
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
    &typeid(T),
    sizeof(T),
    alignof(T),
    std::is_trivially_copyable_v<T>
        ? nullptr
        : +[](const void* from, void* to) { new (to) T(*static_cast<const T*>(from)); },
    std::is_trivially_destructible_v<T> ? nullptr : +[](void* p) { static_cast<T*>(p)->~T(); },
    detail::key_of_attrs<T>()};

/// A pointer to the attributes of a call, which are a small struct of a type that the op chooses.
struct Attrs {
  const void* data = nullptr;
  const AttrsType* type = nullptr;

  Attrs() = default;
  template <class T>
  requires(!std::same_as<T, Attrs>) Attrs(const T& value) : data(&value), type(&kAttrsType<T>) {
    static_assert(
        !detail::LikeTensor<T>,
        "attributes are a struct of the op, after one list of tensors; a tensor, an operand, a list "
        "or a pointer is none");
    static_assert(!std::is_polymorphic_v<T> || std::is_final_v<T>,
                  "attributes are copied by their static type, which cuts derived classes: use a struct "
                  "without virtual functions");
  }
  Attrs(const void* d, const AttrsType* t) : data(d), type(t) {}
};

/// A copy of attributes: up to 16 bytes inline, larger ones on the heap.
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

  /// The attributes as a Call holds them; valid while this object is unchanged.
  Attrs view() const { return {type_ ? (inline_fits(*type_) ? bytes_.data : bytes_.heap) : nullptr, type_}; }
  /// The member `key`. Precondition: the type has one.
  random::Key& key() { return type_->key(inline_fits(*type_) ? bytes_.data : bytes_.heap); }

 private:
  // Inline attributes are moved as bytes, so they must be trivially copyable.
  static bool inline_fits(const AttrsType& t) { return t.size <= 16 && t.align <= 8 && !t.copy; }
  void copy_from(const Attrs& a);
  void destroy() noexcept;

  const AttrsType* type_ = nullptr;
  union Bytes {
    alignas(8) std::byte data[16];
    void* heap;
  } bytes_ = {};
};

/// One execution of an op: the argument of all its functions. In a rule, an input or output that the rule
/// does not read has a shape and dtype, but no data.
struct TAPEDECK_EXPORT Call {
  const Op& op;
  Attrs raw_attrs = {};                       // see attrs()
  Refs x = {};                                // the inputs
  Refs y = {};                                // the outputs; in rules only
  std::uint64_t wanted = ~std::uint64_t{0};   // the bits behind needs_gradient()

  /// Whether the gradient of input i is requested; others need not be computed.
  bool needs_gradient(int i) const { return i >= 64 || (wanted >> i & 1); }
  /// The attributes, which must have been passed as a T; throws InternalError if they were not.
  template <class T> const T& attrs() const {
    if (raw_attrs.type != &kAttrsType<T>) [[unlikely]]
      require_attrs(kAttrsType<T>);
    return *static_cast<const T*>(raw_attrs.data);
  }

  /// Returns "op: what: a is f32[2,3], b is f32[4]", with the specs of the inputs.
  std::string describe(std::string_view what) const;
  /// Throw a ShapeError or a DTypeError with the text of describe(what).
  [[noreturn]] void throw_shape_error(std::string_view what) const;
  [[noreturn]] void throw_dtype_error(std::string_view what) const;

 private:
  void require_attrs(const AttrsType& t) const;
};

/// How the derivative of an op is defined.
enum class RuleKind : std::uint8_t {
  none,        // no derivative: gradients through the op are none
  undefined,   // must not be differentiated: computing a gradient throws GradientError
  partials,    // elementwise, from one partial derivative for each input
  linear,      // linear in the first input
  bilinear,    // linear in each of the first two inputs
  custom,      // a vjp and a jvp
};

/// What a custom or linear rule reads: bit i of x stands for input i, bit 31 for inputs 31 and above; y for
/// the outputs.
struct Reads {
  std::uint32_t x = 0;
  bool y = false;
};

namespace detail {
TAPEDECK_EXPORT Tensor jvp_of_linear(const Call& c, Refs dx);
TAPEDECK_EXPORT Tensor jvp_of_bilinear(const Call& c, Refs dx);
}   // namespace detail

/// The derivative of an op, made by one of the functions none, undefined, linear, bilinear and custom.
struct Rule {
  /// Sets dx[i], the gradient of input i, for every i with c.needs_gradient(i); a dx[i] that it does not set
  /// is none. dy[k] is the cotangent of output k; for an unused output it is zeros, or none if accepts_none.
  /// The function calls ops, so that the derivative can itself be differentiated.
  using Vjp = void (*)(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
  /// Sets dy[k], the tangent of output k; undefined stands for zeros. dx[i] is the tangent of input i,
  /// undefined if it has none.
  using Jvp = void (*)(const Call& c, Refs dx, std::span<Tensor> dy);

  RuleKind kind = RuleKind::none;
  /// Bit i: the vjp reads input i, so that tapes keep it; bit 31 stands for inputs 31 and above.
  std::uint32_t reads_x = 0;
  bool reads_y = false;   // the vjp reads the outputs, so that tapes keep them
  /// partials, bilinear: the inputs that the gradient of each input reads; bit kMaxInputs: the output.
  std::uint8_t partial_reads[kMaxInputs] = {};
  bool reads_shapes = false;    // the vjp reads the shapes of inputs and outputs whose data is not kept
  bool accepts_none = false;    // the cotangent of an unused output is none instead of zeros
  bool passes_slices = false;   // the vjp accepts IndexedSlices; otherwise they are made dense first
  /// Bit i: the vjp accepts a dense dx[i] and adds to it, in place if it can.
  std::uint8_t adds = 0;
  std::uint8_t zero_in = 0;   // bit i: all derivatives with respect to input i are zeros
  bool stacks = true;         // cotangents may have extra leading axes; otherwise they are passed one by one
  /// custom: tangents may have extra leading axes; otherwise the vjp is transposed for them.
  bool jvp_stacks = false;
  Vjp vjp = nullptr;
  Jvp jvp = nullptr;   // null: the vjp is transposed

  /// Whether tapes keep input i.
  bool keeps(int i) const { return reads_x >> (i < 31 ? i : 31) & 1; }
  /// Whether partial_reads is set.
  bool by_partials() const { return kind == RuleKind::partials || kind == RuleKind::bilinear; }

  /// The same rule, with accepts_none set, or with jvp_stacks set.
  constexpr Rule accepting_none() const {
    Rule rule = *this;
    rule.accepts_none = true;
    return rule;
  }
  constexpr Rule stacking_jvp() const {
    Rule rule = *this;
    rule.jvp_stacks = true;
    return rule;
  }

  /// No derivative.
  static constexpr Rule none() { return {}; }
  /// A derivative that must not be requested.
  static constexpr Rule undefined() { return {.kind = RuleKind::undefined}; }
  /// For an op with one output that is linear in its first input and has no derivative in others.
  /// adjoint(call, dy) returns the gradient of the first input; `reads` declares the inputs that it reads.
  template <class F> static constexpr Rule linear(F, Reads reads = {}) {
    return {
        .kind = RuleKind::linear,
        .reads_x = reads.x,
        .reads_shapes = true,
        .vjp = [](const Call& c, std::span<Gradient> dy,
                  std::span<Gradient> dx) { dx[0] = F{}(c, std::move(dy[0]).dense()); },
        .jvp = [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = detail::jvp_of_linear(c, dx); }};
  }
  /// For an op with one output that is linear in each of its two inputs; a and b are the two adjoints.
  template <class A, class B> static constexpr Rule bilinear(A, B) {
    return {
        .kind = RuleKind::bilinear,
        .reads_x = 3,
        .partial_reads = {2, 1},
        .reads_shapes = true,
        .vjp =
            [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
              const Tensor dy = std::move(dys[0]).dense();
              if (c.needs_gradient(0)) dx[0] = A{}(c, dy);
              if (c.needs_gradient(1)) dx[1] = B{}(c, dy);
            },
        .jvp = [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = detail::jvp_of_bilinear(c, dx); }};
  }
  /// For all other ops. Without a jvp, forward mode transposes the vjp; without a vjp, gradients are none.
  static constexpr Rule custom(Reads reads, Vjp vjp, Jvp jvp = nullptr) {
    return {.kind = RuleKind::custom,
            .reads_x = reads.x,
            .reads_y = reads.y,
            .reads_shapes = true,
            .vjp = vjp,
            .jvp = jvp};
  }
};

/// Who allocates the outputs.
enum class Outputs : std::uint8_t {
  fresh,           // dispatch, before the kernel runs
  may_overwrite,   // dispatch; the first output may get the memory of a temporary input of the same spec
  by_kernel,       // the kernel, which receives tensors without data: views, and ops that call other ops
};

/// The dtypes that a kernel accepts. For others, dispatch converts the inputs to the dtype that computed_in
/// returns and rounds the outputs once; it does the same for the rule, except for partials.
enum class KernelDtypes : std::uint8_t {
  native,              // those that are computed in themselves
  native_and_halves,   // these, f16 and bf16
  all,                 // all: the kernel moves elements, and the rule consists of ops
};

/// The function that computes the outputs.
struct Kernel {
  /// Fills the outputs. It may write up to the next multiple of 64 bytes.
  using Run = void (*)(const Call& c, std::span<Tensor> y);
  Run run = nullptr;
  Outputs outputs = Outputs::fresh;
  KernelDtypes dtypes = KernelDtypes::native;
  /// The loops of elementwise ops of the library, whose output has the spec of the inputs if these are
  /// floating point of one spec; those of its comparisons, logic and selections. Null for other ops.
  const kernels::MapKernel* loops = nullptr;
  const kernels::Decision* decision = nullptr;

  constexpr Kernel() = default;
  template <std::convertible_to<Run> F>
  constexpr Kernel(F f, Outputs o = Outputs::fresh, KernelDtypes d = KernelDtypes::native,
                   const kernels::MapKernel* l = nullptr, const kernels::Decision* of_decision = nullptr)
      : run(f), outputs(o), dtypes(d), loops(l), decision(of_decision) {}
};

/// Returns the elements of an output, for its kernel to write.
template <class T> std::span<T> writable(Tensor& y) {
  const std::span<const T> all = std::as_const(y).template data<T>();
  return {const_cast<T*>(all.data()), all.size()};
}

/// Returns the specs of the outputs: one for an op with one output, a vector for an op with several.
struct Infer {
  /// They throw if the inputs or attributes are wrong: see Call::throw_shape_error, throw_dtype_error.
  using One = Spec (*)(const Call&);
  using Many = std::vector<Spec> (*)(const Call&);
  One one = nullptr;
  Many many = nullptr;

  template <std::convertible_to<One> F> constexpr Infer(F f) : one(f) {}
  template <std::convertible_to<Many> F> constexpr Infer(F f) : many(f) {}
};

/// What a compiled function knows about an op in addition to its kernel. It accumulates products into sums,
/// splits sums, fuses full sums and casts of bools, and computes small products, slices and counts itself.
enum class Meaning : std::uint8_t {
  other,
  add,
  subtract,
  add_n,
  sum,
  mean,
  matmul,
  cast,
  rearrange,   // outputs consist of elements of the inputs and zeros, chosen by shapes and attributes alone
  add_part,    // the first input with the second added to a part of it, chosen by shapes and attributes alone
  effect,      // throws or prints depending on the data, so that it runs even if its output is unused
  check,       // an effect whose output is its input, and which steps that run again leave out
};

namespace detail {
// Whether all but the last of X… are tensors, and the last is a tensor or attributes.
template <class... X> constexpr bool is_tensors_then_attrs() {
  constexpr std::size_t n = sizeof...(X);
  constexpr bool tensors[n] = {std::same_as<X, Tensor>...}, others[n] = {LikeTensor<X>...};
  for (std::size_t i = 0; i + 1 < n; ++i)
    if (!tensors[i]) return false;
  return tensors[n - 1] || !others[n - 1];
}
}   // namespace detail

/// An op: a constant that lives as long as the program and is identified by its address.
///
/// An op is called in two ways: op(…) executes an op with one output and returns it, op.run(…) executes any
/// op and returns its outputs. Both infer the specs of the outputs, allocate, run the kernel and record the
/// call. Attributes follow the tensors, or the list of tensors.
struct Op {
  std::string_view name, doc;
  std::string_view tensorflow = {};   // the op types of TensorFlow that this op implements, by spaces
  /// Names of the tensor arguments, for messages; the last one stands for all further ones.
  std::string_view args[kMaxInputs] = {};
  Infer infer;
  Kernel forward;
  Rule rule;
  Meaning meaning = Meaning::other;

  /// Operands, for an op without attributes: numbers become tensors, and mixed dtypes are promoted;
  /// temporaries may be overwritten.
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
    return (*this)(Refs(refs, sizeof...(X)), {}, temporaries);
  }
  /// Tensors, then the attributes, if any. Nothing is converted.
  template <class First, class... X>
  requires(detail::is_tensors_then_attrs<First, X...>()) Tensor operator()(const First& first,
                                                                           const X&... x) const {
    const Tensor* refs[1 + sizeof...(X)];
    int n = 0;
    Attrs attrs;
    const auto add = [&]<class T>(const T& t) {
      if constexpr (std::same_as<T, Tensor>)
        refs[n++] = &t;
      else
        attrs = t;
    };
    add(first), (add(x), ...);
    return (*this)(Refs(refs, n), attrs);
  }
  /// Anything else is an error at compile time.
  template <class First, class... X>
  requires(!detail::is_tensors_then_attrs<First, X...>() && !detail::ListOfTensors<First> &&
           !(std::same_as<First, Operand> && (std::same_as<X, Operand> && ...))) Tensor
  operator()(const First&, const X&...) const {
    static_assert(!sizeof(First),
                  "an op is called with tensors, then its attributes, a struct; turn numbers, variables and "
                  "gradients into tensors before, or pass all as Operand if the op has no attributes");
    return {};
  }
  /// A list of tensors. Bit i of temporaries: the op may overwrite input i.
  TAPEDECK_EXPORT Tensor operator()(Refs x, Attrs attrs = {}, unsigned temporaries = 0) const;
  TAPEDECK_EXPORT Tensor operator()(std::span<const Tensor> x, Attrs attrs = {}) const;
  /// A list of tensors; returns all outputs.
  TAPEDECK_EXPORT std::vector<Tensor> run(std::span<const Tensor> x, Attrs attrs = {}) const;

 private:
  TAPEDECK_EXPORT Tensor with_numbers(std::initializer_list<Operand> x) const;
};

/// For authors of ops.
namespace ops {

/// Converts operands to tensors of one dtype, by the rules of Operand: refs[i] is operand i itself, or
/// converted[i].
TAPEDECK_EXPORT void promote(std::initializer_list<Operand> x, Tensor* converted, const Tensor** refs);

/// A family of ops of the library; it has the name of its header in tapedeck/ops/.
struct Family {
  std::string_view name;
  std::span<const Op* const> ops;
};
/// Returns the ops of the library by family.
TAPEDECK_EXPORT std::span<const Family> families();

}   // namespace ops

}   // namespace tapedeck
