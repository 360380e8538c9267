// Convolution. In: images [..., height, width, channels], and filters. Out: images of other extents.
// A convolution is linear in the images and in the filters. With the gradients in these two it makes a ring of three bilinear
// ops: the adjoints of each are the other two.
#include "kernels/conv.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "ops/samples.h"
#include "ops/window.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

// Filters, which are [rows, columns, in, out].
struct Filters {
  std::int64_t in, out;
  explicit Filters(const Tensor& f) : in(f.shape()[2]), out(f.shape()[3]) {}
};
Filters filters_of(const Call& c) {
  const Shape& f = c.x[1].shape();
  const Window2d& w = c.attrs<Window2d>();
  require_one_dtype(c);
  if (f.ndim() != 4 || f[0] != w.rows.size || f[1] != w.columns.size) throw_shape_error(c, "filters do not fit the window");
  return Filters(c.x[1]);
}

Spec infer_conv2d(const Call& c) {
  const Filters f = filters_of(c);
  require_images(c, 0, input_of(c), f.in);
  return {c.x[0].dtype(), behind(front_of(c.x[0]), output_of(c), f.out)};
}

Spec infer_input_gradient(const Call& c) {
  const Filters f = filters_of(c);
  require_images(c, 0, output_of(c), f.out);
  return {c.x[0].dtype(), behind(front_of(c.x[0]), input_of(c), f.in)};
}

Spec infer_filter_gradient(const Call& c) {
  const Window2d& w = c.attrs<Window2d>();
  require_one_dtype(c);
  require_rank(c, 0);
  require_rank(c, 1);
  const std::int64_t in = channels_of(c.x[0]), out = channels_of(c.x[1]);
  require_images(c, 0, input_of(c), in);
  require_images(c, 1, output_of(c), out);
  if (front_of(c.x[0]) != front_of(c.x[1])) throw_shape_error(c, "numbers of images differ");
  return {c.x[0].dtype(), {w.rows.size, w.columns.size, in, out}};
}

kernels::Conv2d geometry(const Call& c, std::int64_t in, std::int64_t out) { return {c.attrs<Window2d>(), front_of(c.x[0]).size(), in, out}; }

// The three products, where one operand may have extra axes in front: as many results then come out, stacked likewise. Only
// the ops' images may be many, so a stack of anything else goes through as channels.
Tensor convolve(const Window2d& w, const Tensor& x, const Tensor& filters);
Tensor filter_gradient(const Window2d& w, const Tensor& x, const Tensor& dy);

// The op itself does not know stacked filters, so its tangents come from the product that does.
template <class W, auto product, class A, class B> constexpr Rule ring_of(A a, B b) {
  Rule rule = bilinear(a, b);
  rule.jvp = [](const Call& c, Refs dx, std::span<Tensor> dy) {
    const W& w = c.attrs<W>();
    if (dx[0].defined()) dy[0] = product(w, dx[0], c.x[1]);
    if (!dx[1].defined()) return;
    const Tensor right = product(w, c.x[0], dx[1]);
    dy[0] = dy[0].defined() ? dy[0] + right : right;
  };
  return rule;
}

void run_input_gradient(const Call& c, std::span<Tensor> y) { kernels::conv2d_input_gradient(geometry(c, channels_of(y[0]), channels_of(c.x[0])), c.x[0], c.x[1], y[0]); }
constexpr Rule input_gradient_rule() {
  return ring_of<Window2d, conv2d_input_gradient>([](const Call& c, const Tensor& v) { return convolve(c.attrs<Window2d>(), v, c.x[1]); },
                                                  [](const Call& c, const Tensor& v) { return filter_gradient(c.attrs<Window2d>(), v, c.x[0]); });
}

// Rows are images of one row, under filters of one.
Tensor convolve_rows(const Window2d& w, const Tensor& x, const Tensor& filters) { return squeeze(convolve(w, expand_dims(x, -3), expand_dims(filters, -4)), -3); }
Spec infer_conv1d(const Call& c) {
  const Window2d& w = c.attrs<Window2d>();
  const Shape &x = c.x[0].shape(), &f = c.x[1].shape();
  require_one_dtype(c);
  if (f.ndim() != 3 || f[0] != w.columns.size) throw_shape_error(c, "filters do not fit the window");
  if (x.ndim() < 2 || x[x.ndim() - 2] != w.columns.extent || x[x.ndim() - 1] != f[1]) throw_shape_error(c, fmt::format("x does not end in {}", Shape{w.columns.extent, f[1]}));
  Shape y = x;
  y.set(x.ndim() - 2, w.columns.outputs);
  y.set(x.ndim() - 1, f[2]);
  return {c.x[0].dtype(), y};
}

