// A tape as a picture. In: its entries and slots. Out: a text for Graphviz, whose nodes are in order of recording.
#include <algorithm>
#include <map>
#include <set>

#include "autodiff/tape.h"
#include "base/format.h"
#include "tapedeck/debug.h"

namespace tapedeck {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') out += "\\n";
    else out += c;
  }
  return out + '"';
}

std::string bytes(std::int64_t n) {
  if (n < 1024) return fmt::format("{} B", n);
  double size = static_cast<double>(n) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"})
    if (size >= 1024) size /= 1024, unit = larger;
  return fmt::format("{:.1f} {}", size, unit);
}

using Kept = std::map<const std::byte*, std::int64_t>;   // bytes by where they lie: what is kept twice counts once

void add(Kept& kept, std::span<const Tensor> tensors) {
  for (const Tensor& t : tensors)
    if (t.defined() && t.raw()) kept[t.raw()] = std::max(kept[t.raw()], t.nbytes());
}
std::int64_t total(const Kept& kept) {
  std::int64_t n = 0;
  for (const auto& [place, size] : kept) n += size;
  return n;
}

class Drawing {
 public:
  explicit Drawing(Tape& tape) : tape_(tape) {
    for (std::int32_t k = 0; k < tape.entries().end(); ++k) {
      TapeEntry& e = tape.entries()[k];
      if (!e.op || is_read(e)) continue;
      ops_.push_back(k);
      for (const Slot x : e.x()) if (x >= 0) taken_.insert(x);
    }
    for (Slot s = 0; s < static_cast<Slot>(tape.slots()); ++s)
      if (const Tracked& t = tape.tracked(s); t.uses > 0 && t.producer < 0) sources_.push_back(s);
    for (const Variable& v : tape.watched_variables()) variables_[tape.slot_of(v.cell().handle)] = v.name();
    // Ids grow with time; numbers of entries and slots are used again.
    std::sort(ops_.begin(), ops_.end(), [&](std::int32_t a, std::int32_t b) { return first_id(a) < first_id(b); });
    std::sort(sources_.begin(), sources_.end(), [&](Slot a, Slot b) { return tape.tracked(a).id < tape.tracked(b).id; });
  }

  std::string text() {
    std::string nodes, edges;
    for (std::size_t i = 0; i < sources_.size(); ++i) nodes += source(sources_[i], i);
    Kept all;
    for (std::size_t i = 0; i < ops_.size(); ++i) nodes += op(ops_[i], i, all);
    for (const std::int32_t k : ops_) edges += edges_to(k);
    return fmt::format("digraph tape {{\n"
                       "  label=\"{} ops keep {}\"; fontname=\"sans-serif\"; fontsize=11;\n"
                       "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f5f5f5\", color=\"#777777\", fontname=\"sans-serif\", fontsize=11];\n"
                       "  edge [color=\"#555555\", arrowsize=0.7, fontname=\"sans-serif\", fontsize=9];\n"
                       "{}{}}}\n",
                       ops_.size(), bytes(total(all)), nodes, edges);
  }

 private:
  std::uint64_t first_id(std::int32_t k) const {
    std::uint64_t first = ~std::uint64_t{0};
    for (const Slot y : tape_.entries()[k].y()) if (y >= 0) first = std::min(first, tape_.tracked(y).id);
    return first;
  }

  std::string source(Slot s, std::size_t number) {
    node_[s] = fmt::format("source{}", number);
    const auto variable = variables_.find(s);
    const std::string label = fmt::format("{}\n{}", variable == variables_.end() ? "watched" : variable->second, tape_.spec(s));
    return fmt::format("  {} [label={}, shape=ellipse, style=filled, fillcolor=\"{}\"];\n", node_[s], quoted(label), variable == variables_.end() ? "#dcecd8" : "#d6e4f5");
  }

  std::string op(std::int32_t k, std::size_t number, Kept& all) {
    TapeEntry& e = tape_.entries()[k];
    Kept kept;
    for (Kept* to : {&kept, &all}) add(*to, e.kept_x()), add(*to, e.kept_y());
    std::string label(name_of(e));
    bool result = false;
    const std::string name = fmt::format("op{}", number);
    for (std::size_t i = 0; i < e.y().size(); ++i) {
      const Slot y = e.y()[i];
      if (y >= 0) node_[y] = name, result |= !taken_.contains(y);
      const Tensor& shape = e.kept_y()[i];
      label += fmt::format("\n{}", y >= 0 ? tape_.spec(y) : shape.spec());
    }
    if (!kept.empty()) label += fmt::format("\nkeeps {}", bytes(total(kept)));
    return fmt::format("  {} [label={}{}];\n", name, quoted(label), result ? ", peripheries=2, fillcolor=\"#fbe9c6\"" : "");
  }

  std::string edges_to(std::int32_t k) {
    std::string out;
    for (const Slot x : tape_.entries()[k].x()) {
      if (x < 0) continue;
      out += fmt::format("  {} -> {}", origin(x), node_[first_output(k)]);
      const std::int32_t producer = tape_.producer(x);
      if (producer >= 0 && tape_.entries()[producer].outputs > 1) {
        const std::span<const Slot> outputs = tape_.entries()[producer].y();
        out += fmt::format(" [label=\"output {}\"]", std::find(outputs.begin(), outputs.end(), x) - outputs.begin());
      }
      out += ";\n";
    }
    return out;
  }

  Slot first_output(std::int32_t k) const {
    for (const Slot y : tape_.entries()[k].y()) if (y >= 0) return y;
    return -1;
  }
  // The node that a tensor comes from: for what was read, the variable.
  const std::string& origin(Slot s) {
    const std::int32_t producer = tape_.producer(s);
    return node_[producer >= 0 && is_read(tape_.entries()[producer]) ? tape_.entries()[producer].x()[0] : s];
  }

  Tape& tape_;
  std::vector<std::int32_t> ops_;
  std::vector<Slot> sources_;
  std::set<Slot> taken_;
  std::map<Slot, std::string> variables_, node_;
};

}  // namespace

std::string to_dot(const GradientTape& tape) {
  Tape& t = *tape.tape_;
  if (t.used) throw GradientError("to_dot: this tape was already used; make it persistent, or draw it before gradient is called");
  (void)t.size();   // frees what ended on other threads
  return Drawing(t).text();
}

}  // namespace tapedeck
