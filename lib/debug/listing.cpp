// In: a tape. Out: its entries and sources in order of recording.
#include "debug/listing.h"

#include <algorithm>

#include "core/format.h"

namespace tapedeck {

KeptBytes::~KeptBytes() = default;

void KeptBytes::add(TapeEntry& e) {
  for (const std::span<Tensor> kept : {e.kept_x(), e.kept_y()})
    for (const Tensor& t : kept)
      if (t.defined() && t.has_values()) {
        std::int64_t& known = places_[t.address()];
        total_ += std::max<std::int64_t>(t.nbytes() - known, 0);
        known = std::max(known, t.nbytes());
      }
}

Listing::Listing(Tape& tape, std::string_view what) : tape_(tape) {
  if (tape.used)
    throw_error<GradientError>(
        "{}: this tape was already used; make it persistent, or ask before gradient is called", what);
  (void)tape.size();   // frees entries of tensors that were released on other threads
  for (std::int32_t k = 0; k < tape.entries().end(); ++k)
    if (const TapeEntry& e = tape.entries()[k]; e.op && !is_read(e)) ops_.push_back(k);
  for (Slot s = 0; s < static_cast<Slot>(tape.slots()); ++s)
    if (const Tracked& t = tape.tracked(s); t.uses > 0 && t.producer < 0) sources_.push_back(s);
  for (const Variable& v : tape.watched_variables())
    variables_[tape.slot_of(v.cell().handle)] = v.name();
  // Ids grow with time; indices of entries and slots are reused.
  std::sort(ops_.begin(), ops_.end(),
            [&](std::int32_t a, std::int32_t b) { return first_id(a) < first_id(b); });
  std::sort(sources_.begin(), sources_.end(),
            [&](Slot a, Slot b) { return tape.tracked(a).id < tape.tracked(b).id; });
}

Listing::~Listing() = default;

const std::string* Listing::variable(Slot s) const {
  const auto found = variables_.find(s);
  return found == variables_.end() ? nullptr : &found->second;
}

Slot Listing::origin(Slot s) const {
  const std::int32_t producer = tape_.producer(s);
  return producer >= 0 && is_read(tape_.entries()[producer]) ? tape_.entries()[producer].x()[0] : s;
}

Spec Listing::output(TapeEntry& e, std::size_t i) const {
  return e.y()[i] >= 0 ? tape_.spec(e.y()[i]) : e.kept_y()[i].spec();
}

std::uint64_t Listing::first_id(std::int32_t k) const {
  std::uint64_t first = ~std::uint64_t{0};
  for (const Slot y : tape_.entries()[k].y())
    if (y >= 0) first = std::min(first, tape_.tracked(y).id);
  return first;
}

}   // namespace tapedeck
