// Results do not depend on the number of threads, bit for bit: every op in the tables on large inputs, made
// from its samples, and a training run.
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "closeness.h"
#include "core/sanitizers.h"
#include "ops/op_samples.h"

namespace same_bits_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr std::int64_t kLarge =
    kThreadSanitizer ? 150'000 : 200'000;     // elements of the largest input or output
constexpr int kEnough = kSanitized ? 1 : 3;   // the number of large inputs for each op

/// Resets to one thread.
struct Threads {
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(1); }
};

std::int64_t largest_of(const std::vector<Shape>& shapes) {
  std::int64_t n = 0;
  for (const Shape& s : shapes)
    n = std::max(n, s.size());
  return n;
}

// Ways to enlarge the inputs of a sample, as shapes. The values repeat, so indices stay in range and values
// in their domains.
using Shapes = std::vector<Shape>;

Shapes shapes_of(const Tensors& x) {
  Shapes shapes;
  for (const Tensor& t : x)
    shapes.push_back(t.shape());
  return shapes;
}
/// Every extent d, of any input, becomes the same multiple of d, so that extents that must match still match.
Shapes with_longer(const Shapes& x, std::int64_t d, std::int64_t size) {
  double smallest = 1e9;
  for (const Shape& s : x)
    if (const auto axes = std::count(s.begin(), s.end(), d))
      smallest = std::min(smallest, std::pow(static_cast<double>(size) / static_cast<double>(s.size()),
                                             1.0 / static_cast<double>(axes)));
  const std::int64_t times = std::max<std::int64_t>(1, static_cast<std::int64_t>(smallest));
  Shapes y;
  for (const Shape& s : x) {
    Shape& longer = y.emplace_back();
    for (const std::int64_t e : s)
      longer.push_back(e == d ? e * times : e);
  }
  return y;
}
/// The inputs whose bit is set in `which` get one more leading axis.
Shapes with_axis_in_front(const Shapes& x, unsigned which, std::int64_t size) {
  std::int64_t largest = 1;
  for (const Shape& s : x)
    largest = std::max(largest, s.size());
  Shapes y = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(which >> i & 1) || x[i].ndim() == Shape::kMaxRank) continue;
    y[i] = Shape{std::max<std::int64_t>(size / largest, 1)};
    for (const std::int64_t d : x[i])
      y[i].push_back(d);
  }
  return y;
}

