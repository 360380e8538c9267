// SmallNode: a node of few elements as one call on pointers, for which the kernel's tensors, attributes and
// checks would take longer than the computation.
#pragma once
#include <optional>
#include <variant>

#include "compile/ir/program.h"
#include "kernels/elementwise/decision.h"
#include "kernels/elementwise/vjp.h"

namespace tapedeck::compiled {

/// The addresses of the operands and results of a node, in the order of for_each_place.
struct Places {
  const std::byte* x[kernels::kMaxOperands];
  std::byte* y[2];
};

/// y = a b, or before + a b.
template <class T> struct SmallProduct {
  MatmulOptions transposed;
  bool add;
  std::int32_t m, n, k;
  void run(const Places& at) const;
};

/// y = f(x...), element by element. Bit i of `singles`: operand i has one element.
template <class T> struct SmallMap {
  kernels::MapLoop<T> loop;
  std::int32_t operands, n;
  unsigned singles;
  void run(const Places& at) const;
};

/// y = x0 + x1 for i64, as an index is counted. Bit i of `singles`: operand i has one element.
struct SmallCount {
  std::int32_t n;
  unsigned singles;
  void run(const Places& at) const;
};

/// y = a comparison of x0 and x1, or a logical op of bools, element by element. Bit i of `singles`: operand i
/// has one element. A single operand is both.
struct SmallDecision {
  kernels::DecisionLoop loop;
  std::int32_t operands, n;
  unsigned singles;
  void run(const Places& at) const;
};

/// The gradients of an elementwise op with respect to inputs of the shape of dy.
template <class T> struct SmallVjp {
  kernels::VjpLoop<T> loop;
  std::int32_t inputs, n, results;
  unsigned read, sums;   // bit i: operand i is read; bit k: result k is added to its `before`
  kernels::Put put[kernels::kFusedInputs];
  std::uint8_t result[kernels::kFusedInputs];   // by input: the result to which its gradient belongs
  void run(const Places& at) const;
};

/// A rearrangement: copies or adds elements of operands, and zeros, to fixed positions of y.
template <class T> struct SmallParts {
  enum class Do : std::uint8_t { copy, add, clear };
  struct Run {
    Do what;
    std::uint8_t operand;
    std::uint16_t from, to, n;
  };
  std::vector<Run> runs;
  void run(const Places& at) const;
};

class SmallNode {
 public:
  /// The small form of a node; none if the node has many elements, or is of a kind that has no small form.
  static std::optional<SmallNode> of(const Program& p, const Node& node);

  void run() const { run_(*this); }
  Places at = {};

 private:
  using Call =
      std::variant<SmallProduct<float>, SmallProduct<double>, SmallMap<float>, SmallMap<double>, SmallCount,
                   SmallDecision, SmallVjp<float>, SmallVjp<double>, SmallParts<float>, SmallParts<double>>;
  template <class C> explicit SmallNode(C call)
      : call_(std::move(call)), run_([](const SmallNode& s) { std::get_if<C>(&s.call_)->run(s.at); }) {}
  Call call_;
  void (*run_)(const SmallNode&);   // of the kind of call_
};

}   // namespace tapedeck::compiled
