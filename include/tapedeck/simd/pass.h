// The innermost loops of elementwise passes: their arguments, and how they read and write them. Such a loop
// may be compiled in a user's program, for another instruction set than the library that runs it; therefore
// the types here do not depend on the width of vectors, and rows are whole groups of 64 bytes.
#pragma once
#include <cstdint>

namespace tapedeck::kernels {

/// An operand of a row. If it is broadcast along the row, p points to a group of copies of its element.
template <class T> struct Stream {
  const T* p;
  std::int64_t mask;   // -1, or 0 if it is broadcast: the element at i is p[i & mask]
};

/// How a result of a row is stored.
enum class Put : std::uint8_t {
  nothing,   // it is not requested
  store,     // it is written to a row of memory
  add,       // it is added to a row of memory
  sum,       // the sum of its elements is added to one element of memory
};

/// The row of n elements, a multiple of 64 bytes, over which a loop runs. If put[k] is Put::nothing, out[k]
/// may be null.
template <class T, int operands, int results> struct PassRow {
  Stream<T> x[operands];
  T* out[results];
  Put put[results];
  std::int64_t n;
};

/// Loads the elements of x at i as a vector V.
template <class V, class T> V load(const Stream<T>& x, std::int64_t i) {
  return V::load_unaligned(x.p + (i & x.mask));
}

/// Stores v, the elements at i of a result. With Put::sum they are added to `sum`, for put_sum.
template <class V, class T> void put(Put how, T* out, std::int64_t i, const V& v, V& sum) {
  switch (how) {
    case Put::nothing:
      return;
    case Put::store:
      return v.store_unaligned(out + i);
    case Put::add:
      return (V::load_unaligned(out + i) + v).store_unaligned(out + i);
    case Put::sum:
      sum += v;
      return;
  }
}
/// Ends a row whose vectors put() has added to `sum`.
template <class V, class T> void put_sum(Put how, T* out, const V& sum) {
  if (how == Put::sum) *out += hadd(sum);
}

/// The shift of an operand along its last axis: its element at j is the tensor's element at j - by, or `fill`
/// if the tensor has none.
struct Shift {
  std::int64_t by = 0;
  double fill = 0;
};

/// The maximum numbers of inputs and results of a user's map.
inline constexpr int kMapInputs = 16, kMapResults = 8;

/// The row of the loops of a user's function f. Operands: the inputs, followed in a vjp by the cotangents of
/// the results, and in a jvp by the tangents of the inputs.
template <class T> using UserRow = PassRow<T, 2 * kMapInputs, kMapInputs>;
template <class T> using UserLoop = void (*)(const void* f, const UserRow<T>& row);
struct UserLoops {
  UserLoop<float> f32;
  UserLoop<double> f64;
};

}   // namespace tapedeck::kernels
