// In: the instructions of a group. Out: stages that run one after the other on each block: first what reads
// views and bools, then machine code and the calls that cannot be traced, at last sums and results of bools.
//
// The instructions are followed symbolically. A value is what an instruction computes, or an operand; it gets
// memory only if another stage reads it, or if it is a result.
#include "compile/fuse/lower.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <unordered_map>

#include "compile/machine/machine_code.h"
#include "core/bytes.h"
#include "kernels/elementwise/vjp.h"

namespace tapedeck::compiled {
namespace {

using Kind = GroupInstruction::Kind;
using kernels::MapTracer, kernels::VjpTracer, kernels::Put;

using ValueIndex = std::uint32_t;   // into Lowering::values_
constexpr ValueIndex kZeros = 0;    // an operand that is not read

class Lowering {
 public:
  Lowering(const Program& p, const GroupCode& code) : p_(p), code_(code) {}

  std::optional<GroupCode> run() {
    add_operands();
    // What is fetched and widened comes first, so that it does not cut machine code.
    for (const GroupInstruction& i : code_.instructions)
      if (i.kind == Kind::fetch || i.kind == Kind::widen) stages_.push_back({.instruction = i});
    for (const GroupInstruction& i : code_.instructions)
      follow(i);
    if (!has_traced_) return {};
    code_to_append_to();   // for results that are operands, or results twice
    last_code_ = stages_.size() - 1;
    place_results();
    for (Stage& s : ends_) {
      read_in(stages_.size(), s.x[0]);
      stages_.push_back(std::move(s));
    }
    assign_locals();
    return write();
  }

 private:
  static constexpr TableIndex kNone = ~TableIndex(0);
  struct BlockValue {
    enum class From : std::uint8_t { zeros, single, stream, stage };
    From from;
    TableIndex number = 0;   // of a single; an entry of a stream
    std::size_t stage = 0;   // which computes it
    std::size_t last = 0;    // which is the last to read it from memory
    bool in_memory = false;
    bool is_fetched = false;     // its entry may point elsewhere than to its register
    TableIndex local = kNone;    // where it is in memory: a register of the group,
    TableIndex result = kNone;   // or a result
  };
  /// The code of a stage, and its values.
  struct StageCode {
    explicit StageCode(const Pass& pass)
        : builder(static_cast<int>(size_of(pass.dtype)), most_vectors(pass)) {}
    CodeBuilder builder;
    std::unordered_map<ValueIndex, LaneValue> known;
    std::vector<ValueIndex> streams, computed;
  };
  /// An instruction, with values in place of entries; or code.
  struct Stage {
    GroupInstruction instruction = {};
    std::vector<ValueIndex> x = {}, y = {};
    std::unique_ptr<StageCode> code = nullptr;
  };
  static VectorSet vectors_for(const Pass& pass) {
    return kVectors.shortest_for(pass.n * size_of(pass.dtype));
  }
  static int most_vectors(const Pass& pass) {
    const VectorSet set = vectors_for(pass);
    const std::int64_t vectors = set.length_for(pass.n * size_of(pass.dtype)) / set.bytes;
    return vectors < 2 ? 1 : vectors < 4 ? 2 : 4;
  }
  // Of the code of a stage, and of one function more where that is met for the first time. Its instructions
  // fit the cache, its values at most 32 KB of the stack, and the processor begins with the next vectors
  // before its longest chain is done.
  static constexpr std::size_t kMostNodes = 500, kMostDepth = 32;
  // Of the code of a group that computes several vectors at a time. All of it runs for each block, and what
  // the first instruction cache does not hold is fetched again.
  static constexpr std::size_t kMostCached = 2000;

  // Values.

