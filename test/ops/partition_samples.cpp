// Samples of the ops in lib/ops/layout/partition.cpp.
#include "ops/layout/partition.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

Tensor marks(std::initializer_list<double> v) { return tensor(v, DType::boolean); }

constexpr OpSamples partition_table[] = {
    {.op = "boolean_mask",
     .takes_complex = true,
     .oracle = "x[mask]",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({5, 37}, -1, 1), marks({1, 0, 1, 1, 0})}, .attrs = Attrs(RowAttrs{1})},
               {.inputs = {uniform({2, 3, 4}, -1, 1), reshape(marks({0, 1, 1, 1, 0, 0}), {2, 3})},
                .attrs = Attrs(RowAttrs{1})},
               {.inputs = {uniform({37}, -1, 1), ones({37}, DType::boolean)}, .attrs = Attrs(RowAttrs{0})},
               {.inputs = {uniform({3, 2}, -1, 1), zeros({3}, DType::boolean)}, .attrs = Attrs(RowAttrs{1})},
               {.inputs = {uniform({0, 2}, -1, 1), zeros({0}, DType::boolean)}, .attrs = Attrs(RowAttrs{1})},
               {.inputs = {tensor({1, 2, 3}, DType::u8), marks({1, 0, 1})},
                .attrs = Attrs(RowAttrs{0}),
                .expected = {tensor({1, 3}, DType::u8)}},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), reshape(marks({0, 1, 1, 1, 0, 0}), {2, 3})},
                .attrs = Attrs(RowAttrs{0}),
                .expected = {f64({2, 3, 4})}}};
         }},

    {.op = "boolean_put",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -1, 1), marks({1, 0, 1, 1, 0})}, .attrs = Attrs(RowAttrs{1})},
               {.inputs = {uniform({3, 4}, -1, 1), reshape(marks({0, 1, 1, 1, 0, 0}), {2, 3})},
                .attrs = Attrs(RowAttrs{1})},
               {.inputs = {uniform({37}, -1, 1), ones({37}, DType::boolean)}, .attrs = Attrs(RowAttrs{0})},
               {.inputs = {uniform({0, 2}, -1, 1), zeros({3}, DType::boolean)}, .attrs = Attrs(RowAttrs{1})},
               {.inputs = {f64({2, 3, 4}), marks({0, 1, 1, 0, 1, 0})},
                .attrs = Attrs(RowAttrs{0}),
                .expected = {f64({0, 2, 3, 0, 4, 0})}}};
         }},

    {.op = "dynamic_partition",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({5, 37}, -1, 1), i64({2, 0, 2, 2, 0})}, .attrs = Attrs(PartAttrs{1, 3})},
               {.inputs = {uniform({2, 3, 4}, -1, 1), tensor<std::int32_t>({{0, 1, 1}, {1, 0, 1}})},
                .attrs = Attrs(PartAttrs{1, 2})},
               {.inputs = {uniform({37}, -1, 1), zeros({37}, DType::i64)}, .attrs = Attrs(PartAttrs{0, 1})},
               {.inputs = {uniform({}, -1, 1), tensor(std::int64_t{1})}, .attrs = Attrs(PartAttrs{0, 2})},
               {.inputs = {uniform({0, 2}, -1, 1), zeros({0}, DType::i32)}, .attrs = Attrs(PartAttrs{1, 2})},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}}), i64({1, 0, 1})},
                .attrs = Attrs(PartAttrs{1, 2}),
                .expected = {f64({{3, 4}}), f64({{1, 2}, {5, 6}})},
                .oracle = "(x[partitions == 0], x[partitions == 1])"}};
         }},

    {.op = "partition_places",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {tensor<std::int32_t>({{0, 1, 1}, {1, 0, 1}})},
                .attrs = Attrs(CountOfPartsAttrs{2})},
               {.inputs = {zeros({37}, DType::i64)}, .attrs = Attrs(CountOfPartsAttrs{1})},
               {.inputs = {tensor(std::int64_t{1})}, .attrs = Attrs(CountOfPartsAttrs{2})},
               {.inputs = {zeros({0}, DType::i64)}, .attrs = Attrs(CountOfPartsAttrs{2})},
               {.inputs = {i64({2, 0, 2, 1, 0})},
                .attrs = Attrs(CountOfPartsAttrs{4}),
                .expected = {i64({3, 0, 4, 2, 1})}}};
         }},

    {.op = "stitch_places",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {i64({4, 0}), tensor<std::int32_t>({1, 2, 3})}, .attrs = Attrs(PlacesAttrs{5})},
               {.inputs = {tensor<std::int64_t>({{2, 0}, {1, 1}}), tensor(std::int64_t{2})},
                .attrs = Attrs(PlacesAttrs{3})},
               {.inputs = {zeros({0}, DType::i64)}, .attrs = Attrs(PlacesAttrs{0})},
               {.inputs = {i64({3, 1, 3}), i64({0, 2, 1})},
                .attrs = Attrs(PlacesAttrs{4}),
                .expected = {i64({-1, -1, 3}), i64({0, 2, 1})}}};
         }},

    {.op = "dynamic_stitch",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {i64({4, 0}), uniform({2, 37}, -1, 1), tensor<std::int32_t>({1, 2, 3}),
                           uniform({3, 37}, -1, 1, 1)},
                .attrs = Attrs(RowAttrs{1})},
               {.inputs = {tensor<std::int64_t>({{2, 0}, {1, 1}}), uniform({2, 2, 3}, -1, 1),
                           tensor(std::int64_t{2}), uniform({3}, -1, 1, 1)},
                .attrs = Attrs(RowAttrs{1})},
               {.inputs = {i64({1, 0, 1}), uniform({3}, -1, 1)}, .attrs = Attrs(RowAttrs{0})},
               {.inputs = {zeros({0}, DType::i64), uniform({0, 3}, -1, 1)}, .attrs = Attrs(RowAttrs{1})},
               {.inputs = {zeros({3}, DType::i64), uniform({3, 5}, -1, 1)}, .attrs = Attrs(RowAttrs{1})},
               {.inputs = {i64({3, 1}), f64({{1, 2}, {3, 4}}), i64({0, 2, 1}),
                           f64({{5, 6}, {7, 8}, {9, 10}})},
                .attrs = Attrs(RowAttrs{1}),
                .expected = {f64({{5, 6}, {9, 10}, {7, 8}, {1, 2}})}}};
         }},
};

}   // namespace

std::span<const OpSamples> partition_samples() { return partition_table; }

}   // namespace tapedeck::test
