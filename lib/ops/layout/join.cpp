// Joining and splitting along an axis. In: several tensors of any dtype, or one. Out: one, or several.
#include "ops/layout/join.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/format.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/trace.h"
#include "kernels/layout/columns.h"
#include "kernels/layout/copy.h"
#include "ops/axes.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/slice.h"
#include "tapedeck/ops/join.h"
#include "tapedeck/ops/math.h"

namespace tapedeck {
namespace {

Spec infer_concat(const Call& c) {
  const Tensor& first = c.x[0];
  require_axes(c, -c.attrs<AxisAttrs>().axis);
  const int axis = first.ndim() + c.attrs<AxisAttrs>().axis;
  Shape shape = first.shape();
  for (int i = 1; i < c.x.size(); ++i) {
    const Tensor& x = c.x[i];
    if (x.dtype() != first.dtype()) c.throw_dtype_error("dtypes differ");
    Shape like_first = x.shape();
    if (x.ndim() == first.ndim()) like_first.set(axis, first.shape()[axis]);
    if (like_first != first.shape())
      c.throw_shape_error(fmt::format("shapes must match except along axis {}", axis));
    std::int64_t extent;
    if (__builtin_add_overflow(shape[axis], x.shape()[axis], &extent))
      c.throw_shape_error("too many elements");
    shape.set(axis, extent);
  }
  return {first.dtype(), shape};
}

Spec infer_stack(const Call& c) {
  const Spec one = all_alike(c);
  require_axes(c, -1 - c.attrs<AxisAttrs>().axis);
  const int ndim = one.shape.ndim(), axis = ndim + 1 + c.attrs<AxisAttrs>().axis;
  if (ndim == Shape::kMaxRank) c.throw_shape_error("more than 8 axes");
  Shape shape;
  for (int d = 0; d <= ndim; ++d)
    shape.push_back(d == axis ? c.x.size() : one.shape[d < axis ? d : d - 1]);
  return {one.dtype, shape};
}

// Bytes of a cache line; of a block of rows that stays in the L1 cache; the fewest bytes for a thread.
constexpr std::int64_t kLine = 64, kNear = 1 << 14, kTask = 1 << 18;

// Whether each part has one element per row, and there are enough rows for copies of blocks to pay off. parts
// is Refs or a span of tensors.
bool are_columns(const kernels::AxisView& view, const auto& parts) {
  bool single = view.before >= 8 && view.after == 1 && parts.size() >= 2;
  for (decltype(parts.size()) i = 0; single && i < parts.size(); ++i)
    single = parts[i].size() == view.before;
  return single;
}

// Calls copy(first row, number of rows) for all rows, which have `bytes` bytes each. Rows with short parts
// are copied in blocks: their parts share cache lines, which costs little while the block stays in the cache.
template <class F> void each_block(std::int64_t rows, std::int64_t bytes, std::int64_t parts, F copy) {
  if (bytes > kLine * parts) return copy(0, rows);
  const std::int64_t piece = std::max(kNear / bytes, std::int64_t{1});
  parallel_for((rows + piece - 1) / piece, kTask / kNear, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p)
      copy(p * piece, std::min(piece, rows - p * piece));
  });
}

// The forward pass of concat and stack: copies the inputs one after the other along the axis.
void run_join(const Call& c, std::span<Tensor> y) {
  if (y[0].size() == 0) return;
  const kernels::AxisView view(y[0].shape(), y[0].ndim() + c.attrs<AxisAttrs>().axis);
  if (are_columns(view, c.x)) return kernels::copy_from_columns(c.x, y[0]);
  const std::int64_t row = view.extent * view.after;
  each_block(view.before, row * size_of(y[0].dtype()), c.x.size(),
             [&](std::int64_t first, std::int64_t rows) {
               kernels::Runs to{first * row, row};
               for (int i = 0; i < c.x.size(); ++i) {
                 const std::int64_t n = c.x[i].size() / view.before;
                 kernels::copy_runs(c.x[i], {first * n, n}, y[0], to, rows, n);
                 to.first += n;
               }
             });
}

