// Creates random programs step by step; each step is tried before it is accepted.
#include <cmath>
#include <set>

#include "programs.h"

namespace tapedeck::fuzz {
namespace {

constexpr std::int64_t kMostElements = 400, kLargest = 60000;
constexpr int kMostAxes = 6;   // stacked cotangents and tangents of both orders have two more
constexpr double kMost = 300, kMostSlope = 1e4;

/// Functions that programs do not call, and why.
constexpr std::string_view kLeftOut[] = {
    "prevent_gradient",       // its gradient is an error
    "print", "assert_that",   // they return their argument
    "igamma_grad_a",          // its derivatives end at the eighth
};
/// Functions whose rule is not their derivative: differences cannot confirm it.
constexpr std::string_view kOtherRules[] = {
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_per_channel",
    "quantize_and_dequantize",
    "gamma",   // the derivative of the distribution
    "gamma_grad",
    "parameterized_truncated_normal",
    "betainc",   // no gradients with respect to some arguments
    "polygamma",
    "zeta",
    "projective_transform",
};
/// Functions through which no derivative goes.
constexpr std::string_view kCuts[] = {"stop_gradient", "lu", "unique", "hsv_to_rgb"};
/// Functions that give other numbers in f32 than in f64: drawn ones, or the same in another order.
constexpr std::string_view kOfPrecision[] = {"normal",
                                             "truncated_normal",
                                             "uniform",
                                             "gamma",
                                             "gamma_grad",
                                             "poisson",
                                             "binomial",
                                             "categorical",
                                             "eig",
                                             "eigvals",
                                             "parameterized_truncated_normal"};
/// Functions whose results are arbitrary for some arguments, such as vectors that belong to equal values, or
/// inaccurate in f32, or whose slope is unbounded, as that of a root of a nearly singular matrix, or that are
/// not defined nearby, as powers of negative numbers beside those by integers.
constexpr std::string_view kIndefinite[] = {"svd", "eig",   "eigh", "qr", "lstsq", "matrix_square_root",
                                            "pow", "unique"};

template <std::size_t n> bool is_among(const std::string_view (&list)[n], std::string_view name) {
  return std::find(list, list + n, name) != list + n;
}

const std::vector<std::unique_ptr<Function>>& functions() {
  static const std::vector<std::unique_ptr<Function>> list = [] {
    auto all = all_functions();
    std::erase_if(all, [](const auto& f) { return is_among(kLeftOut, f->name()); });
    return all;
  }();
  return list;
}

std::map<std::string_view, Uses> uses;

bool is_tame(const Tensor& x, double most) { return x.size() == 0 || max(abs(x)).item() <= most; }

// What steps of a body may do.
struct Scope {
  int first = 0;       // the slots they may use begin here
  bool reads = true;   // variables
  bool cuts = true;    // derivatives
  int depth = 0;
};

class Drawer {
 public:
  Drawer(std::uint64_t seed, std::uint64_t number, std::string function)
      : d_(seed, number), function_(std::move(function)), run_(p_, Precision::wide) {
    d_.tame = true;
  }

  Program draw() {
    p_.precision = d_.chance(60) ? Precision::wide : d_.chance(50) ? Precision::narrow : Precision::mixed;
    p_.assigns = d_.chance(40);
    p_.large = d_.in(1, 200) == 1;
    draw_sources();
    run_.begin();
    Slots slots = run_.slots;
    sources_ = static_cast<int>(slots.size());
    draw_steps(p_.steps, slots, {}, d_.in(5, 30));
    draw_targets(slots);
    draw_stop();
    return std::move(p_);
  }

 private:
  Tensor source(DType type) {
    if (p_.large) return d_.tensor({260, 150}, type);
    Shape s = d_.extents(0, 2);
    for (int i = 0; i < s.ndim(); ++i)
      if (s[i] == 0) s.set(i, 1);
    return d_.tensor(s, type);
  }
  void draw_sources() {
    for (int i = d_.in(1, 3); i-- > 0;) {
      p_.inputs.push_back(source(d_.chance(20) ? DType::c128 : DType::f64));
      p_.narrow_input.push_back(d_.chance(50));
    }
    for (int i = d_.in(0, 2); i-- > 0;) {
      p_.variables.push_back(source(d_.chance(10) ? DType::c128 : DType::f64));
      p_.narrow_variable.push_back(d_.chance(50));
      if (d_.chance(30)) p_.read_before.push_back(static_cast<int>(p_.variables.size()) - 1);
    }
    for (const auto* list : {&p_.inputs, &p_.variables})
      for (const Tensor& x : *list)
        p_.directions.push_back(d_.tensor(x.shape(), x.dtype()) + 0.01);
  }

