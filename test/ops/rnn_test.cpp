// Recurrent cells, CTC and quantisation, which are composed of ops, compared with torch and with values by
// hand.
#include <catch2/catch.hpp>
#include <cmath>

#include "closeness.h"
#include "message_of.h"
#include "ops/sample_inputs.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/tapedeck.h"

namespace rnn_test {

using namespace tapedeck;
using samples::uniform;
using test::message_of;

TEST_CASE("one step of an LSTM and of a GRU", "[rnn]") {
  const Tensor x = uniform({2, 3}, -1, 1), h = uniform({2, 2}, -1, 1, 1), c = uniform({2, 2}, -1, 1, 2);
  const LstmState next = lstm_cell(x, {h, c}, uniform({5, 8}, -1, 1, 3), uniform({8}, -1, 1, 4));
  // torch.nn.LSTMCell with the gates in its order and 1 added to the forget gate's bias
  CHECK(worst(next.h, tensor({{0.15233786709318825, -0.5134290711917977},
                              {0.24104036144264746, -0.04127588480551504}},
                             DType::f64)) < 1e-14);
  CHECK(worst(next.c,
              tensor({{0.8121300136462324, -0.7832774747657373}, {0.7977118009343158, -0.06972599548578073}},
                     DType::f64)) < 1e-14);
  // NumPy: r, u = sigmoid([x, h] gates + bias); u h + (1 - u) tanh([x, r h] candidate + bias)
  CHECK(worst(gru_cell(x, h,
                       {uniform({5, 4}, -1, 1, 3), uniform({4}, -1, 1, 4), uniform({5, 2}, -1, 1, 5),
                        uniform({2}, -1, 1, 6)}),
              tensor({{0.01984454009168113, 0.37324850165896517}, {0.5396207535372086, -0.44104232698013124}},
                     DType::f64)) < 1e-14);
  CHECK_THROWS_WITH(lstm_cell(x, {h, c}, zeros({5, 6}), zeros({8})),
                    "lstm_cell: weights and bias are not [5,8] and [8]: they are f32[5,6] and f32[8]");
  CHECK_THROWS_WITH(lstm_cell(x, {h, zeros({2, 3})}, zeros({5, 8}), zeros({8})),
                    "lstm_cell: x must be [batch, in] and the state [batch, units]: x is f64[2,3], h is "
                    "f64[2,2], c is f32[2,3]");
  CHECK_THROWS_AS(gru_cell(x, h, {zeros({5, 4}), zeros({4}), zeros({4, 2}), zeros({2})}), ShapeError);
  const DType c64 = DType::c64;
  CHECK(message_of<DTypeError>([&] {
          lstm_cell(astype(x, c64), {h, c}, zeros({5, 8}), zeros({8}));
        }) == "lstm_cell: takes f32, f64, f16 or bf16, use astype: x is c64[2,3]");
  CHECK(message_of<DTypeError>([&] {
          lstm_cell(x, {h, c}, zeros({5, 8}), zeros({8}, DType::i32));
        }) == "lstm_cell: takes f32, f64, f16 or bf16, use astype: bias is i32[8]");
  CHECK(message_of<DTypeError>([&] {
          gru_cell(x, h, {zeros({5, 4}, c64), zeros({4}), zeros({5, 2}), zeros({2})});
        }) == "gru_cell: takes f32, f64, f16 or bf16, use astype: gates is c64[5,4]");
}

TEST_CASE("block_lstm is lstm_cell, step by step", "[rnn]") {
  const Tensor x = uniform({4, 2, 3}, -1, 1), h = uniform({2, 2}, -1, 1, 1), c = uniform({2, 2}, -1, 1, 2),
               weights = uniform({5, 8}, -1, 1, 3), bias = uniform({8}, -1, 1, 4);
  const LstmState all = block_lstm(x, {h, c}, weights, bias, 0.5);
  LstmState state{h, c};
  for (std::int64_t t = 0; t < 4; ++t) {
    state = lstm_cell(strided_slice(x, {t}), state, weights, bias, 0.5);
    CHECK(worst(strided_slice(all.h, {t}), state.h) < 1e-15);
    CHECK(worst(strided_slice(all.c, {t}), state.c) < 1e-15);
  }
  CHECK(check_gradients(
      [](const std::vector<Tensor>& in) {
        return block_lstm(in[0], {in[1], in[2]}, in[3], in[4]).h;
      },
      {x, h, c, weights, bias}));
  // The cotangents of h and c are one tensor.
  CHECK(check_gradients(
      [](const std::vector<Tensor>& in) {
        const LstmState s = block_lstm(in[0], {in[1], in[2]}, in[3], in[4]);
        return sin(s.h + s.c);
      },
      {x, h, c, weights, bias}));
  CHECK(block_lstm(zeros({0, 2, 3}), {zeros({2, 2}), zeros({2, 2})}, zeros({5, 8}), zeros({8})).h.shape() ==
        Shape{0, 2, 2});
}

TEST_CASE("block_lstm of few and of many units, in few and in many rows", "[rnn]") {
  for (const std::int64_t units : {1, 5, 8, 19, 256, 257})
    for (const std::int64_t batch : {1, 2, 3, 7, 20}) {
      INFO(units << " units, " << batch << " rows");
      const Tensor x = uniform({3, batch, 2}, -1, 1), h = uniform({batch, units}, -1, 1, 1),
                   c = uniform({batch, units}, -1, 1, 2),
                   weights = uniform({2 + units, 4 * units}, -0.2, 0.2, 3),
                   bias = uniform({4 * units}, -1, 1, 4);
      const LstmState all = block_lstm(x, {h, c}, weights, bias, 0.5);
      LstmState state{h, c};
      for (std::int64_t t = 0; t < 3; ++t) {
        state = lstm_cell(strided_slice(x, {t}), state, weights, bias, 0.5);
        CHECK(worst(strided_slice(all.h, {t}), state.h) < 1e-14);
        CHECK(worst(strided_slice(all.c, {t}), state.c) < 1e-14);
      }
      set_num_threads(3);
      CHECK(same_bits(block_lstm(x, {h, c}, weights, bias, 0.5).h, all.h));
      set_num_threads(1);
    }
}

TEST_CASE("ctc_loss", "[rnn]") {
  const Tensor logits = uniform({6, 3, 4}, -2, 2), labels = tensor({{1, 2, 2}, {3, 1, 0}, {1, 1, 1}}),
               lengths = tensor({3, 2, 0}), times = tensor({6, 4, 5});
  GradientTape tape;
  tape.watch(logits);
  const Tensor loss = ctc_loss(labels, logits, lengths, times), dx = tape.gradient(loss, logits).dense();
  // torch.nn.functional.ctc_loss of log_softmax(logits)
  CHECK(worst(loss, tensor({6.343795326233321, 3.7448640634388113, 10.135474704639684}, DType::f64)) < 1e-13);
  CHECK(worst(strided_slice(dx, {0, 0}),
              tensor({0.01076603328346829, -0.7307277884009957, 0.056038068688967456, 0.66392368642856},
                     DType::f64)) < 1e-13);
  CHECK(worst(strided_slice(dx, {3, 0}),
              tensor({-0.2379759295945036, 0.741569387898758, -0.5385127918265782, 0.034919333522323716},
                     DType::f64)) < 1e-13);
  CHECK(worst(strided_slice(dx, {5, 1}), zeros({4})) == 0);   // beyond the end of its sequence
  CHECK(worst(ctc_loss(labels, astype(logits, DType::f32), lengths, times), loss) < 1e-5);
  CHECK(check_gradients(
      [&](const std::vector<Tensor>& in) { return ctc_loss(labels, in[0], lengths, times); }, {logits}));

  // One step for one label; two equal labels need three steps.
  const Tensor even = zeros({2, 1, 3}, DType::f64), one = tensor({1}), two = tensor({2});
  CHECK(ctc_loss(tensor({{1}}), even, one, one).item() == Approx(std::log(3.0)));
  CHECK(ctc_loss(tensor({{1}}), even, one, two).item() == Approx(std::log(9.0 / 3)));   // 1 1, 1 - and - 1
  CHECK(ctc_loss(tensor({{1, 2}}), even, two, two).item() == Approx(std::log(9.0)));
  GradientTape second;
  second.watch(even);
  const Tensor never = ctc_loss(tensor({{1, 1}}), even, two, two);
  CHECK(never.item() == std::numeric_limits<double>::infinity());
  CHECK(worst(second.gradient(never, even).dense(), zeros({2, 1, 3})) == 0);
  CHECK(ctc_loss(tensor({{0}}), even, one, two, 2).item() == Approx(std::log(3.0)));

  CHECK_THROWS_WITH(ctc_loss(tensor({{3}}), even, one, two),
                    "ctc_loss: label 3 at [0,0] is the blank or out of range for 3 classes");
  CHECK_THROWS_WITH(ctc_loss(tensor({{1}}), even, two, two), "ctc_loss: label_lengths is 2 at 0; use 0..1");
  CHECK_THROWS_WITH(ctc_loss(tensor({{1}}), even, one, two, 3), "ctc_loss: blank is 3; use 0..2");
  CHECK_THROWS_AS(ctc_loss(tensor({1}), even, one, two), ShapeError);
  CHECK_THROWS_AS(ctc_loss(tensor({{1.0}}), even, one, two), DTypeError);
}

TEST_CASE("fake quantisation rounds to levels, one of which is 0, and clips gradients", "[quantize]") {
  // 2 bits from -1 to 2: levels -1, 0, 1, 2.
  const Tensor x = tensor({-3.0, -1.0, -0.4, 0.4, 0.6, 1.6, 2.0, 5.0}, DType::f64);
  CHECK(fake_quant_with_min_max_args(x, -1, 2, {.bits = 2}).to_vector() ==
        std::vector<double>{-1, -1, 0, 0, 1, 2, 2, 2});
  // A range of -0.9 to 2.1 is shifted by 0.1.
  const Tensor low = tensor(-0.9, DType::f64), high = tensor(2.1, DType::f64);
  GradientTape tape;
  tape.watch(x), tape.watch(low), tape.watch(high);
  const Tensor y = fake_quant_with_min_max_vars(x, low, high, {.bits = 2});
  CHECK(worst(y, tensor({-1.0, -1.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0}, DType::f64)) < 1e-15);
  const std::vector<Gradient> g =
      tape.gradient(Targets(y), Sources({x, low, high}),
                    {.output_gradients = {tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}, DType::f64)}});
  CHECK(g[0].dense().to_vector() == std::vector<double>{0, 2, 3, 4, 5, 6, 7, 0});
  CHECK((g[1].dense().item() == 1 && g[2].dense().item() == 8));
  // Per channel: -1 … 2 in steps of 1, and 0 … 3 in steps of 1.
  const Tensor rows = tensor({{-0.4, -0.4}, {1.6, 5.0}}, DType::f64), lows = tensor({-1.0, 0.0}, DType::f64),
               highs = tensor({2.0, 3.0}, DType::f64);
  GradientTape again;
  again.watch(rows), again.watch(lows), again.watch(highs);
  const Tensor z = fake_quant_with_min_max_vars_per_channel(rows, lows, highs, {.bits = 2});
  CHECK(worst(z, tensor({{0.0, 0.0}, {2.0, 3.0}}, DType::f64)) < 1e-15);
  const std::vector<Gradient> d = again.gradient(Targets(z), Sources({rows, lows, highs}));
  CHECK(d[0].dense().to_vector() == std::vector<double>{1, 0, 1, 0});
  CHECK(d[1].dense().to_vector() == std::vector<double>{0, 1});
  CHECK(d[2].dense().to_vector() == std::vector<double>{0, 1});
  CHECK_THROWS_WITH(fake_quant_with_min_max_args(x, 1, 1),
                    "fake_quant_with_min_max_args: min is 1, max is 1; use a finite min below max");
  CHECK_THROWS_WITH(fake_quant_with_min_max_args(x, 0, 1, {.bits = 17}),
                    "fake_quant_with_min_max_args: bits is 17; use 2..16");
  CHECK_THROWS_AS(fake_quant_with_min_max_vars(x, tensor({0.0}, DType::f64), high), ShapeError);
  CHECK_THROWS_AS(fake_quant_with_min_max_vars(x, tensor(0.0f), high), DTypeError);
}

