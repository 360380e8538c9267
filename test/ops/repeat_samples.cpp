// Samples of the ops in lib/ops/layout/repeat.cpp.
#include "ops/layout/repeat.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs times(std::int64_t count, int axis) { return Attrs(RepeatAttrs{axis, count, {}}); }
OwnedAttrs times(std::vector<std::int64_t> counts, int axis) {
  return Attrs(RepeatAttrs{axis, 0, std::move(counts)});
}

constexpr OpSamples repeat_table[] = {
    {.op = "roll",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -1, 1)}, .attrs = Attrs(RollAttrs{-1, 5})},
               {.inputs = {uniform({2, 3, 2}, -1, 1)}, .attrs = Attrs(RollAttrs{-2, 1})},
               {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = Attrs(RollAttrs{-1, 2})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = Attrs(RollAttrs{-1, 1}),
                .expected = {f64({{3, 1, 2}, {6, 4, 5}})},
                .oracle = "np.roll(x, 1, axis=-1)"},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}})},
                .attrs = Attrs(RollAttrs{-2, 2}),
                .expected = {f64({{3, 4}, {5, 6}, {1, 2}})},
                .oracle = "np.roll(x, 2, axis=-2)"}};
         }},

    {.op = "repeat",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({3, 37}, -1, 1)}, .attrs = times(2, -2)},
                                      {.inputs = {uniform({2, 3, 2}, -1, 1)}, .attrs = times(3, -1)},
                                      {.inputs = {uniform({2, 3, 2}, -1, 1)}, .attrs = times({2, 0, 1}, -2)},
                                      {.inputs = {uniform({3, 2}, -1, 1)}, .attrs = times(0, -1)},
                                      {.inputs = {uniform({0, 2}, -1, 1)}, .attrs = times(4, -2)},
                                      {.inputs = {f64({{1, 2}, {3, 4}})},
                                       .attrs = times(2, -1),
                                       .expected = {f64({{1, 1, 2, 2}, {3, 3, 4, 4}})},
                                       .oracle = "np.repeat(x, 2, axis=-1)"},
                                      {.inputs = {f64({{1, 2}, {3, 4}})},
                                       .attrs = times({1, 2}, -2),
                                       .expected = {f64({{1, 2}, {3, 4}, {3, 4}})},
                                       .oracle = "np.repeat(x, [1, 2], axis=0)"}};
         }},

    {.op = "reverse_sequence",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -1, 1), i64({37, 0, 5})}, .attrs = Attrs(SequenceAttrs{-1, -2})},
               {.inputs = {uniform({5, 2, 3}, -1, 1), tensor<std::int32_t>({4, 1, 5})},
                .attrs = Attrs(SequenceAttrs{-3, -1})},
               {.inputs = {uniform({2, 2, 4, 3}, -1, 1), i64({3, 4})}, .attrs = Attrs(SequenceAttrs{-2, -4})},
               {.inputs = {uniform({3, 0}, -1, 1), zeros({3}, DType::i64)},
                .attrs = Attrs(SequenceAttrs{-1, -2})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), i64({2, 3})},
                .attrs = Attrs(SequenceAttrs{-1, -2}),
                .expected = {f64({{2, 1, 3}, {6, 5, 4}})},
                .oracle = "np.stack([np.r_[x[0, :2][::-1], x[0, 2:]], x[1, ::-1]])"},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}}), i64({2, 3})},
                .attrs = Attrs(SequenceAttrs{-2, -1}),
                .expected = {f64({{3, 6}, {1, 4}, {5, 2}})},
                .oracle = "np.stack([np.r_[x[:2, 0][::-1], x[2:, 0]], x[::-1, 1]], axis=1)"}};
         }},
};

}   // namespace

std::span<const OpSamples> repeat_samples() { return repeat_table; }

}   // namespace tapedeck::test
