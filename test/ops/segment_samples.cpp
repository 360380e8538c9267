// Samples of the ops in lib/ops/reduce/segment.cpp.
#include "ops/reduce/segments.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs groups(int axis, std::int64_t count) { return Attrs(SegmentAttrs{count, axis}); }

// For ops on all rows.
std::vector<Sample> samples_with(Tensor (*values)(const Shape&), std::vector<Sample> expected) {
  expected.push_back({.inputs = {values({5, 3}), i64({0, 0, 2, 2, 2})}, .attrs = groups(-2, 3)});
  expected.push_back({.inputs = {values({6, 37}), i64({1, 1, 1, 1, 1, 1})}, .attrs = groups(-2, 2)});
  expected.push_back({.inputs = {values({37}), zeros({37}, DType::i32)}, .attrs = groups(-1, 1)});
  expected.push_back({.inputs = {values({2, 3, 2}), i64({0, 1, 1})}, .attrs = groups(-2, 2)});
  expected.push_back({.inputs = {zeros({0, 3}, DType::f64), zeros({0}, DType::i64)}, .attrs = groups(-2, 0)});
  return expected;
}
Tensor any(const Shape& shape) { return uniform(shape, -1, 1); }
Tensor factors(const Shape& shape) { return uniform(shape, 0.8, 1.2); }
Tensor unequal(const Shape& shape) { return distinct(shape); }
Tensor rows() { return f64({{1, 2}, {3, -4}, {5, 6}, {7, 8}}); }

std::vector<Sample> of_chosen(std::vector<Sample> expected) {
  expected.push_back({.inputs = {any({5, 3}), i64({4, 0, 4, 2}), i64({0, 0, 2, 2})}, .attrs = groups(-2, 3)});
  expected.push_back({.inputs = {any({4, 37}), tensor<std::int32_t>({3, 0, 3, 1}), zeros({4}, DType::i32)},
                      .attrs = groups(-2, 2)});
  expected.push_back(
      {.inputs = {any({37}), zeros({5}, DType::i64), zeros({5}, DType::i64)}, .attrs = groups(-1, 1)});
  expected.push_back({.inputs = {any({2, 3, 2}), i64({2, 0}), i64({0, 1})}, .attrs = groups(-2, 2)});
  expected.push_back(
      {.inputs = {any({3, 2}), zeros({0}, DType::i64), zeros({0}, DType::i64)}, .attrs = groups(-2, 2)});
  return expected;
}

constexpr OpSamples segment_table[] = {
    {.op = "segment_sum",
     .takes_complex = true,
     .samples =
         [] {
           return samples_with(any, {{.inputs = {tensor({1, 2, 3, 4}, DType::i32), i64({0, 0, 0, 2})},
                                      .attrs = groups(-1, 4),
                                      .expected = {tensor({6, 0, 4, 0}, DType::i32)}},
                                     {.inputs = {rows(), i64({0, 0, 2, 2})},
                                      .attrs = groups(-2, 3),
                                      .expected = {f64({{4, -2}, {0, 0}, {12, 14}})},
                                      .oracle = "np.stack([x[ids == 0].sum(axis=0), x[ids == 1].sum(axis=0), "
                                                "x[ids == 2].sum(axis=0)])"}});
         }},

    {.op = "segment_mean",
     .takes_complex = true,
     .samples =
         [] {
           return samples_with(
               any, {{.inputs = {rows(), i64({0, 0, 1, 1})},
                      .attrs = groups(-2, 2),
                      .expected = {f64({{2, -1}, {6, 7}})},
                      .oracle = "np.stack([x[ids == 0].mean(axis=0), x[ids == 1].mean(axis=0)])"}});
         }},

    {.op = "segment_prod",
     .takes_complex = true,
     .samples =
         [] {
           return samples_with(factors, {{.inputs = {rows(), i64({0, 0, 2, 2})},
                                          .attrs = groups(-2, 3),
                                          .expected = {f64({{3, -8}, {1, 1}, {35, 48}})},
                                          .oracle = "np.stack([x[ids == 0].prod(axis=0), x[ids == "
                                                    "1].prod(axis=0), x[ids == 2].prod(axis=0)])"}});
         }},

    {.op = "segment_max",
     .samples =
         [] {
           return samples_with(unequal,
                               {{.inputs = {rows(), i64({0, 0, 1, 1})},
                                 .attrs = groups(-2, 2),
                                 .expected = {f64({{3, 2}, {7, 8}})},
                                 .oracle = "np.stack([x[ids == 0].max(axis=0), x[ids == 1].max(axis=0)])"}});
         }},

    {.op = "segment_min",
     .samples =
         [] {
           return samples_with(unequal,
                               {{.inputs = {rows(), i64({0, 0, 1, 1})},
                                 .attrs = groups(-2, 2),
                                 .expected = {f64({{1, -4}, {5, 6}})},
                                 .oracle = "np.stack([x[ids == 0].min(axis=0), x[ids == 1].min(axis=0)])"}});
         }},

    {.op = "sparse_segment_sum",
     .takes_complex = true,
     .samples =
         [] {
           return of_chosen({{.inputs = {rows(), i64({3, 0, 3}), i64({0, 0, 2})},
                              .attrs = groups(-2, 3),
                              .expected = {f64({{8, 10}, {0, 0}, {7, 8}})},
                              .oracle = "np.stack([x[indices[ids == 0]].sum(axis=0), x[indices[ids == "
                                        "1]].sum(axis=0), x[indices[ids == 2]].sum(axis=0)])"}});
         }},

    {.op = "sparse_segment_mean",
     .takes_complex = true,
     .samples =
         [] {
           return of_chosen(
               {{.inputs = {rows(), i64({3, 0, 3}), i64({0, 0, 1})},
                 .attrs = groups(-2, 2),
                 .expected = {f64({{4, 5}, {7, 8}})},
                 .oracle =
                     "np.stack([x[indices[ids == 0]].mean(axis=0), x[indices[ids == 1]].mean(axis=0)])"}});
         }},

    {.op = "sparse_segment_sqrt_n",
     .takes_complex = true,
     .samples =
         [] {
           return of_chosen(
               {{.inputs = {rows(), i64({3, 0, 3}), i64({0, 0, 1})},
                 .attrs = groups(-2, 2),
                 .expected = {f64({{5.656854249492381, 7.071067811865475}, {7, 8}})},
                 .oracle = "np.stack([x[indices[ids == 0]].sum(axis=0) / np.sqrt((ids == 0).sum()), "
                           "x[indices[ids == 1]].sum(axis=0) / np.sqrt((ids == 1).sum())])"}});
         }},
};

}   // namespace

std::span<const OpSamples> segment_samples() { return segment_table; }

}   // namespace tapedeck::test
