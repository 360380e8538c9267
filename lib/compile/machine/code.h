// Code: operations on vectors, in static single-assignment form, as machine code is made of them. A node is
// named by its number; its operands are earlier nodes.
#pragma once
#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include "tapedeck/simd/lane_trace.h"

namespace tapedeck::compiled {

using detail::kNoValue, detail::LaneOp, detail::LaneValue;

inline constexpr std::int64_t kLine = 64;   // bytes, to whose multiples memory and functions are aligned
constexpr std::int64_t lines(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

/// The number of operands of an operation.
constexpr int operands_of(LaneOp op) {
  switch (op) {
    case LaneOp::constant:
    case LaneOp::single:
    case LaneOp::stream:
      return 0;
    case LaneOp::sqrt:
    case LaneOp::round:
    case LaneOp::shift_left:
    case LaneOp::shift_right:
    case LaneOp::store:
      return 1;
    case LaneOp::fma:
    case LaneOp::select:
    case LaneOp::rarely:
      return 3;
    default:
      return 2;
  }
}
/// Whether the node only names an operand of the code.
constexpr bool is_leaf(LaneOp op) { return op <= LaneOp::stream; }

struct CodeNode {
  LaneOp op;
  std::uint16_t region = 0;   // not 0: computed only if the mask of the node `rarely` with this region is set
  LaneValue x[3] = {kNoValue, kNoValue, kNoValue};
  std::uint64_t imm = 0;

  int operands() const { return operands_of(op); }
  friend bool operator==(const CodeNode&, const CodeNode&) = default;
};

/// All lanes have lane_bytes bytes: 4 or 8.
struct Code {
  int lane_bytes;
  int most_vectors;   // that it computes at a time: 4; 1 or 2 where an operand has fewer; 1 in long groups
  std::vector<CodeNode> nodes;
  friend bool operator==(const Code&, const Code&) = default;
};

/// The vectors that machine code computes with: 16 registers with AVX2 and FMA, 32 with AVX-512.
struct VectorSet {
  int bytes, registers;   // of a vector, 16 to 64; the number of vector registers

  /// The shortest vectors that hold so many bytes, or the longest ones.
  constexpr VectorSet shortest_for(std::int64_t n) const {
    return {n <= 16 ? 16 : n <= 32 ? 32 : bytes, registers};
  }
  /// The bytes that are computed for n bytes of elements: those of one vector, or whole lines.
  constexpr std::int64_t length_for(std::int64_t n) const { return n <= bytes ? bytes : lines(n); }
  friend bool operator==(const VectorSet&, const VectorSet&) = default;
};
inline constexpr VectorSet kAvx2{32, 16};
inline constexpr VectorSet kAvx512{64, 32};   // F, DQ and VL
/// The longest vectors of the instruction set that the library is compiled for.
#if defined(__AVX512DQ__) && defined(__AVX512VL__)
inline constexpr VectorSet kVectors = kAvx512;
#else
inline constexpr VectorSet kVectors = kAvx2;
#endif

/// A hash of h and v.
constexpr std::uint64_t mixed(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}
constexpr std::uint64_t hash_of(const CodeNode& n) {
  std::uint64_t h = static_cast<std::uint64_t>(n.op) << 16 | n.region;
  h = mixed(h, static_cast<std::uint64_t>(n.x[0]) << 32 | n.x[1]);
  return mixed(mixed(h, n.x[2]), n.imm);
}

/// Builds a Code. The same operation on the same operands is one node, operations on constants are computed,
/// and x·1, x·(-1), x/1 and a choice between equals are simplified: nothing else, since x + 0 is not x where
/// x is -0. The sign and the payload of NaN may change.
class CodeBuilder {
 public:
  explicit CodeBuilder(int lane_bytes, int most_vectors = 4);

  LaneValue add(LaneOp op, LaneValue a = kNoValue, LaneValue b = kNoValue, LaneValue c = kNoValue,
                std::uint64_t imm = 0);
  LaneValue constant(std::uint64_t bits) { return add(LaneOp::constant, kNoValue, kNoValue, kNoValue, bits); }
  /// The bits of a number in a lane.
  std::uint64_t bits_of(double x) const;
  LaneValue leaf(LaneOp op, std::uint64_t number) { return add(op, kNoValue, kNoValue, kNoValue, number); }
  void store(LaneValue x, std::uint64_t result) { add(LaneOp::store, x, kNoValue, kNoValue, result); }

  /// Calls f, in which functions are traced into this code. Returns whether all of them can be traced. If
  /// not, the results of f are not to be used.
  template <class F> bool trace(const F& f) {
    {
      const Scope scope(*this);
      f();
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return !untraceable_;
  }

  std::size_t size() const { return code_.nodes.size(); }
  /// The length of the longest chain of operations that ends with v.
  std::size_t depth(LaneValue v) const { return depths_[v]; }
  /// The code, without nodes that no result needs.
  Code finish() const;

 private:
  friend LaneValue detail::trace_lanes(LaneOp, LaneValue, LaneValue, LaneValue, std::uint64_t);
  friend void detail::cannot_be_traced();
  friend void detail::begin_rarely();
  friend LaneValue detail::end_rarely(LaneValue, LaneValue, LaneValue);
  struct Scope {
    explicit Scope(CodeBuilder& b);
    ~Scope();
    CodeBuilder* outer;
  };

  LaneValue simplified(LaneOp op, LaneValue a, LaneValue b, LaneValue c, std::uint64_t imm);
  LaneValue* slot_of(const CodeNode& n);
  void grow();

  Code code_;
  std::vector<std::uint32_t> depths_;   // by node
  std::vector<LaneValue> table_;        // hash table of nodes
  std::uint16_t region_ = 0, regions_ = 0;
  int nesting_ = 0;   // of regions
  bool untraceable_ = false;
  std::exception_ptr error_;   // thrown while f ran: kernels of xsimd are noexcept
};

}   // namespace tapedeck::compiled
