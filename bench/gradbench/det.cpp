#include "det.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "random.h"
#include "tapedeck/custom_gradient.h"
#include "tapedeck/map.h"
#include "tapedeck/scalars.h"
#include "tensors.h"

namespace gradbench::det {
namespace {

namespace scalars = tapedeck::scalars;

/// Flattened rows: row j lists all columns but the j-th of m.
Tensor others(std::int64_t m) {
  std::vector<std::int64_t> columns;
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t c = 0; c < m; ++c)
      if (c != j) columns.push_back(c);
  return td::tensor(columns);
}
Tensor signs(std::int64_t m) {
  Values s;
  for (std::int64_t j = 0; j < m; ++j)
    s.push_back(j % 2 ? -1 : 1);
  return td::tensor(s);
}

constexpr int kWhole = 8;   // most columns of a program of numbers, and of blocks that stay in the cache
/// The natural recursion on numbers, for an array with space for kWhole columns.
Form by_numbers(const std::shared_ptr<const Input>& in) {
  const auto f = [in](const auto& a) { return objective(*in, a.data()); };
  std::array<double, kWhole* kWhole> x = {};
  std::copy(in->a.begin(), in->a.end(), x.begin());
  return {"natural", [f, x, n = in->a.size()] {
            const auto value = [f, x](Values& out) { out.assign(1, scalars::value(f, x)); };
            const auto gradient = [f, x, n](Values& out) {
              const auto g = scalars::gradient(f, x);
              out.assign(g.begin(), g.begin() + static_cast<std::ptrdiff_t>(n));
            };
            return std::vector<Work>{work(value), work(gradient)};
          }};
}
/// The determinants of a stack of matrices [count, m, m]. For larger matrices, whose programs of numbers
/// would record gigabytes.
Tensor by_tensors(const Tensor& a) {
  const std::int64_t count = a.shape()[0], m = a.shape()[1];
  if (m == 1) return td::reshape(a, {count});
  const Tensor first = td::reshape(td::slice(a, {0, 0, 0}, {count, 1, m}), {count, m});
  const Tensor below = td::gather(td::slice(a, {0, 1, 0}, {count, m - 1, m}), others(m), 2);
  const Tensor minors = td::transpose(td::reshape(below, {count, m - 1, m, m - 1}), {0, 2, 1, 3});
  const Tensor of_minors =
      td::reshape(by_tensors(td::reshape(minors, {count * m, m - 1, m - 1})), {count, m});
  return td::sum(first * of_minors * signs(m), {1});
}

/// For all minors of n, n - 1, … `least` columns, the lists of their columns, one after the other. Each list
/// leads to the lists of the next level: for each j, the list without its j-th column.
std::vector<std::vector<int>> columns_left(int n, int least) {
  std::vector<int> left(static_cast<std::size_t>(n));
  std::iota(left.begin(), left.end(), 0);
  std::vector<std::vector<int>> levels;
  for (auto m = static_cast<std::size_t>(n);; --m) {
    levels.push_back(left);
    if (m == static_cast<std::size_t>(least)) return levels;
    std::vector<int> next;
    next.reserve(left.size() * (m - 1));
    for (std::size_t row = 0; row < left.size(); row += m)
      for (std::size_t j = 0; j < m; ++j)
        for (std::size_t c = 0; c < m; ++c)
          if (c != j) next.push_back(left[row + c]);
    left = std::move(next);
  }
}
Tensor ids(const std::vector<int>& columns) {
  return td::tensor(std::vector<std::int32_t>(columns.begin(), columns.end()));
}

/// Computes the determinant level by level: a minor of m columns is a sum of m products of entries of a row
/// with minors of m - 1 columns, which are contiguous.
class Levels {
 public:
  Levels(int n, int least) : n_(n), least_(least) {
    for (const std::vector<int>& level : columns_left(n, least))
      left_.push_back(ids(level));
  }
  /// Returns the determinant from the minors of `least` columns.
  Tensor operator()(const Tensor& a, Tensor minors) const {
    for (std::int64_t m = least_ + 1; m <= n_; ++m) {
      const std::int64_t row = n_ - m;
      const Tensor terms = td::gather(a[row], left_[static_cast<std::size_t>(row)]) * minors;
      minors = td::tensordot(td::reshape(terms, {terms.size() / m, m}), signs(m), 1);
    }
    return td::reshape(minors, {});
  }

