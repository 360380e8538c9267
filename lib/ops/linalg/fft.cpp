// Fourier transforms. In: complex or real tensors. Out: transforms along their last axes.
#include "ops/linalg/fft.h"

#include "core/format.h"
#include "core/storage.h"
#include "kernels/linalg/fft.h"
#include "op/rules.h"
#include "ops/infer.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

// These run the op for the number of axes in the attributes.
Tensor transform(const Tensor& x, FftAttrs attrs);
Tensor real_transform(const Tensor& x, int axes);
Tensor real_inverse(const Tensor& x, RealFftAttrs attrs);

// The product of the last extents, which may not fit into an integer for an empty tensor.
double elements_along(const Shape& shape, int axes) {
  double n = 1;
  for (int d = shape.ndim() - axes; d < shape.ndim(); ++d)
    n *= static_cast<double>(shape[d]);
  return n;
}

void require_transformed(const Call& c, int axes) {
  require_axes(c, axes);
  const Shape& x = c.x[0].shape();
  for (int d = x.ndim() - axes; d < x.ndim(); ++d)
    if (x[d] == 0) c.throw_shape_error("no elements along an axis that is transformed");
}

Spec infer_fft(const Call& c) {
  require_complex(c);
  require_transformed(c, c.attrs<FftAttrs>().axes);
  return c.x[0].spec();
}
void run_fft(const Call& c, std::span<Tensor> y) {
  const auto [axes, inverse] = c.attrs<FftAttrs>();
  kernels::fft_along(c.x[0], 0, axes, inverse, inverse ? 1 / elements_along(c.x[0].shape(), axes) : 1, y[0]);
}
/// The matrix of the transform is n times the conjugate of the inverse transform's; both are symmetric.
constexpr Rule kFftRule = Rule::linear([](const Call& c, const Tensor& dy) {
  const auto [axes, inverse] = c.attrs<FftAttrs>();
  const double n = elements_along(c.x[0].shape(), axes);
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
  if (x.size() == 0) return;
  kernels::rfft_rows(x, y[0]);
  kernels::fft_along(y[0], 1, c.attrs<RealFftAttrs>().axes, false, 1, y[0]);
}

Spec infer_irfft(const Call& c) {
  require_complex(c);
  const auto [axes, n] = c.attrs<RealFftAttrs>();
  require_transformed(c, axes);
  Shape shape = c.x[0].shape();
  const int last = shape.ndim() - 1;
  if (n < 1 || shape[last] != n / 2 + 1)
    throw_error<ShapeError>(
        "{}: {} real numbers along the last axis do not have transforms of this shape: x is {}", c.op.name, n,
        c.x[0].spec());
  shape.set(last, n);
  return {real_of(c.x[0].dtype()), shape};
}
void run_irfft(const Call& c, std::span<Tensor> y) {
  if (y[0].size() == 0) return;
  const auto [axes, n] = c.attrs<RealFftAttrs>();
  Tensor x = c.x[0];
  if (axes > 1) {
    x = allocate(c.x[0].spec());
    kernels::fft_along(c.x[0], 1, axes, true, static_cast<double>(n) / elements_along(y[0].shape(), axes), x);
  }
  kernels::irfft_rows(x, y[0]);
}

/// z times the weights of the n / 2 + 1 entries of a transform of n real numbers: `middle` for entries that
/// also represent their conjugates, 1 for the others; all divided by `scale`.
Tensor weighted(const Tensor& z, std::int64_t n, double middle, double scale = 1) {
  if (z.size() == 0) return z;   // n may be huge
  std::vector<double> w(static_cast<std::size_t>(n / 2 + 1), middle);
  w.front() = 1;
  if (n % 2 == 0) w.back() = 1;
  const Tensor weights = astype(tensor(w), z.dtype());
  return z * (scale == 1 ? weights : weights / scale);
}
/// rfft returns only the first n / 2 + 1 of n entries, and the gradient of a real x is real. irfft also
/// counts the conjugates of the middle entries, so these are halved.
constexpr Rule kRfftRule = Rule::linear([](const Call& c, const Tensor& dy) {
  const int axes = c.attrs<RealFftAttrs>().axes;
  const Shape& x = c.x[0].shape();
  const std::int64_t n = x[x.ndim() - 1];
  return real_inverse(weighted(dy, n, 0.5), {axes, n}) * elements_along(x, axes);
});
constexpr Rule kIrfftRule = Rule::linear([](const Call& c, const Tensor& dy) {
  const auto [axes, n] = c.attrs<RealFftAttrs>();
  const std::int64_t kept = n / 2 + 1;
  const double count =
      static_cast<double>(n) * elements_along(c.x[0].shape(), axes) / static_cast<double>(kept);
  return weighted(real_transform(dy, axes), n, 2, count);
});

constexpr Op kFft = {
    .name = "fft",
    .doc = "The discrete Fourier transform Σ x[j] exp(-2πi jk / n) along the last axis.",
    .tensorflow = "FFT",
    .args = {"x"},
    .infer = infer_fft,
    .forward = run_fft,
    .rule = kFftRule,
};

constexpr Op kIfft = {
    .name = "ifft",
    .doc = "The inverse of fft, Σ x[j] exp(2πi jk / n) / n along the last axis.",
    .tensorflow = "IFFT",
    .args = {"x"},
    .infer = infer_fft,
    .forward = run_fft,
    .rule = kFftRule,
};

constexpr Op kFft2d = {
    .name = "fft2d",
    .doc = "The discrete Fourier transform Σ x[j] exp(-2πi jk / n) along the last two axes.",
    .tensorflow = "FFT2D",
    .args = {"x"},
    .infer = infer_fft,
    .forward = run_fft,
    .rule = kFftRule,
};

constexpr Op kIfft2d = {
    .name = "ifft2d",
    .doc = "The inverse of fft2d, Σ x[j] exp(2πi jk / n) / n along the last two axes.",
    .tensorflow = "IFFT2D",
    .args = {"x"},
    .infer = infer_fft,
    .forward = run_fft,
    .rule = kFftRule,
};

constexpr Op kFft3d = {
    .name = "fft3d",
    .doc = "The discrete Fourier transform Σ x[j] exp(-2πi jk / n) along the last three axes.",
    .tensorflow = "FFT3D",
    .args = {"x"},
    .infer = infer_fft,
    .forward = run_fft,
    .rule = kFftRule,
};

constexpr Op kIfft3d = {
    .name = "ifft3d",
    .doc = "The inverse of fft3d, Σ x[j] exp(2πi jk / n) / n along the last three axes.",
    .tensorflow = "IFFT3D",
    .args = {"x"},
    .infer = infer_fft,
    .forward = run_fft,
    .rule = kFftRule,
};

constexpr Op kRfft = {
    .name = "rfft",
    .doc =
        "The Fourier transform of real numbers along the last axis; only the first n / 2 + 1 entries "
        "are kept.",
    .tensorflow = "RFFT",
    .args = {"x"},
    .infer = infer_rfft,
    .forward = run_rfft,
    .rule = kRfftRule,
};

constexpr Op kIrfft = {
    .name = "irfft",
    .doc = "The inverse of rfft, with n real numbers along the last axis.",
    .tensorflow = "IRFFT",
    .args = {"x"},
    .infer = infer_irfft,
    .forward = run_irfft,
    .rule = kIrfftRule,
};

constexpr Op kRfft2d = {
    .name = "rfft2d",
    .doc =
        "The Fourier transform of real numbers along the last two axes; only the first n / 2 + 1 "
        "entries along the last axis are kept.",
    .tensorflow = "RFFT2D",
    .args = {"x"},
    .infer = infer_rfft,
    .forward = run_rfft,
    .rule = kRfftRule,
};

constexpr Op kIrfft2d = {
    .name = "irfft2d",
    .doc = "The inverse of rfft2d, with n real numbers along the last axis.",
    .tensorflow = "IRFFT2D",
    .args = {"x"},
    .infer = infer_irfft,
    .forward = run_irfft,
    .rule = kIrfftRule,
};

constexpr Op kRfft3d = {
    .name = "rfft3d",
    .doc =
        "The Fourier transform of real numbers along the last three axes; only the first n / 2 + 1 "
        "entries along the last axis are kept.",
    .tensorflow = "RFFT3D",
    .args = {"x"},
    .infer = infer_rfft,
    .forward = run_rfft,
    .rule = kRfftRule,
};

constexpr Op kIrfft3d = {
    .name = "irfft3d",
    .doc = "The inverse of rfft3d, with n real numbers along the last axis.",
    .tensorflow = "IRFFT3D",
    .args = {"x"},
    .infer = infer_irfft,
    .forward = run_irfft,
    .rule = kIrfftRule,
};

constexpr const Op* fft_table[] = {&kFft,  &kIfft,  &kFft2d,  &kIfft2d,  &kFft3d,  &kIfft3d,
                                   &kRfft, &kIrfft, &kRfft2d, &kIrfft2d, &kRfft3d, &kIrfft3d};

Tensor transform(const Tensor& x, FftAttrs attrs) {
  static constexpr const Op* ops[2][3] = {{&kFft, &kFft2d, &kFft3d}, {&kIfft, &kIfft2d, &kIfft3d}};
  return (*ops[attrs.inverse][attrs.axes - 1])(x, attrs);
}
Tensor real_transform(const Tensor& x, int axes) {
  static constexpr const Op* ops[] = {&kRfft, &kRfft2d, &kRfft3d};
  return (*ops[axes - 1])(x, RealFftAttrs{axes, 0});
}
Tensor real_inverse(const Tensor& x, RealFftAttrs attrs) {
  static constexpr const Op* ops[] = {&kIrfft, &kIrfft2d, &kIrfft3d};
  return (*ops[attrs.axes - 1])(x, attrs);
}

/// x with these extents along its last axes, for an fft_length that was given as `given`.
Tensor resized(std::string_view op, const Tensor& x, const Shape& length, int axes, const Shape& given) {
  if (length.ndim() != axes || x.ndim() < axes)
    throw_error<ShapeError>(
        "{}: fft_length must have an extent for each of the last axes, {}: fft_length is {}, x is {}", op,
        axes, given, x.spec());
  Shape size = x.shape();
  const Shape zeros(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim())));
  Shape after = zeros;
  bool longer = false, shorter = false;
  for (int d = x.ndim() - axes; d < x.ndim(); ++d) {
    const std::int64_t wanted = length[d - x.ndim() + axes];
    if (wanted < 1) throw_error<ShapeError>("{}: fft_length must be at least 1: fft_length is {}", op, given);
    if (wanted < size[d])
      size.set(d, wanted), shorter = true;
    else if (wanted > size[d])
      after.set(d, wanted - size[d]), longer = true;
  }
  const Tensor cut = shorter ? slice(x, zeros, size) : x;
  return longer ? pad(cut, zeros, after) : cut;
}
Tensor real_transform(std::string_view op, const Tensor& x, Ints fft_length, int axes) {
  const Shape length(fft_length.span());
  return real_transform(length.ndim() == 0 ? x : resized(op, x, length, axes, length), axes);
}
Tensor real_inverse(std::string_view op, const Tensor& x, Ints fft_length, int axes) {
  const Shape given(fft_length.span());
  Shape length = given;
  if (length.ndim() == 0) {
    const std::int64_t kept = x.ndim() == 0 ? 1 : x.shape()[x.ndim() - 1];
    if (kept > std::int64_t{1} << 62) throw_error<ShapeError>("{}: too many elements: x is {}", op, x.spec());
    return real_inverse(x, {axes, 2 * (kept - 1)});
  }
  const std::int64_t n = length[length.ndim() - 1];
  if (n > 0) length.set(length.ndim() - 1, n / 2 + 1);
  return real_inverse(resized(op, x, length, axes, given), {axes, n});
}

}   // namespace

