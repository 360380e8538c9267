// In: the nodes of a group. Out: its instructions, with registers by linear scan.
//
// Until registers are assigned, the code is in static single-assignment form: one instruction writes a
// Register, which is new at that point, so that no operand can be overwritten. The only exception is a
// gradient to which a call adds.
#include "compile/fuse/group_code.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory_resource>
#include <tuple>
#include <utility>

#include "core/format.h"

namespace tapedeck::compiled {
namespace {

using Kind = GroupInstruction::Kind;
using kernels::Put;

/// An operand of an instruction: an index into Coder::places_, whose first element stands for zeros.
struct Source {
  std::uint32_t id = 0;
};
/// A result of an instruction. It converts to a Source; a Source never becomes a Register.
class Register {
 public:
  Register() = default;   // none
  operator Source() const { return {id_}; }

 private:
  friend class Coder;
  explicit Register(std::uint32_t id) : id_(id) {}
  std::uint32_t id_ = 0;
};

/// Operands or results of one instruction.
template <class T> class Few {
 public:
  Few() = default;
  Few(std::initializer_list<T> list) {
    for (const T& x : list)
      push_back(x);
  }
  void push_back(T x) {
    if (size_ == std::size(list_)) throw_error<InternalError>("compile: a loop has too many operands");
    list_[size_++] = x;
  }
  std::uint32_t size() const { return size_; }
  T& operator[](std::size_t i) { return list_[i]; }
  const T& operator[](std::size_t i) const { return list_[i]; }
  T& back() { return list_[size_ - 1]; }
  const T* begin() const { return list_; }
  const T* end() const { return list_ + size_; }

 private:
  T list_[kernels::kMaxOperands];
  std::uint32_t size_ = 0;
};

struct Place {
  enum class In : std::uint8_t { nothing, local, single, stream, result, bytes, bool_result, viewed };
  In in = In::nothing;
  std::uint32_t at = 0;   // the index among places of this kind
};

// An instruction before registers are assigned.
struct Draft {
  Kind kind;
  std::uint32_t operands = 0, results = 0;
  std::size_t first = 0;   // index into Coder::named_: the operands, then the results
  std::uint32_t at = 0;    // sum, fetch, call: its index; copy: 1 for a single element
};

using ViewKey = std::vector<std::int64_t>;
ViewKey key_of(const kernels::StridedView& v) {
  ViewKey key = {v.offset()};
  for (std::size_t d = 0; d < v.ndim(); ++d)
    key.insert(key.end(), {v[d].extent, v[d].stride});
  return key;
}

class Coder {
 public:
  Coder(const Program& p, const Passes& passes, const Step& step, const IdVector<ValueId, bool>& kept)
      : p_(p), passes_(passes), kept_(kept) {
    code_.pass = *passes[step.nodes[0]];
    for (const NodeId n : step.nodes)
      add(p[n]);
  }

  GroupCode finish() {
    assign_registers();
    for (const Draft& d : drafts_)
      for (std::uint32_t k = 0; k < d.operands + d.results; ++k) {
        const std::uint32_t id = named_[d.first + k];
        code_.entries.push_back(k < d.operands ? read_entry(id) : written_entry(id));
      }
    for (const Draft& d : drafts_)
      code_.instructions.push_back(instruction_of(d));
    code_.operations = static_cast<std::int64_t>(drafts_.size());
    list_memory();
    return std::move(code_);
  }

 private:
  TableIndex read_entry(std::uint32_t id) const {
    const Place& x = places_[id];
    switch (x.in) {
      case Place::In::local:
        return 1 + register_of_[x.at];
      case Place::In::single:
        return code_.first_single() + x.at;
      case Place::In::stream:
        return code_.first_stream() + x.at;
      case Place::In::result:
        return code_.first_result() + x.at;
      case Place::In::bytes:
        return code_.first_bytes() + x.at;
      case Place::In::viewed:
        return code_.first_viewed() + x.at;
      default:
        return 0;
    }
  }
  // A Register is always one of these three, or nothing.
  TableIndex written_entry(std::uint32_t id) const {
    const Place& y = places_[id];
    const auto results = static_cast<TableIndex>(code_.results.size());
    return y.in == Place::In::local    ? register_of_[y.at]
           : y.in == Place::In::result ? code_.registers + y.at
                                       : code_.registers + results + y.at;
  }