  void add_operands() {
    values_.push_back({BlockValue::From::zeros});
    read_.assign(code_.size(), kZeros);
    written_.assign(code_.written(), kZeros);
    single_.assign(code_.singles.size(), kNone);
    for (TableIndex s = 0; s < code_.singles.size(); ++s)
      read_[code_.first_single() + s] = add_value({BlockValue::From::single, s});
    for (TableIndex s = 0; s < code_.streams.size(); ++s)
      read_[code_.first_stream() + s] = add_value({BlockValue::From::stream, code_.first_stream() + s});
  }
  ValueIndex add_value(const BlockValue& v) {
    values_.push_back(v);
    return static_cast<ValueIndex>(values_.size() - 1);
  }
  // A value that an instruction computes in memory.
  ValueIndex add_in_memory(std::size_t stage) {
    return add_value({.from = BlockValue::From::stage, .stage = stage, .last = stage, .in_memory = true});
  }
  // A value of the code of the last stage.
  ValueIndex add_computed(LaneValue lanes) {
    const ValueIndex y = add_value({.from = BlockValue::From::stage, .stage = stages_.size() - 1});
    StageCode& code = *stages_.back().code;
    code.known.emplace(y, lanes);
    code.computed.push_back(y);
    return y;
  }
  void set(TableIndex y, ValueIndex v) {
    written_[y] = v;
    if (y < code_.registers)
      read_[1 + y] = v;
    else if (const TableIndex r = y - code_.registers; r < code_.results.size())
      read_[code_.first_result() + r] = v;
  }
  void read_in(std::size_t stage, ValueIndex v) {
    BlockValue& info = values_[v];
    if (info.from == BlockValue::From::single) number_of_single(info.number);
    if (info.from != BlockValue::From::stage) return;
    info.in_memory = true;
    info.last = std::max(info.last, stage);
  }

  // Instructions.

  void follow(const GroupInstruction& i) {
    switch (i.kind) {
      case Kind::fetch:
      case Kind::widen: {
        const ValueIndex y = add_in_memory(prepared_);
        values_[y].is_fetched = i.kind == Kind::fetch;
        stages_[prepared_++].y = {y};
        return set(i.y, y);
      }
      case Kind::call:
        return follow_call(i);
      case Kind::copy:
        return set(i.y, i.b ? repeated(read_[i.a]) : read_[i.a]);
      case Kind::narrow:
      case Kind::sum:
        ends_.push_back({.instruction = i, .x = {read_[i.a]}});
        return;
      case Kind::machine:
        return;   // there is none yet
    }
  }
  // A single element as a value with one element for each element of the block.
  ValueIndex repeated(ValueIndex x) { return add_computed(lanes_of(x, code_to_append_to())); }

  void follow_call(const GroupInstruction& i) {
    const GroupCall& c = code_.calls[i.b];
    const std::span<const TableIndex> entries(&code_.entries[c.first], c.operands);
    const TableIndex* const to = entries.data() + entries.size();
    const std::size_t results = c.is_vjp ? entries.size() - 2 : 1;
    std::vector<ValueIndex> x, y(results, kZeros);
    for (const TableIndex entry : entries)
      x.push_back(read_[entry]);
    if (!trace(c, x, y)) {
      for (std::size_t k = 0; k < results; ++k)
        if (!c.is_vjp || c.put[k] != Put::nothing) y[k] = add_in_memory(stages_.size());
      for (const ValueIndex v : x)
        read_in(stages_.size(), v);
      stages_.push_back({.instruction = i, .x = x, .y = y});
    }
    for (std::size_t k = 0; k < results; ++k)
      if (y[k] != kZeros) set(to[k], c.is_vjp && c.put[k] == Put::add ? sum(written_[to[k]], y[k]) : y[k]);
  }
  ValueIndex sum(ValueIndex a, ValueIndex b) {
    const std::size_t stage = code_to_append_to();
    const LaneValue x = lanes_of(a, stage), y = lanes_of(b, stage);
    return add_computed(stages_[stage].code->builder.add(LaneOp::add, x, y));
  }

  // Appends the function of a call to code, and sets its results, unless it cannot be traced.
  bool trace(const GroupCall& c, const std::vector<ValueIndex>& x, std::vector<ValueIndex>& y) {
    if (!c.tracer) return false;
    Cost& cost = costs_[c.tracer];
    if (cost.untraceable) return false;
    const std::size_t stage = code_to_append_to(&cost, x);
    CodeBuilder& builder = stages_[stage].code->builder;
    LaneValue in[kernels::kMaxOperands], out[kernels::kFusedInputs];
    std::size_t begin = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      in[k] = lanes_of(x[k], stage);
      begin = std::max(begin, builder.depth(in[k]));
    }
    const std::size_t nodes = builder.size();
    const bool traced = builder.trace([&] {
      if (c.is_vjp)
        reinterpret_cast<VjpTracer>(c.tracer)(in, out);
      else
        out[0] = reinterpret_cast<MapTracer>(c.tracer)(in);
    });
    if (!traced) {
      cost.untraceable = true;
      return false;
    }
    has_traced_ = true;
    cost.nodes = std::max(cost.nodes, builder.size() - nodes);
    for (std::size_t k = 0; k < y.size(); ++k) {
      if (c.is_vjp && c.put[k] == Put::nothing) continue;
      cost.depth = std::max(cost.depth, builder.depth(out[k]) - std::min(begin, builder.depth(out[k])));
      y[k] = add_computed(out[k]);
    }
    return true;
  }

