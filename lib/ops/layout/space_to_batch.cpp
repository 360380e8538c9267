// Moves blocks of pixels between spatial axes, batch and channels. In: images. Out: the same elements in
// other positions. Axes count from the end, so that leading axes of stacked cotangents stay unchanged.
#include "tapedeck/ops/space_to_batch.h"

#include "core/format.h"
#include "core/storage.h"
#include "kernels/layout/copy.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/space_to_batch.h"
#include "ops/nn/window.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

// The spec of x with another batch extent and spatial extents f(extent, block, number of added entries).
template <class F> Spec with_space(const Call& c, std::int64_t batch, const F& f) {
  const auto& a = c.attrs<BlockAttrs>();
  Spec y = c.x[0].spec();
  const int first = y.shape.ndim() - a.ndim;
  y.shape.set(first, batch);
  for (int i = 0; i < a.block.ndim(); ++i)
    y.shape.set(first + 1 + i, f(y.shape[first + 1 + i], a.block[i], a.before[i] + a.after[i]));
  return y;
}
std::int64_t batch_of(const Call& c) {
  const Tensor& x = c.x[0];
  const int ndim = c.attrs<BlockAttrs>().ndim;
  if (x.ndim() < ndim) c.throw_shape_error(fmt::format("x needs rank {} or more", ndim));
  return x.shape()[x.ndim() - ndim];
}

Spec infer_space_to_batch(const Call& c) {
  const std::int64_t batch = batch_of(c);
  return with_space(c, Shape{batch, c.attrs<BlockAttrs>().block.size()}.size(),
                    [&](std::int64_t n, std::int64_t block, std::int64_t added) {
                      std::int64_t padded;
                      if (__builtin_add_overflow(n, added, &padded)) c.throw_shape_error("too many elements");
                      if (padded % block)
                        c.throw_shape_error(fmt::format("blocks of {} do not divide a padded axis of {}",
                                                        c.attrs<BlockAttrs>().block, padded));
                      return padded / block;
                    });
}
Spec infer_batch_to_space(const Call& c) {
  const std::int64_t batch = batch_of(c), blocks = c.attrs<BlockAttrs>().block.size();
  if (batch % blocks)
    c.throw_shape_error(fmt::format("blocks of {} do not divide the batch", c.attrs<BlockAttrs>().block));
  return with_space(c, batch / blocks, [&](std::int64_t n, std::int64_t block, std::int64_t cut) {
    const std::int64_t whole = Shape{n, block}.size();
    if (whole < cut)
      c.throw_shape_error(fmt::format("cannot crop {} entries from an axis of {}", cut, whole));
    return whole - cut;
  });
}

// The strides of a contiguous tensor of shape x.
Shape steps_of(const Shape& x) {
  Shape steps = x;
  std::int64_t step = 1;
  for (int d = x.ndim(); d-- > 0; step *= x[d])
    steps.set(d, step);
  return steps;
}

void fill(Tensor& y, const Tensor& x, const kernels::StridedView& at) {
  allocate_for(y);
  if (y.size()) kernels::copy_from(x, at, y);
}

// The padding around the spatial axes, with an entry for every axis of x.
struct Around {
  Shape before, after;
};
Around around(const BlockAttrs& a, int ndim) {
  Around all;
  for (int d = 0; d < ndim; ++d) {
    const int i = d - (ndim - a.ndim) - 1;
    const bool space = i >= 0 && i < a.block.ndim();
    all.before.push_back(space ? a.before[i] : 0);
    all.after.push_back(space ? a.after[i] : 0);
  }
  return all;
}
void run_space_to_batch(const Call& c, std::span<Tensor> y) {
  if (y[0].size() == 0) return allocate_for(y[0]);
  const auto& a = c.attrs<BlockAttrs>();
  const auto [before, after] = around(a, c.x[0].ndim());
  const Tensor x = pad(c.x[0], before, after);
  const int first = x.ndim() - a.ndim;
  const Shape steps = steps_of(x.shape());
  kernels::StridedView at;
  for (int d = 0; d < first; ++d)
    at.append(x.shape()[d], steps[d]);
  for (int i = 0; i < a.block.ndim(); ++i)
    at.append(a.block[i], steps[first + 1 + i]);
  at.append(x.shape()[first], steps[first]);
  for (int d = first + 1; d < x.ndim(); ++d) {
    const int i = d - first - 1;
    const std::int64_t block = i < a.block.ndim() ? a.block[i] : 1;
    at.append(x.shape()[d] / block, steps[d] * block);
  }
  fill(y[0], x, at);
}

