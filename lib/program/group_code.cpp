// In: the nodes of a group. Out: its instructions, with registers by linear scan.
#include "program/group_code.h"

#include <algorithm>
#include <map>
#include <type_traits>

#include "op/rules.h"
#include "program/logic.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck::program {
namespace {

using Kind = GroupInstruction::Kind;
using kernels::Put;

// Where an operand or result is, before entries are numbered.
struct Place {
  enum class In : std::uint8_t { nothing, local, single, stream, bytes, viewed } in = In::nothing;
  std::uint32_t at = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

Arithmetic arithmetic_of(const Node& node) {
  static const auto ops = [] {
    std::map<const Op*, Arithmetic> known;
    constexpr std::pair<std::string_view, Arithmetic> names[] = {
        {"add", Arithmetic::add}, {"sub", Arithmetic::sub},    {"mul", Arithmetic::mul},
        {"div", Arithmetic::div}, {"square", Arithmetic::mul}, {"neg", Arithmetic::neg}};
    for (const OpFamily& family : op_families())
      for (const Op& op : family.ops)
        for (const auto& [name, arithmetic] : names)
          if (op.name == name) known.emplace(&op, arithmetic);
    return known;
  }();
  const auto found = node.kind == Node::Kind::op ? ops.find(node.op) : ops.end();
  return found == ops.end() ? Arithmetic::none : found->second;
}

template <class F, int N> using PartialOf = detail::Partial<std::remove_const_t<F>, N>;

// For each gradient of a vjp kernel that is dy times an operand, its place among x..., y; of those that are
// dy, kOne. Null for other kernels.
constexpr int kOne = -1;
const int* factors_of(const kernels::VjpKernel& k) {
  using Mul = kernels::Fused<PartialOf<decltype(partial::of_mul_in_a), 2>,
                             PartialOf<decltype(partial::of_mul_in_b), 2>>;
  using Exp = kernels::Fused<PartialOf<decltype(partial::of_exp), 1>>;
  using Add = kernels::Fused<PartialOf<decltype(partial::of_add_in_a), 2>,
                             PartialOf<decltype(partial::of_add_in_b), 2>>;
  static constexpr int mul[] = {1, 0}, exp[] = {1}, add[] = {kOne, kOne};
  return k.f32 == Mul::vjp_kernel().f32   ? mul
         : k.f32 == Exp::vjp_kernel().f32 ? exp
         : k.f32 == Add::vjp_kernel().f32 ? add
                                          : nullptr;
}

struct MulOf {
  template <class V> V operator()(const V& a, const V& b) const { return a * b; }
};
struct AddOf {
  template <class V> V operator()(const V& a, const V& b) const { return a + b; }
};

class Coder {
 public:
  Coder(const Program& p, const ProgramStep& step, const std::vector<bool>& kept) : p_(p), kept_(kept) {
    code_.pass = *p.nodes[static_cast<std::size_t>(step.nodes[0])].fused;
    for (const std::int32_t n : step.nodes)
      add(p.nodes[static_cast<std::size_t>(n)]);
  }

  GroupCode finish() {
    assign_registers();
    hold_results();
    for (const Place& x : places_)
      code_.entries.push_back(entry_of(x));
    return std::move(code_);
  }

 private:
  Entry entry_of(const Place& x) const {
    const auto count = [](const auto& list) { return static_cast<Entry>(list.size()); };
    const Entry singles = 1 + code_.registers, streams = singles + count(code_.singles),
                bytes = streams + count(code_.streams), viewed = bytes + count(code_.bytes);
    switch (x.in) {
      case Place::In::local:
        return 1 + register_of_[x.at];
      case Place::In::single:
        return singles + x.at;
      case Place::In::stream:
        return streams + x.at;
      case Place::In::bytes:
        return bytes + x.at;
      case Place::In::viewed:
        return viewed + x.at;
      default:
        return 0;
    }
  }

  void add(const Node& node) {
    const int* const factors = node.kind == Node::Kind::pull ? factors_of(*node.vjp) : nullptr;
    if (is_full_sum(p_, node))
      add_full_sum(node);
    else if (node.kind == Node::Kind::select)
      add_fetch(node.in[0], node.view, result(node.out[0]));
    else if (is_cast_of_bools(p_, node))
      add_copy(operand(node.in[0], node), node.out[0]);
    else if (factors)
      add_products(node, factors);
    else if (node.kind == Node::Kind::pull)
      add_pull(node);
    else
      add_map(node);
  }

