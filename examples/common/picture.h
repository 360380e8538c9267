// Pictures as SVG: curves and points over two axes, and fields of numbers as colors. Texts are not escaped,
// so they must not contain '<' or '&'.
#pragma once
#include <optional>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

inline constexpr const char *kBlue = "#0b4a86", *kOrange = "#a8480b", *kPaleBlue = "#9cc4e6",
                            *kPaleOrange = "#f0bf95";

/// Position and size of a drawing on the page, including its title and labels.
struct Box {
  double x = 0, y = 0, width = 720, height = 420;
};

struct Axis {
  std::string label = {};
  bool logarithmic = false;                   // requires positive values
  bool whole = false;                         // tick marks only at integers
  std::optional<double> from = {}, to = {};   // values that the axis must include
};

struct Curve {
  std::vector<double> x = {}, y = {};
  std::string colour = kBlue;
  std::string name = {};   // legend next to the title, in the curve's color
  double width = 2;        // of the line
  bool dots = false;       // dots instead of a line
};

/// n numbers first, first + 1, …: the x values of a Curve over a count.
std::vector<double> counted(std::size_t n, double first = 1);

class Picture {
 public:
  /// Curves over axes that cover all their values.
  void chart(const Box& box, const std::string& title, const Axis& x, const Axis& y,
             std::span<const Curve> curves);
  /// A matrix of numbers, in row-major order, as squares from dark (low) to bright (high), with a color bar.
  void field(const Box& box, const std::string& title, std::span<const double> values, std::size_t columns,
             double low, double high);

  /// A page that contains all drawings.
  void write(std::ostream& svg) const;

 private:
  void start(const Box& box, double left, const std::string& title);

  std::ostringstream body_;
  double width_ = 0, height_ = 0;
};
