// In: the nodes of a group, and its code. Out: the first difference between their results.
//
// A term stands for an element of the pass: an element of a value in memory, or an operation on terms. Equal
// terms have equal ids. The nodes determine the wanted terms; the code is executed symbolically, instruction
// by instruction, and yields the computed terms. The verifier is independent of the code generator, but
// relies on the same facts about nodes: logic_kernel, row_sum_of, and which constants are uniform.
#include "compile/fuse/verify.h"

#include <algorithm>
#include <bit>
#include <memory_resource>
#include <unordered_map>

#include "compile/ir/broken_rule.h"

namespace tapedeck::compiled {
namespace {

using Kind = GroupInstruction::Kind;
using kernels::Put;

using Term = std::uint32_t;   // 0: unknown
constexpr Term kUnknown = 0;

/// The kind of a term, which has two other terms or numbers as operands.
enum class Head : std::uint8_t {
  element,    // one element of a value, for all elements of the pass
  elements,   // consecutive elements of a value, one for each element of the pass
  uniform,    // any element of a value whose elements are equal
  view,       // the elements that a view selects; axes follow
  axis,
  next,     // a list with one more entry
  result,   // one result of a call
  added,    // gradients that form one value
  sum,      // a sum, and its order
};

class Terms {
 public:
  Terms(std::size_t expected, std::pmr::memory_resource& memory) : ids_(expected, &memory) {}

  Term make(Head head, std::uint64_t a, std::uint64_t b = 0) {
    return ids_.try_emplace({head, a, b}, static_cast<Term>(ids_.size() + 1)).first->second;
  }
  // Does not depend on the order of a and b, except for which of two NaN it is.
  Term added(Term a, Term b) { return make(Head::added, std::min(a, b), std::max(a, b)); }

 private:
  struct Key {
    Head head;
    std::uint64_t a, b;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const {
      std::uint64_t h = static_cast<std::uint64_t>(k.head) * 0x9e3779b97f4a7c15 + k.a;
      h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9 + k.b;
      return static_cast<std::size_t>((h ^ h >> 32) * 0x94d049bb133111eb);
    }
  };

  std::pmr::unordered_map<Key, Term, Hash> ids_;
};

class GroupVerifier {
 public:
  GroupVerifier(const Program& p, const Passes& passes, const Step& step, const GroupCode& code)
      : p_(p), passes_(passes), step_(step), code_(code), n_(code.pass.n) {}

  void run() {
    for (const NodeId n : step_.nodes) {
      at_ = n;
      want(p_[n]);
    }
    at_ = {};
    follow();
    compare();
  }
  std::string where() const { return at_ ? fmt::format("node {}, {}: ", at_.index(), name_of(p_[at_])) : ""; }

 private:
  // Terms of elements in memory.

  std::int64_t size_of_value(ValueId v) const { return p_[v].spec.shape.size(); }
  Term element(ValueId v, std::int64_t at) {
    if (at < 0 || at >= size_of_value(v)) broken("element {} of {} is read", at, p_[v].spec);
    if (passes_.is_uniform(v)) return terms_.make(Head::uniform, v.index());
    return terms_.make(Head::element, v.index(), static_cast<std::uint64_t>(at));
  }
  Term elements(ValueId v, std::int64_t first) {
    if (n_ == 1 || passes_.is_uniform(v)) return element(v, first);
    const std::int64_t all = size_of_value(v);
    if (first < 0 || n_ > all || first > all - n_)
      broken("{} elements of {} are read from {} on", n_, p_[v].spec, first);
    return terms_.make(Head::elements, v.index(), static_cast<std::uint64_t>(first));
  }
  Term view(ValueId v, std::int64_t first, const kernels::StridedView& view) {
    const Reach reach(view);
    const std::int64_t count = reach.count, least = first + reach.least, most = first + reach.most;
    if (count != n_ || least < 0 || most >= size_of_value(v))
      broken("elements {} to {} of {} are selected, {} for a pass of {}", least, most, p_[v].spec, count, n_);
    const std::int64_t begin = first + view.offset();
    if (view.ndim() == 0 || (view.ndim() == 1 && view[0].stride == 0)) return element(v, begin);
    if (view.ndim() == 1 && view[0].stride == 1) return elements(v, begin);
    if (passes_.is_uniform(v)) return element(v, begin);
    Term t = terms_.make(Head::view, v.index(), static_cast<std::uint64_t>(begin));
    for (std::size_t d = 0; d < view.ndim(); ++d)
      t = terms_.make(Head::axis, terms_.make(Head::axis, t, static_cast<std::uint64_t>(view[d].extent)),
                      static_cast<std::uint64_t>(view[d].stride));
    return t;
  }

