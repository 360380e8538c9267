// Reads files of the documentation.
#include "text.h"

#include <cmath>
#include <fstream>
#include <iterator>

#include "example.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;

namespace {

constexpr const char* kGuides[] = {"README.md",
                                   "docs/guide/basics.md",
                                   "docs/inside/design.md",
                                   "docs/inside/engine.md",
                                   "docs/guide/optimizers.md",
                                   "docs/guide/differentiation.md",
                                   "docs/start/pitfalls.md",
                                   "docs/inside/decisions/tapes.md",
                                   "docs/inside/decisions/memory.md",
                                   "docs/inside/decisions/ops.md",
                                   "docs/inside/decisions/kernels.md",
                                   "docs/inside/decisions/interface.md",
                                   "docs/inside/decisions/map.md",
                                   "docs/inside/decisions/optimizers.md",
                                   "docs/inside/decisions/files.md",
                                   "docs/inside/decisions/networks.md",
                                   "docs/inside/decisions/replicas.md",
                                   "docs/inside/decisions/elementwise_functions.md",
                                   "docs/inside/decisions/code_base.md",
                                   "docs/inside/decisions/compiled_functions.md",
                                   "docs/inside/testing.md",
                                   "docs/inside/testing/arm.md",
                                   "docs/inside/testing/cases.md",
                                   "docs/inside/testing/planted_faults.md",
                                   "docs/inside/testing/small_changes.md",
                                   "docs/guide/scaling.md",
                                   "docs/reference/performance/replicas.md",
                                   "docs/reference/performance.md",
                                   "docs/reference/performance/beside_libtorch.md",
                                   "docs/reference/performance/threads.md",
                                   "docs/reference/performance/half_precision.md",
                                   "docs/reference/performance/compiled_functions.md",
                                   "docs/reference/performance/gradbench.md"};
constexpr std::size_t kBlock = 1000;   // characters; every tenth block is for tests

std::string read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw td::FileError("cannot open " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

td::Tensor rows_at(const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& begins,
                   std::int64_t length) {
  std::vector<std::int64_t> found;
  for (const std::int64_t begin : begins)
    found.insert(found.end(), ids.begin() + begin, ids.begin() + begin + length);
  return td::tensor(found, {std::ssize(begins), length});
}

}   // namespace

Text::Text() {
  std::string text;
  for (const char* guide : kGuides)
    for (const char c : read(example_data(std::string("../../") + guide)))
      if (c == '\n' || (c >= ' ' && c <= '~')) text += c;
  for (int c = 0; c < 128; ++c)
    if (text.find(static_cast<char>(c)) != std::string::npos) alphabet_ += static_cast<char>(c);
  const std::vector<std::int64_t> all = ids(text);
  for (std::size_t i = 0; i < all.size(); ++i)
    (i / kBlock % 10 == 9 ? test_ : train_).push_back(all[i]);
}

std::string Text::words(const std::vector<std::int64_t>& ids) const {
  std::string text;
  for (const std::int64_t id : ids)
    text += alphabet_.at(static_cast<std::size_t>(id));
  return text;
}
std::vector<std::int64_t> Text::ids(const std::string& words) const {
  std::vector<std::int64_t> found;
  for (const char c : words)
    found.push_back(static_cast<std::int64_t>(alphabet_.find(c)));
  return found;
}

td::Tensor Text::train(std::int64_t rows, std::int64_t length, td::random::Key key) const {
  const double last = static_cast<double>(std::ssize(train_) - length);
  const td::Tensor begins = td::random::uniform({rows}, key, 0, last, td::DType::f64);
  return rows_at(train_, td::astype(begins, td::DType::i64).to_vector<std::int64_t>(), length);
}
td::Tensor Text::test(std::int64_t rows, std::int64_t length) const {
  std::vector<std::int64_t> begins;
  for (std::int64_t i = 0; i < rows; ++i)
    begins.push_back(i * (std::ssize(test_) - length) / rows);
  return rows_at(test_, begins, length);
}

double Text::bits_alone() const {
  std::vector<double> count(alphabet_.size(), 1);
  for (const std::int64_t id : train_)
    ++count[static_cast<std::size_t>(id)];
  const double all = static_cast<double>(train_.size() + alphabet_.size());
  double bits = 0;
  for (const std::int64_t id : test_)
    bits -= std::log2(count[static_cast<std::size_t>(id)] / all);
  return bits / static_cast<double>(test_.size());
}
double Text::bits_of_pairs() const {
  const std::size_t n = alphabet_.size();
  const auto pair = [&](const std::vector<std::int64_t>& ids, std::size_t i) {
    return static_cast<std::size_t>(ids[i - 1]) * n + static_cast<std::size_t>(ids[i]);
  };
  std::vector<double> count(n * n, 0.1), before(n, 0.1 * static_cast<double>(n));
  for (std::size_t i = 1; i < train_.size(); ++i)
    ++count[pair(train_, i)], ++before[static_cast<std::size_t>(train_[i - 1])];
  double bits = 0;
  for (std::size_t i = 1; i < test_.size(); ++i)
    bits -= std::log2(count[pair(test_, i)] / before[static_cast<std::size_t>(test_[i - 1])]);
  return bits / static_cast<double>(test_.size() - 1);
}
