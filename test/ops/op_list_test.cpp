// Compares the names that the library must have, test/data/ops.txt, with the tables and the public headers.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "data_folder.h"
#include "tapedeck/op.h"

namespace op_list_test {

using namespace tapedeck;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

const std::filesystem::path public_headers = test::data_folder() / "../../include/tapedeck";

// The word that ends before a position.
std::string word_before(const std::string& line, std::size_t end) {
  const std::size_t begin = line.find_last_of(" &:`", end - 1) + 1;
  return line.substr(begin, end - begin);
}

void add_functions(const std::filesystem::path& header, std::set<std::string>& names) {
  std::istringstream text(text_of(header));
  for (std::string line; std::getline(text, line);)
    if (const std::size_t end = line.find('(');
        end != std::string::npos &&
        (line.starts_with("TAPEDECK_EXPORT") || line.starts_with("inline") || line.starts_with("template")))
      names.insert(word_before(line, end));
}

std::set<std::string> functions_of_ops() {
  std::set<std::string> names;
  for (const auto& header : std::filesystem::directory_iterator(public_headers / "ops"))
    add_functions(header.path(), names);
  return names;
}

const Op* entry(const std::string& name) {
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      if (op->name == name) return op;
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

TEST_CASE("every public function of the ops has its row in the documentation", "[op_list]") {
  std::set<std::string> without_row = functions_of_ops();
  REQUIRE(without_row.size() > 300);
  std::istringstream page(text_of(test::data_folder() / "../../docs/reference/ops.md"));
  for (std::string line; std::getline(page, line);)
    if (const std::size_t end = line.find('('), meaning = line.find("` | ");
        line.starts_with("| `") && end < meaning && line.substr(meaning, 6) != "` |  |")
      without_row.erase(word_before(line, end));
  CHECK(without_row == std::set<std::string>());
}

TEST_CASE("every name of the op list exists in its form", "[op_list]") {
  std::set<std::string> functions = functions_of_ops();
  add_functions(public_headers / "creation.h", functions);
  add_functions(public_headers / "tensor.h", functions);
  const std::set<std::string> missing = words_of("ops_missing.txt");
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

}   // namespace op_list_test
