// The check of a random program: it is recorded once, and replayed with other inputs.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "compile/unchanged.h"
#include "replays.h"
#include "tapedeck/compile.h"

namespace tapedeck::replays {
namespace {

using test::difference;
using test::Unchanged;

constexpr int kCalls = 22;

struct Inputs {
  Tensors x, bases;   // bases: of which arguments are views
  Keys keys;
  bool wrong = false;   // an index is out of range
};

class Checker {
 public:
  Checker(const Program& p, std::uint64_t seed) : p_(p), d_(seed, 1), eager_(p), live_(p) {}

  std::string check(std::uint64_t& replays) {
    Unchanged captured(p_.captured, "captured tensor");
    bool runs_itself =
        false;   // f, to be recorded for another signature; then it changes variables as it goes
    const auto f = compile(
        [&, this](const Tensors& x, const Keys& k) {
          runs_itself = true;
          return run(p_, live_, x, k);
        },
        {.name = "replays", .max_programs = 50});
    for (int call = 0; call < kCalls; ++call) {
      const Inputs in = inputs(call);
      if (p_.set && d_.chance(25)) set_variables();
      Tensors wanted;
      std::string error;
      try {
        wanted = run(p_, eager_, in.x, in.keys);
      } catch (const Error& e) {
        error = e.what();
      }
      const std::string where = "call " + std::to_string(call) + ": ";
      if (!error.empty() && call == 0) return where + "the program itself throws: " + error;
      Unchanged arguments(in.x);
      arguments.add(in.bases, "memory around argument");
      Unchanged variables;   // if an error is thrown
      if (!error.empty()) variables.add(live_.variables, "in spite of the error, variable");
      std::string fault;
      try {
        runs_itself = false;
        const Tensors y = called(f, in);
        if (error.empty()) fault = difference(y, wanted);
        if (fault.empty() && error.empty()) fault = variables_differ();
        if (!error.empty()) copy_variables();   // an op that nobody reads need not throw
        previous_ = y;
        ++replays;
      } catch (const Error& e) {
        // A derivative that reads numbers has no further derivatives, which a tape or accumulator might want.
        if (std::string_view(e.what()).find("for a further derivative") != std::string_view::npos) return "";
        // Wrong indices may be right ones for other shapes, which a replay refuses.
        const bool other_shape =
            p_.wrong_indices &&
            std::string_view(e.what()).find(" in a replay, but returned ") != std::string_view::npos;
        if (error.empty() && !other_shape) return where + "throws: " + e.what();
        if (!runs_itself) fault = variables.changed();
        copy_variables();
      }
      if (fault.empty()) fault = arguments.changed();
      if (fault.empty()) fault = captured.changed();
      for (const auto& [y, copy] : held_)
        if (fault.empty()) fault = copy.changed();
      if (!fault.empty()) return where + fault;
      if (d_.chance(30)) {
        held_.emplace_back(previous_, Unchanged(previous_, "result of an earlier call"));
        if (held_.size() > 2) held_.pop_front();
      }
    }
    return "";
  }

 private:
  template <class F> Tensors called(const F& f, const Inputs& in) {
    if (!p_.into || !d_.chance(50)) return f(in.x, in.keys);
    Tensors y;
    const int way = d_.in(0, 3);
    if (way < 2 && previous_.size() == p_.results.size()) {
      y = way == 0 ? std::move(previous_) : previous_;   // alone, or shared
      previous_.clear();
    } else {
      y.resize(p_.results.size());
      const Tensors& from = way == 2 ? in.x : p_.captured;
      for (Tensor& t : y)
        if (!from.empty()) t = d_.of(from);
    }
    f.into(y, in.x, in.keys);
    return y;
  }

