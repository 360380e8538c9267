// Reductions. In: a tensor and axes. Out: sums, products, extremes and their positions, and the like.
#include "ops/reduce/reduce.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/thread_state.h"
#include "kernels/nn/softmax.h"
#include "kernels/reduce/prod_of_others.h"
#include "kernels/reduce/reduce.h"
#include "op/piecewise_constant.h"
#include "ops/nn/softmax.h"
#include "ops/reduce/merged_axes.h"
#include "ops/reduce/prod_of_others.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Shape reduced(const Call& c) {
  const auto& [axes, keepdims] = c.attrs<ReduceAttrs>();
  require_axes(c, static_cast<int>(std::bit_width(axes)));
  return without(c.x[0].shape(), axes, keepdims);
}

// The number of elements of x for each element of y.
std::int64_t count_of(const Call& c) { return size_along(c.x[0].shape(), c.attrs<ReduceAttrs>().axes); }

Spec infer_sum(const Call& c) {
  if (size_of(c.x[0].dtype()) == 1) c.throw_dtype_error("i8, u8 and bool cannot be summed, use astype");
  return {c.x[0].dtype(), reduced(c)};
}

Spec infer_prod(const Call& c) {
  if (size_of(c.x[0].dtype()) == 1) c.throw_dtype_error("i8, u8 and bool cannot be multiplied, use astype");
  return {c.x[0].dtype(), reduced(c)};
}

Spec infer_mean(const Call& c) {
  require_trainable(c, 0);
  return {c.x[0].dtype(), reduced(c)};
}

Spec infer_norm(const Call& c) {
  require_floating(c, 0);
  return infer_mean(c);
}

Spec infer_extreme(const Call& c) {
  if (c.x[0].dtype() == DType::boolean) c.throw_dtype_error("bool has no order, use astype");
  require_real(c);
  if (count_of(c) == 0) c.throw_shape_error("no elements to choose from");
  return {c.x[0].dtype(), reduced(c)};
}

Spec infer_argument(const Call& c) { return {DType::i64, infer_extreme(c).shape}; }

Spec infer_bool(const Call& c) {
  if (c.x[0].dtype() != DType::boolean) c.throw_dtype_error("takes bool, compare with 0 first");
  return {DType::boolean, reduced(c)};
}

// The spec of x without its last axis, which is reduced.
Spec infer_last(const Call& c) {
  const Spec x = infer_rows(c);
  return {x.dtype, without(x.shape, 1, false)};
}

// dy with the reduced axes restored, with extent 1.
Tensor with_axes(const Call& c, const Tensor& dy) {
  const auto& [axes, keepdims] = c.attrs<ReduceAttrs>();
  return keepdims ? dy : reshape(dy, behind_extra(dy, c.y[0].ndim(), without(c.x[0].shape(), axes, true)));
}
Tensor spread(const Call& c, const Tensor& dy) {
  return broadcast_to(with_axes(c, dy), behind_extra(dy, c.y[0].ndim(), c.x[0].shape()));
}

std::vector<int> axes_of(const Call& c) {
  std::vector<int> axes;
  for (int i = 0; i < Shape::kMaxRank; ++i)
    if (c.attrs<ReduceAttrs>().axes >> i & 1) axes.push_back(-1 - i);
  return axes;
}

Spec infer_share(const Call& c) {
  require_floating(c, 0);
  if (c.x[1].spec() != Spec{c.x[0].dtype(), reduced(c)}) c.throw_shape_error("best is not a reduction of x");
  return c.x[0].spec();
}

Tensor share_of_extreme(const Call& c);
constexpr Rule kSharedByExtremes =
    Rule::custom(
        {.x = 1, .y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = with_axes(c, std::move(dy[0]).dense()) * share_of_extreme(c);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          dy[0] = sum(share_of_extreme(c) * dx[0], axes_of(c), {.keepdims = c.attrs<ReduceAttrs>().keepdims});
        })
        .stacking_jvp();

Tensor part(const Tensor& x, std::int64_t begin, std::int64_t n) {
  Shape from, size = x.shape();
  for (int d = 0; d < x.ndim(); ++d)
    from.push_back(d == x.ndim() - 1 ? begin : 0);
  size.set(x.ndim() - 1, n);
  return slice(x, from, size);
}
Tensor padded_with(const Tensor& x, double number, std::int64_t n) {
  Shape shape = x.shape();
  shape.set(x.ndim() - 1, n);
  return concat({x, full(shape, number, x.dtype())}, -1);
}

