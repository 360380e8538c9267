// In: stacked cotangents, and a rule that accepts one at a time. Out: stacked gradients.
#include "tape/rule_arguments.h"

#include "core/format.h"
#include "op/primitives.h"
#include "op/pull_back.h"

namespace tapedeck {

void run_once_per_cotangent(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx,
                            std::int64_t directions) {
  const auto count = static_cast<std::size_t>(directions);
  std::vector<std::vector<Tensor>> rows_dy(dy.size()), rows_dx(dx.size());
  for (std::size_t k = 0; k < dy.size(); ++k)
    if (dy[k].defined()) rows_dy[k] = unstack(std::move(dy[k]).dense(), 0);
  for (std::size_t j = 0; j < count; ++j) {
    std::vector<Gradient> one_dy(dy.size()), one_dx(dx.size());
    for (std::size_t k = 0; k < dy.size(); ++k)
      if (!rows_dy[k].empty()) one_dy[k] = std::move(rows_dy[k][j]);
    pull_back(c, one_dy, one_dx);
    for (std::size_t i = 0; i < dx.size(); ++i)
      if (one_dx[i].defined()) rows_dx[i].push_back(std::move(one_dx[i]).dense());
  }
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (rows_dx[i].empty()) continue;
    if (rows_dx[i].size() != count)
      throw_error<GradientError>("{}: the rule's gradient of input {} is none for some cotangents only",
                                 c.op.name, i);
    dx[i] = stack(rows_dx[i], 0);
  }
}

}   // namespace tapedeck