std::vector<Spec> infer_split(const Call& c) {
  const auto& [axis, sizes] = c.attrs<SplitAttrs>();
  require_axes(c, -axis);
  std::int64_t sum = 0;
  bool fits = true;
  for (const std::int64_t n : sizes)
    fits &= n >= 0 && !__builtin_add_overflow(sum, n, &sum);
  if (!fits || sum != c.x[0].shape()[c.x[0].ndim() + axis])
    c.throw_shape_error(fmt::format("the sizes do not add up to axis {}: sizes are [{}]",
                                    c.x[0].ndim() + axis, fmt::join(sizes, ",")));
  std::vector<Spec> parts(sizes.size(), c.x[0].spec());
  for (std::size_t k = 0; k < sizes.size(); ++k)
    parts[k].shape.set(c.x[0].ndim() + axis, sizes[k]);
  return parts;
}

std::vector<Spec> infer_unstack(const Call& c) {
  const Shape& x = c.x[0].shape();
  require_axes(c, -c.attrs<AxisAttrs>().axis);
  const int axis = x.ndim() + c.attrs<AxisAttrs>().axis;
  return std::vector<Spec>(static_cast<std::size_t>(x[axis]),
                           {c.x[0].dtype(), without(x, 1u << (x.ndim() - 1 - axis), false)});
}

// A view of `count` runs of n elements each.
kernels::StridedView view_of(const kernels::Runs& runs, std::int64_t count, std::int64_t n) {
  kernels::StridedView view(runs.first);
  view.append(count, runs.step);
  view.append(n, 1);
  return view;
}

// The forward pass of split and unstack: splits x into the outputs along the axis.
void run_cut(const Tensor& x, int axis, std::span<Tensor> y) {
  const kernels::AxisView view(x.shape(), x.ndim() + axis);
  const std::int64_t row = kernels::wrapping_mul(view.extent, view.after);
  std::int64_t first = 0;
  for (Tensor& part : y) {
    const std::int64_t n = part.size() ? part.size() / view.before : 0;
    if (n && view.before == 1) {
      share_with(part, x, first);
    } else {
      allocate_for(part);
      if (thread_state.trace) thread_state.trace->on_select(part, x, view_of({first, row}, view.before, n));
    }
    first += n;
  }
  if (x.size() == 0 || view.before == 1) return;
  if (are_columns(view, y)) return kernels::copy_to_columns(x, y);
  each_block(view.before, row * size_of(x.dtype()), static_cast<std::int64_t>(y.size()),
             [&](std::int64_t begin, std::int64_t rows) {
               kernels::Runs from{begin * row, row};
               for (Tensor& part : y) {
                 const std::int64_t n = part.size() / view.before;
                 kernels::copy_runs(x, from, part, {begin * n, n}, rows, n);
                 from.first += n;
               }
             });
}

void concat_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
void stack_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
void split_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
void unstack_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);

// The jvp of concat and stack.
void join_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  int some = 0;
  while (!dx[some].defined())
    ++some;
  std::vector<Tensor> parts;
  for (int i = 0; i < dx.size(); ++i)
    parts.push_back(dx[i].defined()
                        ? dx[i]
                        : zeros(behind_extra(dx[some], c.x[some].ndim(), c.x[i].shape()), c.x[i].dtype()));
  dy[0] = c.op(parts, c.raw_attrs);
}

// The jvp of split and unstack.
void cut_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  std::ranges::move(c.op.run({&dx[0], 1}, c.raw_attrs), dy.begin());
}

constexpr Op kConcat = {
    .name = "concat",
    .doc = "Tensors concatenated along an axis.",
    .tensorflow = "Concat ConcatV2",
    .args = {"a", "b"},
    .infer = infer_concat,
    .forward = moves(run_join),
    .rule = Rule::custom({}, concat_vjp, join_jvp).stacking_jvp(),
    .meaning = Meaning::rearrange,
};

constexpr Op kStack = {
    .name = "stack",
    .doc = "Tensors of one shape joined along a new axis.",
    .tensorflow = "Pack",
    .args = {"a", "b"},
    .infer = infer_stack,
    .forward = moves(run_join),
    .rule = Rule::custom({}, stack_vjp, join_jvp).stacking_jvp(),
    .meaning = Meaning::rearrange,
};

