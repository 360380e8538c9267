// Connectionist temporal classification: the forward and backward variables of sequences, in logarithms.
#pragma once
#include <cstdint>
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// What is checked: labels are classes but the blank, and lengths in range. most: the labels that a sequence
/// may have.
struct CtcLabels {
  std::int64_t most, blank;
  std::vector<std::int64_t> label;           // [batch, most]
  std::vector<std::int64_t> labels, steps;   // [batch]: how many of each are used
};

// log_p is [time, batch, classes]: logarithms of probabilities, f32 or f64.
/// loss [batch]: minus the log-probability of the labels; infinite where they do not fit into the steps.
void ctc_loss(const CtcLabels& l, const Tensor& log_p, Tensor& loss);
/// gradient [time, batch, classes] comes in as the probabilities and goes out as the loss's gradient in what
/// log_p is the log_softmax of; 0 behind the end and where the loss is infinite.
void ctc_gradient(const CtcLabels& l, const Tensor& log_p, Tensor& gradient);

}   // namespace tapedeck::kernels
