// Samples of the ops in lib/ops/reduce/scan.cpp.
#include "ops/reduce/scan.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs scan_along(int axis, bool exclusive = false, bool reverse = false) {
  return Attrs(ScanAttrs{axis, exclusive, reverse});
}

constexpr OpSamples scan_table[] = {
    {.op = "cumsum",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, -1, 1)}, .attrs = scan_along(-1)},
               {.inputs = {uniform({3, 5, 2}, -1, 1)}, .attrs = scan_along(-2, true)},
               {.inputs = {uniform({2, 0}, -1, 1)}, .attrs = scan_along(-2)},
               {.inputs = {uniform({3, 6}, -1, 1)}, .attrs = scan_along(-1, true, true)},
               {.inputs = {f64({{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}})},
                .attrs = scan_along(-1),
                .expected = {f64({{1, 3, 6, 10, 15}, {6, 13, 21, 30, 40}})},
                .oracle = "np.cumsum(x, axis=-1)"},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = scan_along(-2, false, true),
                .expected = {f64({{5, 7, 9}, {4, 5, 6}})},
                .oracle = "np.cumsum(x[::-1], axis=0)[::-1]"},
               {.inputs = {f64({1, 2, 3, 4, 5})},
                .attrs = scan_along(-1, true),
                .expected = {f64({0, 1, 3, 6, 10})},
                .oracle = "np.cumsum(x) - x"},
               {.inputs = {tensor({1, 2, 3, 4, 5}, DType::i32)},
                .attrs = scan_along(-1, true, true),
                .expected = {tensor({14, 12, 9, 5, 0}, DType::i32)},
                .oracle = "(np.cumsum(x[::-1])[::-1] - x).astype(x.dtype)"}};
         }},

    {.op = "cumprod",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, 0.8, 1.3)}, .attrs = scan_along(-1)},
               {.inputs = {uniform({3, 5, 2}, 0.5, 1.5)}, .attrs = scan_along(-2, true)},
               {.inputs = {uniform({2, 0}, -1, 1)}, .attrs = scan_along(-2)},
               {.inputs = {uniform({3, 6}, -1.5, -0.5)}, .attrs = scan_along(-1, true, true)},
               {.inputs = {f64({{1, 2, 3, -4, 5}, {6, 7, 8, 9, 10}})},
                .attrs = scan_along(-1),
                .expected = {f64({{1, 2, 6, -24, -120}, {6, 42, 336, 3024, 30240}})},
                .oracle = "np.cumprod(x, axis=-1)"},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = scan_along(-2, false, true),
                .expected = {f64({{4, 10, 18}, {4, 5, 6}})},
                .oracle = "np.cumprod(x[::-1], axis=0)[::-1]"},
               {.inputs = {f64({1, 2, 3, 4, 5})},
                .attrs = scan_along(-1, true),
                .expected = {f64({1, 1, 2, 6, 24})},
                .oracle = "np.cumprod(x) / x"}};
         }},

    {.op = "cumulative_logsumexp",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, -2, 2)}, .attrs = Attrs(LogSumAttrs{false})},
               {.inputs = {uniform({2, 3, 4}, -2, 2)}, .attrs = Attrs(LogSumAttrs{true})},
               {.inputs = {uniform({2, 0}, -2, 2)}, .attrs = Attrs(LogSumAttrs{false})},
               {.inputs = {uniform({3, 1}, -2, 2)}, .attrs = Attrs(LogSumAttrs{false})},
               {.inputs = {f64({{1, 2, 3}, {-1000, 1000, 0}})},
                .attrs = Attrs(LogSumAttrs{false}),
                .expected = {f64({{1, 2.3132616875182226, 3.4076059644443806}, {-1000, 1000, 1000}})},
                .oracle = "np.logaddexp.accumulate(x, axis=-1)"},
               {.inputs = {f64({3, 2, 1})},
                .attrs = Attrs(LogSumAttrs{true}),
                .expected = {f64({3.4076059644443806, 2.3132616875182226, 1})},
                .oracle = "np.logaddexp.accumulate(x[::-1])[::-1]"}};
         }},

    {.op = "linear_recurrence",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, -1, 1), uniform({37}, -1, 1, 1)}},
               {.inputs = {uniform({2, 3}, -1, 1), uniform({2, 2, 3}, -1, 1, 1)}},
               {.inputs = {uniform({2, 1}, -1, 1), uniform({2, 1}, -1, 1, 1)}},
               {.inputs = {uniform({2, 0}, -1, 1), uniform({2, 0}, -1, 1, 1)}},
               {.inputs = {f64({7, 2, 3, -1}), f64({1, 1, 2, 5})}, .expected = {f64({1, 3, 11, -6})}}};
         }},
};

}   // namespace

std::span<const OpSamples> scan_samples() { return scan_table; }

}   // namespace tapedeck::test
