// Every sample of every op, its gradient and its tangent, recorded with the sample's inputs and replayed with
// others: other floats, integers and bools, at other addresses. The results of each replay must have the bits
// of the function, NaN for NaN, and its inputs must stay unchanged. Functions of integers that are not ops
// themselves, and functions of keys, are listed below.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "compile/unchanged.h"
#include "ops/op_samples.h"
#include "tapedeck/compile.h"
#include "tapedeck/forward_accumulator.h"

using namespace tapedeck;
using namespace tapedeck::test;
using random::Key;

namespace {

/// Ops whose shapes depend on values, and what they depend on. These throw TraceError in a replay that would
/// give another shape. All others replay whatever they are given.
constexpr std::pair<std::string_view, std::string_view> kShapesByValues[] = {
    {"nonzero", "how many elements are not zero"},
    {"unique", "how many elements differ"},
    {"boolean_mask", "how many entries are true"},
    {"dynamic_partition", "how many entries belong to each part"},
    {"dynamic_stitch", "the largest index"},
};
/// Samples that are left out, and why.
constexpr std::pair<std::string_view, std::string_view> kLeftOut[] = {
    {"quantize_and_dequantize",
     "its gradient does not read its result, so a replay does not check its range"},
    {"ctc_loss_gradient", "its tangents read tensors that its rule makes, and throw TraceError"},
};
bool is_left_out(std::string_view op) {
  return std::any_of(std::begin(kLeftOut), std::end(kLeftOut),
                     [&](const auto& entry) { return entry.first == op; });
}
bool shape_is_by_values(std::string_view op) {
  return std::any_of(std::begin(kShapesByValues), std::end(kShapesByValues),
                     [&](const auto& entry) { return entry.first == op; });
}

// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
  }
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

Tensor of(const std::vector<std::int64_t>& v, const Tensor& like) {
  return astype(tensor(v, like.shape()), like.dtype());
}

constexpr int kWays = 8;

/// Other integers of the range of x's, or bools.
Tensor other_integers(const Tensor& x, int way, bool ascending, Random& r) {
  std::vector<std::int64_t> v = x.to_vector<std::int64_t>();
  const auto [low, high] = std::minmax_element(v.begin(), v.end());
  const std::int64_t least = *low, most = *high;
  const bool ascends = std::is_sorted(v.begin(), v.end());
  const auto redraw = [&] {
    for (std::int64_t& e : v)
      e = r.in(least, most);
  };
  switch (way) {
    case 0:
      std::rotate(v.begin(), v.begin() + 1, v.end());
      break;
    case 1:
      std::reverse(v.begin(), v.end());
      break;
    case 2:
      redraw();
      break;
    case 3:   // as ids of segments: ascending, and as many segments
      redraw(), std::sort(v.begin(), v.end()), v.back() = most;
      break;
    case 4:
      std::fill(v.begin(), v.end(), most);
      break;
    case 5:   // as different as may be, and in no order
      for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = least + static_cast<std::int64_t>(i) % (most - least + 1);
      for (std::size_t i = v.size(); i-- > 1;)
        std::swap(v[i], v[static_cast<std::size_t>(r.in(0, static_cast<std::int64_t>(i)))]);
      break;
    case 6:
      if (x.dtype() == DType::boolean)
        for (std::int64_t& e : v)
          e = 1 - e;
      else
        std::swap(v.front(), v.back());
      break;
    default:
      redraw(), redraw(), std::sort(v.begin(), v.end()), v.back() = most;
      if (!ascends) std::reverse(v.begin(), v.end());
  }
  if (ascending) std::sort(v.begin(), v.end()), v.back() = most;
  return of(v, x);
}

Tensor other_floats(const Tensor& x, int way) {
  if (way == 0) return nudged(x, 1e-3);
  if (way == 1) return nudged(x, -2e-3);
  if (way == 2) return rotated(x, 1);
  if (way == 3) return x;
  if (way == 4) return gathered(x, x.shape(), [n = x.size()](std::int64_t i) { return n - 1 - i; });
  Numbers v = numbers_of(x);
  if (way == 5) v[0] = -0.0;
  if (way == 6) v.back() = 0.0, v[0] = -v[0];
  if (way == 7) std::fill(v.begin(), v.end(), v[0]);   // all elements are equal
  return astype(tensor(v, x.shape()), x.dtype());
}

