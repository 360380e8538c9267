// What a header of include/tapedeck/ops declares. Relies on clang-format: what is declared begins at the
// start of a line, and what it contains is indented.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tapedeck::test {

struct PublicFunction {
  std::string name;                      // with the namespaces inside tapedeck: random::normal
  std::vector<std::string> signatures;   // one of each form
  std::string doc;   // the comment above it, or above those that it follows without a blank line
};

struct PublicHeader {
  std::string remark;               // the comment that the header begins with
  std::vector<std::string> types;   // their definitions
  std::vector<PublicFunction> functions;
};

/// Throws std::runtime_error where it does not understand a declaration.
PublicHeader read_public_header(const std::filesystem::path& path);

}   // namespace tapedeck::test
