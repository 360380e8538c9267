// Updates at positions. In: a tensor, positions in it, and updates. Out: the tensor with the updates applied.
#include "ops/layout/tensor_scatter.h"

#include "core/format.h"
#include "core/storage.h"
#include "kernels/layout/copy.h"
#include "kernels/layout/gather_scatter.h"
#include "kernels/layout/index_lists.h"
#include "op/piecewise_constant.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/positions.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

// The shape of the updates: [entries…, x.shape[depth], …].
Shape updates_of(const Call& c, const Tensor& x) {
  return replaced(x.shape(), x.ndim() - c.attrs<IntoAttrs>().axes, depth_of(c), entries_of(c));
}

Spec infer_into(const Call& c) {
  require_axes(c, c.attrs<IntoAttrs>().axes);
  require_nd_indices(c, c.attrs<IntoAttrs>().axes);
  if (c.x[2].dtype() != c.x[0].dtype()) c.throw_dtype_error("dtypes of x and updates differ");
  if (const Shape expected = updates_of(c, c.x[0]); c.x[2].shape() != expected)
    c.throw_shape_error(fmt::format("updates must be {}", expected));
  return c.x[0].spec();
}

Spec infer_scattered_sum(const Call& c) {
  if (c.x[0].dtype() == DType::boolean) c.throw_dtype_error("bool cannot be added");
  return infer_into(c);
}

Spec infer_scattered_extreme(const Call& c) {
  if (c.x[0].dtype() == DType::boolean) c.throw_dtype_error("bool has no order, use astype");
  require_real(c);
  return infer_into(c);
}

void run_into(const Call& c, kernels::ScatterReduction fold, Tensor& y) {
  if (y.size()) kernels::copy_runs(c.x[0], {0, 0}, y, {0, 0}, 1, y.size());
  const int front = y.ndim() - c.attrs<IntoAttrs>().axes;
  const Shape indexed(y.shape().dims().last(static_cast<std::size_t>(c.attrs<IntoAttrs>().axes)));
  kernels::scatter_reduce(fold, c.x[2], flat_indices(c, indexed, "x", c.x[0].spec()),
                          kernels::AxisView(y.shape(), front, depth_of(c)), y);
}

Tensor picked(const Call& c, const Tensor& x) {
  return gather_positions(x, c.x[1], c.attrs<IntoAttrs>().axes);
}
Tensor at_positions(const Call& c, const Tensor& updates) {
  return scatter_positions(
      updates, c.x[1],
      Shape(c.x[0].shape().dims().last(static_cast<std::size_t>(c.attrs<IntoAttrs>().axes))));
}

// The adjoint of tensor_scatter_update in its updates, at the positions of the call.
Tensor kept_updates(const Call& c, const Tensor& dy);

// y: the rows of x at the positions, or zeros if a later position is the same.
Spec infer_kept(const Call& c) {
  require_axes(c, c.attrs<IntoAttrs>().axes);
  require_nd_indices(c, c.attrs<IntoAttrs>().axes);
  return {c.x[0].dtype(), updates_of(c, c.x[0])};
}
void run_kept(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  const int axes = c.attrs<IntoAttrs>().axes;
  const Shape indexed(x.shape().dims().last(static_cast<std::size_t>(axes)));
  Tensor places = flat_indices(c, indexed, "x", x.spec());
  std::vector<bool> taken(static_cast<std::size_t>(kernels::AxisView(indexed, 0, depth_of(c)).extent));
  kernels::last_of_each(places, taken, places);
  kernels::gather(x, places, kernels::AxisView(x.shape(), x.ndim() - axes, depth_of(c)), y[0]);
}
Tensor updated(const Tensor& x, const Tensor& indices, const Tensor& updates, int axes);

constexpr Rule kUpdated = Rule::custom(
    {.x = 0b010},
    [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
      const Tensor dy = std::move(dys[0]).dense();
      if (c.needs_gradient(0))
        dx[0] = c.op(dy, c.x[1], zeros(updates_of(c, dy), dy.dtype()), c.attrs<IntoAttrs>());
      if (c.needs_gradient(2)) dx[2] = kept_updates(c, dy);
    },
    [](const Call& c, Refs dx, std::span<Tensor> dy) {
      const auto tangent = [&](int i) {
        return dx[i].defined() ? dx[i] : zeros(c.x[i].shape(), c.x[i].dtype());
      };
      dy[0] = c.op(tangent(0), c.x[1], tangent(2), c.attrs<IntoAttrs>());
    });

// The rule of sums of x and the updates, which are subtracted if `negative`.
template <bool negative> constexpr Rule kSummed = Rule::custom(
    {.x = 0b010},
    [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
      const Tensor dy = std::move(dys[0]).dense();
      if (c.needs_gradient(2)) dx[2] = negative ? -picked(c, dy) : picked(c, dy);
      if (c.needs_gradient(0)) dx[0] = dy;
    },
    [](const Call& c, Refs dx, std::span<Tensor> dy) {
      if (dx[0].defined() && dx[2].defined())
        dy[0] = c.op(dx[0], c.x[1], dx[2], c.attrs<IntoAttrs>());
      else if (dx[0].defined())
        dy[0] = dx[0];
      else
        dy[0] = negative ? -at_positions(c, dx[2]) : at_positions(c, dx[2]);
    });

// Masks of the elements of x and of the updates that equal the extreme at their position, and the number of
// these elements at each position.
struct Chosen {
  Tensor x, updates, count;
  explicit Chosen(const Call& c)
      : x(piecewise(astype(equal(c.x[0], c.y[0]), c.x[0].dtype()), c.x[0], c.x[2])),
        updates(piecewise(astype(equal(c.x[2], picked(c, c.y[0])), c.x[0].dtype()), c.x[0], c.x[2])),
        count(x + at_positions(c, updates)) {}
};

