// In: operations, as functions that are traced append them. Out: code without duplicates.
#include <algorithm>
#include <bit>
#include <utility>

#include "compile/machine/lane.h"

namespace tapedeck {
namespace compiled {
namespace {

thread_local CodeBuilder* tracing = nullptr;

bool commutes(LaneOp op) {
  switch (op) {
    case LaneOp::add:
    case LaneOp::mul:
    case LaneOp::fma:   // in its first two operands
    case LaneOp::bit_and:
    case LaneOp::bit_or:
    case LaneOp::bit_xor:
    case LaneOp::int_add:
      return true;
    default:
      return false;
  }
}
bool has_result(LaneOp op) { return op != LaneOp::store; }

std::uint64_t fold(int lane_bytes, LaneOp op, std::uint64_t imm, std::uint64_t a, std::uint64_t b,
                   std::uint64_t c) {
  const auto narrow = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  return lane_bytes == 4 ? lane_result<float>(op, imm, narrow(a), narrow(b), narrow(c))
                         : lane_result<double>(op, imm, a, b, c);
}

}   // namespace

CodeBuilder::Scope::Scope(CodeBuilder& b) : outer(std::exchange(tracing, &b)) {
  b.untraceable_ = false;
  b.region_ = 0;
  b.nesting_ = 0;
}
CodeBuilder::Scope::~Scope() { tracing = outer; }

CodeBuilder::CodeBuilder(int lane_bytes, int most_vectors)
    : code_{lane_bytes, most_vectors, {}}, table_(256, kNoValue) {}

std::uint64_t CodeBuilder::bits_of(double x) const {
  return code_.lane_bytes == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(x))
                               : std::bit_cast<std::uint64_t>(x);
}

LaneValue CodeBuilder::add(LaneOp op, LaneValue a, LaneValue b, LaneValue c, std::uint64_t imm) {
  if (commutes(op) && b < a) std::swap(a, b);
  if (const LaneValue known = simplified(op, a, b, c, imm); known != kNoValue) return known;
  CodeNode n{op, 0, {a, b, c}, imm};
  if (has_result(op)) {
    // What is computed in any case serves in a region, too, but not the other way round.
    if (const LaneValue known = *slot_of(n); known != kNoValue) return known;
    if (!is_leaf(op)) n.region = region_;
    if (const LaneValue known = *slot_of(n); known != kNoValue) return known;
  }
  if (2 * code_.nodes.size() >= table_.size()) grow();
  const auto number = static_cast<LaneValue>(code_.nodes.size());
  if (has_result(op)) *slot_of(n) = number;
  std::uint32_t depth = 0;
  for (int k = 0; k < n.operands(); ++k)
    depth = std::max(depth, depths_[n.x[k]]);
  depths_.push_back(depth + !is_leaf(op));
  code_.nodes.push_back(n);
  return number;
}

// An earlier node with the result of the operation, or a constant.
LaneValue CodeBuilder::simplified(LaneOp op, LaneValue a, LaneValue b, LaneValue c, std::uint64_t imm) {
  const int operands = operands_of(op);
  if (operands == 0 || op == LaneOp::store || op == LaneOp::rarely) return kNoValue;
  const auto value = [&](LaneValue v) { return v == kNoValue ? 0 : code_.nodes[v].imm; };
  const auto is_constant = [&](LaneValue v) {
    return v != kNoValue && code_.nodes[v].op == LaneOp::constant;
  };
  const auto is = [&](LaneValue v, double x) { return is_constant(v) && value(v) == bits_of(x); };
  if (is_constant(a) && (operands < 2 || is_constant(b)) && (operands < 3 || is_constant(c)))
    return constant(fold(code_.lane_bytes, op, imm, value(a), value(b), value(c)));
  if (op == LaneOp::select && a == b) return a;
  if (op == LaneOp::div && is(b, 1)) return a;
  if (op != LaneOp::mul) return kNoValue;
  if (is(a, 1)) return b;
  if (is(b, 1)) return a;
  if (is(a, -1)) return add(LaneOp::bit_xor, b, constant(bits_of(-0.0)));
  if (is(b, -1)) return add(LaneOp::bit_xor, a, constant(bits_of(-0.0)));
  return kNoValue;
}

LaneValue* CodeBuilder::slot_of(const CodeNode& n) {
  std::size_t at = hash_of(n) & (table_.size() - 1);
  while (table_[at] != kNoValue && !(code_.nodes[table_[at]] == n))
    at = (at + 1) & (table_.size() - 1);
  return &table_[at];
}
void CodeBuilder::grow() {
  table_.assign(4 * table_.size(), kNoValue);
  for (LaneValue v = 0; v < code_.nodes.size(); ++v)
    if (has_result(code_.nodes[v].op)) *slot_of(code_.nodes[v]) = v;
}

Code CodeBuilder::finish() const {
  std::vector<LaneValue> to(code_.nodes.size(), kNoValue);   // kNoValue: not needed
  for (std::size_t v = to.size(); v-- > 0;) {
    const CodeNode& n = code_.nodes[v];
    if (n.op == LaneOp::store) to[v] = 0;
    if (to[v] == kNoValue) continue;
    for (int k = 0; k < n.operands(); ++k)
      to[n.x[k]] = 0;
  }
  Code code{code_.lane_bytes, code_.most_vectors, {}};
  for (std::size_t v = 0; v < to.size(); ++v) {
    if (to[v] == kNoValue) continue;
    CodeNode n = code_.nodes[v];
    for (int k = 0; k < n.operands(); ++k)
      n.x[k] = to[n.x[k]];
    to[v] = static_cast<LaneValue>(code.nodes.size());
    code.nodes.push_back(n);
  }
  return code;
}

}   // namespace compiled

namespace detail {

using compiled::tracing;

LaneValue trace_lanes(LaneOp op, LaneValue a, LaneValue b, LaneValue c, std::uint64_t imm) {
  if (tracing->error_) return kNoValue;
  try {
    return tracing->add(op, a, b, c, imm);
  } catch (...) {
    tracing->error_ = std::current_exception();
    return kNoValue;
  }
}
void cannot_be_traced() { tracing->untraceable_ = true; }

// A region within a region is part of it: rare code returns the usual value in other lanes.
void begin_rarely() {
  if (tracing->nesting_++ > 0) return;
  tracing->region_ = ++tracing->regions_;
  if (tracing->region_ == 0) cannot_be_traced();   // there are no more numbers
}
LaneValue end_rarely(LaneValue mask, LaneValue usual, LaneValue rare) {
  if (--tracing->nesting_ > 0) return rare;
  const std::uint16_t region = std::exchange(tracing->region_, std::uint16_t(0));
  return trace_lanes(LaneOp::rarely, usual, rare, mask, region);
}

}   // namespace detail
}   // namespace tapedeck