  GroupInstruction instruction_of(const Draft& d) const {
    const TableIndex* const at = &code_.entries[d.first];
    if (d.kind == Kind::call) return {.kind = d.kind, .b = d.at};
    return {.kind = d.kind, .a = at[0], .b = d.at, .y = d.results > 0 ? at[1] : 0};
  }

  void add(const Node& node) {
    shape_ = &shape_of_pass(p_, node);
    if (is_full_sum(p_, node)) return add_full_sum(std::get<OpNode>(node));
    if (const SelectNode* n = as<SelectNode>(node)) return add_select(*n);
    if (const VjpNode* n = as<VjpNode>(node)) return add_vjp(*n);
    if (const JvpNode* n = as<JvpNode>(node)) return add_map(n->in, n->out, *n->map);
    const OpNode& n = std::get<OpNode>(node);
    if (is_cast_of_bools(n)) return become(n.out[0], operand(n.in[0]));
    const kernels::MapKernel* const logic = logic_kernel(n);
    add_map(n.in, n.out[0], logic ? *logic : *n.map);
  }

  void add_map(const std::vector<Access>& in, ValueId y, const kernels::MapKernel& kernel) {
    Few<Source> x;
    for (const Access& a : in)
      x.push_back(operand(a));
    const bool writes_bools = kept(y) && p_[y].spec.dtype == DType::boolean;
    const Register to = writes_bools ? fresh() : output(y);
    call(x, {to}, kernel);
    become(y, to);
    if (!writes_bools) return;
    code_.bool_results.push_back(y);
    const Register bytes = add_place(Place::In::bool_result, code_.bool_results.size() - 1);
    emit(Kind::narrow, {to}, {bytes});
  }

  void add_select(const SelectNode& n) {
    const auto known = fetched_.find({n.in.of, n.in.first, key_of(*n.view)});
    if (known != fetched_.end())
      become(n.out, known->second);
    else
      results_.insert_or_assign(n.out, fetch(n.in, *n.view, output(n.out)));
  }
  // Emits a fetch of the elements that a view selects from memory.
  Source fetch(const Access& a, const kernels::StridedView& view, Register to) {
    code_.viewed.push_back({a.of, a.first});
    const Source x = add_place(Place::In::viewed, code_.viewed.size() - 1);
    emit(Kind::fetch, {x}, {to}).at = static_cast<std::uint32_t>(code_.views.size());
    code_.views.push_back(view);
    return fetched_[{a.of, a.first, key_of(view)}] = to;
  }

  void add_full_sum(const OpNode& n) {
    const Source x = operand(n.in[0]);
    if (code_.pass.n == 1)
      become(n.out[0], x);
    else
      add_sum(x, {n.out[0], GroupCode::Order::full, n.op->meaning == Meaning::mean});
  }
  void add_sum(Source x, GroupCode::Sum sum) {
    if (!kept(sum.to)) sum.to = {};
    emit(Kind::sum, {in_full(x)}, {}).at = static_cast<std::uint32_t>(code_.sums.size());
    code_.sums.push_back(sum);
  }
  GroupCode::Sum sum_of(const VjpNode& n, const VjpNode::Result& r) const {
    if (p_[r.value].spec.shape.size() == 1) return {r.value, GroupCode::Order::vjp};
    return {r.value, GroupCode::Order::rows, false, *row_sum_of(n, r)};
  }
  bool is_sum(const VjpNode::Result& r) const { return p_[r.value].spec.shape.size() != code_.pass.n; }

  void add_vjp(const VjpNode& n) {
    const std::size_t inputs = n.inputs();
    Few<Source> x;
    for (const Access& a : n.in)
      x.push_back(a.reads() ? operand(a) : Source());
    x.back() = in_full(x.back());   // dy
    Put put[kernels::kFusedInputs] = {};
    Few<Register> to;
    for (std::size_t i = 0; i < inputs; ++i)
      to.push_back({});
    for (const VjpNode::Result& r : n.results) {
      const Register y = is_sum(r) ? fresh() : output(r.value);
      if (r.before.reads()) copy(operand(r.before), y);
      bool adds = r.before.reads();
      for (std::size_t i = 0; i < inputs; ++i) {
        if (!(r.inputs >> i & 1)) continue;
        to[i] = y;
        put[i] = std::exchange(adds, true) ? Put::add : Put::store;
      }
    }
    GroupCall& c = call(x, to, *n.kernel);
    c.is_vjp = true;
    std::copy_n(put, kernels::kFusedInputs, c.put);
    for (const VjpNode::Result& r : n.results) {
      const Source y = to[static_cast<std::size_t>(std::countr_zero(r.inputs))];
      if (is_sum(r))
        add_sum(y, sum_of(n, r));
      else
        become(r.value, y);
    }
  }

