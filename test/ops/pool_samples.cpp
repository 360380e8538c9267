// Samples of the ops in lib/ops/nn/pool.cpp.
#include "ops/nn/pool.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs row_window(std::int64_t input, std::int64_t size, std::int64_t stride,
                      const Padding& padding = Padding::valid) {
  return Attrs(pool_of({window_of(in_row(input), in_row(size), in_row(stride), 1, in_row(padding)), 1}));
}
PoolAttrs pool_window(HeightWidth input, HeightWidth size, HeightWidth strides, const Padding& padding) {
  return pool_of(
      {window_of(in_volume(input), in_volume(size), in_volume(strides), 1, in_volume(padding)), 2});
}
OwnedAttrs window(HeightWidth input, HeightWidth size, HeightWidth strides = 1,
                  const Padding& padding = Padding::valid) {
  return Attrs(pool_window(input, size, strides, padding));
}
OwnedAttrs volume_window(DepthHeightWidth input, DepthHeightWidth size, DepthHeightWidth strides,
                         const Padding3d& padding = Padding::valid) {
  return Attrs(volume_pool_of({window_of(input, size, strides, 1, padding), 3}));
}
OwnedAttrs bounds(const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns,
                  bool overlapping = false) {
  return Attrs(pool_of(rows, columns, overlapping));
}
OwnedAttrs through_all(HeightWidth input, HeightWidth size) {
  PoolAttrs a = pool_window(input, size, size, Padding::valid);
  a.through = true;
  return Attrs(a);
}

