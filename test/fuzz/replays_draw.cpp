// Creates random programs of compiled functions node by node; each node is tried before it is accepted.
#include <algorithm>
#include <cmath>

#include "replays.h"

namespace tapedeck::replays {
namespace {

constexpr std::int64_t kExtents[] = {1,  1,  2,  3,  4,  5,  7,  8,  9,  12, 15,  16,  17,
                                     18, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 128, 200};
constexpr std::int64_t kMostElements = 600, kMostOfLarge = 80000;
constexpr double kMost = 1e4;

bool is_float(const Tensor& x) { return is_floating(x.dtype()); }

// What nodes of a body may do.
struct Scope {
  int depth = 0;
};

class Drawer {
 public:
  Drawer(std::uint64_t seed, std::uint64_t number, const std::string& without)
      : d_(seed, number), without_(without) {}

  Program draw() {
    large_ = d_.in(1, 150) == 1;
    tiny_ = d_.chance(15);
    dtype_ = d_.chance(45) ? DType::f32 : d_.chance(80) ? DType::f64 : DType::bf16;
    n_ = large_  ? 20000 + d_.in(-3, 3)
         : tiny_ ? d_.in(1, 4)
                 : d_.of(std::vector<std::int64_t>(std::begin(kExtents), std::end(kExtents)));
    rows_ = large_ ? 100 : d_.chance(50) ? d_.in(1, 5) : std::max<std::int64_t>(1, n_ / 8);
    columns_ = d_.chance(60) ? std::max<std::int64_t>(1, n_ / rows_)
                             : std::min<std::int64_t>(n_, kMostElements / rows_);
    p_.keys = d_.chance(35) && !without("keys") ? d_.in(1, 3) : 0;
    draw_sources();
    draw_nodes(p_.nodes, slots_, {}, d_.chance(20) ? d_.in(1, 4) : d_.in(3, 24));
    draw_results();
    return std::move(p_);
  }

 private:
  Shape shape() {
    if (d_.chance(45)) return {n_};
    switch (d_.in(0, 6)) {
      case 0:
        return {};
      case 1:
        return {1};
      case 2:
        return {columns_};
      case 3:
        return {rows_, 1};
      case 4:
        return {1, columns_};
      default:
        return {rows_, columns_};
    }
  }
  DType dtype() {
    if (d_.chance(88)) return dtype_;
    return d_.chance(50) ? DType::f64 : d_.chance(80) ? DType::f32 : DType::bf16;
  }
  Tensor numbers(const Spec& s) {
    std::vector<double> v(static_cast<std::size_t>(s.shape.size()));
    for (double& e : v)
      e = 1.5 * d_.number();
    return astype(tensor(v, s.shape), s.dtype);
  }
  Tensor integers(const Argument& a) {
    std::vector<std::int64_t> v(static_cast<std::size_t>(a.spec.shape.size()));
    for (std::int64_t& e : v)
      e = d_.in(std::int64_t{0}, a.count - 1);
    if (a.kind == Argument::ascending) std::sort(v.begin(), v.end()), v.back() = a.count - 1;
    return astype(tensor(v, a.spec.shape), a.spec.dtype);
  }

  int add_argument(const Argument& a) {
    p_.arguments.push_back(a);
    x_.push_back(a.kind == Argument::floats ? numbers(a.spec) : integers(a));
    return static_cast<int>(p_.arguments.size()) - 1;
  }
  // A slot, at the end of the nodes, that is a source.
  void source(std::vector<Node>& nodes, Tensors& slots, Node::Kind kind, int which) {
    Node n;
    n.kind = kind, n.which = which;
    take(nodes, slots, std::move(n));
  }

