// Writes SVG. A Scale for each axis maps data to page coordinates.
#include "picture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/ostream.h>

namespace {

constexpr double kLeft = 72, kRight = 24, kTop = 48, kBottom = 56;   // margins of a chart

// Maps values to coordinates between two edges of the page.
class Scale {
 public:
  Scale(const Axis& axis, double low, double high, double at_low, double at_high)
      : axis_(axis), low_(low), high_(high), at_low_(at_low), at_high_(at_high) {
    if (axis_.logarithmic) {
      high_ = std::max(high_, low_ * 1.26);
    } else if (high_ <= low_) {
      low_ -= 0.5, high_ += 0.5;
    }
  }
  double operator()(double value) const {
    return at_low_ + (of(value) - of(low_)) / (of(high_) - of(low_)) * (at_high_ - at_low_);
  }

  /// Round numbers within the range, for tick marks.
  std::vector<double> marks() const { return axis_.logarithmic ? decades() : steps(); }

 private:
  double of(double value) const { return axis_.logarithmic ? std::log10(value) : value; }

  std::vector<double> decades() const {
    const int first = static_cast<int>(std::floor(std::log10(low_))),
              last = static_cast<int>(std::ceil(std::log10(high_)));
    const int between = std::max(1, (last - first + 7) / 8);
    const bool fine = high_ < 300 * low_;   // few decades: add marks between them
    std::vector<double> all;
    for (int e = first; e <= last; e += between)
      for (const int digit : {1, 2, 5})
        if (const double v = digit * std::pow(10, e); (digit == 1 || fine) && v >= low_ && v <= high_)
          all.push_back(v);
    return all;
  }
  std::vector<double> steps() const {
    const double rough = (high_ - low_) / 10, power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double digit : {5.0, 2.0, 1.0})
      if (digit * power >= rough * 0.999) step = digit * power;
    if (axis_.whole) step = std::max(1.0, std::round(step));
    std::vector<double> all;
    for (double i = std::ceil(low_ / step - 1e-9) + 0.0; i * step <= high_ + 1e-9 * step; ++i)
      all.push_back(i * step);
    return all;
  }

  const Axis& axis_;
  double low_, high_, at_low_, at_high_;
};

Scale scale_of(const Axis& axis, std::span<const Curve> curves, std::vector<double> Curve::*values,
               double at_low, double at_high) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  double low = axis.from.value_or(kFar), high = axis.to.value_or(-kFar);
  for (const Curve& c : curves)
    for (const double v : c.*values)
      if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  if (low > high) low = high = 1;   // there is no data
  return Scale(axis, low, high, at_low, at_high);
}

void draw(std::ostream& svg, const Curve& curve, const Scale& x, const Scale& y) {
  const std::size_t n = std::min(curve.x.size(), curve.y.size());
  if (curve.dots) {
    for (std::size_t i = 0; i < n; ++i)
      fmt::print(svg, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", x(curve.x[i]),
                 y(curve.y[i]), curve.width, curve.colour);
    return;
  }
  std::string points;
  for (std::size_t i = 0; i < n; ++i)
    points += fmt::format("{:.1f},{:.1f} ", x(curve.x[i]), y(curve.y[i]));
  fmt::print(svg, "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n", points,
             curve.colour, curve.width);
}

// 1e6 as 10⁶; numbers of moderate size unchanged.
std::string text_of(double mark) {
  const double size = std::abs(mark);
  if (size == 0 || (size >= 1e-3 && size < 1e4)) return fmt::format("{:g}", mark);
  constexpr const char* kRaised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const int exponent = static_cast<int>(std::floor(std::log10(size) + 1e-9));
  const double digit = std::round(mark / std::pow(10, exponent) * 1e6) / 1e6;
  std::string text = digit == 1 ? "10" : fmt::format("{:g}·10", digit);
  for (const char c : fmt::format("{}", exponent))
    text += c == '-' ? "⁻" : kRaised[c - '0'];
  return text;
}

constexpr int kShades = 64;   // number of shades of the color bar

// From dark blue through green to yellow: a gradient between five colors.
constexpr int kColours[][3] = {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
std::string colour_of(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * 4;
  const std::size_t below = std::min<std::size_t>(static_cast<std::size_t>(at), 3);
  int mixed[3];
  for (int i = 0; i < 3; ++i)
    mixed[i] = static_cast<int>(kColours[below][i] + (at - static_cast<double>(below)) *
                                                         (kColours[below + 1][i] - kColours[below][i]));
  return fmt::format("#{:02x}{:02x}{:02x}", mixed[0], mixed[1], mixed[2]);
}

}   // namespace

