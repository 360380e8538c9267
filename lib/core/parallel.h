// parallel_for: all multithreading of the library goes through it.
#pragma once
#include <cstdint>

namespace tapedeck {

/// How work is divided: into pieces of a multiple of `piece`, which should be ten microseconds of work or
/// more. A total of less than `least`, about forty microseconds, is not worth waking threads for.
struct Cut {
  std::int64_t piece, least;
  static constexpr std::int64_t kMostPieces = 128;

  /// The piece size for n elements; it grows with n.
  std::int64_t piece_of(std::int64_t n) const {
    return n < least ? n : (n / kMostPieces / piece + 1) * piece;
  }
};
/// The cut for items of `size` elements each.
inline Cut cut_of(const Cut& elements, std::int64_t size) {
  const auto things = [size = size > 1 ? size : 1](std::int64_t n) { return n > size ? n / size : 1; };
  return {things(elements.piece), things(elements.least)};
}

namespace detail {
void run_parallel(std::int64_t pieces, void (*run)(const void* f, std::int64_t piece), const void* f);
}

/// Calls f(begin, end) for pieces of [0, n) of `piece` each (the last may be shorter), in parallel on as many
/// threads as set_num_threads allows. Pieces depend on n and piece alone, so results do not depend on the
/// number of threads. Nested in another parallel_for it is a plain loop.
template <class F> void parallel_for(std::int64_t n, std::int64_t piece, const F& f) {
  if (n <= piece) {
    if (n > 0) f(std::int64_t{0}, n);
    return;
  }
  struct Work {
    const F& f;
    std::int64_t n, piece;
  } work{f, n, piece};
  detail::run_parallel((n + piece - 1) / piece,
                       [](const void* p, std::int64_t i) {
                         const Work& w = *static_cast<const Work*>(p);
                         const std::int64_t begin = i * w.piece;
                         w.f(begin, begin + w.piece < w.n ? begin + w.piece : w.n);
                       },
                       &work);
}
template <class F> void parallel_for(std::int64_t n, const Cut& cut, const F& f) {
  parallel_for(n, cut.piece_of(n), f);
}

}   // namespace tapedeck
