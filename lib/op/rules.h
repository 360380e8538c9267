// partials(…): the rule of an elementwise op, given by one generic lambda per input. The lambda returns the
// partial derivative as a function of the inputs and, if it has one more parameter, the output:
//   [](auto x) { return 1 / x; }         reads the input, which tapes then save
//   [](auto, auto y) { return y; }       reads the output, which tapes then save
//   [](auto, auto) { return 1; }         reads neither: tapes save nothing
// The lambda is called with Probes to determine what it reads; with SIMD vectors in the fused vjp and jvp;
// and with Tensors where the vjp runs as ops, so that recorders see them.
#pragma once
#include "core/thread_state.h"
#include "kernels/elementwise/vjp.h"
#include "op/probe.h"
#include "tapedeck/op.h"

namespace tapedeck {
/// x · c, for partials with a number c that f32 cannot represent and that must not be rounded to f32.
Tensor times(const Tensor& x, double c);

namespace detail {

/// dy · p by ops; p = 1 takes no op, and p = -1 a negation.
Tensor product(const Tensor& dy, const Tensor& p);
Tensor product(const Tensor& dy, double p);

template <std::size_t, class V> using Same = V;

template <class F, int N, class = std::make_index_sequence<static_cast<std::size_t>(N)>> struct Partial;

template <class F, int N, std::size_t... I> struct Partial<F, N, std::index_sequence<I...>> {
  static constexpr bool takes_y = !std::is_invocable_v<F, Probe<1u << I>...>;

  static constexpr unsigned find_read() {
    if constexpr (takes_y)
      return read_by<F, (1u << I)..., 1u << N>;
    else
      return read_by<F, (1u << I)...>;
  }
  static constexpr unsigned read = find_read();

  template <class V> static constexpr auto of(const Same<I, V>&... x, const V& y) {
    if constexpr (takes_y)
      return F{}(x..., y);
    else
      return F{}(x...);
  }
  /// The partial on vectors; a plain number is broadcast to a vector.
  template <class V> static V at(const Same<I, V>&... x, const V& y) {
    const auto p = of<V>(x..., y);
    if constexpr (std::is_arithmetic_v<std::remove_const_t<decltype(p)>>)
      return V(static_cast<typename V::value_type>(p));
    else
      return p;
  }
  /// dy · partial, on tensors.
  static Tensor times(const Call& c, const Tensor& dy) {
    const auto p = of<Tensor>(c.x[I]..., c.y[0]);
    if constexpr (std::is_same_v<std::decay_t<decltype(p)>, Tensor>)
      return product(dy, p);
    else
      return product(dy, static_cast<double>(p));
  }
  /// 1 or -1 if the partial is that number, so that the gradient is dy or -dy; otherwise 0.
  static constexpr int sign() {
    if constexpr (read != 0)
      return 0;
    else
      return sign_of_number();
  }

 private:
  static constexpr int sign_of_number() {
    using Result = decltype(of<Probe<0>>(Same<I, Probe<0>>{}..., Probe<0>{}));
    if constexpr (!std::is_arithmetic_v<Result>) {
      return 0;
    } else {
      const auto number = of<Probe<0>>(Same<I, Probe<0>>{}..., Probe<0>{});
      return number == 1 ? 1 : number == -1 ? -1 : 0;
    }
  }
};

/// The op-specific data of a `partials` rule; the code that runs it is common to all ops, in rules.cpp.
struct PartialsRule {
  kernels::VjpKernel vjp;
  const kernels::MapKernel* jvp;
  unsigned ones;   // bit i: the partial with respect to input i is the number 1
  Tensor (*times[kMaxInputs])(const Call&, const Tensor& dy);   // dy · partial by ops
};

/// Whether a recorder tracks dy, or a tensor that the rule reads, and so the derivative has to be recorded.
bool is_recorded(const PartialsRule& rule, const Call& c, const Tensor& dy);

/// Runs kernels::run_vjp for the op. It is not itself an op, so it reports to the thread's trace.
void run_vjp(const Op& op, const kernels::VjpKernel& kernel, const Tensor& dy, const Tensor* const* x,
             const Tensor& y, const Tensor* dx, unsigned adds);

/// A vjp that is recorded as one op. Sets dx, whose elements are undefined before, to the gradients of the
/// wanted inputs, in the shape of dy. If a tensor is several inputs, the first of these gets the sum. Returns
/// false, without any effect, if it does not apply.
using RecordedPass = bool (*)(const Call& c, const Tensor& dy, Tensor* dx);
/// `pass` may be null; it is used for large cotangents that are neither stacked nor complex.
void vjp_of_partials(const PartialsRule& rule, const Call& c, Gradient&& dy, std::span<Gradient> dx,
                     RecordedPass pass = nullptr);
Tensor jvp_of_partials(const PartialsRule& rule, const Call& c, Refs dx);

template <std::size_t... I, class... F> constexpr auto partials_rule(std::index_sequence<I...>, F...) {
  constexpr int n = sizeof...(F);
  using Fused = kernels::Fused<Partial<F, n>...>;
  return PartialsRule{Fused::vjp_kernel(),
                      &Fused::jvp_kernel(),
                      ((Partial<F, n>::sign() == 1 ? 1u << I : 0u) | ...),
                      {Partial<F, n>::times...}};
}
/// Converts the bits that a partial of n inputs reads to the form of Rule::partial_reads, where bit
/// kMaxInputs is the output.
template <unsigned n> constexpr std::uint8_t partial_reads(unsigned read) {
  return static_cast<std::uint8_t>((read & ((1u << n) - 1)) | (read >> n & 1) << kMaxInputs);
}
template <class... F>
inline constexpr PartialsRule kPartials = partials_rule(std::index_sequence_for<F...>{}, F{}...);

}   // namespace detail

/// The rule of an elementwise op, from one partial per input.
template <class... F> constexpr Rule partials(F...) {
  static_assert(sizeof...(F) <= kernels::kFusedInputs && kernels::kFusedInputs == kMaxInputs);
  constexpr unsigned n = sizeof...(F), read = detail::kPartials<F...>.vjp.read;
  return {
      .kind = RuleKind::partials,
      .reads_x = read & ((1u << n) - 1),
      .reads_y = (read >> n & 1) != 0,
      .partial_reads = {detail::partial_reads<n>(detail::Partial<F, n>::read)...},
      .passes_slices = true,
      .adds = static_cast<std::uint8_t>(((1u << n) - 1) & ~detail::kPartials<F...>.ones),
      .vjp =
          [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
            detail::vjp_of_partials(detail::kPartials<F...>, c, std::move(dy[0]), dx);
          },
      .jvp = [](const Call& c, Refs dx,
                std::span<Tensor> dy) { dy[0] = detail::jvp_of_partials(detail::kPartials<F...>, c, dx); }};
}

/// Scope in which operands that are plain numbers have this dtype if no operand is a tensor. Rules that run
/// as ops set the dtype of their cotangent.
class NumberDType {
 public:
  explicit NumberDType(DType t) : saved_(std::exchange(thread_state.number_dtype, t)) {}
  ~NumberDType() { thread_state.number_dtype = saved_; }
  NumberDType(const NumberDType&) = delete;

 private:
  std::optional<DType> saved_;
};

/// Sums dx, which has the shape of the first output, over the axes along which input i was broadcast. Axes
/// are counted from the end, so leading axes of stacked cotangents are kept.
Tensor unbroadcast(const Call& c, const Tensor& dx, int i);
/// Likewise for an input of shape x that was broadcast to shape y.
Tensor unbroadcast(const Tensor& dx, const Shape& x, const Shape& y);

}   // namespace tapedeck
