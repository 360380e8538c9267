// In: a node. Out: the kernel that computes it with bools represented as numbers.
#include "compile/fuse/logic.h"

#include "compile/fuse/ops_by_name.h"

namespace tapedeck::compiled {
namespace {

using kernels::map_kernel, kernels::MapKernel;

template <class V> V as_number(const decltype(V() < V())& condition) {
  return xsimd::select(condition, V(1), V(0));
}
struct Less {
  template <class V> V operator()(const V& a, const V& b) const { return as_number<V>(a < b); }
};
struct LessEqual {
  template <class V> V operator()(const V& a, const V& b) const { return as_number<V>(a <= b); }
};
struct Greater {
  template <class V> V operator()(const V& a, const V& b) const { return as_number<V>(b < a); }
};
struct GreaterEqual {
  template <class V> V operator()(const V& a, const V& b) const { return as_number<V>(b <= a); }
};
struct Equal {
  template <class V> V operator()(const V& a, const V& b) const { return as_number<V>(a == b); }
};
struct NotEqual {
  template <class V> V operator()(const V& a, const V& b) const { return xsimd::select(a == b, V(0), V(1)); }
};
struct And {
  template <class V> V operator()(const V& a, const V& b) const { return a * b; }
};
struct Or {
  template <class V> V operator()(const V& a, const V& b) const { return xsimd::max(a, b); }
};
struct Not {
  template <class V> V operator()(const V& a) const { return V(1) - a; }
};
struct Choose {
  template <class V> V operator()(const V& c, const V& a, const V& b) const {
    return xsimd::select(c == V(0), b, a);
  }
};

constexpr std::pair<std::string_view, const MapKernel*> kernels_by_name[] = {
    {"less", &map_kernel<Less, 2>},       {"less_equal", &map_kernel<LessEqual, 2>},
    {"greater", &map_kernel<Greater, 2>}, {"greater_equal", &map_kernel<GreaterEqual, 2>},
    {"equal", &map_kernel<Equal, 2>},     {"not_equal", &map_kernel<NotEqual, 2>},
    {"logical_and", &map_kernel<And, 2>}, {"logical_or", &map_kernel<Or, 2>},
    {"logical_not", &map_kernel<Not, 1>}, {"where", &map_kernel<Choose, 3>},
};

}   // namespace

const MapKernel* logic_kernel(const OpNode& node) {
  static const auto& ops = ops_by_name<const MapKernel*>(kernels_by_name);
  const auto found = ops.find(node.op);
  return found == ops.end() ? nullptr : found->second;
}

bool is_cast_of_bools(const OpNode& node) {
  return node.op->meaning == Meaning::cast && node.in[0].spec.dtype == DType::boolean;
}

}   // namespace tapedeck::compiled
