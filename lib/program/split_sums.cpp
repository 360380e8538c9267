// In: a program. Out: the same without those sums of many terms that groups can compute.
#include "program/split_sums.h"

#include <algorithm>
#include <utility>

#include "core/format.h"
#include "kernels/elementwise/map.h"
#include "program/pass.h"

namespace tapedeck::program {
namespace {

struct Add {
  template <class V> V operator()(const V& a, const V& b) const { return a + b; }
};

const Op& add_op() {
  static const Op* const add = [] {
    for (const OpFamily& family : op_families())
      for (const Op& op : family.ops)
        if (op.name == "add") return &op;
    throw_error<InternalError>("programs: there is no op add");
  }();
  return *add;
}

class Splitter {
 public:
  explicit Splitter(Program& p) : p_(p), is_there_(p.nodes.size(), false) {}

  void run() {
    std::vector<Node> old = std::exchange(p_.nodes, {});
    for (std::size_t n = 0; n < old.size(); ++n)
      if (is_split(old, old[n])) sums_.push_back({n, old[n].in, old[n].out[0], old[n].in[0]});
    for (std::size_t n = 0; n < old.size(); ++n) {
      const bool split = std::any_of(sums_.begin(), sums_.end(), [&](const Sum& s) { return s.node == n; });
      if (!split) p_.nodes.push_back(std::move(old[n]));
      is_there_[n] = true;
      for (Sum& s : sums_)
        advance(s);
    }
  }

 private:
  struct Sum {
    std::size_t node;   // of the old ones
    std::vector<ValueId> terms;
    ValueId result, so_far;
    std::size_t next = 1;   // term
  };

  bool is_split(const std::vector<Node>& nodes, const Node& node) const {
    if (node.kind != Node::Kind::op || node.op->name != "add_n" || node.in.size() < 2) return false;
    const Spec& spec = p_.value(node.out[0]).spec;
    const NodePass pass = {spec.dtype, spec.shape.size()};
    return std::all_of(node.in.begin(), node.in.end(), [&](ValueId v) {
      const Value& value = p_.value(elements_of(p_, v).value);
      if (value.from != Value::From::node) return value.from == Value::From::constant;
      const Node& from = nodes[static_cast<std::size_t>(value.at)];
      return value.spec.shape.size() == pass.n && from.fused == pass && !is_full_sum(p_, from);
    });
  }

  bool is_there(ValueId v) const {
    const Value& value = p_.value(elements_of(p_, v).value);
    return value.from != Value::From::node || is_there_[static_cast<std::size_t>(value.at)];
  }
  void advance(Sum& s) {
    if (!is_there(s.terms[0])) return;
    for (; s.next < s.terms.size() && is_there(s.terms[s.next]); ++s.next) {
      ValueId sum = s.result;
      if (s.next + 1 < s.terms.size()) {
        p_.values.push_back({.spec = p_.value(s.result).spec, .at = static_cast<std::int32_t>(s.node)});
        sum = static_cast<ValueId>(p_.values.size()) - 1;
      }
      p_.nodes.push_back({.kind = Node::Kind::op,
                          .op = &add_op(),
                          .map = &kernels::map_kernel<Add, 2>,
                          .in = {s.so_far, s.terms[s.next]},
                          .out = {sum}});
      s.so_far = sum;
    }
  }

  Program& p_;
  std::vector<bool> is_there_;   // by old nodes: their values are computed
  std::vector<Sum> sums_;
};

}   // namespace

void split_sums(Program& p) {
  Splitter(p).run();
  number_values(p);
}

}   // namespace tapedeck::program