Tensor f64(const Shape& shape, const std::vector<double>& v) { return tensor(v, shape); }

constexpr Op table[] = {
    {.name = "conv2d",
     .doc = "Sums over windows: y[i, j, o] = Σ x[i·s + r·d - p, j·s + c·d - p, k] filters[r, c, k, o] over r, c and k, with strides s, dilation d and padding p.",
     .tensorflow = "Conv2D",
     .args = {"x", "filters"},
     .infer = infer_conv2d,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::conv2d(geometry(c, channels_of(c.x[0]), channels_of(y[0])), c.x[0], c.x[1], y[0]); },
     .rule = ring_of<Window2d, convolve>([](const Call& c, const Tensor& dy) { return conv2d_input_gradient(c.attrs<Window2d>(), dy, c.x[1]); },
                               [](const Call& c, const Tensor& dy) { return filter_gradient(c.attrs<Window2d>(), c.x[0], dy); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({3, 4, 5, 2}, -1, 1), uniform({3, 2, 2, 3}, -1, 1, 1)}, .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
           {.inputs = {uniform({4, 3, 2}, -1, 1), uniform({3, 3, 2, 1}, -1, 1, 1)}, .attrs = window({4, 3}, 3, 1, Padding::same)},
           {.inputs = {uniform({2, 2, 4, 3, 1}, -1, 1), uniform({2, 2, 1, 37}, -1, 1, 1)}, .attrs = window({4, 3}, 2, 2)},
           {.inputs = {uniform({2, 5, 4, 3}, -1, 1), uniform({1, 1, 3, 2}, -1, 1, 1)}, .attrs = window({5, 4}, 1, {2, 3})},
           {.inputs = {uniform({1, 2, 2, 1}, -1, 1), uniform({1, 1, 1, 2}, -1, 1, 1)}, .attrs = window(2, 1, 1, {3, 1, 0, 2})},
           {.inputs = {uniform({0, 4, 4, 2}, -1, 1), uniform({3, 3, 2, 2}, -1, 1, 1)}, .attrs = window(4, 3)},
           {.inputs = {uniform({2, 4, 4, 0}, -1, 1), uniform({3, 3, 0, 2}, -1, 1, 1)}, .attrs = window(4, 3)},
           {.inputs = {uniform({2, 4, 3, 2}, -1, 1), uniform({3, 2, 2, 2}, -1, 1, 1)}, .attrs = window({4, 3}, {3, 2}),
            .expected = {f64({2, 2, 2, 2}, {-1.327809230456205, 2.2186885346350693, -0.7774808791837365, -0.2541887290701702, 0.32317582336120027, -1.1999432564806485,
                        -1.2379520053680129, 2.2157232998124305, 0.1222489597944996, -1.1933127898479796, 0.05616944606822906, 1.2452661264484628, 0.6060497436093827,
                        -1.7791288509662193, 0.21210618488269212, -1.196278024670618})},
            .oracle = "torch.nn.functional.conv2d(torch.tensor(x).permute(0, 3, 1, 2), torch.tensor(filters).permute(3, 2, 0, 1)).permute(0, 2, 3, 1).numpy()"},
           {.inputs = {uniform({1, 5, 6, 1}, -1, 1), uniform({3, 3, 1, 2}, -1, 1, 1)}, .attrs = window({5, 6}, 3, 2, Padding::same),
            .expected = {f64({1, 3, 3, 2}, {1.2544348854008367, -0.6015864595743459, -0.745789141464821, 0.5390625485696715, -0.9591952286114437, -0.12016825858368141,
                        -1.5254978047158039, -1.2251180146056004, -0.09908272755992877, 1.3158588625670988, 1.5663838334331144, -0.4149824464760302, -0.5616960671631598,
                        1.0761578829672283, 0.36342484090514643, 0.7814720510473111, 0.19446276954182215, -1.203311375366061})},
            .oracle = "torch.nn.functional.conv2d(torch.nn.functional.pad(torch.tensor(x), (0, 0, 0, 1, 1, 1)).permute(0, 3, 1, 2), torch.tensor(filters).permute(3, 2, 0, 1), stride=2).permute(0, 2, 3, 1).numpy()"},
           {.inputs = {uniform({1, 5, 5, 2}, -1, 1), uniform({2, 3, 2, 1}, -1, 1, 1)}, .attrs = window(5, {2, 3}, 1, {1, 2, 0, 1}, 2),
            .expected = {f64({1, 6, 2, 1}, {-0.16524156963981504, 0.12013557350447594, -0.6562943994596534, -0.30253448811849, -0.2449920537273754, 0.6435498372958078,
                        1.438446247004482, -0.07599729728484987, 0.05913706523526198, -0.67810489664947, -0.10048987456789328, 0.11421758844852914})},
            .oracle = "torch.nn.functional.conv2d(torch.nn.functional.pad(torch.tensor(x), (0, 0, 0, 1, 1, 2)).permute(0, 3, 1, 2), torch.tensor(filters).permute(3, 2, 0, 1), dilation=2).permute(0, 2, 3, 1).numpy()"},
           {.inputs = {uniform({1, 3, 2, 4}, -1, 1), uniform({1, 1, 4, 2}, -1, 1, 1)}, .attrs = window({3, 2}, 1),
            .expected = {f64({1, 3, 2, 2}, {-0.6628190949541533, 0.9501898950551003, 0.3830402391069185, 0.054882939132154536, -0.6825566068336913, 1.0481198032075272,
                        0.36330272722738033, 0.15281284728458153, -0.7022941187132296, 1.1460497113599541, 0.3435652153478421, 0.2507427554370086})},
            .oracle = "torch.nn.functional.conv2d(torch.tensor(x).permute(0, 3, 1, 2), torch.tensor(filters).permute(3, 2, 0, 1)).permute(0, 2, 3, 1).numpy()"},
           {.inputs = {uniform({1, 3, 3, 37}, -1, 1), uniform({2, 2, 37, 1}, -1, 1, 1)}, .attrs = window(3, 2),
            .expected = {f64({1, 2, 2, 1}, {-18.173729730268448, -23.29679741753332, -1.9154485371727668, 21.87293995556405})},
            .oracle = "torch.nn.functional.conv2d(torch.tensor(x).permute(0, 3, 1, 2), torch.tensor(filters).permute(3, 2, 0, 1)).permute(0, 2, 3, 1).numpy()"},
           {.inputs = {uniform({1, 2, 2, 1}, -1, 1), uniform({2, 2, 1, 37}, -1, 1, 1)}, .attrs = window(2, 2),
            .expected = {f64({1, 1, 1, 37}, {-0.7816066493144, 1.1920821156927512, -0.6113167592967339, 1.0016922307125196, -0.44102686927906787, -0.7165616992681328,
                        1.2571270657390186, -0.5462718092504668, 1.0667371807587867, -0.37598191923280067, -0.6515167492218656, 0.3779001057861266, -0.48122685920419955,
                        -0.7567616891932646, 1.216927075813887, -0.5864717991755986, 1.026537190833655, -0.41618190915793235, -0.6917167391469974, 0.3377001158609949,
                        -0.5214268491293313, 1.0915821408799222, 1.176727085888755, -0.6266717891007302, 0.40274506590726206, -0.4563818990830641, -0.7319167290721291,
                        1.2417720359350224, -0.5616268390544631, 1.0513821509547905, -0.3913369490367969, -0.6668717790258619, 0.3625450759821303, -0.49658188900819583,
                        -0.7721167189972609, 1.2015720460098906, -0.6018268289795948})},
            .oracle = "torch.nn.functional.conv2d(torch.tensor(x).permute(0, 3, 1, 2), torch.tensor(filters).permute(3, 2, 0, 1)).permute(0, 2, 3, 1).numpy()"}};
     }},

    {.name = "conv1d",
     .doc = "The same of rows: y[i, o] = Σ x[i·s + c·d - p, k] filters[c, k, o] over c and k.",
     .args = {"x", "filters"},
     .infer = infer_conv1d,
     .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = convolve_rows(c.attrs<Window2d>(), c.x[0], c.x[1]); }, Outputs::own},
     .rule = ring_of<Window2d, convolve_rows>(
         [](const Call& c, const Tensor& dy) { return squeeze(conv2d_input_gradient(c.attrs<Window2d>(), expand_dims(dy, -3), expand_dims(c.x[1], -4)), -3); },
         [](const Call& c, const Tensor& dy) { return squeeze(filter_gradient(c.attrs<Window2d>(), expand_dims(c.x[0], -3), expand_dims(dy, -3)), -4); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({3, 9, 2}, -1, 1), uniform({3, 2, 3}, -1, 1, 1)}, .attrs = window({1, 9}, {1, 3}, {1, 2}, Padding::same, {1, 2})},
           {.inputs = {uniform({4, 2}, -1, 1), uniform({2, 2, 37}, -1, 1, 1)}, .attrs = window({1, 4}, {1, 2})},
           {.inputs = {uniform({2, 2, 5, 3}, -1, 1), uniform({1, 3, 2}, -1, 1, 1)}, .attrs = window({1, 5}, 1)},
           {.inputs = {uniform({0, 4, 2}, -1, 1), uniform({3, 2, 2}, -1, 1, 1)}, .attrs = window({1, 4}, {1, 3})},
           {.inputs = {uniform({2, 7, 3}, -1, 1), uniform({3, 3, 2}, -1, 1, 1)}, .attrs = window({1, 7}, {1, 3}, {1, 2}, {0, 0, 1, 1}), .expected = {tensor(std::vector<double>{1.0860857667707446, -0.2714883882120094, -0.9184250712772288, 0.26118167878586473, 1.3149954401836703, -1.2174404997036037, 0.10459930215896535, 1.1263386422649575,
                1.1458194421996277, -0.3571996426796491, -0.8980544061745908, 0.23367483906137496, -0.3825945697199971, -0.4907720594348198, 0.7168160268686148, 0.23553628209531996}, {2, 4, 2})},
            .oracle = "torch.nn.functional.conv1d(torch.tensor(x).permute(0, 2, 1), torch.tensor(filters).permute(2, 1, 0), stride=2, padding=1).permute(0, 2, 1).numpy()"}};
     }},

    {.name = "conv2d_transpose",
     .doc = "The adjoint of conv2d as a convolution of its own: each pixel of x adds the filters, times its value, to the result.",
     .args = {"x", "filters"},
     .infer = infer_input_gradient,
     .forward = run_input_gradient,
     .rule = input_gradient_rule(),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({3, 2, 5, 3}, -1, 1), uniform({3, 2, 2, 3}, -1, 1, 1)}, .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
           {.inputs = {uniform({3, 2, 2}, -1, 1), uniform({1, 1, 37, 2}, -1, 1, 1)}, .attrs = window({3, 2}, 1)},
           {.inputs = {uniform({0, 2, 2, 2}, -1, 1), uniform({3, 3, 2, 2}, -1, 1, 1)}, .attrs = window(4, 3)},
           {.inputs = {uniform({1, 3, 2, 2}, -1, 1), uniform({3, 3, 1, 2}, -1, 1, 1)}, .attrs = window({5, 3}, 3, 2, 1), .expected = {tensor(std::vector<double>{0.6639493295273814, 0.26135282008243915, 0.9875001205609472, 1.155780011082354, 0.5391481192179588, 0.8586096831503262, -0.6103086384012835, -0.17570693577320906,
                -0.28675784736771787, -0.8091437897737146, -1.5021556624958603, -1.1063141177057425, 0.5875693486696312, 0.33150521837030167, 0.9111201397031968}, {1, 5, 3, 1})},
            .oracle = "torch.nn.functional.conv_transpose2d(torch.tensor(x).permute(0, 3, 1, 2), torch.tensor(filters).permute(3, 2, 0, 1), stride=2, padding=1).permute(0, 2, 3, 1).numpy()"}};
     }},

    {.name = "conv2d_input_gradient",
     .doc = "The adjoint of conv2d in its input: the images x of which it would be the gradient.",
     .tensorflow = "Conv2DBackpropInput",
     .args = {"dy", "filters"},
     .infer = infer_input_gradient,
     .forward = run_input_gradient,
     .rule = input_gradient_rule(),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({3, 2, 5, 3}, -1, 1), uniform({3, 2, 2, 3}, -1, 1, 1)}, .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
           {.inputs = {uniform({2, 3, 2, 2}, -1, 1), uniform({1, 1, 3, 2}, -1, 1, 1)}, .attrs = window({5, 4}, 1, {2, 3})},
           {.inputs = {uniform({3, 2, 2}, -1, 1), uniform({1, 1, 37, 2}, -1, 1, 1)}, .attrs = window({3, 2}, 1)},
           {.inputs = {uniform({0, 2, 2, 2}, -1, 1), uniform({3, 3, 2, 2}, -1, 1, 1)}, .attrs = window(4, 3)},
           {.inputs = {uniform({1, 3, 2, 2}, -1, 1), uniform({3, 3, 1, 2}, -1, 1, 1)}, .attrs = window({5, 4}, 3, 2, 1),
            .expected = {f64({1, 5, 4, 1}, {0.6639493295273814, 0.26135282008243915, 0.9875001205609472, -0.5929863944251732, 1.155780011082354, 0.5391481192179588, 0.8586096831503262,
                        1.4221018231890235, -0.6103086384012835, -0.17570693577320906, -0.28675784736771787, 0.19158934766214442, -0.8091437897737146, -1.5021556624958603,
                        -1.1063141177057425, -0.6480669176384433, 0.5875693486696312, 0.33150521837030167, 0.9111201397031968, -0.5516989552509584})},
            .oracle = "torch.nn.grad.conv2d_input((1, 1, 5, 4), torch.tensor(filters).permute(3, 2, 0, 1), torch.tensor(dy).permute(0, 3, 1, 2), stride=2, padding=1).permute(0, 2, 3, 1).numpy()"},
           {.inputs = {uniform({1, 2, 3, 1}, -1, 1), uniform({2, 1, 2, 1}, -1, 1, 1)}, .attrs = window({4, 3}, {2, 1}, 1, 0, {2, 1}),
            .expected = {f64({1, 4, 3, 2}, {0.12523292150113546, 0.7088250565023971, -0.07739820199814927, -0.43807797699604634, 0.0478347195029862, 0.2707470795063508,
                        -0.15479640399629854, -0.8761559539920927, -0.029563482495163072, -0.16733089748969557, 0.0956694390059724, 0.5414941590127016, -0.23544685349676162,
                        0.3481452815045, 0.1455141580052158, -0.21516561699268127, -0.08993269549154581, 0.13297966451181875, 0.2910283160104316, -0.43033123398536255,
                        0.05558146251366997, -0.08218595248086252, -0.17986539098309162, 0.2659593290236375})},
            .oracle = "torch.nn.grad.conv2d_input((1, 2, 4, 3), torch.tensor(filters).permute(3, 2, 0, 1), torch.tensor(dy).permute(0, 3, 1, 2), dilation=(2, 1)).permute(0, 2, 3, 1).numpy()"},
           {.inputs = {uniform({1, 2, 1, 2}, -1, 1), uniform({1, 1, 3, 2}, -1, 1, 1)}, .attrs = window({2, 1}, 1),
            .expected = {f64({1, 2, 1, 3}, {-0.3128450554949109, -0.4506124704894429, -0.5883798854839749, -0.8283212344891066, -0.5202639294769084, -0.21220662446471028})},
            .oracle = "torch.nn.grad.conv2d_input((1, 3, 2, 1), torch.tensor(filters).permute(3, 2, 0, 1), torch.tensor(dy).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).numpy()"}};
     }},

    {.name = "conv2d_filter_gradient",
     .doc = "The adjoint of conv2d in its filters.",
     .tensorflow = "Conv2DBackpropFilter",
     .args = {"x", "dy"},
     .infer = infer_filter_gradient,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::conv2d_filter_gradient(geometry(c, channels_of(c.x[0]), channels_of(c.x[1])), c.x[0], c.x[1], y[0]); },
     .rule = ring_of<Window2d, filter_gradient>([](const Call& c, const Tensor& v) { return conv2d_input_gradient(c.attrs<Window2d>(), c.x[1], v); },
                                      [](const Call& c, const Tensor& v) { return convolve(c.attrs<Window2d>(), c.x[0], v); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({3, 4, 5, 2}, -1, 1), uniform({3, 2, 5, 3}, -1, 1, 1)}, .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
           {.inputs = {uniform({2, 5, 4, 3}, -1, 1), uniform({2, 3, 2, 2}, -1, 1, 1)}, .attrs = window({5, 4}, 1, {2, 3})},
           {.inputs = {uniform({3, 2, 37}, -1, 1), uniform({3, 2, 2}, -1, 1, 1)}, .attrs = window({3, 2}, 1)},
           {.inputs = {uniform({0, 4, 4, 2}, -1, 1), uniform({0, 2, 2, 2}, -1, 1, 1)}, .attrs = window(4, 3)},
           {.inputs = {uniform({2, 5, 4, 1}, -1, 1), uniform({2, 3, 2, 2}, -1, 1, 1)}, .attrs = window({5, 4}, 3, 2, 1),
            .expected = {f64({3, 3, 1, 2}, {0.28571704139304643, 0.022604691464551574, 0.49455316262795274, 0.9126003727701224, -0.694853115266223, -0.7752530951164824,
                        -0.4024806380618483, 0.3963463420407851, -0.8351377113520794, -0.0966107161371436, 1.092502306782684, -1.500233617992285, 0.22360464109021022,
                        -0.03950770883828464, 0.5932407220256434, 0.6506081571699149, -0.7138329759004973, 0.3729513142517654})},
            .oracle = "torch.nn.grad.conv2d_weight(torch.tensor(x).permute(0, 3, 1, 2), (2, 1, 3, 3), torch.tensor(dy).permute(0, 3, 1, 2), stride=2, padding=1).permute(2, 3, 1, 0).numpy()"},
           {.inputs = {uniform({1, 4, 3, 2}, -1, 1), uniform({1, 2, 3, 1}, -1, 1, 1)}, .attrs = window({4, 3}, {2, 1}, 1, 0, {2, 1}),
            .expected = {f64({2, 1, 2, 1}, {-0.5355069458480771, -0.7875082918307466, -0.6090399476106867, -0.5659929785904135})},
            .oracle = "torch.nn.grad.conv2d_weight(torch.tensor(x).permute(0, 3, 1, 2), (1, 2, 2, 1), torch.tensor(dy).permute(0, 3, 1, 2), dilation=(2, 1)).permute(2, 3, 1, 0).numpy()"},
           {.inputs = {uniform({2, 2, 3, 2}, -1, 1), uniform({2, 2, 3, 2}, -1, 1, 1)}, .attrs = window({2, 3}, 1),
            .expected = {f64({1, 1, 2, 2}, {-0.6713725168289142, 0.3828892983002154, -0.5273246336954122, -1.2764616935557669})},
            .oracle = "torch.nn.grad.conv2d_weight(torch.tensor(x).permute(0, 3, 1, 2), (2, 2, 1, 1), torch.tensor(dy).permute(0, 3, 1, 2)).permute(2, 3, 1, 0).numpy()"}};
     }},
};