constexpr OpSamples pool_table[] = {
    {.op = "max_pool2d",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 5, 4, 3})}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {distinct({4, 5, 37})}, .attrs = window({4, 5}, 3, 2, Padding::same)},
               {.inputs = {distinct({2, 2, 3, 3, 1})}, .attrs = window(3, 2, 3, {1, 0, 1, 1})},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1)}, .attrs = window(4, 2, 2)},
               {.inputs = {distinct({1, 5, 4, 2})},
                .attrs = window({5, 4}, {3, 2}, {1, 2}),
                .expected = {f64({1, 3, 2, 2}, {-0.5699999999999998, 1.8300000000000003, 1.3300000000000003,
                                                -0.16999999999999996, 1.7300000000000002, 1.6300000000000001,
                                                1.1300000000000001, -0.3699999999999999, 1.7300000000000002,
                                                1.4300000000000004, 0.8300000000000003, 1.9300000000000004})},
                .oracle = "torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), (3, 2), "
                          "stride=(1, 2)).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {distinct({1, 5, 4, 1})},
                .attrs = window({5, 4}, 3, 2, 1),
                .expected = {f64({1, 3, 2, 1},
                                 {0.43000000000000016, 0.9300000000000002, 0.33000000000000007,
                                  0.8300000000000001, 0.23000000000000018, 0.7300000000000002})},
                .oracle = "torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 3, stride=2, "
                          "padding=1).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.op = "max_pool1d",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 9, 37})}, .attrs = row_window(9, 3, 2, Padding::same)},
               {.inputs = {distinct({4, 1})}, .attrs = row_window(4, 4, 1)},
               {.inputs = {distinct({2, 3, 5, 2})}, .attrs = row_window(5, 3, 1, {0, 0, 2, 1})},
               {.inputs = {uniform({0, 4, 2}, -1, 1)}, .attrs = row_window(4, 2, 2)},
               {.inputs = {distinct({2, 7, 2})},
                .attrs = row_window(7, 3, 2),
                .expected = {tensor(std::vector<double>{0.22999999999999995, 1.33, 0.93, 0.42999999999999994,
                                                        0.029999999999999943, 1.1300000000000001, 0.73, 1.03,
                                                        0.53, 1.03, 1.23, 0.8300000000000001},
                                    {2, 3, 2})},
                .oracle = "torch.nn.functional.max_pool1d(torch.tensor(x).permute(0, 2, 1), 3, "
                          "stride=2).permute(0, 2, 1).numpy()"}};
         }},

    {.op = "max_pool3d",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 5, 4, 3, 3})},
                .attrs = volume_window({5, 4, 3}, {3, 2, 2}, {2, 1, 2}, Padding::same)},
               {.inputs = {distinct({3, 2, 4, 37})}, .attrs = volume_window({3, 2, 4}, 2, 1)},
               {.inputs = {distinct({1, 2, 3, 3, 2, 1})},
                .attrs = volume_window({3, 3, 2}, 2, 2, {1, 0, {0, 1, 1, 0}})},
               {.inputs = {uniform({0, 2, 2, 2, 2}, -1, 1)}, .attrs = volume_window(2, 2, 2)},
               {.inputs = {distinct({1, 3, 5, 4, 2})},
                .attrs = volume_window({3, 5, 4}, {2, 3, 2}, {1, 2, 2}),
                .expected = {tensor(
                    std::vector<double>{5.530000000000001, 5.630000000000001, 3.93, 5.130000000000001,
                                        5.530000000000001, 4.330000000000001, 2.5300000000000002,
                                        5.930000000000001, 5.530000000000001, 2.33, 5.730000000000001,
                                        5.130000000000001, 5.530000000000001, 5.430000000000001,
                                        5.030000000000001, 5.930000000000001},
                    {1, 2, 2, 2, 2})},
                .oracle = "torch.nn.functional.max_pool3d(torch.tensor(x).permute(0, 4, 1, 2, 3), (2, 3, 2), "
                          "stride=(1, 2, 2)).permute(0, 2, 3, 4, 1).numpy()"}};
         }},

    {.op = "max_pool_with_argmax",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 5, 4, 3})}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {distinct({4, 5, 37})}, .attrs = window({4, 5}, 3, 2, Padding::same)},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1)}, .attrs = window(4, 2, 2)},
               {.inputs = {distinct({2, 5, 4, 2})},
                .attrs = window({5, 4}, {3, 2}, {1, 2}),
                .expected = {tensor(std::vector<double>{-1.1699999999999997,  3.7300000000000004,
                                                        2.5300000000000002,   -0.46999999999999975,
                                                        3.5300000000000002,   3.23,
                                                        2.1300000000000003,   -0.8699999999999998,
                                                        3.5300000000000002,   2.83,
                                                        1.6300000000000003,   3.83,
                                                        3.6300000000000003,   1.4300000000000004,
                                                        0.3300000000000003,   3.33,
                                                        3.6300000000000003,   1.0300000000000002,
                                                        -0.06999999999999978, 3.93,
                                                        3.6300000000000003,   0.5300000000000002,
                                                        -0.5699999999999998,  3.93},
                                    {2, 3, 2, 2}),
                             tensor(std::vector<std::int64_t>{2,  3, 6, 7, 24, 11, 14, 15, 24, 19, 22, 37,
                                                              18, 3, 6, 5, 18, 11, 14, 31, 18, 19, 22, 31},
                                    {2, 3, 2, 2})},
                .oracle = "(lambda y, i: (y.permute(0, 2, 3, 1).numpy(), i.permute(0, 2, 3, 1).numpy() * 2 + "
                          "np.array([0, 1])))("
                          "*torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), (3, 2), "
                          "stride=(1, 2), return_indices=True))"},
               {.inputs = {f64({2, 2, 2, 1}, {1, 3, 2, 0, 5, 4, 6, 7})},
                .attrs = through_all(2, 2),
                .expected = {f64({2, 1, 1, 1}, {3, 7}),
                             tensor(std::vector<std::int64_t>{1, 7}, {2, 1, 1, 1})}}};
         }},

    {.op = "fractional_max_pool",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 6, 5, 3})}, .attrs = bounds({0, 2, 3, 5, 6}, {0, 1, 3, 5}, true)},
               {.inputs = {distinct({3, 4, 37})}, .attrs = bounds({0, 1, 3}, {0, 2, 4})},
               {.inputs = {uniform({0, 2, 2, 2}, -1, 1)}, .attrs = bounds({0, 1, 2}, {0, 2})},
               {.inputs = {distinct({1, 5, 4, 2})},
                .attrs = bounds({0, 2, 3, 5}, {0, 1, 3, 4}),
                .expected = {tensor(
                    std::vector<double>{-1.57, 0.9300000000000002, 0.3300000000000002, 1.8300000000000003,
                                        1.3300000000000003, -0.1699999999999999, -1.97, 0.5300000000000001,
                                        -0.0699999999999999, 1.4300000000000002, 0.8300000000000002,
                                        -0.6699999999999999, 1.7300000000000002, 0.23000000000000012,
                                        -0.2699999999999999, 1.9300000000000002, 0.6300000000000001,
                                        -0.8699999999999999},
                    {1, 3, 3, 2})},
                .oracle = "np.maximum.reduceat(np.maximum.reduceat(x, [0, 2, 3], 1), [0, 1, 3], 2)"}};
         }},

    {.op = "max_pool_scatter",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 2, 3}, -1, 1), distinct({2, 5, 4, 3})},
                .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {uniform({3, 2, 3, 37}, -1, 1), distinct({4, 5, 37})},
                .attrs = window({4, 5}, 3, 2, Padding::same)},
               {.inputs = {uniform({1, 2, 2, 2}, -1, 1), distinct({1, 4, 4, 2})},
                .attrs = window(4, 2, 2),
                .expected = {f64({1, 4, 4, 2}, {0.0,
                                                0.0,
                                                -0.7639320225002102,
                                                0.4721359549995796,
                                                0.0,
                                                0.0,
                                                -0.2917960675006306,
                                                0.9442719099991592,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                -0.5835921350012612,
                                                0.0,
                                                0.0,
                                                0.6524758424985286,
                                                -0.11145618000168156,
                                                0.18033988749894903,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0})},
                .oracle = "torch.nn.functional.max_unpool2d(torch.tensor(dy).permute(0, 3, 1, 2), "
                          "torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 2, "
                          "return_indices=True)[1], 2).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.op = "max_pool_gather",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 5, 4, 3}, -1, 1), distinct({2, 5, 4, 3}, 1)},
                .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {uniform({3, 4, 5, 37}, -1, 1), distinct({4, 5, 37}, 1)},
                .attrs = window({4, 5}, 3, 2, Padding::same)},
               {.inputs = {uniform({1, 4, 5, 2}, -1, 1), distinct({1, 4, 5, 2}, 1)},
                .attrs = window({4, 5}, 3),
                .expected = {f64({1, 2, 3, 2}, {0.18033988749894903, 0.13776741499453493, 0.18033988749894903,
                                                0.2492235949962165, 0.18033988749894903, 0.36067977499789805,
                                                0.31810730249348396, 0.13776741499453493, 0.06888370749726747,
                                                0.2492235949962165, 0.2066511224918024, 0.2492235949962165})},
                .oracle = "torch.gather(torch.tensor(v).permute(0, 3, 1, 2).reshape(1, 2, -1), 2, "
                          "torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 3, stride=1, "
                          "return_indices=True)[1].reshape(1, 2, -1)).reshape(1, 2, 2, 3).permute(0, 2, 3, "
                          "1).numpy()"}};
         }},

    {.op = "avg_pool2d",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 5, 4, 3}, -1, 1)}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {uniform({2, 2, 3, 3, 1}, -1, 1)}, .attrs = window(3, 2, 3, {1, 0, 1, 1})},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1)}, .attrs = window(4, 2, 2)},
               {.inputs = {uniform({1, 5, 4, 2}, -1, 1)},
                .attrs = window({5, 4}, {3, 2}, {1, 2}),
                .expected = {f64(
                    {1, 3, 2, 2},
                    {-0.639320225002102, 0.5967477524976879, 0.30495168499705727, -0.4589803375031529,
                     -0.4174430716704502, 0.4852915724960063, 0.1934955049953757, -0.5704365175048345,
                     -0.1955659183387984, 0.37383539249432474, 0.08203932499369415, -0.34855936417318273})},
                .oracle = "torch.nn.functional.avg_pool2d(torch.tensor(x).permute(0, 3, 1, 2), (3, 2), "
                          "stride=(1, 2)).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 5, 4, 1}, -1, 1)},
                .attrs = window({5, 4}, 3, 2, 1),
                .expected = {f64({1, 3, 2, 1},
                                 {-0.17376207875073568, 0.18033988749894903, -0.25735421375199685,
                                  0.0411921969421323, -0.340946348753258, 0.013155617496426686})},
                .oracle = "torch.nn.functional.avg_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 3, stride=2, "
                          "padding=1, count_include_pad=False).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 3, 3, 1}, -1, 1)},
                .attrs = window(3, 2, 2, Padding::same),
                .expected = {f64({1, 2, 2, 1}, {0.20820393249936942, -0.4376941012509459, 0.27050983124842354,
                                                -0.8753882025018918})},
                .oracle = "torch.nn.functional.avg_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 2, "
                          "ceil_mode=True, count_include_pad=False).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.op = "avg_pool1d",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 9, 37}, -1, 1)}, .attrs = row_window(9, 3, 2, Padding::same)},
               {.inputs = {uniform({4, 1}, -1, 1)}, .attrs = row_window(4, 4, 1)},
               {.inputs = {uniform({0, 4, 2}, -1, 1)}, .attrs = row_window(4, 2, 2)},
               {.inputs = {uniform({2, 7, 2}, -1, 1)},
                .attrs = row_window(7, 3, 2, {0, 0, 1, 1}),
                .expected = {tensor(
                    std::vector<double>{
                        -0.5278640450004204, 0.7082039324993694, 0.18033988749894903, 0.0830745316654055,
                        -0.2087215358352251, 0.36067977499789805, -0.16718427000252234, 0.06888370749726747,
                        -0.22291236000336312, 0.013155617496426686, -0.5147084275039937, 0.05469288332912944,
                        0.4295634824951655, -0.3343685400050447, 0.13776741499453493, 0.37383539249432474},
                    {2, 4, 2})},
                .oracle = "torch.nn.functional.avg_pool1d(torch.tensor(x).permute(0, 2, 1), 3, stride=2, "
                          "padding=1, count_include_pad=False).permute(0, 2, 1).numpy()"}};
         }},

    {.op = "avg_pool3d",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 5, 4, 3, 3}, -1, 1)},
                .attrs = volume_window({5, 4, 3}, {3, 2, 2}, {2, 1, 2}, Padding::same)},
               {.inputs = {uniform({3, 2, 4, 37}, -1, 1)}, .attrs = volume_window({3, 2, 4}, 2, 1)},
               {.inputs = {uniform({0, 2, 2, 2, 2}, -1, 1)}, .attrs = volume_window(2, 2, 2)},
               {.inputs = {uniform({1, 3, 5, 4, 2}, -1, 1)},
                .attrs = volume_window({3, 5, 4}, {2, 3, 2}, {1, 2, 2}, {1, 1, {1, 1, 1, 1}}),
                .expected = {tensor(
                    std::vector<double>{-0.819660112501051,    0.41640786499873883,   -0.11145618000168156,
                                        0.12461179749810825,   0.5967477524976879,    -0.16718427000252234,
                                        -0.32017771583690663,  0.2492235949962165,    -0.2786404500042039,
                                        -0.042572472504414094, 0.4295634824951655,    -0.3343685400050447,
                                        0.8459713474939043,    0.08203932499369415,   -0.44582472000672624,
                                        0.29024325749306357,   0.2623792124926432,    -0.501552810007567,
                                        -0.09830056250525487,  0.13776741499453493,   -0.39009663000588546,
                                        0.34597134749390435,   0.31810730249348396,   -0.44582472000672624,
                                        0.06784850082555612,   -0.029416855007987408, -0.22394756667507446,
                                        0.178787077491382,     0.15092303249096162,   -0.27967565667591526,
                                        0.5673308974897004,    -0.19660112501050975,  -0.22446517001093014,
                                        0.26160280748885967,   -0.016261237511560722, 0.21980673998822908,
                                        0.34441853748633733,   -0.41951348501387287,  -0.19737753001429326,
                                        0.28869044748549655,   -0.23917359751492384,  -0.0031056200151340363,
                                        0.177234267483815,     -0.5866977550163952,   0.21877153331651775,
                                        0.12150617748297421,   -0.4063578675174462,   0.16304344331567697,
                                        0.01004999748129265,   -0.25388202501891755,  0.21825392998066206,
                                        -0.04567809251954813,  -0.5735421375199685,   0.6625258399798213,
                                        0.06577808748213343,   -0.6981539350180768,   0.27398201998150284,
                                        0.01004999748129265,   -0.5178140475191277,   0.7182539299806621,
                                        -0.10140618252038891,  -0.8653382050205991,   0.6067977499789805,
                                        -0.1571342725212297,   -0.6849983175216501,   0.5510696599781397,
                                        -0.26859045252291125,  -0.032522475023121444, 0.43961347997645817,
                                        -0.32431854252375203,  -0.8521825875241724,   0.3838853899756174},
                    {1, 4, 3, 3, 2})},
                .oracle =
                    "torch.nn.functional.avg_pool3d(torch.tensor(x).permute(0, 4, 1, 2, 3), (2, 3, 2), "
                    "stride=(1, 2, 2), padding=1, count_include_pad=False).permute(0, 2, 3, 4, 1).numpy()"}};
         }},

    {.op = "fractional_avg_pool",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 6, 5, 3}, -1, 1)},
                .attrs = bounds({0, 2, 3, 5, 6}, {0, 1, 3, 5}, true)},
               {.inputs = {uniform({3, 4, 37}, -1, 1)}, .attrs = bounds({0, 1, 3}, {0, 2, 4})},
               {.inputs = {uniform({0, 2, 2, 2}, -1, 1)}, .attrs = bounds({0, 1, 2}, {0, 2})},
               {.inputs = {uniform({1, 5, 4, 2}, -1, 1)},
                .attrs = bounds({0, 2, 3, 5}, {0, 1, 3, 4}),
                .expected = {tensor(
                    std::vector<double>{-0.819660112501051, 0.41640786499873883, -0.11145618000168156,
                                        0.12461179749810825, 0.5967477524976879, -0.16718427000252234,
                                        -0.9868443825035733, 0.2492235949962165, -0.2786404500042039,
                                        -0.042572472504414094, 0.4295634824951655, -0.3343685400050447,
                                        0.8459713474939043, 0.08203932499369415, -0.44582472000672624,
                                        0.29024325749306357, 0.2623792124926432, -0.501552810007567},
                    {1, 3, 3, 2})},
                .oracle = "np.add.reduceat(np.add.reduceat(x, [0, 2, 3], 1), [0, 1, 3], 2) / np.outer([2, 1, "
                          "2], [1, 2, 1])[:, :, None]"}};
         }},

    {.op = "avg_pool_gradient",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 2, 3}, -1, 1)}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {uniform({2, 3, 37}, -1, 1)}, .attrs = window({4, 5}, 3, 2, Padding::same)},
               {.inputs = {uniform({1, 3, 2, 1}, -1, 1)},
                .attrs = window({5, 4}, {3, 2}, {1, 2}),
                .expected = {f64({1, 5, 4, 1},
                                 {-0.12732200375003502, -0.12732200375003502, 0.07868932583326327,
                                  0.07868932583326327,  -0.17595468166680678, -0.17595468166680678,
                                  0.2360679774997898,   0.2360679774997898,   -0.1458980337503153,
                                  -0.1458980337503153,  0.1388026216662463,   0.1388026216662463,
                                  -0.01857603000028026, -0.01857603000028026, 0.06011329583298301,
                                  0.06011329583298301,  0.030056647916491503, 0.030056647916491503,
                                  -0.09726535583354352, -0.09726535583354352})},
                .oracle = "torch.nn.functional.conv_transpose2d(torch.tensor(dy).permute(0, 3, 1, 2), "
                          "torch.full((1, 1, 3, 2), 1 / 6, dtype=torch.float64), stride=(1, 2)).permute(0, "
                          "2, 3, 1).numpy()"}};
         }},
};

}   // namespace

std::span<const OpSamples> pool_samples() { return pool_table; }

}   // namespace tapedeck::test
