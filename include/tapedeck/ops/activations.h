// Elementwise activation functions of floating-point dtypes; others throw DTypeError. Operands broadcast.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// x if x > 0, else 0; the derivative at 0 is 0.
TAPEDECK_EXPORT Tensor relu(Operand x);
/// x if x > 0, else alpha · x; the derivative at 0 is alpha. alpha may be a tensor and has a gradient.
TAPEDECK_EXPORT Tensor leaky_relu(Operand x, Operand alpha = 0.2);
/// min(max(x, 0), 6); the derivative at 0 and 6 is 0.
TAPEDECK_EXPORT Tensor relu6(Operand x);
/// x if x > 0, else exp(x) - 1 (Clevert, Unterthiner and Hochreiter 2015); the derivative at 0 is 1.
TAPEDECK_EXPORT Tensor elu(Operand x);
/// λ x if x > 0, else λ α (exp(x) - 1), with the constants λ = 1.0507… and α = 1.6732… of self-normalizing
/// networks, which preserve mean 0 and variance 1 (Klambauer et al. 2017). The derivative at 0 is λ α.
TAPEDECK_EXPORT Tensor selu(Operand x);
/// x Φ(x), where Φ is the standard normal distribution function (Hendrycks and Gimpel 2016), computed exactly
/// or with the paper's tanh approximation.
enum class Gelu : std::uint8_t { exact, tanh };
TAPEDECK_EXPORT Tensor gelu(Operand x, Gelu form = Gelu::exact);
/// x · sigmoid(beta x), also known as swish; beta may be a tensor and has a gradient.
TAPEDECK_EXPORT Tensor silu(Operand x, Operand beta = 1.0);
/// x / (1 + |x|), which has the derivative 1 / (1 + |x|)².
TAPEDECK_EXPORT Tensor softsign(Operand x);
/// log(1 + exp(x)), computed without overflow; its derivative is sigmoid(x).
TAPEDECK_EXPORT Tensor softplus(Operand x);

}   // namespace tapedeck
