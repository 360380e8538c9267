// Groups equal row indices by a stable radix sort, on one thread.
#include "kernels/sort/order_rows.h"
#include "core/bytes.h"

#include <algorithm>
#include <array>

namespace tapedeck::kernels {
namespace {

struct Named {
  std::int64_t row, place;
};
using List = CachedVector<Named>;

constexpr int kRowDigit = 8;   // bits

// One pass: distributes `from` to `to` by one digit of the row.
void distribute(const List& from, List& to, int shift) {
  std::array<std::size_t, 1 << kRowDigit> next{};
  const auto digit = [shift](const Named& n) {
    return static_cast<std::size_t>(n.row >> shift & ((1 << kRowDigit) - 1));
  };
  for (const Named& n : from)
    ++next[digit(n)];
  std::size_t begin = 0;
  for (std::size_t& n : next)
    begin += std::exchange(n, begin);
  for (const Named& n : from)
    to[next[digit(n)]++] = n;
}

List sorted(const Tensor& indices) {
  List list(static_cast<std::size_t>(indices.size()));
  std::int64_t place = 0, largest = 0;
  bool in_order = true;
  visit_indices(indices, [&](const auto rows) {
    for (Named& n : list) {
      n = {rows[static_cast<std::size_t>(place)], place};
      in_order &= n.row >= largest;
      largest = std::max(largest, n.row);
      ++place;
    }
  });
  if (in_order) return list;
  List other(list.size());
  for (int shift = 0; shift < 63 && largest >> shift; shift += kRowDigit) {
    distribute(list, other, shift);
    list.swap(other);
  }
  return list;
}

}   // namespace

RowOrder order_rows(const Tensor& indices) {
  RowOrder order;
  const auto count = static_cast<std::size_t>(indices.size());
  order.rows.reserve(count);
  order.starts.reserve(count + 1);
  order.places.reserve(count);
  for (const Named& n : sorted(indices)) {
    if (order.rows.empty() || order.rows.back() != n.row) {
      order.rows.push_back(n.row);
      order.starts.push_back(static_cast<std::int64_t>(order.places.size()));
    }
    order.places.push_back(n.place);
  }
  order.starts.push_back(indices.size());
  return order;
}

}   // namespace tapedeck::kernels
