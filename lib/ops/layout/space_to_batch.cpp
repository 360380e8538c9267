// Pixels moved between the axes of images. In: images. Out: the same elements elsewhere. Axes count from the
// end: what gradients have in front of x's axes passes through.
#include "tapedeck/ops/space_to_batch.h"

#include "core/format.h"
#include "core/storage.h"
#include "kernels/layout/copy.h"
#include "ops/nn/window.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

// Blocks of the axes behind the batch axis, which is axis -ndim; and what is added or cut off around them.
struct BlockAttrs {
  int ndim;
  Shape block, before, after;
};
struct DepthAttrs {
  std::int64_t block;
};

// The shape of x with another batch and other extents of space: f(extent, block, number of added entries).
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
  if (x.ndim() < ndim) throw_shape_error(c, fmt::format("x needs rank {} or more", ndim));
  return x.shape()[x.ndim() - ndim];
}

Spec infer_space_to_batch(const Call& c) {
  const std::int64_t batch = batch_of(c);
  return with_space(c, Shape{batch, c.attrs<BlockAttrs>().block.size()}.size(),
                    [&](std::int64_t n, std::int64_t block, std::int64_t added) {
                      if ((n + added) % block)
                        throw_shape_error(c, fmt::format("blocks of {} do not divide a padded axis of {}",
                                                         c.attrs<BlockAttrs>().block, n + added));
                      return (n + added) / block;
                    });
}
Spec infer_batch_to_space(const Call& c) {
  const std::int64_t batch = batch_of(c), blocks = c.attrs<BlockAttrs>().block.size();
  if (batch % blocks)
    throw_shape_error(c, fmt::format("blocks of {} do not divide the batch", c.attrs<BlockAttrs>().block));
  return with_space(c, batch / blocks, [&](std::int64_t n, std::int64_t block, std::int64_t cut) {
    if (n * block < cut)
      throw_shape_error(c, fmt::format("{} entries are cut off an axis of {}", cut, n * block));
    return n * block - cut;
  });
}

// Distances between the entries of each axis.
Shape steps_of(const Shape& x) {
  Shape steps = x;
  std::int64_t step = 1;
  for (int d = x.ndim(); d-- > 0; step *= x[d])
    steps.set(d, step);
  return steps;
}

void fill(Tensor& y, const Tensor& x, const kernels::Places& at) {
  allocate_for(y);
  if (y.size()) kernels::copy_from(x, at, y);
}

// What lies around the axes of space, for all axes of x.
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
  const auto& a = c.attrs<BlockAttrs>();
  const auto [before, after] = around(a, c.x[0].ndim());
  const Tensor x = pad(c.x[0], before, after);
  const int first = x.ndim() - a.ndim;
  const Shape steps = steps_of(x.shape());
  kernels::Places at;
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
  const auto& a = c.attrs<BlockAttrs>();
  const Tensor& x = c.x[0];
  const int first = x.ndim() - a.ndim;
  const Shape steps = steps_of(x.shape());
  Shape whole = x.shape();
  std::int64_t step = x.shape()[first] / a.block.size();   // of batches, between the positions in a block
  whole.set(first, step);
  Shape block_steps = a.block;
  for (int i = a.block.ndim(); i-- > 0; step *= a.block[i])
    block_steps.set(i, step * steps[first]);
  kernels::Places at;
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
    throw_shape_error(c, fmt::format("blocks of {} do not divide height and width", block));
  return {x.dtype(),
          behind(front_of(x), {height / block, width / block}, Shape{channels_of(x), block, block}.size())};
}
Spec infer_depth_to_space(const Call& c) {
  require_rank(c, 0);
  const Tensor& x = c.x[0];
  const std::int64_t block = c.attrs<DepthAttrs>().block, height = x.shape()[x.ndim() - 3],
                     width = x.shape()[x.ndim() - 2];
  if (channels_of(x) % (block * block))
    throw_shape_error(c, fmt::format("{}·{} does not divide the channels", block, block));
  return {x.dtype(), behind(front_of(x), {Shape{height, block}.size(), Shape{width, block}.size()},
                            channels_of(x) / (block * block))};
}
// x in runs of elements: `a` times `b` of them in every part, of which the result has `b` times `a`.
void swap_runs(const Tensor& x, std::int64_t a, std::int64_t b, std::int64_t run, Tensor& y) {
  const std::int64_t part = a * b * run;
  kernels::Places at;
  at.append(part ? x.size() / part : 0, part);
  at.append(b, run);
  at.append(a, b * run);
  at.append(run, 1);
  fill(y, x, at);
}

Tensor space_to_batch(const BlockAttrs& a, const Tensor& x);
Tensor batch_to_space(const BlockAttrs& a, const Tensor& x);

