// Fourier transforms. In: complex or real tensors. Out: transforms along their last axes.
#include "tapedeck/ops/fft.h"

#include "core/format.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/linalg/fft.h"
#include "op/rules.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

struct FftAttrs {
  int axes;
  bool inverse;
};
struct RealFftAttrs {
  int axes;
  std::int64_t n;   // n: numbers along the last axis of what is real
};

// By the number of axes.
Tensor transform(const Tensor& x, FftAttrs attrs);
Tensor real_transform(const Tensor& x, int axes);
Tensor real_inverse(const Tensor& x, RealFftAttrs attrs);

std::int64_t elements_along(const Shape& shape, int axes) {
  std::int64_t n = 1;
  for (int d = shape.ndim() - axes; d < shape.ndim(); ++d)
    n *= shape[d];
  return n;
}

void require_transformed(const Call& c, int axes) {
  require_axes(c, axes);
  const Shape& x = c.x[0].shape();
  for (int d = x.ndim() - axes; d < x.ndim(); ++d)
    if (x[d] == 0) throw_shape_error(c, "no elements along an axis that is transformed");
}

/// The transform along axes of x, counted from the end, from `first` to before `end`; times scale.
void run_along(const Tensor& x, int first, int end, bool inverse, double scale, Tensor& y) {
  visit_complex(x.dtype(), [&]<class C>(C) {
    using T = typename C::value_type;
    const C* from = elements<C>(x);
    C* to = elements<C>(y);
    for (int k = first; k < end; ++k, from = to) {
      const int axis = x.ndim() - 1 - k;
      const std::int64_t n = x.shape()[axis], inner = elements_along(x.shape(), k);
      kernels::fft<T>(from, {x.size() == 0 ? 0 : x.size() / (n * inner), n, inner}, inverse,
                      static_cast<T>(k + 1 == end ? scale : 1), to);
    }
  });
}

Spec infer_fft(const Call& c) {
  require_complex(c);
  require_transformed(c, c.attrs<FftAttrs>().axes);
  return c.x[0].spec();
}
void run_fft(const Call& c, std::span<Tensor> y) {
  const auto [axes, inverse] = c.attrs<FftAttrs>();
  run_along(c.x[0], 0, axes, inverse,
            inverse ? 1 / static_cast<double>(elements_along(c.x[0].shape(), axes)) : 1, y[0]);
}
/// The matrix of the transform is n times the inverse one's, conjugated; both are symmetric.
constexpr Rule kFft = linear([](const Call& c, const Tensor& dy) {
  const auto [axes, inverse] = c.attrs<FftAttrs>();
  const auto n = static_cast<double>(elements_along(c.x[0].shape(), axes));
  return transform(dy, {axes, !inverse}) * (inverse ? 1 / n : n);
});

Spec infer_rfft(const Call& c) {
  require_floating(c, 0);
  require_transformed(c, c.attrs<RealFftAttrs>().axes);
  Shape shape = c.x[0].shape();
  const int last = shape.ndim() - 1;
  shape.set(last, shape[last] / 2 + 1);
  return {complex_of(c.x[0].dtype()), shape};
}
void run_rfft(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  const std::int64_t n = x.shape()[x.ndim() - 1];
  visit_floating(x.dtype(), [&]<class T>(T) {
    kernels::rfft<T>(elements<T>(x), x.size() / n, n, elements<std::complex<T>>(y[0]));
  });
  run_along(y[0], 1, c.attrs<RealFftAttrs>().axes, false, 1, y[0]);
}

