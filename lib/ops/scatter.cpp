// Tensors put together by index tensors. In: a tensor, positions and updates, or parts with their places. Out: one tensor, or its parts.
#include "base/format.h"
#include "kernels/copy.h"
#include "kernels/gather_scatter.h"
#include "ops/positions.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"
#include "tensor/storage.h"

namespace tapedeck {
namespace {

using namespace samples;

struct IntoAttrs { int axes; };   // positions count among the last `axes` axes of x; stacked cotangents have more in front

// updates are [entries…, x.shape[depth], …].
Shape updates_of(const Call& c, const Tensor& x) { return replaced(x.shape(), x.ndim() - c.attrs<IntoAttrs>().axes, depth_of(c), entries_of(c)); }

Spec infer_into(const Call& c) {
  require_axes(c, c.attrs<IntoAttrs>().axes);
  require_nd_indices(c, c.attrs<IntoAttrs>().axes);
  if (c.x[2].dtype() != c.x[0].dtype()) throw_dtype_error(c, "dtypes of x and updates differ");
  if (const Shape expected = updates_of(c, c.x[0]); c.x[2].shape() != expected) throw_shape_error(c, fmt::format("updates must be {}", expected));
  return c.x[0].spec();
}

Spec infer_extreme(const Call& c) {
  if (c.x[0].dtype() == DType::boolean) throw_dtype_error(c, "bool has no order, use astype");
  return infer_into(c);
}

void run_into(const Call& c, kernels::RowFold fold, Tensor& y) {
  if (y.size()) kernels::copy_runs(c.x[0], {0, 0}, y, {0, 0}, 1, y.size());
  const int front = y.ndim() - c.attrs<IntoAttrs>().axes;
  const Shape indexed(y.shape().dims().last(static_cast<std::size_t>(c.attrs<IntoAttrs>().axes)));
  kernels::fold_rows(fold, c.x[2], flat_indices(c, indexed, "x", c.x[0].spec()), kernels::AroundAxis(y.shape(), front, depth_of(c)), y);
}

Tensor picked(const Call& c, const Tensor& x) { return gather_positions(x, c.x[1], c.attrs<IntoAttrs>().axes); }
Tensor spread(const Call& c, const Tensor& updates) {
  return scatter_positions(updates, c.x[1], Shape(c.x[0].shape().dims().last(static_cast<std::size_t>(c.attrs<IntoAttrs>().axes))));
}

constexpr Rule kUpdated = custom(
    {.x = 0b010},
    [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
      const Tensor dy = std::move(dys[0]).dense();
      if (c.needs(0)) dx[0] = c.op.with(c.attrs<IntoAttrs>(), dy, c.x[1], zeros(updates_of(c, dy), dy.dtype()));
      if (c.needs(2)) dx[2] = picked(c, dy);
    },
    [](const Call& c, Refs dx, std::span<Tensor> dy) {
      const auto tangent = [&](int i) { return dx[i].defined() ? dx[i] : zeros(c.x[i].shape(), c.x[i].dtype()); };
      dy[0] = c.op.with(c.attrs<IntoAttrs>(), tangent(0), c.x[1], tangent(2));
    });

// Which of x and of the updates are the extreme in their place, and how many share it there.
struct Chosen {
  Tensor x, updates, count;
  explicit Chosen(const Call& c)
      : x(astype(equal(c.x[0], c.y[0]), c.x[0].dtype())), updates(astype(equal(c.x[2], picked(c, c.y[0])), c.x[0].dtype())), count(x + spread(c, updates)) {}
};

constexpr Rule kShared = custom(
    {.x = 0b111, .y = true},
    [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
      const Chosen chosen(c);
      const Tensor each = std::move(dys[0]).dense() / chosen.count;
      if (c.needs(0)) dx[0] = each * chosen.x;
      if (c.needs(2)) dx[2] = picked(c, each) * chosen.updates;
    },
    [](const Call& c, Refs dx, std::span<Tensor> dy) {
      const Chosen chosen(c);
      Tensor sum;
      if (dx[0].defined()) sum = chosen.x * dx[0];
      if (dx[2].defined()) {
        const Tensor of_updates = spread(c, chosen.updates * dx[2]);
        sum = sum.defined() ? sum + of_updates : of_updates;
      }
      dy[0] = sum / chosen.count;
    });

Tensor i64(std::initializer_list<std::initializer_list<std::int64_t>> v) { return tensor(v); }

constexpr Op table[] = {
    {.name = "tensor_scatter_update",
     .doc = "x with updates at positions: y[indices[k…]] = updates[k…], the last one where a position comes several times.",
     .tensorflow = "TensorScatterUpdate",
     .args = {"x", "indices", "updates"},
     .infer = infer_into,
     .forward = [](const Call& c, std::span<Tensor> y) { run_into(c, kernels::RowFold::last, y[0]); },
     .rule = kUpdated,
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({3, 4, 5}, -1, 1), i64({{2, 0}, {1, 3}, {0, 0}}), uniform({3, 5}, -1, 1, 1)}, .attrs = Attrs(IntoAttrs{3})},
           {.inputs = {uniform({37}, -1, 1), tensor<std::int32_t>({{{4}, {36}}, {{0}, {2}}}), uniform({2, 2}, -1, 1, 1)}, .attrs = Attrs(IntoAttrs{1})},
           {.inputs = {uniform({2, 3}, -1, 1), zeros({0, 2}, DType::i64), zeros({0}, DType::f64)}, .attrs = Attrs(IntoAttrs{2})},
           {.inputs = {uniform({0, 3}, -1, 1), zeros({0, 1}, DType::i64), zeros({0, 3}, DType::f64)}, .attrs = Attrs(IntoAttrs{2})},
           {.inputs = {tensor({1, 2, 3, 4}, DType::i32), i64({{1}, {3}, {1}}), tensor({9, 8, 7}, DType::i32)},
            .attrs = Attrs(IntoAttrs{1}), .expected = {tensor({1, 7, 3, 8}, DType::i32)}, .oracle = "by hand"},
           {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}}), i64({{2}, {0}}), f64({{-1, -2}, {-3, -4}})},
            .attrs = Attrs(IntoAttrs{2}), .expected = {f64({{-3, -4}, {3, 4}, {-1, -2}})},
            .oracle = "torch.tensor(x).index_put((torch.tensor(indices[:, 0]),), torch.tensor(updates))"}};
     }},

    {.name = "tensor_scatter_max",
     .doc = "The larger of x and the updates at positions: y[indices[k…]] = max(…, updates[k…]); equal ones share the gradient.",
     .tensorflow = "TensorScatterMax",
     .args = {"x", "indices", "updates"},
     .infer = infer_extreme,
     .forward = [](const Call& c, std::span<Tensor> y) { run_into(c, kernels::RowFold::max, y[0]); },
     .rule = kShared,
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {distinct({3, 4, 5}), i64({{2, 0}, {1, 3}, {2, 0}}), uniform({3, 5}, -2, 3, 1)}, .attrs = Attrs(IntoAttrs{3})},
           {.inputs = {distinct({37}), i64({{4}, {36}, {4}}), uniform({3}, -3, 3, 1)}, .attrs = Attrs(IntoAttrs{1})},
           {.inputs = {f64({1, 2, 3, 4}), i64({{1}, {3}, {1}}), f64({9, -8, 7})}, .attrs = Attrs(IntoAttrs{1}), .expected = {f64({1, 9, 3, 4})},
            .oracle = "torch.tensor(x).scatter_reduce(0, torch.tensor(indices[:, 0]), torch.tensor(updates), 'amax')"}};
     }},

    {.name = "tensor_scatter_min",
     .doc = "The smaller of x and the updates at positions: y[indices[k…]] = min(…, updates[k…]); equal ones share the gradient.",
     .tensorflow = "TensorScatterMin",
     .args = {"x", "indices", "updates"},
     .infer = infer_extreme,
     .forward = [](const Call& c, std::span<Tensor> y) { run_into(c, kernels::RowFold::min, y[0]); },
     .rule = kShared,
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {distinct({3, 4, 5}), i64({{2, 0}, {1, 3}, {2, 0}}), uniform({3, 5}, -2, 3, 1)}, .attrs = Attrs(IntoAttrs{3})},
           {.inputs = {f64({1, 2, 3, 4}), i64({{1}, {3}, {1}}), f64({9, -8, 1})}, .attrs = Attrs(IntoAttrs{1}), .expected = {f64({1, 1, 3, -8})},
            .oracle = "torch.tensor(x).scatter_reduce(0, torch.tensor(indices[:, 0]), torch.tensor(updates), 'amin')"}};
     }},
};

