// Makes random programs of the library's functions and checks that all ways to differentiate them agree, and
// that differences confirm them. A failure names the seed and the number of the program, which repeat it:
// programs --seed S --only N.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <set>

#include "options.h"
#include "programs.h"

namespace tapedeck::fuzz {
namespace {

using Numbers = std::vector<double>;

/// What a check has found.
struct Failure {
  std::string check, what;
};

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
std::string shown(const Numbers& v) {
  std::ostringstream out;
  out.precision(10);
  for (std::size_t i = 0; i < std::min<std::size_t>(v.size(), 24); ++i)
    out << (i ? " " : "") << v[i];
  if (v.size() > 24) out << " …";
  return out.str();
}

/// One program under all checks.
class Checker {
 public:
  explicit Checker(const Program& p) : p_(p) {}

  void check() {
    Run reference(p_, Precision::wide);
    reference.cuts = &cuts_;
    wide_ = gradient(reference);
    cuts_.replayed = true;
    measure_noise();
    Run run(p_, p_.precision);
    gradient_ = p_.precision == Precision::wide ? wide_ : gradient(run);
    compare_precisions();
    forward();
    if (p_.differentiable) differences();
  }
  bool rough = false;

 private:
  [[noreturn]] static void fail(const std::string& check, const std::string& what) { throw Failure{check, what}; }

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
  static std::vector<Tensor> dense(const std::vector<Gradient>& g, const Run& run) {
    const std::vector<Tensor> x = values(run);
    std::vector<Tensor> list;
    for (std::size_t i = 0; i < g.size(); ++i)
      list.push_back(g[i].defined() ? g[i].dense() : zeros_like(x[i]));
    return list;
  }
  OutputGradients cotangents(const std::vector<Tensor>& y) const { return like(p_.cotangents, y); }

  std::vector<Tensor> gradients(Run& run, GradientTape& tape, const GradientOptions& options = {}) const {
    for (const Tensor& x : run.inputs)
      tape.watch(x);
    const std::vector<Tensor> y = run.run();
    GradientOptions all = options;
    all.output_gradients = cotangents(y);
    return dense(tape.gradient(Targets(y), run.sources(), all), run);
  }
  Numbers gradient(Run& run) const {
    run.begin();
    GradientTape tape;
    return numbers(gradients(run, tape));
  }

  // How much the gradient changes if all results are rounded to f32.
  void measure_noise() {
    for (const std::uint64_t way : {1, 2}) {
      Run run(p_, Precision::wide);
      run.shaken = way;
      noise_ = std::max(noise_, distance(gradient(run), wide_));
    }
  }
  double tolerance(double scale, double noise) const {
    return p_.precision == Precision::wide ? 1e-11 * (scale + 1) + 1e-5 * noise : 1e-4 * (scale + 1) + 100 * noise;
  }
  void compare(const std::string& check, const Numbers& a, const Numbers& b) const {
    if (!(distance(a, b) <= tolerance(std::max(largest(a), largest(b)), noise_)))
      fail(check, shown(a) + "\n  " + shown(b) + "\n  noise " + shown({noise_}));
  }
  void compare_precisions() const {
    if (p_.precision != Precision::wide) compare("f32 and f64", gradient_, wide_);
  }

  void forward() const {
    Run run(p_, p_.precision);
    run.begin();
    const std::vector<Tensor> v = directions(run);
    const ForwardAccumulator along(Sources(run.sources()), std::span<const Tensor>(v));
    const std::vector<Tensor> y = run.run();
    const std::vector<Tensor> dy = along.jvp(Sources(y), UnconnectedGradients::zero);
    const Numbers a = numbers(dy), c = numbers(like(p_.cotangents, y)), u = numbers(v);
    const double terms = dot_of_sizes(a, c) + dot_of_sizes(gradient_, u);
    if (!(std::abs(dot(a, c) - dot(gradient_, u)) <= tolerance(terms, noise_ * largest(u) * static_cast<double>(u.size()))))
      fail("forward and reverse", shown({dot(a, c), dot(gradient_, u)}) + "\n  gradient " + shown(gradient_) + "\n  tangents " + shown(a) + "\n  noise " + shown({noise_}));
  }

