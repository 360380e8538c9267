// A tape as a graph. In: its entries and slots. Out: a text for Graphviz, whose nodes are in order of
// recording.
#include <algorithm>
#include <set>

#include "core/format.h"
#include "debug/listing.h"
#include "debug/text.h"
#include "tapedeck/debug.h"

namespace tapedeck {
namespace {

class Drawing {
 public:
  explicit Drawing(const Listing& listing) : listing_(listing), tape_(listing.tape()) {
    for (const std::int32_t k : listing.ops())
      for (const Slot x : tape_.entries()[k].x())
        if (x >= 0) taken_.insert(x);
  }

  std::string text() {
    std::string nodes, edges;
    const std::vector<std::int32_t>& ops = listing_.ops();
    for (std::size_t i = 0; i < listing_.sources().size(); ++i)
      nodes += source(listing_.sources()[i], i);
    KeptBytes all;
    for (std::size_t i = 0; i < ops.size(); ++i)
      nodes += op(ops[i], i, all);
    for (const std::int32_t k : ops)
      edges += edges_to(k);
    return digraph("tape", fmt::format("{} ops keep {}", ops.size(), with_unit(all.total())), nodes + edges);
  }

 private:
  std::string source(Slot s, std::size_t number) {
    node_[s] = fmt::format("source{}", number);
    const std::string* variable = listing_.variable(s);
    const std::string label = fmt::format("{}\n{}", variable ? *variable : "watched", tape_.spec(s));
    return fmt::format("  {} [label={}, {}];\n", node_[s], in_quotes(label),
                       variable ? kVariableStyle : kSourceStyle);
  }

  std::string op(std::int32_t k, std::size_t number, KeptBytes& all) {
    TapeEntry& e = tape_.entries()[k];
    KeptBytes kept;
    kept.add(e), all.add(e);
    std::string label(name_of(e));
    bool result = false;
    const std::string name = fmt::format("op{}", number);
    for (std::size_t i = 0; i < e.y().size(); ++i) {
      const Slot y = e.y()[i];
      if (y >= 0) node_[y] = name, result |= !taken_.contains(y);
      label += fmt::format("\n{}", listing_.output(e, i));
    }
    if (!kept.empty()) label += fmt::format("\nkeeps {}", with_unit(kept.total()));
    return fmt::format("  {} [label={}{}{}];\n", name, in_quotes(label), result ? ", " : "",
                       result ? kResultStyle : "");
  }

  std::string edges_to(std::int32_t k) {
    std::string out;
    for (const Slot x : tape_.entries()[k].x()) {
      if (x < 0) continue;
      out += fmt::format("  {} -> {}", node_[listing_.origin(x)], node_[first_output(k)]);
      const std::int32_t producer = tape_.producer(x);
      if (producer >= 0 && tape_.entries()[producer].outputs > 1) {
        const std::span<const Slot> outputs = tape_.entries()[producer].y();
        out += fmt::format(" [label=\"output {}\"]",
                           std::find(outputs.begin(), outputs.end(), x) - outputs.begin());
      }
      out += ";\n";
    }
    return out;
  }

  Slot first_output(std::int32_t k) const {
    for (const Slot y : tape_.entries()[k].y())
      if (y >= 0) return y;
    return -1;
  }

  const Listing& listing_;
  Tape& tape_;
  std::set<Slot> taken_;
  std::map<Slot, std::string> node_;
};

}   // namespace

std::string to_dot(const GradientTape& tape) {
  const Listing listing(tape.tape(), "to_dot");
  return Drawing(listing).text();
}

}   // namespace tapedeck
