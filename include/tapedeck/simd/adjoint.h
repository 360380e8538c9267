// Adjoint numbers: values that record on a tape how they were computed, for derivatives in reverse mode.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "tapedeck/simd/numbers.h"

namespace tapedeck {
namespace detail {

/// The cotangent of a number on which no result depends. For single numbers it is -0, which is distinct from
/// a sum that is 0.
template <class V> V nothing() { return constant<V>(kIsSingle<V> ? -0.0 : 0.0); }
/// Whether a cotangent contributes nothing to operands, not even to higher derivatives.
template <class T> bool is_nothing(const Scalar<T>& x) { return x.value == 0 && std::signbit(x.value); }
template <class T, class A> bool is_nothing(const xsimd::batch<T, A>&) { return false; }
template <class V, int N, class Tag> bool is_nothing(const DualNumber<V, N, Tag>& x) {
  return !x.depends && is_nothing(x.value);
}
template <class V, class Tag> bool is_nothing(const AdjointNumber<V, Tag>& x) {
  return x.constant() && is_nothing(x.value);
}

/// cotangent · partial, and 0 where the cotangent is 0, even if the partial is infinite.
template <class V> V flow(const V& cotangent, const V& partial) {
  if constexpr (kIsBatch<V>) {
    const V zero(typename V::value_type(0));
    return cotangent * xsimd::select(cotangent == zero, zero, partial);
  } else {
    return cotangent * partial;
  }
}
template <class V> void add_flow(V& sum, const V& cotangent, const V& partial) {
  if constexpr (kIsActive<V>)
    sum = is_nothing(sum) ? flow(cotangent, partial) : V(sum + flow(cotangent, partial));
  else
    sum = sum + flow(cotangent, partial);
}

}   // namespace detail

/// The computation of adjoint numbers, in order: for each number its cotangent, and the partials by which it
/// contributes to the cotangents of its operands. Memory grows in chunks, which are not moved and are reused.
template <class V> class NumberTape {
 public:
  struct Node {
    V cotangent, partial[2];
    V* of[2];   // the operands' cotangents; null: none
  };

  NumberTape() = default;
  ~NumberTape() {
    if (more_.size() > spare().size() && more_.size() <= kSpare) spare() = std::move(more_);
  }
  NumberTape(const NumberTape&) = delete;
  NumberTape& operator=(const NumberTape&) = delete;

  /// Discards all numbers.
  void restart() { use(0); }
  /// Adds a number, whose cotangent is initially nothing().
  Node& add() {
    if (next_ == end_) [[unlikely]]
      grow();
    next_->cotangent = detail::nothing<V>();
    return *next_++;
  }
  /// Resets all cotangents to nothing().
  void clear() {
    visit([](Node& node) { node.cotangent = detail::nothing<V>(); });
  }
  /// Propagates the cotangents to the operands, from the last number to the first. Numbers on which no result
  /// depends contribute nothing, even if their partials are infinite; otherwise 0 times infinity is NaN, as
  /// for tangents. Batches, which record both sides of a choice, contribute nothing where the cotangent is 0.
  void sweep() {
    visit([](const Node& node) { pull_back(node); });
  }

 private:
  // The first chunk is part of the tape, and small enough for the stack; the sizes of later chunks double.
  static constexpr std::size_t kFirst = sizeof(Node) > 256 ? 16 : 4096 / sizeof(Node), kLargest = 1 << 14;
  static std::size_t size(std::size_t c) { return std::min(kFirst << c, std::max(kFirst, kLargest)); }

  using Chunks = std::vector<std::unique_ptr<Node[]>>;
  // Chunks of a destroyed tape of this thread, unless it was very long: new memory costs more than a sweep.
  static constexpr std::size_t kSpare = 12;
  static Chunks& spare() {
    static thread_local Chunks chunks;
    return chunks;
  }

  Node* nodes(std::size_t c) { return c == 0 ? first_.nodes : more_[c - 1].get(); }
  void use(std::size_t c) {
    chunk_ = c;
    next_ = nodes(c);
    end_ = next_ + size(c);
  }
  [[gnu::noinline, gnu::cold]] void grow() {
    if (more_.empty()) more_ = std::exchange(spare(), {});
    if (chunk_ == more_.size()) more_.push_back(std::make_unique_for_overwrite<Node[]>(size(chunk_ + 1)));
    use(chunk_ + 1);
  }
  // Calls f for the numbers from the last to the first.
  template <class F> void visit(const F& f) {
    Node* end = next_;
    for (std::size_t c = chunk_ + 1; c-- > 0;) {
      for (Node *const begin = nodes(c), *node = end; node != begin;)
        f(*--node);
      if (c > 0) end = nodes(c - 1) + size(c - 1);
    }
  }
  static void pull_back(const Node& node) {
    if (detail::is_nothing(node.cotangent)) return;
    detail::add_flow(*node.of[0], node.cotangent, node.partial[0]);
    if (node.of[1]) detail::add_flow(*node.of[1], node.cotangent, node.partial[1]);
  }

  // Numbers are written before they are read, so the chunk is left uninitialized.
  union First {
    First() {}
    Node nodes[kFirst];
  } first_;
  Chunks more_;
  std::size_t chunk_ = 0;
  Node *next_ = first_.nodes, *end_ = first_.nodes + kFirst;
};

/// A value and the address of its cotangent: on the tape or, for an input, at an address of the caller. A
/// constant has no cotangent. Tag is as in DualNumber.
template <class V, class Tag> class AdjointNumber {
 public:
  using Value = V;
  using value_type = typename V::value_type;
  using Condition = typename detail::ConditionOf<V>::Type;
  using Tape = NumberTape<V>;

  AdjointNumber() = default;
  /// A constant.
  template <class C>
  requires detail::kIsConstant<C, AdjointNumber> AdjointNumber(const C& c) : value(detail::constant<V>(c)) {}
  /// An input.
  AdjointNumber(const V& v, Tape& tape, V& cotangent) : value(v), tape_(&tape), cotangent_(&cotangent) {}

  /// Whether it is a constant.
  bool constant() const { return !cotangent_; }
  /// Adds to the cotangent of this number.
  void seed(const V& cotangent) const {
    if (cotangent_) *cotangent_ = *cotangent_ + cotangent;
  }

  /// As in DualNumber.
  template <class Partial> AdjointNumber unary(const V& y, const Partial& partial) const {
    if (!cotangent_) return AdjointNumber(y);
    return noted(y, detail::partial_at(partial, y, value));
  }
  template <class PartialA, class PartialB> AdjointNumber binary(const AdjointNumber& b, const V& y,
                                                                 const PartialA& partial_a,
                                                                 const PartialB& partial_b) const {
    if (!b.cotangent_) {
      if (!cotangent_) return AdjointNumber(y);
      return noted(y, detail::partial_at(partial_a, y, value, b.value));
    }
    const V in_b = detail::partial_at(partial_b, y, value, b.value);
    if (!cotangent_) return b.noted(y, in_b);
    return {y, *tape_, cotangent_, detail::partial_at(partial_a, y, value, b.value), b.cotangent_, in_b};
  }
  AdjointNumber chosen(const V& y, const Condition& condition, const AdjointNumber& b) const {
    if constexpr (std::same_as<Condition, bool>) {
      AdjointNumber r = condition ? *this : b;
      r.value = y;
      return r;
    } else {
      const V one = detail::constant<V>(1), zero = detail::constant<V>(0);
      return binary(
          b, y, [&](const auto&, const auto&) { return detail::chosen(condition, one, zero); },
          [&](const auto&, const auto&) { return detail::chosen(condition, zero, one); });
    }
  }

  V value;

 private:
  // Returns y, whose derivative with respect to *this is p. A single number with p = 1 shares the cotangent
  // of *this.
  AdjointNumber noted(const V& y, const V& p) const {
    if constexpr (detail::kIsScalar<V>)
      if (p == 1) return {y, *tape_, *cotangent_};
    return {y, *tape_, cotangent_, p};
  }
  AdjointNumber(const V& y, Tape& tape, V* a, const V& partial_a, V* b = nullptr,
                const V& partial_b = detail::constant<V>(0))
      : value(y), tape_(&tape) {
    auto& node = tape.add();
    node.of[0] = a;
    node.of[1] = b;
    node.partial[0] = partial_a;
    if (b) node.partial[1] = partial_b;
    cotangent_ = &node.cotangent;
  }

  Tape* tape_ = nullptr;
  V* cotangent_ = nullptr;
};

/// An adjoint number for a batch of elements.
template <class T, class A> using Adjoint = AdjointNumber<xsimd::batch<T, A>>;
template <class T, class A> using AdjointTape = NumberTape<xsimd::batch<T, A>>;

}   // namespace tapedeck
