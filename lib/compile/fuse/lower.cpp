// In: the instructions of a group. Out: stages that run one after the other on each block: first what reads
// views and bools, then machine code and the calls that cannot be traced, at last sums and results of bools.
//
// The instructions are followed symbolically. A value is what an instruction computes, or an operand; it gets
// memory only if another stage reads it, or if it is a result.
#include "compile/fuse/lower.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <unordered_map>

#include "compile/fuse/arithmetic.h"
#include "compile/machine/machine_code.h"
#include "core/bytes.h"
#include "core/format.h"

namespace tapedeck::compiled {
namespace {

using Kind = GroupInstruction::Kind;
using kernels::MapTracer, kernels::VjpTracer, kernels::Put;

template <class T, Arithmetic op> LaneValue trace_arithmetic(const LaneValue* x) {
  using V = xsimd::batch<T, detail::LaneTrace>;
  return kernels::tracing::id<T>(
      compute<op, V>(kernels::tracing::vector<T>(x[0]), kernels::tracing::vector<T>(x[1])));
}
template <class T, std::size_t... op>
MapTracer arithmetic_tracer(Arithmetic wanted, std::index_sequence<op...>) {
  static constexpr MapTracer all[] = {trace_arithmetic<T, static_cast<Arithmetic>(op)>...};
  return all[static_cast<std::size_t>(wanted)];
}
MapTracer tracer_of(Arithmetic op, DType dtype) {
  constexpr auto all = std::make_index_sequence<static_cast<std::size_t>(Arithmetic::none)>();
  return dtype == DType::f32 ? arithmetic_tracer<float>(op, all) : arithmetic_tracer<double>(op, all);
}

/// A function that is traced: of a map, or of a vjp.
struct TracedFunction {
  MapTracer map = nullptr;
  VjpTracer vjp = nullptr;
  explicit operator bool() const { return map || vjp; }
};
/// Appends the function to the code, and sets y. Returns whether it can be traced.
bool trace_into(CodeBuilder& code, const TracedFunction& f, const LaneValue* x, LaneValue* y) {
  return code.trace([&] { f.map ? void(*y = f.map(x)) : f.vjp(x, y); });
}
/// How many nodes a function takes, and how many of them wait for each other. 0 if it cannot be traced.
struct Cost {
  std::size_t nodes = 0, depth = 0;
};
Cost find_cost(const TracedFunction& f, DType dtype) {
  CodeBuilder builder(static_cast<int>(size_of(dtype)));
  LaneValue x[kernels::kMaxOperands], y[kernels::kFusedInputs];
  for (std::size_t k = 0; k < std::size(x); ++k)
    x[k] = builder.leaf(LaneOp::stream, k);
  if (!trace_into(builder, f, x, y)) return {};
  return {std::max<std::size_t>(1, builder.size() - std::size(x)), builder.depth()};
}

using ValueIndex = std::uint32_t;   // into Lowering::values_
constexpr ValueIndex kZeros = 0;    // an operand that is not read

class Lowering {
 public:
  Lowering(const Program& p, const GroupCode& code) : p_(p), code_(code) {}

  std::optional<GroupCode> run() {
    follow();
    if (!std::any_of(ops_.begin(), ops_.end(), [](const Operation& o) { return bool(o.traced); })) return {};
    make_stages();
    choose_memory();
    return write();
  }

 private:
  struct BlockValue {
    enum class From : std::uint8_t { zeros, single, stream, operation };
    From from;
    TableIndex number = 0;             // of a single; an entry of a stream
    std::size_t stage = 0, last = 0;   // in which stage it is computed, and last read from memory
    std::size_t depth = 0;             // of the longest chain of operations to it, within its stage
    bool in_memory = false;
    bool is_fetched = false;     // its entry may point elsewhere than to its register
    TableIndex local = kNone;    // where it is in memory: a register of the group,
    TableIndex result = kNone;   // or a result
  };
  struct Operation {
    Kind kind;                    // call, fetch, widen, narrow, sum
    TracedFunction traced = {};   // a call that is traced
    std::uint32_t at = 0;         // the index of the call, the view, the sum, or of the result of bools
    TableIndex entry = 0;         // of what is fetched or widened
    Cost cost = {};               // of traced code
    std::vector<ValueIndex> x = {}, y = {};
    std::size_t stage = 0;
  };
  struct Stage {
    bool is_machine_code;
    std::vector<std::size_t> operations;
  };
  static constexpr TableIndex kNone = ~TableIndex(0);
  // Of one function. Its instructions fit the cache, and the processor begins with the next vectors before
  // its longest chain is done.
  static constexpr std::size_t kMostNodes = 2000, kMostDepth = 32;

  // Follows the instructions.

