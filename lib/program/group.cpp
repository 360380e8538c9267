// In: the instructions of a group, memory. Out: its results, block by block.
#include "program/group.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/parallel.h"
#include "kernels/elementwise/row.h"
#include "kernels/elementwise/vjp.h"
#include "kernels/reduce/fold_axes.h"
#include "program/arithmetic.h"

namespace tapedeck::program {
namespace {

using kernels::Batch, kernels::kElementwise, kernels::kFoldBlock, kernels::kWidth, kernels::MapLoop,
    kernels::Put, kernels::Stream, kernels::VjpLoop, kernels::VjpRow;
using Kind = GroupInstruction::Kind;

constexpr std::int64_t kLine = 64, kVectors = 8;   // of a block
constexpr std::int64_t kBlockBytes = kVectors * static_cast<std::int64_t>(sizeof(Batch<float>));

constexpr std::int64_t lines(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
constexpr std::int64_t pieces_of(std::int64_t n, std::int64_t piece) { return (n + piece - 1) / piece; }

// Elements that one part of a sum adds up, and how many elements a part is.
std::int64_t part_of(const GroupCode::Sum& s) {
  return s.order == GroupCode::Order::full   ? kFoldBlock
         : s.order == GroupCode::Order::pull ? kernels::kSumPiece
                                             : s.rows.width * s.rows.rows_of_band;
}

/// A sum in progress, in the order of kernels::fold_block, of a vjp's loop, or of rows.
template <class T> struct alignas(64) Partial {
  Batch<T> s[4], total;
  T* part;               // the part that is added up now
  std::int64_t at;       // how many of its elements are added
  std::int64_t left;     // elements from its first on
  std::int64_t column;   // of a row, the next
};

// Adds the elements [begin, end) of a part of n to a full sum, and ends it with the last. `begin` is a
// multiple of four vectors.
template <class T>
void fold(Partial<T>& p, const T* x, std::int64_t begin, std::int64_t end, std::int64_t n, T& part) {
  constexpr std::int64_t w = kWidth<T>, step = 4 * w, chunk = 256 * w;
  const Batch<T> none(T(0));
  if (begin == 0) std::fill_n(p.s, 4, none), p.total = none;
  std::int64_t i = begin;
  const auto close = [&] {
    p.total += (p.s[0] + p.s[1]) + (p.s[2] + p.s[3]);
    std::fill_n(p.s, 4, none);
  };
  for (; i + step <= end; i += step) {
    for (int k = 0; k < 4; ++k)
      p.s[k] += Batch<T>::load_unaligned(x + (i - begin) + k * w);
    if ((i + step) % chunk == 0) close();
  }
  if (end < n) return;
  if (i % chunk != 0) close();
  for (; i + w <= n; i += w)
    p.total += Batch<T>::load_unaligned(x + (i - begin));
  part = n < w ? T(0) : kernels::fold_lanes<kernels::Sum>(p.total);
  for (; i < n; ++i)
    part += x[i - begin];
}

// The same for a sum of a vjp's loop.
template <class T>
void gather(Partial<T>& p, const T* x, std::int64_t begin, std::int64_t end, std::int64_t n, T& part) {
  if (begin == 0) p.total = Batch<T>(T(0));
  const std::int64_t main = std::min(end, kernels::whole<T>(n));
  std::int64_t i = begin;
  for (; i < main; i += kWidth<T>)
    p.total += Batch<T>::load_unaligned(x + (i - begin));
  if (end < n) return;
  part = T(0);
  put_sum(Put::sum, &part, p.total);
  for (; i < n; ++i)
    part += x[i - begin];
}

// Adds the elements [begin, end) of a band of rows.
template <class T>
void add_rows(Partial<T>& p, const T* x, std::int64_t begin, std::int64_t end, std::int64_t width) {
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t n = std::min(width - p.column, end - i);
    T* __restrict y = p.part + p.column;
    if (i < width)
      for (std::int64_t j = 0; j < n; ++j)
        y[j] = T(0) + x[j];
    else
      for (std::int64_t j = 0; j < n; ++j)
        y[j] += x[j];
    x += n, i += n, p.column += n;
    if (p.column == width) p.column = 0;
  }
}

/// The element of a view that comes next.
struct Cursor {
  std::int64_t offset, index[2 * Shape::kMaxRank];

