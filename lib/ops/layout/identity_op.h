// Ops that return their input as a new tensor with the same memory, and pass gradients on unchanged.
#pragma once
#include "core/storage.h"
#include "tapedeck/op.h"

namespace tapedeck {

inline constexpr Kernel kShare = {[](const Call& c, std::span<Tensor> y) { share_with(y[0], c.x[0]); },
                                  Outputs::by_kernel, KernelDtypes::all};

inline constexpr Rule kIdentityRule = [] {
  Rule rule = Rule::custom(
      {},
      [](const Call&, std::span<Gradient> dy, std::span<Gradient> dx) { std::ranges::move(dy, dx.begin()); },
      [](const Call&, Refs dx, std::span<Tensor> dy) {
        for (int i = 0; i < dx.size(); ++i)
          dy[static_cast<std::size_t>(i)] = dx[i];
      });
  rule.passes_slices = true;
  return rule;
}();

}   // namespace tapedeck
