// einsum. In: an equation and tensors. Out: a tensor, computed by matmul for matrix products of
// floating-point operands, else by mul and sum. First, diagonals replace repeated labels of an operand; then
// the op multiplies pairs of operands from left to right.
#include "tapedeck/ops/einsum.h"

#include <algorithm>
#include <string>

#include "core/format.h"
#include "core/storage.h"
#include "ops/axes.h"
#include "ops/linalg/einsum.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {
bool has(const Labels& labels, char l) { return labels.find(l) != Labels::npos; }
bool broadcasts(char l) { return l <= Shape::kMaxRank; }

struct Term {
  Tensor x;
  Labels labels;

  std::int64_t extent(char l) const { return x.shape()[static_cast<int>(labels.find(l))]; }
  std::int64_t extent(const Labels& some) const {
    Shape extents;
    for (const char l : some)
      extents.push_back(extent(l));
    return extents.size();
  }
};

class Equation {
 public:
  Equation(std::string_view text, std::span<const Tensor> operands) : text_(text) {
    std::string dense(text);
    std::erase(dense, ' ');
    const std::size_t arrow = dense.find("->");
    std::string inputs = dense.substr(0, arrow);
    const auto count = static_cast<std::size_t>(std::count(inputs.begin(), inputs.end(), ',')) + 1;
    if (count != operands.size())
      throw_error<ArgumentError>("einsum: \"{}\" has {} operands, {} are given", text_, count,
                                 operands.size());
    for (const Tensor& x : operands) {
      const std::size_t end = std::min(inputs.find(','), inputs.size());
      terms_.push_back({x, labels_of_operand(inputs.substr(0, end), x)});
      inputs.erase(0, end + 1);
    }
    check_extents();
    output_ = arrow == std::string::npos ? implicit_output() : labels_of_output(dense.substr(arrow + 2));
  }

  std::vector<Term>& terms() { return terms_; }
  const Labels& output() const { return output_; }

 private:
  // The letters before and after "..." in one term of the equation.
  struct Part {
    Labels before, behind;
    bool dots;
  };
  Part parse(const std::string& part) const {
    const std::size_t dots = part.find("...");
    Part p{part.substr(0, dots), dots == std::string::npos ? "" : part.substr(dots + 3),
           dots != std::string::npos};
    for (const char l : p.before + p.behind)
      if (!(l >= 'a' && l <= 'z') && !(l >= 'A' && l <= 'Z'))
        throw_error<ArgumentError>(
            "einsum: \"{}\" is not an equation at '{}': write labels as letters, one \"...\" in an operand, "
            "commas between operands and \"->\" before the output",
            text_, l);
    return p;
  }
  static Labels dots(int n) {
    Labels labels;
    for (int back = n; back > 0; --back)
      labels.push_back(static_cast<char>(back));
    return labels;
  }
  Labels labels_of_operand(const std::string& part, const Tensor& x) {
    const Part p = parse(part);
    const int letters = static_cast<int>(p.before.size() + p.behind.size());
    if (p.dots ? letters > x.ndim() : letters != x.ndim())
      throw_error<ShapeError>("einsum: operand {} of \"{}\" has {} labels{}, but is {}", terms_.size(), text_,
                              letters, p.dots ? " besides the ellipsis" : "", x.spec());
    if (p.dots) dots_ = std::max(dots_, x.ndim() - letters);
    return p.before + (p.dots ? dots(x.ndim() - letters) : Labels()) + p.behind;
  }
  Labels labels_of_output(const std::string& part) const {
    const Part p = parse(part);
    const Labels letters = p.before + p.behind;
    for (const char l : letters) {
      if (std::none_of(terms_.begin(), terms_.end(), [&](const Term& t) { return has(t.labels, l); }))
        throw_error<ArgumentError>("einsum: label {} of the output of \"{}\" is in no operand", l, text_);
      if (std::count(letters.begin(), letters.end(), l) > 1)
        throw_error<ArgumentError>("einsum: label {} occurs twice in the output of \"{}\"", l, text_);
    }
    return p.before + (p.dots ? dots(dots_) : Labels()) + p.behind;
  }
  Labels implicit_output() const {
    Labels all, once;
    for (const Term& t : terms_)
      all += t.labels;
    for (const char l : all)
      if (!broadcasts(l) && std::count(all.begin(), all.end(), l) == 1) once.push_back(l);
    std::sort(once.begin(), once.end());
    return dots(dots_) + once;
  }
  // All axes of a label must have one extent; axes that "..." covers also broadcast from 1.
  void check_extents() const {
    for (std::size_t i = 0; i < terms_.size(); ++i)
      for (std::size_t a = 0; a < terms_[i].labels.size(); ++a)
        for (std::size_t j = 0; j <= i; ++j)
          for (std::size_t b = 0; b < (j == i ? a : terms_[j].labels.size()); ++b) {
            const char l = terms_[i].labels[a];
            if (terms_[j].labels[b] != l) continue;
            const std::int64_t p = terms_[j].x.shape()[static_cast<int>(b)],
                               q = terms_[i].x.shape()[static_cast<int>(a)];
            if (p == q || (broadcasts(l) && (p == 1 || q == 1))) continue;
            throw_error<ShapeError>("einsum: {} of \"{}\" is {} in operand {}, {}, and {} in operand {}, {}",
                                    broadcasts(l) ? "an ellipsis axis" : fmt::format("label {}", l), text_, p,
                                    j, terms_[j].x.spec(), q, i, terms_[i].x.spec());
          }
  }

