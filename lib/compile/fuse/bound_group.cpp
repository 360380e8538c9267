// In: the instructions of a group, and memory. Out: the results of the group, computed block by block.
#include "compile/fuse/bound_group.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <thread>

#include "compile/fuse/partial_sum.h"
#include "core/parallel.h"

namespace tapedeck::compiled {
namespace {

using kernels::MapLoop, kernels::Stream, kernels::VjpLoop, kernels::VjpRow;
using Kind = GroupInstruction::Kind;

/// The areas of scratch memory, of which a thread takes one for each piece that it runs. If there are more
/// threads than areas, some wait.
class Areas {
 public:
  explicit Areas(std::int64_t count) : free_(~std::uint64_t(0) >> (GroupLayout::most_areas - count)) {}
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
struct Tables {
  const std::byte** from;
  std::byte* const* to;
};
template <class T> const T* operand(const Tables& t, TableIndex i) {
  return reinterpret_cast<const T*>(t.from[i]);
}
template <class T> T* result(const Tables& t, TableIndex i) { return reinterpret_cast<T*>(t.to[i]); }

/// What the instructions of a piece change.
template <class T> struct State {
  const GroupCode& code;
  PartialSum<T>* sums = nullptr;
  Cursor* cursors = nullptr;
  std::int64_t length = 0;   // of the block, in elements
};

template <class T>
void run_map(const GroupCall& c, const TableIndex* entry, const Tables& t, std::int64_t n) {
  Stream<T> x[kernels::kMaxOperands];
  for (int k = 0; k < c.operands; ++k)
    x[k] = {operand<T>(t, entry[k]), -static_cast<std::int64_t>(c.moves >> k & 1)};
  reinterpret_cast<MapLoop<T>>(c.loop)(result<T>(t, entry[c.operands]), x, n);
}
template <class T>
void run_vjp(const GroupCall& c, const TableIndex* entry, const Tables& t, std::int64_t n) {
  VjpRow<T> row;
  for (int k = 0; k < c.operands; ++k)
    row.x[k] = {operand<T>(t, entry[k]), -static_cast<std::int64_t>(c.moves >> k & 1)};
  for (int k = 0; k < c.operands - 2; ++k)
    row.out[k] = c.put[k] == kernels::Put::nothing ? nullptr : result<T>(t, entry[c.operands + k]);
  std::copy(c.put, c.put + kernels::kFusedInputs, row.put);
  row.n = n;
  reinterpret_cast<VjpLoop<T>>(c.loop)(row);
}

// Lets the register's entry point to the elements if they lie together, and copies them otherwise.
template <class T> void fetch(const GroupInstruction& i, const Tables& t, State<T>& state) {
  const std::int64_t n = state.length;
  Cursor& cursor = state.cursors[i.b];
  const T* const x = cursor.source(operand<T>(t, i.a));
  T* const y = result<T>(t, i.y);
  const bool lies_together = cursor.step() == 1 && cursor.left() >= n && n % kernels::kGroup<T> == 0;
  if (i.y < state.code.registers) {
    t.from[1 + i.y] = reinterpret_cast<const std::byte*>(lies_together ? cursor.take(x, n) : y);
    if (lies_together) return;
  }
  cursor.fetch(x, y, n);
}

template <class T> void run_instruction(const GroupInstruction& i, const Tables& t, State<T>& state) {
  const std::int64_t n = state.length;
  switch (i.kind) {
    case Kind::call: {
      const GroupCall& c = state.code.calls[i.b];
      return (c.is_vjp ? run_vjp<T> : run_map<T>)(c, &state.code.entries[c.first], t, kernels::padded<T>(n));
    }
    case Kind::machine: {
      // The last of several blocks may be shorter than a vector, but its code computes several at a time.
      constexpr std::int64_t size = sizeof(T);
      const bool is_block = n < state.code.pass.n;
      return state.code.machine[i.b]->run(
          reinterpret_cast<const void* const*>(t.from), reinterpret_cast<void* const*>(t.to),
          is_block ? lines(n * size) : state.code.vectors.length_for(n * size));
    }
    case Kind::copy: {
      const T* const x = operand<T>(t, i.a);
      if (T* const y = result<T>(t, i.y); i.b)
        std::fill_n(y, n, *x);
      else if (x != y)
        std::memcpy(y, x, static_cast<std::size_t>(n) * sizeof(T));
      return;
    }
    case Kind::widen:
      std::copy_n(operand<bool>(t, i.a), n, result<T>(t, i.y));
      return;
    case Kind::narrow: {
      const T* const x = operand<T>(t, i.a);
      std::transform(x, x + n, result<bool>(t, i.y), [](T v) { return v != 0; });
      return;
    }
    case Kind::fetch:
      return fetch(i, t, state);
    case Kind::sum:
      return state.sums[i.b].add(operand<T>(t, i.a), n);
  }
}

}   // namespace

BoundGroup::BoundGroup(const Group& group, Writable scratch)
    : group_(&group), scratch_(scratch.get()), from_(group.running().size()), to_(group.running().written()) {
  alignas(kLine) static constexpr std::byte zeros[kLine] = {};
  const GroupCode& c = group.running();
  const GroupLayout& l = group.layout();
  is_single_block_ = c.views.empty() && c.sums.empty() && c.pass.n <= l.block;
  singles_.resize(c.singles.size());
  sums_.resize(c.sums.size());
  from_[0] = zeros;
  std::byte* free = area(0) + l.registers;
  const std::int64_t stride = l.stride * size_of(c.pass.dtype);
  for (std::uint32_t r = 0; r < c.registers; ++r, free += stride)
    from_[1 + r] = to_[r] = free;
  for (std::size_t s = 0; s < c.singles.size(); ++s, free += kLine)
    from_[c.first_single() + s] = free;
}

void BoundGroup::run() const {
  if (group_->running().pass.dtype == DType::f32)
    run<float>();
  else
    run<double>();
}

template <class T> void BoundGroup::run() const {
  const GroupLayout& l = group_->layout();
  const GroupCode& c = group_->running();
  if (is_single_block_) return run_single_block<T>();
  if (const std::int64_t n = c.pass.n; n <= l.piece) {
    run_piece<T>(0, n, 0);
  } else {
    Areas areas(l.areas);
    parallel_for(n, l.piece, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t taken = areas.take();
      run_piece<T>(begin, end, taken);
      areas.give_back(taken);
    });
  }
  for (std::size_t s = 0; s < c.sums.size(); ++s)
    finish<T>(s);
}

template <class T> void BoundGroup::run_single_block() const {
  const GroupCode& c = group_->running();
  fill_singles<T>(scratch_);
  State<T> state{.code = c, .length = c.pass.n};
  const Tables tables = {const_cast<const std::byte**>(from_.data()), to_.data()};   // no fetch changes them
  for (const GroupInstruction& i : c.instructions)
    run_instruction(i, tables, state);
}

template <class T>
void BoundGroup::run_piece(std::int64_t begin, std::int64_t end, std::int64_t number) const {
  const GroupCode& c = group_->running();
  const GroupLayout& l = group_->layout();
  std::byte* const own = area(number);
  auto* const sums = reinterpret_cast<PartialSum<T>*>(own + l.sums);
  for (std::size_t s = 0; s < c.sums.size(); ++s) {   // pieces begin at multiples of the parts of all sums
    const GroupLayout::Parts& p = l.parts[s];
    T* const part = reinterpret_cast<T*>(scratch_ + p.offset) +
                    (begin == 0 ? 0 : begin / p.elements * c.sums[s].rows.width);
    new (sums + s) PartialSum<T>(c.sums[s], part, c.pass.n - begin);
  }
  auto* const cursors = reinterpret_cast<Cursor*>(own + l.cursors);
  for (std::size_t v = 0; v < c.views.size(); ++v)
    new (cursors + v) Cursor(c.views[v], begin, l.rows[v].row, own + l.rows[v].offset);

  auto** const from = reinterpret_cast<const std::byte**>(own);
  auto** const to = reinterpret_cast<std::byte**>(own + l.to);
  std::copy(from_.begin(), from_.end(), from);
  std::copy(to_.begin(), to_.end(), to);
  for (TableIndex i = 1; i < c.first_stream(); ++i)   // registers and singles
    from[i] += number * l.area;
  for (TableIndex r = 0; r < c.registers; ++r)
    to[r] += number * l.area;
  fill_singles<T>(own);
  // Pointers to elements, results and bytes are those of the next block.
  const auto advance = [&](std::int64_t n) {
    const std::int64_t bytes = n * static_cast<std::int64_t>(sizeof(T));
    for (TableIndex i = c.first_stream(); i < c.first_viewed(); ++i)
      from[i] += i < c.first_bytes() ? bytes : n;
    for (TableIndex i = c.registers; i < c.written(); ++i)
      to[i] += i < c.registers + c.results.size() ? bytes : n;
  };
  advance(begin);
  State<T> state{c, sums, cursors};
  for (std::int64_t left = end - begin; left > 0; left -= state.length) {
    state.length = std::min(l.block, left);
    for (const GroupInstruction& i : c.instructions)
      run_instruction(i, {from, to}, state);
    if (left > state.length) advance(state.length);
  }
}

// Broadcasts single elements to a line each, in an area.
template <class T> void BoundGroup::fill_singles(std::byte* own) const {
  const GroupCode& c = group_->running();
  if (singles_.empty()) return;
  auto* y = reinterpret_cast<T*>(own + (from_[c.first_single()] - scratch_));
  for (std::size_t s = 0; s < singles_.size(); ++s, y += kernels::kGroup<T>) {
    const std::byte* const x = singles_[s];
    std::fill_n(y, kernels::kGroup<T>,
                c.single_bools[s] ? static_cast<T>(*reinterpret_cast<const bool*>(x))
                                  : *reinterpret_cast<const T*>(x));
  }
}

template <class T> void BoundGroup::finish(std::size_t sum) const {
  const GroupCode::Sum& s = group_->running().sums[sum];
  if (!s.to) return;
  const GroupLayout::Parts& p = group_->layout().parts[sum];
  const T* const parts = reinterpret_cast<const T*>(scratch_ + p.offset);
  T* const y = reinterpret_cast<T*>(sums_[sum]);
  if (s.order == GroupCode::Order::rows) {
    std::copy_n(parts, s.rows.width, y);
    for (std::int64_t k = s.rows.width; k < p.count * s.rows.width; ++k)
      y[k % s.rows.width] += parts[k];
  } else if (s.order == GroupCode::Order::vjp) {
    *y = kernels::sum_pairwise(parts, p.count);
  } else {
    *y = p.count == 1 ? parts[0] : kernels::fold_row<kernels::Sum>(parts, p.count);
    if (s.mean) *y /= static_cast<T>(group_->running().pass.n);
  }
}

}   // namespace tapedeck::compiled
