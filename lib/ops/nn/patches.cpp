// Windows over images and volumes as rows. In: images. Out: a row for each window.
#include "core/format.h"
#include "core/storage.h"
#include "kernels/nn/conv.h"
#include "ops/nn/window.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

kernels::Conv geometry(const Call& c, std::int64_t channels) {
  const auto& a = c.attrs<WindowAttrs>();
  return {a.window, front_of(c.x[0], a.axes + 1).size(), channels, 0};
}
Spec infer_patches(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  require_floating(c, 0);
  require_rank(c, 0, a.axes);
  require_images(c, 0, a.inputs(), channels_of(c.x[0]));
  return {c.x[0].dtype(), behind(front_of(c.x[0], a.axes + 1), a.outputs(),
                                 Shape{a.window.cells(), channels_of(c.x[0])}.size())};
}
Spec infer_patches_gradient(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  require_floating(c, 0);
  require_rank(c, 0, a.axes);
  if (channels_of(c.x[0]) % a.window.cells())
    throw_shape_error(c, fmt::format("the last axis does not hold windows of {}", a.sizes()));
  require_images(c, 0, a.outputs(), channels_of(c.x[0]));
  return {c.x[0].dtype(),
          behind(front_of(c.x[0], a.axes + 1), a.inputs(), channels_of(c.x[0]) / a.window.cells())};
}
void run_patches(const Call& c, std::span<Tensor> y) {
  kernels::patches(geometry(c, channels_of(c.x[0])), c.x[0], y[0]);
}

Tensor patches(const WindowAttrs& a, const Tensor& x);
Tensor patches_gradient(const WindowAttrs& a, const Tensor& dy);

constexpr Rule patches_rule() {
  return linear([](const Call& c, const Tensor& dy) { return patches_gradient(c.attrs<WindowAttrs>(), dy); });
}

