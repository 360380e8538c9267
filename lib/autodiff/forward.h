// Forward: the tangents of one accumulator.
#pragma once
#include "autodiff/recorder.h"

namespace tapedeck {

class Forward final : public Recorder {
 public:
  Forward(std::span<const Tensor> primals, std::span<const Tensor> tangents);
  ~Forward() { retire(); }   // before its tangents end, which it may track itself, or as copies
  void record(const Call& call, std::span<Tensor> y) override;
  bool tracks(const Tensor& x) const override { return slot_of(x) >= 0; }
  void ended(std::int32_t slot) noexcept override;
  void copied(std::int32_t slot) noexcept override { ++tangents_[static_cast<std::size_t>(slot)].handles; }
  void copy_ended(std::int32_t slot) noexcept override { ended(slot); }
  /// Undefined where x has none.
  const Tensor& tangent_of(const Tensor& x) const;

 private:
  struct Tangent {
    Tensor value;
    std::uint64_t id;
    std::uint32_t handles;   // 1 for the tensor, and 1 for each copy that a tape has saved
  };
  void put(const Tensor& x, Tensor tangent);

  std::vector<Tangent> tangents_;   // by slot
  std::vector<std::int32_t> free_;
};

}  // namespace tapedeck