Tensor into(const Op& op, const Tensor& x, const Tensor& indices, const Tensor& updates) { return op.with(IntoAttrs{x.ndim()}, x, indices, updates); }

// x of which the first axes, those of `like`, are one.
Tensor rows_of(std::string_view op, const Tensor& x, const Tensor& like, std::string_view name) {
  const int axes = like.ndim();
  if (axes > x.ndim() || Shape(x.shape().dims().first(static_cast<std::size_t>(axes))) != like.shape())
    throw_error<ShapeError>("{}: {} must have the shape of the first axes of x: x is {}, {} is {}", op, name, x.spec(), name, like.spec());
  Shape shape{like.size()};
  for (int d = axes; d < x.ndim(); ++d) shape.push_back(x.shape()[d]);
  return reshape(x, shape);
}

std::vector<std::int64_t> list_of(std::string_view op, const Tensor& numbers, std::string_view name) {
  if (numbers.dtype() != DType::i32 && numbers.dtype() != DType::i64) throw_error<DTypeError>("{}: {} must be i32 or i64, use astype: {} is {}", op, name, name, numbers.spec());
  return numbers.to_vector<std::int64_t>();
}

}  // namespace

Tensor tensor_scatter_update(const Tensor& x, const Tensor& indices, const Tensor& updates) { return into(find(table, "tensor_scatter_update"), x, indices, updates); }
Tensor tensor_scatter_max(const Tensor& x, const Tensor& indices, const Tensor& updates) { return into(find(table, "tensor_scatter_max"), x, indices, updates); }
Tensor tensor_scatter_min(const Tensor& x, const Tensor& indices, const Tensor& updates) { return into(find(table, "tensor_scatter_min"), x, indices, updates); }
Tensor tensor_scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates) { return x + scatter_nd(indices, updates, x.shape()); }
Tensor tensor_scatter_sub(const Tensor& x, const Tensor& indices, const Tensor& updates) { return x - scatter_nd(indices, updates, x.shape()); }

