// Samples of the ops in lib/ops/layout/diag.cpp.
#include "ops/layout/diag.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs some(Diagonals k, std::int64_t rows, std::int64_t columns,
                DiagonalAlign align = DiagonalAlign::right_left, double padding = 0) {
  return Attrs(DiagonalAttrs{diagonals(k, rows, columns, align), padding});
}
OwnedAttrs within(std::int64_t low, std::int64_t high) { return Attrs(BandAttrs{low, high}); }

constexpr OpSamples diag_table[] = {
    {.op = "matrix_diag_part",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37, 5}, -1, 1)}, .attrs = some(0, 37, 5)},
               {.inputs = {uniform({2, 3, 4}, -1, 1)},
                .attrs = some({-2, 3}, 3, 4, DiagonalAlign::left_right, 7)},
               {.inputs = {uniform({2, 4, 3}, -1, 1)}, .attrs = some({1, 2}, 4, 3, DiagonalAlign::left_left)},
               {.inputs = {uniform({2, 0, 3}, -1, 1)}, .attrs = some(0, 0, 3)},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = some(1, 2, 3),
                .expected = {f64({2, 6})},
                .oracle = "np.diagonal(x, 1)"},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}})},
                .attrs = some({-1, 1}, 3, 3, DiagonalAlign::right_left, -1),
                .expected = {f64({{-1, 2, 6}, {1, 5, 9}, {4, 8, -1}})},
                .oracle = "np.stack([np.r_[-1, np.diagonal(x, 1)], np.diagonal(x), np.r_[np.diagonal(x, -1), "
                          "-1]])"}};
         }},

    {.op = "matrix_diag",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({3, 37}, -1, 1)}, .attrs = some(0, 37, 37)},
                                      {.inputs = {uniform({2, 6, 3}, -1, 1)},
                                       .attrs = some({-2, 3}, 3, 4, DiagonalAlign::left_right, 7)},
                                      {.inputs = {uniform({2, 2, 2}, -1, 1)},
                                       .attrs = some({1, 2}, 4, 3, DiagonalAlign::right_right)},
                                      {.inputs = {uniform({2, 0}, -1, 1)}, .attrs = some(0, 0, 0)},
                                      {.inputs = {f64({2, 6})},
                                       .attrs = some(-1, 3, 3),
                                       .expected = {f64({{0, 0, 0}, {2, 0, 0}, {0, 6, 0}})},
                                       .oracle = "np.diag(x, -1)"},
                                      {.inputs = {f64({{0, 2, 6}, {1, 5, 9}})},
                                       .attrs = some({0, 1}, 3, 3),
                                       .expected = {f64({{1, 2, 0}, {0, 5, 6}, {0, 0, 9}})},
                                       .oracle = "np.diag(x[0, 1:], 1) + np.diag(x[1])"}};
         }},

    {.op = "matrix_set_diag",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37, 5}, -1, 1), uniform({5}, -1, 1, 1)}, .attrs = some(0, 37, 5)},
               {.inputs = {uniform({2, 3, 4}, -1, 1), uniform({2, 6, 3}, -1, 1, 1)},
                .attrs = some({-2, 3}, 3, 4, DiagonalAlign::left_right)},
               {.inputs = {uniform({2, 0, 3}, -1, 1), uniform({2, 0}, -1, 1, 1)}, .attrs = some(0, 0, 3)},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), f64({-1, -2})},
                .attrs = some(1, 2, 3),
                .expected = {f64({{1, -1, 3}, {4, 5, -2}})},
                .oracle = "x * (1 - np.eye(2, 3, 1)) + np.diag(diagonal, 1)[:2]"},
               {.inputs = {f64({{1, 2}, {3, 4}}), f64({{9, 8}, {7, 9}})},
                .attrs = some({-1, 0}, 2, 2, DiagonalAlign::left_left),
                .expected = {f64({{9, 2}, {7, 8}})}}};
         }},

    {.op = "diag",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({37}, -1, 1)}, .attrs = Attrs(AxesAttrs{1})},
                                      {.inputs = {uniform({2, 3}, -1, 1)}, .attrs = Attrs(AxesAttrs{2})},
                                      {.inputs = {uniform({0}, -1, 1)}, .attrs = Attrs(AxesAttrs{1})},
                                      {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(AxesAttrs{0})},
                                      {.inputs = {f64({1, 2})},
                                       .attrs = Attrs(AxesAttrs{1}),
                                       .expected = {f64({{1, 0}, {0, 2}})},
                                       .oracle = "np.diag(x)"},
                                      {.inputs = {f64({{1, 2}})},
                                       .attrs = Attrs(AxesAttrs{2}),
                                       .expected = {reshape(f64({1, 0, 0, 2}), {1, 2, 1, 2})},
                                       .oracle = "np.diag(x.ravel()).reshape(1, 2, 1, 2)"}};
         }},

    {.op = "diag_part",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37, 37}, -1, 1)}, .attrs = Attrs(AxesAttrs{1})},
               {.inputs = {uniform({2, 3, 2, 3}, -1, 1)}, .attrs = Attrs(AxesAttrs{2})},
               {.inputs = {uniform({0, 0}, -1, 1)}, .attrs = Attrs(AxesAttrs{1})},
               {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(AxesAttrs{0})},
               {.inputs = {f64({{1, 2}, {3, 4}})},
                .attrs = Attrs(AxesAttrs{1}),
                .expected = {f64({1, 4})},
                .oracle = "np.diag(x)"}};
         }},

    {.op = "trace",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37, 37}, -1, 1)}},
               {.inputs = {uniform({2, 3, 4}, -1, 1)}},
               {.inputs = {uniform({2, 0, 3}, -1, 1)}},
               {.inputs = {f64({{1, 2}, {3, 4}, {5, 6}})}, .expected = {f64(5)}, .oracle = "np.trace(x)"},
               {.inputs = {tensor({{1, 2}, {3, 4}}, DType::i64)},
                .expected = {tensor(5, DType::i64)},
                .oracle = "np.trace(x)"}};
         }},

    {.op = "band_part",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37, 5}, -1, 1)}, .attrs = within(-1, 2)},
               {.inputs = {uniform({2, 3, 6}, -1, 1)}, .attrs = within(2, 3)},
               {.inputs = {uniform({2, 3, 4}, -1, 1)}, .attrs = within(9, kAllDiagonals)},
               {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = within(0, 0)},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}})},
                .attrs = within(-kAllDiagonals, -1),
                .expected = {f64({{0, 0, 0}, {4, 0, 0}, {7, 8, 0}})},
                .oracle = "np.tril(x, -1)"},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}})},
                .attrs = within(0, 1),
                .expected = {f64({{1, 2, 0}, {0, 5, 6}, {0, 0, 9}})},
                .oracle = "np.triu(np.tril(x, 1))"}};
         }},
};

}   // namespace

std::span<const OpSamples> diag_samples() { return diag_table; }

}   // namespace tapedeck::test