std::vector<double> counted(std::size_t n, double first) {
  std::vector<double> all(n);
  std::iota(all.begin(), all.end(), first);
  return all;
}

void Picture::write(std::ostream& svg) const {
  fmt::print(svg,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
             "font-size=\"13\" fill=\"#333\">\n",
             width_, height_);
  fmt::print(svg, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n", body_.str());
}

void Picture::start(const Box& box, double left, const std::string& title) {
  width_ = std::max(width_, box.x + box.width), height_ = std::max(height_, box.y + box.height);
  fmt::print(body_, "<text x=\"{}\" y=\"{}\" font-size=\"16\">{}</text>\n", left, box.y + 28, title);
}

void Picture::chart(const Box& box, const std::string& title, const Axis& x_axis, const Axis& y_axis,
                    std::span<const Curve> curves) {
  const double left = box.x + kLeft, right = box.x + box.width - kRight, top = box.y + kTop,
               bottom = box.y + box.height - kBottom;
  const Scale x = scale_of(x_axis, curves, &Curve::x, left, right),
              y = scale_of(y_axis, curves, &Curve::y, bottom, top);

  std::string names;
  for (const Curve& c : curves)
    if (!c.name.empty())
      names += fmt::format(" <tspan fill=\"{}\" font-weight=\"bold\">{}</tspan>", c.colour, c.name);
  start(box, left, title + names);

  for (const double mark : y.marks())
    fmt::print(body_,
               "<path d=\"M{0} {2:.1f}H{1}\" stroke=\"#ddd\"/><text x=\"{3}\" y=\"{2:.1f}\" dy=\"4\" "
               "text-anchor=\"end\">{4}</text>\n",
               left, right, y(mark), left - 8, text_of(mark));
  for (const double mark : x.marks())
    fmt::print(body_, "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(mark), bottom + 20,
               text_of(mark));
  fmt::print(body_, "<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"#333\"/>\n", left, top, bottom, right);
  fmt::print(body_, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (left + right) / 2,
             bottom + 44, x_axis.label);
  fmt::print(body_, "<text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
             box.x + 20, (top + bottom) / 2, y_axis.label);
  for (const Curve& c : curves)
    draw(body_, c, x, y);
}

void Picture::field(const Box& box, const std::string& title, std::span<const double> values,
                    std::size_t columns, double low, double high) {
  const std::size_t rows = values.size() / columns;
  const double side = std::min((box.width - 72) / static_cast<double>(columns),
                               (box.height - kTop - 12) / static_cast<double>(rows));
  const double left = box.x + 12, top = box.y + kTop, right = left + side * static_cast<double>(columns),
               bottom = top + side * static_cast<double>(rows);
  start(box, left, title);

  std::map<std::string, std::string> squares;   // unit squares by color
  for (std::size_t i = 0; i < values.size(); ++i)
    squares[colour_of((values[i] - low) / (high - low))] +=
        fmt::format("M{} {}h1v1h-1z", i % columns, i / columns);
  fmt::print(body_, "<g shape-rendering=\"crispEdges\" transform=\"translate({} {}) scale({:.4f})\">\n", left,
             top, side);
  for (const auto& [colour, path] : squares)
    fmt::print(body_, "<path fill=\"{}\" d=\"{}\"/>\n", colour, path);
  fmt::print(
      body_,
      "</g>\n<g shape-rendering=\"crispEdges\" transform=\"translate({:.1f} {:.1f}) scale(12 {:.4f})\">\n",
      right + 8, bottom, (bottom - top) / kShades);
  for (int i = 0; i < kShades; ++i)
    fmt::print(body_, "<path fill=\"{}\" d=\"M0 {}h1v1h-1z\"/>\n", colour_of((i + 0.5) / kShades), -1 - i);
  fmt::print(body_, "</g>\n");
  const Axis axis;
  const Scale scale(axis, low, high, bottom, top);
  for (const double mark : scale.marks())
    fmt::print(body_, "<text x=\"{:.1f}\" y=\"{:.1f}\" dy=\"4\">{}</text>\n", right + 24, scale(mark),
               text_of(mark));
}
