// Draws the loss curves: the logarithm of the loss over epochs.
#include "plot.h"

#include <algorithm>
#include <numeric>

#include "../common/picture.h"

namespace {

constexpr struct { const char *pale, *dark; } kColours[] = {{kPaleBlue, kBlue}, {kPaleOrange, kOrange}};

// Means over consecutive groups of `part` losses, plotted at the middle of each group; `epoch` losses are one
// unit on the x axis.
Curve means_of(const std::vector<double>& losses, std::size_t part, std::size_t epoch) {
  Curve curve;
  for (std::size_t at = 0; at < losses.size(); at += part) {
    const auto first = losses.begin() + static_cast<std::ptrdiff_t>(at);
    curve.x.push_back((static_cast<double>(at) + static_cast<double>(part) / 2) / static_cast<double>(epoch));
    curve.y.push_back(std::max(
        std::accumulate(first, first + static_cast<std::ptrdiff_t>(part), 0.0) / static_cast<double>(part),
        1e-6));   // the logarithm of 0 cannot be drawn
  }
  return curve;
}

}   // namespace

void write_loss_curves(std::ostream& svg, const std::vector<Losses>& networks, std::int64_t epochs) {
  std::vector<Curve> batches, means;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const std::vector<double>& losses = networks[i].batches;
    const std::size_t per_epoch = losses.size() / static_cast<std::size_t>(epochs);
    Curve& thin = batches.emplace_back(means_of(losses, 1, per_epoch));
    thin.colour = kColours[i % 2].pale, thin.width = 1;
    Curve& thick = means.emplace_back(means_of(losses, per_epoch, per_epoch));
    thick.colour = kColours[i % 2].dark, thick.width = 2.5, thick.name = networks[i].name;
  }
  batches.insert(batches.end(), means.begin(), means.end());
  Picture picture;
  picture.chart({}, "Training loss of each batch, and the mean of each epoch:",
                {.label = "epoch", .whole = true, .from = 0, .to = static_cast<double>(epochs)},
                {.label = "cross entropy", .logarithmic = true}, batches);
  picture.write(svg);
}