  void draw_sources() {
    for (int i = d_.in(1, 4); i-- > 0;)
      add_argument({.kind = Argument::floats, .spec = {dtype(), shape()}});
    if (d_.chance(15))
      add_argument({.kind = Argument::truths, .spec = {DType::boolean, shape()}, .count = 2});
    for (int i = d_.chance(50) ? d_.in(1, 2) : 0; i-- > 0;)
      p_.captured.push_back(numbers({dtype(), shape()}));
    for (int i = d_.chance(50) ? d_.in(1, 3) : 0; i-- > 0;)
      p_.variables.push_back(numbers({dtype(), shape()}));
    world_ = std::make_unique<World>(p_);
    keys_.clear();
    for (int i = 0; i < p_.keys; ++i)
      keys_.push_back({.seed = d_.bits() % 4, .stream = d_.bits() % 2});
    for (std::size_t i = 0; i < p_.arguments.size(); ++i)
      source(p_.nodes, slots_, Node::argument, static_cast<int>(i));
    for (std::size_t i = 0; i < p_.captured.size(); ++i)
      if (d_.chance(80)) source(p_.nodes, slots_, Node::captured, static_cast<int>(i));
    for (std::size_t i = 0; i < p_.variables.size(); ++i)
      if (d_.chance(50)) source(p_.nodes, slots_, Node::read, static_cast<int>(i));
  }