/// x at another place: what is drawn lies at the front of its memory.
Tensor elsewhere(const Tensor& x, std::int64_t before) {
  if (x.size() == 0) return x;
  const Tensor longer = gathered(x, {x.size() + before + 2}, [&](std::int64_t i) {
    return std::clamp<std::int64_t>(i - before, 0, x.size() - 1);
  });
  return reshape(slice(longer, {before}, {x.size()}), x.shape());
}

/// `ascending` is the input that holds such integers, if there is one.
Tensors others(const Tensors& x, int way, int ascending, Random& r) {
  Tensors all;
  for (const Tensor& t : x) {
    const Tensor y = t.size() == 0 ? t
                     : is_trainable(t.dtype())
                         ? other_floats(t, way)
                         : other_integers(t, way, static_cast<int>(all.size()) == ascending, r);
    all.push_back(way % 2 ? elsewhere(y, 1 + way) : way % 4 == 0 ? fresh(y) : y);
  }
  return all;
}
/// Other floats, and the same integers.
Tensors other_floats(const Tensors& x, int way) {
  Tensors all;
  for (const Tensor& t : x)
    all.push_back(t.size() && is_trainable(t.dtype()) ? other_floats(t, way) : t);
  return all;
}

/// What a function gives, and the shapes of what it computes on the way.
struct Result {
  Tensors y;
  std::vector<Spec> shapes;
};
using Traced = std::function<Result(const Tensors&)>;

/// f recorded with x, and replayed with others: "" where all is as f does it, or what is wrong.
std::string compare(const Traced& f, const Tensors& x, bool shape_by_values, int ascending = -1) {
  std::vector<Spec> shapes = f(x).shapes;
  const auto recorded = compile([&](const Tensors& in) { return f(in).y; }, {.name = "sample"});
  Random r(x.size());
  std::vector<Tensors> calls = {x};
  for (int way = 0; way < kWays; ++way) {
    calls.push_back(others(x, way, ascending, r));
    calls.push_back(other_floats(calls.back(), (way + 3) % kWays));
  }
  calls.push_back(x);
  for (std::size_t call = 0; call < calls.size(); ++call) {
    const Tensors& arguments = calls[call];
    const std::string where = call == 0 ? "recording: " : "call " + std::to_string(call) + ": ";
    std::optional<Result> wanted;
    std::string error;
    try {
      wanted = f(arguments);
    } catch (const Error& e) {   // not every sample may be changed in all ways
      error = e.what();
    }
    const bool other_shape = wanted && wanted->shapes != shapes;
    if (other_shape && !shape_by_values) return where + "gives other shapes and is not among those that may";
    const Unchanged all(arguments);
    try {
      const Tensors y = recorded(arguments);
      if (!wanted) return where + "does not throw: " + error;
      if (const std::string d = difference(y, wanted->y); !d.empty()) return where + d;
    } catch (const Error& e) {
      if (wanted && !other_shape) return where + "throws: " + e.what();
    }
    if (const std::string d = all.changed(); !d.empty()) return where + d;
  }
  const auto programs = recorded.programs();
  return programs.size() == 1 && programs[0].calls > 1 ? "" : "it was not replayed";
}

/// The same with the floats as variables, and with all else captured.
std::string compare_live(const Traced& f, const Tensors& x) {
  std::vector<Variable> variables;
  Tensors captured;
  for (const Tensor& t : x)
    if (is_trainable(t.dtype()))
      variables.emplace_back(elsewhere(t, 3));
    else
      captured.push_back(elsewhere(t, 3));
  const auto now = [&] {
    Tensors in;
    std::size_t v = 0, c = 0;
    for (const Tensor& t : x)
      in.push_back(is_trainable(t.dtype()) ? variables[v++].value() : captured[c++]);
    return f(in).y;
  };
  const auto recorded = compile(now, {.name = "sample"});
  for (int call = 0; call < kWays + 2; ++call) {
    const Tensors values = call < 2 ? x : other_floats(x, call - 2);
    std::size_t v = 0;
    for (const Tensor& t : values)
      if (is_trainable(t.dtype())) variables[v++].assign(t);
    Tensors wanted;
    std::string error;
    try {
      wanted = now();
    } catch (const Error& e) {
      error = e.what();
    }
    const std::string where = "with variables, call " + std::to_string(call) + ": ";
    Unchanged all(captured, "captured tensor");
    all.add(variables, "variable");
    try {
      const Tensors y = recorded();
      if (!error.empty()) return where + "does not throw: " + error;
      if (const std::string d = difference(y, wanted); !d.empty()) return where + d;
    } catch (const Error& e) {
      if (error.empty()) return where + "throws: " + e.what();
    }
    if (const std::string d = all.changed(); !d.empty()) return where + d;
  }
  return "";
}

