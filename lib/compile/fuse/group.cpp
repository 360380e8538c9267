// In: the instructions of a group, and memory. Out: the results of the group, computed block by block.
#include "compile/fuse/group.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>
#include <thread>

#include "compile/fuse/lower.h"
#include "compile/fuse/partial_sum.h"
#include "core/parallel.h"
#include "tapedeck/threads.h"

namespace tapedeck::compiled {
namespace {

using kernels::kElementwise, kernels::MapLoop, kernels::Stream, kernels::VjpLoop, kernels::VjpRow;
using Kind = GroupInstruction::Kind;

constexpr std::int64_t kLine = 64;

constexpr std::int64_t lines(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
constexpr std::int64_t pieces_of(std::int64_t n, std::int64_t piece) { return (n + piece - 1) / piece; }

/// The areas of scratch memory, of which a thread takes one for each piece that it runs.
class Areas {
 public:
  static constexpr std::int64_t kMost = 64;
  /// As many as threads may want at a time, now or if more are allowed later. If there are more threads, some
  /// wait.
  static std::int64_t count_for(std::int64_t pieces) {
    if (pieces == 1) return 1;
    const auto threads = std::max(static_cast<std::int64_t>(std::thread::hardware_concurrency()),
                                  static_cast<std::int64_t>(num_threads()));
    return std::min({pieces, threads, kMost});
  }

  explicit Areas(std::int64_t count) : free_(~std::uint64_t(0) >> (kMost - count)) {}
  std::int64_t take() {
    std::uint64_t free = free_.load(std::memory_order_relaxed);
    for (;;) {
      if (free == 0)
        std::this_thread::yield(), free = free_.load(std::memory_order_relaxed);
      else if (free_.compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire))
        return std::countr_zero(free);
    }
  }
  void give_back(std::int64_t area) { free_.fetch_or(std::uint64_t(1) << area, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t> free_;   // a bit for each
};

/// The tables of pointers for reading and for writing.
template <class T> struct Tables {
  const T** from;
  T* const* to;
};

/// The state of one piece of a group.
template <class T> struct State {
  const GroupCode& code;
  PartialSum<T>* sums;
  Cursor* cursors;
  // The entries of the tables that advance from block to block.
  std::span<const T*> elements, bytes;
  std::span<T*> results, bool_results;
  std::int64_t length = 0;   // of the block, in elements

  State(const GroupCode& c, PartialSum<T>* s, Cursor* views) : code(c), sums(s), cursors(views) {}

  /// Advances all pointers that move by n elements, to the next block.
  void advance(std::int64_t n) {
    for (const T*& p : elements)
      p += n;
    for (T*& p : results)
      p += n;
    for (const T*& p : bytes)
      p = reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(p) + n);
    for (T*& p : bool_results)
      p = reinterpret_cast<T*>(reinterpret_cast<std::byte*>(p) + n);
  }
};

template <class T> const bool* bools(const T* p) { return reinterpret_cast<const bool*>(p); }
template <class T> bool* bools(T* p) { return reinterpret_cast<bool*>(p); }

template <class T>
void run_map(const GroupCall& c, const TableIndex* entry, const Tables<T>& t, std::int64_t n) {
  Stream<T> x[kernels::kMaxOperands];
  for (int k = 0; k < c.operands; ++k)
    x[k] = {t.from[entry[k]], -static_cast<std::int64_t>(c.moves >> k & 1)};
  reinterpret_cast<MapLoop<T>>(c.loop)(t.to[entry[c.operands]], x, n);
}
template <class T>
void run_vjp(const GroupCall& c, const TableIndex* entry, const Tables<T>& t, std::int64_t n) {
  VjpRow<T> row;
  for (int k = 0; k < c.operands; ++k)
    row.x[k] = {t.from[entry[k]], -static_cast<std::int64_t>(c.moves >> k & 1)};
  for (int k = 0; k < c.operands - 2; ++k)
    row.out[k] = c.put[k] == kernels::Put::nothing ? nullptr : t.to[entry[c.operands + k]];
  std::copy(c.put, c.put + kernels::kFusedInputs, row.put);
  row.n = n;
  reinterpret_cast<VjpLoop<T>>(c.loop)(row);
}

// Lets the register's entry point to the elements if they lie together, and copies them otherwise.
template <class T> void fetch(const GroupInstruction& i, const Tables<T>& t, State<T>& state) {
  const std::int64_t n = state.length;
  Cursor& cursor = state.cursors[i.b];
  const T* const x = cursor.source(t.from[i.a]);
  T* const y = t.to[i.y];
  const bool lies_together = cursor.step() == 1 && cursor.left() >= n && n % kernels::kGroup<T> == 0;
  if (i.y < state.code.registers) {
    t.from[1 + i.y] = lies_together ? cursor.take(x, n) : y;
    if (lies_together) return;
  }
  cursor.fetch(x, y, n);
}

template <class T> void run_instruction(const GroupInstruction& i, const Tables<T>& t, State<T>& state) {
  const T* const x = t.from[i.a];
  const std::int64_t n = state.length;
  switch (i.kind) {
    case Kind::call: {
      const GroupCall& c = state.code.calls[i.b];
      return (c.is_vjp ? run_vjp<T> : run_map<T>)(c, &state.code.entries[c.first], t, kernels::padded<T>(n));
    }
    case Kind::machine:
      return state.code.machine[i.b]->run(reinterpret_cast<const void* const*>(t.from),
                                          reinterpret_cast<void* const*>(t.to),
                                          kernels::padded<T>(n) * static_cast<std::int64_t>(sizeof(T)));
    case Kind::copy:
      if (T* const y = t.to[i.y]; i.b)
        std::fill_n(y, n, *x);
      else if (x != y)
        std::memcpy(y, x, static_cast<std::size_t>(n) * sizeof(T));
      return;
    case Kind::widen:
      std::copy_n(bools(x), n, t.to[i.y]);
      return;
    case Kind::narrow:
      std::transform(x, x + n, bools(t.to[i.y]), [](T v) { return v != 0; });
      return;
    case Kind::fetch:
      return fetch(i, t, state);
    case Kind::sum:
      return state.sums[i.b].add(x, n);
  }
}

}   // namespace

/// One call of run. Scratch consists of areas, one for each piece that is at work, and of the partial sums of
/// all pieces. An area holds the two tables, the registers, the single elements, the sums in progress and the
/// cursors.
template <class T> struct Group::Run {
  static constexpr std::int64_t kGroup = kernels::kGroup<T>, size = sizeof(T);

  const Group& g;
  const Memory& memory;
  std::byte* scratch;
  const std::int64_t n = g.code_.pass.n;

  // The elements of a block: as many as let the registers of the group fill half of the L1 cache. One
  // instruction needs no registers, and runs on a piece at once.
  static std::int64_t block_of(const GroupCode& c, std::int64_t piece) {
    const std::int64_t all = kernels::padded<T>(std::min(piece, c.pass.n));
    if (c.instructions.size() == 1) return all;
    constexpr std::int64_t half_of_cache = 1 << 14, most = 2048;   // bytes
    constexpr std::int64_t step = 2 * PartialSum<T>::step;
    const std::int64_t bytes = std::min(most, half_of_cache / (c.registers + 1));
    return std::min(std::max(bytes / size / step, std::int64_t(1)) * step, all);
  }
  static Layout layout_of(const GroupCode& c, std::int64_t piece) {
    Layout l;
    l.block = block_of(c, piece);
    // Registers whose distance is a large power of two share sets of the cache.
    l.stride = l.block + kGroup;
    l.to = c.size() * size_of<T*>();
    l.registers = lines(l.to + c.written() * size_of<T*>());
    l.sums = l.registers + c.registers * lines(l.stride * size) +
             static_cast<std::int64_t>(c.singles.size()) * kLine;
    l.cursors = l.sums + static_cast<std::int64_t>(c.sums.size()) * size_of<PartialSum<T>>();
    l.area = l.cursors + lines(static_cast<std::int64_t>(c.views.size()) * size_of<Cursor>());
    const std::int64_t length = std::min(piece, c.pass.n);
    std::int64_t room = length / 2;   // elements for laid-out rows; further rows are fetched run by run
    for (const kernels::StridedView& view : c.views) {
      RepeatedRow row = RepeatedRow::of(view, length, l.block);
      if (row.elements > room) row = {};
      room -= row.elements;
      l.rows.push_back({row, l.area});
      l.area += lines(row.elements * size);
    }
    l.areas = Areas::count_for(pieces_of(c.pass.n, piece));
    std::int64_t end = l.areas * l.area;
    for (const GroupCode::Sum& s : c.sums) {
      l.parts.push_back({part_of(s), pieces_of(c.pass.n, part_of(s)), end});
      end += l.parts.back().count * s.rows.width * size;
    }
    l.all = lines(end);
    return l;
  }

  void run() const {
    if (n <= g.piece_) {
      run_piece(0, n, scratch);
    } else {
      Areas areas(g.layout_.areas);
      parallel_for(n, g.piece_, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t area = areas.take();
        run_piece(begin, end, scratch + area * g.layout_.area);
        areas.give_back(area);
      });
    }
    for (std::size_t s = 0; s < g.running().sums.size(); ++s)
      finish(g.running().sums[s], g.layout_.parts[s]);
  }

