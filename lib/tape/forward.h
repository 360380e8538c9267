// Forward: the recorder behind a ForwardAccumulator, with its tangents.
#pragma once
#include <optional>

#include "op/recorder.h"

namespace tapedeck {

class Forward final : public Recorder {
 public:
  explicit Forward(bool stacked) : stacked_(stacked) {}
  ~Forward() { retire(); }   // before members are destroyed: it may track its own tangents
  void record(const Call& call, std::span<Tensor> y) override;
  bool tracks(const Tensor& x) const override { return slot_of(x) >= 0; }
  void read(detail::VariableCell& cell, Tensor& value) override;
  void ended(std::int32_t slot) noexcept override;
  void copied(std::int32_t slot) noexcept override { ++tangents_[static_cast<std::size_t>(slot)].handles; }
  void copy_ended(std::int32_t slot) noexcept override { ended(slot); }
  bool counts_copies() const override { return true; }
  /// Adds to the tangent of a primal that is watched already.
  void watch(const Tensor& primal, const Tensor& tangent);
  /// The tangent of x; undefined if it has none.
  const Tensor& tangent_of(const Tensor& x) const;
  Tensor zeros_for(const Spec& x) const;

 private:
  struct Tangent {
    Tensor value;
    std::uint64_t id;
    std::uint32_t handles;   // 1 for the tensor, and 1 for each copy that a tape has saved
  };
  void check(const Tensor& primal, const Tensor& tangent) const;
  void put(const Tensor& x, Tensor tangent);

  std::vector<Tangent> tangents_;   // by slot
  std::vector<std::int32_t> free_;
  bool stacked_;
  std::int64_t directions_ = -1;   // extent of the leading axis of stacked tangents; -1: none so far
};

// Each of the following computes dy, the tangents of a call's outputs, from dx, the tangents of its inputs.
// An undefined tangent is zero.

/// Runs the rule's jvp, or transposes its vjp if there is no jvp.
void push_forward(const Call& c, Refs dx, std::span<Tensor> dy);
/// Transposes the vjp, which is linear in the cotangents; for rules without a jvp. Stacked tangents yield
/// stacked tangents.
void transpose_vjp(const Call& c, Refs dx, std::span<Tensor> dy);
/// For stacked tangents, which have a leading axis of extent `directions`. Runs the rule once if it supports
/// stacks, else once per direction.
void push_stacks_forward(const Call& c, Refs dx, std::span<Tensor> dy, std::int64_t directions);

}   // namespace tapedeck