Tensors dense(std::vector<Gradient> g) {
  Tensors all;
  for (Gradient& one : g)
    all.push_back(one.defined() ? std::move(one).dense() : Tensor());
  return all;
}
/// Irregular, so that what comes from another place is another number.
Tensor weights(const Tensor& like) {
  std::vector<double> v(static_cast<std::size_t>(like.size()));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = 1 + 0.25 * static_cast<double>(i * 7 % 11);
  return astype(tensor(v, like.shape()), like.dtype());
}

Traced values_of(std::function<Tensors(const Tensors&)> f) {
  return [f = std::move(f)](const Tensors& x) {
    const Tensors y = f(x);
    return Result{y, specs_of(y)};
  };
}
Traced gradients_of(std::function<Tensors(const Tensors&)> f) {
  return [f = std::move(f)](const Tensors& x) {
    GradientTape tape;
    const Tensors sources = trainable(x);
    for (const Tensor& t : sources)
      tape.watch(t);
    const Tensors all = f(x), y = trainable(all);
    if (y.empty()) return Result{{}, specs_of(all)};
    Tensors dy;
    for (const Tensor& t : y)
      dy.push_back(weights(t));
    return Result{dense(tape.gradient(Targets(y), Sources(sources), {.output_gradients = dy})),
                  specs_of(all)};
  };
}
Traced tangents_of(std::function<Tensors(const Tensors&)> f) {
  return [f = std::move(f)](const Tensors& x) {
    const Tensors primals = trainable(x);
    Tensors dx;
    for (const Tensor& t : primals)
      dx.push_back(weights(t));
    const ForwardAccumulator a(primals, dx);
    const Tensors y = f(x);
    Tensors dy;
    for (const Tensor& t : trainable(y))
      dy.push_back(a.jvp(t).tensor());
    dy.insert(dy.end(), y.begin(), y.end());
    return Result{dy, specs_of(y)};
  };
}

/// Gradients of gradients.
Traced second_gradients_of(std::function<Tensors(const Tensors&)> f) {
  const Traced first = gradients_of(std::move(f));
  return [first](const Tensors& x) {
    GradientTape tape;
    const Tensors sources = trainable(x);
    for (const Tensor& t : sources)
      tape.watch(t);
    const Result r = first(x);
    Tensors g, dg;
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (r.y[i].defined()) g.push_back(r.y[i]), dg.push_back(weights(r.y[i]));
    if (g.empty()) return r;
    return Result{dense(tape.gradient(Targets(g), Sources(sources), {.output_gradients = dg})), r.shapes};
  };
}

/// Checks all samples.
template <class Make> void for_every_sample(bool differentiable, const Make& make) {
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops) {
      if (differentiable && (!has_derivative(*op) || is_left_out(op->name))) continue;
      int number = 0;
      for (const Sample& s : samples_of(*op)) {
        INFO(family.name << ": " << op->name << ", sample " << number++);
        // The last input of reductions over segments; what does not ascend is refused before the op.
        const int ascending = family.name == "segment" ? static_cast<int>(s.inputs.size()) - 1 : -1;
        if (differentiable && trainable(s.inputs).empty()) continue;
        const auto f = [op, &s](const Tensors& x) { return run(*op, x, s.attrs); };
        const Traced call = make(f);
        CHECK(compare(call, s.inputs, shape_is_by_values(op->name), ascending) == "");
        if (number % 2 == 0 && !shape_is_by_values(op->name)) CHECK(compare_live(call, s.inputs) == "");
        const Tensors narrow = in_f32(s.inputs);
        if (number % 2 || specs_of(narrow) == specs_of(s.inputs)) continue;
        try {
          call(narrow);
        } catch (const Error&) {   // the op takes no f32
          continue;
        }
        CHECK(compare(call, narrow, shape_is_by_values(op->name), ascending) == "");
      }
    }
}

}   // namespace

