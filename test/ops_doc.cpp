// Prints docs/ops.md from the tables. With a file's name: fails unless the file is what would be printed.
#include <fstream>
#include <iostream>
#include <sstream>

#include "tapedeck/op.h"

using namespace tapedeck;

namespace {

std::string_view derivative(const Op& op) {
  switch (op.rule.kind) {
    case RuleKind::none: return "none";
    case RuleKind::undefined: return "must not be asked for";
    case RuleKind::partials: return "partials";
    case RuleKind::linear: return "linear";
    case RuleKind::bilinear: return "bilinear";
    default: return "custom";
  }
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string arguments(const Op& op) {
  std::string out;
  for (const std::string_view name : op.args) if (!name.empty()) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

std::string ops_markdown() {
  std::ostringstream out;
  out << "# The ops\n\n"
         "Printed from the tables in lib/ops by `build/test/ops_doc > docs/ops.md`. The arguments are the tensors; attributes such as axes are in the\n"
         "headers, `include/tapedeck/ops/`. Derivative: *partials* are given one for each input; *linear* ops have a transpose, *bilinear* ones two;\n"
         "*custom* rules are written by hand; through an op with *none* every gradient is none. Samples are what the op is tested with.\n";
  for (const OpFamily& family : op_families()) {
    out << "\n## " << family.name << "\n\n| op | meaning | arguments | derivative | samples |\n|---|---|---|---|---|\n";
    for (const Op& op : family.ops)
      out << "| `" << op.name << "` | " << cell(op.doc) << " | " << arguments(op) << " | " << derivative(op) << " | " << op.samples().size() << " |\n";
  }
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) {
    std::cout << ops_markdown();
    return 0;
  }
  std::ostringstream file;
  file << std::ifstream(argv[1]).rdbuf();
  if (file.str() == ops_markdown()) return 0;
  std::cerr << argv[1] << " is stale: run build/test/ops_doc > docs/ops.md\n";
  return 1;
}