 private:
  std::int64_t n_, least_;
  Tensors left_;
};

/// The determinant of four columns, by the minors of the first two rows and of the last two.
constexpr auto of_four = [](auto a, auto b, auto c, auto d, auto e, auto f, auto g, auto h, auto i, auto j,
                            auto k, auto l, auto m, auto n, auto o, auto p) {
  return (a * f - b * e) * (k * p - l * o) - (a * g - c * e) * (j * p - l * n) +
         (a * h - d * e) * (j * o - k * n) + (b * g - c * f) * (i * p - l * m) -
         (b * h - d * f) * (i * o - k * m) + (c * h - d * g) * (i * n - j * m);
};

/// A determinant of m ≥ 4 columns, from all minors of its last four rows in one map. Their entries are
/// selected by a product with zeros and ones, which is faster than a gather.
auto by_blocks(int m) {
  const std::vector<int> left = columns_left(m, 4).back();
  const std::size_t count = left.size(), blocks = count / 4;
  Values chosen(static_cast<std::size_t>(m) * count);
  for (std::size_t i = 0; i < count; ++i)   // entries at equal positions in their blocks are contiguous
    chosen[static_cast<std::size_t>(left[i]) * count + i % 4 * blocks + i / 4] = 1;
  return [m, levels = Levels(m, 4),
          chosen = td::tensor(chosen, {m, static_cast<std::int64_t>(count)})](const Tensor& a) {
    const Tensor below = td::matmul(td::slice(a, {m - 4, 0}, {4, m}), chosen);
    const Tensors x = td::unstack(td::reshape(below, {16, below.shape()[1] / 4}));
    return levels(a, td::map<"det">(of_four, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9],
                                    x[10], x[11], x[12], x[13], x[14], x[15]));
  };
}

/// For large matrices, computes minors of eight columns one after the other, and again in the gradient, since
/// all blocks would not fit into the cache. Small matrices are extended to four columns by the identity.
std::function<Tensor(Inputs)> expert(int n) {
  if (n <= kWhole) {
    const int m = std::max(n, 4);
    Values ones(static_cast<std::size_t>(m * m));
    for (int i = n; i < m; ++i)
      ones[static_cast<std::size_t>(i * m + i)] = 1;
    return [m, n, f = by_blocks(m), ones = td::tensor(ones, {m, m})](Inputs x) {
      return f(m == n ? x[0] : td::pad(x[0], {0, 0}, {m - n, m - n}) + ones);
    };
  }
  Tensors columns;
  const std::vector<int> left = columns_left(n, kWhole).back();
  for (auto first = left.begin(); first != left.end(); first += kWhole)
    columns.push_back(ids({first, first + kWhole}));
  return [n, columns, f = td::recompute_grad(by_blocks(kWhole)), levels = Levels(n, kWhole)](Inputs x) {
    const Tensor below = td::slice(x[0], {n - kWhole, 0}, {kWhole, n});
    Tensors minors;
    for (const Tensor& of_minor : columns)
      minors.push_back(f(td::gather(below, of_minor, 1)));
    return levels(x[0], td::stack(minors));
  };
}

Size size(int n) {
  return {
      std::to_string(n), [=] {
        return forms(std::make_shared<Input>(Input{Random().uniforms(static_cast<std::size_t>(n * n)), n}));
      }};
}

}   // namespace

Forms forms(const std::shared_ptr<const Input>& in) {
  const Tensors x = {td::tensor(in->a, {in->n, in->n})};
  const auto f = [](Inputs a) { return td::reshape(by_tensors(td::expand_dims(a[0], 0)), {}); };
  const auto g = expert(in->n);
  if (in->n > kWhole)
    return with_peers({eager("natural", x, f, gradients_of(f)), eager("expert", x, g, gradients_of(g))}, in);
  return with_peers({by_numbers(in), recorded("expert", x, g, gradients_of(g))}, in);
}

Eval eval() {
  return {"det", {"primal", "gradient"}, true, {size(5), size(8), size(11)}, {size(1), size(4), size(6)}};
}

}   // namespace gradbench::det