  double number(bool special) {
    if (special && d_.chance(25)) {
      static constexpr double list[] = {0.0, -0.0,     0.0,       -0.0, 1.0,   -1.0, 0.5,
                                        2.0, INFINITY, -INFINITY, NAN,  1e-30, 1e30};
      return list[d_.bits() % std::size(list)];
    }
    return 1.5 * d_.number();
  }
  // Numbers in the dtype itself: a conversion would take longer than the replay.
  template <class T> Tensor floats_of(std::int64_t size, bool special) {
    std::vector<T> v(static_cast<std::size_t>(size));
    for (T& e : v)
      e = static_cast<T>(number(special));
    return tensor(v, Shape{size});
  }
  Tensor floats(const Spec& s, std::int64_t around) {
    const std::int64_t size = s.shape.size() + around;
    const bool special = p_.specials && d_.chance(30);
    return s.dtype == DType::f32   ? floats_of<float>(size, special)
           : s.dtype == DType::f64 ? floats_of<double>(size, special)
                                   : astype(floats_of<float>(size, special), s.dtype);
  }
  Tensor integers(const Argument& a, std::int64_t around, bool wrong) {
    std::vector<std::int64_t> v(static_cast<std::size_t>(a.spec.shape.size() + around));
    const int way = d_.in(0, 3);
    for (std::int64_t& e : v)
      e = way == 0 ? a.count - 1 : d_.in(std::int64_t{0}, a.count - 1);
    if (a.kind == Argument::ascending) std::sort(v.begin() + around, v.end()), v.back() = a.count - 1;
    if (wrong && v.size()) v.back() = a.count + d_.in(0, 1000);
    return astype(tensor(v, Shape{static_cast<std::int64_t>(v.size())}), a.spec.dtype);
  }

  static Tensor other_tensor(const Tensor& x) { return reshape(reshape(x, {x.size(), 1}), x.shape()); }

  // An argument, which may be a view of a larger tensor.
  Tensor argument(const Argument& a, Inputs& in) {
    const std::int64_t around = p_.elsewhere && d_.chance(40) ? d_.in(1, 20) : 0, size = a.spec.shape.size();
    const bool wrong = in.wrong && a.kind != Argument::floats && a.kind != Argument::truths;
    const Tensor base = a.kind == Argument::floats ? floats(a.spec, around) : integers(a, around, wrong);
    if (around == 0) return base.shape() == a.spec.shape ? base : reshape(base, a.spec.shape);
    in.bases.push_back(base);
    const std::int64_t first = a.kind == Argument::floats ? d_.in(std::int64_t{0}, around) : around;
    return reshape(slice(base, {first}, {size}), a.spec.shape);
  }

  Inputs inputs(int call) {
    Inputs in;
    in.wrong = p_.wrong_indices && call > 1 && d_.chance(10);
    for (const Argument& a : p_.arguments) {
      const auto same = [&](const Tensor& t) { return t.defined() && t.spec() == a.spec; };
      if (p_.repeats && a.kind == Argument::floats && d_.chance(12)) {
        const Tensors& from = d_.chance(40) ? in.x : d_.chance(60) ? previous_ : p_.captured;
        const auto found = std::find_if(from.begin(), from.end(), same);
        if (found != from.end()) {
          // Of memory that is captured, another tensor: f itself would take it for the captured one.
          in.x.push_back(&from == &in.x ? *found : other_tensor(*found));
          continue;
        }
        if (!live_.variables.empty()) {
          const Tensor v = d_.of(live_.variables).value();
          if (same(v)) {
            in.x.push_back(v);
            continue;
          }
        }
      }
      in.x.push_back(argument(a, in));
    }
    for (int i = 0; i < p_.keys; ++i) {
      random::Key k{.seed = d_.bits() % 4, .stream = d_.bits() % 2};
      if (d_.chance(20)) k = k.split(d_.bits() % 3);
      if (i > 0 && d_.chance(25)) k = in.keys[0];
      if (i > 0 && d_.chance(10)) k = in.keys[0].split(d_.bits() % 3);
      in.keys.push_back(k);
    }
    return in;
  }

  void set_variables() {
    for (std::size_t i = 0; i < eager_.variables.size(); ++i) {
      const Tensor v = floats(p_.variables[i].spec(), 0);
      eager_.variables[i].assign(reshape(v, p_.variables[i].shape()));
      live_.variables[i].assign(eager_.variables[i].value());
    }
  }
  std::string variables_differ() const {
    for (std::size_t i = 0; i < eager_.variables.size(); ++i)
      if (const std::string d = difference(live_.variables[i].value(), eager_.variables[i].value());
          !d.empty())
        return "variable " + std::to_string(i) + " " + d;
    return "";
  }
  // After an error, which left those of the function itself in between.
  void copy_variables() {
    for (std::size_t i = 0; i < eager_.variables.size(); ++i)
      eager_.variables[i].assign(live_.variables[i].value() * 1.0);
  }

  const Program& p_;
  Random d_;
  World eager_, live_;
  Tensors previous_;
  std::deque<std::pair<Tensors, Unchanged>> held_;
};

}   // namespace

std::string check_program(const Program& p, std::uint64_t seed, std::uint64_t& replays) {
  return Checker(p, seed).check(replays);
}

}   // namespace tapedeck::replays
