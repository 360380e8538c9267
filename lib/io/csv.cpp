// Reads a CSV file of numbers into a tensor. Errors name the line.
#include "tapedeck/csv.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <compare>
#include <utility>

#include "core/cast.h"
#include "core/file.h"
#include "core/format.h"

namespace tapedeck {
namespace {

// Removes surrounding white space, but not a tab that is the separator.
std::string_view trimmed(std::string_view text, char separator) {
  const char* const space = separator == '\t' ? " \r" : " \t\r";
  const std::size_t begin = text.find_first_not_of(space);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

// Removes the text before the next separator, and the separator, from `rest` and returns the text.
std::string_view take(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return text;
}

// The cells of a row. A quoted cell may contain separators; two quotes in it stand for one.
class Row {
 public:
  Row(const FileName& file, std::string_view text, std::int64_t line, char separator)
      : file_(file), rest_(text), line_(line), separator_(separator) {}

  bool has_more() const { return has_more_; }
  std::string_view next() {
    if (const std::string_view text = trimmed(rest_, separator_); text.starts_with('"')) {
      rest_ = text.substr(1);
      take_quoted();
      return quoted_;
    }
    has_more_ = rest_.find(separator_) != std::string_view::npos;
    return trimmed(take(rest_, separator_), separator_);
  }

 private:
  void take_quoted() {
    quoted_.clear();
    for (bool is_first = true; is_first || rest_.starts_with('"'); is_first = false) {
      if (!is_first) quoted_ += rest_[0], rest_.remove_prefix(1);
      const std::size_t end = rest_.find('"');
      if (end == std::string_view::npos) file_.fail(fmt::format("line {}: a quote has no end", line_));
      quoted_ += rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
    }
    has_more_ = rest_.find(separator_) != std::string_view::npos;
    if (const std::string_view behind = trimmed(take(rest_, separator_), separator_); !behind.empty())
      file_.fail(fmt::format("line {}: \"{}\" follows the end of a quote", line_, behind.substr(0, 60)));
  }

  const FileName& file_;
  std::string_view rest_;
  std::int64_t line_;
  char separator_;
  bool has_more_ = true;
  std::string quoted_;
};

// The absolute value of a decimal number that is not 0, exactly: 0.DIGITS times ten to the power of
// `exponent`, where neither the first nor the last digit is 0. Members are compared in their order.
struct Decimal {
  std::int64_t exponent = 0;
  std::string digits = {};

  // Precondition: std::from_chars accepts the text as a finite number.
  explicit Decimal(std::string_view text) {
    const std::size_t end = std::min(text.find_first_of("eE"), text.size());
    bool is_behind_point = false;
    for (const char c : text.substr(0, end)) {
      if (c == '.') is_behind_point = true;
      if (c < '0' || c > '9') continue;
      if (c != '0' || !digits.empty()) digits += c;
      if (!is_behind_point && !digits.empty()) ++exponent;
      if (is_behind_point && digits.empty()) --exponent;
    }
    digits.resize(digits.find_last_not_of('0') + 1);
    std::string_view power = text.substr(std::min(end + 1, text.size()));
    if (power.starts_with('+')) power.remove_prefix(1);
    std::int64_t n = 0;
    constexpr std::int64_t kMost = 1 << 30;   // beyond the exponent of any number that is not 0 or infinite
    if (std::from_chars(power.data(), power.data() + power.size(), n).ec == std::errc::result_out_of_range)
      n = power.starts_with('-') ? -kMost : kMost;
    exponent += std::clamp(n, -kMost, kMost);
  }
  auto operator<=>(const Decimal&) const = default;
};

// Reads the cells of a table: exactly for integer dtypes, otherwise rounded once.
class Cells {
 public:
  Cells(const FileName& file, const CsvOptions& options)
      : file_(file),
        options_(options),
        dtype_(options.dtype),
        is_whole_(!is_floating(dtype_) && !is_complex(dtype_)),
        is_f64_(!is_whole_ && real_of(dtype_) == DType::f64) {}

  void add(std::string_view cell, std::int64_t line, std::int64_t column) {
    const auto fail = [&](std::string_view what) {
      constexpr std::size_t kMost = 60;
      file_.fail(fmt::format("line {}: \"{}{}\" in column {} {}", line, cell.substr(0, kMost),
                             cell.size() > kMost ? "…" : "", column, what));
    };
    const bool is_first = std::exchange(is_first_, false);
    const std::errc error = parse(cell);
    if (error == std::errc::result_out_of_range || (error == std::errc() && !fits()))
      fail(fmt::format("is out of range for {}", name_of(dtype_)));
    if (error == std::errc()) return;
    double number = 0;
    const bool is_number = is_whole_ && parse(cell, number) != std::errc::invalid_argument;
    fail(is_number ? fmt::format("is not a whole number, which {} needs", name_of(dtype_))
                   : fmt::format("is not a number{}", advice(cell, is_first)));
  }
  Tensor table(const Shape& shape) const {
    if (dtype_ == DType::u64) return detail::tensor_from(naturals_.data(), dtype_, shape, dtype_);
    if (is_whole_) return detail::tensor_from(integers_.data(), DType::i64, shape, dtype_);
    if (is_f64_) return detail::tensor_from(numbers_.data(), DType::f64, shape, dtype_);
    return detail::tensor_from(floats_.data(), DType::f32, shape, dtype_);
  }

 private:
  std::errc parse(std::string_view cell) {
    if (dtype_ == DType::u64) return parse(cell, naturals_.emplace_back());
    if (is_whole_) return parse(cell, integers_.emplace_back());
    if (is_f64_) return parse_real(cell, numbers_.emplace_back());
    float& number = floats_.emplace_back();
    if (!is_half(real_of(dtype_))) return parse_real(cell, number);
    double nearest = 0;
    const std::errc error = parse_real(cell, nearest);
    if (error == std::errc()) number = rounded_to_odd(nearest, cell);
    return error;
  }
  // A float that rounds to the same half as the cell's number, whose nearest double is `nearest`: if the
  // number lies between two floats, the one whose last bit is 1.
  float rounded_to_odd(double nearest, std::string_view cell) const {
    const auto f = static_cast<float>(nearest);
    const bool is_odd = std::bit_cast<std::uint32_t>(f) & 1, is_exact = f == nearest;
    if (is_odd || std::isnan(f) || (is_exact && stored(f) == f)) return f;
    constexpr int kMostDigits = 112;   // of a float
    const std::partial_ordering order =
        is_exact ? Decimal(cell) <=> Decimal(fmt::format("{:.{}e}", nearest, kMostDigits))
                 : std::abs(nearest) <=> std::abs(static_cast<double>(f));
    return order == 0 ? f : std::nextafter(f, order > 0 ? std::copysign(INFINITY, f) : 0.0f);
  }
  // Numbers that underflow in T become 0.
  template <class T> static std::errc parse_real(std::string_view cell, T& number) {
    const std::errc error = parse(cell, number);
    if (error != std::errc::result_out_of_range || Decimal(cell).exponent > 0) return error;
    number = cell.starts_with('-') ? T{-0.0} : T{0};
    return {};
  }
  template <class T> static std::errc parse(std::string_view cell, T& number) {
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
    return end == cell.data() + cell.size() ? error : std::errc::invalid_argument;
  }
  // The value of x after conversion to the dtype's real type and back.
  float stored(float x) const {
    std::byte element[4];
    convert_elements(DType::f32, &x, real_of(dtype_), element, 1);
    convert_elements(real_of(dtype_), element, DType::f32, &x, 1);
    return x;
  }
  // Whether the number parsed last is in the range of the dtype.
  bool fits() const {
    if (dtype_ == DType::u64) return true;
    if (is_f64_) return true;
    if (!is_whole_) {
      const float x = floats_.back();
      return std::isinf(x) || !std::isinf(stored(x));
    }
    const std::int64_t x = integers_.back();
    switch (dtype_) {
      case DType::i8:
        return std::in_range<std::int8_t>(x);
      case DType::i32:
        return std::in_range<std::int32_t>(x);
      case DType::u8:
        return std::in_range<std::uint8_t>(x);
      case DType::i16:
        return std::in_range<std::int16_t>(x);
      case DType::u16:
        return std::in_range<std::uint16_t>(x);
      case DType::u32:
        return std::in_range<std::uint32_t>(x);
      case DType::boolean:
        return x == 0 || x == 1;
      default:
        return true;
    }
  }

  // Suggests an option for a file with a cell that is not a number.
  std::string advice(std::string_view cell, bool is_first) const {
    for (const char c : std::string_view(";\t|"))
      if (c != options_.separator && cell.find(c) != std::string_view::npos)
        return fmt::format("; if '{}' separates, set .separator", c == '\t' ? "\\t" : std::string(1, c));
    return is_first && !options_.has_header ? "; if the first line has names, set .has_header" : "";
  }

  const FileName& file_;
  const CsvOptions& options_;
  DType dtype_;
  bool is_whole_, is_f64_, is_first_ = true;
  std::vector<std::int64_t> integers_;
  std::vector<std::uint64_t> naturals_;   // of u64
  std::vector<double> numbers_;           // of f64 and c128
  std::vector<float> floats_;             // of the other dtypes that are not integers
};

// Throws for a separator that may be part of a number, a quote or a line end.
void check(const CsvOptions& options) {
  const char c = options.separator;
  const bool is_alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  if (is_alphanumeric || std::string_view("+-.\"\r\n\0", 7).find(c) != std::string_view::npos)
    throw_error<ArgumentError>(
        "load_csv: the separator is '{}', which may be a part of numbers, quotes or lines; use one such as "
        "',', ';' or '\\t'",
        printable({&c, 1}));
}

std::string text_of(const InputFile& file) {
  std::string text(static_cast<std::size_t>(file.size()), ' ');
  file.read(0, text.data(), file.size());
  if (text.starts_with("\x1f\x8b")) file.name().fail("looks like gzip; decompress it first");
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

}   // namespace

CsvTable load_csv(const std::string& path, const CsvOptions& options) {
  check(options);
  const InputFile file({"load_csv", path});
  const std::string text = text_of(file);
  CsvTable table;
  Cells cells(file.name(), options);
  std::int64_t columns = -1, rows = 0;
  std::string_view rest = text;
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    const std::string_view text_of_row = trimmed(take(rest, '\n'), options.separator);
    if (text_of_row.empty()) continue;
    Row row(file.name(), text_of_row, line, options.separator);
    const bool is_header = options.has_header && table.names.empty();
    std::int64_t n = 0;
    for (; row.has_more(); ++n) {
      const std::string_view cell = row.next();
      if (is_header)
        table.names.emplace_back(cell);
      else
        cells.add(cell, line, n + 1);
    }
    if (is_header) continue;
    if (columns >= 0 && n != columns)
      file.name().fail(fmt::format("line {} has {} columns, others have {}", line, n, columns));
    columns = n, ++rows;
  }
  table.values = cells.table({rows, columns >= 0 ? columns : std::ssize(table.names)});
  return table;
}

}   // namespace tapedeck