Spec infer_irfft(const Call& c) {
  require_complex(c);
  const auto [axes, n] = c.attrs<RealFftAttrs>();
  require_transformed(c, axes);
  Shape shape = c.x[0].shape();
  const int last = shape.ndim() - 1;
  if (n < 1 || shape[last] != n / 2 + 1)
    throw_error<ShapeError>("{}: {} real numbers along the last axis have not these transforms: x is {}",
                            c.op.name, n, c.x[0].spec());
  shape.set(last, n);
  return {real_of(c.x[0].dtype()), shape};
}
void run_irfft(const Call& c, std::span<Tensor> y) {
  const auto [axes, n] = c.attrs<RealFftAttrs>();
  const std::int64_t length = n;
  Tensor x = c.x[0];
  if (axes > 1) {
    x = allocate(c.x[0].spec());
    run_along(c.x[0], 1, axes, true,
              static_cast<double>(n) / static_cast<double>(elements_along(y[0].shape(), axes)), x);
  }
  visit_floating(y[0].dtype(), [&]<class T>(T) {
    kernels::irfft<T>(elements<std::complex<T>>(x), y[0].size() / length, length, elements<T>(y[0]));
  });
}

/// For the n / 2 + 1 entries of a transform of n real numbers: `middle` for those that stand for their
/// conjugates, too, 1 for the others.
Tensor weights(std::int64_t n, double middle, DType dtype) {
  std::vector<double> w(static_cast<std::size_t>(n / 2 + 1), middle);
  w.front() = 1;
  if (n % 2 == 0) w.back() = 1;
  return astype(tensor(w), dtype);
}
/// Of the n entries of a transform only those in front go on, and the result's imaginary part is dropped:
/// half of each entry comes back as its conjugate.
constexpr Rule kRfft = linear([](const Call& c, const Tensor& dy) {
  const int axes = c.attrs<RealFftAttrs>().axes;
  const Shape& x = c.x[0].shape();
  const std::int64_t n = x[x.ndim() - 1];
  return real_inverse(dy * weights(n, 0.5, dy.dtype()), {axes, n}) *
         static_cast<double>(elements_along(x, axes));
});
constexpr Rule kIrfft = linear([](const Call& c, const Tensor& dy) {
  const auto [axes, n] = c.attrs<RealFftAttrs>();
  const double count = static_cast<double>(n) * static_cast<double>(elements_along(c.x[0].shape(), axes)) /
                       static_cast<double>(n / 2 + 1);
  return real_transform(dy, axes) * (weights(n, 2, complex_of(dy.dtype())) / count);
});

