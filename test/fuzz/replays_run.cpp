// Runs a random program of a compiled function, and prints it.
#include <algorithm>
#include <set>
#include <sstream>

#include "replays.h"
#include "tapedeck/map.h"

namespace tapedeck::replays {
namespace {

#define ONE(...)                       \
  [](const Node&, const Tensors& in) { \
    const Tensor& x = in[0];           \
    return Tensors{__VA_ARGS__};       \
  }
#define TWO(...)                         \
  [](const Node&, const Tensors& in) {   \
    const Tensor &x = in[0], &y = in[1]; \
    return Tensors{__VA_ARGS__};         \
  }
#define REDUCED(f) \
  [](const Node& n, const Tensors& in) { return Tensors{f(in[0], axes_of(n), {.keepdims = n.number > 0})}; }

Tensor map_of(const Tensor& a, const Tensor& b) {
  return map([](auto x, auto y) { return where(x > y, x * sin(y), y / (2.0 + x * x)); }, a, b);
}
Axes axes_of(const Node& n) {
  Axes axes;
  axes.all = n.numbers.empty();
  for (const std::int64_t a : n.numbers)
    axes.list.push_back(static_cast<int>(a));
  return axes;
}
Shape shape_of(const Numbers& n) { return Shape(std::span<const std::int64_t>(n)); }
std::vector<int> ints_of(const Numbers& n) {
  std::vector<int> list;
  for (const std::int64_t v : n)
    list.push_back(static_cast<int>(v));
  return list;
}
Shape half_of(const Numbers& n, bool second) {
  const std::size_t half = n.size() / 2;
  return Shape(std::span<const std::int64_t>(n).subspan(second ? half : 0, half));
}
// clang-format off
const std::vector<Form> all_forms = {
    {"neg", Form::unary, ONE(neg(x))}, {"exp", Form::unary, ONE(exp(x))},
    {"tanh", Form::unary, ONE(tanh(x))},
    {"sigmoid", Form::unary, ONE(sigmoid(x))}, {"square", Form::unary, ONE(square(x))},
    {"abs", Form::unary, ONE(abs(x))}, {"relu", Form::unary, ONE(relu(x))},
    {"sin", Form::unary, ONE(sin(x))},
    {"cos", Form::unary, ONE(cos(x))},
    {"sign", Form::unary, ONE(sign(x))}, {"floor", Form::unary, ONE(floor(x))},
    {"softplus", Form::unary, ONE(softplus(x))},
    {"sqrt", Form::unary, ONE(sqrt(x))},
    {"log1p", Form::unary, ONE(log1p(x))},
    {"reciprocal", Form::unary, ONE(reciprocal(x))},
    {"atan", Form::unary, ONE(atan(x))},
    {"silu", Form::unary, ONE(silu(x))},
    {"stop_gradient", Form::unary, ONE(stop_gradient(x))}, {"identity", Form::unary, ONE(identity(x))},
    {"zeros_like", Form::unary, ONE(zeros_like(x))}, {"ones_like", Form::unary, ONE(ones_like(x))},
    {"logical_not", Form::logic, ONE(logical_not(x))},

    {"add", Form::binary, TWO(add(x, y))}, {"sub", Form::binary, TWO(sub(x, y))}, {"mul", Form::binary, TWO(mul(x, y))},
    {"div", Form::binary, TWO(div(x, y))}, {"maximum", Form::binary, TWO(maximum(x, y))},
    {"minimum", Form::binary, TWO(minimum(x, y))}, {"squared_difference", Form::binary, TWO(squared_difference(x, y))},
    {"atan2", Form::binary, TWO(atan2(x, y))},
    {"x * y + x", Form::binary, TWO(x * y + x)},
    {"exp(x - y)", Form::binary, TWO(exp(x - y))},
    {"map", Form::binary, TWO(map_of(x, y))},

    {"x * a", Form::number, [](const Node& n, const Tensors& x) { return Tensors{x[0] * n.number}; }},
    {"x + a", Form::number, [](const Node& n, const Tensors& x) { return Tensors{x[0] + n.number}; }},
    {"a - x", Form::number, [](const Node& n, const Tensors& x) { return Tensors{n.number - x[0]}; }},
    {"x / a", Form::number, [](const Node& n, const Tensors& x) { return Tensors{x[0] / n.number}; }},
    {"a / x", Form::number, [](const Node& n, const Tensors& x) { return Tensors{n.number / x[0]}; }},
    {"maximum(x, a)", Form::number,
     [](const Node& n, const Tensors& x) { return Tensors{maximum(x[0], n.number)}; }},
    {"pow(x, 2)", Form::number, [](const Node&, const Tensors& x) { return Tensors{pow(x[0], 2)}; }},
    {"x > a", Form::number, [](const Node& n, const Tensors& x) { return Tensors{x[0] > n.number}; }},
    {"astype", Form::number, [](const Node& n, const Tensors& x) { return Tensors{astype(x[0], n.dtype)}; }},

    {"less", Form::compare, TWO(less(x, y))}, {"less_equal", Form::compare, TWO(less_equal(x, y))},
    {"greater", Form::compare, TWO(greater(x, y))}, {"greater_equal", Form::compare, TWO(greater_equal(x, y))},
    {"equal", Form::compare, TWO(equal(x, y))}, {"not_equal", Form::compare, TWO(not_equal(x, y))},
    {"logical_and", Form::logic, TWO(logical_and(x, y))}, {"logical_or", Form::logic, TWO(logical_or(x, y))},
    {"where", Form::choose, [](const Node&, const Tensors& x) { return Tensors{where(x[0], x[1], x[2])}; }},
    {"bools to floats", Form::logic,
     [](const Node& n, const Tensors& x) { return Tensors{astype(x[0], n.dtype)}; }},

    {"sum", Form::reduce, REDUCED(sum)}, {"mean", Form::reduce, REDUCED(mean)}, {"max", Form::reduce, REDUCED(max)},
    {"min", Form::reduce, REDUCED(min)}, {"prod", Form::reduce, REDUCED(prod)},
    {"logsumexp", Form::reduce, REDUCED(logsumexp)}, {"norm", Form::reduce, REDUCED(euclidean_norm)},
    {"sum of all", Form::reduce, [](const Node&, const Tensors& x) { return Tensors{sum(x[0])}; }},
    {"mean of all", Form::reduce, [](const Node&, const Tensors& x) { return Tensors{mean(x[0])}; }},
    {"cumsum", Form::shape, [](const Node& n, const Tensors& x) { return Tensors{cumsum(x[0], static_cast<int>(n.numbers[0]))}; }},
    {"softmax", Form::shape, [](const Node& n, const Tensors& x) { return Tensors{softmax(x[0], static_cast<int>(n.numbers[0]))}; }},
    {"sort", Form::shape, [](const Node& n, const Tensors& x) { return Tensors{sort(x[0], static_cast<int>(n.numbers[0]))}; }},
    {"argmax", Form::shape, [](const Node& n, const Tensors& x) { return Tensors{argmax(x[0], static_cast<int>(n.numbers[0]))}; }},

    {"slice", Form::shape,
     [](const Node& n, const Tensors& x) { return Tensors{slice(x[0], half_of(n.numbers, false), half_of(n.numbers, true))}; }},
    {"strided_slice", Form::shape,
     [](const Node& n, const Tensors& x) {   // begins, then strides
       std::vector<Slice> list;
       for (std::size_t i = 0; i < n.numbers.size() / 2; ++i)
         list.emplace_back(n.numbers[i], std::nullopt, n.numbers[i + n.numbers.size() / 2]);
       return Tensors{strided_slice(x[0], list)};
     }},
    {"entry", Form::shape, [](const Node& n, const Tensors& x) { return Tensors{x[0][n.numbers[0]]}; }},
    {"reshape", Form::shape, [](const Node& n, const Tensors& x) { return Tensors{reshape(x[0], shape_of(n.numbers))}; }},
    {"transpose", Form::shape, [](const Node& n, const Tensors& x) { return Tensors{transpose(x[0], ints_of(n.numbers))}; }},
    {"broadcast_to", Form::shape, [](const Node& n, const Tensors& x) { return Tensors{broadcast_to(x[0], shape_of(n.numbers))}; }},
    {"reverse", Form::shape, [](const Node& n, const Tensors& x) { return Tensors{reverse(x[0], static_cast<int>(n.numbers[0]))}; }},
    {"roll", Form::shape, [](const Node& n, const Tensors& x) { return Tensors{roll(x[0], n.numbers[1], static_cast<int>(n.numbers[0]))}; }},
    {"expand_dims", Form::shape, [](const Node& n, const Tensors& x) { return Tensors{expand_dims(x[0], static_cast<int>(n.numbers[0]))}; }},
    {"split", Form::shape,
     [](const Node& n, const Tensors& x) { return split(x[0], static_cast<int>(n.numbers[1]), static_cast<int>(n.numbers[0])); }},
    {"pad", Form::shape,
     [](const Node& n, const Tensors& x) { return Tensors{pad(x[0], half_of(n.numbers, false), half_of(n.numbers, true), n.number)}; }},

    {"concat", Form::join, [](const Node& n, const Tensors& x) { return Tensors{concat(x, static_cast<int>(n.numbers[0]))}; }},
    {"stack", Form::join, [](const Node& n, const Tensors& x) { return Tensors{stack(x, static_cast<int>(n.numbers[0]))}; }},
    {"add_n", Form::join, [](const Node&, const Tensors& x) { return Tensors{add_n(x)}; }},
    {"matmul", Form::other, TWO(matmul(x, y))},

    {"gather", Form::index, [](const Node& n, const Tensors& x) { return Tensors{gather(x[1], x[0], static_cast<int>(n.numbers[0]))}; }},
    {"rows", Form::index, [](const Node&, const Tensors& x) { return Tensors{x[1][x[0]]}; }},
    {"segment_sum", Form::index, [](const Node&, const Tensors& x) { return Tensors{segment_sum(x[1], x[0])}; }},
    {"segment_mean", Form::index, [](const Node&, const Tensors& x) { return Tensors{segment_mean(x[1], x[0])}; }},
    {"segment_prod", Form::index, [](const Node&, const Tensors& x) { return Tensors{segment_prod(x[1], x[0])}; }},
    {"segment_min", Form::index, [](const Node&, const Tensors& x) { return Tensors{segment_min(x[1], x[0])}; }},
    {"segment_max", Form::index, [](const Node&, const Tensors& x) { return Tensors{segment_max(x[1], x[0])}; }},
    {"unsorted_segment_sum", Form::index, [](const Node& n, const Tensors& x) { return Tensors{unsorted_segment_sum(x[1], x[0], n.numbers[0])}; }},
    {"unsorted_segment_mean", Form::index, [](const Node& n, const Tensors& x) { return Tensors{unsorted_segment_mean(x[1], x[0], n.numbers[0])}; }},
    {"unsorted_segment_sqrt_n", Form::index, [](const Node& n, const Tensors& x) { return Tensors{unsorted_segment_sqrt_n(x[1], x[0], n.numbers[0])}; }},
    {"unsorted_segment_max", Form::index, [](const Node& n, const Tensors& x) { return Tensors{unsorted_segment_max(x[1], x[0], n.numbers[0])}; }},
    {"tensor_scatter_add", Form::index,
     [](const Node&, const Tensors& x) { return Tensors{tensor_scatter_add(x[1], reshape(x[0], {-1, 1}), x[2])}; }},
    {"tensor_scatter_update", Form::index,
     [](const Node&, const Tensors& x) { return Tensors{tensor_scatter_update(x[1], reshape(x[0], {-1, 1}), x[2])}; }},
    {"tensor_scatter_max", Form::index,
     [](const Node&, const Tensors& x) { return Tensors{tensor_scatter_max(x[1], reshape(x[0], {-1, 1}), x[2])}; }},
    {"scatter_add", Form::index,
     [](const Node& n, const Tensors& x) {
       Shape s = x[1].shape();
       s.set(0, n.numbers[0]);
       return Tensors{scatter_add(x[1], x[0], s)};
     }},
    {"one_hot", Form::index, [](const Node& n, const Tensors& x) { return Tensors{one_hot(x[0], n.numbers[0], n.dtype)}; }},

    {"normal", Form::random, [](const Node&, const Tensors&) { return Tensors(); }},   // see draw_of
    {"uniform", Form::random, [](const Node&, const Tensors&) { return Tensors(); }},
    {"truncated_normal", Form::random, [](const Node&, const Tensors&) { return Tensors(); }},
    {"dropout", Form::random, [](const Node&, const Tensors&) { return Tensors(); }},
    {"gamma", Form::random, [](const Node&, const Tensors&) { return Tensors(); }},
    {"permutation", Form::random, [](const Node&, const Tensors&) { return Tensors(); }},
};
// clang-format on

Tensor draw_of(const Node& n, const Keys& keys, const Tensors& slots) {
  random::Key k = n.key.argument < 0 ? n.key.constant : keys[static_cast<std::size_t>(n.key.argument)];
  for (const std::uint64_t i : n.key.splits)
    k = k.split(i);
  const std::string_view name = all_forms[static_cast<std::size_t>(n.which)].name;
  const Shape shape = shape_of(n.numbers);
  if (name == "normal") return random::normal(shape, k, n.dtype);
  if (name == "uniform") return random::uniform(shape, k, -1, 1, n.dtype);
  if (name == "truncated_normal") return random::truncated_normal(shape, k, n.dtype);
  const Tensor& x = slots[static_cast<std::size_t>(n.slots.at(0))];
  if (name == "dropout") return dropout(x, 0.5, k);
  if (name == "gamma") return random::gamma(x.shape(), abs(x) + 0.5, k);
  return gather(x, random::permutation(x.shape()[0], k));
}

Tensor or_zeros(const Gradient& g, const Tensor& like) { return g.defined() ? g.dense() : zeros_like(like); }

// The slots before the body are copied: those that it adds are not seen behind it.
void derive(const Node& n, World& w, const Tensors& x, const Keys& keys, Tensors& slots) {
  std::vector<Source> sources;
  Tensors like;
  for (const int s : n.slots) {
    const Tensor& t = slots[static_cast<std::size_t>(s)];
    const bool again =   // one tensor may be several arguments
        std::any_of(like.begin(), like.end(), [&](const Tensor& l) { return l.id() == t.id(); });
    if (n.kind == Node::tangent && again) continue;
    sources.emplace_back(t);
    like.push_back(t);
  }
  if (n.kind == Node::tangent) {
    Tensors dx;
    for (const Tensor& t : like)
      dx.push_back(t * 0.5 + 0.25);
    const ForwardAccumulator along{Sources(sources), std::span<const Tensor>(dx)};
    Tensors inner = slots;
    for (const Node& b : n.body)
      run_node(b, w, x, keys, inner);
    for (const int t : n.targets)
      slots.push_back(along.jvp(inner[static_cast<std::size_t>(t)], UnconnectedGradients::zero));
    return;
  }
  GradientTape tape({.persistent = n.persistent});
  for (const Tensor& t : like)
    tape.watch(t);
  Tensors inner = slots;
  for (const Node& b : n.body)
    run_node(b, w, x, keys, inner);
  for (const int v : n.variables) {
    sources.emplace_back(w.variables[static_cast<std::size_t>(v)]);
    like.push_back(w.variables[static_cast<std::size_t>(v)].value());
  }
  std::vector<Source> y;
  for (const int t : n.targets)
    y.emplace_back(inner[static_cast<std::size_t>(t)]);
  if (!n.persistent) {
    const std::vector<Gradient> g = tape.gradient(Targets(y), Sources(sources));
    for (std::size_t i = 0; i < g.size(); ++i)
      slots.push_back(or_zeros(g[i], like[i]));
  } else {
    for (const Source& t : y) {
      const std::vector<Gradient> g = tape.gradient(Targets(std::vector<Source>{t}), Sources(sources));
      for (std::size_t i = 0; i < g.size(); ++i)
        slots.push_back(or_zeros(g[i], like[i]));
    }
  }
  for (const Source& t : y)
    slots.push_back(t.tensor());
}

}   // namespace

const std::vector<Form>& forms() { return all_forms; }
int form_named(std::string_view name) {
  for (std::size_t i = 0; i < all_forms.size(); ++i)
    if (all_forms[i].name == name) return static_cast<int>(i);
  throw ArgumentError("replays: there is no form " + std::string(name));
}

World::World(const Program& p) : captured(p.captured) {
  for (const Tensor& v : p.variables)
    variables.emplace_back(v + 0);   // in memory of its own
  optimizer = std::make_unique<GradientDescent>(GradientDescentOptions{.learning_rate = 0.125});
}

void run_node(const Node& n, World& w, const Tensors& x, const Keys& keys, Tensors& slots) {
  if (n.frozen) {
    slots.insert(slots.end(), n.values.begin(), n.values.end());
    return;
  }
  const auto number = static_cast<std::size_t>(n.which);
  switch (n.kind) {
    case Node::argument:
      slots.push_back(x[number]);
      break;
    case Node::captured:
      slots.push_back(w.captured[number]);
      break;
    case Node::read:
      slots.push_back(w.variables[number].value());
      break;
    case Node::assign:
      w.variables[number].assign(slots[static_cast<std::size_t>(n.slots[0])]);
      break;
    case Node::step:
      w.optimizer->apply_gradients({{slots[static_cast<std::size_t>(n.slots[0])], w.variables[number]}});
      break;
    case Node::form: {
      Tensors in;
      in.reserve(n.slots.size());
      for (const int s : n.slots)
        in.push_back(slots[static_cast<std::size_t>(s)]);
      for (Tensor& y : all_forms[number].run(n, in))
        slots.push_back(std::move(y));
      break;
    }
    case Node::draw:
      slots.push_back(draw_of(n, keys, slots));
      break;
    default:
      derive(n, w, x, keys, slots);
  }
}

Tensors run(const Program& p, World& w, const Tensors& x, const Keys& keys) {
  Tensors slots;
  slots.reserve(2 * p.nodes.size());
  for (const Node& n : p.nodes)
    run_node(n, w, x, keys, slots);
  Tensors y;
  y.reserve(p.results.size());
  for (const int r : p.results)
    y.push_back(slots[static_cast<std::size_t>(r)]);
  return y;
}

namespace {

std::string list_of(const std::vector<int>& slots) {
  std::string out;
  for (const int s : slots)
    out += (out.empty() ? "v" : ", v") + std::to_string(s);
  return out;
}
std::string text_of(const KeyOf& k) {
  std::string out = k.argument >= 0 ? "k" + std::to_string(k.argument)
                                    : "Key{" + std::to_string(k.constant.seed) + ", " +
                                          std::to_string(k.constant.stream) + "}";
  for (const std::uint64_t i : k.splits)
    out += ".split(" + std::to_string(i) + ")";
  return out;
}

std::string text_of(const Node& n) {
  const std::string which = std::to_string(n.which);
  std::ostringstream out;
  switch (n.kind) {
    case Node::argument:
      return "x" + which;
    case Node::captured:
      return "c" + which;
    case Node::read:
      return "w" + which;
    case Node::assign:
      return "w" + which + ".assign(" + list_of(n.slots) + ")";
    case Node::step:
      return "step of w" + which + " with " + list_of(n.slots);
    case Node::gradient:
    case Node::tangent:
      out << (n.kind == Node::tangent ? "tangents"
              : n.persistent          ? "gradients by a persistent tape"
                                      : "gradient")
          << " of " << list_of(n.targets) << " with respect to " << list_of(n.slots);
      for (const int v : n.variables)
        out << (n.slots.empty() && v == n.variables[0] ? "w" : ", w") << v;
      out << (n.kind == Node::tangent ? "" : ", then the targets") << ", of";
      return out.str();
    default:
      out << all_forms[static_cast<std::size_t>(n.which)].name << "(" << list_of(n.slots);
      if (!n.numbers.empty()) out << (n.slots.empty() ? "" : "; ");
      for (std::size_t i = 0; i < n.numbers.size(); ++i)
        out << (i ? "," : "") << n.numbers[i];
      if (n.kind == Node::draw) out << "; " << text_of(n.key);
      if (n.number != 0) out << "; a = " << n.number;
      out << ")";
      return out.str();
  }
}

void add_used(std::set<int>& used, const std::vector<Node>& nodes) {
  for (const Node& n : nodes) {
    if (n.frozen) continue;
    used.insert(n.slots.begin(), n.slots.end());
    used.insert(n.targets.begin(), n.targets.end());
    add_used(used, n.body);
  }
}

// Of the constants those that have the number of a slot that is read.
void write(std::string& out, const std::vector<Node>& nodes, int slot, const std::string& margin,
           const std::set<int>& used) {
  for (const Node& n : nodes) {
    std::string left;
    const int first = slot;
    for (const Tensor& v : n.values)
      left += (left.empty() ? "v" : ", v") + std::to_string(slot++) + " " + to_string(v.spec());
    const auto u = used.lower_bound(first);
    if (n.frozen && (u == used.end() || *u >= slot)) continue;
    out += margin + left + (left.empty() ? "" : " = ") + (n.frozen ? "constant" : text_of(n)) + "\n";
    if (!n.frozen && !n.body.empty()) write(out, n.body, first, margin + "    ", used);
  }
}

}   // namespace

std::string text_of(const Program& p) {
  std::string out;
  for (std::size_t i = 0; i < p.arguments.size(); ++i) {
    const Argument& a = p.arguments[i];
    static constexpr const char* kinds[] = {"", ", indices below ", ", ascending to below ", ""};
    out += "  argument x" + std::to_string(i) + " " + to_string(a.spec) + kinds[a.kind] +
           (a.count ? std::to_string(a.count) : "") + "\n";
  }
  out += "  keys: " + std::to_string(p.keys) + "\n";
  for (std::size_t i = 0; i < p.captured.size(); ++i)
    out += "  captured c" + std::to_string(i) + " " + to_string(p.captured[i].spec()) + "\n";
  for (std::size_t i = 0; i < p.variables.size(); ++i)
    out += "  variable w" + std::to_string(i) + " " + to_string(p.variables[i].spec()) + "\n";
  std::set<int> used(p.results.begin(), p.results.end());
  add_used(used, p.nodes);
  write(out, p.nodes, 0, "  ", used);
  out += "  results " + list_of(p.results) + "\n  with" + (p.wrong_indices ? " wrong indices," : "") +
         (p.elsewhere ? " views," : "") + (p.specials ? " special numbers," : "") +
         (p.repeats ? " repeated arguments," : "") + (p.into ? " into," : "") +
         (p.set ? " variables set between calls" : "") + "\n";
  return out;
}

}   // namespace tapedeck::replays
