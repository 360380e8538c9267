// Compares the names that the library must have, test/data/ops.txt, with the tables and the public headers.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "data_folder.h"
#include "tapedeck/op.h"

using namespace tapedeck;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::set<std::string> public_functions() {
  std::set<std::string> names;
  const std::filesystem::path public_headers = test::data_folder() / "../../include/tapedeck";
  std::vector<std::filesystem::path> headers = {public_headers / "tensor.h"};
  for (const auto& file : std::filesystem::directory_iterator(public_headers / "ops"))
    headers.push_back(file.path());
  for (const std::filesystem::path& header : headers) {
    std::istringstream text(text_of(header));
    for (std::string line; std::getline(text, line);)
      if (const std::size_t end = line.find('(');
          end != std::string::npos &&
          (line.starts_with("TAPEDECK_EXPORT") || line.starts_with("inline") || line.starts_with("template")))
        names.insert(line.substr(line.find_last_of(" &", end) + 1, end - line.find_last_of(" &", end) - 1));
  }
  return names;
}

const Op* entry(const std::string& name) {
  for (const OpFamily& family : op_families())
    for (const Op& op : family.ops)
      if (op.name == name) return &op;
  return nullptr;
}

std::set<std::string> words_of(const char* file) {
  std::istringstream text(text_of(test::data_folder() / file));
  std::set<std::string> words;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream names(line.substr(line.find(']') + 1));
    for (std::string word; names >> word;)
      words.insert(word);
  }
  return words;
}

}   // namespace

TEST_CASE("every name of the op list is there in its form", "[op_list]") {
  const std::set<std::string> functions = public_functions(), missing = words_of("ops_missing.txt");
  REQUIRE(functions.contains("matmul"));
  for (const std::string& word : words_of("ops.txt")) {
    const bool may_be_composite = word.starts_with('*'), underivable = word.ends_with("·");
    std::string name = may_be_composite ? word.substr(1, word.size() - 2) : word;
    if (underivable) name.resize(name.size() - std::string("·").size());
    const Op* op = entry(name);
    INFO(name);
    const bool is_function = functions.contains(name);
    const bool stands =
        is_function && (may_be_composite || (op && (underivable || op->rule.kind != RuleKind::none)));
    // A name that has been added must be removed from the list of missing ones.
    CHECK(missing.contains(name) == !is_function);
    CHECK(missing.contains(name + "()") == (is_function && !stands));
  }
}
