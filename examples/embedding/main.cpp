// Sparse gradients: a step reads 1,024 rows of a table, so the gradient has 1,024 rows, and lazy Adam updates
// no others. The time of a step is the same for a table of ten thousand rows as for one of ten million; with
// a dense gradient it is proportional to the table.
#include <algorithm>

#include <fmt/format.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"

namespace td = tapedeck;

namespace {

constexpr std::int64_t kWidth = 64, kIds = 1024;

/// A table whose rows are trained towards target values.
class Embedding {
 public:
  explicit Embedding(std::int64_t rows) : rows_(rows), table_(td::zeros({rows, kWidth})) {}

  struct Cost {
    double seconds = 0;
    std::int64_t bytes = 0;   // of the tensors that the step has created once its gradient exists
    bool operator<(const Cost& other) const { return seconds < other.seconds; }
  };

  /// A step on randomly drawn rows. Returns its cost, without the cost of drawing.
  Cost step(bool sparse) {
    const td::Tensor ids = td::astype(
        td::random::uniform({kIds}, key_ = key_.split(0), 0, static_cast<double>(rows_), td::DType::f64),
        td::DType::i64);
    const std::int64_t before = td::live_bytes();
    Cost cost;
    cost.seconds = cpu_seconds([&] {
      td::GradientTape tape;
      const td::Tensor loss = td::mean(td::square(td::gather(table_, ids) - wanted_));
      td::Gradient gradient = tape.gradient(loss, table_);
      if (!sparse) gradient = gradient.dense();
      cost.bytes = td::live_bytes() - before;
      adam_.apply_gradients({{gradient, table_}});
    });
    return cost;
  }
  /// The costs of n steps, the shortest first.
  std::vector<Cost> steps(int n, bool sparse) {
    std::vector<Cost> costs;
    for (int i = 0; i < n; ++i)
      costs.push_back(step(sparse));
    std::sort(costs.begin(), costs.end());
    return costs;
  }
  td::Tensor table() const { return table_.value(); }

 private:
  std::int64_t rows_;
  td::Variable table_;
  td::Tensor wanted_ = td::random::normal({kIds, kWidth}, {.seed = 1});
  td::random::Key key_{.seed = 2};
  td::Adam adam_{{.learning_rate = 0.01, .lazy = true}};
};

void example(Run& run) {
  Embedding by_rows(10'000), whole(10'000);
  by_rows.step(true), whole.step(false);
  run.claim(td::max(td::abs(by_rows.table() - whole.table())).item() < 1e-6 &&
                td::max(td::abs(whole.table())).item() > 1e-3,
            "the first step is the same, sparse or dense");

  std::vector<std::int64_t> sparse_bytes;
  std::int64_t dense_bytes = 0;   // of the largest table that is stepped densely
  Curve sparse{.colour = kBlue, .name = "sparse"}, dense{.colour = kOrange, .name = "dense"};
  fmt::print("{:>12} {:>10} {:>16} {:>15}\n", "rows", "table", "sparse step", "dense step");
  for (std::int64_t rows = 10'000; rows <= (run.quick ? 1'000'000 : 10'000'000); rows *= 10) {
    Embedding embedding(rows);
    embedding.steps(20, true);   // the first step creates the slots
    const Embedding::Cost middle = embedding.steps(run.quick ? 100 : 300, true)[run.quick ? 50 : 150];
    sparse.x.push_back(static_cast<double>(rows)), sparse.y.push_back(middle.seconds * 1e3);
    sparse_bytes.push_back(middle.bytes);
    fmt::print("{:>12} {:>7.1f} MB {:>13.3f} ms ", rows, static_cast<double>(rows * kWidth) * 4e-6,
               middle.seconds * 1e3);
    if (rows <= 1'000'000) {   // for larger tables, gradient, table and slots would need more than 10 GB
      const Embedding::Cost least = embedding.steps(rows < 1'000'000 ? 10 : 3, false)[0];
      dense.x.push_back(static_cast<double>(rows)), dense.y.push_back(least.seconds * 1e3);
      dense_bytes = least.bytes;
      fmt::print("{:>12.3f} ms", dense.y.back());
    }
    fmt::print("\n");
    td::release_buffers();
  }

  // A table of 10⁴ rows fits into the processor's cache, larger tables do not. This makes a difference; the
  // number of rows does not.
  const double growth = sparse.y.back() / sparse.y.front(), dense_growth = dense.y.back() / dense.y.front();
  fmt::print(
      "{:.0f} times the rows: {:.1f} times the sparse step; {:.0f} times the rows: {:.1f} times the dense "
      "one\n",
      sparse.x.back() / sparse.x.front(), growth, dense.x.back() / dense.x.front(), dense_growth);
  fmt::print("a sparse step makes {:.1f} MB of tensors, a dense one at 10⁶ rows {:.1f} MB\n",
             static_cast<double>(sparse_bytes[0]) * 1e-6, static_cast<double>(dense_bytes) * 1e-6);
  run.claim(std::equal(sparse_bytes.begin() + 1, sparse_bytes.end(), sparse_bytes.begin()),
            "the tensors of a sparse step take the same bytes whatever the table");
  run.claim(dense_bytes > 100 * sparse_bytes[0],
            "with 10⁶ rows those of a dense step take over 100 times as many");

  run.picture.chart(
      {}, "A step of Adam that reads 1,024 rows:", {.label = "rows of the table", .logarithmic = true},
      {.label = "milliseconds", .logarithmic = true}, std::vector{sparse, dense});
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "sparse gradients, whose steps do not grow with the table", example);
}