/// Whether the op takes inputs of these shapes, and neither they nor its outputs are much larger than
/// intended. If so, sets them.
bool fits(const Op& op, const Sample& s, const Shapes& shapes, Tensors& x) {
  if (std::any_of(shapes.begin(), shapes.end(), [](const Shape& shape) { return shape.size() > 2 * kLarge; }))
    return false;
  x.clear();
  for (std::size_t i = 0; i < shapes.size(); ++i)
    x.push_back(s.inputs[i].size() ? tiled(s.inputs[i], shapes[i]) : s.inputs[i]);
  try {
    for (const Spec& y : inferred(op, x, s.attrs))
      if (y.shape.size() > 2 * kLarge) return false;
    run(op, x, s.attrs);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Calls check(x) for all enlarged inputs x that the op takes, until enough().
template <class Check, class Enough>
void for_each_enlarged(const Op& op, const Sample& s, const Enough& enough, const Check& check) {
  const Shapes shapes = shapes_of(s.inputs);
  std::set<std::int64_t> extents;
  for (const Shape& shape : shapes)
    extents.insert(shape.begin(), shape.end());
  std::vector<Shapes> wanted;
  for (const std::int64_t d : extents)
    if (d > 0) wanted.push_back(with_longer(shapes, d, kLarge));
  for (unsigned which = 1; which < 1u << std::min<std::size_t>(shapes.size(), 3); ++which) {
    wanted.push_back(with_axis_in_front(shapes, which, kLarge));
    if (!extents.empty())
      wanted.push_back(
          with_axis_in_front(with_longer(shapes, *extents.rbegin(), kLarge / 300), which, kLarge));
  }
  Tensors x;
  for (const Shapes& w : wanted)
    if (largest_of(w) > largest_of(shapes) && !enough() && fits(op, s, w, x)) check(x);
}

/// The outputs of an op, and the gradients of its inputs for an irregular cotangent.
Tensors outputs_and_gradients(const Op& op, const Tensors& x, const OwnedAttrs& attrs) {
  GradientTape tape;
  for (const Tensor& t : x)
    if (is_trainable(t.dtype())) tape.watch(t);
  Tensors all = run(op, x, attrs), targets, dy;
  if (op.rule.kind == RuleKind::none || op.rule.kind == RuleKind::undefined) return all;
  for (const Tensor& t : all)
    if (is_trainable(t.dtype())) {
      targets.push_back(t);
      dy.push_back(tiled(samples::uniform({997}, -1, 1), t.shape()));
      if (t.dtype() != dy.back().dtype()) dy.back() = astype(dy.back(), t.dtype());
    }
  Tensors sources;
  for (const Tensor& t : x)
    if (is_trainable(t.dtype())) sources.push_back(t);
  if (targets.empty() || sources.empty()) return all;
  for (const Gradient& g : tape.gradient(Targets(targets), Sources(sources), {.output_gradients = dy})) {
    if (g.slices()) all.push_back(g.slices()->values);
    if (g.defined()) all.push_back(g.dense());
  }
  return all;
}

/// Compares bits, since NaN differs from itself as a value.
bool same(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Slow ops run only once. For the thread sanitizer all do: it looks for races, and not at bits.
void check_on_all_threads(const std::function<Tensors()>& f) {
  if (kThreadSanitizer) {
    const Threads threads(4);
    f();
    return;
  }
  const Clock::time_point start = Clock::now();
  const Tensors one = f();
  const bool is_long = seconds_since(start) > 0.05;
  for (const int n : is_long ? std::vector<int>{4} : std::vector<int>{2, 4, 8}) {
    const Threads threads(n);
    INFO(n << " threads");
    CHECK(same(f(), one));
  }
}

/// Ops whose sizes are in their attributes.
const std::map<std::string_view, std::function<Tensors()>>& large_cases() {
  // Adjoints are tested as gradients.
  const auto gradient = [](const Tensor& x, Tensor (*f)(const Tensor&)) {
    GradientTape tape;
    tape.watch(x);
    return Tensors{tape.gradient(sum(square(f(x))), x).dense()};
  };
  static const std::map<std::string_view, std::function<Tensors()>> cases = {
      {"avg_pool_gradient",
       [=] {
         return gradient(samples::uniform({20, 100, 10, 10}, -1, 1),
                         [](const Tensor& x) { return avg_pool2d(x, {.window = 3, .strides = 2}); });
       }},
      {"binomial", [] { return Tensors{random::binomial({kLarge / 4 + 1}, 50, 0.3, {3})}; }},
      {"block_lstm",
       [=] {
         return gradient(samples::uniform({20, 64, 160}, -1, 1), [](const Tensor& x) {
           const Tensor state = samples::uniform({64, 160}, -1, 1, 1);
           return block_lstm(x, {state, state}, samples::uniform({320, 640}, -0.1, 0.1, 2),
                             zeros({640}, DType::f64))
               .h;
         });
       }},
      {"broadcast_to",
       [] {
         return Tensors{broadcast_to(samples::uniform({500, 1}, -1, 1), {2, 500, 300}),
                        broadcast_to(tensor(2.0), {kLarge})};
       }},
      {"categorical",
       [] {
         return Tensors{random::categorical(samples::uniform({20, 300}, -1, 1), kLarge / 20, {3}),
                        random::categorical(samples::uniform({kLarge / 20, 20}, -1, 1), 3, {4})};
       }},
      {"dot_product_attention",   // whose scores grow with the square of lengths
       [=] {
         return gradient(samples::uniform({4, 300, 200}, -1, 1), [](const Tensor& x) {
           return dot_product_attention(x, 2.0 * x, 3.0 * x, {}, {.heads = 4, .causal = true});
         });
       }},
      {"dot_product_attention_gradient",
       [=] {
         return gradient(samples::uniform({4, 100, 40}, -1, 1), [](const Tensor& x) {
           GradientTape inner;
           inner.watch(x);
           return inner.gradient(sum(square(dot_product_attention(x, 2.0 * x, 3.0 * x))), x).dense();
         });
       }},
      {"fill",
       [] {
         return Tensors{fill({kLarge}, tensor(0.1)), fill({300, 1000}, tensor(3, DType::u8))};
       }},
      {"full",
       [] {
         return Tensors{full({kLarge}, 0.1), ones({kLarge}, DType::u8)};
       }},
      {"gamma", [] { return Tensors{random::gamma({kLarge / 20 + 1}, 2.5, {3})}; }},
      {"invert_permutation", [] { return Tensors{invert_permutation(random::permutation(kLarge, {5}))}; }},
      {"matrix_diag",
       [] {
         return Tensors{
             matrix_diag(samples::uniform({500}, -1, 1)),
             matrix_diag(samples::uniform({300, 3, 20}, -1, 1), {-1, 1}, {.rows = 21, .columns = 20})};
       }},
      {"matrix_diag_part",
       [=] {
         return gradient(samples::uniform({300, 30, 40}, -1, 1), [](const Tensor& x) {
           return matrix_diag_part(x, {-9, 20});
         });
       }},
      {"normal",
       [] {
         return Tensors{random::normal({kLarge + 1}, {3}), random::normal({kLarge + 1}, {3}, DType::f64)};
       }},
      {"one_hot",
       [] { return Tensors{one_hot(astype(random::uniform({kLarge / 50}, {4}, 0, 50), DType::i64), 50)}; }},
      {"parameterized_truncated_normal",
       [] { return Tensors{random::parameterized_truncated_normal({kLarge / 20 + 1}, 1, 2, 0, 5, {3})}; }},
      {"permutation", [] { return Tensors{random::permutation(kLarge, {5})}; }},
      {"poisson", [] { return Tensors{random::poisson({kLarge / 4 + 1}, 7, {3})}; }},
      {"probabilities",
       [=] {
         return gradient(samples::uniform({kLarge / 20 + 1}, 1, 2), [](const Tensor& mean) {
           return random::parameterized_truncated_normal(mean.shape(), mean, 2, 0, 5, {3});
         });
       }},
      {"truncated_normal",
       [] {
         return Tensors{random::truncated_normal({kLarge + 1}, {7}),
                        random::truncated_normal({kLarge + 1}, {7}, DType::f64)};
       }},
      {"strided_pad",
       [=] {
         return gradient(samples::uniform({500, 400}, -1, 1), [](const Tensor& x) {
           return strided_slice(x, {Slice(1, {}, 2), Slice({}, {}, -1)});
         });
       }},
      {"uniform",
       [] {
         return Tensors{random::uniform({kLarge + 1}, {6}),
                        random::uniform({kLarge + 1}, {6}, 0, 1, DType::f64)};
       }},
  };
  return cases;
}

}   // namespace

/// How many of an op's enlarged inputs it may refuse: matrices with repeated rows are singular, perhaps only
/// in one dtype or for the gradient.
int refused_inputs(std::string_view op) {
  static const std::map<std::string_view, int> refused = {
      {"slogdet", 2}, {"qr", 2}, {"eig", 1}, {"matrix_square_root", 1}};
  const auto found = refused.find(op);
  return found == refused.end() ? 0 : found->second;
}

TEST_CASE("every op gives the same bits on any number of threads", "[threads][same_bits]") {
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      DYNAMIC_SECTION(op->name) {
        std::int64_t most = 0;
        int number = 0, refused = 0;
        const auto enough = [&] { return most >= kLarge / 2 && number >= kEnough; };
        if (op->name.starts_with("dot_product_attention")) return;
        for (const Sample& s : samples_of(*op))
          for_each_enlarged(*op, s, enough, [&](const Tensors& x) {
            std::string specs;
            for (const Tensor& t : x)
              specs += " " + to_string(t.spec());
            INFO("inputs:" << specs);
            const bool single = number++ % 2 == 0 || kThreadSanitizer;
            try {
              check_on_all_threads(
                  [&] { return outputs_and_gradients(*op, single ? in_f32(x) : x, s.attrs); });
            } catch (const ArgumentError&) {
              ++refused;
              return;
            }
            most = std::max(most, largest_of(shapes_of(x)));
          });
        if (!kSanitized) CHECK(refused <= refused_inputs(op->name));
        INFO("no sample can be enlarged: make a case in large_cases");
        CHECK((most >= kLarge / 2 || large_cases().contains(op->name)));
      }
}

TEST_CASE("ops at sizes of their own give the same bits on any number of threads", "[threads][same_bits]") {
  for (const auto& [name, f] : large_cases())
    DYNAMIC_SECTION(name) { check_on_all_threads(f); }
}

TEST_CASE("a training run gives the same bits on any number of threads", "[threads][same_bits]") {
  check_on_all_threads([] {
    const random::Key key{11};
    const std::int64_t batch = 256, in = 300, hidden = 400, classes = 10, words = 500;
    const Tensor x = random::normal({batch, in}, key.split(0));
    const Tensor labels = astype(random::uniform({batch}, key.split(1), 0, classes), DType::i64);
    const Tensor indices = astype(random::uniform({batch}, key.split(2), 0, words), DType::i64);
    const std::vector<Variable> v = {
        Variable(random::normal({in, hidden}, key.split(3)) * 0.05), Variable(zeros({hidden})),
        Variable(random::normal({hidden, classes}, key.split(4)) * 0.05), Variable(zeros({classes})),
        Variable(random::normal({words, hidden}, key.split(5)))};
    Adam adam({.learning_rate = 0.01});
    Tensors results;
    for (int step = 0; step < 5; ++step) {
      GradientTape tape;
      const Tensor h = tanh(matmul(x, v[0]) + v[1] + gather(v[4], indices));
      const Tensor loss =
          mean(sparse_softmax_cross_entropy(labels, matmul(h, v[2]) + v[3])) + 1e-3 * sum(square(h));
      results.push_back(loss);
      adam.apply_gradients(tape.gradient(Targets(loss), Sources(v)), v);
    }
    for (const Variable& variable : v)
      results.push_back(variable.value() * 1);
    return results;
  });
}

}   // namespace same_bits_test
