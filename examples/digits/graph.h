// A tape as a picture.
#pragma once
#include <string>

/// Draws a graph for Graphviz, in a file, as an SVG beside it. Returns where; empty where Graphviz is not
/// installed or fails.
std::string draw_graph(const std::string& dot_file);
