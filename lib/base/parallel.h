// parallel_for: the one way in which the library uses several threads.
#pragma once
#include <cstdint>

namespace tapedeck {

namespace detail {
void run_parallel(std::int64_t pieces, void (*run)(const void* f, std::int64_t piece), const void* f);
}

/// Calls f(begin, end) for pieces of [0, n) of `grain` each (the last may be shorter), at once on as many threads as
/// set_num_threads allows. The cuts depend on n and grain alone, so results do not depend on the number of threads.
template <class F> void parallel_for(std::int64_t n, std::int64_t grain, const F& f) {
  if (n <= grain) {
    if (n > 0) f(std::int64_t{0}, n);
    return;
  }
  struct Work { const F& f; std::int64_t n, grain; } work{f, n, grain};
  detail::run_parallel((n + grain - 1) / grain, [](const void* p, std::int64_t piece) {
    const Work& w = *static_cast<const Work*>(p);
    const std::int64_t begin = piece * w.grain;
    w.f(begin, begin + w.grain < w.n ? begin + w.grain : w.n);
  }, &work);
}

}  // namespace tapedeck