  std::string_view text_;
  std::vector<Term> terms_;
  Labels output_;
  int dots_ = 0;
};

Tensor arranged(const Term& t, const Labels& order) {
  if (t.labels == order) return t.x;
  std::vector<int> perm;
  for (const char l : order)
    perm.push_back(static_cast<int>(t.labels.find(l)));
  return transpose(t.x, perm);
}

// Replaces each pair of axes with the same label by its diagonal.
void take_diagonals(Term& t) {
  for (std::size_t first = 0; first < t.labels.size(); ++first) {
    const std::size_t second = t.labels.find(t.labels[first], first + 1);
    if (second == Labels::npos) continue;
    std::vector<int> perm;
    Labels left;
    for (std::size_t d = 0; d < t.labels.size(); ++d) {
      if (d == first || d == second) continue;
      perm.push_back(static_cast<int>(d));
      left.push_back(t.labels[d]);
    }
    perm.push_back(static_cast<int>(first));
    perm.push_back(static_cast<int>(second));
    t.x = diagonal(std::is_sorted(perm.begin(), perm.end()) ? t.x : transpose(t.x, perm));
    t.labels = left + t.labels[first];
    first = static_cast<std::size_t>(-1);
  }
}

// Sums over the labels for which drop(l) holds.
template <class F> void sum_over(Term& t, const F& drop) {
  std::vector<int> axes;
  for (std::size_t d = 0; d < t.labels.size(); ++d)
    if (drop(t.labels[d])) axes.push_back(static_cast<int>(d));
  if (axes.empty()) return;
  t.x = sum(t.x, axes);
  std::erase_if(t.labels, drop);
}

// Removes axes of extent 1 that would broadcast with the other operand.
void squeeze_repeated(Term& t, const Term& other) {
  std::vector<int> axes;
  for (std::size_t d = 0; d < t.labels.size(); ++d)
    if (has(other.labels, t.labels[d]) && t.x.shape()[static_cast<int>(d)] == 1 &&
        other.extent(t.labels[d]) != 1)
      axes.push_back(static_cast<int>(d));
  if (axes.empty()) return;
  t.x = squeeze(t.x, axes);
  for (auto d = axes.rbegin(); d != axes.rend(); ++d)
    t.labels.erase(static_cast<std::size_t>(*d), 1);
}

template <class F> Labels those(const Labels& labels, const F& wanted) {
  Labels some;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(some), wanted);
  return some;
}

// The term with its axes in this order, with extent 1 for labels that it does not have.
Tensor spread(const Term& t, const Labels& order) {
  const Tensor x = arranged(t, those(order, [&](char l) { return has(t.labels, l); }));
  Shape shape;
  for (const char l : order)
    shape.push_back(has(t.labels, l) ? t.extent(l) : 1);
  return x.shape() == shape ? x : reshape(x, shape);
}

Term by_elements(const Term& a, const Term& b, const Labels& kept, const Labels& summed) {
  Term y{spread(a, kept + summed) * spread(b, kept + summed), kept + summed};
  sum_over(y, [&](char l) { return has(summed, l); });
  return y;
}