void run_batch_to_space(const Call& c, std::span<Tensor> y) {
  if (y[0].size() == 0) return allocate_for(y[0]);
  const auto& a = c.attrs<BlockAttrs>();
  const Tensor& x = c.x[0];
  const int first = x.ndim() - a.ndim;
  const Shape steps = steps_of(x.shape());
  Shape whole = x.shape();
  std::int64_t step = x.shape()[first] / a.block.size();   // of positions in a block, in batch entries
  whole.set(first, step);
  Shape block_steps = a.block;
  for (int i = a.block.ndim(); i-- > 0; step *= a.block[i])
    block_steps.set(i, step * steps[first]);
  kernels::StridedView at;
  for (int d = 0; d <= first; ++d)
    at.append(whole[d], steps[d]);
  for (int d = first + 1; d < x.ndim(); ++d) {
    at.append(x.shape()[d], steps[d]);
    if (const int i = d - first - 1; i < a.block.ndim()) {
      at.append(a.block[i], block_steps[i]);
      whole.set(d, x.shape()[d] * a.block[i]);
    }
  }
  Tensor uncut = blank({x.dtype(), whole});
  fill(uncut, x, at);
  y[0] = slice(uncut, around(a, x.ndim()).before, y[0].shape());
}

Spec infer_space_to_depth(const Call& c) {
  require_rank(c, 0);
  const Tensor& x = c.x[0];
  const std::int64_t block = c.attrs<DepthAttrs>().block, height = x.shape()[x.ndim() - 3],
                     width = x.shape()[x.ndim() - 2];
  if (height % block || width % block)
    c.throw_shape_error(fmt::format("blocks of {} do not divide height and width", block));
  return {x.dtype(),
          behind(front_of(x), {height / block, width / block}, Shape{channels_of(x), block, block}.size())};
}
Spec infer_depth_to_space(const Call& c) {
  require_rank(c, 0);
  const Tensor& x = c.x[0];
  const std::int64_t block = c.attrs<DepthAttrs>().block, height = x.shape()[x.ndim() - 3],
                     width = x.shape()[x.ndim() - 2];
  if (channels_of(x) % (block * block))
    c.throw_shape_error(fmt::format("{}·{} does not divide the channels", block, block));
  return {x.dtype(), behind(front_of(x), {Shape{height, block}.size(), Shape{width, block}.size()},
                            channels_of(x) / (block * block))};
}
// Transposes runs of elements: each part of x is an `a` × `b` matrix of runs, and becomes a `b` × `a` matrix.
void swap_runs(const Tensor& x, std::int64_t a, std::int64_t b, std::int64_t run, Tensor& y) {
  if (y.size() == 0) return allocate_for(y);
  const std::int64_t part = a * b * run;
  kernels::StridedView at;
  at.append(x.size() / part, part);
  at.append(b, run);
  at.append(a, b * run);
  at.append(run, 1);
  fill(y, x, at);
}

Tensor space_to_batch(const BlockAttrs& a, const Tensor& x);
Tensor batch_to_space(const BlockAttrs& a, const Tensor& x);

constexpr Op kSpaceToBatchNd = {
    .name = "space_to_batch_nd",
    .doc =
        "Spatial axes, padded with zeros, are divided into blocks. The elements at one position of all "
        "blocks form a separate batch entry.",
    .tensorflow = "SpaceToBatch SpaceToBatchND",
    .args = {"x"},
    .infer = infer_space_to_batch,
    .forward = moves({run_space_to_batch, Outputs::by_kernel}),
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) { return batch_to_space(c.attrs<BlockAttrs>(), dy); }),
};

constexpr Op kBatchToSpaceNd = {
    .name = "batch_to_space_nd",
    .doc =
        "The inverse of space_to_batch_nd; then entries are cropped from both ends of the spatial "
        "axes.",
    .tensorflow = "BatchToSpace BatchToSpaceND",
    .args = {"x"},
    .infer = infer_batch_to_space,
    .forward = moves({run_batch_to_space, Outputs::by_kernel}),
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) { return space_to_batch(c.attrs<BlockAttrs>(), dy); }),
};

