// Listing: the entries and sources of a tape in order of recording, with names, for graphs and tables.
#pragma once
#include <map>
#include <string>

#include "tape/tape.h"

namespace tapedeck {

/// Bytes that tensors hold, by where they lie: what is kept twice counts once.
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
  /// Throws GradientError, which begins with `what`, where gradient() has used up the tape.
  Listing(Tape& tape, std::string_view what);
  ~Listing();
  Listing(const Listing&) = delete;

  Tape& tape() const { return tape_; }
  const std::vector<std::int32_t>& ops() const { return ops_; }   // entries, but for reads of variables
  const std::vector<Slot>& sources() const { return sources_; }   // watched tensors and variables
  const std::string* variable(Slot s) const;                      // its name, or null where s is no variable
  /// Where a tensor comes from: for what was read, the variable.
  Slot origin(Slot s) const;
  /// What an op's result i is, whether the tape tracks it or not.
  Spec output(TapeEntry& e, std::size_t i) const;

 private:
  std::uint64_t first_id(std::int32_t entry) const;

  Tape& tape_;
  std::vector<std::int32_t> ops_;
  std::vector<Slot> sources_;
  std::map<Slot, std::string> variables_;
};

}   // namespace tapedeck