constexpr Op table[] = {
    {.name = "extract_image_patches",
     .doc = "What a window reads of images, row by row: conv2d is its product with the filters.",
     .tensorflow = "ExtractImagePatches",
     .args = {"x"},
     .infer = infer_patches,
     .forward = run_patches,
     .rule = patches_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 4, 5, 2}, -1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
               {.inputs = {uniform({4, 3, 37}, -1, 1)}, .attrs = window({4, 3}, 2, 2)},
               {.inputs = {uniform({2, 3, 3, 1}, -1, 1)}, .attrs = window(3, 1)},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1)}, .attrs = window(4, 3)},
               {.inputs = {uniform({1, 3, 4, 2}, -1, 1)},
                .attrs = window({3, 4}, {2, 3}, {1, 1}),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102,  0.4721359549995796,    -0.2917960675006306,
                                        0.9442719099991592,   0.18033988749894903,   -0.5835921350012612,
                                        -0.8753882025018918,  0.36067977499789805,   -0.40325224750231214,
                                        0.8328157299974777,   0.06888370749726747,   -0.6950483150029427,
                                        -0.2917960675006306,  0.9442719099991592,    0.18033988749894903,
                                        -0.5835921350012612,  0.6524758424985286,    -0.11145618000168156,
                                        -0.40325224750231214, 0.8328157299974777,    0.06888370749726747,
                                        -0.6950483150029427,  0.5410196624968471,    -0.22291236000336312,
                                        -0.8753882025018918,  0.36067977499789805,   -0.40325224750231214,
                                        0.8328157299974777,   0.06888370749726747,   -0.6950483150029427,
                                        -0.9868443825035733,  0.2492235949962165,    -0.5147084275039937,
                                        0.7213595499957961,   -0.042572472504414094, -0.8065044950046243,
                                        -0.40325224750231214, 0.8328157299974777,    0.06888370749726747,
                                        -0.6950483150029427,  0.5410196624968471,    -0.22291236000336312,
                                        -0.5147084275039937,  0.7213595499957961,    -0.042572472504414094,
                                        -0.8065044950046243,  0.4295634824951655,    -0.3343685400050447},
                    {1, 2, 2, 12})},
                .oracle = "np.lib.stride_tricks.sliding_window_view(x, (2, 3), axis=(1, 2)).transpose(0, 1, "
                          "2, 4, 5, 3).reshape(1, 2, 2, 12)"},
               {.inputs = {uniform({1, 4, 4, 1}, -1, 1)},
                .attrs = window(4, 2, 2, Padding::same, 2),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102, -0.2917960675006306, -0.8753882025018918,
                                        -0.40325224750231214, -0.2917960675006306, 0, -0.40325224750231214, 0,
                                        -0.8753882025018918, -0.40325224750231214, 0, 0, -0.40325224750231214,
                                        0, 0, 0},
                    {1, 2, 2, 4})},
                .oracle = "torch.nn.functional.unfold(torch.nn.functional.pad(torch.tensor(x), (0, 0, 0, 1, "
                          "0, 1)).permute(0, 3, 1, 2), 2, dilation=2, stride=2).reshape(1, 4, 2, "
                          "2).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.name = "patches_gradient",
     .doc = "The adjoint of extract_image_patches and extract_volume_patches: images to which each patch is "
            "added where it was read.",
     .args = {"dy"},
     .infer = infer_patches_gradient,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::patches_gradient(geometry(c, channels_of(y[0])), c.x[0], y[0]);
         },
     .rule = linear([](const Call& c, const Tensor& v) { return patches(c.attrs<WindowAttrs>(), v); }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 2, 5, 12}, -1, 1)},
                .attrs = window({4, 5}, {3, 2}, {2, 1}, Padding::same, {1, 2})},
               {.inputs = {uniform({2, 1, 148}, -1, 1)}, .attrs = window({4, 3}, 2, 2)},
               {.inputs = {uniform({2, 3, 3, 1}, -1, 1)}, .attrs = window(3, 1)},
               {.inputs = {uniform({1, 2, 2, 4}, -1, 1)},
                .attrs = window(4, 2, 2, 1, 2),
                .expected = {tensor(
                    std::vector<double>{0, 0, 0, 0, 0, 2.0263112349928534, 0, -0.8065044950046243, 0, 0, 0, 0,
                                        0, 1.3738353924943247, 0, -0.22291236000336312},
                    {1, 4, 4, 1})},
                .oracle = "torch.nn.functional.fold(torch.tensor(dy).permute(0, 3, 1, 2).reshape(1, 4, 4), "
                          "(4, 4), 2, dilation=2, padding=1, stride=2).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.name = "extract_volume_patches",
     .doc = "What a window reads of volumes, plane by plane: conv3d is its product with the filters.",
     .tensorflow = "ExtractVolumePatches",
     .args = {"x"},
     .infer = infer_patches,
     .forward = run_patches,
     .rule = patches_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 4, 5, 2}, -1, 1)},
                .attrs = volume_window({3, 4, 5}, {2, 3, 2}, {1, 2, 1}, Padding::same, {2, 1, 2})},
               {.inputs = {uniform({2, 3, 2, 37}, -1, 1)},
                .attrs = volume_window({2, 3, 2}, 2, {2, 1, 1}, {1, 0, {0, 1, 1, 0}})},
               {.inputs = {uniform({2, 2, 3, 2, 1}, -1, 1)}, .attrs = volume_window({2, 3, 2}, 1)},
               {.inputs = {uniform({0, 2, 3, 2, 1}, -1, 1)}, .attrs = volume_window({2, 3, 2}, 2)},
               {.inputs = {uniform({1, 3, 3, 4, 2}, -1, 1)},
                .attrs = volume_window({3, 3, 4}, {2, 2, 3}),
                .expected = {tensor(
                    std::vector<double>{-0.7639320225002102,  0.4721359549995796,    -0.2917960675006306,
                                        0.9442719099991592,   0.18033988749894903,   -0.5835921350012612,
                                        -0.8753882025018918,  0.36067977499789805,   -0.40325224750231214,
                                        0.8328157299974777,   0.06888370749726747,   -0.6950483150029427,
                                        0.9016994374947451,   0.13776741499453493,   -0.6261646075056753,
                                        0.6099033699941145,   -0.15402865250609565,  -0.9179606750063058,
                                        0.7902432574930636,   0.026311234992853372,  -0.7376207875073568,
                                        0.498447189992433,    -0.2654848325077772,   0.9705831449920126,
                                        -0.2917960675006306,  0.9442719099991592,    0.18033988749894903,
                                        -0.5835921350012612,  0.6524758424985286,    -0.11145618000168156,
                                        -0.40325224750231214, 0.8328157299974777,    0.06888370749726747,
                                        -0.6950483150029427,  0.5410196624968471,    -0.22291236000336312,
                                        -0.6261646075056753,  0.6099033699941145,    -0.15402865250609565,
                                        -0.9179606750063058,  0.31810730249348396,   -0.44582472000672624,
                                        -0.7376207875073568,  0.498447189992433,     -0.2654848325077772,
                                        0.9705831449920126,   0.2066511224918024,    -0.5572809000084078,
                                        -0.8753882025018918,  0.36067977499789805,   -0.40325224750231214,
                                        0.8328157299974777,   0.06888370749726747,   -0.6950483150029427,
                                        -0.9868443825035733,  0.2492235949962165,    -0.5147084275039937,
                                        0.7213595499957961,   -0.042572472504414094, -0.8065044950046243,
                                        0.7902432574930636,   0.026311234992853372,  -0.7376207875073568,
                                        0.498447189992433,    -0.2654848325077772,   0.9705831449920126,
                                        0.678787077491382,    -0.08514494500882819,  -0.8490769675090384,
                                        0.3869910099907514,   -0.3769410125094588,   0.859126964990331,
                                        -0.40325224750231214, 0.8328157299974777,    0.06888370749726747,
                                        -0.6950483150029427,  0.5410196624968471,    -0.22291236000336312,
                                        -0.5147084275039937,  0.7213595499957961,    -0.042572472504414094,
                                        -0.8065044950046243,  0.4295634824951655,    -0.3343685400050447,
                                        -0.7376207875073568,  0.498447189992433,     -0.2654848325077772,
                                        0.9705831449920126,   0.2066511224918024,    -0.5572809000084078,
                                        -0.8490769675090384,  0.3869910099907514,    -0.3769410125094588,
                                        0.859126964990331,    0.09519494249012084,   -0.6687370800100894,
                                        0.9016994374947451,   0.13776741499453493,   -0.6261646075056753,
                                        0.6099033699941145,   -0.15402865250609565,  -0.9179606750063058,
                                        0.7902432574930636,   0.026311234992853372,  -0.7376207875073568,
                                        0.498447189992433,    -0.2654848325077772,   0.9705831449920126,
                                        0.5673308974897004,   -0.19660112501050975,  -0.9605331475107199,
                                        0.27553482998906986,  -0.48839719251114033,  0.7476707849886495,
                                        0.4558747174880189,   -0.3080573050121913,   0.9280106724875985,
                                        0.1640786499873883,   -0.5998533725128219,   0.6362146049869679,
                                        -0.6261646075056753,  0.6099033699941145,    -0.15402865250609565,
                                        -0.9179606750063058,  0.31810730249348396,   -0.44582472000672624,
                                        -0.7376207875073568,  0.498447189992433,     -0.2654848325077772,
                                        0.9705831449920126,   0.2066511224918024,    -0.5572809000084078,
                                        -0.9605331475107199,  0.27553482998906986,   -0.48839719251114033,
                                        0.7476707849886495,   -0.016261237511560722, -0.7801932600117709,
                                        0.9280106724875985,   0.1640786499873883,    -0.5998533725128219,
                                        0.6362146049869679,   -0.12771741751324228,  -0.8916494400134525,
                                        0.7902432574930636,   0.026311234992853372,  -0.7376207875073568,
                                        0.498447189992433,    -0.2654848325077772,   0.9705831449920126,
                                        0.678787077491382,    -0.08514494500882819,  -0.8490769675090384,
                                        0.3869910099907514,   -0.3769410125094588,   0.859126964990331,
                                        0.4558747174880189,   -0.3080573050121913,   0.9280106724875985,
                                        0.1640786499873883,   -0.5998533725128219,   0.6362146049869679,
                                        0.34441853748633733,  -0.41951348501387287,  0.8165544924859169,
                                        0.052622469985706744, -0.7113095525145035,   0.5247584249852864,
                                        -0.7376207875073568,  0.498447189992433,     -0.2654848325077772,
                                        0.9705831449920126,   0.2066511224918024,    -0.5572809000084078,
                                        -0.8490769675090384,  0.3869910099907514,    -0.3769410125094588,
                                        0.859126964990331,    0.09519494249012084,   -0.6687370800100894,
                                        0.9280106724875985,   0.1640786499873883,    -0.5998533725128219,
                                        0.6362146049869679,   -0.12771741751324228,  -0.8916494400134525,
                                        0.8165544924859169,   0.052622469985706744,  -0.7113095525145035,
                                        0.5247584249852864,   -0.23917359751492384,  0.996894379984866},
                    {1, 2, 2, 2, 24})},
                .oracle = "np.lib.stride_tricks.sliding_window_view(x, (2, 2, 3), axis=(1, 2, "
                          "3)).transpose(0, 1, 2, 3, 5, 6, 7, 4).reshape(1, 2, 2, 2, 24)"}};
         }},
};

