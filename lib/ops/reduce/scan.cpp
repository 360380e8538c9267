// Running sums and products along an axis. In: tensors. Out: tensors of their shape.
#include "tapedeck/ops/scan.h"

#include <limits>
#include <numeric>

#include "kernels/reduce/scan.h"
#include "ops/axes.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

struct ScanAttrs {
  int axis;
  bool exclusive, reverse;   // the axis counts from the end
};

Spec infer_scan(const Call& c) {
  require_axes(c, -c.attrs<ScanAttrs>().axis);
  if (size_of(c.x[0].dtype()) == 1) throw_dtype_error(c, "takes f32, f64, c64, c128, i32 or i64, use astype");
  return c.x[0].spec();
}

using Run = void (*)(const Tensor& x, const kernels::AroundAxis& around, kernels::ScanOrder order, Tensor& y);
template <Run run> void run_scan(const Call& c, std::span<Tensor> y) {
  const auto& [axis, exclusive, reverse] = c.attrs<ScanAttrs>();
  run(c.x[0], kernels::AroundAxis(c.x[0].shape(), c.x[0].ndim() + axis), {exclusive, reverse}, y[0]);
}

Tensor back(const Call& c, const Tensor& dy);    // the running sum the other way
Tensor there(const Call& c, const Tensor& dx);   // the same way
Tensor recurrence(const Tensor& a, const Tensor& b);

// a / b, and 0 where b is.
Tensor quotient(const Tensor& a, const Tensor& b) {
  const Tensor is_zero = equal(b, 0);
  return where(is_zero, 0, a / where(is_zero, 1, b));
}

// x without its last entry along the last axis, behind a number.
Tensor moved_on(const Tensor& x, double first = 0) {
  if (x.size() == 0) return x;
  Shape front = x.shape();
  front.set(x.ndim() - 1, 1);
  return concat({full(front, first, x.dtype()), strided_slice(x, {Slice::ellipsis, Slice({}, -1)})}, -1);
}
Tensor moved_back(const Tensor& x) { return reverse(moved_on(reverse(x, -1)), -1); }

Spec infer_recurrence(const Call& c) {
  const Shape &a = c.x[0].shape(), &b = c.x[1].shape();
  infer_complex_rows(c);
  require_one_dtype(c);
  if (b.ndim() < a.ndim() || Shape(b.dims().last(static_cast<std::size_t>(a.ndim()))) != a)
    throw_shape_error(c, "the last axes of b must be those of a");
  return c.x[1].spec();
}

// Of the recurrence y[i] = b[i] + a[i] · y[i - 1]: l[i] = dy[i] + a[i + 1] · l[i + 1], which is the gradient
// of b.
Tensor recurrence_back(const Tensor& a, const Tensor& dy) {
  return reverse(recurrence(reverse(moved_back(a), -1), reverse(dy, -1)), -1);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// exp(x - y), where y is -∞ only if x is.
Tensor ratio(const Tensor& x, const Tensor& y) { return exp(x - where(equal(y, -kInfinity), 0, y)); }

struct LogSumAttrs {
  bool reverse;
};
// A tensor as it is seen from where the sums start.
Tensor in_order(const Call& c, const Tensor& x) {
  return c.attrs<LogSumAttrs>().reverse ? reverse(x, -1) : x;
}

// The derivative of y = log Σ exp x[j], j ≤ i, is exp(x[j] - y[i]). Sums of these times dy over i ≥ j are a
// recurrence with the factors exp(y[i - 1] - y[i]), none of which is above 1.
void logsumexp_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const Tensor x = in_order(c, c.x[0]), y = in_order(c, c.y[0]);
  dx[0] = in_order(c, ratio(x, y) * recurrence_back(ratio(moved_on(y, -kInfinity), y),
                                                    in_order(c, std::move(dy[0]).dense())));
}
void logsumexp_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  const Tensor x = in_order(c, c.x[0]), y = in_order(c, c.y[0]);
  dy[0] = in_order(c, recurrence(ratio(moved_on(y, -kInfinity), y), ratio(x, y) * in_order(c, dx[0])));
}

OwnedAttrs along(int axis, bool exclusive = false, bool reverse = false) {
  return Attrs(ScanAttrs{axis, exclusive, reverse});
}

