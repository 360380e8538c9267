// In: a program. Out: the same without sums of products. BLAS adds a product of few terms to what is there
// when it has computed it, so that results have the bits of a product and a sum.
#include "program/add_products.h"

#include <algorithm>

#include "program/pass.h"

namespace tapedeck::program {
namespace {

constexpr std::int64_t kMostTerms = 64;   // oneDNN looks at the result before it has added up 128

class Adder {
 public:
  explicit Adder(Program& p) : p_(p), uses_(p.values.size(), 0) {
    for (const Node& n : p.nodes)
      count(n.in);
    count(p.outputs);
  }

  void run() {
    std::vector<bool> replaced(p_.nodes.size(), false);
    for (std::size_t n = 0; n < p_.nodes.size(); ++n)
      if (is_sum_of_products(p_.nodes[n])) {
        replace(p_.nodes[n]);
        replaced[n] = true;
      }
    std::size_t kept = 0;
    for (std::size_t n = 0; n < p_.nodes.size(); ++n)
      if (!replaced[n]) {
        if (kept != n) p_.nodes[kept] = std::move(p_.nodes[n]);
        ++kept;
      }
    p_.nodes.erase(p_.nodes.begin() + static_cast<std::ptrdiff_t>(kept), p_.nodes.end());
    number_values(p_);
  }

 private:
  void count(const std::vector<ValueId>& read) {
    for (const ValueId v : read)
      if (v != kNoValue) ++uses_[static_cast<std::size_t>(elements_of(p_, v).value)];
  }
  // Before all nodes: where v is there from the beginning.
  std::int32_t node_of(ValueId v) const {
    const Value& value = p_.value(elements_of(p_, v).value);
    return value.from == Value::From::node ? value.at : -1;
  }

  bool is_product(ValueId v) const {
    const Value& value = p_.value(v);
    if (value.from != Value::From::node || uses_[static_cast<std::size_t>(v)] != 1) return false;
    const Node& node = p_.nodes[static_cast<std::size_t>(value.at)];
    if (node.kind != Node::Kind::op || node.op->name != "matmul") return false;
    const Shape &y = value.spec.shape, &a = p_.value(node.in[0]).spec.shape;
    if (y.ndim() != 2 || y[0] <= 1 || y[1] <= 1) return false;   // a vector is added to term by term
    return a.size() <= kMostTerms * y[0];
  }
  bool is_sum_of_products(const Node& node) const {
    if (node.kind != Node::Kind::op || node.op->name != "add_n" || node.in.size() < 2) return false;
    const DType dtype = p_.value(node.out[0]).spec.dtype;
    if (dtype != DType::f32 && dtype != DType::f64) return false;
    for (std::size_t i = 1; i < node.in.size(); ++i)
      if (!is_product(node.in[i]) || node_of(node.in[i]) <= node_of(node.in[i - 1])) return false;
    return true;
  }
  void replace(const Node& sum) {
    for (std::size_t i = 1; i < sum.in.size(); ++i) {
      Node& product = p_.nodes[static_cast<std::size_t>(node_of(sum.in[i]))];
      product.kind = Node::Kind::add_product;
      product.in.push_back(sum.in[i - 1]);
      if (i + 1 == sum.in.size()) product.out[0] = sum.out[0];   // else a term's value is the sum up to it
    }
  }

  Program& p_;
  std::vector<int> uses_;   // of values, by nodes and as results
};

}   // namespace

void add_products(Program& p) { Adder(p).run(); }

}   // namespace tapedeck::program
