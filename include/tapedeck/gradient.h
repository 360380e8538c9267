// Gradient: a derivative that may be none: what tapes and accumulators return. A dense tensor, IndexedSlices,
// or none.
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
/// Prints them, each on a new line.
TAPEDECK_EXPORT std::ostream& print(std::ostream& out, const Gradient* list, std::size_t n);
TAPEDECK_EXPORT std::string text_of(const Gradient& g);
}   // namespace detail

/// None, a dense tensor, or IndexedSlices. Copies share the memory. Where a tensor is expected, such as by an
/// op, it stands for dense().
class TAPEDECK_EXPORT Gradient {
 public:
  /// None: the target does not depend on the source.
  Gradient() = default;
  /// Dense; none for an undefined tensor.
  Gradient(Tensor dense) noexcept : dense_(std::move(dense)) {}
  /// The variable's current value.
  Gradient(const Variable& v);
  /// Sparse; checked where it is used.
  Gradient(IndexedSlices slices);
  /// None: `what`, a "gradient" or a "tangent", of a tensor of this spec or of a variable, for this reason.
  /// Messages say so; both texts are literals.
  static Gradient none(const char* what, const char* reason, const Spec& source, const Variable* variable);

  /// False for none.
  bool defined() const { return dense_.defined() || slices(); }
  /// Whether it is a tensor; false for slices and for none.
  bool is_dense() const { return dense_.defined(); }
  /// The slices; null if the gradient is dense or none.
  const IndexedSlices* slices() const { return other_ && !other_->reason ? &other_->slices : nullptr; }
  /// Bytes of the dense tensor, or of the values of the slices; 0 for none.
  std::int64_t nbytes() const {
    return dense_.defined() ? dense_.nbytes() : slices() ? slices()->values.nbytes() : 0;
  }

  /// The gradient as a tensor of the source's shape; slices are converted by to_dense. Throws GradientError
  /// for none, which is not taken for zeros.
  Tensor dense() const&;
  Tensor dense() &&;
  operator Tensor() const& { return dense(); }
  operator Tensor() && { return std::move(*this).dense(); }
  /// The dense tensor without conversion; undefined for slices and none.
  const Tensor& tensor() const { return dense_; }

  /// Those of dense(); they throw GradientError for none.
  Spec spec() const { return dense().spec(); }
  DType dtype() const { return spec().dtype; }
  Shape shape() const { return spec().shape; }
  std::int64_t size() const { return dense().size(); }
  template <class T = double> T item() const { return dense().item<T>(); }
  template <class T = double> T at(std::initializer_list<std::int64_t> index) const {
    return dense().at<T>(index);
  }
  template <class T = double> std::vector<T> to_vector() const { return dense().to_vector<T>(); }

 private:
  // Slices; or why it is none, and the gradient of what.
  struct Other {
    IndexedSlices slices = {};
    const char* what = nullptr;     // of none
    const char* reason = nullptr;   // null: slices
    Spec source = {};
    std::string variable = {};   // its name, which is never empty; empty: a tensor
    std::uint64_t id = 0;        // of the variable
  };
  friend std::ostream& detail::print(std::ostream& out, const Gradient* list, std::size_t n);
  const char* reason() const;
  bool is_tangent() const;
  std::string source() const;

  Tensor dense_;
  std::shared_ptr<const Other> other_;
};

/// As of the tensor or of the slices; "none: " and why for none. Of a Gradient alone, since a Variable
/// converts to one, but is printed as a tensor.
template <std::same_as<Gradient> G> std::string to_string(const G& g) { return detail::text_of(g); }
template <std::same_as<Gradient> G> std::ostream& operator<<(std::ostream& out, const G& g) {
  return detail::print(out, &g, 1);
}
/// One after another, each on a new line.
TAPEDECK_EXPORT std::ostream& operator<<(std::ostream& out, const std::vector<Gradient>& list);
template <std::size_t n> std::ostream& operator<<(std::ostream& out, const std::array<Gradient, n>& list) {
  return detail::print(out, list.data(), n);
}

/// The sum of gradients of one tensor, such as those of several batches. Nones are skipped: if all are none
/// the sum is none, and a single remaining term is returned unchanged. If all terms are slices they are
/// concatenated (i32 indices are promoted to i64 if both occur); if any term is dense, the sum is dense.
/// Throws ShapeError or DTypeError if the terms differ in shape or dtype.
TAPEDECK_EXPORT Gradient aggregate(std::vector<Gradient> terms);

}   // namespace tapedeck
