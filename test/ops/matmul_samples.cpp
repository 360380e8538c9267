// Samples of the ops in lib/ops/linalg/matmul.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs flags(bool a, bool b) { return Attrs(MatmulOptions{a, b}); }

constexpr OpSamples matmul_table[] = {
    {.op = "matmul",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 5}, -1, 1), uniform({5, 2}, -1, 1, 1)}, .attrs = flags(false, false)},
               {.inputs = {uniform({3, 5}, -1, 1), uniform({2, 5}, -1, 1, 1)}, .attrs = flags(false, true)},
               {.inputs = {uniform({5, 3}, -1, 1), uniform({5, 2}, -1, 1, 1)}, .attrs = flags(true, false)},
               {.inputs = {uniform({5, 3}, -1, 1), uniform({2, 5}, -1, 1, 1)}, .attrs = flags(true, true)},
               {.inputs = {uniform({3, 0}, -1, 1), uniform({0, 2}, -1, 1, 1)}, .attrs = flags(false, false)},
               {.inputs = {uniform({2, 3, 5}, -1, 1), uniform({5, 2}, -1, 1, 1)},
                .attrs = flags(false, false)},
               {.inputs = {uniform({2, 3, 5}, -1, 1), uniform({2, 5}, -1, 1, 1)},
                .attrs = flags(false, true)},
               {.inputs = {uniform({2, 5, 3}, -1, 1), uniform({2, 5}, -1, 1, 1)}, .attrs = flags(true, true)},
               {.inputs = {uniform({3, 5}, -1, 1), uniform({2, 5, 2}, -1, 1, 1)},
                .attrs = flags(false, false)},
               {.inputs = {uniform({2, 1, 3, 4}, -1, 1), uniform({3, 2, 4}, -1, 1, 1)},
                .attrs = flags(false, true)},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), f64({{1, 0}, {-1, 2}, {3, 1}})},
                .attrs = flags(false, false),
                .expected = {f64({{8, 7}, {17, 16}})},
                .oracle = "a @ b"},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), f64({{1, 0}, {-1, 2}})},
                .attrs = flags(true, false),
                .expected = {f64({{-3, 8}, {-3, 10}, {-3, 12}})},
                .oracle = "a.T @ b"},
               {.inputs = {f64({{{1, 2}}, {{3, 4}}}), f64({{1, -1}, {2, 0}, {0, 3}})},
                .attrs = flags(false, true),
                .expected = {f64({{{-1, 2, 6}}, {{-1, 6, 12}}})},
                .oracle = "a @ b.T"}};
         }},
};

}   // namespace

std::span<const OpSamples> matmul_samples() { return matmul_table; }

}   // namespace tapedeck::test