// The elements of x in rows of blocks [a, b, c], with the first two axes in the other order.
Tensor swapped(const Tensor& x, std::int64_t a, std::int64_t b, std::int64_t c, const Shape& result) { return reshape(transpose(reshape(x, {a, b, c}), {1, 0, 2}), result); }

// The axes in front of the last `ndim`, and how many tensors they stack.
struct Stack {
  Shape front;
  std::int64_t count;
  Stack(const Tensor& x, int ndim) : front(x.shape().dims().first(static_cast<std::size_t>(x.ndim() - ndim))), count(front.size()) {}
  Shape operator+(const Shape& s) const {
    Shape all = front;
    for (const std::int64_t d : s) all.push_back(d);
    return all;
  }
};

Tensor convolve(const Window2d& w, const Tensor& x, const Tensor& filters) {
  const Op& op = find(table, "conv2d");
  if (filters.ndim() == 4) return op.with(w, x, filters);
  const Stack stack(filters, 4);
  const std::int64_t in = channels_of(x), out = channels_of(filters), images = front_of(x).size();
  const Tensor wide = swapped(filters, stack.count, w.cells() * in, out, {w.rows.size, w.columns.size, in, stack.count * out});
  return swapped(op.with(w, x, wide), images * w.outputs(), stack.count, out, stack + behind(front_of(x), output_of(w), out));
}

