// Shape and dtype inference, and checks of inputs.
#include "ops/infer.h"

#include "core/format.h"

namespace tapedeck {
[[gnu::noinline]] Shape broadcast_of(const Call& c) {
  int ndim = 0;
  for (int i = 0; i < c.x.size(); ++i)
    ndim = std::max(ndim, c.x[i].ndim());
  Shape y;
  for (int d = 0; d < ndim; ++d) {
    std::int64_t dim = 1;
    for (int i = 0; i < c.x.size(); ++i) {
      const int axis = d - (ndim - c.x[i].ndim());
      const std::int64_t own = axis < 0 ? 1 : c.x[i].shape()[axis];
      if (own == 1) continue;
      if (dim != 1 && own != dim) c.throw_shape_error("shapes do not broadcast");
      dim = own;
    }
    y.push_back(dim);
  }
  return y;
}

bool broadcasts_to(const Shape& x, const Shape& shape) {
  bool fits = x.ndim() <= shape.ndim();
  for (int d = 1; fits && d <= x.ndim(); ++d)
    fits = x[x.ndim() - d] == 1 || x[x.ndim() - d] == shape[shape.ndim() - d];
  return fits;
}

namespace {

Spec broadcast_of_one_dtype(const Call& c) {
  const Tensor& a = c.x[0];
  bool same = true;
  for (int i = 1; i < c.x.size(); ++i) {
    if (c.x[i].dtype() != a.dtype()) c.throw_dtype_error("dtypes differ");
    same &= c.x[i].shape() == a.shape();
  }
  return {a.dtype(), same ? a.shape() : broadcast_of(c)};
}

}   // namespace

Spec elementwise(const Call& c) {
  require_floating(c, 0);
  return broadcast_of_one_dtype(c);
}

Spec complex_elementwise(const Call& c) {
  require_trainable(c, 0);
  return broadcast_of_one_dtype(c);
}

Spec numeric(const Call& c) {
  if (c.x[0].dtype() == DType::boolean) c.throw_dtype_error("bool has no arithmetic, use astype");
  return broadcast_of_one_dtype(c);
}

Spec arithmetic(const Call& c) {
  require_real(c);
  return numeric(c);
}

Spec comparison(const Call& c) { return {DType::boolean, broadcast_of_one_dtype(c).shape}; }

Spec same_as_first(const Call& c) { return c.x[0].spec(); }

Spec infer_rows(const Call& c) {
  require_floating(c, 0);
  return infer_complex_rows(c);
}

Spec infer_complex_rows(const Call& c) {
  require_trainable(c, 0);
  require_axes(c, 1);
  return c.x[0].spec();
}

Spec all_alike(const Call& c) {
  require_one_dtype(c);
  for (int i = 1; i < c.x.size(); ++i)
    if (c.x[i].shape() != c.x[0].shape()) c.throw_shape_error("shapes differ");
  return c.x[0].spec();
}

void require_axes(const Call& c, int n) {
  if (c.x[0].ndim() < n) [[unlikely]]
    c.throw_shape_error(fmt::format("takes tensors of rank {} or more", n));
}

void require_floating(const Call& c, int i) {
  if (!is_floating(c.x[i].dtype())) [[unlikely]]
    c.throw_dtype_error("takes f32, f64, f16 or bf16, use astype");
}

void require_trainable(const Call& c, int i) {
  if (!is_trainable(c.x[i].dtype())) [[unlikely]]
    c.throw_dtype_error("takes f32, f64, f16, bf16, c64 or c128, use astype");
}

void require_complex(const Call& c) {
  if (!is_complex(c.x[0].dtype())) c.throw_dtype_error("takes c64 or c128, use complex or astype");
}

void require_real(const Call& c) {
  if (is_complex(c.x[0].dtype()))
    c.throw_dtype_error("complex numbers are not supported, take real, imag or abs");
}

bool holds_indices(const Tensor& x) { return is_integer(x.dtype()); }

void require_indices(const Call& c, int i) {
  if (!holds_indices(c.x[i])) [[unlikely]]
    c.throw_dtype_error(fmt::format("{} must be integers, use astype", c.op.args[i]));
}

void require_one_dtype(const Call& c) {
  for (int i = 1; i < c.x.size(); ++i)
    if (c.x[i].dtype() != c.x[0].dtype()) [[unlikely]]
      c.throw_dtype_error("dtypes differ");
}

int checked_axis(std::string_view op, std::string_view arg, int axis, int ndim) {
  if (axis < -ndim || axis >= ndim) {
    if (ndim == 0) throw_error<ShapeError>("{}: axis {} is out of range for {} of rank 0", op, axis, arg);
    throw_error<ShapeError>("{}: axis {} is out of range for {} of rank {}; use {}..{}", op, axis, arg, ndim,
                            -ndim, ndim - 1);
  }
  return axis < 0 ? axis + ndim : axis;
}

}   // namespace tapedeck
