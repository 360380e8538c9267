// Shared by the models of oceans: cells with neighbours, as tensors or as vectors of a loop by hand, so that
// a formula is written once for both; and races between the two.
#pragma once
#include <array>

#include "report.h"
#include "tapedeck/simd/numbers.h"

namespace bench {

using Vector = xsimd::batch<double>;
inline constexpr auto kWidth = static_cast<std::int64_t>(Vector::size);
using Tensors = std::vector<td::Tensor>;

/// Axes of cells; those along y lie side by side.
enum Axis { z, x, y };
/// A cell, beside another one.
using At = std::array<std::int64_t, 3>;
constexpr At along(Axis axis, std::int64_t n) {
  At at = {};
  at[axis] = n;
  return at;
}
constexpr At operator+(const At& a, const At& b) { return {a[z] + b[z], a[x] + b[x], a[y] + b[y]}; }

/// A box of cells. An input has an extent of 1 where it does not depend on an axis, and else those of the box
/// and of a margin of neighbours on both sides.
struct Box {
  At cells;
  std::int64_t margin;

  td::Shape shape() const { return {cells[z], cells[x], cells[y]}; }
  /// The shape of an input that depends on these axes.
  td::Shape input(std::initializer_list<Axis> axes) const;
};
/// A box of about that many cells, eight times as wide as high.
Box box_of(std::int64_t cells, std::int64_t margin);

/// Inputs at all cells at once.
class TensorCells {
 public:
  using Value = td::Tensor;
  TensorCells(const Box& box, Tensors inputs) : box_(box), inputs_(std::move(inputs)) {}

  /// An input of the cells that lie `at` from each cell.
  td::Tensor operator()(std::size_t input, const At& at = {}) const;

 private:
  Box box_;
  Tensors inputs_;
};

/// Inputs at some cells along y.
class VectorCells {
 public:
  using Value = Vector;
  VectorCells(const Box& box, const Tensors& inputs);

  /// The cells of a row from there on.
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

/// All rows of a box, from vector to vector; the last of a row may overlap the one before.
template <class F> void for_each_vector(std::int64_t cells, F f) {
  for (std::int64_t i = 0; i < cells; i += kWidth)
    f(std::min(i, cells - kWidth));
}

struct Model {
  std::string name;
  double at_least;   // of the speed of the loop by hand
  Tensors x;
  std::function<Tensors(const Tensors&)> eager;
  /// In memory of results, which are as many and as large as eager's.
  std::function<void(std::span<double* const> y)> by_hand;
};
/// Throws std::runtime_error where the loop by hand gives other values.
void race(const Model& m);
/// From here on, race writes inputs and results to x00.npy… and y00.npy… in this folder, and times nothing.
void write_models_to(std::string folder);
/// run(name, cells) for each number of cells whose name, "model, n=cells", is chosen.
void at_all_sizes(const std::string& model, void (*run)(const std::string& name, std::int64_t cells));

}   // namespace bench