// The derivative of prod_of_others(x) in direction v, along the last axis. On the way up a binary tree, the
// products of both halves and their tangents are combined; on the way down, each half gets the product of
// everything outside it. The Hessian of a product is symmetric, so this is also the vjp.
Tensor derivative_of_others(const Tensor& x, const Tensor& v) {
  const std::int64_t n = x.shape()[x.ndim() - 1];
  if (n < 2 || v.size() == 0) return zeros_like(v);
  struct Halves {
    Tensor left, right, left_v, right_v;
  };
  std::vector<Halves> levels;
  const auto size = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
  Tensor product = size == n ? x : padded_with(x, 1, size - n),
         change = size == n ? v : padded_with(v, 0, size - n);
  for (std::int64_t half = size / 2; half > 0; half /= 2) {
    const Halves& h = levels.emplace_back(Halves{part(product, 0, half), part(product, half, half),
                                                 part(change, 0, half), part(change, half, half)});
    product = h.left * h.right;
    change = h.left_v * h.right + h.left * h.right_v;
  }
  Tensor outside = ones_like(product), outside_v = zeros_like(change);
  for (auto h = levels.rbegin(); h != levels.rend(); ++h) {
    outside_v =
        concat({outside_v * h->right + outside * h->right_v, outside_v * h->left + outside * h->left_v}, -1);
    outside = concat({outside * h->right, outside * h->left}, -1);
  }
  return size == n ? outside_v : part(outside_v, 0, n);
}

Tensor others(const Call& c);                           // the partial of prod for each element
Tensor softmax_of(const Tensor& x, const Tensor& y) {   // from y = logsumexp(x)
  return exp(x - expand_dims(where(equal(y, -std::numeric_limits<double>::infinity()), 0, y), -1));
}

template <void kernel(const Tensor&, unsigned, Tensor&)> constexpr Kernel reduced_by = {
    [](const Call& c, std::span<Tensor> y) { kernel(c.x[0], c.attrs<ReduceAttrs>().axes, y[0]); },
    Outputs::fresh, KernelDtypes::native_and_halves};

constexpr Op kSum = {
    .name = "sum",
    .doc = "Sum of x over axes: y[j] = Σᵢ x[i, j].",
    .tensorflow = "Sum",
    .args = {"x"},
    .infer = infer_sum,
    .forward = reduced_by<kernels::sum>,
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return spread(c, dy); }),
    .meaning = Meaning::sum,
};

constexpr Op kProd = {
    .name = "prod",
    .doc = "Product of x over axes: y[j] = Πᵢ x[i, j]; the gradient is exact even where elements are zero.",
    .tensorflow = "Prod",
    .args = {"x"},
    .infer = infer_prod,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::prod(c.x[0], c.attrs<ReduceAttrs>().axes, y[0]); },
    .rule = Rule::custom(
        {.x = 1},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = with_axes(c, std::move(dy[0]).dense()) * others(c);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          dy[0] = sum(others(c) * dx[0], axes_of(c), {.keepdims = c.attrs<ReduceAttrs>().keepdims});
        }),
};

constexpr Op kProdOfOthers = {
    .name = "prod_of_others",
    .doc = "Product of the other elements along the last axis: yᵢ = Πⱼ≠ᵢ xⱼ. Used by the gradient of prod.",
    .args = {"x"},
    .infer = infer_complex_rows,
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::prod_of_others(c.x[0], y[0]); },
    .rule = Rule::custom(
        {.x = 1},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = derivative_of_others(c.x[0], std::move(dy[0]).dense());
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = derivative_of_others(c.x[0], dx[0]); }),
};

constexpr Op kMean = {
    .name = "mean",
    .doc = "Arithmetic mean of x over axes: y[j] = Σᵢ x[i, j] / n.",
    .tensorflow = "Mean",
    .args = {"x"},
    .infer = infer_mean,
    .forward = reduced_by<kernels::mean>,
    .rule = Rule::linear([](const Call& c, const Tensor& dy) {
      // The count may overflow if x has no elements.
      return spread(c, dy / static_cast<double>(c.x[0].size() ? count_of(c) : 1));
    }),
    .meaning = Meaning::mean,
};

