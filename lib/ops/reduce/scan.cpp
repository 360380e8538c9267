// Running sums and products along an axis. In: tensors. Out: tensors of their shape.
#include "tapedeck/ops/scan.h"

#include <limits>
#include <numeric>

#include "kernels/reduce/scan.h"
#include "ops/axes.h"
#include "ops/reduce/scan.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_scan(const Call& c) {
  require_axes(c, -c.attrs<ScanAttrs>().axis);
  if (size_of(c.x[0].dtype()) == 1) c.throw_dtype_error("i8, u8 and bool cannot be accumulated, use astype");
  return c.x[0].spec();
}

using Run = void (*)(const Tensor& x, const kernels::AxisView& view, kernels::ScanOrder order, Tensor& y);
template <Run run> void run_scan(const Call& c, std::span<Tensor> y) {
  const auto& [axis, exclusive, reverse] = c.attrs<ScanAttrs>();
  run(c.x[0], kernels::AxisView(c.x[0].shape(), c.x[0].ndim() + axis), {exclusive, reverse}, y[0]);
}

Tensor back(const Call& c, const Tensor& dy);   // the running sum in the opposite direction
Tensor recurrence(const Tensor& a, const Tensor& b);

// x shifted by one entry along the last axis: `first`, then all entries of x but the last.
Tensor shifted(const Tensor& x, double first = 0) {
  if (x.size() == 0) return x;
  Shape front = x.shape();
  front.set(x.ndim() - 1, 1);
  return concat({full(front, first, x.dtype()), strided_slice(x, {Slice::ellipsis, Slice({}, -1)})}, -1);
}
Tensor shifted_back(const Tensor& x) { return reverse(shifted(reverse(x, -1)), -1); }

Spec infer_recurrence(const Call& c) {
  const Shape &a = c.x[0].shape(), &b = c.x[1].shape();
  infer_complex_rows(c);
  require_one_dtype(c);
  if (b.ndim() < a.ndim() || Shape(b.dims().last(static_cast<std::size_t>(a.ndim()))) != a)
    c.throw_shape_error("the last axes of b must match a");
  return c.x[1].spec();
}

// For the recurrence y[i] = b[i] + a[i] · y[i - 1]: l[i] = dy[i] + a[i + 1] · l[i + 1], which is the gradient
// of b.
Tensor recurrence_back(const Tensor& a, const Tensor& dy) {
  return reverse(recurrence(reverse(shifted_back(a), -1), reverse(dy, -1)), -1);
}

// as_rows moves the axis of a scan to the end and orients it along the scan; from_rows is the inverse.
Tensor as_rows(const Call& c, const Tensor& x) {
  const ScanAttrs& a = c.attrs<ScanAttrs>();
  const Tensor rows = with_axis_last(x, x.ndim() + a.axis);
  return a.reverse ? reverse(rows, -1) : rows;
}
Tensor from_rows(const Call& c, const Tensor& rows) {
  const ScanAttrs& a = c.attrs<ScanAttrs>();
  return with_last_axis_at(a.reverse ? reverse(rows, -1) : rows, rows.ndim() + a.axis);
}

// The derivative of y[i] = Π x[k], k ≤ i, with respect to x[j] is Π x[k] over k < j, times Π x[k] over
// j < k ≤ i. The second factor times dy[i], summed over i ≥ j, is a recurrence. There is no division, so
// elements may be 0.
Tensor product_before(const Call& c) {
  const Tensor y = as_rows(c, c.y[0]);
  return c.attrs<ScanAttrs>().exclusive ? y : shifted(y, 1);
}
void cumprod_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  const Tensor dy = as_rows(c, std::move(dys[0]).dense());
  const Tensor later =
      recurrence_back(as_rows(c, c.x[0]), c.attrs<ScanAttrs>().exclusive ? shifted_back(dy) : dy);
  dx[0] = from_rows(c, product_before(c) * later);
}
void cumprod_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  const Tensor y = recurrence(as_rows(c, c.x[0]), product_before(c) * as_rows(c, dx[0]));
  dy[0] = from_rows(c, c.attrs<ScanAttrs>().exclusive ? shifted(y) : y);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// exp(x - y), where y is -∞ only if x is.
Tensor ratio(const Tensor& x, const Tensor& y) { return exp(x - where(equal(y, -kInfinity), 0, y)); }
// exp(y[i - 1] - y[i]), or 1 if both are ∞. It is 0 at the first ∞: earlier elements do not contribute to ∞.
Tensor factors(const Tensor& y) {
  const Tensor before = shifted(y, -kInfinity);
  return where(equal(y, kInfinity), astype(equal(before, y), y.dtype()), ratio(before, y));
}

// x in the order of summation, along the last axis.
Tensor in_order(const Call& c, const Tensor& x) {
  return c.attrs<LogSumAttrs>().reverse ? reverse(x, -1) : x;
}

// The derivative of y[i] = log Σ exp x[j], j ≤ i, with respect to x[j] is exp(x[j] - y[i]). Its sum times
// dy[i] over i ≥ j is a recurrence with the factors exp(y[i - 1] - y[i]), which do not exceed 1.
void logsumexp_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const Tensor x = in_order(c, c.x[0]), y = in_order(c, c.y[0]);
  dx[0] = in_order(c, ratio(x, y) * recurrence_back(factors(y), in_order(c, std::move(dy[0]).dense())));
}
void logsumexp_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  const Tensor x = in_order(c, c.x[0]), y = in_order(c, c.y[0]);
  dy[0] = in_order(c, recurrence(factors(y), ratio(x, y) * in_order(c, dx[0])));
}