  void draw_steps(std::vector<Step>& steps, Slots& slots, const Scope& scope, int count) {
    for (int tries = 0; count > 0 && tries < 400; ++tries) {
      Step s = draw_step(slots, scope);
      if (s.wide_function) ++uses[s.wide_function->name()].drawn;
      if (!is_good(s, slots)) continue;
      if (s.wide_function) ++uses[s.wide_function->name()].used;
      steps.push_back(std::move(s));
      --count;
    }
  }

  int slot(const Slots& slots, const Scope& scope) {
    const int n = static_cast<int>(slots.size());
    return d_.chance(60) ? d_.in(std::max(scope.first, n - 4), n - 1) : d_.in(scope.first, n - 1);
  }

  // A slot with elements: the inputs have some.
  int filled(const Slots& slots, const Scope& scope) {
    for (;;)
      if (const int i = slot(slots, scope); slots[static_cast<std::size_t>(i)].size()) return i;
  }

  Step draw_step(const Slots& slots, const Scope& scope) {
    Step s;
    s.narrow = d_.chance(50);
    const int what = d_.in(1, 100);
    if (what <= 80) {
      draw_call(s, slots, scope);
    } else if (what <= 87 && scope.reads && !p_.variables.empty()) {
      s.kind = Step::read;
      s.variable = d_.in(0, static_cast<int>(p_.variables.size()) - 1);
      if (p_.assigns && scope.depth == 0 && d_.chance(50))
        s.kind = Step::assign, s.slots = {filled(slots, scope)};
    } else if (what <= 90) {
      draw_rows(s, slots, scope);
    } else if (scope.depth < 2) {
      draw_body(s, slots, scope);
    } else {
      draw_call(s, slots, scope);
    }
    if (scope.cuts && s.kind != Step::assign) s.stopped = d_.chance(4);
    if (!scope.cuts && is_cut(s)) s = Step();
    return s;
  }

  void draw_rows(Step& s, const Slots& slots, const Scope& scope) {
    const int i = slot(slots, scope);
    const Shape& of = slots[static_cast<std::size_t>(i)].shape();
    if (of.ndim() == 0 || of[0] == 0) return draw_call(s, slots, scope);
    s.kind = Step::rows;
    s.slots = {i};
    s.indices = d_.indices({d_.in(1, 4)}, of[0]);
  }

  void draw_body(Step& s, const Slots& slots, const Scope& scope) {
    static constexpr Step::Kind kinds[] = {Step::branch,    Step::loop,     Step::scan,
                                           Step::recompute, Step::custom,   Step::operation,
                                           Step::through,   Step::gradient, Step::tangent};
    s.kind = kinds[d_.in(0, 8)];
    if (p_.large && s.kind == Step::scan && scope.depth > 0) s.kind = Step::loop;   // takes too long
    s.count = d_.in(0, 39);
    s.slots = {slot(slots, scope)};
    if (s.kind == Step::scan || (s.kind != Step::loop && s.kind != Step::through && d_.chance(40)))
      s.slots.push_back(slot(slots, scope));
    if (s.slots.size() > 1 && s.slots[0] == s.slots[1] && s.kind != Step::scan) s.slots.pop_back();
    if (s.kind == Step::mapped && s.slots.size() == 1) s.slots.push_back(s.slots[0]);
    if (!has_body(s)) return;
    Scope inner = scope;
    ++inner.depth;
    const bool again =
        s.kind == Step::recompute || (s.count / 10 % 2 && (s.kind == Step::loop || s.kind == Step::scan));
    const bool alone = s.kind == Step::custom || s.kind == Step::operation;
    if (again || alone) inner.cuts = false;
    // The body runs again when its gradient is computed.
    if (((again || alone) && p_.assigns) || s.kind == Step::operation) inner.reads = false;
    if (alone) inner.first = static_cast<int>(slots.size());
    Slots all = slots;
    for (const int i : s.slots)
      all.push_back(slots[static_cast<std::size_t>(i)]);
    if (s.kind == Step::scan) {
      Tensor& x = all.back();
      if (x.ndim() == 0 || x.shape()[0] == 0) return draw_steps(s.body, all, inner, 0);
      x = unstack(x, 0)[0];
    }
    draw_steps(s.body, all, inner, d_.in(1, 4));
  }

