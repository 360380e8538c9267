// Pictures as SVG: curves and points over two axes, and fields of numbers as colours. Texts are written as they are, so they
// have no '<' and no '&'.
#pragma once
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

inline constexpr const char *kBlue = "#0b4a86", *kOrange = "#a8480b", *kPaleBlue = "#9cc4e6", *kPaleOrange = "#f0bf95";

/// Where on the page something is drawn, its title and labels included.
struct Box { double x = 0, y = 0, width = 720, height = 420; };

struct Axis {
  std::string label = {};
  bool logarithmic = false;   // then all values are above 0
  bool whole = false;         // marks at whole numbers alone
  std::optional<double> from = {}, to = {};   // shown in any case
};

struct Curve {
  std::vector<double> x = {}, y = {};
  std::string colour = kBlue;
  std::string name = {};      // said beside the title in the curve's colour
  double width = 2;           // of the line
  bool dots = false;          // instead of a line
};

class Picture {
 public:
  Picture(std::ostream& svg, double width, double height);
  ~Picture();   // ends the file
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;

  /// Curves over axes that span all their values.
  void chart(const Box& box, const std::string& title, const Axis& x, const Axis& y, std::span<const Curve> curves);
  /// A table of numbers, row by row, as squares from dark (low) to bright (high).
  void field(const Box& box, const std::string& title, std::span<const double> values, std::size_t columns, double low, double high);

 private:
  std::ostream& svg_;
};
