// In: a program. Out: the first rule that it breaks. The verifier shares no code with the tracer and the
// rewrites.
#include "compile/ir/verify.h"

#include "compile/ir/broken_rule.h"
#include "tape/variable.h"

namespace tapedeck::compiled {
namespace {

class ProgramVerifier {
 public:
  explicit ProgramVerifier(const Program& p) : p_(p), defined_(p.values().size(), 0) {}

  void run() {
    for (const ValueId v : ids_of(p_.values()))
      check_beginning(v);
    for (at_ = NodeId(0); at_.index() < p_.size(); at_ = NodeId(at_.index() + 1)) {
      for_each_operand(p_[at_], [&](const Access& a) { check(a); });
      for_each_result(p_[at_], [&](ValueId v) { define(v); });
      std::visit([&](const auto& n) { check_specs(n); }, p_[at_]);
    }
    at_ = {};
    for (const Access& a : p_.outputs())
      if (a.reads()) check(a);
    for (const ValueId v : p_.arguments())
      if (v.index() >= defined_.size() || p_[v].from != Value::From::argument)
        broken("an argument has no value of its own");
    check_keys();
  }
  std::string where() const { return at_ ? fmt::format("node {}, {}: ", at_.index(), name_of(p_[at_])) : ""; }

 private:
  const Spec& spec(ValueId v) const { return p_[v].spec; }

  void check_beginning(ValueId v) {
    const Value& value = p_[v];
    defined_[v] = value.from == Value::From::argument || value.from == Value::From::constant;
    if (value.from == Value::From::constant && value.constant.spec() != value.spec)
      broken("constant {} is {}, but its value is {}", v.index(), value.constant.spec(), value.spec);
    if (value.from == Value::From::argument &&
        (value.argument >= p_.arguments().size() || p_.arguments()[value.argument] != v))
      broken("value {} is an argument that does not exist", v.index());
  }
  void check(const Access& a) const {
    if (a.of.index() >= defined_.size()) broken("reads a value that does not exist");
    if (!defined_[a.of]) broken("reads value {} before it is defined", a.of.index());
    if (p_.is_all(a)) return;
    if (a.spec.dtype != spec(a.of).dtype) broken("reads {} as {}", spec(a.of), a.spec);
    const std::int64_t n = a.size(), all = spec(a.of).shape.size();
    if (a.first < 0 || n > all || a.first > all - n)
      broken("reads {} from element {} of {}", a.spec, a.first, spec(a.of));
  }
  void define(ValueId v) {
    if (v.index() >= defined_.size()) broken("defines a value that does not exist");
    if (defined_[v]) broken("defines value {}, which is defined already", v.index());
    if (p_[v].node != at_) broken("value {} is attributed to another node", v.index());
    defined_[v] = 1;
  }
  void check_keys() const {
    for (const KeyId k : ids_of(p_.keys()))
      if (const DerivedKey& key = p_.keys()[k]; key.of && key.of.index() >= k.index())
        broken("key {} is split from a later one", k.index());
  }

  void require(bool holds, std::string_view rule) const {
    if (!holds) broken("{}", rule);
  }
  void same(const Spec& a, const Spec& b, std::string_view what) const {
    if (a != b) broken("{}: {} and {}", what, a, b);
  }
  // Operands of an elementwise kernel broadcast to its result.
  void check_broadcast(const std::vector<Access>& in, const Shape& y) const {
    for (const Access& a : in) {
      const Shape& x = a.spec.shape;
      bool fits = x.ndim() <= y.ndim();
      for (int d = 1; fits && d <= x.ndim(); ++d)
        fits = x[x.ndim() - d] == y[y.ndim() - d] || x[x.ndim() - d] == 1;
      if (!fits) broken("{} does not broadcast to {}", a.spec, to_string(y));
    }
  }

