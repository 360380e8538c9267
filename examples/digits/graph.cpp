// Runs Graphviz.
#include "graph.h"

#include <filesystem>

#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

std::string draw_graph(const std::string& dot_file) {
  std::filesystem::path svg = dot_file;
  svg.replace_extension(".svg");
  if (svg == dot_file) svg += ".svg";
  std::string program = "dot", format = "-Tsvg", to = "-o" + svg.string(), from = dot_file;
  char* const arguments[] = {program.data(), format.data(), to.data(), from.data(), nullptr};
  pid_t child;
  int status = 0;
  if (posix_spawnp(&child, "dot", nullptr, nullptr, arguments, environ) != 0) return {};
  return waitpid(child, &status, 0) == child && status == 0 ? svg.string() : std::string();
}
