// Threads or ranks, and the check that their results are equal.
#include "team.h"

#include <cstring>

#include <fmt/format.h>

namespace td = tapedeck;

Team::Team(int replicas) : threads_(std::max(replicas, 1), {.reduction = kReduction}) {
  if (replicas == 0) ranks_.emplace(td::RanksOptions{.reduction = kReduction});
}

void check_same_bits(const td::Variable& variable, td::Replica replica) {
  const td::Tensor value = variable;
  const auto values = value.data<float>();
  std::vector<std::int32_t> words(values.size());
  std::memcpy(words.data(), values.data(), values.size_bytes());
  const td::Tensor bits = td::tensor(words),
                   first = td::sum_over_replicas(replica.index == 0 ? bits : td::zeros_like(bits));
  const td::Tensor others =
      td::sum_over_replicas(td::astype(td::any(td::not_equal(bits, first)), td::DType::i32));
  if (others.item() != 0)
    throw td::Error(fmt::format("\"{}\" has other bits on {} of {} replicas than on the first",
                                variable.name(), others.item(), replica.count));
}
