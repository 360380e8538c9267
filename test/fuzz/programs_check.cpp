// The checks of a random program.
#include "programs_check.h"

#include <array>
#include <cmath>
#include <iostream>

#include "compile/unchanged.h"
#include "programs_replay.h"
#include "tapedeck/compile.h"
#include "tensors_of.h"

namespace tapedeck::fuzz {
namespace {

using Numbers = std::vector<double>;

void append(Numbers& to, const Tensor& x) {
  if (is_complex(x.dtype())) {
    const Numbers re = real(x).to_vector<double>(), im = imag(x).to_vector<double>();
    for (std::size_t i = 0; i < re.size(); ++i)
      to.push_back(re[i]), to.push_back(im[i]);
  } else {
    const Numbers v = x.to_vector<double>();
    to.insert(to.end(), v.begin(), v.end());
  }
}
Numbers numbers(const std::vector<Tensor>& list) {
  Numbers all;
  for (const Tensor& x : list)
    append(all, x);
  return all;
}
double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}
double dot_of_sizes(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::abs(a[i] * b[i]);
  return sum;
}
double largest(const Numbers& a) {
  double most = 0;
  for (const double v : a)
    most = std::max(most, std::isnan(v) ? INFINITY : std::abs(v));
  return most;
}
double distance(const Numbers& a, const Numbers& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::isnan(a[i] - b[i]) ? INFINITY : std::abs(a[i] - b[i]));
  return most;
}
// A part of v: from element `first` on.
std::string shown(const Numbers& v, std::size_t first = 0) {
  std::ostringstream out;
  out.precision(10);
  const std::size_t end = std::min(v.size(), first + 24);
  if (first > 0) out << "… ";
  for (std::size_t i = first; i < end; ++i)
    out << (i > first ? " " : "") << v[i];
  if (end < v.size()) out << " …";
  return out.str();
}
// Both from the first on in which they differ by half of the most, or are NaN.
std::string shown_beside(const Numbers& a, const Numbers& b) {
  const double most = distance(a, b);
  std::size_t i = 0;
  while (a.size() == b.size() && i < a.size() && std::abs(a[i] - b[i]) < most / 2)
    ++i;
  const std::size_t first = a.size() > 24 ? i : 0;
  return shown(a, first) + "\n  " + shown(b, first);
}

struct Failed {
  Failure failure;
};
std::set<std::string, std::less<>> recorded_ops;
void note_recorded(const GradientTape& tape) {
  for (const RecordedOp& op : tape.recorded())
    recorded_ops.emplace(op.name);
}

/// One program under all checks.
class Checker {
 public:
  explicit Checker(const Program& p) : p_(p) {}

  Verdict check() {
    if (p_.large) {
      threads();
      return verdict_;
    }
    Run reference(p_, Precision::wide);
    reference.cuts = &cuts_;
    wide_ = gradient(reference);
    cuts_.replayed = true;
    noise_ = measured_noise([&](Run& run) { return gradient(run); }, wide_);
    Run run(p_, p_.precision);
    gradient_ = p_.precision == Precision::wide ? wide_ : gradient(run);
    if (!std::isfinite(largest(gradient_))) {   // f32 has a smaller range
      verdict_.singular = true;
      return verdict_;
    }
    if (p_.precision != Precision::wide) compare("f32 and f64", gradient_, wide_);
    first_order();
    forward();
    jacobians();
    if (!p_.differentiable) return verdict_;   // nor is its second derivative symmetric
    differences();
    second_order();
    return verdict_;
  }

 private:
  [[noreturn]] static void fail(const std::string& check, const std::string& what) {
    throw Failed{{check, what}};
  }

  // What belongs to the sources of a run, in its precision.
  static std::vector<Tensor> like(const std::vector<Tensor>& values, const std::vector<Tensor>& of) {
    std::vector<Tensor> list;
    for (std::size_t i = 0; i < values.size(); ++i)
      list.push_back(astype(values[i], of[i].dtype()));
    return list;
  }
  static std::vector<Tensor> values(const Run& run) {
    std::vector<Tensor> x = run.inputs;
    for (const Variable& v : run.variables)
      x.push_back(v.value());
    return x;
  }
  std::vector<Tensor> directions(const Run& run) const { return like(p_.directions, values(run)); }
  OutputGradients cotangents(const std::vector<Tensor>& y) const { return like(p_.cotangents, y); }
  static std::vector<Tensor> dense(const std::vector<Gradient>& g, const Run& run) {
    const std::vector<Tensor> x = values(run);
    std::vector<Tensor> list;
    for (std::size_t i = 0; i < g.size(); ++i)
      list.push_back(g[i].defined() ? g[i].dense() : zeros_like(x[i]));
    return list;
  }
  static void watch(GradientTape& tape, const Run& run) {
    for (const Tensor& x : run.inputs)
      tape.watch(x);
  }

