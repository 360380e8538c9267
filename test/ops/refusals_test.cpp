// Wrong extents of filters and images for every sample, and the exact texts of errors about parts, blocks and
// transforms, which no other test has.
#include <catch2/catch.hpp>

#include "message_of.h"
#include "ops/layout/partition.h"
#include "ops/linalg/fft.h"
#include "ops/nn/pool.h"
#include "ops/nn/window.h"
#include "ops/op_samples.h"

namespace refusals_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

// How many axes windows have, by the attributes of a sample; 0 for other attributes.
int window_axes(const Attrs& a) {
  if (a.type == &kAttrsType<WindowAttrs>) return static_cast<const WindowAttrs*>(a.data)->axes;
  if (a.type == &kAttrsType<PoolAttrs>) return static_cast<const PoolAttrs*>(a.data)->axes;
  return a.type == &kAttrsType<VolumeAttrs> ? 3 : 0;
}

// The family's op of this name.
const Op& op_of(std::string_view family, std::string_view name) {
  for (const ops::Family& f : ops::families())
    for (const Op* op : f.ops)
      if (f.name == family && op->name == name) return *op;
  throw std::out_of_range(std::string(name));
}

}   // namespace

TEST_CASE("every extent that a window implies is checked, in every input of every sample", "[errors][conv]") {
  int checked = 0;
  for (const ops::Family& family : ops::families()) {
    if (family.name != "conv" && family.name != "depthwise" && family.name != "pool") continue;
    for (const Op* op : family.ops)
      for (const Sample& s : samples_of(*op)) {
        const int axes = window_axes(s.attrs.view());
        for (std::size_t i = 0; axes && i < s.inputs.size(); ++i) {
          const Shape& shape = s.inputs[i].shape();
          const bool sizes_first = op->args[i] == "filters" && family.name == "conv";
          for (int d = 0; d < axes; ++d) {
            const int axis = sizes_first ? d : shape.ndim() - 1 - axes + d;
            Shape longer = shape;
            longer.set(axis, shape[axis] + 1);
            Tensors x = s.inputs;
            x[i] = zeros(longer, x[i].dtype());
            INFO(op->name << ", input " << i << ", axis " << axis << " of " << to_string(shape));
            CHECK_THROWS_AS(run(*op, x, s.attrs), ShapeError);
            ++checked;
          }
        }
      }
  }
  CHECK(checked > 200);
}

TEST_CASE("patches, masks and spectra reject invalid arguments", "[errors]") {
  const Op& patches = op_of("patches", "extract_image_patches");
  const Sample s = samples_of(patches)[0];
  CHECK(message_of<DTypeError>([&] { run(patches, {astype(s.inputs[0], DType::i32)}, s.attrs); }) ==
        "extract_image_patches: takes f32, f64, f16 or bf16, use astype: x is i32[3,4,5,2]");
  CHECK(message_of<ShapeError>([&] {
          run(patches, {ones({2, 2})}, s.attrs);
        }) == "extract_image_patches: x needs the axes height, width and channels: x is f32[2,2]");
  const Tensor mask = tensor({1, 1}, DType::boolean);
  CHECK(message_of<ShapeError>([&] {
          run(op_of("partition", "boolean_put"), {ones({3}), mask}, Attrs(RowAttrs{1}));
        }) == "boolean_put: takes tensors of rank 2 or more: x is f32[3], mask is bool[2]");
  CHECK(message_of<ShapeError>([] { irfft(ones({3}, DType::c128), {0}); }) ==
        "irfft: fft_length must be at least 1: fft_length is [0]");
}

