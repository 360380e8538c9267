// In: the instructions of a group, memory. Out: its results, block by block.
#include "program/group.h"

#include <algorithm>
#include <cstring>

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
constexpr std::int64_t kVjpPiece = 4096;   // elements of a sum of a pull that are added up at once

constexpr std::int64_t lines(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
constexpr std::int64_t pieces_of(std::int64_t n, std::int64_t piece) { return (n + piece - 1) / piece; }
constexpr std::int64_t part_of(const GroupCode::Sum& s) { return s.full ? kFoldBlock : kVjpPiece; }

/// A sum in progress, in the order of kernels::fold_block or of a vjp's loop.
template <class T> struct alignas(64) Partial { Batch<T> s[4], total; };

// Adds the elements [begin, end) of a part of n to a full sum, and ends it with the last. `begin` is a
// multiple of four vectors.
template <class T>
void fold(Partial<T>& p, const T* x, std::int64_t begin, std::int64_t end, std::int64_t n, T& part) {
  constexpr std::int64_t w = kWidth<T>, step = 4 * w, chunk = 256 * w;
  const Batch<T> none(T(0));
  if (begin == 0) p = {{none, none, none, none}, none};
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

template <class T> T sum_pairwise(const T* x, std::int64_t n) {
  if (n <= 8) {
    T s = 0;
    for (std::int64_t i = 0; i < n; ++i)
      s += x[i];
    return s;
  }
  return sum_pairwise(x, n / 2) + sum_pairwise(x + n / 2, n - n / 2);
}

}   // namespace

/// One call of run. Scratch holds, for each piece, the table, registers, single elements and sums in
/// progress; then the sums of all parts.
template <class T> struct Group::Run {
  static constexpr std::int64_t kBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kGroup = kernels::kGroup<T>;

  const Group& g;
  std::byte* const* memory;
  std::byte* scratch;
  const std::int64_t n = g.code_.pass.n;

  static std::int64_t bytes_of_piece(const GroupCode& c) {
    return lines(c.size() * static_cast<std::int64_t>(sizeof(T*))) + c.registers * kBlockBytes +
           static_cast<std::int64_t>(c.singles.size()) * kLine +
           static_cast<std::int64_t>(c.sums.size() * sizeof(Partial<T>));
  }
  static std::int64_t bytes_of_parts(const GroupCode& c) {
    std::int64_t bytes = 0;
    for (const GroupCode::Sum& s : c.sums)
      bytes += pieces_of(c.pass.n, part_of(s)) * static_cast<std::int64_t>(sizeof(T));
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
  T* parts(std::size_t sum) const {
    auto* p = reinterpret_cast<T*>(scratch + pieces_of(n, g.piece_) * g.piece_bytes_);
    for (std::size_t s = 0; s < sum; ++s)
      p += pieces_of(n, part_of(g.code_.sums[s]));
    return p;
  }

  void run_piece(std::int64_t begin, std::int64_t end) const {
    const GroupCode& c = g.code_;
    std::byte* const area = scratch + begin / g.piece_ * g.piece_bytes_;
    T** const table = reinterpret_cast<T**>(area);
    T** const streams = fill(table, area, begin);
    auto* const sums = reinterpret_cast<Partial<T>*>(
        area + g.piece_bytes_ - static_cast<std::int64_t>(c.sums.size() * sizeof(Partial<T>)));
    for (std::int64_t at = begin; at < end; at += kBlock) {
      const std::int64_t length = std::min(kBlock, end - at);
      run_block(table, sums, at, length);
      for (std::size_t s = 0; s < c.streams.size(); ++s)
        streams[s] += kBlock;
    }
  }

  void run_block(T* const* table, Partial<T>* sums, std::int64_t at, std::int64_t length) const {
    switch (kernels::padded<T>(length) / kWidth<T>) {
      case 1:
        return run_held<1>(table, sums, at, length);
      case 2:
        return run_held<2>(table, sums, at, length);
      case 4:
        return run_held<4>(table, sums, at, length);
      case kVectors:
        return run_held<kVectors>(table, sums, at, length);
      default:
        for (const GroupInstruction& i : g.code_.instructions)
          step(i, table, sums, at, length);
    }
  }
  template <std::size_t V>
  void run_held(T* const* table, Partial<T>* sums, std::int64_t at, std::int64_t length) const {
    const GroupInstruction *i = g.code_.instructions.data(), *end = i + g.code_.instructions.size();
    for (; (i = HeldBlock<T, V>::run(i, end, g.code_.entries.data(), table)) != end; ++i)
      step(*i, table, sums, at, length);
  }

  // Returns where the streams begin.
  T** fill(T** table, std::byte* area, std::int64_t begin) const {
    static constexpr T kZeros[kGroup] = {};
    const GroupCode& c = g.code_;
    auto* free = reinterpret_cast<T*>(area + lines(c.size() * static_cast<std::int64_t>(sizeof(T*))));
    *table++ = const_cast<T*>(kZeros);
    for (std::uint32_t r = 0; r < c.registers; ++r, free += kBlock)
      *table++ = free;
    for (const Elements& e : c.singles) {
      std::fill_n(free, kGroup, *element(e));
      *table++ = free;
      free += kGroup;
    }
    T** const streams = table;
    for (const Elements& e : c.streams)
      *table++ = element(e) + begin;
    return streams;
  }

  void step(const GroupInstruction& i, T* const* table, Partial<T>* sums, std::int64_t at,
            std::int64_t length) const {
    const Entry* entry = &g.code_.entries[i.first];
    const std::int64_t padded = kernels::padded<T>(length);
    switch (i.kind) {
      case Kind::map:
        return map(i, entry, table, padded);
      case Kind::pull:
        return pull(i, entry, table, padded);
      case Kind::copy:
        if (table[entry[0]] != table[entry[1]])
          std::memcpy(table[entry[1]], table[entry[0]], static_cast<std::size_t>(length) * sizeof(T));
        return;
      case Kind::fold:
        return add(i, fold<T>, table[entry[0]], sums, at, length);
      case Kind::gather:
        return add(i, gather<T>, table[entry[0]], sums, at, length);
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
  // Adds a block to a sum, by `order`.
  template <class Order> void add(const GroupInstruction& i, const Order& order, const T* x, Partial<T>* sums,
                                  std::int64_t at, std::int64_t length) const {
    const std::int64_t size = part_of(g.code_.sums[i.sum]), part = at / size, begin = at % size;
    order(sums[i.sum], x, begin, begin + length, std::min(size, n - part * size), parts(i.sum)[part]);
  }

  void finish(const GroupCode::Sum& s, const T* parts) const {
    if (s.to == kNoValue) return;
    const std::int64_t count = pieces_of(n, part_of(s));
    T& y = *element({s.to, 0});
    y = s.full ? count == 1 ? parts[0] : kernels::fold_row<kernels::Sum>(parts, count)
               : sum_pairwise(parts, count);
    if (s.mean) y /= static_cast<T>(n);
  }
};

Group::Group(const Program& p, const ProgramStep& step, const std::vector<bool>& kept)
    : code_(make_group_code(p, step, kept)) {
  const std::int64_t n = code_.pass.n;
  const bool folds = std::any_of(code_.sums.begin(), code_.sums.end(), [](const auto& s) { return s.full; });
  const std::int64_t multiple = folds ? kFoldBlock : kVjpPiece;
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
