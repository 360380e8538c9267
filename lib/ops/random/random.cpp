// Random tensors. In: a key. Out: numbers that depend on it alone.
#include "tapedeck/ops/random.h"

#include <cmath>

#include "core/format.h"
#include "kernels/random/random.h"
#include "ops/infer.h"
#include "ops/samples.h"

namespace tapedeck {
namespace {

using namespace samples;
using random::Key;

struct UniformAttrs {
  Key key;
  Spec spec;
  double low, high;
};
struct NormalAttrs {
  Key key;
  Spec spec;
};
struct PermutationAttrs {
  Key key;
  std::int64_t n;
};

Spec floating(const Call& c, const Spec& spec) {
  if (!is_floating(spec.dtype))
    throw_error<DTypeError>("{}: makes f32 and f64, not {}", c.op.name, spec.dtype);
  return spec;
}

constexpr Op table[] = {
    {.name = "uniform",
     .doc = "Numbers evenly distributed in [low, high).",
     .tensorflow = "RandomUniform StatelessRandomUniform",
     .infer = [](const Call& c) { return floating(c, c.attrs<UniformAttrs>().spec); },
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           const auto& a = c.attrs<UniformAttrs>();
           kernels::uniform(a.key, a.low, a.high, y[0]);
         },
     .rule = none(),
     .samples =
         [] {
           // The known answer of Philox4x32-10 for a key and a counter of zeros.
           return std::vector<Sample>{
               {.inputs = {},
                .attrs = Attrs(UniformAttrs{{}, {DType::f64, {2}}, 0, 1}),
                .expected = {f64({0.8805201978886142, 0.6054818538799213})},
                .oracle = "np.array([0xe169c58d6627e8d5 >> 11, 0x9b00dbd8bc57ac4c >> 11]) * 2.0**-53"}};
         }},

    {.name = "normal",
     .doc = "Standard normal numbers, by Box and Muller's method.",
     .tensorflow = "RandomStandardNormal StatelessRandomNormal",
     .infer = [](const Call& c) { return floating(c, c.attrs<NormalAttrs>().spec); },
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::normal(c.attrs<NormalAttrs>().key, y[0]); },
     .rule = none(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {},
                .attrs = Attrs(NormalAttrs{{}, {DType::f64, {2}}}),
                .expected = {f64({-0.17486056237297465, 0.8684971854032383})},
                .oracle = "(lambda a, b: np.sqrt(-2 * np.log((a + 1) * 2.0**-53)) * np.cos(2 * np.pi * b * "
                          "2.0**-53))("
                          "np.array([0xe169c58d6627e8d5 >> 11, 0x9b00dbd8bc57ac4c >> 11]), "
                          "np.array([0xb193f16eef3dc354 >> 11, 0xeabefd5af12f66bc >> 11]))"}};
         }},

    {.name = "truncated_normal",
     .doc = "Standard normal numbers of those within two standard deviations, by the inverse of their "
            "distribution.",
     .tensorflow = "TruncatedNormal StatelessTruncatedNormal",
     .infer = [](const Call& c) { return floating(c, c.attrs<NormalAttrs>().spec); },
     .forward = [](const Call& c,
                   std::span<Tensor> y) { kernels::truncated_normal(c.attrs<NormalAttrs>().key, y[0]); },
     .rule = none(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {},
                .attrs = Attrs(NormalAttrs{{}, {DType::f64, {2}}}),
                .expected = {f64({1.0948390776653407, 0.25511381199551564})},
                .oracle = "np.sqrt(2) * torch.erfinv(torch.erf(torch.tensor(2.0, "
                          "dtype=torch.float64).sqrt()) * torch.tensor("
                          "np.array([0xe169c58d6627e8d5 >> 11, 0x9b00dbd8bc57ac4c >> 11]) * 2.0**-52 - 1))"}};
         }},

    {.name = "permutation",
     .doc = "0 … n - 1 in random order.",
     .tensorflow = "RandomShuffle",
     .infer = [](const Call& c) -> Spec {
       return {DType::i64, {c.attrs<PermutationAttrs>().n}};
     },
     .forward = [](const Call& c,
                   std::span<Tensor> y) { kernels::permutation(c.attrs<PermutationAttrs>().key, y[0]); },
     .rule = none(),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {},
                                       .attrs = Attrs(PermutationAttrs{{}, 5}),
                                       .expected = {tensor<std::int64_t>({3, 4, 1, 0, 2})},
                                       .oracle = "by hand"}};
         }},
};

}   // namespace

namespace random {

Key Key::split(std::uint64_t i) const { return kernels::split(*this, i); }

Tensor uniform(const Shape& shape, Key key, double low, double high, DType dtype) {
  if (!(low < high) || !std::isfinite(high - low))
    throw_error<ArgumentError>("uniform: no numbers from low to high: low is {}, high is {}", low, high);
  return find(table, "uniform").with(UniformAttrs{key, {dtype, shape}, low, high});
}

Tensor normal(const Shape& shape, Key key, DType dtype) {
  return find(table, "normal").with(NormalAttrs{key, {dtype, shape}});
}

Tensor truncated_normal(const Shape& shape, Key key, DType dtype) {
  return find(table, "truncated_normal").with(NormalAttrs{key, {dtype, shape}});
}

Tensor permutation(std::int64_t n, Key key) {
  return find(table, "permutation").with(PermutationAttrs{key, n});
}

}   // namespace random

std::span<const Op> random_ops() { return table; }

}   // namespace tapedeck