Tensor filter_gradient(const Window2d& w, const Tensor& x, const Tensor& dy) {
  const Op& op = find(table, "conv2d_filter_gradient");
  const std::int64_t in = channels_of(x), out = channels_of(dy);
  if (x.ndim() < dy.ndim()) {
    const Stack stack(dy, x.ndim());
    const Tensor wide = swapped(dy, stack.count, front_of(x).size() * w.outputs(), out, behind(front_of(x), output_of(w), stack.count * out));
    return swapped(op.with(w, x, wide), w.cells() * in, stack.count, out, stack + Shape{w.rows.size, w.columns.size, in, out});
  }
  if (x.ndim() > dy.ndim()) {
    const Stack stack(x, dy.ndim());
    const Tensor wide = swapped(x, stack.count, front_of(dy).size() * w.pixels(), in, behind(front_of(dy), input_of(w), stack.count * in));
    return swapped(op.with(w, wide, dy), w.cells(), stack.count, in * out, stack + Shape{w.rows.size, w.columns.size, in, out});
  }
  return op.with(w, x, dy);
}

// nchw to nhwc, and back.
Tensor with_channels(const Tensor& x, bool last) {
  std::vector<int> axes(static_cast<std::size_t>(x.ndim()));
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.end() - 3, last ? axes.end() - 2 : axes.end() - 1, axes.end());
  return transpose(x, axes);
}