TEST_CASE("ops replay with other inputs", "[recorded][op][replay]") {
  for_every_sample(false, [](const auto& f) { return values_of(f); });
}
TEST_CASE("gradients replay with other inputs", "[recorded][op][replay]") {
  for_every_sample(true, [](const auto& f) { return gradients_of(f); });
}
TEST_CASE("tangents replay with other inputs", "[recorded][op][replay]") {
  for_every_sample(true, [](const auto& f) { return tangents_of(f); });
}

namespace {

/// A function of floats and integers that is no op: which integers the calls get, the first one for the
/// recording. All give results of the same shapes.
struct OfIntegers {
  std::string_view name;
  Tensors floats;
  std::vector<Tensors> integers;
  std::function<Tensors(const Tensors& x, const Tensors& i)> f;
};

Tensor i64(std::initializer_list<std::int64_t> v) { return tensor(v); }
Tensor i32(std::initializer_list<std::int32_t> v) { return tensor(v); }
Tensor bools(std::initializer_list<double> v) { return tensor(v, DType::boolean); }
Tensor some(const Shape& shape, int which = 0) { return samples::uniform(shape, 0.25, 2, which); }
Tensor pairs(std::initializer_list<std::int64_t> v) {
  return reshape(tensor(v), {static_cast<std::int64_t>(v.size()) / 2, 2});
}
Tensor columns(std::initializer_list<std::int64_t> v) {
  return reshape(tensor(v), {static_cast<std::int64_t>(v.size()), 1});
}

std::vector<OfIntegers> functions_of_integers() {
  std::vector<OfIntegers> all;
  const std::vector<Tensors> unsorted = {{i64({0, 0, 1, 2, 2, -1})}, {i64({0, 1, 1, 1, 1, 1})},
                                         {i64({2, 2, 2, 2, 2, 2})},  {i64({-1, -1, -1, -1, -1, -1})},
                                         {i64({3, 2, 1, 0, 3, 2})},  {i64({1, 0, -1, 3, 3, 3})}};
  using Groups = Tensor (*)(const Tensor&, const Tensor&, std::int64_t);
  const std::pair<std::string_view, Groups> groups[] = {
      {"unsorted_segment_sum", unsorted_segment_sum},       {"unsorted_segment_mean", unsorted_segment_mean},
      {"unsorted_segment_sqrt_n", unsorted_segment_sqrt_n}, {"unsorted_segment_prod", unsorted_segment_prod},
      {"unsorted_segment_min", unsorted_segment_min},       {"unsorted_segment_max", unsorted_segment_max}};
  for (const auto& [name, op] : groups)
    for (const Shape& shape : {Shape{6}, Shape{6, 3}, Shape{6, 2, 9}})
      all.push_back({name, {some(shape)}, unsorted, [op = op](const Tensors& x, const Tensors& i) {
                       return Tensors{op(x[0], i[0], 4)};
                     }});

  const std::vector<Tensors> sorted = {{i64({0, 0, 1, 2, 2, 3})}, {i64({0, 1, 2, 3, 3, 3})},
                                       {i64({3, 3, 3, 3, 3, 3})}, {i64({0, 0, 0, 0, 0, 3})},
                                       {i64({1, 1, 2, 2, 3, 3})}, {i64({0, 0, 0, 1, 1, 3})}};
  using Segments = Tensor (*)(const Tensor&, const Tensor&);
  const std::pair<std::string_view, Segments> segments[] = {{"segment_sum", segment_sum},
                                                            {"segment_mean", segment_mean},
                                                            {"segment_prod", segment_prod},
                                                            {"segment_min", segment_min},
                                                            {"segment_max", segment_max}};
  for (const auto& [name, op] : segments)
    for (const Shape& shape : {Shape{6}, Shape{6, 3}})
      all.push_back({name, {some(shape)}, sorted, [op = op](const Tensors& x, const Tensors& i) {
                       return Tensors{op(x[0], i[0])};
                     }});
  using Chosen = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, std::optional<std::int64_t>);
  const std::pair<std::string_view, Chosen> chosen[] = {{"sparse_segment_sum", sparse_segment_sum},
                                                        {"sparse_segment_mean", sparse_segment_mean},
                                                        {"sparse_segment_sqrt_n", sparse_segment_sqrt_n}};
  for (const auto& [name, op] : chosen)
    for (const bool counted : {false, true}) {
      std::vector<Tensors> both;
      for (const Tensors& ids : sorted)
        both.push_back({i64({4, 0, 2, static_cast<std::int64_t>(both.size() % 5), 4, 1}), ids[0]});
      all.push_back({name, {some({5, 3})}, both, [op = op, counted](const Tensors& x, const Tensors& i) {
                       return Tensors{
                           op(x[0], i[0], i[1], counted ? std::optional<std::int64_t>(6) : std::nullopt)};
                     }});
    }

