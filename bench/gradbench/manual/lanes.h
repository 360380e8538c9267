// Sixteen numbers in registers, for sixteen sums at once. If sums may be reordered, compilers vectorize loops
// over plain arrays within one sum, whose terms are far apart, instead of across sums, which are contiguous.
#pragma once

namespace gradbench {

class Sixteen {
 public:
  Sixteen() = default;
  explicit Sixteen(const double* from)
      : a_(at(from)), b_(at(from + 4)), c_(at(from + 8)), d_(at(from + 12)) {}

  void add_product(double by, const double* row) {
    a_ += by * at(row);
    b_ += by * at(row + 4);
    c_ += by * at(row + 8);
    d_ += by * at(row + 12);
  }
  void add_square(const Sixteen& x) {
    a_ += x.a_ * x.a_;
    b_ += x.b_ * x.b_;
    c_ += x.c_ * x.c_;
    d_ += x.d_ * x.d_;
  }
  void store(double* to) const {
    at(to) = a_;
    at(to + 4) = b_;
    at(to + 8) = c_;
    at(to + 12) = d_;
  }

 private:
  using Four = double __attribute__((vector_size(32)));
  using Unaligned = double __attribute__((vector_size(32), aligned(8), may_alias));
  static const Unaligned& at(const double* p) { return *reinterpret_cast<const Unaligned*>(p); }
  static Unaligned& at(double* p) { return *reinterpret_cast<Unaligned*>(p); }

  Four a_ = {}, b_ = {}, c_ = {}, d_ = {};
};

}   // namespace gradbench
