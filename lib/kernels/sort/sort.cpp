// Sorts rows, selects the first k, and searches sorted rows. Elements become integer keys of the same order,
// paired with their positions; short rows are sorted by comparison, long ones by radix sort. Threads split
// the rows.
#include "kernels/sort/sort.h"

#include <algorithm>
#include <array>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/sort/order_key.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kSortCut = {1 << 11, 1 << 13};   // of elements
constexpr int kDigit = 8;                      // bits
constexpr std::int64_t kRadixMin = 400;        // elements from which radix sort is faster

// A key with its position, ordered by both. 32-bit keys and positions are packed into one integer.
struct Narrow {
  using Key = std::uint32_t;
  static constexpr std::int64_t kMost = std::int64_t{1} << 32;
  std::uint64_t both;
  Narrow() = default;
  Narrow(Key k, std::int64_t i) : both(std::uint64_t{k} << 32 | static_cast<std::uint64_t>(i)) {}
  Key key() const { return static_cast<Key>(both >> 32); }
  std::int64_t place() const { return static_cast<std::int64_t>(both & 0xffffffff); }
  friend bool operator<(const Narrow& a, const Narrow& b) { return a.both < b.both; }
};
struct WideKeys {
  using Key = std::uint64_t;
  Key k;
  std::int64_t i;
  WideKeys() = default;
  WideKeys(Key key, std::int64_t place) : k(key), i(place) {}
  Key key() const { return k; }
  std::int64_t place() const { return i; }
  friend bool operator<(const WideKeys& a, const WideKeys& b) {
    return a.k < b.k || (a.k == b.k && a.i < b.i);
  }
};
template <class Item> using Items = CachedVector<Item>;

// LSD radix sort of items whose positions ascend: stable passes from the lowest digit to the highest.
template <class Item> void radix_sort(Items<Item>& items, Items<Item>& other) {
  constexpr int digits = 8 * sizeof(typename Item::Key) / kDigit;
  std::array<std::array<std::size_t, 1 << kDigit>, digits> counts{};
  const auto digit = [](const Item& item, int d) {
    return static_cast<std::size_t>(item.key() >> (d * kDigit) & ((1 << kDigit) - 1));
  };
  for (const Item& item : items)
    for (int d = 0; d < digits; ++d)
      ++counts[static_cast<std::size_t>(d)][digit(item, d)];
  other.resize(items.size());
  for (int d = 0; d < digits; ++d) {
    auto& next = counts[static_cast<std::size_t>(d)];
    if (next[digit(items.front(), d)] == items.size()) continue;   // all items share this digit
    std::size_t begin = 0;
    for (std::size_t& n : next)
      begin += std::exchange(n, begin);
    for (const Item& item : items)
      other[next[digit(item, d)]++] = item;
    items.swap(other);
  }
}

template <class Item, class T> typename Item::Key key_of(T x, bool descending) {
  const typename Item::Key key = order_key(x);
  return descending ? ~key : key;
}

template <class Item, class T>
void all_in_order(const T* x, std::int64_t n, bool descending, Items<Item>& items, Items<Item>& other) {
  items.clear();
  for (std::int64_t i = 0; i < n; ++i)
    items.emplace_back(key_of<Item>(x[i], descending), i);
  if (n >= kRadixMin)
    radix_sort(items, other);
  else
    std::sort(items.begin(), items.end());
}

// An upper bound of the k-th smallest key: the k-th smallest of the minima of at least 2 k groups of keys.
template <class Key>
Key bound_of(const Key* keys, std::int64_t n, std::int64_t k, CachedVector<Key>& firsts) {
  const std::int64_t groups = std::max<std::int64_t>(2 * k, 64);
  if (n < 2 * groups) return std::numeric_limits<Key>::max();
  firsts.assign(keys, keys + groups);
  for (std::int64_t i = groups; i < n; i += groups)
    for (std::int64_t g = 0, left = std::min(groups, n - i); g < left; ++g)
      firsts[static_cast<std::size_t>(g)] = std::min(firsts[static_cast<std::size_t>(g)], keys[i + g]);
  std::nth_element(firsts.begin(), firsts.begin() + (k - 1), firsts.end());
  return firsts[static_cast<std::size_t>(k - 1)];
}

