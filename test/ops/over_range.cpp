#include "over_range.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <stdexcept>

#include "data_folder.h"
#include "tapedeck/tapedeck.h"

namespace tapedeck::test {
namespace {

constexpr double kLimit = 8;   // where the limits do not say another one
constexpr int kOrders = 3;
constexpr const char* kOrderNames[kOrders] = {"value", "first", "second"};

/// Ops without points: their values and derivatives are exact, or rounded once, or parts of softmax and of
/// random numbers.
const std::set<std::string_view> kWithout = {"add",       "sub",        "neg",       "sign",
                                             "maximum",   "minimum",    "clip",      "floor_mod",
                                             "nextafter", "less_share", "gamma_grad"};

struct Point {
  double x, exact[kOrders], size[kOrders];
};
struct Points {
  std::string call;
  std::vector<Point> points;
};

std::ifstream open(const char* name) {
  std::ifstream file(data_folder() / name);
  if (!file) throw std::runtime_error(std::string("cannot read test/data/") + name);
  return file;
}

std::vector<Points> read_points() {
  std::vector<Points> all;
  std::ifstream file = open("accuracy.txt");
  for (std::string line; std::getline(file, line);) {
    if (std::islower(static_cast<unsigned char>(line[0])) && line.substr(0, 3) != "inf") {
      all.push_back({line, {}});
      continue;
    }
    double column[1 + 2 * kOrders];
    const char* at = line.c_str();
    for (double& v : column) {
      char* end;
      v = std::strtod(at, &end);
      if (end == at) throw std::runtime_error("test/data/accuracy.txt: not seven numbers: " + line);
      at = end;
    }
    Point p;
    p.x = column[0];
    std::copy_n(column + 1, kOrders, p.exact);
    std::copy_n(column + 1 + kOrders, kOrders, p.size);
    all.back().points.push_back(p);
  }
  return all;
}

/// The distance of y from the exact value, in units in the last place of the larger of exact and size.
template <class T> double ulps(T y, double exact, double size) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(y)) return HUGE_VAL;
  const double largest = Limits::max(), almost = largest * (1 - 8 * static_cast<double>(Limits::epsilon()));
  if (std::isinf(y) || std::fabs(exact) > largest)
    return std::fabs(exact) >= almost && std::fabs(static_cast<double>(y)) >= almost && (y > 0) == (exact > 0)
               ? 0
               : HUGE_VAL;
  const double magnitude =
      std::max({std::fabs(exact), std::min(size, largest), static_cast<double>(Limits::min())});
  const double unit = std::ldexp(1, std::ilogb(magnitude) + 1 - Limits::digits);
  return std::fabs(static_cast<double>(y) - exact) / unit;
}

/// f, f' and f'' at x.
std::array<Tensor, kOrders> derivatives(const CalledOp& f, const Tensor& x) {
  GradientTape outer, inner;
  outer.watch(x);
  inner.watch(x);
  const Tensor y = f(x);
  const Tensor first =
      inner.gradient(Targets{y}, Sources{x}, {.unconnected = UnconnectedGradients::zero})[0].dense();
  const Tensor second =
      outer.gradient(Targets{first}, Sources{x}, {.unconnected = UnconnectedGradients::zero})[0].dense();
  return {y, first, second};
}

template <class T> void measure(const Points& all, Error (&worst)[kOrders]) {
  std::vector<const Point*> points;
  std::vector<T> x;
  for (const Point& p : all.points)
    if (static_cast<double>(static_cast<T>(p.x)) == p.x)
      points.push_back(&p), x.push_back(static_cast<T>(p.x));
  const auto computed = derivatives(CalledOp(all.call), tensor(x));
  for (std::size_t order = 0; order < kOrders; ++order) {
    const auto y = computed[order].template to_vector<T>();
    for (std::size_t i = 0; i < y.size(); ++i)
      if (const double off = ulps(y[i], points[i]->exact[order], points[i]->size[order]);
          off > worst[order].ulps)
        worst[order] = {off, points[i]->x};
  }
}