  void add_map(const Node& node) {
    std::vector<Place> x;
    for (const ValueId v : node.in)
      x.push_back(operand(v, node));
    const ValueId y = node.out[0];
    const bool writes_bools = kept(y) && p_.value(y).spec.dtype == DType::boolean;
    x.push_back(writes_bools ? results_[y] = new_local() : result(y));
    const kernels::MapKernel* logic = logic_kernel(node);
    set_map(add_instruction(Kind::map, x, node.in.size()), logic ? *logic : *node.map, arithmetic_of(node));
    if (!writes_bools) return;
    code_.writes.push_back(y);
    add_instruction(Kind::narrow, {x.back(), in_memory(code_.bytes, Place::In::bytes, {y, 0})}, 1);
  }

  // y is what is there.
  void add_copy(Place x, ValueId y) {
    if (kept(y))
      add_instruction(Kind::copy, {x, result(y)}, 1);
    else
      results_[y] = x;
  }

  void add_fetch(ValueId x, const kernels::StridedView& view, Place y) {
    const Elements e = elements_of(p_, x);
    add_read(e.value);
    add_instruction(Kind::fetch, {in_memory(code_.viewed, Place::In::viewed, e), y}, 1).at =
        static_cast<std::uint32_t>(code_.views.size());
    code_.views.push_back(view);
  }

  void set_map(GroupInstruction& i, const kernels::MapKernel& map, Arithmetic op) {
    arithmetic_.resize(code_.instructions.size(), Arithmetic::none);
    arithmetic_.back() = op;
    i.loop = is_f32() ? reinterpret_cast<void (*)()>(map.f32) : reinterpret_cast<void (*)()>(map.f64);
  }

  void add_full_sum(const Node& node) {
    const Place x = operand(node.in[0], node);
    if (code_.pass.n == 1)
      add_instruction(Kind::copy, {x, result(node.out[0])}, 1);
    else
      add_sum(x, {node.out[0], GroupCode::Order::full, node.op->name == "mean"});
  }

  void add_pull(const Node& node) {
    const auto inputs = static_cast<std::size_t>(node.vjp->inputs);
    std::vector<Place> x;
    for (std::size_t i = 0; i < inputs + 2; ++i)
      x.push_back(node.in[i] == kNoValue ? Place{} : operand(node.in[i], node));
    Put put[kernels::kFusedInputs] = {};
    std::vector<std::pair<Place, GroupCode::Sum>> sums;
    std::size_t added = inputs + 2;
    for (std::size_t i = 0; i < inputs; ++i) {
      const ValueId v = node.out[i];
      const bool adds = node.adds >> i & 1;
      const ValueId to = adds ? node.in[added++] : kNoValue;
      put[i] = v == kNoValue ? Put::nothing : adds ? Put::add : Put::store;
      if (v == kNoValue) {
        x.push_back({});
      } else if (p_.value(v).spec.shape.size() != code_.pass.n) {
        x.push_back(new_local());
        sums.emplace_back(x.back(), sum_of(node, i));
      } else if (const auto first =
                     std::find(node.out.begin(), node.out.begin() + static_cast<std::ptrdiff_t>(i), v);
                 first != node.out.begin() + static_cast<std::ptrdiff_t>(i)) {
        x.push_back(x[inputs + 2 + static_cast<std::size_t>(first - node.out.begin())]);
      } else {
        x.push_back(result(v));
        if (adds) add_instruction(Kind::copy, {operand(to, node), x.back()}, 1);
      }
    }
    GroupInstruction& i = add_instruction(Kind::pull, x, inputs + 2);
    std::copy(put, put + kernels::kFusedInputs, i.put);
    i.loop =
        is_f32() ? reinterpret_cast<void (*)()>(node.vjp->f32) : reinterpret_cast<void (*)()>(node.vjp->f64);
    for (const auto& [place, sum] : sums)
      add_sum(place, sum);
  }

  GroupCode::Sum sum_of(const Node& node, std::size_t i) const {
    if (p_.value(node.out[i]).spec.shape.size() == 1) return {node.out[i], GroupCode::Order::pull};
    return {node.out[i], GroupCode::Order::rows, false, *row_sum_of(p_, node, i)};
  }