  all.push_back({"dynamic_stitch",
                 {some({2, 3}), some({3, 3}, 1)},
                 {{i64({3, 1}), i64({0, 2, 3})},
                  {i64({0, 1}), i64({2, 3, 3})},
                  {i64({3, 3}), i64({1, 0, 2})},
                  {i64({2, 1}), i64({3, 1, 0})}},
                 [](const Tensors& x, const Tensors& i) { return Tensors{dynamic_stitch(i, x)}; }});
  all.push_back({"dynamic_partition",
                 {some({5, 2})},
                 {{i32({1, 0, 1, 2, 0})}, {i32({0, 0, 1, 1, 2})}, {i32({2, 1, 1, 0, 0})}},
                 [](const Tensors& x, const Tensors& i) { return dynamic_partition(x[0], i[0], 3); }});
  using Scatter = Tensor (*)(const Tensor&, const Tensor&, const Tensor&);
  const std::pair<std::string_view, Scatter> scatters[] = {{"tensor_scatter_update", tensor_scatter_update},
                                                           {"tensor_scatter_add", tensor_scatter_add},
                                                           {"tensor_scatter_sub", tensor_scatter_sub},
                                                           {"tensor_scatter_max", tensor_scatter_max},
                                                           {"tensor_scatter_min", tensor_scatter_min}};
  for (const auto& [name, op] : scatters)
    for (const bool repeated : {false, true}) {
      std::vector<Tensors> at = {{columns({1, 3, 0})},
                                 {columns({2, 2, 2})},
                                 {columns({3, 1, 3})},
                                 {columns({0, 1, 2})},
                                 {columns({4, 4, 0})}};
      if (repeated) std::swap(at[0], at[1]);
      for (const Shape& rows : {Shape{5}, Shape{5, 4}}) {
        Shape updates = rows;
        updates.set(0, 3);
        all.push_back(
            {name, {some(rows), some(updates, 1)}, at, [op = op](const Tensors& x, const Tensors& i) {
               return Tensors{op(x[0], i[0], x[1])};
             }});
      }
      std::vector<Tensors> both = {
          {pairs({0, 1, 2, 2, 1, 0})}, {pairs({0, 1, 0, 1, 2, 2})}, {pairs({2, 2, 2, 2, 2, 2})}};
      if (repeated) std::swap(both[0], both[2]);
      all.push_back({name, {some({3, 3}), some({3}, 1)}, both, [op = op](const Tensors& x, const Tensors& i) {
                       return Tensors{op(x[0], i[0], x[1])};
                     }});
    }
  all.push_back({"scatter_nd",
                 {some({3, 2})},
                 {{columns({1, 3, 0})}, {columns({2, 2, 2})}, {columns({4, 1, 4})}},
                 [](const Tensors& x, const Tensors& i) {
                   return Tensors{scatter_nd(i[0], x[0], {5, 2})};
                 }});
  all.push_back({"scatter_add",
                 {some({3, 2})},
                 {{i64({1, 3, 0})}, {i64({2, 2, 2})}, {i64({4, 1, 4})}},
                 [](const Tensors& x, const Tensors& i) {
                   return Tensors{scatter_add(x[0], i[0], {5, 2})};
                 }});
  all.push_back({"gather",
                 {some({4, 5})},
                 {{i64({1, 3, 0})}, {i64({2, 2, 2})}, {i64({3, 0, 3})}},
                 [](const Tensors& x, const Tensors& i) {
                   return Tensors{gather(x[0], i[0]), gather(x[0], i[0], 1), x[0][i[0]]};
                 }});
  all.push_back({"gather_nd",
                 {some({3, 3})},
                 {{pairs({0, 1, 2, 2})}, {pairs({0, 0, 0, 0})}, {pairs({2, 0, 1, 2})}},
                 [](const Tensors& x, const Tensors& i) { return Tensors{gather_nd(x[0], i[0])}; }});
  all.push_back({"take_along_axis",
                 {some({2, 3})},
                 {{reshape(i64({0, 1, 2, 2, 1, 0}), {2, 3})},
                  {reshape(i64({2, 2, 2, 0, 0, 0}), {2, 3})},
                  {reshape(i64({1, 0, 1, 0, 2, 1}), {2, 3})}},
                 [](const Tensors& x, const Tensors& i) { return Tensors{take_along_axis(x[0], i[0])}; }});
  all.push_back(
      {"reverse_sequence",
       {some({3, 4})},
       {{i64({1, 2, 3})}, {i64({4, 0, 2})}, {i64({3, 3, 3})}},
       [](const Tensors& x, const Tensors& i) { return Tensors{reverse_sequence(x[0], i[0], 1)}; }});
  all.push_back(
      {"sparse_softmax_cross_entropy",
       {some({3, 4})},
       {{i64({1, 2, 3})}, {i64({0, 0, 0})}, {i64({3, 2, 0})}},
       [](const Tensors& x, const Tensors& i) { return Tensors{sparse_softmax_cross_entropy(i[0], x[0])}; }});
  all.push_back(
      {"one_hot",
       {some({3, 4})},
       {{i64({1, 2, 3})}, {i64({0, 0, 0})}, {i64({3, 2, 0})}},
       [](const Tensors& x, const Tensors& i) { return Tensors{x[0] * one_hot(i[0], 4, x[0].dtype())}; }});
  all.push_back(
      {"ctc_loss",
       {some({6, 2, 4})},
       {{reshape(i64({1, 2, 3, 2, 1, 1}), {2, 3}), i64({3, 2}), i64({6, 5})},
        {reshape(i64({3, 2, 1, 1, 1, 2}), {2, 3}), i64({2, 1}), i64({5, 6})},
        {reshape(i64({1, 1, 1, 3, 2, 3}), {2, 3}), i64({1, 3}), i64({3, 6})}},
       [](const Tensors& x, const Tensors& i) { return Tensors{ctc_loss(i[0], x[0], i[1], i[2])}; }});
  all.push_back(
      {"invert_permutation",
       {some({4})},
       {{i64({1, 2, 3, 0})}, {i64({0, 1, 2, 3})}, {i64({3, 2, 1, 0})}},
       [](const Tensors& x, const Tensors& i) { return Tensors{gather(x[0], invert_permutation(i[0]))}; }});
  all.push_back({"boolean_mask",
                 {some({4, 2})},
                 {{bools({1, 0, 1, 0})}, {bools({0, 0, 1, 1})}, {bools({1, 1, 0, 0})}},
                 [](const Tensors& x, const Tensors& i) { return Tensors{boolean_mask(x[0], i[0])}; }});
  all.push_back({"where",
                 {some({4}), some({4}, 1)},
                 {{bools({1, 0, 1, 0})}, {bools({0, 0, 0, 0})}, {bools({1, 1, 1, 1})}},
                 [](const Tensors& x, const Tensors& i) {
                   return Tensors{where(i[0], x[0], x[1]), where(logical_not(i[0]), x[0] * x[1], x[0])};
                 }});
  return all;
}

}   // namespace

