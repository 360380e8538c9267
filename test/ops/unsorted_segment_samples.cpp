// Samples of the ops in lib/ops/reduce/unsorted_segment.cpp.
#include "ops/reduce/segments.h"
#include "ops/reduce/unsorted_segment.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs groups(std::int64_t count, int axis) { return Attrs(SegmentAttrs{count, axis}); }

constexpr OpSamples unsorted_segment_table[] = {
    {.op = "unsorted_segment_sum",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({5, 3}, -1, 1), i64({2, 0, -1, 2, 3})}, .attrs = groups(5, -2)},
               {.inputs = {uniform({37}, -1, 1), zeros({37}, DType::i32)}, .attrs = groups(1, -1)},
               {.inputs = {uniform({2, 3, 2}, -1, 1), i64({1, 1, 0})}, .attrs = groups(2, -2)},
               {.inputs = {uniform({0, 3}, -1, 1), zeros({0}, DType::i64)}, .attrs = groups(2, -2)},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}, {7, 8}}), i64({1, 0, 1, -1})},
                .attrs = groups(3, -2),
                .expected = {f64({{3, 4}, {6, 8}, {0, 0}})},
                .oracle =
                    "np.stack([x[ids == 0].sum(axis=0), x[ids == 1].sum(axis=0), x[ids == 2].sum(axis=0)])"}};
         }},

    {.op = "rows_of_groups",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({4, 3}, -1, 1), i64({2, 0, -1, 2, 3})}, .attrs = Attrs(RowsAttrs{-2})},
               {.inputs = {uniform({2, 3}, -1, 1), i64({1, -2, 0, 1})}, .attrs = Attrs(RowsAttrs{-1})},
               {.inputs = {uniform({2, 37}, -1, 1), zeros({0}, DType::i32)}, .attrs = Attrs(RowsAttrs{-2})},
               {.inputs = {f64({1, 2, 3}), i64({0, 1, 2, -1, 2, 1, 0, -1, 1, 2, 0, 0, 1, 1, 2, 2, 0, 1})},
                .attrs = Attrs(RowsAttrs{-1}),
                .expected = {f64({1, 2, 3, 0, 3, 2, 1, 0, 2, 3, 1, 1, 2, 2, 3, 3, 1, 2})},
                .oracle = "np.where(ids < 0, 0, x[ids])"},
               {.inputs = {f64({{1, 2}, {3, 4}}), i64({1, -1, 0, 1})},
                .attrs = Attrs(RowsAttrs{-2}),
                .expected = {f64({{3, 4}, {0, 0}, {1, 2}, {3, 4}})},
                .oracle = "np.where(ids[:, None] < 0, 0, x[np.maximum(ids, 0)])"}};
         }},

    {.op = "group_divisors",
     .samples =
         [] {
           const auto divisors = [](std::int64_t count, int axis, kernels::Divisor divisor,
                                    DType dtype = DType::f64) -> OwnedAttrs {
             return Attrs(DivisorsAttrs{count, axis, divisor, dtype});
           };
           return std::vector<Sample>{
               {.inputs = {i64({2, 0, -1, 2, 3})}, .attrs = divisors(5, -2, kernels::Divisor::count)},
               {.inputs = {zeros({37}, DType::i32)}, .attrs = divisors(1, -3, kernels::Divisor::root)},
               {.inputs = {zeros({0}, DType::i64)}, .attrs = divisors(2, -1, kernels::Divisor::count)},
               {.inputs = {i64({0, 0, 1, 0})},
                .attrs = divisors(3, -2, kernels::Divisor::root, DType::f32),
                .expected = {reshape(tensor({1.7320508075688772, 1.0, 1.0}), {3, 1})},
                .oracle = "np.sqrt(np.array([[3], [1], [1]])).astype(np.float32)"}};
         }},

    {.op = "unsorted_segment_prod",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({5, 3}, 0.5, 1.5), i64({2, 0, -1, 2, 3})}, .attrs = groups(5, -2)},
               {.inputs = {uniform({37}, 0.8, 1.2), zeros({37}, DType::i32)}, .attrs = groups(1, -1)},
               {.inputs = {uniform({0, 3}, -1, 1), zeros({0}, DType::i64)}, .attrs = groups(2, -2)},
               {.inputs = {f64({{1, 2}, {0, 4}, {5, 0}, {7, 8}, {2, 3}}), i64({1, 0, 1, -1, 0})},
                .attrs = groups(3, -2),
                .expected = {f64({{0, 12}, {5, 0}, {1, 1}})},
                .oracle = "np.stack([x[ids == 0].prod(axis=0), x[ids == 1].prod(axis=0), x[ids == "
                          "2].prod(axis=0)])"}};
         }},

    {.op = "unsorted_segment_max",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({5, 3}), i64({2, 0, -1, 2, 1})}, .attrs = groups(3, -2)},
               {.inputs = {distinct({37}), zeros({37}, DType::i32)}, .attrs = groups(1, -1)},
               {.inputs = {tensor({4, -5, 6}, DType::i32), i64({1, 0, 1})},
                .attrs = groups(3, -1),
                .expected = {tensor({-5, 6, std::numeric_limits<std::int32_t>::lowest()})},
                .oracle =
                    "np.array([x[ids == 0].max(), x[ids == 1].max(), np.iinfo(np.int32).min], x.dtype)"},
               {.inputs = {f64({{1, 2}, {-3, 4}, {5, 0}, {7, 8}, {-2, 3}}), i64({1, 0, 1, -1, 0})},
                .attrs = groups(2, -2),
                .expected = {f64({{-2, 4}, {5, 2}})},
                .oracle = "np.stack([x[ids == 0].max(axis=0), x[ids == 1].max(axis=0)])"}};
         }},

    {.op = "unsorted_segment_min",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({5, 3}), i64({2, 0, -1, 2, 1})}, .attrs = groups(3, -2)},
               {.inputs = {f64({{1, 2}, {-3, 4}, {5, 0}, {7, 8}, {-2, 3}}), i64({1, 0, 1, -1, 0})},
                .attrs = groups(2, -2),
                .expected = {f64({{-3, 3}, {1, 0}})},
                .oracle = "np.stack([x[ids == 0].min(axis=0), x[ids == 1].min(axis=0)])"}};
         }},

    {.op = "share_of_group_extreme",
     .samples =
         [] {
           const Tensor some = distinct({5, 3}), ids = i64({2, 0, -1, 2, 0});
           return std::vector<Sample>{
               {.inputs = {some, ids, unsorted_segment_max(some, ids, 3)}, .attrs = groups(3, -2)},
               {.inputs = {zeros({0, 3}, DType::f64), zeros({0}, DType::i64), zeros({0, 3}, DType::f64)},
                .attrs = groups(0, -2)},
               {.inputs = {f64({{1, 2}, {-3, 2}, {5, 0}, {7, 8}, {1, 2}}), i64({1, 1, 0, -1, 1}),
                           f64({{5, 0}, {1, 2}})},
                .attrs = groups(2, -2),
                .expected = {f64({{0.5, 1 / 3.}, {0, 1 / 3.}, {1, 1}, {0, 0}, {0.5, 1 / 3.}})},
                .oracle = "np.array([(0 if i < 0 else (r == best[i]) / (x[ids == i] == best[i]).sum(axis=0)) "
                          "+ 0 * r "
                          "for r, i in zip(x, ids)])"}};
         }},
};

}   // namespace

std::span<const OpSamples> unsorted_segment_samples() { return unsorted_segment_table; }

}   // namespace tapedeck::test