/// A product as one matmul over three groups of axes of each operand: batch axes, which both operands and the
/// result have; axes that only this operand has; and axes that are summed over.
class MatrixProduct {
 public:
  MatrixProduct(const Term& a, const Term& b, const Labels& wanted) : a_(a), b_(b), wanted_(wanted) {
    const auto in_both = [&](char l) { return has(a.labels, l) && has(b.labels, l); };
    const auto is_batch = [&](char l) { return in_both(l) && has(wanted, l); };
    const auto is_summed = [&](char l) { return in_both(l) && !has(wanted, l); };
    const auto of_a = [&](char l) { return has(a.labels, l) && !in_both(l); };
    const auto of_b = [&](char l) { return has(b.labels, l) && !in_both(l); };
    for (const Labels& batch :
         {those(a.labels, is_batch), those(b.labels, is_batch), those(wanted, is_batch)})
      for (const Labels& summed : {those(a.labels, is_summed), those(b.labels, is_summed)})
        for (const Labels& own_a : {those(a.labels, of_a), those(wanted, of_a)})
          for (const Labels& own_b : {those(b.labels, of_b), those(wanted, of_b)}) {
            if (moved_ == 0) return;
            consider({batch, summed, own_a, own_b, false});
            consider({batch, summed, own_a, own_b, true});
          }
  }

  Term result() const {
    const Labels &first = best_.exchanged ? best_.own_b : best_.own_a,
                 &second = best_.exchanged ? best_.own_a : best_.own_b;
    const Matrices p = as_matrices(best_.exchanged ? b_ : a_, first),
                   q = as_matrices(best_.exchanged ? a_ : b_, second);
    const Tensor y = matmul(p.x, q.x, {.transpose_a = !p.rows_are_own, .transpose_b = q.rows_are_own});
    Shape shape;
    for (const char l : best_.batch)
      shape.push_back(a_.extent(l));
    for (const char l : first + second)
      shape.push_back((has(a_.labels, l) ? a_ : b_).extent(l));
    return {y.shape() == shape ? y : reshape(y, shape), best_.batch + first + second};
  }

 private:
  struct Order {
    Labels batch, summed, own_a, own_b;
    bool exchanged;
  };
  struct Matrices {
    Tensor x;
    bool rows_are_own;
  };

  // Keeps the order that moves the fewest elements.
  void consider(const Order& o) {
    const auto moves = [&](const Term& t, const Labels& own) {
      return t.labels == o.batch + own + o.summed || t.labels == o.batch + o.summed + own ? 0 : t.x.size();
    };
    const bool in_place = o.batch + (o.exchanged ? o.own_b + o.own_a : o.own_a + o.own_b) == wanted_;
    const std::int64_t moved = moves(a_, o.own_a) + moves(b_, o.own_b) +
                               (in_place ? 0 : a_.extent(o.batch) * a_.extent(o.own_a) * b_.extent(o.own_b));
    if (moved_ >= 0 && moved >= moved_) return;
    moved_ = moved;
    best_ = o;
  }
  Matrices as_matrices(const Term& t, const Labels& own) const {
    const bool columns_are_own =
        t.labels == best_.batch + best_.summed + own && !best_.summed.empty() && !own.empty();
    const std::int64_t m = t.extent(own), k = t.extent(best_.summed);
    Shape shape;
    if (!best_.batch.empty()) shape.push_back(t.extent(best_.batch));
    shape.push_back(columns_are_own ? k : m);
    shape.push_back(columns_are_own ? m : k);
    const Tensor x = columns_are_own ? t.x : arranged(t, best_.batch + own + best_.summed);
    return {x.shape() == shape ? x : reshape(x, shape), !columns_are_own};
  }

  const Term &a_, &b_;
  const Labels& wanted_;
  Order best_;
  std::int64_t moved_ = -1;
};

// The product of two terms with the labels `wanted`, each of which must be in one of the terms.
Term product(Term a, Term b, const Labels& wanted) {
  squeeze_repeated(a, b);
  squeeze_repeated(b, a);
  sum_over(a, [&](char l) { return !has(b.labels, l) && !has(wanted, l); });
  sum_over(b, [&](char l) { return !has(a.labels, l) && !has(wanted, l); });
  const auto in_both = [&](char l) { return has(a.labels, l) && has(b.labels, l); };
  const Labels summed = those(a.labels, [&](char l) { return in_both(l) && !has(wanted, l); });
  const auto own = [&](const Term& t) {
    return t.extent(those(t.labels, [&](char l) { return !in_both(l); }));
  };
  const bool floating = is_floating(a.x.dtype()) && is_floating(b.x.dtype());
  if (summed.empty() || !floating || (own(a) == 1 && own(b) == 1)) return by_elements(a, b, wanted, summed);
  return MatrixProduct(a, b, wanted).result();
}

const Labels& labels_of(const Call& c, int i) {
  return i ? c.attrs<EinsumAttrs>().b : c.attrs<EinsumAttrs>().a;
}
Term term_of(const Call& c, int i) { return {c.x[i], labels_of(c, i)}; }