constexpr Op kSplit = {
    .name = "split",
    .doc = "x split into parts along an axis.",
    .tensorflow = "Split SplitV",
    .args = {"x"},
    .infer = infer_split,
    .forward =
        moves({[](const Call& c, std::span<Tensor> y) { run_cut(c.x[0], c.attrs<SplitAttrs>().axis, y); },
               Outputs::by_kernel}),
    .rule = Rule::custom({}, split_vjp, cut_jvp).stacking_jvp().accepting_none(),
};

constexpr Op kUnstack = {
    .name = "unstack",
    .doc = "The entries of x along an axis as separate tensors, without that axis.",
    .tensorflow = "Unpack",
    .args = {"x"},
    .infer = infer_unstack,
    .forward =
        moves({[](const Call& c, std::span<Tensor> y) { run_cut(c.x[0], c.attrs<AxisAttrs>().axis, y); },
               Outputs::by_kernel}),
    .rule = Rule::custom({}, unstack_vjp, cut_jvp).stacking_jvp().accepting_none(),
};

constexpr const Op* join_table[] = {&kConcat, &kStack, &kSplit, &kUnstack};

// The only input that needs a gradient, or -1.
int only_wanted(const Call& c) {
  int found = -1;
  for (int i = 0; i < c.x.size(); ++i)
    if (c.needs_gradient(i) && std::exchange(found, i) >= 0) return -1;
  return found;
}

// A single part is computed by slice. Several parts are computed by one split, so that second derivatives
// also run a single op.
void concat_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  const Tensor dy = std::move(dys[0]).dense();
  const int axis = c.attrs<AxisAttrs>().axis;
  const auto extent = [&](int i) { return c.x[i].shape()[c.x[i].ndim() + axis]; };
  if (const int only = only_wanted(c); only >= 0) {
    SliceAttrs part;
    for (int d = axis; d < 0; ++d)
      part.begin.push_back(0), part.size.push_back(-1);
    part.size.set(0, extent(only));
    for (int i = 0; i < only; ++i)
      part.begin.set(0, part.begin[0] + extent(i));
    dx[static_cast<std::size_t>(only)] = part_of(dy, part);
    return;
  }
  SplitAttrs sizes{axis, {}};
  for (int i = 0; i < c.x.size(); ++i)
    sizes.sizes.push_back(extent(i));
  std::ranges::move(kSplit.run({&dy, 1}, sizes), dx.begin());
}

void stack_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  const Tensor dy = std::move(dys[0]).dense();
  const AxisAttrs& attrs = c.attrs<AxisAttrs>();
  if (const int only = only_wanted(c); only >= 0) {
    StridedAttrs part;
    for (int d = attrs.axis; d < 0; ++d) {
      const std::int64_t extent = dy.shape()[dy.ndim() + d];
      part.whole.push_back(extent), part.begin.push_back(0), part.size.push_back(extent),
          part.stride.push_back(1);
      if (d > attrs.axis) part.shape.push_back(extent);
    }
    part.begin.set(0, only), part.size.set(0, 1);
    dx[static_cast<std::size_t>(only)] = strided_part_of(dy, part);
    return;
  }
  std::ranges::move(kUnstack.run({&dy, 1}, attrs), dx.begin());
}

// Joins the gradients of the parts. Unused parts become zeros between used ones, and padding before and
// after.
void cut_vjp(const Call& c, const Op& join, int axis, std::span<Gradient> dys, std::span<Gradient> dx) {
  const auto came = [](const Gradient& g) { return g.defined(); };
  const auto first = std::ranges::find_if(dys, came) - dys.begin(),
             last = dys.rend() - std::find_if(dys.rbegin(), dys.rend(), came);
  const int ndim = c.x[0].ndim();
  const auto shape = [&](std::ptrdiff_t k) -> const Shape& { return c.y[static_cast<int>(k)].shape(); };
  std::vector<Tensor> parts;
  Tensor hole;
  for (auto k = first; k < last; ++k) {
    Gradient& dy = dys[static_cast<std::size_t>(k)];
    if (dy.defined()) {
      parts.push_back(std::move(dy).dense());
    } else {
      const Shape missing = behind_extra(parts[0], shape(first).ndim(), shape(k));
      if (!hole.defined() || hole.shape() != missing) hole = zeros(missing, parts[0].dtype());
      parts.push_back(hole);
    }
  }
  const Tensor whole =
      parts.size() == 1 && shape(first).ndim() == ndim ? parts[0] : join(parts, AxisAttrs{axis});
  PadAttrs padding;
  for (int d = axis; d < 0; ++d)
    padding.before.push_back(0), padding.after.push_back(0);
  std::int64_t before = 0;
  for (std::ptrdiff_t k = 0; k < first; ++k)
    before += shape(k).ndim() == ndim ? shape(k)[ndim + axis] : 1;
  padding.before.set(0, before);
  padding.after.set(0, c.x[0].shape()[ndim + axis] - before - whole.shape()[whole.ndim() + axis]);
  dx[0] = padding.before[0] || padding.after[0] ? padded(whole, padding) : whole;
}

