// Scratch memory for kernels, from the thread's buffer cache, and partial sums that several tasks accumulate.
#pragma once
#include <memory>

#include "core/parallel.h"
#include "core/storage.h"

namespace tapedeck::kernels {

struct ReturnToCache {
  void operator()(void* p) const noexcept { give_memory(p); }
};
template <class T> using Scratch = std::unique_ptr<T[], ReturnToCache>;
template <class T> Scratch<T> scratch_for(std::int64_t n) {
  return Scratch<T>(static_cast<T*>(take_memory(n * static_cast<std::int64_t>(sizeof(T)))));
}

/// `count` partial sums of n elements each: the first is the result itself, the others are in scratch memory.
/// add_up() adds them to the first in a fixed order.
template <class T> class PartialSums {
 public:
  PartialSums(std::int64_t count, std::int64_t n, T* sum)
      : count_(count), n_(n), sum_(sum), others_(count > 1 ? scratch_for<T>((count - 1) * n) : nullptr) {}
  T* operator[](std::int64_t s) const { return s ? others_.get() + (s - 1) * n_ : sum_; }
  void add_up() const {
    constexpr std::int64_t grain = 1 << 16;   // least elements per thread
    parallel_for(count_ > 1 ? n_ : 0, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t s = 1; s < count_; ++s)
        add((*this)[s], begin, end);
    });
  }

 private:
  void add(const T* __restrict partial, std::int64_t begin, std::int64_t end) const {
    T* __restrict sum = sum_;
    for (std::int64_t i = begin; i < end; ++i)
      sum[i] += partial[i];
  }

  std::int64_t count_, n_;
  T* sum_;
  Scratch<T> others_;
};

/// Limits on the number of partial sums and on their memory, for sums over many images.
constexpr std::int64_t kMaxPartialSums = 16, kMaxPartialSumBytes = 1 << 26;

}   // namespace tapedeck::kernels
