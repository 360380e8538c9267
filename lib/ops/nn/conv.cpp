// Convolution. In: rows, images or volumes [..., extents, channels], and filters. Out: the same with other
// extents. A convolution is linear in what it reads and in the filters. With the gradients in these two it
// makes a ring of three bilinear ops: the adjoints of each are the other two.
#include "kernels/nn/conv.h"

#include <algorithm>
#include <numeric>

#include "core/format.h"
#include "ops/axes.h"
#include "ops/nn/window.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

// Filters [sizes, in, out], with the channels in of one group.
struct Filters {
  std::int64_t in, out;
  explicit Filters(const Tensor& f) : in(f.shape()[f.ndim() - 2]), out(channels_of(f)) {}
};
Shape front_of(const Call& c, int i) { return tapedeck::front_of(c.x[i], c.attrs<WindowAttrs>().axes + 1); }
std::int64_t in_all(const Call& c, std::int64_t channels) {
  return Shape{channels, c.attrs<WindowAttrs>().groups}.size();
}
std::int64_t in_a_group(const Call& c, std::int64_t channels) {
  const std::int64_t groups = c.attrs<WindowAttrs>().groups;
  if (channels % groups) throw_shape_error(c, fmt::format("channels do not fall into {} groups", groups));
  return channels / groups;
}
Filters filters_of(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  const Shape& f = c.x[1].shape();
  require_floats(c);
  if (f.ndim() != a.axes + 2 || Shape(f.dims().first(static_cast<std::size_t>(a.axes))) != a.sizes())
    throw_shape_error(c, "filters do not fit the window");
  (void)in_a_group(c, f[a.axes + 1]);
  return Filters(c.x[1]);
}

Spec infer_conv(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  const Filters f = filters_of(c);
  require_images(c, 0, a.inputs(), in_all(c, f.in));
  return {c.x[0].dtype(), behind(front_of(c, 0), a.outputs(), f.out)};
}

Spec infer_input_gradient(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  const Filters f = filters_of(c);
  require_images(c, 0, a.outputs(), f.out);
  return {c.x[0].dtype(), behind(front_of(c, 0), a.inputs(), in_all(c, f.in))};
}

Spec infer_filter_gradient(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  require_floats(c);
  require_rank(c, 0, a.axes);
  require_rank(c, 1, a.axes);
  const std::int64_t in = channels_of(c.x[0]), out = channels_of(c.x[1]);
  require_images(c, 0, a.inputs(), in);
  require_images(c, 1, a.outputs(), out);
  if (front_of(c, 0) != front_of(c, 1)) throw_shape_error(c, "numbers of images differ");
  (void)in_a_group(c, out);
  return {c.x[0].dtype(), behind(a.sizes(), {in_a_group(c, in)}, out)};
}

kernels::Conv geometry(const Call& c, std::int64_t in, std::int64_t out) {
  const auto& a = c.attrs<WindowAttrs>();
  return {a.window, front_of(c, 0).size(), in, out, a.groups};
}
void run_conv(const Call& c, std::span<Tensor> y) {
  kernels::conv(geometry(c, channels_of(c.x[0]), channels_of(y[0])), c.x[0], c.x[1], y[0]);
}
void run_input_gradient(const Call& c, std::span<Tensor> y) {
  kernels::conv_input_gradient(geometry(c, channels_of(y[0]), channels_of(c.x[0])), c.x[0], c.x[1], y[0]);
}
void run_filter_gradient(const Call& c, std::span<Tensor> y) {
  kernels::conv_filter_gradient(geometry(c, channels_of(c.x[0]), channels_of(c.x[1])), c.x[0], c.x[1], y[0]);
}

// The three products, where one operand may have extra axes in front: as many results then come out, stacked
// likewise. Only the ops' images may be many, so a stack of anything else goes through as channels.
Tensor convolve(const WindowAttrs& a, const Tensor& x, const Tensor& filters);
Tensor input_gradient(const WindowAttrs& a, const Tensor& dy, const Tensor& filters);
Tensor filter_gradient(const WindowAttrs& a, const Tensor& x, const Tensor& dy);

// The op itself does not know stacked filters, so its tangents come from the product that does.
template <auto product, class A, class B> constexpr Rule ring_of(A a, B b) {
  Rule rule = bilinear(a, b);
  rule.jvp = [](const Call& c, Refs dx, std::span<Tensor> dy) {
    const auto& w = c.attrs<WindowAttrs>();
    if (dx[0].defined()) dy[0] = product(w, dx[0], c.x[1]);
    if (!dx[1].defined()) return;
    const Tensor right = product(w, c.x[0], dx[1]);
    dy[0] = dy[0].defined() ? dy[0] + right : right;
  };
  return rule;
}
constexpr Rule conv_rule() {
  return ring_of<convolve>(
      [](const Call& c, const Tensor& dy) { return input_gradient(c.attrs<WindowAttrs>(), dy, c.x[1]); },
      [](const Call& c, const Tensor& dy) { return filter_gradient(c.attrs<WindowAttrs>(), c.x[0], dy); });
}
constexpr Rule input_gradient_rule() {
  return ring_of<input_gradient>(
      [](const Call& c, const Tensor& v) { return convolve(c.attrs<WindowAttrs>(), v, c.x[1]); },
      [](const Call& c, const Tensor& v) { return filter_gradient(c.attrs<WindowAttrs>(), v, c.x[0]); });
}
constexpr Rule filter_gradient_rule() {
  return ring_of<filter_gradient>(
      [](const Call& c, const Tensor& v) { return input_gradient(c.attrs<WindowAttrs>(), c.x[1], v); },
      [](const Call& c, const Tensor& v) { return convolve(c.attrs<WindowAttrs>(), c.x[0], v); });
}

Tensor f64(const Shape& shape, const std::vector<double>& v) { return tensor(v, shape); }

