// Draws the loss curve. Epochs run to the right, the logarithm of the loss upwards.
#include "plot.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include <fmt/ostream.h>

namespace {

constexpr double kWidth = 720, kHeight = 420;
constexpr double kLeft = 72, kRight = 696, kTop = 48, kBottom = 364;   // the field of the curves
constexpr const char *kPale = "#6aa9dc", *kDark = "#0b4a86";

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

void write_loss_curve(std::ostream& svg, const std::vector<double>& batch_losses, std::int64_t epochs) {
  std::vector<double> batches, means;
  for (const double loss : batch_losses) batches.push_back(std::max(loss, 1e-6));   // the logarithm of 0 is off the page
  const std::size_t per_epoch = batches.size() / static_cast<std::size_t>(epochs);
  for (auto at = batches.begin(); at != batches.end(); at += static_cast<std::ptrdiff_t>(per_epoch))
    means.push_back(std::accumulate(at, at + static_cast<std::ptrdiff_t>(per_epoch), 0.0) / static_cast<double>(per_epoch));

  const auto [lowest, highest] = std::minmax_element(batches.begin(), batches.end());
  const Axis y(*lowest, *highest);
  const double batch_step = (kRight - kLeft) / static_cast<double>(batches.size()), epoch_step = (kRight - kLeft) / static_cast<double>(epochs);

  fmt::print(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">\n", kWidth, kHeight);
  fmt::print(svg, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  fmt::print(svg, "<text x=\"{}\" y=\"28\" font-size=\"16\">Training loss: <tspan fill=\"{}\">each batch</tspan> and <tspan fill=\"{}\">the mean of each epoch</tspan></text>\n",
             kLeft, kPale, kDark);
  draw_axes(svg, *lowest, *highest, y, epochs);
  draw_curve(svg, batches, kLeft + batch_step / 2, batch_step, y, kPale, 1);
  draw_curve(svg, means, kLeft + epoch_step / 2, epoch_step, y, kDark, 2.5);
  fmt::print(svg, "</svg>\n");
}
