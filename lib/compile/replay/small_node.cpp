// In: a node, and pointers to its elements. Out: the results of its kernel, computed by the same loops.
#include "compile/replay/small_node.h"

#include <algorithm>

#include "core/storage.h"
#include "core/visit.h"
#include "kernels/linalg/gemm.h"
#include "kernels/simd/simd.h"

namespace tapedeck::compiled {
namespace {

constexpr std::int64_t kMostElements = 256;   // elementwise: a loop then takes as long as a kernel's call
constexpr std::int64_t kMostParts = 64;       // elements that are copied one by one
constexpr std::int64_t kMostExtent = 8;       // of the factors of a product
constexpr std::int64_t kLabels = 1 << 10;     // greater than the total number of elements of the operands

template <class T> const T* in(const std::byte* p) { return reinterpret_cast<const T*>(p); }
template <class T> T* in(std::byte* p) { return reinterpret_cast<T*>(p); }
// Elements that are read in place of an operand that is not there.
template <class T> alignas(64) constexpr T kNothing[kernels::kGroup<T>] = {};

// Copies the accumulator to y, unless it is there already.
template <class T> void begin_sum(const std::byte* before, std::byte* y, std::int64_t n) {
  if (before != y) std::copy_n(in<T>(before), n, in<T>(y));
}

bool is_few(std::int64_t n) { return n > 0 && n <= kMostElements; }

}   // namespace

template <class T> void SmallProduct<T>::run(const Places& at) const {
  if (add) begin_sum<T>(at.x[2], at.y[0], m * n);
  kernels::gemm(kernels::MatrixProduct<T>{.m = m,
                                          .n = n,
                                          .k = k,
                                          .a = in<T>(at.x[0]),
                                          .b = in<T>(at.x[1]),
                                          .y = in<T>(at.y[0]),
                                          .a_transposed = transposed.transpose_a,
                                          .b_transposed = transposed.transpose_b,
                                          .lda = transposed.transpose_a ? m : k,
                                          .ldb = transposed.transpose_b ? k : n,
                                          .ldy = n,
                                          .add = add});
}

template <class T> void SmallMap<T>::run(const Places& at) const {
  kernels::Row<T> row;
  for (int i = 0; i < operands; ++i)
    row.set(i, in<T>(at.x[i]), !(singles >> i & 1));
  loop(in<T>(at.y[0]), row.x, n);
}

// Overflow wraps around.
void SmallCount::run(const Places& at) const {
  const auto *a = in<std::uint64_t>(at.x[0]), *b = in<std::uint64_t>(at.x[1]);
  auto* const y = in<std::uint64_t>(at.y[0]);
  if (n == 1) {   // skips the set-up of the vectorized loop
    *y = *a + *b;
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = a[singles & 1 ? 0 : i] + b[singles & 2 ? 0 : i];
}

void SmallDecision::run(const Places& at) const {
  loop(at.x[0], at.x[operands - 1], in<bool>(at.y[0]), n, singles);
}

template <class T> void SmallVjp<T>::run(const Places& at) const {
  for (int k = 0; k < results; ++k)
    if (sums >> k & 1) begin_sum<T>(at.x[inputs + 2 + k], at.y[k], n);
  kernels::VjpRow<T> row;
  for (int i = 0; i < inputs + 2; ++i) {
    const bool is_read = read >> i & 1;
    row.x[i] = {is_read ? in<T>(at.x[i]) : kNothing<T>, is_read ? -1 : 0};
  }
  for (int i = 0; i < inputs; ++i) {
    row.put[i] = put[i];
    row.out[i] = put[i] == kernels::Put::nothing ? nullptr : in<T>(at.y[result[i]]);
  }
  row.n = n;
  loop(row);
}

template <class T> void SmallParts<T>::run(const Places& at) const {
  T* const y = in<T>(at.y[0]);
  for (const Run& r : runs) {
    const T* const x = in<T>(at.x[r.operand]) + r.from;
    switch (r.what) {
      case Do::copy:
        if (x != y + r.to) std::copy_n(x, r.n, y + r.to);
        break;
      case Do::add:
        for (int i = 0; i < r.n; ++i)
          y[r.to + i] += x[i];
        break;
      case Do::clear:
        std::fill_n(y + r.to, r.n, T(0));
        break;
    }
  }
}

namespace {

// The operands with one element, if the others have n, and all this dtype.
std::optional<unsigned> singles_of(const OpNode& node, DType dtype, std::int64_t n) {
  unsigned singles = 0;
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    const Access& a = node.in[i];
    if (!a.reads() || a.spec.dtype != dtype || (a.size() != n && a.size() != 1)) return {};
    if (a.size() != n) singles |= 1u << i;
  }
  return singles;
}

std::optional<SmallCount> count(const Program& p, const OpNode& node) {
  const std::int64_t n = p[node.out[0]].spec.shape.size();
  const auto singles = singles_of(node, DType::i64, n);
  if (!singles || !is_few(n) || node.in.size() != 2) return {};
  return SmallCount{static_cast<std::int32_t>(n), *singles};
}

std::optional<SmallDecision> decision(const Program& p, const OpNode& node) {
  const kernels::Decision* const loops = node.op->forward.decision;
  if (!loops) return {};
  const std::int64_t n = p[node.out[0]].spec.shape.size();
  if (!is_few(n)) return {};
  const DType dtype = node.in[0].spec.dtype;
  const kernels::DecisionLoop loop = dtype == DType::f32       ? loops->f32
                                     : dtype == DType::f64     ? loops->f64
                                     : dtype == DType::i64     ? loops->i64
                                     : dtype == DType::boolean ? loops->boolean
                                                               : nullptr;
  if (!loop) return {};
  const auto singles = singles_of(node, dtype, n);
  if (!singles) return {};
  return SmallDecision{loop, static_cast<std::int32_t>(node.in.size()), static_cast<std::int32_t>(n),
                       *singles};
}

// Makes the small form of nodes of one dtype, f32 or f64.
template <class T> class Maker {
 public:
  Maker(const Program& p, DType dtype) : p_(p), dtype_(dtype) {}
  using Parts = SmallParts<T>;
  using Do = typename Parts::Do;

  std::optional<SmallProduct<T>> product(MatmulOptions t, const Access& a, const Access& b, ValueId out,
                                         bool add) const {
    const Shape& y = p_[out].spec.shape;
    for (const Shape* s : {&a.spec.shape, &b.spec.shape, &y})
      if (s->ndim() != 2 || s->size() == 0 || std::max((*s)[0], (*s)[1]) > kMostExtent) return {};
    if (!is_of_dtype(a) || !is_of_dtype(b)) return {};
    return SmallProduct<T>{t, add, static_cast<std::int32_t>(y[0]), static_cast<std::int32_t>(y[1]),
                           static_cast<std::int32_t>(a.spec.shape[t.transpose_a ? 0 : 1])};
  }

  std::optional<SmallMap<T>> map(const kernels::MapKernel& kernel, const std::vector<Access>& x,
                                 ValueId out) const {
    const std::int64_t n = p_[out].spec.shape.size();
    kernels::MapLoop<T> loop;
    if constexpr (std::is_same_v<T, float>)
      loop = kernel.f32;
    else
      loop = kernel.f64;
    if (!loop || !is_few(n) || x.size() != static_cast<std::size_t>(kernel.operands)) return {};
    unsigned singles = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!is_of_dtype(x[i]) || (x[i].size() != n && x[i].size() != 1)) return {};
      if (x[i].size() != n) singles |= 1u << i;
    }
    return SmallMap<T>{loop, kernel.operands, static_cast<std::int32_t>(kernels::padded<T>(n)), singles};
  }