constexpr Op table[] = {
    {.name = "conv2d",
     .doc = "Sums over windows: y[i, j, o] = Σ x[i·s + r·d - p, j·s + c·d - p, k] filters[r, c, k, o] over "
            "r, c and k, with strides s, dilation d and padding p.",
     .tensorflow = "Conv2D",
     .args = {"x", "filters"},
     .infer = infer_conv,
     .forward = run_conv,
     .rule = conv_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 4, 5, 2}, -1, 1), uniform({3, 2, 2, 3}, -1, 1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
               {.inputs = {uniform({4, 3, 2}, -1, 1), uniform({3, 3, 2, 1}, -1, 1, 1)},
                .attrs = window({4, 3}, 3, 1, Padding::same)},
               {.inputs = {uniform({2, 2, 4, 3, 1}, -1, 1), uniform({2, 2, 1, 37}, -1, 1, 1)},
                .attrs = window({4, 3}, 2, 2)},
               {.inputs = {uniform({2, 5, 4, 3}, -1, 1), uniform({1, 1, 3, 2}, -1, 1, 1)},
                .attrs = window({5, 4}, 1, {2, 3})},
               {.inputs = {uniform({1, 2, 2, 1}, -1, 1), uniform({1, 1, 1, 2}, -1, 1, 1)},
                .attrs = window(2, 1, 1, {3, 1, 0, 2})},
               {.inputs = {uniform({3, 4, 5, 6}, -1, 1), uniform({3, 2, 2, 9}, -1, 1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2}, 3)},
               {.inputs = {uniform({2, 2, 3, 4}, -1, 1), uniform({1, 1, 2, 6}, -1, 1, 1)},
                .attrs = window({2, 3}, 1, 1, Padding::valid, 1, 2)},
               {.inputs = {uniform({1, 4, 3, 6}, -1, 1), uniform({2, 2, 3, 4}, -1, 1, 1)},
                .attrs = window({4, 3}, 2, {2, 1}, 1, 1, 2),
                .expected = {f64(
                    {1, 3, 4, 4},
                    {-0.6611451357563869, 0.7289514942495015,  0.311069183109252,   0.2584467131235526,
                     0.8725349811120813,  -0.7605740038597381, 1.1915321487735393,  -0.6319667211785129,
                     0.8039382862944936,  -0.7115032786453587, -0.2550319509637191, -2.098630815878339,
                     -0.6741868108448456, 0.6106648791896468,  -0.9344949670023458, -0.2007129369459887,
                     -1.389775458641122,  1.1722504065258572,  0.37609926422179,    -0.03245801560323458,
                     0.6517273807596843,  1.0017970911121579,  0.5722273663223274,  1.6560791067311504,
                     1.9007125353257688,  -2.8188345992548816, 0.5739215260099744,  0.2274766464877762,
                     -0.4023546664338088, 0.3361723287811301,  0.09906161633153805, -1.622124863392558,
                     0.545053619684572,   -0.7551531001539166, 0.1845387436885717,  -0.7023657311663078,
                     -1.4502341002360628, 1.0639142601037843,  0.44602377769370893, -0.18070089697610434,
                     0.759290444135418,   0.5582904945097545,  -2.0533887478700352, 1.4375539974921185,
                     0.10309024196310826, -1.4401288328413113, 0.5366573809111785,  -0.9214167488844085})},
                .oracle = "torch.nn.functional.conv2d(torch.tensor(x).permute(0, 3, 1, 2), "
                          "torch.tensor(filters).permute(3, 2, 0, 1), stride=(2, 1), padding=1, "
                          "groups=2).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1), uniform({3, 3, 2, 2}, -1, 1, 1)},
                .attrs = window(4, 3)},
               {.inputs = {uniform({2, 4, 4, 0}, -1, 1), uniform({3, 3, 0, 2}, -1, 1, 1)},
                .attrs = window(4, 3)},
               {.inputs = {uniform({2, 4, 3, 2}, -1, 1), uniform({3, 2, 2, 2}, -1, 1, 1)},
                .attrs = window({4, 3}, {3, 2}),
                .expected = {f64(
                    {2, 2, 2, 2},
                    {-1.327809230456205, 2.2186885346350693, -0.7774808791837365, -0.2541887290701702,
                     0.32317582336120027, -1.1999432564806485, -1.2379520053680129, 2.2157232998124305,
                     0.1222489597944996, -1.1933127898479796, 0.05616944606822906, 1.2452661264484628,
                     0.6060497436093827, -1.7791288509662193, 0.21210618488269212, -1.196278024670618})},
                .oracle = "torch.nn.functional.conv2d(torch.tensor(x).permute(0, 3, 1, 2), "
                          "torch.tensor(filters).permute(3, 2, 0, 1)).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 5, 6, 1}, -1, 1), uniform({3, 3, 1, 2}, -1, 1, 1)},
                .attrs = window({5, 6}, 3, 2, Padding::same),
                .expected = {f64(
                    {1, 3, 3, 2},
                    {1.2544348854008367, -0.6015864595743459, -0.745789141464821, 0.5390625485696715,
                     -0.9591952286114437, -0.12016825858368141, -1.5254978047158039, -1.2251180146056004,
                     -0.09908272755992877, 1.3158588625670988, 1.5663838334331144, -0.4149824464760302,
                     -0.5616960671631598, 1.0761578829672283, 0.36342484090514643, 0.7814720510473111,
                     0.19446276954182215, -1.203311375366061})},
                .oracle = "torch.nn.functional.conv2d(torch.nn.functional.pad(torch.tensor(x), (0, 0, 0, 1, "
                          "1, 1)).permute(0, 3, 1, 2), torch.tensor(filters).permute(3, 2, 0, 1), "
                          "stride=2).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 5, 5, 2}, -1, 1), uniform({2, 3, 2, 1}, -1, 1, 1)},
                .attrs = window(5, {2, 3}, 1, {1, 2, 0, 1}, 2),
                .expected = {f64(
                    {1, 6, 2, 1},
                    {-0.16524156963981504, 0.12013557350447594, -0.6562943994596534, -0.30253448811849,
                     -0.2449920537273754, 0.6435498372958078, 1.438446247004482, -0.07599729728484987,
                     0.05913706523526198, -0.67810489664947, -0.10048987456789328, 0.11421758844852914})},
                .oracle = "torch.nn.functional.conv2d(torch.nn.functional.pad(torch.tensor(x), (0, 0, 0, 1, "
                          "1, 2)).permute(0, 3, 1, 2), torch.tensor(filters).permute(3, 2, 0, 1), "
                          "dilation=2).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 3, 2, 4}, -1, 1), uniform({1, 1, 4, 2}, -1, 1, 1)},
                .attrs = window({3, 2}, 1),
                .expected = {f64({1, 3, 2, 2}, {-0.6628190949541533, 0.9501898950551003, 0.3830402391069185,
                                                0.054882939132154536, -0.6825566068336913, 1.0481198032075272,
                                                0.36330272722738033, 0.15281284728458153, -0.7022941187132296,
                                                1.1460497113599541, 0.3435652153478421, 0.2507427554370086})},
                .oracle = "torch.nn.functional.conv2d(torch.tensor(x).permute(0, 3, 1, 2), "
                          "torch.tensor(filters).permute(3, 2, 0, 1)).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 3, 3, 37}, -1, 1), uniform({2, 2, 37, 1}, -1, 1, 1)},
                .attrs = window(3, 2),
                .expected = {f64({1, 2, 2, 1}, {-18.173729730268448, -23.29679741753332, -1.9154485371727668,
                                                21.87293995556405})},
                .oracle = "torch.nn.functional.conv2d(torch.tensor(x).permute(0, 3, 1, 2), "
                          "torch.tensor(filters).permute(3, 2, 0, 1)).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 2, 2, 1}, -1, 1), uniform({2, 2, 1, 37}, -1, 1, 1)},
                .attrs = window(2, 2),
                .expected = {f64(
                    {1, 1, 1, 37},
                    {-0.7816066493144,     1.1920821156927512,   -0.6113167592967339, 1.0016922307125196,
                     -0.44102686927906787, -0.7165616992681328,  1.2571270657390186,  -0.5462718092504668,
                     1.0667371807587867,   -0.37598191923280067, -0.6515167492218656, 0.3779001057861266,
                     -0.48122685920419955, -0.7567616891932646,  1.216927075813887,   -0.5864717991755986,
                     1.026537190833655,    -0.41618190915793235, -0.6917167391469974, 0.3377001158609949,
                     -0.5214268491293313,  1.0915821408799222,   1.176727085888755,   -0.6266717891007302,
                     0.40274506590726206,  -0.4563818990830641,  -0.7319167290721291, 1.2417720359350224,
                     -0.5616268390544631,  1.0513821509547905,   -0.3913369490367969, -0.6668717790258619,
                     0.3625450759821303,   -0.49658188900819583, -0.7721167189972609, 1.2015720460098906,
                     -0.6018268289795948})},
                .oracle = "torch.nn.functional.conv2d(torch.tensor(x).permute(0, 3, 1, 2), "
                          "torch.tensor(filters).permute(3, 2, 0, 1)).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.name = "conv1d",
     .doc = "The same of rows: y[i, o] = Σ x[i·s + c·d - p, k] filters[c, k, o] over c and k.",
     .args = {"x", "filters"},
     .infer = infer_conv,
     .forward = run_conv,
     .rule = conv_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 9, 2}, -1, 1), uniform({3, 2, 3}, -1, 1, 1)},
                .attrs = row_window(9, 3, 2, Padding::same, 2)},
               {.inputs = {uniform({4, 2}, -1, 1), uniform({2, 2, 37}, -1, 1, 1)}, .attrs = row_window(4, 2)},
               {.inputs = {uniform({2, 2, 5, 3}, -1, 1), uniform({1, 3, 2}, -1, 1, 1)},
                .attrs = row_window(5, 1)},
               {.inputs = {uniform({2, 5, 4}, -1, 1), uniform({2, 2, 6}, -1, 1, 1)},
                .attrs = row_window(5, 2, 2, Padding::same, 1, 2)},
               {.inputs = {uniform({0, 4, 2}, -1, 1), uniform({3, 2, 2}, -1, 1, 1)},
                .attrs = row_window(4, 3)},
               {.inputs = {uniform({2, 7, 3}, -1, 1), uniform({3, 3, 2}, -1, 1, 1)},
                .attrs = row_window(7, 3, 2, {0, 0, 1, 1}),
                .expected = {tensor(
                    std::vector<double>{
                        1.0860857667707446, -0.2714883882120094, -0.9184250712772288, 0.26118167878586473,
                        1.3149954401836703, -1.2174404997036037, 0.10459930215896535, 1.1263386422649575,
                        1.1458194421996277, -0.3571996426796491, -0.8980544061745908, 0.23367483906137496,
                        -0.3825945697199971, -0.4907720594348198, 0.7168160268686148, 0.23553628209531996},
                    {2, 4, 2})},
                .oracle =
                    "torch.nn.functional.conv1d(torch.tensor(x).permute(0, 2, 1), "
                    "torch.tensor(filters).permute(2, 1, 0), stride=2, padding=1).permute(0, 2, 1).numpy()"}};
         }},

    {.name = "conv3d",
     .doc = "The same of volumes.",
     .tensorflow = "Conv3D",
     .args = {"x", "filters"},
     .infer = infer_conv,
     .forward = run_conv,
     .rule = conv_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 4, 5, 2}, -1, 1), uniform({2, 3, 2, 2, 3}, -1, 1, 1)},
                .attrs = volume_window({3, 4, 5}, {2, 3, 2}, {1, 2, 1}, Padding::same, {2, 1, 2})},
               {.inputs = {uniform({3, 2, 3, 4}, -1, 1), uniform({2, 2, 1, 2, 6}, -1, 1, 1)},
                .attrs = volume_window({3, 2, 3}, {2, 2, 1}, {2, 1, 1}, {1, 0, {0, 1, 1, 0}}, 1, 2)},
               {.inputs = {uniform({2, 1, 2, 3, 2, 37}, -1, 1), uniform({1, 1, 1, 37, 2}, -1, 1, 1)},
                .attrs = volume_window({2, 3, 2}, 1)},
               {.inputs = {uniform({0, 2, 3, 2, 1}, -1, 1), uniform({2, 2, 2, 1, 2}, -1, 1, 1)},
                .attrs = volume_window({2, 3, 2}, 2)},
               {.inputs = {uniform({1, 3, 4, 3, 2}, -1, 1), uniform({2, 3, 2, 2, 2}, -1, 1, 1)},
                .attrs = volume_window({3, 4, 3}, {2, 3, 2}, {1, 2, 1}, 1),
                .expected = {f64(
                    {1, 4, 2, 4, 2},
                    {0.19335897775314176,  0.002969092772908848, 0.6775914727597387,   -0.06386807219862126,
                     0.6680688573633932,   -1.070285067579825,   0.05374646226425999,  1.2534532072899203,
                     0.03771310956862877,  -0.05510935034220919, -0.7052843227145329,  1.8567415424524465,
                     0.6782058990988369,   -0.7272457607110507,  0.5200639610513913,   -1.9071270388644797,
                     -0.2708840621178339,  -0.43642898697693916, -2.012989700257888,   0.31844629000373076,
                     -0.6641439663967464,  -1.8543607811052643,  0.6906245212091248,   0.4399346513412068,
                     0.7549358784502987,   0.40374603376952356,  1.2299707873755759,   -1.9244448620229582,
                     -1.780482549537746,   4.074418661109145,    0.4991385603407476,   -1.550205219358081,
                     0.5799375663035383,   -0.4074668833641964,  -1.2343982241234537,  1.4471074764906384,
                     0.8361003147078404,   -1.531910834648625,   -0.3255842861026158,  -0.9322089658098515,
                     -1.4709301425248789,  0.18115870308119136,  -0.3245928556179075,  -1.4786623644730168,
                     1.5568965024565808,   -0.11572019135352384, -0.7178096267015189,  3.7020499988558098,
                     1.2964184636121694,   -0.3319455562010756,  -0.5812672064349189,  1.1914216089465828,
                     -0.49474155720265495, -0.3025392568072726,  -0.06339981797743244, -0.2165222627759559,
                     0.026899218547409613, -0.23914568112450696, 0.10193265386681316,  -0.08957736544170135,
                     0.10148460013549818,  -0.6410950791511442,  -0.10139846661985681, -1.246670326244678})},
                .oracle = "torch.nn.functional.conv3d(torch.tensor(x).permute(0, 4, 1, 2, 3), "
                          "torch.tensor(filters).permute(4, 3, 0, 1, 2), stride=(1, 2, 1), "
                          "padding=1).permute(0, 2, 3, 4, 1).numpy()"},
               {.inputs = {uniform({1, 3, 3, 4, 6}, -1, 1), uniform({2, 2, 2, 2, 3}, -1, 1, 1)},
                .attrs = volume_window({3, 3, 4}, 2, 1, Padding::valid, {1, 1, 2}, 3),
                .expected = {f64(
                    {1, 2, 2, 2, 3},
                    {-0.9778441655071799, 1.4123072790429376,  1.0341014336931384,   0.7461075806140266,
                     1.4827567902554157,  0.40832961000529533, 2.416410008970079,    3.3399300438995745,
                     0.35451300889384124, 1.4648269251022155,  -1.4682608948921516,  -0.30407454479147983,
                     0.3522958879388896,  -0.5881233064140564, -0.29689979066691874, -1.2550152859298143,
                     -0.5176737952015786, -1.5914086943648516, -0.2534499375838513,  -1.9917634615473305,
                     -0.9764882154662162, -0.536295941441626,  -0.13742856035923495, 1.0274500708282839})},
                .oracle = "torch.nn.functional.conv3d(torch.tensor(x).permute(0, 4, 1, 2, 3), "
                          "torch.tensor(filters).permute(4, 3, 0, 1, 2), dilation=(1, 1, 2), "
                          "groups=3).permute(0, 2, 3, 4, 1).numpy()"}};
         }},

    {.name = "conv2d_transpose",
     .doc = "The adjoint of conv2d as a convolution of its own: each pixel of x adds the filters, times its "
            "value, to the result.",
     .args = {"x", "filters"},
     .infer = infer_input_gradient,
     .forward = run_input_gradient,
     .rule = input_gradient_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 2, 5, 3}, -1, 1), uniform({3, 2, 2, 3}, -1, 1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
               {.inputs = {uniform({3, 2, 2}, -1, 1), uniform({1, 1, 37, 2}, -1, 1, 1)},
                .attrs = window({3, 2}, 1)},
               {.inputs = {uniform({2, 3, 2, 6}, -1, 1), uniform({2, 2, 2, 6}, -1, 1, 1)},
                .attrs = window({6, 3}, 2, {2, 1}, Padding::valid, 1, 3)},
               {.inputs = {uniform({0, 2, 2, 2}, -1, 1), uniform({3, 3, 2, 2}, -1, 1, 1)},
                .attrs = window(4, 3)},
               {.inputs = {uniform({1, 3, 2, 2}, -1, 1), uniform({3, 3, 1, 2}, -1, 1, 1)},
                .attrs = window({5, 3}, 3, 2, 1),
                .expected = {tensor(
                    std::vector<double>{0.6639493295273814, 0.26135282008243915, 0.9875001205609472,
                                        1.155780011082354, 0.5391481192179588, 0.8586096831503262,
                                        -0.6103086384012835, -0.17570693577320906, -0.28675784736771787,
                                        -0.8091437897737146, -1.5021556624958603, -1.1063141177057425,
                                        0.5875693486696312, 0.33150521837030167, 0.9111201397031968},
                    {1, 5, 3, 1})},
                .oracle = "torch.nn.functional.conv_transpose2d(torch.tensor(x).permute(0, 3, 1, 2), "
                          "torch.tensor(filters).permute(3, 2, 0, 1), stride=2, padding=1).permute(0, 2, 3, "
                          "1).numpy()"}};
         }},

    {.name = "conv3d_transpose",
     .doc = "The same of volumes.",
     .args = {"x", "filters"},
     .infer = infer_input_gradient,
     .forward = run_input_gradient,
     .rule = input_gradient_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 2, 5, 3}, -1, 1), uniform({2, 3, 2, 2, 3}, -1, 1, 1)},
                .attrs = volume_window({3, 4, 5}, {2, 3, 2}, {1, 2, 1}, Padding::same, {2, 1, 2})},
               {.inputs = {uniform({2, 2, 4, 6}, -1, 1), uniform({2, 2, 1, 2, 6}, -1, 1, 1)},
                .attrs = volume_window({3, 2, 3}, {2, 2, 1}, {2, 1, 1}, {1, 0, {0, 1, 1, 0}}, 1, 2)},
               {.inputs = {uniform({0, 1, 2, 1, 2}, -1, 1), uniform({2, 2, 2, 1, 2}, -1, 1, 1)},
                .attrs = volume_window({2, 3, 2}, 2)},
               {.inputs = {uniform({1, 2, 2, 3, 4}, -1, 1), uniform({2, 3, 2, 1, 4}, -1, 1, 1)},
                .attrs = volume_window({4, 3, 4}, {2, 3, 2}, {2, 2, 1}, {0, 0, {1, 1, 0, 0}}, 1, 2),
                .expected = {f64(
                    {1, 4, 3, 4, 2},
                    {0.6639493295273814,   -0.5929863944251732,  -1.1661660488621253,  0.7983096982626285,
                     0.763665210310408,    -1.1541916225328728,  -0.6198149112580248,  0.6604302698352663,
                     1.3300899000925313,   -0.39737704777051563, -1.115820390562487,   -0.3354194462246509,
                     0.8552983077842611,   -0.24042208781565388, -0.6089014913933158,  0.12809000084121425,
                     -0.6866886192590338,  0.2328767868363593,   0.6233277286554746,   -1.0591942641238759,
                     -1.4468410121719921,  0.9883044150806226,   0.04818086004641073,  -0.4950728288123504,
                     0.7615167545967807,   -0.8111537892699677,  -0.933763758541625,   -0.18434978624651988,
                     1.0706023809943117,   -0.17377240668029947, -0.4477126058252221,  -0.28970673965074906,
                     0.2469304407705497,   1.1666343030833188,   0.07103602116115681,  -0.6344146741611452,
                     0.07976830023303044,  1.2752839049696139,   -0.1528945599826052,  0.005249762409243963,
                     -0.47731887364452935, 0.12651171253666996,  1.0793346600661853,   -0.15261764754785878,
                     -0.9162992003978778,  -0.14204026798163832, 0.33208548602431864,  0.33222394224169477,
                     -0.11596701804965279, -0.4691240769025286,  -0.24941107883239033, 1.0833017734896195,
                     -0.20812363965817546, -0.869199547305882,   0.5260800013449611,   0.8215600275396127,
                     -1.0888697600518682,  -0.14965241272522645, -0.4693014604937684,  0.23456470422933118,
                     -0.38672658214533856, 0.3295620626383279,   0.15502428881223557,  0.45034951624990693,
                     1.0055309881635115,   0.3567391043590039,   -0.5385577513189941,  -0.774202188896885,
                     1.3912735078535392,   1.2732964903076134,   -0.33378827235102376, -0.33394307110800403,
                     -0.46353203190013254, -0.4636868306571128,  -0.23853658634155864, -0.12088550884919769,
                     -0.12271426680394032, -0.1103081292829772,  0.25304986785788475,  -0.5737094208662817,
                     0.26896882277630274,  1.1928311402989396,   -1.0629748044496403,  -1.17622319937659,
                     1.0572136546239146,   0.7334753797541692,   -0.2792336576168118,  -0.5627556000218213,
                     0.769768294858137,    0.4739786711495249,   -0.9728156977480414,  -0.08915337015053648,
                     1.0315504417878953,   -0.07857599058431608, -0.49501608529299485, 0.0482212610261621})},
                .oracle = "torch.nn.functional.conv_transpose3d(torch.tensor(x).permute(0, 4, 1, 2, 3), "
                          "torch.tensor(filters).permute(4, 3, 0, 1, 2), stride=(2, 2, 1), padding=(0, 1, "
                          "0), groups=2).permute(0, 2, 3, 4, 1).numpy()"}};
         }},

    {.name = "conv_input_gradient",
     .doc = "The adjoint of conv1d, conv2d or conv3d in its input: the images x of which it would be the "
            "gradient.",
     .tensorflow = "Conv2DBackpropInput Conv3DBackpropInputV2",
     .args = {"dy", "filters"},
     .infer = infer_input_gradient,
     .forward = run_input_gradient,
     .rule = input_gradient_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 2, 5, 3}, -1, 1), uniform({3, 2, 2, 3}, -1, 1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
               {.inputs = {uniform({2, 3, 2, 2}, -1, 1), uniform({1, 1, 3, 2}, -1, 1, 1)},
                .attrs = window({5, 4}, 1, {2, 3})},
               {.inputs = {uniform({3, 2, 2}, -1, 1), uniform({1, 1, 37, 2}, -1, 1, 1)},
                .attrs = window({3, 2}, 1)},
               {.inputs = {uniform({3, 2, 5, 9}, -1, 1), uniform({3, 2, 2, 9}, -1, 1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2}, 3)},
               {.inputs = {uniform({2, 2, 3, 6}, -1, 1), uniform({1, 1, 2, 6}, -1, 1, 1)},
                .attrs = window({2, 3}, 1, 1, Padding::valid, 1, 2)},
               {.inputs = {uniform({2, 4, 3}, -1, 1), uniform({2, 2, 3}, -1, 1, 1)},
                .attrs = row_window(5, 2)},
               {.inputs = {uniform({1, 2, 3, 2, 4}, -1, 1), uniform({2, 2, 1, 3, 4}, -1, 1, 1)},
                .attrs = volume_window({3, 3, 2}, {2, 2, 1}, {2, 1, 1}, {0, 1, {1, 0, 0, 0}}, 1, 2)},
               {.inputs = {uniform({0, 2, 2, 2}, -1, 1), uniform({3, 3, 2, 2}, -1, 1, 1)},
                .attrs = window(4, 3)},
               {.inputs = {uniform({1, 3, 2, 2}, -1, 1), uniform({3, 3, 1, 2}, -1, 1, 1)},
                .attrs = window({5, 4}, 3, 2, 1),
                .expected = {f64(
                    {1, 5, 4, 1},
                    {0.6639493295273814,  0.26135282008243915,  0.9875001205609472,   -0.5929863944251732,
                     1.155780011082354,   0.5391481192179588,   0.8586096831503262,   1.4221018231890235,
                     -0.6103086384012835, -0.17570693577320906, -0.28675784736771787, 0.19158934766214442,
                     -0.8091437897737146, -1.5021556624958603,  -1.1063141177057425,  -0.6480669176384433,
                     0.5875693486696312,  0.33150521837030167,  0.9111201397031968,   -0.5516989552509584})},
                .oracle =
                    "torch.nn.grad.conv2d_input((1, 1, 5, 4), torch.tensor(filters).permute(3, 2, 0, 1), "
                    "torch.tensor(dy).permute(0, 3, 1, 2), stride=2, padding=1).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 2, 3, 1}, -1, 1), uniform({2, 1, 2, 1}, -1, 1, 1)},
                .attrs = window({4, 3}, {2, 1}, 1, 0, {2, 1}),
                .expected = {f64(
                    {1, 4, 3, 2},
                    {0.12523292150113546,   0.7088250565023971,   -0.07739820199814927, -0.43807797699604634,
                     0.0478347195029862,    0.2707470795063508,   -0.15479640399629854, -0.8761559539920927,
                     -0.029563482495163072, -0.16733089748969557, 0.0956694390059724,   0.5414941590127016,
                     -0.23544685349676162,  0.3481452815045,      0.1455141580052158,   -0.21516561699268127,
                     -0.08993269549154581,  0.13297966451181875,  0.2910283160104316,   -0.43033123398536255,
                     0.05558146251366997,   -0.08218595248086252, -0.17986539098309162, 0.2659593290236375})},
                .oracle =
                    "torch.nn.grad.conv2d_input((1, 2, 4, 3), torch.tensor(filters).permute(3, 2, 0, 1), "
                    "torch.tensor(dy).permute(0, 3, 1, 2), dilation=(2, 1)).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 2, 1, 2}, -1, 1), uniform({1, 1, 3, 2}, -1, 1, 1)},
                .attrs = window({2, 1}, 1),
                .expected = {f64({1, 2, 1, 3},
                                 {-0.3128450554949109, -0.4506124704894429, -0.5883798854839749,
                                  -0.8283212344891066, -0.5202639294769084, -0.21220662446471028})},
                .oracle = "torch.nn.grad.conv2d_input((1, 3, 2, 1), torch.tensor(filters).permute(3, 2, 0, "
                          "1), torch.tensor(dy).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.name = "conv_filter_gradient",
     .doc = "The adjoint of conv1d, conv2d or conv3d in its filters.",
     .tensorflow = "Conv2DBackpropFilter Conv3DBackpropFilterV2",
     .args = {"x", "dy"},
     .infer = infer_filter_gradient,
     .forward = run_filter_gradient,
     .rule = filter_gradient_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 4, 5, 2}, -1, 1), uniform({3, 2, 5, 3}, -1, 1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
               {.inputs = {uniform({2, 5, 4, 3}, -1, 1), uniform({2, 3, 2, 2}, -1, 1, 1)},
                .attrs = window({5, 4}, 1, {2, 3})},
               {.inputs = {uniform({3, 2, 37}, -1, 1), uniform({3, 2, 2}, -1, 1, 1)},
                .attrs = window({3, 2}, 1)},
               {.inputs = {uniform({3, 4, 5, 6}, -1, 1), uniform({3, 2, 5, 9}, -1, 1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2}, 3)},
               {.inputs = {uniform({2, 2, 3, 4}, -1, 1), uniform({2, 2, 3, 6}, -1, 1, 1)},
                .attrs = window({2, 3}, 1, 1, Padding::valid, 1, 2)},
               {.inputs = {uniform({2, 5, 2}, -1, 1), uniform({2, 4, 3}, -1, 1, 1)},
                .attrs = row_window(5, 2)},
               {.inputs = {uniform({1, 3, 3, 2, 6}, -1, 1), uniform({1, 2, 3, 2, 4}, -1, 1, 1)},
                .attrs = volume_window({3, 3, 2}, {2, 2, 1}, {2, 1, 1}, {0, 1, {1, 0, 0, 0}}, 1, 2)},
               {.inputs = {uniform({2, 3, 4, 3, 2}, -1, 1), uniform({2, 2, 2, 3, 4}, -1, 1, 1)},
                .attrs = volume_window({3, 4, 3}, {2, 2, 3}, {1, 2, 1}, {0, 0, {0, 0, 1, 1}}, 1, 2),
                .expected = {f64(
                    {2, 2, 3, 1, 4},
                    {0.40133778602432746, -1.6414486131008261, -0.6329913174885557, 0.45267283833543126,
                     -1.5073904738501271, 2.2875568924524843,  0.6429619358624709,  0.6809216571310435,
                     0.27497077199969694, -1.0665560720922307, 0.2375360484716797,  -2.782044735675731,
                     1.1221021994323832,  -0.4299145246023398, 3.6263000911344125,  -2.4365863029532724,
                     0.9929499335169389,  -1.712016165044593,  -1.6862346964810944, 2.6846272899208117,
                     -2.8558873349522873, 1.4605397660487378,  1.53685437674806,    -0.6312769573110224,
                     2.7330325247040546,  0.1811888709410432,  0.6276731869553926,  -1.9365929468681473,
                     -1.6171917694091866, -1.3497623075635712, -1.3549841535824154, 0.014584628219490803,
                     -1.4685616507708268, 1.3495913305094773,  1.2000610314620146,  -1.4694500423329235,
                     -1.5430974418727557, 0.3958285794546632,  0.6640522355749975,  -1.0487644481602134,
                     2.5487800979528354,  0.3162960949343063,  1.0368855090954585,  0.26722060103111916,
                     -1.5963141377076773, -1.1202072113344201, -1.775862215276319,  2.8782121160166514})},
                .oracle = "torch.nn.grad.conv3d_weight(torch.tensor(x).permute(0, 4, 1, 2, 3), (4, 1, 2, 2, "
                          "3), torch.tensor(dy).permute(0, 4, 1, 2, 3), stride=(1, 2, 1), padding=(0, 0, 1), "
                          "groups=2).permute(2, 3, 4, 1, 0).numpy()"},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1), uniform({0, 2, 2, 2}, -1, 1, 1)},
                .attrs = window(4, 3)},
               {.inputs = {uniform({2, 5, 4, 1}, -1, 1), uniform({2, 3, 2, 2}, -1, 1, 1)},
                .attrs = window({5, 4}, 3, 2, 1),
                .expected = {f64(
                    {3, 3, 1, 2},
                    {0.28571704139304643, 0.022604691464551574, 0.49455316262795274, 0.9126003727701224,
                     -0.694853115266223, -0.7752530951164824, -0.4024806380618483, 0.3963463420407851,
                     -0.8351377113520794, -0.0966107161371436, 1.092502306782684, -1.500233617992285,
                     0.22360464109021022, -0.03950770883828464, 0.5932407220256434, 0.6506081571699149,
                     -0.7138329759004973, 0.3729513142517654})},
                .oracle =
                    "torch.nn.grad.conv2d_weight(torch.tensor(x).permute(0, 3, 1, 2), (2, 1, 3, 3), "
                    "torch.tensor(dy).permute(0, 3, 1, 2), stride=2, padding=1).permute(2, 3, 1, 0).numpy()"},
               {.inputs = {uniform({1, 4, 3, 2}, -1, 1), uniform({1, 2, 3, 1}, -1, 1, 1)},
                .attrs = window({4, 3}, {2, 1}, 1, 0, {2, 1}),
                .expected = {f64({2, 1, 2, 1}, {-0.5355069458480771, -0.7875082918307466, -0.6090399476106867,
                                                -0.5659929785904135})},
                .oracle =
                    "torch.nn.grad.conv2d_weight(torch.tensor(x).permute(0, 3, 1, 2), (1, 2, 2, 1), "
                    "torch.tensor(dy).permute(0, 3, 1, 2), dilation=(2, 1)).permute(2, 3, 1, 0).numpy()"},
               {.inputs = {uniform({2, 2, 3, 2}, -1, 1), uniform({2, 2, 3, 2}, -1, 1, 1)},
                .attrs = window({2, 3}, 1),
                .expected = {f64({1, 1, 2, 2}, {-0.6713725168289142, 0.3828892983002154, -0.5273246336954122,
                                                -1.2764616935557669})},
                .oracle = "torch.nn.grad.conv2d_weight(torch.tensor(x).permute(0, 3, 1, 2), (2, 2, 1, 1), "
                          "torch.tensor(dy).permute(0, 3, 1, 2)).permute(2, 3, 1, 0).numpy()"}};
         }},
};

