// Samples of the ops in lib/ops/random/random.cpp.
#include "ops/random/random.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples random_table[] = {
    {.op = "uniform",
     .samples =
         [] {
           // The known answer of Philox4x32-10 for a key and a counter of zeros.
           return std::vector<Sample>{
               {.inputs = {},
                .attrs = Attrs(UniformAttrs{{}, {DType::f64, {2}}, 0, 1}),
                .expected = {f64({0.8805201978886142, 0.6054818538799213})},
                .oracle = "np.array([0xe169c58d6627e8d5 >> 11, 0x9b00dbd8bc57ac4c >> 11]) * 2.0**-53"}};
         }},

    {.op = "normal",
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

    {.op = "truncated_normal",
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

    {.op = "permutation",
     .no_oracle = "the order of a generator of our own",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {},
                                       .attrs = Attrs(PermutationAttrs{{}, 5}),
                                       .expected = {tensor<std::int64_t>({3, 4, 1, 0, 2})},
                                       .oracle = "by hand"}};
         }},
};

}   // namespace

std::span<const OpSamples> random_samples() { return random_table; }

}   // namespace tapedeck::test