  // A pull as products, and additions of them.
  void add_products(const Node& node, const int* factors) {
    const auto inputs = static_cast<std::size_t>(node.vjp->inputs);
    const Place dy = operand(node.in[inputs + 1], node);
    std::size_t added = inputs + 2;
    for (std::size_t i = 0; i < inputs; ++i) {
      const ValueId v = node.out[i];
      const bool adds = node.adds >> i & 1;
      const ValueId to = adds ? node.in[added++] : kNoValue;
      if (v == kNoValue) continue;
      const bool sums = p_.value(v).spec.shape.size() != code_.pass.n;
      Place product = dy;
      if (factors[i] == kOne) {
        if (!sums && !adds) add_copy(dy, v);
      } else {
        const Place factor = operand(node.in[static_cast<std::size_t>(factors[i])], node);
        product = sums || adds ? new_local() : result(v);
        set_map(add_instruction(Kind::map, {dy, factor, product}, 2), kernels::map_kernel<MulOf, 2>,
                Arithmetic::mul);
      }
      if (sums) add_sum(product, sum_of(node, i));
      if (!adds) continue;
      const Place before = to == kNoValue ? results_.at(v) : operand(to, node);
      const Place y = to == kNoValue ? before : result(v);
      set_map(add_instruction(Kind::map, {before, product, y}, 2), kernels::map_kernel<AddOf, 2>,
              Arithmetic::add);
    }
  }

  void add_sum(Place x, GroupCode::Sum sum) {
    if (kept(sum.to))
      code_.writes.push_back(sum.to);
    else
      sum.to = kNoValue;
    add_instruction(Kind::sum, {x}, 1).at = static_cast<std::uint32_t>(code_.sums.size());
    code_.sums.push_back(sum);
  }

  GroupInstruction& add_instruction(Kind kind, const std::vector<Place>& places, std::size_t operands) {
    GroupInstruction i{.kind = kind, .operands = static_cast<std::uint8_t>(operands)};
    i.first = static_cast<std::uint32_t>(places_.size());
    for (std::size_t k = 0; k < operands; ++k)
      if (places[k].in == Place::In::local || places[k].in == Place::In::stream)
        i.moves = static_cast<std::uint16_t>(i.moves | 1u << k);
    places_.insert(places_.end(), places.begin(), places.end());
    return code_.instructions.emplace_back(i);
  }

  Place operand(ValueId v, const Node& reader) {
    const Elements e = elements_of(p_, v);
    const bool moves = p_.value(v).spec.shape.size() == code_.pass.n;
    if (const auto found = results_.find(e.value); found != results_.end() && moves) return found->second;
    const Reading reading = reading_of(p_, code_.pass, v);
    if (reading == Reading::view) return viewed(v, shape_of(p_, reader));
    const auto [at, is_new] = operands_.try_emplace({e.value, e.first}, Place{});
    if (is_new) at->second = read(reading, e);
    return at->second;
  }
  Place read(Reading reading, Elements e) {
    add_read(e.value);
    if (reading == Reading::elements) return in_memory(code_.streams, Place::In::stream, e);
    if (reading == Reading::single) {
      code_.single_bools.push_back(p_.value(e.value).spec.dtype == DType::boolean);
      return in_memory(code_.singles, Place::In::single, e);
    }
    const Place wide = new_local();
    add_instruction(Kind::widen, {in_memory(code_.bytes, Place::In::bytes, e), wide}, 1);
    return wide;
  }
  // v broadcast to a shape.
  Place viewed(ValueId v, const Shape& shape) {
    const Shape& own = p_.value(v).spec.shape;
    for (const Viewed& known : viewed_)
      if (known.value == v && known.shape == shape) return known.place;
    const Place y = new_local();
    add_fetch(v, kernels::broadcast(own, shape.size() == own.size() ? own : shape), y);
    viewed_.push_back({v, shape, y});
    return y;
  }
  void add_read(ValueId v) {
    if (std::find(code_.reads.begin(), code_.reads.end(), v) == code_.reads.end()) code_.reads.push_back(v);
  }
  Place result(ValueId v) {
    if (kept(v)) code_.writes.push_back(v);
    return results_[v] = kept(v) ? in_memory(code_.streams, Place::In::stream, {v, 0}) : new_local();
  }
  static Place in_memory(std::vector<Elements>& list, Place::In in, Elements e) {
    list.push_back(e);
    return {in, static_cast<std::uint32_t>(list.size() - 1)};
  }
  Place new_local() { return {Place::In::local, locals_++}; }