Tensor in_groups(const Tensor& x, const Tensor& filters, const Conv2dOptions& o) {
  const Op& op = find(table, "conv2d");
  if (o.groups < 1 || o.groups > kMostCells) throw_error<ArgumentError>("{}: groups is {}; use 1..{}", op.name, o.groups, kMostCells);
  const auto fits = [&](const Tensor& t) { return t.ndim() > 0 && channels_of(t) % o.groups == 0; };
  if (!fits(x) || !fits(filters)) throw_error<ShapeError>("{}: channels do not fall into {} groups: x is {}, filters is {}", op.name, o.groups, x.spec(), filters.spec());
  Conv2dOptions each = o;
  each.groups = 1;
  const std::vector<Tensor> images = split(x, static_cast<int>(o.groups), -1), weights = split(filters, static_cast<int>(o.groups), -1);
  std::vector<Tensor> parts;
  for (std::size_t g = 0; g < images.size(); ++g) parts.push_back(conv2d(images[g], weights[g], each));
  return concat(parts, -1);
}

}  // namespace

Tensor conv2d_input_gradient(const Window2d& w, const Tensor& dy, const Tensor& filters) {
  const Op& op = find(table, "conv2d_input_gradient");
  if (filters.ndim() == 4) return op.with(w, dy, filters);
  const Stack stack(filters, 4);
  const std::int64_t out = channels_of(filters), in = filters.shape()[filters.ndim() - 2], images = front_of(dy).size();
  const Tensor wide = swapped(filters, stack.count, w.cells(), in * out, {w.rows.size, w.columns.size, stack.count * in, out});
  return swapped(op.with(w, dy, wide), images * w.pixels(), stack.count, in, stack + behind(front_of(dy), input_of(w), in));
}