constexpr Op kSpaceToDepth = {
    .name = "space_to_depth",
    .doc = "Images in which each block of pixels becomes one pixel with more channels.",
    .tensorflow = "SpaceToDepth",
    .args = {"x"},
    .infer = infer_space_to_depth,
    .forward = moves({[](const Call& c, std::span<Tensor> y) {
                        const Shape& out = y[0].shape();
                        const std::int64_t block = c.attrs<DepthAttrs>().block;
                        swap_runs(c.x[0], block, out[out.ndim() - 2], block * channels_of(c.x[0]), y[0]);
                      },
                      Outputs::by_kernel}),
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) { return depth_to_space(dy, c.attrs<DepthAttrs>().block); }),
};

constexpr Op kDepthToSpace = {
    .name = "depth_to_space",
    .doc = "The inverse of space_to_depth.",
    .tensorflow = "DepthToSpace",
    .args = {"x"},
    .infer = infer_depth_to_space,
    .forward = moves({[](const Call& c, std::span<Tensor> y) {
                        const Tensor& x = c.x[0];
                        const std::int64_t block = c.attrs<DepthAttrs>().block;
                        swap_runs(x, x.shape()[x.ndim() - 2], block, channels_of(x) / block, y[0]);
                      },
                      Outputs::by_kernel}),
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) { return space_to_depth(dy, c.attrs<DepthAttrs>().block); }),
};

constexpr const Op* space_to_batch_table[] = {&kSpaceToBatchNd, &kBatchToSpaceNd, &kSpaceToDepth,
                                              &kDepthToSpace};

Tensor space_to_batch(const BlockAttrs& a, const Tensor& x) { return kSpaceToBatchNd(x, a); }
Tensor batch_to_space(const BlockAttrs& a, const Tensor& x) { return kBatchToSpaceNd(x, a); }

BlockAttrs checked_blocks(const Op& op, const Tensor& x, const Shape& block, const Shape& before,
                          const Shape& after) {
  if (before.ndim() != block.ndim() || after.ndim() != block.ndim())
    throw_error<ShapeError>(
        "{}: block, before and after must have one entry for each axis: they are {}, {} and {}", op.name,
        block, before, after);
  if (x.ndim() <= block.ndim())
    throw_error<ShapeError>("{}: blocks of {} need {} spatial axes after the batch axis: x is {}", op.name,
                            block, block.ndim(), x.spec());
  for (int i = 0; i < block.ndim(); ++i) {
    if (block[i] < 1 || block[i] > kMostCells)
      throw_error<ArgumentError>("{}: block is {}; use 1..{}", op.name, block, kMostCells);
    if (std::min(before[i], after[i]) < 0 || std::max(before[i], after[i]) > kMostCells)
      throw_error<ArgumentError>("{}: before and after are {} and {}; use 0..{}", op.name, before, after,
                                 kMostCells);
  }
  (void)block.size();   // throws if the blocks are too large together
  return {x.ndim(), block, before, after};
}

Tensor with_block(const Op& op, const Tensor& x, std::int64_t block) {
  if (block < 1 || block > 1 << 15)
    throw_error<ArgumentError>("{}: block is {}; use 1..{}", op.name, block, 1 << 15);
  return op(x, DepthAttrs{block});
}

}   // namespace

Tensor space_to_batch_nd(const Tensor& x, Ints block, Ints before, Ints after) {
  return space_to_batch(
      checked_blocks(kSpaceToBatchNd, x, Shape(block.span()), Shape(before.span()), Shape(after.span())), x);
}
Tensor batch_to_space_nd(const Tensor& x, Ints block, Ints before, Ints after) {
  return batch_to_space(
      checked_blocks(kBatchToSpaceNd, x, Shape(block.span()), Shape(before.span()), Shape(after.span())), x);
}
Tensor space_to_depth(const Tensor& x, std::int64_t block) { return with_block(kSpaceToDepth, x, block); }
Tensor depth_to_space(const Tensor& x, std::int64_t block) { return with_block(kDepthToSpace, x, block); }

std::span<const Op* const> space_to_batch_ops() { return space_to_batch_table; }

}   // namespace tapedeck
