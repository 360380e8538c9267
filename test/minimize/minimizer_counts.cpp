// Prints the results of each minimizer on the test problems, for scipy_counts.py, which compares them with
// SciPy's: one line per problem, with its name, its value at the start, and for each minimizer the value, the
// gradient's norm and the number of evaluations. With --starts only the names and the values at the starts.
#include <cstdio>
#include <string_view>

#include "minimize/problems.h"
#include "tapedeck/minimize.h"
#include "tapedeck/tapedeck.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

void print(const Minimum& m) { std::printf("\t%.17g\t%.17g\t%d", m.value, m.gradient_norm, m.evaluations); }

void run(const Problem& p, bool starts_only) {
  const Tensor start = tensor(p.start);
  const MinimizeOptions options = {.tolerance = 1e-8, .max_iterations = 5000};
  std::printf("%s\t%.17g", p.name.c_str(), p.f(start).item<double>());
  if (!starts_only) {
    print(minimize_lbfgs(p.f, start, {options}));
    print(minimize_newton(p.f, start, {options}));
  }
  std::printf("\n");
}

}   // namespace

int main(int count, char** arguments) {
  const bool starts_only = count > 1 && arguments[1] == std::string_view("--starts");
  for (const Problem& p : published_problems())
    run(p, starts_only);
  run(pendulum(), starts_only);
  for (const Problem& p : random_problems())
    run(p, starts_only);
}