constexpr Op kCumsum = {
    .name = "cumsum",
    .doc =
        "Cumulative sum along an axis: y[i] = Σⱼ x[j] over j ≤ i; optionally over j < i, or from the "
        "end.",
    .tensorflow = "Cumsum",
    .args = {"x"},
    .infer = infer_scan,
    .forward = run_scan<kernels::cumsum>,
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return back(c, dy); }),
};

constexpr Op kCumprod = {
    .name = "cumprod",
    .doc =
        "Cumulative product along an axis: y[i] = Πⱼ x[j] over j ≤ i; optionally over j < i, or from the "
        "end.",
    .tensorflow = "Cumprod",
    .args = {"x"},
    .infer = infer_scan,
    .forward = run_scan<kernels::cumprod>,
    .rule = Rule::custom({.x = 1, .y = true}, cumprod_vjp, cumprod_jvp),
};

constexpr Op kCumulativeLogsumexp = {
    .name = "cumulative_logsumexp",
    .doc =
        "Cumulative log of the sum of exponentials along the last axis: y[i] = log Σⱼ exp(x[j]) over j ≤ "
        "i; optionally from the end.",
    .tensorflow = "CumulativeLogsumexp",
    .args = {"x"},
    .infer = infer_rows,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::cumulative_logsumexp(c.x[0], c.x[0].shape()[c.x[0].ndim() - 1],
                                        c.attrs<LogSumAttrs>().reverse, y[0]);
        },
    .rule = Rule::custom({.x = 1, .y = true}, logsumexp_vjp, logsumexp_jvp),
};

constexpr Op kLinearRecurrence = {
    .name = "linear_recurrence",
    .doc =
        "y[i] = b[i] + a[i] · y[i - 1] along the last axis, where y[-1] = 0. Used by the gradients of "
        "cumprod, cumulative_logsumexp and products by group.",
    .args = {"a", "b"},
    .infer = infer_recurrence,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::linear_recurrence(c.x[0], c.x[1], y[0].shape()[y[0].ndim() - 1], y[0]);
        },
    .rule = Rule::custom(
        {.x = 1, .y = true},
        [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
          const Tensor db = recurrence_back(c.x[0], std::move(dys[0]).dense());
          if (c.needs_gradient(0)) {
            const Tensor terms = db * shifted(c.y[0]);
            std::vector<int> rows(
                static_cast<std::size_t>(c.y[0].ndim() - c.x[0].ndim()));   // axes that only b has
            std::iota(rows.begin(), rows.end(), -c.y[0].ndim());
            dx[0] = rows.empty() ? terms : sum(terms, rows);
          }
          if (c.needs_gradient(1)) dx[1] = db;
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          Tensor term = dx[1];
          if (dx[0].defined()) {
            const Tensor of_a = dx[0] * shifted(c.y[0]);
            term = term.defined() ? term + of_a : of_a;
          }
          dy[0] = recurrence(c.x[0], term);
        }),
};

constexpr const Op* scan_table[] = {&kCumsum, &kCumprod, &kCumulativeLogsumexp, &kLinearRecurrence};

Tensor back(const Call& c, const Tensor& dy) {
  const auto& [axis, exclusive, reverse] = c.attrs<ScanAttrs>();
  return kCumsum(dy, ScanAttrs{axis, exclusive, !reverse});
}
Tensor recurrence(const Tensor& a, const Tensor& b) { return kLinearRecurrence(Operand(a), Operand(b)); }

Tensor scan(const Op& op, const Tensor& x, int axis, const ScanOptions& options) {
  return op(x, ScanAttrs{checked_axis(op, axis, x.ndim()) - x.ndim(), options.exclusive, options.reverse});
}

// The least finite number of a floating-point dtype.
double lowest_of(DType t) {
  switch (t) {
    case DType::f16:
      return -65504;
    case DType::bf16:
      return -0x1.fep127;
    case DType::f32:
      return static_cast<double>(std::numeric_limits<float>::lowest());
    default:
      return std::numeric_limits<double>::lowest();
  }
}

}   // namespace

Tensor product_before_in_run(const Tensor& x, const Tensor& follows) {
  return recurrence(shifted(x) * follows, broadcast_to(1 - follows, x.shape()));
}

Tensor cumsum(const Tensor& x, int axis, const ScanOptions& options) {
  return scan(kCumsum, x, axis, options);
}
Tensor cumprod(const Tensor& x, int axis, const ScanOptions& options) {
  return scan(kCumprod, x, axis, options);
}

// The op runs along the last axis and includes each element itself.
Tensor cumulative_logsumexp(const Tensor& x, int axis, const ScanOptions& options) {
  const Tensor* inputs[] = {&x};
  require_floating({.op = kCumulativeLogsumexp, .x = {inputs, 1}}, 0);
  const int at = checked_axis(kCumulativeLogsumexp, axis, x.ndim());
  const std::int64_t n = x.shape()[at];
  Tensor y = with_axis_last(x, at);
  if (options.exclusive && n)
    y = strided_slice(y, {Slice::ellipsis, options.reverse ? Slice(1, {}) : Slice({}, -1)});
  y = kCumulativeLogsumexp(y, LogSumAttrs{options.reverse});
  if (options.exclusive && n) {
    Shape end = y.shape();
    end.set(y.ndim() - 1, 1);
    const Tensor lowest = full(end, lowest_of(x.dtype()), x.dtype());
    y = options.reverse ? concat({y, lowest}, -1) : concat({lowest, y}, -1);
  }
  return with_last_axis_at(y, at);
}

std::span<const Op* const> scan_ops() { return scan_table; }

}   // namespace tapedeck
