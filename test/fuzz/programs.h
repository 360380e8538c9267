// Random programs: lists of steps, which each make tensors from those that were there before.
#pragma once
#include <map>

#include "calls.h"
#include "tapedeck/tapedeck.h"

namespace tapedeck::fuzz {

/// f32 and c64, f64 and c128, or each step as it says.
enum class Precision { narrow, mixed, wide };

/// The tensors of a program, in the order in which they were made. Steps know them by their numbers.
using Slots = std::vector<Tensor>;

/// Where a tensor that a function takes comes from.
struct Argument {
  int slot = -1;        // none: it is a constant
  bool whole = false;   // the slot's tensor itself; else the constant, moved a little by the slot's elements
};

struct Step {
  enum Kind {
    call,        // a public function
    rows,        // of slots[0], for gradients that are slices
    read,        // a variable
    assign,      // slots[0] to a variable
    branch,      // the body, if the mean of slots[0] is positive
    loop,        // the body, some times
    scan,        // the body, over the rows of slots[1]
    recompute,   // the body, as a function that is recomputed
    custom,      // the body, as a function with a custom gradient
    operation,   // the body, recorded as one operation
    through,     // grad_pass_through
    mapped,      // map of slots[0] and, in its shape, slots[1]
    gradient,    // the gradient of the body, by a tape of its own
    tangent,     // the tangent of the body, by an accumulator of its own
  };
  Kind kind = call;
  bool stopped = false;   // under StopRecording
  bool narrow = false;    // in programs of mixed precision
  std::shared_ptr<Function> wide_function, narrow_function;
  std::vector<Argument> arguments;   // one for each differentiable tensor of the function
  std::vector<int> slots;
  int variable = -1;
  int count = 0;                // of steps of a loop; which of several ways
  Tensor indices;               // of rows
  std::vector<Step> body;       // whose slots begin with all there are, and slots[] again
  std::vector<Tensor> values;   // what it made when it was drawn
  bool frozen = false;          // it gives that again: for reports of failures
};

struct Program {
  std::vector<Tensor> inputs, variables;             // their values, wide
  std::vector<bool> narrow_input, narrow_variable;   // in mixed precision
  std::vector<int> read_before;                      // the variables read before any tape begins
  std::vector<Step> steps;
  std::vector<int> targets;         // slots
  std::vector<Tensor> cotangents;   // of targets, wide
  std::vector<Tensor> directions;   // of inputs and variables, wide
  Precision precision = Precision::wide;
  int stop = 0;                 // a slot through which a gradient may be stopped
  bool large = false;           // some tensors have tens of thousands of elements
  bool assigns = false;         // a variable changes after it was read
  bool differentiable = true;   // no rule stands for another function's derivative
};

/// Whether no derivative goes through it.
bool is_cut(const Step& s);

/// What is made at places through which no derivative goes, in the order of execution.
struct Cuts {
  std::vector<Tensor> values;
  std::size_t next = 0;
  bool replayed = false;
};

/// Integers, bools and keys in the places of those that the calls of a program have.
struct Others {
  using Place = std::pair<const Step*, int>;   // the tensor or key of this number of a call
  std::map<Place, Tensor> tensors;
  std::map<Place, random::Key> keys;
};

/// One execution of a program: its variables, and what it does differently.
class Run {
 public:
  Run(const Program& p, Precision precision);

  /// The sources of derivatives: inputs, then variables.
  std::vector<Tensor> inputs;
  std::vector<Variable> variables;
  std::vector<Source> sources() const;

  double moved = 0;           // how far along the program's directions
  std::uint64_t shaken = 0;   // not 0: results are rounded as if they were f32; which way
  Cuts* cuts = nullptr;
  const Others* others = nullptr;
  int stop = -1;   // not -1: this slot has no derivative

  /// Reads what is read before any tape begins; runs all; returns the targets.
  void begin();
  std::vector<Tensor> run();
  Slots slots;

  void run_step(const Step& s, Slots& slots);
  /// The function of a call, as it is run.
  const Function& function_of(const Step& s) const;
  /// x rounded as in f32; `number` makes the rounding different from others.
  Tensor shake(const Tensor& x, std::size_t number) const;

 private:
  void run_body(const std::vector<Step>& body, Slots& slots);
  std::vector<Tensor> results(const Step& s, const Slots& slots);
  std::vector<Tensor> call(const Step& s, const Slots& slots);
  std::vector<Tensor> with_body(const Step& s, const Slots& slots);
  std::vector<Tensor> loops(const Step& s, const std::vector<Tensor>& x, const tapedeck::Function& f);
  std::vector<Tensor> customs(const std::vector<Tensor>& x, const tapedeck::Function& f);
  std::vector<Tensor> operation(const Step& s, const std::vector<Tensor>& x, const tapedeck::Function& f);
  Tensor cut_off(const Tensor& x);
  Tensor read(int variable) const;
  DType dtype_of(const Step& s, DType type) const;

  const Program& program_;
  Precision precision_;
};

/// x, cut or repeated, in this dtype and shape.
Tensor fit(const Tensor& x, const Spec& spec);

/// One of several functions of elements, by map.
std::vector<Tensor> mapped(int which, const Tensor& a, const Tensor& b);

/// Makes program `number`; a name: one with this function.
Program draw_program(std::uint64_t seed, std::uint64_t number, const std::string& function);
/// How often each function was drawn and used.
struct Uses {
  std::uint64_t drawn = 0, used = 0;
};
const std::map<std::string_view, Uses>& function_uses();

std::string text_of(const Program& p);
std::string text_of(const std::vector<double>& v);

}   // namespace tapedeck::fuzz