  void follow() {
    values_.push_back({BlockValue::From::zeros});
    read_.assign(code_.size(), kZeros);
    written_.assign(code_.written(), kZeros);
    for (TableIndex s = 0; s < code_.singles.size(); ++s)
      read_[code_.first_single() + s] = add_value({BlockValue::From::single, s});
    for (TableIndex s = 0; s < code_.streams.size(); ++s)
      read_[code_.first_stream() + s] = add_value({BlockValue::From::stream, code_.first_stream() + s});
    for (const GroupInstruction& i : code_.instructions)
      follow(i);
  }
  ValueIndex add_value(const BlockValue& v) {
    values_.push_back(v);
    return static_cast<ValueIndex>(values_.size() - 1);
  }
  ValueIndex new_value() { return add_value({BlockValue::From::operation}); }
  void set(TableIndex y, ValueIndex v) {
    written_[y] = v;
    if (y < code_.registers)
      read_[1 + y] = v;
    else if (const TableIndex r = y - code_.registers; r < code_.results.size())
      read_[code_.first_result() + r] = v;
  }
  ValueIndex read(TableIndex entry, Form form) const { return form == Form::held ? held_ : read_[entry]; }

  Cost cost_of(const TracedFunction& f) {
    if (!f) return {};
    const auto [at, is_new] = costs_.try_emplace(f.map ? reinterpret_cast<const void*>(f.map)
                                                       : reinterpret_cast<const void*>(f.vjp));
    if (is_new) at->second = find_cost(f, code_.pass.dtype);
    return at->second;
  }
  ValueIndex arithmetic(Arithmetic op, ValueIndex a, ValueIndex b) {
    const TracedFunction f{tracer_of(op, code_.pass.dtype)};
    const ValueIndex y = new_value();
    ops_.push_back({.kind = Kind::call, .traced = f, .cost = cost_of(f), .x = {a, b}, .y = {y}});
    return y;
  }
  void hold(const GroupInstruction& i, ValueIndex v) {
    held_ = v;
    if (i.stores) set(i.y, v);
  }

  void follow(const GroupInstruction& i) {
    constexpr std::uint16_t products = code_of(Then{}, Form{}, Form{}, Form::moving);
    if (i.code >= products) {
      const int at = i.code - products;
      const auto then = static_cast<Then>(at / 18);
      const ValueIndex product = arithmetic(Arithmetic::mul, read(i.a, static_cast<Form>(at / 6 % 3)),
                                            read(i.b, static_cast<Form>(at / 2 % 3))),
                       c = read_[i.c];
      hold(i, then == Then::add   ? arithmetic(Arithmetic::add, product, c)
              : then == Then::sub ? arithmetic(Arithmetic::sub, product, c)
                                  : arithmetic(Arithmetic::sub, c, product));
    } else if (i.code >= code_of(Kind::arithmetic)) {
      const int at = i.code - code_of(Kind::arithmetic);
      const ValueIndex a = read(i.a, static_cast<Form>(at / 3 % 3)), b = read(i.b, static_cast<Form>(at % 3));
      hold(i, arithmetic(static_cast<Arithmetic>(at / 9), a, b));
    } else {
      follow_other(i);
    }
  }
  void follow_other(const GroupInstruction& i) {
    switch (const auto kind = static_cast<Kind>(i.code)) {
      case Kind::call:
        return follow_call(i.b);
      case Kind::copy:
        return set(i.y, i.b ? repeated(read_[i.a]) : read_[i.a]);
      case Kind::fetch: {
        const ValueIndex y = new_value();
        values_[y].is_fetched = true;
        ops_.push_back({.kind = kind, .at = i.b, .entry = i.a, .y = {y}});
        return hold(i, y);
      }
      case Kind::widen: {
        const ValueIndex y = new_value();
        ops_.push_back({.kind = kind, .entry = i.a, .y = {y}});
        return set(i.y, y);
      }
      case Kind::narrow:
        ops_.push_back({.kind = kind,
                        .at = i.y - code_.registers - static_cast<TableIndex>(code_.results.size()),
                        .x = {read_[i.a]}});
        return;
      case Kind::sum:
      case Kind::held_sum:
        ops_.push_back({.kind = Kind::sum, .at = i.b, .x = {kind == Kind::sum ? read_[i.a] : held_}});
        return;
      default:
        return;   // pause, end
    }
  }
  // A single element as a value with one element for each element of the block.
  ValueIndex repeated(ValueIndex x) {
    const TracedFunction same{[](const LaneValue* v) { return v[0]; }};
    const ValueIndex y = new_value();
    ops_.push_back({.kind = Kind::call, .traced = same, .cost = {1, 0}, .x = {x}, .y = {y}});
    return y;
  }
  void follow_call(std::uint32_t at) {
    const GroupCall& c = code_.calls[at];
    const std::span<const TableIndex> x(&code_.entries[c.first], c.operands);
    const TableIndex* const to = x.data() + x.size();
    Operation o{.kind = Kind::call, .at = at};
    for (const TableIndex entry : x)
      o.x.push_back(read_[entry]);
    TracedFunction f;
    if (c.is_vjp)
      f.vjp = reinterpret_cast<VjpTracer>(c.tracer);
    else
      f.map = reinterpret_cast<MapTracer>(c.tracer);
    o.cost = cost_of(f);
    if (o.cost.nodes > 0) o.traced = f;
    const std::size_t results = c.is_vjp ? x.size() - 2 : 1;
    for (std::size_t k = 0; k < results; ++k)
      o.y.push_back(c.is_vjp && c.put[k] == Put::nothing ? kZeros : new_value());
    const std::vector<ValueIndex> y = o.y;
    ops_.push_back(std::move(o));
    for (std::size_t k = 0; k < results; ++k) {
      if (y[k] == kZeros) continue;
      const bool adds = c.is_vjp && c.put[k] == Put::add;
      set(to[k], adds ? arithmetic(Arithmetic::add, written_[to[k]], y[k]) : y[k]);
    }
  }