constexpr Op table[] = {
    {.name = "fft",
     .doc = "Σ x[j] exp(-2πi jk / n) along the last axis.",
     .tensorflow = "FFT",
     .args = {"x"},
     .infer = infer_fft,
     .forward = run_fft,
     .rule = kFft,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 5})}, .attrs = Attrs(FftAttrs{1, false})},
               {.inputs = {spread({37})}, .attrs = Attrs(FftAttrs{1, false})},
               {.inputs = {spread({0, 3})}, .attrs = Attrs(FftAttrs{1, false})},
               {.inputs = {c128({{1.0, -0.25}, {1.75, 0.25}, {-2.0, -1.0}, {-1.25, -0.5}, {-1.25, 1.0}})},
                .attrs = Attrs(FftAttrs{1, false}),
                .expected = {c128({{-1.75, -0.5},
                                   {2.7766287155384513, -1.062533875135},
                                   {-0.37412440997783103, -4.20144487862989},
                                   {-0.44350304783427485, 0.7518514095676789},
                                   {4.790998742273654, 3.7621273441972107}})},
                .oracle = "np.fft.fft(x)"}};
         }},

    {.name = "ifft",
     .doc = "Σ x[j] exp(2πi jk / n) / n along the last axis, the inverse of fft.",
     .tensorflow = "IFFT",
     .args = {"x"},
     .infer = infer_fft,
     .forward = run_fft,
     .rule = kFft,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 5})}, .attrs = Attrs(FftAttrs{1, true})},
               {.inputs = {spread({37})}, .attrs = Attrs(FftAttrs{1, true})},
               {.inputs = {spread({0, 3})}, .attrs = Attrs(FftAttrs{1, true})},
               {.inputs = {c128({{-1.75, 1.25}, {-0.5, 0.0}, {-0.25, 0.25}, {1.5, 2.0}, {-0.75, -0.75}})},
                .attrs = Attrs(FftAttrs{1, true}),
                .expected = {c128({{-0.35000000000000003, 0.55},
                                   {-0.5664421363293811, -0.3185822091125764},
                                   {-0.491529071359701, 0.8726692399428959},
                                   {0.3505460657346484, 0.14815115330704107},
                                   {-0.6925748580455662, -0.002238184137360566}})},
                .oracle = "np.fft.ifft(x)"}};
         }},

    {.name = "fft2d",
     .doc = "Σ x[j] exp(-2πi jk / n) along the last two axes.",
     .tensorflow = "FFT2D",
     .args = {"x"},
     .infer = infer_fft,
     .forward = run_fft,
     .rule = kFft,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {spread({2, 3, 4})}, .attrs = Attrs(FftAttrs{2, false})},
                                      {.inputs = {spread({5, 1})}, .attrs = Attrs(FftAttrs{2, false})},
                                      {.inputs = {reshape(c128({{1.75, -2.0},
                                                                {1.75, -1.75},
                                                                {-2.0, 0.25},
                                                                {-1.25, -2.0},
                                                                {1.5, 0.5},
                                                                {-0.25, -1.25}}),
                                                          {2, 3})},
                                       .attrs = Attrs(FftAttrs{2, false}),
                                       .expected = {reshape(c128({{1.5, -6.25},
                                                                  {-0.2165063509461096, -7.638139720814412},
                                                                  {0.21650635094610982, 1.8881397208144122},
                                                                  {1.5, -0.75},
                                                                  {0.5024047358083552, -1.3570508075688776},
                                                                  {6.997595264191645, 2.1070508075688767}}),
                                                            {2, 3})},
                                       .oracle = "np.fft.fft2(x)"}};
         }},

    {.name = "ifft2d",
     .doc = "Σ x[j] exp(2πi jk / n) / n along the last two axes, the inverse of fft2d.",
     .tensorflow = "IFFT2D",
     .args = {"x"},
     .infer = infer_fft,
     .forward = run_fft,
     .rule = kFft,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 3, 4})}, .attrs = Attrs(FftAttrs{2, true})},
               {.inputs = {spread({5, 1})}, .attrs = Attrs(FftAttrs{2, true})},
               {.inputs = {reshape(
                    c128({{0.75, -0.5}, {-1.5, 0.0}, {-2.0, 1.75}, {-2.0, -1.0}, {-1.0, 0.25}, {-0.75, 0.5}}),
                    {2, 3})},
                .attrs = Attrs(FftAttrs{2, true}),
                .expected = {reshape(c128({{-1.0833333333333333, 0.16666666666666666},
                                           {0.5178418012614795, -0.42224894150898173},
                                           {-0.05950846792814618, -0.4944177251576849},
                                           {0.16666666666666669, 0.24999999999999997},
                                           {0.8206730176127762, 0.10825317547305482},
                                           {0.387660315720557, -0.1082531754730548}}),
                                     {2, 3})},
                .oracle = "np.fft.ifft2(x)"}};
         }},

    {.name = "fft3d",
     .doc = "Σ x[j] exp(-2πi jk / n) along the last three axes.",
     .tensorflow = "FFT3D",
     .args = {"x"},
     .infer = infer_fft,
     .forward = run_fft,
     .rule = kFft,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {spread({2, 3, 2, 4})}, .attrs = Attrs(FftAttrs{3, false})},
                                      {.inputs = {spread({1, 3, 5})}, .attrs = Attrs(FftAttrs{3, false})},
                                      {.inputs = {reshape(c128({{-1.75, 0.75},
                                                                {-1.75, 1.5},
                                                                {-0.25, -2.0},
                                                                {0.25, 1.5},
                                                                {-1.25, -1.25},
                                                                {-0.5, 1.0}}),
                                                          {2, 1, 3})},
                                       .attrs = Attrs(FftAttrs{3, false}),
                                       .expected = {reshape(c128({{-5.25, 1.5},
                                                                  {1.4575317547305484, 4.573557158514987},
                                                                  {-0.7075317547305482, 0.676442841485013},
                                                                  {-2.25, -1.0},
                                                                  {3.1046460717605218, 0.024519052838329003},
                                                                  {-6.854646071760522, -1.274519052838329}}),
                                                            {2, 1, 3})},
                                       .oracle = "np.fft.fftn(x)"}};
         }},

    {.name = "ifft3d",
     .doc = "Σ x[j] exp(2πi jk / n) / n along the last three axes, the inverse of fft3d.",
     .tensorflow = "IFFT3D",
     .args = {"x"},
     .infer = infer_fft,
     .forward = run_fft,
     .rule = kFft,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 3, 2, 4})}, .attrs = Attrs(FftAttrs{3, true})},
               {.inputs = {spread({1, 3, 5})}, .attrs = Attrs(FftAttrs{3, true})},
               {.inputs = {reshape(
                    c128({{0.5, -1.25}, {0.75, 1.0}, {-1.0, -1.0}, {-0.5, 0.0}, {-1.0, 1.5}, {1.75, 1.75}}),
                    {2, 1, 3})},
                .attrs = Attrs(FftAttrs{3, true}),
                .expected = {reshape(c128({{0.08333333333333333, 0.3333333333333333},
                                           {-0.2942574094371279, -0.623504233964073},
                                           {0.21092407610379457, -0.3348290993692602},
                                           {0.0, -0.75},
                                           {-0.07475952641916445, 0.7120190528383289},
                                           {0.5747595264191644, -0.5870190528383289}}),
                                     {2, 1, 3})},
                .oracle = "np.fft.ifftn(x)"}};
         }},

    {.name = "rfft",
     .doc = "The first n / 2 + 1 entries of the transform of real numbers along the last axis.",
     .tensorflow = "RFFT",
     .args = {"x"},
     .infer = infer_rfft,
     .forward = run_rfft,
     .rule = kRfft,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4}, -1, 1)}, .attrs = Attrs(RealFftAttrs{1, 0})},
               {.inputs = {uniform({37}, -1, 1)}, .attrs = Attrs(RealFftAttrs{1, 0})},
               {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = Attrs(RealFftAttrs{1, 0})},
               {.inputs = {uniform({1}, -1, 1)}, .attrs = Attrs(RealFftAttrs{1, 0})},
               {.inputs = {tensor(std::vector<double>{-1.25, 1.75, 1.25, 2.0, -0.75}, {5})},
                .attrs = Attrs(RealFftAttrs{1, 0}),
                .expected = {c128({{3.0, 0.0},
                                   {-3.5702882373436315, -1.9368023515185289},
                                   {-1.0547117626563682, -2.182755517952548}})},
                .oracle = "np.fft.rfft(x)"}};
         }},

    {.name = "irfft",
     .doc = "The inverse of rfft, to n real numbers along the last axis.",
     .tensorflow = "IRFFT",
     .args = {"x"},
     .infer = infer_irfft,
     .forward = run_irfft,
     .rule = kIrfft,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 3})}, .attrs = Attrs(RealFftAttrs{1, 4})},
               {.inputs = {spread({19})}, .attrs = Attrs(RealFftAttrs{1, 37})},
               {.inputs = {spread({0, 3})}, .attrs = Attrs(RealFftAttrs{1, 5})},
               {.inputs = {spread({1})}, .attrs = Attrs(RealFftAttrs{1, 1})},
               {.inputs = {c128({{0.25, -0.75}, {-1.25, -2.0}, {-2.0, -1.0}})},
                .attrs = Attrs(RealFftAttrs{1, 5}),
                .expected = {tensor(std::vector<double>{-1.25, 1.5386644122655964, 0.2971004970034329,
                                                        0.11748930637159867, -0.45325421564062784},
                                    {5})},
                .oracle = "np.fft.irfft(x, 5)"}};
         }},

    {.name = "rfft2d",
     .doc = "The first n / 2 + 1 entries of the transform of real numbers along the last two axes.",
     .tensorflow = "RFFT2D",
     .args = {"x"},
     .infer = infer_rfft,
     .forward = run_rfft,
     .rule = kRfft,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 4}, -1, 1)}, .attrs = Attrs(RealFftAttrs{2, 0})},
               {.inputs = {uniform({5, 1}, -1, 1)}, .attrs = Attrs(RealFftAttrs{2, 0})},
               {.inputs = {tensor(std::vector<double>{-1.5, 2.0, -1.25, -1.5, 0.5, 1.25, 2.0, -0.25},
                                  {2, 4})},
                .attrs = Attrs(RealFftAttrs{2, 0}),
                .expected = {reshape(
                    c128(
                        {{1.25, 0.0}, {-1.75, -5.0}, {-1.75, 0.0}, {-5.75, 0.0}, {1.25, -2.0}, {-4.75, 0.0}}),
                    {2, 3})},
                .oracle = "np.fft.rfft2(x)"}};
         }},

    {.name = "irfft2d",
     .doc = "The inverse of rfft2d, to n real numbers along the last two axes.",
     .tensorflow = "IRFFT2D",
     .args = {"x"},
     .infer = infer_irfft,
     .forward = run_irfft,
     .rule = kIrfft,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 3, 3})}, .attrs = Attrs(RealFftAttrs{2, 5})},
               {.inputs = {spread({5, 1})}, .attrs = Attrs(RealFftAttrs{2, 1})},
               {.inputs = {reshape(
                    c128(
                        {{0.25, -1.25}, {-2.0, -1.25}, {0.5, 1.5}, {0.75, -1.25}, {-1.5, 1.5}, {-1.5, 0.25}}),
                    {2, 3})},
                .attrs = Attrs(RealFftAttrs{2, 4}),
                .expected = {tensor(
                    std::vector<double>{-0.875, 0.1875, 0.875, 0.3125, 0.0625, 0.375, 0.3125, -1.0}, {2, 4})},
                .oracle = "np.fft.irfft2(x, (2, 4))"}};
         }},

    {.name = "rfft3d",
     .doc = "The first n / 2 + 1 entries of the transform of real numbers along the last three axes.",
     .tensorflow = "RFFT3D",
     .args = {"x"},
     .infer = infer_rfft,
     .forward = run_rfft,
     .rule = kRfft,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 2, 4}, -1, 1)}, .attrs = Attrs(RealFftAttrs{3, 0})},
               {.inputs = {uniform({1, 3, 5}, -1, 1)}, .attrs = Attrs(RealFftAttrs{3, 0})},
               {.inputs = {tensor(std::vector<double>{-1.75, -1.0, 0.5, 0.75, 0.0, 0.75}, {2, 1, 3})},
                .attrs = Attrs(RealFftAttrs{3, 0}),
                .expected = {reshape(c128({{-0.75, 0.0},
                                           {-1.125, 1.948557158514987},
                                           {-3.75, 0.0},
                                           {-1.875, 0.649519052838329}}),
                                     {2, 1, 2})},
                .oracle = "np.fft.rfftn(x)"}};
         }},

    {.name = "irfft3d",
     .doc = "The inverse of rfft3d, to n real numbers along the last three axes.",
     .tensorflow = "IRFFT3D",
     .args = {"x"},
     .infer = infer_irfft,
     .forward = run_irfft,
     .rule = kIrfft,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 3, 2, 3})}, .attrs = Attrs(RealFftAttrs{3, 4})},
               {.inputs = {spread({1, 3, 3})}, .attrs = Attrs(RealFftAttrs{3, 5})},
               {.inputs = {reshape(c128({{-1.5, -0.5}, {2.0, 1.5}, {-2.0, 0.5}, {-2.0, 0.0}}), {2, 1, 2})},
                .attrs = Attrs(RealFftAttrs{3, 3}),
                .expected = {tensor(
                    std::vector<double>{-0.5833333333333333, -1.0163460352255527, -0.150320631441114,
                                        1.4166666666666665, -1.0163460352255527, -0.150320631441114},
                    {2, 1, 3})},
                .oracle = "np.fft.irfftn(x, (2, 1, 3))"}};
         }},
};