// Blocks [a, b, groups, c] of elements as [b, groups, a, c]: what is stacked in front goes among the channels
// of each group; and back.
Tensor to_channels(const Tensor& x, std::int64_t a, std::int64_t b, std::int64_t groups, std::int64_t c,
                   const Shape& result) {
  return reshape(transpose(reshape(x, {a, b, groups, c}), {1, 2, 0, 3}), result);
}
Tensor to_front(const Tensor& x, std::int64_t a, std::int64_t b, std::int64_t groups, std::int64_t c,
                const Shape& result) {
  return reshape(transpose(reshape(x, {b, groups, a, c}), {2, 0, 1, 3}), result);
}

// The axes in front of the last `ndim`, and how many tensors they stack.
struct Stack {
  Shape front;
  std::int64_t count;
  Stack(const Tensor& x, int ndim) : front(front_of(x, ndim)), count(front.size()) {}
  Shape operator+(const Shape& s) const {
    Shape all = front;
    for (const std::int64_t d : s)
      all.push_back(d);
    return all;
  }
};

const Op& op_over(int axes) {
  return axes == 1 ? find(table, "conv1d") : axes == 2 ? find(table, "conv2d") : find(table, "conv3d");
}

Tensor convolve(const WindowAttrs& a, const Tensor& x, const Tensor& filters) {
  const Op& op = op_over(a.axes);
  if (filters.ndim() == a.axes + 2) return op.with(a, x, filters);
  const Stack stack(filters, a.axes + 2);
  const auto [in, out] = Filters(filters);
  const Shape images = front_of(x, a.axes + 1);
  const Tensor wide = to_channels(filters, stack.count, a.window.cells() * in, a.groups, out / a.groups,
                                  behind(a.sizes(), {in}, stack.count * out));
  return to_front(op.with(a, x, wide), stack.count, images.size() * a.window.outputs(), a.groups,
                  out / a.groups, stack + behind(images, a.outputs(), out));
}