Tensor conv2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& o) {
  const Op& op = find(table, "conv2d");
  if (x.dtype() != filters.dtype() && is_floating(x.dtype()) && is_floating(filters.dtype())) return conv2d(astype(x, DType::f64), astype(filters, DType::f64), o);
  const Tensor* inputs[] = {&x, &filters};
  const Call c{.op = op, .x = {inputs, 2}};
  if (o.layout == Layout::nchw) {
    require_rank(c, 0);
    Conv2dOptions last = o;
    last.layout = Layout::nhwc;
    return with_channels(conv2d(with_channels(x, true), filters, last), false);
  }
  if (o.groups != 1) return in_groups(x, filters, o);
  check_numbers(op, "strides are", o.strides);
  check_numbers(op, "dilation is", o.dilation);
  check_padding(op, o.padding, kMostCells);
  require_rank(c, 0);
  const Shape& f = filters.shape();
  if (f.ndim() != 4) throw_shape_error(c, "filters need the axes rows, columns, in and out");
  if (f[2] != channels_of(x)) throw_shape_error(c, fmt::format("filters take {} channels, x has {}", f[2], channels_of(x)));
  if (std::min(f[0], f[1]) == 0) throw_shape_error(c, "filters are empty");
  if (std::max({f[0], f[1], f[3]}) > kMostCells || static_cast<double>(f[0]) * static_cast<double>(f[1]) * static_cast<double>(f[2]) > kMostCells)
    throw_shape_error(c, "filters of 2^31 and more are too large");
  return op.with(checked_window(c, "the filters are", {f[0], f[1]}, o.strides, o.dilation, o.padding), x, filters);
}

