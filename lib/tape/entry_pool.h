// EntryPool: objects at fixed addresses, accessed by index. Released indices are reused.
#pragma once
#include <bit>
#include <cstdint>
#include <memory>

#include "core/storage.h"

namespace tapedeck {

/// T::reset must bring an object into its default-constructed state; release() calls it.
template <class T> class EntryPool {
 public:
  EntryPool() = default;
  ~EntryPool() { clear(); }
  EntryPool(const EntryPool&) = delete;
  EntryPool& operator=(const EntryPool&) = delete;

  T& operator[](std::int32_t i) {
    const Position p = position(i);
    return chunks_[p.chunk].get()[p.index];
  }
  const T& operator[](std::int32_t i) const { return const_cast<EntryPool&>(*this)[i]; }

  std::int32_t acquire() {
    if (!free_.empty()) {
      const std::int32_t i = free_.back();
      free_.pop_back();
      return i;
    }
    const Position p = position(end_);
    if (p.chunk == chunks_.size()) {
      chunks_.reserve(p.chunk + 1);
      free_.reserve(kFirst << (p.chunk + 1));   // so that releasing never allocates
      chunks_.emplace_back(CachedAllocator<T>().allocate(kFirst << p.chunk));
    }
    new (chunks_[p.chunk].get() + p.index) T;
    return end_++;
  }
  void release(std::int32_t i) noexcept {
    (*this)[i].reset();
    free_.push_back(i);
  }
  /// One more than the largest index acquired since construction or clear().
  std::int32_t end() const { return end_; }
  std::size_t size() const { return static_cast<std::size_t>(end_) - free_.size(); }

  void clear() noexcept {
    for (std::int32_t i = 0; i < end_; ++i)
      (*this)[i].~T();
    end_ = 0;
    free_.clear();
    chunks_.clear();
  }

 private:
  static constexpr std::size_t kFirst = 32;   // each chunk has twice as many as the one before
  struct Position {
    std::size_t chunk, index;
  };
  static Position position(std::int32_t i) {
    const auto n = static_cast<std::uint32_t>(i) + kFirst;
    const auto chunk = static_cast<std::size_t>(std::bit_width(n)) - std::bit_width(kFirst);
    return {chunk, n - (kFirst << chunk)};
  }
  struct Free {
    void operator()(T* p) const { give_memory(p); }
  };

  std::vector<std::unique_ptr<T, Free>> chunks_;
  CachedVector<std::int32_t> free_;
  std::int32_t end_ = 0;
};

}   // namespace tapedeck
