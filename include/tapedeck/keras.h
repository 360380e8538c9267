// Keras's variants of the optimizers: options with its numbers and formulas, of which any may be changed
// before an optimizer is made from them:
//   AdamOptions options = keras::adam();
//   options.amsgrad = true;
//   Adam adam(options);
#pragma once
#include <utility>

#include "tapedeck/optimizer.h"

namespace tapedeck::keras {

/// Of Momentum: a = momentum · a - learning_rate · g; x += a, or with use_nesterov x += momentum · a -
/// learning_rate · g. Without momentum x -= learning_rate · g.
inline MomentumOptions sgd(Scheduled learning_rate = 0.01, Scheduled momentum = 0) {
  return {
      .learning_rate = std::move(learning_rate), .momentum = std::move(momentum), .accumulate_steps = true};
}

/// Of Adagrad: a += g²; x -= learning_rate · g / (√a + 1e-7), where a begins at 0.1.
inline AdagradOptions adagrad(Scheduled learning_rate = 1e-3) {
  return {.learning_rate = std::move(learning_rate), .epsilon = 1e-7};
}

/// Of Adadelta: rho is 0.95, epsilon 1e-7.
inline AdadeltaOptions adadelta(Scheduled learning_rate = 1e-3) {
  return {.learning_rate = std::move(learning_rate), .epsilon = 1e-7};
}

/// Of Adam: beta1 is 0.9, beta2 0.999, epsilon 1e-7.
inline AdamOptions adam(Scheduled learning_rate = 1e-3) {
  return {.learning_rate = std::move(learning_rate), .epsilon = 1e-7};
}

/// Of RMSProp: s, a mean of g² by decay, which Keras calls rho, begins at 0; x -= learning_rate · g / (√s +
/// 1e-7). With momentum a = momentum · a + learning_rate · g / √(s + 1e-7); x -= a. decay is 0.9, momentum 0.
inline RMSPropOptions rmsprop(Scheduled learning_rate = 1e-3) {
  return {.learning_rate = std::move(learning_rate),
          .epsilon = 1e-7,
          .initial_mean_square = 0,
          .epsilon_outside = true};
}

/// Of Ftrl, with its other defaults.
inline FtrlOptions ftrl(Scheduled learning_rate = 1e-3) {
  return {.learning_rate = std::move(learning_rate)};
}

}   // namespace tapedeck::keras
