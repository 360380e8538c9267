// Samples of the ops in lib/ops/nn/normalization.cpp.
#include "ops/nn/normalization.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs with(double epsilon) { return Attrs(NormAttrs{epsilon}); }

constexpr OpSamples normalization_table[] = {
    {.op = "layer_norm",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 37}, -1, 1), uniform({37}, 0.5, 2, 1), uniform({37}, -1, 1, 2)},
                .attrs = with(1e-3)},
               {.inputs = {uniform({150}, -1, 1), uniform({150}, 0.5, 2, 1), uniform({150}, -1, 1, 2)},
                .attrs = with(1e-3)},
               {.inputs = {uniform({0, 3}, -1, 1), uniform({3}, 0.5, 2, 1), uniform({3}, -1, 1, 2)},
                .attrs = with(1e-3)},
               {.inputs = {uniform({2, 0}, -1, 1), uniform({0}, 0.5, 2, 1), uniform({0}, -1, 1, 2)},
                .attrs = with(1e-3)},
               {.inputs = {f64({{1, 2, 4, -3, 0.5}, {0, 0, 1, 10, 5}}), f64({1, 2, 0.5, -1, 3}),
                           f64({0, 1, -1, 0.5, 2})},
                .attrs = with(1e-5),
                .expected = {f64({{0.043685161148757756, 1.9610735452726697, -0.3228800021942555,
                                   2.2037212848015506, 1.4757780662149076},
                                  {-0.827340027474688, -0.6546800549493761, -1.284398134444424,
                                   -1.258097558383712, 3.3961362963635358}})},
                .oracle = "torch.nn.functional.layer_norm(torch.tensor(x), (5,), torch.tensor(scale), "
                          "torch.tensor(offset), 1e-5).numpy()"}};
         }},

    {.op = "layer_norm_gradient",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 37}, -1, 1, 3), uniform({2, 3, 37}, -1, 1),
                           uniform({37}, 0.5, 2, 1)},
                .attrs = with(1e-3)},
               {.inputs = {uniform({7}, -1, 1, 3), uniform({7}, -1, 1), uniform({7}, 0.5, 2, 1)},
                .attrs = with(1e-3)},
               {.inputs = {uniform({0, 3}, -1, 1, 3), uniform({0, 3}, -1, 1), uniform({3}, 0.5, 2, 1)},
                .attrs = with(1e-3)},
               {.inputs = {f64({{1, 0, 2, -1, 1}, {2, 1, 0, 0.5, -3}}),
                           f64({{1, 2, 4, -3, 0.5}, {0, 0, 1, 10, 5}}), f64({1, 2, 0.5, -1, 3})},
                .attrs = with(1e-5),
                .expected = {f64({{-0.08420232047375398, -0.4893739137237172, 0.010837734239087737,
                                   -0.2109223934242096, 0.7736608933825933},
                                  {0.44311935520079554, 0.44311935520079554, 0.038021305658899426,
                                   0.9166546350340345, -1.840914651094525}}),
                             f64({-1.6109948938006182, -0.827340027474688, 2.708479991222978,
                                  2.5827700639934066, -1.5708769409585668}),
                             f64({3, 1, 2, -0.5, -2})},
                .oracle =
                    "[g.numpy() for g in (lambda d, *t: "
                    "torch.autograd.grad(torch.nn.functional.layer_norm(t[0], (5,), t[1], t[2], 1e-5), t, d))"
                    "(torch.tensor(dy), *[torch.tensor(a, requires_grad=True) for a in (x, scale, "
                    "np.zeros(5))])]"}};
         }},

    {.op = "batch_norm",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 2, 5}, -1, 1), uniform({5}, 0.5, 2, 1), uniform({5}, -1, 1, 2)},
                .attrs = with(1e-3)},
               {.inputs = {uniform({37, 2}, -1, 1), uniform({2}, 0.5, 2, 1), uniform({2}, -1, 1, 2)},
                .attrs = with(1e-3)},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 9}, {2, 0}}), f64({1.5, 0.5}), f64({0.1, 0.2})},
                .attrs = with(1e-3),
                .expected = {f64({{-1.6744183999228932, -0.06159059152480051},
                                  {0.3534883428461276, 0.23737008450354294},
                                  {2.3813950856151487, 0.9847717745744016},
                                  {-0.660465028538383, -0.360551267553144}}),
                             f64({2.75, 3.75}), f64({2.9166666666666665, 14.916666666666666}),
                             f64({2.75, 3.75}), f64({2.1875, 11.1875})},
                .oracle = "[(x - x.mean(0)) / np.sqrt(x.var(0) + 1e-3) * scale + offset, x.mean(0), x.var(0, "
                          "ddof=1), x.mean(0), x.var(0)]"}};
         }},

    {.op = "batch_norm_gradient",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 2, 5}, -1, 1, 3), uniform({2, 3, 2, 5}, -1, 1),
                           uniform({5}, 0.5, 2, 1)},
                .attrs = with(1e-3)},
               {.inputs = {uniform({37, 2}, -1, 1, 3), uniform({37, 2}, -1, 1), uniform({2}, 0.5, 2, 1)},
                .attrs = with(1e-3)},
               {.inputs = {uniform({2, 150}, -1, 1, 3), uniform({2, 150}, -1, 1), uniform({150}, 0.5, 2, 1)},
                .attrs = with(1e-1)},
               {.inputs = {f64({{1, 0}, {2, -1}, {0.5, 3}, {-2, 1}}), f64({{1, 2}, {3, 4}, {5, 9}, {2, 0}}),
                           f64({1.5, 0.5})},
                .attrs = with(1e-3),
                .expected = {f64({{0.9124306240668818, -0.043430594699876555},
                                  {1.6078585475067493, -0.27140197135490796},
                                  {-0.23159695751465956, 0.13029178409962966},
                                  {-2.2886922140589716, 0.18454078195515486}}),
                             f64({0.9294572571024681, 3.512787943333035}), f64({1.5, 3.0})},
                .oracle = "(lambda c, r: [scale * r * (dy - dy.mean(0) - c * r**2 * (dy * c).mean(0)), (dy * "
                          "c).sum(0) * r, dy.sum(0)])(x - x.mean(0), 1 / np.sqrt(x.var(0) + 1e-3))"}};
         }},

    {.op = "local_response_normalization",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 37}, -1, 1)}, .attrs = Attrs(LocalResponseNormalizationOptions{})},
               {.inputs = {uniform({5}, -1, 1)},
                .attrs = Attrs(LocalResponseNormalizationOptions{1, 2, 0.5, 0.75})},
               {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = Attrs(LocalResponseNormalizationOptions{})},
               {.inputs = {f64({{1, 2, 4, -3, 0.5}, {0, 0, 1, 10, 5}})},
                .attrs = Attrs(LocalResponseNormalizationOptions{1, 2, 0.5, 0.75}),
                .expected = {f64({{0.3236611811382156, 0.30084824744691147, 0.48859276662296347,
                                   -0.40114312058204965, 0.12108228060740671},
                                  {0, 0, 0.051272031151955194, 0.4368325406821042, 0.2196849058486448}})},
                .oracle = "torch.nn.functional.local_response_norm(torch.tensor(x)[:, :, None], 3, "
                          "alpha=1.5, beta=0.75, k=2.0)[:, :, 0].numpy()"}};
         }},
};

}   // namespace

std::span<const OpSamples> normalization_samples() { return normalization_table; }

}   // namespace tapedeck::test
