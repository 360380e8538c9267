// Samples of the ops in lib/ops/nn/rnn.cpp.
#include "ops/nn/rnn.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

Tensor ctc_labels() { return tensor({{1, 2, 2, 4}, {3, 1, 0, 0}}); }
Tensor ctc_label_lengths() { return tensor({4, 2}); }
Tensor ctc_steps() { return tensor({7, 5}); }

constexpr OpSamples rnn_table[] = {
    {.op = "block_lstm",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 2, 5}, -1, 1), uniform({2, 3}, -1, 1, 1), uniform({2, 3}, -1, 1, 2),
                           uniform({8, 12}, -1, 1, 3), uniform({12}, -1, 1, 4)},
                .attrs = Attrs(LstmAttrs{1})},
               {.inputs = {uniform({2, 1, 3}, -1, 1), uniform({1, 19}, -1, 1, 1), uniform({1, 19}, -1, 1, 2),
                           uniform({22, 76}, -1, 1, 3), uniform({76}, -1, 1, 4)},
                .attrs = Attrs(LstmAttrs{0.5})},
               {.inputs = {uniform({0, 2, 3}, -1, 1), uniform({2, 2}, -1, 1), uniform({2, 2}, -1, 1),
                           uniform({5, 8}, -1, 1), uniform({8}, -1, 1)},
                .attrs = Attrs(LstmAttrs{1})},
               {.inputs = {uniform({1, 2, 3}, -1, 1), uniform({2, 2}, -1, 1, 1), uniform({2, 2}, -1, 1, 2),
                           uniform({5, 8}, -1, 1, 3), uniform({8}, -1, 1, 4)},
                .attrs = Attrs(LstmAttrs{1}),
                .expected = {tensor(std::vector<double>{0.1523378670931883, -0.5134290711917976,
                                                        0.24104036144264746, -0.041275884805515035},
                                    {1, 2, 2}),
                             tensor(std::vector<double>{0.8121300136462324, -0.7832774747657373,
                                                        0.7977118009343158, -0.06972599548578072},
                                    {1, 2, 2}),
                             tensor(std::vector<double>{0.47726989647518636, 0.7103539086495536,
                                                        0.8881409457034648, -0.8899679118799424,
                                                        0.8903361321347028, 0.46081689130915543,
                                                        0.22711111064781755, 0.7843594926951003,
                                                        0.1631907075436722, 0.7666214436353991,
                                                        0.1241516047077145, -0.15157236648490344,
                                                        0.8560317621394149, 0.3221183591759512,
                                                        0.3636941925248212, 0.5929317088864217},
                                    {1, 2, 8})},
                .oracle =
                    "(lambda z, u: (lambda i, g, f, o: (lambda c: (o * np.tanh(c), c, np.concatenate([i, g, "
                    "f, o], -1)))(f * u + i * g))(*((1 / (1 + np.exp(-z[..., 0:2])), np.tanh(z[..., 2:4]), "
                    "1 / (1 + np.exp(-z[..., 4:6] - 1)), 1 / (1 + np.exp(-z[..., "
                    "6:8]))))))(np.concatenate([x[0], h], 1)[None] @ weights[0] + weights[1], c)"}};
         }},

    {.op = "block_lstm_gradient",
     .no_oracle = "torch keeps the gradient of the recurrent part to itself",
     .samples =
         [] {
           const auto gates = [](const Shape& shape) { return uniform(shape, 0.1, 0.9, 3); };
           const auto of = [](const std::vector<double>& v, const Shape& shape) { return tensor(v, shape); };
           return std::vector<Sample>{
               {.inputs = {uniform({3, 2, 5}, -1, 1), uniform({3, 2, 5}, -1, 1, 1),
                           uniform({3, 2, 20}, -1, 1, 2), gates({3, 2, 20}), uniform({3, 2, 5}, -1, 1, 4),
                           uniform({2, 5}, -1, 1, 5), uniform({7, 20}, -1, 1, 6)},
                .attrs = Attrs(LstmAttrs{1})},
               {.inputs = {uniform({2, 1, 3}, -1, 1), zeros({0}, DType::f64), zeros({0}, DType::f64),
                           gates({2, 1, 12}), uniform({2, 1, 3}, -1, 1, 4), uniform({1, 3}, -1, 1, 5),
                           uniform({3, 12}, -1, 1, 6)},
                .attrs = Attrs(LstmAttrs{1})},
               {.inputs = {of({1}, {1, 1, 1}), of({2}, {1, 1, 1}), of({0, 0, 0, 0}, {1, 1, 4}),
                           of({0.5, 0.25, 0.5, 0.5}, {1, 1, 4}), of({0}, {1, 1, 1}), of({4}, {1, 1}),
                           of({1, 2, 3, 4}, {1, 4})},
                .attrs = Attrs(LstmAttrs{1}),
                .expected = {of({0.15625, 1.171875, 2.5, 0}, {1, 1, 4}), of({10}, {1, 1}),
                             of({1.25}, {1, 1})},
                .oracle = "by hand"}};
         }},

    {.op = "ctc_loss",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {ctc_labels(), uniform({7, 2, 5}, -2, 2), ctc_label_lengths(), ctc_steps()},
                .attrs = Attrs(CtcAttrs{0})},
               {.inputs = {zeros({2, 0}, DType::i64), uniform({4, 2, 3}, -2, 2), zeros({2}, DType::i64),
                           tensor({4, 1})},
                .attrs = Attrs(CtcAttrs{2})},
               {.inputs = {zeros({0, 3}, DType::i64), uniform({4, 0, 3}, -2, 2), zeros({0}, DType::i64),
                           zeros({0}, DType::i64)},
                .attrs = Attrs(CtcAttrs{2})},
               {.inputs = {tensor({{1, 2, 2}, {3, 1, 0}, {1, 1, 1}}), uniform({6, 3, 4}, -2, 2),
                           tensor({3, 2, 0}), tensor({6, 4, 5})},
                .attrs = Attrs(CtcAttrs{0}),
                .expected = {tensor(
                    std::vector<double>{6.343795326233321, 3.7448640634388113, 10.135474704639684}, {3})},
                .oracle = "torch.nn.functional.ctc_loss(torch.tensor(logits).log_softmax(-1), "
                          "torch.tensor(labels), torch.tensor(logit_lengths), torch.tensor(label_lengths), "
                          "reduction='none').numpy()"}};
         }},

    {.op = "ctc_loss_gradient",
     .oracle = "(lambda t, *l: torch.autograd.grad(torch.nn.functional.ctc_loss(t.log_softmax(-1), *l, "
               "reduction='sum'), t)[0].numpy())(torch.tensor(logits, requires_grad=True), "
               "torch.tensor(labels), torch.tensor(logit_lengths), torch.tensor(label_lengths))",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {ctc_labels(), uniform({7, 2, 5}, -2, 2), ctc_label_lengths(), ctc_steps()},
                .attrs = Attrs(CtcAttrs{0})},
               {.inputs = {zeros({0, 3}, DType::i64), uniform({4, 0, 3}, -2, 2), zeros({0}, DType::i64),
                           zeros({0}, DType::i64)},
                .attrs = Attrs(CtcAttrs{2})},
               {.inputs = {tensor({{1, 2, 2}, {3, 1, 0}, {1, 1, 1}}), uniform({6, 3, 4}, -2, 2),
                           tensor({3, 2, 0}), tensor({6, 4, 5})},
                .attrs = Attrs(CtcAttrs{0}),
                .expected = {tensor(std::vector<double>{0.01076603328346829,
                                                        -0.7307277884009957,
                                                        0.056038068688967456,
                                                        0.66392368642856,
                                                        -0.2646186813469795,
                                                        0.04993261591864035,
                                                        0.5915879545693877,
                                                        -0.37690188914104855,
                                                        -0.9782032833123195,
                                                        0.2582415281947922,
                                                        0.05603806868896744,
                                                        0.6639236864285598,
                                                        -0.05602012577852176,
                                                        -0.02972704590128868,
                                                        -0.04262662886832928,
                                                        0.12837380054813974,
                                                        0.011360733124270862,
                                                        0.03435011875605776,
                                                        0.05603806868896747,
                                                        -0.10174892056929609,
                                                        -0.7698943710361682,
                                                        0.049932615918640365,
                                                        0.591587954569388,
                                                        0.1283738005481399,
                                                        -0.3659919320885416,
                                                        0.10080338217951824,
                                                        -0.041012070018297854,
                                                        0.3062006199273212,
                                                        -0.226184511187576,
                                                        -0.33659496721290266,
                                                        0.5915879545693878,
                                                        -0.02880847616890926,
                                                        -0.4511459040969204,
                                                        0.11910060996555911,
                                                        0.025844674204040415,
                                                        0.30620061992732084,
                                                        -0.2379759295945036,
                                                        0.741569387898758,
                                                        -0.5385127918265782,
                                                        0.034919333522323716,
                                                        0.054129785592267846,
                                                        -0.38617507972362913,
                                                        0.025844674204040415,
                                                        0.30620061992732084,
                                                        -0.9374082938353205,
                                                        0.7415693878987561,
                                                        0.1609195724142407,
                                                        0.03491933352232363,
                                                        -0.38834810569870803,
                                                        0.11910060996555911,
                                                        -0.03695312419417194,
                                                        0.3062006199273209,
                                                        0,
                                                        0,
                                                        0,
                                                        0,
                                                        -0.7698943710361682,
                                                        0.049932615918640365,
                                                        0.591587954569388,
                                                        0.1283738005481399,
                                                        -0.21872447650967855,
                                                        0.7415693878987577,
                                                        -0.5577642449114028,
                                                        0.0349193335223237,
                                                        0,
                                                        0,
                                                        0,
                                                        0,
                                                        0,
                                                        0,
                                                        0,
                                                        0},
                                    {6, 3, 4})}}};
         }},
};

}   // namespace

std::span<const OpSamples> rnn_samples() { return rnn_table; }

}   // namespace tapedeck::test
