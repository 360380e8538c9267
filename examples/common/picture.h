// Pictures as SVG: curves and points over two axes, and fields of numbers as colours. Texts are written as
// they are, so they have no '<' and no '&'.
#pragma once
#include <optional>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

inline constexpr const char *kBlue = "#0b4a86", *kOrange = "#a8480b", *kPaleBlue = "#9cc4e6",
                            *kPaleOrange = "#f0bf95";

/// Where on the page something is drawn, its title and labels included.
struct Box {
  double x = 0, y = 0, width = 720, height = 420;
};

struct Axis {
  std::string label = {};
  bool logarithmic = false;                   // then all values are above 0
  bool whole = false;                         // marks at whole numbers alone
  std::optional<double> from = {}, to = {};   // shown in any case
};

struct Curve {
  std::vector<double> x = {}, y = {};
  std::string colour = kBlue;
  std::string name = {};   // said beside the title in the curve's colour
  double width = 2;        // of the line
  bool dots = false;       // instead of a line
};

/// first, first + 1, …, n of them: the x of a Curve that is counted.
std::vector<double> counted(std::size_t n, double first = 1);

class Picture {
 public:
  /// Curves over axes that span all their values.
  void chart(const Box& box, const std::string& title, const Axis& x, const Axis& y,
             std::span<const Curve> curves);
  /// A table of numbers, row by row, as squares from dark (low) to bright (high), and beside it what the
  /// colours mean.
  void field(const Box& box, const std::string& title, std::span<const double> values, std::size_t columns,
             double low, double high);

  /// A page that holds all boxes that were drawn.
  void write(std::ostream& svg) const;

 private:
  void start(const Box& box, double left, const std::string& title);

  std::ostringstream body_;
  double width_ = 0, height_ = 0;
};
