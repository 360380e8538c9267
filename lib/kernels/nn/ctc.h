// Connectionist temporal classification (CTC) loss and its gradient, by forward and backward variables in log
// space.
#pragma once
#include <cstdint>
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// The labels of a batch, already checked: they are valid classes other than the blank, and lengths are in
/// range. `most` is the extent of the label axis.
struct CtcLabels {
  std::int64_t most, blank;
  std::vector<std::int64_t> label;           // [batch, most]
  std::vector<std::int64_t> labels, steps;   // [batch]: how many labels and time steps each sequence uses
};

// log_p is [time, batch, classes]: log-probabilities, f32 or f64.
/// loss [batch]: the negative log-probability of the labels; infinite if they do not fit into the steps.
void ctc_loss(const CtcLabels& l, const Tensor& log_p, Tensor& loss);
/// gradient [time, batch, classes] holds the class probabilities on entry. On return, it is the gradient with
/// respect to the logits whose log_softmax is log_p; 0 past a sequence's end and where the loss is infinite.
void ctc_gradient(const CtcLabels& l, const Tensor& log_p, Tensor& gradient);

}   // namespace tapedeck::kernels
