// partials(…): the rule of an elementwise op, from one generic lambda for each input: the derivative, as a
// function of the inputs, then of the output if it takes one more argument:
//   [](auto x) { return 1 / x; }         reads the input, which tapes then save
//   [](auto, auto y) { return y; }       reads the output, which tapes then save
//   [](auto, auto) { return 1; }         reads neither: tapes save nothing
// Called on Probes the lambda tells what it reads; on vectors it makes the fused vjp and jvp; on Tensors it
// makes the vjp as ops, which other recorders see.
#pragma once
#include "core/thread_state.h"
#include "kernels/elementwise/vjp.h"
#include "op/probe.h"
#include "tapedeck/op.h"

namespace tapedeck {
/// x · c. Partials call it for a number c that f32 cannot represent, which must not become f32 first.
Tensor times(const Tensor& x, double c);

namespace detail {

/// dy · p as an op; as no op or a negation where p is 1 or -1.
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
  /// The partial on vectors. One that is a plain number becomes a vector.
  template <class V> static V at(const Same<I, V>&... x, const V& y) {
    const auto p = of<V>(x..., y);
    if constexpr (std::is_arithmetic_v<std::remove_const_t<decltype(p)>>)
      return V(static_cast<typename V::value_type>(p));
    else
      return p;
  }
  /// dy times the partial, on tensors.
  static Tensor times(const Call& c, const Tensor& dy) {
    const auto p = of<Tensor>(c.x[I]..., c.y[0]);
    if constexpr (std::is_same_v<std::decay_t<decltype(p)>, Tensor>)
      return product(dy, p);
    else
      return product(dy, static_cast<double>(p));
  }
  /// 1 or -1 where the partial is that number, so that the gradient is dy or -dy; else 0.
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

/// What differs between the rules of two ops, so that the code that runs them is in rules.cpp once.
struct PartialsRule {
  kernels::VjpKernel vjp;
  const kernels::MapKernel* jvp;
  unsigned ones;   // bit i: the partial of input i is the number 1
  Tensor (*times[kMaxInputs])(const Call&, const Tensor& dy);   // recorded
};

/// Whether a recorder follows the derivative itself, by dy or by what the rule reads.
bool is_recorded(const PartialsRule& rule, const Call& c, const Tensor& dy);

/// kernels::run_vjp of the op, outside of an op, which a trace is told of.
void run_vjp(const Op& op, const kernels::VjpKernel& kernel, const Tensor& dy, const Tensor* const* x,
             const Tensor& y, const Tensor* dx, unsigned adds);

/// A vjp that is one op where it is recorded. Puts the gradients of the wanted inputs, of dy's shape, in dx,
/// which has nothing yet; of inputs that are one tensor the first gets the sum. False: it did nothing.
using RecordedPass = bool (*)(const Call& c, const Tensor& dy, Tensor* dx);
/// The pass is taken for large cotangents that are neither stacked nor complex, and may be null.
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
/// What a partial of n inputs reads, as in Rule::partial_reads, where bit kMaxInputs is the output.
template <unsigned n> constexpr std::uint8_t partial_reads(unsigned read) {
  return static_cast<std::uint8_t>((read & ((1u << n) - 1)) | (read >> n & 1) << kMaxInputs);
}
template <class... F>
inline constexpr PartialsRule kPartials = partials_rule(std::index_sequence_for<F...>{}, F{}...);

}   // namespace detail

/// The rule of an elementwise op: one partial for each input.
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

/// While it lives, numbers without a tensor beside them are of this dtype: that of the rule that runs as ops.
class NumberDType {
 public:
  explicit NumberDType(DType t) : saved_(std::exchange(thread_state.number_dtype, t)) {}
  ~NumberDType() { thread_state.number_dtype = saved_; }
  NumberDType(const NumberDType&) = delete;

 private:
  std::optional<DType> saved_;
};

/// dx, of the shape of the first output, summed over the axes along which input i was broadcast to it. Axes
/// count from the end, so leading axes of stacked cotangents stay.
Tensor unbroadcast(const Call& c, const Tensor& dx, int i);
/// The same for an input of shape x that was broadcast to y.
Tensor unbroadcast(const Tensor& dx, const Shape& x, const Shape& y);

}   // namespace tapedeck
