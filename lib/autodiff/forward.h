// Forward: the tangents of one accumulator.
#pragma once
#include "autodiff/recorder.h"

namespace tapedeck {

class Forward final : public Recorder {
 public:
  Forward(const Tensor& primal, const Tensor& tangent);
  void record(const Call& call, std::span<Tensor> y) override;
  bool tracks(const Tensor& x) const override { return slot_of(x) >= 0; }
  void ended(std::int32_t slot) noexcept override;
  /// Undefined where x has none.
  const Tensor& tangent_of(const Tensor& x) const;

 private:
  struct Tangent {
    Tensor value;
    std::uint64_t id;
  };
  void put(const Tensor& x, Tensor tangent);

  std::vector<Tangent> tangents_;   // by slot
  std::vector<std::int32_t> free_;
};

}  // namespace tapedeck
