// Operand: the parameter type of elementwise ops.
#pragma once
#include <concepts>

#include "tapedeck/tensor.h"

namespace tapedeck {

class Gradient;
class Variable;
class Operand;

namespace detail {

/// Returns op(x, y), in x's memory if no other handle, tape or observer can notice. The caller assigns the
/// result to x.
TAPEDECK_EXPORT Tensor updated(Tensor& x, const Operand& y, Tensor (*op)(Operand, Operand));

}   // namespace detail

/// A tensor; a temporary tensor, whose memory the result may reuse; a variable, whose value is read; a
/// gradient, which stands for its dense(); or a number, which has the dtype of the tensor operands.
/// Exceptions: combined with integer or bool tensors, a floating-point number has default_dtype(), and
/// combined with bool tensors, an integer has i64. Use it only as a parameter type: it refers to the object
/// it was constructed from. It has two words, so it is passed in registers.
class TAPEDECK_EXPORT Operand {
 public:
  Operand(const Tensor& t) noexcept : bits_(reinterpret_cast<std::uintptr_t>(&t)) {}
  Operand(Tensor&& t) noexcept : bits_(reinterpret_cast<std::uintptr_t>(&t) | 1) {}
  /// Omit the second argument: it stores the value read until the end of the full expression.
  Operand(const Variable& v, Tensor&& read = Tensor());
  Operand(const Gradient& g, Tensor&& read = Tensor());
  /// A number; integers and floating-point numbers are promoted differently.
  template <std::floating_point T> Operand(T number) noexcept : number_(static_cast<double>(number)) {}
  template <std::integral T> Operand(T number) noexcept
      : bits_(kInteger), number_(static_cast<double>(number)) {}

  /// The tensor, or null for a number; the number, and whether its type is integral; whether the tensor is a
  /// temporary, whose memory may be reused.
  const Tensor* tensor() const {
    return reinterpret_cast<const Tensor*>(bits_ & ~std::uintptr_t{kFlags});   // null: a number
  }
  double number() const { return number_; }
  bool integer() const { return bits_ & kInteger; }
  bool temporary() const { return bits_ & 1; }

 private:
  static constexpr std::uintptr_t kInteger = 2, kFlags = 3;
  std::uintptr_t bits_ = 0;   // address of the tensor; bit 0: a temporary; bit 1: an integer
  double number_ = 0;
};

}   // namespace tapedeck