TEST_CASE("functions of integers replay with other integers", "[recorded][op][replay]") {
  std::set<std::string> faults;
  for (const OfIntegers& o : functions_of_integers())
    for (const bool narrow : {false, true}) {
      const Tensors floats = narrow ? in_f32(o.floats) : o.floats;
      const std::size_t n = floats.size();
      const auto f = [&](const Tensors& x) {
        const auto middle = x.begin() + static_cast<std::ptrdiff_t>(n);
        return o.f(Tensors(x.begin(), middle), Tensors(middle, x.end()));
      };
      const std::pair<const char*, Traced> forms[] = {{"", values_of(f)},
                                                      {"the gradient of ", gradients_of(f)},
                                                      {"tangents of ", tangents_of(f)},
                                                      {"second gradients of ", second_gradients_of(f)}};
      for (const auto& [form, call] : forms)
        for (std::size_t first = 0; first < o.integers.size(); ++first) {   // what is recorded first
          std::string fault;
          try {
            const auto recorded = compile([&traced = call](const Tensors& x) { return traced(x).y; });
            for (std::size_t i = 0; i < 2 * o.integers.size() && fault.empty(); ++i) {
              Tensors x = other_floats(floats, static_cast<int>(i) % kWays);
              const Tensors& integers = o.integers[(first + i) % o.integers.size()];
              x.insert(x.end(), integers.begin(), integers.end());
              const Tensors wanted = call(x).y;
              const Unchanged all(x);
              fault = difference(recorded(x), wanted) + all.changed();
            }
          } catch (const Error& e) {
            fault = std::string("throws: ") + e.what();
          }
          if (!fault.empty())
            faults.insert(std::string(form) + std::string(o.name) + ": " + fault.substr(0, 60));
        }
    }
  for (const std::string& fault : faults)
    FAIL_CHECK(fault);
}

