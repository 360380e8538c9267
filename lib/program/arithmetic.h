// Arithmetic of groups: a run of additions and the like, whose last result stays in vector registers.
#pragma once
#include <utility>

#include "kernels/simd/simd.h"
#include "program/group_code.h"

namespace tapedeck::program {

/// A block of V vectors of T. Each operation is a case of its own, so that compilers contract no two of them
/// and results have the bits of the eager loops.
template <class T, std::size_t V> struct HeldBlock {
  using Vector = kernels::Batch<T>;
  using Block = Vector[V];
  using Index = std::make_index_sequence<V>;
  static constexpr auto kWidth = static_cast<std::size_t>(kernels::kWidth<T>);

  template <Form form>
  [[gnu::always_inline]] static Vector take(const Vector& held, const T* p, std::size_t k) {
    if constexpr (form == Form::held)
      return held;
    else
      return Vector::load_unaligned(form == Form::moving ? p + k * kWidth : p);
  }
  template <Arithmetic op> [[gnu::always_inline]] static Vector compute(const Vector& a, const Vector& b) {
    if constexpr (op == Arithmetic::add) return a + b;
    if constexpr (op == Arithmetic::sub) return a - b;
    if constexpr (op == Arithmetic::mul) return a * b;
    if constexpr (op == Arithmetic::div) return a / b;
    if constexpr (op == Arithmetic::neg) return -a;
  }
  template <Arithmetic op, Form fa, Form fb, std::size_t... k>
  [[gnu::always_inline]] static void apply(Block& r, const T* a, const T* b, std::index_sequence<k...>) {
    ((r[k] = compute<op>(take<fa>(r[k], a, k), take<fb>(r[k], b, k))), ...);
  }
  template <std::size_t... k>
  [[gnu::always_inline]] static void store(const Block& r, T* y, std::index_sequence<k...>) {
    (r[k].store_unaligned(y + k * kWidth), ...);
  }

  /// Runs the arithmetic at [i, end) until another instruction comes, which is returned.
  static const GroupInstruction* run(const GroupInstruction* i, const GroupInstruction* end,
                                     const Entry* entries, T* const* table) {
    Block r = {};
    for (; i != end && i->code != kNoArithmetic; ++i) {
      const Entry* entry = entries + i->first;
      const T *a = table[entry[0]], *b = table[entry[i->operands - 1]];
      switch (i->code) {
// clang-format off
#define TAPEDECK_FORM(op, fa, fb)                                \
  case arithmetic_code(Arithmetic::op, Form::fa, Form::fb):      \
    apply<Arithmetic::op, Form::fa, Form::fb>(r, a, b, Index()); \
    break;
#define TAPEDECK_FORMS(op)          \
  TAPEDECK_FORM(op, held, held)     \
  TAPEDECK_FORM(op, held, moving)   \
  TAPEDECK_FORM(op, held, single)   \
  TAPEDECK_FORM(op, moving, held)   \
  TAPEDECK_FORM(op, moving, moving) \
  TAPEDECK_FORM(op, moving, single) \
  TAPEDECK_FORM(op, single, held) TAPEDECK_FORM(op, single, moving) TAPEDECK_FORM(op, single, single)
        TAPEDECK_FORMS(add)
        TAPEDECK_FORMS(sub)
        TAPEDECK_FORMS(mul)
        TAPEDECK_FORMS(div)
        TAPEDECK_FORM(neg, held, held)
        TAPEDECK_FORM(neg, moving, moving)
        TAPEDECK_FORM(neg, single, single)
#undef TAPEDECK_FORMS
#undef TAPEDECK_FORM
        // clang-format on
      }
      if (i->stores) store(r, table[entry[i->operands]], Index());
    }
    return i;
  }
};

}   // namespace tapedeck::program
