// Other forms of convolution: by channel, and morphological dilation.
#include <algorithm>

#include "core/format.h"
#include "kernels/nn/depthwise.h"
#include "ops/axes.h"
#include "ops/derivative_of_ops.h"
#include "ops/layout/take_along_axis.h"
#include "ops/nn/window.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

kernels::ByChannel by_channel(const Call& c, const Tensor& images) {
  return {c.attrs<WindowAttrs>().window.plane, front_of(images).size(), channels_of(images)};
}

// Images with the extents, filters [rows, columns, channels] and, for gradients, the other of the two.
Spec infer_by_channel(const Call& c, const Shape& from, const Shape& to) {
  require_floats(c);
  require_rank(c, 0);
  require_images(c, 0, from, channels_of(c.x[0]));
  if (c.x[1].shape() != behind({}, c.attrs<WindowAttrs>().sizes(), channels_of(c.x[0])))
    throw_shape_error(c, "filters do not fit the window");
  return {c.x[0].dtype(), behind(front_of(c.x[0]), to, channels_of(c.x[0]))};
}
Shape inputs_of(const Call& c) { return c.attrs<WindowAttrs>().inputs(); }
Shape outputs_of(const Call& c) { return c.attrs<WindowAttrs>().outputs(); }

// With as many filters as channels, the three products of a convolution by channel are each other's adjoints.
Tensor depthwise(const WindowAttrs& a, const Tensor& x, const Tensor& filters);
Tensor depthwise_input_gradient(const WindowAttrs& a, const Tensor& dy, const Tensor& filters);
Tensor depthwise_filter_gradient(const WindowAttrs& a, const Tensor& x, const Tensor& dy);

struct Positions {
  Tensor of_x, of_filters;
};
Positions dilation_positions(const Call& c);

