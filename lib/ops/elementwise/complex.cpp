// Complex numbers and their parts. In: real and imaginary parts, or complex numbers. Out: complex numbers,
// or their parts.
// Rules receive complex values conjugated (op/pull_back.h).
#include "kernels/elementwise/complex_parts.h"

#include <numbers>

#include "core/format.h"
#include "core/storage.h"
#include "ops/elementwise/complex_abs.h"
#include "ops/linalg/matrices.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_part(const Call& c) {
  require_complex(c);
  return {real_of(c.x[0].dtype()), c.x[0].shape()};
}
Spec infer_complex(const Call& c) {
  const Spec x = all_alike(c);
  require_floating(c, 0);
  return {complex_of(x.dtype), x.shape};
}
Tensor imaginary(const Tensor& y) { return complex(zeros_like(y), y); }

template <void (*run)(const Tensor&, Tensor&)> void run_part(const Call& c, std::span<Tensor> y) {
  run(c.x[0], y[0]);
}

constexpr Op kComplex = {
    .name = "complex",
    .doc = "re + i im.",
    .tensorflow = "Complex",
    .args = {"re", "im"},
    .infer = infer_complex,
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::join_parts(c.x[0], c.x[1], y[0]); },
    .rule = Rule::custom(
        {},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          const Tensor g = std::move(dy[0]).dense();
          if (c.needs_gradient(0)) dx[0] = real(g);
          if (c.needs_gradient(1)) dx[1] = imag(g);
        },
        [](const Call&, Refs dx, std::span<Tensor> dy) {
          dy[0] = complex(dx[0].defined() ? dx[0] : zeros_like(dx[1]),
                          dx[1].defined() ? dx[1] : zeros_like(dx[0]));
        }),
};

constexpr Op kReal = {
    .name = "real",
    .doc = "Real part of z.",
    .tensorflow = "Real",
    .args = {"z"},
    .infer = infer_part,
    .forward = run_part<kernels::real_parts>,
    .rule = Rule::linear([](const Call&, const Tensor& dy) { return complex(dy, zeros_like(dy)); }),
};

constexpr Op kImag = {
    .name = "imag",
    .doc = "Imaginary part of z.",
    .tensorflow = "Imag",
    .args = {"z"},
    .infer = infer_part,
    .forward = run_part<kernels::imaginary_parts>,
    .rule = Rule::linear([](const Call&, const Tensor& dy) { return imaginary(dy); }),
};

constexpr Op kConj = {
    .name = "conj",
    .doc = "re - i im, for z = re + i im.",
    .tensorflow = "Conj",
    .args = {"z"},
    .infer =
        [](const Call& c) {
          require_complex(c);
          return c.x[0].spec();
        },
    .forward = run_part<kernels::conjugates>,
    .rule = Rule::linear([](const Call&, const Tensor& dy) { return conj(dy); }),
};

constexpr Op kComplexAbs = {
    .name = "complex_abs",
    .doc = "√(re² + im²), for z = re + i im; the gradient at 0 is 0. abs uses this op for complex numbers.",
    .tensorflow = "ComplexAbs",
    .args = {"z"},
    .infer = infer_part,
    .forward = run_part<kernels::magnitudes>,
    .rule = Rule::custom(
        {.x = 1, .y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = conj(c.x[0]) * div_no_nan(std::move(dy[0]).dense(), c.y[0]);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          dy[0] = div_no_nan(real(conj(c.x[0]) * dx[0]), c.y[0]);
        }),
};

constexpr Op kAngle = {
    .name = "angle",
    .doc = "Phase of z, its angle with the positive real axis, in [-π, π].",
    .tensorflow = "Angle",
    .args = {"z"},
    .infer = infer_part,
    .forward = run_part<kernels::angles>,
    .rule = Rule::custom(
        {.x = 1},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = imaginary(std::move(dy[0]).dense()) / c.x[0];
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = imag(dx[0] / c.x[0]); }),
};

constexpr Op kConjugateTranspose = {
    .name = "conjugate_transpose",
    .doc = "x with the last two axes swapped and complex elements conjugated.",
    .tensorflow = "ConjugateTranspose",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          require_axes(c, 2);
          return with_last(c.x[0], 2, {extent(c.x[0], 1), extent(c.x[0], 2)});
        },
    .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = conj(adjoint(c.x[0])); }, Outputs::by_kernel},
    .rule = Rule::linear([](const Call&, const Tensor& dy) { return conjugate_transpose(dy); }),
};

constexpr const Op* complex_table[] = {&kComplex,           &kReal, &kImag, &kConj, &kComplexAbs, &kAngle,
                                       &kConjugateTranspose};

}   // namespace

Tensor complex(const Tensor& re, const Tensor& im) {
  if (re.shape() == im.shape()) return kComplex(std::vector{re, im});
  const Tensor* x[] = {&re, &im};
  const Shape shape = broadcast_of({.op = kComplex, .x = {x, 2}});
  return kComplex(std::vector{broadcast_to(re, shape), broadcast_to(im, shape)});
}
Tensor real(const Tensor& z) { return is_complex(z.dtype()) ? kReal(z) : z; }
Tensor imag(const Tensor& z) { return is_complex(z.dtype()) ? kImag(z) : zeros_like(z); }
Tensor conj(const Tensor& z) { return is_complex(z.dtype()) ? kConj(z) : z; }
Tensor complex_abs(const Tensor& z) { return kComplexAbs(z); }
Tensor conjugate_transpose(const Tensor& x) { return kConjugateTranspose(x); }
Tensor angle(const Tensor& z) {
  if (!is_floating(z.dtype())) return kAngle(z);
  return where(stop_gradient(z) < 0, std::numbers::pi, zeros_like(z));
}

std::span<const Op* const> complex_ops() { return complex_table; }

}   // namespace tapedeck
