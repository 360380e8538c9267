// Reads the digits file and validates every number in it.
#include "data.h"

#include <charconv>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <zlib.h>

namespace td = tapedeck;

namespace {

constexpr std::int64_t kRows = 1797, kTrainRows = 1437, kPixels = 64;
constexpr int kInk = 16, kClasses = 10;   // the darkest pixel value, the number of classes

std::string read_all(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw td::FileError(fmt::format("cannot open {}", path));
  std::string text;
  char part[1 << 14];
  int n;
  while ((n = gzread(file.get(), part, sizeof part)) > 0)
    text.append(part, static_cast<std::size_t>(n));
  // A truncated file is reported as a separate error, known only after the last byte.
  int error;
  const char* what = gzerror(file.get(), &error);
  if (error != Z_OK && error != Z_STREAM_END)
    throw td::FileError(
        fmt::format("{} is damaged: {}", path, error == Z_ERRNO ? "it cannot be read" : what));
  return text;
}

// Parses comma-separated numbers from a line.
class Line {
 public:
  Line(std::string_view text, std::string where)
      : at_(text.data()), end_(text.data() + text.size()), where_(std::move(where)) {}

  int number(std::string_view what, int highest) {
    int value = -1;
    const auto [rest, error] = std::from_chars(at_, end_, value);
    if (error != std::errc() || value < 0 || value > highest)
      throw td::FileError(fmt::format("{}: {} is not a number from 0 to {}", where_, what, highest));
    at_ = rest;
    return value;
  }
  void comma() {
    if (at_ == end_ || *at_++ != ',') throw td::FileError(where_ + ": a comma is missing");
  }
  void end() {
    if (at_ != end_ && *at_ == '\r') ++at_;
    if (at_ != end_) throw td::FileError(where_ + ": there is more than 64 pixels and a label");
  }

 private:
  const char *at_, *end_;
  std::string where_;
};

}   // namespace

Digits load_digits(const std::string& path) {
  const std::string text = read_all(path);
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    Line line(std::string_view(text).substr(begin, end - begin),
              fmt::format("{}, line {}", path, labels.size() + 1));
    for (std::int64_t i = 0; i < kPixels; ++i) {
      pixels.push_back(static_cast<float>(line.number(fmt::format("pixel {}", i), kInk)) / kInk);
      line.comma();
    }
    labels.push_back(line.number("the label", kClasses - 1));
    line.end();
    begin = end + 1;
  }
  const auto rows = static_cast<std::int64_t>(labels.size());
  if (rows != kRows) throw td::FileError(fmt::format("{} has {} digits, not {}", path, rows, kRows));
  return {td::tensor(pixels, {rows, kPixels}), td::tensor(labels)};
}

Split split(const Digits& digits) {
  // Over seeds 0 to 39 the test accuracy of the mlp ranges from 0.964 to 0.994, with mean 0.981; this split
  // is neither easy nor hard.
  const td::Tensor order = td::random::permutation(digits.size(), {.seed = 7});
  return {digits.at(td::slice(order, {0}, {kTrainRows})), digits.at(td::slice(order, {kTrainRows}, {-1}))};
}