constexpr Op table[] = {
    {.name = "cumsum",
     .doc = "Running sum along an axis: y[i] = Σⱼ x[j], j ≤ i; or j < i, or from the end.",
     .tensorflow = "Cumsum",
     .args = {"x"},
     .infer = infer_scan,
     .forward = run_scan<kernels::cumsum>,
     .rule = linear([](const Call& c, const Tensor& dy) { return back(c, dy); }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({37}, -1, 1)}, .attrs = along(-1)},
                                      {.inputs = {uniform({3, 5, 2}, -1, 1)}, .attrs = along(-2, true)},
                                      {.inputs = {uniform({2, 0}, -1, 1)}, .attrs = along(-2)},
                                      {.inputs = {uniform({3, 6}, -1, 1)}, .attrs = along(-1, true, true)},
                                      {.inputs = {f64({{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}})},
                                       .attrs = along(-1),
                                       .expected = {f64({{1, 3, 6, 10, 15}, {6, 13, 21, 30, 40}})},
                                       .oracle = "np.cumsum(x, axis=-1)"},
                                      {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                                       .attrs = along(-2, false, true),
                                       .expected = {f64({{5, 7, 9}, {4, 5, 6}})},
                                       .oracle = "np.cumsum(x[::-1], axis=0)[::-1]"},
                                      {.inputs = {f64({1, 2, 3, 4, 5})},
                                       .attrs = along(-1, true),
                                       .expected = {f64({0, 1, 3, 6, 10})},
                                       .oracle = "np.cumsum(x) - x"},
                                      {.inputs = {tensor({1, 2, 3, 4, 5}, DType::i32)},
                                       .attrs = along(-1, true, true),
                                       .expected = {tensor({14, 12, 9, 5, 0}, DType::i32)},
                                       .oracle = "np.cumsum(x[::-1])[::-1] - x"}};
         }},

    {.name = "cumprod",
     .doc = "Running product along an axis: y[i] = Πⱼ x[j], j ≤ i; or j < i, or from the end. The gradient "
            "of an element that is 0 is 0.",
     .tensorflow = "Cumprod",
     .args = {"x"},
     .infer = infer_scan,
     .forward = run_scan<kernels::cumprod>,
     .rule = custom(
         {.x = 1, .y = true},
         [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
           dx[0] = quotient(back(c, c.y[0] * std::move(dy[0]).dense()), c.x[0]);
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) {
           dy[0] = c.y[0] * there(c, quotient(dx[0], c.x[0]));
         }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, 0.8, 1.3)}, .attrs = along(-1)},
               {.inputs = {uniform({3, 5, 2}, 0.5, 1.5)}, .attrs = along(-2, true)},
               {.inputs = {uniform({2, 0}, -1, 1)}, .attrs = along(-2)},
               {.inputs = {uniform({3, 6}, -1.5, -0.5)}, .attrs = along(-1, true, true)},
               {.inputs = {f64({{1, 2, 3, -4, 5}, {6, 7, 8, 9, 10}})},
                .attrs = along(-1),
                .expected = {f64({{1, 2, 6, -24, -120}, {6, 42, 336, 3024, 30240}})},
                .oracle = "np.cumprod(x, axis=-1)"},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = along(-2, false, true),
                .expected = {f64({{4, 10, 18}, {4, 5, 6}})},
                .oracle = "np.cumprod(x[::-1], axis=0)[::-1]"},
               {.inputs = {f64({1, 2, 3, 4, 5})},
                .attrs = along(-1, true),
                .expected = {f64({1, 1, 2, 6, 24})},
                .oracle = "np.cumprod(x) / x"}};
         }},

    {.name = "cumulative_logsumexp",
     .doc = "Running log of the sum of exponentials along the last axis: y[i] = log Σⱼ exp(x[j]), j ≤ i; or "
            "from the end.",
     .tensorflow = "CumulativeLogsumexp",
     .args = {"x"},
     .infer = infer_rows,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::cumulative_logsumexp(c.x[0], c.x[0].shape()[c.x[0].ndim() - 1],
                                         c.attrs<LogSumAttrs>().reverse, y[0]);
         },
     .rule = custom({.x = 1, .y = true}, logsumexp_vjp, logsumexp_jvp),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, -2, 2)}, .attrs = Attrs(LogSumAttrs{false})},
               {.inputs = {uniform({2, 3, 4}, -2, 2)}, .attrs = Attrs(LogSumAttrs{true})},
               {.inputs = {uniform({2, 0}, -2, 2)}, .attrs = Attrs(LogSumAttrs{false})},
               {.inputs = {uniform({3, 1}, -2, 2)}, .attrs = Attrs(LogSumAttrs{false})},
               {.inputs = {f64({{1, 2, 3}, {-1000, 1000, 0}})},
                .attrs = Attrs(LogSumAttrs{false}),
                .expected = {f64({{1, 2.3132616875182226, 3.4076059644443806}, {-1000, 1000, 1000}})},
                .oracle = "np.logaddexp.accumulate(x, axis=-1)"},
               {.inputs = {f64({3, 2, 1})},
                .attrs = Attrs(LogSumAttrs{true}),
                .expected = {f64({3.4076059644443806, 2.3132616875182226, 1})},
                .oracle = "np.logaddexp.accumulate(x[::-1])[::-1]"}};
         }},

    {.name = "linear_recurrence",
     .doc = "y[i] = b[i] + a[i] · y[i - 1] along the last axis, where y[-1] = 0. The derivative of "
            "cumulative_logsumexp is made of it.",
     .args = {"a", "b"},
     .infer = infer_recurrence,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::linear_recurrence(c.x[0], c.x[1], y[0].shape()[y[0].ndim() - 1], y[0]);
         },
     .rule = custom(
         {.x = 1, .y = true},
         [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
           const Tensor db = recurrence_back(c.x[0], std::move(dys[0]).dense());
           if (c.needs(0)) {
             const Tensor terms = db * moved_on(c.y[0]);
             std::vector<int> rows(
                 static_cast<std::size_t>(c.y[0].ndim() - c.x[0].ndim()));   // of b, for one of a
             std::iota(rows.begin(), rows.end(), -c.y[0].ndim());
             dx[0] = rows.empty() ? terms : sum(terms, rows);
           }
           if (c.needs(1)) dx[1] = db;
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) {
           Tensor term = dx[1];
           if (dx[0].defined()) {
             const Tensor of_a = dx[0] * moved_on(c.y[0]);
             term = term.defined() ? term + of_a : of_a;
           }
           dy[0] = recurrence(c.x[0], term);
         }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({37}, -1, 1), uniform({37}, -1, 1, 1)}},
                                      {.inputs = {uniform({2, 3}, -1, 1), uniform({2, 2, 3}, -1, 1, 1)}},
                                      {.inputs = {uniform({2, 1}, -1, 1), uniform({2, 1}, -1, 1, 1)}},
                                      {.inputs = {uniform({2, 0}, -1, 1), uniform({2, 0}, -1, 1, 1)}},
                                      {.inputs = {f64({7, 2, 3, -1}), f64({1, 1, 2, 5})},
                                       .expected = {f64({1, 3, 11, -6})},
                                       .oracle = "by hand"}};
         }},
};

