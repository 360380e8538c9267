// BoundGroup: a group with the places of its operands and results, which a replay sets once, or in each call.
#pragma once
#include <vector>

#include "compile/fuse/group.h"
#include "compile/fuse/memory.h"

namespace tapedeck::compiled {

class BoundGroup {
 public:
  /// scratch: memory of group.scratch_bytes() bytes, aligned to 64, which others may use between calls.
  BoundGroup(const Group& group, Writable scratch);
  BoundGroup(BoundGroup&&) = default;   // no copies, since others set the pointers

  /// Calls reads(value, offset in bytes, pointer) and writes(value, pointer) with each pointer that must be
  /// set to the memory of a value before the group runs. This memory must be padded to a multiple of 64
  /// bytes, since the group may read and write up to the next 64-byte boundary; values of one element are not
  /// broadcast in memory. The pointers keep their addresses as long as the group exists, also if it is moved.
  template <class Reads, class Writes> void for_each_pointer(const Reads& reads, const Writes& writes) {
    const GroupCode& c = group_->running();
    const std::int64_t size = size_of(c.pass.dtype);
    const auto each = [](const auto& list, std::size_t first, auto& pointers, const auto& f) {
      for (std::size_t i = 0; i < list.size(); ++i)
        f(list[i], pointers[first + i]);
    };
    const auto number = [&](const Elements& e, const std::byte*& p) { reads(e.of, e.first * size, p); };
    const auto byte = [&](const Elements& e, const std::byte*& p) { reads(e.of, e.first, p); };
    for (std::size_t s = 0; s < c.singles.size(); ++s)
      (c.single_bools[s] ? byte(c.singles[s], singles_[s]) : number(c.singles[s], singles_[s]));
    each(c.streams, c.first_stream(), from_, number);
    each(c.bytes, c.first_bytes(), from_, byte);
    each(c.viewed, c.first_viewed(), from_, number);
    each(c.results, c.first_result(), from_, [&](ValueId v, const std::byte*& p) { reads(v, 0, p); });
    each(c.results, c.registers, to_, writes);
    each(c.bool_results, c.registers + c.results.size(), to_, writes);
    for (std::size_t s = 0; s < c.sums.size(); ++s)
      if (c.sums[s].to) writes(c.sums[s].to, sums_[s]);
  }

  /// Uses the scratch memory: one call at a time.
  void run() const;

 private:
  template <class T> void run() const;
  template <class T> void run_single_block() const;
  template <class T> void run_piece(std::int64_t begin, std::int64_t end, std::int64_t area) const;
  template <class T> void finish(std::size_t sum) const;
  template <class T> void fill_singles(std::byte* area) const;
  std::byte* area(std::int64_t number) const { return scratch_ + number * group_->layout().area; }

  const Group* group_;
  std::byte* scratch_;
  /// Whether it is one block, without views, which change the tables, and without sums in scratch memory.
  bool is_single_block_;
  std::vector<const std::byte*> from_;      // the table for reading of the first block, in the first area
  std::vector<std::byte*> to_;              // the table for writing
  std::vector<const std::byte*> singles_;   // what single elements are broadcast from
  std::vector<std::byte*> sums_;            // where sums are written
};

}   // namespace tapedeck::compiled