 private:
  template <class U> static constexpr std::int64_t size_of() { return sizeof(U); }

  const T* element(const Elements& e) const {
    return reinterpret_cast<const T*>(memory.read[e.of].get()) + e.first;
  }
  const bool* bools_of(const Elements& e) const {
    return reinterpret_cast<const bool*>(memory.read[e.of].get()) + e.first;
  }
  T* result(ValueId v) const { return reinterpret_cast<T*>(memory.write[v].get()); }
  T* first_of(const Parts& p) const { return reinterpret_cast<T*>(scratch + p.offset); }

  void run_piece(std::int64_t begin, std::int64_t end, std::byte* area) const {
    const GroupCode& c = g.running();
    const Layout& layout = g.layout_;
    auto* const sums = reinterpret_cast<PartialSum<T>*>(area + layout.sums);
    for (std::size_t s = 0; s < c.sums.size(); ++s) {   // pieces begin at multiples of the parts of all sums
      const Parts& p = layout.parts[s];
      T* const part = first_of(p) + (begin == 0 ? 0 : begin / p.elements * c.sums[s].rows.width);
      new (sums + s) PartialSum<T>(c.sums[s], part, n - begin);
    }
    auto* const cursors = reinterpret_cast<Cursor*>(area + layout.cursors);
    for (std::size_t v = 0; v < c.views.size(); ++v)
      new (cursors + v) Cursor(c.views[v], begin, layout.rows[v].row, area + layout.rows[v].offset);
    State<T> state{c, sums, cursors};
    const Tables<T> tables = fill(area, begin, state);
    for (std::int64_t left = end - begin; left > 0; left -= state.length) {
      state.length = std::min(layout.block, left);
      for (const GroupInstruction& i : c.instructions)
        run_instruction(i, tables, state);
      if (left > state.length) state.advance(state.length);
    }
  }

