// Draws the loss curves. Epochs run to the right, the logarithm of the loss upwards.
#include "plot.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include <fmt/ostream.h>

namespace {

constexpr double kWidth = 720, kHeight = 420;
constexpr double kLeft = 72, kRight = 696, kTop = 48, kBottom = 364;   // the field of the curves

struct Colours { const char *pale, *dark; };
constexpr Colours kColours[] = {{"#9cc4e6", "#0b4a86"}, {"#f0bf95", "#a8480b"}};

// From a loss to its height on the page.
class Axis {
 public:
  Axis(double lowest, double highest) : low_(std::log10(lowest)), high_(std::max(std::log10(highest), low_ + 0.1)) {}
  double operator()(double loss) const { return kBottom - (std::log10(loss) - low_) / (high_ - low_) * (kBottom - kTop); }

 private:
  double low_, high_;
};

void draw_curve(std::ostream& svg, const std::vector<double>& losses, double first_x, double step, const Axis& y, const char* colour, double width) {
  std::string points;
  for (std::size_t i = 0; i < losses.size(); ++i) points += fmt::format("{:.1f},{:.1f} ", first_x + step * static_cast<double>(i), y(losses[i]));
  fmt::print(svg, "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n", points, colour, width);
}

void draw_axes(std::ostream& svg, double lowest, double highest, const Axis& y, std::int64_t epochs) {
  for (double decade = std::pow(10, std::floor(std::log10(lowest))); decade <= highest; decade *= 10)
    for (const int digit : {1, 2, 5})
      if (const double loss = decade * digit; loss >= lowest && loss <= highest)
        fmt::print(svg, "<path d=\"M{0} {2:.1f}H{1}\" stroke=\"#ddd\"/><text x=\"{3}\" y=\"{2:.1f}\" dy=\"4\" text-anchor=\"end\">{4:g}</text>\n", kLeft, kRight, y(loss), kLeft - 8, loss);
  const std::int64_t between = std::max<std::int64_t>(1, (epochs + 9) / 10);
  for (std::int64_t epoch = 0; epoch <= epochs; epoch += between)
    fmt::print(svg, "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", kLeft + (kRight - kLeft) * static_cast<double>(epoch) / static_cast<double>(epochs), kBottom + 20, epoch);
  fmt::print(svg, "<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"#333\"/>\n", kLeft, kTop, kBottom, kRight);
  fmt::print(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">epoch</text>\n", (kLeft + kRight) / 2, kBottom + 44);
  fmt::print(svg, "<text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">cross entropy</text>\n", (kTop + kBottom) / 2);
}

}  // namespace

void write_loss_curves(std::ostream& svg, const std::vector<Losses>& networks, std::int64_t epochs) {
  std::vector<std::vector<double>> batches, means;
  double lowest = 1e6, highest = 1e-6;
  for (const Losses& network : networks) {
    std::vector<double>& all = batches.emplace_back();
    for (const double loss : network.batches) {
      all.push_back(std::max(loss, 1e-6));   // the logarithm of 0 is off the page
      lowest = std::min(lowest, all.back()), highest = std::max(highest, all.back());
    }
    const std::size_t per_epoch = all.size() / static_cast<std::size_t>(epochs);
    means.emplace_back();
    for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(per_epoch))
      means.back().push_back(std::accumulate(at, at + static_cast<std::ptrdiff_t>(per_epoch), 0.0) / static_cast<double>(per_epoch));
  }
  const Axis y(lowest, highest);

  fmt::print(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">\n", kWidth, kHeight);
  fmt::print(svg, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  fmt::print(svg, "<text x=\"{}\" y=\"28\" font-size=\"16\">Training loss of each batch, and the mean of each epoch:", kLeft);
  for (std::size_t i = 0; i < networks.size(); ++i) fmt::print(svg, " <tspan fill=\"{}\" font-weight=\"bold\">{}</tspan>", kColours[i % 2].dark, networks[i].name);
  fmt::print(svg, "</text>\n");
  draw_axes(svg, lowest, highest, y, epochs);
  const auto draw = [&](const std::vector<double>& losses, const char* colour, double width) {
    const double step = (kRight - kLeft) / static_cast<double>(losses.size());
    draw_curve(svg, losses, kLeft + step / 2, step, y, colour, width);
  };
  for (std::size_t i = 0; i < networks.size(); ++i) draw(batches[i], kColours[i % 2].pale, 1);
  for (std::size_t i = 0; i < networks.size(); ++i) draw(means[i], kColours[i % 2].dark, 2.5);
  fmt::print(svg, "</svg>\n");
}
