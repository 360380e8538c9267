// TapeEntry: one op that a tape has recorded.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "tapedeck/op.h"

namespace tapedeck {

using Slot = std::int32_t;   // index of a tensor on a tape; -1: not tracked

/// Saves exactly the tensors that the op's rule reads. An op with more than kMaxInputs inputs, or with
/// several outputs, has its lists in `more`.
struct TapeEntry {
  const Op* op = nullptr;
  OwnedAttrs attrs;
  std::int32_t inputs = 0, outputs = 0;
  std::int32_t reachable_outputs = 0;   // outputs that have a handle, or are an input of an entry
  std::array<Slot, kMaxInputs> few_x = {};
  Slot one_y = -1;
  std::array<Tensor, kMaxInputs> few_kept_x;
  Tensor one_kept_y;
  struct More {
    std::vector<Slot> x, y;
    std::vector<Tensor> kept_x, kept_y;
  };
  std::unique_ptr<More> more;

  /// Releases the saved tensors and attributes, when no further pass needs them.
  void drop_kept() noexcept {
    for (Tensor& x : few_kept_x)
      if (x.defined()) x = {};
    one_kept_y = {};
    more.reset();
    attrs = {};
  }
  void reset() noexcept {
    drop_kept();
    op = nullptr;
    inputs = outputs = reachable_outputs = 0;
    few_x = {};
    one_y = -1;
  }
  std::span<Slot> x() {
    return more ? std::span<Slot>(more->x) : std::span<Slot>(few_x.data(), static_cast<std::size_t>(inputs));
  }
  std::span<Slot> y() { return more ? std::span<Slot>(more->y) : std::span<Slot>(&one_y, 1); }
  std::span<Tensor> kept_x() {
    return more ? std::span<Tensor>(more->kept_x)
                : std::span<Tensor>(few_kept_x.data(), static_cast<std::size_t>(inputs));
  }
  std::span<Tensor> kept_y() {
    return more ? std::span<Tensor>(more->kept_y) : std::span<Tensor>(&one_kept_y, 1);
  }
};

/// The name of the op as users know it: for an operation of record_operation(), the name given there.
std::string_view name_of(const Op& op, const Attrs& attrs);
inline std::string_view name_of(const TapeEntry& e) { return name_of(*e.op, e.attrs.view()); }
/// Whether the entry records a read of a variable.
bool is_read(const TapeEntry& e);

}   // namespace tapedeck