  // The one of the dtype of the group.
  template <class F, class G> void (*of_dtype(F* f32, G* f64) const)() {
    return code_.pass.dtype == DType::f32 ? reinterpret_cast<void (*)()>(f32)
                                          : reinterpret_cast<void (*)()>(f64);
  }
  // Emits a call of the loop of a map or vjp kernel.
  template <class Kernel> GroupCall& call(const Few<Source>& x, const Few<Register>& to, const Kernel& k) {
    GroupCall c{.operands = static_cast<std::uint8_t>(x.size()),
                .first = static_cast<std::uint32_t>(named_.size()),
                .loop = of_dtype(k.f32, k.f64),
                .tracer = of_dtype(k.traced_f32, k.traced_f64)};
    for (std::size_t i = 0; i < x.size(); ++i)
      if (moves(x[i])) c.moves = static_cast<std::uint16_t>(c.moves | 1u << i);
    emit(Kind::call, x, to).at = static_cast<std::uint32_t>(code_.calls.size());
    return code_.calls.emplace_back(c);
  }

  Draft& emit(Kind kind, const Few<Source>& x, const Few<Register>& to) {
    Draft d{kind, x.size(), to.size(), named_.size()};
    for (const Source& s : x)
      named_.push_back(s.id);
    for (const Register& r : to)
      named_.push_back(r.id_);
    return drafts_.emplace_back(d);
  }
  void copy(Source x, Register to) { emit(Kind::copy, {x}, {to}).at = is_single(x); }
  // Returns x with one element per element of the block: broadcasts a single element.
  Source in_full(Source x) {
    if (!is_single(x)) return x;
    const Register y = fresh();
    copy(x, y);
    return y;
  }

  // Makes x the location of value y. If y must be in memory and x is not its memory, emits a copy.
  void become(ValueId y, Source x) {
    if (kept(y) && p_[y].spec.dtype != DType::boolean && !is_result(x, y)) {
      const Register to = output(y);
      copy(x, to);
      x = to;
    }
    results_.insert_or_assign(y, x);
  }
  bool is_result(Source x, ValueId y) const {
    const Place& place = places_[x.id];
    return place.in == Place::In::result && code_.results[place.at] == y;
  }

  Source operand(const Access& a) {
    if (const auto found = results_.find(a.of); found != results_.end() && a.size() == code_.pass.n)
      return found->second;
    const Reading reading = passes_.reading_of(code_.pass, a);
    if (reading == Reading::view) return viewed(a);
    const auto [at, is_new] = operands_.try_emplace({a.of, a.first, reading}, Source());
    if (is_new) at->second = read(reading, a);
    return at->second;
  }
  Source read(Reading reading, const Access& a) {
    const Elements e = {a.of, a.first};
    if (reading == Reading::elements) {
      code_.streams.push_back(e);
      return add_place(Place::In::stream, code_.streams.size() - 1);
    }
    if (reading == Reading::single) {
      code_.singles.push_back(e);
      code_.single_bools.push_back(a.spec.dtype == DType::boolean);
      return add_place(Place::In::single, code_.singles.size() - 1);
    }
    code_.bytes.push_back(e);
    const Source bytes = add_place(Place::In::bytes, code_.bytes.size() - 1);
    const Register wide = fresh();
    emit(Kind::widen, {bytes}, {wide});
    return wide;
  }
  // Fetches an operand that is broadcast to the shape of the pass.
  Source viewed(const Access& a) {
    const Shape& own = a.spec.shape;
    const kernels::StridedView view = kernels::broadcast(own, shape_->size() == own.size() ? own : *shape_);
    const auto known = fetched_.find({a.of, a.first, key_of(view)});
    return known != fetched_.end() ? known->second : fetch(a, view, fresh());
  }

  Register add_place(Place::In in, std::size_t at) {
    places_.push_back({in, static_cast<std::uint32_t>(at)});
    return Register(static_cast<std::uint32_t>(places_.size() - 1));
  }
  Register fresh() { return add_place(Place::In::local, locals_++); }
  // The register in which v is computed: in memory if v is kept.
  Register output(ValueId v) {
    if (!kept(v)) return fresh();
    code_.results.push_back(v);
    return add_place(Place::In::result, code_.results.size() - 1);
  }