Tensor conv2d_transpose(const Tensor& x, const Tensor& filters, const Conv2dTransposeOptions& o) {
  constexpr std::string_view name = "conv2d_transpose";
  const Op& op = find(table, "conv2d_transpose");
  check_numbers(op, "strides are", o.strides);
  check_numbers(op, "dilation is", o.dilation);
  check_padding(op, o.padding, kMostCells);
  const Shape& f = filters.shape();
  if (x.ndim() < 3) throw_error<ShapeError>("{}: x needs the axes height, width and channels: x is {}", name, x.spec());
  if (f.ndim() != 4 || std::min(f[0], f[1]) < 1 || f[3] != channels_of(x))
    throw_error<ShapeError>("{}: filters are not [rows, columns, out, {}]: x is {}, filters is {}", name, channels_of(x), x.spec(), filters.spec());
  const HeightWidth image(x.shape()[x.ndim() - 3], x.shape()[x.ndim() - 2]);
  if (std::max({image.height, image.width, f[0], f[1]}) > kMostCells / std::max({o.strides.height, o.strides.width, o.dilation.height, o.dilation.width}))
    throw_error<ShapeError>("{}: extents of 2^31 and more are too large: x is {}, filters is {}", name, x.spec(), filters.spec());
  const auto least = [&](std::int64_t n, std::int64_t size, std::int64_t stride, std::int64_t dilation, std::int64_t padding) {
    return o.padding.mode == Padding::same ? n * stride : std::max<std::int64_t>((n - 1) * stride + (size - 1) * dilation + 1 - padding, 0);
  };
  const HeightWidth size = o.size != HeightWidth(0) ? o.size : HeightWidth(least(image.height, f[0], o.strides.height, o.dilation.height, o.padding.top + o.padding.bottom),
                                                                           least(image.width, f[1], o.strides.width, o.dilation.width, o.padding.left + o.padding.right));
  if (std::min(size.height, size.width) < 0 || std::max(size.height, size.width) > kMostCells)
    throw_error<ArgumentError>("{}: size is {}×{}; use 0..{}", name, size.height, size.width, kMostCells);
  const Window2d w = window_of(size, {f[0], f[1]}, o.strides, o.dilation, o.padding);
  if (output_of(w) != image)
    throw_error<ShapeError>("{}: conv2d makes {}×{} of size {}×{}: x is {}", name, w.rows.outputs, w.columns.outputs, size.height, size.width, x.spec());
  return op.with(w, x, filters);
}

