// Samples of the ops in lib/ops/image/crop.cpp.
#include "ops/image/crop.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs frames(std::int64_t images, HeightWidth image, HeightWidth size,
                  Interpolation method = Interpolation::bilinear, double outside = 0) {
  return Attrs(FrameAttrs{images, image.height, image.width, size, method, outside});
}
Tensor inner_boxes() {
  return f64({{0.11, 0.07, 0.83, 0.91}, {0.9, 0.8, 0.13, 0.21}, {0.2, -0.63, 1.27, 0.7}});
}
Tensor box_images() { return tensor({1, 0, 1}); }
Tensor turn() { return f64({0.91, 0.23, 0.37, -0.13, 1.07, 0.21, 0.01, 0.02}); }

constexpr OpSamples crop_table[] = {
    {.op = "crop_and_resize",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 5, 4, 7}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {3, 4}, Interpolation::bilinear, 0.5)},
               {.inputs = {uniform({2, 5, 4, 37}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {1, 2}, Interpolation::nearest)},
               {.inputs = {uniform({2, 2, 5, 4, 3}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {3, 4})},
               {.inputs = {uniform({2, 5, 4, 2}, -1, 1), zeros({0, 4}, DType::f64), zeros({0}, DType::i64)},
                .attrs = frames(2, {5, 4}, 2)},
               {.inputs = {uniform({2, 5, 4, 2}, -1, 1),
                           f64({{0.11, 0.07, 0.83, 0.91}, {0.9, 0.8, 0.13, 0.21}, {0.03, 0.04, 0.96, 0.94}}),
                           tensor({1, 0, 0})},
                .attrs = frames(2, {5, 4}, {3, 4}),
                .expected = {tensor(
                    std::vector<double>{0.3088949088405539,   -0.035037113659656345, -0.8745108889597993,
                                        0.3615570885399905,   -0.47791668676015225,  0.7581512907396376,
                                        -0.08132248456050534, -0.3052545070607164,   0.5179980096381324,
                                        -0.19553401286207778, 0.636992211837779,     0.20106018933756908,
                                        -0.44481358596257436, 0.5976543915372161,    -0.24181938376292678,
                                        -0.4657514062631378,  0.407901110435711,     -0.3560309120644992,
                                        0.7044953126353578,   0.04056329013514766,   -0.5789104851649958,
                                        0.4371574923347947,   -0.4023162829653482,   0.8337516945344415,
                                        -0.03204797850727258, -0.07598000100748314,  -0.3106081919570247,
                                        0.2774597855427652,   -0.5891684054067767,   0.47089957209301314,
                                        -0.12772861885652853, 0.3683393586432611,    0.13959453869531702,
                                        -0.6243374838048932,  -0.1389656747544351,   -0.5228976972546454,
                                        -0.4175258882041871,  0.37854208929560273,   -0.651686101653939,
                                        0.5399818758458506,   0.3112370558979066,    -0.4526949666023036,
                                        0.03267684244815452,  -0.35125518005205575,  -0.2458833710015975,
                                        0.5501846064981923,   -0.5244435844513495,   0.7116243930484403,
                                        -0.7206504495004625,  0.5154175279993273,    -0.2957280900008408,
                                        0.900339887498949,    0.12919426949878082,   -0.4747377530014293,
                                        0.5541166289984024,   -0.20981539350180778,  -0.9279589443035902,
                                        0.30810903319619964,  -0.5030365848039684,   0.6930313926958213,
                                        -0.07811422530434686, -0.6820462478045569,   0.3468081341952748,
                                        -0.41712388830493546, 0.6247325608932822,    0.10080053839307196,
                                        -0.7103450796070961,  0.5193228978926937,    -0.28542272010747455,
                                        0.656245257392315,    0.13949963939214705,   -0.3220323831080629},
                    {3, 3, 4, 2})},
                .oracle =
                    "torch.nn.functional.grid_sample(torch.tensor(x[box_indices]).permute(0, 3, 1, 2), "
                    "torch.tensor(np.stack(np.broadcast_arrays("
                    "(2 * (boxes[:, 1:2] + (boxes[:, 3:] - boxes[:, 1:2]) * np.arange(4) / 3) - 1)[:, None], "
                    "(2 * (boxes[:, :1] + (boxes[:, 2:3] - boxes[:, :1]) * np.arange(3) / 2) - 1)[:, :, "
                    "None]), -1)), align_corners=True).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {tensor(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}, {1, 3, 3, 1}),
                           f64({{0.1, 0.2, 0.9, 0.8}, {0.02, 0.01, 1.9, 0.97}}), tensor({0, 0})},
                .attrs = frames(1, 3, 2, Interpolation::nearest, -1),
                .expected = {tensor(std::vector<double>{0, 2, 6, 8, 0, 2, -1, -1}, {2, 2, 2, 1})}}};
         }},

    {.op = "crop_and_resize_adjoint",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 3, 4, 7}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {3, 4})},
               {.inputs = {uniform({3, 1, 2, 37}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {1, 2}, Interpolation::nearest)},
               {.inputs = {uniform({2, 3, 3, 4, 3}, -1, 1), inner_boxes(), box_images()},
                .attrs = frames(2, {5, 4}, {3, 4})},
               {.inputs = {zeros({0, 2, 2, 2}, DType::f64), zeros({0, 4}, DType::f64),
                           zeros({0}, DType::i64)},
                .attrs = frames(2, {5, 4}, 2)},
               {.inputs = {tensor(std::vector<double>{4, 8}, {2, 1, 1, 1}),
                           f64({{0, 0, 1, 1}, {0.25, 0.5, 0.75, 1}}), tensor({0, 0})},
                .attrs = frames(1, 2, 1),
                .expected = {tensor(std::vector<double>{2, 4, 2, 4}, {1, 2, 2, 1})}}};
         }},

    {.op = "projective_transform",
     .held = 0b10,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4, 5, 7}, -1, 1), stack({turn(), turn() * 0.9})},
                .attrs = frames(2, {4, 5}, {4, 3})},
               {.inputs = {uniform({2, 4, 5, 37}, -1, 1), turn()},
                .attrs = frames(2, {4, 5}, {4, 3}, Interpolation::nearest)},
               {.inputs = {zeros({0, 4, 5, 2}, DType::f64), turn()}, .attrs = frames(0, {4, 5}, {4, 3})},
               {.inputs = {uniform({1, 4, 5, 2}, -1, 1), turn()},
                .attrs = frames(1, {4, 5}, {4, 3}),
                .expected = {tensor(
                    std::vector<double>{
                        -0.5134989664008072, 0.5671690110989828,  -0.13701281022368178,  0.4483346496797941,
                        0.23752793747010661, -0.4889564368683284, -0.033587233287408876, -0.18390910584528944,
                        0.33092917487546764, -0.4330028476247426, 0.04716346276302198,   -0.0754963703880754,
                        0.4278663562447047,  -0.3360656662555055, 0.6308407170048531,    0.017112776137296067,
                        0.1275594968342171,  0.3636274743340069,  0.6113202557965209,    0.020353974239754498,
                        -0.4578759554834243, 0.3917762486964408,  -0.40019778849513565,  0.7864874729552715},
                    {1, 4, 3, 2})},
                .oracle = "(lambda x, t, j, i: torch.nn.functional.grid_sample(torch.tensor(x).permute(0, 3, "
                          "1, 2), torch.tensor(np.stack([(t[0] * j + t[1] * i + t[2]) / (t[6] * j + t[7] * i "
                          "+ 1) / 2 - 1, "
                          "(t[3] * j + t[4] * i + t[5]) / (t[6] * j + t[7] * i + 1) / 1.5 - 1], -1))[None], "
                          "align_corners=True).permute(0, 2, 3, 1).numpy())(x, transforms, "
                          "*np.meshgrid(np.arange(3.0), np.arange(4.0)))"},
               {.inputs = {tensor(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}, {1, 3, 3, 1}),
                           f64({1, 0, 1, 0, 1, 0, 0, 0})},
                .attrs = frames(1, 3, 3, Interpolation::nearest, -1),
                .expected = {tensor(std::vector<double>{1, 2, -1, 4, 5, -1, 7, 8, -1}, {1, 3, 3, 1})}}};
         }},

    {.op = "projective_transform_adjoint",
     .held = 0b10,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4, 3, 7}, -1, 1), turn()}, .attrs = frames(2, {4, 5}, {4, 3})},
               {.inputs = {zeros({0, 4, 3, 2}, DType::f64), turn()}, .attrs = frames(0, {4, 5}, {4, 3})},
               {.inputs = {tensor(std::vector<double>{1, 2, 4, 8}, {1, 2, 2, 1}),
                           f64({1, 0, 0.5, 0, 1, 0, 0, 0})},
                .attrs = frames(1, 2, 2),
                .expected = {tensor(std::vector<double>{0.5, 1.5, 2, 6}, {1, 2, 2, 1})}}};
         }},
};

}   // namespace

std::span<const OpSamples> crop_samples() { return crop_table; }

}   // namespace tapedeck::test
