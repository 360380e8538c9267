// In: a program. Out: an equivalent one in which sums of matrix products are computed by accumulating
// products. BLAS completes a product of few terms before it adds it to the accumulator, so the results have
// the same bits as separate products and sums.
#include "compile/rewrite/product_sums.h"

#include <algorithm>

namespace tapedeck::compiled {
namespace {

constexpr std::int64_t kMostTerms = 64;   // oneDNN reads the accumulator before it has added up 128 terms

class Finder {
 public:
  explicit Finder(const Program& p) : p_(p), uses_(p.values().size(), 0) {
    for (const Node& n : p.nodes())
      for_each_operand(n, [&](const Access& a) { ++uses_[a.of]; });
    for (const Access& a : p.outputs())
      if (a.reads()) ++uses_[a.of];
  }

  bool is_sum_of_products(const Node& node) const {
    const OpNode* n = as<OpNode>(node);
    if (!n || n->op->meaning != Meaning::add_n || n->in.size() < 2) return false;
    const DType dtype = n->in[0].spec.dtype;
    if (dtype != DType::f32 && dtype != DType::f64) return false;
    if (!is_product(n->in[0])) return false;   // others may be -0, to which BLAS adds terms that are -0 alone
    for (std::size_t i = 1; i < n->in.size(); ++i) {
      if (!is_product(n->in[i]) || uses_[n->in[i].of] != 1 || !p_.is_all(n->in[i])) return false;
      const NodeId before = p_.node_of(n->in[i - 1]);
      if (before && before >= p_.node_of(n->in[i])) return false;
    }
    return true;
  }

 private:
  bool is_product(const Access& term) const {
    const NodeId from = p_.node_of(term);
    const OpNode* n = from ? as<OpNode>(p_[from]) : nullptr;
    if (!n || n->op->meaning != Meaning::matmul) return false;
    const Shape &y = term.spec.shape, &a = n->in[0].spec.shape, &b = n->in[1].spec.shape;
    if (y.ndim() != 2 || a.ndim() != 2 || b.ndim() != 2) return false;
    if (y[0] <= 1 || y[1] <= 1) return false;   // for vectors, BLAS adds to the accumulator term by term
    return a.size() <= kMostTerms * y[0];
  }

  const Program& p_;
  IdVector<ValueId, int> uses_;   // by nodes, and as outputs
};

}   // namespace

Program with_product_sums(Program p) {
  struct Sum {
    Access before;
    ValueId out;
  };
  IdVector<NodeId, Sum> sums(p.size());   // by product: the sum that it becomes
  IdVector<NodeId, bool> dropped(p.size());
  bool any = false;
  const Finder finder(p);
  for (const NodeId id : ids_of(p.nodes())) {
    if (!finder.is_sum_of_products(p[id])) continue;
    const OpNode& sum = std::get<OpNode>(p[id]);
    dropped[id] = any = true;
    for (std::size_t i = 1; i < sum.in.size(); ++i)   // the node of a term computes the sum up to this term
      sums[p.node_of(sum.in[i])] = {sum.in[i - 1], i + 1 == sum.in.size() ? sum.out[0] : sum.in[i].of};
  }
  if (!any) return p;
  auto [rewritten, nodes] = std::move(p).take_apart();
  for (const NodeId id : ids_of(nodes)) {
    if (dropped[id]) continue;
    if (!sums[id].out) {
      rewritten.define(std::move(nodes[id]));
      continue;
    }
    const OpNode& product = std::get<OpNode>(nodes[id]);
    rewritten.define(ProductSum{.op = product.op,
                                .transposed = *static_cast<const MatmulOptions*>(product.attrs.view().data),
                                .in = {product.in[0], product.in[1], sums[id].before},
                                .out = sums[id].out});
  }
  return std::move(rewritten);
}

}   // namespace tapedeck::compiled