// The first k items. Processes the row in stretches of at least 4096 elements, and keeps as candidates the
// items that are not larger than a bound: the k-th smallest so far.
template <class Item, class T>
void first_in_order(const T* x, std::int64_t n, std::int64_t k, bool descending, Items<Item>& items) {
  using Key = typename Item::Key;
  constexpr std::int64_t block = 32;
  const auto keep = static_cast<std::size_t>(k);
  const std::int64_t stretch = std::max<std::int64_t>(4096, 4 * k);
  CachedVector<Key> keys(static_cast<std::size_t>((std::min(n, stretch) + block - 1) / block * block)),
      firsts;
  Key last = std::numeric_limits<Key>::max();
  items.clear();
  const auto thin_out = [&] {
    std::nth_element(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(keep - 1), items.end());
    items.resize(keep);
  };
  for (std::int64_t begin = 0; begin < n; begin += stretch) {
    const std::int64_t size = std::min(stretch, n - begin);
    for (std::int64_t i = 0; i < size; ++i)
      keys[static_cast<std::size_t>(i)] = key_of<Item>(x[begin + i], descending);
    if (begin == 0) last = bound_of(keys.data(), size, k, firsts);
    for (std::int64_t first = 0; first < size; first += block) {
      const Key* some = keys.data() + first;
      Key any = 0;
      for (std::int64_t i = 0; i < block; ++i)
        any |= static_cast<Key>(some[i] <= last);
      if (!any) continue;
      for (std::int64_t i = 0; i < std::min(block, size - first); ++i)
        if (some[i] <= last) items.emplace_back(some[i], begin + first + i);
    }
    if (begin + size == n || items.size() < keep) continue;
    thin_out();
    const Key worst = items.back().key();
    if (worst == 0) break;
    last = worst - 1;   // later items with an equal key rank after it
  }
  if (items.size() > keep) thin_out();
  std::sort(items.begin(), items.end());
}

template <class Item, class T> void sort_rows(const T* x, std::int64_t rows, std::int64_t n, std::int64_t k,
                                              bool descending, T* values, std::int64_t* indices) {
  parallel_for(rows, cut_of(kSortCut, n), [&](std::int64_t begin, std::int64_t end) {
    Items<Item> items, other;
    for (std::int64_t row = begin; row < end; ++row) {
      const T* in = x + row * n;
      if (4 * k < n)
        first_in_order(in, n, k, descending, items);
      else
        all_in_order(in, n, descending, items, other);
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int64_t place = items[static_cast<std::size_t>(i)].place();
        indices[row * k + i] = place;
        if (values) values[row * k + i] = in[place];
      }
    }
  });
}

template <class Item, class T>
void nth_of_rows(const T* x, std::int64_t rows, std::int64_t n, std::int64_t place, T* y) {
  parallel_for(rows, cut_of(kSortCut, n), [&](std::int64_t begin, std::int64_t end) {
    Items<Item> items;
    for (std::int64_t row = begin; row < end; ++row) {
      items.clear();
      for (std::int64_t i = 0; i < n; ++i)
        items.emplace_back(key_of<Item>(x[row * n + i], false), i);
      std::nth_element(items.begin(), items.begin() + place, items.end());
      y[row] = x[row * n + items[static_cast<std::size_t>(place)].place()];
    }
  });
}

// Calls f(Item(), T()) with the item and element types for rows of n elements of x.
template <class F> void visit_items(const Tensor& x, std::int64_t n, F f) {
  visit(x.dtype(), [&]<class T>(T element) {
    if constexpr (!std::is_same_v<T, bool>) {
      if constexpr (sizeof(T) != 8)
        if (n <= Narrow::kMost) return f(Narrow{}, element);
      f(WideKeys{}, element);
    }
  });
}

}   // namespace

void sort(const Tensor& x, std::int64_t n, std::int64_t k, bool descending, Tensor* values, Tensor& indices) {
  if (indices.size() == 0) return;
  visit_items(x, n, [&]<class Item, class T>(Item, T) {
    sort_rows<Item>(elements<T>(x), x.size() / n, n, k, descending, values ? elements<T>(*values) : nullptr,
                    elements<std::int64_t>(indices));
  });
}

void nth_element(const Tensor& x, std::int64_t n, std::int64_t place, Tensor& y) {
  if (y.size() == 0) return;
  visit_items(x, n, [&]<class Item, class T>(Item, T) {
    nth_of_rows<Item>(elements<T>(x), y.size(), n, place, elements<T>(y));
  });
}

void searchsorted(const Tensor& sorted, std::int64_t n, const Tensor& values, std::int64_t m, bool right,
                  Tensor& y) {
  visit(sorted.dtype(), [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      const T *row = elements<T>(sorted), *value = elements<T>(values);
      std::int64_t* place = elements<std::int64_t>(y);
      parallel_for(y.size(), Cut{1 << 10, 1 << 12}, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const T *first = row + i / m * n, *last = first + n;
          const auto key = order_key(value[i]);
          const T* found =
              right ? std::upper_bound(first, last, key, [](auto k, T e) { return k < order_key(e); })
                    : std::lower_bound(first, last, key, [](T e, auto k) { return order_key(e) < k; });
          place[i] = found - first;
        }
      });
    }
  });
}

}   // namespace tapedeck::kernels