TEST_CASE("parts of tensors reject invalid arguments", "[errors][partition]") {
  const Tensor x = ones({2, 3}), mask = tensor({1, 1}, DType::boolean);
  const auto stitch = [](std::vector<Tensor> places, std::vector<Tensor> rows) {
    return message_of([&] { dynamic_stitch(places, rows); });
  };
  CHECK(message_of([&] { boolean_mask(x, ones({}, DType::boolean)); }) ==
        "boolean_mask: mask must have the shape of the first axes of x: x is f32[2,3], mask is bool[]");
  const Tensor one_row = ones({1, 3});
  CHECK(message_of([&] {
          run(op_of("partition", "boolean_put"), {one_row, mask}, Attrs(RowAttrs{1}));
        }) ==
        "boolean_put: x must have a row for each true element of mask: x is f32[1,3], mask is "
        "bool[2]");
  CHECK(message_of([&] {
          dynamic_partition(x, tensor({0, 0}), 0);
        }) == "dynamic_partition: 0 parts; use 1 or more");
  CHECK(message_of([&] {
          dynamic_partition(x, tensor({0, 0, 0}), 1);
        }) ==
        "dynamic_partition: partitions must have the shape of the first axes of x: x is f32[2,3], partitions "
        "is "
        "i32[3]");
  CHECK(stitch({tensor({0, -1})}, {x}) == "dynamic_stitch: index -1 of tensor 0 is negative");
  CHECK(stitch({tensor({0, 2})}, {x}) == "dynamic_stitch: no index is 1, but the largest is 2");
  CHECK(stitch({tensor({0.0, 1.0})}, {x}) ==
        "dynamic_stitch: indices must be integers, use astype: indices is f32[2]");
  CHECK(stitch({tensor({0}), tensor({1})}, {ones({1, 3}), ones({1, 3}, DType::f64)}) ==
        "dynamic_stitch: dtypes differ: indices is i32[1], x is f32[1,3], input 2 is i32[1], input 3 is "
        "f64[1,3]");
  CHECK(stitch({tensor({0}), tensor({1})}, {ones({1, 3}), ones({1, 4})}) ==
        "dynamic_stitch: rows differ: indices is i32[1], x is f32[1,3], input 2 is i32[1], input 3 is "
        "f32[1,4]");
  CHECK(stitch({tensor({0})}, {x, x}) ==
        "dynamic_stitch: 1 lists of indices for 2 tensors; use one for each");
}

TEST_CASE("blocks reject invalid arguments", "[errors][image]") {
  const Tensor x = ones({4, 2, 6, 3});
  CHECK(message_of([&] {
          space_to_batch_nd(x, {2}, {0, 0}, {0});
        }) ==
        "space_to_batch_nd: block, before and after must have one entry for each axis: they are [2], [0,0] "
        "and [0]");
  CHECK(message_of([&] { space_to_batch_nd(ones({2}), {2}, {0}, {0}); }) ==
        "space_to_batch_nd: blocks of [2] need 1 spatial axes after the batch axis: x is f32[2]");
  CHECK(message_of([&] {
          batch_to_space_nd(x, {2, 0}, {0, 0}, {0, 0});
        }) == "batch_to_space_nd: block is [2,0]; use 1..2147483647");
  CHECK(message_of([&] {
          space_to_batch_nd(x, {2, 2}, {0, -1}, {0, 0});
        }) == "space_to_batch_nd: before and after are [0,-1] and [0,0]; use 0..2147483647");
  CHECK(message_of([&] {
          batch_to_space_nd(x, {2, 2}, {3, 0}, {2, 0});
        }) == "batch_to_space_nd: cannot crop 5 entries from an axis of 4: x is f32[4,2,6,3]");
  CHECK(message_of([&] {
          space_to_batch_nd(x, {4, 1}, {0, 0}, {1, 0});
        }) == "space_to_batch_nd: blocks of [4,1] do not divide a padded axis of 3: x is f32[4,2,6,3]");
  CHECK(message_of([&] { depth_to_space(x, 40000); }) == "depth_to_space: block is 40000; use 1..32768");
}

TEST_CASE("transforms of real numbers reject invalid arguments", "[errors][fft]") {
  const Tensor z = zeros({3}, DType::c64);
  CHECK(message_of([&] {
          run(op_of("fft", "irfft"), {z}, Attrs(RealFftAttrs{1, 7}));
        }) == "irfft: 7 real numbers along the last axis do not have transforms of this shape: x is c64[3]");
  CHECK(message_of([&] { irfft(z, {-1}); }) == "irfft: fft_length must be at least 1: fft_length is [-1]");
  CHECK(message_of([&] {
          irfft2d(zeros({2, 3}, DType::c64), {4});
        }) ==
        "irfft2d: fft_length must have an extent for each of the last axes, 2: fft_length is [4], x is "
        "c64[2,3]");
}

}   // namespace refusals_test