  // The wanted terms, from the nodes.

  Term operand(const Access& a) {
    if (const auto known = wanted_.find(a.of); known != wanted_.end() && a.size() == n_) return known->second;
    if (a.size() == 1) return element(a.of, a.first);
    if (a.size() == n_) return elements(a.of, a.first);
    return view(a.of, a.first, kernels::broadcast(a.spec.shape, shape_of_pass(p_, p_[at_])));
  }
  /// The loop of a kernel for the dtype of the group, and its tracer.
  struct Function {
    std::uintptr_t loop, tracer;
  };
  Term list(const std::vector<Term>& x, Function f) {
    Term t = terms_.make(Head::next, f.loop, f.tracer);
    for (const Term one : x)
      t = terms_.make(Head::next, t, one);
    return t;
  }
  template <class Kernel> Function function_of(const Kernel& k) const {
    const auto of = [](auto* loop, auto* tracer) {
      return Function{reinterpret_cast<std::uintptr_t>(loop), reinterpret_cast<std::uintptr_t>(tracer)};
    };
    return code_.pass.dtype == DType::f32 ? of(k.f32, k.traced_f32) : of(k.f64, k.traced_f64);
  }
  Term call(const std::vector<Term>& x, Function f, std::uint64_t result) {
    return terms_.make(Head::result, list(x, f), result);
  }
  Term map(const std::vector<Access>& in, const kernels::MapKernel& k) {
    std::vector<Term> x;
    for (const Access& a : in)
      x.push_back(operand(a));
    return call(x, function_of(k), 0);
  }

  void want(const Node& node) {
    if (is_full_sum(p_, node)) {
      const OpNode& n = std::get<OpNode>(node);
      const bool mean = n.op->meaning == Meaning::mean;
      if (n_ == 1)
        want(n.out[0], operand(n.in[0]));
      else
        want_sum(n.out[0], operand(n.in[0]), {n.out[0], GroupCode::Order::full, mean});
    } else if (const SelectNode* select = as<SelectNode>(node)) {
      want(select->out, view(select->in.of, select->in.first, *select->view));
    } else if (const VjpNode* vjp = as<VjpNode>(node)) {
      for (const VjpNode::Result& r : vjp->results)
        want_gradient(*vjp, r);
    } else if (const JvpNode* tangent = as<JvpNode>(node)) {
      want(tangent->out, map(tangent->in, *tangent->map));
    } else {
      want(std::get<OpNode>(node));
    }
  }
  void want(const OpNode& n) {
    const kernels::MapKernel* const logic = logic_kernel(n);
    if (is_cast_of_bools(n))
      want(n.out[0], operand(n.in[0]));
    else if (logic || n.map)
      want(n.out[0], map(n.in, logic ? *logic : *n.map));
    else
      broken("it is not elementwise");
  }
  void want(ValueId v, Term t) {
    wanted_[v] = t;
    of_[v] = at_;
  }
  Term sum(Term x, const GroupCode::Sum& s) {
    const auto how = static_cast<std::uint64_t>(s.order) * 2 + s.mean;
    return terms_.make(
        Head::sum, terms_.make(Head::sum, x, how),
        static_cast<std::uint64_t>(s.rows.width) << 32 | static_cast<std::uint64_t>(s.rows.rows_of_band));
  }
  void want_sum(ValueId v, Term x, const GroupCode::Sum& how) {
    sums_[v] = sum(x, how);
    of_[v] = at_;
  }
  void want_gradient(const VjpNode& n, const VjpNode::Result& r) {
    Term so_far = r.before.reads() ? operand(r.before) : kUnknown;
    for (unsigned left = r.inputs; left; left &= left - 1) {
      const Term dx = gradient(n, static_cast<std::size_t>(std::countr_zero(left)));
      so_far = so_far == kUnknown ? dx : terms_.added(so_far, dx);
    }
    const Shape& shape = p_[r.value].spec.shape;
    if (shape.size() == n_) return want(r.value, so_far);
    const auto rows = row_sum_of(n, r);
    if (shape.size() == 1)
      want_sum(r.value, so_far, {r.value, GroupCode::Order::vjp});
    else if (rows)
      want_sum(r.value, so_far, {r.value, GroupCode::Order::rows, false, *rows});
    else
      broken("groups cannot compute the sum of a gradient");
  }
  Term gradient(const VjpNode& n, std::size_t i) {
    std::vector<Term> x;
    for (const Access& a : n.in)
      x.push_back(a.reads() ? operand(a) : kUnknown);
    return call(x, function_of(*n.kernel), i);
  }

  // The computed terms, from the code.

