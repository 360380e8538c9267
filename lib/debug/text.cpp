// In: lines, or nodes and edges. Out: a table, or a graph for Graphviz, as text.
#include "debug/text.h"

#include <algorithm>

#include "core/format.h"

namespace tapedeck {

std::string with_unit(std::int64_t n) {
  if (n < 1024) return fmt::format("{} B", n);
  double size = static_cast<double>(n) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"})
    if (size >= 1024) size /= 1024, unit = larger;
  return fmt::format("{:.1f} {}", size, unit);
}

std::string text_table(const std::vector<TextLine>& lines) {
  std::array<std::size_t, 5> width = {};
  for (const TextLine& l : lines)
    for (std::size_t c = 0; c < l.size(); ++c)
      width[c] = std::max(width[c], l[c].size());
  std::string out;
  for (const TextLine& l : lines)
    out += fmt::format("{:>{}}  {:<{}}  {:<{}}  {:<{}}  {:>{}}\n", l[0], width[0], l[1], width[1], l[2],
                       width[2], l[3], width[3], l[4], width[4]);
  return out;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

std::string digraph(std::string_view name, std::string_view label, std::string_view body) {
  return fmt::format(
      "digraph {} {{\n"
      "  label={}; fontname=\"sans-serif\"; fontsize=11;\n"
      "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f5f5f5\", color=\"#777777\", "
      "fontname=\"sans-serif\", fontsize=11];\n"
      "  edge [color=\"#555555\", arrowsize=0.7, fontname=\"sans-serif\", fontsize=9];\n"
      "{}}}\n",
      name, in_quotes(label), body);
}

}   // namespace tapedeck