constexpr Op table[] = {
    {.name = "depthwise_conv2d",
     .doc = "Sums over windows, each channel by filters of its own: y[i, j, k] = Σ x[i·s + r·d - p, j·s + "
            "c·d - p, k] filters[r, c, k] over r and c, with strides s, dilation d and padding p.",
     .tensorflow = "DepthwiseConv2dNative",
     .args = {"x", "filters"},
     .infer = [](const Call& c) { return infer_by_channel(c, inputs_of(c), outputs_of(c)); },
     .forward = [](const Call& c,
                   std::span<Tensor> y) { kernels::depthwise(by_channel(c, c.x[0]), c.x[0], c.x[1], y[0]); },
     .rule = unstacked(bilinear(
         [](const Call& c, const Tensor& dy) {
           return depthwise_input_gradient(c.attrs<WindowAttrs>(), dy, c.x[1]);
         },
         [](const Call& c, const Tensor& dy) {
           return depthwise_filter_gradient(c.attrs<WindowAttrs>(), c.x[0], dy);
         })),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 4, 5, 2}, -1, 1), uniform({3, 2, 2}, -1, 1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
               {.inputs = {uniform({4, 3, 37}, -1, 1), uniform({2, 2, 37}, -1, 1, 1)},
                .attrs = window({4, 3}, 2, 1, {1, 0, 0, 1})},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1), uniform({3, 3, 2}, -1, 1, 1)},
                .attrs = window(4, 3)},
               {.inputs = {uniform({2, 2, 4, 3, 1}, -1, 1), uniform({2, 2, 1}, -1, 1, 1)},
                .attrs = window({4, 3}, 2, 2)},
               {.inputs = {uniform({2, 5, 4, 3}, -1, 1), uniform({3, 2, 3}, -1, 1, 1)},
                .attrs = window({5, 4}, {3, 2}, {2, 1}, 1),
                .expected = {tensor(
                    std::vector<double>{-0.7079188487948279,   0.36176722424697927,   0.624948802284164,
                                        1.440218261439873,     0.713958947528532,     0.15828277860920756,
                                        -0.42223835043125235,  -0.11908080933460016,  0.406989091765419,
                                        -0.7896466472994351,   -0.36852843119647116,  -0.4786731350834141,
                                        -0.8090745616650286,   -0.2378356786156485,   0.05786837444466364,
                                        0.7347411233330167,    -0.8907331320609506,   0.5395207025459258,
                                        -0.38554731995329705,  -0.44300032574585585,  0.6141084684784067,
                                        -0.5721412328066751,   1.1013754264163296,    -0.3662742043446854,
                                        -0.004559865666778949, -0.7706566864202238,   -0.7630647421665163,
                                        0.6871996588043705,    -0.7679847065719317,   0.3341118280601769,
                                        0.6660122145927234,    0.7187039126871085,    0.548189995803776,
                                        0.13809721299835245,   -0.5630238858175016,   -0.0972539696051859,
                                        0.2567136260620315,    -0.7199423027428866,   -0.49689148652215714,
                                        -0.536126140875971,    -0.4833652146728958,   -0.34575259843534506,
                                        0.08944185643607991,   0.36504591453383395,   -0.2512927223562189,
                                        -0.48841977734540637,  0.33057642582846153,   0.6712254339724837,
                                        -0.27454543597759207,  0.7473323603457612,    0.018433751665334785,
                                        1.2794058171500213,    -0.08570739651737098,  0.2671400648215463,
                                        -0.5830507947211041,   -0.335155018379242,    -0.6185221620272868,
                                        -0.821977780536119,    -0.17327146737990162,  -0.12825728418752874,
                                        -1.041894604982027,    -0.020198050200183906, 0.5884895145724138,
                                        1.2144238529177709,    -0.24373584752610966,  0.5275213070380032,
                                        -0.46721837493854945,  1.1105432746301904,    -0.452861365785089,
                                        -0.6538122877919273,   -0.7614888382063628,   -0.8496519036069201,
                                        -0.6903687200027917,   -0.855663175211691,    0.19855585459328529,
                                        0.7488640053758976,    -0.6816566414207782,   0.4578193468258483,
                                        0.07139850424418877,   1.3809403556428501,    -0.18224025790677686,
                                        0.19001491730786774,   -0.6317061512833757,   -0.5818777748237481,
                                        0.3086313303715468,    -0.7886245682087607,   -0.430738886736936,
                                        0.26775540189916225,   -0.6841247948933037,   -0.24590836167988214},
                    {2, 3, 5, 3})},
                .oracle = "torch.nn.functional.conv2d(torch.tensor(x).permute(0, 3, 1, 2), "
                          "torch.tensor(filters).permute(2, 0, 1)[:, None], stride=(2, 1), padding=1, "
                          "groups=3).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.name = "depthwise_conv2d_input_gradient",
     .doc = "The adjoint of depthwise_conv2d in its input.",
     .tensorflow = "DepthwiseConv2dNativeBackpropInput",
     .args = {"dy", "filters"},
     .infer = [](const Call& c) { return infer_by_channel(c, outputs_of(c), inputs_of(c)); },
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::depthwise_input_gradient(by_channel(c, c.x[0]), c.x[0], c.x[1], y[0]);
         },
     .rule = unstacked(
         bilinear([](const Call& c, const Tensor& v) { return depthwise(c.attrs<WindowAttrs>(), v, c.x[1]); },
                  [](const Call& c, const Tensor& v) {
                    return depthwise_filter_gradient(c.attrs<WindowAttrs>(), v, c.x[0]);
                  })),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 2, 5, 2}, -1, 1), uniform({3, 2, 2}, -1, 1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
               {.inputs = {uniform({4, 3, 37}, -1, 1), uniform({1, 1, 37}, -1, 1, 1)},
                .attrs = window({4, 3}, 1)},
               {.inputs = {uniform({0, 2, 2, 2}, -1, 1), uniform({3, 3, 2}, -1, 1, 1)},
                .attrs = window(4, 3)},
               {.inputs = {uniform({2, 3, 5, 3}, -1, 1), uniform({3, 2, 3}, -1, 1, 1)},
                .attrs = window({5, 4}, {3, 2}, {2, 1}, 1),
                .expected = {tensor(
                    std::vector<double>{-1.4397601074636177,  0.18099562555632037,  0.32621652858719047,
                                        0.41940147158105257,  -0.0189697603893376,  0.5720758626482616,
                                        0.35720350062992656,  -0.21893514633499556, 0.2671587917055495,
                                        0.29500552967880056,  -0.41890053228065355, -0.6213504142384239,
                                        0.5295033901438466,   -1.639181768784733,   0.24446228729804126,
                                        1.1592827282348686,   0.10515936932311022,  0.1525888204189224,
                                        0.7070227413321966,   0.28882073243305545,  -1.657245321466502,
                                        -0.32882938057173683, 0.4724820955430007,   -0.050671598353187686,
                                        0.17060958777654864,  0.15825633582466753,  -0.1296317461162815,
                                        0.10841161682542266,  0.3517864548743854,   0.11622758794478966,
                                        -1.4488346691286458,  0.15182106892872743,  0.36208692200586085,
                                        0.4103269099160245,   -0.04814431701693053, 0.607946256066932,
                                        -0.5776212643762407,  0.6497081917570058,   0.41480506288479146,
                                        -0.7020172062784926,  -1.796047300141036,   0.3229315960056726,
                                        0.5113542668137905,   -0.05170616203319252, 0.23105812912655377,
                                        1.1411336049048124,   0.13195520107675263,  0.13918466224743498,
                                        0.28593096801377255,  -0.4480750889082465,  -0.5854800208197535,
                                        0.22373299706264657,  0.3290471651427326,   -0.3396206867586823,
                                        0.1615350261115206,   0.5225772841924505,   -0.09376135269761114,
                                        0.0993370551603946,   0.3226118982467925,   0.15209798136346003,
                                        0.4012523482509965,   -0.07731887364452346, 0.6438166494856024,
                                        0.33905437729987054,  -0.27728425959018144, 0.3388995785428902,
                                        0.27685640634874453,  -0.47724964553583943, -0.5496096274010831,
                                        0.21465843539761853,  0.29987260851513964,  -0.30375029334001197,
                                        1.1229844815747565,   0.1587510328303949,   0.12578050407594743,
                                        0.6707244946720843,   0.3424123959403401,   -1.6840536378094768,
                                        -0.36512762723184894, 0.5260737590502853,   0.5389279503025763,
                                        -0.48952356913410083, 0.5196384921543453,   0.4798702134209354,
                                        0.09026249349536664,  0.29343734161919954,  0.1879683747821304,
                                        -1.466983792458702,   0.09347195567354158,  0.43382770884320154,
                                        0.3921777865859684,   -0.1064934302721164,  0.1289106379004894,
                                        0.32997981563484247,  -0.3064588162177744,  -0.7595985680434839,
                                        -0.7383154529386048,  -1.7424556366337516,  0.2961232796626977,
                                        0.47505602015367837,  0.001885501474092055, 0.20424981278357884,
                                        1.1048353582447004,   0.18554686458403727,  -1.6055843291018457,
                                        0.6525753713420284,   0.3692082276939824,   0.0009893940114685806,
                                        0.2055838737325905,   0.2706980518875467,   -0.2678798999213416,
                                        0.1433859027814645,   0.46422817093726465,  -0.022020565860270423,
                                        0.08118793183033857,  0.2642627849916066,   0.22383876820080073,
                                        -1.47605835412373,    0.06429739904594865,  0.4696981022618719},
                    {2, 5, 4, 3})},
                .oracle = "torch.nn.grad.conv2d_input((2, 3, 5, 4), torch.tensor(filters).permute(2, 0, "
                          "1)[:, None], torch.tensor(dy).permute(0, 3, 1, 2), stride=(2, 1), padding=1, "
                          "groups=3).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.name = "depthwise_conv2d_filter_gradient",
     .doc = "The adjoint of depthwise_conv2d in its filters.",
     .tensorflow = "DepthwiseConv2dNativeBackpropFilter",
     .args = {"x", "dy"},
     .infer = [](const Call& c) -> Spec {
       require_floats(c);
       require_rank(c, 0);
       require_images(c, 0, inputs_of(c), channels_of(c.x[0]));
       require_images(c, 1, outputs_of(c), channels_of(c.x[0]));
       if (front_of(c.x[0]) != front_of(c.x[1])) throw_shape_error(c, "numbers of images differ");
       return {c.x[0].dtype(), behind({}, c.attrs<WindowAttrs>().sizes(), channels_of(c.x[0]))};
     },
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::depthwise_filter_gradient(by_channel(c, c.x[0]), c.x[0], c.x[1], y[0]);
         },
     .rule = unstacked(bilinear(
         [](const Call& c, const Tensor& v) {
           return depthwise_input_gradient(c.attrs<WindowAttrs>(), c.x[1], v);
         },
         [](const Call& c, const Tensor& v) { return depthwise(c.attrs<WindowAttrs>(), c.x[0], v); })),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 4, 5, 2}, -1, 1), uniform({3, 2, 5, 2}, -1, 1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
               {.inputs = {uniform({4, 3, 37}, -1, 1), uniform({4, 3, 37}, -1, 1, 1)},
                .attrs = window({4, 3}, 1)},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1), uniform({0, 2, 2, 2}, -1, 1, 1)},
                .attrs = window(4, 3)},
               {.inputs = {uniform({2, 5, 4, 3}, -1, 1), uniform({2, 3, 5, 3}, -1, 1, 1)},
                .attrs = window({5, 4}, {3, 2}, {2, 1}, 1),
                .expected = {tensor(
                    std::vector<double>{0.9126266826796501, 1.2857491382280763, 0.3772985940287512,
                                        0.6616723849663273, 0.3459577655420556, -0.1089905437485177,
                                        0.9161228096663989, 1.3040503280995115, 1.6659598665141515,
                                        2.503330130622269, -0.918352465964412, -0.10294069264103156,
                                        -1.6547740057860705, -2.7090156204252547, 0.2926439252079881,
                                        -0.08990694844936697, 0.37129300185130976, 0.7181042224067572},
                    {3, 2, 3})},
                .oracle = "torch.nn.grad.conv2d_weight(torch.tensor(x).permute(0, 3, 1, 2), (3, 1, 3, 2), "
                          "torch.tensor(dy).permute(0, 3, 1, 2), stride=(2, 1), padding=1, groups=3)[:, "
                          "0].permute(1, 2, 0).numpy()"}};
         }},

    {.name = "dilation2d",
     .doc = "Morphological dilation: y[i, j, k] = max over r and c of x[i·s + r·d - p, j·s + c·d - p, k] + "
            "filters[r, c, k]; the gradient goes to the first of the largest.",
     .tensorflow = "Dilation2D",
     .args = {"x", "filters"},
     .infer = [](const Call& c) { return infer_by_channel(c, inputs_of(c), outputs_of(c)); },
     .forward = [](const Call& c,
                   std::span<Tensor> y) { kernels::dilation(by_channel(c, c.x[0]), c.x[0], c.x[1], y[0]); },
     .rule = custom(
         {.x = 0b11},
         [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
           const Tensor dy = std::move(dys[0]).dense();
           const Positions at = dilation_positions(c);
           const Shape all{at.of_x.size()};
           const auto put = [&](const Tensor& positions, const Shape& shape) {   // dy at them
             return reshape(add_along_axis(reshape(dy, behind_extra(dy, c.y[0].ndim(), all)),
                                           reshape(positions, all), {shape.size()}, -1),
                            behind_extra(dy, c.y[0].ndim(), shape));
           };
           if (c.needs(0)) dx[0] = put(at.of_x, c.x[0].shape());
           if (c.needs(1)) dx[1] = put(at.of_filters, c.x[1].shape());
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) {
           const Positions at = dilation_positions(c);
           if (dx[0].defined()) dy[0] = gather(reshape(dx[0], {-1}), at.of_x);
           if (!dx[1].defined()) return;
           const Tensor of_filters = gather(reshape(dx[1], {-1}), at.of_filters);
           dy[0] = dy[0].defined() ? dy[0] + of_filters : of_filters;
         }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({3, 4, 5, 2}), uniform({3, 2, 2}, -0.04, 0.04, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
               {.inputs = {distinct({4, 3, 37}), uniform({2, 2, 37}, -0.04, 0.04, 1)},
                .attrs = window({4, 3}, 2, 1, {1, 0, 0, 1})},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1), uniform({3, 3, 2}, -1, 1, 1)},
                .attrs = window(4, 3)},
               {.inputs = {distinct({1, 5, 4, 3}), uniform({2, 3, 3}, -1, 1, 1)},
                .attrs = window({5, 4}, {2, 3}),
                .expected = {tensor(
                    std::vector<double>{
                        2.37427190999916,   1.7431556174964271, 1.0628157299974783, 2.6660679774997904,
                        2.0349516849970577, 2.1546117974981085, 3.5906797749978985, 2.618543819998319,
                        3.179223594996217,  2.7906797749978987, 2.9103398874989495, 2.3792235949962164,
                        2.4660679774997902, 3.126747752497688,  2.054611797498109,  2.9070876399966368,
                        2.2267477524976877, 2.3464078649987394, 2.690679774997898,  2.810339887498949,
                        2.179223594996216,  1.7906797749978984, 2.3431556174964268, 1.6628157299974777},
                    {1, 4, 2, 3})},
                .oracle = "(np.lib.stride_tricks.sliding_window_view(x, (2, 3), axis=(1, 2)) + "
                          "filters.transpose(2, 0, 1)).max((-2, -1))"}};
         }},

    {.name = "dilation2d_positions",
     .doc = "The numbers of the elements of x and of filters whose sum is the first of the largest in each "
            "window.",
     .args = {"x", "filters"},
     .infer =
         [](const Call& c) {
           const Shape y = infer_by_channel(c, inputs_of(c), outputs_of(c)).shape;
           return std::vector<Spec>{{DType::i64, y}, {DType::i64, y}};
         },
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::dilation_positions(by_channel(c, c.x[0]), c.x[0], c.x[1], y[0], y[1]);
         },
     .rule = none(),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {distinct({3, 4, 5, 2}), uniform({3, 2, 2}, -0.04, 0.04, 1)},
                                       .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
                                      {.inputs = {tensor(std::vector<double>{1, 4, 2, 3, 3, 5}, {1, 3, 2}),
                                                  tensor(std::vector<double>{0, 0, 2, 1}, {1, 2, 2})},
                                       .attrs = window({1, 3}, {1, 2}),
                                       .expected = {tensor(std::vector<std::int64_t>{2, 1, 4, 5}, {1, 2, 2}),
                                                    tensor(std::vector<std::int64_t>{2, 1, 2, 3}, {1, 2, 2})},
                                       .oracle = "by hand"}};
         }},
};