TEST_CASE("quantize_and_dequantize", "[quantize]") {
  // 3 bits, signed: -4 … 3 steps of 1/2; -2 … 1.5.
  const Tensor x = tensor({-3.0, -1.25, -0.75, 0.25, 0.3, 1.5, 2.0}, DType::f64),
               low = tensor(-2.0, DType::f64), high = tensor(1.0, DType::f64);
  CHECK(quantize_and_dequantize(x, low, high, {.bits = 3}).to_vector() ==
        std::vector<double>{-2, -1, -1, 0, 0.5, 1.5, 1.5});
  CHECK(quantize_and_dequantize(x, low, high,
                                {.bits = 3, .round = QuantizeAndDequantizeOptions::Round::half_up})
            .to_vector() == std::vector<double>{-2, -1, -0.5, 0.5, 0.5, 1.5, 1.5});
  GradientTape tape;
  tape.watch(x), tape.watch(low), tape.watch(high);
  const std::vector<Gradient> g =
      tape.gradient(Targets(quantize_and_dequantize(x, low, high, {.bits = 3})), Sources({x, low, high}));
  CHECK(g[0].dense().to_vector() == std::vector<double>{0, 1, 1, 1, 1, 0, 0});
  CHECK((g[1].dense().item() == 1 && g[2].dense().item() == 2));
  GradientTape all;
  all.watch(x);
  CHECK(all.gradient(quantize_and_dequantize(x), x).dense().to_vector() == std::vector<double>(7, 1));
  CHECK(worst(quantize_and_dequantize(x, {.bits = 16}), x) < 1e-4);
  CHECK(quantize_and_dequantize(zeros({3})).to_vector() == std::vector<double>(3, 0));
  CHECK_THROWS_AS(quantize_and_dequantize(zeros({0})), ShapeError);
}

}   // namespace rnn_test
