// Draws the loss curves.
#pragma once
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

struct Losses {
  std::string name;              // of the network
  std::vector<double> batches;   // the loss of each batch; the number of batches is the same in every epoch
};

/// Writes an SVG: the losses of every batch, and their means over each epoch, on a logarithmic axis.
void write_loss_curves(std::ostream& svg, const std::vector<Losses>& networks, std::int64_t epochs);
