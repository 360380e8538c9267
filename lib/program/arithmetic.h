// Arithmetic of groups: a run of additions and the like, whose last result stays in vector registers.
#pragma once
#include <utility>

#include "kernels/simd/simd.h"
#include "program/group_code.h"

namespace tapedeck {

/// A block of V vectors of T. Each operation is a case of its own, so that compilers contract no two of them
/// and results have the bits of the eager loops.
template <class T, std::size_t V> class Held {
 public:
  using Vector = kernels::Batch<T>;

  /// Runs the arithmetic at [i, end) until another instruction comes, which is returned.
  const GroupInstruction* run(const GroupInstruction* i, const GroupInstruction* end, const Entry* entries,
                              T* const* table) {
    for (; i != end && i->arithmetic != Arithmetic::none; ++i) {
      const Entry* entry = entries + i->first;
      const T *a = table[entry[0]], *b = table[entry[i->operands - 1]];
      switch (code(i->arithmetic, i->a, i->b)) {
#define TAPEDECK_FORM(op, fa, fb)                    \
  case code(Arithmetic::op, Form::fa, Form::fb):     \
    apply<Arithmetic::op, Form::fa, Form::fb>(a, b); \
    break;
#define TAPEDECK_FORMS(op)                                                                            \
  TAPEDECK_FORM(op, held, held)                                                                       \
  TAPEDECK_FORM(op, held, moving)                                                                     \
  TAPEDECK_FORM(op, held, single)                                                                     \
  TAPEDECK_FORM(op, moving, held) TAPEDECK_FORM(op, moving, moving) TAPEDECK_FORM(op, moving, single) \
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
      }
      if (i->stores) store(table[entry[i->operands]]);
    }
    return i;
  }

 private:
  using Index = std::make_index_sequence<V>;
  static constexpr auto kWidth = static_cast<std::size_t>(kernels::kWidth<T>);

  static constexpr int code(Arithmetic op, Form a, Form b) {
    return static_cast<int>(op) * 9 + static_cast<int>(a) * 3 + static_cast<int>(b);
  }
  template <Arithmetic op> static Vector compute(const Vector& a, const Vector& b) {
    if constexpr (op == Arithmetic::add) return a + b;
    if constexpr (op == Arithmetic::sub) return a - b;
    if constexpr (op == Arithmetic::mul) return a * b;
    if constexpr (op == Arithmetic::div) return a / b;
    if constexpr (op == Arithmetic::neg) return -a;
  }
  template <Form form> Vector take(const T* p, std::size_t k) const {
    return form == Form::held ? r_[k] : Vector::load_unaligned(form == Form::moving ? p + k * kWidth : p);
  }
  template <Arithmetic op, Form fa, Form fb> [[gnu::always_inline]] void apply(const T* a, const T* b) {
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      ((r_[k] = compute<op>(take<fa>(a, k), take<fb>(b, k))), ...);
    }
    (Index());
  }
  [[gnu::always_inline]] void store(T* y) const {
    [&]<std::size_t... k>(std::index_sequence<k...>) { (r_[k].store_unaligned(y + k * kWidth), ...); }
    (Index());
  }

  Vector r_[V];
};

}   // namespace tapedeck