  void draw_call(Step& s, const Slots& slots, const Scope& scope) {
    const auto& all = functions();
    const Function* chosen = all[d_.bits() % all.size()].get();
    if (!function_.empty() && d_.chance(30))
      for (const auto& f : all)
        if (f->name() == function_) chosen = f.get();
    s.wide_function = chosen->clone();
    d_.like.reset();
    if (d_.chance(p_.large ? 95 : 60)) d_.like = slots[static_cast<std::size_t>(slot(slots, scope))].spec();
    try {
      s.wide_function->draw(d_);
    } catch (const Error&) {
      s.wide_function.reset();
      return;
    }
    s.wide_function->set_precision(true);
    const int range = d_.in(0, 3);
    s.wide_function->each_tensor([&](Tensor& x) {
      if (!x.defined() || !is_trainable(x.dtype())) return;
      if (!is_complex(x.dtype()) && range) x = range == 3 ? 0.4 * x : range == 2 ? abs(x) + 1 : abs(x) + 0.1;
      s.arguments.push_back(argument(x, slots, scope));
    });
    s.narrow_function = s.wide_function->clone();
    s.narrow_function->set_precision(false);
  }
  Argument argument(const Tensor& x, const Slots& slots, const Scope& scope) {
    if (d_.chance(20) || x.ndim() > kMostAxes) return {};
    std::vector<int> same;
    for (int i = scope.first; i < static_cast<int>(slots.size()); ++i)
      if (slots[static_cast<std::size_t>(i)].spec() == x.spec()) same.push_back(i);
    if (!same.empty() && d_.chance(70)) return {same[d_.bits() % same.size()], true};
    const int chosen = slot(slots, scope);   // what is made of no elements may be singular, like a norm
    const bool empty = slots[static_cast<std::size_t>(chosen)].size() == 0;
    return {empty && x.size() ? -1 : chosen, false};
  }

  static bool has_body(const Step& s) {
    return s.kind > Step::assign && s.kind != Step::through && s.kind != Step::mapped;
  }

  // Whether an argument that is not constant has no elements: what is made of it may be singular, like a
  // norm.
  static bool takes_nothing(const Step& s) {
    std::size_t i = 0;
    bool nothing = false;
    if (s.wide_function)
      s.wide_function->each_tensor([&](Tensor& x) {
        if (x.defined() && is_trainable(x.dtype())) nothing |= s.arguments[i++].slot >= 0 && x.size() == 0;
      });
    return nothing;
  }

  static bool takes_high_rank(const Step& s) {
    bool high = false;
    if (s.wide_function)
      s.wide_function->each_tensor([&](Tensor& x) { high |= x.defined() && x.ndim() > kMostAxes; });
    return high;
  }

  static Tensor noise(std::uint64_t way, std::size_t number, const Spec& spec) {
    Draw d(way, number);
    d.tame = true;
    return d.tensor(spec.shape, spec.dtype);
  }
  // Whether the step gives nearly the same in f32, and for nearly the same tensors.
  bool is_definite(const Step& s, const Slots& slots, const Slots& y) {
    for (const std::uint64_t way : {0, 1, 2, 3, 4, 5}) {
      Run run(p_, way ? Precision::wide : Precision::narrow);
      run.shaken = way;
      Slots moved;
      for (const Tensor& x : slots)
        moved.push_back(way ? x + 1e-6 * noise(way, moved.size(), x.spec()) : x);
      run.run_step(s, moved);
      for (std::size_t i = 0; i < y.size(); ++i)
        if (!is_tame(moved.at(slots.size() + i) - y[i], 1e-4)) return false;
    }
    return true;
  }

