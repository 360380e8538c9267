#include "det.h"

#include "random.h"
#include "tensors.h"

namespace gradbench::det {
namespace {

/// Row j: all columns but the j-th of m.
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

/// The determinants of a stack of matrices [count, m, m]: a recursion as one writes it for numbers.
Tensor natural(const Tensor& a) {
  const std::int64_t count = a.shape()[0], m = a.shape()[1];
  if (m == 1) return td::reshape(a, {count});
  const Tensor first = td::reshape(td::slice(a, {0, 0, 0}, {count, 1, m}), {count, m});
  const Tensor below = td::gather(td::slice(a, {0, 1, 0}, {count, m - 1, m}), others(m), 2);
  const Tensor minors = td::transpose(td::reshape(below, {count, m - 1, m, m - 1}), {0, 2, 1, 3});
  const Tensor of_minors = td::reshape(natural(td::reshape(minors, {count * m, m - 1, m - 1})), {count, m});
  return td::sum(first * of_minors * signs(m), {1});
}

/// The columns that are left, for all minors of one size: [minors, m], row after row. Those of the minors of
/// the next size are, for each row and each j, the row without its j-th.
std::vector<Tensor> columns_left(int n) {
  std::vector<std::int32_t> left(static_cast<std::size_t>(n));
  for (int j = 0; j < n; ++j)
    left[static_cast<std::size_t>(j)] = j;
  std::vector<Tensor> levels;
  for (std::size_t m = left.size();; --m) {
    levels.push_back(td::tensor(left));
    if (m == 1) return levels;
    std::vector<std::int32_t> next;
    next.reserve(left.size() * (m - 1));
    for (std::size_t row = 0; row < left.size(); row += m)
      for (std::size_t j = 0; j < m; ++j)
        for (std::size_t c = 0; c < m; ++c)
          if (c != j) next.push_back(left[row + c]);
    left = std::move(next);
  }
}
/// Level by level from the single entries up: the minors of m columns are sums over m products of entries of
/// one row with minors of m - 1 columns, which lie side by side.
auto expert(const Input& in) {
  return [n = in.n, left = columns_left(in.n)](Inputs x) {
    const std::vector<Tensor> rows = td::unstack(x[0]);
    Tensor minors = td::gather(rows.back(), left.back());
    for (std::int64_t m = 2; m <= n; ++m) {
      const auto level = static_cast<std::size_t>(n - m);
      const Tensor terms = td::gather(rows[level], left[level]) * minors;
      minors = td::tensordot(td::reshape(terms, {terms.size() / m, m}), signs(m), 1);
    }
    return td::reshape(minors, {});
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
  const auto f = [](Inputs a) { return td::reshape(natural(td::expand_dims(a[0], 0)), {}); };
  const auto g = expert(*in);
  return with_peers({eager("natural", x, f, gradients_of(f)), eager("expert", x, g, gradients_of(g))}, in);
}

Eval eval() {
  return {"det", {"primal", "gradient"}, true, {size(5), size(8), size(11)}, {size(1), size(4), size(6)}};
}

}   // namespace gradbench::det