  void check_specs(const OpNode& n) const {
    require(n.op != nullptr, "the op is missing");
    require(!n.key || n.key.index() < p_.keys().size(), "its key does not exist");
    for (const Access& a : n.in)
      require(a.reads(), "an op must read all of its operands");
    if (n.map && n.out.size() == 1 && n.out[0]) check_broadcast(n.in, spec(n.out[0]).shape);
  }
  void check_specs(const JvpNode& n) const {
    require(n.map && static_cast<std::size_t>(n.map->operands) == n.in.size(),
            "the number of operands is wrong");
    check_broadcast(n.in, spec(n.out).shape);
  }
  void check_specs(const VjpNode& n) const {
    require(n.kernel && n.in.size() == n.inputs() + 2, "the number of operands is wrong");
    require(n.dy().reads(), "the cotangent is missing");
    unsigned given = 0;
    for (const VjpNode::Result& r : n.results) {
      require(r.value && r.inputs != 0, "a result is the gradient of no input");
      require((r.inputs & given) == 0, "an input has two gradients");
      given |= r.inputs;
      check_gradient(n, r);
    }
    require(given >> n.inputs() == 0, "a result is the gradient of an input that does not exist");
  }
  void check_gradient(const VjpNode& n, const VjpNode::Result& r) const {
    const Spec& y = spec(r.value);
    const bool is_sum = y.shape != n.dy().spec.shape;
    require(!is_sum || (r.inputs & (r.inputs - 1)) == 0,
            "only one gradient can be summed over axes into a value");
    for (std::size_t i = 0; i < n.inputs(); ++i) {
      if (!(r.inputs >> i & 1)) continue;
      if (is_sum) same(y, n.in[i].spec, "a gradient must have the spec of its input");
      for (std::size_t k = 0; k <= n.inputs(); ++k)
        require(!(n.kernel->reads[i] >> k & 1) || n.in[k].reads(),
                "a gradient reads an operand that is missing");
    }
    require(y.dtype == n.dy().spec.dtype, "a gradient must have the dtype of its cotangent");
    if (r.before.reads())
      same(y, r.before.spec, "a gradient must have the spec of the value to which it is added");
  }
  void check_specs(const UserMapNode& n) const {
    require(n.loops && n.inputs >= 0 && static_cast<std::size_t>(n.inputs) <= n.in.size(),
            "the number of operands is wrong");
    for (const UserMapNode::Result& r : n.results)
      if (r.before.reads()) {
        require(static_cast<bool>(r.value), "a sum must be a result");
        same(spec(r.value), r.before.spec, "a result must have the spec of the value to which it is added");
      }
  }
  void check_specs(const SelectNode& n) const {
    require(n.view != nullptr, "the view is missing");
    const Reach reach(*n.view);
    const std::int64_t count = reach.count, least = reach.least, most = reach.most;
    if (count == 0) return;
    if (count != spec(n.out).shape.size())
      broken("a view of {} elements has the result {}", count, spec(n.out));
    if (least < 0 || most >= n.in.size())
      broken("a view selects elements {} to {} of {}", least, most, n.in.spec);
  }
  void check_specs(const ProductSum& n) const {
    require(n.in.size() == 3, "the number of operands is wrong");
    const Shape &a = n.a().spec.shape, &b = n.b().spec.shape;
    require(a.ndim() == 2 && b.ndim() == 2, "the factors must be matrices");
    const std::int64_t rows = a[n.transposed.transpose_a], inner = a[!n.transposed.transpose_a],
                       columns = b[!n.transposed.transpose_b];
    require(inner == b[n.transposed.transpose_b], "the inner extents differ");
    same(spec(n.out), {n.a().spec.dtype, {rows, columns}}, "a product must have the extents of its factors");
    same(spec(n.out), n.before().spec, "a product must have the spec of the value to which it is added");
  }
  void check_specs(const ReadNode& n) const {
    same(spec(n.out), n.cell->value.spec(), "a variable must keep its spec");
  }
  void check_specs(const StoreNode& n) const {
    same(n.in.spec, n.cell->value.spec(), "a variable must keep its spec");
  }
  void check_specs(const ActionNode& n) const {
    require(n.action != nullptr, "the action is missing");
    require(!n.key || n.key.index() < p_.keys().size(), "its key does not exist");
  }

  const Program& p_;
  IdVector<ValueId, std::uint8_t> defined_;
  NodeId at_;
};

}   // namespace

std::optional<std::string> verify(const Program& p) { return fault_of(ProgramVerifier(p)); }

}   // namespace tapedeck::compiled
