// IdMap: maps tensor ids to slots of a recorder, by open addressing. Erasing shifts the following entries
// back instead of leaving a tombstone, so searches do not become longer after many insertions and erasures.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck {

class IdMap {
 public:
  /// The slot of id, or -1.
  std::int32_t find(std::uint64_t id) const {
    if (count_ == 0) return -1;
    for (std::size_t i = home(id);; i = next(i)) {
      if (table_[i].id == id) return table_[i].slot;
      if (table_[i].id == 0) return -1;
    }
  }
  /// Guarantees that the next `more` insertions do not throw.
  void reserve(std::size_t more) {
    if (2 * (count_ + more) <= table_.size()) return;
    std::size_t size = table_.empty() ? 16 : table_.size();
    while (size < 2 * (count_ + more))
      size *= 2;
    std::vector<Entry> old(size);
    old.swap(table_);
    for (const Entry& e : old)
      if (e.id) place(e);
  }
  /// id must not be in the map, and reserve() must have been called.
  void insert(std::uint64_t id, std::int32_t slot) noexcept {
    place({id, slot});
    ++count_;
  }
  void erase(std::uint64_t id) noexcept {
    if (count_ == 0) return;
    std::size_t hole = home(id);
    while (table_[hole].id != id) {
      if (table_[hole].id == 0) return;
      hole = next(hole);
    }
    --count_;
    for (std::size_t i = next(hole); table_[i].id; i = next(i)) {
      const std::size_t wanted = home(table_[i].id);
      const bool stays = hole <= i ? hole < wanted && wanted <= i : hole < wanted || wanted <= i;
      if (!stays) table_[hole] = table_[i], hole = i;
    }
    table_[hole] = {};
  }
  void clear() noexcept { table_.clear(), count_ = 0; }

 private:
  struct Entry {
    std::uint64_t id = 0;   // 0: free
    std::int32_t slot = 0;
  };

  std::size_t home(std::uint64_t id) const { return (id * 0x9e3779b97f4a7c15u >> 32) & (table_.size() - 1); }
  std::size_t next(std::size_t i) const { return (i + 1) & (table_.size() - 1); }
  void place(const Entry& e) noexcept {
    std::size_t i = home(e.id);
    while (table_[i].id)
      i = next(i);
    table_[i] = e;
  }

  std::vector<Entry> table_;
  std::size_t count_ = 0;
};

}   // namespace tapedeck
