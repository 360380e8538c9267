// Samples of the ops in lib/ops/layout/array.cpp.
#include "ops/layout/array.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples array_table[] = {
    {.op = "reshape",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 6}, -1, 1)}, .attrs = Attrs(ReshapeAttrs{2, {3, 4}})},
               {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(ReshapeAttrs{0, {1, 1}})},
               {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = Attrs(ReshapeAttrs{2, {3, 0, 2}})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = Attrs(ReshapeAttrs{2, {3, 2}}),
                .expected = {f64({{1, 2}, {3, 4}, {5, 6}})},
                .oracle = "np.reshape(x, (3, 2))"}};
         }},

    {.op = "expand_dims",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({37}, -1, 1)}, .attrs = Attrs(MaskAttrs{0b101})},
                                      {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(MaskAttrs{0b1})},
                                      {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = Attrs(MaskAttrs{0b10})},
                                      {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                                       .attrs = Attrs(MaskAttrs{0b10}),
                                       .expected = {f64({{{1, 2, 3}}, {{4, 5, 6}}})},
                                       .oracle = "np.expand_dims(x, 1)"}};
         }},

    {.op = "squeeze",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({1, 37, 1}, -1, 1)}, .attrs = Attrs(MaskAttrs{0b101})},
               {.inputs = {uniform({1, 1}, -1, 1)}, .attrs = Attrs(MaskAttrs{0b11})},
               {.inputs = {uniform({0, 1, 3}, -1, 1)}, .attrs = Attrs(MaskAttrs{0b10})},
               {.inputs = {f64({{{1, 2, 3}}, {{4, 5, 6}}})},
                .attrs = Attrs(MaskAttrs{0b10}),
                .expected = {f64({{1, 2, 3}, {4, 5, 6}})},
                .oracle = "np.squeeze(x, 1)"}};
         }},

    {.op = "transpose",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37, 5}, -1, 1)}, .attrs = Attrs(TransposeAttrs{2, {1, 0}})},
               {.inputs = {uniform({2, 3, 4}, -1, 1)}, .attrs = Attrs(TransposeAttrs{3, {2, 0, 1}})},
               {.inputs = {uniform({2, 3, 2, 2}, -1, 1)}, .attrs = Attrs(TransposeAttrs{4, {0, 2, 1, 3}})},
               {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(TransposeAttrs{0, {}})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = Attrs(TransposeAttrs{2, {1, 0}}),
                .expected = {f64({{1, 4}, {2, 5}, {3, 6}})},
                .oracle = "np.transpose(x, (1, 0))"}};
         }},

    {.op = "reverse",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -1, 1)}, .attrs = Attrs(MaskAttrs{0b01})},
               {.inputs = {uniform({3, 2, 5}, -1, 1)}, .attrs = Attrs(MaskAttrs{0b101})},
               {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = Attrs(MaskAttrs{0b11})},
               {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(MaskAttrs{0})},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = Attrs(MaskAttrs{0b11}),
                .expected = {f64({{6, 5, 4}, {3, 2, 1}})},
                .oracle = "np.flip(x)"},
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                .attrs = Attrs(MaskAttrs{0b10}),
                .expected = {f64({{4, 5, 6}, {1, 2, 3}})},
                .oracle = "np.flip(x, 0)"}};
         }},

    {.op = "broadcast_to",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({3, 1}, -1, 1)}, .attrs = Attrs(Shape{2, 3, 37})},
                                      {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(Shape{2, 3})},
                                      {.inputs = {uniform({1, 3}, -1, 1)}, .attrs = Attrs(Shape{0, 3})},
                                      {.inputs = {f64({1, 2, 3})},
                                       .attrs = Attrs(Shape{2, 3}),
                                       .expected = {f64({{1, 2, 3}, {1, 2, 3}})},
                                       .oracle = "np.broadcast_to(x, (2, 3))"}};
         }},

    {.op = "tile",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 5}, -1, 1)}, .attrs = Attrs(TileAttrs{{2, 37}})},
               {.inputs = {uniform({2, 1, 3}, -1, 1)}, .attrs = Attrs(TileAttrs{{4, 3, 1}})},
               {.inputs = {uniform({2, 3}, -1, 1)}, .attrs = Attrs(TileAttrs{{2}})},
               {.inputs = {uniform({2, 3}, -1, 1)}, .attrs = Attrs(TileAttrs{{0, 2}})},
               {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = Attrs(TileAttrs{{2, 2}})},
               {.inputs = {uniform({}, -1, 1)}, .attrs = Attrs(TileAttrs{})},
               {.inputs = {f64({{1, 2}, {3, 4}})},
                .attrs = Attrs(TileAttrs{{2, 2}}),
                .expected = {f64({{1, 2, 1, 2}, {3, 4, 3, 4}, {1, 2, 1, 2}, {3, 4, 3, 4}})},
                .oracle = "np.tile(x, (2, 2))"}};
         }},

    {.op = "one_hot",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {tensor<std::int32_t>({{0, 1}, {2, 2}})},
                                       .attrs = Attrs(OneHotAttrs{3, DType::f32})},
                                      {.inputs = {tensor<std::int64_t>({2, 0, 3})},
                                       .attrs = Attrs(OneHotAttrs{4, DType::f64}),
                                       .expected = {f64({{0, 0, 1, 0}, {1, 0, 0, 0}, {0, 0, 0, 1}})},
                                       .oracle = "np.eye(4)[indices]"}};
         }},

    {.op = "identity",
     .takes_complex = true,
     .oracle = "x",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({37}, -1, 1)}},
                                      {.inputs = {uniform({}, -1, 1)}},
                                      {.inputs = {f64({1, 2})}, .expected = {f64({1, 2})}}};
         }},

    {.op = "piecewise",
     .takes_complex = true,
     .oracle = "p",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, -1, 1), uniform({3, 2}, -1, 1, 1)}},
                                      {.inputs = {f64({1, 0}), f64({3, -2})}, .expected = {f64({1, 0})}}};
         }},

    {.op = "zeros_like",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {f64({1, 2})}, .expected = {f64({0, 0})}, .oracle = "np.zeros_like(x)"}};
         }},

    {.op = "ones_like",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {f64({1, 2})}, .expected = {f64({1, 1})}, .oracle = "np.ones_like(x)"}};
         }},

    {.op = "stop_gradient",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {f64({1, 2})}, .expected = {f64({1, 2})}, .oracle = "x"}};
         }},

    {.op = "fill",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {f64(2)}, .attrs = Attrs(Shape{5, 37})},
                                      {.inputs = {f64(2)}, .attrs = Attrs(Shape{})},
                                      {.inputs = {f64(2)}, .attrs = Attrs(Shape{0, 2})},
                                      {.inputs = {f64(2)},
                                       .attrs = Attrs(Shape{2, 3}),
                                       .expected = {f64({{2, 2, 2}, {2, 2, 2}})},
                                       .oracle = "np.full((2, 3), value)"}};
         }},

    {.op = "identity_n",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 37}, -1, 1), uniform({}, -1, 1), tensor({1, 2}, DType::i64)}},
               {.inputs = {f64({1, 2}), f64({3, 4})},
                .expected = {f64({1, 2}), f64({3, 4})},
                .oracle = "(x[0], x[1])"}};
         }},
};

}   // namespace

std::span<const OpSamples> array_samples() { return array_table; }

}   // namespace tapedeck::test