Spec infer_einsum(const Call& c) {
  const Labels& output = c.attrs<EinsumAttrs>().output;
  for (int i = 0; i < c.x.size(); ++i)
    if (static_cast<int>(labels_of(c, i).size()) != c.x[i].ndim())
      c.throw_shape_error(fmt::format("operand {} has {} labels", i, labels_of(c, i).size()));
  if (c.x.size() == 2) {
    require_one_dtype(c);
    if (c.x[0].dtype() == DType::boolean) c.throw_dtype_error("bool has no arithmetic, use astype");
  }
  if (output.size() > Shape::kMaxRank) c.throw_shape_error("the result has more than 8 axes");
  Shape shape;
  const auto extent = [&](char l) {
    std::int64_t n = 1;
    for (int i = 0; i < c.x.size(); ++i) {
      if (!has(labels_of(c, i), l)) continue;
      const std::int64_t own = term_of(c, i).extent(l);
      if (i && own != n && has(labels_of(c, 0), l) && !(broadcasts(l) && (own == 1 || n == 1)))
        c.throw_shape_error("extents of a label differ");
      if (i == 0 || n == 1) n = own;
    }
    return n;
  };
  for (const char l : output)
    shape.push_back(extent(l));
  for (const char l : labels_of(c, 0))
    (void)extent(l);
  return {c.x[0].dtype(), shape};
}

void run_einsum(const Call& c, std::span<Tensor> y) {
  const Labels& output = c.attrs<EinsumAttrs>().output;
  Term t = c.x.size() == 2 ? product(term_of(c, 0), term_of(c, 1), output) : term_of(c, 0);
  sum_over(t, [&](char l) { return !has(output, l); });
  share_with(y[0], arranged(t, output));
}

// The gradient with respect to x: the product of dy, whose first labels are `extra`, with the other operand,
// in the axes of x. It is summed along axes in which x was broadcast, and broadcast along axes that only x
// has.
Tensor gradient_of(const Term& dy, const Labels& extra, const Term* other, const Term& x) {
  const auto is_repeated = [&](char l) {
    return x.extent(l) == 1 && ((has(dy.labels, l) && dy.extent(l) != 1) ||
                                (other && has(other->labels, l) && other->extent(l) != 1));
  };
  const Labels found = extra + those(x.labels, [&](char l) {
                         return !is_repeated(l) && (has(dy.labels, l) || (other && has(other->labels, l)));
                       });
  Term g = other ? product(dy, *other, found) : dy;
  sum_over(g, [&](char l) { return !has(found, l); });
  Shape once, all;
  for (const char l : extra)
    once.push_back(dy.extent(l)), all.push_back(dy.extent(l));
  for (const char l : x.labels)
    once.push_back(has(found, l) ? g.extent(l) : 1), all.push_back(x.extent(l));
  const Tensor in_order = arranged(g, found),
               with_ones = in_order.shape() == once ? in_order : reshape(in_order, once);
  return once == all ? with_ones : broadcast_to(with_ones, all);
}

// Labels for the axes of t before the last `ndim`, distinct from letters, from axes that "..." covers, and
// from those of an op that is itself a derivative.
Labels labels_of_stack(const EinsumAttrs& attrs, const Tensor& t, int ndim) {
  char next = Shape::kMaxRank + 1;
  for (const Labels* labels : {&attrs.a, &attrs.b, &attrs.output})
    for (const char label : *labels)
      if (label < 'A') next = std::max(next, static_cast<char>(label + 1));
  Labels extra;
  for (int d = ndim; d < t.ndim(); ++d)
    extra.push_back(next++);
  return extra;
}

void einsum_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  Term dy{std::move(dys[0]).dense(), c.attrs<EinsumAttrs>().output};
  const Labels extra = labels_of_stack(c.attrs<EinsumAttrs>(), dy.x, c.y[0].ndim());
  dy.labels = extra + dy.labels;
  for (int i = 0; i < c.x.size(); ++i) {
    if (!c.needs_gradient(i)) continue;
    const Term other = c.x.size() == 2 ? term_of(c, 1 - i) : Term();
    dx[static_cast<std::size_t>(i)] =
        gradient_of(dy, extra, c.x.size() == 2 ? &other : nullptr, term_of(c, i));
  }
}

void einsum_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  for (int i = 0; i < c.x.size(); ++i) {
    if (!dx[i].defined()) continue;
    EinsumAttrs attrs = c.attrs<EinsumAttrs>();
    const Labels extra = labels_of_stack(attrs, dx[i], c.x[i].ndim());
    (i ? attrs.b : attrs.a).insert(0, extra);
    attrs.output.insert(0, extra);
    std::vector<Tensor> x;
    for (int k = 0; k < c.x.size(); ++k)
      x.push_back(k == i ? dx[k] : c.x[k]);
    const Tensor term = c.op(x, Attrs(attrs));
    dy[0] = dy[0].defined() ? dy[0] + term : term;
  }
}

