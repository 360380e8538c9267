// The declarations in a header of include/tapedeck/ops. Relies on clang-format: a declaration begins at the
// start of a line, and its contents are indented.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tapedeck::test {

struct PublicFunction {
  std::string name;                      // with the namespaces inside tapedeck: random::normal
  std::vector<std::string> signatures;   // one of each form
  std::string doc;   // the comment above it, or above the declarations that it follows without a blank line
};

struct PublicHeader {
  std::string remark;               // the comment that the header begins with
  std::vector<std::string> types;   // their definitions
  std::vector<PublicFunction> functions;
};

/// Throws std::runtime_error for a declaration that it does not understand.
PublicHeader read_public_header(const std::filesystem::path& path);

}   // namespace tapedeck::test