Tensor depthwise(const WindowAttrs& a, const Tensor& x, const Tensor& filters) {
  return find(table, "depthwise_conv2d").with(a, x, filters);
}
Tensor depthwise_input_gradient(const WindowAttrs& a, const Tensor& dy, const Tensor& filters) {
  return find(table, "depthwise_conv2d_input_gradient").with(a, dy, filters);
}
Tensor depthwise_filter_gradient(const WindowAttrs& a, const Tensor& x, const Tensor& dy) {
  return find(table, "depthwise_conv2d_filter_gradient").with(a, x, dy);
}
Positions dilation_positions(const Call& c) {
  const Tensor inputs[] = {c.x[0], c.x[1]};
  std::vector<Tensor> y = find(table, "dilation2d_positions").run(inputs, c.raw_attrs);
  return {y[0], y[1]};
}

// What both depthwise_conv2d and dilation2d ask of their arguments.
WindowAttrs checked(const Op& op, const Tensor& x, const Tensor& filters, const Conv2dOptions& o,
                    int filter_rank) {
  const Tensor* inputs[] = {&x, &filters};
  const Call c{.op = op, .x = {inputs, 2}};
  const DepthHeightWidth strides = in_volume(o.strides), dilation = in_volume(o.dilation);
  const Padding3d padding = in_volume(o.padding);
  check_numbers(op, "strides are", strides, 2);
  check_numbers(op, "dilation is", dilation, 2);
  check_padding(op, padding, kMostCells);
  require_floats(c);
  require_rank(c, 0);
  const Shape& f = filters.shape();
  if (f.ndim() != filter_rank || f[2] != channels_of(x) || std::min(f[0], f[1]) < 1)
    throw_shape_error(c, fmt::format("filters are not [rows, columns, {}{}]", channels_of(x),
                                     filter_rank == 4 ? ", multiplier" : ""));
  if (std::max(f[0], f[1]) > kMostCells || static_cast<double>(f[0]) * static_cast<double>(f[1]) > kMostCells)
    throw_shape_error(c, "filters of 2^31 and more are too large");
  return checked_window(c, "the filters are", 2, {1, f[0], f[1]}, strides, dilation, padding);
}

}   // namespace

