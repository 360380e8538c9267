// Random programs for compiled functions: lists of nodes, each of which computes tensors, the slots, from
// earlier ones.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tapedeck/optimizer.h"
#include "tapedeck/tapedeck.h"

namespace tapedeck::replays {

using Tensors = std::vector<Tensor>;
using Keys = std::vector<random::Key>;
using Numbers = std::vector<std::int64_t>;

/// The source of random numbers: SplitMix64 (Steele, Lea and Flood 2014).
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t number) : state_(seed * 0x9e3779b97f4a7c15U) {
    state_ = bits() ^ number * 0xd1342543de82ef95U;
    bits();
  }
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
  }
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  int in(int low, int high) { return static_cast<int>(in(std::int64_t{low}, std::int64_t{high})); }
  bool chance(int percent) { return in(1, 100) <= percent; }
  /// A number in [-1, 1).
  double number() { return static_cast<double>(bits() >> 11) * 0x1p-52 - 1; }
  template <class T> const T& of(const std::vector<T>& list) { return list[bits() % list.size()]; }

 private:
  std::uint64_t state_;
};

/// An argument of the program.
struct Argument {
  enum Kind { floats, indices, ascending, truths };
  Kind kind = floats;
  Spec spec;
  std::int64_t count = 0;   // indices are below it; the last of ascending ones is count - 1
};

/// A key: an argument or a constant, split once for each entry of `splits`.
struct KeyOf {
  int argument = -1;
  random::Key constant;
  std::vector<std::uint64_t> splits;
};

struct Node {
  enum Kind {
    argument,   // number which
    captured,   // number which
    read,       // variable number which
    assign,     // slots[0] to variable number which
    step,       // of an optimizer, with slots[0] as the gradient of variable number which
    form,       // form number which of the table
    draw,       // random numbers of shape `numbers`, with `key`
    gradient,   // of the body's slots `targets` with respect to slots[] and variables
    tangent,    // of these targets along slots[], which have tangents made of themselves
  };
  Kind kind = form;
  int which = 0;
  std::vector<int> slots;
  Numbers numbers;
  double number = 0;
  DType dtype = DType::f32;
  KeyOf key;
  std::vector<Node> body;   // its slots begin with all earlier ones
  std::vector<int> targets, variables;
  bool persistent = false;
  std::vector<Tensor> values;   // the results of the node when it was drawn
  bool frozen = false;          // it returns `values` again: for reports of failures
};

struct Program {
  std::vector<Argument> arguments;
  int keys = 0;
  Tensors captured, variables;   // initial values
  std::vector<Node> nodes;
  std::vector<int> results;   // slots
  bool wrong_indices = true, elsewhere = true, specials = true, repeats = true, into = true, set = true;
};

/// The objects that a run of a program refers to.
struct World {
  explicit World(const Program& p);
  std::vector<Variable> variables;
  Tensors captured;
  std::unique_ptr<GradientDescent> optimizer;
};

/// Runs the program; returns its results.
Tensors run(const Program& p, World& w, const Tensors& x, const Keys& keys);
/// Runs one node, and appends its results to the slots.
void run_node(const Node& n, World& w, const Tensors& x, const Keys& keys, Tensors& slots);

/// Functions that nodes call: `floats` tensors of floats, `truths` bools before them.
struct Form {
  const char* name;
  enum Group { unary, binary, number, compare, logic, choose, reduce, shape, join, index, random, other };
  Group group;
  Tensors (*run)(const Node& n, const Tensors& x);
};
const std::vector<Form>& forms();
int form_named(std::string_view name);

Program draw_program(std::uint64_t seed, std::uint64_t number, const std::string& without);

/// Replays a program with other inputs; returns "" or a description of the fault. Adds to the count of
/// replays.
std::string check_program(const Program& p, std::uint64_t seed, std::uint64_t& replays);

std::string text_of(const Program& p);

}   // namespace tapedeck::replays