  std::vector<Tensor> gradients(Run& run) const {
    GradientTape tape;
    watch(tape, run);
    const std::vector<Tensor> y = run.run();
    return dense(tape.gradient(Targets(y), run.sources(), {.output_gradients = cotangents(y)}), run);
  }
  Numbers gradient(Run& run) const {
    run.begin();
    return numbers(gradients(run));
  }

  // How much a result in f64 changes if the results of all steps are rounded as in f32.
  double measured_noise(const std::function<Numbers(Run&)>& of, const Numbers& exact) {
    double noise = 0;
    for (const std::uint64_t way : {1, 2}) {
      Run run(p_, Precision::wide);
      run.shaken = way;
      try {
        noise = std::max(noise, distance(of(run), exact));
      } catch (const Error&) {   // a condition does not hold any more
        noise = INFINITY;
      }
    }
    return noise;
  }
  double tolerance(double scale, double noise) const {
    const double usual = p_.precision == Precision::wide ? 1e-11 * (scale + 1) + 1e-5 * noise
                                                         : 3e-4 * (scale + 1) + 100 * noise;
    return noise > 0.1 * scale ? std::max(usual, noise) : usual;   // all noise, as of a deviation that is 0
  }
  void compare(const std::string& check, const Numbers& a, const Numbers& b, double noise) const {
    if (!(distance(a, b) <= tolerance(std::max(largest(a), largest(b)), noise)))
      fail(check, shown_beside(a, b) + "\n  noise " + shown({noise}));
  }
  void compare(const std::string& check, const Numbers& a, const Numbers& b) const {
    compare(check, a, b, noise_);
  }
  // Numbers that are equal, or both NaN, do not count for the scale.
  void compare_finite(const std::string& check, Numbers a, Numbers b) const {
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) a[i] = b[i] = 0;
    compare(check, a, b);
  }
  void compare_bits(const std::string& check, const Numbers& a, const Numbers& b) const {
    if (distance(a, b) != 0) fail(check, shown_beside(a, b));
  }

  void first_order() {
    Run run(p_, p_.precision);
    compare_bits("the same again", gradient(run), gradient_);
    persistent(run);
    stopped(run);
    recording(run);
    functions(run);
    recorded();
  }

  // Replays have the bits of the function, and leave what they read, with other inputs, variables, integers,
  // bools and keys than those of the recording.
  void recorded() const {
    Run live(p_, p_.precision), eager(p_, p_.precision);
    live.begin(), eager.begin();
    const bool read_before = !p_.read_before.empty();   // such a value is a constant
    const Slots slots = live.slots;
    Replay replay(live, p_.steps, p_.inputs);
    const auto run_one = [&](Run& run, const std::vector<Tensor>& x, const Others& others) {
      run.inputs = x;
      run.slots = slots;
      std::copy(x.begin(), x.end(), run.slots.begin());
      run.others = &others;
      return gradients(run);
    };
    const auto f = compile(
        [&](const std::vector<Tensor>& x, const std::vector<Tensor>& y,
            const std::vector<random::Key>& keys) { return run_one(live, x, replay.others_of(y, keys)); });
    test::Unchanged captured(slots, "slot read before");
    captured.add(replay.captured(), "captured tensor");
    for (int call = 0; call < 6; ++call) {
      const std::string check = "recorded, call " + std::to_string(call);
      for (std::size_t i = 0; i < live.variables.size(); ++i) {
        const Tensor v = replay.other(p_.variables[i], read_before ? 0 : call);
        live.variables[i].assign(astype(v, live.variables[i].dtype()));
        eager.variables[i].assign(astype(v, live.variables[i].dtype()));
      }
      std::vector<Tensor> x;
      for (std::size_t i = 0; i < p_.inputs.size(); ++i)
        x.push_back(identity(astype(replay.other(p_.inputs[i], call), live.inputs[i].dtype())));
      const auto [integers, keys] = replay.draw(call);
      std::vector<Tensor> wanted;
      std::string error;
      try {
        wanted = run_one(eager, x, replay.others_of(integers, keys));
      } catch (const Error& e) {
        error = e.what();
      }
      test::Unchanged arguments(x);
      arguments.add(integers, "integers");
      try {
        const std::vector<Tensor> y = f(x, integers, keys);
        if (!error.empty()) continue;    // an op that nobody reads need not throw
        if (replay.has_control_flow())   // its gradients are sums in another order
          compare_finite(check, numbers(y), numbers(wanted));
        else if (const std::string d = test::difference(y, wanted); !d.empty())
          fail(check, d);
        for (std::size_t i = 0; i < live.variables.size(); ++i)
          if (const std::string d = test::difference(live.variables[i].value(), eager.variables[i].value());
              !d.empty())
            fail(check, "variable " + std::to_string(i) + " " + d);
      } catch (const Error& e) {
        const bool is_trace_error = dynamic_cast<const TraceError*>(&e);
        // Eager runs one branch only, whose outputs may have another shape.
        const bool differ = std::string_view(e.what()).find(" in one branch and ") != std::string_view::npos;
        if (replay.has_control_flow() && (is_trace_error || differ)) return;
        // A derivative that reads numbers has no further derivatives, which a tape or accumulator might want.
        if (std::string_view(e.what()).find("for a further derivative") != std::string_view::npos) return;
        // Of an op whose shapes have changed, or, if nobody reads that, of its gradient.
        const bool other_shapes = call > 0 && replay.shapes_may_change();
        if (!other_shapes && (error.empty() || is_trace_error)) fail(check, e.what());
      }
      if (const std::string d = arguments.changed() + captured.changed(); !d.empty()) fail(check, d);
    }
  }

  // Large tensors are shared out among threads.
  void threads() const {
    Run run(p_, p_.precision);
    const auto all = [&] { return std::array{gradient(run), tangents(run), forward_over_reverse(run)}; };
    const auto one = all();
    set_num_threads(4);
    const auto four = all();
    set_num_threads(1);
    constexpr std::string_view names[] = {"the gradient", "tangents", "second derivatives"};
    for (std::size_t i = 0; i < 3; ++i)
      compare_bits(std::string(names[i]) + " on 4 threads", four[i], one[i]);
  }

  void persistent(Run& run) const {
    run.begin();
    GradientTape tape({.persistent = true});
    watch(tape, run);
    const std::vector<Tensor> y = run.run();
    const auto result = [&](const GradientOptions& options) {
      return numbers(dense(tape.gradient(Targets(y), run.sources(), options), run));
    };
    GradientOptions o{.output_gradients = cotangents(y)};
    compare("a persistent tape that records", result(o), gradient_);
    tape.stop();
    compare_bits("a persistent tape", result(o), gradient_);
    for (const Aggregation a : {Aggregation::add_n, Aggregation::tree, Aggregation::accumulate_n})
      for (const std::int64_t bytes : {0, 100}) {
        o.aggregation = a, o.min_aggregate_bytes = bytes, o.min_aggregate_count = bytes ? 3 : 2;
        compare("aggregation " + std::to_string(static_cast<int>(a)), result(o), gradient_);
      }
    for (Gradient& dy : o.output_gradients) {   // all rows, from the last to the first
      const Tensor& t = dy.tensor();
      if (t.ndim() == 0) continue;
      const Tensor from_end = (t.shape()[0] - 1) - arange(t.shape()[0]);
      dy = IndexedSlices{gather(t, from_end), from_end, t.shape()};
    }
    compare("cotangents that are slices", result(o), gradient_);
  }
  // A tensor in stop_gradients, against stop_gradient of it.
  void stopped(Run& run) const {
    run.begin();
    GradientTape tape;
    watch(tape, run);
    const std::vector<Tensor> y = run.run();
    const Tensor& at = run.slots[static_cast<std::size_t>(p_.stop)];
    if (std::count_if(run.slots.begin(), run.slots.end(),
                      [&](const Tensor& t) { return t.id() == at.id(); }) > 1)
      return;
    const Numbers g = numbers(dense(
        tape.gradient(Targets(y), run.sources(), {.output_gradients = cotangents(y), .stop_gradients = at}),
        run));
    Run other(p_, p_.precision);
    other.stop = p_.stop;
    compare("stop_gradients", g, gradient(other));
  }
  void recording(Run& run) const {
    run.begin();
    const Recording tape;
    const std::vector<Tensor> y = run.run();
    compare("Recording",
            numbers(dense(tapedeck::gradients(Targets(y), run.sources(), {.output_gradients = cotangents(y)}),
                          run)),
            gradient_);
    note_recorded(tape);
  }
  void functions(Run& run) const {
    run.begin();
    const auto f = [&] { return run.run(); };
    const auto [y, pullback] = vjp(f, run.sources());
    compare("vjp", numbers(dense(pullback(cotangents(y)), run)), gradient_);
    if (p_.assigns) return;
    run.begin();
    GradientTape tape;
    watch(tape, run);
    const std::vector<Tensor> z = recompute_grad([&](const Tensor&) {
      run.slots.resize(p_.inputs.size() + p_.read_before.size());
      return run.run();
    })(tensor(1.0));
    compare(
        "recompute_grad",
        numbers(dense(tape.gradient(Targets(z), run.sources(), {.output_gradients = cotangents(z)}), run)),
        gradient_);
  }

  Numbers tangents(Run& run) const {
    run.begin();
    const std::vector<Tensor> v = directions(run);
    const ForwardAccumulator along(Sources(run.sources()), std::span<const Tensor>(v));
    return numbers(test::tensors_of(along.jvp(Sources(run.run()), UnconnectedGradients::zero)));
  }
  void forward() {
    Run run(p_, p_.precision);
    run.begin();
    const std::vector<Tensor> v = directions(run);
    const ForwardAccumulator along(Sources(run.sources()), std::span<const Tensor>(v));
    const std::vector<Tensor> y = run.run();
    const Numbers a = numbers(test::tensors_of(along.jvp(Sources(y), UnconnectedGradients::zero))),
                  c = numbers(like(p_.cotangents, y)), u = numbers(v);
    const double terms = dot_of_sizes(a, c) + dot_of_sizes(gradient_, u);
    const double noise = noise_ * largest(u) * static_cast<double>(u.size());
    if (!(std::abs(dot(a, c) - dot(gradient_, u)) <= tolerance(terms, noise)))
      fail("forward and reverse", shown({dot(a, c), dot(gradient_, u)}) + "\n  gradient " + shown(gradient_) +
                                      "\n  tangents " + shown(a) + "\n  noise " + shown({noise_}) +
                                      "\n  first infinite tangent: " + first_infinite(run, along));
    stacked(run, v, a, noise);
  }
  void stacked(Run& run, const std::vector<Tensor>& v, const Numbers& tangents, double noise) const {
    std::vector<Tensor> both;
    for (const Tensor& t : v)
      both.push_back(stack({t, -0.5 * t}));
    run.begin();
    const ForwardAccumulator along(Sources(run.sources()), std::span<const Tensor>(both), {.stacked = true});
    const std::vector<Tensor> y = run.run();
    std::vector<Tensor> first, second;
    for (const Tensor& t : test::tensors_of(along.jvp(Sources(y), UnconnectedGradients::zero))) {
      const std::vector<Tensor> parts = unstack(t, 0);
      first.push_back(parts.at(0)), second.push_back(-2.0 * parts.at(1));
    }
    compare("stacked tangents", numbers(first), tangents, noise);
    compare("stacked tangents", numbers(second), tangents, noise);
  }
  static std::string first_infinite(const Run& run, const ForwardAccumulator& along) {
    for (std::size_t i = 0; i < run.slots.size(); ++i) {
      const Tensor dx = along.jvp(run.slots[i]).tensor();
      if (dx.defined() && !(largest(numbers({dx})) < 1e300))
        return "v" + std::to_string(i) + ": " + text_of(dx);
    }
    return "none";
  }

  static bool is_small_and_real(const std::vector<Tensor>& list, std::int64_t most) {
    std::int64_t n = 0;
    for (const Tensor& x : list) {
      if (is_complex(x.dtype())) return false;
      n += x.size();
    }
    return n <= most;
  }
  void jacobians() const {
    Run run(p_, p_.precision);
    run.begin();
    GradientTape tape({.persistent = true});
    watch(tape, run);
    const std::vector<Tensor> y = run.run(), x = values(run), dy = like(p_.cotangents, y);
    if (!is_small_and_real(x, 40) || !is_small_and_real(y, 40)) return;
    tape.stop();
    std::vector<Tensor> sum;
    for (const Tensor& t : x)
      sum.push_back(zeros_like(t));
    for (std::size_t k = 0; k < y.size(); ++k) {
      const auto at = [&](const JacobianOptions& o) {
        return test::tensors_of(tape.jacobian(y[k], Sources(run.sources()), o));
      };
      JacobianOptions o{.unconnected = UnconnectedGradients::zero};
      const std::vector<Tensor> rows = at(o);
      o.vectorize = false;
      const double noise = 100 * noise_;
      compare("looped Jacobian", numbers(at(o)), numbers(rows), noise);
      o.vectorize = true, o.max_bytes = 64;
      compare("Jacobian in parts", numbers(at(o)), numbers(rows), noise);
      for (std::size_t i = 0; i < x.size(); ++i)
        sum[i] =
            sum[i] + astype(reshape(matmul(reshape(astype(dy[k], DType::f64), {1, -1}),
                                           reshape(astype(rows[i], DType::f64), {y[k].size(), x[i].size()})),
                                    x[i].shape()),
                            x[i].dtype());
    }
    compare("Jacobian", numbers(sum), gradient_);
    if (run.variables.empty()) jacobians_of_functions(numbers(sum));
  }
  // Of the dot product of the targets and their cotangents, as a function of the inputs.
  Tensor loss_of(Run& run, std::span<const Tensor> x) const {
    run.begin();
    run.inputs.assign(x.begin(), x.end());
    std::copy(x.begin(), x.end(), run.slots.begin());
    return loss(run);
  }
  Tensor loss(Run& run) const {
    const std::vector<Tensor> y = run.run(), dy = like(p_.cotangents, y);
    Tensor all = zeros({}, DType::f64);
    for (std::size_t i = 0; i < y.size(); ++i)
      all = all + astype(sum(real(y[i] * conj(dy[i]))), DType::f64);
    return all;
  }
  void jacobians_of_functions(const Numbers& expected) const {
    Run run(p_, p_.precision);
    run.begin();
    const std::vector<Tensor> x = run.inputs;
    for (const JacobianMode mode : {JacobianMode::reverse, JacobianMode::forward})
      compare(
          "Jacobian of a function",
          numbers(jacobian([&](std::span<const Tensor> in) { return loss_of(run, in); }, x, {.mode = mode})),
          expected);
  }

  // The value and the gradient at a distance along the directions, of the program whose parts that have no
  // derivative stay.
  template <class F> auto moved(double by, const F& of) {
    Run run(p_, Precision::wide);
    run.cuts = &cuts_;
    run.moved = by;
    return of(run);
  }
  void differences() {
    const Numbers u = numbers(p_.directions);
    const auto loss = [&](Run& run) {
      run.begin();
      return dot(numbers(run.run()), numbers(p_.cotangents));
    };
    confirm(
        "differences", [&](double h) { return moved(h, loss); }, dot(wide_, u), dot_of_sizes(wide_, u));
  }
  // Compares a derivative with differences where these converge, from both sides.
  void confirm(const std::string& check, const std::function<double(double)>& f, double slope, double terms) {
    constexpr double steps[] = {1e-3, 1e-4, 1e-5, 1e-6};
    double middle = 0, central[4], kink[4];
    try {
      middle = f(0);
      for (int i = 0; i < 4; ++i) {
        const double right = f(steps[i]), left = f(-steps[i]);
        central[i] = (right - left) / (2 * steps[i]);
        kink[i] = std::abs(right - 2 * middle + left) / steps[i];
      }
    } catch (const Error&) {   // beyond the end of a domain
      verdict_.rough = true;
      return;
    }
    const double error = (std::abs(middle) + 1) * 1e-14;
    for (int i = 0; i < 4; ++i)
      if (std::abs(central[i] - slope) <= 1e-5 * (terms + std::abs(central[i])) + 10 * error / steps[i])
        return;
    for (int i = 0; i + 1 < 4; ++i) {
      const double scale = std::max(terms, std::abs(central[i]));
      const double limit = 1e-5 * scale + error / steps[i + 1];
      if (std::abs(central[i] - central[i + 1]) <= limit &&
          kink[i + 1] <= 1e-3 * scale + error / steps[i + 1] &&
          std::abs(central[i + 1] - slope) > 100 * limit)
        fail(check, "slope " + shown({slope}) + ", differences " +
                        shown({central[0], central[1], central[2], central[3]}) + ", changes of slope " +
                        shown({kink[0], kink[1], kink[2], kink[3]}));
    }
    verdict_.rough = true;
  }

  // The product of the Hessian with the directions: the gradient of gradients.
  Numbers reverse_over_reverse(Run& run) const {
    run.begin();
    GradientTape outer;
    watch(outer, run);
    const std::vector<Tensor> g = gradients(run);
    return numbers(dense(
        outer.gradient(Targets(g), run.sources(), {.output_gradients = OutputGradients(directions(run))}),
        run));
  }
  Numbers forward_over_reverse(Run& run) const {
    run.begin();
    const std::vector<Tensor> v = directions(run);
    const ForwardAccumulator along(Sources(run.sources()), std::span<const Tensor>(v));
    return numbers(test::tensors_of(along.jvp(Sources(gradients(run)), UnconnectedGradients::zero)));
  }
  Numbers reverse_over_forward(Run& run) const {
    run.begin();
    GradientTape tape;
    watch(tape, run);
    std::vector<Tensor> dy;
    {
      const std::vector<Tensor> v = directions(run);
      const ForwardAccumulator along(Sources(run.sources()), std::span<const Tensor>(v));
      const std::vector<Tensor> y = run.run();
      dy = test::tensors_of(along.jvp(Sources(y), UnconnectedGradients::zero));
    }
    return numbers(
        dense(tape.gradient(Targets(dy), run.sources(), {.output_gradients = cotangents(dy)}), run));
  }
  Numbers forward_over_forward(Run& run) const {
    run.begin();
    const std::vector<Tensor> v = directions(run);
    const ForwardAccumulator outer(Sources(run.sources()), std::span<const Tensor>(v)),
        inner(Sources(run.sources()), std::span<const Tensor>(v));
    const std::vector<Tensor> y = run.run();
    const std::vector<Tensor> dy = test::tensors_of(inner.jvp(Sources(y), UnconnectedGradients::zero));
    const std::vector<Tensor> ddy = test::tensors_of(outer.jvp(Sources(dy), UnconnectedGradients::zero));
    return {dot(numbers(ddy), numbers(like(p_.cotangents, y)))};
  }

  void products(Run& run, const Numbers& h, double noise) const {
    run.begin();
    {
      const Recording tape;
      const Tensor y = loss(run);
      const std::vector<Gradient> g = hessian_vector_product(Targets(y), run.sources(), directions(run));
      compare("hessian_vector_product of a Recording", numbers(dense(g, run)), h, noise);
      note_recorded(tape);
    }
    if (!run.variables.empty()) return;
    const std::vector<Tensor> x = run.inputs, v = directions(run);
    for (const JacobianMode mode : {JacobianMode::reverse, JacobianMode::forward})
      compare("hessian_vector_product of a function",
              numbers(hessian_vector_product([&](std::span<const Tensor> in) { return loss_of(run, in); }, x,
                                             v, mode)),
              h, noise);
  }

  void second_order() {
    Run reference(p_, Precision::wide);
    reference.cuts = &cuts_;
    const Numbers wide = reverse_over_reverse(reference);
    if (!(largest(wide) < 1e9)) {
      verdict_.singular = true;
      return;
    }
    const double noise = measured_noise([&](Run& run) { return reverse_over_reverse(run); }, wide);
    Run run(p_, p_.precision);
    const Numbers h = p_.precision == Precision::wide ? wide : reverse_over_reverse(run),
                  u = numbers(p_.directions);
    // In f32 a step's own rounding may be large beside a second derivative, where a function is nearly flat.
    compare("second order in f32 and f64", h, wide, noise + 1e-4 * (1 + largest(wide)));
    compare("forward over reverse", forward_over_reverse(run), h, noise);
    compare("reverse over forward", reverse_over_forward(run), h, noise);
    compare("forward over forward", forward_over_forward(run), {dot(h, u)},
            noise * largest(u) * static_cast<double>(u.size()));
    products(run, h, noise);
    const auto slope = [&](Run& r) { return dot(gradient(r), u); };
    confirm(
        "differences of gradients", [&](double by) { return moved(by, slope); }, dot(wide, u),
        dot_of_sizes(wide, u));
  }

  const Program& p_;
  Cuts cuts_;
  Numbers wide_, gradient_;
  double noise_ = 0;
  Verdict verdict_;
};

}   // namespace

Verdict check_program(const Program& p) {
  try {
    return Checker(p).check();
  } catch (const Failed& f) {
    set_num_threads(1);
    return {.failure = f.failure};
  } catch (const std::exception& e) {
    return {.failure = Failure{"an exception", e.what()}};
  }
}

const std::set<std::string, std::less<>>& ops_recorded() { return recorded_ops; }

}   // namespace tapedeck::fuzz