constexpr Rule kSharedByUpdates = Rule::custom(
    {.x = 0b111, .y = true},
    [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
      const Chosen chosen(c);
      const Tensor each = std::move(dys[0]).dense() / chosen.count;
      if (c.needs_gradient(0)) dx[0] = each * chosen.x;
      if (c.needs_gradient(2)) dx[2] = picked(c, each) * chosen.updates;
    },
    [](const Call& c, Refs dx, std::span<Tensor> dy) {
      const Chosen chosen(c);
      Tensor sum;
      if (dx[0].defined()) sum = chosen.x * dx[0];
      if (dx[2].defined()) {
        const Tensor of_updates = at_positions(c, chosen.updates * dx[2]);
        sum = sum.defined() ? sum + of_updates : of_updates;
      }
      dy[0] = sum / chosen.count;
    });

constexpr Op kTensorScatterUpdate = {
    .name = "tensor_scatter_update",
    .doc =
        "x with updates written at positions: y[indices[k…]] = updates[k…]. The last update is kept if a "
        "position occurs several times.",
    .tensorflow = "TensorScatterUpdate",
    .args = {"x", "indices", "updates"},
    .infer = infer_into,
    .forward =
        moves([](const Call& c, std::span<Tensor> y) { run_into(c, kernels::ScatterReduction::last, y[0]); }),
    .rule = kUpdated,
};

constexpr Op kKeptUpdates = {
    .name = "kept_updates",
    .doc =
        "The adjoint of tensor_scatter_update in its updates: y[k…] = x[indices[k…]], or 0 if a later "
        "position is the same.",
    .args = {"x", "indices"},
    .infer = infer_kept,
    .forward = moves(run_kept),
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) {
          const int axes = c.attrs<IntoAttrs>().axes, ndim = c.y[0].ndim();
          const Shape& x = c.x[0].shape();
          return updated(zeros(behind_extra(dy, ndim, x), dy.dtype()), c.x[1], dy, axes);
        },
        {.x = 0b10}),
};

constexpr Op kTensorScatterAdd = {
    .name = "tensor_scatter_add",
    .doc = "x with updates added at positions: y[indices[k…]] += updates[k…].",
    .tensorflow = "TensorScatterAdd",
    .args = {"x", "indices", "updates"},
    .infer = infer_scattered_sum,
    .forward = [](const Call& c, std::span<Tensor> y) { run_into(c, kernels::ScatterReduction::sum, y[0]); },
    .rule = kSummed<false>,
};

constexpr Op kTensorScatterSub = {
    .name = "tensor_scatter_sub",
    .doc = "x with updates subtracted at positions: y[indices[k…]] -= updates[k…].",
    .tensorflow = "TensorScatterSub",
    .args = {"x", "indices", "updates"},
    .infer = infer_scattered_sum,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { run_into(c, kernels::ScatterReduction::difference, y[0]); },
    .rule = kSummed<true>,
};

constexpr Op kTensorScatterMax = {
    .name = "tensor_scatter_max",
    .doc =
        "The larger of x and the updates at positions: y[indices[k…]] = max(…, updates[k…]); equal "
        "elements share the gradient.",
    .tensorflow = "TensorScatterMax",
    .args = {"x", "indices", "updates"},
    .infer = infer_scattered_extreme,
    .forward = [](const Call& c, std::span<Tensor> y) { run_into(c, kernels::ScatterReduction::max, y[0]); },
    .rule = kSharedByUpdates,
};

constexpr Op kTensorScatterMin = {
    .name = "tensor_scatter_min",
    .doc =
        "The smaller of x and the updates at positions: y[indices[k…]] = min(…, updates[k…]); equal "
        "elements share the gradient.",
    .tensorflow = "TensorScatterMin",
    .args = {"x", "indices", "updates"},
    .infer = infer_scattered_extreme,
    .forward = [](const Call& c, std::span<Tensor> y) { run_into(c, kernels::ScatterReduction::min, y[0]); },
    .rule = kSharedByUpdates,
};

constexpr const Op* tensor_scatter_table[] = {&kTensorScatterUpdate, &kKeptUpdates,      &kTensorScatterAdd,
                                              &kTensorScatterSub,    &kTensorScatterMax, &kTensorScatterMin};

Tensor kept_updates(const Call& c, const Tensor& dy) {
  return kKeptUpdates(dy, c.x[1], c.attrs<IntoAttrs>());
}
Tensor updated(const Tensor& x, const Tensor& indices, const Tensor& updates, int axes) {
  return kTensorScatterUpdate(x, indices, updates, IntoAttrs{axes});
}

Tensor into(const Op& op, const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return op(x, indices, updates, IntoAttrs{x.ndim()});
}

}   // namespace

Tensor tensor_scatter_update(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return into(kTensorScatterUpdate, x, indices, updates);
}
Tensor tensor_scatter_max(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return into(kTensorScatterMax, x, indices, updates);
}
Tensor tensor_scatter_min(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return into(kTensorScatterMin, x, indices, updates);
}
Tensor tensor_scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return into(kTensorScatterAdd, x, indices, updates);
}
Tensor tensor_scatter_sub(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return into(kTensorScatterSub, x, indices, updates);
}

std::span<const Op* const> tensor_scatter_ops() { return tensor_scatter_table; }

}   // namespace tapedeck