  // Runs the step; its results become slots if they and their slopes are within limits.
  bool is_good(Step& s, Slots& slots) {
    if (s.kind == Step::call && !s.wide_function) return false;
    if (s.kind != Step::call && s.kind != Step::through && s.kind > Step::assign && s.body.empty())
      return false;
    try {
      Slots x;
      for (const Tensor& t : slots)
        x.push_back(identity(t));
      const std::size_t before = x.size();
      std::vector<Tensor> values;
      for (const Variable& v : run_.variables)
        values.push_back(v.value());
      GradientTape tape;
      for (const Tensor& t : x)
        tape.watch(t);
      const Slots all = x;
      run_.run_step(s, x);
      const Slots y(x.begin() + static_cast<std::ptrdiff_t>(before), x.end());
      if (y.empty() && s.kind != Step::assign) return false;
      if (!y.empty()) {
        const std::vector<Gradient> g = tape.gradient(Targets(y), Sources(all));
        bool connected = false;
        for (const Gradient& t : g)
          if (t.defined()) {
            connected = true;
            if (!is_tame(t.dense(), kMostSlope)) return false;
          }
        if (!connected && s.kind == Step::call && !d_.chance(20)) return false;
      }
      for (const Tensor& t : y)
        if (t.size() > (p_.large ? kLargest : kMostElements) || !is_tame(t, kMost) || t.ndim() > kMostAxes ||
            t.dtype() != with_precision(t.dtype(), true) || (t.size() && takes_nothing(s)))
          return false;
      if (takes_high_rank(s)) return false;
      if (s.wide_function && is_among(kIndefinite, s.wide_function->name()) && !is_definite(s, slots, y))
        return false;
      s.values = y;
      slots.insert(slots.end(), y.begin(), y.end());
      return true;
    } catch (const Error&) {
      return false;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  void draw_targets(const Slots& slots) {
    const int n = static_cast<int>(slots.size());
    for (int i = d_.in(1, 3); i-- > 0;) {
      const int t = d_.in(std::max(n - 5, std::min(sources_, n - 1)), n - 1);
      if (std::find(p_.targets.begin(), p_.targets.end(), t) != p_.targets.end()) continue;
      p_.targets.push_back(t);
      const Tensor& y = slots[static_cast<std::size_t>(t)];
      p_.cotangents.push_back(d_.tensor(y.shape(), y.dtype()));
    }
  }

  // The result of a step that has no other, which may have been made of it.
  void draw_stop() {
    std::vector<int> single;
    int next = sources_;
    for (const Step& s : p_.steps) {
      if (s.values.size() == 1) single.push_back(next);
      next += static_cast<int>(s.values.size());
    }
    if (!single.empty()) p_.stop = single[d_.bits() % single.size()];
  }

  Draw d_;
  std::string function_;
  Program p_;
  Run run_;
  int sources_ = 0;
};

template <std::size_t n> bool calls_one(const std::string_view (&list)[n], const std::vector<Step>& steps) {
  return std::any_of(steps.begin(), steps.end(), [&](const Step& s) {
    return (s.wide_function && is_among(list, s.wide_function->name())) || calls_one(list, s.body);
  });
}

}   // namespace

Program draw_program(std::uint64_t seed, std::uint64_t number, const std::string& function) {
  Program p = Drawer(seed, number, function).draw();
  p.differentiable = !calls_one(kOtherRules, p.steps);
  if (calls_one(kOfPrecision, p.steps)) p.precision = Precision::wide;
  return p;
}

const std::map<std::string_view, Uses>& function_uses() { return uses; }
bool is_cut(const Step& s) {
  return s.stopped || (s.wide_function && is_among(kCuts, s.wide_function->name()));
}

namespace {

std::string name_of(int slot) { return "v" + std::to_string(slot); }
std::string names_of(const std::vector<int>& slots) {
  std::string out;
  for (const int i : slots)
    out += (out.empty() ? "" : ", ") + name_of(i);
  return out;
}

std::string call_text(const Step& s) {
  std::vector<std::string> names;
  std::size_t next = 0;
  s.wide_function->each_tensor([&](Tensor& x) {
    std::string text = text_of(x);
    if (x.defined() && is_trainable(x.dtype())) {
      const Argument a = s.arguments.at(next++);
      if (a.slot >= 0) text = a.whole ? name_of(a.slot) : "near(" + text + ", " + name_of(a.slot) + ")";
    }
    names.push_back(text);
  });
  return s.wide_function->text(names);
}

// The slots that steps read, but for those whose results are given.
void add_used(std::set<int>& used, const std::vector<Step>& steps) {
  for (const Step& s : steps) {
    if (s.frozen) continue;
    used.insert(s.slots.begin(), s.slots.end());
    for (const Argument& a : s.arguments)
      used.insert(a.slot);
    add_used(used, s.body);
  }
}

void write(std::string& out, const std::vector<Step>& steps, int& slot, const std::string& margin,
           const std::set<int>& used);

void write(std::string& out, const Step& s, int& slot, const std::string& margin, const std::set<int>& used) {
  static constexpr std::string_view kinds[] = {"",
                                               "gather",
                                               "read",
                                               "assign",
                                               "cond",
                                               "loop",
                                               "scan",
                                               "recompute_grad",
                                               "custom_gradient",
                                               "record_operation",
                                               "grad_pass_through",
                                               "map",
                                               "gradient",
                                               "tangent"};
  const int first = slot;
  std::string text, body;
  if (s.kind == Step::call) {
    text = call_text(s);
  } else {
    text = std::string(kinds[s.kind]) + "(" + names_of(s.slots);
    if (s.variable >= 0) text += (s.slots.empty() ? "" : ", ") + ("w" + std::to_string(s.variable));
    if (s.indices.defined()) text += ", " + text_of(s.indices);
    text += s.kind > Step::rows && s.kind > Step::assign ? ", way " + std::to_string(s.count) + ")" : ")";
  }
  if (!s.body.empty() && !s.frozen) {
    int inner = slot + static_cast<int>(s.slots.size());
    write(body, s.body, inner, margin + "    ", used);
  }
  std::string left;
  for (const Tensor& v : s.values)
    left += (left.empty() ? "" : ", ") + name_of(slot++) + " " + to_string(v.spec());
  if (s.frozen) {
    text.clear();
    for (const Tensor& v : s.values)
      text += (text.empty() ? "" : "; ") + text_of(v);
  }
  const auto u = used.lower_bound(first);
  if (s.frozen && (u == used.end() || *u >= slot)) return;
  out += margin + left + (left.empty() ? "" : " = ") + text +
         (s.narrow ? "   // f32 in mixed precision" : "") + (s.stopped ? "   // under StopRecording" : "") +
         "\n";
  if (!body.empty()) out += margin + "  with " + name_of(first) + "… as its arguments:\n" + body;
}
void write(std::string& out, const std::vector<Step>& steps, int& slot, const std::string& margin,
           const std::set<int>& used) {
  for (const Step& s : steps)
    write(out, s, slot, margin, used);
}

}   // namespace

std::string text_of(const Program& p) {
  static constexpr std::string_view precisions[] = {"f32", "mixed", "f64"};
  std::string out = "  in " + std::string(precisions[static_cast<int>(p.precision)]) +
                    "; near(c, v) is c + 0.1 sin(v), v cut or repeated to c's shape\n";
  int slot = 0;
  for (const Tensor& x : p.inputs)
    out += "  input " + name_of(slot++) + " = " + text_of(x) + "\n";
  for (std::size_t i = 0; i < p.variables.size(); ++i)
    out += "  variable w" + std::to_string(i) + " = " + text_of(p.variables[i]) + "\n";
  for (const int v : p.read_before)
    out += "  " + name_of(slot++) + " = w" + std::to_string(v) + ", read before the tape begins\n";
  std::set<int> used(p.targets.begin(), p.targets.end());
  used.insert(p.stop);
  add_used(used, p.steps);
  write(out, p.steps, slot, "  ", used);
  out += "  stop_gradients is tried with " + name_of(p.stop) + "\n";
  for (std::size_t i = 0; i < p.targets.size(); ++i)
    out += "  target " + name_of(p.targets[i]) + " with the cotangent " + text_of(p.cotangents[i]) + "\n";
  return out;
}

}   // namespace tapedeck::fuzz
