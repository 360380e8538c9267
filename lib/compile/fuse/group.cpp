// In: the nodes of a group. Out: its instructions, and the layout of its scratch memory.
#include "compile/fuse/group.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "compile/fuse/lower.h"
#include "compile/fuse/partial_sum.h"
#include "core/parallel.h"
#include "tapedeck/threads.h"

namespace tapedeck::compiled {
namespace {

using kernels::kElementwise;

constexpr std::int64_t pieces_of(std::int64_t n, std::int64_t piece) { return (n + piece - 1) / piece; }

// The number of elements at whose multiples pieces may be cut without cutting a part of a sum; n if there is
// none below n.
std::int64_t multiple_of(const GroupCode& code) {
  const std::int64_t n = code.pass.n;
  std::int64_t all = 64;   // elements of at least a byte fill lines of the cache
  for (const GroupCode::Sum& s : code.sums) {
    const std::int64_t part = part_of(s), times = all / std::gcd(all, part);
    if (part >= n || times > n / part) return n;
    all = times * part;
  }
  return all;
}
// The operations of a group that take as long as one elementwise op, which waits for memory.
constexpr std::int64_t kOneOp = 16;
std::int64_t piece_of(const GroupCode& code) {
  const std::int64_t n = code.pass.n, multiple = multiple_of(code);
  const Cut cut = cut_of(kElementwise, code.operations / kOneOp);
  return n < cut.least ? n : pieces_of(cut.piece_of(n), multiple) * multiple;
}

// As many areas as threads may want at a time, now or if more are allowed later.
std::int64_t areas_for(std::int64_t pieces) {
  if (pieces == 1) return 1;
  const auto threads = std::max(static_cast<std::int64_t>(std::thread::hardware_concurrency()),
                                static_cast<std::int64_t>(num_threads()));
  return std::min({pieces, threads, GroupLayout::most_areas});
}

template <class U> constexpr std::int64_t bytes_of = sizeof(U);

// As many elements as let the registers of the group fill half of the L1 cache. One instruction needs no
// registers, and runs on a piece at once.
template <class T> std::int64_t block_of(const GroupCode& c, std::int64_t piece) {
  const std::int64_t all = kernels::padded<T>(std::min(piece, c.pass.n));
  if (c.instructions.size() == 1) return all;
  constexpr std::int64_t half_of_cache = 1 << 14, most = 2048;   // bytes
  constexpr std::int64_t step = 2 * PartialSum<T>::step;
  const std::int64_t bytes = std::min(most, half_of_cache / (c.registers + 1));
  return std::min(std::max(bytes / bytes_of<T> / step, std::int64_t(1)) * step, all);
}

template <class T> GroupLayout layout_of(const GroupCode& c) {
  GroupLayout l;
  l.piece = piece_of(c);
  l.block = block_of<T>(c, l.piece);
  // Registers whose distance is a large power of two share sets of the cache.
  l.stride = l.block + kernels::kGroup<T>;
  l.to = c.size() * bytes_of<const std::byte*>;
  l.registers = lines(l.to + c.written() * bytes_of<std::byte*>);
  l.sums = l.registers + c.registers * lines(l.stride * bytes_of<T>) +
           static_cast<std::int64_t>(c.singles.size()) * kLine;
  l.cursors = l.sums + static_cast<std::int64_t>(c.sums.size()) * bytes_of<PartialSum<T>>;
  l.area = l.cursors + lines(static_cast<std::int64_t>(c.views.size()) * bytes_of<Cursor>);
  const std::int64_t length = std::min(l.piece, c.pass.n);
  std::int64_t room = length / 2;   // elements for laid-out rows; further rows are fetched run by run
  for (const kernels::StridedView& view : c.views) {
    RepeatedRow row = RepeatedRow::of(view, length, l.block);
    if (row.elements > room) row = {};
    room -= row.elements;
    l.rows.push_back({row, l.area});
    l.area += lines(row.elements * bytes_of<T>);
  }
  l.areas = areas_for(pieces_of(c.pass.n, l.piece));
  std::int64_t end = l.areas * l.area;
  for (const GroupCode::Sum& s : c.sums) {
    l.parts.push_back({part_of(s), pieces_of(c.pass.n, part_of(s)), end});
    end += l.parts.back().count * s.rows.width * bytes_of<T>;
  }
  l.all = lines(end);
  return l;
}

}   // namespace

Group::Group(const Program& p, const Passes& passes, const Step& step, const IdVector<ValueId, bool>& kept)
    : Group(make_group_code(p, passes, step, kept), p) {}
Group::Group(GroupCode code, const Program& p)
    : code_(std::move(code)),
      machine_(makes_machine_code() ? with_machine_code(p, code_) : std::nullopt),
      layout_(make_layout()) {}
Group::Group(GroupCode code, std::optional<GroupCode> machine)
    : code_(std::move(code)), machine_(std::move(machine)), layout_(make_layout()) {}

GroupLayout Group::make_layout() const {
  return code_.pass.dtype == DType::f32 ? layout_of<float>(running()) : layout_of<double>(running());
}

}   // namespace tapedeck::compiled