constexpr Op kMax = {
    .name = "max",
    .doc = "Largest element of x over axes: y[j] = maxᵢ x[i, j]; equal elements share the gradient.",
    .tensorflow = "Max",
    .args = {"x"},
    .infer = infer_extreme,
    .forward = reduced_by<kernels::max>,
    .rule = kSharedByExtremes,
};

constexpr Op kMin = {
    .name = "min",
    .doc = "Smallest element of x over axes: y[j] = minᵢ x[i, j]; equal elements share the gradient.",
    .tensorflow = "Min",
    .args = {"x"},
    .infer = infer_extreme,
    .forward = reduced_by<kernels::min>,
    .rule = kSharedByExtremes,
};

constexpr Op kShareOfExtreme = {
    .name = "share_of_extreme",
    .doc =
        "The share of each element of x in the gradient of its maximum or minimum, best: 1 / n for each of n "
        "elements equal to best, else 0.",
    .args = {"x", "best"},
    .infer = infer_share,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::share_of_extreme(c.x[0], c.x[1], c.attrs<ReduceAttrs>().axes, y[0]);
        },
    .rule = Rule::none(),
};

constexpr Op kArgmax = {
    .name = "argmax",
    .doc = "Index of the first largest element of x along an axis.",
    .tensorflow = "ArgMax",
    .args = {"x"},
    .infer = infer_argument,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::argmax(c.x[0], -1 - std::countr_zero(c.attrs<ReduceAttrs>().axes), y[0]);
        },
    .rule = Rule::none(),
};

constexpr Op kArgmin = {
    .name = "argmin",
    .doc = "Index of the first smallest element of x along an axis.",
    .tensorflow = "ArgMin",
    .args = {"x"},
    .infer = infer_argument,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::argmin(c.x[0], -1 - std::countr_zero(c.attrs<ReduceAttrs>().axes), y[0]);
        },
    .rule = Rule::none(),
};

constexpr Op kAny = {
    .name = "any",
    .doc = "Whether any element of x over axes is true; false over no elements.",
    .tensorflow = "Any",
    .args = {"x"},
    .infer = infer_bool,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::any(c.x[0], c.attrs<ReduceAttrs>().axes, y[0]); },
    .rule = Rule::none(),
};

constexpr Op kAll = {
    .name = "all",
    .doc = "Whether all elements of x over axes are true; true over no elements.",
    .tensorflow = "All",
    .args = {"x"},
    .infer = infer_bool,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::all(c.x[0], c.attrs<ReduceAttrs>().axes, y[0]); },
    .rule = Rule::none(),
};

constexpr Op kEuclideanNorm = {
    .name = "euclidean_norm",
    .doc =
        "Square root of the sum of squares of x over axes: y[j] = √Σᵢ x[i, j]²; the gradient is NaN "
        "where all elements are zero.",
    .tensorflow = "EuclideanNorm",
    .args = {"x"},
    .infer = infer_norm,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::euclidean_norm(c.x[0], c.attrs<ReduceAttrs>().axes, y[0]);
        },
    .rule = Rule::custom(
        {.x = 1, .y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = c.x[0] * with_axes(c, std::move(dy[0]).dense() / c.y[0]);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          dy[0] = sum(c.x[0] * dx[0], axes_of(c), {.keepdims = c.attrs<ReduceAttrs>().keepdims});
          if (count_of(c) > 0) dy[0] = dy[0] / c.y[0];   // else 0, not 0 / 0
        }),
};

constexpr Op kLogsumexp = {
    .name = "logsumexp",
    .doc = "Logarithm of the sum of exponentials along the last axis: y = log Σⱼ exp(xⱼ).",
    .args = {"x"},
    .infer = infer_last,
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::logsumexp(c.x[0], y[0], nullptr); },
    .rule = Rule::custom(
        {.x = 1, .y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = expand_dims(std::move(dy[0]).dense(), -1) * softmax_of(c.x[0], c.y[0]);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          dy[0] = sum(softmax_of(c.x[0], c.y[0]) * dx[0], -1);
        }),
};