Tensor fft(const Tensor& x) { return transform(x, {1, false}); }
Tensor ifft(const Tensor& x) { return transform(x, {1, true}); }
Tensor fft2d(const Tensor& x) { return transform(x, {2, false}); }
Tensor ifft2d(const Tensor& x) { return transform(x, {2, true}); }
Tensor fft3d(const Tensor& x) { return transform(x, {3, false}); }
Tensor ifft3d(const Tensor& x) { return transform(x, {3, true}); }
Tensor rfft(const Tensor& x, Ints fft_length) { return real_transform("rfft", x, fft_length, 1); }
Tensor rfft2d(const Tensor& x, Ints fft_length) { return real_transform("rfft2d", x, fft_length, 2); }
Tensor rfft3d(const Tensor& x, Ints fft_length) { return real_transform("rfft3d", x, fft_length, 3); }
Tensor irfft(const Tensor& x, Ints fft_length) { return real_inverse("irfft", x, fft_length, 1); }
Tensor irfft2d(const Tensor& x, Ints fft_length) { return real_inverse("irfft2d", x, fft_length, 2); }
Tensor irfft3d(const Tensor& x, Ints fft_length) { return real_inverse("irfft3d", x, fft_length, 3); }

std::span<const Op* const> fft_ops() { return fft_table; }

}   // namespace tapedeck
