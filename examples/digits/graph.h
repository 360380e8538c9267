// Draws a tape as a picture.
#pragma once
#include <string>

/// Draws a Graphviz file as an SVG in the same folder. Returns the path of the SVG; empty if Graphviz is not
/// installed or fails.
std::string draw_graph(const std::string& dot_file);