TEST_CASE("a replay rejects wrong indices without changing anything", "[recorded][replay][errors]") {
  const Variable v(zeros({2}));
  for (const OfIntegers& o : functions_of_integers()) {
    if (o.integers[0][0].dtype() == DType::boolean || o.name == "one_hot") continue;
    const auto f = compile([&](const Tensors& x, const Tensors& i) {
      v += 1;
      const Tensors y = o.f(x, i);
      v += 1;
      return y;
    });
    INFO(o.name);
    v.assign(zeros({2}));
    try {
      f(o.floats, o.integers[0]);
      f(o.floats, o.integers[0]);
    } catch (const TraceError& e) {
      FAIL_CHECK(e.what());
      continue;
    }
    CHECK(v.value().at({1}) == 4);
    Tensors wrong = o.integers[0];
    for (Tensor& t : wrong)
      t = t * 0 + 1000;
    CHECK_THROWS_AS(f(o.floats, wrong), Error);
    CHECK(v.value().at({1}) == 4);
    if (o.name.starts_with("segment") || o.name.starts_with("sparse_segment")) {
      wrong = o.integers[0];
      wrong.back() = strided_slice(wrong.back(), {{{}, {}, -1}});   // descending ids
      CHECK_THROWS_AS(f(o.floats, wrong), Error);
      CHECK(v.value().at({1}) == 4);
    }
    CHECK(test::difference(f(o.floats, o.integers[0]), o.f(o.floats, o.integers[0])) == "");
    CHECK(v.value().at({0}) == 6);
  }
}

TEST_CASE("functions of keys replay with other keys", "[recorded][replay][keys]") {
  using Of = std::function<Tensors(Key, const Tensor&)>;
  const std::pair<const char*, Of> all[] = {
      {"normal", [](Key k, const Tensor& x) { return Tensors{random::normal(x.shape(), k, x.dtype()) * x}; }},
      {"truncated_normal",
       [](Key k, const Tensor& x) { return Tensors{random::truncated_normal(x.shape(), k, x.dtype())}; }},
      {"uniform",
       [](Key k, const Tensor& x) { return Tensors{random::uniform(x.shape(), k, -1, 2, x.dtype())}; }},
      {"permutation", [](Key k, const Tensor& x) { return Tensors{random::permutation(x.size(), k)}; }},
      {"gamma", [](Key k, const Tensor& x) { return Tensors{random::gamma(x.shape(), x, k)}; }},
      {"poisson", [](Key k, const Tensor& x) { return Tensors{random::poisson(x.shape(), x, k)}; }},
      {"binomial",
       [](Key k, const Tensor& x) { return Tensors{random::binomial(x.shape(), x * 0 + 5, x / 3, k)}; }},
      {"parameterized_truncated_normal",
       [](Key k, const Tensor& x) {
         return Tensors{random::parameterized_truncated_normal(x.shape(), x, x, x - 1, x + 2, k)};
       }},
      {"categorical", [](Key k, const Tensor& x) { return Tensors{random::categorical(x, 7, k)}; }},
      {"dropout", [](Key k, const Tensor& x) { return Tensors{dropout(x, 0.5, k)}; }},
      {"permuted rows",
       [](Key k, const Tensor& x) { return Tensors{gather(x, random::permutation(x.shape()[0], k))}; }},
  };
  for (const DType dtype : {DType::f32, DType::f64})
    for (const auto& [name, f] : all) {
      INFO(name << ", " << name_of(dtype));
      const auto gradient = [f = f](Key k, const Tensor& x) {
        GradientTape tape;
        tape.watch(x);
        const Tensors y = f(k, x), some = trainable(y);
        Tensors result = y;
        if (some.empty()) return result;
        const Gradient g = tape.gradient(Targets(some), {x}, {})[0];
        result.push_back(g.defined() ? g.dense() : Tensor());
        return result;
      };
      const auto recorded = compile(gradient);
      for (std::uint64_t call = 0; call < 6; ++call) {
        const Key k = call == 3 ? Key{.seed = 1}.split(4) : Key{.seed = call % 4, .stream = call / 2};
        const Tensor x = astype(some({2, 3}, static_cast<int>(call)), dtype);
        std::string fault;
        try {
          fault = difference(recorded(k, x), gradient(k, x));
        } catch (const Error& e) {
          fault = e.what();
        }
        CHECK(fault == "");
      }
    }
}