  double loss(double moved) {
    Run run(p_, Precision::wide);
    run.cuts = &cuts_;
    run.moved = moved;
    run.begin();
    return dot(numbers(run.run()), numbers(p_.cotangents));
  }
  void differences() {
    const double slope = dot(wide_, numbers(p_.directions));
    confirm("differences", [&](double h) { return loss(h); }, slope, dot_of_sizes(wide_, numbers(p_.directions)));
  }
  // Compares a derivative with differences where these converge, from both sides.
  void confirm(const std::string& check, const std::function<double(double)>& f, double slope, double terms) {
    constexpr double steps[] = {1e-3, 1e-4, 1e-5, 1e-6};
    const double middle = f(0);
    double central[4], kink[4];
    for (int i = 0; i < 4; ++i) {
      const double right = f(steps[i]), left = f(-steps[i]);
      central[i] = (right - left) / (2 * steps[i]);
      kink[i] = std::abs(right - 2 * middle + left) / steps[i];
    }
    const double error = (std::abs(middle) + 1) * 1e-14;
    for (int i = 0; i < 4; ++i)
      if (std::abs(central[i] - slope) <= 1e-5 * (terms + std::abs(central[i])) + 10 * error / steps[i]) return;
    for (int i = 0; i + 1 < 4; ++i) {
      const double scale = std::max(terms, std::abs(central[i]));
      const double limit = 1e-5 * scale + error / steps[i + 1];
      if (std::abs(central[i] - central[i + 1]) <= limit && kink[i + 1] <= 1e-3 * scale + error / steps[i + 1] &&
          std::abs(central[i + 1] - slope) > 100 * limit)
        fail(check, "slope " + shown({slope}) + ", differences " + shown({central[0], central[1], central[2], central[3]}) +
                        ", changes of slope " + shown({kink[0], kink[1], kink[2], kink[3]}));
    }
    rough = true;
  }

  const Program& p_;
  Cuts cuts_;
  Numbers wide_, gradient_;
  double noise_ = 0;
};

std::optional<Failure> failure_of(const Program& p, bool* rough = nullptr) {
  try {
    Checker c(p);
    c.check();
    if (rough) *rough = c.rough;
  } catch (const Failure& f) {
    return f;
  } catch (const std::exception& e) {
    return Failure{"an exception", e.what()};
  }
  return {};
}

// Makes steps constants while the failure stays.
void simplify(std::vector<Step>& steps, const std::function<bool()>& fails) {
  for (auto s = steps.rbegin(); s != steps.rend(); ++s) {
    s->frozen = true;
    if (fails()) continue;
    s->frozen = false;
    simplify(s->body, fails);
  }
}

char now[256];
void on_signal(int signal) {
  (void)!write(2, now, std::strlen(now));
  (void)!write(2, signal == SIGPROF ? "programs: too slow\n" : "programs: crashed\n", 18);
  _exit(1);
}

int run(const Options& o) {
  for (const int s : {SIGSEGV, SIGFPE, SIGABRT, SIGILL, SIGBUS, SIGPROF})
    signal(s, on_signal);
  set_warning_handler([](std::string_view) {});
  std::uint64_t programs = 0, rough = 0, failures = 0;
  for_each_number(o, [&](std::uint64_t n) {
    std::snprintf(now, sizeof now, "programs: to repeat: programs --seed %llu --only %llu\n",
                  static_cast<unsigned long long>(o.seed), static_cast<unsigned long long>(n));
    const itimerval limit{{0, 0}, {60, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    Program p = draw_program(o.seed, n, o.function);
    if (o.verbose) std::cerr << text_of(p);
    bool is_rough = false;
    const std::optional<Failure> f = failure_of(p, &is_rough);
    ++programs, rough += is_rough;
    if (!f) return;
    ++failures;
    simplify(p.steps, [&] {
      const auto now = failure_of(p);
      return now && now->check == f->check;
    });
    const auto last = failure_of(p);
    std::cout << "programs: " << f->check << ": " << (last ? last->what : f->what) << "\n" << text_of(p) << now << std::endl;
  });
  std::cout << "programs: seed " << o.seed << ": " << programs << " programs, " << rough << " not smooth, " << failures << " failures\n";
  if (o.report)
    for (const auto& [name, u] : function_uses())
      std::cout << name << ": " << u.used << " of " << u.drawn << "\n";
  return failures > 0;
}

}   // namespace
}   // namespace tapedeck::fuzz

int main(int argc, char** argv) { return tapedeck::fuzz::run(tapedeck::fuzz::read_options("programs", argc, argv)); }