// With several filters for each channel, as many copies of it as there are.
Tensor depthwise_conv2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& o) {
  if (o.layout == Layout::nchw)
    throw ArgumentError("depthwise_conv2d: takes the layout nhwc; transpose the images");
  const Op& op = find(table, "depthwise_conv2d");
  const WindowAttrs a = checked(op, x, filters, o, 4);
  const std::int64_t multiplier = filters.shape()[3], channels = channels_of(x);
  const Tensor each = reshape(filters, behind({}, a.sizes(), channels * multiplier));
  if (multiplier == 1) return op.with(a, x, each);
  Shape copies = x.shape(), flat = x.shape();
  copies.push_back(multiplier);
  flat.set(flat.ndim() - 1, channels * multiplier);
  return op.with(a, reshape(broadcast_to(expand_dims(x, -1), copies), flat), each);
}

Tensor dilation2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& o) {
  const Op& op = find(table, "dilation2d");
  const WindowAttrs a = checked(op, x, filters, o, 3);
  const auto reads = [](const kernels::WindowAxis& axis) {
    for (std::int64_t i = 0; i < axis.outputs; ++i)
      if (axis.cell_at(i, 0) >= axis.cell_at(i, axis.extent)) return false;
    return true;
  };
  if (!reads(a.window.plane.rows) || !reads(a.window.plane.columns))
    throw_error<ShapeError>("dilation2d: a window reads nothing of the image: x is {}, filters is {}",
                            x.spec(), filters.spec());
  return op.with(a, x, filters);
}

std::span<const Op> depthwise_ops() { return table; }

}   // namespace tapedeck