  bool is_single(Source x) const { return places_[x.id].in == Place::In::single; }
  bool is_local(std::uint32_t id) const { return places_[id].in == Place::In::local; }
  bool moves(Source x) const {
    const Place::In in = places_[x.id].in;
    return in == Place::In::local || in == Place::In::stream || in == Place::In::result;
  }

  void list_memory() {
    const auto add_to = [](std::vector<ValueId>& list, ValueId v) {
      if (v && std::find(list.begin(), list.end(), v) == list.end()) list.push_back(v);
    };
    for (const auto* list : {&code_.singles, &code_.streams, &code_.bytes, &code_.viewed})
      for (const Elements& e : *list)
        add_to(code_.reads, e.of);
    for (const auto* list : {&code_.results, &code_.bool_results})
      for (const ValueId v : *list)
        add_to(code_.writes, v);
    for (const GroupCode::Sum& s : code_.sums)
      add_to(code_.writes, s.to);
  }

  // Linear scan. The register of an operand that nothing reads again may be reused for the result of a map,
  // since its loop reads a vector of each operand before it writes a vector; loops of vjps may write a
  // gradient first. The register of a fetch is never reused.
  void assign_registers() {
    std::vector<std::size_t> last_use(locals_, 0);   // the index of an instruction
    for (std::size_t i = 0; i < drafts_.size(); ++i)
      for_each_local(drafts_[i], 0, drafts_[i].operands + drafts_[i].results,
                     [&](std::uint32_t local) { last_use[local] = i; });
    register_of_.assign(locals_, kUnassigned);
    std::vector<bool> is_settled(locals_, false);   // released, or never to be
    std::vector<std::uint32_t> free;
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      const Draft& d = drafts_[i];
      if (d.kind == Kind::fetch) {
        for_each_local(d, d.operands, d.operands + d.results, [&](std::uint32_t local) {
          register_of_[local] = code_.registers++;
          is_settled[local] = true;
        });
        continue;
      }
      const auto release = [&](std::uint32_t local) {
        if (last_use[local] != i || is_settled[local]) return;
        is_settled[local] = true;
        free.push_back(register_of_[local]);
      };
      const bool is_vjp = d.kind == Kind::call && code_.calls[d.at].is_vjp;
      if (!is_vjp) for_each_local(d, 0, d.operands, release);
      for_each_local(d, d.operands, d.operands + d.results, [&](std::uint32_t local) { take(local, free); });
      for_each_local(d, 0, d.operands + d.results, release);
    }
  }
  template <class F>
  void for_each_local(const Draft& d, std::uint32_t begin, std::uint32_t end, const F& f) const {
    for (std::uint32_t k = begin; k < end; ++k)
      if (const std::uint32_t id = named_[d.first + k]; is_local(id)) f(places_[id].at);
  }
  void take(std::uint32_t local, std::vector<std::uint32_t>& free) {
    if (register_of_[local] != kUnassigned) return;
    if (free.empty()) free.push_back(code_.registers++);
    register_of_[local] = free.back();
    free.pop_back();
  }

  bool kept(ValueId v) const { return kept_[v]; }

  static constexpr std::uint32_t kUnassigned = ~0u;
  const Program& p_;
  const Passes& passes_;
  const IdVector<ValueId, bool>& kept_;
  const Shape* shape_ = nullptr;   // the shape of the pass for the node that is being added
  GroupCode code_;
  std::vector<Draft> drafts_;
  std::vector<Place> places_ = {Place()};   // by the ids of sources and registers
  std::vector<std::uint32_t> named_;        // the ids of the operands and results of all drafts
  std::pmr::monotonic_buffer_resource memory_{1 << 12};
  std::pmr::map<ValueId, Source> results_{&memory_};   // where the results of the group's nodes are
  /// Operands that were read before, by value, first element and reading.
  std::pmr::map<std::tuple<ValueId, std::int64_t, Reading>, Source> operands_{&memory_};
  std::pmr::map<std::tuple<ValueId, std::int64_t, ViewKey>, Source> fetched_{&memory_};
  std::uint32_t locals_ = 0;
  std::vector<std::uint32_t> register_of_;   // by local
};

}   // namespace

GroupCode make_group_code(const Program& p, const Passes& passes, const Step& step,
                          const IdVector<ValueId, bool>& kept) {
  return Coder(p, passes, step, kept).finish();
}

}   // namespace tapedeck::compiled
