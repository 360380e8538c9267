// Keras's variants of the optimizers: options with Keras's values and formulas. Change any of them before
// constructing an optimizer:
//   AdamOptions options = keras::adam();
//   options.amsgrad = true;
//   Adam adam(options);
#pragma once
#include <utility>

#include "tapedeck/optimizer.h"

namespace tapedeck::keras {

/// Options of Momentum: a = momentum · a - learning_rate · g; x += a, or with use_nesterov x += momentum · a
/// - learning_rate · g. Without momentum, x -= learning_rate · g.
inline MomentumOptions sgd(Scheduled learning_rate = 0.01, Scheduled momentum = 0) {
  return {
      .learning_rate = std::move(learning_rate), .momentum = std::move(momentum), .accumulate_steps = true};
}

/// Options of Adagrad: a += g²; x -= learning_rate · g / (√a + 1e-7), where a begins at 0.1.
inline AdagradOptions adagrad(Scheduled learning_rate = 1e-3) {
  return {.learning_rate = std::move(learning_rate), .epsilon = 1e-7};
}

/// Options of Adadelta: rho is 0.95, epsilon 1e-7.
inline AdadeltaOptions adadelta(Scheduled learning_rate = 1e-3) {
  return {.learning_rate = std::move(learning_rate), .epsilon = 1e-7};
}

/// Options of Adam: beta1 is 0.9, beta2 0.999, epsilon 1e-7.
inline AdamOptions adam(Scheduled learning_rate = 1e-3) {
  return {.learning_rate = std::move(learning_rate), .epsilon = 1e-7};
}

/// Options of RMSProp: s, a moving mean of g² with decay, which Keras calls rho, is initially 0; x -=
/// learning_rate · g / (√s + 1e-7). With momentum, a = momentum · a + learning_rate · g / √(s + 1e-7); x -=
/// a. decay is 0.9, momentum 0.
inline RMSPropOptions rmsprop(Scheduled learning_rate = 1e-3) {
  return {.learning_rate = std::move(learning_rate),
          .epsilon = 1e-7,
          .initial_mean_square = 0,
          .epsilon_outside = true};
}

/// Options of Ftrl with its defaults.
inline FtrlOptions ftrl(Scheduled learning_rate = 1e-3) {
  return {.learning_rate = std::move(learning_rate)};
}

}   // namespace tapedeck::keras