  Cursor(const kernels::StridedView& view, std::int64_t position) : offset(view.offset()) {
    for (std::size_t d = view.ndim(); d-- > 0; position /= view[d].extent) {
      index[d] = position % view[d].extent;
      offset += index[d] * view[d].stride;
    }
  }
  /// How many of the next n lie along the inner axis.
  std::int64_t run(const kernels::StridedView& view, std::int64_t n) const {
    return view.ndim() ? std::min(n, view[view.ndim() - 1].extent - index[view.ndim() - 1]) : n;
  }
  void skip(const kernels::StridedView& view, std::int64_t n) {
    for (std::size_t d = view.ndim(); d-- > 0; n = 1) {
      index[d] += n;
      offset += n * view[d].stride;
      if (index[d] < view[d].extent) return;
      offset -= index[d] * view[d].stride;
      index[d] = 0;
    }
  }
};
template <class T> void fetch(const kernels::StridedView& view, Cursor& c, const T* x, T* y, std::int64_t n) {
  const std::int64_t step = view.ndim() ? view[view.ndim() - 1].stride : 0;
  while (n > 0) {
    const std::int64_t run = c.run(view, n);
    const T* from = x + c.offset;
    if (step == 1)
      std::memcpy(y, from, static_cast<std::size_t>(run) * sizeof(T));
    else if (step == 0)
      std::fill_n(y, run, *from);
    else
      for (std::int64_t i = 0; i < run; ++i)
        y[i] = from[i * step];
    c.skip(view, run);
    y += run, n -= run;
  }
}

}   // namespace

/// One call of run. Scratch holds, for each piece, the table, registers, single elements, sums in progress
/// and cursors; then the sums of all parts.
template <class T> struct Group::Run {
  static constexpr std::int64_t kBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kGroup = kernels::kGroup<T>;

  const Group& g;
  std::byte* const* memory;
  std::byte* scratch;
  const std::int64_t n = g.code_.pass.n;

  static std::int64_t bytes_of_piece(const GroupCode& c) {
    return lines(c.size() * static_cast<std::int64_t>(sizeof(T*))) + c.registers * kBlockBytes +
           static_cast<std::int64_t>(c.singles.size()) * kLine + sums_and_cursors(c);
  }
  static std::int64_t sums_and_cursors(const GroupCode& c) {
    return static_cast<std::int64_t>(c.sums.size() * sizeof(Partial<T>)) +
           lines(static_cast<std::int64_t>(c.views.size() * sizeof(Cursor)));
  }
  static std::int64_t bytes_of_parts(const GroupCode& c) {
    std::int64_t bytes = 0;
    for (const GroupCode::Sum& s : c.sums)
      bytes += pieces_of(c.pass.n, part_of(s)) * s.rows.width * static_cast<std::int64_t>(sizeof(T));
    return bytes;
  }

  void run() const {
    parallel_for(n, g.piece_, [&](std::int64_t begin, std::int64_t end) { run_piece(begin, end); });
    for (std::size_t s = 0; s < g.code_.sums.size(); ++s)
      finish(g.code_.sums[s], parts(s));
  }

 private:
  T* element(const Elements& e) const {
    return reinterpret_cast<T*>(memory[static_cast<std::size_t>(e.value)]) + e.first;
  }
  bool* bools_of(const Elements& e) const {
    return reinterpret_cast<bool*>(memory[static_cast<std::size_t>(e.value)]) + e.first;
  }
  T* parts(std::size_t sum) const {
    auto* p = reinterpret_cast<T*>(scratch + pieces_of(n, g.piece_) * g.piece_bytes_);
    for (std::size_t s = 0; s < sum; ++s)
      p += pieces_of(n, part_of(g.code_.sums[s])) * g.code_.sums[s].rows.width;
    return p;
  }

  void run_piece(std::int64_t begin, std::int64_t end) const {
    const GroupCode& c = g.code_;
    std::byte* const area = scratch + begin / g.piece_ * g.piece_bytes_;
    T** const table = reinterpret_cast<T**>(area);
    T** const streams = fill(table, area, begin);
    T** const bytes = streams + c.streams.size();
    auto* const sums = reinterpret_cast<Partial<T>*>(area + g.piece_bytes_ - sums_and_cursors(c));
    auto* const cursors = reinterpret_cast<Cursor*>(sums + c.sums.size());
    for (std::size_t s = 0; s < c.sums.size(); ++s)
      new (sums + s) Partial<T>(beginning(s, begin));
    for (std::size_t v = 0; v < c.views.size(); ++v)
      new (cursors + v) Cursor(c.views[v], begin);
    for (std::int64_t at = begin; at < end; at += kBlock) {
      const std::int64_t length = std::min(kBlock, end - at);
      run_block(table, {sums, cursors}, length);
      for (std::size_t s = 0; s < c.streams.size(); ++s)
        streams[s] += kBlock;
      for (std::size_t b = 0; b < c.bytes.size(); ++b)
        bytes[b] = reinterpret_cast<T*>(bools(bytes[b]) + kBlock);
    }
  }
  // A piece begins where a part of each sum does.
  Partial<T> beginning(std::size_t sum, std::int64_t begin) const {
    const GroupCode::Sum& s = g.code_.sums[sum];
    Partial<T> p;
    p.part = parts(sum) + begin / part_of(s) * s.rows.width;
    p.at = 0, p.left = n - begin, p.column = 0;
    return p;
  }
  static bool* bools(T* p) { return reinterpret_cast<bool*>(p); }

  // What goes on from block to block.
  struct Progress {
    Partial<T>* sums;
    Cursor* cursors;
  };

  void run_block(T* const* table, Progress progress, std::int64_t length) const {
    switch (kernels::padded<T>(length) / kWidth<T>) {
      case 1:
        return run_held<1>(table, progress, length);
      case 2:
        return run_held<2>(table, progress, length);
      case 4:
        return run_held<4>(table, progress, length);
      case kVectors:
        return run_held<kVectors>(table, progress, length);
      default:
        for (const GroupInstruction& i : g.code_.instructions)
          step(i, table, progress, length);
    }
  }
  template <std::size_t V> void run_held(T* const* table, Progress progress, std::int64_t length) const {
    const GroupInstruction *i = g.code_.instructions.data(), *end = i + g.code_.instructions.size();
    for (; (i = HeldBlock<T, V>::run(i, end, g.code_.entries.data(), table)) != end; ++i)
      step(*i, table, progress, length);
  }

  // Returns where the streams begin.
  T** fill(T** table, std::byte* area, std::int64_t begin) const {
    static constexpr T kZeros[kGroup] = {};
    const GroupCode& c = g.code_;
    auto* free = reinterpret_cast<T*>(area + lines(c.size() * static_cast<std::int64_t>(sizeof(T*))));
    *table++ = const_cast<T*>(kZeros);
    for (std::uint32_t r = 0; r < c.registers; ++r, free += kBlock)
      *table++ = free;
    for (std::size_t s = 0; s < c.singles.size(); ++s, free += kGroup) {
      const Elements& e = c.singles[s];
      std::fill_n(free, kGroup, c.single_bools[s] ? static_cast<T>(*bools_of(e)) : *element(e));
      *table++ = free;
    }
    T** const streams = table;
    for (const Elements& e : c.streams)
      *table++ = element(e) + begin;
    for (const Elements& e : c.bytes)
      *table++ = reinterpret_cast<T*>(bools_of(e) + begin);
    for (const Elements& e : c.viewed)
      *table++ = element(e);
    return streams;
  }

  void step(const GroupInstruction& i, T* const* table, Progress progress, std::int64_t length) const {
    const Entry* entry = &g.code_.entries[i.first];
    const std::int64_t padded = kernels::padded<T>(length);
    T* const x = table[entry[0]];
    const auto y = [&] { return table[entry[1]]; };
    switch (i.kind) {
      case Kind::map:
        return map(i, entry, table, padded);
      case Kind::pull:
        return pull(i, entry, table, padded);
      case Kind::copy:
        if (x != y()) std::memcpy(y(), x, static_cast<std::size_t>(length) * sizeof(T));
        return;
      case Kind::fetch:
        return fetch(g.code_.views[i.at], progress.cursors[i.at], x, y(), length);
      case Kind::widen:
        std::copy_n(bools(x), length, y());
        return;
      case Kind::narrow:
        std::transform(x, x + length, bools(y()), [](T v) { return v != 0; });
        return;
      case Kind::sum:
        return add(g.code_.sums[i.at], x, progress.sums[i.at], length);
    }
  }
  static Stream<T> operand(const GroupInstruction& i, int k, const Entry* entry, T* const* table) {
    return {table[entry[k]], -static_cast<std::int64_t>(i.moves >> k & 1)};
  }
  static void map(const GroupInstruction& i, const Entry* entry, T* const* table, std::int64_t length) {
    Stream<T> x[kernels::kMaxOperands];
    for (int k = 0; k < i.operands; ++k)
      x[k] = operand(i, k, entry, table);
    reinterpret_cast<MapLoop<T>>(i.loop)(table[entry[i.operands]], x, length);
  }
  static void pull(const GroupInstruction& i, const Entry* entry, T* const* table, std::int64_t length) {
    VjpRow<T> row;
    for (int k = 0; k < i.operands; ++k)
      row.x[k] = operand(i, k, entry, table);
    for (int k = 0; k < i.operands - 2; ++k)
      row.out[k] = table[entry[i.operands + k]];
    std::copy(i.put, i.put + kernels::kFusedInputs, row.put);
    row.n = length;
    reinterpret_cast<VjpLoop<T>>(i.loop)(row);
  }
  // Adds a block to a sum.
  static void add(const GroupCode::Sum& s, const T* x, Partial<T>& p, std::int64_t length) {
    for (const std::int64_t size = part_of(s); length > 0;) {
      const std::int64_t whole = std::min(size, p.left), end = std::min(whole, p.at + length);
      if (s.order == GroupCode::Order::full)
        fold(p, x, p.at, end, whole, *p.part);
      else if (s.order == GroupCode::Order::pull)
        gather(p, x, p.at, end, whole, *p.part);
      else
        add_rows(p, x, p.at, end, s.rows.width);
      x += end - p.at, length -= end - p.at, p.at = end;
      if (end == whole) p.part += s.rows.width, p.left -= whole, p.at = 0;
    }
  }

  void finish(const GroupCode::Sum& s, const T* parts) const {
    if (s.to == kNoValue) return;
    const std::int64_t count = pieces_of(n, part_of(s));
    T* y = element({s.to, 0});
    if (s.order == GroupCode::Order::rows) {
      std::copy_n(parts, s.rows.width, y);
      for (std::int64_t k = s.rows.width; k < count * s.rows.width; ++k)
        y[k % s.rows.width] += parts[k];
    } else if (s.order == GroupCode::Order::pull) {
      *y = kernels::sum_pairwise(parts, count);
    } else {
      *y = count == 1 ? parts[0] : kernels::fold_row<kernels::Sum>(parts, count);
      if (s.mean) *y /= static_cast<T>(n);
    }
  }
};

// A multiple of elements at which pieces may be cut, so that no part of a sum is; n where there is none.
std::int64_t multiple_of(const GroupCode& code) {
  const std::int64_t n = code.pass.n;
  std::int64_t all = kLine;
  for (const GroupCode::Sum& s : code.sums) {
    const std::int64_t part = part_of(s), times = all / std::gcd(all, part);
    if (part >= n || times > n / part) return n;
    all = times * part;
  }
  return all;
}

Group::Group(const Program& p, const ProgramStep& step, const std::vector<bool>& kept)
    : code_(make_group_code(p, step, kept)) {
  const std::int64_t n = code_.pass.n;
  const std::int64_t multiple = multiple_of(code_);
  piece_ = n < kElementwise.least ? n : pieces_of(kElementwise.piece_of(n), multiple) * multiple;
  const bool f32 = code_.pass.dtype == DType::f32;
  piece_bytes_ = f32 ? Run<float>::bytes_of_piece(code_) : Run<double>::bytes_of_piece(code_);
  scratch_bytes_ = pieces_of(n, piece_) * piece_bytes_ +
                   lines(f32 ? Run<float>::bytes_of_parts(code_) : Run<double>::bytes_of_parts(code_));
}

void Group::run(std::byte* const* memory, std::byte* scratch) const {
  if (code_.pass.dtype == DType::f32)
    Run<float>{*this, memory, scratch}.run();
  else
    Run<double>{*this, memory, scratch}.run();
}

}   // namespace tapedeck::program