  // Orders the operations.

  void make_stages() {
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].kind == Kind::fetch || ops_[i].kind == Kind::widen) append(i, false);
    std::size_t nodes = 0;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const Operation& o = ops_[i];
      if (o.kind != Kind::call) continue;
      if (o.traced && (!in_code() || nodes + o.cost.nodes > kMostNodes || depth_of(o) > kMostDepth)) {
        stages_.push_back({true, {}});
        nodes = 0;
      }
      nodes += o.cost.nodes;
      append(i, bool(o.traced));
      for (const ValueIndex y : o.y)
        values_[y].depth = depth_of(o);
    }
    stages_.push_back({true, {}});   // stores results that are operands, or results twice
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].kind == Kind::sum || ops_[i].kind == Kind::narrow) append(i, false);
  }
  bool in_code() const { return !stages_.empty() && stages_.back().is_machine_code; }
  // How many nodes of the last stage wait for each other where the operation ends.
  std::size_t depth_of(const Operation& o) const {
    std::size_t most = 0;
    for (const ValueIndex x : o.x)
      if (is_computed(x) && values_[x].stage + 1 == stages_.size()) most = std::max(most, values_[x].depth);
    return most + o.cost.depth;
  }
  void append(std::size_t i, bool traced) {
    if (!traced) stages_.push_back({false, {}});
    stages_.back().operations.push_back(i);
    ops_[i].stage = stages_.size() - 1;
    for (const ValueIndex y : ops_[i].y)
      values_[y].stage = ops_[i].stage;
  }
  std::size_t last_code() const {
    for (std::size_t s = stages_.size(); s-- > 0;)
      if (stages_[s].is_machine_code) return s;
    return 0;
  }

  // Which values are in memory, and where.

  bool is_computed(ValueIndex v) const { return values_[v].from == BlockValue::From::operation; }
  // A stage reads v from memory if it is not the one that computes it in registers.
  void read_in(ValueIndex v, std::size_t stage, bool by_code) {
    BlockValue& info = values_[v];
    if (!is_computed(v) || (by_code && info.stage == stage)) return;
    info.in_memory = true;
    info.last = std::max(info.last, stage);
  }
  void choose_memory() {
    for (const Operation& o : ops_)
      for (const ValueIndex x : o.x)
        read_in(x, o.stage, bool(o.traced));
    for (TableIndex r = 0; r < code_.results.size(); ++r) {
      const ValueIndex v = written_[code_.registers + r];
      BlockValue& info = values_[v];
      if (is_computed(v) && info.result == kNone)
        info.result = r, info.in_memory = true;
      else
        copies_.push_back({v, r}), read_in(v, last_code(), true);
    }
    for (const Operation& o : ops_)   // what is computed in memory is there although nothing reads it
      for (const ValueIndex y : o.y)
        if (!o.traced && y != kZeros)
          values_[y].in_memory = true, values_[y].last = std::max(values_[y].last, o.stage);
    assign_locals();
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

  // Writes the code.

  TableIndex read_entry(ValueIndex v) const {
    const BlockValue& info = values_[v];
    switch (info.from) {
      case BlockValue::From::zeros:
        return 0;
      case BlockValue::From::single:
        return out_.first_single() + info.number;
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

  std::optional<GroupCode> write() {
    out_ = code_;
    out_.registers = locals_;
    out_.instructions.clear();
    out_.calls.clear();
    out_.entries.clear();
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s].is_machine_code) {
        if (!write_code(s)) return {};
        continue;
      }
      for (const std::size_t i : stages_[s].operations)
        write(ops_[i]);
    }
    if (out_.machine.empty()) return {};   // nothing that is traced is needed
    out_.instructions.push_back({code_of(Kind::end)});
    return std::move(out_);
  }
  void write(const Operation& o) {
    GroupInstruction i{code_of(o.kind)};
    i.b = o.at;
    switch (o.kind) {
      case Kind::fetch:
        i.a = o.entry - code_.first_viewed() + out_.first_viewed();
        i.y = written_entry(o.y[0]);
        break;
      case Kind::widen:
        i.a = o.entry - code_.first_bytes() + out_.first_bytes();
        i.y = written_entry(o.y[0]);
        break;
      case Kind::narrow:
        i.a = read_entry(o.x[0]);
        i.y = out_.registers + static_cast<TableIndex>(out_.results.size()) + o.at;
        break;
      case Kind::sum:
        i.a = read_entry(o.x[0]);
        break;
      default:
        i.b = static_cast<TableIndex>(out_.calls.size());
        write_call(o);
    }
    out_.instructions.push_back(i);
  }
  void write_call(const Operation& o) {
    GroupCall c = code_.calls[o.at];
    c.first = static_cast<std::uint32_t>(out_.entries.size());
    for (const ValueIndex x : o.x)
      out_.entries.push_back(read_entry(x));
    for (std::size_t k = 0; k < o.y.size(); ++k) {
      if (c.put[k] == Put::add) c.put[k] = Put::store;   // follow_call adds
      out_.entries.push_back(o.y[k] == kZeros ? 0 : written_entry(o.y[k]));
    }
    out_.calls.push_back(c);
  }

  bool write_code(std::size_t stage) {
    CodeBuilder builder(static_cast<int>(size_of(code_.pass.dtype)));
    CodePlaces places;
    places.first_single = out_.first_single();
    std::unordered_map<ValueIndex, LaneValue> known;
    const auto lane_value = [&](ValueIndex v) {
      const auto [at, is_new] = known.try_emplace(v, 0);
      if (is_new) at->second = operand(v, builder, places);
      return at->second;
    };
    const auto store = [&](ValueIndex v, TableIndex entry) {
      builder.store(lane_value(v), places.results.size());
      places.results.push_back(entry);
    };
    for (const std::size_t i : stages_[stage].operations) {
      const Operation& o = ops_[i];
      LaneValue x[kernels::kMaxOperands], y[kernels::kFusedInputs];
      for (std::size_t k = 0; k < o.x.size(); ++k)
        x[k] = lane_value(o.x[k]);
      if (!trace_into(builder, o.traced, x, y))
        throw_error<InternalError>("compile: a function was traced once, but not a second time");
      for (std::size_t k = 0; k < o.y.size(); ++k)
        if (o.y[k] != kZeros) known[o.y[k]] = y[k];
    }
    for (const std::size_t i : stages_[stage].operations)
      for (const ValueIndex v : ops_[i].y)
        if (values_[v].in_memory) store(v, written_entry(v));
    if (stage == last_code())
      for (const auto& [v, r] : copies_)
        store(v, out_.registers + r);
    if (places.results.empty()) return true;
    auto made = machine_code(builder.finish(), places);
    if (!made) return false;
    GroupInstruction i{code_of(Kind::machine)};
    i.b = static_cast<TableIndex>(out_.machine.size());
    out_.machine.push_back(std::move(made));
    out_.instructions.push_back(i);
    return true;
  }
  LaneValue operand(ValueIndex v, CodeBuilder& builder, CodePlaces& places) const {
    const BlockValue& info = values_[v];
    if (info.from == BlockValue::From::zeros) return builder.constant(0);
    if (info.from == BlockValue::From::single) {
      const std::optional<std::uint64_t> known = constant(info.number, builder);
      return known ? builder.constant(*known) : builder.leaf(LaneOp::single, info.number);
    }
    places.streams.push_back(read_entry(v));
    return builder.leaf(LaneOp::stream, places.streams.size() - 1);
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

  const Program& p_;
  const GroupCode& code_;
  std::unordered_map<const void*, Cost> costs_;   // by function
  std::vector<BlockValue> values_;
  std::vector<Operation> ops_;
  std::vector<Stage> stages_;
  std::vector<ValueIndex> read_, written_;   // by entry of the tables
  ValueIndex held_ = kZeros;
  std::vector<std::pair<ValueIndex, TableIndex>> copies_;   // results that are operands, or other results
  TableIndex locals_ = 0;
  GroupCode out_;
};

}   // namespace

std::optional<GroupCode> with_machine_code(const Program& p, const GroupCode& code) {
  return Lowering(p, code).run();
}

}   // namespace tapedeck::compiled
