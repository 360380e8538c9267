// In: the nodes of a group. Out: its instructions, with registers by linear scan.
#include "program/group_code.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <type_traits>

#include "program/logic.h"
#include "program/node_arithmetic.h"

namespace tapedeck::program {
namespace {

using Kind = GroupInstruction::Kind;
using kernels::Put;

constexpr std::size_t kChain = 256;   // instructions after which a new chain of handlers begins

// Where an operand or result is, before entries are numbered.
struct Place {
  enum class In : std::uint8_t { nothing, local, single, stream, bytes, viewed } in = In::nothing;
  std::uint32_t at = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

// An instruction before entries are numbered and results are held.
struct Draft {
  Kind kind;
  Arithmetic op = Arithmetic::none;
  std::size_t operands = 0;
  std::size_t first = 0;   // of the places: the operands, then the results
  std::uint32_t at = 0;    // sum, fetch: which; call: of the calls
  bool stores = true;
  Form forms[2] = {Form::moving, Form::moving};
};

bool are_same(const kernels::StridedView& a, const kernels::StridedView& b) {
  if (a.offset() != b.offset() || a.ndim() != b.ndim()) return false;
  for (std::size_t d = 0; d < a.ndim(); ++d)
    if (a[d].extent != b[d].extent || a[d].stride != b[d].stride) return false;
  return true;
}

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
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      if (i > 0 && i % kChain == 0) code_.instructions.push_back({code_of(Kind::pause)});
      if (const Then then = then_of(i); then != Then::none)
        code_.instructions.push_back(product_of(drafts_[i], then, drafts_[i + 1])), ++i;
      else
        code_.instructions.push_back(instruction_of(drafts_[i]));
    }
    code_.instructions.push_back({code_of(Kind::end)});
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

  GroupInstruction instruction_of(const Draft& d) const {
    const Entry* const at = &code_.entries[d.first];
    switch (d.kind) {
      case Kind::arithmetic:
        return {code_of(d.op, d.forms[0], d.forms[1]), d.stores, at[0], at[d.operands - 1], at[d.operands]};
      case Kind::call:
        return {code_of(d.kind), true, 0, d.at};
      case Kind::sum:
        return {code_of(d.forms[0] == Form::held ? Kind::held_sum : d.kind), true, at[0], d.at};
      default:
        return {code_of(d.kind), d.stores, at[0], d.at, at[1]};
    }
  }

  // What follows product i in one instruction with it.
  Then then_of(std::size_t i) const {
    if (i + 1 == drafts_.size() || drafts_[i].op != Arithmetic::mul || drafts_[i].stores) return Then::none;
    const Draft& next = drafts_[i + 1];
    const bool is_first = next.forms[0] == Form::held;
    if (is_first == (next.forms[1] == Form::held)) return Then::none;
    if (next.op == Arithmetic::add) return Then::add;
    if (next.op == Arithmetic::sub) return is_first ? Then::sub : Then::sub_from;
    return Then::none;
  }
  GroupInstruction product_of(const Draft& d, Then then, const Draft& next) const {
    const Entry *const x = &code_.entries[d.first], *const y = &code_.entries[next.first];
    const int c = next.forms[0] == Form::held ? 1 : 0;
    const Entry b = x[d.operands - 1];   // a square has one operand
    return {
        code_of(then, d.forms[0], d.forms[1], next.forms[c]), next.stores, x[0], b, y[next.operands], y[c]};
  }

  void add(const Node& node) {
    const auto steps = node.kind == Node::Kind::pull ? steps_of(*node.vjp) : std::span<const PullSteps>();
    if (is_full_sum(p_, node))
      add_full_sum(node);
    else if (node.kind == Node::Kind::select)
      add_select(node);
    else if (is_cast_of_bools(p_, node))
      add_copy(operand(node.in[0], node), node.out[0]);
    else if (!steps.empty())
      add_steps(node, steps);
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
    if (const Arithmetic op = arithmetic_of(node); op != Arithmetic::none)
      add_draft(Kind::arithmetic, x, node.in.size()).op = op;
    else
      add_call(x, node.in.size(), logic ? *logic : *node.map);
    if (!writes_bools) return;
    code_.writes.push_back(y);
    add_draft(Kind::narrow, {x.back(), in_memory(code_.bytes, Place::In::bytes, {y, 0})}, 1);
  }

  // y is what is there.
  void add_copy(Place x, ValueId y) {
    if (kept(y))
      add_copy(x, result(y));
    else
      results_[y] = x;
  }
  void add_copy(Place x, Place y) { add_draft(Kind::copy, {x, y}, 1).at = x.in == Place::In::single; }
  // x, with an element for each of the block.
  Place in_full(Place x) {
    if (x.in != Place::In::single) return x;
    const Place y = new_local();
    add_copy(x, y);
    return y;
  }

