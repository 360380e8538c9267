// Mixing along surfaces of equal density in an ocean, in f64: slopes of these surfaces at the faces of cells,
// and the diffusivities that follow from them (Griffies et al. 1998, J. Phys. Oceanogr. 28), as
// pyhpc-benchmarks computes them. Compared with a loop by hand over all cells.
#include "ocean.h"

namespace bench {
namespace {

// Indices of inputs. mask_at, size and distance are the first of three each, along z, x and y.
constexpr std::size_t temperature = 0, salinity = 1, diffusivity = 2,
                      mask = 3,   // of cells: 0 on land
    mask_at = 4,                  // of the faces between a cell and the next
    depth = 7, size = 8,          // of cells
    distance = 11,                // from a cell's centre to the next
    cosine = 14,                  // of the latitude
    cosine_of_face = 15, kInputs = 16;
// Further inputs of MixingTensors: the expansion and contraction of each cell, then the gradients of
// temperature and of salinity along z, x and y.
constexpr std::size_t expansion = kInputs, contraction = kInputs + 1, gradient = kInputs + 2;
constexpr std::size_t kResults = 19;
// Further inputs of MixingVectors.
constexpr std::size_t inverse_distance = kInputs, inverse_cosine = kInputs + 3;

template <class V> V expansion_of(const V& t, const V& land, const V& depth_of_cell) {
  return land * (-(1e-5 * (t - 9.85) + 1.67e-4 * (1 + 1.1e-8 * 9.81 * 1024 * depth_of_cell)) * 1024);
}
template <class V> V contraction_of(const V& land) { return land * (0.78e-3 * 1024); }

struct MixingTensors : TensorCells {
  MixingTensors(const Box& box, const Tensors& inputs) : TensorCells(box, with_derived(inputs)) {}

  td::Tensor change(const At& cell, Axis axis, const At& face) const {
    return (*this)(expansion, cell) * (*this)(gradient_of(temperature, axis), face) +
           (*this)(contraction, cell) * (*this)(gradient_of(salinity, axis), face);
  }

 private:
  static std::size_t gradient_of(std::size_t tracer, Axis axis) { return gradient + 3 * tracer + axis; }
  static td::Tensor part(const td::Tensor& t, Axis axis, std::int64_t from) {
    td::Shape begin = {0, 0, 0}, extents = t.shape();
    if (extents[axis] > 1) begin.set(axis, from), extents.set(axis, extents[axis] - 1);
    return td::slice(t, begin, extents);
  }
  static Tensors with_derived(const Tensors& in) {
    Tensors all = in;
    all.push_back(expansion_of(in[temperature], in[mask], in[depth]));
    all.push_back(contraction_of(in[mask]));
    for (const std::size_t tracer : {temperature, salinity})
      for (const Axis axis : {z, x, y}) {
        const td::Tensor d = in[distance + axis], along_axis = axis == x ? d * in[cosine] : d;
        all.push_back(part(in[mask_at + axis], axis, 0) *
                      (part(in[tracer], axis, 1) - part(in[tracer], axis, 0)) / part(along_axis, axis, 0));
      }
    return all;
  }
};

/// Multiplies by the inverses of distances, which are computed once per call.
struct MixingVectors : VectorCells {
  explicit MixingVectors(const Box& box, const Tensors& inputs) : VectorCells(box, inputs) {}

  Vector change(const At& cell, Axis axis, const At& face) const {
    const MixingVectors& c = *this;
    const At next = face + along(axis, 1);
    Vector by = c(mask_at + axis, face) * c(inverse_distance + axis, face);
    if (axis == x) by *= c(inverse_cosine, face);
    return expansion_of(c(temperature, cell), c(mask, cell), c(depth, cell)) *
               ((c(temperature, next) - c(temperature, face)) * by) +
           contraction_of(c(mask, cell)) * ((c(salinity, next) - c(salinity, face)) * by);
  }

