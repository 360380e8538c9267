// A step of the turbulent kinetic energy in an ocean, in f64: vertical mixing and dissipation, implicitly,
// which is a tridiagonal system for each column; horizontal diffusion; and advection with the superbee
// limiter, as pyhpc-benchmarks computes them. Compared with a loop by hand, row by row.
#include "ocean.h"

namespace bench {
namespace {

// Indices of inputs. velocity, mask_at, size and distance are the first of three each, along z, x and y.
constexpr std::size_t energy = 0,
                      mask = 1,   // of cells: 0 on land
    velocity = 2, mask_at = 5, viscosity = 8, mixing_length = 9, forcing = 10,
                      tendency = 11,   // of the previous step
    left_as_is = 12,                   // the new energy below the bottom
    bottom = 13,                       // the level of the lowest cell with water
    of_surface = 14,                   // forcing
    level = 15,
                      is_top = 16,   // 1 at the highest level
    is_mixed = 17,                   // 1 where a cell mixes with the one above it
    size = 18, distance = 21, cosine = 24, cosine_of_face = 25;
constexpr double kDissipation = 0.7, kDiffusivity = 2000, kAhead = 0.1;

td::Tensor at_least(const td::Tensor& a, const td::Tensor& b) { return td::greater_equal(a, b); }
auto at_least(const Vector& a, const Vector& b) { return a >= b; }
template <class V> V constant(double v) {
  if constexpr (std::is_same_v<V, td::Tensor>)
    return td::full({}, v, td::DType::f64);
  else
    return V(v);
}

template <class C> auto mixed_upwards(const C& c, const At& at) {
  const At above = at + along(z, 1);
  return c(is_mixed, at) * 0.5 * (c(viscosity, at) + c(viscosity, above)) / c(size + z, above);
}

/// below x[k - 1] + here x[k] + above x[k + 1] = right.
template <class V> struct Equation { V below, here, above, right; };
template <class C> auto equation_of(const C& c) {
  using V = typename C::Value;
  const V up = mixed_upwards(c, {}), down = mixed_upwards(c, along(z, -1)), height = c(distance + z);
  const V lost = kDissipation * sqrt(td::maximum(c(energy), 0)) / c(mixing_length);
  const V zero = constant<V>(0), one = constant<V>(1);
  const auto water = at_least(c(level), c(bottom)), lowest = at_least(c(bottom), c(level));
  const V here = 1 + td::where(lowest, up, up + down) / height + lost;
  const V right = c(energy) + c(forcing) + c(is_top) * c(of_surface) / height;
  return Equation<V>{td::where(water, td::where(lowest, zero, -down / height), zero),
                     td::where(water, here, one), td::where(water, -up / height, zero),
                     td::where(water, right, zero)};
}

/// max(0, min(1, 2 r), min(2, r)).
template <class V> V limiter(const V& r) {
  return td::maximum(td::maximum(td::minimum(2 * r, 1), td::minimum(r, 2)), 0);
}
template <class C> auto length(const C& c, Axis axis, const At& at) {
  using V = typename C::Value;
  if (axis == z) return V(c(distance + z, at));
  return V(c(cosine, at) * c(size + axis, at));
}
template <class C> auto carried(const C& c, Axis axis, const At& face) {
  using V = typename C::Value;
  const At before = face + along(axis, -1), next = face + along(axis, 1);
  const auto rise = [&](const At& at) {
    const At other = at + along(axis, 1);
    return V((c(energy, other) - c(energy, at)) * (c(mask, at) * c(mask, other)));
  };
  V speed = c(velocity + axis, face);
  if (axis == y) speed = speed * c(cosine_of_face, face);
  const V here = rise(face), tiny = constant<V>(1e-20);
  const V share = limiter<V>(td::where(at_least(speed, constant<V>(0)), rise(before), rise(next)) /
                             td::where(at_least(abs(here), tiny), here, tiny));
  const V courant = abs(speed / length(c, axis, face));
  return V(0.5 * speed * (c(energy, next) + c(energy, face)) -
           0.5 * abs(speed) * ((1 - share) + courant * share) * here);
}
template <class C> auto diffused(const C& c, Axis axis, const At& face) {
  using V = typename C::Value;
  const V flow = kDiffusivity * (c(energy, face + along(axis, 1)) - c(energy, face)) *
                 c(mask_at + axis, face) / c(distance + axis, face);
  if (axis == x) return V(flow / c(cosine, face));
  return V(flow * c(cosine_of_face, face));
}
template <class C, class F> auto gain(const C& c, Axis axis, F flow) {
  return (flow(c, axis, At{}) - flow(c, axis, along(axis, -1))) / length(c, axis, At{});
}

/// Computes the new energy and its tendency from the solution of the equations.
template <class C, class Put> void finish(const C& c, const typename C::Value& solution, Put put) {
  using V = typename C::Value;
  const auto by_diffusion = [](const auto&... a) { return diffused(a...); };
  const auto by_flow = [](const auto&... a) { return carried(a...); };
  const V mixed = td::where(at_least(c(level), c(bottom)), solution, c(left_as_is));
  const V kept = td::where(at_least(c(is_top), constant<V>(1)), V(td::maximum(mixed, 0)), mixed);
  const V spread = kept + c(mask) * (gain(c, x, by_diffusion) + gain(c, y, by_diffusion));
  const V change = c(mask) * (-gain(c, x, by_flow) - gain(c, y, by_flow)) - gain(c, z, by_flow);
  put(spread + ((1.5 + kAhead) * change - (0.5 + kAhead) * c(tendency)));
  put(change);
}

Tensors step(const Box& box, const Tensors& inputs) {
  const TensorCells c(box, inputs);
  const auto e = equation_of(c);
  const Tensors below = td::unstack(e.below), here = td::unstack(e.here), above = td::unstack(e.above),
                right = td::unstack(e.right);
  const std::size_t n = here.size();
  Tensors factor = {above[0] / here[0]}, y = {right[0] / here[0]};
  for (std::size_t k = 1; k < n; ++k) {
    const td::Tensor rest = here[k] - below[k] * factor[k - 1];
    factor.push_back(above[k] / rest);
    y.push_back((right[k] - below[k] * y[k - 1]) / rest);
  }
  for (std::size_t k = n - 1; k-- > 0;)
    y[k] = y[k] - factor[k] * y[k + 1];
  Tensors results;
  finish(c, td::stack(y), [&](const td::Tensor& t) { results.push_back(t); });
  return results;
}

void by_hand(const Box& box, const Tensors& inputs, std::span<double* const> results) {
  VectorCells c(box, inputs);
  const At& n = box.cells;
  std::vector<double> factors(static_cast<std::size_t>(n[z] * n[y])), solutions(factors.size());
  for (std::int64_t j = 0; j < n[x]; ++j) {
    for (std::int64_t i = 0; i < n[z]; ++i)
      for_each_vector(n[y], [&](std::int64_t k) {
        c.go({i, j, k});
        const auto e = equation_of(c);
        double *const factor = &factors[static_cast<std::size_t>(i * n[y] + k)],
                      *const solution = &solutions[static_cast<std::size_t>(i * n[y] + k)];
        Vector rest = e.here, right = e.right;
        if (i > 0) {
          rest -= e.below * Vector::load_unaligned(factor - n[y]);
          right -= e.below * Vector::load_unaligned(solution - n[y]);
        }
        (e.above / rest).store_unaligned(factor);
        (right / rest).store_unaligned(solution);
      });
    for (std::int64_t i = n[z]; i-- > 0;) {
      double* const row = &solutions[static_cast<std::size_t>(i * n[y])];
      const double* const factor = &factors[static_cast<std::size_t>(i * n[y])];
      if (i + 1 < n[z])
        for (std::int64_t k = 0; k < n[y]; ++k)
          row[k] -= factor[k] * row[k + n[y]];
      for_each_vector(n[y], [&](std::int64_t k) {
        c.go({i, j, k});
        std::size_t result = 0;
        finish(c, Vector::load_unaligned(row + k),
               [&](const Vector& v) { v.store_unaligned(results[result++] + (i * n[x] + j) * n[y] + k); });
      });
    }
  }
}

Tensors inputs_of(const Box& box) {
  std::uint64_t seed = 100;
  const auto make = [&](std::initializer_list<Axis> axes, double low, double high) {
    return numbers(box.input(axes), ++seed, low, high, td::DType::f64);
  };
  const auto field = [&](double low, double high) { return make({z, x, y}, low, high); };
  const auto water = [&] { return td::astype(td::less(field(0, 1), 0.8), td::DType::f64); };
  const auto as_f64 = [](const td::Tensor& t) { return td::astype(t, td::DType::f64); };
  const auto height = static_cast<double>(box.cells[z]), margin = static_cast<double>(box.margin);
  const td::Tensor levels =
      td::reshape(td::arange(-margin, height + margin, 1, td::DType::f64), box.input({z}));
  return {field(-0.1, 1),
          water(),
          field(-1, 1),
          field(-1, 1),
          field(-1, 1),
          water(),
          water(),
          water(),
          field(0, 1),
          field(0.5, 1.5),
          field(-1, 1),
          field(-1, 1),
          field(-1, 1),
          td::floor(make({x, y}, 0, height)),
          make({x, y}, -1, 1),
          levels,
          as_f64(td::equal(levels, height - 1)),
          as_f64(td::logical_and(td::greater_equal(levels, 0.0), td::less(levels, height - 1))),
          make({z}, 5, 15),
          make({x}, 5e3, 15e3),
          make({y}, 5e3, 15e3),
          make({z}, 5, 15),
          make({x}, 5e3, 15e3),
          make({y}, 5e3, 15e3),
          make({y}, 0.5, 1),
          make({y}, 0.5, 1)};
}

void run(const std::string& name, std::int64_t cells) {
  const Box box = box_of(cells, 2);
  const Tensors inputs = inputs_of(box);
  race({name, 0.6, inputs, [&](const Tensors& all) { return step(box, all); },
        [&](std::span<double* const> results) { by_hand(box, inputs, results); }});
}

}   // namespace

void run_turbulent_kinetic_energy() { at_all_sizes("turbulent kinetic energy", run); }

}   // namespace bench
