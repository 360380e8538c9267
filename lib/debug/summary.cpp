// A tape as a table; queries whether tapes follow a tensor. In: entries and slots. Out: text with a line for
// each op.
#include <algorithm>

#include "core/format.h"
#include "debug/listing.h"
#include "debug/text.h"
#include "tapedeck/debug.h"

namespace tapedeck {
namespace {

class SummaryTable {
 public:
  explicit SummaryTable(const Listing& listing) : listing_(listing), tape_(listing.tape()) {
    for (const Slot s : listing.sources()) {
      const std::string* variable = listing.variable(s);
      names_[s] = fmt::format("{} {}", variable ? *variable : "watched", tape_.spec(s));
    }
    for (std::size_t i = 0; i < listing.ops().size(); ++i)
      add(listing.ops()[i], i);
  }

  std::string text() const {
    std::vector<TextLine> lines = {{"#", "op", "inputs", "outputs", "keeps"}};
    lines.insert(lines.end(), lines_.begin(), lines_.end());
    return fmt::format("{} ops keep {}{}\n", lines_.size(), with_unit(all_.total()),
                       widening_ ? fmt::format("; {}, marked *, convert f32 to f64", widening_) : "") +
           text_table(lines);
  }

 private:
  void add(std::int32_t k, std::size_t number) {
    TapeEntry& e = tape_.entries()[k];
    KeptBytes kept;
    kept.add(e), all_.add(e);
    TextLine line = {fmt::format("{}", number), std::string(name_of(e)), "", "",
                     kept.empty() ? "" : with_unit(kept.total())};
    if (widens(e)) line[1] += " *", ++widening_;
    for (const Slot x : e.x())
      line[2] += fmt::format("{}{}", line[2].empty() ? "" : ", ", x < 0 ? "." : names_[listing_.origin(x)]);
    const std::span<const Slot> y = e.y();
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::string spec = fmt::format("{}", listing_.output(e, i));
      line[3] += (i ? ", " : "") + spec;
      if (y[i] >= 0)
        names_[y[i]] = fmt::format("#{}{} {}", number, y.size() > 1 ? fmt::format(":{}", i) : "", spec);
    }
    lines_.push_back(std::move(line));
  }

  // Whether a tracked input has single precision and the first output has double precision.
  bool widens(TapeEntry& e) const {
    const std::span<const Slot> x = e.x();
    const auto is_single = [&](Slot s) { return s >= 0 && real_of(tape_.spec(s).dtype) == DType::f32; };
    return real_of(listing_.output(e, 0).dtype) == DType::f64 && std::any_of(x.begin(), x.end(), is_single);
  }

  const Listing& listing_;
  Tape& tape_;
  KeptBytes all_;
  int widening_ = 0;
  std::map<Slot, std::string> names_;   // of tensors
  std::vector<TextLine> lines_;         // number, op, inputs, outputs, bytes
};

}   // namespace

std::string summary(const GradientTape& tape) {
  const Listing listing(tape.tape(), "summary");
  return SummaryTable(listing).text();
}

namespace {
bool follows(const Recorder& r, const Tensor& x) {
  return r.tracks(x) || (r.watches_all() && is_trainable(x.dtype()));
}
}   // namespace

bool is_followed(const Tensor& x) {
  for (Recorder* r = thread_state.innermost; r; r = r->outer())
    if (dynamic_cast<const Tape*>(r) && follows(*r, x)) return true;
  return false;
}

int order_followed(const Tensor& x) {
  int order = 0;
  for (Recorder* r = thread_state.innermost; r; r = r->outer()) {
    if (!follows(*r, x)) continue;
    const Tape* tape = dynamic_cast<const Tape*>(r);
    order += tape && tape->options().persistent ? 2 : 1;
  }
  return std::min(order, 2);
}

}   // namespace tapedeck