Tensor conv1d(const Tensor& x, const Tensor& filters, const Conv1dOptions& o) {
  const Op& op = find(table, "conv1d");
  if (x.dtype() != filters.dtype() && is_floating(x.dtype()) && is_floating(filters.dtype())) return conv1d(astype(x, DType::f64), astype(filters, DType::f64), o);
  if (x.ndim() < 2) throw_error<ShapeError>("conv1d: x needs the axes width and channels: x is {}", x.spec());
  if (filters.ndim() != 3) throw_error<ShapeError>("conv1d: filters need the axes columns, in and out: filters is {}", filters.spec());
  const Tensor* inputs[] = {&x, &filters};
  const Call c{.op = op, .x = {inputs, 2}};
  const HeightWidth strides(1, o.stride), dilation(1, o.dilation);
  check_numbers(op, "strides are", strides);
  check_numbers(op, "dilation is", dilation);
  check_padding(op, o.padding, kMostCells);
  const Shape& f = filters.shape();
  const std::int64_t width = x.shape()[x.ndim() - 2];
  if (f[1] != channels_of(x)) throw_shape_error(c, fmt::format("filters take {} channels, x has {}", f[1], channels_of(x)));
  if (f[0] == 0) throw_shape_error(c, "filters are empty");
  if (std::max({f[0], f[2], width}) > kMostCells || static_cast<double>(f[0]) * static_cast<double>(f[1]) > kMostCells) throw_shape_error(c, "extents of 2^31 and more are too large");
  const Window2d w = window_of({1, width}, {1, f[0]}, strides, dilation, o.padding);
  if (o.padding.mode != Padding::same && w.columns.outputs == 0) throw_shape_error(c, "the filters are larger than the padded row");
  return op.with(w, x, filters);
}

std::span<const Op> conv_ops() { return table; }

}  // namespace tapedeck