constexpr Op kLogsumexpAndSoftmax = {
    .name = "logsumexp_and_softmax",
    .doc =
        "Both logsumexp along the last axis and its gradient, the softmax. Used by logsumexp if the call "
        "is recorded.",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          return std::vector<Spec>{infer_last(c), c.x[0].spec()};
        },
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::logsumexp(c.x[0], y[0], &y[1]); },
    .rule = Rule::custom(
                {.y = true},
                [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                  if (dy[0].defined()) dx[0] = expand_dims(std::move(dy[0]).dense(), -1) * c.y[1];
                  if (!dy[1].defined()) return;
                  const Tensor of_softmax = softmax_derivative(c.y[1], std::move(dy[1]).dense());
                  dx[0] = dx[0].defined() ? dx[0].dense() + of_softmax : of_softmax;
                },
                [](const Call& c, Refs dx, std::span<Tensor> dy) {
                  dy[0] = sum(c.y[1] * dx[0], -1);
                  dy[1] = softmax_derivative(c.y[1], dx[0]);
                })
                .accepting_none(),
};

constexpr const Op* reduce_table[] = {
    &kSum,    &kProd,   &kProdOfOthers, &kMean, &kMax,           &kMin,       &kShareOfExtreme,
    &kArgmax, &kArgmin, &kAny,          &kAll,  &kEuclideanNorm, &kLogsumexp, &kLogsumexpAndSoftmax};

Tensor others(const Call& c) {
  const Merged axes(c.x[0].shape(), c.attrs<ReduceAttrs>().axes);
  return axes.split(prod_of_others(axes.merge(c.x[0])));
}

Tensor share_of_extreme(const Call& c) {
  return piecewise(kShareOfExtreme(c.x[0], c.y[0], c.attrs<ReduceAttrs>()), c.x[0]);
}

Tensor reduce(const Op& op, const Tensor& x, const Axes& axes, ReduceOptions options) {
  return op(x, ReduceAttrs{mask_of(op, axes, x.ndim()), options.keepdims});
}
// The position along one axis. A scalar, which has no axis, is treated as one of extent 1.
Tensor position(const Op& op, const Tensor& x, int axis, ReduceOptions options) {
  const bool number = x.ndim() == 0 && mask_of(op, axis, 0) == 0;
  return reduce(op, number ? reshape(x, {1}) : x, number ? 0 : axis,
                {.keepdims = !number && options.keepdims});
}

}   // namespace

Tensor prod_of_others(const Tensor& x) { return kProdOfOthers(Operand(x)); }
Tensor sum(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return reduce(kSum, x, axes, options);
}
Tensor prod(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return reduce(kProd, x, axes, options);
}
Tensor mean(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return reduce(kMean, x, axes, options);
}
Tensor max(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return reduce(kMax, x, axes, options);
}
Tensor min(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return reduce(kMin, x, axes, options);
}
Tensor argmax(const Tensor& x, int axis, ReduceOptions options) {
  return position(kArgmax, x, axis, options);
}
Tensor argmin(const Tensor& x, int axis, ReduceOptions options) {
  return position(kArgmin, x, axis, options);
}
Tensor any(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return reduce(kAny, x, axes, options);
}
Tensor all(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return reduce(kAll, x, axes, options);
}

Tensor euclidean_norm(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return reduce(kEuclideanNorm, is_complex(x.dtype()) ? abs(x) : x, axes, options);
}

Tensor logsumexp(const Tensor& x, const Axes& axes, ReduceOptions options) {
  const Tensor* inputs[] = {&x};
  require_floating({.op = kLogsumexp, .x = {inputs, 1}}, 0);
  const unsigned mask = mask_of(kLogsumexp, axes, x.ndim());
  const Tensor merged = Merged(x.shape(), mask).merge(x);
  // If the op is recorded, the softmax is computed and saved, so that the gradient need not recompute it.
  const Tensor y =
      thread_state.innermost ? kLogsumexpAndSoftmax.run({&merged, 1})[0] : kLogsumexp(Operand(merged));
  return options.keepdims ? reshape(y, without(x.shape(), mask, true)) : y;
}

std::span<const Op* const> reduce_ops() { return reduce_table; }

}   // namespace tapedeck