Tensor input_gradient(const WindowAttrs& a, const Tensor& dy, const Tensor& filters) {
  const Op& op = find(table, "conv_input_gradient");
  if (filters.ndim() == a.axes + 2) return op.with(a, dy, filters);
  const Stack stack(filters, a.axes + 2);
  const auto [in, out] = Filters(filters);
  const Shape images = front_of(dy, a.axes + 1);
  const Tensor wide = to_channels(filters, stack.count, a.window.cells(), 1, in * out,
                                  behind(a.sizes(), {stack.count * in}, out));
  return to_front(op.with(a, dy, wide), stack.count, images.size() * a.window.pixels(), a.groups, in,
                  stack + behind(images, a.inputs(), a.groups * in));
}

Tensor filter_gradient(const WindowAttrs& a, const Tensor& x, const Tensor& dy) {
  const Op& op = find(table, "conv_filter_gradient");
  const std::int64_t in = channels_of(x) / a.groups, out = channels_of(dy), cells = a.window.cells();
  if (x.ndim() < dy.ndim()) {
    const Stack stack(dy, x.ndim());
    const Shape images = front_of(x, a.axes + 1);
    const Tensor wide = to_channels(dy, stack.count, images.size() * a.window.outputs(), a.groups,
                                    out / a.groups, behind(images, a.outputs(), stack.count * out));
    return to_front(op.with(a, x, wide), stack.count, cells * in, a.groups, out / a.groups,
                    stack + behind(a.sizes(), {in}, out));
  }
  if (x.ndim() > dy.ndim()) {
    const Stack stack(x, dy.ndim());
    const Shape images = front_of(dy, a.axes + 1);
    const Tensor wide = to_channels(x, stack.count, images.size() * a.window.pixels(), a.groups, in,
                                    behind(images, a.inputs(), stack.count * a.groups * in));
    return to_front(op.with(a, wide, dy), stack.count, cells, 1, in * out,
                    stack + behind(a.sizes(), {in}, out));
  }
  return op.with(a, x, dy);
}

