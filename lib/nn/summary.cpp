// A table of layers, from a walk of the network and what its layers return in one call.
#include "tapedeck/nn/summary.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>
#include <vector>

#include "core/format.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/nn/new_variables.h"

namespace tapedeck::nn::detail {
namespace {

// A layer and its first member may have the same address.
using Place = std::pair<const void*, std::string_view>;
struct Calls {
  std::map<Place, Spec> results;   // of the first call of each layer
};
constinit thread_local Calls* calls = nullptr;

class Listening {
 public:
  explicit Listening(Calls& c) : before_(std::exchange(calls, &c)) {}
  ~Listening() { calls = before_; }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  Calls* before_;
};

struct Row {
  std::string path, type, result;
  std::int64_t numbers = 0;
  bool is_layer = false;   // has variables, or was called
};

std::string with_commas(std::int64_t n) {
  std::string text = std::to_string(n);
  for (std::ptrdiff_t i = std::ssize(text) - 3; i > 0; i -= 3)
    text.insert(static_cast<std::size_t>(i), ",");
  return text;
}

struct Table {
  std::map<Place, Spec> results;
  std::vector<Row> rows = {};
  std::unordered_set<std::uint64_t> ids = {};
  std::int64_t trainable = 0, fixed = 0, bytes = 0;

  void add(const Node& node) {
    if (node.variable)
      count(node.path, *node.variable);
    else if (!node.shared && !node.path.empty())
      add_layer(node);
  }

 private:
  void count(const std::string& path, const Variable& v) {
    const std::int64_t n = v.shape().size();
    for (Row& row : rows)
      if (path.starts_with(row.path + '/')) row.numbers += n, row.is_layer = true;
    if (!ids.insert(v.id()).second) return;
    (v.trainable() ? trainable : fixed) += n;
    bytes += n * size_of(v.dtype());
  }
  void add_layer(const Node& node) {
    // A member without a name belongs to its struct's row.
    if (std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.path == node.path; })) return;
    const auto result = results.find({node.address, node.type});
    const bool was_called = result != results.end();
    rows.push_back(
        {node.path, std::string(node.type), was_called ? to_string(result->second) : "", 0, was_called});
  }
};

// Names within the row above that they belong to, by which they are indented.
std::vector<std::string> names_of(const std::vector<Row>& rows) {
  std::vector<std::string> names, above;
  for (const Row& row : rows) {
    while (!above.empty() && !row.path.starts_with(above.back()))
      above.pop_back();
    names.push_back(std::string(2 * above.size(), ' ') +
                    row.path.substr(above.empty() ? 0 : above.back().size()));
    above.push_back(row.path + '/');
  }
  return names;
}

std::string text_of(const Table& table, std::string_view type, const std::string& input,
                    const std::string& output) {
  std::vector<Row> rows = table.rows;
  std::erase_if(rows, [](const Row& row) { return !row.is_layer; });
  const std::vector<std::string> names = names_of(rows);
  std::vector<std::array<std::string, 4>> lines = {{"layer", "type", "result", "numbers"}};
  for (std::size_t i = 0; i < rows.size(); ++i)
    lines.push_back(
        {names[i], rows[i].type, rows[i].result, rows[i].numbers == 0 ? "" : with_commas(rows[i].numbers)});
  std::size_t widths[4] = {};
  for (const auto& line : lines)
    for (std::size_t k = 0; k < 4; ++k)
      widths[k] = std::max(widths[k], line[k].size());

  const std::string rule(widths[0] + widths[1] + widths[2] + widths[3] + 6, '-');
  std::string text = fmt::format("{}: {} -> {}\n", type, input, output);
  for (const auto& line : lines) {
    text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}\n", line[0], widths[0], line[1], widths[1], line[2],
                        widths[2], line[3], widths[3]);
    if (&line == &lines[0]) text += rule + '\n';
  }
  text += fmt::format("{}\n{} numbers in {} bytes: {} trainable, {} not\n", rule,
                      with_commas(table.trainable + table.fixed), with_commas(table.bytes),
                      with_commas(table.trainable), with_commas(table.fixed));
  return text;
}

}   // namespace

Tensor noted(const void* layer, std::string_view type, Tensor y) {
  if (calls) calls->results.try_emplace({layer, type}, y.spec());
  return y;
}

std::string description_of(const Tensor& x) { return to_string(x.spec()); }

std::string summary_of(std::string_view type, const std::function<void(const Visit&)>& walk,
                       const std::function<Tensor()>& call, const std::string& input) {
  Calls made;
  Tensor output;
  {
    const StopRecording pause;
    const Listening listening(made);
    try {
      output = call();
    } catch (const Error&) {
      name_failing_layer(walk);
      throw;
    }
  }
  Table table{std::move(made.results)};
  walk([&](const Node& node) { table.add(node); });
  return text_of(table, type, input, to_string(output.spec()));
}

}   // namespace tapedeck::nn::detail
