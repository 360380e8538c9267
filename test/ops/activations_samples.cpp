// Samples of the ops in lib/ops/elementwise/activations.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples activations_table[] = {
    {.op = "relu",
     .oracle = "np.maximum(x, 0)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({3, 5})}},
               {.inputs = {f64({-1.5, -0.25, 0.5, 2})}, .expected = {f64({0, 0, 0.5, 2})}}};
         }},

    {.op = "leaky_relu",
     .oracle = "np.where(x > 0, x, alpha * x)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 3}), uniform({2, 3}, 0.1, 0.3)}},
               {.inputs = {f64({-1.5, -0.25, 0.5, 2}), f64(0.2)}, .expected = {f64({-0.3, -0.05, 0.5, 2})}}};
         }},

    {.op = "softplus",
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({0.2014132779827524, 0.5759394198788437, 0.9740769841801068, 2.1269280110429727}),
               "np.logaddexp(x, 0)");
         }},

    {.op = "relu6",
     .oracle = "np.clip(x, 0, 6)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({3, 5}) * 10}},
               {.inputs = {f64({-1.5, 0.5, 5.75, 6.25, 9})}, .expected = {f64({0, 0.5, 5.75, 6, 6})}}};
         }},

    {.op = "elu",
     .oracle = "np.where(x > 0, x, np.expm1(x))",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({3, 5})}},
               {.inputs = {signs()}, .expected = {f64({-0.7768698398515702, -0.22119921692859512, 0.5, 2})}}};
         }},

    {.op = "selu",
     .oracle = "torch.nn.functional.selu(torch.tensor(x)).numpy()",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {distinct({3, 5})}},
                                      {.inputs = {signs()},
                                       .expected = {f64({-1.3658143533672527, -0.388890197478119,
                                                         0.5253504936777402, 2.101401974710961})}}};
         }},

    {.op = "normal_cdf",
     .samples =
         [] {
           return of_one(
               -3, 3, signs(),
               f64({0.06680720126885803, 0.4012936743170763, 0.6914624612740131, 0.9772498680518208}),
               "torch.special.ndtr(torch.tensor(x)).numpy()");
         }},

    {.op = "gelu",
     .samples =
         [] {
           return of_one(
               -3, 3, signs(),
               f64({-0.1002108019032871, -0.10032341857926907, 0.34573123063700655, 1.9544997361036416}),
               "torch.nn.functional.gelu(torch.tensor(x)).numpy()");
         }},

    {.op = "gelu_tanh",
     .samples =
         [] {
           return of_one(
               -3, 3, signs(),
               f64({-0.10042842301976707, -0.100324649298315, 0.34571400982514394, 1.954597694087775}),
               "0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))");
         }},

    {.op = "silu",
     .oracle = "x / (1 + np.exp(-beta * x))",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, -3, 3), uniform({2, 3}, 0.2, 2, 1)}},
                                      {.inputs = {signs(), f64(0.5)},
                                       .expected = {f64({-0.4812319512369106, -0.11719765665656094,
                                                         0.28108825044289903, 1.4621171572600098})}}};
         }},

    {.op = "softsign",
     .oracle = "x / (1 + np.abs(x))",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({3, 5})}},
               {.inputs = {signs()},
                .expected = {f64({-0.6, -0.2, 0.3333333333333333, 0.6666666666666666})}}};
         }},
};

}   // namespace

std::span<const OpSamples> activations_samples() { return activations_table; }

}   // namespace tapedeck::test