  // Fills the tables of a piece, and refers its state to the entries that move from block to block.
  Tables<T> fill(std::byte* area, std::int64_t begin, State<T>& state) const {
    static constexpr T kZeros[kGroup] = {};
    const GroupCode& c = g.running();
    const auto** from = reinterpret_cast<const T**>(area);
    auto** to = reinterpret_cast<T**>(area + g.layout_.to);
    const Tables<T> tables = {from, to};
    auto* free = reinterpret_cast<T*>(area + g.layout_.registers);
    *from++ = kZeros;
    for (std::uint32_t r = 0; r < c.registers; ++r, free += g.layout_.stride)
      *from++ = free, *to++ = free;
    for (std::size_t s = 0; s < c.singles.size(); ++s, free += kGroup) {
      const Elements& e = c.singles[s];
      std::fill_n(free, kGroup, c.single_bools[s] ? static_cast<T>(*bools_of(e)) : *element(e));
      *from++ = free;
    }
    const T** const elements = from;
    for (const Elements& e : c.streams)
      *from++ = element(e) + begin;
    T** const results = to;
    for (const ValueId v : c.results)
      *from++ = *to++ = result(v) + begin;
    const T** const bytes = from;
    for (const Elements& e : c.bytes)
      *from++ = reinterpret_cast<const T*>(bools_of(e) + begin);
    T** const bool_results = to;
    for (const ValueId v : c.bool_results)
      *to++ = reinterpret_cast<T*>(reinterpret_cast<bool*>(memory.write[v].get()) + begin);
    state.elements = {elements, bytes};
    state.bytes = {bytes, from};
    state.results = {results, bool_results};
    state.bool_results = {bool_results, to};
    for (const Elements& e : c.viewed)
      *from++ = element(e);
    return tables;
  }

  void finish(const GroupCode::Sum& s, const Parts& p) const {
    if (!s.to) return;
    const T* const parts = first_of(p);
    T* y = result(s.to);
    if (s.order == GroupCode::Order::rows) {
      std::copy_n(parts, s.rows.width, y);
      for (std::int64_t k = s.rows.width; k < p.count * s.rows.width; ++k)
        y[k % s.rows.width] += parts[k];
    } else if (s.order == GroupCode::Order::vjp) {
      *y = kernels::sum_pairwise(parts, p.count);
    } else {
      *y = p.count == 1 ? parts[0] : kernels::fold_row<kernels::Sum>(parts, p.count);
      if (s.mean) *y /= static_cast<T>(n);
    }
  }
};

// The number of elements at whose multiples pieces may be cut without cutting a part of a sum; n if there is
// none below n.
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

Group::Group(const Program& p, const Passes& passes, const Step& step, const IdVector<ValueId, bool>& kept)
    : Group(make_group_code(p, passes, step, kept), p) {}
Group::Group(GroupCode code, const Program& p) : code_(std::move(code)) {
  if (makes_machine_code()) machine_ = with_machine_code(p, code_);
  lay_out();
}
Group::Group(GroupCode code, std::optional<GroupCode> machine)
    : code_(std::move(code)), machine_(std::move(machine)) {
  lay_out();
}

void Group::lay_out() {
  const std::int64_t n = code_.pass.n;
  const std::int64_t multiple = multiple_of(code_);
  piece_ = n < kElementwise.least ? n : pieces_of(kElementwise.piece_of(n), multiple) * multiple;
  layout_ = code_.pass.dtype == DType::f32 ? Run<float>::layout_of(running(), piece_)
                                           : Run<double>::layout_of(running(), piece_);
}

void Group::run(const Memory& memory, Writable scratch) const {
  if (code_.pass.dtype == DType::f32)
    Run<float>{*this, memory, scratch.get()}.run();
  else
    Run<double>{*this, memory, scratch.get()}.run();
}

}   // namespace tapedeck::compiled
