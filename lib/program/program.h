// Program: what a function of tensors computed when it was recorded, as a list of nodes in the order in which
// they ran. Every value is defined by one node, an argument or a constant, and never changes.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/trace.h"
#include "kernels/elementwise/vjp.h"
#include "kernels/layout/strided_view.h"
#include "tapedeck/op.h"
#include "tapedeck/random_key.h"

namespace tapedeck::detail {
struct VariableCell;
}

namespace tapedeck::program {

/// A value's place in Program::values, or none.
using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;

struct Value {
  enum class From : std::uint8_t {
    node,       // an output of node `at`
    argument,   // argument `at`
    constant,   // `constant`: it was there before the recording, or made of numbers on the host
    part,       // the elements of `whole` from `first` on, under another shape
  };
  Spec spec;
  From from = From::node;
  std::int32_t at = -1;
  ValueId whole = kNoValue;
  std::int64_t first = 0;
  Tensor constant = {};
  bool uniform = false;   // set by find_passes: all elements of the constant have the same bits
};

/// What the nodes of a group have in common: a pass over n elements of f32 or f64.
struct NodePass {
  DType dtype;
  std::int64_t n;
  friend bool operator==(const NodePass&, const NodePass&) = default;
};

struct Node {
  enum class Kind : std::uint8_t {
    op,     // op(in) by its kernel; `map` is that kernel's, where it is elementwise
    map,    // `map` of in, without an op: a jvp
    pull,   // `vjp` of op. in: x..., y, dy, then for each bit of `adds` what is added to, or none where that
            // is an earlier gradient of this node, which is the same value. out: dx...
    pass,   // `loops` of a user's map, with `attrs` as what it closes over. in: operands, then as for pull
    select,        // the elements of in that `view` selects, by op
    add_product,   // out = the third of in + op of the first two: a matmul
    read,          // out: the value of `cell`
    store,         // in becomes the value of `cell`
    action,        // out = `action`(in), which may use variables: a step of an optimizer
  };
  Kind kind;
  const Op* op = nullptr;
  OwnedAttrs attrs = {};
  std::int32_t key = -1;   // of Program::keys: the key that attributes begin with, where it is no constant
  const kernels::MapKernel* map = nullptr;
  const kernels::VjpKernel* vjp = nullptr;
  unsigned adds = 0;
  std::vector<ValueId> in = {}, out = {};   // none: not read; not wanted
  /// Of in, where the node needs the shape of what it does not read; else empty.
  std::vector<Spec> in_specs = {};
  kernels::StridedView view = kernels::StridedView();
  // pass: the loops; the operands that broadcast to `shape`, which come first; see kernels::PassTensors
  const kernels::UserLoops* loops = nullptr;
  int inputs = 0;
  bool gradients = false;
  DType dtype = DType::f32;
  Shape shape = {};
  std::vector<kernels::Shift> shifts = {};
  std::int64_t directions = 1;
  std::shared_ptr<detail::VariableCell> cell = nullptr;
  Trace::Action action = nullptr;
  std::optional<NodePass> fused = {};   // set by find_passes where the node can be part of a group
};

/// A key of random numbers: that of an argument, or a part of another key.
struct DerivedKey {
  std::int32_t argument = -1;   // of the keys that the function is called with
  std::int32_t of = -1;         // key `part` of Program::keys[of]
  std::uint64_t part = 0;
};

struct Program {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<DerivedKey> keys;
  std::vector<ValueId> arguments;   // none where nothing reads it
  std::vector<ValueId> outputs;     // none where the function returned an undefined tensor

  Value& value(ValueId v) { return values[static_cast<std::size_t>(v)]; }
  const Value& value(ValueId v) const { return values[static_cast<std::size_t>(v)]; }
};

}   // namespace tapedeck::program
