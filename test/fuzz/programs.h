// Random programs: lists of steps, each of which computes tensors from earlier ones.
#pragma once
#include <map>

#include "calls.h"
#include "tapedeck/tapedeck.h"

namespace tapedeck::fuzz {

/// narrow: f32 and c64; wide: f64 and c128; mixed: Step::narrow decides for each step.
enum class Precision { narrow, mixed, wide };

/// The tensors of a program, in the order of their creation. Steps refer to them by index.
using Slots = std::vector<Tensor>;

/// The source of a tensor argument of a function.
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
  int count = 0;                // number of steps of a loop; index of a variant
  Tensor indices;               // of rows
  std::vector<Step> body;       // its slots begin with all earlier ones, then slots[] again
  std::vector<Tensor> values;   // the results of the step when it was drawn
  bool frozen = false;          // it returns `values` again: for reports of failures
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

/// Whether no derivative passes through the step.
bool is_cut(const Step& s);

/// The results of steps through which no derivative passes, in the order of execution.
struct Cuts {
  std::vector<Tensor> values;
  std::size_t next = 0;
  bool replayed = false;
};

/// Replacements for the integers, bools and keys of the calls of a program.
struct Others {
  using Place = std::pair<const Step*, int>;   // the tensor or key of this number of a call
  std::map<Place, Tensor> tensors;
  std::map<Place, random::Key> keys;
};

/// One execution of a program: its variables, and its variations.
class Run {
 public:
  Run(const Program& p, Precision precision);

  /// The sources of derivatives: inputs, then variables.
  std::vector<Tensor> inputs;
  std::vector<Variable> variables;
  std::vector<Source> sources() const;

  double moved = 0;           // distance along the program's directions
  std::uint64_t shaken = 0;   // not 0: results are rounded as if they were f32; which way
  Cuts* cuts = nullptr;
  const Others* others = nullptr;
  int stop = -1;   // not -1: this slot has no derivative

  /// begin: reads the variables that are read before any tape begins. run: runs all steps; returns the
  /// targets.
  void begin();
  std::vector<Tensor> run();
  Slots slots;

  void run_step(const Step& s, Slots& slots);
  /// The function of a call, in the precision of this run.
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

/// x, truncated or repeated, in this dtype and shape.
Tensor fit(const Tensor& x, const Spec& spec);

/// One of several elementwise functions, computed by map.
std::vector<Tensor> mapped(int which, const Tensor& a, const Tensor& b);

/// Draws program `number`; if `function` is not empty, a program that uses this function.
Program draw_program(std::uint64_t seed, std::uint64_t number, const std::string& function);
/// How often each function was drawn and used.
struct Uses {
  std::uint64_t drawn = 0, used = 0;
};
const std::map<std::string_view, Uses>& function_uses();

std::string text_of(const Program& p);
std::string text_of(const std::vector<double>& v);

}   // namespace tapedeck::fuzz
