// The .npy format, wherever its bytes lie: in a file or in an archive.
#pragma once
#include "io/file.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Bytes that come one after the other.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// For messages.
  virtual const FileName& name() const = 0;
  /// How many bytes are still to come.
  virtual std::int64_t left() const = 0;
  /// The next n, of those that are left.
  virtual void read(void* to, std::int64_t n) = 0;
};

/// Reads an array, which takes all that is left. Fails before memory is taken for more than is there.
Tensor read_npy(ByteSource& source);

/// What comes before the elements of x.
std::string npy_header(const Spec& spec);

}   // namespace tapedeck
