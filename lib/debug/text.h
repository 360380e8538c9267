// Tables and graphs as text.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck {

/// "80 B", "1.5 KiB"
std::string with_unit(std::int64_t bytes);

/// Columns two spaces apart. The first and the last column are aligned to the right.
using TextLine = std::array<std::string, 5>;
std::string text_table(const std::vector<TextLine>& lines);

/// A Graphviz label in quotes.
std::string in_quotes(std::string_view text);
/// A graph for Graphviz, whose nodes are boxes, with the text of its nodes and edges.
std::string digraph(std::string_view name, std::string_view label, std::string_view body);
/// Graphviz attributes of variables, of other source tensors, and of results.
inline constexpr std::string_view kVariableStyle = "shape=ellipse, style=filled, fillcolor=\"#d6e4f5\"",
                                  kSourceStyle = "shape=ellipse, style=filled, fillcolor=\"#dcecd8\"",
                                  kResultStyle = "peripheries=2, fillcolor=\"#fbe9c6\"";

}   // namespace tapedeck