  static Form form_of(const Place& x, const Place* held) {
    return held && x == *held ? Form::held : x.in == Place::In::single ? Form::single : Form::moving;
  }

  // The places of an instruction end where those of the next begin.
  std::size_t end_of(std::size_t i) const {
    return i + 1 < code_.instructions.size() ? code_.instructions[i + 1].first : places_.size();
  }

  // What arithmetic reads of the arithmetic right before it stays in vector registers.
  void hold_results() {
    const Place* held = nullptr;
    arithmetic_.resize(code_.instructions.size(), Arithmetic::none);
    for (std::size_t i = 0; i < code_.instructions.size(); ++i) {
      GroupInstruction& now = code_.instructions[i];
      const Place *a = &places_[now.first], *result = a + now.operands, *b = result - 1;
      const bool is_arithmetic = arithmetic_[i] != Arithmetic::none;
      if (is_arithmetic) now.code = arithmetic_code(arithmetic_[i], form_of(*a, held), form_of(*b, held));
      if (held && is_arithmetic && (*a == *held || *b == *held) && held->in == Place::In::local)
        code_.instructions[i - 1].stores = last_use_[held->at] != i;
      held = is_arithmetic ? result : nullptr;
    }
  }

  // An operand that nobody reads again leaves its register to the result: loops read a vector of all operands
  // before they write one.
  void assign_registers() {
    std::vector<std::size_t>& last = last_use_;
    last.resize(locals_);
    for (std::size_t i = 0; i < code_.instructions.size(); ++i)
      for (std::size_t k = code_.instructions[i].first; k < end_of(i); ++k)
        if (places_[k].in == Place::In::local) last[places_[k].at] = i;
    register_of_.assign(locals_, kUnassigned);
    std::vector<bool> is_free(locals_, false);
    std::vector<std::uint32_t> free;
    const auto release = [&](const Place& x, std::size_t i) {
      if (x.in != Place::In::local || last[x.at] != i || is_free[x.at]) return;
      is_free[x.at] = true;
      free.push_back(register_of_[x.at]);
    };
    for (std::size_t i = 0; i < code_.instructions.size(); ++i) {
      const std::size_t first = code_.instructions[i].first, results = first + code_.instructions[i].operands;
      for (std::size_t k = first; k < results; ++k)
        release(places_[k], i);
      for (std::size_t k = results; k < end_of(i); ++k)
        if (places_[k].in == Place::In::local) take(places_[k].at, free);
      for (std::size_t k = results; k < end_of(i); ++k)
        release(places_[k], i);
    }
  }
  void take(std::uint32_t local, std::vector<std::uint32_t>& free) {
    if (register_of_[local] != kUnassigned) return;
    if (free.empty()) free.push_back(code_.registers++);
    register_of_[local] = free.back();
    free.pop_back();
  }

  bool kept(ValueId v) const { return kept_[static_cast<std::size_t>(v)]; }
  bool is_f32() const { return code_.pass.dtype == DType::f32; }

  static constexpr std::uint32_t kUnassigned = ~0u;
  const Program& p_;
  const std::vector<bool>& kept_;
  GroupCode code_;
  std::vector<Place> places_;            // of all instructions
  std::vector<Arithmetic> arithmetic_;   // of instructions
  std::map<ValueId, Place> results_;
  std::map<std::pair<ValueId, std::int64_t>, Place> operands_;
  struct Viewed {
    ValueId value;
    Shape shape;
    Place place;
  };
  std::vector<Viewed> viewed_;
  std::uint32_t locals_ = 0;
  std::vector<std::uint32_t> register_of_;   // of locals
  std::vector<std::size_t> last_use_;        // of locals, by instructions
};

}   // namespace

GroupCode make_group_code(const Program& p, const ProgramStep& step, const std::vector<bool>& kept) {
  return Coder(p, step, kept).finish();
}

}   // namespace tapedeck::program