  void draw_nodes(std::vector<Node>& nodes, Tensors& slots, const Scope& scope, int count) {
    for (int tries = 0; count > 0 && tries < 300; ++tries) {
      const std::size_t arguments = p_.arguments.size();
      Node n;
      if (draw_node(n, nodes, slots, scope) && take(nodes, slots, std::move(n))) {
        --count;
      } else if (p_.arguments.size() > arguments && !is_used(p_.nodes, static_cast<int>(arguments)) &&
                 !is_used(nodes, static_cast<int>(arguments))) {
        p_.arguments.resize(arguments), x_.resize(arguments);
      }
    }
  }
  static bool is_used(const std::vector<Node>& nodes, int argument) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node& n) {
      return (n.kind == Node::argument && n.which >= argument) || is_used(n.body, argument);
    });
  }

  // A slot for which the condition holds, or -1.
  template <class F> int slot(const Tensors& slots, const F& suits) {
    const int n = static_cast<int>(slots.size());
    for (int tries = 0; tries < 12 && n > 0; ++tries) {
      const int i = d_.chance(50) ? d_.in(std::max(0, n - 6), n - 1) : d_.in(0, n - 1);
      if (suits(slots[static_cast<std::size_t>(i)])) return i;
    }
    return -1;
  }
  int floats(const Tensors& slots) { return slot(slots, is_float); }
  // Whether shapes go together, and what they give is not so large that an op on it takes all memory.
  static bool broadcasts(std::initializer_list<Shape> shapes) {
    std::int64_t size = 1;
    for (int i = 1; i <= Shape::kMaxRank && size <= kMostOfLarge; ++i) {
      std::int64_t extent = 1;
      for (const Shape& s : shapes) {
        const std::int64_t e = i <= s.ndim() ? s[s.ndim() - i] : 1;
        if (extent != 1 && e != 1 && e != extent) return false;
        if (e != 1) extent = e;
      }
      size *= extent;
    }
    return size <= kMostOfLarge;
  }

  bool draw_node(Node& n, std::vector<Node>& nodes, Tensors& slots, const Scope& scope) {
    const int what = d_.in(1, 100);
    if (what <= 6 && !p_.variables.empty()) {
      n.kind = Node::read;
      n.which = d_.in(0, static_cast<int>(p_.variables.size()) - 1);
      return true;
    }
    if (what <= 10 && !p_.variables.empty() && scope.depth == 0) {
      n.kind = d_.chance(80) ? Node::assign : Node::step;
      n.which = d_.in(0, static_cast<int>(p_.variables.size()) - 1);
      const Spec s = p_.variables[static_cast<std::size_t>(n.which)].spec();
      n.slots = {slot(slots, [&](const Tensor& x) { return x.spec() == s; })};
      if (n.kind == Node::step) has_step_ = true;
      return n.slots[0] >= 0;
    }
    if (what <= 14 && (p_.keys > 0 || d_.chance(10))) return draw_random(n, slots);
    if (what <= 24 && scope.depth < 2) return draw_derivative(n, slots, scope);
    return draw_form(n, nodes, slots);
  }

  bool draw_random(Node& n, const Tensors& slots) {
    n.kind = Node::draw;
    static constexpr const char* names[] = {"normal",  "uniform", "truncated_normal",
                                            "dropout", "gamma",   "permutation"};
    const int which = d_.in(0, 5);
    n.which = form_named(names[which]);
    if (without(names[which])) return false;
    if (p_.keys > 0 && d_.chance(80))
      n.key.argument = d_.in(0, p_.keys - 1);
    else
      n.key.constant = {.seed = d_.bits() % 4, .stream = d_.bits() % 2};
    for (int i = d_.in(0, 2); i-- > 0;)
      n.key.splits.push_back(d_.bits() % 3);
    n.dtype = dtype_ == DType::f64 ? DType::f64 : DType::f32;
    if (which < 3) {
      for (const std::int64_t e : shape())
        n.numbers.push_back(e);
      return true;
    }
    n.slots = {slot(slots, [&](const Tensor& x) {
      return is_float(x) && (which == 3 || !is_half(x.dtype())) && (which != 5 || x.ndim() > 0) &&
             x.size() < 2000;
    })};
    return n.slots[0] >= 0;
  }

  bool draw_derivative(Node& n, const Tensors& slots, const Scope& scope) {
    n.kind = d_.chance(80) ? Node::gradient : Node::tangent;
    n.persistent = n.kind == Node::gradient && d_.chance(25);
    for (int i = d_.in(1, 3); i-- > 0;) {
      const int s = floats(slots);
      if (s >= 0 && std::none_of(n.slots.begin(), n.slots.end(), [&](int t) {
            return slots[static_cast<std::size_t>(t)].id() == slots[static_cast<std::size_t>(s)].id();
          }))
        n.slots.push_back(s);
    }
    Tensors inner = slots;
    draw_nodes(n.body, inner, {scope.depth + 1}, d_.in(1, 7));
    if (n.body.empty()) return false;
    if (n.kind == Node::gradient)
      for (int v = 0; v < static_cast<int>(p_.variables.size()); ++v)
        if (d_.chance(40)) n.variables.push_back(v);
    if (n.slots.empty() && n.variables.empty()) return false;
    const int first = static_cast<int>(slots.size()), end = static_cast<int>(inner.size());
    for (int i = d_.in(1, n.persistent ? 3 : 2); i-- > 0 && first < end;) {
      const int t = d_.chance(60) ? end - 1 : d_.in(first, end - 1);
      if (is_float(inner[static_cast<std::size_t>(t)])) n.targets.push_back(t);
    }
    return !n.targets.empty();
  }

  bool without(const char* name) const {
    return without_.find("," + std::string(name) + ",") != std::string::npos;
  }

  bool draw_form(Node& n, std::vector<Node>& nodes, Tensors& slots) {
    // By groups, so that the many forms of one group are not drawn more often.
    static constexpr std::pair<Form::Group, int> weights[] = {
        {Form::unary, 18}, {Form::binary, 30}, {Form::number, 10}, {Form::compare, 4},
        {Form::logic, 3},  {Form::choose, 4},  {Form::reduce, 12}, {Form::shape, 20},
        {Form::join, 5},   {Form::index, 9},   {Form::other, 2}};
    int total = 0;
    for (const auto& [group, weight] : weights)
      total += weight;
    int at = d_.in(0, total - 1);
    Form::Group group = Form::unary;
    for (const auto& [g, weight] : weights)
      if ((at -= weight) < 0) {
        group = g;
        break;
      }
    std::vector<int> list;
    for (int i = 0; i < static_cast<int>(forms().size()); ++i)
      if (forms()[static_cast<std::size_t>(i)].group == group) list.push_back(i);
    n.which = d_.of(list);
    n.dtype = dtype_;
    const char* const name = forms()[static_cast<std::size_t>(n.which)].name;
    if (without(name)) return false;
    return draw_operands(n, group, name, nodes, slots);
  }

  bool draw_operands(Node& n, Form::Group group, std::string_view name, std::vector<Node>& nodes,
                     Tensors& slots) {
    const auto bools = [](const Tensor& x) { return x.dtype() == DType::boolean; };
    const auto at = [&](int i) -> const Tensor& { return slots[static_cast<std::size_t>(i)]; };
    switch (group) {
      case Form::unary:
        n.slots = {floats(slots)};
        return n.slots[0] >= 0;
      case Form::number:
        n.slots = {floats(slots)};
        n.number = d_.in(1, 12) * 0.25 * (d_.chance(30) ? -1 : 1);
        if (name == "astype")
          n.number = 0, n.dtype = d_.chance(50) ? dtype() : d_.chance(50) ? DType::f64 : DType::f32;
        return n.slots[0] >= 0;
      case Form::binary:
      case Form::compare:
      case Form::logic: {
        const auto suits = [&](const Tensor& x) { return group == Form::logic ? bools(x) : is_float(x); };
        const int a = slot(slots, suits);
        if (a < 0) return false;
        if (name == "logical_not" || name == "bools to floats") {
          n.slots = {a};
          return true;
        }
        const int b = slot(slots, [&](const Tensor& x) {
          return suits(x) && broadcasts({x.shape(), at(a).shape()}) &&
                 (x.dtype() == at(a).dtype() || d_.chance(30)) &&
                 (name != "map" || x.dtype() == at(a).dtype());
        });
        n.slots = {a, b};
        return b >= 0;
      }
      case Form::choose: {
        const int c = slot(slots, bools);
        if (c < 0) return false;
        Shape other = at(c).shape();
        const auto suits = [&](const Tensor& x) {
          return is_float(x) && broadcasts({x.shape(), other, at(c).shape()});
        };
        const int a = slot(slots, suits);
        if (a < 0) return false;
        other = at(a).shape();
        n.slots = {c, a, slot(slots, suits)};
        return n.slots[2] >= 0;
      }
      case Form::reduce: {
        const int a = floats(slots);
        if (a < 0) return false;
        n.slots = {a};
        if (name != "sum of all" && name != "mean of all")
          for (int axis = 0; axis < at(a).ndim(); ++axis)
            if (d_.chance(50)) n.numbers.push_back(axis);
        n.number = d_.chance(30) && !n.numbers.empty();
        return true;
      }
      case Form::join:
        return draw_join(n, name, slots);
      case Form::index:
        return draw_index(n, name, nodes, slots);
      case Form::other: {   // matmul
        const int a = slot(slots, [](const Tensor& x) { return is_float(x) && x.ndim() == 2; });
        if (a < 0) return false;
        const int b = slot(slots, [&](const Tensor& x) {
          return x.dtype() == at(a).dtype() && x.ndim() == 2 && x.shape()[0] == at(a).shape()[1];
        });
        n.slots = {a, b};
        return b >= 0;
      }
      default:
        return draw_shape(n, name, slots);
    }
  }

  bool draw_join(Node& n, std::string_view name, const Tensors& slots) {
    const int a = floats(slots);
    if (a < 0) return false;
    const Tensor& x = slots[static_cast<std::size_t>(a)];
    n.slots = {a};
    for (int i = d_.in(1, 3); i-- > 0;) {
      const int b = slot(slots, [&](const Tensor& t) { return t.spec() == x.spec(); });
      if (b >= 0) n.slots.push_back(b);
    }
    if (name == "concat" && x.ndim() == 0) return false;
    n.numbers = {d_.in(0, std::max(0, x.ndim() - (name == "concat")))};
    return true;
  }

  // A slot of integers, for an axis of this extent: an argument, or captured.
  int indices(std::vector<Node>& nodes, Tensors& slots, Argument::Kind kind, std::int64_t length,
              std::int64_t count) {
    Argument a{.kind = kind, .spec = {d_.chance(50) ? DType::i32 : DType::i64, {length}}, .count = count};
    if (d_.chance(80)) {
      source(nodes, slots, Node::argument, add_argument(a));
    } else {
      p_.captured.push_back(integers(a));
      world_->captured.push_back(p_.captured.back());
      source(nodes, slots, Node::captured, static_cast<int>(p_.captured.size()) - 1);
    }
    return static_cast<int>(slots.size()) - 1;
  }

  bool draw_index(Node& n, std::string_view name, std::vector<Node>& nodes, Tensors& slots) {
    const int a = slot(slots, [](const Tensor& x) { return is_float(x) && x.ndim() > 0 && x.size() > 0; });
    if (a < 0) return false;
    const Tensor x = slots[static_cast<std::size_t>(a)];
    const std::int64_t rows = x.shape()[0], some = d_.in(1, 6);
    if (name == "one_hot") {
      n.slots = {indices(nodes, slots, Argument::indices, some, 4)};
      n.numbers = {4};
      if (n.dtype == DType::bf16) n.dtype = DType::f32;
      return true;
    }
    if (name.starts_with("segment")) {
      if (is_half(x.dtype())) return false;
      n.slots = {indices(nodes, slots, Argument::ascending, rows, std::min<std::int64_t>(some, rows)), a};
    } else if (name.starts_with("unsorted") || name == "scatter_add") {
      if (is_half(x.dtype())) return false;
      n.slots = {indices(nodes, slots, Argument::indices, rows, some), a};
      n.numbers = {some};
    } else if (name.starts_with("tensor_scatter")) {
      const int b = slot(slots, [&](const Tensor& t) {
        if (t.dtype() != x.dtype() || t.ndim() != x.ndim() || t.size() == 0) return false;
        return std::equal(t.shape().begin() + 1, t.shape().end(), x.shape().begin() + 1);
      });
      if (b < 0) return false;
      const std::int64_t updates = slots[static_cast<std::size_t>(b)].shape()[0];
      n.slots = {indices(nodes, slots, Argument::indices, updates, rows), a, b};
    } else {
      const int axis = name == "gather" ? d_.in(0, x.ndim() - 1) : 0;
      n.slots = {
          indices(nodes, slots, Argument::indices, d_.chance(30) ? x.shape()[axis] : some, x.shape()[axis]),
          a};
      n.numbers = {axis};
    }
    return true;
  }

  bool draw_shape(Node& n, std::string_view name, const Tensors& slots) {
    const int a = floats(slots);
    if (a < 0) return false;
    const Tensor& x = slots[static_cast<std::size_t>(a)];
    const Shape& s = x.shape();
    n.slots = {a};
    if (name == "reshape") {
      const std::int64_t size = x.size();
      if (d_.chance(30))
        n.numbers = {size};
      else if (d_.chance(30))
        n.numbers = {size, 1};
      else if (size % rows_ == 0)
        n.numbers = {rows_, size / rows_};
      else
        n.numbers = {1, size};
      return true;
    }
    if (name == "broadcast_to") {
      if (s.ndim() == 2 && s[0] != 1 && s[1] != 1) return false;
      n.numbers = {s.ndim() == 2 && s[0] != 1 ? s[0] : rows_,
                   s.ndim() > 0 && s[s.ndim() - 1] != 1 ? s[s.ndim() - 1] : columns_};
      return true;
    }
    if (name == "transpose") {
      for (int i = 0; i < s.ndim(); ++i)
        n.numbers.push_back(i);
      for (int i = s.ndim(); i-- > 1;)
        std::swap(n.numbers[static_cast<std::size_t>(i)], n.numbers[static_cast<std::size_t>(d_.in(0, i))]);
      return s.ndim() > 1;
    }
    if (name == "expand_dims") {
      n.numbers = {d_.in(0, s.ndim())};
      return s.ndim() < 3;
    }
    if (s.ndim() == 0 || x.size() == 0) return false;
    const int axis = d_.in(0, s.ndim() - 1);
    if (name == "slice") {
      Numbers begin, size;
      for (const std::int64_t e : s) {
        const std::int64_t first = d_.chance(50) ? 0 : d_.in(std::int64_t{0}, e - 1);
        begin.push_back(first);
        size.push_back(d_.chance(30) ? 1 : d_.chance(40) ? e - first : d_.in(std::int64_t{1}, e - first));
      }
      n.numbers = begin;
      n.numbers.insert(n.numbers.end(), size.begin(), size.end());
    } else if (name == "strided_slice") {
      Numbers begin, by;
      for (const std::int64_t e : s) {
        by.push_back(d_.chance(30) ? -d_.in(1, 3) : d_.in(1, 3));
        begin.push_back(by.back() < 0 ? e - 1 - d_.in(std::int64_t{0}, (e - 1) / 2)
                                      : d_.in(std::int64_t{0}, (e - 1) / 2));
      }
      n.numbers = begin;
      n.numbers.insert(n.numbers.end(), by.begin(), by.end());
    } else if (name == "entry") {
      n.numbers = {d_.chance(50) ? 0 : d_.in(-s[0], s[0] - 1)};
    } else if (name == "roll") {
      n.numbers = {axis, d_.in(std::int64_t{0}, s[axis])};
    } else if (name == "split") {
      n.numbers = {axis, s[axis] % 3 == 0 ? 3 : s[axis] % 2 == 0 ? 2 : 1};
    } else if (name == "pad") {
      for (int i = 0; i < 2 * s.ndim(); ++i)
        n.numbers.push_back(d_.in(0, 2));
      n.number = d_.in(0, 1);
    } else {
      n.numbers = {axis};
      if (is_half(x.dtype()) && name != "reverse") return false;
    }
    return true;
  }

  // Runs the node, and takes it if its results are within limits.
  bool take(std::vector<Node>& nodes, Tensors& slots, Node n) {
    Tensors all = slots;
    Tensors values;
    for (const Variable& v : world_->variables)
      values.push_back(v.value());
    const auto reset = [&] {
      for (std::size_t i = 0; i < values.size(); ++i)
        world_->variables[i].assign(values[i]);
      return false;
    };
    try {
      run_node(n, *world_, x_, keys_, all);
    } catch (const Error&) {
      return reset();
    }
    n.values.assign(all.begin() + static_cast<std::ptrdiff_t>(slots.size()), all.end());
    for (const Tensor& y : n.values) {
      if (y.size() > (large_ ? kMostOfLarge : kMostElements) || y.ndim() > 4) return reset();
      if (!is_float(y) || y.size() == 0 || !d_.chance(97)) continue;
      const double most = max(abs(astype(y, DType::f64))).item();
      if (!(most <= kMost)) return reset();
    }
    if (n.kind == Node::step || n.kind == Node::assign)
      for (const Variable& v : world_->variables)
        if (v.value().size() && !(max(abs(astype(v.value(), DType::f64))).item() <= kMost)) return reset();
    slots = std::move(all);
    nodes.push_back(std::move(n));
    return true;
  }

  void draw_results() {
    const int n = static_cast<int>(slots_.size());
    for (int i = d_.in(1, 5); i-- > 0;)
      p_.results.push_back(d_.chance(60) ? d_.in(std::max(0, n - 6), n - 1) : d_.in(0, n - 1));
    p_.into = d_.chance(40), p_.elsewhere = d_.chance(60), p_.specials = d_.chance(40);
    p_.repeats = d_.chance(40), p_.set = d_.chance(60), p_.wrong_indices = d_.chance(30) && !has_step_;
  }

  Random d_;
  std::string without_;
  bool large_ = false, tiny_ = false, has_step_ = false;
  DType dtype_ = DType::f32;
  std::int64_t n_ = 1, rows_ = 1, columns_ = 1;
  Program p_;
  std::unique_ptr<World> world_;
  Tensors x_, slots_;
  Keys keys_;
};

}   // namespace

Program draw_program(std::uint64_t seed, std::uint64_t number, const std::string& without) {
  return Drawer(seed, number, "," + without + ",").draw();
}

}   // namespace tapedeck::replays
