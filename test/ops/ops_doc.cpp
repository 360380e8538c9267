// Prints docs/ops.md from the tables; --from-tensorflow: docs/from_tensorflow.md, which begins with
// test/data/tensorflow_functions.md. With a file name: fails unless the file has exactly what would be
// printed.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "data_folder.h"
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

std::string ops_markdown() {
  std::ostringstream out;
  out << "# The ops\n\n"
         "Printed from the tables in lib/ops by `build/test/ops_doc > docs/ops.md`. The arguments are the "
         "tensors; attributes such as axes are in the\n"
         "headers, `include/tapedeck/ops/`. Derivative: *partials* are given one for each input; *linear* "
         "ops have a transpose, *bilinear* ones two;\n"
         "*custom* rules are written by hand; through an op with *none* every gradient is none. The example "
         "is the first sample that the op is tested\n"
         "with; the dtypes are those that it takes in place of the one there.\n";
  for (const OpFamily& family : op_families()) {
    if (family.ops.empty()) continue;
    out << "\n## " << family.name
        << "\n\n| op | meaning | TensorFlow | arguments | derivative | example | dtypes "
           "|\n|---|---|---|---|---|---|---|\n";
    for (const Op& op : family.ops)
      out << "| `" << op.name << "` | " << cell(op.doc) << " | " << op.tensorflow << " | " << arguments(op)
          << " | " << derivative(op) << " | " << example(op) << " | " << dtypes(op) << "|\n";
  }
  return out.str();
}

// By TensorFlow op type: the counterpart here, or why there is none; from the tables, and from
// test/data/tensorflow_ops.txt for types that are not in them.
std::map<std::string, std::string> answers() {
  std::map<std::string, std::string> here;
  for (const OpFamily& family : op_families())
    for (const Op& op : family.ops) {
      std::istringstream types{std::string(op.tensorflow)};
      for (std::string type; types >> type;) {
        std::string& answer = here[type];
        answer.append(answer.empty() ? "`" : ", `").append(op.name).append("`");
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
         "`build/test/ops_doc --from-tensorflow > docs/from_tensorflow.md`; the functions are described in "
         "[ops.md](ops.md).\n\n"
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
