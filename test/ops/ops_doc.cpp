// Prints docs/reference/ops.md from the public headers and the tables; --from-tensorflow:
// docs/start/from_tensorflow.md, which begins with test/data/tensorflow_functions.md. With a file name: fails
// unless the file has exactly what would be printed.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "data_folder.h"
#include "ops/public_header.h"
#include "ops/samples.h"
#include "tapedeck/ops/math.h"

using namespace tapedeck;

namespace {

std::string_view derivative(const Op& op) {
  switch (op.rule.kind) {
    case RuleKind::none:
      return "none";
    case RuleKind::undefined:
      return "must not be asked for";
    case RuleKind::partials:
      return "partials";
    case RuleKind::linear:
      return "linear";
    case RuleKind::bilinear:
      return "bilinear";
    default:
      return "custom";
  }
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string arguments(const Op& op) {
  std::string out;
  for (const std::string_view name : op.args)
    if (!name.empty()) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

// The specs of the first sample's inputs and outputs.
std::string example(const Op& op) {
  const std::vector<Sample> samples = test::samples_of(op);
  const Sample& s = samples.front();
  std::ostringstream out;
  for (const Tensor& x : s.inputs)
    out << to_string(x.spec()) << (&x == &s.inputs.back() ? " " : ", ");
  out << "→";
  for (const Tensor& y : op.run(s.inputs, s.attrs.view()))
    out << ' ' << to_string(y.spec());
  return out.str();
}

// The dtypes that the op takes instead of the one in its first sample, determined by trial.
std::string dtypes(const Op& op) {
  const std::vector<Sample> samples = test::samples_of(op);
  const Sample& s = samples.front();
  if (s.inputs.empty()) return "";
  const auto is_real = [](const Tensor& x) { return is_trainable(x.dtype()); };
  const auto main = std::find_if(s.inputs.begin(), s.inputs.end(), is_real);
  const DType from = main == s.inputs.end() ? s.inputs.front().dtype() : main->dtype();
  std::ostringstream out;
  for (int t = 0; t < kDTypes; ++t) {
    const auto to = static_cast<DType>(t);
    std::vector<Tensor> x;
    for (const Tensor& t : s.inputs)
      x.push_back(t.dtype() == from ? astype(t, to) : t);
    try {
      op.run(x, s.attrs.view());
      out << name_of(to) << ' ';
    } catch (const Error&) {}
  }
  return out.str();
}

std::filesystem::path header_folder() { return test::data_folder() / "../../include/tapedeck/ops"; }

// Whether some form of it takes tensors.
bool takes_tensors(const test::PublicFunction& f) {
  return std::ranges::any_of(f.signatures, [](const std::string& signature) {
    return signature.find("Tensor", signature.find('(')) != std::string::npos ||
           signature.find("Operand") != std::string::npos;
  });
}

// In the order of the families; at the end those that declare no ops.
std::vector<std::string> header_names() {
  std::vector<std::string> names;
  for (const ops::Family& family : ops::families())
    names.emplace_back(family.name);
  std::set<std::string> others;
  for (const auto& file : std::filesystem::directory_iterator(header_folder()))
    others.insert(file.path().stem());
  for (const std::string& name : names)
    others.erase(name);
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

std::string_view without_scope(std::string_view name) { return name.substr(name.rfind(':') + 1); }

const Op* find_op(std::string_view name) {
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      if (op->name == name) return op;
  return nullptr;
}

std::string function_row(const test::PublicFunction& f) {
  std::string row = "| ";
  for (const std::string& signature : f.signatures)
    row.append(row.size() > 2 ? "<br>" : "").append("`").append(cell(signature)).append("`");
  const Op* op = find_op(without_scope(f.name));
  if (!op) return row + " | " + cell(f.doc) + " | | " + (takes_tensors(f) ? "composite" : "") + " | | |\n";
  return row + " | " + cell(op->doc) + " | " + std::string(op->tensorflow) + " | " +
         std::string(derivative(*op)) + " | " + example(*op) + " | " + dtypes(*op) + "|\n";
}

std::string inner_row(const Op& op) {
  return "| `" + std::string(op.name) + "` | " + cell(op.doc) + " | " + std::string(op.tensorflow) + " | " +
         arguments(op) + " | " + std::string(derivative(op)) + " |\n";
}

std::string types_of(const test::PublicHeader& header) {
  std::string out;
  for (const std::string& type : header.types)
    out.append(out.empty() ? "\n```cpp\n" : "\n").append(type).append("\n");
  return out.empty() ? out : out + "```\n";
}

std::string functions_of(const test::PublicHeader& header) {
  if (header.functions.empty()) return "";
  std::string out =
      "\n| function | meaning | TensorFlow | derivative | example | dtypes |\n|---|---|---|---|---|---|\n";
  for (const test::PublicFunction& f : header.functions)
    out += function_row(f);
  return out;
}

std::string ops_markdown() {
  std::ostringstream out;
  out << "# The ops\n\n"
         "The functions of `tapedeck/creation.h` and of `include/tapedeck/ops/`, one section for each "
         "header; printed from the headers "
         "and "
         "the tables in lib/ops by\n"
         "`build/test/ops_doc > docs/reference/ops.md`. The headers explain the options. Derivative: "
         "*partials* are "
         "given one for each input; *linear*\n"
         "ops have a transpose, *bilinear* ones two; *custom* rules are written by hand; *composite* "
         "functions call other ops; through an op with\n"
         "*none* every gradient is none. The example is the first sample that the op is tested with; the "
         "dtypes are those that it takes in place of\n"
         "the one there. At the end stand the ops that functions and derivatives are made of.\n";
  const auto section = [&](const std::string& name, const test::PublicHeader& header) {
    out << "\n## " << name << "\n\n" << header.remark << '\n' << types_of(header) << functions_of(header);
  };
  section("creation", test::read_public_header(header_folder().parent_path() / "creation.h"));
  std::set<std::string, std::less<>> callable;
  for (const std::string& name : header_names()) {
    const test::PublicHeader header = test::read_public_header(header_folder() / (name + ".h"));
    section(name, header);
    for (const test::PublicFunction& f : header.functions)
      callable.emplace(without_scope(f.name));
  }
  out << "\n## Inner ops\n\nThese have no function of their own; they appear in summaries of tapes, in "
         "profiles "
         "and in messages.\n\n"
         "| op | meaning | TensorFlow | arguments | derivative |\n|---|---|---|---|---|\n";
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      if (!callable.contains(op->name)) out << inner_row(*op);
  return out.str();
}

// By TensorFlow op type: the counterpart here, or why there is none; from the tables, and from
// test/data/tensorflow_ops.txt for types that are not in them.
std::map<std::string, std::string> answers() {
  std::map<std::string, std::string> here;
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops) {
      std::istringstream types{std::string(op->tensorflow)};
      for (std::string type; types >> type;) {
        std::string& answer = here[type];
        answer.append(answer.empty() ? "`" : ", `").append(op->name).append("`");
      }
    }
  std::ifstream list(test::data_folder() / "tensorflow_ops.txt");
  for (std::string line; std::getline(list, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t colon = line.rfind(": ");
    const bool has_reason = colon != std::string::npos;
    std::istringstream types(has_reason ? line.substr(colon + 2) : line);
    for (std::string type; types >> type;)
      here.try_emplace(type, has_reason ? line.substr(0, colon) : "not here yet");
  }
  return here;
}

std::string from_tensorflow_markdown() {
  std::ostringstream out;
  out << "# From TensorFlow\n\n"
      << std::ifstream(test::data_folder() / "tensorflow_functions.md").rdbuf()
      << "\nTensorFlow's op types that have a gradient, or are registered to have none, and what each is "
         "here. Printed by\n"
         "`build/test/ops_doc --from-tensorflow > docs/start/from_tensorflow.md`; the functions are "
         "described in "
         "[ops.md](../reference/ops.md).\n\n"
         "| TensorFlow | here |\n|---|---|\n";
  for (const auto& [type, answer] : answers())
    out << "| " << type << " | " << answer << " |\n";
  return out.str();
}

}   // namespace

int main(int argc, char** argv) {
  const bool second = argc > 1 && std::string_view(argv[1]) == "--from-tensorflow";
  const std::string page = second ? from_tensorflow_markdown() : ops_markdown();
  if (argc == 1 + second) {
    std::cout << page;
    return 0;
  }
  const char* path = argv[1 + second];
  std::ostringstream file;
  file << std::ifstream(path).rdbuf();
  if (file.str() == page) return 0;
  std::cerr << path << " is stale: run build/test/ops_doc " << (second ? "--from-tensorflow " : "") << "> "
            << path << '\n';
  return 1;
}
