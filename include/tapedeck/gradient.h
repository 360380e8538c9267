// Gradient: the result of tapes and accumulators, which is a dense tensor, IndexedSlices, or none.
#pragma once
#include <array>
#include <concepts>
#include <memory>
#include <vector>

#include "tapedeck/indexed_slices.h"

namespace tapedeck {

class Variable;
class Gradient;

namespace detail {
/// Prints n gradients, each on a new line.
TAPEDECK_EXPORT std::ostream& print(std::ostream& out, const Gradient* list, std::size_t n);
TAPEDECK_EXPORT std::string text_of(const Gradient& g);
}   // namespace detail

/// A gradient or tangent: a dense tensor, IndexedSlices, or none. Copies share the memory. Converts to
/// dense() where a tensor is expected, such as by an op.
class TAPEDECK_EXPORT Gradient {
 public:
  /// Constructs none: the target does not depend on the source.
  Gradient() = default;
  /// Constructs a dense gradient, or none from an undefined tensor.
  Gradient(Tensor dense) noexcept : dense_(std::move(dense)) {}
  /// Constructs a dense gradient from the variable's current value.
  Gradient(const Variable& v);
  /// Constructs a sparse gradient. The slices are checked where they are used.
  Gradient(IndexedSlices slices);
  /// Constructs none with a description for error messages: `what` is "gradient", "Jacobian" or "tangent",
  /// `reason` says why it is none, and the source is a tensor of this spec or, if not null, a variable. Both
  /// texts must be literals.
  static Gradient none(const char* what, const char* reason, const Spec& source, const Variable* variable);

  /// False for none.
  bool defined() const { return dense_.defined() || slices(); }
  /// Whether it is a dense tensor; false for slices and for none.
  bool is_dense() const { return dense_.defined(); }
  /// The slices; null if the gradient is dense or none.
  const IndexedSlices* slices() const { return other_ && !other_->reason ? &other_->slices : nullptr; }
  /// Bytes of the dense tensor, or of the values of the slices; 0 for none.
  std::int64_t nbytes() const {
    return dense_.defined() ? dense_.nbytes() : slices() ? slices()->values.nbytes() : 0;
  }

  /// The gradient as a tensor of the source's shape; slices are converted by to_dense. Throws GradientError
  /// for none, which does not count as zeros.
  Tensor dense() const&;
  Tensor dense() &&;
  operator Tensor() const& { return dense(); }
  operator Tensor() && { return std::move(*this).dense(); }
  /// The dense tensor without conversion; undefined for slices and none.
  const Tensor& tensor() const { return dense_; }

  /// The properties and elements of dense(). All throw GradientError for none.
  Spec spec() const;
  DType dtype() const { return spec().dtype; }
  const Shape& shape() const&;
  Shape shape() && { return static_cast<const Gradient&>(*this).shape(); }
  int ndim() const { return shape().ndim(); }
  std::int64_t size() const { return shape().size(); }
  template <class T = double> T item() const { return dense().item<T>(); }
  template <class T = double> T at(std::initializer_list<std::int64_t> index) const {
    return dense().at<T>(index);
  }
  template <class T = double> std::vector<T> to_vector() const { return dense().to_vector<T>(); }

 private:
  // The slices; or the reason for none, and the source.
  struct Other {
    IndexedSlices slices = {};
    const char* what = nullptr;     // for none only: "gradient", "Jacobian" or "tangent"
    const char* reason = nullptr;   // null: slices
    Spec source = {};
    std::string variable = {};   // the variable's name, which is never empty; empty if the source is a tensor
    std::uint64_t id = 0;        // the variable's id
  };
  friend std::ostream& detail::print(std::ostream& out, const Gradient* list, std::size_t n);
  const char* reason() const;
  bool is_tangent() const;
  std::string source() const;

  Tensor dense_;
  std::shared_ptr<const Other> other_;
};

/// The text of the tensor or of the slices; for none, "none: " and the reason. Restricted to Gradient itself,
/// since a Variable converts to Gradient but prints as a tensor.
template <std::same_as<Gradient> G> std::string to_string(const G& g) { return detail::text_of(g); }
template <std::same_as<Gradient> G> std::ostream& operator<<(std::ostream& out, const G& g) {
  return detail::print(out, &g, 1);
}
/// Prints gradients one after another, each on a new line.
TAPEDECK_EXPORT std::ostream& operator<<(std::ostream& out, const std::vector<Gradient>& list);
template <std::size_t n> std::ostream& operator<<(std::ostream& out, const std::array<Gradient, n>& list) {
  return detail::print(out, list.data(), n);
}

/// The sum of gradients of one tensor, such as the gradients of several batches. Terms that are none are
/// skipped: if all are none, the sum is none, and a single remaining term is returned unchanged. If all terms
/// are slices they are concatenated (i32 indices are promoted to i64 if both occur); if any term is dense,
/// the sum is dense. Throws ShapeError or DTypeError if the terms differ in shape or dtype.
TAPEDECK_EXPORT Gradient aggregate(std::vector<Gradient> terms);

}   // namespace tapedeck