constexpr Rule kProduct = [] {
  Rule rule = Rule::custom({.x = 0b11}, einsum_vjp, einsum_jvp);
  rule.kind = RuleKind::bilinear;
  rule.partial_reads[0] = 0b10, rule.partial_reads[1] = 0b01;
  return rule;
}();

constexpr Op kEinsum = {
    .name = "einsum",
    .doc =
        "The product of the operands, summed over the labels missing from the output, as in "
        "\"ij,jk->ik\".",
    .tensorflow = "Einsum",
    .args = {"x"},
    .infer = infer_einsum,
    .forward = {run_einsum, Outputs::by_kernel},
    .rule = kProduct,
};

constexpr const Op* einsum_table[] = {&kEinsum};

// Runs the op on one pair, in their promoted dtype.
Term multiplied(const Term& a, const Term& b, const Labels& wanted) {
  const DType dtype = promote(a.x.dtype(), b.x.dtype());
  const auto as = [&](const Tensor& x) { return x.dtype() == dtype ? x : astype(x, dtype); };
  return {kEinsum(as(a.x), as(b.x), EinsumAttrs{a.labels, b.labels, wanted}), wanted};
}

}   // namespace

Tensor einsum(std::string_view equation, std::span<const Tensor> operands) {
  if (operands.empty()) throw_error<ArgumentError>("einsum: no operands for \"{}\"", equation);
  Equation e(equation, operands);
  std::vector<Term>& terms = e.terms();
  for (Term& t : terms)
    take_diagonals(t);
  Term y = terms[0];
  if (terms.size() == 1) return kEinsum(y.x, EinsumAttrs{y.labels, {}, e.output()});
  for (std::size_t i = 1; i < terms.size(); ++i) {
    Labels wanted;   // in the order of the output, then of later operands
    const auto add = [&](const Labels& some) {
      for (const char l : some)
        if (!has(wanted, l) && (has(y.labels, l) || has(terms[i].labels, l))) wanted.push_back(l);
    };
    add(e.output());
    for (std::size_t later = i + 1; later < terms.size(); ++later)
      add(terms[later].labels);
    y = multiplied(y, terms[i], wanted);
  }
  return y.x;
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Axes& of_each_a, const Axes& of_each_b) {
  const std::vector<int>&axes_of_a = of_each_a.list, &axes_of_b = of_each_b.list;
  if (axes_of_a.size() != axes_of_b.size())
    throw_error<ArgumentError>("tensordot: {} axes of a, {} of b", axes_of_a.size(), axes_of_b.size());
  Labels of_a, of_b, output;
  for (int d = 0; d < a.ndim(); ++d)
    of_a.push_back(static_cast<char>('a' + d));
  for (int d = 0; d < b.ndim(); ++d)
    of_b.push_back(static_cast<char>('A' + d));
  output = of_a + of_b;
  for (std::size_t i = 0; i < axes_of_a.size(); ++i) {
    const int p = checked_position("tensordot", axes_of_a[i], a.ndim(), a),
              q = checked_position("tensordot", axes_of_b[i], b.ndim(), b);
    const char l = of_a[static_cast<std::size_t>(p)], m = of_b[static_cast<std::size_t>(q)];
    if (!has(output, l) || !has(output, m))
      throw_error<ArgumentError>("tensordot: an axis is named twice: a is {}, b is {}", a.spec(), b.spec());
    if (a.shape()[p] != b.shape()[q])
      throw_error<ShapeError>("tensordot: axis {} of a and axis {} of b differ: a is {}, b is {}", p, q,
                              a.spec(), b.spec());
    std::erase(output, l);
    std::erase(output, m);
    of_b[static_cast<std::size_t>(q)] = l;
  }
  return einsum(of_a + "," + of_b + "->" + output, {a, b});
}

Tensor tensordot(const Tensor& a, const Tensor& b, int axes) {
  if (axes < 0 || axes > std::min(a.ndim(), b.ndim()))
    throw_error<ArgumentError>("tensordot: {} axes: a is {}, b is {}", axes, a.spec(), b.spec());
  std::vector<int> of_a, of_b;
  for (int i = 0; i < axes; ++i)
    of_a.push_back(a.ndim() - axes + i), of_b.push_back(i);
  return tensordot(a, b, of_a, of_b);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  return reshape(a, {a.size(), 1}) * reshape(b, {1, b.size()});
}

std::span<const Op* const> einsum_ops() { return einsum_table; }

}   // namespace tapedeck