Tensor patches(const WindowAttrs& a, const Tensor& x) {
  return (a.axes == 2 ? find(table, "extract_image_patches") : find(table, "extract_volume_patches"))
      .with(a, x);
}
Tensor patches_gradient(const WindowAttrs& a, const Tensor& dy) {
  return find(table, "patches_gradient").with(a, dy);
}

Tensor checked_patches(const Op& op, int axes, const Tensor& x, const VolumePatchOptions& o) {
  const Tensor* inputs[] = {&x};
  const Call c{.op = op, .x = {inputs, 1}};
  check_numbers(op, "window is", o.window, axes);
  check_numbers(op, "strides are", o.strides, axes);
  check_numbers(op, "dilation is", o.dilation, axes);
  check_padding(op, o.padding, kMostCells);
  require_rank(c, 0, axes);
  return op.with(checked_window(c, "the window is", axes, o.window, o.strides, o.dilation, o.padding), x);
}

}   // namespace

Tensor extract_image_patches(const Tensor& x, const PatchOptions& o) {
  return checked_patches(find(table, "extract_image_patches"), 2, x,
                         {.window = in_volume(o.window),
                          .strides = in_volume(o.strides),
                          .dilation = in_volume(o.dilation),
                          .padding = in_volume(o.padding)});
}
Tensor extract_volume_patches(const Tensor& x, const VolumePatchOptions& o) {
  return checked_patches(find(table, "extract_volume_patches"), 3, x, o);
}

std::span<const Op> patches_ops() { return table; }

}   // namespace tapedeck