Tensor back(const Call& c, const Tensor& dy) {
  const auto& [axis, exclusive, reverse] = c.attrs<ScanAttrs>();
  return find(table, "cumsum").with(ScanAttrs{axis, exclusive, !reverse}, dy);
}
Tensor there(const Call& c, const Tensor& dx) { return find(table, "cumsum").with(c.attrs<ScanAttrs>(), dx); }
Tensor recurrence(const Tensor& a, const Tensor& b) {
  return find(table, "linear_recurrence")(Operand(a), Operand(b));
}

Tensor scan(const Op& op, const Tensor& x, int axis, const ScanOptions& options) {
  return op.with(ScanAttrs{checked_axis(op, axis, x.ndim()) - x.ndim(), options.exclusive, options.reverse},
                 x);
}

}   // namespace

Tensor cumsum(const Tensor& x, int axis, const ScanOptions& options) {
  return scan(find(table, "cumsum"), x, axis, options);
}
Tensor cumprod(const Tensor& x, int axis, const ScanOptions& options) {
  return scan(find(table, "cumprod"), x, axis, options);
}

// The op goes along the last axis and includes each element.
Tensor cumulative_logsumexp(const Tensor& x, int axis, const ScanOptions& options) {
  const Op& op = find(table, "cumulative_logsumexp");
  const Tensor* inputs[] = {&x};
  require_floating({.op = op, .x = {inputs, 1}}, 0);
  const int at = checked_axis(op, axis, x.ndim());
  const std::int64_t n = x.shape()[at];
  Tensor y = with_axis_last(x, at);
  if (options.exclusive && n)
    y = strided_slice(y, {Slice::ellipsis, options.reverse ? Slice(1, {}) : Slice({}, -1)});
  y = op.with(LogSumAttrs{options.reverse}, y);
  if (options.exclusive && n) {
    Shape end = y.shape();
    end.set(y.ndim() - 1, 1);
    const Tensor lowest =
        full(end,
             x.dtype() == DType::f32 ? static_cast<double>(std::numeric_limits<float>::lowest())
                                     : std::numeric_limits<double>::lowest(),
             x.dtype());
    y = options.reverse ? concat({y, lowest}, -1) : concat({lowest, y}, -1);
  }
  return with_last_axis_at(y, at);
}

std::span<const Op> scan_ops() { return table; }

}   // namespace tapedeck