// Channels first to channels last, and back.
Tensor with_channels(const Tensor& x, int axes, bool last) {
  std::vector<int> order(static_cast<std::size_t>(x.ndim()));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.end() - axes - 1, last ? order.end() - axes : order.end() - 1, order.end());
  return transpose(x, order);
}

using Options = Conv3dTransposeOptions;   // of every form

// From outputs x to images of a size, given or the least.
WindowAttrs window_back(const Call& c, int axes, DepthHeightWidth filters, const Options& o) {
  const DepthHeightWidth from = extents_of(c.x[0], axes, 1);
  const auto &s = o.strides, &d = o.dilation;
  if (std::max({from.depth, from.height, from.width, filters.depth, filters.height, filters.width}) >
      kMostCells / std::max({s.depth, s.height, s.width, d.depth, d.height, d.width}))
    throw_shape_error(c, "extents of 2^31 and more are too large");
  const Padding& plane = o.padding.plane;
  const auto least = [&](std::int64_t n, std::int64_t size, std::int64_t stride, std::int64_t dilation,
                         std::int64_t padding) {
    return plane.mode == Padding::same
               ? n * stride
               : std::max<std::int64_t>((n - 1) * stride + (size - 1) * dilation + 1 - padding, 0);
  };
  DepthHeightWidth size = o.size;
  if (size == DepthHeightWidth(0))
    size = {least(from.depth, filters.depth, s.depth, d.depth, o.padding.front + o.padding.back),
            least(from.height, filters.height, s.height, d.height, plane.top + plane.bottom),
            least(from.width, filters.width, s.width, d.width, plane.left + plane.right)};
  if (std::min({size.depth, size.height, size.width}) < 0 ||
      std::max({size.depth, size.height, size.width}) > kMostCells)
    throw_error<ArgumentError>("{}: size is {}; use 0..{}", c.op.name, text_of(size, axes), kMostCells);
  const WindowAttrs a{window_of(size, filters, s, d, o.padding), axes, o.groups};
  const Window3d& w = a.window;
  if (const DepthHeightWidth made(w.planes.outputs, w.plane.rows.outputs, w.plane.columns.outputs);
      made != from)
    throw_error<ShapeError>("{}: conv{}d makes {} of size {}: x is {}", c.op.name, axes, text_of(made, axes),
                            text_of(size, axes), c.x[0].spec());
  return a;
}