// The rows are brought into the order of their parts, which are then cut off one after the other.
std::vector<Tensor> dynamic_partition(const Tensor& x, const Tensor& partitions, int count) {
  if (count < 1) throw_error<ArgumentError>("dynamic_partition: {} parts; use 1 or more", count);
  const Tensor rows = rows_of("dynamic_partition", x, partitions, "partitions");
  const std::vector<std::int64_t> part = list_of("dynamic_partition", partitions, "partitions");
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count)), next(sizes.size()), order(part.size());
  for (std::size_t k = 0; k < part.size(); ++k) {
    if (part[k] < 0 || part[k] >= count) throw_error<ShapeError>("dynamic_partition: number {} at position {} is out of range for {} parts", part[k], k, count);
    ++sizes[static_cast<std::size_t>(part[k])];
  }
  for (std::size_t i = 1; i < sizes.size(); ++i) next[i] = next[i - 1] + sizes[i - 1];
  for (std::size_t k = 0; k < part.size(); ++k) order[static_cast<std::size_t>(next[static_cast<std::size_t>(part[k])]++)] = static_cast<std::int64_t>(k);
  return split(gather(rows, tensor(order)), std::span<const std::int64_t>(sizes));
}

Tensor dynamic_stitch(std::span<const Tensor> indices, std::span<const Tensor> x) {
  if (x.empty() || indices.size() != x.size()) throw_error<ArgumentError>("dynamic_stitch: {} lists of indices for {} tensors; use one for each", indices.size(), x.size());
  std::vector<Tensor> parts;
  std::vector<std::int64_t> source;   // of each entry of the result: the row of all parts
  std::int64_t row = 0;
  for (std::size_t m = 0; m < x.size(); ++m) {
    parts.push_back(rows_of("dynamic_stitch", x[m], indices[m], "indices"));
    for (const std::int64_t place : list_of("dynamic_stitch", indices[m], "indices")) {
      if (place < 0) throw_error<ShapeError>("dynamic_stitch: index {} of tensor {} is negative", place, m);
      if (static_cast<std::size_t>(place) >= source.size()) source.resize(static_cast<std::size_t>(place) + 1, -1);
      source[static_cast<std::size_t>(place)] = row++;
    }
  }
  for (std::size_t k = 0; k < source.size(); ++k)
    if (source[k] < 0) throw_error<ShapeError>("dynamic_stitch: no index names place {} of {}", k, source.size());
  return gather(concat(parts, 0), tensor(source));
}

std::span<const Op> scatter_ops() { return table; }

}  // namespace tapedeck