  std::optional<SmallVjp<T>> vjp(const VjpNode& node) const {
    const std::int64_t n = node.dy().size();
    const std::size_t inputs = node.inputs();
    if (!is_few(n) || node.results.size() > std::size(Places().y) ||
        inputs + 2 + node.results.size() > std::size(Places().x))
      return {};
    for (std::size_t i = 0; i < inputs; ++i)
      if (node.in[i].size() != n) return {};
    SmallVjp<T> v = {};
    if constexpr (std::is_same_v<T, float>)
      v.loop = node.kernel->f32;
    else
      v.loop = node.kernel->f64;
    v.inputs = static_cast<std::int32_t>(inputs), v.n = static_cast<std::int32_t>(kernels::padded<T>(n));
    v.results = static_cast<std::int32_t>(node.results.size());
    v.read = 2u << inputs;
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      const VjpNode::Result& r = node.results[k];
      bool has_sum = r.before.reads();
      if (has_sum) v.sums |= 1u << k;
      for (std::size_t i = 0; i < inputs; ++i) {
        if (!(r.inputs >> i & 1)) continue;
        v.put[i] = std::exchange(has_sum, true) ? kernels::Put::add : kernels::Put::store;
        v.result[i] = static_cast<std::uint8_t>(k);
        v.read |= node.kernel->reads[i];
      }
    }
    for (std::size_t i = 0; i < inputs + 2; ++i)
      if (v.read >> i & 1 && !is_of_dtype(node.in[i])) return {};
    return v;
  }

  // Determines the rearrangement by running the kernel on elements with distinct numbers, from which the
  // source of each element of the result follows.
  std::optional<Parts> parts(const OpNode& node) const {
    if (node.key || node.in.size() > std::size(Places().x) ||
        node.op->forward.outputs == Outputs::by_kernel || !are_parts(node.out[0]))
      return {};
    std::vector<Tensor> x;
    std::vector<Source> sources = {{}};
    const bool adds = node.op->meaning == Meaning::add_part;
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      const Access& a = node.in[k];
      if (!is_of_dtype(a) || a.size() + static_cast<std::int64_t>(sources.size()) >= kLabels) return {};
      std::vector<double> labels(static_cast<std::size_t>(a.size()));
      for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] = static_cast<double>((sources.size()) * (adds && k == 1 ? kLabels : 1));
        sources.push_back({static_cast<std::uint8_t>(k), static_cast<std::uint16_t>(i)});
      }
      x.push_back(tensor_of(labels, a.spec));
    }
    std::vector<const Tensor*> refs;
    for (const Tensor& t : x)
      refs.push_back(&t);
    Tensor y = allocate(p_[node.out[0]].spec);
    node.op->forward.run(
        {.op = *node.op, .raw_attrs = node.attrs.view(), .x = {refs.data(), static_cast<int>(refs.size())}},
        {&y, 1});
    return from_labels(y, sources, adds);
  }

  std::optional<Parts> parts(const SelectNode& node) const {
    if (!is_of_dtype(node.in) || !are_parts(node.out) || node.in.size() >= kMostElements) return {};
    Parts parts;
    std::uint16_t to = 0;
    const auto select = [&](const auto& self, std::size_t axis, std::int64_t from) -> void {
      const kernels::StridedView& view = *node.view;
      if (axis == view.ndim()) return append(parts, {Do::copy, 0, static_cast<std::uint16_t>(from), to++, 1});
      for (std::int64_t i = 0; i < view[axis].extent; ++i)
        self(self, axis + 1, from + i * view[axis].stride);
    };
    select(select, 0, node.view->offset());
    return parts;
  }

 private:
  struct Source {
    std::uint8_t operand = 0;
    std::uint16_t at = 0;
  };

  bool is_of_dtype(const Access& a) const { return a.reads() && a.spec.dtype == dtype_; }
  bool are_parts(ValueId out) const {
    const Spec& y = p_[out].spec;
    return y.dtype == dtype_ && y.shape.size() > 0 && y.shape.size() <= kMostParts;
  }
  static Tensor tensor_of(const std::vector<double>& labels, const Spec& spec) {
    Tensor t = allocate(spec);
    std::copy(labels.begin(), labels.end(), writable<T>(t).begin());
    return t;
  }
  // Appends a run, or extends the last one if r continues it.
  static void append(Parts& parts, typename Parts::Run r) {
    if (!parts.runs.empty()) {
      typename Parts::Run& last = parts.runs.back();
      const bool goes_on =
          last.what == r.what && last.to + last.n == r.to &&
          (r.what == Do::clear || (last.operand == r.operand && last.from + last.n == r.from));
      if (goes_on) return void(last.n += r.n);
    }
    parts.runs.push_back(r);
  }
  std::optional<Parts> from_labels(const Tensor& y, const std::vector<Source>& sources, bool adds) const {
    const std::span<const T> labels = y.template data<T>();
    Parts parts;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto label = static_cast<std::size_t>(labels[i]);
      const Source& s = sources[label % kLabels];
      append(parts,
             {label % kLabels ? Do::copy : Do::clear, s.operand, s.at, static_cast<std::uint16_t>(i), 1});
    }
    for (std::size_t i = 0; adds && i < labels.size(); ++i)
      if (const std::size_t label = static_cast<std::size_t>(labels[i]) / kLabels)
        append(parts, {Do::add, sources[label].operand, sources[label].at, static_cast<std::uint16_t>(i), 1});
    if (adds) {   // y may share memory with the operand to which parts are added
      const typename Parts::Run& first = parts.runs[0];
      if (first.what != Do::copy || first.operand != 0 || first.from != 0 ||
          first.n != static_cast<std::int64_t>(labels.size()))
        return {};
    }
    return parts;
  }

  const Program& p_;
  DType dtype_;
};

}   // namespace