// Where their regions begin are attributes of the ops.
TEST_CASE("random pool regions are rejected if their key is an argument", "[recorded][replay][keys]") {
  const Tensor x = ones({1, 9, 10, 1});
  const FractionalPoolOptions options = {.height_ratio = 1.5, .width_ratio = 1.4};
  CHECK_THROWS_AS(compile([&](Key k) { return fractional_max_pool(x, options, k).y; })(Key{.seed = 1}),
                  TraceError);
  CHECK_THROWS_AS(compile([&](Key k) { return fractional_avg_pool(x, options, k).y; })(Key{.seed = 1}),
                  TraceError);
  const auto constant =
      compile([&](const Tensor& t) { return fractional_max_pool(t, options, {.seed = 1}).y; });
  constant(x);
  CHECK(difference({constant(x * 2)}, {fractional_max_pool(x * 2, options, {.seed = 1}).y}) == "");
}

TEST_CASE("zeros have the same signs in replays, as IEEE 754 defines them", "[recorded][replay]") {
  const auto signs = [](const Tensor& x) {
    std::string s;
    for (const double v : x.to_vector())
      s += v != 0 ? 'x' : std::signbit(v) ? '-' : '+';
    return s;
  };
  using Of = std::function<Tensor(const Tensor&)>;
  const std::pair<const char*, Of> functions[] = {
      {"-x", [](const Tensor& x) { return -x; }},
      {"1 - x", [](const Tensor& x) { return 1 - x; }},
      {"x - x", [](const Tensor& x) { return x - x; }},
      {"-(x * x)", [](const Tensor& x) { return -(x * x); }},
      {"x * -1", [](const Tensor& x) { return x * -1.0; }},
      {"x[0] - x", [](const Tensor& x) { return slice(x, {0}, {1}) - x; }},
      {"abs(sign(x))", [](const Tensor& x) { return abs(sign(x)); }},
      {"1 - sign(x)", [](const Tensor& x) { return 1 - sign(x); }},
      {"x / sign(x)", [](const Tensor& x) { return x / sign(x); }},
      {"exp(-x) - tanh(x)", [](const Tensor& x) { return exp(-x) - tanh(x); }},
      {"maximum(-x, 0)", [](const Tensor& x) { return maximum(-x, 0.0); }},
      {"where", [](const Tensor& x) { return where(x > 0, -x, x - 2); }},
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const std::int64_t n : {1, 2, 7, 8, 16, 17, 33, 100}) {
      const Tensor positive = zeros({n}, dtype), negative = positive * -1.0;
      REQUIRE(signs(negative) == std::string(static_cast<std::size_t>(n), '-'));
      INFO(name_of(dtype) << " " << n);
      CHECK(signs(-positive) == signs(negative));   // without a compiled function, too
      CHECK(signs(-negative) == signs(positive));
      for (const auto& [name, f] : functions)
        for (const Tensor& weight : {positive, negative, negative + 1, negative - 1}) {
          const auto both = [&, f = f](const Tensor& x) {
            GradientTape tape;
            tape.watch(x);
            const Tensor y = f(x);
            Tensors all = dense(tape.gradient(Targets(y), {x}, {.output_gradients = {weight}}));
            all.push_back(y);
            return all;
          };
          const auto recorded = compile(both);
          INFO(name << " weighted by " << signs(weight));
          for (const Tensor& x : {positive, negative, positive + 1, negative - 1, negative, positive})
            CHECK(difference(recorded(x), both(x)) == "");
        }
    }
}
