// Reads a CSV file of numbers into a tensor. Errors name the line.
#include "tapedeck/csv.h"

#include <algorithm>
#include <charconv>

#include "core/format.h"
#include "io/file.h"

namespace tapedeck {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr const char* kSpace = " \t\r";
  const std::size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Removes the text before the next separator, and the separator, from `rest` and returns the text.
std::string_view take(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return text;
}

}   // namespace

CsvTable load_csv(const std::string& path, const CsvOptions& options) {
  const InputFile file({"load_csv", path});
  std::string text(static_cast<std::size_t>(file.size()), ' ');
  file.read(0, text.data(), file.size());
  CsvTable table;
  std::vector<double> numbers;
  std::int64_t columns = 0;
  std::string_view rest = text;
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    std::string_view cells = trimmed(take(rest, '\n'));
    if (cells.empty()) continue;
    const bool is_header = options.has_header && table.names.empty();
    std::int64_t n = 0;
    for (bool more = true; more; ++n) {
      more = cells.find(options.separator) != std::string_view::npos;
      const std::string_view cell = trimmed(take(cells, options.separator));
      if (is_header) {
        table.names.emplace_back(cell);
        continue;
      }
      const auto [end, error] =
          std::from_chars(cell.data(), cell.data() + cell.size(), numbers.emplace_back());
      if (error != std::errc() || end != cell.data() + cell.size())
        file.name().fail(fmt::format("line {}: \"{}\" in column {} is no number", line, cell, n + 1));
    }
    if (is_header) continue;
    if (columns && n != columns)
      file.name().fail(fmt::format("line {} has {} columns, others have {}", line, n, columns));
    columns = n;
  }
  table.values = detail::tensor_from(numbers.data(), DType::f64,
                                     {columns ? std::ssize(numbers) / columns : 0, columns}, options.dtype);
  return table;
}

}   // namespace tapedeck
