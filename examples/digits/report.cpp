// Prints tables and digits as text.
#include "report.h"

#include <array>

#include <fmt/format.h>

namespace td = tapedeck;

void print_confusion(const td::Tensor& labels, const td::Tensor& predicted) {
  std::array<std::array<int, 10>, 10> count = {};
  const auto is = labels.data<std::int64_t>(), taken_for = predicted.data<std::int64_t>();
  for (std::size_t i = 0; i < is.size(); ++i)
    ++count[static_cast<std::size_t>(is[i])][static_cast<std::size_t>(taken_for[i])];

  fmt::print("\n  is   predicted\n    ");
  for (int digit = 0; digit < 10; ++digit)
    fmt::print("{:>4}", digit);
  for (std::size_t digit = 0; digit < 10; ++digit) {
    fmt::print("\n{:>4}", digit);
    for (const int n : count[digit])
      n ? fmt::print("{:>4}", n) : fmt::print("   ·");
  }
  fmt::print("\n");
}

void print_digits(const Digits& digits, const td::Tensor& predicted, const std::vector<std::int64_t>& rows) {
  const char* const inks[] = {"  ", "░░", "▒▒", "▓▓", "██"};   // two characters wide, for square pixels
  fmt::print("\n");
  for (std::int64_t y = 0; y < 8; ++y) {
    for (const std::int64_t row : rows) {
      for (std::int64_t x = 0; x < 8; ++x)
        fmt::print("{}", inks[static_cast<int>(digits.pixels.at({row, 8 * y + x}) * 4 + 0.5)]);
      fmt::print("   ");
    }
    fmt::print("\n");
  }
  for (const std::int64_t row : rows)
    fmt::print("{:<19}", fmt::format("predicted {}, is {}", predicted.at<std::int64_t>({row}),
                                     digits.labels.at<std::int64_t>({row})));
  fmt::print("\n");
}
