// Vector products along the last axis.
#include "kernels/linalg/cross.h"
#include "core/format.h"
#include "core/storage.h"
#include "op/rules.h"
#include "ops/infer.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_cross(const Call& c) {
  const Spec y = elementwise(c);
  for (int i = 0; i < 2; ++i)
    if (c.x[i].ndim() == 0 || c.x[i].shape()[c.x[i].ndim() - 1] != 3)
      c.throw_shape_error("takes vectors of 3 elements along the last axis");
  return y;
}

constexpr Op kCross = {
    .name = "cross",
    .doc = "The cross product a × b along the last axis, which has 3 elements.",
    .tensorflow = "Cross",
    .args = {"a", "b"},
    .infer = infer_cross,
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  allocate_for(y[0]);
                  kernels::cross(broadcast_to(c.x[0], y[0].shape()), broadcast_to(c.x[1], y[0].shape()),
                                 y[0]);
                },
                Outputs::by_kernel},
    .rule =
        Rule::bilinear([](const Call& c, const Tensor& dy) { return unbroadcast(c, cross(c.x[1], dy), 0); },
                       [](const Call& c, const Tensor& dy) { return unbroadcast(c, cross(dy, c.x[0]), 1); }),
};

constexpr const Op* cross_table[] = {&kCross};

}   // namespace

Tensor cross(Operand a, Operand b) { return kCross(a, b); }

std::span<const Op* const> cross_ops() { return cross_table; }

}   // namespace tapedeck