  void follow() {
    read_.assign(code_.size(), kUnknown);
    written_.assign(code_.written(), kUnknown);
    added_.assign(code_.sums.size(), kUnknown);
    fetched_.assign(code_.views.size(), false);
    filled_by_view_.assign(code_.registers, false);
    fill();
    for (const GroupInstruction& i : code_.instructions)
      follow(i);
  }
  void fill() {
    for (std::size_t s = 0; s < code_.singles.size(); ++s) {
      const Elements& e = code_.singles[s];
      require_dtype(e.of, code_.single_bools[s]);
      read_[code_.first_single() + s] = element(e.of, e.first);
    }
    for (std::size_t s = 0; s < code_.streams.size(); ++s) {
      const Elements& e = code_.streams[s];
      require_dtype(e.of, false);
      require_lines(e, size_of(code_.pass.dtype));
      read_[code_.first_stream() + s] = elements(e.of, e.first);
    }
    for (std::size_t s = 0; s < code_.bytes.size(); ++s) {
      const Elements& e = code_.bytes[s];
      require_dtype(e.of, true);
      read_[code_.first_bytes() + s] = elements(e.of, e.first);
    }
    for (const Elements& e : code_.viewed)
      require_dtype(e.of, false);
  }
  void require_dtype(ValueId v, bool boolean) const {
    if (p_[v].spec.dtype != (boolean ? DType::boolean : code_.pass.dtype))
      broken("{} is read with the wrong dtype", p_[v].spec);
  }
  // Loops read whole lines of 64 bytes, and the memory of a value is padded to whole lines from its
  // beginning.
  void require_lines(const Elements& e, std::int64_t size) const {
    if (!passes_.is_uniform(e.of) && e.first * size + lines(n_ * size) > lines(size_of_value(e.of) * size))
      broken("lines beyond the end of {} are read", p_[e.of].spec);
  }

  Term read(TableIndex e) const {
    if (e >= read_.size() || read_[e] == kUnknown) broken("an entry is read that has not been set");
    return read_[e];
  }
  // moves: whether the entry has one element for each element of the pass, not a single one.
  Term read(TableIndex e, bool moves) const {
    const bool single = e >= code_.first_single() && e < code_.first_stream();
    if (single == moves) broken("an entry is read in the wrong form");
    if (e >= code_.first_bytes()) broken("bools are read as numbers");
    return read(e);
  }
  void write(TableIndex y, Term t, bool as_bools = false) {
    if (y >= written_.size()) broken("an entry is written that does not exist");
    if (as_bools != (y >= code_.registers + code_.results.size()))
      broken("numbers are written as bools, or bools as numbers");
    if (y < code_.registers && filled_by_view_[y]) broken("a register of a view is written again");
    written_[y] = t;
    if (y < code_.registers)
      read_[1 + y] = t;
    else if (const TableIndex r = y - code_.registers; r < code_.results.size())
      read_[code_.first_result() + r] = t;
  }

  void follow(const GroupInstruction& i) {
    if (i.a >= read_.size()) broken("an entry is outside its table");
    switch (i.kind) {
      case Kind::call:
        if (i.b >= code_.calls.size()) broken("an instruction has no call");
        return follow_call(code_.calls[i.b]);
      case Kind::copy:
        return write(i.y, read(i.a, i.b == 0));
      case Kind::fetch:
        return follow_fetch(i);
      case Kind::widen:
        if (i.a < code_.first_bytes() || i.a >= code_.first_viewed()) broken("numbers are read as bools");
        return write(i.y, read(i.a));
      case Kind::narrow:
        return write(i.y, read(i.a, true), true);
      case Kind::sum:
        return add(i.b, read(i.a, true));
      default:
        broken("an instruction has an unknown kind");
    }
  }
  void follow_fetch(const GroupInstruction& i) {
    if (i.a < code_.first_viewed() || i.a >= code_.size())
      broken("a view selects from an operand that is not in memory");
    if (i.b >= code_.views.size()) broken("an instruction has no view");
    if (fetched_[i.b]) broken("a view is followed twice in a block");
    fetched_[i.b] = true;
    if (i.y < code_.registers && written_[i.y] != kUnknown) broken("a view is fetched to a register in use");
    const Elements& e = code_.viewed[i.a - code_.first_viewed()];
    write(i.y, view(e.of, e.first, code_.views[i.b]));
    if (i.y < code_.registers) filled_by_view_[i.y] = true;
  }
  void add(TableIndex sum, Term t) {
    if (sum >= added_.size() || added_[sum] != kUnknown) broken("a sum is added to twice");
    added_[sum] = t;
  }
  void follow_call(const GroupCall& c) {
    if (c.is_vjp ? c.operands < 3 || c.operands > kernels::kFusedInputs + 2
                 : c.operands > kernels::kMaxOperands)
      broken("a call has a wrong number of operands");
    const std::size_t places = c.operands + (c.is_vjp ? c.operands - 2u : 1u);
    if (c.first > code_.entries.size() || places > code_.entries.size() - c.first)
      broken("a call has too few entries");
    const TableIndex* const entry = &code_.entries[c.first];
    std::vector<Term> x;
    for (TableIndex k = 0; k < c.operands; ++k) {
      const bool moves = c.moves >> k & 1;
      const TableIndex e = entry[k];
      if (e == 0 && moves) broken("zeros are read beyond their end");
      x.push_back(e == 0 ? kUnknown : read(e, moves));
    }
    const Function f = {reinterpret_cast<std::uintptr_t>(c.loop), reinterpret_cast<std::uintptr_t>(c.tracer)};
    if (!c.is_vjp) return write(entry[c.operands], call(x, f, 0));
    if (x.back() == kUnknown || !(c.moves >> (c.operands - 1) & 1))
      broken("a cotangent is missing, or is a single element");
    for (TableIndex k = 0; k + 2 < c.operands; ++k) {
      if (c.put[k] == Put::nothing) continue;
      const TableIndex y = entry[c.operands + k];
      const Term dx = call(x, f, k);
      if (y < code_.registers && std::find(entry, entry + c.operands, 1 + y) != entry + c.operands)
        broken("a gradient is written over an operand");
      if (c.put[k] == Put::store)
        write(y, dx);
      else if (c.put[k] == Put::add && y < written_.size() && written_[y] != kUnknown)
        write(y, terms_.added(written_[y], dx));
      else
        broken("a gradient is added to a result that has not been set");
    }
  }