std::optional<SmallNode> SmallNode::of(const Program& p, const Node& node) {
  const auto as_small = [](auto call) {
    return call ? std::optional(SmallNode(std::move(*call))) : std::nullopt;
  };
  const auto make = [&](ValueId out, const auto& f) -> std::optional<SmallNode> {
    const DType dtype = p[out].spec.dtype;
    if (dtype == DType::f32) return as_small(f(Maker<float>(p, dtype)));
    if (dtype == DType::f64) return as_small(f(Maker<double>(p, dtype)));
    return {};
  };
  if (const OpNode* n = as<OpNode>(node)) {
    if (n->out.size() != 1 || !n->out[0]) return {};
    if (n->map && n->op->meaning == Meaning::add && p[n->out[0]].spec.dtype == DType::i64)
      return as_small(count(p, *n));
    if (p[n->out[0]].spec.dtype == DType::boolean) return as_small(decision(p, *n));
    if (n->map) return make(n->out[0], [&](const auto& m) { return m.map(*n->map, n->in, n->out[0]); });
    if (n->op->meaning == Meaning::matmul)
      return make(n->out[0], [&](const auto& m) {
        const MatmulOptions t = *static_cast<const MatmulOptions*>(n->attrs.view().data);
        return m.product(t, n->in[0], n->in[1], n->out[0], false);
      });
    if (n->op->meaning == Meaning::rearrange || n->op->meaning == Meaning::add_part)
      return make(n->out[0], [&](const auto& m) { return m.parts(*n); });
  }
  if (const JvpNode* n = as<JvpNode>(node))
    return make(n->out, [&](const auto& m) { return m.map(*n->map, n->in, n->out); });
  if (const VjpNode* n = as<VjpNode>(node); n && !n->results.empty())
    return make(n->results[0].value, [&](const auto& m) { return m.vjp(*n); });
  if (const SelectNode* n = as<SelectNode>(node))
    return make(n->out, [&](const auto& m) { return m.parts(*n); });
  if (const ProductSum* n = as<ProductSum>(node))
    return make(n->out,
                [&](const auto& m) { return m.product(n->transposed, n->a(), n->b(), n->out, true); });
  return {};
}

}   // namespace tapedeck::compiled
