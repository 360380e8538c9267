// GradBench's twelve evals. An eval is a few functions of one input, at several sizes. Each function is
// written in several forms, which compute the same results.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gradbench {

using Values = std::vector<double>;

/// A function of fixed inputs: run() computes and keeps the result, values() returns it.
struct Work {
  std::function<void()> run;
  std::function<Values()> values;
};

/// One way to compute the functions of an eval, in the eval's order. prepare() does the work that is not
/// timed: it converts the inputs, and records a tape or a program.
struct Form {
  std::string name;
  std::function<std::vector<Work>()> prepare;
};
using Forms = std::vector<Form>;

struct Size {
  std::string name;
  std::function<Forms()> forms;   // generates the input, which is the same in each call
};

struct Eval {
  std::string name;
  std::vector<std::string> functions;
  bool has_primal;                  // the others are derivatives of the first function
  std::vector<Size> sizes, small;   // for timing; for the tests
};
const std::vector<Eval>& evals();

/// A source of other forms: derivatives by hand, or another library. An eval asks the peers of its input
/// type. A peer returns nothing if it does not support the input.
template <class Input> using Peer = std::function<std::optional<Form>(const std::shared_ptr<const Input>&)>;
template <class Input> std::vector<Peer<Input>>& peers() {
  static std::vector<Peer<Input>> list;
  return list;
}
template <class Input> Forms with_peers(Forms own, const std::shared_ptr<const Input>& in) {
  for (const Peer<Input>& peer : peers<Input>())
    if (std::optional<Form> form = peer(in)) own.push_back(*std::move(form));
  return own;
}

/// Each adds a kind of peers. Call them once, before evals are asked for their forms.
void add_manual();   // derivatives by hand, as fast as possible
void add_suite();    // derivatives by hand with the suite's formulas and compiler flags
void add_adolc();
void add_torch();

/// Work that writes its result to a list that it owns.
inline Work work(std::function<void(Values&)> f) {
  auto out = std::make_shared<Values>();
  return {[f = std::move(f), out] { f(*out); }, [out] { return *out; }};
}

}   // namespace gradbench