  /// What a function has added to code so far: nodes, and how many of them wait for each other.
  struct Cost {
    std::size_t nodes = 0, depth = 0;
    bool untraceable = false;
  };
  // The last stage if it is code with room for a function of this cost, otherwise a new one.
  std::size_t code_to_append_to(const Cost* cost = nullptr, const std::vector<ValueIndex>& x = {}) {
    if (stages_.empty() || !stages_.back().code || (cost && !has_room(*stages_.back().code, *cost, x)))
      stages_.push_back({.code = std::make_unique<StageCode>(code_.pass)});
    return stages_.size() - 1;
  }
  static bool has_room(const StageCode& code, const Cost& cost, const std::vector<ValueIndex>& x) {
    std::size_t begin = 0;
    for (const ValueIndex v : x)
      if (const auto at = code.known.find(v); at != code.known.end())
        begin = std::max(begin, code.builder.depth(at->second));
    return code.builder.size() + cost.nodes <= kMostNodes && begin + cost.depth <= kMostDepth;
  }

  // The lanes of a value in the code of a stage.
  LaneValue lanes_of(ValueIndex v, std::size_t stage) {
    StageCode& code = *stages_[stage].code;
    const auto [at, is_new] = code.known.try_emplace(v, kNoValue);
    if (!is_new) return at->second;
    const BlockValue& info = values_[v];
    if (info.from == BlockValue::From::zeros) return at->second = code.builder.constant(0);
    if (info.from == BlockValue::From::single) {
      const std::optional<std::uint64_t> known = constant(info.number, code.builder);
      return at->second = known ? code.builder.constant(*known)
                                : code.builder.leaf(LaneOp::single, number_of_single(info.number));
    }
    read_in(stage, v);
    code.streams.push_back(v);
    return at->second = code.builder.leaf(LaneOp::stream, code.streams.size() - 1);
  }
  // The number of a single element among those that are read; constants are parts of machine code.
  TableIndex number_of_single(TableIndex single) {
    TableIndex& number = single_[single];
    if (number == kNone) {
      number = static_cast<TableIndex>(out_.singles.size());
      out_.singles.push_back(code_.singles[single]);
      out_.single_bools.push_back(code_.single_bools[single]);
    }
    return number;
  }
  // The bits of a single element if it is a constant of the program.
  std::optional<std::uint64_t> constant(TableIndex single, const CodeBuilder& builder) const {
    const Elements& e = code_.singles[single];
    const Value& value = p_[e.of];
    if (value.from != Value::From::constant) return {};
    const std::int64_t size = size_of(value.spec.dtype);
    std::uint64_t bits = 0;
    std::memcpy(&bits, value.constant.raw() + e.first * size, static_cast<std::size_t>(size));
    return value.spec.dtype == DType::boolean ? builder.bits_of(bits ? 1 : 0) : bits;
  }

  // Memory.

  void place_results() {
    for (TableIndex r = 0; r < code_.results.size(); ++r) {
      const ValueIndex v = written_[code_.registers + r];
      BlockValue& info = values_[v];
      if (info.from == BlockValue::From::stage && info.result == kNone) {
        info.result = r;
        info.in_memory = true;
      } else {
        copies_.push_back({lanes_of(v, last_code_), r});
      }
    }
  }
  // Linear scan. Code must not write what it reads, so registers are free after the stage.
  void assign_locals() {
    std::vector<TableIndex> free;
    std::vector<std::vector<ValueIndex>> begin(stages_.size()), end(stages_.size());
    for (ValueIndex v = 1; v < values_.size(); ++v)
      if (const BlockValue& info = values_[v]; info.in_memory && info.result == kNone) {
        begin[info.stage].push_back(v);
        end[std::max(info.last, info.stage)].push_back(v);
      }
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      for (const ValueIndex v : begin[s]) {
        if (free.empty()) free.push_back(locals_++);
        values_[v].local = free.back();
        free.pop_back();
      }
      for (const ValueIndex v : end[s])
        if (!values_[v].is_fetched) free.push_back(values_[v].local);
    }
  }
  TableIndex read_entry(ValueIndex v) const {
    const BlockValue& info = values_[v];
    switch (info.from) {
      case BlockValue::From::zeros:
        return 0;
      case BlockValue::From::single:
        return out_.first_single() + single_[info.number];
      case BlockValue::From::stream:
        return info.number - code_.first_stream() + out_.first_stream();
      default:
        return info.result != kNone ? out_.first_result() + info.result : 1 + info.local;
    }
  }
  TableIndex written_entry(ValueIndex v) const {
    const BlockValue& info = values_[v];
    return info.result != kNone ? out_.registers + info.result : info.local;
  }