  void add_select(const Node& node) {
    if (const Place* const known = find_fetched(node.in[0], node.view))
      add_copy(*known, node.out[0]);
    else
      add_fetch(node.in[0], node.view, result(node.out[0]));
  }
  const Place* find_fetched(ValueId x, const kernels::StridedView& view) const {
    const auto [begin, end] = fetched_.equal_range(x);
    const auto found = std::find_if(begin, end, [&](const auto& f) { return are_same(f.second.view, view); });
    return found == end ? nullptr : &found->second.place;
  }
  void add_fetch(ValueId x, const kernels::StridedView& view, Place y) {
    const Elements e = elements_of(p_, x);
    add_read(e.value);
    add_draft(Kind::fetch, {in_memory(code_.viewed, Place::In::viewed, e), y}, 1).at =
        static_cast<std::uint32_t>(code_.views.size());
    code_.views.push_back(view);
    fetched_.insert({x, {view, y}});
  }

  // The loop of a map or vjp kernel.
  template <class Kernel>
  GroupCall& add_call(const std::vector<Place>& places, std::size_t operands, const Kernel& k) {
    GroupCall c{.is_pull = std::is_same_v<Kernel, kernels::VjpKernel>,
                .operands = static_cast<std::uint8_t>(operands),
                .first = static_cast<std::uint32_t>(places_.size()),
                .loop = is_f32() ? reinterpret_cast<void (*)()>(k.f32) : reinterpret_cast<void (*)()>(k.f64)};
    for (std::size_t i = 0; i < operands; ++i)
      if (places[i].in == Place::In::local || places[i].in == Place::In::stream)
        c.moves = static_cast<std::uint16_t>(c.moves | 1u << i);
    add_draft(Kind::call, places, operands).at = static_cast<std::uint32_t>(code_.calls.size());
    return code_.calls.emplace_back(c);
  }

  void add_full_sum(const Node& node) {
    const Place x = operand(node.in[0], node);
    if (code_.pass.n == 1)
      add_copy(x, result(node.out[0]));
    else
      add_sum(x, {node.out[0], GroupCode::Order::full, node.op->name == "mean"});
  }