Tensor convolution(const Op& op, int axes, bool transposed, const Tensor& x, const Tensor& filters,
                   const Options& o) {
  if (x.dtype() != filters.dtype() && is_floating(x.dtype()) && is_floating(filters.dtype()))
    return convolution(op, axes, transposed, astype(x, DType::f64), astype(filters, DType::f64), o);
  const Tensor* inputs[] = {&x, &filters};
  const Call c{.op = op, .x = {inputs, 2}};
  check_numbers(op, "strides are", o.strides, axes);
  check_numbers(op, "dilation is", o.dilation, axes);
  check_padding(op, o.padding, kMostCells);
  if (o.groups < 1 || o.groups > kMostCells)
    throw_error<ArgumentError>("{}: groups is {}; use 1..{}", op.name, o.groups, kMostCells);
  require_rank(c, 0, axes);
  if (o.layout == Layout::nchw) {
    Options last = o;
    last.layout = Layout::nhwc;
    return with_channels(convolution(op, axes, transposed, with_channels(x, axes, true), filters, last), axes,
                         false);
  }
  constexpr std::string_view names[] = {"columns", "rows, columns", "planes, rows, columns"};
  if (filters.ndim() != axes + 2)
    throw_shape_error(c, fmt::format("filters need the axes {}, {}", names[axes - 1],
                                     transposed ? "out and in" : "in and out"));
  const auto [in, out] = Filters(filters);
  if (channels_of(x) % o.groups || out % o.groups)
    throw_shape_error(c, fmt::format("channels do not fall into {} groups", o.groups));
  const std::int64_t taken = transposed ? out : in,
                     offered = transposed ? channels_of(x) : channels_of(x) / o.groups;
  if (taken != offered)
    throw_shape_error(c, fmt::format("filters take {} channels, {} has {}", taken,
                                     o.groups > 1 && !transposed ? "a group of x" : "x", offered));
  const DepthHeightWidth size = extents_of(filters, axes, 2);
  if (std::min({size.depth, size.height, size.width}) == 0) throw_shape_error(c, "filters are empty");
  if (std::max({size.depth, size.height, size.width, in, out}) > kMostCells ||
      static_cast<double>(size.depth) * static_cast<double>(size.height) * static_cast<double>(size.width) *
              static_cast<double>(in) >
          kMostCells)
    throw_shape_error(c, "filters of 2^31 and more are too large");
  WindowAttrs a = transposed
                      ? window_back(c, axes, size, o)
                      : checked_window(c, "the filters are", axes, size, o.strides, o.dilation, o.padding);
  a.groups = o.groups;
  return op.with(a, x, filters);
}

}   // namespace