constexpr Op table[] = {
    {.name = "space_to_batch_nd",
     .doc = "Axes of space, with zeros around them, cut into blocks: what lies at one position of all blocks "
            "becomes a batch of its own.",
     .tensorflow = "SpaceToBatch SpaceToBatchND",
     .args = {"x"},
     .infer = infer_space_to_batch,
     .forward = {run_space_to_batch, Outputs::own},
     .rule =
         linear([](const Call& c, const Tensor& dy) { return batch_to_space(c.attrs<BlockAttrs>(), dy); }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 6, 5}, -1, 1)},
                .attrs = Attrs(BlockAttrs{4, {2, 3}, {1, 0}, {0, 3}})},
               {.inputs = {uniform({1, 2, 4, 2}, -1, 1)},
                .attrs = Attrs(BlockAttrs{4, {2, 2, 1}, {0, 0, 1}, {0, 2, 0}})},
               {.inputs = {uniform({37, 4}, -1, 1)}, .attrs = Attrs(BlockAttrs{2, {2}, {0}, {0}})},
               {.inputs = {uniform({2, 0, 3}, -1, 1)}, .attrs = Attrs(BlockAttrs{3, {2}, {0}, {0}})},
               {.inputs = {f64({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})},
                .attrs = Attrs(BlockAttrs{3, {2, 3}, {0, 1}, {0, 0}}),
                .expected = {tensor(std::vector<double>{0, 0, 1, 5, 2, 6, 0, 0, 3, 7, 4, 8}, {12, 1, 1})},
                .oracle = "np.pad(x, ((0, 0), (0, 0), (1, 0))).reshape(2, 1, 2, 1, 3).transpose(2, 4, 0, 1, "
                          "3).reshape(12, 1, 1)"}};
         }},

    {.name = "batch_to_space_nd",
     .doc = "The opposite of space_to_batch_nd, where entries around the axes of space are cut off.",
     .tensorflow = "BatchToSpace BatchToSpaceND",
     .args = {"x"},
     .infer = infer_batch_to_space,
     .forward = {run_batch_to_space, Outputs::own},
     .rule =
         linear([](const Call& c, const Tensor& dy) { return space_to_batch(c.attrs<BlockAttrs>(), dy); }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({12, 2, 3, 5}, -1, 1)},
                .attrs = Attrs(BlockAttrs{4, {2, 3}, {1, 0}, {0, 3}})},
               {.inputs = {uniform({4, 2, 2, 3}, -1, 1)},
                .attrs = Attrs(BlockAttrs{4, {2, 2, 1}, {0, 0, 1}, {0, 2, 0}})},
               {.inputs = {uniform({74, 2}, -1, 1)}, .attrs = Attrs(BlockAttrs{2, {2}, {0}, {0}})},
               {.inputs = {f64({{{1, 2}}, {{3, 4}}, {{5, 6}}, {{7, 8}}})},
                .attrs = Attrs(BlockAttrs{3, {2, 2}, {0, 1}, {0, 0}}),
                .expected = {tensor(std::vector<double>{3, 2, 4, 7, 6, 8}, {1, 2, 3})},
                .oracle = "x.reshape(2, 2, 1, 1, 2).transpose(2, 3, 0, 4, 1).reshape(1, 2, 4)[:, :, 1:]"}};
         }},

    {.name = "space_to_depth",
     .doc = "Images with each block of pixels as one pixel of more channels.",
     .tensorflow = "SpaceToDepth",
     .args = {"x"},
     .infer = infer_space_to_depth,
     .forward = {[](const Call& c, std::span<Tensor> y) {
                   const Shape& out = y[0].shape();
                   const std::int64_t block = c.attrs<DepthAttrs>().block;
                   swap_runs(c.x[0], block, out[out.ndim() - 2], block * channels_of(c.x[0]), y[0]);
                 },
                 Outputs::own},
     .rule = linear(
         [](const Call& c, const Tensor& dy) { return depth_to_space(dy, c.attrs<DepthAttrs>().block); }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4, 6, 5}, -1, 1)}, .attrs = Attrs(DepthAttrs{2})},
               {.inputs = {uniform({3, 9, 1}, -1, 1)}, .attrs = Attrs(DepthAttrs{3})},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1)}, .attrs = Attrs(DepthAttrs{2})},
               {.inputs = {uniform({1, 4, 4, 2}, -1, 1)},
                .attrs = Attrs(DepthAttrs{2}),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102,   0.4721359549995796,   -0.2917960675006306,
                                        0.9442719099991592,    -0.8753882025018918,  0.36067977499789805,
                                        -0.40325224750231214,  0.8328157299974777,   0.18033988749894903,
                                        -0.5835921350012612,   0.6524758424985286,   -0.11145618000168156,
                                        0.06888370749726747,   -0.6950483150029427,  0.5410196624968471,
                                        -0.22291236000336312,  -0.9868443825035733,  0.2492235949962165,
                                        -0.5147084275039937,   0.7213595499957961,   0.9016994374947451,
                                        0.13776741499453493,   -0.6261646075056753,  0.6099033699941145,
                                        -0.042572472504414094, -0.8065044950046243,  0.4295634824951655,
                                        -0.3343685400050447,   -0.15402865250609565, -0.9179606750063058,
                                        0.31810730249348396,   -0.44582472000672624},
                    {1, 2, 2, 8})},
                .oracle = "x.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 2, 8)"}};
         }},

    {.name = "depth_to_space",
     .doc = "The opposite of space_to_depth.",
     .tensorflow = "DepthToSpace",
     .args = {"x"},
     .infer = infer_depth_to_space,
     .forward = {[](const Call& c, std::span<Tensor> y) {
                   const Tensor& x = c.x[0];
                   const std::int64_t block = c.attrs<DepthAttrs>().block;
                   swap_runs(x, x.shape()[x.ndim() - 2], block, channels_of(x) / block, y[0]);
                 },
                 Outputs::own},
     .rule = linear(
         [](const Call& c, const Tensor& dy) { return space_to_depth(dy, c.attrs<DepthAttrs>().block); }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 2, 3, 20}, -1, 1)}, .attrs = Attrs(DepthAttrs{2})},
               {.inputs = {uniform({1, 3, 9}, -1, 1)}, .attrs = Attrs(DepthAttrs{3})},
               {.inputs = {uniform({1, 2, 2, 8}, -1, 1)},
                .attrs = Attrs(DepthAttrs{2}),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102,   0.4721359549995796,   -0.2917960675006306,
                                        0.9442719099991592,    -0.8753882025018918,  0.36067977499789805,
                                        -0.40325224750231214,  0.8328157299974777,   0.18033988749894903,
                                        -0.5835921350012612,   0.6524758424985286,   -0.11145618000168156,
                                        0.06888370749726747,   -0.6950483150029427,  0.5410196624968471,
                                        -0.22291236000336312,  -0.9868443825035733,  0.2492235949962165,
                                        -0.5147084275039937,   0.7213595499957961,   0.9016994374947451,
                                        0.13776741499453493,   -0.6261646075056753,  0.6099033699941145,
                                        -0.042572472504414094, -0.8065044950046243,  0.4295634824951655,
                                        -0.3343685400050447,   -0.15402865250609565, -0.9179606750063058,
                                        0.31810730249348396,   -0.44582472000672624},
                    {1, 4, 4, 2})},
                .oracle = "x.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 4, 4, 2)"}};
         }},

};