  // Writes the instructions.

  std::optional<GroupCode> write() {
    GroupCode out = code_;
    std::swap(out.singles, out_.singles);
    std::swap(out.single_bools, out_.single_bools);
    out_ = std::move(out);
    out_.registers = locals_;
    out_.instructions.clear();
    out_.calls.clear();
    out_.entries.clear();
    for (std::size_t s = 0; s < stages_.size(); ++s)
      if (!stages_[s].code)
        write(stages_[s]);
      else
        write_code(s);
    if (made_.empty()) return {};   // nothing that is traced is needed
    shorten(made_);
    out_.vectors = vectors_for(code_.pass);
    out_.machine = machine_code(std::move(made_), out_.vectors);
    if (out_.machine.empty()) return {};
    return std::move(out_);
  }
  static void shorten(std::vector<PlacedCode>& functions) {
    std::size_t nodes = 0;
    for (const PlacedCode& f : functions)
      nodes += f.code.nodes.size();
    if (nodes <= kMostCached) return;
    for (PlacedCode& f : functions)
      f.code.most_vectors = 1;
  }
  void write(const Stage& stage) {
    GroupInstruction i = stage.instruction;
    switch (i.kind) {
      case Kind::fetch:
        i.a += out_.first_viewed() - code_.first_viewed();
        i.y = written_entry(stage.y[0]);
        break;
      case Kind::widen:
        i.a += out_.first_bytes() - code_.first_bytes();
        i.y = written_entry(stage.y[0]);
        break;
      case Kind::call:
        i.b = write_call(stage);
        break;
      case Kind::narrow:
        i.y += out_.registers - code_.registers;
        [[fallthrough]];
      case Kind::sum:
        i.a = read_entry(stage.x[0]);
        break;
      case Kind::copy:
      case Kind::machine:
        break;   // are no stages
    }
    out_.instructions.push_back(i);
  }
  TableIndex write_call(const Stage& stage) {
    GroupCall c = code_.calls[stage.instruction.b];
    c.first = static_cast<std::uint32_t>(out_.entries.size());
    for (const ValueIndex x : stage.x)
      out_.entries.push_back(read_entry(x));
    for (std::size_t k = 0; k < stage.y.size(); ++k) {
      if (c.put[k] == Put::add) c.put[k] = Put::store;   // code adds
      out_.entries.push_back(stage.y[k] == kZeros ? 0 : written_entry(stage.y[k]));
    }
    out_.calls.push_back(c);
    return static_cast<TableIndex>(out_.calls.size() - 1);
  }
  void write_code(std::size_t s) {
    StageCode& code = *stages_[s].code;
    CodePlaces places;
    places.first_single = out_.first_single();
    for (const ValueIndex v : code.streams)
      places.streams.push_back(read_entry(v));
    const auto store = [&](LaneValue lanes, TableIndex entry) {
      code.builder.store(lanes, places.results.size());
      places.results.push_back(entry);
    };
    for (const ValueIndex v : code.computed)
      if (values_[v].in_memory) store(code.known.at(v), written_entry(v));
    if (s == last_code_)
      for (const auto& [lanes, r] : copies_)
        store(lanes, out_.registers + r);
    if (places.results.empty()) return;
    out_.instructions.push_back({.kind = Kind::machine, .b = static_cast<TableIndex>(made_.size())});
    made_.push_back({code.builder.finish(), std::move(places)});
  }

  const Program& p_;
  const GroupCode& code_;
  std::unordered_map<void (*)(), Cost> costs_;   // by tracer
  std::vector<BlockValue> values_;
  std::vector<Stage> stages_;
  std::size_t prepared_ = 0;   // how many of the stages have been followed that fetch and widen
  std::vector<Stage> ends_;    // sums and results of bools
  std::size_t last_code_ = 0;
  bool has_traced_ = false;
  std::vector<ValueIndex> read_, written_;                 // by entry of the tables
  std::vector<TableIndex> single_;                         // by number of a single: its number in the result
  std::vector<std::pair<LaneValue, TableIndex>> copies_;   // results that are operands, or other results
  TableIndex locals_ = 0;
  std::vector<PlacedCode> made_;
  GroupCode out_;
};

}   // namespace

std::optional<GroupCode> with_machine_code(const Program& p, const GroupCode& code) {
  return Lowering(p, code).run();
}

}   // namespace tapedeck::compiled