  void add_pull(const Node& node) {
    const auto inputs = static_cast<std::size_t>(node.vjp->inputs);
    std::vector<Place> x;
    for (std::size_t i = 0; i < inputs + 2; ++i)
      x.push_back(node.in[i] == kNoValue ? Place{} : operand(node.in[i], node));
    x.back() = in_full(x.back());   // dy
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
        if (adds) add_copy(operand(to, node), x.back());
      }
    }
    std::copy(put, put + kernels::kFusedInputs, add_call(x, inputs + 2, *node.vjp).put);
    for (const auto& [place, sum] : sums)
      add_sum(place, sum);
  }

  GroupCode::Sum sum_of(const Node& node, std::size_t i) const {
    if (p_.value(node.out[i]).spec.shape.size() == 1) return {node.out[i], GroupCode::Order::pull};
    return {node.out[i], GroupCode::Order::rows, false, *row_sum_of(p_, node, i)};
  }

  // A pull as arithmetic, and additions of what it gives.
  void add_steps(const Node& node, std::span<const PullSteps> steps) {
    std::size_t added = steps.size() + 2;
    Place so_far;   // of gradients that are one value: their sum, which is written once, when it is complete
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const ValueId v = node.out[i];
      const bool adds = node.adds >> i & 1;
      const ValueId to = adds ? node.in[added++] : kNoValue;
      if (v == kNoValue) continue;
      const bool sums = p_.value(v).spec.shape.size() != code_.pass.n;
      const bool goes_on =
          std::find(node.out.begin() + static_cast<std::ptrdiff_t>(i) + 1, node.out.end(), v) != node.out.end();
      const Place dx = add_steps(node, steps[i], sums || adds || goes_on ? kNoValue : v);
      if (sums) add_sum(dx, sum_of(node, i));
      if (adds) {
        const Place before = to == kNoValue ? so_far : operand(to, node);
        so_far = goes_on ? new_local() : result(v);
        add_draft(Kind::arithmetic, {before, dx, so_far}, 2).op = Arithmetic::add;
      } else {
        so_far = dx;
      }
    }
  }
  // Returns where the last result is, which becomes v unless that is none.
  Place add_steps(const Node& node, PullSteps steps, ValueId v) {
    const ValueId dy = node.in[static_cast<std::size_t>(node.vjp->inputs) + 1];
    Place last = operand(dy, node);
    const auto place_of = [&](int x) {
      return x == PullStep::kLast        ? last
             : x == PullStep::kCotangent ? operand(dy, node)
                                         : operand(node.in[static_cast<std::size_t>(x)], node);
    };
    if (steps.size() == 1 && steps[0].op == Arithmetic::mul && is_one(p_, dy))
      if (const Place factor = place_of(steps[0].b); factor.in != Place::In::single)
        last = factor, steps = {};
    if (steps.empty() && v != kNoValue) add_copy(last, v);
    for (const PullStep& s : steps) {
      std::vector<Place> x = {place_of(s.a)};
      if (!has_one_operand(s.op)) x.push_back(place_of(s.b));
      const std::size_t operands = x.size();
      x.push_back(&s == &steps.back() && v != kNoValue ? result(v) : new_local());
      add_draft(Kind::arithmetic, x, operands).op = s.op;
      last = x.back();
    }
    return last;
  }

  void add_sum(Place x, GroupCode::Sum sum) {
    if (kept(sum.to))
      code_.writes.push_back(sum.to);
    else
      sum.to = kNoValue;
    add_draft(Kind::sum, {in_full(x)}, 1).at = static_cast<std::uint32_t>(code_.sums.size());
    code_.sums.push_back(sum);
  }

  Draft& add_draft(Kind kind, const std::vector<Place>& places, std::size_t operands) {
    const std::size_t first = places_.size();
    places_.insert(places_.end(), places.begin(), places.end());
    return drafts_.emplace_back(Draft{kind, Arithmetic::none, operands, first});
  }

  Place operand(ValueId v, const Node& reader) {
    const Elements e = elements_of(p_, v);
    const bool moves = p_.value(v).spec.shape.size() == code_.pass.n;
    if (const auto found = results_.find(e.value); found != results_.end() && moves) return found->second;
    const Reading reading = reading_of(p_, code_.pass, v);
    if (reading == Reading::view) return viewed(v, shape_of(p_, reader));
    const auto [at, is_new] = operands_.try_emplace({e.value, e.first, reading}, Place{});
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
    add_draft(Kind::widen, {in_memory(code_.bytes, Place::In::bytes, e), wide}, 1);
    return wide;
  }
  // v broadcast to a shape.
  Place viewed(ValueId v, const Shape& shape) {
    const Shape& own = p_.value(v).spec.shape;
    const kernels::StridedView view = kernels::broadcast(own, shape.size() == own.size() ? own : shape);
    if (const Place* const known = find_fetched(v, view)) return *known;
    const Place y = new_local();
    add_fetch(v, view, y);
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
    return i + 1 < drafts_.size() ? drafts_[i + 1].first : places_.size();
  }

  // What is read of the arithmetic, or of what was fetched, right before it stays in vector registers, where
  // a sum leaves it.
  void hold_results() {
    const Place* held = nullptr;
    Draft* from = nullptr;
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      Draft& now = drafts_[i];
      if (i % kChain == 0) held = nullptr;
      const Place *a = &places_[now.first], *result = a + now.operands, *b = result - 1;
      if (reads_held_results(now)) {
        now.forms[0] = form_of(*a, held), now.forms[1] = form_of(*b, held);
        if (held && (*a == *held || *b == *held) && held->in == Place::In::local)
          from->stores = last_use_[held->at] != i;
      }
      const bool is_held_sum = now.kind == Kind::sum && now.forms[0] == Form::held;
      if (!is_held_sum) held = leaves_results(now) ? result : nullptr, from = &now;
    }
  }
  static bool leaves_results(const Draft& d) { return d.kind == Kind::arithmetic || d.kind == Kind::fetch; }
  bool reads_held_results(const Draft& d) const {
    return d.kind == Kind::arithmetic ||
           (d.kind == Kind::sum && code_.sums[d.at].order != GroupCode::Order::rows);
  }

  // An operand that nobody reads again leaves its register to the result: loops read a vector of all operands
  // before they write one.
  void assign_registers() {
    std::vector<std::size_t>& last = last_use_;
    last.resize(locals_);
    for (std::size_t i = 0; i < drafts_.size(); ++i)
      for (std::size_t k = drafts_[i].first; k < end_of(i); ++k)
        if (places_[k].in == Place::In::local) last[places_[k].at] = i;
    register_of_.assign(locals_, kUnassigned);
    std::vector<bool> is_free(locals_, false);
    std::vector<std::uint32_t> free;
    const auto release = [&](const Place& x, std::size_t i) {
      if (x.in != Place::In::local || last[x.at] != i || is_free[x.at]) return;
      is_free[x.at] = true;
      free.push_back(register_of_[x.at]);
    };
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      const std::size_t first = drafts_[i].first, results = first + drafts_[i].operands;
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
  std::vector<Draft> drafts_;
  std::vector<Place> places_;   // of all drafts
  std::map<ValueId, Place> results_;
  std::map<std::tuple<ValueId, std::int64_t, Reading>, Place> operands_;
  struct Fetched {
    kernels::StridedView view;
    Place place;
  };
  std::multimap<ValueId, Fetched> fetched_;   // by the value that it is elements of
  std::uint32_t locals_ = 0;
  std::vector<std::uint32_t> register_of_;   // of locals
  std::vector<std::size_t> last_use_;        // of locals, by instructions
};

}   // namespace

GroupCode make_group_code(const Program& p, const ProgramStep& step, const std::vector<bool>& kept) {
  return Coder(p, step, kept).finish();
}

}   // namespace tapedeck::program