Tensor space_to_batch(const BlockAttrs& a, const Tensor& x) {
  return find(table, "space_to_batch_nd").with(a, x);
}
Tensor batch_to_space(const BlockAttrs& a, const Tensor& x) {
  return find(table, "batch_to_space_nd").with(a, x);
}

BlockAttrs checked_blocks(const Op& op, const Tensor& x, const Shape& block, const Shape& before,
                          const Shape& after) {
  if (before.ndim() != block.ndim() || after.ndim() != block.ndim())
    throw_error<ShapeError>(
        "{}: block, before and after do not have one entry for each axis: they are {}, {} and {}", op.name,
        block, before, after);
  if (x.ndim() <= block.ndim())
    throw_error<ShapeError>("{}: blocks of {} need {} axes of space behind the batch: x is {}", op.name,
                            block, block.ndim(), x.spec());
  for (int i = 0; i < block.ndim(); ++i) {
    if (block[i] < 1 || block[i] > kMostCells)
      throw_error<ArgumentError>("{}: block is {}; use 1..{}", op.name, block, kMostCells);
    if (std::min(before[i], after[i]) < 0 || std::max(before[i], after[i]) > kMostCells)
      throw_error<ArgumentError>("{}: before and after are {} and {}; use 0..{}", op.name, before, after,
                                 kMostCells);
  }
  (void)block.size();   // throws where blocks are too large together
  return {x.ndim(), block, before, after};
}

Tensor with_block(const Op& op, const Tensor& x, std::int64_t block) {
  if (block < 1 || block > 1 << 15)
    throw_error<ArgumentError>("{}: block is {}; use 1..{}", op.name, block, 1 << 15);
  return op.with(DepthAttrs{block}, x);
}

}   // namespace

Tensor space_to_batch_nd(const Tensor& x, const Shape& block, const Shape& before, const Shape& after) {
  return space_to_batch(checked_blocks(find(table, "space_to_batch_nd"), x, block, before, after), x);
}
Tensor batch_to_space_nd(const Tensor& x, const Shape& block, const Shape& before, const Shape& after) {
  return batch_to_space(checked_blocks(find(table, "batch_to_space_nd"), x, block, before, after), x);
}
Tensor space_to_depth(const Tensor& x, std::int64_t block) {
  return with_block(find(table, "space_to_depth"), x, block);
}
Tensor depth_to_space(const Tensor& x, std::int64_t block) {
  return with_block(find(table, "depth_to_space"), x, block);
}

std::span<const Op> space_to_batch_ops() { return table; }

}   // namespace tapedeck