void split_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  cut_vjp(c, kConcat, c.attrs<SplitAttrs>().axis, dys, dx);
}
void unstack_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  cut_vjp(c, kStack, c.attrs<AxisAttrs>().axis, dys, dx);
}

// concat or stack, after promotion to one dtype.
Tensor joined(const Op& op, std::span<const Tensor> x, int axis) {
  DType dtype = x.front().dtype();
  bool mixed = false;
  for (const Tensor& t : x) {
    mixed |= t.dtype() != x.front().dtype();
    dtype = promote(dtype, t.dtype());
  }
  if (!mixed) return op(x, AxisAttrs{axis});
  std::vector<Tensor> parts;
  for (const Tensor& t : x)
    parts.push_back(t.dtype() == dtype ? t : astype(t, dtype));
  return op(parts, AxisAttrs{axis});
}

}   // namespace

Tensor concat(std::span<const Tensor> x, int axis) {
  if (x.empty()) throw ArgumentError("concat: no tensors");
  const int ndim = x.front().ndim();
  return joined(kConcat, x, checked_axis(kConcat, axis, ndim) - ndim);
}

Tensor stack(std::span<const Tensor> x, int axis) {
  if (x.empty()) throw ArgumentError("stack: no tensors");
  const int ndim = x.front().ndim() + 1;
  return joined(kStack, x, checked_position("stack", axis, ndim, x.front()) - ndim);
}

std::vector<Tensor> split(const Tensor& x, int parts, int axis) {
  const int at = checked_axis(kSplit, axis, x.ndim());
  if (parts < 1) throw_error<ArgumentError>("split: {} parts; use 1 or more", parts);
  const std::int64_t extent = x.shape()[at];
  if (extent % parts)
    throw_error<ShapeError>("split: axis {} of x, {}, cannot be split into {} equal parts", at, x.spec(),
                            parts);
  return kSplit.run({&x, 1}, SplitAttrs{at - x.ndim(), std::vector<std::int64_t>(
                                                           static_cast<std::size_t>(parts), extent / parts)});
}

std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes, int axis) {
  const int at = checked_axis(kSplit, axis, x.ndim());
  if (sizes.empty()) throw ArgumentError("split: no sizes");
  SplitAttrs attrs{at - x.ndim(), {sizes.begin(), sizes.end()}};
  std::int64_t rest = x.shape()[at], *open = nullptr;
  bool fits = true;
  for (std::int64_t& n : attrs.sizes) {
    if (n == -1 && !open)
      open = &n;
    else if (n < 0 || n > rest)
      fits = false;
    else
      rest -= n;
  }
  if (!fits || (rest && !open))
    throw_error<ShapeError>("split: the sizes do not add up to axis {} of x: sizes are [{}], x is {}", at,
                            fmt::join(sizes, ","), x.spec());
  if (open) *open = rest;
  return kSplit.run({&x, 1}, attrs);
}

std::vector<Tensor> unstack(const Tensor& x, int axis) {
  const int at = checked_axis(kUnstack, axis, x.ndim());
  if (x.shape()[at] == 0) return {};
  if (x.shape()[at] > std::numeric_limits<int>::max())
    throw_error<ShapeError>("unstack: axis {} of x, {}, has too many entries", at, x.spec());
  return kUnstack.run({&x, 1}, AxisAttrs{at - x.ndim()});
}

std::span<const Op* const> join_ops() { return join_table; }

}   // namespace tapedeck