struct Limit {
  std::string call, reason;
  int order = 0;
  double of[2] = {kLimit, kLimit};
};

/// Lines "call | order | limit in f32 | limit in f64 | reason".
std::vector<Limit> read_limits() {
  std::vector<Limit> all;
  std::ifstream file = open("accuracy_limits.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream in(line);
    std::string field[5];
    for (std::string& f : field) {
      std::getline(in >> std::ws, f, '|');
      f.erase(f.find_last_not_of(' ') + 1);
    }
    all.push_back({field[0], field[4], std::stoi(field[1]), {std::stod(field[2]), std::stod(field[3])}});
  }
  return all;
}

int check_coverage(const std::vector<Errors>& all) {
  std::set<std::string_view> covered = kWithout;
  for (const Errors& e : all)
    covered.insert(CalledOp(e.call).op().name);
  int missing = 0;
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      if (op->rule.kind == RuleKind::partials && op->infer.one && !covered.contains(op->name))
        ++missing, std::printf("%s: has no points; name it in scripts/accuracy_values\n",
                               std::string(op->name).c_str());
  return missing;
}

}   // namespace

CalledOp::CalledOp(const std::string& call) {
  const std::string name = call.substr(0, call.find('('));
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      if (op->name == name) op_ = op;
  if (!op_) throw std::invalid_argument("there is no op " + name);
  std::istringstream list(name == call ? "x" : call.substr(name.size() + 1));
  for (std::string argument; std::getline(list >> std::ws, argument, ',');)
    arguments_.push_back(argument[0] == 'x' ? NAN : std::stod(argument));
}

Tensor CalledOp::operator()(const Tensor& x) const {
  std::vector<Tensor> operands;
  for (const double a : arguments_)
    operands.push_back(std::isnan(a) ? x : full({}, a, x.dtype()));
  return (*op_)(operands);
}

std::vector<Errors> errors_over_range() {
  std::vector<Errors> all;
  for (const Points& points : read_points()) {
    Errors& e = all.emplace_back(Errors{points.call, {}});
    measure<float>(points, e.of[0]);
    measure<double>(points, e.of[1]);
  }
  return all;
}

void print_over_range(const std::vector<Errors>& all) {
  std::puts(
      "| function | f32: value | first | second | f64: value | first | second "
      "|\n|---|---|---|---|---|---|---|");
  for (const Errors& e : all) {
    std::printf("| %s", e.call.c_str());
    for (const auto& dtype : e.of)
      for (const Error& error : dtype)
        error.ulps > 0 ? std::printf(" | %.3g at %.3g", error.ulps, error.at) : std::printf(" | 0");
    std::puts(" |");
  }
  std::puts("\n| function | derivative | limit in f32 | in f64 | reason |\n|---|---|---|---|---|");
  for (const Limit& l : read_limits())
    std::printf("| %s | %s | %g | %g | %s |\n", l.call.c_str(), kOrderNames[l.order], l.of[0], l.of[1],
                l.reason.c_str());
}

int check_over_range(const std::vector<Errors>& all) {
  std::vector<Limit> limits = read_limits();
  int faults = check_coverage(all);
  for (const Errors& e : all)
    for (int order = 0; order < kOrders; ++order) {
      const auto own = std::find_if(limits.begin(), limits.end(),
                                    [&](const Limit& l) { return l.call == e.call && l.order == order; });
      const Limit limit = own == limits.end() ? Limit() : *own;
      if (own != limits.end()) limits.erase(own);
      for (int dtype = 0; dtype < 2; ++dtype)
        if (const Error& worst = e.of[dtype][order]; worst.ulps > limit.of[dtype])
          ++faults, std::printf("%s, %s, f%d: %.4g ulp at %.17g; the limit is %g\n", e.call.c_str(),
                                kOrderNames[order], 32 << dtype, worst.ulps, worst.at, limit.of[dtype]);
    }
  for (const Limit& l : limits)
    ++faults,
        std::printf("%s: test/data/accuracy_limits.txt has a limit, test/data/accuracy.txt has no points\n",
                    l.call.c_str());
  return faults;
}

}   // namespace tapedeck::test