Tensor transform(const Tensor& x, FftAttrs attrs) {
  static constexpr const Op* ops[2][3] = {
      {&find(table, "fft"), &find(table, "fft2d"), &find(table, "fft3d")},
      {&find(table, "ifft"), &find(table, "ifft2d"), &find(table, "ifft3d")}};
  return ops[attrs.inverse][attrs.axes - 1]->with(attrs, x);
}
Tensor real_transform(const Tensor& x, int axes) {
  static constexpr const Op* ops[] = {&find(table, "rfft"), &find(table, "rfft2d"), &find(table, "rfft3d")};
  return ops[axes - 1]->with(RealFftAttrs{axes, 0}, x);
}
Tensor real_inverse(const Tensor& x, RealFftAttrs attrs) {
  static constexpr const Op* ops[] = {&find(table, "irfft"), &find(table, "irfft2d"),
                                      &find(table, "irfft3d")};
  return ops[attrs.axes - 1]->with(attrs, x);
}

/// x with these extents along its last axes.
Tensor resized(std::string_view op, const Tensor& x, const Shape& length, int axes) {
  if (length.ndim() != axes || x.ndim() < axes)
    throw_error<ShapeError>(
        "{}: fft_length must have an extent for each of the last axes, {}: fft_length is {}, x is {}", op,
        axes, length, x.spec());
  Shape size = x.shape();
  const Shape zeros(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim())));
  Shape after = zeros;
  bool longer = false, shorter = false;
  for (int d = x.ndim() - axes; d < x.ndim(); ++d) {
    const std::int64_t wanted = length[d - x.ndim() + axes];
    if (wanted < 1)
      throw_error<ShapeError>("{}: fft_length must be at least 1: fft_length is {}", op, length);
    if (wanted < size[d])
      size.set(d, wanted), shorter = true;
    else if (wanted > size[d])
      after.set(d, wanted - size[d]), longer = true;
  }
  const Tensor cut = shorter ? slice(x, zeros, size) : x;
  return longer ? pad(cut, zeros, after) : cut;
}
Tensor real_transform(std::string_view op, const Tensor& x, const Shape& length, int axes) {
  return real_transform(length.ndim() == 0 ? x : resized(op, x, length, axes), axes);
}
Tensor real_inverse(std::string_view op, const Tensor& x, Shape length, int axes) {
  if (length.ndim() == 0)
    return real_inverse(x, {axes, x.ndim() == 0 ? 0 : 2 * (x.shape()[x.ndim() - 1] - 1)});
  const std::int64_t n = length[length.ndim() - 1];
  if (n > 0) length.set(length.ndim() - 1, n / 2 + 1);
  return real_inverse(resized(op, x, length, axes), {axes, n});
}

}   // namespace

