// Shared by the models of oceans: cells with neighbours, as tensors or as vectors of a loop by hand, so that
// a formula is written once for both; and comparisons of the two.
#pragma once
#include <array>

#include "cases.h"
#include "tapedeck/simd/numbers.h"

namespace bench {

using Vector = xsimd::batch<double>;
inline constexpr auto kWidth = static_cast<std::int64_t>(Vector::size);
using Tensors = std::vector<td::Tensor>;

/// Axes of cells; cells are contiguous along y.
enum Axis { z, x, y };
/// A cell, or its offset from another cell.
using At = std::array<std::int64_t, 3>;
constexpr At along(Axis axis, std::int64_t n) {
  At at = {};
  at[axis] = n;
  return at;
}
constexpr At operator+(const At& a, const At& b) { return {a[z] + b[z], a[x] + b[x], a[y] + b[y]}; }

/// A box of cells. An input has extent 1 along an axis on which it does not depend, otherwise the extent of
/// the box plus a margin of neighbours on both sides.
struct Box {
  At cells;
  std::int64_t margin;

  td::Shape shape() const { return {cells[z], cells[x], cells[y]}; }
  /// The shape of an input that depends on these axes.
  td::Shape input(std::initializer_list<Axis> axes) const;
};
/// A box of about `cells` cells, eight times as wide as high.
Box box_of(std::int64_t cells, std::int64_t margin);

/// Inputs at all cells at once, as tensors.
class TensorCells {
 public:
  using Value = td::Tensor;
  TensorCells(const Box& box, Tensors inputs) : box_(box), inputs_(std::move(inputs)) {}

  /// An input at offset `at` from each cell.
  td::Tensor operator()(std::size_t input, const At& at = {}) const;

 private:
  Box box_;
  Tensors inputs_;
};

/// Inputs at a vector of cells along y.
class VectorCells {
 public:
  using Value = Vector;
  VectorCells(const Box& box, const Tensors& inputs);

  /// Moves to the cells from `first` on.
  void go(const At& first);
  Vector operator()(std::size_t input, const At& at = {}) const {
    const Input& i = inputs_[input];
    const double* const p = i.at + at[z] * i.stride[z] + at[x] * i.stride[x] + at[y] * i.stride[y];
    return i.stride[y] ? Vector::load_unaligned(p) : Vector(*p);
  }

 private:
  struct Input {
    const double *data, *at;
    At stride;
  };
  std::vector<Input> inputs_;
};

/// Calls f(first cell) for each vector of a row of cells; the last vector may overlap the previous one.
template <class F> void for_each_vector(std::int64_t cells, F f) {
  for (std::int64_t i = 0; i < cells; i += kWidth)
    f(std::min(i, cells - kWidth));
}

struct Model {
  std::string name;
  double at_least;   // the goal, as a fraction of the speed of the loop by hand
  Tensors x;
  std::function<Tensors(const Tensors&)> eager;
  /// Writes the results that `eager` returns to existing memory.
  std::function<void(std::span<double* const> y)> by_hand;
};
/// Times a model. Throws std::runtime_error if the loop by hand computes other values.
void race(const Model& m);
/// From now on, race writes inputs and results to x00.npy… and y00.npy… in this folder instead of timing.
void write_models_to(std::string folder);
/// run(name, cells) for each number of cells whose name, "model, n=cells", is chosen.
void at_all_sizes(const std::string& model, void (*run)(const std::string& name, std::int64_t cells));

}   // namespace bench