Tensor conv1d(const Tensor& x, const Tensor& filters, const Conv1dOptions& o) {
  return convolution(find(table, "conv1d"), 1, false, x, filters,
                     {.strides = in_row(o.stride),
                      .dilation = in_row(o.dilation),
                      .padding = in_row(o.padding),
                      .groups = o.groups,
                      .layout = o.layout});
}
Tensor conv2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& o) {
  return convolution(find(table, "conv2d"), 2, false, x, filters,
                     {.strides = in_volume(o.strides),
                      .dilation = in_volume(o.dilation),
                      .padding = in_volume(o.padding),
                      .groups = o.groups,
                      .layout = o.layout});
}
Tensor conv3d(const Tensor& x, const Tensor& filters, const Conv3dOptions& o) {
  return convolution(find(table, "conv3d"), 3, false, x, filters,
                     {.strides = o.strides,
                      .dilation = o.dilation,
                      .padding = o.padding,
                      .groups = o.groups,
                      .layout = o.layout});
}
Tensor conv2d_transpose(const Tensor& x, const Tensor& filters, const Conv2dTransposeOptions& o) {
  return convolution(find(table, "conv2d_transpose"), 2, true, x, filters,
                     {.strides = in_volume(o.strides),
                      .dilation = in_volume(o.dilation),
                      .padding = in_volume(o.padding),
                      .size = o.size == HeightWidth(0) ? DepthHeightWidth(0) : in_volume(o.size),
                      .groups = o.groups,
                      .layout = o.layout});
}
Tensor conv3d_transpose(const Tensor& x, const Tensor& filters, const Conv3dTransposeOptions& o) {
  return convolution(find(table, "conv3d_transpose"), 3, true, x, filters, o);
}

std::span<const Op> conv_ops() { return table; }

}   // namespace tapedeck
