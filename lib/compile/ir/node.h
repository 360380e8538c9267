// Node: one computation of a program, which reads accesses and defines values. Each kind of node is a struct.
#pragma once
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "compile/ir/access.h"
#include "core/trace.h"
#include "kernels/elementwise/vjp.h"
#include "kernels/layout/strided_view.h"
#include "tapedeck/op.h"
#include "tapedeck/ops/matmul.h"

namespace tapedeck::compiled {

/// out = op(in), by its kernel.
struct OpNode {
  const Op* op = nullptr;
  OwnedAttrs attrs = {};
  KeyId key = {};   // the key at the beginning of the attributes, if it is not a constant
  const kernels::MapKernel* map = nullptr;   // the loops of the kernel, if it is elementwise
  std::vector<Access> in = {};
  std::vector<ValueId> out = {};
  bool uses_variables = false;   // it runs programs that read and change variables
};

/// out = map(in): the jvp of an elementwise op, which is an elementwise kernel without an op.
struct JvpNode {
  const kernels::MapKernel* map = nullptr;
  std::vector<Access> in = {};
  ValueId out = {};
};

/// Gradients of an elementwise op.
struct VjpNode {
  /// value = before + the sum of the gradients with respect to the inputs in this bit mask, in order.
  struct Result {
    ValueId value;
    unsigned inputs = 0;
    Access before = {};   // reads nothing if the sum begins with the first gradient
  };
  const Op* op = nullptr;
  const kernels::VjpKernel* kernel = nullptr;
  std::vector<Access> in = {};   // x..., y, dy; operands that are not read have only a spec
  std::vector<Result> results = {};

  std::size_t inputs() const { return static_cast<std::size_t>(kernel->inputs); }
  const Access& dy() const { return in[inputs() + 1]; }
};

/// The loops of a user's map, or of its derivatives; see kernels::PassTensors.
struct UserMapNode {
  struct Result {
    ValueId value;        // none if the result is not wanted
    Access before = {};   // the result is added to it, if it reads a value
  };
  const kernels::UserLoops* loops = nullptr;
  OwnedAttrs closure = {};   // the captures of the user's function
  DType dtype = DType::f32;
  std::shared_ptr<const Shape> shape = {};
  int inputs = 0;   // number of leading operands, which broadcast to `shape`
  bool gradients = false;
  std::int64_t directions = 1;
  std::vector<kernels::Shift> shifts = {};
  std::vector<Access> in = {};
  std::vector<Result> results = {};
};

/// out = a copy of the elements of `in` that the view selects. `op` is the op that was called.
struct SelectNode {
  const Op* op = nullptr;
  Access in = {};
  std::shared_ptr<const kernels::StridedView> view = {};
  ValueId out = {};
};

/// out = before + a b, where a and b are matrices.
struct ProductSum {
  const Op* op = nullptr;   // the matrix product
  MatmulOptions transposed = {};
  std::vector<Access> in = {};   // a, b, before
  ValueId out = {};

  const Access& a() const { return in[0]; }
  const Access& b() const { return in[1]; }
  const Access& before() const { return in[2]; }
};

/// out = the value of a variable.
struct ReadNode {
  std::shared_ptr<detail::VariableCell> cell = {};
  ValueId out = {};
};
/// Assigns `in` to a variable.
struct StoreNode {
  std::shared_ptr<detail::VariableCell> cell = {};
  Access in = {};
};

/// out = action(in), where the action may read and change variables: a step of an optimizer, or the
/// derivative of an op whose rule reads numbers on the host.
struct ActionNode {
  const Op* op = nullptr;   // null for a step of an optimizer
  Trace::KeyedAction action = {};
  KeyId key = {};   // the key passed to the action, if it is not constant_key
  random::Key constant_key = {};
  std::vector<Access> in = {};
  std::vector<ValueId> out = {};
};

using Node = std::variant<OpNode, JvpNode, VjpNode, UserMapNode, SelectNode, ProductSum, ReadNode, StoreNode,
                          ActionNode>;

/// Calls read(access) for each operand of a node, whether it is read or not, and write(value) for each
/// result, whether it is wanted or not, in a fixed order.
template <class N, class Read, class Write>
void for_each_place(N& node, const Read& read, const Write& write) {
  std::visit(
      [&](auto& n) {
        if constexpr (requires { n.in.begin(); })
          for (auto& a : n.in)
            read(a);
        else if constexpr (requires { n.in; })
          read(n.in);
        if constexpr (requires { n.out.begin(); })
          for (auto& v : n.out)
            write(v);
        else if constexpr (requires { n.out; })
          write(n.out);
        if constexpr (requires { n.results; })
          for (auto& r : n.results)
            read(r.before), write(r.value);
      },
      node);
}
/// Calls f(access) for each operand that is read.
template <class F> void for_each_operand(const Node& node, const F& f) {
  for_each_place(
      node,
      [&](const Access& a) {
        if (a.reads()) f(a);
      },
      [](ValueId) {});
}
/// Calls f(value) for each value that the node defines.
template <class F> void for_each_result(const Node& node, const F& f) {
  for_each_place(
      node, [](const Access&) {},
      [&](ValueId v) {
        if (v) f(v);
      });
}

template <class T> const T* as(const Node& node) { return std::get_if<T>(&node); }

/// The name of a node for messages: "mul", "gradient of mul", "read w".
std::string name_of(const Node& node);

}   // namespace tapedeck::compiled
