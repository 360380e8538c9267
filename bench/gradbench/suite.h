// GradBench's twelve evals: an eval is a few functions of one input, at several sizes, each written in
// several forms that compute the same.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gradbench {

using Values = std::vector<double>;

/// A function of fixed inputs: run() computes it and keeps the result, values() reads that.
struct Work {
  std::function<void()> run;
  std::function<Values()> values;
};

/// One way to compute the functions of an eval, in the eval's order. prepare() does what is not timed:
/// converts the inputs, records a tape or a program.
struct Form {
  std::string name;
  std::function<std::vector<Work>()> prepare;
};
using Forms = std::vector<Form>;

struct Size {
  std::string name;
  std::function<Forms()> forms;   // generates the input, the same one at each call
};

struct Eval {
  std::string name;
  std::vector<std::string> functions;
  bool has_primal;                  // the first function is what the others differentiate
  std::vector<Size> sizes, small;   // those that are timed; those of the tests
};
const std::vector<Eval>& evals();

/// Forms from elsewhere: by hand, by other libraries. An eval asks for those of its input type; none: this
/// peer does not do this input.
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

/// Add the peers of each kind; once, before evals are asked for their forms.
void add_manual();   // derivatives by hand, as fast as they get
void add_suite();    // the same as the suite has them: its formulas and its compiler flags
void add_adolc();
void add_torch();

/// Work that writes into a list that it keeps.
inline Work work(std::function<void(Values&)> f) {
  auto out = std::make_shared<Values>();
  return {[f = std::move(f), out] { f(*out); }, [out] { return *out; }};
}

}   // namespace gradbench
