// The loss curve as a picture.
#pragma once
#include <ostream>
#include <vector>

/// Writes an SVG: the loss of every batch, and its mean over each epoch, on a logarithmic axis.
void write_loss_curve(std::ostream& svg, const std::vector<double>& batch_losses, std::int64_t epochs);
