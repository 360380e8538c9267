// Samples of the ops in lib/ops/nn/losses.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples losses_table[] = {
    {.op = "sparse_softmax_cross_entropy",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {tensor(5, DType::i64), uniform({37}, -2, 2)}},
               {.inputs = {tensor({{0, 4, 2}, {1, 1, 3}}, DType::i32), uniform({2, 3, 5}, -2, 2)}},
               {.inputs = {tensor({2, 0}, DType::i64), f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .expected = {f64({0.40760596444438046, 2.1041306053367284})},
                .oracle = "torch.nn.functional.cross_entropy(torch.tensor(logits), torch.tensor(labels), "
                          "reduction='none').numpy()"}};
         }},

    {.op = "softmax_cross_entropy",
     .oracle = "-(labels * (logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True))).sum(-1)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, 0, 1), uniform({37}, -2, 2, 1)}},
               {.inputs = {uniform({2, 3, 5}, -1, 1), uniform({2, 3, 5}, -2, 2, 1)}},
               {.inputs = {uniform({0, 3}, 0, 1), uniform({0, 3}, -2, 2)}},
               {.inputs = {f64({{0, 0.25, 0.75}, {1, 2, 0}}), f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .expected = {f64({0.6576059644443805, 4.3123918160101855})}}};
         }},

    {.op = "sigmoid_cross_entropy",
     .oracle = "torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor(logits), "
               "torch.tensor(labels), reduction='none').numpy()",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0, 1), uniform({2, 3}, -3, 3, 1)}},
                                      {.inputs = {f64({0, 1, 0.25, 0.75}), signs()},
                                       .expected = {f64({0.20141327798275246, 0.8259394198788437,
                                                         0.8490769841801067, 0.6269280110429726})}}};
         }},

    {.op = "huber",
     .oracle = "torch.nn.functional.huber_loss(torch.tensor(predictions), torch.tensor(labels), "
               "delta=float(delta), reduction='none').numpy()",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {distinct({2, 3}), distinct({2, 3}, 1) + 0.045, f64(0.3)}},
                                      {.inputs = {f64({0, 1, 0.25, 0.75}), signs(), f64(0.75)},
                                       .expected = {f64({0.84375, 0.65625, 0.03125, 0.65625})}}};
         }},

    {.op = "l2_loss",
     .oracle = "np.sum(x**2) / 2",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({3, 37}, -1, 1)}},
                                      {.inputs = {uniform({}, -1, 1)}},
                                      {.inputs = {uniform({0, 3}, -1, 1)}},
                                      {.inputs = {f64({{1, -2}, {3, 0.5}})}, .expected = {f64(7.125)}}};
         }},
};

}   // namespace

std::span<const OpSamples> losses_samples() { return losses_table; }

}   // namespace tapedeck::test
