// The evals of bench/gradbench: all forms of an eval compute the same. Independent references are the
// derivatives by hand, and for the two descents the results that GradBench's own evals expect.
#include <catch2/catch.hpp>
#include <cmath>

#include "agree.h"
#include "suite.h"

namespace {

using namespace gradbench;

void add_peers() {
  static const bool once = (add_manual(), add_suite(), true);
  (void)once;
}

const Eval& eval(const std::string& name) {
  const auto found =
      std::find_if(evals().begin(), evals().end(), [&](const Eval& e) { return e.name == name; });
  REQUIRE(found != evals().end());
  return *found;
}

Values result_of(const Work& work) {
  work.run();
  const Values first = work.values();
  work.run();   // again, since forms keep memory
  CHECK(difference(work.values(), first) == 0);
  return first;
}

}   // namespace

TEST_CASE("results of GradBench's evals differ relative to the largest") {
  CHECK(difference({1, 4}, {1, 5}) == 0.2);
  CHECK(difference({1e-12, 0}, {0, 0}) == 1e-12);   // of nothing: absolute
  CHECK(difference({1e-310}, {0}) == 0);
  CHECK(difference({0}, {1e-310}) == 0);
  CHECK(std::isinf(difference({NAN}, {1})));
  CHECK(std::isinf(difference({1, 2}, {1})));
}

TEST_CASE("forms of GradBench's evals agree") {
  add_peers();
  for (const Eval& eval : evals())
    for (const Size& size : eval.small) {
      INFO(eval.name << " " << size.name);
      const Forms forms = size.forms();
      REQUIRE(forms.size() >= 2);
      std::vector<Values> expected;
      for (auto form = forms.rbegin(); form != forms.rend(); ++form) {   // by hand first
        INFO(form->name);
        const std::vector<Work> works = form->prepare();
        REQUIRE(works.size() == eval.functions.size());
        for (std::size_t i = 0; i < works.size(); ++i) {
          const Values result = result_of(works[i]);
          if (expected.size() == i) expected.push_back(result);
          INFO(eval.functions[i]);
          CHECK(difference(result, expected[i]) <= kTolerance);
        }
      }
    }
}

TEST_CASE("GradBench's descents converge to the expected points") {
  add_peers();
  for (const auto& [name, expected] : {std::pair("saddle", Values(4, 8.246324826140356e-06)),
                                       std::pair("particle", Values{0.2071918746486116})})
    for (const Form& form : eval(name).small[0].forms())
      for (const Work& work : form.prepare()) {
        INFO(name << " " << form.name);
        CHECK(difference(result_of(work), expected) <= 1e-9);
      }
}

TEST_CASE("GradBench's sizes match its evals") {
  const auto sizes = [](const std::string& name) {
    std::vector<std::string> all;
    for (const Size& size : eval(name).sizes)
      all.push_back(size.name);
    return all;
  };
  using Names = std::vector<std::string>;
  CHECK(sizes("gmm") == Names{"2_5", "10_50", "64_100"});
  CHECK(sizes("ba") == Names{"1", "8", "14"});
  CHECK(sizes("ode") == Names{"1k·1", "10k·10", "100k·1", "100k·100"});
  CHECK(evals().size() == 12);
}