  // The comparison of computed and wanted terms.

  void compare() {
    std::unordered_map<std::size_t, int> times;
    const auto check = [&](ValueId v, Term t, DType dtype) {
      if (p_[v].spec.dtype != dtype) broken("{} is written as {}", p_[v].spec, name_of(dtype));
      const auto wanted = wanted_.find(v);
      if (wanted == wanted_.end())
        broken("value {} is written, but no node of the group computes it", v.index());
      at_ = of_[v];
      if (p_[v].spec.shape.size() != n_) broken("{} is written in a pass of {}", p_[v].spec, n_);
      if (++times[v.index()] > 1) broken("its result is written twice");
      if (t != wanted->second) broken("the group writes a wrong value for its result");
    };
    for (std::size_t r = 0; r < code_.results.size(); ++r)
      check(code_.results[r], written_[code_.registers + r], code_.pass.dtype);
    for (std::size_t r = 0; r < code_.bool_results.size(); ++r)
      check(code_.bool_results[r], written_[code_.registers + code_.results.size() + r], DType::boolean);
    for (std::size_t s = 0; s < code_.sums.size(); ++s) {
      const GroupCode::Sum& how = code_.sums[s];
      if (!how.to) continue;
      if (p_[how.to].spec.dtype != code_.pass.dtype)
        broken("{} is summed with the wrong dtype", p_[how.to].spec);
      const auto wanted = sums_.find(how.to);
      if (wanted == sums_.end())
        broken("value {} is summed, but it is not a sum of the group", how.to.index());
      at_ = of_[how.to];
      if (added_[s] == kUnknown || sum(added_[s], how) != wanted->second)
        broken("the group sums the wrong elements, or in the wrong order");
    }
  }

  struct HashOfValue {
    std::size_t operator()(ValueId v) const { return v.index(); }
  };
  template <class T> using ByValue = std::pmr::unordered_map<ValueId, T, HashOfValue>;

  const Program& p_;
  const Passes& passes_;
  const Step& step_;
  const GroupCode& code_;
  const std::int64_t n_;
  NodeId at_;   // the current node, for messages
  std::pmr::monotonic_buffer_resource memory_{1 << 12};
  Terms terms_{6 * step_.nodes.size(), memory_};   // as many as gradients need
  ByValue<Term> wanted_{2 * step_.nodes.size(), &memory_}, sums_{&memory_};
  ByValue<NodeId> of_{2 * step_.nodes.size(), &memory_};
  std::vector<Term> read_, written_, added_;   // by entry of the tables; added_: by sum
  std::vector<bool> fetched_;                  // by view, since each has one cursor
  std::vector<bool> filled_by_view_;           // by register
};

}   // namespace

std::optional<std::string> verify(const Program& p, const Passes& passes, const Step& step,
                                  const GroupCode& code) {
  return fault_of(GroupVerifier(p, passes, step, code));
}

}   // namespace tapedeck::compiled
