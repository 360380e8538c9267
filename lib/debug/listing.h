// Listing: the entries and sources of a tape in order of recording, with names, for graphs and tables.
#pragma once
#include <map>
#include <string>

#include "tape/tape.h"

namespace tapedeck {

/// The bytes that tensors hold, by address, so that shared memory counts once.
class KeptBytes {
 public:
  KeptBytes() = default;
  ~KeptBytes();
  KeptBytes(const KeptBytes&) = delete;
  void add(TapeEntry& e);
  bool empty() const { return places_.empty(); }
  std::int64_t total() const { return total_; }

 private:
  std::map<std::uintptr_t, std::int64_t> places_;
  std::int64_t total_ = 0;
};

class Listing {
 public:
  /// Throws GradientError, which begins with `what`, if gradient() has consumed the tape.
  Listing(Tape& tape, std::string_view what);
  ~Listing();
  Listing(const Listing&) = delete;

  Tape& tape() const { return tape_; }
  const std::vector<std::int32_t>& ops() const { return ops_; }   // entries except reads of variables
  const std::vector<Slot>& sources() const { return sources_; }   // watched tensors, and variables
  const std::string* variable(Slot s) const;                      // its name, or null if s is not a variable
  /// The slot that a tensor comes from: for the value of a read, the variable; otherwise s.
  Slot origin(Slot s) const;
  /// The spec of an op's result i, whether the tape tracks it or not.
  Spec output(TapeEntry& e, std::size_t i) const;

 private:
  std::uint64_t first_id(std::int32_t entry) const;

  Tape& tape_;
  std::vector<std::int32_t> ops_;
  std::vector<Slot> sources_;
  std::map<Slot, std::string> variables_;
};

}   // namespace tapedeck