Tensor fft(const Tensor& x) { return transform(x, {1, false}); }
Tensor ifft(const Tensor& x) { return transform(x, {1, true}); }
Tensor fft2d(const Tensor& x) { return transform(x, {2, false}); }
Tensor ifft2d(const Tensor& x) { return transform(x, {2, true}); }
Tensor fft3d(const Tensor& x) { return transform(x, {3, false}); }
Tensor ifft3d(const Tensor& x) { return transform(x, {3, true}); }
Tensor rfft(const Tensor& x, const Shape& fft_length) { return real_transform("rfft", x, fft_length, 1); }
Tensor rfft2d(const Tensor& x, const Shape& fft_length) { return real_transform("rfft2d", x, fft_length, 2); }
Tensor rfft3d(const Tensor& x, const Shape& fft_length) { return real_transform("rfft3d", x, fft_length, 3); }
Tensor irfft(const Tensor& x, const Shape& fft_length) { return real_inverse("irfft", x, fft_length, 1); }
Tensor irfft2d(const Tensor& x, const Shape& fft_length) { return real_inverse("irfft2d", x, fft_length, 2); }
Tensor irfft3d(const Tensor& x, const Shape& fft_length) { return real_inverse("irfft3d", x, fft_length, 3); }

std::span<const Op> fft_ops() { return table; }

}   // namespace tapedeck
