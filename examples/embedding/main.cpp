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

  /// A step on randomly drawn rows. Returns its time in seconds, without that of drawing.
  double step(bool sparse) {
    const td::Tensor ids = td::astype(
        td::random::uniform({kIds}, key_ = key_.split(0), 0, static_cast<double>(rows_), td::DType::f64),
        td::DType::i64);
    return cpu_seconds([&] {
      td::GradientTape tape;
      const td::Tensor loss = td::mean(td::square(td::gather(table_, ids) - wanted_));
      const td::Gradient gradient = tape.gradient(loss, table_);
      if (sparse)
        adam_.apply_gradients({{gradient, table_}});
      else
        adam_.apply_gradients({{gradient.dense(), table_}});
    });
  }
  /// The times of n steps in seconds, in ascending order.
  std::vector<double> steps(int n, bool sparse) {
    std::vector<double> seconds;
    for (int i = 0; i < n; ++i)
      seconds.push_back(step(sparse));
    std::sort(seconds.begin(), seconds.end());
    return seconds;
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

  Curve sparse{.colour = kBlue, .name = "sparse"}, dense{.colour = kOrange, .name = "dense"};
  fmt::print("{:>12} {:>10} {:>16} {:>15}\n", "rows", "table", "sparse step", "dense step");
  for (std::int64_t rows = 10'000; rows <= (run.quick ? 1'000'000 : 10'000'000); rows *= 10) {
    Embedding embedding(rows);
    embedding.steps(20, true);   // the first step creates the slots
    const double middle = embedding.steps(run.quick ? 100 : 300, true)[run.quick ? 50 : 150];
    sparse.x.push_back(static_cast<double>(rows)), sparse.y.push_back(middle * 1e3);
    fmt::print("{:>12} {:>7.1f} MB {:>13.3f} ms ", rows, static_cast<double>(rows * kWidth) * 4e-6,
               middle * 1e3);
    if (rows <= 1'000'000) {   // for larger tables, gradient, table and slots would need more than 10 GB
      dense.x.push_back(static_cast<double>(rows)),
          dense.y.push_back(embedding.steps(rows < 1'000'000 ? 10 : 3, false)[0] * 1e3);
      fmt::print("{:>12.3f} ms", dense.y.back());
    }
    fmt::print("\n");
    td::release_buffers();
  }

  // A table of 10⁴ rows fits in the processor's cache, larger ones do not: that causes a difference, but not
  // the number of rows.
  const double growth = sparse.y.back() / sparse.y.front(), dense_growth = dense.y.back() / dense.y.front();
  fmt::print(
      "{:.0f} times the rows: {:.1f} times the sparse step; {:.0f} times the rows: {:.1f} times the dense "
      "one\n",
      sparse.x.back() / sparse.x.front(), growth, dense.x.back() / dense.x.front(), dense_growth);
  run.claim_time(growth < 8, "the sparse step does not grow with the table, but for what the caches hold");
  if (sparse.y.size() > 3)
    run.claim_time(sparse.y[3] < 2 * sparse.y[2],
                   "with ten times as many rows as lie in no cache it takes less than twice the time");
  run.claim_time(dense.y.back() > 10 * sparse.y[dense.y.size() - 1],
                 "with 10⁶ rows it is at least 10 times as fast as the dense one");

  run.picture.chart(
      {}, "A step of Adam that reads 1,024 rows:", {.label = "rows of the table", .logarithmic = true},
      {.label = "milliseconds", .logarithmic = true}, std::vector{sparse, dense});
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "sparse gradients, whose steps do not grow with the table", example);
}
