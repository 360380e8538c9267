// Writes SVG. What lies between data and page is one Scale for each axis.
#include "picture.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/ostream.h>

namespace {

constexpr double kLeft = 72, kRight = 24, kTop = 48, kBottom = 56;   // margins of a box

// From a value to its place between two edges of the page.
class Scale {
 public:
  Scale(const Axis& axis, double low, double high, double at_low, double at_high) : axis_(axis), low_(low), high_(high), at_low_(at_low), at_high_(at_high) {
    if (axis_.logarithmic) {
      high_ = std::max(high_, low_ * 1.26);
    } else if (high_ <= low_) {
      low_ -= 0.5, high_ += 0.5;
    }
  }
  double operator()(double value) const { return at_low_ + (of(value) - of(low_)) / (of(high_) - of(low_)) * (at_high_ - at_low_); }

  /// Round numbers within the range.
  std::vector<double> marks() const { return axis_.logarithmic ? decades() : steps(); }

 private:
  double of(double value) const { return axis_.logarithmic ? std::log10(value) : value; }

  std::vector<double> decades() const {
    const int first = static_cast<int>(std::floor(std::log10(low_))), last = static_cast<int>(std::ceil(std::log10(high_)));
    const int between = std::max(1, (last - first + 7) / 8);
    const bool fine = high_ < 300 * low_;   // few decades: marks between them, too
    std::vector<double> all;
    for (int e = first; e <= last; e += between)
      for (const int digit : {1, 2, 5})
        if (const double v = digit * std::pow(10, e); (digit == 1 || fine) && v >= low_ && v <= high_) all.push_back(v);
    return all;
  }
  std::vector<double> steps() const {
    const double rough = (high_ - low_) / 10, power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double digit : {5.0, 2.0, 1.0})
      if (digit * power >= rough * 0.999) step = digit * power;
    if (axis_.whole) step = std::max(1.0, std::round(step));
    std::vector<double> all;
    for (double i = std::ceil(low_ / step - 1e-9) + 0.0; i * step <= high_ + 1e-9 * step; ++i) all.push_back(i * step);
    return all;
  }

  const Axis& axis_;
  double low_, high_, at_low_, at_high_;
};

Scale scale_of(const Axis& axis, std::span<const Curve> curves, std::vector<double> Curve::*values, double at_low, double at_high) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  double low = axis.from.value_or(kFar), high = axis.to.value_or(-kFar);
  for (const Curve& c : curves)
    for (const double v : c.*values)
      if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  if (low > high) low = high = 1;   // there is nothing to show
  return Scale(axis, low, high, at_low, at_high);
}

void draw(std::ostream& svg, const Curve& curve, const Scale& x, const Scale& y) {
  const std::size_t n = std::min(curve.x.size(), curve.y.size());
  if (curve.dots) {
    for (std::size_t i = 0; i < n; ++i) fmt::print(svg, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", x(curve.x[i]), y(curve.y[i]), curve.width, curve.colour);
    return;
  }
  std::string points;
  for (std::size_t i = 0; i < n; ++i) points += fmt::format("{:.1f},{:.1f} ", x(curve.x[i]), y(curve.y[i]));
  fmt::print(svg, "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n", points, curve.colour, curve.width);
}

// From dark blue over green to yellow, by way of five colours.
std::string colour_of(double share) {
  constexpr int kColours[][3] = {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
  const double at = std::clamp(share, 0.0, 1.0) * 4;
  const std::size_t below = std::min<std::size_t>(static_cast<std::size_t>(at), 3);
  int mixed[3];
  for (int i = 0; i < 3; ++i) mixed[i] = static_cast<int>(kColours[below][i] + (at - static_cast<double>(below)) * (kColours[below + 1][i] - kColours[below][i]));
  return fmt::format("#{:02x}{:02x}{:02x}", mixed[0], mixed[1], mixed[2]);
}

}  // namespace

Picture::Picture(std::ostream& svg, double width, double height) : svg_(svg) {
  fmt::print(svg_, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">\n", width, height);
  fmt::print(svg_, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
}

Picture::~Picture() { svg_ << "</svg>\n"; }

void Picture::chart(const Box& box, const std::string& title, const Axis& x_axis, const Axis& y_axis, std::span<const Curve> curves) {
  const double left = box.x + kLeft, right = box.x + box.width - kRight, top = box.y + kTop, bottom = box.y + box.height - kBottom;
  const Scale x = scale_of(x_axis, curves, &Curve::x, left, right), y = scale_of(y_axis, curves, &Curve::y, bottom, top);

  fmt::print(svg_, "<text x=\"{}\" y=\"{}\" font-size=\"16\">{}", left, box.y + 28, title);
  for (const Curve& c : curves)
    if (!c.name.empty()) fmt::print(svg_, " <tspan fill=\"{}\" font-weight=\"bold\">{}</tspan>", c.colour, c.name);
  fmt::print(svg_, "</text>\n");

  for (const double mark : y.marks())
    fmt::print(svg_, "<path d=\"M{0} {2:.1f}H{1}\" stroke=\"#ddd\"/><text x=\"{3}\" y=\"{2:.1f}\" dy=\"4\" text-anchor=\"end\">{4:g}</text>\n", left, right, y(mark), left - 8, mark);
  for (const double mark : x.marks()) fmt::print(svg_, "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", x(mark), bottom + 20, mark);
  fmt::print(svg_, "<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"#333\"/>\n", left, top, bottom, right);
  fmt::print(svg_, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (left + right) / 2, bottom + 44, x_axis.label);
  fmt::print(svg_, "<text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", box.x + 20, (top + bottom) / 2, y_axis.label);
  for (const Curve& c : curves) draw(svg_, c, x, y);
}

void Picture::field(const Box& box, const std::string& title, std::span<const double> values, std::size_t columns, double low, double high) {
  const std::size_t rows = values.size() / columns;
  const double side = std::min((box.width - 24) / static_cast<double>(columns), (box.height - kTop - 12) / static_cast<double>(rows));
  fmt::print(svg_, "<text x=\"{}\" y=\"{}\" font-size=\"16\">{}</text>\n<g shape-rendering=\"crispEdges\">\n", box.x + 12, box.y + 28, title);
  for (std::size_t i = 0; i < values.size(); ++i)
    fmt::print(svg_, "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n", box.x + 12 + side * static_cast<double>(i % columns),
               box.y + kTop + side * static_cast<double>(i / columns), side, side, colour_of((values[i] - low) / (high - low)));
  fmt::print(svg_, "</g>\n");
}
