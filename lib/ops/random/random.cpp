// Random tensors. In: a key. Out: random numbers, which the key determines.
#include "tapedeck/ops/random.h"

#include "core/format.h"
#include "core/host_view.h"
#include "core/trace.h"
#include "core/uniform_bounds.h"
#include "kernels/random/random.h"
#include "ops/infer.h"
#include "ops/random/random.h"

namespace tapedeck {
namespace {

Spec floating(const Call& c, const Spec& spec) {
  if (!is_floating(spec.dtype) || is_half(spec.dtype))
    throw_error<DTypeError>("{}: returns f32 or f64, not {}", c.op.name, spec.dtype);
  return spec;
}

constexpr Op kUniform = {
    .name = "uniform",
    .doc = "Uniformly distributed numbers in [low, high).",
    .tensorflow = "RandomUniform StatelessRandomUniform",
    .infer = [](const Call& c) { return floating(c, c.attrs<UniformAttrs>().spec); },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          const auto& a = c.attrs<UniformAttrs>();
          kernels::uniform(a.key, a.low, a.high, y[0]);
        },
    .rule = Rule::none(),
};

constexpr Op kNormal = {
    .name = "normal",
    .doc = "Standard normal numbers, by the Box-Muller method.",
    .tensorflow = "RandomStandardNormal StatelessRandomNormal",
    .infer = [](const Call& c) { return floating(c, c.attrs<NormalAttrs>().spec); },
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::normal(c.attrs<NormalAttrs>().key, y[0]); },
    .rule = Rule::none(),
};

constexpr Op kTruncatedNormal = {
    .name = "truncated_normal",
    .doc =
        "Standard normal numbers truncated to two standard deviations, drawn by inverting the "
        "distribution function.",
    .tensorflow = "TruncatedNormal StatelessTruncatedNormal",
    .infer = [](const Call& c) { return floating(c, c.attrs<NormalAttrs>().spec); },
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::truncated_normal(c.attrs<NormalAttrs>().key, y[0]); },
    .rule = Rule::none(),
};

constexpr Op kPermutation = {
    .name = "permutation",
    .doc = "The numbers 0 … n - 1 in random order.",
    .tensorflow = "RandomShuffle",
    .infer = [](const Call& c) -> Spec {
      return {DType::i64, {c.attrs<PermutationAttrs>().n}};
    },
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::permutation(c.attrs<PermutationAttrs>().key, y[0]); },
    .rule = Rule::none(),
};

constexpr const Op* random_table[] = {&kUniform, &kNormal, &kTruncatedNormal, &kPermutation};

}   // namespace

namespace random {

void KeyNumber::note_read() const {
  if (thread_state.trace) thread_state.trace->on_key_read(source_ / 2);
}

std::uint64_t KeyAccess::source(const Key& key) {
  const std::uint64_t a = key.seed.source_, b = key.stream.source_;
  if (a % 2 == 0 && b == a + (a != 0)) return a / 2;
  (void)std::uint64_t{key.seed};   // numbers of two keys: reading them throws
  (void)std::uint64_t{key.stream};
  return 0;
}

Key Key::split(std::uint64_t i) const {
  const Key key = kernels::split(*this, i);
  return thread_state.trace ? thread_state.trace->on_split(*this, i, key) : key;
}
Key Key::split(const Tensor& i) const {
  if (!i.defined() || !is_integer(i.dtype()))
    throw_error<DTypeError>("key.split: the number is {}; use an integer dtype",
                            i.defined() ? to_string(i.spec()) : "an undefined tensor");
  if (i.size() != 1) throw_error<ShapeError>("key.split: the number is {}; use one element", i.spec());
  Trace* const trace = thread_state.trace;
  if (trace && trace->is_computed(i)) return trace->on_split(*this, i);
  return split(static_cast<std::uint64_t>(read_one<std::int64_t>(i, "key.split")));
}

Tensor uniform(const Shape& shape, Key key, double low, double high, DType dtype) {
  check_uniform_bounds(low, high);
  return kUniform(UniformAttrs{key, {dtype, shape}, low, high});
}

Tensor normal(const Shape& shape, Key key, DType dtype) { return kNormal(NormalAttrs{key, {dtype, shape}}); }

Tensor truncated_normal(const Shape& shape, Key key, DType dtype) {
  return kTruncatedNormal(NormalAttrs{key, {dtype, shape}});
}

Tensor permutation(std::int64_t n, Key key) { return kPermutation(PermutationAttrs{key, n}); }

}   // namespace random

std::span<const Op* const> random_ops() { return random_table; }

}   // namespace tapedeck
