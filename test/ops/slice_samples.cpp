// Samples of the ops in lib/ops/layout/slice.cpp.
#include "ops/layout/slice.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples slice_table[] = {
    {.op = "slice",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({5, 37}, -1, 1)}, .attrs = Attrs(SliceAttrs{{1, 0}, {3, -1}})},
               {.inputs = {uniform({2, 4, 3}, -1, 1)}, .attrs = Attrs(SliceAttrs{{0, 1, 2}, {2, 2, 1}})},
               {.inputs = {uniform({3, 2}, -1, 1)}, .attrs = Attrs(SliceAttrs{{3, 0}, {0, 2}})},
               {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(SliceAttrs{})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = Attrs(SliceAttrs{{0, 1}, {2, 2}}),
                .expected = {f64({{2, 3}, {5, 6}})},
                .oracle = "x[0:2, 1:3]"}};
         }},

    {.op = "strided_slice",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({5, 37}, -1, 1)},
                .attrs = Attrs(StridedAttrs{{5, 37}, {4, 1}, {3, 12}, {-2, 3}, {3, 12}})},
               {.inputs = {uniform({2, 4, 3}, -1, 1)},
                .attrs = Attrs(StridedAttrs{{2, 4, 3}, {0, 2, 0}, {2, 1, 2}, {1, 1, 2}, {2, 1, 2}})},
               {.inputs = {uniform({3, 2}, -1, 1)},
                .attrs = Attrs(StridedAttrs{{3, 2}, {0, 0}, {0, 2}, {1, 1}, {0, 2}})},
               {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(StridedAttrs{{}, {}, {}, {}, {1}})},
               {.inputs = {f64({{1, 2, 3, 4}, {5, 6, 7, 8}})},
                .attrs = Attrs(StridedAttrs{{2, 4}, {1, 3}, {1, 2}, {1, -2}, {2}}),
                .expected = {f64({8, 6})},
                .oracle = "x[1, ::-2]"},
               {.inputs = {f64({{1, 2, 3, 4}, {5, 6, 7, 8}})},
                .attrs = Attrs(StridedAttrs{{2, 4}, {0, 1}, {2, 2}, {1, 2}, {2, 1, 2}}),
                .expected = {f64({{{2, 4}}, {{6, 8}}})},
                .oracle = "x[:, None, 1::2]"}};
         }},

    {.op = "strided_pad",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 12}, -1, 1)},
                .attrs = Attrs(StridedAttrs{{5, 37}, {4, 1}, {3, 12}, {-2, 3}, {3, 12}})},
               {.inputs = {uniform({0, 2}, -1, 1)},
                .attrs = Attrs(StridedAttrs{{3, 2}, {0, 0}, {0, 2}, {1, 1}, {0, 2}})},
               {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(StridedAttrs{{3}, {2}, {1}, {1}, {}})},
               {.inputs = {f64({8, 6})},
                .attrs = Attrs(StridedAttrs{{2, 4}, {1, 3}, {1, 2}, {1, -2}, {2}}),
                .expected = {f64({{0, 0, 0, 0}, {0, 6, 0, 8}})}}};
         }},

    {.op = "strided_slice_update",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({5, 37}, -1, 1), uniform({2, 12}, -1, 1, 1)},
                .attrs = Attrs(StridedAttrs{{5, 37}, {4, 1}, {2, 12}, {-2, 3}, {2, 12}})},
               {.inputs = {uniform({3}, -1, 1), uniform({}, -1, 1)},
                .attrs = Attrs(StridedAttrs{{3}, {2}, {1}, {1}, {}})},
               {.inputs = {uniform({0, 2}, -1, 1), uniform({0, 2}, -1, 1)},
                .attrs = Attrs(StridedAttrs{{0, 2}, {0, 0}, {0, 2}, {1, 1}, {0, 2}})},
               {.inputs = {f64({{1, 2, 3, 4}, {5, 6, 7, 8}}), f64({-1, -2})},
                .attrs = Attrs(StridedAttrs{{2, 4}, {1, 3}, {1, 2}, {1, -2}, {2}}),
                .expected = {f64({{1, 2, 3, 4}, {5, -2, 7, -1}})}}};
         }},

    {.op = "strided_slice_add",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({5, 37}, -1, 1), uniform({2, 12}, -1, 1, 1)},
                .attrs = Attrs(StridedAttrs{{5, 37}, {4, 1}, {2, 12}, {-2, 3}, {2, 12}})},
               {.inputs = {uniform({3}, -1, 1), uniform({}, -1, 1)},
                .attrs = Attrs(StridedAttrs{{3}, {2}, {1}, {1}, {}})},
               {.inputs = {uniform({0, 2}, -1, 1), uniform({0, 2}, -1, 1)},
                .attrs = Attrs(StridedAttrs{{0, 2}, {0, 0}, {0, 2}, {1, 1}, {0, 2}})},
               {.inputs = {f64({{1, 2, 3, 4}, {5, 6, 7, 8}}), f64({-1, -2})},
                .attrs = Attrs(StridedAttrs{{2, 4}, {1, 3}, {1, 2}, {1, -2}, {2}}),
                .expected = {f64({{1, 2, 3, 4}, {5, 4, 7, 7}})}},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}}), f64({{10, 20}, {30, 40}})},
                .attrs = Attrs(StridedAttrs{{3, 2}, {1, 0}, {2, 2}, {1, 1}, {2, 2}}),
                .expected = {f64({{1, 2}, {13, 24}, {35, 46}})}}};
         }},
};

}   // namespace

std::span<const OpSamples> slice_samples() { return slice_table; }

}   // namespace tapedeck::test