  static Tensors with_inverses(Tensors in) {
    for (const Axis axis : {z, x, y})
      in.push_back(1 / in[distance + axis]);
    in.push_back(1 / in[cosine]);
    return in;
  }
};

// The factor by which a steep slope of a surface is reduced, and the slope, from changes across and up.
template <class V> V taper(const V& slope) { return 0.5 * (1 + td::tanh((1e-3 - abs(slope)) / 1e-3)); }
template <class V> V slope_of(const V& across, const V& up) { return -across / (td::minimum(up, 0) - 1e-20); }

/// Results at the faces across an axis: tapered slopes towards the four faces above and below, then the
/// diffusivity.
template <class C, class Put> void mix_across(const C& c, Axis axis, Put put) {
  using V = typename C::Value;
  const At next = along(axis, 1), below = along(z, -1);
  const V mean =
      0.25 * (c(diffusivity) + c(diffusivity, below) + c(diffusivity, next) + c(diffusivity, next + below));
  V sum;
  for (const std::int64_t face : {-1, 0})
    for (const std::int64_t side : {0, 1}) {
      const At cell = along(axis, side);
      const V slope = slope_of<V>(c.change(cell, axis, {}), c.change(cell, z, cell + along(z, face))),
              kept = taper(slope);
      const V part = c(distance + z, along(z, face)) * c(mask_at + axis) * td::maximum(mean * kept, 50);
      sum = face < 0 && side == 0 ? part : sum + part;
      put(kept * slope * c(mask_at + axis));
    }
  put(sum / (4 * c(size + z)));
}

/// Results at the upper faces: tapered slopes towards the four faces across an axis. Returns the axis's part
/// of the diffusivity upwards.
template <class C, class Put> auto mix_upwards(const C& c, Axis axis, Put put) {
  using V = typename C::Value;
  V sum;
  for (const std::int64_t above : {0, 1}) {
    const At cell = along(z, above);
    const V up = c.change(cell, z, {});
    for (const std::int64_t side : {-1, 0}) {
      const At face = cell + along(axis, side);
      const V slope = slope_of<V>(c.change(cell, axis, face), up), kept = taper(slope);
      V breadth = c(distance + axis, along(axis, side));
      if (axis == y) breadth = breadth * c(cosine_of_face, along(axis, side));
      const V part = breadth * c(diffusivity) * kept * slope * slope * c(mask_at);
      sum = above == 0 && side < 0 ? part : sum + part;
      put(kept * slope * c(mask_at));
    }
  }
  return sum;
}
/// Calls `put` for each result.
template <class C, class Put> void mix(const C& c, Put put) {
  mix_across(c, x, put);
  mix_across(c, y, put);
  const auto of_x = mix_upwards(c, x, put), of_y = mix_upwards(c, y, put);
  put(of_x / (4 * c(size + x)) + of_y / (4 * c(size + y) * c(cosine)));
}

Tensors inputs_of(const Box& box) {
  std::uint64_t seed = 0;
  const auto make = [&](std::initializer_list<Axis> axes, double low, double high) {
    return numbers(box.input(axes), ++seed, low, high, td::DType::f64);
  };
  const auto water = [&] { return td::astype(td::less(make({z, x, y}, 0, 1), 0.8), td::DType::f64); };
  const td::Tensor level =
      td::reshape(td::arange(0, box.cells[z] + 2 * box.margin, 1, td::DType::f64), box.input({z}));
  return {10 + 0.1 * level + make({z, x, y}, 0, 0.3),
          make({z, x, y}, 34, 34.1),
          make({z, x, y}, 500, 1500),
          water(),
          water(),
          water(),
          water(),
          make({z}, 0, 4000),
          make({z}, 50, 150),
          make({x}, 50e3, 150e3),
          make({y}, 50e3, 150e3),
          make({z}, 50, 150),
          make({x}, 50e3, 150e3),
          make({y}, 50e3, 150e3),
          make({y}, 0.5, 1),
          make({y}, 0.5, 1)};
}

void by_hand(const Box& box, const Tensors& inputs, std::span<double* const> results) {
  const Tensors all = MixingVectors::with_inverses(inputs);
  MixingVectors c(box, all);
  const At& n = box.cells;
  for (std::int64_t i = 0; i < n[z]; ++i)
    for (std::int64_t j = 0; j < n[x]; ++j)
      for_each_vector(n[y], [&](std::int64_t k) {
        c.go({i, j, k});
        std::array<Vector, kResults> all_results;   // stored last, so that results share loads
        std::size_t result = 0;
        mix(c, [&](const Vector& v) { all_results[result++] = v; });
        for (std::size_t r = 0; r < kResults; ++r)
          all_results[r].store_unaligned(results[r] + (i * n[x] + j) * n[y] + k);
      });
}

void run(const std::string& name, std::int64_t cells) {
  const Box box = box_of(cells, 1);
  const Tensors inputs = inputs_of(box);
  race({name, 0.6, inputs,
        [&](const Tensors& all) {
          Tensors results;
          mix(MixingTensors(box, all), [&](const td::Tensor& t) { results.push_back(t); });
          return results;
        },
        [&](std::span<double* const> results) { by_hand(box, inputs, results); }});
}

}   // namespace

void run_isoneutral_mixing() { at_all_sizes("isoneutral mixing", run); }

}   // namespace bench
